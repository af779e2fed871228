//! What the readers of clusters show, and what is wrong with the freezes of this one.

use std::time::Duration;

use actix::{Handler, ResponseFuture};
use futures_util::future::join_all;

use super::Clusters;
use crate::actors::message::Observe;
use crate::actors::observation::{LeafSeen, Observation, PromotingSeen};

/// How long a reader may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_millis(500);

impl Handler<Observe> for Clusters {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let children: Vec<_> =
            self.children.values().map(|child| child.send(observe).timeout(OBSERVE_WITHIN)).collect();
        let rests = "its reader crashed too often and rests for five minutes; the log says why";
        let resting = self.shell.machine().resting().map(|cluster| LeafSeen {
            name: cluster.display_name(),
            watches: 0,
            troubles: vec![rests.to_owned()],
        });
        let troubles = self.freeze_troubles();
        let own = PromotingSeen { leaves: resting.collect(), troubles, ..PromotingSeen::default() };
        Box::pin(async move {
            let mut all = Observation { promoting: Some(own), ..Observation::default() };
            join_all(children).await.into_iter().flatten().for_each(|seen| all.absorb(seen));
            all
        })
    }
}

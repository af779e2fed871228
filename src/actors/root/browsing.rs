//! Questions about workloads on record go to the watcher, which has the records.

use actix::{Handler, ResponseFuture};

use super::{OBSERVE_WITHIN, Root};
use crate::actors::browse::{Browse, Listing};

impl Handler<Browse> for Root {
    type Result = ResponseFuture<Listing>;

    /// While there is no watcher, no workload is known; `Observe` says why.
    fn handle(&mut self, browse: Browse, _ctx: &mut Self::Context) -> Self::Result {
        let watcher = self.tree.as_ref().and_then(|tree| tree.watcher.as_ref());
        let asked = watcher.map(|watcher| watcher.send(browse).timeout(OBSERVE_WITHIN));
        Box::pin(async move {
            match asked {
                Some(asked) => asked.await.unwrap_or_default(),
                None => Listing::default(),
            }
        })
    }
}

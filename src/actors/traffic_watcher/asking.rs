//! Asks a workload to purge, once requests get to it.
//!
//! Not for whether it is to be asked; that is `purge::traffic`.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::TrafficWatcher;
use crate::actors::rollout::hosts;
use crate::actors::shell::Drives;
use crate::actors::traffic::AskToPurge;
use purge::ports::ClusterView;
use purge::traffic::Event;

/// How often, and at most how many times, we look whether the endpoints of Services have followed their selectors. The controller does
/// that within a second; after a minute it is purged all the same, and that is said.
const LAGGING_EVERY: Duration = Duration::from_secs(1);
const LAGGING_MAX: u32 = 60;

/// How it was waited for endpoints to follow their selectors.
enum Waited {
    /// They had.
    Not,
    Until,
    /// It is not known that they have, for this reason.
    InVain(String),
}

/// Waits for the endpoints of a namespace.
async fn lagging(cluster: &dyn ClusterView, namespace: &str) -> Waited {
    let mut why = String::new();
    for look in 0..LAGGING_MAX {
        why = match cluster.lagging(namespace).await {
            Ok(services) if services.is_empty() && look == 0 => return Waited::Not,
            Ok(services) if services.is_empty() => return Waited::Until,
            Ok(_) => "the endpoints of a Service are still pods that it does not select".to_owned(),
            Err(error) => error.to_string(),
        };
        tokio::time::sleep(LAGGING_EVERY).await;
    }
    Waited::InVain(why)
}

impl TrafficWatcher {
    /// Asks once no endpoint is a pod of the former workload any more, unless traffic was moved back meanwhile. The machine asks for the
    /// same again until it is answered.
    pub(super) fn ask_once_moved(&mut self, ask: AskToPurge, ctx: &mut Context<Self>) {
        if !self.asking.insert(ask.workload.clone()) {
            return;
        }
        let cluster = self.env.ports.cluster.clone();
        let moved = async move {
            let why = lagging(&*cluster, &ask.workload.namespace).await;
            let now = match why {
                Waited::Not => None,
                Waited::Until | Waited::InVain(_) => hosts::look(&*cluster, ask.workload.namespace.clone()).await.ok(),
            };
            (why, now, ask)
        };
        ctx.spawn(moved.into_actor(self).map(|(why, now, ask), actor, ctx| {
            actor.asking.remove(&ask.workload);
            let stands = actor.shell.machine().asks(&ask.workload, &ask.moved);
            if !stands || now.is_some_and(|now| !now.still_leads(&ask.workload, &ask.leads)) {
                return actor.feed(Event::Changed(ask.workload.namespace), ctx);
            }
            if let Waited::InVain(why) = why {
                tracing::warn!(workload = %ask.workload.display_name(), why, "traffic moved, and it is not known that all of it has");
            }
            // Where its mailbox is full, it is asked again.
            let _ = actor.parent.ask.try_send(ask);
        }));
    }
}

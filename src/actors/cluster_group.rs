//! The broker of the group's records: it takes in what this member publishes and answers with what is known of all.
//!
//! A single cluster is a group of one: the view is its own record. When a Redis is configured, every record is shown there
//! too, the cache of current tags that people and other programs read (decision 3); nothing is ever read back from it.
//! Agreement itself is `domain::group`, a function of the view.

use std::sync::Arc;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, MessageResult, WrapFuture};

use crate::actors::lifecycle::{Collar, Obituary};
use crate::actors::message::{Drain, End, Observation, Observe, Publish};
use crate::actors::{MAILBOX_MAX, Surroundings};
use crate::domain::group;
use crate::domain::id::Origin;
use crate::ports::TagCache;

/// The actor. See the module's text.
pub struct ClusterGroupActor {
    surroundings: Surroundings,
    origin: Origin,
    tags: Option<Arc<dyn TagCache>>,
    collar: Collar,
    obituary: Obituary,
    trouble: Option<String>,
}

impl ClusterGroupActor {
    /// The broker of the group whose own ledger is `origin`.
    pub fn new(surroundings: Surroundings, origin: Origin, collar: Collar, obituary: Obituary) -> Self {
        let tags = surroundings.ports.tags.clone();
        Self { surroundings, origin, tags, collar, obituary, trouble: None }
    }
}

impl Actor for ClusterGroupActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.collar.clone().bind(self, ctx);
    }
}

impl Handler<Publish> for ClusterGroupActor {
    type Result = MessageResult<Publish>;

    fn handle(&mut self, Publish { workload, record }: Publish, ctx: &mut Self::Context) -> Self::Result {
        let member = &self.surroundings.settings.member;
        let view = group::alone(member, &self.origin, Some(&record));
        if let Some(tags) = self.tags.clone() {
            let origin = self.origin.clone();
            let metrics = self.surroundings.metrics.clone();
            let shown = async move { tags.show(&workload, &origin, &record).await };
            ctx.spawn(shown.into_actor(self).map(move |shown, actor, _| {
                actor.trouble = shown.as_ref().err().map(ToString::to_string);
                if let Err(error) = shown {
                    metrics.failure("show_tags");
                    tracing::warn!(%error, "could not show a record in Redis; nothing depends on it");
                }
            }));
        }
        MessageResult(view)
    }
}

impl Handler<Drain> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.obituary.end = End::Drained;
        ctx.stop();
    }
}

impl Handler<Observe> for ClusterGroupActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        MessageResult(Observation { troubles: self.trouble.iter().cloned().collect(), ..Observation::default() })
    }
}

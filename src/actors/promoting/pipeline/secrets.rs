//! The Secrets with which a forge has refused: each change is an event of the machine.

use std::collections::BTreeSet;

use actix::{ActorContext, AsyncContext, Context, StreamHandler};
use futures_util::StreamExt;

use super::PipelineActor;
use crate::actors::shell::Drives;
use objects::pipeline::Event;

/// A Secret that is followed is like this now.
pub(super) struct SecretChanged(String);

impl StreamHandler<SecretChanged> for PipelineActor {
    fn handle(&mut self, SecretChanged(name): SecretChanged, ctx: &mut Self::Context) {
        self.feed(Event::SecretChanged(name), ctx);
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl PipelineActor {
    /// Follows these Secrets of the Pipeline's namespace, and no others.
    pub(super) fn follow_secrets(&mut self, names: &BTreeSet<String>, ctx: &mut Context<Self>) {
        let before = std::mem::take(&mut self.extra.followed);
        for (name, watch) in before {
            if names.contains(&name) {
                self.extra.followed.insert(name, watch);
            } else {
                ctx.cancel_future(watch);
            }
        }
        let namespace = self.id().namespace;
        for name in names {
            let renewals = &self.tended.renewals;
            self.extra.followed.entry(name.clone()).or_insert_with(|| {
                let changed = name.clone();
                ctx.add_stream(renewals.changes(&namespace, name).map(move |()| SecretChanged(changed.clone())))
            });
        }
    }
}

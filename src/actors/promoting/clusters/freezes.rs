//! What Pipelines learn of the freezes of this cluster, and what the Pipeline does with it.

use std::sync::Arc;

use actix::{ActorContext, AsyncContext, Context, Handler, StreamHandler};
use futures_util::StreamExt;

use super::Clusters;
use crate::actors::promoting::message::{Frozen, Owner};
use crate::actors::promoting::pipeline::PipelineActor;
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use objects::pipeline::Event;
use objects::pipeline::freezes::PromotionFreeze;
use purge::ports::PortError;

/// What the watch of the freezes said.
pub(super) struct Said(Result<Option<Arc<[PromotionFreeze]>>, PortError>);

/// What a person does whose cluster has the kind, and no right of ours to it.
const CURE: &str =
    "; apply deploy/components/pipelines for the right to list promotionfreezes, or set pipeline.freezes to false";

impl Clusters {
    pub(super) fn watch_freezes(&self, ctx: &mut Context<Self>) {
        ctx.add_stream(self.freeze_book.watch().map(Said));
    }

    /// One that asks later gets what is known at once.
    pub(super) fn tell_freezes(&self, owner: &Owner) {
        send_even_if_full(&owner.frozen, Frozen(self.fleet.known().clone()));
    }

    pub(super) fn freeze_troubles(&self) -> Vec<String> {
        self.fleet.troubles(self.env.ports.clock.now())
    }
}

impl StreamHandler<Said> for Clusters {
    fn handle(&mut self, Said(said): Said, _: &mut Self::Context) {
        let said = said.map_err(|error| {
            self.env.metrics.failure("watch_freezes");
            let cure = if error.denied { CURE } else { "" };
            let why = format!("{error}{cure}");
            // One line for each reason.
            if self.fleet.failing() != Some(&why) {
                tracing::warn!(why, "the PromotionFreezes of this cluster cannot be read; trying again");
            }
            why
        });
        let is_news = match said.transpose() {
            Some(said) => self.fleet.hear(self.env.ports.clock.now(), said),
            None => self.fleet.forget(),
        };
        if is_news {
            self.owners.values().for_each(|owner| self.tell_freezes(owner));
        }
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Frozen> for PipelineActor {
    type Result = ();

    fn handle(&mut self, Frozen(freezes): Frozen, ctx: &mut Self::Context) {
        self.feed(Event::Frozen(freezes), ctx);
    }
}

//! What the watches of Pipelines say.

use actix::{ActorContext, Context, StreamHandler};

use super::{PIPELINES_MAX, Pipelines, Sighted};
use crate::actors::shell::Drives;
use domain::groups::Said;
use domain::id::ObjectId;
use domain::pipeline::spec::Object;
use domain::ports::pipeline::ObjectSight;
use domain::watch::Event;

impl Pipelines {
    /// What is wrong with the watch of this group.
    fn trouble(&self, number: usize) -> Option<String> {
        self.groups.troubles().find(|(troubled, _)| *troubled == number).map(|(_, why)| why.to_owned())
    }

    fn said(&mut self, said: Said<Object>, ctx: &mut Context<Self>) {
        let event = match said {
            Said::Seen(object) => {
                self.crowded = self.children.len() >= PIPELINES_MAX && !self.children.contains_key(&object.id);
                if self.crowded {
                    return;
                }
                Event::Seen(object)
            }
            Said::Gone(id) => Event::Gone(id),
            Said::Unreadable(id, why) => {
                self.env.metrics.failure("decode_pipeline");
                tracing::warn!(pipeline = %id.display_name(), why, "a Pipeline cannot be read; what was read of it before holds");
                return;
            }
            Said::Hidden(id) => {
                let pipeline = id.display_name();
                tracing::warn!(pipeline, "a Pipeline does not count, because another API group has one of this name");
                return;
            }
        };
        self.feed(event, ctx);
    }
}

impl StreamHandler<Sighted> for Pipelines {
    fn handle(&mut self, Sighted(number, sight): Sighted, ctx: &mut Self::Context) {
        if matches!(sight, ObjectSight::Trouble(_)) {
            self.env.metrics.failure("watch_pipelines");
        }
        let before = self.trouble(number);
        for said in self.groups.hear(number, sight) {
            self.said(said, ctx);
        }
        // A watch that fails is tried again for ever: one line for each reason.
        match (before, self.trouble(number)) {
            (before, Some(why)) if before.as_ref() != Some(&why) => {
                tracing::warn!(group = self.group(number), why, "Pipelines are not watched; trying again");
            }
            (Some(_), None) => tracing::info!(group = self.group(number), "Pipelines are watched again"),
            (_, Some(_)) | (None, None) => {}
        }
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

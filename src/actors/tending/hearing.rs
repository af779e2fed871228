//! What the watches of objects say.

use actix::{ActorContext, Context, StreamHandler};

use super::{OBJECTS_MAX, Sighted, Tended, Tending};
use crate::actors::shell::Drives;
use domain::groups::Said;
use domain::ports::pipeline::{Kept, ObjectSight};
use domain::watch::Event;

impl<T: Tended> Tending<T> {
    /// What is wrong with the watch of this group.
    fn trouble(&self, number: usize) -> Option<String> {
        self.groups.troubles().find(|(troubled, _)| *troubled == number).map(|(_, why)| why.to_owned())
    }

    fn said(&mut self, said: Said<T::Object>, ctx: &mut Context<Self>) {
        let event = match said {
            Said::Seen(object) => {
                self.crowded = self.children.len() >= OBJECTS_MAX && !self.children.contains_key(object.id());
                if self.crowded {
                    return;
                }
                Event::Seen(object)
            }
            Said::Gone(id) => Event::Gone(id),
            Said::Unreadable(id, why) => {
                self.env.metrics.failure("decode_object");
                tracing::warn!(object = %id, why, "a {} cannot be read; what was read of it before holds", T::NAME);
                return;
            }
            Said::Hidden(id) => {
                tracing::warn!(object = %id, "a {} does not count, because another API group has one of this name", T::NAME);
                return;
            }
        };
        self.feed(event, ctx);
    }
}

impl<T: Tended> StreamHandler<Sighted<T::Object>> for Tending<T> {
    fn handle(&mut self, Sighted(number, sight): Sighted<T::Object>, ctx: &mut Self::Context) {
        if matches!(sight, ObjectSight::Trouble(_)) {
            self.env.metrics.failure("watch_objects");
        }
        let before = self.trouble(number);
        for said in self.groups.hear(number, sight) {
            self.said(said, ctx);
        }
        // A watch that fails is tried again for ever: one line for each reason.
        match (before, self.trouble(number)) {
            (before, Some(why)) if before.as_ref() != Some(&why) => {
                tracing::warn!(group = self.group(number), why, "{}s are not watched; trying again", T::NAME);
            }
            (Some(_), None) => tracing::info!(group = self.group(number), "{}s are watched again", T::NAME),
            (_, Some(_)) | (None, None) => {}
        }
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

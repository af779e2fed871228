//! What the watches of objects say.

use actix::{ActorContext, ActorFutureExt, AsyncContext, Context, StreamHandler, WrapFuture};

use super::{ObjectWatcher, Sighted};
use crate::actors::lifecycle::GiveWay;
use crate::actors::message::ResendDeliveries;
use crate::actors::object::{IdOf, ObjectOf, Tended};
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use kernel::watches::watch::Event;
use notices::delivery::{InvalidResend, Resend};
use objects::groups::Said;
use objects::kept::{ObjectSight, OwnKind};

impl<T: Tended> ObjectWatcher<T> {
    /// What is wrong with the watch of this group.
    fn trouble(&self, number: usize) -> Option<String> {
        self.groups.troubles().find(|(troubled, _)| *troubled == number).map(|(_, why)| why.to_owned())
    }

    /// Reads an object that waited for a place. Where that fails, the next sweep tries again.
    pub(super) fn take_in(&mut self, id: IdOf<T>, ctx: &mut Context<Self>) {
        let group = self.groups.of(&id).and_then(|number| self.tended.ports().objects.get(number)).cloned();
        let Some(objects) = group else { return self.places.leave(&id) };
        let reading = async move { (objects.read(&id).await, id) };
        ctx.spawn(reading.into_actor(self).map(|(read, id), tending, ctx| match read {
            Ok(Some(object)) => tending.said(Said::Seen(Box::new(object)), ctx),
            Ok(None) => tending.places.leave(&id),
            Err(error) => {
                tending.env.metrics.failure("read_object");
                tracing::debug!(object = %id, %error, "a {} that waits for a place cannot be read", T::NAME);
            }
        }));
    }

    /// Takes in which notices its owner asks to be sent again.
    fn note_request(&mut self, id: &IdOf<T>, request: Option<&Result<Resend, InvalidResend>>) {
        self.misread.remove(id);
        match request {
            Some(Ok(request)) => self.resends.seen(id, Some(request)),
            Some(Err(why)) => drop(self.misread.insert(id.clone(), *why)),
            None => self.resends.gone(id),
        }
        self.hand_over_requests();
    }

    /// Gives the outbox what owners ask to be sent again. What finds its mailbox full waits for the next sweep.
    pub(super) fn hand_over_requests(&mut self) {
        let outbox = &self.peers.outbox.resend;
        let subject = |id: &IdOf<T>| <T::Machine as OwnKind>::subject(id.clone());
        self.resends.hand_over(|id, request| outbox.try_send(ResendDeliveries(subject(id), request.clone())).is_ok());
    }

    fn said(&mut self, said: Said<ObjectOf<T>>, ctx: &mut Context<Self>) {
        let event = match said {
            Said::Seen(object) => {
                let Some(lost) = self.places.enter(&object.id) else { return };
                // Nothing of them is decided by that, nor lost: what they remember is in their status.
                for id in lost {
                    if let Some(child) = self.children.get(&id) {
                        send_even_if_full(&child.clone().recipient(), GiveWay);
                    }
                    self.feed(Event::Gone(id), ctx);
                }
                self.note_request(&object.id, object.answers.resend.as_ref());
                Event::Seen(object)
            }
            Said::Gone(id) => {
                self.places.leave(&id);
                self.note_request(&id, None);
                Event::Gone(id)
            }
            Said::Unreadable(id, why) => {
                self.env.metrics.failure("decode_object");
                tracing::warn!(object = %id, why = why.to_string(), "a {} cannot be read; what was read of it before holds", T::NAME);
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

impl<T: Tended> StreamHandler<Sighted<ObjectOf<T>>> for ObjectWatcher<T> {
    fn handle(&mut self, Sighted(number, sight): Sighted<ObjectOf<T>>, ctx: &mut Self::Context) {
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

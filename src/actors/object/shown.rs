//! What is shown of an object beside its status: counts, Events that nothing waits for, and what its actor says of it.

use actix::{AsyncContext, Context, Handler, MessageResult, WrapFuture};

use super::kind::StatusOf;
use super::{ObjectActor, ObjectOf, Tended};
use crate::actors::message::Observe;
use crate::actors::shell::Drives;
use kernel::remark::Remarked;
use objects::kept::{OwnKind, Remembered};
use objects::owned::{Event, OwnMachine};

impl<T: Tended> ObjectActor<T> {
    /// A write of the status has ended with this event; if it was carried out, the object is `written`, and its status was `before`.
    pub(super) fn stored(
        &mut self,
        event: Event<T::Machine>,
        written: &ObjectOf<T>,
        before: &StatusOf<T>,
        ctx: &mut Context<Self>,
    ) {
        let happened = matches!(event, Event::Stored { whole: true, .. });
        self.feed(event.into(), ctx);
        T::stored(self, happened.then_some((before, &written.status)));
        if happened {
            self.remark(written, before, ctx);
            self.remember(written, before, ctx);
        }
    }

    /// Publishes the remarks on a change one after the other. None is tried again: the status says the same.
    fn remark(&self, written: &ObjectOf<T>, before: &StatusOf<T>, ctx: &mut Context<Self>) {
        let remarks = T::remarks(written, before);
        if remarks.is_empty() {
            return;
        }
        let (env, id) = (self.env.clone(), written.id.clone());
        let (subject, uid, serial) = (T::Machine::subject(id.clone()), written.uid.clone(), written.status.serial());
        let on = Remarked { subject, uid, serial };
        let publishing = async move {
            let at_ms = env.ports.clock.wall_ms();
            for remark in &remarks {
                if let Err(error) = env.ports.events.remark(remark, &on, at_ms).await {
                    env.metrics.failure("publish_event");
                    tracing::debug!(object = %id, reason = remark.reason, %error, "could not publish an Event");
                    return;
                }
            }
        };
        ctx.spawn(publishing.into_actor(self));
    }
}

impl<T: Tended> Handler<Observe> for ObjectActor<T> {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let machine = self.shell.machine();
        let trouble =
            machine.trouble().map(|why| format!("the status of {} cannot be written: {why}", machine.object().id));
        MessageResult(T::shown(Some(machine), trouble.into_iter().collect()))
    }
}

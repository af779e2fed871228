//! The calls that are the same for every kind: each answer is an event of the machine, unless that is the machine of another
//! object by then. A machine that turns to another object of its name begins anew, so it waits for none of the dropped answers.

use std::future::ready;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::kind::StatusOf;
use super::{ObjectActor, Tended};
use crate::actors::shell::Drives;
use kernel::id::Environment;
use kernel::machine::Machine;
use notices::notice::Notice;
use objects::asked::{Answer, Ask, Question};
use objects::kept::{Object, OwnKind, Written};
use objects::owned::{Event, OwnMachine};
use objects::ports::Asking;

impl<T: Tended> ObjectActor<T> {
    /// Starts a call for the object as it is now, and feeds to the machine what `event` makes of its outcome.
    pub fn call<F>(
        &mut self,
        ctx: &mut Context<Self>,
        call: F,
        event: impl FnOnce(&Self, F::Output) -> <T::Machine as Machine>::Event + 'static,
    ) where
        F: Future + 'static,
    {
        let uid = self.object().uid.clone();
        ctx.spawn(call.into_actor(self).map(move |output, actor: &mut Self, ctx: &mut Context<Self>| {
            if actor.object().uid == uid {
                let event = event(actor, output);
                actor.feed(event, ctx);
            }
        }));
    }

    /// Writes the status over this version of the object.
    pub(super) fn store(&mut self, status: StatusOf<T>, version: String, ctx: &mut Context<Self>) {
        let objects = self.objects.clone();
        let before = self.shell.machine().durable().clone();
        let object = Object { status, version, ..self.object().clone() };
        let (env, id) = (self.env.clone(), object.id.clone());
        let writing = async move {
            let from = env.ports.clock.now();
            let written = objects.write(&object).await;
            env.metrics.took("store_status", env.ports.clock.now().since(from));
            let event = match written {
                Ok(Written::Stored(object)) => Event::Stored { version: object.version, whole: true },
                Ok(Written::Pruned(object, lost)) => {
                    env.metrics.failure("store_status_pruned");
                    tracing::warn!(
                        object = %id,
                        lost = lost.join(", "),
                        "the API server dropped fields of a {}'s status, so {}: apply the CRD of this version (allclear crds)",
                        T::NAME,
                        T::HALTED
                    );
                    Event::Stored { version: object.version, whole: false }
                }
                Ok(Written::Conflict(Some(object))) => Event::Conflicted(object),
                Ok(Written::Conflict(None)) => Event::StoreFailed("it does not exist any more".to_owned()),
                Err(error) => {
                    env.metrics.failure("store_status");
                    tracing::warn!(object = %id, %error, "could not write the status of a {}; trying again", T::NAME);
                    Event::StoreFailed(error.to_string())
                }
            };
            (event, object)
        };
        ctx.spawn(writing.into_actor(self).map(move |(event, object), actor: &mut Self, ctx| {
            // The answer about an earlier object is none about the write of this one.
            if actor.object().uid == object.uid {
                actor.stored(event, &object, &before, ctx);
            }
        }));
    }

    pub(super) fn look(&mut self, ctx: &mut Context<Self>) {
        let (objects, id) = (self.objects.clone(), self.id());
        self.ask(ctx, async move { objects.read(&id).await }, |read| match read {
            Ok(object) => Event::Looked(object.map(Box::new)).into(),
            Err(error) => Event::LookFailed(error.to_string()).into(),
        });
    }

    /// Publishes a notice: as an Event on the object, and to the webhooks. Those of an earlier object are sent all the same, so each
    /// answer counts.
    pub(super) fn tell(&mut self, notice: Box<Notice>, ctx: &mut Context<Self>) {
        let errand = self.errands.begin(&notice.id);
        if errand.first {
            self.env.metrics.notice(&notice);
        }
        let (env, outbox) = (self.env.clone(), self.peers.outbox.tell.clone());
        let (uid, id) = (self.object().uid.clone(), notice.id.clone());
        let told = async move { env.carry(errand, notice, &uid, &outbox).await };
        ctx.spawn(told.into_actor(self).map(move |(event, handed), actor, ctx| {
            let event = match actor.errands.end(&id, event, handed) {
                None => Event::Told(id),
                Some(why) => Event::TellFailed(id, why),
            };
            actor.feed(event.into(), ctx);
        }));
    }

    /// Asks those who judge a gate, of an environment if the kind has such. `event` is what the answer means to the machine.
    pub fn ask_gate(
        &mut self,
        environment: Option<Environment>,
        ask: Ask,
        ctx: &mut Context<Self>,
        event: impl FnOnce(Answer) -> <T::Machine as Machine>::Event + 'static,
    ) {
        match ask {
            Ask::Calendar(topic, windows, freezes) => {
                let read = self.tended.ports().calendar.read(&windows, &freezes);
                self.ask(ctx, ready(read), move |read| match read {
                    Ok(opening) => event(Answer::CalendarRead(topic, opening)),
                    Err(error) => event(Answer::CalendarFailed(topic, error.to_string())),
                });
            }
            Ask::Verdict(topic, question) => {
                let (verdicts, metrics) = (self.tended.ports().verdicts.clone(), self.env.metrics.clone());
                let Question { source, seq, revision, from } = *question;
                let subject = T::Machine::subject(self.id());
                let asking = Asking { source, subject, environment, revision, from, seq };
                self.ask(ctx, async move { verdicts.ask(&asking).await }, move |verdict| match verdict {
                    Ok(opening) => event(Answer::VerdictGiven(topic, opening)),
                    Err(unanswered) => {
                        metrics.failure("ask_verdict");
                        event(Answer::VerdictFailed(topic, unanswered.why, unanswered.rest))
                    }
                });
            }
        }
    }
}

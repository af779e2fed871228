//! The actor of all webhook deliveries. Decides nothing; see `notices::delivery`.

mod seen;

use std::collections::BTreeMap;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use tokio::sync::oneshot;

use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{ResendDeliveries, TellNotice};
use crate::actors::observation::LastSeen;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX, retry_until_ok};
use kernel::id::NoticeId;
use kernel::refusal::Cause;
use notices::delivery::{Delivery, Effect, Event, NotTaken, Outbox, Outcome, Report};
use notices::notice::Kind;

/// The actor. See the module's text.
pub struct Webhook {
    env: Env,
    stop_listener: StopListener,
    /// Sent to root when this ends.
    _obituary: Obituary,
    outbox: Shell<Outbox>,
    /// Rollouts that wait for a notice to be durable.
    waiting: BTreeMap<NoticeId, Vec<oneshot::Sender<Result<(), NotTaken>>>>,
    /// How the last attempt at each hook ended, by its name.
    last: BTreeMap<String, LastSeen>,
}

impl Webhook {
    /// An actor that reads the outbox first.
    pub fn new(env: Env, stop_listener: StopListener, obituary: Obituary) -> Self {
        let outbox = Shell::new(Outbox::new(env.settings.outbox.clone()), &env);
        Self { env, stop_listener, _obituary: obituary, outbox, waiting: BTreeMap::new(), last: BTreeMap::new() }
    }

    /// Reads what an earlier life left, with retries until that works.
    fn restore(&self, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let reading = retry_until_ok("read_outbox", Cause::ReadLedger, self.env.clone(), move || {
            let ledger = ledger.clone();
            async move { ledger.deliveries().await }
        });
        ctx.spawn(reading.into_actor(self).map(|deliveries, actor, ctx| actor.feed(Event::Restored(deliveries), ctx)));
    }

    fn store(&mut self, delivery: Delivery, write: u64, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let env = self.env.clone();
        let id = delivery.id.clone();
        self.ask(ctx, async move { ledger.store_delivery(&delivery).await }, move |stored| {
            let said = env.heard(Cause::WriteLedger, "store_delivery", stored.as_ref().err());
            let Err(error) = stored else { return Event::Stored { id, write } };
            env.metrics.failure("store_delivery");
            if !said {
                tracing::warn!(%error, "could not write a webhook to the ledger; trying again");
            }
            Event::StoreFailed { id, write }
        });
    }

    fn remove(&mut self, id: String, write: u64, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let env = self.env.clone();
        let forgotten = id.clone();
        self.ask(ctx, async move { ledger.remove_delivery(&forgotten).await }, move |removed| {
            let said = env.heard(Cause::WriteLedger, "remove_delivery", removed.as_ref().err());
            let Err(error) = removed else { return Event::Removed { id, write } };
            env.metrics.failure("remove_delivery");
            if !said {
                tracing::warn!(%error, "could not remove a delivered webhook from the ledger; trying again");
            }
            Event::RemoveFailed { id, write }
        });
    }

    fn report(&mut self, report: &Report) {
        self.note_last(report);
        let Report { id, hook, kind, subject, attempts, outcome } = report;
        let workload = subject.display_name();
        let kind = kind.name();
        self.env.metrics.webhook(outcome);
        match outcome {
            Outcome::Delivered { status } => {
                tracing::info!(%workload, hook, kind, delivery = %id, attempts, status, "webhook delivered");
            }
            Outcome::Retrying { after, reason } => {
                self.env.metrics.failure("send_webhook");
                let after_s = after.as_secs();
                tracing::warn!(%workload, hook, kind, delivery = %id, attempts, after_s, reason, "webhook not delivered; trying again");
            }
            Outcome::Dead { reason } | Outcome::Dropped { reason } | Outcome::HookDisabled { reason } => {
                self.env.metrics.failure("deliver_webhook");
                let outcome = outcome.name();
                tracing::error!(%workload, hook, kind, delivery = %id, attempts, outcome, reason, "webhook given up");
            }
            Outcome::Postponed { reason } => {
                self.env.metrics.overflow("outbox");
                tracing::warn!(%workload, hook, kind, reason, "webhook postponed");
            }
            Outcome::Resent => {
                tracing::info!(%workload, hook, kind, delivery = %id, "webhook asked for again");
            }
        }
    }

    fn answer(&mut self, notice: &NoticeId, answer: Result<(), NotTaken>) {
        for waiting in self.waiting.remove(notice).unwrap_or_default() {
            // The actor that sent it may have ended meanwhile.
            let _ = waiting.send(answer);
        }
    }
}

impl Actor for Webhook {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.restore(ctx);
    }
}

impl Drives<Outbox> for Webhook {
    fn shell(&mut self) -> Option<&mut Shell<Outbox>> {
        Some(&mut self.outbox)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("outbox", effect.name());
        match effect {
            Effect::Store { delivery, write } => self.store(delivery, write, ctx),
            Effect::Send { delivery, attempt } => {
                let notifier = self.env.ports.notifier.clone();
                let id = delivery.id.clone();
                let env = self.env.clone();
                let sent = async move {
                    let began_ms = env.ports.clock.wall_ms();
                    let reply = notifier.send(&delivery).await;
                    env.trace_attempt((&delivery, attempt), &reply, began_ms);
                    reply
                };
                self.ask(ctx, sent, move |reply| Event::Answered { id, attempt, reply });
            }
            Effect::Remove { id, write } => self.remove(id, write, ctx),
            Effect::Accepted(notice) => self.answer(&notice, Ok(())),
            Effect::Postponed(notice) => self.answer(&notice, Err(NotTaken::Full)),
            Effect::Report(report) => self.report(&report),
        }
        let census = self.outbox.machine().census();
        self.env.metrics.standing.deliveries(census.live, census.dead);
    }
}

impl Handler<TellNotice> for Webhook {
    type Result = ResponseFuture<Result<(), NotTaken>>;

    fn handle(&mut self, TellNotice(notice): TellNotice, ctx: &mut Self::Context) -> Self::Result {
        let mut deliveries = self.env.ports.notifier.deliveries(&notice);
        if self.env.metrics.traces.is_on() {
            let grouped = self.env.settings.grouping.is_some();
            deliveries = deliveries.into_iter().map(|delivery| delivery.traced(&notice, grouped)).collect();
        }
        if deliveries.is_empty() && notice.kind == Kind::PromotionStarted {
            let pipeline = notice.about.subject().display_name();
            tracing::info!(
                pipeline,
                "no webhook has this Pipeline in workloads and promotion.started in events: only an Event tells of it"
            );
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.entry(notice.id.clone()).or_default().push(sender);
        self.feed(Event::Told { notice: notice.id, deliveries }, ctx);
        Box::pin(async move { receiver.await.unwrap_or(Err(NotTaken::Restarted)) })
    }
}

impl Handler<ResendDeliveries> for Webhook {
    type Result = ();

    fn handle(&mut self, ResendDeliveries(subject, request): ResendDeliveries, ctx: &mut Self::Context) {
        self.feed(Event::Resend { subject, request }, ctx);
    }
}

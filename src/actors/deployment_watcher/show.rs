//! What the watcher shows of itself, the notices it sends for workloads without a rollout actor, and its end.

use std::time::Duration;

use actix::{ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, ResponseActFuture, WrapFuture};
use futures_util::future::join_all;

use super::DeploymentWatcher;
use crate::actors::message::{Drain, End, Observe};
use crate::actors::observation::Observation;
use crate::actors::rollout::RolloutActor;
use crate::actors::shell::Drives;
use crate::actors::telling::tell_at_once;
use kernel::id::{Seq, WorkloadId};
use kernel::watches::watch::Event;
use notices::notice::{Kind, Notice};
use purge::ports::StoreError;
use purge::records::record::Record;
use purge::rollouts::rollout::{Summary, timeout};
use purge::rollouts::unwell;

/// How often we check for the end of the children while draining.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// Rollouts that ended and are still shown.
const RECENT_MAX: usize = 50;

impl DeploymentWatcher {
    /// Sends a notice that a workload is left alone, its record unchanged.
    pub(super) fn tell_left_alone(&self, id: &WorkloadId, why: &str, wait: Option<Duration>, ctx: &mut Context<Self>) {
        let retry_s = wait.map(|wait| wait.as_secs());
        tracing::error!(
            workload = %id.display_name(),
            retry_s,
            why,
            "the workload is left alone for a while; its record is unchanged"
        );
        let how_long = retry_s.map_or_else(|| "now".to_owned(), |seconds| format!("{seconds} s"));
        let uid = self.watch().records().get(id).map_or("", |record| &record.uid);
        self.tell(id, uid, format!("it is left alone for {how_long}: {why}. Its record is unchanged"), ctx);
    }

    /// Sends a notice that the ledger has no room for the record of a workload.
    pub(super) fn tell_unstored(&self, id: &WorkloadId, uid: &str, error: &StoreError, ctx: &mut Context<Self>) {
        self.tell(id, uid, format!("its record has no room in the ledger, so it is not followed: {error}"), ctx);
    }

    /// Sends a notice that is in no record, once: the log has it. Its id contains the time: a repetition is another
    /// notice.
    fn tell(&self, id: &WorkloadId, uid: &str, message: String, ctx: &mut Context<Self>) {
        let kind = Kind::RolloutStuck;
        let at_ms = self.env.ports.clock.wall_ms();
        let rollout = format!("{}/{id}", self.origin.0);
        let notice = Notice {
            id: Notice::id_of(&rollout, kind, &format!("watcher/{at_ms}")),
            kind,
            at_ms,
            about: id.clone().into(),
            seq: self.watch().records().get(id).map_or_else(Seq::default, |record| record.seq),
            rollout,
            change: String::new(),
            message,
        };
        let (env, to, uid) = (self.env.clone(), self.directory.outbox.tell.clone(), uid.to_owned());
        let telling = async move { tell_at_once(&env, &to, notice, &uid).await };
        ctx.spawn(telling.into_actor(self));
    }

    /// Keeps a rollout that ended, to be shown.
    pub(super) fn remember(&mut self, id: &WorkloadId, record: &Record) {
        if record.history.is_empty() {
            return;
        }
        let policy = &self.env.settings.policy;
        let latest = self.watch().nursery().newest(id);
        let clock = (record.elapsed(), timeout(latest, policy));
        let summary = Summary::new(id, record, latest, None, clock, policy);
        self.recent.retain(|summary| summary.workload != *id);
        self.recent.insert(0, summary);
        self.recent.truncate(RECENT_MAX);
    }

    fn blind(&self) -> Option<String> {
        self.troubles.blind(self.shell.now())
    }

    /// Why a workload on record is not looked at, unless it has a rollout actor.
    pub(super) fn why_not_followed(&self, id: &WorkloadId) -> Option<String> {
        self.troubles.view().why_not(id).filter(|_| !self.children.contains_key(id))
    }

    /// Those at rest that need a look. One in flight speaks for itself, because its record here is the one from before; one that is not
    /// followed has none to speak of.
    fn unwell(&self) -> impl Iterator<Item = (&WorkloadId, &Record, unwell::Reason)> {
        let records = self.watch().records().iter();
        let unwell = records.filter_map(|(id, record)| Some((id, record.as_ref(), unwell::reason(record)?)));
        unwell.filter(|(id, ..)| !self.children.contains_key(id) && self.troubles.view().why_not(*id).is_none())
    }

    pub(super) fn count_unwell(&mut self) {
        let unwell: Vec<(WorkloadId, unwell::Reason)> =
            self.unwell().map(|(id, _, reason)| (id.clone(), reason)).collect();
        self.unwell.set(unwell.into_iter());
    }

    pub(super) fn count(&self) {
        let (watch, metrics) = (self.watch(), &self.env.metrics);
        let nursery = watch.nursery();
        metrics.standing.blind(!watch.is_synced() || self.blind().is_some());
        metrics.standing.workloads(watch.records().len(), nursery.children().len(), nursery.left_alone().count());
    }
}

impl Handler<Observe> for DeploymentWatcher {
    type Result = ResponseActFuture<Self, Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let children: Vec<_> = self.children.values().map(|child| child.send(observe)).collect();
        let watch = self.watch();
        let lives = watch.lives().trouble(self.env.ports.clock.now());
        let troubles = self.troubles.words(lives, watch.nursery().left_alone());
        let barred = watch.barred().iter();
        let barred = barred.map(|(id, why)| format!("the record of {} cannot be read: {why}", id.display_name()));
        let own = Observation {
            synced: watch.is_synced(),
            blind: self.blind(),
            troubles: troubles.chain(barred).collect(),
            workloads: watch.records().len(),
            // Of a workload that is gone there is no record to be well or not.
            recent: self.recent.iter().filter(|one| watch.records().contains_key(&one.workload)).cloned().collect(),
            quarantined: watch.nursery().left_alone().map(|(id, _)| id.clone()).collect(),
            unwell: self.unwell().filter_map(|(id, record, _)| unwell::unwell(id, record)).collect(),
            ..Observation::default()
        };
        Box::pin(join_all(children).into_actor(self).map(move |seen, _, _| {
            let mut all = own;
            seen.into_iter().flatten().for_each(|observation| all.absorb(observation));
            all
        }))
    }
}

impl Handler<Drain> for DeploymentWatcher {
    type Result = ResponseActFuture<Self, ()>;

    /// Answers when every child has ended, so no write is under way any more.
    fn handle(&mut self, drain: Drain, ctx: &mut Self::Context) -> Self::Result {
        self.feed(Event::Dismissed, ctx);
        let children: Vec<Addr<RolloutActor>> = self.children.values().cloned().collect();
        let ended = async move {
            join_all(children.iter().map(|child| child.send(drain))).await;
            // A child that is writing ends after its write. The sender of this message waits with a bound of its own.
            while children.iter().any(Addr::connected) {
                tokio::time::sleep(DRAIN_POLL).await;
            }
        };
        let closed = ended.into_actor(self).then(|(), actor, _| actor.close_life().into_actor(actor));
        Box::pin(closed.map(|(), actor, ctx| {
            actor.obituary.end = End::Drained;
            ctx.stop();
        }))
    }
}

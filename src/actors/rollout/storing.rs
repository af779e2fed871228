//! Writes and removes the record, and reports a ledger that has no room for it.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::RolloutActor;
use crate::actors::message::{End, Forget};
use crate::actors::shell::Drives;
use crate::actors::{Env, LOAD};
use crate::telemetry::{log_ended, log_vote};
use kernel::id::{Seq, Vector, WorkloadId};
use kernel::refusal::Cause;
use purge::ports::{Ledger, StoreError};
use purge::records::record::Record;
use purge::rollouts::rollout::Event;

/// The progress of writing the record.
#[derive(Default)]
pub(super) struct Storing {
    under_way: bool,
    /// Why the ledger has no room for it, if it had none the last time.
    refused: Option<String>,
}

impl Storing {
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// The trouble in words.
    pub(super) fn trouble(&self, workload: &WorkloadId) -> Option<String> {
        let why = self.refused.as_ref()?;
        Some(format!("the record of {} has no room in the ledger: {why}", workload.display_name()))
    }
}

/// Writes or removes a record. A name that it leaves first gets the number it had there as a floor.
async fn write_record(
    ledger: &dyn Ledger,
    workload: &WorkloadId,
    record: Option<&Record>,
    (revision, left): (u64, Option<(WorkloadId, Seq)>),
) -> Result<(), StoreError> {
    if let Some((name, seq)) = left {
        ledger.leave_number(&name, seq).await?;
    }
    match record {
        Some(record) => ledger.store(workload, record).await,
        None => ledger.remove(workload, revision).await,
    }
}

impl RolloutActor {
    pub(super) fn store(&mut self, record: Option<Box<Record>>, revision: u64, ctx: &mut Context<Self>) {
        let (env, workload) = (self.env.clone(), self.start.workload.clone());
        let Env { ports, metrics, .. } = env.clone();
        let (directory, origin) = (self.directory.clone(), self.start.origin.clone());
        let removes = record.is_none();
        let durable = self.shell.as_ref().and_then(|shell| shell.machine().durable());
        let left = durable.and_then(|durable| durable.leaves(record.as_deref()));
        self.storing.under_way = true;
        let write = async move {
            let from = ports.clock.now();
            let written = write_record(&*ports.ledger, &workload, record.as_deref(), (revision, left)).await;
            metrics.took("store_record", ports.clock.now().since(from));
            let place = workload.display_name();
            match written {
                Ok(()) => {
                    env.heard_of_store(&place, None);
                    (Event::Stored, None)
                }
                Err(StoreError::Conflict(current)) => {
                    metrics.failure("store_record_conflict");
                    match ports.ledger.floor(&workload).await {
                        Ok(floor) => (Event::Conflicted(current, floor), None),
                        Err(error) => {
                            if !env.heard(Cause::ReadLedger, LOAD, Some(&error)) {
                                tracing::warn!(workload = place, %error, "could not read the ledger");
                            }
                            (Event::StoreFailed(error.to_string()), None)
                        }
                    }
                }
                Err(error @ StoreError::NoRoom(_)) => {
                    metrics.failure("store_record_full");
                    env.heard_of_store(&place, Some(&error));
                    (Event::StoreFailed(error.to_string()), Some(error.to_string()))
                }
                Err(error @ StoreError::Unavailable(_)) => {
                    metrics.failure("store_record");
                    if !env.heard_of_store(&place, Some(&error)) {
                        tracing::warn!(workload = place, %error, "could not write the record; trying again");
                    }
                    (Event::StoreFailed(error.to_string()), None)
                }
                Err(StoreError::Lost(error)) => {
                    metrics.failure("store_record");
                    tracing::warn!(workload = place, %error, "could not write the record");
                    directory.report_lost(&origin);
                    (Event::StoreFailed(error.to_string()), None)
                }
            }
        };
        ctx.spawn(write.into_actor(self).map(move |(event, refused), actor, ctx| {
            actor.storing = Storing { under_way: false, refused };
            if removes && matches!(event, Event::Stored) {
                actor.forget();
            }
            if actor.draining {
                actor.end(End::Drained, ctx);
            } else {
                actor.feed_and_trace(event, ctx);
                actor.count();
                actor.follow_pods(ctx);
            }
        }));
    }

    /// Takes in how a write ended. The votes and ends in it are logged; where traces are exported, the stages that ended with it are spans now.
    fn feed_and_trace(&mut self, event: Event, ctx: &mut Context<Self>) {
        let is_traced = self.env.metrics.traces.is_on() && matches!(event, Event::Stored);
        let durable = || self.shell.as_ref()?.machine().durable().cloned();
        let before = if is_traced { durable() } else { None };
        let known = self.shell.as_ref().map(|shell| (shell.machine().vectors_voted_for(), shell.machine().ends()));
        let (voted_for, ends) = known.unwrap_or_default();
        self.feed(event, ctx);
        self.log_votes_beside(&voted_for);
        let now = self.shell.as_ref().map(|shell| shell.machine().ends());
        let new = now.into_iter().flatten().filter(|ended| !ends.contains(ended));
        new.for_each(|ended| log_ended(&self.start.workload, &ended));
        if let (Some(before), Some(shell)) = (before, &self.shell) {
            let spans = shell.machine().spans_since(&before, self.env.ports.clock.now());
            self.env.metrics.traces.note(spans);
        }
    }

    /// Logs what is voted for in the ledger, these apart, and lets the page know by which number we have it.
    pub(super) fn log_votes_beside(&self, known: &[Vector]) {
        let voted = self.shell.as_ref().map(|shell| shell.machine().votes_beside(known));
        for voted in voted.into_iter().flatten() {
            log_vote(&self.start.workload, &voted);
            self.env.metrics.chronicle.voted(&self.start.workload, &voted.rollout, voted.seq);
        }
    }

    /// Lets the page know by which number we have what an earlier life voted for.
    pub(super) fn number_told(&self) {
        let numbers = self.shell.as_ref().map(|shell| shell.machine().numbers());
        for (rollout, seq) in numbers.into_iter().flatten() {
            self.env.metrics.chronicle.voted(&self.start.workload, &rollout, seq);
        }
    }

    /// Lets the metrics know how the workload stands.
    pub(super) fn count(&mut self) {
        let durable = self.shell.as_ref().and_then(|shell| shell.machine().durable());
        durable.into_iter().for_each(|record| self.counted.set(&self.start.workload, record));
    }

    /// The record that the machine still takes for durable was removed.
    pub(super) fn forget(&self) {
        if let Some(Record { seq, revision, .. }) = self.shell.as_ref().and_then(|shell| shell.machine().durable()) {
            let workload = self.start.workload.clone();
            let forget = Forget { workload, seq: *seq, revision: *revision };
            if self.directory.forget.try_send(forget).is_err() {
                // The cache of tags keeps one copy too many until the workload comes back; nothing depends on it.
                self.env.metrics.overflow("cluster_group");
            }
        }
    }
}

//! A cluster that was restored from a backup while we watched: everything is listed again by the watch, and here the ledger,
//! which was restored with it, is compared with what this life knows.
//!
//! What a record that fell behind means is decided by `domain::rollout` (`remembering`). Rollouts under way meet with it by
//! the conflict of their next write, and nothing is done before a write; those that have nothing left to write are looked
//! into when they end.

use std::collections::BTreeSet;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::DeploymentWatcher;
use crate::actors::insist;
use domain::horizon::Mark;
use domain::id::WorkloadId;
use domain::ports::Ledgered;
use domain::record::Record;
use domain::refusal::Cause;
use domain::rollout::Arrival;

impl DeploymentWatcher {
    /// The cluster was set back. Numbers that were given out in this life are not given out again.
    pub(super) fn set_back(&mut self, from: Mark, to: Mark, ctx: &mut Context<Self>) {
        tracing::warn!(
            %from, %to,
            "the cluster was set back, as after a restore from a backup: its resource versions went down; listing all \
             workloads and reading the ledger again"
        );
        self.surroundings.metrics.set_back();
        let highest = self.records.values().map(|record| record.seq).chain(self.removed).max();
        self.spent = self.spent.max(highest.unwrap_or_default());
        let ledger = self.surroundings.ports.ledger.clone();
        let reading = insist("read_ledger", Cause::ReadLedger, self.surroundings.clone(), move || {
            let ledger = ledger.clone();
            async move { ledger.peek().await }
        });
        ctx.spawn(reading.into_actor(self).map(|found, watcher, ctx| watcher.compare(found, ctx)));
    }

    /// Starts a rollout for every workload whose state in the ledger is not the one this life knows. It looks for itself.
    fn compare(&mut self, found: Option<Ledgered>, ctx: &mut Context<Self>) {
        let Some(found) = found.filter(|found| found.origin == self.origin) else {
            // The backup was made before there was this ledger.
            return self.directory.report_lost(&self.origin);
        };
        let state = |record: Option<&Record>| record.map(|record| (record.seq, record.revision));
        let all: BTreeSet<&WorkloadId> = self.records.keys().chain(found.records.keys()).collect();
        let other = all.into_iter().filter(|id| state(found.records.get(*id)) != state(self.records.get(*id)));
        self.fallen.extend(other.cloned());
        self.fallen.extend(self.children.keys().cloned());
        self.barred = found.unreadable;
        self.look_into_fallen(ctx);
    }

    /// Starts what is to be looked into and is not seen to by anybody. Asked with every sweep, and when a rollout ends.
    pub(super) fn look_into_fallen(&mut self, ctx: &mut Context<Self>) {
        let is_free = |id: &&WorkloadId| {
            let is_seen_to = self.children.contains_key(*id) || self.aside.contains_key(*id);
            !is_seen_to && !self.writing.contains(*id)
        };
        let free: Vec<WorkloadId> = self.fallen.iter().filter(is_free).cloned().collect();
        for id in free {
            self.fallen.remove(&id);
            if !self.barred.contains_key(&id) {
                self.baselines.remove(&id);
                self.start(&id, None, Arrival::New, ctx);
            }
        }
    }
}

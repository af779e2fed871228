//! The records of workloads seen for the first time: written together, so that ten thousand of them cost a few writes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::DeploymentWatcher;
use crate::actors::LOAD;
use crate::actors::message::Show;
use domain::id::{Seq, WorkloadId};
use domain::listed::Scope;
use domain::notice::Kind;
use domain::ports::{PinError, PortError, Retry, StoreError};
use domain::record::Record;
use domain::refusal::Cause;
use domain::rollout::Arrival;

/// How long a baseline for which there is no room is put aside.
const ASIDE: Duration = Duration::from_secs(300);

impl DeploymentWatcher {
    /// Writes the baselines found so far, all at once, so that the ledger can put them into few writes.
    pub(super) fn write_baselines(&mut self, ctx: &mut Context<Self>) {
        let found = std::mem::take(&mut self.baselines);
        if found.is_empty() {
            if self.writing.is_empty() {
                self.troubles.baselines_written(None);
            }
            return;
        }
        self.writing.extend(found.keys().cloned());
        let surroundings = self.surroundings.clone();
        let ledger = surroundings.ports.ledger.clone();
        let (directory, origin, spent) = (self.directory.clone(), self.origin.clone(), self.spent);
        let writing = async move {
            let (mut records, mut unnumbered) = (BTreeMap::new(), BTreeMap::new());
            let mut trouble = None;
            for (id, mut record) in found {
                match ledger.seq_floor(&id).await {
                    Ok(floor) => {
                        record.start_above(floor.max(spent));
                        records.insert(id, record);
                    }
                    // A floor that cannot be read now is asked for again with the next sweep.
                    Err(error) => {
                        surroundings.heard(Cause::ReadLedger, LOAD, Some(&error));
                        trouble = Some(error.to_string());
                        unnumbered.insert(id, record);
                    }
                }
            }
            let failed = ledger.store_all(&records).await;
            if failed.values().any(|error| matches!(error, StoreError::Lost(_))) {
                directory.report_lost(&origin);
            }
            let unavailable = failed.values().find_map(|error| match error {
                StoreError::Unavailable(error) if no_room(error).is_none() => Some(error),
                StoreError::Unavailable(_) | StoreError::Conflict(_) | StoreError::Lost(_) => None,
            });
            if !records.is_empty() {
                surroundings.heard(Cause::WriteLedger, "first records", unavailable);
            }
            let passes = |error: &&StoreError| match error {
                StoreError::Unavailable(error) => no_room(error).is_none(),
                StoreError::Lost(_) => true,
                StoreError::Conflict(_) => false,
            };
            let unwritten = failed.values().find(passes);
            (records, unnumbered, trouble.or_else(|| unwritten.map(ToString::to_string)), failed)
        };
        ctx.spawn(writing.into_actor(self).map(move |(records, unnumbered, trouble, mut failed), actor, ctx| {
            actor.troubles.baselines_written(trouble);
            let written = records.iter().filter(|(id, _)| !failed.contains_key(*id));
            let written = written.map(|(id, record)| (id.clone(), record.clone())).collect();
            if actor.directory.show.try_send(Show(written)).is_err() {
                // The cache of tags is made whole from the ledger at the next start; nothing else depends on it.
                actor.surroundings.metrics.overflow("cluster_group");
            }
            for (id, record) in records {
                let failed = failed.remove(&id);
                actor.baseline_written(id, record, failed, ctx);
            }
            for (id, record) in unnumbered {
                actor.baseline_unwritten(id, record, ctx);
            }
            actor.note_listed_scopes(ctx);
            actor.count();
        }));
    }

    /// Remembers for later lives which scopes are listed, once all of their workloads are on record.
    pub(super) fn note_listed_scopes(&mut self, ctx: &mut Context<Self>) {
        let unnoted = std::mem::take(&mut self.unnoted);
        let waits = |scope: &Scope| self.baselines.keys().chain(&self.writing).any(|id| scope.contains(id));
        let (waiting, scopes): (BTreeSet<Scope>, BTreeSet<Scope>) = unnoted.into_iter().partition(waits);
        self.unnoted = waiting;
        if scopes.is_empty() {
            return;
        }
        let ledger = self.surroundings.ports.ledger.clone();
        let (directory, origin) = (self.directory.clone(), self.origin.clone());
        let surroundings = self.surroundings.clone();
        let noting = async move {
            let noted = ledger.store_listed(&scopes).await;
            match &noted {
                Ok(()) => surroundings.heard(Cause::WriteLedger, "what is listed", None),
                Err(PinError::Unavailable(error)) => {
                    surroundings.heard(Cause::WriteLedger, "what is listed", Some(error))
                }
                Err(PinError::Lost(_)) => false,
            };
            if matches!(noted, Err(PinError::Lost(_))) {
                directory.report_lost(&origin);
            }
            (scopes, noted)
        };
        ctx.spawn(noting.into_actor(self).map(|(scopes, noted), actor, _| {
            if noted.is_err() {
                actor.surroundings.metrics.failure("store_listed");
                // Again with the next sweep.
                actor.unnoted.extend(scopes);
            }
            actor.troubles.listed_noted(noted.err().map(|error| error.to_string()));
        }));
    }

    /// What became of a baseline.
    fn baseline_written(
        &mut self,
        id: WorkloadId,
        record: Record,
        failed: Option<StoreError>,
        ctx: &mut Context<Self>,
    ) {
        match failed {
            None => {
                self.writing.remove(&id);
                if self.troubles.stored(&id) {
                    self.surroundings.heard_of_store(&id.spoken(), None);
                }
                self.records.insert(id.clone(), record);
                if let Some(sight) = self.overtaken.remove(&id) {
                    self.attend(&id, sight, ctx);
                }
            }
            Some(StoreError::Conflict(_)) if self.spent > Seq::default() => {
                // A record from before a restore, of a workload that this life knows to have been removed since.
                self.writing.remove(&id);
                self.overtaken.remove(&id);
                self.start(&id, None, Arrival::New, ctx);
            }
            Some(StoreError::Conflict(current)) => {
                self.writing.remove(&id);
                self.records.extend(current.map(|record| (id.clone(), *record)));
                match self.overtaken.remove(&id) {
                    Some(sight) => self.attend(&id, sight, ctx),
                    // Somebody else wrote first, and the sight was not kept: a rollout actor looks afresh.
                    None => self.start(&id, None, Arrival::Baseline, ctx),
                }
            }
            Some(StoreError::Unavailable(error)) if no_room(&error).is_some() => {
                self.baseline_refused(id, record, &error, ctx);
            }
            Some(StoreError::Unavailable(_) | StoreError::Lost(_)) => {
                self.surroundings.metrics.failure("store_baseline");
                self.baseline_unwritten(id, record, ctx);
            }
        }
    }

    /// A baseline is written with the next sweep instead.
    fn baseline_unwritten(&mut self, id: WorkloadId, record: Record, ctx: &mut Context<Self>) {
        self.writing.remove(&id);
        self.baselines.insert(id.clone(), record);
        if let Some(sight) = self.overtaken.remove(&id) {
            self.attend(&id, sight, ctx);
        }
    }

    /// The ledger has no room for a baseline: it is put aside for a while, and holds up neither the others nor what is told of them.
    fn baseline_refused(&mut self, id: WorkloadId, record: Record, error: &PortError, ctx: &mut Context<Self>) {
        self.surroundings.metrics.failure("store_record_full");
        self.surroundings.heard_of_store(&id.spoken(), Some(error));
        if self.troubles.unstored(self.surroundings.ports.clock.now(), &id, error.to_string()) {
            let message = format!("its record has no room in the ledger, so it is not followed: {error}");
            let notice = self.notice(&id, Kind::RolloutStuck, message);
            ctx.spawn(self.tell(notice, record.uid.clone()).into_actor(self));
        }
        self.writing.remove(&id);
        self.overtaken.remove(&id);
        ctx.run_later(ASIDE, move |actor, _| {
            // Unless it was seen, and written, meanwhile.
            if !actor.records.contains_key(&id) && !actor.children.contains_key(&id) && !actor.writing.contains(&id) {
                actor.baselines.entry(id).or_insert(record);
            }
        });
    }
}

/// Why a ledger that can be written has no room for a record.
fn no_room(error: &PortError) -> Option<&PortError> {
    Some(error).filter(|error| error.retry == Retry::Never && !error.denied)
}

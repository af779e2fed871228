//! What the watcher reads of the ledger and writes into it. Whatever failed, the machine tries again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::DeploymentWatcher;
use crate::actors::message::Show;
use crate::actors::shell::Drives;
use crate::actors::{Env, LOAD, retry_until_ok};
use kernel::id::{Nonce, Seq, WorkloadId};
use kernel::refusal::Cause;
use kernel::watches::listed::Scope;
use kernel::watches::lives::LifeNote;
use kernel::watches::watch::{Baseline, Event, Written};
use purge::ports::{PinError, StoreError};
use purge::records::record::{Record, Records};

/// What a failed call was about.
const LIFE: &str = "what is worked on";

/// See [`LIFE`].
const LISTED: &str = "what is listed";

/// How writing baselines ended.
struct Outcome {
    /// Those with a number.
    records: Records,
    /// Those that were not written.
    failed: BTreeMap<WorkloadId, StoreError>,
    /// Those whose number could not be read.
    unnumbered: Records,
    /// A failure that passes with time.
    trouble: Option<String>,
}

impl DeploymentWatcher {
    /// Writes baselines all at once, so that the ledger can put them into few writes.
    pub(super) fn write_baselines(&self, found: Records, above: Seq, ctx: &mut Context<Self>) {
        let writing = write(self.env.clone(), found, above);
        ctx.spawn(writing.into_actor(self).map(|outcome, actor, ctx| actor.baselines_written(outcome, ctx)));
    }

    fn baselines_written(&mut self, outcome: Outcome, ctx: &mut Context<Self>) {
        let Outcome { records, mut failed, unnumbered, trouble } = outcome;
        if failed.values().any(|error| matches!(error, StoreError::Lost(_))) {
            self.directory.report_lost(&self.origin);
        }
        self.note_baselines(trouble);
        let written = records.iter().filter(|(id, _)| !failed.contains_key(*id));
        let shown: Records = written.map(|(id, record)| (id.clone(), Arc::clone(record))).collect();
        if self.directory.show.try_send(Show(shown.clone())).is_err() {
            // The cache of tags is made whole from the ledger at the next start; nothing else depends on it.
            self.env.metrics.overflow("cluster_group");
        }
        let mut all = Vec::new();
        for (id, record) in records {
            let written = self.baseline_written(&id, &record, failed.remove(&id), ctx);
            all.push(Baseline { id, record, written });
        }
        all.extend(unnumbered.into_iter().map(|(id, record)| Baseline { id, record, written: Written::Failed }));
        self.feed(Event::BaselinesWritten(all), ctx);
        self.note_first_records(&shown);
        self.count();
    }

    fn baseline_written(
        &mut self,
        id: &WorkloadId,
        record: &Record,
        failed: Option<StoreError>,
        ctx: &mut Context<Self>,
    ) -> Written<Record> {
        match failed {
            None => {
                if self.troubles.stored(id) {
                    self.env.heard_of_store(&id.display_name(), None);
                }
                Written::Done
            }
            Some(StoreError::Conflict(current)) => Written::Conflict(current),
            Some(error @ StoreError::NoRoom(_)) => {
                self.env.metrics.failure("store_record_full");
                self.env.heard_of_store(&id.display_name(), Some(&error));
                if self.troubles.unstored(self.shell.now(), id, error.to_string()) {
                    self.tell_unstored(id, &record.uid, &error, ctx);
                }
                Written::NoRoom
            }
            Some(StoreError::Unavailable(_) | StoreError::Lost(_)) => {
                self.env.metrics.failure("store_baseline");
                Written::Failed
            }
        }
    }

    /// Remembers for later lives which scopes are listed.
    pub(super) fn note_listed(&self, scopes: BTreeSet<Scope>, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let noting = async move { (ledger.store_listed(&scopes).await, scopes) };
        ctx.spawn(noting.into_actor(self).map(|(noted, scopes), actor, ctx| {
            actor.heard_of_note(LISTED, &noted);
            if noted.is_err() {
                actor.env.metrics.failure("store_listed");
            }
            actor.feed(Event::ListedNoted(scopes, noted.is_ok()), ctx);
            actor.note_listing(noted.err().map(|error| error.to_string()));
        }));
    }

    /// Notes what is worked on, for the life after an abrupt end.
    pub(super) fn note_life(&self, note: LifeNote, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let noting = async move { ledger.store_life(&note, None).await };
        ctx.spawn(noting.into_actor(self).map(|noted, actor, ctx| {
            actor.heard_of_note(LIFE, &noted);
            if let Err(error) = &noted {
                actor.env.metrics.failure("store_life");
                tracing::debug!(%error, "what is worked on could not be noted; it is worked on all the same");
            }
            actor.feed(Event::LifeNoted(noted.is_ok()), ctx);
        }));
    }

    fn heard_of_note(&self, place: &str, noted: &Result<(), PinError>) {
        match noted {
            Ok(()) => drop(self.env.heard(Cause::WriteLedger, place, None)),
            Err(PinError::Unavailable(error)) => {
                self.env.heard(Cause::WriteLedger, place, Some(error));
            }
            Err(PinError::Lost(_)) => self.directory.report_lost(&self.origin),
        }
    }

    /// Says in the ledger that this life has ended in order.
    pub(super) fn close_life(&self) -> impl Future<Output = ()> + use<> {
        let (closed, ledger) = (self.watch().lives().close(), self.env.ports.ledger.clone());
        async move {
            let Some((life, over)) = closed else { return };
            if let Err(error) = ledger.store_life(&life, Some(&over)).await {
                tracing::warn!(%error, "could not note that this life ends in order; the next one takes it for an abrupt end");
            }
        }
    }

    /// Reads the ledger again, after the cluster was set back.
    pub(super) fn read_ledger(&self, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        let reading = retry_until_ok("read_ledger", Cause::ReadLedger, self.env.clone(), move || {
            let ledger = ledger.clone();
            async move { ledger.peek().await }
        });
        ctx.spawn(reading.into_actor(self).map(|found, actor, ctx| {
            match found.filter(|found| found.origin == actor.origin) {
                Some(found) => actor.feed(Event::Compared(found.records, found.unreadable), ctx),
                // The backup was made before there was this ledger.
                None => actor.directory.report_lost(&actor.origin),
            }
        }));
    }
}

async fn write(env: Env, found: Records, above: Seq) -> Outcome {
    let ledger = env.ports.ledger.clone();
    let (mut records, mut unnumbered, mut trouble) = (BTreeMap::new(), BTreeMap::new(), None);
    let mut found = found.into_iter();
    while let Some((id, mut record)) = found.next() {
        match ledger.floor(&id).await {
            Ok(floor) => {
                let first = Arc::make_mut(&mut record);
                first.start_above(floor.max(above.into()));
                if first.nonce.is_none() {
                    // A write with an unknown outcome is repeated unchanged.
                    first.nonce = Nonce(env.ports.random.bits());
                }
                records.insert(id, record);
            }
            // If a floor cannot be read now, the next sweep reads it again, and the others: each attempt may take its whole time.
            Err(error) => {
                env.heard(Cause::ReadLedger, LOAD, Some(&error));
                trouble = Some(error.to_string());
                unnumbered.insert(id, record);
                unnumbered.extend(found.by_ref());
            }
        }
    }
    let failed = ledger.store_all(&records).await;
    let unavailable = failed.values().find_map(|error| match error {
        StoreError::Unavailable(error) => Some(error),
        StoreError::NoRoom(_) | StoreError::Conflict(_) | StoreError::Lost(_) => None,
    });
    if !records.is_empty() {
        env.heard(Cause::WriteLedger, "first records", unavailable);
    }
    let unwritten = failed.values().find(|error| matches!(error, StoreError::Unavailable(_) | StoreError::Lost(_)));
    Outcome { trouble: trouble.or_else(|| unwritten.map(ToString::to_string)), records, failed, unnumbered }
}

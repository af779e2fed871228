//! Reads the whole ledger for boards that lack what we have posted: one reading for all that lack it at that moment.

use std::collections::BTreeSet;

use super::path::Path;
use super::{BACKOFF, Effect};
use crate::call::Call;
use crate::id::WorkloadId;
use crate::machine::Timestamp;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refill {
    call: Call,
    /// The paths it is for.
    paths: BTreeSet<usize>,
    /// What was removed while the ledger was read: it may be in the answer.
    removed: BTreeSet<WorkloadId>,
}

impl Refill {
    pub(super) fn new() -> Self {
        Self { call: Call::due(Timestamp::default()), paths: BTreeSet::new(), removed: BTreeSet::new() }
    }

    /// Begins to read the ledger, if one of the paths wants it.
    pub(super) fn begin(&mut self, now: Timestamp, paths: &mut [Path]) -> Option<Effect> {
        if !self.call.is_due(now) || !paths.iter().any(Path::wants_refill) {
            return None;
        }
        self.call.asked();
        let wanting = paths.iter_mut().enumerate().filter(|(_, path)| path.wants_refill());
        self.paths = wanting
            .map(|(index, path)| {
                path.queue.is_refilled();
                index
            })
            .collect();
        Some(Effect::ReadLedger)
    }

    /// A record was removed.
    pub(super) fn note_removed(&mut self, workload: WorkloadId) {
        if self.call.is_asked() {
            self.removed.insert(workload);
        }
    }

    /// A record is there again.
    pub(super) fn note_present(&mut self, workload: &WorkloadId) {
        self.removed.remove(workload);
    }

    /// The ledger was read. Returns the paths it was read for, and the workloads whose records were removed meanwhile.
    pub(super) fn answered(&mut self, now: Timestamp) -> (BTreeSet<usize>, BTreeSet<WorkloadId>) {
        self.call.answered_until(now);
        (std::mem::take(&mut self.paths), std::mem::take(&mut self.removed))
    }

    /// The ledger could not be read, for this reason.
    pub(super) fn failed(&mut self, now: Timestamp, why: String, paths: &mut [Path]) {
        self.call.failed(BACKOFF.from(now, "refill"), why);
        self.removed.clear();
        let waiting = std::mem::take(&mut self.paths);
        let waiting = paths.iter_mut().enumerate().filter(|(index, _)| waiting.contains(index));
        waiting.for_each(|(_, path)| path.queue.refill());
    }

    /// When the ledger may be read again, if one of the paths wants it.
    pub(super) fn deadline(&self, paths: &[Path]) -> Option<Timestamp> {
        self.call.deadline().filter(|_| paths.iter().any(Path::wants_refill))
    }

    /// Why the ledger could not be read.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }
}

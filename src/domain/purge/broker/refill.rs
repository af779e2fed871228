//! Reads the whole ledger for boards that lack what we have posted: one reading for all that lack it at that moment.

use std::collections::BTreeSet;

use super::board_state::BoardState;
use super::{BACKOFF, Effect, NoAnswer};
use kernel::call::Call;
use kernel::id::WorkloadId;
use kernel::machine::Timestamp;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refill {
    call: Call,
    /// The boards it is for.
    boards: BTreeSet<usize>,
    /// The workloads removed while the ledger was read: they may be in the answer.
    removed: BTreeSet<WorkloadId>,
}

impl Refill {
    pub(super) fn new() -> Self {
        Self { call: Call::due(Timestamp::default()), boards: BTreeSet::new(), removed: BTreeSet::new() }
    }

    /// Begins to read the ledger, if one of the boards wants it, or it is `wanted` otherwise.
    pub(super) fn begin(&mut self, now: Timestamp, boards: &mut [BoardState], wanted: bool) -> Option<Effect> {
        if !self.call.is_due(now) || !(wanted || boards.iter().any(BoardState::wants_refill)) {
            return None;
        }
        self.call.asked();
        let wanting = boards.iter_mut().enumerate().filter(|(_, board)| board.wants_refill());
        self.boards = wanting
            .map(|(index, board)| {
                board.queue.is_refilled();
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

    /// The ledger was read. Returns the boards it was read for, and the workloads whose records were removed meanwhile.
    pub(super) fn answered(&mut self, now: Timestamp) -> (BTreeSet<usize>, BTreeSet<WorkloadId>) {
        self.call.answered_until(now);
        (std::mem::take(&mut self.boards), std::mem::take(&mut self.removed))
    }

    /// The ledger could not be read, for this reason.
    pub(super) fn failed(&mut self, now: Timestamp, why: NoAnswer, boards: &mut [BoardState]) {
        self.call.failed(BACKOFF.from(now, "refill"), why);
        self.removed.clear();
        let waiting = std::mem::take(&mut self.boards);
        let waiting = boards.iter_mut().enumerate().filter(|(index, _)| waiting.contains(index));
        waiting.for_each(|(_, board)| board.queue.refill());
    }

    /// When the ledger may be read again, if one of the boards wants it, or it is `wanted` otherwise.
    pub(super) fn deadline(&self, boards: &[BoardState], wanted: bool) -> Option<Timestamp> {
        self.call.deadline().filter(|_| wanted || boards.iter().any(BoardState::wants_refill))
    }

    /// Why the ledger could not be read.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }
}

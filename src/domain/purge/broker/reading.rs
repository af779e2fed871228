//! How far one board is read, and when it is read next.

use std::collections::BTreeSet;
use std::time::Duration;

use super::NoAnswer;
use super::pace::Pace;
use crate::agreement::board::{AGAIN_MAX, Cursor};
use kernel::call::Call;
use kernel::id::{Member, WorkloadId};
use kernel::machine::Timestamp;
use kernel::retry;

/// How often a board is read without a wake-up, give or take [`READ_SPREAD_MS`]: we post again what a board has lost within
/// that time (fault R2).
const READ_EVERY_MS: u64 = 5_000;

/// Half of how far apart the polls of the members are spread, in milliseconds.
const READ_SPREAD_MS: u64 = 1_000;

/// Most answers read without a pause: 50,000 records, as after a start. A peer that changes records faster than we read them
/// cannot keep us reading longer.
const ANSWERS_MAX: u32 = 100;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reading {
    call: Call,
    cursor: Cursor,
    /// Members whose records are to be read from the beginning.
    rewound: BTreeSet<Member>,
    /// There was news while it was being read.
    woken: bool,
    pace: Pace,
    /// Answers in a row that were not all there was.
    answers: u32,
    reads: u32,
    /// Workloads whose copies are all to be read, wherever the cursor is.
    again: BTreeSet<WorkloadId>,
    /// Those of them that are being read.
    asked: Vec<WorkloadId>,
    /// Whether our beat was on the board when the read began: the answer may be older than a beat left since.
    after_our_beat: bool,
}

impl Reading {
    /// Everything is to be read.
    pub(super) fn new() -> Self {
        Self {
            call: Call::due(Timestamp::default()),
            cursor: Cursor::default(),
            rewound: BTreeSet::new(),
            woken: false,
            pace: Pace::default(),
            answers: 0,
            reads: 0,
            again: BTreeSet::new(),
            asked: Vec::new(),
            after_our_beat: false,
        }
    }

    /// Begins the next read, if it is due. Returns where it starts and which workloads are read again. `beaten`: the board has
    /// a beat of ours.
    pub(super) fn begin(&mut self, now: Timestamp, beaten: bool) -> Option<(Cursor, BTreeSet<WorkloadId>)> {
        if !self.call.is_due(now) {
            return None;
        }
        self.call.asked();
        self.pace.made(now);
        self.woken = false;
        self.after_our_beat = beaten;
        self.asked = self.again.iter().take(AGAIN_MAX).cloned().collect();
        Some((self.cursor.clone(), self.asked.iter().cloned().collect()))
    }

    /// It was read up to this cursor; `again` of the workloads to be read again are done, and `more` is to come. The times of its
    /// polls derive from `name`.
    pub(super) fn answered(&mut self, now: Timestamp, name: &str, mut cursor: Cursor, again: usize, more: bool) {
        for workload in std::mem::take(&mut self.asked).iter().take(again) {
            self.again.remove(workload);
        }
        for member in std::mem::take(&mut self.rewound) {
            cursor.0.remove(&member);
        }
        self.cursor = cursor;
        self.reads = self.reads.wrapping_add(1);
        let spread = retry::jitter(name, self.reads) % (2 * READ_SPREAD_MS);
        let wait = Duration::from_millis(READ_EVERY_MS - READ_SPREAD_MS + spread);
        self.answers = if more { self.answers.saturating_add(1) } else { 0 };
        let due = match () {
            () if (more && self.answers < ANSWERS_MAX) || !self.again.is_empty() => now,
            () if more || self.woken => self.pace.next(now),
            () => now.after(wait),
        };
        self.call.answered_until(due);
    }

    /// It could not be read, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: NoAnswer) {
        self.call.failed(again, why);
    }

    /// Whether the board had a beat of ours when the last read began.
    pub(super) fn is_after_our_beat(&self) -> bool {
        self.after_our_beat
    }

    /// Makes the next read due now.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
    }

    /// The board announced news.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.woken = true;
        self.call.hurry(self.pace.next(now));
    }

    /// All copies of this workload are to be read, at once.
    pub(super) fn ask_again(&mut self, now: Timestamp, workload: &WorkloadId) {
        self.again.insert(workload.clone());
        self.call.hurry(now);
    }

    /// A member's records are to be read from the beginning.
    pub(super) fn rewind(&mut self, now: Timestamp, member: &Member) {
        self.cursor.0.remove(member);
        self.rewound.insert(member.clone());
        self.wake(now);
    }

    /// When it is read next.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline()
    }

    /// Why the last read failed.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }
}

//! One delivery in the outbox: where it stands with its receiver and, apart from that, with the ledger.
//!
//! The two are separate because one of them may be broken: a receiver is still called while the ledger cannot be
//! written, as long as the delivery had been stored once.

use super::Delivery;
use kernel::machine::Timestamp;

/// A delivery and what is going on with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    /// As it is now; the ledger may be one write behind.
    pub delivery: Delivery,
    /// Where it stands with its receiver.
    pub stage: Stage,
    /// The ledger has it in some state, so a crash does not lose it. Nothing is sent before.
    pub durable: bool,
    /// The ledger has it in another state than this one.
    pub dirty: bool,
    /// The state of its write to the ledger.
    pub write: Write,
    /// Writes that failed in a row.
    pub tries: u32,
    /// Its size when it came in; the bounds are kept with this one.
    pub size_bytes: usize,
    /// Its place in the outbox's index of alarms.
    pub alarm: Option<Timestamp>,
}

/// Where a delivery stands with its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// To be sent, not before this instant.
    Waiting {
        due: Timestamp,
    },
    /// To be sent as soon as its hook's queue has room; in `ready` of that under this instant.
    Ready {
        due: Timestamp,
    },
    /// An attempt is under way; without an answer by this instant it counts as failed.
    Sending {
        lost_at: Timestamp,
    },
    Dead,
    /// Delivered or dropped: the ledger is to forget it, then we do.
    Done,
}

impl Stage {
    /// Still to be delivered.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Waiting { .. } | Self::Ready { .. } | Self::Sending { .. } => true,
            Self::Dead | Self::Done => false,
        }
    }
}

/// The state of writes to the ledger. One write at a time, so an older state never overtakes a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Write {
    Idle,
    /// Waiting for one of the bounded number of writes under way to end.
    Queued,
    /// Under way; without an answer by this instant it is repeated.
    Underway {
        lost_at: Timestamp,
        number: u64,
    },
    /// Failed; repeated at this instant.
    Resting {
        until: Timestamp,
    },
}

impl Entry {
    /// An entry that is counted nowhere yet: its stage is still to be entered.
    pub fn new(delivery: Delivery, durable: bool) -> Self {
        let size_bytes = delivery.size_bytes();
        Self {
            delivery,
            stage: Stage::Done,
            durable,
            dirty: false,
            write: Write::Idle,
            tries: 0,
            size_bytes,
            alarm: None,
        }
    }

    /// Whether the write of this number is under way.
    pub fn is_writing(&self, number: u64) -> bool {
        matches!(self.write, Write::Underway { number: own, .. } if own == number)
    }

    /// When something about it is next due by time alone.
    pub fn deadline(&self) -> Option<Timestamp> {
        let stage = match self.stage {
            Stage::Waiting { due } if self.durable => Some(due),
            Stage::Sending { lost_at } => Some(lost_at),
            Stage::Waiting { .. } | Stage::Ready { .. } | Stage::Dead | Stage::Done => None,
        };
        let write = match self.write {
            Write::Underway { lost_at, .. } => Some(lost_at),
            Write::Resting { until } => Some(until),
            Write::Idle | Write::Queued => None,
        };
        [stage, write].into_iter().flatten().min()
    }
}

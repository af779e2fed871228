//! Ways to break the protocol, each applied to the world around the machine, and each caught by a named property. They
//! prove that the properties have teeth.

use allclear::domain::id::Reference;
use allclear::domain::machine::Timestamp;
use allclear::domain::notice::Notice;
use allclear::domain::purge::Order;
use allclear::domain::record::Record;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The fresh look before a vote is answered from the watch.
    NoRecheck,
    /// The ledger takes every write.
    NoCompareAndSet,
    /// Every call has a reference of its own.
    RandomReference,
    /// The reference is named after the version.
    ReferenceOfTag,
    /// A write counts as durable when it is sent.
    ActsOnDraft,
    /// The fresh look before a failure is answered from the watch.
    NoSecondLook,
    /// The counts of an older generation are believed.
    ObservedGenerationIgnored,
    /// Votes are dropped when another version comes.
    VoteWithdrawn,
    /// A notice gets the time at which it is told.
    NoticeRestamped,
}

impl Mutant {
    pub fn stored(self, record: &Record) -> Record {
        let mut record = record.clone();
        if self == Self::VoteWithdrawn {
            let seq = record.seq;
            record.votes.retain(|vote| vote.seq == seq);
        }
        record
    }

    pub fn told(self, notice: &Notice, now: Timestamp) -> Notice {
        let mut notice = notice.clone();
        if self == Self::NoticeRestamped {
            notice.at_ms = i64::try_from(now.as_millis()).unwrap_or(0) + 1;
        }
        notice
    }

    pub fn references(self, order: &mut Order, count: usize, version: &str) {
        match self {
            Self::RandomReference => order.reference = Reference(format!("random-{count}")),
            Self::ReferenceOfTag => order.reference = Reference(format!("{}-{version}", order.workload)),
            _ => {}
        }
    }
}

//! Ways to break the agreement, each applied to the world around the machine, and each caught by a named property.

use allclear::domain::id::Reference;
use allclear::domain::purge::Order;
use allclear::domain::record::{Phase, Record};

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
    /// A complete record counts as a vote.
    FactsForVotes,
    /// A member that has voted withdraws all the same.
    WithdrawsAfterVoting,
    /// A vote is dropped as soon as its member has closed it.
    DropsAtOnce,
}

impl Mutant {
    pub fn stored(self, record: &mut Record, held: Option<&Record>) {
        match self {
            Self::WithdrawsAfterVoting => {
                let seq = record.seq;
                let voted = held.is_some_and(|held| held.vote_for(seq).is_some()) && record.phase == Phase::Complete;
                if voted && record.stalled {
                    record.phase = Phase::Withdrawn;
                    record.votes.retain(|vote| vote.seq != seq);
                    record.closed = seq;
                }
            }
            Self::DropsAtOnce => record.votes.retain(|vote| vote.closed.is_none()),
            _ => {}
        }
    }

    pub fn references(self, order: &mut Order, count: usize, record: Option<&Record>) {
        match self {
            Self::RandomReference => order.reference = Reference(format!("random-{count}")),
            Self::ReferenceOfTag => {
                let version = record.map_or(String::new(), |record| record.version.to_string());
                order.reference = Reference(format!("{}-{version}", order.workload));
            }
            _ => {}
        }
    }
}

//! Ways to break the agreement, each applied to the world around the machine, and each caught by a named property.

use kernel::id::{Reference, Vector};
use purge::purges::purge::Order;
use purge::records::record::{Change, Edge, Phase, Record};
use purge::records::rules::Rules;

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
    /// After an upgrade a vote of the release before is carried out under a reference of the new rules.
    NewReferenceForOldVote,
    /// What was served and never completed is forgotten.
    ServedForgotten,
    /// A vote that names distributions is alone in saying what is purged.
    HostsForgotten,
    /// What the owner calls the version is not read with the images.
    OldGroupVersion,
    /// Being switched off has the number of what was followed before.
    OffWithoutNumber,
    /// What was switched on again is nothing new.
    SwitchedOnUnnoticed,
    /// Under a hold not even what was made is followed.
    HoldFreezes,
    /// What was complete is forgotten when another version comes.
    NothingKept,
    /// What came after is kept, too, when what ran before comes back.
    KeptAfterAReturn,
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
            Self::ServedForgotten if record.edge == Edge::Moved => record.edge = Edge::Settled,
            Self::HostsForgotten => record.votes.iter_mut().for_each(|vote| vote.plan.hosts.clear()),
            Self::OldGroupVersion => {
                record.group_version = held.map_or(record.group_version.take(), |held| held.group_version.clone());
            }
            Self::OffWithoutNumber => {
                if let Some(held) = held.filter(|held| record.off && !held.off) {
                    (record.seq, record.closed) = (held.seq, held.seq);
                }
            }
            Self::NothingKept => record.passed.clear(),
            Self::KeptAfterAReturn => {
                if let Some(held) = held.filter(|held| held.seq < record.seq && record.passed.len() < held.passed.len())
                {
                    record.passed.clone_from(&held.passed);
                }
            }
            Self::SwitchedOnUnnoticed if held.is_some_and(|held| held.off) && !record.off => {
                (record.change, record.closed) = (Change::Baseline, record.seq);
            }
            _ => {}
        }
    }

    pub fn references(self, order: &mut Order, vector: &Vector, count: usize, record: Option<&Record>, runs: Rules) {
        match self {
            Self::RandomReference => order.reference = Reference(format!("random-{count}")),
            Self::ReferenceOfTag => {
                let version = record.map_or(String::new(), |record| record.version.to_string());
                order.reference = Reference(format!("{}-{version}", order.subject));
            }
            Self::NewReferenceForOldVote => {
                let voted = record.and_then(|record| record.vote(vector)).map(|vote| vote.cast.rules);
                if voted.is_some_and(|voted| voted < runs) {
                    order.reference = Reference(format!("{}-by-rules-{runs}", order.reference));
                }
            }
            _ => {}
        }
    }
}

//! What this member has voted for, and how its rollouts ended, said for a witness: who reads the logs of all members can tell what each
//! knew before a purge, and that nothing was lost.

use std::fmt;

use crate::records::record::{Outcome, Record, Vote};
use crate::rollouts::rollout::Rollout;
use crate::rollouts::rollout::traced::name;
use kernel::id::{Member, Seq, Vector};

/// A vote that is in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voted {
    /// The rollout's id in the group.
    pub rollout: String,
    pub member: Member,
    /// The rollout's number in this cluster.
    pub seq: Seq,
    vector: Vector,
}

impl Voted {
    /// Each member with the number of its rollout, as `eu-1=7,us-1=9`; a member's name has neither `=` nor `,`.
    pub fn members(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            for (place, (member, component)) in self.vector.0.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                write!(f, "{comma}{member}={}", component.seq.0)?;
            }
            Ok(())
        })
    }
}

/// A rollout of this member whose end is in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub seq: Seq,
    pub change: String,
    /// In one word.
    pub outcome: &'static str,
}

impl Rollout {
    /// The ends that the durable record remembers; a vote that died ends no rollout.
    pub fn ends(&self) -> Vec<Ended> {
        let history = self.record.durable.iter().flat_map(|record| &record.history);
        let ended = history.filter(|closed| closed.outcome != Outcome::Dead);
        ended
            .map(|closed| Ended { seq: closed.seq, change: closed.change.clone(), outcome: name(&closed.outcome) })
            .collect()
    }

    /// The open votes of the durable record.
    fn open_votes(&self) -> impl Iterator<Item = &Vote> {
        self.record.durable.iter().flat_map(|record| &record.votes).filter(|vote| vote.closed.is_none())
    }

    /// The ids in the group of all rollouts that the durable record still knows, each with its number here: notices of closed votes and of
    /// looks at the edge may follow, and each member's notice of a vote has the same bytes, with whosever number.
    pub fn numbers(&self) -> Vec<(String, Seq)> {
        let durable = || self.record.durable.iter();
        let votes = durable().flat_map(Record::all_kept);
        let votes = votes.map(|vote| (self.rollout_under(vote.name.as_ref(), &vote.vector), vote.seq));
        let looks = durable().flat_map(|record| record.looks.values());
        votes.chain(looks.map(|proving| (proving.rollout.clone(), proving.seq))).collect()
    }

    /// Whom the open votes are for.
    pub fn vectors_voted_for(&self) -> Vec<Vector> {
        self.open_votes().map(|vote| vote.vector.clone()).collect()
    }

    /// The open votes that are for none of these.
    pub fn votes_beside(&self, known: &[Vector]) -> Vec<Voted> {
        let votes = self.open_votes().filter(|vote| !known.contains(&vote.vector));
        let voted = |vote: &Vote| Voted {
            rollout: self.rollout_under(vote.name.as_ref(), &vote.vector),
            member: self.identity.member.clone(),
            seq: vote.seq,
            vector: vote.vector.clone(),
        };
        votes.map(voted).collect()
    }
}

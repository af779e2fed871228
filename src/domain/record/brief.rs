//! Which vector a member voted for last, in as few words as tell the order of votes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{Component, Member, Origin, Seq, Vector};

/// A vector in brief: enough to tell whether another one may come after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Brief(BTreeMap<Member, (Seq, String)>);

impl Brief {
    /// Of this vector.
    pub fn of(vector: &Vector) -> Self {
        let brief = |component: &Component| (component.seq, component.origin.brief());
        Self(vector.0.iter().map(|(member, component)| (member.clone(), brief(component))).collect())
    }

    /// Remembers where a member was that the vector leaves out, because its cluster does not have the workload.
    pub fn leave_out(&mut self, member: &Member, component: &Component) {
        self.0.insert(member.clone(), (component.seq, component.origin.brief()));
    }

    /// Whether a vote for `next` may follow one for this: nothing in it is older, and something is other. Members and ledgers
    /// that only one of the two has say nothing of the order.
    pub fn precedes(&self, next: &Self) -> bool {
        let pair = |(member, (seq, origin)): (&Member, &(Seq, String))| {
            next.0.get(member).filter(|(_, theirs)| theirs == origin).map(|(theirs, _)| seq <= theirs)
        };
        next != self && self.0.iter().filter_map(pair).all(|in_order| in_order)
    }

    /// Whether this is about more members than `other`, and not behind it in any of its own.
    pub fn contains(&self, other: &Self) -> bool {
        let reached = |(member, (seq, origin)): (&Member, &(Seq, String))| {
            self.0.get(member).is_some_and(|(own, known)| known == origin && own >= seq)
        };
        self.0.len() > other.0.len() && other.0.iter().all(reached)
    }

    /// How far this is in one member, if it knows this ledger of it.
    pub fn seq(&self, member: &Member, origin: &Origin) -> Option<Seq> {
        self.0.get(member).filter(|(_, known)| *known == origin.brief()).map(|(seq, _)| *seq)
    }
}

//! The order in which members do the work that each could do.
//!
//! Every member can do everything, and the references make repetition harmless. The order only saves work: for each
//! distribution the members have a rank, the first begins at once, and each later one begins a while after it learnt of the
//! decision, unless it has seen by then that the work is done. No member is elected, and none has to be alive.

use crate::rollouts::rollout::Rollout;
use kernel::id::{Vector, rank};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;

/// A purge that another member has created is followed by the next rank after so many takeover times. Most complete within
/// 25 s (95th percentile), and until then its creator follows it anyway.
pub(super) const FOLLOW_AFTER: u32 = 6;

/// The work that members do one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    Match,
    /// Create the purge of this one.
    Create(DistributionId),
    /// Ask how far it is.
    Follow(DistributionId),
    /// Announce how the vector ended.
    Tell,
}

impl Rollout {
    /// Whether this member may do something that others may do as well: once its turn has come, it stays.
    pub(super) fn is_turn(&mut self, now: Timestamp, vector: &Vector, task: Task) -> bool {
        if self.identity.is_alone() {
            return true;
        }
        let (key, after) = match &task {
            Task::Create(distribution) => (distribution.to_string(), 1),
            Task::Follow(distribution) => (distribution.to_string(), FOLLOW_AFTER),
            Task::Match => (self.group_rollout(vector), 1),
            Task::Tell => (self.teller_key(vector), 1),
        };
        let rank = rank(&key, &self.identity.member, vector.0.keys());
        let wait = self.policy.group.takeover.saturating_mul(rank.saturating_mul(after));
        self.purges.is_turn(now, vector, task, wait)
    }

    /// The member that purges the first distribution announces the end: it is the first to know.
    fn teller_key(&self, vector: &Vector) -> String {
        let vote = self.record.draft.as_ref().and_then(|draft| draft.vote(vector));
        let first = vote.and_then(|vote| vote.purges.keys().next()).map(ToString::to_string);
        first.unwrap_or_else(|| self.group_rollout(vector))
    }
}

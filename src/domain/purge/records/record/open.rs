//! The open work of a record, by itself and with the other members.

use super::{Change, Phase, Record};
use kernel::names::image::Code;

impl Record {
    /// Whether it needs the other members: their votes, or that they have seen how one ended. A member that sees this
    /// takes part, even with a workload at rest or absent.
    pub fn seeks(&self) -> bool {
        self.awaits_vote() || !self.votes.is_empty() || !self.passed.is_empty()
    }

    /// Whether anything is left to do for it, whatever the workload looks like.
    pub fn is_open(&self) -> bool {
        self.is_unsettled() || !self.looks.is_empty()
    }

    /// The same without what is looked for at the edge, which holds up nothing.
    pub fn is_unsettled(&self) -> bool {
        self.phase == Phase::Rolling
            || self.all_kept().next().is_some()
            || !self.untold.is_empty()
            || self.awaits_vote()
            || !self.passed.is_empty()
    }

    /// Its rollout is neither voted for nor closed.
    pub fn is_in_flight(&self) -> bool {
        self.phase == Phase::Rolling || self.awaits_vote()
    }

    /// Complete, news, and neither voted for nor closed.
    pub fn awaits_vote(&self) -> bool {
        self.phase == Phase::Complete
            && self.change != Change::Baseline
            && self.vote_for(self.seq).is_none()
            && self.seq > self.closed
    }

    /// The newest of what it has completed and waits with for the other members.
    pub fn awaiting(&self) -> Option<Code<'_>> {
        let passed = self.passed.iter().rev().find(|passed| self.vote_for(passed.seq).is_none());
        if self.awaits_vote() { Some(self.code()) } else { passed.map(super::Passed::code) }
    }
}

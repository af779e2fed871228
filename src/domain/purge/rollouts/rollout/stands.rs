//! The unmet condition of a rollout by a sight of its workload, if any. Several stages ask for it.
//!
//! Not for what follows; that is `observe`, `barrier` and `vote`.

use std::time::Duration;

use crate::records::record::Phase;
use crate::rollouts::rollout::Rollout;
use crate::workloads::workload::Workload;
use kernel::machine::Timestamp;
use kernel::reported::{Standing, Wait};

impl Rollout {
    /// Whether the present rollout still has, by this look, what it had when its predicate held.
    pub(super) fn still_stands(&mut self, now: Timestamp, workload: &Workload) -> bool {
        match (workload.standing(self.policy.zero_is_complete), self.record.draft.as_ref().map(|draft| draft.seq)) {
            (Standing::DeadlineExceeded { .. }, _) | (_, None) => false,
            (Standing::Complete, _) => true,
            // The answer came to another rollout, which has not stood yet.
            (Standing::Waiting(_), Some(_))
                if self.record.draft.as_ref().is_some_and(|draft| draft.phase != Phase::Complete) =>
            {
                false
            }
            (Standing::Waiting(_), Some(seq)) => {
                // An earlier life has seen it, and does not say with how many pods: those of now are wanted.
                self.barrier.stands(now, seq, Duration::ZERO, workload);
                self.barrier.lacks(now, workload, &self.policy).is_none()
            }
        }
    }

    /// The unmet condition of a rollout whose predicate has held; if this life has not seen it hold, the one of its
    /// sight.
    pub(super) fn misses(&self, now: Timestamp, workload: &Workload) -> Option<Wait> {
        let seq = self.record.draft.as_ref().map(|draft| draft.seq);
        match workload.standing(self.policy.zero_is_complete) {
            Standing::Waiting(_) if seq.is_some_and(|seq| self.barrier.has_stood(seq)) => {
                self.barrier.lacks(now, workload, &self.policy)
            }
            Standing::Waiting(wait) => Some(wait),
            Standing::Complete | Standing::DeadlineExceeded { .. } => None,
        }
    }
}

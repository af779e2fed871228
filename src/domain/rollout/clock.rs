//! The rollout's clock: it counts what counts towards a timeout, stands still while that is wanted, and survives restarts in the
//! record.

use std::time::Duration;

use crate::domain::machine::{Timestamp, millis};
use crate::domain::policy::Policy;
use crate::domain::record::Record;
use crate::domain::rollout::Rollout;
use crate::domain::workload::Workload;

/// How often the elapsed part of the rollout timeout is stored: a restart forgets at most this much of it.
pub(super) const ELAPSED_STORED_EVERY: Duration = Duration::from_secs(60);

/// What the Deployment controller is given beyond a Deployment's own deadline, to say that it has passed: its report and the
/// look that confirms it take seconds, an overloaded controller up to a minute.
const DEADLINE_MARGIN: Duration = Duration::from_secs(60);

impl Rollout {
    /// The time waited for this rollout so far, not counting pauses.
    pub(super) fn elapsed(&self, now: Timestamp) -> Duration {
        let stored = self.record.draft.as_ref().map_or(Duration::ZERO, Record::elapsed);
        self.running_since.map_or(stored, |since| stored.saturating_add(now.since(since)))
    }

    /// Moves what has elapsed into the draft, and lets the clock run on or stand still.
    pub(super) fn keep_time(&mut self, now: Timestamp, runs: bool) {
        let elapsed = self.elapsed(now);
        if let Some(draft) = &mut self.record.draft {
            draft.elapsed_ms = millis(elapsed);
        }
        self.running_since = runs.then_some(now);
    }

    pub(super) fn timeout(&self) -> Duration {
        timeout(self.workload(), &self.policy)
    }
}

/// How long a rollout may take: what its owner says by annotation, as it is; else `rollout.timeout`, or longer where the
/// Deployment itself gives its pods longer.
pub fn timeout(workload: Option<&Workload>, policy: &Policy) -> Duration {
    let Some(tuning) = workload.map(|workload| &workload.tuning) else { return policy.rollout_timeout };
    let own = tuning.own_deadline.map(|deadline| deadline.saturating_add(DEADLINE_MARGIN));
    tuning.rollout_timeout.unwrap_or_else(|| own.unwrap_or_default().max(policy.rollout_timeout))
}

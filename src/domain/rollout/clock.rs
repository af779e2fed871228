//! The rollout's clock: it counts what counts towards a timeout, stands still while that is wanted, and survives restarts in the
//! record.

use std::time::Duration;

use crate::domain::machine::{Timestamp, millis};
use crate::domain::record::Record;
use crate::domain::rollout::Rollout;

/// How often the elapsed part of the rollout timeout is stored: a restart forgets at most this much of it.
pub(super) const ELAPSED_STORED_EVERY: Duration = Duration::from_secs(60);

impl Rollout {
    /// The time waited for this rollout so far, not counting pauses.
    pub(super) fn elapsed(&self, now: Timestamp) -> Duration {
        let stored = self.draft.as_ref().map_or(Duration::ZERO, Record::elapsed);
        self.running_since.map_or(stored, |since| stored.saturating_add(now.since(since)))
    }

    /// Moves what has elapsed into the draft, and lets the clock run on or stand still.
    pub(super) fn keep_time(&mut self, now: Timestamp, runs: bool) {
        let elapsed = self.elapsed(now);
        if let Some(draft) = &mut self.draft {
            draft.elapsed_ms = millis(elapsed);
        }
        self.running_since = runs.then_some(now);
    }

    pub(super) fn timeout(&self) -> Duration {
        self.workload().and_then(|workload| workload.tuning.rollout_timeout).unwrap_or(self.policy.rollout_timeout)
    }
}

//! Whether a look at drift has said what is.

use objects::repo::spec::OnDrift;
use objects::repo::status::{ConditionKind, Phase};

use super::world::{State, World};

impl State {
    /// Whether what is there is another thing than what was applied.
    pub fn has_drifted(&self) -> bool {
        // What drifts twice is as it was.
        self.drift % 2 != self.fixed % 2
    }

    /// What the status says of drift.
    pub fn says_drifted(&self) -> Option<bool> {
        self.object.status.conditions.iter().find(|one| one.kind == ConditionKind::Drifted)?.holds
    }

    /// Whether the status says what has drifted by now, and people were told; or it is put right.
    pub fn is_drift_known(&self, world: &World) -> bool {
        let run = self.object.status.run.as_ref().filter(|run| run.phase == Phase::Succeeded);
        let (Some(then), Some(run)) = (world.terms.drift, run) else { return true };
        let is_left = then == OnDrift::Tell && self.past.is_drift_told(run.attempt.seq);
        self.object.stopped || self.says_drifted() == Some(self.has_drifted()) && (is_left || !self.has_drifted())
    }
}

//! Which run matters now, and what its Jobs are for.
//!
//! Not for what becomes of it.

use crate::repo::status::{Action, JobRef, Phase, Run, Status};

impl Status {
    /// The run whose Job matters now: a destroy, or a look at drift, while there is one, for nothing else runs beside it.
    pub fn present(&self) -> Option<&Run> {
        self.destroy.as_ref().or(self.look()).or(self.run.as_ref())
    }

    pub(super) fn present_mut(&mut self) -> Option<&mut Run> {
        let look = self.drift.as_mut().and_then(|drift| drift.look.as_mut());
        self.destroy.as_mut().or(look).or(self.run.as_mut())
    }

    /// The newest run that changes something, or is to: nothing follows on a destroy.
    pub fn newest(&self) -> Option<&Run> {
        self.destroy.as_ref().or(self.run.as_ref())
    }

    pub(super) fn newest_mut(&mut self) -> Option<&mut Run> {
        self.destroy.as_mut().or(self.run.as_mut())
    }
}

impl Run {
    /// Its newest Job, and what that does or did. While it waits for the next one to be ordered, the attempt is already that of the next
    /// one: then only a Job that planned is known for what it did.
    pub fn newest_job(&self) -> Option<(&JobRef, Action)> {
        let job = self.job.as_ref()?;
        if self.plan.as_ref().is_some_and(|plan| plan.job == job.name) {
            return Some((job, self.attempt.action.planning()));
        }
        (self.phase != Phase::Waiting).then_some((job, self.attempt.action))
    }
}

impl Action {
    /// Whether it changes what is there.
    pub const fn is_change(self) -> bool {
        matches!(self, Self::Apply | Self::Destroy)
    }

    /// Whether it is of a destroy.
    pub const fn is_of_destroy(self) -> bool {
        matches!(self, Self::DestroyPlan | Self::Destroy)
    }

    /// The action that makes its plan.
    pub const fn planning(self) -> Self {
        if self.is_of_destroy() { Self::DestroyPlan } else { Self::Plan }
    }
}

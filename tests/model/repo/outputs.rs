//! The Secret that an apply writes its outputs to.

use objects::repo::outputs::Outputs;
use objects::repo::spec::Approving;
use objects::repo::status::{Action, ConditionKind, Phase, Status};

use super::outside::Truth;
use super::world::{State, World};

impl World {
    pub fn outputs(&self) -> Option<Outputs> {
        self.terms.outputs.then(|| Outputs { secret: "outputs".to_owned(), names: vec!["vpc_id".to_owned()] })
    }
}

impl State {
    /// A status is about to be durable: it says that a commit is applied only when the Secret has its outputs.
    pub fn judge_outputs(&mut self, world: &World, status: &Status) {
        let mut ready = status.conditions.iter().filter(|one| one.kind == ConditionKind::Ready);
        let is_ready = ready.any(|ready| ready.holds == Some(true));
        let applied = status.run.as_ref().filter(|run| run.phase == Phase::Succeeded && is_ready);
        let is_written = applied.is_none_or(|run| self.past.written.as_ref() == Some(&run.revision));
        self.past.unwritten |= world.terms.outputs && !is_written;
    }

    /// Whether the plan of a Job has nothing in it.
    pub fn is_nothing_planned(&self, world: &World, truth: &Truth) -> bool {
        match truth.job.attempt.action {
            Action::Drift => !self.has_drifted(),
            Action::DestroyPlan | Action::Destroy => !self.past.standing,
            Action::Plan | Action::Apply => {
                let is_there = self.past.applied.as_ref() == Some(&truth.job.revision);
                world.terms.outputs && world.approval == Approving::Plan && is_there && !self.has_drifted()
            }
        }
    }
}

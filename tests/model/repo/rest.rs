//! Whether a Repo comes to rest: what is wanted is there, or a person knows what holds it.

use kernel::machine::Machine;
use objects::repo::spec::Approving;
use objects::repo::status::{Condition, ConditionKind, Phase};

use super::action::{Action, Faults};
use super::outside::Truth;
use super::world::{State, World, image, revision};

/// Steps in which everything comes to rest.
const STEPS: usize = 300;

impl State {
    /// Whether the newest commit is applied, and the status says so; or a person has to act and was told.
    fn is_done(&self, world: &World) -> bool {
        if self.object.leaving.deleting {
            return self.is_parted();
        }
        let head = revision(world.head[self.head]);
        let status = &self.object.status;
        let is_held = |one: &Condition| one.kind == ConditionKind::Stalled && one.reason == "JobSuspended";
        if status.conditions.iter().any(is_held) {
            // A commit waits behind it, or it is the newest.
            return self.jobs.iter().any(|truth| !truth.gone && truth.job.marked && truth.job.suspended);
        }
        let says = |reason: &str| status.conditions.iter().any(|one| one.reason == reason);
        let is_held_up = (says("GateClosed") && !self.open)
            || (says("Suspended") && self.object.stopped)
            || (says("ErrResourceExists") && self.jobs.iter().any(|truth| truth.foreign && !truth.gone))
            || self.is_stuck(world);
        if world.terms.asks && !self.object.leaving.held {
            return false;
        }
        if is_held_up || self.is_locked_out() {
            return true;
        }
        if !self.is_drift_known(world) {
            return false;
        }
        if self.is_passed_over(world) {
            return true;
        }
        let Some(run) = status.run.as_ref().filter(|run| run.revision == head) else { return false };
        let is_written = !world.terms.outputs || self.past.written.as_ref() == Some(&head);
        let is_applied = run.phase == Phase::Succeeded && self.past.applied.as_ref() == Some(&head) && is_written;
        let is_over = is_applied || self.is_planned(world);
        (is_over || self.past.is_told(status)) && self.is_reported(world, &head, is_over)
    }

    /// Whether the newest commit is planned, where nothing may be applied, and people were told.
    pub fn is_planned(&self, world: &World) -> bool {
        let (head, status) = (revision(world.head[self.head]), &self.object.status);
        let Some(run) = status.run.as_ref().filter(|run| run.revision == head) else { return false };
        let is_ready = |one: &Condition| one.kind == ConditionKind::Ready && one.holds == Some(true);
        let is_told = status.conditions.iter().any(is_ready) && self.past.was_planned(run.attempt.seq);
        world.approving(&self.object) == Approving::Never && run.phase == Phase::Planned && is_told
    }

    /// Whether what is wanted cannot run, and a person was told that it takes long.
    fn is_stuck(&self, world: &World) -> bool {
        let told = self.object.status.late.is_some_and(|late| late.told);
        let (head, image) = (revision(world.head[self.head]), image(self.object.edition));
        let is_wanted = |truth: &Truth| truth.job.revision == head && truth.runs_image(&image);
        told && self.jobs.iter().any(|truth| truth.stuck && !truth.gone && is_wanted(truth))
    }

    /// Whether the newest commit was applied, and nothing else is to come.
    pub fn is_applied(&self, world: &World) -> bool {
        let head = revision(world.head[self.head]);
        self.head + 1 == world.head.len() && (self.past.applied == Some(head) || self.is_passed_over(world))
    }

    /// Whether, without further faults, the newest commit is applied, or a person was told what holds it.
    pub fn settles(&self, world: &World) -> bool {
        let mut steady = Vec::new();
        self.steady(world, &mut steady);
        if steady.iter().any(|action| !matches!(action, Action::Wait(_))) {
            // The state after it is judged.
            return true;
        }
        let patient = World { faults: Faults { waits: 1, ..world.faults }, ..world.clone() };
        let mut end = self.clone();
        for _ in 0..STEPS {
            let mut steady = Vec::new();
            end.waits = 0;
            end.steady(&patient, &mut steady);
            let is_quiet = steady.iter().all(|action| matches!(action, Action::Wait(_)));
            if is_quiet && end.is_done(world) {
                return end.past.broken.is_empty();
            }
            let earliest = |action: &&Action| match action {
                Action::Wait(worker) => end.workers[*worker].machine.next_deadline(),
                _ => None,
            };
            let Some(next) = steady.iter().min_by_key(earliest).copied() else { return false };
            end.take(&patient, next);
        }
        false
    }
}

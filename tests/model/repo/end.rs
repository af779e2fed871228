//! How a Job and its pod end.

use objects::repo::job::{End, PLAN_DIFFERS, Pods, Step, StepKind, StepState};
use objects::repo::plan::{Message, Planned};
use objects::repo::spec::{Approving, OnDrift};
use objects::repo::status::Action;

use super::action::Fate;
use super::outside::step;
use super::world::{Mutant, State, World, image};

impl State {
    /// A Job that runs ends.
    pub fn end(&mut self, world: &World, index: usize, fate: Fate) {
        let job = self.jobs[index].job.clone();
        let (seq, action) = (job.attempt.seq, job.attempt.action);
        let empty = self.is_nothing_planned(world, &self.jobs[index]);
        let fingerprint = self.fingerprint(action, empty);
        let planned = Planned { fingerprint: fingerprint.clone(), counts: None, empty };
        if action == Action::Drift && !empty && fate == Fate::Works {
            self.past.differ(&job, world.terms.drift == Some(OnDrift::Apply));
        }
        let locked = if fate == Fate::Before { None } else { self.meet_lock(world, index) };
        let apply_waits = Step { kind: StepKind::Apply, state: StepState::Waiting };
        let failed = End::Failed("PodFailurePolicy".to_owned(), String::new());
        let is_change = self.jobs[index].is_change();
        let approved = self.jobs[index].fingerprint.clone().filter(|_| locked.is_none());
        let differs = is_change && approved.is_some_and(|approved| approved != fingerprint);
        let is_waiting = locked.as_ref().is_some_and(|steps| steps.contains(&apply_waits));
        let begins = is_change && !differs && !is_waiting && fate != Fate::Before;
        if begins {
            self.past.judge_applied(&job, &fingerprint, empty, world.approval);
        }
        let (end, steps) = match (fate, locked) {
            (_, Some(steps)) => (failed, steps),
            (Fate::Before, None) => (failed, vec![step(StepKind::Source, 1, ""), apply_waits]),
            (_, None) if differs => {
                let said = Message::Differs(planned).to_json().unwrap();
                (failed, vec![step(StepKind::Verify, PLAN_DIFFERS, &said), apply_waits])
            }
            (Fate::Works, None) if is_change && world.terms.outputs => {
                (End::Complete, vec![step(StepKind::Apply, 0, ""), step(StepKind::Publish, 0, "")])
            }
            (Fate::Works, None) if is_change => (End::Complete, vec![step(StepKind::Apply, 0, "")]),
            (Fate::Works, None) => {
                self.past.plan(seq, empty && world.terms.outputs);
                let said = Message::Planned(planned).to_json().unwrap();
                (End::Complete, vec![step(StepKind::Report, 0, &said)])
            }
            (Fate::Broken, None) => (failed, vec![step(StepKind::Apply, 1, "")]),
            (Fate::Forgotten, None) => (failed, Vec::new()),
            (Fate::Lingers, None) => (failed, vec![Step { kind: StepKind::Apply, state: StepState::Running }]),
            (Fate::Unwritten, None) => {
                (failed, vec![step(StepKind::Apply, 0, ""), step(StepKind::Publish, 1, "no such Secret")])
            }
        };
        let is_done = end == End::Complete;
        if begins {
            self.change(world, index, is_done, is_done || steps.contains(&step(StepKind::Apply, 0, "")));
        }
        let is_report = is_change || world.approving(&self.object) == Approving::Never;
        if is_report || !is_done {
            self.note_end(world, &job.revision, is_done);
        }
        let truth = &mut self.jobs[index];
        truth.changed();
        truth.alive = fate == Fate::Lingers && begins;
        if truth.orphaned {
            (truth.alive, truth.steps) = (false, Vec::new());
            return self.publish_pod(world, index);
        }
        let pods = Pods { ended: u32::from(!truth.alive), ..Pods::default() };
        (truth.job.end, truth.job.pods, truth.steps) = (Some(end), pods, steps);
        self.publish(world, index, None);
        self.publish_pod(world, index);
    }

    /// The user's `apply` of a Job has changed what is there: all of it if it `works`, whether or not its Job `is_done` with that.
    fn change(&mut self, world: &World, index: usize, is_done: bool, works: bool) {
        let truth = &self.jobs[index];
        let (seq, revision) = (truth.job.attempt.seq, truth.job.revision.clone());
        let is_destroy = truth.job.attempt.action == Action::Destroy;
        if !is_done {
            self.past.fail(seq, if is_destroy { 0 } else { world.terms.retries });
        }
        if is_destroy {
            self.past.standing &= !works;
            self.past.razed |= works;
            return;
        }
        self.past.standing |= world.terms.asks;
        if works {
            self.past.owed = truth.image != image(self.object.edition);
            self.past.applied = Some(revision.clone());
            self.fixed = if world.terms.drift.is_some() || world.terms.outputs { self.drift } else { 0 };
        }
        if is_done && world.terms.outputs {
            self.past.written = Some(revision);
        }
    }

    /// What a plan would change by now.
    fn fingerprint(&self, action: Action, empty: bool) -> String {
        let is_destroy = matches!(action, Action::DestroyPlan | Action::Destroy);
        // What drifts twice is as it was.
        let digit = match (is_destroy, self.drift.is_multiple_of(2)) {
            _ if empty && action != Action::Drift => "0",
            (false, true) => "1",
            (false, false) => "2",
            (true, true) => "3",
            (true, false) => "4",
        };
        digit.repeat(64)
    }

    /// The pod of a Job that was told to end has ended.
    pub fn end_pod(&mut self, world: &World, index: usize) {
        let truth = &mut self.jobs[index];
        truth.alive = false;
        let (gone, withdrawn) = (truth.gone, std::mem::take(&mut truth.job.withdrawn));
        for step in truth.steps.iter_mut().filter(|step| step.state == StepState::Running) {
            step.state = StepState::Ended(143, String::new(), String::new());
        }
        if !truth.stuck && !truth.steps.is_empty() && !withdrawn {
            truth.steps = vec![step(StepKind::Apply, 143, "")];
        }
        if world.mutant == Mutant::EndUnseen {
            truth.steps =
                vec![step(StepKind::Source, 0, ""), Step { kind: StepKind::Apply, state: StepState::Waiting }];
        }
        // Its kubelet says how it ended, and then it goes.
        truth.gone = false;
        self.publish_pod(world, index);
        let truth = &mut self.jobs[index];
        (truth.gone, truth.job.withdrawn) = (gone, withdrawn);
        if gone || withdrawn {
            self.publish_pod(world, index);
        }
        let truth = &mut self.jobs[index];
        if !truth.gone && truth.job.end.is_none() {
            truth.job.pods = Pods { ended: 1, at_rest: true, ..Pods::default() };
            truth.changed();
            self.publish(world, index, None);
        }
    }
}

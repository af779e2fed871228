//! How a Job ended, and what follows for its run.

use std::time::Duration;

use crate::repo::Repo;
use crate::repo::job::{End, Job, PLAN_DIFFERS, Place, Pod, Step, StepKind, StepState, logs};
use crate::repo::lock::Lock;
use crate::repo::plan::{Message, Planned};
use crate::repo::spec::Approving;
use crate::repo::status::{Action, Phase, Plan};
use crate::repo::witness::Ran;
use kernel::machine::{Timestamp, millis};
use kernel::text;
use notices::notice::Kind;

/// Attempts that failed before an apply had begun: nothing has changed, so they are repeated, at first after so long …
const BEFORE_BASE: Duration = Duration::from_secs(30);
/// … and at last after so long.
const BEFORE_CAP: Duration = Duration::from_mins(30);

/// Longest pause between two applies.
const APPLIES_CAP: Duration = Duration::from_hours(1);

/// Longest pause between two attempts, in milliseconds.
pub(super) const REST_MAX_MS: i64 = 60 * 60 * 1_000;

/// Bytes of a container's words that are repeated.
const WORDS_BYTES_MAX: usize = 400;

/// The outcome of an ended Job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// It applied, and says this.
    Applied(String),
    /// There is nothing to apply, by this plan.
    Unchanged(Plan),
    /// This would be changed.
    Planned(Plan),
    /// It failed before anything was applied: why, and in which step, if it was in one.
    Before(String, Option<StepKind>),
    /// An apply had begun, or may have.
    Broken(String),
    /// It applied, and its outputs were not written: why, and in which step, if it was in one.
    Unpublished(String, Option<StepKind>),
}

/// Judges a Job whose pods have ended. `locked` has the words for a lock that is in the way.
fn outcome(job: &Job, pods: &[Pod], ran: Ran, locked: &dyn Fn(StepKind, &Lock) -> String) -> Outcome {
    let steps: Vec<&Step> = pods.iter().flat_map(|pod| &pod.steps).collect();
    let said = |kind: StepKind| {
        steps.iter().rev().find(|step| step.kind == kind).and_then(|step| match &step.state {
            StepState::Ended(code, _, message) => Some((*code, message.as_str())),
            StepState::Waiting | StepState::Running | StepState::Locked(..) => None,
        })
    };
    let planned = |message: &str| match Message::parse(message) {
        Ok(Message::Planned(planned) | Message::Differs(planned)) => {
            let Planned { fingerprint, counts, empty } = planned;
            let plan = Plan { fingerprint, counts, job: job.name.clone() };
            if empty { Outcome::Unchanged(plan) } else { Outcome::Planned(plan) }
        }
        Err(why) => Outcome::Before(format!("the plan was not reported: {why}"), Some(StepKind::Report)),
    };
    match (&job.end, job.attempt.action) {
        (Some(End::Complete), Action::Apply | Action::Destroy) => {
            let words = [StepKind::Apply, StepKind::Publish].map(|step| said(step).map(|(_, message)| shown(message)));
            Outcome::Applied(sentence(words.map(Option::unwrap_or_default)))
        }
        (Some(End::Complete), Action::Plan | Action::Drift | Action::DestroyPlan) => {
            planned(said(StepKind::Report).map_or("", |(_, message)| message))
        }
        (Some(End::Failed(reason, message)), action) => {
            if let Some((PLAN_DIFFERS, message)) = said(StepKind::Verify) {
                return planned(message);
            }
            let why = why(reason, message, pods, &steps, locked);
            let never_ran = pods.is_empty() && ran == Ran::Never;
            let is_begun = action.is_change() && !never_ran && has_begun(pods);
            let step = failed(&steps).map(|failed| failed.kind);
            let is_applied = matches!(said(StepKind::Apply), Some((0, _))) && is_unpublished(&steps);
            match is_begun {
                true if is_applied => Outcome::Unpublished(why, step),
                true => Outcome::Broken(why),
                false => Outcome::Before(why, step),
            }
        }
        (None, _) => Outcome::Before("it has not ended".to_owned(), None),
    }
}

/// Whether the user's `apply` has begun, or nothing can be said about it: only the kubelet knows what ran on its node.
fn has_begun(pods: &[Pod]) -> bool {
    let mut applies = pods.iter().flat_map(|pod| &pod.steps).filter(|step| step.kind == StepKind::Apply).peekable();
    let is_unsaid = applies.peek().is_none() || pods.iter().any(|pod| pod.place == Place::Node);
    is_unsaid || applies.any(|step| step.state != StepState::Waiting)
}

/// Whether outputs were to be written, and were not.
fn is_unpublished(steps: &[&Step]) -> bool {
    let is_done = |step: &Step| matches!(step.state, StepState::Ended(0, ..));
    steps.iter().any(|step| step.kind == StepKind::Publish && !is_done(step))
}

/// Why a Job failed: the first of its steps that did, or what was done to it from outside.
fn why(
    reason: &str,
    message: &str,
    pods: &[Pod],
    steps: &[&Step],
    locked: &dyn Fn(StepKind, &Lock) -> String,
) -> String {
    if reason == "DeadlineExceeded" {
        return "it took longer than runner.deadline".to_owned();
    }
    if let Some(disrupted) = pods.iter().find_map(|pod| pod.disrupted.as_ref()) {
        return format!("its pod was ended from outside: {disrupted}");
    }
    match failed(steps) {
        Some(Failed { kind, code, reason, said }) => {
            let message = match said {
                Said::Words(message) => shown(message),
                Said::Locked(lock) => locked(kind, lock),
            };
            let kind = kind.name();
            let reason = if reason.is_empty() || reason == "Error" { String::new() } else { format!(" ({reason})") };
            let message = if message.is_empty() { String::new() } else { format!(": {message}") };
            format!("step {kind} ended with code {code}{reason}{message}")
        }
        None => format!("{reason}: {}", shown(message)),
    }
}

/// A step that failed.
struct Failed<'a> {
    kind: StepKind,
    code: i32,
    reason: &'a str,
    said: Said<'a>,
}

/// Why a step failed.
enum Said<'a> {
    /// What it wrote.
    Words(&'a str),
    /// Another program holds this lock.
    Locked(&'a Lock),
}

/// The first step that failed.
fn failed<'a>(steps: &[&'a Step]) -> Option<Failed<'a>> {
    steps.iter().find_map(|step| match &step.state {
        StepState::Ended(code, reason, message) if *code != 0 => {
            Some(Failed { kind: step.kind, code: *code, reason, said: Said::Words(message) })
        }
        StepState::Locked(code, reason, lock) => {
            Some(Failed { kind: step.kind, code: *code, reason, said: Said::Locked(lock) })
        }
        StepState::Ended(..) | StepState::Waiting | StepState::Running => None,
    })
}

/// What an apply that is done says, and what was done after it.
fn sentence([applied, published]: [String; 2]) -> String {
    let applied = applied.trim_end_matches('.');
    let applied = if applied.is_empty() { "applied" } else { applied };
    if published.is_empty() { applied.to_owned() } else { format!("{applied}; {published}") }
}

fn shown(message: &str) -> String {
    text::clean(message.trim(), WORDS_BYTES_MAX)
}

/// The pause after so many failures, in milliseconds: doubling, up to the cap.
pub(super) fn doubled(base: Duration, cap: Duration, failures: u32) -> i64 {
    let factor = 1_u64.checked_shl(failures.saturating_sub(1).min(32)).unwrap_or(u64::MAX);
    i64::try_from(millis(base).saturating_mul(factor).min(millis(cap))).unwrap_or(i64::MAX)
}

impl Repo {
    /// Records what a Job came to.
    pub(super) fn conclude(&mut self, now: Timestamp, job: &Job, pods: &[Pod], ran: Ran) {
        let namespace = self.own.object.id.namespace.clone();
        let log = |step: StepKind| logs(&namespace, &job.name, step);
        let applied = log(StepKind::Apply);
        let outcome = outcome(job, pods, ran, &|step, lock| self.words_of_lock(step, lock));
        let is_of_destroy = job.attempt.action.is_of_destroy();
        match outcome {
            Outcome::Applied(_) if is_of_destroy => self.destroyed(now, &format!("destroyed; {applied}")),
            Outcome::Unchanged(_) if is_of_destroy => self.destroyed(now, "the plan finds nothing to destroy"),
            Outcome::Applied(said) => {
                let message = format!("{said}; {applied}");
                self.end(now, Phase::Succeeded, &message);
                self.announce(now, Kind::RunCompleted, "", &message);
            }
            Outcome::Unchanged(_) if job.attempt.action == Action::Drift => self.looked(now, None),
            Outcome::Planned(plan) if job.attempt.action == Action::Drift => self.looked(now, Some(plan)),
            // What follows on that is the spec's to say.
            Outcome::Unchanged(_) if self.own.spec().is_none() => self.plan_again(),
            Outcome::Unchanged(_) if self.own.spec().is_some_and(|spec| spec.approval == Approving::Never) => {
                self.is_planned(None);
            }
            Outcome::Unchanged(plan) if self.own.spec().is_some_and(|spec| spec.runner.outputs.is_some()) => {
                self.go_on_to_outputs(plan);
            }
            Outcome::Unchanged(_) => {
                self.end(now, Phase::Succeeded, "the plan changes nothing");
                self.announce(now, Kind::RunCompleted, "", "the plan changes nothing");
            }
            Outcome::Planned(plan) => {
                self.keep_changes(job, pods);
                self.is_planned(Some(plan));
            }
            Outcome::Before(why, step) => self.failed_before(now, &why, step.map(log)),
            Outcome::Broken(why) => self.broken(now, job, &format!("{why}; {applied}")),
            Outcome::Unpublished(why, step) => {
                let log = log(step.unwrap_or(StepKind::Publish));
                self.broken(now, job, &format!("applied, but its outputs were not written: {why}; {log}"));
            }
        }
        if matches!(job.attempt.action, Action::Plan | Action::Apply) {
            self.settle_lock(now, job, pods, ran);
        }
    }

    /// The plan changes nothing, and only an apply writes outputs: the Secret may lack them, as after an apply whose outputs were not
    /// written. An apply of a plan that changes nothing needs no yes, and its own plan is held to that.
    fn go_on_to_outputs(&mut self, plan: Plan) {
        let Some(run) = &mut self.own.status.draft.run else { return };
        run.phase = Phase::Waiting;
        run.attempt.action = Action::Apply;
        run.failing.before = 0;
        run.plan = Some(plan);
        run.message = "the plan changes nothing; its outputs are to be written".to_owned();
    }

    fn plan_again(&mut self) {
        let Some(run) = &mut self.own.status.draft.run else { return };
        run.phase = Phase::Waiting;
        run.message = "the plan changes nothing; it is made again when the spec can be used".to_owned();
    }

    /// The newest run has its plan, which says what would change, if anything.
    fn is_planned(&mut self, plan: Option<Plan>) {
        let Some(run) = self.own.status.draft.newest_mut() else { return };
        run.phase = Phase::Planned;
        run.failing.before = 0;
        (run.plan, run.approval) = (plan, None);
    }

    /// An attempt failed before an apply had begun: it is repeated by itself. `log`: the command that shows why.
    pub(super) fn failed_before(&mut self, now: Timestamp, why: &str, log: Option<String>) {
        if self.own.status.draft.look().is_some() {
            return self.missed_look(now, why, log);
        }
        let wall_ms = self.own.wall_ms(now);
        let Some(run) = self.own.status.draft.newest_mut() else { return };
        run.phase = Phase::Waiting;
        run.failing.before = run.failing.before.saturating_add(1);
        let rest = doubled(BEFORE_BASE, BEFORE_CAP, run.failing.before);
        run.failing.not_before_ms = Some(wall_ms.saturating_add(rest));
        let log = log.map(|log| format!("; {log}")).unwrap_or_default();
        let done = if run.attempt.action.is_of_destroy() { "destroyed" } else { "applied" };
        let message = format!("{why}. Nothing was {done}; it is tried again in {} s{log}", rest / 1_000);
        run.message.clone_from(&message);
        let (is_first, number) = (run.failing.before == 1, run.attempt.number.to_string());
        if is_first {
            self.announce(now, Kind::RunFailed, &number, &message);
        }
    }

    /// A Job was taken back, and no pod of it is left. `perhaps`: something of it may have run before.
    pub(super) fn taken_back(&mut self, now: Timestamp, job: &Job, perhaps: bool) {
        let name = &job.name;
        if perhaps {
            // It may have taken the lock away to which a person said yes, or have come past it.
            self.own.status.draft.lock = None;
        }
        match (perhaps, job.attempt.action) {
            (true, Action::Apply | Action::Destroy) => {
                let why = format!("Job {name} was taken back, and its step apply may have begun by then");
                self.broken(now, job, &why);
            }
            (_, Action::Drift) => self.give_up_look(),
            (true | false, Action::Plan | Action::DestroyPlan) | (false, Action::Apply | Action::Destroy) => {
                let Some(run) = self.own.status.draft.newest_mut() else { return };
                run.phase = Phase::Waiting;
                run.message = format!("Job {name} was taken back: nothing of it had run");
            }
        }
    }

    /// An apply had begun and failed.
    fn broken(&mut self, now: Timestamp, job: &Job, why: &str) {
        if job.attempt.action == Action::Destroy {
            return self.destroy_failed(now, Phase::Failed, why);
        }
        let (wall_ms, retry) = (self.own.wall_ms(now), self.own.spec().map(|spec| spec.retry));
        let Some(run) = &mut self.own.status.draft.run else { return };
        run.failing.applies = run.failing.applies.saturating_add(1);
        let number = job.attempt.number.to_string();
        match retry.filter(|retry| run.failing.applies <= retry.limit) {
            Some(retry) => {
                let rest = doubled(retry.backoff, APPLIES_CAP, run.failing.applies);
                run.phase = Phase::Waiting;
                run.failing.not_before_ms = Some(wall_ms.saturating_add(rest));
                let message = format!("{why}. It is tried again in {} s", rest / 1_000);
                run.message.clone_from(&message);
                self.announce(now, Kind::RunFailed, &number, &message);
            }
            None => {
                self.end(now, Phase::Failed, why);
                self.announce(now, Kind::RunFailed, &number, why);
            }
        }
    }
}

//! Destroying on deletion: a Repo with our finalizer stays until a person has said yes to a plan of what would be destroyed, or no.
//!
//! ```text
//! deleted ─ what runs has ended ─▶ Waiting ─▶ Starting ─▶ Started(plan) ─▶ Planned ── yes to the fingerprint; gates ──▶ Starting ─▶ Started(destroy)
//!    │                                ▲                        │              ▲                                                      │
//!    │                                │ it could not be planned┤              └────────── its own plan differs: another ticket ──────┤
//!    │                                └── yes, once more ── Failed, Lost ◀── the destroy had begun ──────────────────────────────────┤
//!    │                                                         └── nothing to destroy ──▶ Succeeded ◀── destroyed ──────────────────┘
//!    └── a no, onDelete: Keep, or nothing was applied ──▶ let go     └──▶ let go, once that is durable
//! ```
//!
//! - It is a run of its own beside the newest one, which stays what it was: nothing of a destroy reads as applied.
//! - Each destroy has a yes of its own, to one fingerprint; approval: Auto, or a yes to an apply, is none.
//! - The object is let go only while nothing of it may run: Kubernetes collects its Jobs then.
//! - What was applied under another folder or workspace than the spec has now is not guessed at.
//!
//! Not for the finalizer itself; that is `finalizer`. Its Jobs go the way of all others: `run`, `follow`, `outcome`.

use std::collections::BTreeMap;

use crate::repo::job::Job;
use crate::repo::run::Stand;
use crate::repo::show::{before_log, condition};
use crate::repo::spec::Spec;
use crate::repo::status::{Action, Attempt, Condition, ConditionKind, Ended, Failing, Phase, Question, Run, Terms};
use crate::repo::{Effect, Repo};
use crate::status::HISTORY_MAX;
use kernel::id::{CommitId, ObjectId};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// How long a Repo whose destroy has ended stays for its last notices, in milliseconds.
const TOLD_WITHIN_MS: i64 = 30_000;

/// Ended Jobs of a destroy that are kept, for their logs; all go with the Repo.
const KEPT: usize = 3;

/// Why nothing is planned where the spec names another state than what was applied.
const ELSEWHERE: &str =
    "path or workspace was changed after the last apply, so it is not clear what is to be destroyed: put them back";

/// What was applied last.
struct Applied {
    revision: CommitId,
    /// The hash of its folder and workspace; empty if that is not known.
    work: String,
}

impl Repo {
    /// Whether it is being deleted, and stays until we let it go.
    pub(super) const fn is_leaving(&self) -> bool {
        self.own.object.is_leaving()
    }

    /// Whether nothing is destroyed, as a person has said since it was deleted, or the spec says.
    fn is_kept(&self) -> bool {
        self.own.object.answers.keep.as_ref() == Some(&self.own.object.uid)
            || self.own.spec().is_some_and(|spec| spec.runner.destroy.is_none())
    }

    /// Whether its Jobs have to be known, for a destroy that is to begin.
    pub(super) fn is_destroy_next(&self) -> bool {
        let is_begun = self.own.status.draft.destroy.is_some();
        let is_free = self.own.spec().is_some_and(|spec| spec.suspended.is_none());
        self.is_leaving() && !is_begun && is_free && !self.is_kept() && self.applied_last().is_some()
    }

    /// Carries on what keeps a Repo that is being deleted.
    pub(super) fn leave(&mut self, now: Timestamp, effects: &mut Vec<Effect>) -> Stand {
        self.stop_weighing();
        let draft = &mut self.own.status.draft;
        if draft.destroy.is_none() {
            // What was asked before is void: nothing is applied any more, and no lock taken away for it.
            (draft.waiting, draft.lock) = (None, None);
        }
        let before = self.own.status.draft.present().map(|run| (run.attempt, run.phase));
        let stand = self.leave_once(now, effects);
        // A decision that rests on nothing else is taken at once.
        if before == self.own.status.draft.present().map(|run| (run.attempt, run.phase)) {
            return stand;
        }
        self.leave_once(now, effects)
    }

    fn leave_once(&mut self, now: Timestamp, effects: &mut Vec<Effect>) -> Stand {
        if self.own.status.draft.present().map(phase) == Some(Phase::Started) {
            return self.started(now, effects);
        }
        if self.is_kept() {
            return self.let_go(now, effects);
        }
        let Some(spec) = self.own.spec().cloned() else { return Stand::Done };
        let Some(run) = self.own.status.draft.destroy.clone() else {
            return match self.applied_last() {
                Some(applied) => self.begin_destroy(now, &spec, applied),
                None => self.let_go(now, effects),
            };
        };
        if run.phase == Phase::Succeeded {
            return self.let_go(now, effects);
        }
        let is_unstarted = matches!(run.phase, Phase::Waiting | Phase::Starting | Phase::Planned);
        if is_unstarted && run.terms.settings != spec.destroy_settings() {
            // Another yes is needed, to what would be destroyed now.
            let Some(applied) = self.applied_last() else { return Stand::Done };
            return self.begin_destroy(now, &spec, applied);
        }
        if let Some(why) = self.delayed(&spec) {
            return why;
        }
        match run.phase {
            Phase::Waiting => self.waiting_to_destroy(now, &spec, run, effects),
            Phase::Starting => self.starting(now, &spec, effects),
            Phase::Planned => self.planned_destroy(now, &spec, run, effects),
            Phase::Failed | Phase::Lost => self.destroy_again(now, &spec, run, effects),
            Phase::Started | Phase::Succeeded | Phase::Superseded => Stand::Done,
        }
    }

    /// Why nothing new is started now, whatever the destroy waits for.
    fn delayed(&self, spec: &Spec) -> Option<Stand> {
        if let Some(why) = &spec.suspended {
            return Some(Stand::Suspended(why.clone()));
        }
        let words = "Kubernetes still sees to its Jobs, as --cascade says: a Job that is made now would go with them";
        self.own.object.finalizers.cascading.then(|| Stand::Stays(words.to_owned()))
    }

    /// What was applied last, or may have been: the commit of the newest run whose apply began. `None` only where it is certain that
    /// no apply ever began.
    fn applied_last(&self) -> Option<Applied> {
        let draft = &self.own.status.draft;
        let run = draft.run.as_ref()?;
        let of_run = || Applied { revision: run.revision.clone(), work: run.terms.work.clone() };
        let has_begun = match run.phase {
            Phase::Succeeded | Phase::Failed | Phase::Lost | Phase::Started => true,
            Phase::Waiting | Phase::Starting | Phase::Planned | Phase::Superseded => run.failing.applies > 0,
        };
        // After a yes a run that failed begins anew, and only the history says that it had begun before.
        let has_failed =
            |ended: &Ended| ended.seq == run.attempt.seq && matches!(ended.outcome, Phase::Failed | Phase::Lost);
        if has_begun || draft.history.iter().any(has_failed) {
            return Some(of_run());
        }
        let of_others = |ended: &&Ended| ended.seq != run.attempt.seq && ended.outcome != Phase::Planned;
        let mut past = draft.history.iter().rev().filter(of_others);
        if let Some(ended) = past.clone().find(|ended| ended.outcome != Phase::Superseded) {
            return Some(Applied { revision: ended.revision.clone(), work: ended.work.clone() });
        }
        // One that was superseded may have begun an apply that failed, and older ones are forgotten.
        let is_unknown = past.next().is_some() || draft.history.len() >= HISTORY_MAX;
        is_unknown.then(of_run)
    }

    /// A destroy is of a Repo that is being deleted: in one that was restored to before that, none is asked about or begun. One that runs
    /// is followed to its end.
    pub(super) fn drop_destroy(&mut self) {
        let draft = &mut self.own.status.draft;
        if !self.own.object.deleting && draft.destroy.as_ref().is_some_and(|run| run.phase != Phase::Started) {
            (draft.destroy, draft.waiting) = (None, None);
        }
    }

    /// Whether a Job may be started by what is durable: how it ended is durable before its run is left.
    fn was_started_last(&self) -> bool {
        self.own.status.durable.present().map(phase) == Some(Phase::Started)
    }

    /// Begins a destroy, in the place of a run, a look or a destroy of which nothing runs.
    fn begin_destroy(&mut self, now: Timestamp, spec: &Spec, applied: Applied) -> Stand {
        if let Some(why) = self.delayed(spec) {
            return why;
        }
        if !applied.work.is_empty() && applied.work != spec.work() {
            return Stand::Stays(ELSEWHERE.to_owned());
        }
        if self.was_started_last() {
            return Stand::Ending;
        }
        let seq = match self.next_number(now) {
            Ok(seq) => seq,
            Err(stand) => return stand,
        };
        if self.own.status.draft.run.as_ref().is_some_and(Run::is_open) {
            let message = "the Repo is being deleted";
            self.end(now, Phase::Superseded, message);
            self.announce(now, Kind::RunSuperseded, "", message);
        }
        let draft = &mut self.own.status.draft;
        draft.seq = seq;
        (draft.waiting, draft.lock, draft.next, draft.late) = (None, None, None, None);
        draft.destroy = Some(Run {
            attempt: Attempt { seq, number: 0, action: Action::DestroyPlan },
            revision: applied.revision,
            terms: Terms { work: spec.work(), settings: spec.destroy_settings() },
            phase: Phase::Waiting,
            job: None,
            plan: None,
            approval: None,
            failing: Failing::default(),
            started_ms: None,
            ended_ms: None,
            skipped: Vec::new(),
            message: String::new(),
        });
        self.keeper.restart();
        Stand::Making(None)
    }

    /// No Job of the destroy is under way: why the next one does not start, or that it is ordered. What its applies needed may be on
    /// its way out, too, so that holds no destroy up.
    fn waiting_to_destroy(&mut self, now: Timestamp, spec: &Spec, run: Run, effects: &mut Vec<Effect>) -> Stand {
        let is_opened = run.approval.as_ref().is_some_and(|approval| approval.overrides);
        if run.attempt.action == Action::Destroy && !is_opened {
            let mut closed = Vec::new();
            self.judged_elsewhere(now, spec, &run, effects, &mut closed);
            if !closed.is_empty() {
                return Stand::Gates(closed);
            }
        }
        self.order_next(now, run)
    }

    /// A plan of what would be destroyed waits for a yes.
    fn planned_destroy(&mut self, now: Timestamp, spec: &Spec, mut run: Run, effects: &mut Vec<Effect>) -> Stand {
        let Some(yes) = self.answered(now, &run, Question::Destroy) else { return Stand::Asked(Question::Destroy) };
        run.approval = Some(yes);
        (run.phase, run.attempt.action) = (Phase::Waiting, Action::Destroy);
        self.own.status.draft.destroy = Some(run.clone());
        self.waiting_to_destroy(now, spec, run, effects)
    }

    /// A destroy that failed, or whose Job is gone: after a yes it is planned again, and asked about.
    fn destroy_again(&mut self, now: Timestamp, spec: &Spec, mut run: Run, effects: &mut Vec<Effect>) -> Stand {
        if run.terms.work != spec.work() {
            return Stand::Stays(ELSEWHERE.to_owned());
        }
        if self.answered(now, &run, Question::DestroyAgain).is_none() {
            return Stand::Asked(Question::DestroyAgain);
        }
        run.attempt.action = Action::DestroyPlan;
        run.terms = Terms { work: spec.work(), settings: spec.destroy_settings() };
        (run.phase, run.failing) = (Phase::Waiting, Failing::default());
        (run.plan, run.approval, run.ended_ms) = (None, None, None);
        self.own.status.draft.late = None;
        self.own.status.draft.destroy = Some(run.clone());
        self.waiting_to_destroy(now, spec, run, effects)
    }

    /// Nothing is left to destroy.
    pub(super) fn destroyed(&mut self, now: Timestamp, message: &str) {
        self.end_destroy(now, Phase::Succeeded, message);
        self.announce(now, Kind::RunCompleted, "", message);
    }

    /// A destroy had begun and failed.
    pub(super) fn destroy_failed(&mut self, now: Timestamp, outcome: Phase, why: &str) {
        self.end_destroy(now, outcome, why);
        let number = self.own.status.draft.destroy.as_ref().map(|run| run.attempt.number.to_string());
        self.announce(now, Kind::RunFailed, &number.unwrap_or_default(), why);
    }

    /// A Job of the destroy is gone, and what it did is not known. A plan changes nothing, so nobody has to look at anything.
    pub(super) fn destroy_lost(&mut self, now: Timestamp, name: &str) {
        let is_plan = |run: &Run| run.attempt.action == Action::DestroyPlan;
        if self.own.status.draft.destroy.as_ref().is_some_and(is_plan) {
            return self.failed_before(now, &format!("Job {name} is gone"), None);
        }
        let why = format!("Job {name} is gone, and what it has destroyed is not known; look at what it was to destroy");
        self.destroy_failed(now, Phase::Lost, &why);
    }

    fn end_destroy(&mut self, now: Timestamp, outcome: Phase, message: &str) {
        let at_ms = self.own.wall_ms(now);
        self.own.status.draft.waiting = None;
        let Some(run) = &mut self.own.status.draft.destroy else { return };
        run.phase = outcome;
        run.ended_ms = Some(at_ms);
        message.clone_into(&mut run.message);
    }

    /// Whether the Job that may run is not wanted any more: nothing is applied in a Repo that is being deleted, and nothing destroyed
    /// where a person says so, or under other settings.
    pub(super) fn is_destroy_unwanted(&self) -> bool {
        let Some(run) = &self.own.status.draft.destroy else { return true };
        self.is_kept() || self.own.spec().is_some_and(|spec| run.terms.settings != spec.destroy_settings())
    }

    /// Takes the finalizer away, so that the object goes, and its Jobs with it. What is known is durable, and published if that can be.
    fn let_go(&mut self, now: Timestamp, effects: &mut Vec<Effect>) -> Stand {
        if self.was_started_last() {
            return Stand::Ending;
        }
        let status = &self.own.status;
        if !status.is_free(now)
            || status.draft.destroy.as_ref().map(phase) != status.durable.destroy.as_ref().map(phase)
        {
            return Stand::Making(None);
        }
        let ended_ms = status.draft.destroy.as_ref().and_then(|run| run.ended_ms);
        let until = ended_ms.map(|at| at.saturating_add(TOLD_WITHIN_MS)).filter(|_| !status.durable.untold.is_empty());
        let wall_ms = self.own.wall_ms(now);
        if let Some(until) = until.filter(|until| (wall_ms..=wall_ms.saturating_add(TOLD_WITHIN_MS)).contains(until)) {
            self.own.wake_at(self.at_wall(now, until.saturating_add(1)));
            return Stand::Stays("its last notices are being sent".to_owned());
        }
        self.hold(now, false, effects);
        Stand::Stays(match self.finalizing.call.last_reason() {
            Some(why) => format!("its finalizer cannot be taken away: {why}"),
            None => "its finalizer is being taken away".to_owned(),
        })
    }

    /// A Job of a destroy that is not kept. Only what is durably over.
    pub(super) fn spare_of_destroy<'a>(&self, known: &'a BTreeMap<String, Job>) -> Option<&'a Job> {
        let run = self.own.status.durable.destroy.as_ref()?;
        let order = |job: &Job| (job.attempt.seq, job.attempt.number);
        let newest = (run.attempt.seq, run.attempt.number);
        let is_present = |job: &Job| matches!(run.phase, Phase::Starting | Phase::Started) && order(job) == newest;
        let is_past = |job: &&Job| {
            job.attempt.action.is_of_destroy()
                && job.owner.as_ref() == Some(&self.own.object.uid)
                && !job.deleting
                && order(job) <= newest
                && !is_present(job)
                && run.plan.as_ref().is_none_or(|plan| plan.job != job.name)
        };
        let mut past: Vec<&Job> = known.values().filter(is_past).collect();
        if let Some(unstarted) = past.iter().find(|job| job.suspended && (!job.marked || job.withdrawn)) {
            return Some(unstarted);
        }
        past.retain(|job| job.is_over());
        past.sort_by_key(|job| std::cmp::Reverse(order(job)));
        past.into_iter().skip(KEPT).next_back()
    }

    /// What is so of a Repo that is being deleted and stays, in the place of whether its commit is applied.
    pub(super) fn leaving(&self, words: &str) -> Option<Condition> {
        if !self.is_leaving() {
            return None;
        }
        let run = self.own.status.draft.destroy.as_ref();
        let name = self.own.object.id.display_name();
        let remedy = format!("`allclear repo keep {name}` lets the Repo go and destroys nothing");
        let failed = run.filter(|run| matches!(run.phase, Phase::Failed | Phase::Lost));
        let (reason, words) = match (&self.stand, failed) {
            (Stand::Asked(_), Some(run)) => ("DestroyFailed", before_log(&run.message, &format!("{words}; {remedy}"))),
            (Stand::Asked(_), None) => ("WaitingForApproval", format!("{words}; {remedy}")),
            (Stand::Suspended(_), _) => ("Suspended", format!("{words}; nothing is destroyed; {remedy}")),
            (Stand::Gates(_), _) => ("GateClosed", words.to_owned()),
            (Stand::Resting, _) => ("DestroyFailed", before_log(words, &remedy)),
            (Stand::Stays(_), _) if self.is_going() => ("Leaving", words.to_owned()),
            (Stand::Stays(_), _) => ("Destroying", format!("{words}; {remedy}")),
            // Also where the namespace is being deleted, in which nothing can be made any more.
            (stand, _) if stand.is_trouble() => ("DestroyFailed", format!("{words}; nothing is destroyed; {remedy}")),
            _ => ("Destroying", words.to_owned()),
        };
        Some(condition(ConditionKind::Ready, Some(false), reason, &format!("it is being deleted: {words}")))
    }

    /// Whether nothing keeps it any more but its finalizer.
    fn is_going(&self) -> bool {
        let is_done = self.own.status.draft.destroy.as_ref().map(phase) == Some(Phase::Succeeded);
        is_done || self.is_kept() || self.applied_last().is_none()
    }
}

const fn phase(run: &Run) -> Phase {
    run.phase
}

/// What is known of a destroy after the object was restored: the newest that was seen, for what may run counts.
pub(super) fn restored_destroy(known: Option<Run>, lost: Option<Run>) -> Option<Run> {
    let newest = |run: &Run| (run.attempt.seq, run.attempt.number);
    [known, lost].into_iter().flatten().max_by_key(newest)
}

//! The life of the newest run: its beginning, its waits, and its Job, which is made, started and followed.

use std::fmt;

use crate::repo::concern::{Weighed, under};
use crate::repo::head::skipping;
use crate::repo::job::Job;
use crate::repo::spec::{Approving, Spec};
use crate::repo::status::{Action, Attempt, Ended, Failing, Head, JobRef, Phase, Question, Run, Terms};
use crate::repo::{Effect, Repo};
use crate::status::HISTORY_MAX;
use kernel::id::{CommitId, RunSeq};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// Where a Repo stands: what it waits for, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Stand {
    /// No commit is known yet.
    #[default]
    Looking,
    /// It is asked whether this commit changes anything that concerns the Repo, in words; or why nobody can say.
    Comparing(String, Option<String>),
    /// The newest run has ended, and is about the wanted commit.
    Done,
    /// A person stopped it.
    Suspended(String),
    /// Its Jobs are not known yet, for this reason.
    Listing(Option<String>),
    /// A failed attempt is paused.
    Resting,
    Gates(Vec<String>),
    /// A person is asked.
    Asked(Question),
    /// Its plan is made, and nothing is to follow.
    OnlyPlanned,
    /// This Job, or this pod, of an earlier run has not ended.
    Behind(String),
    /// Its Job is being made, or cannot be made for this reason.
    Making(Option<String>),
    /// Another's Job has this name.
    Taken(String),
    /// Its Job is being started, or cannot be for this reason.
    Starting(Option<String>),
    /// Its Job runs; what its pod says.
    Running(String),
    /// Nothing of its Job runs, and something else is wanted: it is taken back.
    Withdrawing(Option<String>),
    /// Its Job has ended, and a pod has not.
    Ending,
    /// Its Job was suspended by others.
    Held,
    /// Its Job is gone, and it is being found out whether a pod of it runs.
    Vanished,
    /// This Job, which looks at drift, has not ended.
    Looks(String),
    /// It is being deleted, and does not go yet for this reason.
    Stays(String),
}

impl Stand {
    /// Whether the wanted commit may be run next, though no run is open: it is not known yet if it concerns the Repo, or a look at drift
    /// ends first.
    pub(super) const fn is_before_a_run(&self) -> bool {
        matches!(self, Self::Comparing(..) | Self::Looks(_))
    }

    /// Whether it may last, and a person may have to end it.
    pub(super) const fn is_trouble(&self) -> bool {
        match self {
            Self::Behind(_) | Self::Taken(_) | Self::Held => true,
            Self::Listing(why) | Self::Making(why) | Self::Starting(why) | Self::Withdrawing(why) => why.is_some(),
            _ => false,
        }
    }
}

impl fmt::Display for Stand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = |f: &mut fmt::Formatter<'_>, what: &str, failed: &str, why: &Option<String>| match why {
            Some(why) => write!(f, "{failed}: {why}"),
            None => f.write_str(what),
        };
        match self {
            Self::Looking => f.write_str("the commit is being looked for"),
            Self::Comparing(what, None) => write!(f, "it is being looked at whether {what}"),
            Self::Comparing(what, Some(why)) => {
                write!(f, "it cannot be told whether {what}; {why}")
            }
            Self::Done => f.write_str("nothing is left to do"),
            Self::Suspended(why) => write!(f, "suspended: {why}"),
            Self::Listing(why) => {
                because(f, "its Jobs and pods are being listed", "its Jobs and pods cannot be listed", why)
            }
            Self::Resting => f.write_str("it is tried again after a pause"),
            Self::Gates(closed) => f.write_str(&closed.join("; ")),
            Self::Asked(question) => f.write_str(question.words()),
            Self::OnlyPlanned => f.write_str("its plan is made, and nothing is applied"),
            Self::Behind(what) => write!(f, "{what} of an earlier run has not ended"),
            Self::Stays(why) => f.write_str(why),
            Self::Looks(name) => write!(f, "Job {name}, which looks at drift, has not ended"),
            Self::Making(why) => because(f, "its Job is being made", "its Job cannot be made", why),
            Self::Taken(name) => {
                write!(
                    f,
                    "Resource {name:?} already exists and is not managed by Repo: remove that Job, or rename the Repo"
                )
            }
            Self::Starting(why) => because(f, "its Job is being started", "its Job cannot be started", why),
            Self::Running(words) => f.write_str(words),
            Self::Withdrawing(why) => because(
                f,
                "its Job did not run, and is not wanted any more: it is being taken back",
                "its Job did not run, and cannot be taken back",
                why,
            ),
            Self::Ending => f.write_str("its Job has ended, and its pod has not yet"),
            Self::Held => f.write_str(
                "its Job was started, and is suspended now; allclear did not do that and does not resume it",
            ),
            Self::Vanished => f.write_str("its Job is gone; its pods are looked for"),
        }
    }
}

impl Repo {
    /// Carries the newest run on, or begins the next.
    pub(super) fn conduct(&mut self, now: Timestamp, effects: &mut Vec<Effect>) -> Stand {
        self.adopt(now);
        let phase = self.own.status.draft.run.as_ref().map(|run| run.phase);
        let spec = self.own.object.spec.clone().ok();
        self.attend_look(now, spec.as_ref(), effects);
        if let (Some(spec), Some(head)) = (&spec, self.own.status.draft.head.clone())
            && phase != Some(Phase::Started)
            && self.is_news(spec, &head)
        {
            // How an attempt ended is durable before its run is left: nothing that may run is superseded.
            if self.own.status.draft.run.as_ref().is_some_and(Run::is_open) && self.was_started() {
                return Stand::Ending;
            }
            match self.weigh(now, spec, &head, effects) {
                Weighed::Run => return self.begin(now, spec, head),
                Weighed::Asking(why) => {
                    let what = format!("{} changes anything {}", head.revision.short(), under(&spec.source));
                    return Stand::Comparing(what, why);
                }
                Weighed::Unchanged => {}
            }
        } else {
            self.stop_weighing();
        }
        match (phase, &spec) {
            (Some(Phase::Started), _) => self.started(now, effects),
            // It was begun under another spec. The wanted commit takes its place as soon as that is known.
            (Some(Phase::Waiting | Phase::Starting), Some(spec)) if self.may_not_apply(spec) => Stand::Looking,
            (Some(Phase::Starting), Some(spec)) => match &spec.suspended {
                // Its Job may be refused for hours: nothing of it runs, so a person may still stop it.
                Some(why) => Stand::Suspended(why.clone()),
                None => self.starting(now, spec, effects),
            },
            (Some(Phase::Waiting), Some(spec)) => self.waiting(now, spec, effects),
            (Some(Phase::Planned), Some(spec)) if spec.approval == Approving::Never => self.only_planned(now, spec),
            (Some(Phase::Planned), Some(spec)) => self.planned(now, spec, effects),
            (Some(Phase::Failed | Phase::Lost), Some(spec)) => self.again_or_not(now, spec, effects),
            (Some(Phase::Succeeded), Some(spec)) => self.once_more(now, spec),
            (Some(_), _) => Stand::Done,
            (None, _) => Stand::Looking,
        }
    }

    /// Whether the newest run is durable as one whose Job may have been started.
    pub(super) fn was_started(&self) -> bool {
        let newest = self.own.status.draft.run.as_ref().map(|run| run.attempt.seq);
        let durable = self.own.status.durable.run.as_ref().filter(|run| run.phase == Phase::Started);
        durable.is_some_and(|run| Some(run.attempt.seq) == newest)
    }

    /// Whether the newest run is not about what is wanted now: another commit or other work, or, before anything of it runs, other
    /// settings. A run of the program before ours has no terms: its commit counts as run.
    pub(super) fn is_news(&self, spec: &Spec, head: &Head) -> bool {
        let draft = &self.own.status.draft;
        let Some(run) = &draft.run else { return true };
        let Terms { work, settings } = &run.terms;
        let is_unstarted = matches!(run.phase, Phase::Waiting | Phase::Starting | Phase::Planned);
        let is_other = run.revision != head.revision && draft.unchanged_head(&spec.source).is_none();
        is_other
            || run.phase == Phase::Superseded
            || (!work.is_empty() && *work != spec.work())
            || (is_unstarted && *settings != spec.settings())
    }

    /// Begins a run, in the place of one of which nothing runs.
    fn begin(&mut self, now: Timestamp, spec: &Spec, head: Head) -> Stand {
        if let Some(why) = &spec.suspended {
            // What it asks about the run before is not asked any more: a yes would do nothing.
            if self.own.status.is_free(now) {
                (self.own.status.draft.waiting, self.own.status.draft.lock) = (None, None);
            }
            return Stand::Suspended(why.clone());
        }
        let seq = match self.next_number(now) {
            Ok(seq) => seq,
            Err(stand) => return stand,
        };
        let mut skipped = self.supersede(now, &head.revision);
        if let Some(next) = self.own.status.draft.next.take() {
            let places = next.skipped.into_iter().chain([next.revision]);
            skipped = places.filter(|one| *one != head.revision).fold(skipped, skipping);
        }
        self.own.status.draft.seq = seq;
        self.own.status.draft.late = None;
        self.own.status.draft.unchanged = None;
        // A run that failed asks whether to run it again: another one has its place now.
        (self.own.status.draft.waiting, self.own.status.draft.lock) = (None, None);
        self.own.status.draft.run = Some(Run {
            attempt: Attempt { seq, number: 0, action: spec.approval.first() },
            revision: head.revision,
            terms: Terms { work: spec.work(), settings: spec.settings() },
            phase: Phase::Waiting,
            job: None,
            plan: None,
            approval: None,
            failing: Failing::default(),
            started_ms: None,
            ended_ms: None,
            skipped,
            message: String::new(),
        });
        self.keeper.restart();
        self.drifting.closed.clear();
        Stand::Making(None)
    }

    /// Ends an open newest run for another commit or other settings. Returns the commits that the next run replaces.
    fn supersede(&mut self, now: Timestamp, by: &CommitId) -> Vec<CommitId> {
        let Some(run) = self.own.status.draft.run.clone().filter(Run::is_open) else { return Vec::new() };
        let (message, skipped) = if run.revision == *by {
            ("what would run has changed: it is judged anew".to_owned(), run.skipped.clone())
        } else {
            (format!("{by} took its place"), skipping(run.skipped.clone(), run.revision.clone()))
        };
        self.end(now, Phase::Superseded, &message);
        self.announce(now, Kind::RunSuperseded, "", &message);
        skipped
    }

    /// The newest run has ended.
    pub(super) fn end(&mut self, now: Timestamp, outcome: Phase, message: &str) {
        let at_ms = self.own.wall_ms(now);
        let draft = &mut self.own.status.draft;
        let Some(run) = &mut draft.run else { return };
        run.phase = outcome;
        run.ended_ms = Some(at_ms);
        message.clone_into(&mut run.message);
        (draft.waiting, draft.lock) = (None, None);
        let by = run.approval.as_ref().and_then(|approval| approval.by.clone());
        let (seq, revision, skipped) = (run.attempt.seq, run.revision.clone(), run.skipped.clone());
        let work = run.terms.work.clone();
        draft.history.push(Ended { seq, revision, outcome, by, skipped, work, at_ms });
        let spare = draft.history.len().saturating_sub(HISTORY_MAX);
        draft.history.drain(..spare);
    }

    /// A started Job that the status does not know of: it was restored from a backup, or edited. What runs counts.
    fn adopt(&mut self, now: Timestamp) {
        let uid = &self.own.object.uid;
        let ours = |job: &&Job| {
            // A look applies nothing: one that is not known is waited for, and its answer is none.
            job.marked && job.owner.as_ref() == Some(uid) && matches!(job.attempt.action, Action::Plan | Action::Apply)
        };
        let known = self.jobs.known().into_iter().flat_map(|known| known.values());
        let Some(job) = known.filter(ours).max_by_key(|job| job.attempt).cloned() else { return };
        let newest = self.own.status.draft.run.as_ref().map(|run| run.attempt);
        if newest.is_some_and(|newest| (job.attempt.seq, job.attempt.number) <= (newest.seq, newest.number))
            || job.attempt.seq < self.own.status.draft.seq
            || !self.own.status.is_free(now)
        {
            return;
        }
        let work = self.own.spec().map(Spec::work).unwrap_or_default();
        let started_ms = Some(self.own.wall_ms(now));
        let draft = &mut self.own.status.draft;
        draft.seq = draft.seq.max(job.attempt.seq);
        (draft.waiting, draft.lock) = (None, None);
        let known = draft.run.take().filter(|run| run.attempt.seq == job.attempt.seq);
        let fresh = Run {
            attempt: job.attempt,
            revision: job.revision.clone(),
            terms: Terms { work, settings: String::new() },
            phase: Phase::Started,
            job: None,
            plan: None,
            approval: None,
            failing: Failing::default(),
            started_ms,
            ended_ms: None,
            skipped: Vec::new(),
            message: String::new(),
        };
        let jobref = Some(JobRef { name: job.name.clone(), uid: Some(job.uid.clone()) });
        let found = Run { attempt: job.attempt, phase: Phase::Started, job: jobref, ..known.unwrap_or(fresh) };
        draft.run = Some(found);
        self.give_up_look();
        self.forget_drift();
        self.jobs.witness.attend(&job.uid, true);
        let why = format!("Job {} was started and its status did not say so: it was restored, or edited", job.name);
        self.own.tell_faulty(now, &why);
    }

    /// A run of which no Job is under way: why its next one does not start, or that it is ordered.
    fn waiting(&mut self, now: Timestamp, spec: &Spec, effects: &mut Vec<Effect>) -> Stand {
        self.yes_to_unlock(now, spec);
        let Some(mut run) = self.own.status.draft.run.clone() else { return Stand::Done };
        if let Some(why) = &spec.suspended {
            return Stand::Suspended(why.clone());
        }
        if run.attempt.action == Action::Apply {
            if spec.approval == Approving::Revision && run.approval.is_none() {
                run.approval = self.answered(now, &run, Question::Revision);
                if run.approval.is_none() {
                    return Stand::Asked(Question::Revision);
                }
                self.own.status.draft.run = Some(run.clone());
            }
            let closed = self.closed_gates(now, spec, &run, effects);
            if !closed.is_empty() {
                return Stand::Gates(closed);
            }
        }
        self.order_next(now, run)
    }

    /// Why no Job may be ordered yet, if another of them, or a pod, has not ended; or they are not known (RP-4). What a watch does not
    /// show yet was recorded by us, or is refused by the compare-and-set on our status.
    pub(super) fn behind(&self) -> Option<Stand> {
        let listing = || Some(Stand::Listing(self.jobs.trouble().map(str::to_owned)));
        let Some(known) = self.jobs.known() else { return listing() };
        if let Some(other) = known.values().find(|job| job.marked && !job.is_over()) {
            return Some(Stand::Behind(format!("Job {}", other.name)));
        }
        // Also of a Job that is gone, and of an earlier Repo of this name.
        match self.jobs.witness.alive() {
            Ok(None) => None,
            Ok(Some(pod)) => Some(Stand::Behind(format!("pod {pod}"))),
            Err(()) => listing(),
        }
    }

    /// A Job is ordered: it is made, or found. Nothing of it runs.
    pub(super) fn starting(&mut self, now: Timestamp, spec: &Spec, effects: &mut Vec<Effect>) -> Stand {
        let is_durable = self.is_durable();
        let Some(run) = self.own.status.draft.present().cloned() else { return Stand::Done };
        let Some(name) = run.job.as_ref().map(|job| job.name.clone()) else { return Stand::Done };
        if self.jobs.known().is_none() {
            return Stand::Listing(self.jobs.trouble().map(str::to_owned));
        }
        let order = self.order(spec, &run, &name);
        let (found, present) = self.jobs.focus(&name);
        if let Some(found) = found.filter(|found| found.owner.as_ref() == Some(&self.own.object.uid)) {
            if is_durable && self.own.status.is_free(now) {
                self.begun(now, found.uid);
            }
            return Stand::Starting(None);
        }
        let (is_taken, why) = (present.taken, present.make.last_reason().map(str::to_owned));
        if is_durable && present.make.is_due(now) {
            present.make.asked();
            effects.push(Effect::Make(Box::new(order)));
        }
        if is_taken { Stand::Taken(name) } else { Stand::Making(why) }
    }

    /// The Job is there: once its UID is durable, it is started.
    fn begun(&mut self, now: Timestamp, uid: String) {
        let Some(run) = self.own.status.draft.present_mut() else { return };
        run.phase = Phase::Started;
        let Some(job) = &mut run.job else { return };
        job.uid = Some(uid);
        let message = match run.attempt.action {
            Action::Drift => return,
            Action::Plan => format!("Job {} makes a plan", job.name),
            Action::Apply => format!("Job {} applies the commit", job.name),
            Action::DestroyPlan => format!("Job {} plans what a destroy would take away", job.name),
            Action::Destroy => format!("Job {} destroys what was applied", job.name),
        };
        let (number, is_apply) = (run.attempt.number.to_string(), run.attempt.action == Action::Apply);
        if is_apply {
            // What was found before says nothing from now on.
            self.forget_drift();
        }
        self.announce(now, Kind::RunStarted, &number, &message);
    }

    /// Whether what is decided of the run that matters now is durable. Only then it is acted upon (RP-1).
    pub(super) fn is_durable(&self) -> bool {
        let decided = |run: &Run| (run.attempt, run.phase, run.job.clone());
        self.own.status.durable.present().map(decided) == self.own.status.draft.present().map(decided)
            && !self.own.status.pruned
    }

    /// A plan that waits for a yes.
    fn planned(&mut self, now: Timestamp, spec: &Spec, effects: &mut Vec<Effect>) -> Stand {
        let Some(mut run) = self.own.status.draft.run.clone() else { return Stand::Done };
        if run.plan.is_none() {
            // It was planned under `approval: Never`, and changed nothing then: an apply needs a plan that can be said yes to.
            (run.phase, run.attempt.action) = (Phase::Waiting, Action::Plan);
            self.own.status.draft.run = Some(run);
            return self.waiting(now, spec, effects);
        }
        let Some(yes) = self.answered(now, &run, Question::Plan) else { return Stand::Asked(Question::Plan) };
        run.approval = Some(yes);
        run.phase = Phase::Waiting;
        run.attempt.action = Action::Apply;
        self.own.status.draft.run = Some(run);
        self.waiting(now, spec, effects)
    }

    /// A commit that was applied: it is run once more after a yes, for which nobody was asked, or because something has drifted. Where a
    /// plan needs a yes, it is asked about as always; so is a commit, where nobody has said yes.
    pub(super) fn once_more(&mut self, now: Timestamp, spec: &Spec) -> Stand {
        let draft = &self.own.status.draft;
        let Some((run, head)) = draft.run.clone().zip(draft.head.clone()) else { return Stand::Done };
        let yes = self.volunteered(now, &run);
        let is_for_drift = yes.is_none();
        if is_for_drift && !self.begins_for_drift(now, spec) {
            return Stand::Done;
        }
        let seen = self.own.status.draft.drift.as_ref().and_then(|drift| drift.seen.clone());
        let keeper = self.keeper.clone();
        let stand = self.begin(now, spec, head);
        let begun = self.own.status.draft.run.as_mut().filter(|begun| begun.attempt.seq != run.attempt.seq);
        let Some(begun) = begun else { return stand };
        if begun.attempt.action == Action::Apply {
            begun.approval = yes;
        }
        if is_for_drift {
            // Its gates were asked about this run, and are open: it does not wait for the same answers again.
            self.keeper = keeper;
            self.applies_drift(now, seen);
        }
        stand
    }

    /// A run that failed, or whose Job is gone: it is run again only after a yes.
    fn again_or_not(&mut self, now: Timestamp, spec: &Spec, effects: &mut Vec<Effect>) -> Stand {
        let Some(mut run) = self.own.status.draft.run.clone() else { return Stand::Done };
        if run.attempt.seq == RunSeq::default() {
            // The program before ours failed at it, and reported that.
            return Stand::Done;
        }
        // Who says yes to its lock wants it run again.
        let yes = self.answered(now, &run, Question::Again).or_else(|| self.yes_to_unlock(now, spec));
        let Some(yes) = yes else { return Stand::Asked(Question::Again) };
        self.own.status.draft.waiting = None;
        run.attempt.action = spec.approval.first();
        run.approval = Some(yes).filter(|_| run.attempt.action == Action::Apply);
        run.terms = Terms { work: spec.work(), settings: spec.settings() };
        run.phase = Phase::Waiting;
        run.failing = Failing::default();
        (run.plan, run.ended_ms) = (None, None);
        self.own.status.draft.late = None;
        self.own.status.draft.run = Some(run);
        self.waiting(now, spec, effects)
    }
}

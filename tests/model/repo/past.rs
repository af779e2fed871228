//! What has happened, and the promises that it broke. It knows what really was, and judges by that alone.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{CommitId, NoticeId, RunSeq};
use kernel::machine::Timestamp;
use kernel::promise::Promise;
use notices::notice::{Kind, Notice};
use objects::repo::again;
use objects::repo::job::{Job, Order};
use objects::repo::spec::Approving;
use objects::repo::status::{Action, Attempt, Phase, Question, Run, Status};

use super::outside::Truth;
use super::world::{EVERY, image};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    pub broken: BTreeSet<Promise>,
    /// Tickets that a person answered.
    pub answered: Vec<String>,
    /// The commit of each run.
    runs: BTreeMap<RunSeq, CommitId>,
    /// What each name of a Job was ordered for.
    names: BTreeMap<String, (Attempt, CommitId)>,
    /// Names and UIDs of Jobs that the status held once.
    stored_names: BTreeSet<String>,
    stored_uids: BTreeSet<String>,
    /// UIDs of Jobs whose end the status held once.
    ended: BTreeSet<String>,
    /// Names of Jobs that were started.
    marked: BTreeSet<String>,
    /// What a person said yes to last: a commit, or what a plan would change. A newer plan voids it.
    yes: Option<(RunSeq, String)>,
    /// The runs that succeeded and that a person wanted to be repeated.
    pub wanted: BTreeSet<RunSeq>,
    /// What ran when they said so.
    edition: u8,
    /// Applies that failed since a person was last asked about the run.
    failures: BTreeMap<RunSeq, u32>,
    /// A Job was ordered although a gate was shut, or made although a person had stopped the Repo.
    pub rushed: bool,
    /// Runs of which something may have been applied and did not succeed: only a person repeats them.
    held: BTreeSet<RunSeq>,
    /// What really was applied last.
    pub applied: Option<CommitId>,
    /// Something else than a commit asks for a run: something was begun and not applied, or a person changed what runs.
    pub owed: bool,
    /// A run was begun for a commit with the content of what was applied last, and nothing else asked for it.
    pub needless: bool,
    /// Jobs of looks that ended, and found that something has drifted.
    differed: BTreeSet<String>,
    /// The run whose drift is to be put right by another.
    found: Option<RunSeq>,
    /// When a run was begun for drift last.
    repaired: Option<Timestamp>,
    /// Runs of which it was told that something has drifted.
    drift_told: BTreeSet<RunSeq>,
    /// Drift was told that no look had found.
    pub invented: bool,
    /// Notices that the outbox has had, and those that said that an attempt failed, or what is waited for.
    had: BTreeSet<NoticeId>,
    failed: BTreeSet<(RunSeq, u32)>,
    asked: BTreeSet<String>,
    /// Runs of which it was told that they are only planned.
    planned: BTreeSet<RunSeq>,
    /// Runs whose newest plan had nothing in it, and is to be applied all the same.
    idle: BTreeSet<RunSeq>,
    /// A worker acted on a Job that its object did not want, as it knew that.
    pub unwanted: bool,
    /// Something was applied, and not destroyed since.
    pub standing: bool,
    /// It was destroyed.
    pub razed: bool,
    /// A Repo that asks was let go without an answer, and something of it was left.
    pub abandoned: bool,
    /// The commit whose outputs the Secret has.
    pub written: Option<CommitId>,
    /// It was said that a commit is applied, and the Secret lacked its outputs.
    pub unwritten: bool,
    /// The status after the first run, as a backup has it.
    pub backup: Option<Status>,
}

fn fingerprint(run: &Run) -> String {
    run.plan.as_ref().map(|plan| plan.fingerprint.clone()).unwrap_or_default()
}

impl Past {
    pub fn promise(&mut self, promise: Promise, kept: bool) {
        if !kept {
            self.broken.insert(promise);
        }
    }

    /// A write was sent, by a worker whose last look at git brought this.
    pub fn judge_sent(&mut self, durable: &Status, sent: &Status, looked: Option<&CommitId>) {
        let seq = |status: &Status| status.run.as_ref().map(|run| run.attempt.seq);
        let Some(run) = sent.run.as_ref().filter(|run| seq(durable) < seq(sent) && run.phase != Phase::Started) else {
            return;
        };
        let head = sent.head.as_ref().map(|head| &head.revision);
        let is_newest = sent.head == durable.head || head == looked;
        self.promise(Promise::NewestNext, is_newest && head == Some(&run.revision));
    }

    /// A write is durable.
    pub fn judge_stored(&mut self, now: Timestamp, before: &Status, after: &Status, jobs: &[Truth]) {
        self.promise(Promise::RunSeqsRise, before.seq <= after.seq);
        self.judge_look(before, after, jobs);
        self.judge_destroy(before, after, jobs);
        let Some(run) = &after.run else {
            return self.promise(Promise::RunsInOrder, before.run.is_none());
        };
        let known = self.runs.entry(run.attempt.seq).or_insert_with(|| run.revision.clone()).clone();
        self.promise(Promise::RunsInOrder, known == run.revision);
        let was = before.run.as_ref();
        if was.is_none_or(|was| was.attempt.seq < run.attempt.seq) && run.phase != Phase::Started {
            self.judge_begun(now, before, run);
        }
        if let Some(was) = was.filter(|was| was.phase == Phase::Started)
            && (run.phase != Phase::Started || run.job != was.job)
        {
            self.judge_ended(was, jobs);
        }
        // What something may have been applied of has failed, and is never said to have given way.
        let gave_way = after.history.iter().filter(|ended| ended.outcome == Phase::Superseded);
        let is_true = gave_way.into_iter().all(|ended| !self.held.contains(&ended.seq));
        self.promise(Promise::LeftAlone, is_true);
        let newly = |phase| run.phase == phase && was.is_none_or(|was| was.phase != phase);
        if newly(Phase::Planned) {
            self.yes = None;
        }
        if newly(Phase::Succeeded) && self.backup.is_none() {
            self.backup = Some(after.clone());
        }
        self.note_job(run);
    }

    /// The status holds the Job of this run.
    pub fn note_job(&mut self, run: &Run) {
        if let Some(job) = run.job.as_ref().filter(|_| matches!(run.phase, Phase::Starting | Phase::Started)) {
            self.stored_names.insert(job.name.clone());
            self.stored_uids.extend(job.uid.clone());
        }
    }

    /// A newer plan takes the place of what a person said yes to.
    pub fn void(&mut self) {
        self.yes = None;
    }

    /// The commits that the new run takes the place of are named.
    fn judge_begun(&mut self, now: Timestamp, before: &Status, run: &Run) {
        let is_over = |was: &Run| {
            let is_only_planned = was.phase == Phase::Planned && was.ended_ms.is_some();
            was.phase == Phase::Succeeded || is_only_planned && was.terms.settings == run.terms.settings
        };
        let applied = before.run.as_ref().filter(|was| is_over(was) && was.revision == run.revision);
        // Between two that do not follow each other there was another commit.
        let is_next = |was: &&Run| was.attempt.seq.next() == run.attempt.seq;
        if let Some(was) = applied.filter(is_next).filter(|was| was.terms.work == run.terms.work) {
            let is_wanted = self.wanted.remove(&was.attempt.seq);
            let is_kept = is_wanted || self.is_repair(now, was.attempt.seq);
            self.promise(Promise::LeftAlone, is_kept);
            if is_wanted {
                self.yes = Some((run.attempt.seq, run.revision.to_string()));
            }
        }
        let is_open = |run: &Run| matches!(run.phase, Phase::Waiting | Phase::Starting | Phase::Planned);
        let unstarted = |run: &&Run| is_open(run) && run.ended_ms.is_none();
        let left = before.run.as_ref().filter(unstarted).map(|left| left.revision.clone());
        let next = before.next.iter().flat_map(|next| next.skipped.iter().chain([&next.revision])).cloned();
        let named = |one: CommitId| one == run.revision || run.skipped.contains(&one);
        let all = left.into_iter().chain(next).all(named);
        self.promise(Promise::NewestNext, all);
    }

    /// Whether something of this run has drifted, as a look found, and the last run for drift is long enough ago.
    fn is_repair(&mut self, now: Timestamp, seq: RunSeq) -> bool {
        let is_due = self.repaired.is_none_or(|at| now >= at.after(EVERY));
        let is_kept = is_due && self.found.take() == Some(seq);
        self.repaired = Some(now);
        is_kept
    }

    /// A look is left only when its Job has ended.
    fn judge_look(&mut self, before: &Status, after: &Status, jobs: &[Truth]) {
        let look = after.look();
        if let Some(was) = before.look().filter(|was| was.phase == Phase::Started)
            && look.is_none_or(|look| look.job != was.job)
        {
            self.judge_ended(was, jobs);
        }
        if let Some(job) = look.and_then(|look| look.job.as_ref()) {
            self.stored_names.insert(job.name.clone());
            self.stored_uids.extend(job.uid.clone());
        }
    }

    /// A look has ended, and found that something has drifted.
    pub fn differ(&mut self, job: &Job, is_applied: bool) {
        self.differed.insert(job.name.clone());
        self.found = is_applied.then_some(job.attempt.seq);
    }

    /// Whether it was told that something has drifted, since whatever run.
    pub fn has_told_of_drift(&self) -> bool {
        !self.drift_told.is_empty()
    }

    /// Whether it was told that something has drifted since this run.
    pub fn is_drift_told(&self, seq: RunSeq) -> bool {
        self.drift_told.contains(&seq)
    }

    /// An end is written only of what has ended.
    pub fn judge_ended(&mut self, was: &Run, jobs: &[Truth]) {
        let uid = was.job.as_ref().and_then(|job| job.uid.clone()).unwrap_or_default();
        let truth = jobs.iter().find(|truth| truth.job.uid == uid);
        self.promise(Promise::OneAtATime, truth.is_none_or(|truth| !truth.goes_on()));
        self.ended.insert(uid);
    }

    pub fn judge_made(&mut self, order: &Order, found: &Job) {
        let ordered = (order.attempt, order.revision.clone());
        let known = self.names.entry(order.name.clone()).or_insert_with(|| ordered.clone()).clone();
        let same = (found.attempt, found.revision.clone()) == ordered && known == ordered;
        self.promise(Promise::RunsInOrder, same);
        self.promise(Promise::JobsDurable, self.stored_names.contains(&order.name));
        self.promise(Promise::JobsDurable, found.suspended || found.marked);
    }

    /// A Job is started: this is it, and all that there were until now.
    pub fn judge_started(&mut self, job: &Job, jobs: &[Truth], approval: Approving) {
        self.promise(Promise::JobsDurable, self.stored_uids.contains(&job.uid));
        let first = self.marked.insert(job.name.clone());
        self.promise(Promise::StartedOnce, first && !job.marked && job.suspended);
        let other = jobs.iter().any(|other| other.job.uid != job.uid && other.goes_on());
        self.promise(Promise::OneAtATime, !other);
        let Attempt { seq, action, .. } = job.attempt;
        self.promise(Promise::LeftAlone, !self.held.contains(&seq));
        let is_destroy = action == Action::Destroy;
        let is_free = action == Action::Apply && (approval == Approving::Auto || self.idle.contains(&seq));
        if is_free || !matches!(action, Action::Apply | Action::Destroy) {
            return;
        }
        let of_run = self.yes.as_ref().filter(|(known, _)| *known == seq);
        let commit =
            is_destroy || approval == Approving::Plan || of_run.is_some_and(|(_, what)| *what == job.revision.as_str());
        self.promise(Promise::AppliedAsPlanned, of_run.is_some() && commit);
    }

    /// The user's `apply` begins, of a plan that would change this.
    pub fn judge_applied(&mut self, job: &Job, fingerprint: &str, empty: bool, approval: Approving) {
        let is_idle = empty && self.idle.contains(&job.attempt.seq);
        if job.attempt.action == Action::Destroy || approval == Approving::Plan && !is_idle {
            let kept = self.yes == Some((job.attempt.seq, fingerprint.to_owned()));
            self.promise(Promise::AppliedAsPlanned, kept);
        }
    }

    /// A worker sends this, to which the calendar last said whether the window is open.
    pub fn judge_ordered(&mut self, durable: &Status, sent: &Status, is_open: bool) {
        let ordered = |status: &Status| {
            let run = status.run.as_ref().filter(|run| run.phase == Phase::Starting);
            run.map(|run| run.attempt)
        };
        if let Some(attempt) = ordered(sent).filter(|attempt| ordered(durable) != Some(*attempt)) {
            self.rushed |= attempt.action == Action::Apply && !is_open;
        }
    }

    /// A Job is started: it is the Repo's own, and runs what a person was asked about.
    pub fn judge_runner(&mut self, job: &Job, runs: &str, foreign: bool, approval: Approving) {
        self.promise(Promise::LeftAlone, !foreign);
        let is_asked =
            job.attempt.action == Action::Destroy || job.attempt.action == Action::Apply && approval != Approving::Auto;
        if is_asked && !self.idle.contains(&job.attempt.seq) {
            self.promise(Promise::AppliedAsPlanned, runs == image(self.edition));
        }
    }

    /// An apply that had begun failed: it is repeated by itself so often.
    pub fn fail(&mut self, seq: RunSeq, retries: u32) {
        let failures = self.failures.entry(seq).or_default();
        *failures += 1;
        if *failures > retries {
            self.hold(seq);
        }
    }

    /// The `apply` of a Job has begun.
    pub fn begin(&mut self, seq: RunSeq) {
        self.hold(seq);
    }

    /// What was applied is not known, or not all of it.
    pub fn hold(&mut self, seq: RunSeq) {
        self.held.insert(seq);
    }

    /// We remove a Job.
    pub fn judge_removed(&mut self, job: &Job, foreign: bool) {
        self.promise(Promise::LeftAlone, !foreign);
        self.promise(Promise::LeftAlone, !job.marked || self.ended.contains(&job.uid));
    }

    /// A person says yes, with this ticket.
    pub fn said(&mut self, uid: &str, status: &Status, ticket: &str, edition: u8) {
        let Some(run) = &status.run else { return };
        let seq = run.attempt.seq;
        // Said once more it is the same wish: it was counted, and its run has begun or will.
        if again(uid, run, status.head.as_ref()).is_some_and(|of_run| of_run == ticket) {
            self.edition = edition;
            self.wanted.insert(seq);
            return;
        }
        let Some(waiting) = status.waiting.as_ref().filter(|waiting| waiting.ticket == ticket) else { return };
        self.edition = edition;
        match waiting.question {
            Question::Plan => self.yes = Some((seq, fingerprint(run))),
            Question::Revision => self.yes = Some((seq, run.revision.to_string())),
            Question::Again => self.once_more(seq, &run.revision),
            Question::Destroy => self.yes = status.destroy.as_ref().map(|run| (run.attempt.seq, fingerprint(run))),
            Question::DestroyAgain => {
                if let Some(run) = &status.destroy {
                    self.held.remove(&run.attempt.seq);
                }
            }
        }
    }

    /// A person wants a run that failed to be run again.
    pub fn once_more(&mut self, seq: RunSeq, revision: &CommitId) {
        self.held.remove(&seq);
        self.failures.remove(&seq);
        self.yes = Some((seq, revision.to_string()));
    }

    /// A plan has ended, with something in it or, where it is to be applied all the same, nothing.
    pub fn plan(&mut self, seq: RunSeq, is_idle: bool) {
        if is_idle {
            self.idle.insert(seq);
        } else {
            self.idle.remove(&seq);
        }
    }

    /// Whether a question with this ticket was told.
    pub fn was_asked(&self, ticket: &str) -> bool {
        self.asked.contains(ticket)
    }

    /// Whether it was told that this run is only planned.
    pub fn was_planned(&self, seq: RunSeq) -> bool {
        self.planned.contains(&seq)
    }

    /// Another object of this name begins: nothing of the earlier one counts.
    pub fn reborn(&mut self) {
        // Names and UIDs of Jobs are of one object each.
        let Self { broken, answered, names, stored_names, stored_uids, ended, marked, had, .. } = std::mem::take(self);
        let of_names = Self { names, stored_names, stored_uids, ended, marked, ..Self::default() };
        *self = Self { broken, answered, had, ..of_names };
    }

    pub fn told(&mut self, notice: &Notice) {
        let Some(run) = notice.about.run().filter(|_| self.had.insert(notice.id.clone())) else { return };
        match notice.kind {
            Kind::RunFailed => {
                self.failed.insert((RunSeq(notice.seq.0), run.attempt));
            }
            Kind::RepoDrifted => {
                self.invented |= run.job.as_ref().is_none_or(|job| !self.differed.contains(job));
                self.drift_told.insert(RunSeq(notice.seq.0));
            }
            Kind::RunPlanned => drop(self.planned.insert(RunSeq(notice.seq.0))),
            Kind::RunWaiting => self.asked.extend(run.ticket.clone()),
            _ => {}
        }
    }

    /// Whether the question that is open was told.
    pub fn is_told(&self, status: &Status) -> bool {
        let Some(waiting) = &status.waiting else { return false };
        let has_failed = |run: &Run| self.failed.contains(&(run.attempt.seq, run.attempt.number));
        match waiting.question {
            Question::Again => status.run.as_ref().is_some_and(has_failed),
            Question::DestroyAgain => status.destroy.as_ref().is_some_and(has_failed),
            Question::Plan | Question::Revision | Question::Destroy => self.asked.contains(&waiting.ticket),
        }
    }

    /// The status is that of a backup: numbers that no Job bears are free again.
    pub fn restored(&mut self, jobs: &[Truth]) {
        let borne = |seq: &RunSeq| jobs.iter().any(|truth| truth.job.attempt.seq == *seq);
        self.runs.retain(|seq, _| borne(seq));
    }
}

//! Whether a commit concerns a Repo that names the paths which do: git is asked whether their content differs from that of the commit
//! which was applied last. One without a difference is recorded as unchanged here, and runs nothing.
//!
//! - The base is always what this Repo applied, never the head before: a commit that was passed over may have changed something.
//! - Content alone counts, so there and back again is no change, nor is a merge.
//! - Without a base the commit is run: the first, one after a run that did not succeed, or under other settings than those applied.
//! - What nobody can say yet is asked for again, for a while, also with another commit in between; then the commit is run.
//!
//! Not for how git is asked; that is a port.

use std::time::Duration;

use crate::repo::head::Unresolved;
use crate::repo::spec::{Source, Spec};
use crate::repo::status::{Head, Phase, Run, Status, Terms, Unchanged};
use crate::repo::{Effect, Repo};
use kernel::call::Call;
use kernel::id::CommitId;
use kernel::machine::Timestamp;
use kernel::retry::Backoff;

/// How long git may fail to compare two commits before the newer one is run in any case.
const PATIENCE: Duration = Duration::from_mins(5);

/// The same where git was not asked, for want of a place, or where another commit came before each answer.
const FAR: Duration = Duration::from_hours(1);

/// Failed comparisons: a host that has just named a commit soon has its folders, too.
const FAILED: Backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_mins(1) };

/// Paths that are named to people. The others are counted.
const NAMED_MAX: usize = 3;

/// A question to git: whether what concerns a Repo has the same content in two commits. The answer never changes, for both are named
/// by what is in them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// Where they are, and which paths count.
    pub source: Source,
    /// The commit that was applied.
    pub base: CommitId,
    /// The commit that is wanted.
    pub head: CommitId,
}

impl Comparison {
    /// The paths that are compared, the empty one for the whole repository.
    pub fn paths(&self) -> Vec<String> {
        self.source.concerning().unwrap_or_default()
    }

    /// Whether another question differs in the head alone.
    fn is_beside(&self, other: &Self) -> bool {
        self.source == other.source && self.base == other.base
    }
}

/// The comparison of the wanted commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Weighing {
    call: Call,
    asking: Option<Asking>,
    verdict: Option<Verdict>,
}

/// What is asked, and for how long there was no answer. That goes on with another head: one that never rests is run at last, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asking {
    /// The newest question, which replaces those before.
    question: Box<Comparison>,
    /// Since when it is asked, or one that differs in the head alone.
    since: Timestamp,
    /// Since when git fails at it.
    failing: Option<Timestamp>,
}

impl Asking {
    /// Until when it is tried. What we have no place to ask for is no failure of git's.
    fn until(&self) -> Timestamp {
        let far = self.since.after(FAR);
        self.failing.map_or(far, |since| since.after(PATIENCE).min(far))
    }
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verdict {
    Alike,
    Differs,
    /// There was no answer in time.
    Untold,
}

/// What follows for the wanted commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Weighed {
    /// It concerns the Repo, so it is run.
    Run,
    /// It is recorded as unchanged here.
    Unchanged,
    /// It is not known yet; why there was no answer the last time.
    Asking(Option<String>),
}

impl Weighing {
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }

    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline()
    }

    /// This is asked now. An answer still outstanding is to another question, and the next is asked behind it.
    fn turn_to(&mut self, now: Timestamp, question: &Comparison) {
        let is_untold = self.verdict.is_none();
        match &mut self.asking {
            Some(asking) if *asking.question == *question => return,
            Some(asking) if is_untold && asking.question.is_beside(question) => {
                asking.question.as_mut().clone_from(question);
                return;
            }
            Some(_) | None => self.stop(),
        }
        self.verdict = None;
        self.asking = Some(Asking { question: Box::new(question.clone()), since: now, failing: None });
    }

    /// Nothing is asked now: patience does not run meanwhile. What was answered stays true.
    fn stop(&mut self) {
        if matches!(self.verdict, None | Some(Verdict::Untold)) {
            (self.asking, self.verdict) = (None, None);
        }
        if !self.call.is_asked() {
            self.call.answered();
        }
    }

    fn answered(&mut self, now: Timestamp, key: &str, question: &Comparison, answer: Result<bool, Unresolved>) {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.question.is_beside(question)) else {
            return self.call.answered();
        };
        let is_outdated = *asking.question != *question;
        match answer {
            // It says nothing of the newer head, which is asked about at once.
            Ok(_) if is_outdated => self.call.answered(),
            Ok(alike) => {
                self.call.answered();
                self.verdict = Some(if alike { Verdict::Alike } else { Verdict::Differs });
            }
            Err(Unresolved { why, lasting, busy, rest }) => {
                if !busy {
                    asking.failing.get_or_insert(now);
                }
                let again = FAILED.from(now, key);
                // Never later than that: a host may rest for longer than we wait for it.
                let until = asking.until();
                let is_over = (lasting && !is_outdated) || until <= now;
                self.call.failed(|failures| again(failures).max(now.after(rest)).min(until.max(now)), why);
                self.verdict = is_over.then_some(Verdict::Untold);
            }
        }
    }

    /// Whether it was tried for long enough.
    fn is_over(&self, now: Timestamp) -> bool {
        self.call.is_due(now) && self.asking.as_ref().is_some_and(|asking| asking.until() <= now)
    }

    /// Why there was no answer the last time, and how long that may last.
    fn trouble(&self) -> Option<String> {
        let lasts = match self.asking.as_ref().and_then(|asking| asking.failing) {
            Some(_) => "5 minutes",
            None => "an hour",
        };
        self.call.last_reason().map(|why| format!("if that lasts for {lasts}, it is run: {why}"))
    }
}

impl Repo {
    /// What the wanted commit would be compared with, and where; `None` if it is run in any case.
    fn comparison(&self, spec: &Spec, head: &Head) -> Option<Comparison> {
        let applied = Terms { work: spec.work(), settings: spec.settings() };
        let run = self.own.status.draft.run.as_ref()?;
        let is_base = run.phase == Phase::Succeeded && run.terms == applied && run.revision != head.revision;
        (is_base && spec.source.watched.is_some() && spec.suspended.is_none()).then(|| Comparison {
            source: spec.source.clone(),
            base: run.revision.clone(),
            head: head.revision.clone(),
        })
    }

    /// Whether the wanted commit, which is news, changes anything that concerns this Repo; asks git.
    pub(super) fn weigh(&mut self, now: Timestamp, spec: &Spec, head: &Head, effects: &mut Vec<Effect>) -> Weighed {
        let Some(question) = self.comparison(spec, head) else {
            self.weighing.stop();
            return Weighed::Run;
        };
        self.weighing.turn_to(now, &question);
        let weighing = &mut self.weighing;
        match weighing.verdict {
            Some(Verdict::Alike) => {
                // A started Job that the status does not know is found first: its commit is not what was applied.
                if self.jobs.known().is_none() {
                    let why = self.jobs.trouble();
                    return Weighed::Asking(why.map(|why| format!("its Jobs and pods cannot be listed: {why}")));
                }
                if !self.own.status.is_free(now) {
                    return Weighed::Asking(None);
                }
                self.pass_over(now, spec, question);
                Weighed::Unchanged
            }
            Some(Verdict::Differs) => Weighed::Run,
            Some(Verdict::Untold) => {
                let why = weighing.call.last_reason().unwrap_or("another commit came before each answer");
                // Without the commits: of each cause there is one notice.
                let under = under(&spec.source);
                let words =
                    format!("a commit is run although it cannot be told whether it changes anything {under}: {why}");
                self.own.tell_faulty(now, &words);
                Weighed::Run
            }
            None if weighing.is_over(now) => {
                weighing.verdict = Some(Verdict::Untold);
                self.weigh(now, spec, head, effects)
            }
            None => {
                if weighing.call.is_due(now) {
                    weighing.call.asked();
                    effects.push(Effect::Compare(Box::new(question)));
                }
                Weighed::Asking(weighing.trouble())
            }
        }
    }

    /// The wanted commit is no news: nothing is asked about it.
    pub(super) fn stop_weighing(&mut self) {
        self.weighing.stop();
    }

    /// Whether git is still asked, or is to be, if this commit concerns the Repo: until then nothing else is needed.
    pub(super) fn is_being_weighed(&self, spec: &Spec, head: &Head) -> bool {
        let is_told = |question: &Comparison| {
            let known = self.weighing.asking.as_ref().filter(|known| *known.question == *question);
            known.is_some() && self.weighing.verdict.is_some()
        };
        self.comparison(spec, head).is_some_and(|question| !is_told(&question))
    }

    /// Whether this commit, which is news, may still turn out to change nothing here, or has and is about to be recorded so.
    pub(super) fn may_be_unchanged(&self, spec: &Spec, head: &Head) -> bool {
        let is_alike = self.weighing.verdict == Some(Verdict::Alike);
        self.is_being_weighed(spec, head) || (is_alike && self.comparison(spec, head).is_some())
    }

    pub(super) fn compared(&mut self, now: Timestamp, question: &Comparison, answer: Result<bool, Unresolved>) {
        self.weighing.answered(now, &self.own.object.uid, question, answer);
    }

    /// Records that the wanted commit is unchanged here.
    fn pass_over(&mut self, now: Timestamp, spec: &Spec, Comparison { base, head, .. }: Comparison) {
        let at_ms = self.own.wall_ms(now);
        let draft = &mut self.own.status.draft;
        let Some(seq) = draft.run.as_ref().map(|run| run.attempt.seq) else { return };
        // What was skipped before it is not applied by a run of it.
        draft.next = None;
        draft.unchanged = Some(Unchanged { revision: head, since: base, seq, paths: spec.source.paths_hash(), at_ms });
    }
}

impl Status {
    /// The record that the wanted commit is unchanged since the newest run, under these paths.
    pub(super) fn unchanged_head(&self, source: &Source) -> Option<&Unchanged> {
        let (head, run, record) = (self.head.as_ref()?, self.run.as_ref()?, self.unchanged.as_ref()?);
        let is_of =
            |run: &Run| run.phase == Phase::Succeeded && run.attempt.seq == record.seq && run.revision == record.since;
        (record.revision == head.revision && is_of(run) && record.paths == source.paths_hash()).then_some(record)
    }
}

/// `0123456789ab changes nothing under infra since ba9876543210, which was applied`.
pub(super) fn unchanged_words(source: &Source, record: &Unchanged) -> String {
    let (head, base) = (record.revision.short(), record.since.short());
    format!("{head} changes nothing {} since {base}, which was applied", under(source))
}

/// `under infra, modules and 2 others`.
pub(super) fn under(source: &Source) -> String {
    let paths = source.concerning().unwrap_or_default();
    if paths.iter().any(String::is_empty) {
        return "in the repository".to_owned();
    }
    let named: Vec<&str> = paths.iter().take(NAMED_MAX).map(String::as_str).collect();
    match paths.len().saturating_sub(named.len()) {
        0 => format!("under {}", named.join(", ")),
        1 => format!("under {} and another path", named.join(", ")),
        others => format!("under {} and {others} other paths", named.join(", ")),
    }
}

//! Whether a commit concerns a Repo that names the paths which do: git is asked whether their content differs from that of the commit
//! which was applied last. One without a difference is recorded as unchanged here, and runs nothing.
//!
//! - The base is always what this Repo applied, never the head before: a commit that was passed over may have changed something.
//! - Content alone counts, so there and back again is no change, nor is a merge.
//! - Without a base the commit is run: the first, one after a run that did not succeed, or under other settings than those applied.
//! - What cannot be told is asked for again, for a while; then the commit is run.
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

/// How long it is tried to compare two commits before the newer one is run in any case.
const PATIENCE: Duration = Duration::from_mins(5);

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
    /// The wanted one.
    pub head: CommitId,
}

impl Comparison {
    /// The paths that are compared, the empty one for the whole repository.
    pub fn paths(&self) -> Vec<String> {
        self.source.concerning().unwrap_or_default()
    }
}

/// The comparison of the wanted commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Weighing {
    call: Call,
    /// The newest question, and since when it is asked.
    question: Option<(Box<Comparison>, Timestamp)>,
    verdict: Option<Verdict>,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verdict {
    Alike,
    Differs,
    /// It was not told in time.
    Untold,
}

/// What follows for the wanted commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Weighed {
    /// It is run.
    Run,
    /// It is recorded as unchanged here.
    Unchanged,
    /// It is not known yet; why it could not be told the last time.
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
        if self.question.as_ref().is_some_and(|(known, _)| **known == *question) {
            return;
        }
        self.question = Some((Box::new(question.clone()), now));
        self.verdict = None;
        if !self.call.is_asked() {
            self.call.answered();
        }
    }

    /// Until when it is tried.
    fn until(&self, now: Timestamp) -> Timestamp {
        self.question.as_ref().map_or(now, |(_, since)| since.after(PATIENCE))
    }

    fn answered(&mut self, now: Timestamp, key: &str, question: &Comparison, answer: Result<bool, Unresolved>) {
        if self.question.as_ref().is_none_or(|(known, _)| **known != *question) {
            return self.call.answered();
        }
        match answer {
            Ok(alike) => {
                self.call.answered();
                self.verdict = Some(if alike { Verdict::Alike } else { Verdict::Differs });
            }
            Err(Unresolved { why, lasting, rest }) => {
                let again = FAILED.from(now, key);
                // Never later than that: a host may rest for longer than we wait for it.
                let until = self.until(now);
                let is_over = lasting || until <= now;
                self.call.failed(|failures| again(failures).max(now.after(rest)).min(until.max(now)), why);
                self.verdict = is_over.then_some(Verdict::Untold);
            }
        }
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
        let Some(question) = self.comparison(spec, head) else { return Weighed::Run };
        self.weighing.turn_to(now, &question);
        let weighing = &mut self.weighing;
        match weighing.verdict {
            Some(Verdict::Alike) => {
                self.pass_over(now, spec, question);
                Weighed::Unchanged
            }
            Some(Verdict::Differs) => Weighed::Run,
            Some(Verdict::Untold) => {
                let why = weighing.call.last_reason().unwrap_or_default();
                // Without the commits: of each cause it is told once.
                let under = under(&spec.source);
                let words =
                    format!("a commit is run although it cannot be told whether it changes anything {under}: {why}");
                self.own.tell_faulty(now, &words);
                Weighed::Run
            }
            None if weighing.call.is_due(now) && weighing.call.is_failing() && weighing.until(now) <= now => {
                weighing.verdict = Some(Verdict::Untold);
                self.weigh(now, spec, head, effects)
            }
            None => {
                if weighing.call.is_due(now) {
                    weighing.call.asked();
                    effects.push(Effect::Compare(Box::new(question)));
                }
                Weighed::Asking(weighing.call.last_reason().map(str::to_owned))
            }
        }
    }

    /// Whether it is still asked, or is to be, if this commit concerns the Repo: until then nothing else is needed to run it.
    pub(super) fn is_being_weighed(&self, spec: &Spec, head: &Head) -> bool {
        let verdict = |question: &Comparison| {
            let known = self.weighing.question.as_ref().filter(|(known, _)| **known == *question);
            known.and(self.weighing.verdict)
        };
        self.comparison(spec, head)
            .is_some_and(|question| !matches!(verdict(&question), Some(Verdict::Differs | Verdict::Untold)))
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

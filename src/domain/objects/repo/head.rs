//! The wanted commit: git is asked at an interval, and at once on request. A look is not written; only another
//! commit is.

use std::time::Duration;

use crate::repo::spec::{Spec, Wanted};
use crate::repo::status::{Head, Next, SKIPPED_MAX};
use crate::repo::{Effect, Repo};
use kernel::call::Call;
use kernel::id::CommitId;
use kernel::machine::{Timestamp, millis};
use kernel::retry::{Backoff, jitter};

/// Failed looks of one Repo: at its own interval first, then rarer, to half an hour.
const FAILED_CAP: Duration = Duration::from_mins(30);

/// Longest time over which the first looks of a process are spread, so that a start does not ask for all at once.
const SPREAD_MAX: Duration = Duration::from_mins(1);

/// Failures in a row after which a notice says that git does not answer. One is no news, unless no commit was ever
/// found: who made that Repo waits for an answer.
const FAILURES_SHOWN: u32 = 3;

/// Where a wanted ref points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    pub revision: CommitId,
    /// The name of the ref, for people: `refs/heads/main`.
    pub name: String,
}

/// A look that brought no commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    pub why: String,
    /// Only a person can mend it: no such ref, a wrong password.
    pub lasting: bool,
    /// There was no place for it: nothing was asked.
    pub busy: bool,
    /// Not to be asked again before this time has passed: what the host demands, or how long what failed is left alone.
    pub rest: Duration,
}

/// The looks at git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Looking {
    call: Call,
    /// A look was planned since this life began.
    begun: bool,
    /// Looks so far, by which they are spread.
    count: u32,
    /// Only a person can mend the last failure.
    lasting: bool,
    /// A look was requested while git was being asked: the answer may be older than the change behind that request.
    again: bool,
}

impl Looking {
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline()
    }

    /// Looks now, or as soon as the look under way has ended.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.again |= self.call.is_asked();
        self.call.hurry(now);
    }

    /// A look has ended, and when the next one is due is known.
    fn ended(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.again) {
            self.call.hurry(now);
        }
    }

    /// Commits come from elsewhere: what was asked for before says nothing.
    pub(super) fn is_elsewhere(&mut self, now: Timestamp) {
        self.lasting = false;
        if self.call.is_asked() {
            self.call.outdate();
        } else {
            self.call = Call::due(now);
            self.begun = true;
        }
    }

    /// Why no commit can be found, if people have to know that by now, and whether a person must mend it. `is_new`: none was ever found.
    pub(super) fn trouble(&self, is_new: bool) -> Option<(&str, bool)> {
        let why = self.call.reason()?;
        let shown = if is_new { 1 } else { FAILURES_SHOWN };
        (self.lasting || self.call.failures() >= shown).then_some((why, self.lasting))
    }
}

impl Repo {
    /// Asks for the wanted commit, when that is due.
    pub(super) fn look_for_head(&mut self, now: Timestamp, spec: &Spec) -> Option<Effect> {
        if let Wanted::Commit(revision) = &spec.source.wanted {
            self.looking = Looking { begun: true, count: self.looking.count, ..Looking::default() };
            self.head_is(now, revision.clone(), "the spec");
            return None;
        }
        let looking = &mut self.looking;
        if !looking.begun {
            looking.begun = true;
            let spread = millis(spec.interval.min(SPREAD_MAX)).max(1);
            // A Repo that was never looked at is new: a person waits for it.
            let wait =
                if self.own.status.durable.head.is_none() { 0 } else { jitter(&self.own.object.uid, 0) % spread };
            looking.call = Call::due(now.after(Duration::from_millis(wait)));
        }
        let due = looking.call.deadline().unwrap_or(now);
        looking.call.wake(now);
        if !looking.call.is_due(now) {
            return None;
        }
        looking.call.asked();
        Some(Effect::Resolve(due))
    }

    pub(super) fn resolved(&mut self, now: Timestamp, found: Found) {
        let is_outdated = self.looking.call.is_outdated();
        let interval = self.own.spec().map_or(SPREAD_MAX, |spec| spec.interval);
        self.looking.count = self.looking.count.wrapping_add(1);
        self.looking.lasting = false;
        if is_outdated {
            self.looking.call = Call::due(now);
            return;
        }
        // Ten percent either way, so that Repos that began together do not stay together.
        let tenth = millis(interval) / 10;
        let shift = jitter(&self.own.object.uid, self.looking.count) % (2 * tenth).max(1);
        let next = Duration::from_millis(millis(interval).saturating_sub(tenth).saturating_add(shift));
        self.looking.call.answered_until(now.after(next));
        self.looking.ended(now);
        self.head_is(now, found.revision, &found.name);
    }

    pub(super) fn resolve_failed(&mut self, now: Timestamp, unresolved: Unresolved) {
        let Unresolved { why, lasting, busy: _, rest } = unresolved;
        if self.looking.call.is_outdated() {
            self.looking.call = Call::due(now);
            return;
        }
        let interval = self.own.spec().map_or(SPREAD_MAX, |spec| spec.interval);
        let backoff = Backoff { base: interval / 2, cap: FAILED_CAP.max(interval) };
        let again = backoff.from(now, &self.own.object.uid);
        self.looking.call.failed(|failures| again(failures).max(now.after(rest)), why.clone());
        self.looking.ended(now);
        self.looking.lasting = lasting;
        if lasting {
            self.own.tell_faulty(now, &format!("the commit cannot be found: {why}"));
        }
    }

    /// The wanted commit was seen.
    fn head_is(&mut self, now: Timestamp, revision: CommitId, name: &str) {
        let draft = &mut self.own.status.draft;
        if draft.head.as_ref().is_some_and(|head| head.revision == revision && head.name == name) {
            return;
        }
        let seen_ms = self.own.epoch_ms.saturating_add_unsigned(now.as_millis());
        draft.head = Some(Head { revision, name: name.to_owned(), seen_ms });
    }

    /// Keeps in mind which commit follows on a run or a look that cannot be disturbed, or may follow on one that succeeded, and whose
    /// places it took (RP-8).
    pub(super) fn queue_head(&mut self, now: Timestamp) {
        let since_ms = self.own.wall_ms(now);
        let is_next = self.stand.is_before_a_run();
        let draft = &mut self.own.status.draft;
        let (Some(head), Some(run)) = (&draft.head, &draft.run) else { return };
        let waits = (run.is_open() || is_next) && head.revision != run.revision;
        let known = draft.next.take();
        if !waits {
            // Between two runs what was skipped is still to be named.
            draft.next = known.filter(|next| !run.is_open() && next.revision == head.revision);
            return;
        }
        draft.next = Some(match known {
            Some(next) if next.revision == head.revision => next,
            Some(next) => {
                let skipped = skipping(next.skipped, next.revision);
                Next { revision: head.revision.clone(), since_ms, skipped }
            }
            None => Next { revision: head.revision.clone(), since_ms, skipped: Vec::new() },
        });
    }
}

/// The commits that one takes the place of, with one more; the newest are kept.
pub(super) fn skipping(mut skipped: Vec<CommitId>, one: CommitId) -> Vec<CommitId> {
    skipped.retain(|known| *known != one);
    skipped.push(one);
    let spare = skipped.len().saturating_sub(SKIPPED_MAX);
    skipped.drain(..spare);
    skipped
}

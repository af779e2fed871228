//! What a commit holds where it counts, and whether a run was for nothing.

use std::time::Duration;

use kernel::id::CommitId;
use objects::ports::repo::{Comparison, Unresolved};
use objects::repo::Event;
use objects::repo::status::{ConditionKind, Status};

use super::world::{State, World, revision};

/// The path that is watched by the second list alone.
const MORE: &str = "more";

/// What is said where nothing could be asked.
pub fn untold() -> Unresolved {
    Unresolved { why: "no answer".to_owned(), lasting: false, busy: false, rest: Duration::ZERO }
}

impl World {
    /// The paths of one of the two lists.
    pub fn watched(&self, list: u8) -> Option<Vec<String>> {
        self.terms.contents?;
        Some(if list == 0 { Vec::new() } else { vec![MORE.to_owned()] })
    }

    /// The content of a commit under one of the lists.
    fn content(&self, commit: &CommitId, list: u8) -> Option<u8> {
        let numbered = |(number, _): &(usize, &[u8; 2])| revision(u8::try_from(number + 1).unwrap()) == *commit;
        let (_, content) = self.terms.contents?.iter().enumerate().find(numbered)?;
        Some(content[usize::from(list)])
    }

    /// What git says of two commits.
    pub fn compare(&self, question: &Comparison) -> Event {
        let list = u8::from(question.paths().iter().any(|path| path == MORE));
        let alike = self.content(&question.base, list) == self.content(&question.head, list);
        Event::Compared(Box::new(question.clone()), if self.terms.blind { Err(untold()) } else { Ok(alike) })
    }
}

impl State {
    /// Whether the newest commit was not run, and need not be: what was applied last has its content where it counts now, and the
    /// status says so.
    pub fn is_passed_over(&self, world: &World) -> bool {
        let head = revision(world.head[self.head]);
        let (list, status) = (self.object.watches, &self.object.status);
        let Some(applied) = self.past.applied.as_ref().filter(|applied| **applied != head) else { return false };
        let is_same = world.terms.contents.is_some() && world.content(applied, list) == world.content(&head, list);
        let is_said = |words: &str| words.starts_with(head.short()) && words.contains(applied.short());
        let mut ready = status.conditions.iter().filter(|one| one.kind == ConditionKind::Ready);
        is_same && ready.any(|ready| ready.holds == Some(true) && is_said(&ready.message))
    }

    /// The durable status, without a commit in wait that has the content of what was applied: nothing has to be said of it.
    pub fn owing(&self, world: &World) -> Status {
        let (mut before, list) = (self.object.status.clone(), self.object.watches);
        let content = |commit: &CommitId| world.content(commit, list);
        let applied = self.past.applied.as_ref().and_then(content);
        before.next = before.next.filter(|next| applied.is_none() || content(&next.revision) != applied);
        before
    }

    /// A write is about to be durable.
    pub fn judge_needless(&mut self, world: &World, after: &Status) {
        let before = &self.object.status;
        let begun = after.run.as_ref().filter(|run| run.attempt.seq > before.seq && world.terms.contents.is_some());
        let Some(run) = begun else { return };
        let list = self.object.watches;
        let was_wanted = before.run.as_ref().is_some_and(|was| self.past.wanted.contains(&was.attempt.seq));
        let is_same = |applied: &CommitId| world.content(applied, list) == world.content(&run.revision, list);
        // Else another one was begun in between, and this one took its place before that was written.
        let is_next = before.seq.next() == run.attempt.seq;
        let is_idle = self.past.applied.as_ref().is_some_and(is_same);
        self.past.needless |= is_idle && is_next && !self.past.owed && !was_wanted && !world.terms.blind;
        // Until it is applied, what was applied last may not be what is there.
        self.past.owed = true;
    }
}

//! The lock of a state: other programs take it and give it back, an attempt meets it, and a Job may take it away.

use std::collections::BTreeSet;

use kernel::id::RunSeq;
use objects::repo::job::{Step, StepKind, StepState};
use objects::repo::lock::Lock;
use objects::repo::spec::Approving;
use objects::repo::status::{Action, Phase, Status};

use super::outside::step;
use super::world::{State, World, image};

/// The lock, and what was done to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Locks {
    /// The number of the one that is held: each has another id.
    held: Option<u8>,
    count: u8,
    /// Ids that an attempt has met.
    met: BTreeSet<String>,
    /// The newest yes to take one away.
    yes: Option<Yes>,
    /// Tickets whose yes was used: a Job came to the step that takes the lock away.
    spent: BTreeSet<String>,
    /// A lock was taken away, or asked about, for no reason.
    pub seized: bool,
    /// Some lock was taken away.
    pub taken: bool,
}

/// For which run, which lock, what runs, and by which ticket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Yes {
    seq: RunSeq,
    id: String,
    image: String,
    ticket: String,
}

fn id(number: u8) -> String {
    format!("lock-{number}")
}

impl Locks {
    pub const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Another program takes it.
    pub fn take(&mut self) {
        self.count += 1;
        self.held = Some(self.count);
    }

    /// Its holder gives it back.
    pub fn give_back(&mut self) {
        self.held = None;
    }

    /// A person says yes with this ticket. Whether that is to what is asked about a lock.
    fn said(&mut self, status: &Status, ticket: &str, image: String) -> bool {
        let Some(asked) = status.lock.as_ref().filter(|asked| asked.ticket == ticket) else { return false };
        if !self.spent.contains(ticket) {
            let (id, ticket) = (asked.id.as_str().to_owned(), ticket.to_owned());
            self.yes = Some(Yes { seq: asked.seq, id, image, ticket });
        }
        true
    }

    /// A Job comes to the step that takes this lock away: a person has said yes to that, and no Job came there since.
    fn judge_taken(&mut self, seq: RunSeq, id: &str, image: &str) {
        let yes = self.yes.take().filter(|yes| yes.seq == seq && yes.id == id && yes.image == image);
        self.seized |= yes.is_none();
        self.spent.extend(yes.map(|yes| yes.ticket));
    }

    /// A status is durable: it asks about a lock that was met.
    pub fn judge_asked(&mut self, status: &Status) {
        self.seized |= status.lock.as_ref().is_some_and(|asked| !self.met.contains(asked.id.as_str()));
    }
}

impl State {
    /// What a person could answer to a question about a lock.
    pub fn ticket_of_lock(&self) -> Option<&str> {
        self.object.status.lock.as_ref().map(|asked| asked.ticket.as_str())
    }

    /// A person says yes with this ticket: perhaps to what is asked about a lock, and then to another attempt, too.
    pub fn agree_to_unlock(&mut self, ticket: &str) {
        let image = image(self.object.edition);
        if !self.lock.said(&self.object.status, ticket, image) {
            return;
        }
        if let Some(run) = self.object.status.run.as_ref().filter(|run| run.phase == Phase::Failed) {
            self.past.once_more(run.attempt.seq, &run.revision);
        }
    }

    /// The steps of a Job that comes to the lock: it takes away what it was ordered to, and fails at what is held then.
    pub fn meet_lock(&mut self, world: &World, index: usize) -> Option<Vec<Step>> {
        let truth = &self.jobs[index];
        let (attempt, unlock, image) = (truth.job.attempt, truth.unlock.clone(), truth.image.clone());
        let apply_waits = Step { kind: StepKind::Apply, state: StepState::Waiting };
        let mut steps = vec![step(StepKind::Source, 0, "")];
        if let Some(wanted) = unlock {
            self.lock.judge_taken(attempt.seq, &wanted, &image);
            let is_there = self.lock.held.map(id).is_some_and(|held| held == wanted);
            steps.push(step(StepKind::Unlock, i32::from(!is_there), ""));
            if !is_there {
                steps.push(apply_waits);
                return Some(steps);
            }
            self.lock.taken = true;
            if !world.terms.deaf {
                self.lock.held = None;
            }
        }
        let held = self.lock.held.map(id)?;
        let state = StepState::Locked(1, String::new(), Lock::new(Some(&held), Some("ann@laptop"), None));
        self.lock.met.insert(held);
        if attempt.action == Action::Apply && world.approval == Approving::Auto {
            steps.push(Step { kind: StepKind::Apply, state });
        } else {
            steps.extend([Step { kind: StepKind::Plan, state }, apply_waits]);
        }
        Some(steps)
    }

    /// Whether a person was told of the lock that is held, and has not answered.
    pub fn is_locked_out(&self) -> bool {
        let Some(asked) = &self.object.status.lock else { return false };
        let is_held = self.lock.held.map(id).is_some_and(|held| held == asked.id.as_str());
        is_held && asked.approval.is_none() && self.past.was_asked(&asked.ticket)
    }
}

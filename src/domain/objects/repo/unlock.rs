//! A lock in the way of a run is a question to a person, while the run is tried again as before. A yes counts once: the next
//! attempt's Job takes away the lock of this id, and of no other, before it plans.
//!
//! ```text
//! an attempt meets a lock whose holder is not seen to run ─▶ asked ── yes to its ticket ──▶ the next attempt takes it away
//!         ▲ it meets the same lock again: the same question ──┘ │                                 ▲ its Job ended before
//!                                                               │                                 └─ the step `unlock` began
//!                                                               └─▶ void: an attempt came past it or met another one; the run
//!                                                                   ended; other settings
//! ```
//!
//! A look at drift asks nothing: nobody waits for it, and the next one finds out by itself. Nor does a destroy, or a plan
//! that is never applied: the lock is named.
//!
//! Not for who holds a lock (`holder`), nor for what the Job does (the adapter's template).

use crate::repo::Repo;
use crate::repo::held::{HeldLock, held_for};
use crate::repo::job::{Job, Place, Pod, Step, StepKind, StepState};
use crate::repo::lock::{Lock, LockId};
use crate::repo::spec::{Approving, Spec};
use crate::repo::status::{Action, Attempt, Phase, Run, Status};
use crate::repo::witness::Ran;
use crate::status::Approval;
use kernel::id::{ObjectId, RepoId};
use kernel::machine::Timestamp;
use notices::notice::Kind;

impl Repo {
    /// What an ended attempt of the newest run means for the question. Called when what it came to is recorded.
    pub(super) fn settle_lock(&mut self, now: Timestamp, job: &Job, pods: &[Pod], ran: Ran) {
        let asked_ms = self.own.wall_ms(now);
        let draft = &self.own.status.draft;
        let before = draft.lock.clone();
        let goes_on = draft.run.as_ref().is_some_and(|run| matches!(run.phase, Phase::Waiting | Phase::Failed));
        let met = met(pods).filter(|_| goes_on && self.asks_about_locks());
        let at = (job.attempt.seq, job.attempt.number);
        let found = met.and_then(|lock| HeldLock::asked(&self.own.object.uid, at, lock, self.holder(lock), asked_ms));
        let is_unused = |asked: &HeldLock| asked.attempt != Some(job.attempt.number);
        let after = match (before.clone(), found) {
            (Some(before), Some(found)) if before.id == found.id && is_unused(&before) => Some(found.met_again(before)),
            (_, Some(found)) => Some(found),
            (Some(before), None) if goes_on && met.is_none() && !has_come_to_it(pods, ran) => Some(before),
            (_, None) => None,
        };
        let is_new = after.as_ref().map(|asked| &asked.ticket) != before.as_ref().map(|asked| &asked.ticket);
        self.own.status.draft.lock.clone_from(&after);
        if let Some(asked) = after.filter(|_| is_new) {
            self.ask_to_unlock(now, &asked);
        }
    }

    /// Whether people are asked about locks. A plan that is never applied shares its state with the Repo that applies, whose lock it may
    /// well meet; and a Repo that is being deleted applies nothing more.
    pub(super) fn asks_about_locks(&self) -> bool {
        let is_never = |spec: &Spec| spec.approval == Approving::Never;
        !self.is_leaving() && !self.own.spec().is_some_and(is_never)
    }

    fn ask_to_unlock(&mut self, now: Timestamp, asked: &HeldLock) {
        let Some(revision) = self.own.status.draft.run.as_ref().map(|run| run.revision.clone()) else { return };
        let (words, ticket) = (asked.words(), &asked.ticket);
        let age = asked.since_ms.and_then(|since| held_for(since, self.own.wall_ms(now)));
        let age = age.map_or_else(String::new, |age| format!("; {age}"));
        let command = command(&self.own.object.id);
        let message = format!(
            "{revision}: {words}{age}. A yes takes that lock away with the next attempt: {command}. Answer with ticket {ticket}"
        );
        self.announce(now, Kind::RunWaiting, ticket, &message);
    }

    /// A person's yes to the question, once it is there; the run is tried again at once then. What other settings would run has
    /// another state, perhaps: the question is void with them.
    pub(super) fn yes_to_unlock(&mut self, now: Timestamp, spec: &Spec) -> Option<Approval> {
        let (at_ms, answers) = (self.own.wall_ms(now), &self.own.object.answers);
        let Status { lock, run, .. } = &mut self.own.status.draft;
        let run = run.as_mut()?;
        let is_of_run = |asked: &mut HeldLock| asked.seq == run.attempt.seq && run.terms.settings == spec.settings();
        *lock = lock.take_if(is_of_run);
        let asked = lock.as_mut()?;
        if asked.approval.is_none() && answers.approve(&asked.ticket) {
            let (by, overrides) = (answers.by.clone(), answers.overrides(&asked.ticket));
            asked.approval = Some(Approval { by, overrides, ticket: asked.ticket.clone(), at_ms });
            run.failing.not_before_ms = None;
        }
        asked.approval.clone()
    }

    /// The attempt that is ordered now takes the lock away, if a person said yes.
    pub(super) fn order_unlock(&mut self, run: &Run) {
        let is_its = |asked: &&mut HeldLock| asked.approval.is_some() && asked.seq == run.attempt.seq;
        if let Some(asked) = self.own.status.draft.lock.as_mut().filter(is_its) {
            asked.attempt = Some(run.attempt.number);
        }
    }

    /// Whether the newest attempt failed at a lock about which a person is asked.
    pub(super) fn is_locked_out(&self) -> bool {
        let Status { lock, run, .. } = &self.own.status.draft;
        lock.as_ref().zip(run.as_ref()).is_some_and(|(asked, run)| asked.met == run.attempt.number)
    }
}

/// The command that shows the question and answers it.
pub(super) fn command(id: &RepoId) -> String {
    format!("allclear repo unlock {}", id.display_name())
}

/// The lock that the Job of this attempt takes away.
pub(super) fn unlocks(status: &Status, attempt: Attempt) -> Option<&LockId> {
    let asked = status.lock.as_ref().filter(|asked| asked.approval.is_some() && asked.seq == attempt.seq)?;
    // Looks have numbers of their own.
    (asked.attempt == Some(attempt.number) && attempt.action != Action::Drift).then_some(&asked.id)
}

/// The lock that a step met by which `unlock` comes. Only the preset Terraform says so, and only it has that step.
fn met(pods: &[Pod]) -> Option<&Lock> {
    after_unlock(pods).find_map(|step| match &step.state {
        StepState::Locked(_, _, lock) => Some(lock),
        StepState::Ended(..) | StepState::Waiting | StepState::Running => None,
    })
}

/// Whether an attempt has, or may have, come to where a lock is taken away or met.
fn has_come_to_it(pods: &[Pod], ran: Ran) -> bool {
    let is_unsaid = after_unlock(pods).next().is_none() || pods.iter().any(|pod| pod.place == Place::Node);
    let never_ran = pods.is_empty() && ran == Ran::Never;
    !never_ran && (is_unsaid || after_unlock(pods).any(|step| step.state != StepState::Waiting))
}

/// Whether a lock that is in the way of this step can be taken away before it: `unlock` follows on what prepares the folder.
pub(super) fn precedes(step: StepKind) -> bool {
    step >= StepKind::Unlock
}

fn after_unlock(pods: &[Pod]) -> impl Iterator<Item = &Step> {
    pods.iter().flat_map(|pod| &pod.steps).filter(|step| precedes(step.kind))
}

//! What can happen next.

use kernel::machine::Machine;
use objects::owned::{Effect as Own, Event as Life};
use objects::repo::{Effect, Event};

use super::concern::untold;
use super::leaving::is_done_by_then;
use super::world::{State, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Works,
    Fails,
    /// It was done, and the answer is lost.
    Lost,
}

/// How a Job that runs ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Works,
    /// It failed before the user's `apply`.
    Before,
    /// The user's `apply` failed.
    Broken,
    /// The user's `apply` failed, and the pod was collected before anybody read it.
    Forgotten,
    /// It counts as failed, and its pod still applies.
    Lingers,
    /// It applied, and its outputs were not written.
    Unwritten,
}

/// A worker, and what it has asked for.
type Call = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The wanted ref points to its next commit, and a hook says so.
    Move,
    /// A worker's watch shows the object.
    See(usize),
    /// A worker's watch shows the next change of a Job.
    SeeJob(usize),
    Answer(Call, Answer),
    /// A request of a life that has ended arrives after all.
    Late(usize),
    /// A Job that runs ends.
    End(usize, Fate),
    /// A pod that was told to end has ended.
    EndPod(usize),
    /// A person deletes a Job.
    Delete(usize),
    /// A person deletes a Job and leaves its pod.
    Orphan(usize),
    /// The image of a Job's `apply` cannot be pulled.
    Stick(usize),
    /// By now it can.
    Free(usize),
    /// A person suspends a Job.
    Suspend(usize),
    /// What a plan would change is another thing from now on.
    Drift,
    /// A person answers the open question.
    Yes,
    /// A person wants what was applied to be run once more.
    Again,
    /// An answer that was given before is given again.
    Replay(usize),
    /// The window opens, or shuts.
    Turn,
    /// A person changes what runs.
    Edit,
    /// A person has other paths watched.
    Rewatch,
    /// A person stops the Repo.
    Stop,
    /// A person lets it go on.
    Resume,
    /// The status becomes that of a backup.
    Restore,
    /// Another program takes the lock of the state.
    Lock,
    /// It gives it back.
    GiveBack,
    /// A person says yes to take a lock away.
    Agree,
    /// The forge refuses from now on, or does so no more.
    Refuse,
    /// A person deletes the Repo.
    Remove,
    /// A person says that nothing is to be destroyed.
    Keep,
    /// Another Repo of this name is made.
    Remake,
    Wait(usize),
    Crash(usize),
}

/// Whether it writes, and may arrive after the life that asked for it.
pub fn is_write(effect: &Effect) -> bool {
    matches!(effect, Effect::Object(Own::Store(..)) | Effect::Make(_) | Effect::Start(_) | Effect::Remove(..))
}

/// What is said of a call that was not answered.
pub fn failed(effect: &Effect) -> Option<Event> {
    let why = "no answer".to_owned();
    Some(match effect {
        Effect::Object(Own::Store(..)) => Event::Object(Life::StoreFailed(why)),
        Effect::Object(Own::Look) => Event::Object(Life::LookFailed(why)),
        Effect::Resolve(_) => Event::ResolveFailed(untold()),
        Effect::Compare(question) => Event::Compared(question.clone(), Err(untold())),
        Effect::Make(order) => Event::MakeFailed(order.name.clone(), why, false),
        Effect::Start(job) => Event::StartFailed(job.name.clone(), why),
        Effect::Withdraw(job) => Event::WithdrawFailed(job.name.clone(), why),
        Effect::LookAtJob(name) => Event::JobLookFailed(name.clone(), why),
        Effect::ReadPods(_, uid) => Event::PodsFailed(uid.clone(), why),
        Effect::Remove(name, _) => Event::RemoveFailed(name.clone(), why),
        Effect::Hold(_) => Event::HoldFailed(why),
        Effect::Object(Own::Tell(notice)) => Event::Object(Life::TellFailed(notice.id.clone(), why)),
        Effect::Report(saying) => Event::Reported(saying.clone(), Err(untold())),
        Effect::WatchJobs(_) | Effect::Ask(_) | Effect::SeeNeeds(_) | Effect::Object(Own::End) => return None,
    })
}

impl State {
    pub fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.steady(world, actions);
        let left = &self.left;
        let each = || 0..self.workers.len();
        actions.extend((self.head + 1 < world.head.len()).then_some(Action::Move));
        for worker in each().filter(|_| left.lost > 0) {
            for (call, effect) in self.workers[worker].calls.iter().enumerate() {
                actions.push(Action::Answer((worker, call), Answer::Fails));
                if is_write(effect) || is_done_by_then(effect) {
                    actions.push(Action::Answer((worker, call), Answer::Lost));
                }
            }
        }
        let is_there = !self.object.leaving.gone;
        actions.extend(each().filter(|_| left.crashes > 0 && is_there).map(Action::Crash));
        actions.extend((0..self.late.len()).map(Action::Late));
        for (index, truth) in self.jobs.iter().enumerate() {
            let fates = [
                (left.before, Fate::Before),
                (left.broken, Fate::Broken),
                (left.forgotten, Fate::Forgotten),
                (left.lingers, Fate::Lingers),
                (left.unwritten, Fate::Unwritten),
            ];
            actions.extend((left.orphaned > 0 && truth.runs() && !truth.gone).then_some(Action::Orphan(index)));
            actions.extend((left.stuck > 0 && truth.is_fetching()).then_some(Action::Stick(index)));
            actions.extend((left.freed > 0 && truth.stuck && truth.alive).then_some(Action::Free(index)));
            let can = |fate: Fate| truth.runs() && (fate == Fate::Before || truth.is_change());
            actions.extend(
                fates.into_iter().filter(|(left, fate)| *left > 0 && can(*fate)).map(|it| Action::End(index, it.1)),
            );
            actions.extend((left.deleted > 0 && !truth.gone).then_some(Action::Delete(index)));
            actions.extend((left.suspended > 0 && truth.runs()).then_some(Action::Suspend(index)));
        }
        actions.extend((left.drifts > 0).then_some(Action::Drift));
        actions.extend((left.turns > 0).then_some(Action::Turn));
        actions.extend((left.edits > 0).then_some(Action::Edit));
        actions.extend((left.rewatches > 0).then_some(Action::Rewatch));
        actions.extend((left.stops > 0 && !self.object.stopped).then_some(Action::Stop));
        actions.extend(self.object.stopped.then_some(Action::Resume));
        actions.extend((left.yes > 0 && self.question().is_some()).then_some(Action::Yes));
        actions.extend((left.reruns > 0 && self.ticket_again().is_some()).then_some(Action::Again));
        actions.extend((0..self.past.answered.len()).filter(|_| left.replays > 0).map(Action::Replay));
        actions.extend((left.locks > 0 && !self.lock.is_held()).then_some(Action::Lock));
        actions.extend((left.gives > 0 && self.lock.is_held()).then_some(Action::GiveBack));
        actions.extend((left.agrees > 0 && self.ticket_of_lock().is_some()).then_some(Action::Agree));
        actions.extend((left.refusals > 0).then_some(Action::Refuse));
        let leaving = &self.object.leaving;
        actions.extend((left.removals > 0 && !leaving.deleting).then_some(Action::Remove));
        actions.extend((left.keeps > 0 && leaving.deleting && is_there).then_some(Action::Keep));
        // What was asked of the earlier object was answered by then: its actor drops the answers that come later.
        let is_quiet = self.workers.iter().all(|worker| worker.calls.is_empty());
        actions.extend((left.remakes > 0 && leaving.gone && is_quiet).then_some(Action::Remake));
        let is_backed = self.past.backup.as_ref().is_some_and(|backup| *backup != self.object.status);
        actions.extend((left.restores > 0 && is_backed && is_there).then_some(Action::Restore));
    }

    /// What happens by itself, sooner or later.
    pub fn steady(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, worker) in self.workers.iter().enumerate() {
            actions.extend((0..worker.calls.len()).map(|call| Action::Answer((index, call), Answer::Works)));
            let own = self.object.writer == Some(index) && !world.lags;
            let is_seen = own || worker.seen == self.object.version;
            actions.extend((!is_seen).then_some(Action::See(index)));
            actions.extend((!worker.queue.is_empty()).then_some(Action::SeeJob(index)));
        }
        for (index, truth) in self.jobs.iter().enumerate() {
            actions.extend(truth.runs().then_some(Action::End(index, Fate::Works)));
            actions.extend(truth.is_ending().then_some(Action::EndPod(index)));
        }
        let waits = |worker: &usize| self.workers[*worker].machine.next_deadline().is_some();
        // Whatever is on its way is faster than any timer.
        if self.waits < world.faults.waits && actions.is_empty() {
            actions.extend((0..self.workers.len()).filter(waits).map(Action::Wait));
        }
    }
}

/// How many faults of each kind one run may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A call fails, or its answer is lost.
    pub lost: u8,
    pub crashes: u8,
    /// A person deletes a Job.
    pub deleted: u8,
    /// A person deletes a Job and leaves its pod.
    pub orphaned: u8,
    /// An image cannot be pulled.
    pub stuck: u8,
    /// By now it can.
    pub freed: u8,
    /// A person suspends a Job.
    pub suspended: u8,
    /// A Job fails before its apply.
    pub before: u8,
    pub broken: u8,
    /// An apply fails, and its pod is collected before anybody read it.
    pub forgotten: u8,
    /// A Job counts as failed while its pod runs.
    pub lingers: u8,
    pub drifts: u8,
    /// A person says yes.
    pub yes: u8,
    /// A person wants what was applied to be run once more.
    pub reruns: u8,
    pub replays: u8,
    pub restores: u8,
    /// The window opens, or shuts.
    pub turns: u8,
    /// A person changes what runs.
    pub edits: u8,
    /// A person has other paths watched.
    pub rewatches: u8,
    /// A person stops the Repo, and may let it go on.
    pub stops: u8,
    /// Another program takes the lock of the state.
    pub locks: u8,
    /// It gives it back.
    pub gives: u8,
    /// A person says yes to take a lock away.
    pub agrees: u8,
    /// The forge begins to refuse, or to answer.
    pub refusals: u8,
    /// A person deletes the Repo.
    pub removals: u8,
    /// A person says that nothing is to be destroyed.
    pub keeps: u8,
    /// Another Repo of this name is made.
    pub remakes: u8,
    /// It is applied, and its outputs are not written.
    pub unwritten: u8,
    /// Times that something waits until it is due.
    pub waits: u8,
}

impl Faults {
    pub fn spend(&mut self, fate: Fate) {
        match fate {
            Fate::Works => {}
            Fate::Before => self.before -= 1,
            Fate::Broken => self.broken -= 1,
            Fate::Forgotten => self.forgotten -= 1,
            Fate::Lingers => self.lingers -= 1,
            Fate::Unwritten => self.unwritten -= 1,
        }
    }
}

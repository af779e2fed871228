//! What can happen next.

use kernel::machine::Machine;
use objects::owned::Effect as Own;
use objects::pipeline::Effect;

use super::world::{How, State, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Works,
    Fails,
    /// It was done, and the answer is lost.
    Lost,
}

/// A worker, and what it has asked for.
type Call = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Staging gets its next revision.
    Move,
    /// An app of an environment gets what it is to run.
    Deploy(usize, usize),
    /// A worker learns what an app of an environment says.
    Show(usize, usize, usize),
    /// A worker loses sight of a target.
    Lose(usize, usize),
    /// A worker's watch shows the object.
    See(usize),
    Answer(Call, Answer),
    /// A request of a life that has ended arrives after all.
    Late(usize),
    Merge(usize),
    Close(usize),
    /// A person answers the open question of an environment.
    Yes(usize),
    /// A person chooses a revision for an environment.
    Choose(usize, u8),
    /// An answer that was given before is given again.
    Replay(usize),
    /// An environment is set back by hand.
    RollBack(usize),
    /// The spec is changed.
    Change,
    /// A PromotionFreeze for test is made, or deleted.
    Freeze,
    /// A worker learns of the freezes.
    ShowFreezes(usize),
    Wait(usize),
    Crash(usize),
}

impl State {
    pub fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.steady(world, actions);
        let left = &self.left;
        let each = || 0..self.workers.len();
        actions.extend((self.head + 1 < world.head.len()).then_some(Action::Move));
        for worker in each() {
            let shown = &self.workers[worker].shown;
            let seen = (0..world.size()).filter(|target| shown[*target].is_some());
            actions.extend(seen.filter(|_| left.unknown > 0).map(|target| Action::Lose(worker, target)));
            for (call, effect) in self.workers[worker].calls.iter().enumerate().filter(|_| left.lost > 0) {
                actions.push(Action::Answer((worker, call), Answer::Lost));
                if !matches!(effect, Effect::Object(Own::Look)) {
                    actions.push(Action::Answer((worker, call), Answer::Fails));
                }
            }
        }
        actions.extend((left.changed > 0).then_some(Action::Change));
        actions.extend((left.freezes > 0 && !self.frozen).then_some(Action::Freeze));
        actions.extend(each().filter(|_| left.crashes > 0).map(Action::Crash));
        actions.extend((0..self.late.len()).map(Action::Late));
        let open = |request: &usize| self.requests[*request].is_open();
        actions.extend((0..self.requests.len()).filter(open).filter(|_| left.closed > 0).map(Action::Close));
        let choices = world.choices.iter().filter(|_| left.choices > 0);
        actions.extend(
            choices
                .filter(|(env, runs)| self.choice(world, *env, *runs).is_some())
                .map(|(env, runs)| Action::Choose(*env, *runs)),
        );
        actions.extend(
            (1..world.size()).filter(|_| left.yes > 0).filter(|env| self.may_answer(world, *env)).map(Action::Yes),
        );
        actions.extend((0..self.past.answered.len()).filter(|_| left.replays > 0).map(Action::Replay));
        let can_roll = |env: &usize| left.rolled_back > 0 && self.truth[*env] != world.head[0] && *env > 0;
        actions.extend((1..world.size()).filter(can_roll).map(Action::RollBack));
    }

    /// What happens by itself, sooner or later.
    pub fn steady(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, worker) in self.workers.iter().enumerate() {
            actions.extend((0..worker.calls.len()).map(|call| Action::Answer((index, call), Answer::Works)));
            for env in 0..world.size() {
                let says = |part: &usize| world.digit(self.truth[env], *part);
                let is_stale =
                    |part: &usize| worker.shown[env].map(|shown| world.digit(shown, *part)) != Some(says(part));
                actions.extend(world.parts().filter(is_stale).map(|part| Action::Show(index, env, part)));
            }
            actions.extend((worker.frozen != self.frozen).then_some(Action::ShowFreezes(index)));
            let own = self.object.writer == Some(index) && !world.lags;
            let is_seen = own || worker.seen == self.object.version;
            actions.extend((!is_seen).then_some(Action::See(index)));
        }
        for env in 1..world.size() {
            let differs = |part: &usize| world.digit(self.truth[env], *part) != world.digit(self.desired[env], *part);
            actions.extend(world.parts().filter(differs).map(|part| Action::Deploy(env, part)));
        }
        // Nobody freezes for ever.
        actions.extend(self.frozen.then_some(Action::Freeze));
        let open = |request: &usize| self.requests[*request].is_open();
        let merges = world.how.contains(&How::Request) || world.how.contains(&How::ManualRequest);
        actions.extend((0..self.requests.len()).filter(|_| merges).filter(open).map(Action::Merge));
        let waits = |worker: &usize| self.workers[*worker].machine.next_deadline().is_some();
        // Whatever is on its way is faster than any timer.
        if self.waits < world.faults.waits && actions.is_empty() {
            actions.extend((0..self.workers.len()).filter(waits).map(Action::Wait));
        }
    }
}

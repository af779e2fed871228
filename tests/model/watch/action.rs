//! What can happen next.

use std::time::Duration;

use kernel::machine::Machine;
use kernel::watches::watch::{Effect, Event};

use super::kind::Id;
use super::world::{Death, State, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Works,
    Fails,
    /// It was done, and the answer is lost.
    Lost,
    NoRoom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An object's script goes on.
    Move(usize),
    Relist,
    /// The stream shows how an object is.
    Show(usize),
    /// The listing is complete.
    Complete,
    Answer(usize, Answer),
    /// A child does its work and ends.
    Work(usize),
    Die(Option<bool>),
    /// The death of a child is told.
    Tell(usize),
    Fill(usize),
    Empty(usize),
    Sweep,
    /// Time passes until something is due.
    Wait,
    Minute,
    Restart {
        abrupt: bool,
    },
    SetBack,
    Want(usize),
    RebuildPeers,
}

impl State {
    pub fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let left = &self.left;
        let both = || 0..2;
        actions.extend(both().filter(|i| self.at[*i] + 1 < world.scripts[*i].len()).map(Action::Move));
        let must_list = !self.listed && self.listing.is_none();
        actions.extend((must_list || left.relists > 0).then_some(Action::Relist));
        actions.extend(both().filter(|i| self.can_show(world, *i)).map(Action::Show));
        actions.extend(self.can_complete(world).then_some(Action::Complete));
        for (call, effect) in self.calls.iter().enumerate() {
            actions.push(Action::Answer(call, Answer::Works));
            let is_write = matches!(effect, Effect::WriteBaselines(..));
            if left.failed > 0 && !matches!(effect, Effect::ReadLedger) {
                actions.extend([Action::Answer(call, Answer::Fails), Action::Answer(call, Answer::Lost)]);
            }
            actions.extend((is_write && left.no_room > 0).then_some(Action::Answer(call, Answer::NoRoom)));
        }
        actions.extend(both().filter(|i| self.can_work(world, *i)).map(Action::Work));
        let is_alive = self.children[0].is_some() && !self.is_dead(0);
        actions.extend((is_alive && left.crashes > 0).then_some(Action::Die(Some(true))));
        actions.extend((is_alive && left.overdrawn > 0).then_some(Action::Die(Some(false))));
        actions.extend(both().filter(|i| self.is_dead(*i)).map(Action::Tell));
        let is_full = |i: usize| self.children[i].as_ref().is_some_and(|child| child.full);
        actions
            .extend(both().filter(|i| left.full > 0 && self.children[*i].is_some() && !is_full(*i)).map(Action::Fill));
        actions.extend(both().filter(|i| is_full(*i)).map(Action::Empty));
        let is_told = !both().any(|i| self.is_dead(i));
        actions.extend((is_told || left.lost > 0).then_some(Action::Sweep));
        actions.extend(self.watch.next_deadline().map(|_| Action::Wait));
        actions.extend((left.minutes > 0).then_some(Action::Minute));
        actions.extend((left.abrupt > 0).then_some(Action::Restart { abrupt: true }));
        actions.extend((left.rebuilt > 0).then_some(Action::Restart { abrupt: false }));
        actions.extend((left.set_back > 0).then_some(Action::SetBack));
        actions.extend(both().filter(|_| left.wanted > 0).map(Action::Want));
        actions.extend((left.peers > 0).then_some(Action::RebuildPeers));
    }

    pub fn take(&mut self, world: &World, action: Action) {
        match action {
            Action::Move(i) => self.at[i] += 1,
            Action::Relist => {
                if self.listed || self.listing.is_some() {
                    self.left.relists -= 1;
                }
                self.relist();
            }
            Action::Show(i) => self.show(world, i),
            Action::Complete => self.complete(),
            Action::Answer(call, answer) => {
                match answer {
                    Answer::Works => {}
                    Answer::Fails | Answer::Lost => self.left.failed -= 1,
                    Answer::NoRoom => self.left.no_room -= 1,
                }
                self.answer(call, answer);
            }
            Action::Work(i) => self.work(world, i),
            Action::Die(Some(true)) => {
                self.left.crashes -= 1;
                self.die(0, Death::Crashed);
            }
            Action::Die(_) => {
                self.left.overdrawn -= 1;
                self.die(0, Death::Overdrawn);
            }
            Action::Tell(i) => self.tell(i),
            Action::Fill(i) => {
                self.left.full -= 1;
                self.children[i].iter_mut().for_each(|child| child.full = true);
            }
            Action::Empty(i) => self.children[i].iter_mut().for_each(|child| child.full = false),
            Action::Sweep => {
                self.left.lost -= u8::from((0..2).any(|i| self.is_dead(i)));
                self.sweep(world);
            }
            Action::Wait => self.wait(),
            Action::Minute => {
                self.left.minutes -= 1;
                self.now = self.now.after(Duration::from_secs(60));
            }
            Action::Restart { abrupt } => {
                *(if abrupt { &mut self.left.abrupt } else { &mut self.left.rebuilt }) -= 1;
                self.restart(abrupt);
            }
            Action::SetBack => {
                self.left.set_back -= 1;
                self.set_back(world);
            }
            Action::Want(i) => {
                self.left.wanted -= 1;
                self.past.buried[i] = false;
                self.feed(Event::Wanted(Id(i)));
            }
            Action::RebuildPeers => {
                self.left.peers -= 1;
                self.peers += 1;
                self.feed(Event::PeersRebuilt);
            }
        }
    }
}

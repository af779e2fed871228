//! What happens to a group in one run of its chaos: releases that the members follow each in its own way, processes that are
//! killed and stopped, and boards that lose everything or cannot be reached. All of it follows from the dice.

use kernel::id::WorkloadId;
use purge::workloads::workload::Workload;
use support::fakes::{Dice, Millis};
use support::stage::{Stage, deployment, id};

/// Faults happen this long; the last release comes after them.
pub const STORM: Millis = 10 * 60_000;

/// The workloads of every cluster, each served as `<name>.example.com`.
pub const SITES: [&str; 2] = ["web", "blog"];

/// What happens at one instant. Members and boards are numbers.
#[derive(Clone, Debug)]
pub enum Turn {
    Set(usize, Box<Workload>),
    /// The same, and no watch shows it by itself.
    Hide(usize, Box<Workload>),
    Delete(usize, WorkloadId),
    Relist(usize),
    PanicWatchers(usize),
    /// `kill -9`.
    Kill(usize),
    Start(usize),
    /// `SIGSTOP`.
    Stop(usize),
    Continue(usize),
    /// A member reaches a board no more.
    Cut(usize, usize),
    Heal(usize, usize),
    /// A board forgets everything.
    Wipe(usize),
    /// A board dies and starts as another, empty.
    Empty(usize),
}

/// One workload in one member's cluster, as its history is drawn.
#[derive(Clone, Copy)]
struct Pen {
    member: usize,
    name: &'static str,
    uid: u64,
    generation: i64,
    tag: u64,
}

impl Pen {
    /// Goes to `tag` from `at` on, and ends in `end` after `takes`; nothing is drawn from `until` on.
    fn roll_out(&mut self, turns: &mut Vec<(Millis, Turn)>, tag: u64, when: [Millis; 3], end: Stage, dice: &mut Dice) {
        let [at, takes, until] = when;
        self.generation += 1;
        self.tag = tag;
        for (after, stage) in [(0, Stage::Unobserved), (takes / 3, Stage::Half), (takes, end)] {
            let seen = Box::new(deployment(self.name, self.uid, self.generation, &tag.to_string(), stage));
            let hidden = dice.chance(50) && until < STORM;
            if after == 0 || at + after < until {
                turns.push((
                    at + after,
                    if hidden { Turn::Hide(self.member, seen) } else { Turn::Set(self.member, seen) },
                ));
            }
        }
    }

    /// Follows the group to `tag` in its own way, somewhere between `from` and `until`.
    fn follow(&mut self, turns: &mut Vec<(Millis, Turn)>, tag: u64, from: Millis, until: Millis, dice: &mut Dice) {
        let at = from + dice.below(15_000);
        let takes = 500 + spread(dice, 5_000, 60_000);
        match dice.below(100) {
            // It does not follow.
            0..6 => {}
            6..16 => {
                self.roll_out(turns, tag, [at, takes, until], Stage::Missed, dice);
                let late = at + takes + 20_000;
                if dice.chance(500) && late < until {
                    let seen = deployment(self.name, self.uid, self.generation, &tag.to_string(), Stage::Complete);
                    turns.push((late, Turn::Set(self.member, Box::new(seen))));
                }
            }
            16..22 => {
                turns.push((at, Turn::Delete(self.member, id(self.name))));
                (self.uid, self.generation) = (self.uid + 1, 0);
                let again = at + 200 + dice.below(30_000);
                self.roll_out(turns, tag, [again, takes, until.max(again + 1)], Stage::Complete, dice);
            }
            22..32 => {
                let detour = if dice.chance(500) { self.tag } else { 100 + dice.below(3) };
                self.roll_out(turns, detour, [at, 900, at + 2_000], Stage::Complete, dice);
                self.roll_out(turns, tag, [at + 2_000, takes, until], Stage::Complete, dice);
            }
            _ if self.tag == tag => {}
            _ => self.roll_out(turns, tag, [at, takes, until], Stage::Complete, dice),
        }
    }
}

/// A duration that is often short and sometimes long.
fn spread(dice: &mut Dice, short: Millis, long: Millis) -> Millis {
    let bound = if dice.chance(500) { short } else { long };
    dice.below(bound)
}

/// What one workload does in all clusters.
fn history(name: &'static str, size: usize, dice: &mut Dice) -> Vec<(Millis, Turn)> {
    let mut turns = Vec::new();
    let mut pens: Vec<_> = (0..size).map(|member| Pen { member, name, uid: 1, generation: 1, tag: 1 }).collect();
    let (mut tag, mut newest) = (1, 1);
    let mut at = 20_000 + dice.below(30_000);
    while at < STORM - 60_000 {
        let until = at + 45_000 + spread(dice, 20_000, 200_000);
        if tag > 1 && dice.chance(350) {
            tag -= 1;
        } else {
            newest += 1;
            tag = newest;
        }
        pens.iter_mut().for_each(|pen| pen.follow(&mut turns, tag, at, until.min(STORM), dice));
        at = until;
    }
    // In most runs all come to one version in the end.
    let converges = dice.chance(800);
    let tag = if dice.chance(500) { tag } else { newest + 1 };
    for pen in &mut pens {
        let at = STORM + dice.below(20_000);
        let end = if converges || dice.chance(500) { Stage::Complete } else { Stage::Missed };
        pen.roll_out(&mut turns, tag, [at, 30_000, Millis::MAX], end, dice);
    }
    turns
}

/// What goes wrong around the members.
fn faults(size: usize, dice: &mut Dice) -> Vec<(Millis, Turn)> {
    let mut turns = Vec::new();
    let below = |dice: &mut Dice| usize::try_from(dice.below(u64::try_from(size).unwrap())).unwrap();
    for _ in 0..dice.below(16) {
        let at = 15_000 + dice.below(STORM - 15_000);
        let end = at + 500 + spread(dice, 10_000, 150_000);
        let (member, board) = (below(dice), below(dice));
        let (now, later) = match dice.below(12) {
            0..3 => (Turn::Kill(member), Some(Turn::Start(member))),
            3..5 => (Turn::Stop(member), Some(Turn::Continue(member))),
            5..8 => (Turn::Cut(member, board), Some(Turn::Heal(member, board))),
            8 => (Turn::Wipe(board), None),
            9 => (Turn::Empty(board), None),
            10 => (Turn::PanicWatchers(member), None),
            _ => (Turn::Relist(member), None),
        };
        turns.push((at, now));
        turns.extend(later.map(|later| (end, later)));
    }
    turns.retain(|(at, _)| *at < STORM);
    for member in 0..size {
        turns.extend((0..size).map(|board| (STORM, Turn::Heal(member, board))));
        turns.extend([Turn::Start(member), Turn::Continue(member), Turn::Relist(member)].map(|turn| (STORM, turn)));
    }
    turns
}

/// Everything that happens, in the order of time.
pub fn script(size: usize, dice: &mut Dice) -> Vec<(Millis, Turn)> {
    let mut turns: Vec<_> = SITES.iter().flat_map(|name| history(name, size, dice)).collect();
    turns.extend(faults(size, dice));
    turns.sort_by_key(|(at, _)| *at);
    turns
}

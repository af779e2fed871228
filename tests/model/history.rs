//! The production `Keeping` and what a history grows to, around an API server that takes a write over the version that was read, with lives
//! that end, writes that arrive late and answers that get lost. A status remembers the newest ends alone.

use kernel::machine::Timestamp;
use objects::history::keeping::Keeping;
use objects::history::{Entry, grown};
use stateright::{Checker, HasDiscoveries, Model, Property};

const UID: &str = "uid";

/// Ends that a status remembers.
const REMEMBERED: u8 = 2;

const ONCE: &str = "a history holds what has happened, each once and in its order";
const STAYS: &str = "what a history holds stays in it";
const COUNTED: &str = "nothing is counted twice";
const WHOLE: &str = "once it rests, a history has all that the status remembers, if something ended since a life did";
const FULL: &str = "the history has everything";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// The API server takes every write.
    NoCompareAndSet,
    /// An answer is taken to be about all that is owed.
    AllKept,
}

struct World {
    workers: usize,
    ends: u8,
    lost: u8,
    crashes: u8,
    mutant: Mutant,
}

/// A worker, with the status as it knows it, and what it is about to write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Worker {
    keeping: Keeping,
    known: u8,
    call: Option<Adding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Adding {
    owed: Vec<Entry>,
    remembered: Vec<Entry>,
    /// What the history held when it was read, and at which version.
    read: Option<(Vec<Entry>, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: Timestamp,
    /// Numbers of what has ended. The status is written first each time.
    ended: u8,
    /// Something has ended since a life did.
    fresh: bool,
    history: Vec<Entry>,
    version: u8,
    workers: Vec<Worker>,
    /// Writes of lives that have ended.
    late: Vec<(Vec<Entry>, u8)>,
    counted: usize,
    dropped: bool,
    lost: u8,
    crashes: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Something ends, and this worker writes that into the status.
    End(usize),
    /// A watch shows it the status.
    See(usize),
    Read(usize),
    Write(usize),
    /// It is written, and the answer is lost.
    Lose(usize),
    Wait(usize),
    Crash(usize),
    Late(usize),
}

/// The run of this number, which succeeded.
fn entry(number: u8) -> Entry {
    let outcome = "Succeeded".to_owned();
    Entry { seq: number.into(), revision: number.to_string(), outcome, at_ms: number.into(), ..Entry::default() }
}

fn remembered(known: u8) -> Vec<Entry> {
    (known.saturating_sub(REMEMBERED) + 1..=known).map(entry).collect()
}

impl Worker {
    fn begin(&mut self, now: Timestamp) {
        if self.call.is_none() {
            let remembered = remembered(self.known);
            self.call = self.keeping.begin(UID, now).map(|owed| Adding { owed, remembered, read: None });
        }
    }
}

impl State {
    /// These take the place of what was read at this version. Whether they did.
    fn replace(&mut self, world: &World, entries: Vec<Entry>, read: u8) -> bool {
        if read != self.version && world.mutant != Mutant::NoCompareAndSet {
            return false;
        }
        self.dropped |= !self.history.iter().all(|one| entries.contains(one));
        (self.history, self.version) = (entries, self.version + 1);
        true
    }

    fn write(&mut self, world: &World, worker: usize, is_answered: bool) {
        let Some(mut call) = self.workers[worker].call.take() else { return };
        let Some((kept, version)) = call.read.take() else { return };
        let grown = grown(&kept, &call.remembered, &call.owed);
        if let Some(grown) = grown {
            if !self.replace(world, grown.entries, version) {
                // Another writer was first: it is read again.
                self.workers[worker].call = Some(call);
                return;
            }
            self.counted += if is_answered { grown.figures.len() } else { 0 };
        }
        let (now, keeping) = (self.now, &mut self.workers[worker].keeping);
        if !is_answered {
            keeping.failed(UID, now, false, "no answer");
            return;
        }
        let all: Vec<Entry> = (1..=self.ended).map(entry).collect();
        keeping.kept(UID, if world.mutant == Mutant::AllKept { &all } else { &call.owed });
        self.workers[worker].begin(now);
    }

    fn rests(&self) -> bool {
        self.late.is_empty() && self.workers.iter().all(|one| one.call.is_none() && one.keeping.deadline().is_none())
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: Timestamp::default(),
            ended: 0,
            fresh: false,
            history: Vec::new(),
            version: 0,
            workers: vec![Worker::default(); self.workers],
            late: Vec::new(),
            counted: 0,
            dropped: false,
            lost: self.lost,
            crashes: self.crashes,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, worker) in state.workers.iter().enumerate() {
            let is_current = worker.known == state.ended;
            let read = worker.call.as_ref().map(|call| call.read.is_some());
            actions.extend((is_current && state.ended < self.ends).then_some(Action::End(index)));
            actions.extend((!is_current).then_some(Action::See(index)));
            actions.extend((read == Some(false)).then_some(Action::Read(index)));
            actions.extend((read == Some(true)).then_some(Action::Write(index)));
            actions.extend((read == Some(true) && state.lost > 0).then_some(Action::Lose(index)));
            let waits = worker.call.is_none() && worker.keeping.deadline().is_some();
            actions.extend(waits.then_some(Action::Wait(index)));
            actions.extend((state.crashes > 0).then_some(Action::Crash(index)));
        }
        actions.extend((0..state.late.len()).map(Action::Late));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::End(worker) => {
                next.ended += 1;
                next.fresh = true;
                let (now, worker) = (next.now, &mut next.workers[worker]);
                worker.known = next.ended;
                worker.keeping.owe(UID, &[entry(next.ended)]);
                worker.begin(now);
            }
            Action::See(worker) => next.workers[worker].known = next.ended,
            Action::Read(worker) => {
                let read = (next.history.clone(), next.version);
                next.workers[worker].call.as_mut()?.read = Some(read);
            }
            Action::Write(worker) => next.write(self, worker, true),
            Action::Lose(worker) => {
                next.lost -= 1;
                next.write(self, worker, false);
            }
            Action::Wait(worker) => {
                next.now = next.now.max(next.workers[worker].keeping.deadline()?);
                let (now, worker) = (next.now, &mut next.workers[worker]);
                worker.begin(now);
            }
            Action::Crash(worker) => {
                next.crashes -= 1;
                next.fresh = false;
                let dead =
                    std::mem::replace(&mut next.workers[worker], Worker { known: next.ended, ..Worker::default() });
                let late = dead.call.and_then(|call| {
                    let (kept, version) = call.read?;
                    Some((grown(&kept, &call.remembered, &call.owed)?.entries, version))
                });
                next.late.extend(late);
            }
            Action::Late(index) => {
                let (entries, version) = next.late.remove(index);
                let _ = next.replace(self, entries, version);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| {
                let is_rising = state.history.windows(2).all(|pair| pair[0].seq < pair[1].seq);
                is_rising && state.history.iter().all(|one| (1..=state.ended).any(|number| entry(number) == *one))
            }),
            Property::always(STAYS, |_, state: &State| !state.dropped),
            Property::always(COUNTED, |_, state: &State| state.counted <= state.history.len()),
            Property::always(WHOLE, |_, state: &State| {
                let is_owed = |one: &Entry| !state.history.contains(one);
                !state.rests() || !state.fresh || !remembered(state.ended).iter().any(is_owed)
            }),
            Property::sometimes(FULL, |world: &Self, state: &State| state.history.len() == usize::from(world.ends)),
        ]
    }
}

const ONE: World = World { workers: 1, ends: 4, lost: 1, crashes: 1, mutant: Mutant::None };

#[test]
fn a_history_has_what_happened_once_whoever_writes_and_whatever_gets_lost() {
    let cases = [
        ("one", ONE, 769),
        ("one, lives end", World { ends: 3, lost: 0, crashes: 2, ..ONE }, 251),
        ("two that believe to lead", World { workers: 2, ends: 3, crashes: 0, ..ONE }, 2634),
    ];
    for (name, world, states) in cases {
        let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        eprintln!("history, {name}: {} states", checker.unique_state_count());
        checker.assert_properties();
        assert_eq!(checker.unique_state_count(), states, "{name}");
    }
}

#[test]
fn every_mutant_is_caught() {
    let two = World { workers: 2, ends: 2, lost: 0, crashes: 0, ..ONE };
    let cases = [(Mutant::NoCompareAndSet, two, STAYS), (Mutant::AllKept, World { crashes: 0, ..ONE }, WHOLE)];
    for (mutant, world, promise) in cases {
        let world = World { mutant, ..world };
        let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        assert!(checker.discovery(promise).is_some(), "{mutant:?}");
    }
}

//! The production `Traffic`, in every order in which a person moves a host between three workloads, deletes one of them, versions change,
//! the program crashes, and what it asked for is done. What is asked of it: when all is quiet, the edge has nothing of a workload that
//! has lost the host; and a move costs one purge.
//!
//! A move that is taken back before a record has it is not seen, as a version that is there and gone between two looks is not: so the
//! edge gets what a record knows to have been served, and what is served when all is quiet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kernel::id::{Kind, Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use purge::records::record::{Lead, Record, Records};
use purge::testing::version;
use purge::traffic::{Effect, Event, Look, Traffic, Was};
use stateright::{Checker, HasDiscoveries, Model, Property};

const STALE: &str = "a workload that has lost the host stays at the edge";
const TWICE: &str = "more purges than moves ask for";

/// Longer than every wait of the machine but the one for a namespace that rests after a slow look, which none of these is.
const PASS: Duration = Duration::from_secs(30);

const NAMES: [&str; 3] = ["blue", "green", "red"];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    apart: bool,
    /// `None` while the program does not run.
    life: Option<Traffic>,
    now: Timestamp,
    /// What was asked for, and is not done.
    asked: Vec<Effect>,
    /// Looks that were made, and are not heard of.
    looked: Vec<Look>,
    records: BTreeMap<WorkloadId, Arc<Record>>,
    /// Who serves the host, and what the edge may have: whose, and of which version.
    serving: usize,
    edge: BTreeSet<(usize, String)>,
    /// The same of what a look has seen, and no record knows of.
    seen: BTreeSet<(usize, String)>,
    /// Purges that records ask for, and are not made.
    owed: BTreeSet<WorkloadId>,
    moves: u8,
    crashes: u8,
    changes: u8,
    deleted: bool,
    purges: u8,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Move(usize),
    /// A rollout of the one that serves, with its purge; its vote finds the host.
    Change,
    /// The first workload is deleted, and its record goes.
    Delete,
    Crash,
    Begin,
    Pass,
    Perform(usize),
    Hear(usize),
    Purge(usize),
}

struct World {
    moves: u8,
    crashes: u8,
    changes: u8,
    deletes: bool,
    /// The workloads run these versions at first.
    versions: [&'static str; 3],
    /// The last of them is in a namespace of its own.
    apart: bool,
    /// How often time passes.
    passes: u64,
    /// A mutant: asks are forgotten instead of noted in the record.
    forgets: bool,
}

fn named(number: usize, apart: bool) -> WorkloadId {
    let namespace = if apart && number == 2 { "other" } else { "shop" };
    WorkloadId::deployment(namespace, NAMES[number])
}

impl State {
    fn id(&self, number: usize) -> WorkloadId {
        named(number, self.apart)
    }

    fn feed(&mut self, event: Event) {
        let now = self.now;
        let effects = self.life.iter_mut().flat_map(|life| life.step_and_catch_up(now, event.clone()));
        self.asked.extend(effects.collect::<Vec<_>>());
    }

    /// Everything that this one does is heard of before it goes on: it is the same process.
    fn write(&mut self, id: &WorkloadId, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.records.get_mut(id) {
            change(Arc::make_mut(record));
        }
    }

    fn runs(&self, number: usize) -> Option<String> {
        self.records.get(&self.id(number)).map(|record| record.version.to_string())
    }

    fn serve(&mut self) {
        if let Some(runs) = self.runs(self.serving) {
            self.edge.insert((self.serving, runs));
        }
    }

    fn purge(&mut self) {
        self.edge.clear();
        self.seen.clear();
        self.serve();
    }

    fn is_quiet(&self) -> bool {
        let waits = self.life.as_ref().is_none_or(|life| life.next_deadline().is_some());
        !waits && self.asked.is_empty() && self.looked.is_empty() && self.owed.is_empty()
    }

    fn perform(&mut self, effect: Effect, forgets: bool) {
        match effect {
            Effect::Look(namespace) => {
                let served = self.runs(self.serving).filter(|_| self.id(self.serving).namespace == namespace);
                self.seen.extend(served.map(|runs| (self.serving, runs)));
                let there = (0..NAMES.len()).filter(|number| self.runs(*number).is_some());
                let there = there.filter(|number| self.id(*number).namespace == namespace);
                let hosts =
                    |number| if number == self.serving { BTreeSet::from(["www".to_owned()]) } else { BTreeSet::new() };
                let led = there.map(|number| (self.id(number), hosts(number))).collect();
                self.looked.push(Look { namespace, kinds: Kind::ALL.into(), unread: BTreeSet::new(), led });
            }
            Effect::Ask(workload, moved, leads) => {
                let is_new = self
                    .records
                    .get(&workload)
                    .is_some_and(|record| record.moved.as_ref().is_none_or(|last| !last.is(&moved)));
                let known = |(number, _): &&(usize, String)| is_new && self.id(*number) == workload;
                let known: Vec<_> = self.seen.iter().filter(known).cloned().collect();
                self.edge.extend(known);
                if is_new {
                    self.owed.insert(workload.clone());
                    self.write(&workload, |record| {
                        record.seq = record.seq.next();
                        record.closed = record.seq;
                        record.leads = leads;
                        record.moved = (!forgets).then(|| moved.clone());
                    });
                }
                if self.records.contains_key(&workload) {
                    self.feed(Event::Taken(workload, moved.token));
                }
            }
            Effect::Keep(mut all) => {
                all.retain(|id, _| self.records.contains_key(id));
                for (id, leads) in &all {
                    self.write(id, |record| record.leads = leads.clone());
                }
                self.feed(Event::Kept(all));
            }
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let record = |number: usize| {
            let leads = (number == 0).then(|| Lead::of("www")).into_iter().collect();
            Record { version: version(self.versions[number]), leads, ..Record::first(Seq(1)) }
        };
        let records: Records =
            (0..NAMES.len()).map(|number| (named(number, self.apart), record(number).into())).collect();
        vec![State {
            apart: self.apart,
            life: Some(Traffic::new(false)),
            now: Timestamp::from_millis(0),
            asked: Vec::new(),
            looked: Vec::new(),
            records,
            serving: 0,
            edge: BTreeSet::from([(0, version(self.versions[0]).to_string())]),
            seen: BTreeSet::new(),
            owed: BTreeSet::new(),
            moves: 0,
            crashes: 0,
            changes: 0,
            deleted: false,
            purges: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.moves < self.moves {
            let there = (0..NAMES.len()).filter(|number| *number != state.serving && state.runs(*number).is_some());
            actions.extend(there.map(Action::Move));
        }
        actions.extend((state.changes < self.changes && state.owed.is_empty()).then_some(Action::Change));
        actions.extend((self.deletes && !state.deleted && state.serving != 0).then_some(Action::Delete));
        match &state.life {
            None => actions.push(Action::Begin),
            Some(life) => {
                actions.extend((state.crashes < self.crashes).then_some(Action::Crash));
                actions.extend(life.next_deadline().map(|_| Action::Pass));
            }
        }
        // Messages to the keeper of the records stay in their order.
        let is_ask = |at: &usize| matches!(state.asked[*at], Effect::Ask(..));
        let first = (0..state.asked.len()).find(is_ask);
        let performed = (0..state.asked.len()).filter(|at| !is_ask(at) || first == Some(*at));
        actions.extend(performed.map(Action::Perform));
        actions.extend((0..state.looked.len()).map(Action::Hear));
        actions.extend((0..NAMES.len()).filter(|number| state.owed.contains(&state.id(*number))).map(Action::Purge));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Move(to) => {
                let from = std::mem::replace(&mut next.serving, to);
                next.moves += 1;
                for number in [from, to] {
                    next.feed(Event::Changed(state.id(number).namespace));
                }
            }
            Action::Change => {
                next.changes += 1;
                next.write(&state.id(state.serving), |record| {
                    record.version = version("9");
                    record.seq = record.seq.next();
                    record.closed = record.seq;
                    // It was found by its vote.
                    record.leads = [Lead::of("www")].into_iter().collect();
                });
                next.purge();
            }
            Action::Delete => {
                next.deleted = true;
                if let Some(record) = next.records.remove(&state.id(0)) {
                    next.owed.remove(&state.id(0));
                    next.feed(Event::Departed(state.id(0), Was::of(&record).into()));
                }
            }
            Action::Crash => {
                next.crashes += 1;
                (next.life, next.asked, next.looked) = (None, Vec::new(), Vec::new());
            }
            Action::Begin => {
                next.life = Some(Traffic::new(false));
                for namespace in ["shop", "other"] {
                    next.feed(Event::Changed(namespace.to_owned()));
                }
            }
            Action::Pass => {
                next.now = state.now.after(PASS);
                let effects = next.life.as_mut()?.tick(next.now);
                // What is asked for again while it is under way is the same.
                let new: Vec<Effect> = effects.into_iter().filter(|effect| !state.asked.contains(effect)).collect();
                if new.is_empty() && next.life.as_ref()?.next_deadline().is_some_and(|at| at > next.now) {
                    return None;
                }
                next.asked.extend(new);
            }
            Action::Perform(at) => {
                let effect = next.asked.remove(at);
                next.perform(effect, self.forgets);
            }
            Action::Hear(at) => {
                let look = next.looked.remove(at);
                let known = next.life.as_ref()?.known(&look, &next.records, &BTreeSet::new());
                next.feed(Event::Looked(look.into(), known));
            }
            Action::Purge(number) => {
                next.owed.remove(&state.id(number));
                next.purges += 1;
                if state.serving == number {
                    next.purge();
                }
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(STALE, |_, state: &State| {
                let now = state.runs(state.serving);
                !state.is_quiet() || state.edge.iter().all(|(_, runs)| Some(runs) == now.as_ref())
            }),
            // Two moves within the time that a message takes are asked for again and again, as what a record has changes; but not for ever.
            Property::always(TWICE, |_, state: &State| state.purges <= 1 || state.moves > 1 && state.purges <= 5),
            Property::sometimes("each move is purged for", |world: &Self, state: &State| {
                state.is_quiet() && state.purges == world.moves
            }),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.now.as_millis() < self.passes * 30_000
    }
}

fn search(name: &str, world: World, states: usize) {
    let started = std::time::Instant::now();
    let finish = HasDiscoveries::AnyFailures;
    let checker = world.checker().threads(2).finish_when(finish).spawn_bfs().join();
    eprintln!(
        "traffic, {name}: {} states, depth {}, {:?}",
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    for (property, path) in checker.discoveries() {
        if [STALE, TWICE].contains(&property) {
            for (state, action) in path.into_vec() {
                eprintln!("  {action:?}\n      {state:?}");
            }
        }
    }
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states, "the search has another size");
}

fn world() -> World {
    World {
        moves: 2,
        crashes: 1,
        changes: 0,
        deletes: false,
        versions: ["1", "2", "3"],
        apart: false,
        passes: 20,
        forgets: false,
    }
}

#[test]
fn one_move_is_one_purge_whatever_crashes() {
    for (apart, states) in [(false, 3_139), (true, 8_594)] {
        search("1 move", World { moves: 1, crashes: 2, apart, ..world() }, states);
    }
}

#[test]
fn a_host_that_moves_between_three_workloads() {
    search("2 moves", World { crashes: 0, passes: 8, ..world() }, 57_617);
}

#[test]
fn a_host_that_moves_between_namespaces() {
    search("another namespace", World { apart: true, crashes: 0, passes: 6, ..world() }, 131_837);
}

#[test]
fn a_host_that_moves_while_versions_change() {
    search("a change", World { changes: 1, crashes: 0, passes: 6, ..world() }, 123_929);
}

#[test]
fn a_host_that_leaves_a_workload_which_is_deleted() {
    search("deleted", World { deletes: true, crashes: 0, passes: 6, ..world() }, 48_273);
}

#[test]
fn a_record_that_forgets_a_move_is_purged_for_it_twice() {
    let caught = HasDiscoveries::AllOf(BTreeSet::from([TWICE]));
    let checker = World { forgets: true, ..world() }.checker().threads(2).finish_when(caught).spawn_bfs().join();
    assert!(checker.discovery(TWICE).is_some(), "it was not caught");
}

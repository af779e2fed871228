//! The production `Watch` with two objects that differ: the ledger knows one, which may crash its child; the other is new. Around it
//! are a stream that lists again, a ledger whose answers get lost, and children with full mailboxes, in every
//! order.

mod action;
mod kind;
mod world;

use kernel::promise::Promise;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

use action::Action;
use kind::Id;
use world::{Faults, State, World};

type Condition = fn(&World, &State) -> bool;

/// All but the last are broken in a step, if at all. The world is too small for reading a record that cannot be read, and for the end in
/// order.
const PROMISES: &[(Promise, Condition)] =
    promises![OneChild, NewestSight, NewsArrives, BuriedOnce, FoundIsNotNew, NotedWhenKept, NumbersUsedOnce, NoneLost,];

/// What holds when nothing but faults can happen any more.
const SETTLES: (Promise, Condition) = (Promise::AllSettles, |world, state| state.settles(world));

fn is_left_alone(state: &State, for_: &str) -> bool {
    state.watch.nursery().left_alone().any(|(id, why)| *id == Id(0) && why.contains(for_))
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        state.actions(self, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        next.take(self, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let property = |(promise, condition): &(Promise, Condition)| Property::always(promise.words(), *condition);
        let mut properties: Vec<_> = PROMISES.iter().chain([&SETTLES]).map(property).collect();
        let mut sometimes = |name, condition: Condition| {
            properties.push(Property { expectation: Expectation::Sometimes, name, condition });
        };
        sometimes("both have a child", |_, state| state.children.iter().all(Option::is_some));
        if self.faults.crashes > 5 {
            sometimes("one crashed too often", |_, state| is_left_alone(state, "crashed"));
        }
        if self.faults.abrupt > 1 {
            sometimes("one rests", |_, state| is_left_alone(state, "ended abruptly"));
        }
        properties
    }
}

fn search(name: &str, world: World, states: usize) {
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("watch, {name}: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states);
}

const CHANGES: &[Option<u8>] = &[Some(1), Some(2)];

const GOES: &[Option<u8>] = &[Some(1), None];

const COMES: &[Option<u8>] = &[None, Some(1)];

/// It comes, and goes.
const PASSES: &[Option<u8>] = &[None, Some(1), None];

#[test]
fn a_first_listing_loses_nothing_where_writes_fail_and_lives_end() {
    let faults = Faults { failed: 1, abrupt: 1, relists: 1, ..Faults::default() };
    search("first listing", World { scripts: [GOES, CHANGES], listed: false, noted: true, faults }, 34_955);
}

#[test]
fn a_child_that_crashes_is_rebuilt_or_left_alone_for_a_while() {
    let faults = Faults { crashes: 6, lost: 1, relists: 1, ..Faults::default() };
    search("crashes", World { scripts: [CHANGES, COMES], listed: true, noted: true, faults }, 11_211);
}

#[test]
fn a_child_that_writes_for_no_reason_is_left_alone_for_a_while() {
    let faults = Faults { overdrawn: 1, lost: 1, relists: 1, ..Faults::default() };
    search(
        "overdrawn",
        World { scripts: [&[Some(1), Some(2), None], COMES], listed: true, noted: true, faults },
        14_626,
    );
}

#[test]
fn a_full_mailbox_delays_a_sight_and_loses_none() {
    let faults = Faults { full: 1, peers: 1, relists: 1, wanted: 1, ..Faults::default() };
    search("mailboxes", World { scripts: [CHANGES, PASSES], listed: true, noted: true, faults }, 70_429);
}

#[test]
fn what_may_have_ended_a_life_rests_and_is_tried_again() {
    let faults = Faults { abrupt: 3, minutes: 2, failed: 1, ..Faults::default() };
    search("lives", World { scripts: [CHANGES, COMES], listed: true, noted: false, faults }, 69_544);
}

#[test]
fn after_a_restore_no_number_is_given_out_again() {
    let faults = Faults { set_back: 1, ..Faults::default() };
    let is_removed: &[Option<u8>] = &[Some(1), Some(2), None];
    let scripts = [is_removed, &[Some(1)]];
    search("restore of what was removed", World { scripts, listed: false, noted: true, faults }, 91_113);
    search("restore", World { scripts: [GOES, COMES], listed: false, noted: true, faults }, 137_726);
}

/// Also where a child waits for a note first: its object never gets a baseline and a child.
#[test]
fn a_baseline_without_room_is_written_later() {
    let faults = Faults { no_room: 1, wanted: 1, failed: 1, ..Faults::default() };
    search("no room", World { scripts: [CHANGES, CHANGES], listed: false, noted: true, faults }, 12_876);
    search("no room, and a note", World { scripts: [CHANGES, CHANGES], listed: false, noted: false, faults }, 28_962);
}

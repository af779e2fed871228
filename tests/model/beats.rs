//! Every order in which one member beats, is restarted with its clock set back, loses its ledger, and is heard through two
//! boards that may be cut off and come back with old beats. Boards here forget nothing: that a beat expires is what a paused
//! or restored one does not keep to.

use std::collections::BTreeSet;

use kernel::id::{Member, Origin};
use kernel::machine::Timestamp;
use purge::agreement::roster::{Heartbeat, Roster};
use stateright::{Checker, HasDiscoveries, Model, Property};

const BOARDS: usize = 2;
const LIVES_MAX: u8 = 3;
const LEDGERS_MAX: u8 = 3;
const COUNT_MAX: u8 = 2;
const NOW: Timestamp = Timestamp::from_millis(1_000);

/// What is known by who hears the member, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Hearer {
    Production(Box<Roster>),
    /// The mutant that orders beats by the clock of the member, as the first releases did.
    ByClock(Option<Heartbeat>),
    /// The mutant that takes every beat of another life, as it comes.
    ByBoard(Option<Heartbeat>),
}

impl Hearer {
    fn production() -> Self {
        let roster = Roster::new("eu-1".into(), "o".into(), BTreeSet::new(), std::collections::BTreeMap::new(), None);
        Self::Production(Box::new(roster))
    }

    fn hear(&mut self, board: usize, beat: Heartbeat) {
        match self {
            Self::Production(roster) => drop(roster.hear(NOW, board, beat)),
            Self::ByClock(held) if held.as_ref().is_some_and(|held| held.at_ms >= beat.at_ms) => {}
            Self::ByBoard(held) if held.as_ref().is_some_and(|h| (&h.boot, h.count) == (&beat.boot, beat.count)) => {}
            Self::ByClock(held) | Self::ByBoard(held) => *held = Some(beat),
        }
    }

    /// The beat that counts.
    fn believed(&self) -> Option<&Heartbeat> {
        match self {
            Self::Production(roster) => roster.peer(&Member::from("eu-2")).map(|peer| &peer.beat),
            Self::ByClock(held) | Self::ByBoard(held) => held.as_ref(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The member's process: its how manieth life, over which ledger, and its beats in it.
    life: u8,
    ledger: u8,
    count: u8,
    boards: [Option<Heartbeat>; BOARDS],
    hearer: Hearer,
    /// An earlier ledger counted after a later one did.
    went_back: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// It beats, and reaches these boards.
    Heartbeat([bool; BOARDS]),
    Restart,
    /// With its ledger lost.
    StartAnew,
    /// A board is read.
    Hear(usize),
}

struct World(Hearer);

/// What a process leaves. Each life's clock is an hour behind the one before it.
fn beat(life: u8, ledger: u8, count: u8) -> Heartbeat {
    Heartbeat {
        member: "eu-2".into(),
        origin: Origin(format!("ledger-{ledger}")),
        boot: format!("life-{life}"),
        count: u64::from(count),
        at_ms: 5_000 * i64::from(count) - 3_600_000 * i64::from(life),
        ..Heartbeat::default()
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let boards = [const { None }; BOARDS];
        vec![State { life: 1, ledger: 1, count: 0, boards, hearer: self.0.clone(), went_back: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.count < COUNT_MAX {
            actions.extend([[true, true], [true, false], [false, true]].map(Action::Heartbeat));
        }
        if state.life < LIVES_MAX {
            actions.push(Action::Restart);
            actions.extend((state.ledger < LEDGERS_MAX).then_some(Action::StartAnew));
        }
        actions.extend((0..BOARDS).filter(|board| state.boards[*board].is_some()).map(Action::Hear));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Heartbeat(reached) => {
                next.count += 1;
                let left = beat(next.life, next.ledger, next.count);
                (0..BOARDS).filter(|board| reached[*board]).for_each(|board| next.boards[board] = Some(left.clone()));
            }
            Action::Restart | Action::StartAnew => {
                next.life += 1;
                next.count = 0;
                next.ledger += u8::from(action == Action::StartAnew);
            }
            Action::Hear(board) => {
                let before = next.hearer.believed().map(|beat| beat.origin.clone());
                next.hearer.hear(board, next.boards[board].clone()?);
                next.went_back |= before > next.hearer.believed().map(|beat| beat.origin.clone());
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("an earlier ledger never counts again", |_, state: &State| !state.went_back),
            Property::always("whoever beats on one board is heard", |_, state: &State| {
                (0..BOARDS).all(|board| {
                    let mut hearer = state.hearer.clone();
                    let later = |more| beat(state.life, state.ledger, COUNT_MAX + more);
                    (1..4).for_each(|more| hearer.hear(board, later(more)));
                    hearer.believed() == Some(&later(3))
                })
            }),
            Property::sometimes("another ledger counts", |_, state: &State| {
                state.hearer.believed().is_some_and(|beat| beat.origin == Origin(format!("ledger-{LEDGERS_MAX}")))
            }),
        ]
    }
}

// Faults: C1
#[test]
fn an_old_beat_that_a_board_brings_back_brings_back_no_ledger_and_silences_nobody() {
    let finish = HasDiscoveries::AnyFailures;
    let checker = World(Hearer::production()).checker().threads(2).finish_when(finish).spawn_bfs().join();
    eprintln!("beats: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() > 10_000, "{} states are no search", checker.unique_state_count());
}

/// Some search of the mutant breaks the named property.
fn breaks(mutant: Hearer, property: &'static str) {
    let caught = HasDiscoveries::AllOf(BTreeSet::from([property]));
    let checker = World(mutant.clone()).checker().threads(2).finish_when(caught).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{mutant:?} was not caught by {property:?}");
}

// Faults: C1
#[test]
fn beats_in_the_order_of_a_clock() {
    breaks(Hearer::ByClock(None), "whoever beats on one board is heard");
}

#[test]
fn beats_in_the_order_of_arrival() {
    breaks(Hearer::ByBoard(None), "an earlier ledger never counts again");
}

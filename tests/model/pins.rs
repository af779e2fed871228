//! Every order in which a member of a group of three is restarted with more or fewer servers in its configuration, hears the others
//! or does not, stores who the members are, and is told by a person to let one go. What was once agreed on is never made smaller
//! by a configuration that has lost something (decision 56, *pins hold*).

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::Member;
use kernel::machine::Timestamp;
use purge::agreement::roster::{Heartbeat, Pin, Roster, Servers};
use stateright::{Checker, HasDiscoveries, Model, Property};

const NAMES: [&str; 3] = ["eu-1", "eu-2", "us-1"];
const KEPT: &str = "nothing is agreed on without a member that no person has let go";

/// Steps from the start. What goes wrong in more goes wrong in these: agree, lose, restart, forget, agree again.
const DEPTH_MAX: u8 = 9;

/// Which pin is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rule {
    Production,
    /// The mutant that learns the members anew whenever as many are heard as servers are configured, as the first releases did.
    AsManyAsServers,
    /// The mutant that has nothing to do with a ledger's members where the configuration names none.
    AloneWithoutServers,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    depth: u8,
    /// Servers in the configuration, our own included, and how many of them answer.
    configured: usize,
    answering: usize,
    pin: Option<Pin>,
    heard: BTreeSet<Member>,
    /// Whom a pin had, and no person has let go.
    kept: BTreeSet<Member>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// Restarted with this many servers in the configuration, of which so many answer.
    Restart(usize, usize),
    Hear(Member),
    /// What was heard is too long ago.
    Silence,
    Store,
    Forget(Member),
    Leave,
}

struct World {
    rule: Rule,
    /// `group.members` names as many as there are servers.
    named: bool,
}

fn own() -> Member {
    NAMES[0].into()
}

fn names(count: usize) -> BTreeSet<Member> {
    NAMES.iter().take(count).map(|name| Member::from(*name)).collect()
}

impl World {
    fn servers(state: &State) -> Servers {
        let name = |number: usize| format!("redis-{number}");
        Servers {
            distinct: state.answering,
            identified: (0..state.answering).map(name).collect(),
            unidentified: (state.answering..state.configured).map(name).collect(),
            ..Servers::default()
        }
    }

    /// The roster of this life, as of what it has heard.
    fn roster(&self, state: &State) -> Roster {
        let named = if self.named && state.configured > 1 { names(state.configured) } else { BTreeSet::new() };
        let mut roster = Roster::new(own(), "o".into(), named, BTreeMap::new(), state.pin.clone());
        for member in &state.heard {
            let beat = Heartbeat { member: member.clone(), origin: member.0.as_str().into(), ..Heartbeat::default() };
            let _ = roster.hear(Timestamp::default(), 0, beat);
        }
        roster
    }

    fn wanted(&self, state: &State) -> Option<Pin> {
        let mut known = state.heard.clone();
        known.insert(own());
        let as_many = known.len() == state.configured.max(1);
        match self.rule {
            Rule::Production | Rule::AloneWithoutServers => {
                self.roster(state).wanted_pin(Timestamp::default(), &Self::servers(state))
            }
            Rule::AsManyAsServers => {
                as_many.then(|| Pin { members: known, of: state.configured.max(1), ..Pin::default() })
            }
        }
    }

    /// With whom it agrees; `None` while it is held up.
    fn agreed(&self, state: &State) -> Option<BTreeSet<Member>> {
        if self.rule == Rule::AloneWithoutServers && state.configured < 2 {
            return Some(BTreeSet::from([own()]));
        }
        let standing = self.roster(state).standing(Timestamp::default(), &Self::servers(state));
        standing.hold.is_none().then_some(standing.members)
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let none = BTreeSet::new();
        vec![State { depth: 0, configured: 3, answering: 3, pin: None, heard: none.clone(), kept: none }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.depth >= DEPTH_MAX {
            return;
        }
        for configured in 0..=NAMES.len() {
            actions.extend((0..=configured).map(|answering| Action::Restart(configured, answering)));
        }
        let others = || names(NAMES.len()).into_iter().skip(1);
        actions.extend(others().map(Action::Hear));
        actions.push(Action::Silence);
        actions.extend(self.wanted(state).map(|_| Action::Store));
        actions.extend(state.pin.is_some().then_some(Action::Leave));
        let pinned = |member: &Member| state.pin.as_ref().is_some_and(|pin| pin.members.contains(member));
        actions.extend(others().filter(pinned).map(Action::Forget));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = State { depth: state.depth + 1, ..state.clone() };
        match action {
            Action::Restart(configured, answering) => {
                (next.configured, next.answering) = (configured, answering);
                next.heard.clear();
            }
            Action::Hear(member) => drop(next.heard.insert(member)),
            Action::Silence => next.heard.clear(),
            Action::Store => {
                let pin = self.wanted(state)?;
                next.kept.extend(pin.members.iter().cloned());
                next.pin = Some(pin);
            }
            Action::Forget(member) => {
                next.kept.remove(&member);
                next.pin = next.pin.map(|pin| pin.without(&BTreeSet::from([member])));
            }
            Action::Leave => {
                next.kept.retain(|member| *member == own());
                let others = names(NAMES.len()).into_iter().skip(1).collect();
                next.pin = next.pin.map(|pin| Pin { of: 1, ..pin.without(&others) });
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(KEPT, |world: &Self, state: &State| {
                world.agreed(state).is_none_or(|members| state.kept.is_subset(&members))
            }),
            Property::sometimes("three agree", |world: &Self, state: &State| {
                state.depth > 0 && world.agreed(state).is_some_and(|members| members.len() == NAMES.len())
            }),
            Property::sometimes("one that has left works alone without any server", |world: &Self, state: &State| {
                let alone = BTreeSet::from([own()]);
                state.configured == 0 && state.kept == alone && world.agreed(state) == Some(alone)
            }),
            Property::sometimes(
                "two go on when a person has let the third go and its server is taken out",
                |world: &Self, state: &State| {
                    state.configured == 2 && state.kept.len() == 2 && world.agreed(state).as_ref() == Some(&state.kept)
                },
            ),
        ]
    }
}

// Faults: D5
#[test]
fn a_configuration_that_has_lost_servers_never_makes_a_smaller_group() {
    for named in [false, true] {
        let finish = HasDiscoveries::AnyFailures;
        let world = World { rule: Rule::Production, named };
        let checker = world.checker().threads(2).finish_when(finish).spawn_bfs().join();
        eprintln!("pins, named {named}: {} states", checker.unique_state_count());
        checker.assert_properties();
        assert!(checker.unique_state_count() > 1_000, "{} states are no search", checker.unique_state_count());
    }
}

/// Some search of the mutant agrees without a member that was kept.
fn breaks(rule: Rule) {
    let caught = HasDiscoveries::AllOf(BTreeSet::from([KEPT]));
    let checker = World { rule, named: false }.checker().threads(2).finish_when(caught).spawn_bfs().join();
    assert!(checker.discovery(KEPT).is_some(), "{rule:?} was not caught");
}

#[test]
fn members_that_are_learnt_anew_with_the_number_of_servers() {
    breaks(Rule::AsManyAsServers);
}

#[test]
fn a_group_that_a_lost_secret_makes_alone() {
    breaks(Rule::AloneWithoutServers);
}

//! The searches of groups: the production `Rollout` in every order of events and faults, within bounds that are named.

mod mutants;
mod past;
mod scenarios;
mod worker;
mod world;

use std::collections::BTreeSet;

use kernel::id::Vector;
use kernel::names::distribution::DistributionId;
use kernel::promise::Promise;
use purge::records::record::{Outcome, Phase, PurgeState, Record};
use stateright::{Checker, HasDiscoveries, Model, Property, UniformChooser};

use crate::group::world::{Action, Cluster, HELD, State, World};

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(self.steps(state));
        if actions.is_empty() {
            actions.extend(self.timeouts(state));
        }
        actions.extend(self.mishaps(state));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.after(state, &action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = PROMISES.iter().chain(QUIET).map(|(promise, holds)| Property::always(promise.words(), *holds));
        always.chain(ENDS.iter().map(|(name, reached)| Property::sometimes(name, *reached))).collect()
    }
}

type Condition = fn(&World, &State) -> bool;

/// What never happens; judged at the step that would break it.
const PROMISES: &[(Promise, Condition)] = promises![
    CreatedOnce,
    CompleteTogether,
    NothingForFailed,
    NumbersRise,
    PhasesInOrder,
    VotesStay,
    OneEnd,
    VotesAreAChain,
    SameCode,
];

/// What holds when nothing but faults can happen any more.
const QUIET: &[(Promise, Condition)] = &[
    (Promise::MadeIsFollowed, |world, state| {
        let votes = state.places.iter().filter_map(|place| place.record.as_deref()).flat_map(|record| &record.votes);
        let mut made = votes.filter(|vote| vote.closed.is_none()).flat_map(|vote| vote.purges.listed.values());
        !state.quiet || has_dead(world, state) || made.all(|purge| purge.state != PurgeState::Created)
    }),
    (Promise::NothingLeftOpen, |world, state| {
        !state.quiet
            || has_dead(world, state)
            || is_held(world, state)
            || state.places.iter().all(|place| {
                place.record.as_deref().is_none_or(|record| record.votes.is_empty() && record.phase != Phase::Rolling)
            })
    }),
    (Promise::EdgeAgrees, |world, state| {
        if !state.quiet || has_dead(world, state) || is_held(world, state) || state.past.gave_up {
            return true;
        }
        let records: Vec<_> = state.places.iter().filter_map(|place| place.record.as_deref()).collect();
        let versions: BTreeSet<_> = records.iter().map(|record| past::build(&record.version)).collect();
        let complete = records.iter().all(|record| record.phase == Phase::Complete);
        // What is served where its owner has switched it off is followed once it is switched on again (decision 53).
        if records.iter().any(|record| record.off) {
            return true;
        }
        let agrees = || state.past.edge.as_ref().is_none_or(|(version, moved)| versions.contains(version) && !moved);
        !complete || versions.len() != 1 || agrees()
    }),
    (Promise::AheadWaitsForNone, |world, state| {
        let counts = state.quiet && !has_dead(world, state) && !is_held(world, state) && !state.past.gave_up;
        !counts || state.is_last_purged(world)
    }),
    (Promise::NoneLeftOut, |world, state| {
        let wanted: BTreeSet<_> = world.members.iter().flat_map(distributions).collect();
        let of = |vector: &Vector| -> BTreeSet<_> {
            let made = state.past.creations.values().filter(|(made, _)| made == vector);
            made.map(|(_, distribution)| distribution.clone()).collect()
        };
        let whole = || state.past.creations.values().all(|(vector, _)| of(vector) == wanted);
        !state.quiet || has_dead(world, state) || state.past.forgot || whole()
    }),
];

/// What a member wants to be purged: what its owner named, or else what serves its host.
fn distributions(cluster: &Cluster) -> BTreeSet<DistributionId> {
    let named = cluster.script.iter().flatten().find_map(|workload| workload.tuning.distributions.clone());
    named.unwrap_or_else(|| BTreeSet::from([worker::by_host()]))
}

fn has_dead(world: &World, state: &State) -> bool {
    let mut dead = world.members.iter().zip(&state.places);
    dead.any(|(cluster, place)| cluster.dies_after.is_some_and(|writes| place.written >= writes))
}

fn is_held(world: &World, state: &State) -> bool {
    let mut places = world.members.iter().zip(&state.places);
    places.any(|(cluster, place)| cluster.configs[place.config].0 == HELD)
}

/// Good ends; each search names those it must reach.
const ENDS: &[(&str, Condition)] = &[
    ("ends purged once", |_, state| state.quiet && state.past.creations.len() == 1),
    ("ends purged twice", |_, state| state.quiet && state.past.creations.len() == 2),
    ("ends purged three times", |_, state| state.quiet && state.past.creations.len() == 3),
    ("both distributions are purged", |_, state| {
        let distributions: BTreeSet<_> = state.past.creations.values().map(|(_, id)| id).collect();
        state.quiet && distributions.len() == 2
    }),
    ("ends without a purge", |_, state| state.quiet && state.past.creations.is_empty()),
    ("a vector dies", |_, state| has_outcome(state, &Outcome::Dead)),
    ("a vector is a return", |_, state| has_outcome(state, &Outcome::Returned)),
    ("a member withdraws", |_, state| {
        state.places.iter().any(|place| place.record.as_deref().is_some_and(|record| record.phase == Phase::Withdrawn))
    }),
    ("a purge is in doubt", |_, state| {
        state.quiet
            && state.places.iter().any(|place| {
                place
                    .record
                    .as_deref()
                    .is_some_and(|record| record.stalled && record.votes.iter().any(|v| v.closed.is_none()))
            })
    }),
];

fn has_outcome(state: &State, outcome: &Outcome) -> bool {
    state.past.voted.values().any(|closings| closings.values().flatten().any(|closed| closed == outcome))
}

/// Searches in part what takes too long as a whole: for every run, and some also for `make model-deep`. So many states breadth first, which
/// breaks no property near the beginning; then as many in random walks, which come to good ends as well, where liveness
/// is judged. Returns the ends that were reached.
pub fn search_part(name: &str, world: World, ends: &[&str], states: usize) -> BTreeSet<&'static str> {
    let started = std::time::Instant::now();
    let bounded = || world.clone().checker().finish_when(HasDiscoveries::AnyFailures).target_state_count(states);
    let near = bounded().threads(2).spawn_bfs().join();
    let far = bounded().spawn_simulation(1, UniformChooser).join();
    eprintln!(
        "{name}, in part: {} states, and {} steps of walks, {:?}",
        near.unique_state_count(),
        far.state_count(),
        started.elapsed()
    );
    assert_unbroken(name, &near);
    assert_unbroken(name, &far);
    let found: BTreeSet<&str> = near.discoveries().into_keys().chain(far.discoveries().into_keys()).collect();
    for end in ends {
        assert!(found.contains(end), "{name} never {end}, but {found:?}");
    }
    found
}

fn assert_unbroken(name: &str, checker: &impl Checker<World>) {
    let found = checker.discoveries();
    for (property, path) in found.iter().filter(|(name, _)| !is_end(name)) {
        eprintln!("broken: {property}");
        for (state, action) in path.clone().into_vec() {
            for place in &state.places {
                eprintln!("    at {}, config {}: {}", place.at, place.config, words(place.record.as_deref()));
            }
            eprintln!("  {}", action.as_ref().map_or(String::new(), brief));
        }
        let past = &path.last_state().past;
        eprintln!("edge {:?}, created {:?}", past.edge, past.creations.values().collect::<Vec<_>>());
        let places = path.last_state().places.iter();
        places.for_each(|place| eprintln!("{}", serde_json::to_string(&place.record.as_deref()).unwrap_or_default()));
    }
    let broken: BTreeSet<&str> = found.keys().copied().filter(|name| !is_end(name)).collect();
    assert_eq!(broken, BTreeSet::new(), "{name}");
}

fn is_end(name: &str) -> bool {
    ENDS.iter().any(|(end, _)| *end == name)
}

/// Searches to the end: no property is broken, every named end is reached, and the search has the size it had.
pub fn search(name: &str, world: World, ends: &[&str], states: usize) {
    let started = std::time::Instant::now();
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    eprintln!(
        "{name}: {} states, depth {}, {:?}",
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    assert_unbroken(name, &checker);
    let found = checker.discoveries();
    for end in ends {
        assert!(found.contains_key(end), "{name} never {end}");
    }
    assert!(states == 0 || checker.unique_state_count() == states, "{name}: the search has another size");
}

fn words(record: Option<&Record>) -> String {
    let Some(record) = record else { return "no record".to_owned() };
    let votes = record.votes.iter().map(|vote| {
        let seqs: Vec<u64> = vote.vector.0.values().map(|component| component.seq.0).collect();
        let purges: Vec<&PurgeState> = vote.purges.listed.values().map(|purge| &purge.state).collect();
        format!(" vote {seqs:?} {purges:?} {:?}", vote.closed)
    });
    let (phase, edge) = (record.phase.name(), record.edge);
    format!(
        "{} {phase} {} edge {edge:?} closed {}{}",
        record.seq,
        record.version,
        record.closed,
        votes.collect::<String>()
    )
}

fn brief(action: &Action) -> String {
    match action {
        Action::Work(m, w, done) => {
            format!(
                "Work({m}, {w}, {:?}, creates {}, writes {})",
                done.patience,
                done.created.len(),
                done.write.is_some()
            )
        }
        other => format!("{other:?}"),
    }
}

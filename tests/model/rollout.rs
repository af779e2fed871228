//! The searches: the production `Rollout` in every order of events and faults, within bounds that are named.

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::id::Seq;
use kernel::names::distribution::DistributionId;
use kernel::names::image::Version;
use kernel::promise::Promise;
use kinds::reported::{GivenUp, Replicas, Says};
use notices::notice::Kind;
use purge::bounds::policy::{AtBarrier, OnRollback, Policy};
use purge::records::record::{Outcome, Phase};
use purge::rollouts::rollout::baseline;
use purge::testing;
use purge::workloads::workload::{Asks, Tuning, Workload};
use stateright::{Checker, Model, Property};

use crate::past::content;
use crate::world::{Action, Faults, State, World};

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(self.steps(state));
        actions.extend(self.mishaps(state));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.after(state, &action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties: Vec<Property<Self>> =
            PROMISES.iter().chain(QUIET).map(|(promise, holds)| Property::always(promise.words(), *holds)).collect();
        properties.push(Self::is_live());
        properties.extend(ENDS.iter().map(|(name, reached)| Property::sometimes(name, *reached)));
        properties
    }
}

type Condition = fn(&World, &State) -> bool;

/// What never happens; judged at the step that would break it.
const PROMISES: &[(Promise, Condition)] = promises![
    CreatedOnce,
    CompleteTogether,
    NothingForFailed,
    DurableFirst,
    NumbersRise,
    NumbersMeanOne,
    PhasesInOrder,
    VotesStay,
    NoticesKeepBytes,
    FailedAfterALook,
    OldPodsFirst,
    DeadlinesAhead,
    ToldOfAWholeEdge,
    SettledAsAWhole,
];

/// What holds when nothing but faults can happen any more.
const QUIET: &[(Promise, Condition)] = &[
    (Promise::NothingLeftOpen, |world, state| {
        !is_quiet(world, state) || state.ledger.as_deref().is_none_or(|r| !r.is_open() || waits_for_ever(world, state))
    }),
    (Promise::AllTold, |world, state| !is_quiet(world, state) || state.past.notices.values().all(|(_, told)| *told)),
    (Promise::AboutWhatRuns, |world, state| {
        let same = || match (state.ledger.as_deref(), &world.runs(state.at)) {
            (Some(record), Some(workload)) => {
                record.uid == workload.uid && workload.version.as_ref() == Ok(&record.version)
            }
            (record, workload) => record.is_none() && workload.is_none(),
        };
        !is_quiet(world, state) || same()
    }),
    (Promise::RequestsPurged, |world, state| {
        let asked = world.script.iter().flatten().any(|workload| workload.tuning.asks.requested_at.is_some());
        !is_quiet(world, state) || !asked || !world.sited || !state.cdn.is_empty()
    }),
    (Promise::EdgeAgrees, |world, state| {
        let Some(record) = state.ledger.as_deref() else { return true };
        let same = |version: &Version| content(version) == content(&record.version);
        let purged = world.served_in_the_end();
        let agrees = |(id, (version, moved)): (&DistributionId, &(Version, bool))| {
            !purged.contains(id) || (same(version) && !moved)
        };
        let agrees = state.past.edges.iter().all(agrees);
        !is_quiet(world, state) || record.phase != Phase::Complete || !world.sited || agrees
    }),
];

fn is_quiet(world: &World, state: &State) -> bool {
    world.steps(state).is_empty()
}

/// A rollout that is paused or scaled to zero waits without end (decision 20).
fn waits_for_ever(world: &World, state: &State) -> bool {
    world.script[state.at].as_ref().is_some_and(|workload| workload.is_held() || workload.replicas.desired == 0)
}

/// Good ends; each search names those it must reach.
const ENDS: &[(&str, Condition)] = &[
    ("ends purged", |_, state| closed(state, &Outcome::Purged)),
    ("ends returned", |_, state| closed(state, &Outcome::Returned)),
    ("ends rolled back", |_, state| closed(state, &Outcome::RolledBack)),
    ("ends superseded", |_, state| closed(state, &Outcome::Superseded)),
    ("ends without a site", |_, state| closed(state, &Outcome::NoSite)),
    ("fails, then recovers and is purged", |_, state| {
        let Some(record) = state.ledger.as_deref() else { return false };
        let [.., failed, purged] = record.history.as_slice() else { return false };
        matches!(failed.outcome, Outcome::Failed(_)) && purged.outcome == Outcome::Purged && failed.seq < purged.seq
    }),
    ("ends superseded before", |_, state| {
        state
            .ledger
            .as_deref()
            .is_some_and(|r| !r.is_open() && r.history.iter().any(|c| c.outcome == Outcome::Superseded))
    }),
    ("is forgotten", |world, state| is_quiet(world, state) && state.ledger.is_none()),
    ("waits without end", |world, state| is_quiet(world, state) && waits_for_ever(world, state)),
    ("ends partly purged", |_, state| closed(state, &Outcome::Partly)),
    ("is owed in part", |_, state| {
        let record = state.ledger.as_deref();
        record.and_then(|r| r.history.last()).is_some_and(|closed| closed.outcome == Outcome::PartlyOwed)
    }),
    ("ends purged after it was owed", |_, state| {
        let owed = state.past.notices.values().any(|(notice, told)| notice.kind == Kind::PurgeOwed && *told);
        owed && closed(state, &Outcome::Purged)
    }),
    ("ends fresh everywhere", |world, state| {
        let Some(record) = state.ledger.as_deref().filter(|_| is_quiet(world, state)) else { return false };
        state.past.edges.values().all(|(version, moved)| content(version) == content(&record.version) && !moved)
    }),
    ("is purged twice", |_, state| state.cdn.len() == 2),
];

fn closed(state: &State, outcome: &Outcome) -> bool {
    state.ledger.as_deref().is_some_and(|r| !r.is_open() && r.history.last().is_some_and(|c| c.outcome == *outcome))
}

/// The Deployment at a version: `generation`, whether the controller has seen it, and how many of its two pods are new.
pub fn sight(version: &str, generation: i64, observed: bool, updated: u32) -> Option<Workload> {
    let complete = testing::settled(testing::version(version), generation, 2);
    let observed_generation = if observed { generation } else { generation - 1 };
    Some(Workload { observed_generation, replicas: Replicas { updated, ..complete.replicas }, ..complete })
}

/// One rollout as the API server shows it: not observed (with the old pods all ready), under way, complete.
fn rollout(version: &str, generation: i64) -> Vec<Option<Workload>> {
    vec![sight(version, generation, false, 2), sight(version, generation, true, 1), sight(version, generation, true, 2)]
}

pub fn world(script: Vec<Option<Workload>>) -> World {
    // Without the barrier, but in the searches that are about it.
    let barrier = AtBarrier { settle: Duration::ZERO, drain_timeout: Duration::ZERO };
    let policy = Policy {
        rollout_timeout: Duration::from_secs(2),
        barrier,
        // So that what was served needs no watch of pods, but in the searches that are about it.
        on_rollback: OnRollback::Close,
        ..Policy::default()
    };
    let record =
        script[0].as_ref().map(|workload| baseline(workload, workload.version.as_ref().expect("a version"), Seq(0)));
    let (serving, served) = (BTreeSet::new(), BTreeSet::new());
    let faults = Faults::default();
    World {
        script,
        record,
        listed: true,
        policy,
        workers: 1,
        faults,
        serving,
        served,
        sited: true,
        second: None,
        restless: None,
        mutant: None,
    }
}

pub fn a_to_b() -> Vec<Option<Workload>> {
    [vec![sight("a", 1, true, 2)], rollout("b", 2)].concat()
}

/// `b` is complete by its counts while an old pod still serves, and then that has ended, if it `ends`.
pub fn behind_the_barrier(ends: bool) -> World {
    let mut script = vec![sight("a", 1, true, 2), sight("b", 2, false, 2), sight("b", 2, true, 2)];
    script.extend(ends.then(|| sight("b", 2, true, 2)));
    let world = world(script);
    let barrier = AtBarrier { settle: Duration::from_secs(1), drain_timeout: Duration::from_secs(5) };
    let policy = Policy { barrier, ..world.policy.clone() };
    World { policy, serving: BTreeSet::from([2]), ..world }
}

/// `b` never completes, and `a` comes back. Whether a pod of `b` was ready in between is in no count of the Deployment.
pub fn rolled_back(served: bool) -> World {
    let replicas = Replicas { desired: 2, total: 3, updated: 1, ready: 2, available: 2 };
    let stuck = || sight("b", 2, true, 1).map(|workload| Workload { replicas, ..workload });
    let script =
        vec![sight("a", 1, true, 2), stuck(), stuck(), stuck(), sight("a", 3, false, 2), sight("a", 3, true, 2)];
    let world = world(script);
    let policy = Policy { on_rollback: OnRollback::IfServed, ..world.policy.clone() };
    let faults = Faults { crashes: 1, ..Faults::default() };
    World { policy, faults, served: served.then_some(2).into_iter().collect(), ..world }
}

/// From version `a` through others, each not observed and then complete.
pub fn quick(versions: &[(&str, i64)]) -> Vec<Option<Workload>> {
    let steps =
        versions.iter().flat_map(|(v, generation)| [sight(v, *generation, false, 2), sight(v, *generation, true, 2)]);
    [sight("a", 1, true, 2)].into_iter().chain(steps).collect()
}

/// Searches to the end: no property is broken, every named end is reached, and the search has the size it had.
pub fn search(name: &str, world: World, ends: &[&str], states: usize) {
    let started = std::time::Instant::now();
    let checker = world.checker().threads(2).finish_when(stateright::HasDiscoveries::AnyFailures).spawn_dfs().join();
    eprintln!(
        "{name}: {} states, depth {}, {:?}",
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    let found = checker.discoveries();
    let broken = found.iter().filter(|(name, _)| !ENDS.iter().any(|(end, _)| end == *name));
    for (property, path) in broken {
        eprintln!("broken: {property}");
        for (state, action) in path.clone().into_vec() {
            let calls: Vec<&str> = state.workers.iter().flat_map(|w| &w.calls).map(|call| call.effect.name()).collect();
            eprintln!("  at {}, calls {calls:?}: {action:?}", state.at);
        }
        let state = path.last_state();
        eprintln!("ledger {}", serde_json::to_string(&state.ledger.as_deref()).unwrap_or_default());
        eprintln!("{:?}", state.workers);
    }
    let broken: BTreeSet<&str> =
        found.keys().copied().filter(|name| !ENDS.iter().any(|(end, _)| end == name)).collect();
    assert_eq!(broken, BTreeSet::new(), "{name}");
    for end in ends {
        assert!(found.contains_key(end), "{name} never {end}");
    }
    assert_eq!(checker.unique_state_count(), states, "{name}: the search has another size");
}

#[test]
fn one_rollout_survives_two_crashes() {
    let world = World { faults: Faults { crashes: 2, ..Faults::default() }, ..world(a_to_b()) };
    search("A→B, two crashes", world, &["ends purged"], 495);
}

// Faults: A3
#[test]
fn one_rollout_survives_a_lost_answer() {
    let world = World { faults: Faults { lost: 1, ..Faults::default() }, ..world(quick(&[("b", 2)])) };
    search("A→B, lost answer", world, &["ends purged"], 2724);
}

#[test]
fn a_version_that_was_never_served_leaves_nothing_at_the_edge() {
    search("never served", rolled_back(false), &["ends returned"], 440);
}

// Faults: P3
#[test]
fn a_version_that_was_served_and_is_left_is_purged() {
    search("served, then left", rolled_back(true), &["ends purged"], 1011);
}

// Faults: P1
#[test]
fn no_vote_is_cast_while_an_old_pod_serves() {
    let faults = Faults { crashes: 1, early: 1, ..Faults::default() };
    search("barrier", World { faults, ..behind_the_barrier(true) }, &["ends purged"], 9_724);
}

#[test]
fn an_old_pod_that_never_ends_holds_up_no_purge_for_ever() {
    let faults = Faults { lost: 1, ..Faults::default() };
    search("barrier, bound", World { faults, ..behind_the_barrier(false) }, &["ends purged"], 2404);
}

#[test]
fn a_late_rollout_fails_and_recovers() {
    let world = World { faults: Faults { early: 2, stale: 1, ..Faults::default() }, ..world(a_to_b()) };
    search("A→B, late", world, &["ends purged", "fails, then recovers and is purged"], 21_514);
}

#[test]
fn going_back_is_a_rollout_of_its_own() {
    let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(quick(&[("b", 2), ("a", 3)])) };
    search("A→B→A", world, &["ends purged", "is purged twice", "ends returned"], 12_920);
}

#[test]
fn a_workload_without_hosts_is_no_site() {
    let world = World { sited: false, faults: Faults { crashes: 1, ..Faults::default() }, ..world(a_to_b()) };
    search("no site", world, &["ends without a site"], 160);
}

// Faults: W4
#[test]
fn another_version_takes_over_at_any_moment() {
    let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(quick(&[("b", 2), ("c", 3)])) };
    search("A→B→C", world, &["ends purged", "is purged twice", "ends superseded before"], 13_018);
}

// Faults: W5
#[test]
fn a_rollout_that_never_completes_is_rolled_back_and_skipped() {
    let stuck = vec![sight("a", 1, true, 2), sight("b", 2, true, 1), sight("a", 3, false, 2), sight("a", 3, true, 2)];
    let world = World { faults: Faults { crashes: 1, early: 1, stale: 1, ..Faults::default() }, ..world(stuck) };
    search("A→B fails→A", world, &["ends returned"], 56_485);
}

// Faults: W8
#[test]
fn a_workload_may_be_deleted_and_come_back_at_any_moment() {
    let again = |observed| sight("b", 1, observed, 2).map(|workload| Workload { uid: "uid-2".to_owned(), ..workload });
    let script = vec![sight("a", 1, true, 2), sight("b", 2, true, 2), None, again(false), again(true)];
    let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(script) };
    search("deleted and re-created", world, &["ends purged"], 39_432);
}

/// A workload whose pods take their time: none is ready yet.
fn slow(version: &str) -> Option<Workload> {
    let replicas = Replicas { desired: 2, total: 2, updated: 2, ready: 0, available: 0 };
    sight(version, 1, true, 2).map(|workload| Workload { replicas, starting: true, ..workload })
}

#[test]
fn a_workload_created_while_all_others_are_on_record_is_purged() {
    let script = vec![None, slow("a"), sight("a", 1, true, 2)];
    let world = World { faults: Faults { crashes: 2, ..Faults::default() }, ..world(script) };
    search("created", world, &["ends purged"], 373);
}

#[test]
fn a_first_listing_in_the_middle_of_a_rollout_ends_in_a_purge() {
    let script = vec![slow("a"), sight("a", 1, true, 2), sight("b", 2, false, 2), sight("b", 2, true, 2)];
    let world = World { record: None, listed: false, ..world(script) };
    search(
        "first listing",
        World { faults: Faults { stale: 1, ..Faults::default() }, ..world },
        &["ends purged"],
        21_296,
    );
}

#[test]
fn a_deleted_workload_leaves_nothing_behind() {
    let script = vec![sight("a", 1, true, 2), sight("b", 2, false, 2), sight("b", 2, true, 2), None];
    let world = World { faults: Faults { lost: 1, ..Faults::default() }, ..world(script) };
    search("deleted", world, &["is forgotten"], 14_234);
}

// Faults: A2, D1
#[test]
fn two_workers_in_one_cluster_are_as_good_as_one() {
    let world = World { workers: 2, faults: Faults { crashes: 1, ..Faults::default() }, ..world(quick(&[("b", 2)])) };
    search("two workers", world, &["ends purged"], 52_008);
}

#[test]
fn the_clock_of_a_paused_or_empty_workload_stands_still() {
    let says = || Says::Held("the rollout is paused".to_owned());
    let paused = sight("b", 2, true, 1).map(|workload| Workload { says: says(), ..workload });
    let empty = sight("b", 3, true, 0).map(|workload| Workload { replicas: Replicas::default(), ..workload });
    let script = vec![sight("a", 1, true, 2), sight("b", 2, true, 1), paused, empty];
    let world = World { faults: Faults { crashes: 1, early: 1, ..Faults::default() }, ..world(script) };
    search("paused, then empty", world, &["waits without end"], 707);
}

#[test]
fn a_missed_deadline_is_confirmed_and_may_be_recovered_from() {
    let late = |updated: &str| {
        let says = Says::GivenUp(GivenUp::DeadlineExceeded { last_update: updated.to_owned() });
        sight("b", 2, true, 1).map(|workload| Workload { says, ..workload })
    };
    let script = vec![sight("a", 1, true, 2), late("t1"), late("t2"), sight("b", 2, true, 2)];
    let world = World { faults: Faults { crashes: 1, early: 2, ..Faults::default() }, ..world(script) };
    search("deadline", world, &["ends purged", "fails, then recovers and is purged"], 18_057);
}

#[test]
fn an_unreadable_image_stops_nothing_else() {
    let unreadable =
        sight("b", 3, true, 2).map(|workload| Workload { version: Err(testing::unreadable_image()), ..workload });
    let script = vec![
        sight("a", 1, true, 2),
        sight("b", 2, true, 1),
        unreadable,
        sight("c", 4, false, 2),
        sight("c", 4, true, 2),
    ];
    let world = World { faults: Faults { crashes: 1, early: 1, ..Faults::default() }, ..world(script) };
    search("unreadable", world, &["ends purged"], 42_224);
}

#[test]
fn a_request_survives_the_rollback_of_what_it_had_joined() {
    let asking = |workload: Option<Workload>| {
        let tuning =
            Tuning { asks: Asks { requested_at: Some("1".to_owned()), ..Asks::default() }, ..Tuning::default() };
        workload.map(|workload| Workload { tuning, ..workload })
    };
    let script = vec![
        sight("a", 1, true, 2),
        sight("b", 2, true, 1),
        asking(sight("b", 2, true, 1)),
        asking(sight("a", 3, true, 2)),
    ];
    let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(script) };
    search("requested, then rolled back", world, &["ends purged"], 439);
}

/// `latest`, pinned to one digest, then to another, then under another tag.
pub fn digests() -> Vec<Option<Workload>> {
    let pinned = |digit: &str| format!("latest@sha256:{}", digit.repeat(64));
    let renamed = format!("1@sha256:{}", "b".repeat(64));
    vec![
        sight("latest", 1, true, 2),
        sight(&pinned("a"), 2, true, 2),
        sight(&pinned("b"), 3, true, 2),
        sight(&renamed, 4, true, 2),
    ]
}

#[test]
fn a_digest_that_becomes_known_is_a_change_and_a_new_tag_of_it_is_none() {
    let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(digests()) };
    search("digests", world, &["ends purged", "is purged twice"], 23_690);
}

#[test]
fn a_requested_purge_is_a_rollout_of_its_own() {
    let requested = |at: &str| {
        let tuning =
            Tuning { asks: Asks { requested_at: Some(at.to_owned()), ..Asks::default() }, ..Tuning::default() };
        sight("a", 1, true, 2).map(|workload| Workload { tuning, ..workload })
    };
    let script = vec![sight("a", 1, true, 2), requested("1"), requested("2")];
    let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(script) };
    search("requested", world, &["ends purged", "is purged twice"], 2474);
}

// Faults: A5
#[test]
fn a_cluster_that_is_restored_at_any_moment_is_purged_for_what_runs_then() {
    let world = World { faults: Faults { restores: 1, ..Faults::default() }, ..world(quick(&[("b", 2)])) };
    search("A→B, restored", world, &["ends purged", "is purged twice"], 12_565);
}

// Faults: A8
#[test]
fn a_workload_whose_part_of_the_ledger_is_lost_at_any_moment_is_purged_once_more_for_what_runs() {
    let faults = Faults { losses: 1, ..Faults::default() };
    let one = World { faults, ..world(quick(&[("b", 2)])) };
    search("A→B, a part lost", one, &["ends purged", "is purged twice"], 2696);
    let crashing = World { faults: Faults { crashes: 1, ..faults }, ..world(quick(&[("b", 2)])) };
    search("A→B, a part lost, a crash", crashing, &["ends purged", "is purged twice"], 8071);
}

/// Too large for every run.
mod deep {
    use super::*;

    #[test]
    #[ignore = "two minutes: make model-deep"]
    fn a_cluster_that_is_restored_among_two_versions_is_purged_for_what_runs_then() {
        let world =
            World { faults: Faults { restores: 1, ..Faults::default() }, ..world(quick(&[("b", 2), ("c", 3)])) };
        search("A→B→C, restored", world, &["ends purged", "is purged twice"], 1_243_607);
    }
}

//! The production `Repo` around an API server that keeps its object and its Jobs, with workers whose watches lag, a wanted ref that
//! moves, Jobs that fail at each step or are touched by hand, plans that drift, people who answer, and lives that end between any two
//! steps.

mod action;
mod concern;
mod drift;
mod end;
mod forge;
mod leaving;
mod lock;
mod outputs;
mod outside;
mod past;
mod person;
mod rest;
mod scenarios;
mod world;

use kernel::promise::Promise;
use objects::repo::spec::{Approving, OnDrift};
use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model, Property};

use action::{Action, Faults};
use world::{Mutant, State, Terms, World};

type Condition = fn(&World, &State) -> bool;

/// Broken in a step, if at all.
const PROMISES: &[(Promise, Condition)] =
    promises![JobsDurable, RunSeqsRise, RunsInOrder, StartedOnce, OneAtATime, LeftAlone, AppliedAsPlanned, NewestNext,];

/// What holds when nothing but faults can happen any more.
const SETTLES: (Promise, Condition) =
    (Promise::RunInTheEnd, |world, state| !state.past.broken.contains(&Promise::RunInTheEnd) && state.settles(world));

/// What no state is without, beside the promises.
const RULES: &[(&str, Condition)] = &[
    ("a shut gate and a person who stops it hold a Job back", |_, state| !state.past.rushed),
    ("a run is for what was not applied, or for what else asked for it", |_, state| !state.past.needless),
    ("drift is told only as a look has found it", |_, state| !state.past.invented),
    ("a Job is made and started only as its object wants it", |_, state| !state.past.unwanted),
    ("a Repo that asks goes after a no, or when nothing of it is left", |_, state| !state.past.abandoned),
    ("a lock that was met is taken away after a yes to that, once", |_, state| !state.lock.seized),
    ("the forge is told what is so, and once", |_, state| !state.forge.misled),
    ("a commit is said to be applied when its outputs are written", |_, state| !state.past.unwritten),
];

/// What some state of each search is.
const APPLIED: &str = "the newest commit is applied";

/// What some state is where commits are passed over.
const PASSED: &str = "a commit with the content of what was applied is passed over";

/// What some state is where drift is looked for.
const FOUND: &str = "what has drifted is found and told";

/// What some state is where nothing may be applied.
const PLANNED: &str = "the newest commit is planned, and that was told";

/// What some state is where a lock is in the way.
const UNLOCKED: &str = "a lock is taken away";

/// What some state is where a Repo asks on deletion.
const DESTROYED: &str = "what was applied is destroyed, and the Repo is gone";

const REACHED: &[(&str, Condition)] = &[
    (APPLIED, |world, state| state.is_applied(world)),
    (PASSED, |world, state| state.is_passed_over(world)),
    (FOUND, |_, state| state.past.has_told_of_drift()),
    (PLANNED, |world, state| state.is_planned(world)),
    (UNLOCKED, |_, state| state.lock.taken),
    (DESTROYED, |_, state| state.past.razed && state.object.leaving.gone),
];

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
        properties.extend(RULES.iter().map(|(name, condition)| Property::always(name, *condition)));
        properties.extend(REACHED.iter().map(|(name, condition)| Property::sometimes(name, *condition)));
        properties
    }
}

fn search(name: &str, world: World, states: usize) {
    reaches(APPLIED, name, world, states);
}

/// A search in which some state is that.
fn reaches(what: &'static str, name: &str, world: World, states: usize) {
    judge(name, world.checker().threads(2), states).assert_any_discovery(what);
}

/// The first steps of a world with too many states for a whole search. One thread: where several end is not the same in each run.
fn begin(name: &str, world: World, depth: usize, states: usize) {
    judge(name, world.checker().threads(1).target_max_depth(depth), states);
}

fn judge(name: &str, checker: CheckerBuilder<World>, states: usize) -> impl Checker<World> {
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("repo, {name}: {} states", checker.unique_state_count());
    for (promise, _) in PROMISES.iter().chain([&SETTLES]) {
        checker.assert_no_discovery(promise.words());
    }
    for (name, _) in RULES {
        checker.assert_no_discovery(name);
    }
    assert_eq!(checker.unique_state_count(), states);
    checker
}

/// Whether a search of this world finds that promise broken.
fn breaks(world: World, promise: Promise) -> bool {
    let caught = HasDiscoveries::AllOf(std::collections::BTreeSet::from([promise.words()]));
    let checker = world.checker().threads(2).finish_when(caught).spawn_bfs().join();
    checker.discovery(promise.words()).is_some()
}

const ONE: &[u8] = &[1];
const TWO: &[u8] = &[1, 2];
/// There and back again.
const BACK: &[u8] = &[1, 2, 1];

const NO_FAULTS: Faults = Faults {
    lost: 0,
    crashes: 0,
    deleted: 0,
    orphaned: 0,
    stuck: 0,
    freed: 0,
    suspended: 0,
    before: 0,
    broken: 0,
    forgotten: 0,
    lingers: 0,
    drifts: 0,
    yes: 0,
    reruns: 0,
    replays: 0,
    restores: 0,
    turns: 0,
    edits: 0,
    rewatches: 0,
    stops: 0,
    locks: 0,
    gives: 0,
    agrees: 0,
    refusals: 0,
    removals: 0,
    keeps: 0,
    remakes: 0,
    unwritten: 0,
    waits: 0,
};

fn world(approval: Approving, head: &'static [u8], faults: Faults) -> World {
    let terms = Terms::default();
    World { approval, head, faults, lags: false, workers: 1, keep: 9, terms, mutant: Mutant::None }
}

fn auto(head: &'static [u8], faults: Faults) -> World {
    world(Approving::Auto, head, faults)
}

#[test]
fn each_commit_is_applied_once_where_answers_get_lost_and_lives_end() {
    search("back", auto(BACK, NO_FAULTS), 27715);
    search("a watch that lags", World { lags: true, ..auto(TWO, NO_FAULTS) }, 6279);
    search("an answer lost", auto(TWO, Faults { lost: 1, waits: 1, ..NO_FAULTS }), 11785);
    search("two lives end", auto(ONE, Faults { crashes: 2, ..NO_FAULTS }), 4825);
    search("a life ends", auto(TWO, Faults { crashes: 1, ..NO_FAULTS }), 35002);
    search("nothing is kept", World { keep: 0, ..auto(TWO, Faults { broken: 1, yes: 1, ..NO_FAULTS }) }, 8897);
}

#[test]
fn what_fails_is_repeated_by_itself_only_if_nothing_was_applied() {
    let late = Faults { waits: 2, ..NO_FAULTS };
    search("before the apply", auto(TWO, Faults { before: 1, ..late }), 2908);
    search("in the apply", auto(TWO, Faults { broken: 2, yes: 1, ..NO_FAULTS }), 9521);
    search("in the apply, and its pod is gone", auto(TWO, Faults { forgotten: 1, yes: 1, ..NO_FAULTS }), 5723);
    search("its pod goes on", auto(TWO, Faults { lingers: 1, ..late }), 2874);
}

#[test]
fn a_job_that_a_person_touched_is_left_to_a_person() {
    let late = Faults { waits: 1, ..NO_FAULTS };
    search("deleted", auto(ONE, Faults { deleted: 1, crashes: 1, ..NO_FAULTS }), 4246);
    search("deleted twice", auto(ONE, Faults { deleted: 2, yes: 1, ..late }), 2741);
    search("suspended", auto(ONE, Faults { suspended: 1, crashes: 1, ..NO_FAULTS }), 1019);
    search("suspended, then deleted", auto(TWO, Faults { suspended: 1, deleted: 1, ..late }), 16671);
}

#[test]
fn a_job_that_never_ran_gives_way_and_one_that_may_have_run_does_not() {
    let stuck = Faults { stuck: 1, ..NO_FAULTS };
    search("stuck, and the head moves", auto(TWO, stuck), 5312);
    search("stuck, and corrected", auto(ONE, Faults { edits: 1, waits: 1, ..stuck }), 2356);
    search("stuck, and then it runs", auto(TWO, Faults { freed: 1, yes: 1, ..stuck }), 12143);
    search(
        "stuck, corrected, and then it runs",
        auto(ONE, Faults { edits: 1, freed: 1, yes: 1, waits: 1, ..stuck }),
        5801,
    );
    search("stuck, and deleted", auto(ONE, Faults { deleted: 1, yes: 1, waits: 1, ..stuck }), 987);
    search("stuck, corrected, and a life ends", auto(ONE, Faults { edits: 1, crashes: 1, waits: 1, ..stuck }), 147241);
}

#[test]
fn a_pod_that_was_left_holds_the_next_run_until_it_has_ended() {
    search("a Job without its pod", auto(TWO, Faults { orphaned: 1, yes: 1, waits: 1, ..NO_FAULTS }), 32970);
    let left = Terms { left: true, ..Terms::default() };
    search("a Repo that was made again", World { terms: left, ..auto(ONE, NO_FAULTS) }, 75);
}

#[test]
fn a_yes_counts_for_its_question_and_once() {
    let commit = |faults| world(Approving::Revision, TWO, faults);
    let plan = |head, faults| world(Approving::Plan, head, faults);
    search("a commit", commit(Faults { yes: 1, replays: 1, ..NO_FAULTS }), 9859);
    search(
        "a commit, and a life ends",
        world(Approving::Revision, ONE, Faults { yes: 1, crashes: 1, ..NO_FAULTS }),
        1425,
    );
    search("a plan", plan(TWO, Faults { yes: 1, ..NO_FAULTS }), 3785);
    search("a plan that drifts", plan(ONE, Faults { yes: 2, replays: 1, drifts: 2, ..NO_FAULTS }), 13957);
    search("a plan, and a life ends", plan(ONE, Faults { yes: 1, drifts: 1, crashes: 1, ..NO_FAULTS }), 9457);
    search(
        "a plan that fails",
        plan(ONE, Faults { yes: 2, before: 1, broken: 1, drifts: 1, waits: 1, ..NO_FAULTS }),
        3403,
    );
}

#[test]
fn what_was_applied_is_run_once_more_for_each_yes_and_for_no_other_reason() {
    let again = |approval, head, faults| world(approval, head, Faults { reruns: 1, ..faults });
    search("twice wanted", auto(ONE, Faults { reruns: 2, replays: 2, ..NO_FAULTS }), 25316);
    search("a newer commit comes", again(Approving::Auto, TWO, Faults { replays: 1, ..NO_FAULTS }), 41030);
    search("a life ends", again(Approving::Auto, ONE, Faults { crashes: 1, replays: 1, ..NO_FAULTS }), 25760);
    search("an answer lost", again(Approving::Auto, ONE, Faults { lost: 1, replays: 1, waits: 1, ..NO_FAULTS }), 12309);
    search(
        "a commit that needs a yes",
        again(Approving::Revision, ONE, Faults { yes: 1, replays: 1, ..NO_FAULTS }),
        3438,
    );
    search("a plan that drifts", again(Approving::Plan, ONE, Faults { yes: 2, drifts: 1, ..NO_FAULTS }), 3559);
}

/// The same content where it counts, and another; where more is watched, the second commit differs from the first, too.
const CONTENTS: &[[u8; 2]] = &[[1, 1], [1, 2], [3, 3]];

fn watching(head: &'static [u8], faults: Faults) -> World {
    World { terms: Terms { contents: Some(CONTENTS), ..Terms::default() }, ..auto(head, faults) }
}

/// A search in which a commit is passed over.
fn passes(name: &str, world: World, states: usize) {
    reaches(PASSED, name, world, states);
}

#[test]
fn a_commit_that_changes_nothing_here_is_not_run_and_one_that_does_is() {
    passes("unchanged", watching(&[1, 2], NO_FAULTS), 643);
    passes("changed, and back by another commit", watching(&[1, 3, 2], NO_FAULTS), 55310);
    passes("unchanged, and then changed", watching(&[1, 2, 3], NO_FAULTS), 37578);
    passes("unchanged, and its head moves back", watching(&[1, 2, 1], NO_FAULTS), 14275);
    passes("a life ends", watching(&[1, 2], Faults { crashes: 1, ..NO_FAULTS }), 28288);
    passes("an answer lost", watching(&[1, 2], Faults { lost: 1, waits: 2, ..NO_FAULTS }), 9894);
    passes("a watch that lags", World { lags: true, ..watching(&[1, 2], NO_FAULTS) }, 4615);
}

#[test]
fn a_commit_is_passed_over_only_for_the_paths_and_the_settings_that_were_compared() {
    passes("other paths", watching(&[1, 2], Faults { rewatches: 1, ..NO_FAULTS }), 17658);
    passes("other paths, and back", watching(&[1, 2], Faults { rewatches: 2, ..NO_FAULTS }), 100776);
    passes("changed", watching(&[1, 2], Faults { edits: 1, ..NO_FAULTS }), 42001);
    passes("wanted once more", watching(&[1, 2], Faults { reruns: 1, ..NO_FAULTS }), 5538);
    passes("stopped", watching(&[1, 2], Faults { stops: 1, ..NO_FAULTS }), 79050);
}

#[test]
fn what_was_not_applied_is_no_base_and_what_cannot_be_told_is_run() {
    passes("the apply fails", watching(&[1, 2], Faults { broken: 1, yes: 1, ..NO_FAULTS }), 4410);
    let blind = watching(&[1, 2], Faults { waits: 2, ..NO_FAULTS });
    search("git never tells", World { terms: Terms { blind: true, ..blind.terms }, ..blind }, 796);
}

#[test]
fn a_status_from_a_backup_repeats_nothing_that_runs() {
    search("restored", auto(TWO, Faults { restores: 1, ..NO_FAULTS }), 1992);
    begin("restored, and a life ends", auto(TWO, Faults { restores: 1, crashes: 1, ..NO_FAULTS }), 19, 30253);
}

#[test]
fn a_shut_gate_and_a_person_hold_what_is_next_and_nothing_that_runs() {
    let gated = Terms { gated: true, ..Terms::default() };
    let window = Faults { turns: 3, waits: 2, ..NO_FAULTS };
    search("a window", World { terms: gated, ..auto(ONE, window) }, 78);
    search(
        "a window, and the head moves",
        World { terms: gated, ..auto(TWO, Faults { turns: 2, waits: 1, ..NO_FAULTS }) },
        2150,
    );
    let plan = world(Approving::Plan, ONE, Faults { turns: 2, yes: 1, waits: 1, ..NO_FAULTS });
    search("a window before a planned apply", World { terms: gated, ..plan }, 282);
    search("stopped, and the head moves", auto(TWO, Faults { stops: 1, ..NO_FAULTS }), 104432);
    search("stopped twice", auto(ONE, Faults { stops: 2, ..NO_FAULTS }), 52754);
    search("stopped, and a life ends", auto(ONE, Faults { stops: 1, crashes: 1, ..NO_FAULTS }), 83287);
}

#[test]
fn a_changed_spec_voids_a_yes_and_disturbs_nothing_that_runs() {
    search("changed", auto(ONE, Faults { edits: 1, ..NO_FAULTS }), 729);
    search("changed twice", auto(ONE, Faults { edits: 2, ..NO_FAULTS }), 20707);
    search("changed, and a life ends", auto(ONE, Faults { edits: 1, crashes: 1, ..NO_FAULTS }), 46124);
    search("a commit, and changed", world(Approving::Revision, ONE, Faults { edits: 1, yes: 2, ..NO_FAULTS }), 5991);
    search("a plan, and changed", world(Approving::Plan, ONE, Faults { edits: 1, yes: 2, ..NO_FAULTS }), 10823);
}

#[test]
fn an_apply_is_repeated_so_often_and_a_job_of_another_is_left_alone() {
    let once = Terms { retries: 1, ..Terms::default() };
    let broken = Faults { broken: 2, waits: 2, ..NO_FAULTS };
    search("repeated", World { terms: once, ..auto(ONE, Faults { crashes: 1, ..broken }) }, 1134);
    search(
        "repeated, and the head moves",
        World { terms: once, ..auto(TWO, Faults { yes: 1, waits: 1, ..broken }) },
        1928,
    );
    let taken = Terms { taken: true, ..Terms::default() };
    search(
        "a name that another has",
        World { terms: taken, ..auto(TWO, Faults { deleted: 1, waits: 2, ..NO_FAULTS }) },
        3501,
    );
}

#[test]
fn two_replicas_that_believe_to_lead_start_one_job() {
    let two = World { workers: 2, ..auto(ONE, NO_FAULTS) };
    begin("two", two, 11, 16249);
    begin("two, and the head moves", World { workers: 2, ..auto(TWO, NO_FAULTS) }, 9, 11257);
}

fn drifting(then: OnDrift, head: &'static [u8], faults: Faults) -> World {
    World {
        terms: Terms { drift: Some(then), ..Terms::default() },
        ..auto(head, Faults { drifts: 1, waits: 3, ..faults })
    }
}

/// A search in which something drifts, and a look finds it.
fn finds(name: &str, world: World, states: usize) {
    reaches(FOUND, name, world, states);
}

#[test]
fn what_has_drifted_is_found_and_told_and_nothing_is_applied_for_it() {
    let tell = |head, faults| drifting(OnDrift::Tell, head, faults);
    finds("drift, looked for", tell(ONE, NO_FAULTS), 82);
    finds("drift, and the head moves", tell(TWO, NO_FAULTS), 5397);
    finds("drift, and a life ends", tell(ONE, Faults { crashes: 1, ..NO_FAULTS }), 3286);
    finds("drift, and an answer is lost", tell(ONE, Faults { lost: 1, ..NO_FAULTS }), 1277);
    finds("drift, and a look fails", tell(ONE, Faults { before: 1, deleted: 1, ..NO_FAULTS }), 1214);
    finds("drift, and stopped", tell(ONE, Faults { stops: 1, ..NO_FAULTS }), 13405);
    finds("drift, and changed", tell(ONE, Faults { edits: 1, ..NO_FAULTS }), 3689);
    finds("drift, and run once more", tell(ONE, Faults { reruns: 1, ..NO_FAULTS }), 2141);
}

#[test]
fn what_has_drifted_is_applied_once_where_that_is_asked_for() {
    let apply = |head, faults| drifting(OnDrift::Apply, head, faults);
    finds("drift, applied", apply(ONE, NO_FAULTS), 109);
    finds("drift, applied, and the head moves", apply(TWO, NO_FAULTS), 8143);
    finds("drift, applied, and a life ends", apply(ONE, Faults { crashes: 1, ..NO_FAULTS }), 7323);
    let twice = World { faults: Faults { drifts: 2, waits: 2, ..NO_FAULTS }, ..apply(ONE, NO_FAULTS) };
    finds("drift, applied twice", twice, 250);
    let plan = apply(ONE, Faults { yes: 2, ..NO_FAULTS });
    finds("drift, and a plan is asked about", World { approval: Approving::Plan, ..plan.clone() }, 3605);
    finds("drift, and a commit is asked about", World { approval: Approving::Revision, ..plan }, 2828);
}

/// Each change of the world breaks a promise: the promises have teeth.
#[test]
fn every_mutant_is_caught() {
    let crash = Faults { crashes: 1, ..NO_FAULTS };
    let drift = Faults { yes: 2, drifts: 1, ..NO_FAULTS };
    let cases = [
        (Mutant::MadeRunning, auto(ONE, NO_FAULTS), Promise::JobsDurable),
        (Mutant::ActsOnDraft, auto(ONE, NO_FAULTS), Promise::JobsDurable),
        (Mutant::NoCompareAndSet, World { workers: 2, ..auto(TWO, NO_FAULTS) }, Promise::RunsInOrder),
        (Mutant::NameWithoutSeq, auto(BACK, NO_FAULTS), Promise::RunsInOrder),
        (Mutant::StartedUnseen, auto(ONE, crash), Promise::StartedOnce),
        (Mutant::PodsUnread, auto(TWO, Faults { lingers: 1, ..NO_FAULTS }), Promise::OneAtATime),
        (Mutant::EndUnseen, auto(TWO, Faults { stuck: 1, freed: 1, ..NO_FAULTS }), Promise::LeftAlone),
        (Mutant::LostRepeated, auto(ONE, Faults { deleted: 1, ..crash }), Promise::LeftAlone),
        (Mutant::NoFingerprint, world(Approving::Plan, ONE, drift), Promise::AppliedAsPlanned),
        (Mutant::TicketIgnored, world(Approving::Plan, ONE, Faults { crashes: 1, ..drift }), Promise::AppliedAsPlanned),
    ];
    let missed: Vec<_> = cases
        .into_iter()
        .filter(|(mutant, world, promise)| !breaks(World { mutant: *mutant, ..world.clone() }, *promise))
        .map(|(mutant, ..)| mutant)
        .collect();
    assert_eq!(missed, []);
}

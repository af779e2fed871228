//! What a Repo does beside its runs: plans alone, the lock of a state, a destroy on deletion, reports, and outputs.

use objects::repo::spec::{Approving, OnDrift};

use super::action::Faults;
use super::world::{Terms, World};
use super::{DESTROYED, FOUND, NO_FAULTS, ONE, PLANNED, TWO, UNLOCKED, begin, reaches, search, world};

#[test]
fn what_is_only_planned_is_never_applied_whatever_anybody_says() {
    let never = |head, faults| world(Approving::Never, head, faults);
    let planned = |name, world, states| reaches(PLANNED, name, world, states);
    planned("only planned, and planned once more", never(ONE, Faults { reruns: 1, replays: 1, ..NO_FAULTS }), 712);
    planned("only planned, and the head moves", never(TWO, Faults { reruns: 1, ..NO_FAULTS }), 4940);
    planned("only planned, and a life ends", never(ONE, Faults { crashes: 1, ..NO_FAULTS }), 553);
    planned(
        "only planned, and an answer is lost",
        never(ONE, Faults { lost: 1, reruns: 1, waits: 1, ..NO_FAULTS }),
        1390,
    );
    planned("only planned, and it fails", never(TWO, Faults { before: 1, waits: 1, ..NO_FAULTS }), 1714);
    planned("only planned, and deleted", never(ONE, Faults { deleted: 1, yes: 1, ..NO_FAULTS }), 438);
}

#[test]
fn nothing_is_applied_from_the_time_on_when_it_may_not_be() {
    let forbids = |approval, faults| {
        let terms = Terms { forbids: true, ..Terms::default() };
        World { terms, ..world(approval, ONE, Faults { edits: 1, ..faults }) }
    };
    search("forbidden", forbids(Approving::Auto, NO_FAULTS), 729);
    begin("forbidden, and a life ends", forbids(Approving::Auto, Faults { crashes: 1, ..NO_FAULTS }), 18, 24308);
    search("forbidden, an answer lost", forbids(Approving::Auto, Faults { lost: 1, waits: 1, ..NO_FAULTS }), 9012);
    search("forbidden, and stuck", forbids(Approving::Auto, Faults { stuck: 1, waits: 1, ..NO_FAULTS }), 2356);
    search("forbidden, after a yes", forbids(Approving::Plan, Faults { yes: 1, ..NO_FAULTS }), 2751);
    let drifts = forbids(Approving::Auto, Faults { drifts: 1, waits: 3, ..NO_FAULTS });
    let terms = Terms { drift: Some(OnDrift::Tell), ..drifts.terms };
    reaches(FOUND, "forbidden, and drift", World { terms, ..drifts }, 3267);
    search("forbidden, after a failure", forbids(Approving::Auto, Faults { broken: 1, yes: 1, ..NO_FAULTS }), 3698);
}

/// Another program takes the lock at any step, and may give it back; a person may say yes to take it away.
#[test]
fn a_lock_in_the_way_is_asked_about_and_taken_away_after_a_yes_to_it_once() {
    let locked = |approval, faults: Faults| {
        let (locks, agrees) = (faults.locks.max(1), faults.agrees.max(1));
        world(approval, ONE, Faults { locks, agrees, waits: 2, ..faults })
    };
    let auto = |faults| locked(Approving::Auto, faults);
    let plan = |faults| locked(Approving::Plan, Faults { yes: 1, ..faults });
    let unlocks = |name, world, states| reaches(UNLOCKED, name, world, states);
    unlocks("locked", auto(NO_FAULTS), 211);
    unlocks("locked, and given back", auto(Faults { gives: 1, ..NO_FAULTS }), 502);
    unlocks("locked twice", auto(Faults { locks: 2, agrees: 2, ..NO_FAULTS }), 2736);
    unlocks("locked, and a life ends", auto(Faults { crashes: 1, ..NO_FAULTS }), 8644);
    unlocks("locked, and an answer is lost", auto(Faults { lost: 1, ..NO_FAULTS }), 2942);
    unlocks("locked, and changed", auto(Faults { edits: 1, ..NO_FAULTS }), 10824);
    unlocks("locked, and an attempt fails before", auto(Faults { before: 1, ..NO_FAULTS }), 568);
    unlocks("locked, and its Job is deleted", auto(Faults { deleted: 1, ..NO_FAULTS }), 1794);
    unlocks("a plan is locked", plan(NO_FAULTS), 2440);
    unlocks("a plan is locked, and given back", plan(Faults { gives: 1, ..NO_FAULTS }), 4721);
    let moves = World { head: TWO, ..auto(NO_FAULTS) };
    unlocks("locked, and the head moves", moves, 14249);
    let deaf = Terms { deaf: true, ..Terms::default() };
    unlocks("unlocked in name only", World { terms: deaf, ..auto(Faults { replays: 2, ..NO_FAULTS }) }, 7725);
}

fn asking(approval: Approving, faults: Faults) -> World {
    let terms = Terms { asks: true, ..Terms::default() };
    World { terms, ..world(approval, ONE, Faults { removals: faults.removals.max(1), ..faults }) }
}

#[test]
fn what_was_applied_is_destroyed_after_a_yes_to_its_plan_and_not_after_a_no() {
    let destroys = |name, world, states| reaches(DESTROYED, name, world, states);
    let yes = Faults { yes: 1, ..NO_FAULTS };
    let asked = |faults| asking(Approving::Auto, faults);
    destroys("destroyed", asked(yes), 5281);
    destroys("destroyed, and drifts", asked(Faults { yes: 2, drifts: 1, ..NO_FAULTS }), 24589);
    begin("destroyed, and a life ends", asked(Faults { crashes: 1, ..yes }), 24, 42016);
    begin("destroyed, and an answer is lost", asked(Faults { lost: 1, waits: 1, ..yes }), 24, 31489);
    destroys("destroyed, and it fails", asked(Faults { yes: 2, broken: 1, ..NO_FAULTS }), 76357);
}

#[test]
fn a_repo_that_is_kept_goes_when_nothing_of_it_runs() {
    let asked = |faults| asking(Approving::Auto, Faults { keeps: 1, ..faults });
    begin("kept, and a life ends", asked(Faults { crashes: 1, ..NO_FAULTS }), 16, 67043);
    search("kept, and its pod lingers", asked(Faults { lingers: 1, ..NO_FAULTS }), 40121);
}

#[test]
fn another_repo_of_the_name_asks_anew() {
    let again = Faults { keeps: 1, removals: 2, remakes: 1, ..NO_FAULTS };
    begin("kept, and made again", asking(Approving::Auto, again), 16, 19819);
}

fn reporting(approval: Approving, head: &'static [u8], faults: Faults) -> World {
    World { terms: Terms { reports: true, ..Terms::default() }, ..world(approval, head, Faults { waits: 1, ..faults }) }
}

#[test]
fn a_forge_is_told_of_each_commit_what_is_so_and_one_that_refuses_stops_nothing() {
    let auto = |head, faults| reporting(Approving::Auto, head, faults);
    search("reported", auto(ONE, Faults { refusals: 2, ..NO_FAULTS }), 401);
    begin("reported, and the head moves", auto(TWO, NO_FAULTS), 22, 13695);
    search("reported, and a life ends", auto(ONE, Faults { crashes: 1, ..NO_FAULTS }), 6762);
    search("reported, and an answer is lost", auto(ONE, Faults { lost: 1, ..NO_FAULTS }), 1156);
    search("reported, and it fails", auto(ONE, Faults { before: 1, broken: 1, yes: 1, ..NO_FAULTS }), 10267);
    search("reported, and run once more", auto(ONE, Faults { reruns: 1, ..NO_FAULTS }), 7096);
    search(
        "reported, and a plan is asked about",
        reporting(Approving::Plan, ONE, Faults { yes: 1, ..NO_FAULTS }),
        6242,
    );
    let never = reporting(Approving::Never, TWO, Faults { refusals: 1, ..NO_FAULTS });
    reaches(PLANNED, "reported, only planned", never, 91035);
}

fn writing(approval: Approving, faults: Faults) -> World {
    let terms = Terms { outputs: true, ..Terms::default() };
    World {
        terms,
        ..world(approval, ONE, Faults { unwritten: faults.unwritten.max(1), yes: faults.yes.max(1), ..faults })
    }
}

#[test]
fn a_commit_is_applied_when_its_outputs_are_written_and_not_before() {
    let auto = |faults| writing(Approving::Auto, faults);
    search("outputs", auto(NO_FAULTS), 90);
    search("outputs, and the head moves", World { head: TWO, ..auto(NO_FAULTS) }, 5723);
    search("outputs, and a life ends", auto(Faults { crashes: 1, ..NO_FAULTS }), 3929);
    let once = Terms { outputs: true, retries: 1, ..Terms::default() };
    search("outputs, repeated", World { terms: once, ..auto(Faults { unwritten: 2, waits: 1, ..NO_FAULTS }) }, 26);
    let plan = |faults| writing(Approving::Plan, Faults { yes: 2, ..faults });
    search("outputs of a plan", plan(Faults { reruns: 1, ..NO_FAULTS }), 2634);
    search("outputs of a plan that drifts", plan(Faults { yes: 3, drifts: 1, ..NO_FAULTS }), 1983);
    search("outputs of a plan, and a life ends", plan(Faults { crashes: 1, ..NO_FAULTS }), 23943);
}

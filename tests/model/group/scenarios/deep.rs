//! `make model-deep`: an hour or two of two cores. Some worlds are searched to their ends. Others have none that two cores reach in
//! hours (a first search of each was given up after forty minutes and some two million states): of these the states nearest to the
//! beginning are searched, and as many steps of walks to good ends.
use super::*;

/// States of a world without an end in sight.
const STATES: usize = 300_000;

#[test]
#[ignore = "an hour or two: make model-deep"]
fn two_members_go_back_and_forth_with_every_fault_at_every_step() {
    search_part("N=2 A→B→A, every step", clusters(&[a_to_b_to_a(), a_to_b_to_a()]), &["ends purged twice"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn three_members_and_one_rollout_with_every_fault_at_every_step() {
    search_part("N=3 A→B, every step", clusters(&[a_to_b(), a_to_b(), a_to_b()]), &["ends purged once"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn one_of_three_members_goes_back() {
    search_part("N=3 A→B→A in one", swift(&[a_to_b_to_a(), a_to_b(), a_to_b()]), &["ends purged once"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn two_workers_in_each_cluster_go_back_and_forth() {
    let world = World { workers: 2, ..swift(&[a_to_b_to_a(), a_to_b_to_a()]) };
    // Its walks hardly ever purge twice: three million steps and 595,000 states (eight minutes) did not. With one worker they do.
    let ends = ["ends purged once", "ends without a purge", "a vector dies", "a vector is a return"];
    search_part("N=2 A→B→A, two workers", world, &ends, STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn a_third_member_joins_during_a_rollout() {
    let mut world = swift(&[at_once(), at_once(), stays_at("b")]);
    for cluster in &mut world.members[..2] {
        cluster.configs = vec![("c1", 2), ("c2", 3)];
    }
    world.members[2].configs = vec![("c2", 3)];
    world.members[2].record = world.members[2].record.take().map(|record| Record { config: "c2".to_owned(), ..record });
    search("N=2+1 A→B", world, &["ends purged once"], 335_154);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn two_members_go_back_and_forth_to_the_end() {
    let world = swift(&[back_at_once(), back_at_once()]);
    search_part("N=2 A→B→A", world, &["ends purged twice", "a vector dies"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn nothing_ever_follows_from_votes_under_two_configurations() {
    search("N=2 A→B, reconfigured", reconfigured(), &["ends purged once", "a vector dies"], 0);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn a_workload_is_deleted_in_one_of_three_clusters_while_two_roll_out() {
    search_part("N=3 one deleted", third_is_deleted(), &["ends purged once"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn one_of_three_members_is_forgotten_while_two_roll_out() {
    search_part("N=3-1 A→B", third_is_forgotten(), &["ends purged once"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn both_members_come_to_know_a_digest() {
    let ends = ["ends purged once", "ends purged twice"];
    search("N=2 a digest", swift(&[pinned(&["a"]), pinned(&["a"])]), &ends, 0);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn long_random_walks_break_nothing() {
    let faults = Faults { ledgers: 1, impatience: 1, ..Faults::default() };
    let worlds = [
        ("N=2 A→B, reconfigured", reconfigured(), 200_000),
        ("N=2 A→B→A, ledgers lost", World { faults, ..swift(&[back_at_once(), back_at_once()]) }, 200_000),
        // Each step has hundreds of continuations.
        ("N=3 A→B→A", swift(&[back_at_once(), back_at_once(), back_at_once()]), 20_000),
        ("N=3 A→B, skip", World { policy: skipping(), faults, ..swift(&[a_to_b(), a_to_b_late(), at_once()]) }, 20_000),
    ];
    for (name, world, states) in worlds {
        search_part(name, world, &["ends purged once"], states);
    }
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn a_ledger_is_lost_at_every_moment() {
    let world = World { faults: Faults { ledgers: 1, ..Faults::default() }, ..swift(&[at_once(), at_once()]) };
    search_part("N=2 A→B, a ledger lost", world, &["ends purged once"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn one_of_three_members_is_forgotten_after_its_vote() {
    search_part("N=3-1 A→B, it had voted", third_is_forgotten_after(1), &["ends purged once"], STATES);
}

#[test]
#[ignore = "an hour or two: make model-deep"]
fn clusters_that_are_ahead_to_the_end() {
    let worlds: [(&str, &[&str], &[&str]); 5] = [
        ("N=2 ABC", &["abc", "abc"], &["ends purged once", "ends purged twice"]),
        ("N=2 ABCD in one", &["abcd", "ab"], &["ends purged once"]),
        ("N=2 ABCA in one", &["abca", "ab"], &["ends purged once", "ends without a purge", "a vector dies"]),
        ("N=2 ABCB in one", &["abcb", "ab"], &["ends purged once", "ends purged twice"]),
        ("N=3 ABC, AB, AB", &["abc", "ab", "ab"], &["ends purged once"]),
    ];
    for (name, scripts, ends) in worlds {
        search_part(name, ahead::delivered(scripts), ends, STATES / 3);
    }
}

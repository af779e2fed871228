//! Clusters that are a version ahead of the others, and the ways in which that goes on (decision 52).
use super::*;

/// These versions one after the other, each complete when it is first seen.
fn at(versions: &str) -> Vec<Option<Workload>> {
    let generation = |place| i64::try_from(place).expect("a small number") + 1;
    versions.chars().enumerate().map(|(place, v)| sight(&v.to_string(), generation(place), true, 2)).collect()
}

/// Clusters that go through these versions.
pub fn delivered(scripts: &[&str]) -> World {
    swift(&scripts.iter().map(|versions| at(versions)).collect::<Vec<_>>())
}

#[test]
fn a_cluster_that_is_a_version_ahead_keeps_nothing_from_being_purged() {
    search("N=2 ABC in one", delivered(&["abc", "ab"]), &["ends purged once"], 4_910);
}

#[test]
fn a_cluster_whose_next_version_never_completes_keeps_nothing_from_being_purged() {
    let ahead = [at("ab"), vec![sight("c", 3, true, 1)]].concat();
    search("N=2 AB and C for ever in one", swift(&[ahead, at("ab")]), &["ends purged once"], 4_756);
}

#[test]
fn each_version_is_purged_once_when_the_others_follow() {
    let ends = ["ends purged once", "ends purged twice"];
    search_part("N=2 ABC", delivered(&["abc", "abc"]), &ends, 10_000);
}

#[test]
fn a_cluster_that_is_two_versions_ahead_keeps_nothing_from_being_purged() {
    search_part("N=2 ABCD in one", delivered(&["abcd", "ab"]), &["ends purged once"], 8_000);
}

#[test]
fn a_cluster_that_is_ahead_and_goes_back_is_waited_for() {
    let back = delivered(&["abca", "ab"]);
    let ends = ["ends purged once", "ends without a purge", "a vector dies"];
    search_part("N=2 ABCA in one", back, &ends, 8_000);
}

#[test]
fn a_cluster_that_goes_one_of_two_versions_back_keeps_nothing_from_being_purged() {
    search_part("N=2 ABCDC in one", delivered(&["abcdc", "ab"]), &["ends purged once"], 10_000);
}

#[test]
fn a_cluster_that_goes_back_to_what_the_others_come_to_is_purged_with_them() {
    search_part("N=2 ABCB in one", delivered(&["abcb", "ab"]), &["ends purged once", "ends purged twice"], 10_000);
}

#[test]
fn a_cluster_behind_that_goes_back_is_as_if_none_were_ahead() {
    search_part("N=2 ABC and ABA", delivered(&["abc", "aba"]), &["ends purged once", "a vector dies"], 10_000);
}

#[test]
fn two_clusters_come_to_one_version_behind_a_third() {
    search_part("N=3 ABC, AB, AB", delivered(&["abc", "ab", "ab"]), &["ends purged once"], 10_000);
}

#[test]
fn what_a_cluster_ahead_has_completed_is_gone_with_a_restore() {
    let faults = Faults { restores: 1, ..Faults::default() };
    let world = World { faults, ..delivered(&["abc", "ab"]) };
    search_part("N=2 ABC in one, restored", world, &["ends purged once", "a vector dies"], 10_000);
}

#[test]
fn what_a_cluster_ahead_has_completed_is_gone_with_its_ledger() {
    let faults = Faults { ledgers: 1, ..Faults::default() };
    let world = World { faults, ..delivered(&["abc", "ab"]) };
    search_part("N=2 ABC in one, a ledger lost", world, &["ends purged once"], 10_000);
}

#[test]
fn a_cluster_that_is_ahead_withdraws_all_that_it_has() {
    let world = World { policy: skipping(), ..delivered(&["abc", "a"]) };
    search("N=2 ABC in one, skip", world, &["a member withdraws", "ends without a purge"], 12);
}

#[test]
fn a_cluster_that_is_ahead_is_started_with_another_configuration() {
    let mut world = delivered(&["abc", "ab"]);
    for cluster in &mut world.members {
        cluster.configs = vec![("c1", 2), ("c2", 2)];
    }
    search_part("N=2 ABC in one, reconfigured", world, &["ends purged once"], 10_000);
}

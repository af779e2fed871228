//! What is searched, and what catches each mutant.

mod ahead;
mod between;
mod caught;
mod deep;

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::names::image::Container;
use kernel::promise::Promise;
use kinds::reported::Replicas;
use purge::bounds::policy::{Agreement, AtBarrier, AtTimeout, OnRollback, Policy};
use purge::records::record::Record;
use purge::workloads::workload::{Tuning, Workload};

use crate::group::past::settled;
use crate::group::world::{BEFORE, Cluster, Faults, HELD, World};
use crate::group::{search, search_part};
use crate::rollout::{quick, sight};

fn policy() -> Policy {
    let group = Agreement { timeout: Duration::from_secs(3600), ..Agreement::default() };
    // The barrier is each member's own; the searches of one member have it.
    let barrier = AtBarrier { settle: Duration::ZERO, drain_timeout: Duration::ZERO };
    let on_rollback = OnRollback::Close;
    Policy { rollout_timeout: Duration::from_secs(900), barrier, on_rollback, group, ..Policy::default() }
}

/// A cluster in which the workload goes through these states, and has been at the first one for long.
fn cluster(script: Vec<Option<Workload>>, members: usize) -> Cluster {
    let record = script[0].as_ref().map(|workload| settled(workload, "c1"));
    Cluster { script, served: BTreeSet::new(), record, configs: vec![("c1", members)], dies_after: None }
}

/// Clusters that go through these states.
fn clusters(scripts: &[Vec<Option<Workload>>]) -> World {
    let clusters = scripts.iter().map(|script| cluster(script.clone(), scripts.len()));
    World::new(clusters.collect(), policy())
}

/// `b` is seen before it is complete.
fn a_to_b() -> Vec<Option<Workload>> {
    quick(&[("b", 2)])
}

/// `b` is complete when it is first seen.
fn at_once() -> Vec<Option<Workload>> {
    vec![sight("a", 1, true, 2), sight("b", 2, true, 2)]
}

/// And then `a` again, at once.
fn a_to_b_to_a() -> Vec<Option<Workload>> {
    [a_to_b(), vec![sight("a", 3, true, 2)]].concat()
}

/// `b` is seen before it is complete, and half of it stays so for a while.
fn a_to_b_late() -> Vec<Option<Workload>> {
    vec![sight("a", 1, true, 2), sight("b", 2, true, 1), sight("b", 2, true, 2)]
}

fn back_at_once() -> Vec<Option<Workload>> {
    [at_once(), vec![sight("a", 3, true, 2)]].concat()
}

fn stays_at(version: &str) -> Vec<Option<Workload>> {
    vec![sight(version, 1, true, 2)]
}

fn swift(scripts: &[Vec<Option<Workload>>]) -> World {
    World { swift: true, ..clusters(scripts) }
}

fn skipping() -> Policy {
    let policy = policy();
    Policy { group: Agreement { at_timeout: AtTimeout::Skip, ..policy.group.clone() }, ..policy }
}

fn leaving_out() -> Policy {
    let policy = policy();
    Policy { group: Agreement { absent_left_out: true, ..policy.group.clone() }, ..policy }
}

#[test]
fn two_members_and_one_rollout_with_every_fault_at_every_step() {
    search("N=2 A→B", clusters(&[a_to_b(), a_to_b()]), &["ends purged once"], 1_777);
}

#[test]
fn three_members_and_one_rollout() {
    search("N=3 A→B", swift(&[a_to_b(), a_to_b(), a_to_b()]), &["ends purged once"], 97_351);
}

// Faults: G3
#[test]
fn two_members_go_back_and_forth() {
    let world = swift(&[back_at_once(), back_at_once()]);
    search_part("N=2 A→B→A", world, &["ends purged once", "ends purged twice", "a vector dies"], 50_000);
}

// Faults: D1
#[test]
fn two_workers_in_each_cluster() {
    let world = World { workers: 2, ..swift(&[at_once(), at_once()]) };
    search("N=2 A→B, two workers", world, &["ends purged once"], 82_597);
}

// Faults: G1
#[test]
fn a_member_that_fails_keeps_the_purge_from_all_and_recovers() {
    let faults = Faults { impatience: 1, ..Faults::default() };
    let world = World { faults, ..swift(&[a_to_b(), a_to_b_late()]) };
    search("N=2 one fails", world, &["ends purged once"], 5_897);
}

#[test]
fn a_member_that_never_follows_is_waited_for_without_end() {
    search("N=2 one stays", swift(&[a_to_b(), stays_at("a")]), &["ends without a purge"], 9);
}

#[test]
fn a_member_that_never_follows_is_given_up_under_skip() {
    let world = World { policy: skipping(), ..swift(&[a_to_b(), stays_at("a")]) };
    search("N=2 one stays, skip", world, &["a member withdraws", "ends without a purge"], 9);
}

// Faults: R8
#[test]
fn whoever_gives_up_does_so_for_all() {
    let faults = Faults { impatience: 1, ..Faults::default() };
    let world = World { policy: skipping(), faults, ..swift(&[at_once(), at_once()]) };
    search("N=2 A→B, skip", world, &["a member withdraws", "ends purged once", "a vector dies"], 2_253);
}

// Faults: G2
#[test]
fn a_member_that_dies_leaves_the_purge_to_the_others_or_in_doubt() {
    let ends = [
        (1, "ends without a purge", 80),
        (2, "a purge is in doubt", 169),
        (3, "ends purged once", 343),
        (4, "ends purged once", 595),
    ];
    for (writes, end, states) in ends {
        let mut world = swift(&[a_to_b(), a_to_b()]);
        world.members[1].dies_after = Some(writes);
        search(&format!("N=2 A→B, one dies after {writes}"), world, &[end], states);
    }
}

fn reconfigured() -> World {
    let mut world = swift(&[at_once(), at_once()]);
    for cluster in &mut world.members {
        cluster.configs = vec![("c1", 2), ("c2", 2)];
    }
    world
}

// Faults: D2
#[test]
fn nothing_follows_from_votes_under_two_configurations() {
    let ends = search_part("N=2 A→B, reconfigured", reconfigured(), &["ends purged once", "a vector dies"], 40_000);
    assert!(
        !ends.contains("ends purged twice"),
        "votes under the old configuration that were decided are not voted for again"
    );
}

/// Members that were at rest under the release before, and are started with these releases one after the other.
fn upgraded(scripts: &[Vec<Option<Workload>>], releases: &[Vec<&'static str>]) -> World {
    let mut world = swift(scripts);
    for (cluster, releases) in world.members.iter_mut().zip(releases) {
        cluster.record = cluster.record.take().map(|record| Record { config: BEFORE.to_owned(), ..record });
        cluster.configs = releases.iter().map(|release| (*release, scripts.len())).collect();
    }
    world
}

/// Both upgrade, in either order and at any step of a rollout.
fn both_upgrade() -> World {
    upgraded(&[at_once(), at_once()], &[vec![BEFORE, "c2"], vec![BEFORE, "c2"]])
}

#[test]
fn each_member_upgrades_at_any_step_of_a_rollout() {
    search_part("N=2 A→B, upgraded", both_upgrade(), &["ends purged once", "a vector dies"], 40_000);
}

#[test]
fn a_member_goes_back_to_the_release_before_and_upgrades_again() {
    let releases = [vec![BEFORE, "c2", BEFORE, "c2"], vec![BEFORE, "c2"]];
    let world = upgraded(&[at_once(), stays_at("b")], &releases);
    search_part("N=2 A→B, one goes back to the release before", world, &["ends purged once"], 40_000);
}

// Faults: D3
#[test]
fn a_member_joins_during_a_rollout() {
    let mut world = swift(&[a_to_b(), stays_at("b")]);
    world.members[0].configs = vec![("c1", 1), ("c2", 2)];
    world.members[1].record = world.members[1].record.take().map(|record| Record { config: "c2".to_owned(), ..record });
    world.members[1].configs = vec![("c2", 2)];
    search("N=1+1 A→B", world, &["ends purged once"], 447);
}

#[test]
fn a_cluster_without_the_workload_is_waited_for() {
    search("N=2 one absent", swift(&[a_to_b(), vec![None]]), &["ends without a purge"], 16);
}

#[test]
fn a_cluster_without_the_workload_is_left_out_where_that_is_wanted() {
    let world = World { policy: leaving_out(), ..swift(&[a_to_b(), vec![None]]) };
    search("N=2 one absent, left out", world, &["ends purged once"], 28);
}

#[test]
fn a_workload_is_deleted_in_one_cluster_at_any_moment() {
    let deleted = [at_once(), vec![None]].concat();
    let world = World { policy: leaving_out(), ..swift(&[at_once(), deleted]) };
    search("N=2 one deleted", world, &["ends purged once", "a vector dies"], 1_749);
}

/// The third member is lost to the others, who may have voted with it: its workload is deleted.
fn third_is_deleted() -> World {
    let deleted = [stays_at("b"), vec![None]].concat();
    World { policy: leaving_out(), ..swift(&[at_once(), at_once(), deleted]) }
}

/// The same: it is forgotten, after it died.
fn third_is_forgotten() -> World {
    let mut world = swift(&[at_once(), at_once(), stays_at("b")]);
    for cluster in &mut world.members[..2] {
        cluster.configs = vec![("c1", 3), ("c2", 2)];
    }
    world.members[2].dies_after = Some(0);
    world
}

/// The same: it has voted before it died.
fn third_is_forgotten_after(votes: u8) -> World {
    let mut world = third_is_forgotten();
    world.members[2].dies_after = Some(votes);
    world
}

/// `b` is complete in both, and a hold begins in either at any moment and never ends.
fn held() -> World {
    let mut world = clusters(&[at_once(), at_once()]);
    for cluster in &mut world.members {
        cluster.configs = vec![("c1", 2), (HELD, 2)];
    }
    world
}

#[test]
fn what_was_made_is_followed_under_any_hold() {
    search("N=2 A→B, held", held(), &["ends purged once", "ends without a purge"], 5_503);
}

#[test]
fn a_member_is_forgotten_after_its_vote_and_what_was_made_stays_made() {
    let world = third_is_forgotten_after(1);
    search_part("N=3-1 A→B, it had voted", world, &["ends purged once", "a vector dies"], 40_000);
}

#[test]
fn a_workload_is_deleted_in_one_of_three_clusters() {
    search_part("N=3 one deleted", third_is_deleted(), &["ends purged once", "a vector dies"], 40_000);
}

#[test]
fn one_of_three_members_is_forgotten() {
    search_part("N=3-1 A→B", third_is_forgotten(), &["ends purged once", "a vector dies"], 40_000);
}

#[test]
fn a_ledger_is_lost_at_any_moment() {
    let faults = Faults { ledgers: 1, ..Faults::default() };
    let world = World { faults, ..swift(&[at_once(), at_once()]) };
    search_part("N=2 A→B, a ledger lost", world, &["ends purged once", "a vector dies"], 40_000);
}

/// A pod of `b` answers requests in the first member while `b` never completes, and `a` comes back.
fn served_in_one(other: Vec<Option<Workload>>) -> World {
    let replicas = Replicas { desired: 2, total: 3, updated: 1, ready: 3, available: 3 };
    let half = sight("b", 2, true, 1).map(|workload| Workload { replicas, ..workload });
    let mut world = swift(&[vec![sight("a", 1, true, 2), half, sight("a", 3, true, 2)], other]);
    world.members[0].served = BTreeSet::from([1]);
    World { policy: Policy { on_rollback: OnRollback::IfServed, ..world.policy.clone() }, ..world }
}

fn back_in_both() -> World {
    served_in_one(vec![sight("a", 1, true, 2), sight("b", 2, true, 1), sight("a", 3, true, 2)])
}

#[test]
fn what_one_member_has_served_is_purged_when_both_go_back() {
    search_part("N=2 served in one, back", back_in_both(), &["ends purged once"], 20_000);
}

#[test]
fn what_one_member_has_served_is_purged_when_the_other_has_not_even_begun() {
    search("N=2 served in one, other stays", served_in_one(stays_at("a")), &["ends purged once"], 134);
}

/// `latest` with the digests of these letters one after the other.
fn pinned(letters: &[&str]) -> Vec<Option<Workload>> {
    let at = |(place, letter): (usize, &&str)| {
        let image = format!("latest@sha256:{}", letter.repeat(64));
        sight(&image, i64::try_from(place).expect("a small number") + 2, true, 2)
    };
    std::iter::once(sight("latest", 1, true, 2)).chain(letters.iter().enumerate().map(at)).collect()
}

/// It is a change, for the content may differ (decision 30).
#[test]
fn a_digest_that_becomes_known_in_one_member_is_purged() {
    search("N=2 a digest in one", swift(&[pinned(&["a"]), pinned(&[])]), &["ends purged once"], 121);
}

#[test]
fn a_digest_that_one_member_skips_is_followed_by_one_that_both_have() {
    let world = swift(&[pinned(&["a", "b"]), pinned(&["b"])]);
    search_part("N=2 a digest, then another", world, &["ends purged once", "ends purged twice"], 20_000);
}

/// `b` is complete in both; the owner of the first one has named a distribution that serves none of the hosts.
fn named_in_one() -> World {
    let named = Tuning { distributions: Some(["E2EXAMPLE".parse().expect("an id")].into()), ..Tuning::default() };
    let naming = |workload: Option<Workload>| workload.map(|w| Workload { tuning: named.clone(), ..w });
    swift(&[at_once().into_iter().map(naming).collect(), at_once()])
}

#[test]
fn what_one_member_names_is_purged_beside_what_serves_the_hosts_of_the_other() {
    search("N=2 named in one", named_in_one(), &["both distributions are purged"], 568);
}

/// These images one after the other, each complete when it is first seen, and what their owner calls them in the whole group.
fn runs(steps: &[(&str, Option<&str>)]) -> Vec<Option<Workload>> {
    let at = |(place, (image, group_version)): (usize, &(&str, Option<&str>))| {
        let image = (Container::Main("web".to_owned()), image.parse().expect("an image"));
        let workload = sight("a", i64::try_from(place).expect("a small number") + 1, true, 2)?;
        let tuning = Tuning { group_version: group_version.map(str::to_owned), ..workload.tuning };
        Some(Workload { version: Ok([image].into_iter().collect()), tuning, ..workload })
    };
    steps.iter().enumerate().map(at).collect()
}

#[test]
fn the_same_image_in_another_registry_and_project_is_one_version() {
    let world = swift(&[
        runs(&[("eu.example.com/shop-eu/web:a", None), ("eu.example.com/shop-eu/web:b", None)]),
        runs(&[
            ("us.example.com/mirror/docker/shop-us/web:a", None),
            ("us.example.com/mirror/docker/shop-us/web:b", None),
        ]),
    ]);
    search("N=2 A→B, other repositories", world, &["ends purged once"], 568);
}

/// `b` has a tag in the one cluster and is pinned by digest alone in the other.
fn by_tag_and_by_digest(versions: [Option<&str>; 2]) -> World {
    let [a, b] = ["a", "b"].map(|letter| format!("web@sha256:{}", letter.repeat(64)));
    swift(&[runs(&[("web:a", versions[0]), ("web:b", versions[1])]), runs(&[(&a, versions[0]), (&b, versions[1])])])
}

#[test]
fn a_tag_and_a_digest_alone_are_one_version_only_if_their_owner_says_so() {
    let unsaid = by_tag_and_by_digest([None, None]);
    search("N=2 A→B, tag and digest", unsaid, &["ends without a purge"], 22);
    let said = by_tag_and_by_digest([Some("1"), Some("2")]);
    search("N=2 A→B, tag and digest under one name", said, &["ends purged once"], 568);
}

fn off(workload: Option<Workload>) -> Option<Workload> {
    workload.map(|workload| Workload { tuning: Tuning { disabled: true, ..Tuning::default() }, ..workload })
}

/// `b` is complete in both, and the owner of the second one takes it out.
fn one_is_switched_off() -> World {
    swift(&[at_once(), [at_once(), vec![off(sight("b", 2, true, 2))]].concat()])
}

#[test]
fn a_workload_is_switched_off_in_one_cluster_at_any_moment() {
    let ends = ["ends purged once", "a vector dies"];
    search_part("N=2 one is switched off", one_is_switched_off(), &ends, 20_000);
}

#[test]
fn a_workload_that_was_always_off_in_one_cluster_is_left_out_there() {
    let mut world = swift(&[a_to_b(), vec![off(sight("c", 1, true, 2))]]);
    world.members[1].record = None;
    search("N=2 one is off", world, &["ends purged once"], 49);
}

/// The second one serves `c` while it is off, and then `a` again.
fn switched_on_again() -> World {
    swift(&[stays_at("a"), vec![sight("a", 1, true, 2), off(sight("c", 2, true, 2)), sight("a", 3, true, 2)]])
}

#[test]
fn what_is_switched_on_again_is_purged() {
    search_part("N=2 one is off and on", switched_on_again(), &["ends purged once"], 20_000);
}

#[test]
fn a_member_that_is_switched_on_during_a_rollout_is_waited_for() {
    let on = vec![off(sight("a", 1, true, 2)), sight("b", 2, true, 1), sight("b", 2, true, 2)];
    let world = swift(&[at_once(), on]);
    search_part("N=2 one is switched on", world, &["ends purged once", "ends purged twice"], 20_000);
}

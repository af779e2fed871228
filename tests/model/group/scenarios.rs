//! What is searched, and what catches each mutant.

use std::time::Duration;

use allclear::domain::policy::{Agreement, Choice, Policy};
use allclear::domain::workload::Workload;

use crate::group::past::settled;
use crate::group::search;
use crate::group::world::{Cluster, Faults, World};
use crate::rollout::{quick, sight};

fn policy() -> Policy {
    let group = Agreement { timeout: Duration::from_secs(3600), ..Agreement::default() };
    Policy { rollout_timeout: Duration::from_secs(900), group, ..Policy::default() }
}

/// A cluster in which the workload goes through these states, and has been at the first one for long.
fn cluster(script: Vec<Option<Workload>>, members: usize) -> Cluster {
    let record = script[0].as_ref().map(|workload| settled(workload, "c1"));
    Cluster { script, record, configs: vec![("c1", members)], dies_after: None }
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

/// And then `a` again, at once.
fn a_to_b_to_a() -> Vec<Option<Workload>> {
    [a_to_b(), vec![sight("a", 3, true, 2)]].concat()
}

#[test]
fn two_members_and_one_rollout() {
    search("N=2 A→B", clusters(&[a_to_b(), a_to_b()]), &["ends purged once"], 0);
}

#[test]
fn three_members_and_one_rollout() {
    let world = World { swift: true, ..clusters(&[a_to_b(), a_to_b(), a_to_b()]) };
    search("N=3 A→B", world, &["ends purged once"], 0);
}

#[test]
fn two_members_go_back_and_forth() {
    let world = World { swift: true, ..clusters(&[a_to_b_to_a(), a_to_b_to_a()]) };
    search("N=2 A→B→A", world, &["ends purged twice", "a vector dies"], 0);
}

//! Updates that Argo Rollouts aborts: the spec stays, and the pods before come back.

use std::collections::BTreeSet;

use kinds::Stable;
use kinds::reported::{GivenUp, Replicas, Says};
use purge::bounds::policy::{OnRollback, Policy};
use purge::workloads::workload::Workload;

use crate::rollout::{search, sight, world};
use crate::world::{Faults, World};

/// `b` is served and aborted, and its pods go; then it may be `retried`.
fn withdrawn(retried: bool) -> World {
    let aborted = |updated: u32| {
        let workload = sight("b", 2, true, 1)?;
        let says = Says::GivenUp(GivenUp::Aborted("RolloutAborted".to_owned()));
        let replicas = Replicas { updated, ..workload.replicas };
        let stable = Stable { hash: "a".to_owned(), replicas, says: Says::Counts };
        Some(Workload { says, stable: Some(Box::new(stable)), ..workload })
    };
    let mut script = vec![sight("a", 1, true, 2), sight("b", 2, true, 1), aborted(1), aborted(2)];
    script.extend([sight("b", 2, true, 1), sight("b", 2, true, 2)].into_iter().filter(|_| retried));
    let world = world(script);
    let policy = Policy { on_rollback: OnRollback::IfServed, ..world.policy.clone() };
    // Time passes by itself only where nothing else happens.
    let faults = Faults { crashes: 1, early: if retried { 2 } else { 0 }, ..Faults::default() };
    World { policy, faults, served: BTreeSet::from([1, 2]), ..world }
}

// Faults: P3
#[test]
fn an_aborted_update_that_was_served_is_purged_for_what_runs() {
    search("aborted", withdrawn(false), &["ends purged"], 710);
}

// Faults: P3
#[test]
fn a_retry_at_any_moment_after_an_abort_is_a_rollout_of_its_own() {
    search("aborted, tried again", withdrawn(true), &["ends purged", "is purged twice"], 0);
}

//! Updates that Argo Rollouts aborts: the spec stays, and the pods before come back.

use std::collections::BTreeSet;

use kinds::Stable;
use kinds::reported::{GivenUp, Replicas, Says};
use purge::bounds::policy::{OnRollback, Policy};
use purge::workloads::workload::Workload;

use crate::rollout::{search, sight, world};
use crate::world::{Faults, World};

/// `b` is served and aborted, and its pods go; then it may be `retried`. Time passes by itself only where nothing else happens, and `early`
/// times before.
fn withdrawn(retried: bool, crashes: u8, early: u8) -> World {
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
    let faults = Faults { crashes, early, ..Faults::default() };
    World { policy, faults, served: BTreeSet::from([1, 2]), ..world }
}

// Faults: P3
#[test]
fn an_aborted_update_that_was_served_is_purged_for_what_runs() {
    search("aborted", withdrawn(false, 1, 0), &["ends purged"], 710);
}

// Faults: P3
#[test]
fn a_retry_at_any_moment_after_an_abort_is_a_rollout_of_its_own() {
    search("aborted, tried again", withdrawn(true, 0, 1), &["ends purged", "is purged twice"], 30_997);
    search("aborted, tried again, a crash", withdrawn(true, 1, 0), &["ends purged"], 566);
}

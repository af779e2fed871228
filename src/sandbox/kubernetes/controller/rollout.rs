//! Deployments: which ReplicaSet is new, how many pods each should have, and the writes that follow.
//!
//! Rules and messages follow `pkg/controller/deployment` (Kubernetes 1.33). Left out: the strategy Recreate, `minReadySeconds`,
//! `revisionHistoryLimit`, proportional scaling in the middle of a rollout, collisions of template hashes. Not for what pods do (`pods`)
//! nor for conditions (`conditions`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::conditions::{Counts, Situation, status};
use super::pods::Round;
use super::replica_sets::{Names, Set, ensure_new_set, find_sets, patch, resize};
use super::workload::{is_complete, is_settled, share, template_hash};
use super::{Controller, Moment};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Object, is_ending, number};
use crate::kubernetes::patch::merge;
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::Writer;

const NAMES: Names = Names { revision: "deployment.kubernetes.io/revision", hash: "pod-template-hash" };

/// What the strategy of a Deployment allows.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    replicas: i64,
    surge: i64,
    unavailable: i64,
}

/// Moves one Deployment a step on; returns when to look again.
///
/// # Errors
/// When the store refuses a write.
pub fn reconcile(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    deployment: &Arc<Object>,
    now: &Moment,
) -> Result<Option<Duration>, Failure> {
    let value = deployment.value();
    let mut round = Round { uid: &deployment.uid, now, may_become_ready: 1, next: None };
    let mut sets = find_sets(controller, writer, &NAMES, &mut round)?;
    if is_ending(&value) || !is_complete(&value) || (sets.is_empty() && is_seeded(&value)) {
        return Ok(round.next);
    }
    let is_paused = value.pointer("/spec/paused") == Some(&Value::Bool(true));
    let hash = template_hash(&value);
    let bounds = Bounds::of(&value);
    let made = if is_paused { false } else { ensure_new_set(writer, &value, &NAMES, &hash, &mut sets)? };
    let desired_before: Vec<i64> = sets.iter().map(|set| set.desired).collect();
    if is_paused {
        scale_active(&mut sets, &hash, bounds.replicas);
    } else {
        roll(&mut sets, &hash, bounds);
    }
    for (set, before) in sets.iter_mut().zip(desired_before) {
        if set.desired != before {
            let change = json!({"spec": {"replicas": set.desired}});
            set.object = patch(writer, &set.key, &change)?;
        }
    }
    // Written before the ReplicaSets act, from what they said last: as in a real cluster, a generation may be observed
    // while the counts are still those of the one before.
    write_status(writer, &value, &sets, &hash, made, bounds, &mut round)?;
    for set in &mut sets {
        resize(controller, writer, set, &mut round)?;
    }
    Ok(round.next)
}

/// Whether a Deployment without ReplicaSets reports itself as done.
fn is_seeded(deployment: &Value) -> bool {
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    is_settled(deployment, number(deployment, "/spec/replicas"), &counts)
}

/// The rolling update: up as far as `maxSurge` allows, then down as far as `maxUnavailable` allows, sick pods first.
fn roll(sets: &mut [Set], hash: &str, bounds: Bounds) {
    let total: i64 = sets.iter().map(|set| set.desired).sum();
    let Some(new) = sets.iter_mut().find(|set| set.hash == hash) else { return };
    let allowed = (bounds.replicas + bounds.surge - total).max(0);
    let missing = bounds.replicas - new.desired;
    new.desired += if missing > 0 { missing.min(allowed) } else { missing };
    let new_unavailable = new.desired - new.ready();

    let total: i64 = sets.iter().map(|set| set.desired).sum();
    let available: i64 = sets.iter().map(Set::ready).sum();
    let available_min = bounds.replicas - bounds.unavailable;
    let mut budget = total - available_min - new_unavailable;
    for set in sets.iter_mut().filter(|set| set.hash != hash) {
        let sick = (set.desired - set.ready()).clamp(0, budget.max(0));
        set.desired -= sick;
        budget -= sick;
    }
    let mut spare = available - available_min;
    for set in sets.iter_mut().filter(|set| set.hash != hash) {
        let down = set.desired.min(spare.min(budget).max(0));
        set.desired -= down;
        spare -= down;
        budget -= down;
    }
}

/// While paused only the size changes: the newest ReplicaSet that has pods takes the difference.
fn scale_active(sets: &mut [Set], hash: &str, replicas: i64) {
    let total: i64 = sets.iter().map(|set| set.desired).sum();
    let active = sets.iter().rposition(|set| set.desired > 0).or(sets.iter().position(|set| set.hash == hash));
    if let Some(set) = active.and_then(|index| sets.get_mut(index)) {
        set.desired = (set.desired + replicas - total).max(0);
    }
}

fn write_status(
    writer: &mut Writer<'_>,
    deployment: &Value,
    sets: &[Set],
    hash: &str,
    new_set_made: bool,
    bounds: Bounds,
    round: &mut Round<'_>,
) -> Result<(), Failure> {
    let new = sets.iter().find(|set| set.hash == hash);
    let sum = |field: &str| sets.iter().map(|set| set.count(field)).sum();
    let counts = Counts {
        replicas: sum("replicas"),
        updated: new.map_or(0, |set| set.count("replicas")),
        ready: sum("readyReplicas"),
        asked: sets.iter().map(|set| set.desired).sum(),
    };
    let situation = Situation {
        deployment,
        counts,
        unavailable_max: bounds.unavailable.min(bounds.replicas),
        new_set: new.map(|set| set.key.name.as_str()),
        new_set_made,
    };
    let (status, left) = status(&situation, round.now, &writer.now);
    if let Some(left) = left {
        round.wake_at(round.now.elapsed + Duration::from_secs(left));
    }
    let mut object = deployment.clone();
    object["status"] = status;
    if let Some(new) = new {
        // Written with the status, and so without raising the generation: as the real controller does.
        merge(&mut object, &json!({"metadata": {"annotations": {NAMES.revision: new.revision.to_string()}}}));
    }
    if object != *deployment {
        writer.state.put(Kind::Deployment, object);
    }
    Ok(())
}

impl Bounds {
    fn of(deployment: &Value) -> Bounds {
        let replicas = number(deployment, "/spec/replicas").unwrap_or(1);
        let part = |field: &str, up: bool| {
            let value = deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
            share(value, replicas, up)
        };
        let (surge, unavailable) = (part("maxSurge", true), part("maxUnavailable", false));
        // Both zero would never move: Kubernetes then allows one to be missing.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Bounds { replicas, surge, unavailable }
    }
}

//! Deployments and ReplicaSets: which ReplicaSet is new, how many pods each should have, and the writes that follow.
//!
//! Not for what pods do (`pods`) nor for conditions (`conditions`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::conditions::{Counts, Situation, status};
use super::pods::{Pod, Round, pod_of};
use super::workload::{is_complete, is_settled, share, template_hash};
use super::{Controller, Moment};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, is_ending, number, text};
use crate::kubernetes::patch::merge;
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Part, PatchForm, Writer};

/// The annotation that counts template changes, on Deployments and ReplicaSets.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The label that tells the ReplicaSets of a Deployment, and their pods, apart.
const HASH_LABEL: &str = "pod-template-hash";

/// A ReplicaSet and its pods.
#[derive(Debug)]
struct Set {
    object: Value,
    key: Key,
    hash: String,
    revision: i64,
    /// How many pods it is asked for.
    desired: i64,
    pods: Vec<Pod>,
}

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
    let mut sets = find_sets(controller, writer, deployment, &mut round)?;
    if is_ending(&value) || !is_complete(&value) || (sets.is_empty() && is_seeded(&value)) {
        return Ok(round.next);
    }
    let is_paused = value.pointer("/spec/paused") == Some(&Value::Bool(true));
    let hash = template_hash(&value);
    let bounds = Bounds::of(&value);
    let made = if is_paused { false } else { ensure_new_set(writer, &value, &hash, &mut sets)? };
    let desired_before: Vec<i64> = sets.iter().map(|set| set.desired).collect();
    if is_paused {
        scale_active(&mut sets, &hash, bounds.replicas);
    } else {
        roll(&mut sets, &hash, bounds);
    }
    for (set, before) in sets.iter_mut().zip(desired_before) {
        if set.desired != before {
            let change = json!({"spec": {"replicas": set.desired}});
            set.object = patch(writer, Kind::ReplicaSet, &set.key, &change, Part::Main)?;
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

fn find_sets(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    deployment: &Object,
    round: &mut Round<'_>,
) -> Result<Vec<Set>, Failure> {
    let mut sets = Vec::new();
    for object in writer.state.children(&deployment.uid).into_iter().filter(|object| object.kind == Kind::ReplicaSet) {
        let value = object.value();
        let revision = value["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok());
        sets.push(Set {
            key: object.key.clone(),
            hash: object.labels.get(HASH_LABEL).cloned().unwrap_or_default(),
            revision: revision.unwrap_or(0),
            desired: number(&value, "/spec/replicas").unwrap_or(0),
            pods: controller.run_pods(writer, &object.uid, round)?,
            object: value,
        });
    }
    // Oldest first: the order in which they are scaled down.
    sets.sort_by_key(|set| set.revision);
    Ok(sets)
}

/// Makes the ReplicaSet of the present template, or gives an old one the newest revision. True if it was made.
fn ensure_new_set(
    writer: &mut Writer<'_>,
    deployment: &Value,
    hash: &str,
    sets: &mut Vec<Set>,
) -> Result<bool, Failure> {
    let newest = sets.iter().map(|set| set.revision).max().unwrap_or(0);
    if let Some(set) = sets.iter_mut().find(|set| set.hash == hash) {
        if set.revision < newest {
            let revision = newest + 1;
            let change = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
            set.object = patch(writer, Kind::ReplicaSet, &set.key, &change, Part::Main)?;
            set.revision = revision;
        }
        return Ok(false);
    }
    let revision = newest + 1;
    let object = new_set(deployment, hash, revision);
    let made = writer.create(Kind::ReplicaSet, text(deployment, "/metadata/namespace"), object)?;
    sets.push(Set {
        key: made.key.clone(),
        hash: hash.to_owned(),
        revision,
        desired: 0,
        pods: Vec::new(),
        object: made.value(),
    });
    Ok(true)
}

fn new_set(deployment: &Value, hash: &str, revision: i64) -> Value {
    let name = text(deployment, "/metadata/name");
    let mut template = deployment.pointer("/spec/template").cloned().unwrap_or_default();
    template["metadata"]["labels"][HASH_LABEL] = json!(hash);
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
    selector["matchLabels"][HASH_LABEL] = json!(hash);
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{name}-{hash}"),
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": text(deployment, "/metadata/uid"),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    })
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

/// Makes or ends pods until there are as many as asked for, then says so in the status of the ReplicaSet.
fn resize(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    set: &mut Set,
    round: &mut Round<'_>,
) -> Result<(), Failure> {
    let alive = set.pods.len() as i64;
    for _ in alive..set.desired {
        controller.start_pod(writer, &set.key.namespace, pod_of(&set.object), round)?;
    }
    if alive > set.desired {
        // Pods that are not ready go first, then the youngest.
        set.pods.sort_by_key(|pod| (pod.ready, std::cmp::Reverse(pod.born)));
        for pod in set.pods.drain(..usize::try_from(alive - set.desired).unwrap_or(0)) {
            writer.delete(Kind::Pod, &pod.key, &DeleteOptions::default())?;
        }
    }
    let replicas = set.pods.len() as i64 + (set.desired - alive).max(0);
    let ready = set.ready();
    let observed = number(&set.object, "/metadata/generation");
    let mut status = json!({"replicas": replicas, "observedGeneration": observed});
    for (field, count) in [("fullyLabeledReplicas", replicas), ("readyReplicas", ready), ("availableReplicas", ready)] {
        if count != 0 {
            status[field] = json!(count);
        }
    }
    if set.object.get("status") != Some(&status) {
        set.object["status"] = status;
        writer.state.put(Kind::ReplicaSet, set.object.clone());
    }
    Ok(())
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
    let count = |set: &Set, field: &str| number(&set.object, &format!("/status/{field}")).unwrap_or(0);
    let sum = |field: &str| sets.iter().map(|set| count(set, field)).sum();
    let counts = Counts {
        replicas: sum("replicas"),
        updated: new.map_or(0, |set| count(set, "replicas")),
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
        merge(&mut object, &json!({"metadata": {"annotations": {REVISION: new.revision.to_string()}}}));
    }
    if object != *deployment {
        writer.state.put(Kind::Deployment, object);
    }
    Ok(())
}

fn patch(writer: &mut Writer<'_>, kind: Kind, key: &Key, change: &Value, part: Part) -> Result<Value, Failure> {
    Ok(writer.patch(kind, key, PatchForm::Merge, change, part)?.0.value())
}

impl Set {
    /// How many of its pods are ready.
    fn ready(&self) -> i64 {
        self.pods.iter().filter(|pod| pod.ready).count() as i64
    }
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

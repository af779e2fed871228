//! ReplicaSets: those of a workload, and the pods of each.
//!
//! Not for how many pods each should have: the controller of the workload decides that.

use serde_json::{Value, json};

use super::Controller;
use super::pods::{Pod, Round, pod_of};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, number, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Part, PatchForm, Writer};

/// What a kind of workload marks its ReplicaSets with.
#[derive(Debug)]
pub struct Names {
    /// The annotation that counts template changes, on the workload and its ReplicaSets.
    pub revision: &'static str,
    /// The label that tells the ReplicaSets of a workload, and their pods, apart.
    pub hash: &'static str,
}

/// A ReplicaSet and its pods.
#[derive(Debug)]
pub struct Set {
    pub object: Value,
    pub key: Key,
    pub hash: String,
    pub revision: i64,
    /// How many pods it is asked for.
    pub desired: i64,
    pub pods: Vec<Pod>,
}

/// The ReplicaSets of a workload, after their pods have moved on.
///
/// # Errors
/// When the store refuses a write.
pub fn find_sets(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    names: &Names,
    round: &mut Round<'_>,
) -> Result<Vec<Set>, Failure> {
    let mut sets = Vec::new();
    for object in writer.state.children(round.uid).into_iter().filter(|object| object.kind == Kind::ReplicaSet) {
        let value = object.value();
        let revision = value["metadata"]["annotations"][names.revision].as_str().and_then(|text| text.parse().ok());
        sets.push(Set {
            key: object.key.clone(),
            hash: object.labels.get(names.hash).cloned().unwrap_or_default(),
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
///
/// # Errors
/// When the store refuses a write.
pub fn ensure_new_set(
    writer: &mut Writer<'_>,
    workload: &Value,
    names: &Names,
    hash: &str,
    sets: &mut Vec<Set>,
) -> Result<bool, Failure> {
    let newest = sets.iter().map(|set| set.revision).max().unwrap_or(0);
    if let Some(set) = sets.iter_mut().find(|set| set.hash == hash) {
        if set.revision < newest {
            let revision = newest + 1;
            let change = json!({"metadata": {"annotations": {names.revision: revision.to_string()}}});
            set.object = patch(writer, &set.key, &change)?;
            set.revision = revision;
        }
        return Ok(false);
    }
    let revision = newest + 1;
    let object = new_set(workload, names, hash, revision);
    let made = writer.create(Kind::ReplicaSet, text(workload, "/metadata/namespace"), object)?;
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

fn new_set(workload: &Value, names: &Names, hash: &str, revision: i64) -> Value {
    let name = text(workload, "/metadata/name");
    let mut template = workload.pointer("/spec/template").cloned().unwrap_or_default();
    template["metadata"]["labels"][names.hash] = json!(hash);
    let mut selector = workload.pointer("/spec/selector").cloned().unwrap_or_default();
    selector["matchLabels"][names.hash] = json!(hash);
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{name}-{hash}"),
            "labels": template["metadata"]["labels"],
            "annotations": {names.revision: revision.to_string()},
            "ownerReferences": [{
                "apiVersion": workload["apiVersion"], "kind": workload["kind"], "name": name,
                "uid": text(workload, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    })
}

/// Makes or ends pods until there are as many as asked for, then says so in the status of the ReplicaSet.
///
/// # Errors
/// When the store refuses a write.
pub fn resize(
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

/// Changes a ReplicaSet by a merge patch.
///
/// # Errors
/// When the store refuses that.
pub fn patch(writer: &mut Writer<'_>, key: &Key, change: &Value) -> Result<Value, Failure> {
    Ok(writer.patch(Kind::ReplicaSet, key, PatchForm::Merge, change, Part::Main)?.0.value())
}

impl Set {
    /// How many of its pods are ready.
    pub fn ready(&self) -> i64 {
        self.pods.iter().filter(|pod| pod.ready).count() as i64
    }

    /// A count of its status, as its controller wrote it last.
    pub fn count(&self, field: &str) -> i64 {
        number(&self.object, &format!("/status/{field}")).unwrap_or(0)
    }
}

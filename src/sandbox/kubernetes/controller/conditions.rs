//! The status of a Deployment: counts, and the conditions Available and Progressing.
//!
//! A translation of `syncRolloutStatus`, `checkPausedConditions` and `SetDeploymentCondition` of
//! `pkg/controller/deployment` (Kubernetes 1.33), oddities included: a ProgressDeadlineExceeded of the last rollout is
//! still there in the first status of the next one when an old ReplicaSet is reused.

use serde_json::{Value, json};

use super::Moment;
use crate::kubernetes::object::{items, number, text};

/// Seconds that stand for "no deadline": the largest 32-bit number, as in Kubernetes.
pub(in crate::kubernetes) const NO_DEADLINE: i64 = 2_147_483_647;

/// The counts of a Deployment's pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods of all ReplicaSets.
    pub replicas: i64,
    /// Pods of the new ReplicaSet.
    pub updated: i64,
    /// Pods that are ready, and so available.
    pub ready: i64,
    /// Pods that the ReplicaSets are asked for.
    pub asked: i64,
}

/// What the conditions are decided from.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The Deployment as stored.
    pub deployment: &'a Value,
    /// What is counted now.
    pub counts: Counts,
    /// `maxUnavailable`, resolved.
    pub unavailable_max: i64,
    /// The name of the new ReplicaSet, if there is one.
    pub new_set: Option<&'a str>,
    /// Whether it was made in this step.
    pub new_set_made: bool,
}

/// The status the Deployment should have, and the seconds until its deadline passes, if one is running.
pub fn status(situation: &Situation<'_>, now: &Moment, stamp: &str) -> (Value, Option<u64>) {
    let Situation { deployment, counts, .. } = situation;
    let mut conditions = items(deployment, "/status/conditions").to_vec();
    let deadline = number(deployment, "/spec/progressDeadlineSeconds").filter(|seconds| *seconds != NO_DEADLINE);
    if deadline.is_some() {
        paused(&mut conditions, deployment, stamp);
    }
    let replicas = number(deployment, "/spec/replicas").unwrap_or(1);
    if counts.ready >= replicas - situation.unavailable_max {
        let message = "Deployment has minimum availability.";
        set(&mut conditions, "Available", "True", "MinimumReplicasAvailable", message, stamp);
    } else {
        let message = "Deployment does not have minimum availability.";
        set(&mut conditions, "Available", "False", "MinimumReplicasUnavailable", message, stamp);
    }
    let mut left = None;
    let is_paused = deployment.pointer("/spec/paused") == Some(&Value::Bool(true));
    if let Some(deadline) = deadline.filter(|_| !is_paused) {
        left = progress(&mut conditions, situation, replicas, deadline, now, stamp);
    }
    let mut status = json!({
        "observedGeneration": deployment.pointer("/metadata/generation"), "conditions": conditions,
    });
    let unavailable = (counts.asked - counts.ready).max(0);
    for (field, count) in [
        ("replicas", counts.replicas),
        ("updatedReplicas", counts.updated),
        ("readyReplicas", counts.ready),
        ("availableReplicas", counts.ready),
        ("unavailableReplicas", unavailable),
    ] {
        // A count of zero is left out, as Go's `omitempty` does: clients must take absence for zero.
        if count != 0 {
            status[field] = json!(count);
        }
    }
    (status, left)
}

fn progress(
    conditions: &mut Vec<Value>,
    situation: &Situation<'_>,
    replicas: i64,
    deadline: i64,
    now: &Moment,
    stamp: &str,
) -> Option<u64> {
    let Situation { deployment, counts, .. } = situation;
    let subject = match situation.new_set {
        Some(name) => format!("ReplicaSet \"{name}\""),
        None => format!("Deployment \"{}\"", text(deployment, "/metadata/name")),
    };
    if situation.new_set_made {
        let message = format!("Created new replica set \"{}\"", situation.new_set.unwrap_or_default());
        set(conditions, "Progressing", "True", "NewReplicaSetCreated", &message, stamp);
    }
    let reason = reason(conditions);
    if counts.replicas == counts.updated && reason.as_deref() == Some("NewReplicaSetAvailable") {
        return None;
    }
    let old = |field: &str| number(deployment, &format!("/status/{field}")).unwrap_or(0);
    let complete = counts.updated == replicas && counts.replicas == replicas && counts.ready == replicas;
    let moved = counts.updated > old("updatedReplicas")
        || counts.replicas - counts.updated < old("replicas") - old("updatedReplicas")
        || counts.ready > old("readyReplicas");
    if complete {
        let message = format!("{subject} has successfully progressed.");
        set(conditions, "Progressing", "True", "NewReplicaSetAvailable", &message, stamp);
        return None;
    }
    if moved {
        let message = format!("{subject} is progressing.");
        let since = find(conditions, "Progressing")
            .filter(|condition| text(condition, "/status") == "True")
            .map(|condition| text(condition, "/lastTransitionTime").to_owned());
        conditions.retain(|condition| text(condition, "/type") != "Progressing");
        set(conditions, "Progressing", "True", "ReplicaSetUpdated", &message, stamp);
        if let (Some(since), Some(condition)) = (since, conditions.last_mut()) {
            condition["lastTransitionTime"] = json!(since);
        }
    }
    let condition = find(conditions, "Progressing")?;
    if matches!(text(condition, "/reason"), "ProgressDeadlineExceeded" | "NewReplicaSetAvailable") {
        return None;
    }
    let from: jiff::Timestamp = text(condition, "/lastUpdateTime").parse().ok()?;
    let left = from.as_second() + deadline + 1 - now.time.as_second();
    if left > 0 {
        return u64::try_from(left).ok();
    }
    let message = format!("{subject} has timed out progressing.");
    set(conditions, "Progressing", "False", "ProgressDeadlineExceeded", &message, stamp);
    None
}

fn paused(conditions: &mut Vec<Value>, deployment: &Value, stamp: &str) {
    let is_paused = deployment.pointer("/spec/paused") == Some(&Value::Bool(true));
    let reason = reason(conditions);
    match reason.as_deref() {
        Some("ProgressDeadlineExceeded") => {}
        Some("DeploymentPaused") if !is_paused => {
            set(conditions, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", stamp);
        }
        Some("DeploymentPaused") => {}
        _ if is_paused => {
            set(conditions, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", stamp);
        }
        _ => {}
    }
}

pub fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| text(condition, "/type") == kind)
}

fn reason(conditions: &[Value]) -> Option<String> {
    find(conditions, "Progressing").map(|condition| text(condition, "/reason").to_owned())
}

/// Sets a condition; one with the same status and reason is left as it is, its times included.
pub fn set(conditions: &mut Vec<Value>, kind: &str, status: &str, reason: &str, message: &str, stamp: &str) {
    let mut since = stamp.to_owned();
    if let Some(present) = find(conditions, kind) {
        if text(present, "/status") == status && text(present, "/reason") == reason {
            return;
        }
        if text(present, "/status") == status {
            since = text(present, "/lastTransitionTime").to_owned();
        }
    }
    conditions.retain(|condition| text(condition, "/type") != kind);
    conditions.push(json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": stamp, "lastTransitionTime": since,
    }));
}

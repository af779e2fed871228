//! The status of a Rollout: counts, pauses, conditions and phase.
//!
//! The controller makes it anew in each look: what is not put in is not there any more. Zero, false and empty texts are left out, as Go's
//! `omitempty` does.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Context, NAMES, WORKLOAD_GENERATION};
use crate::kubernetes::controller::conditions::{find, set};
use crate::kubernetes::controller::pods::sooner;
use crate::kubernetes::object::{items, number, text};

/// Seconds without progress until a Rollout is degraded.
const DEADLINE: i64 = 600;

/// Puts a field into a status unless it is empty.
pub fn put(status: &mut Value, field: &str, value: Value) {
    let empty = [json!(0), json!(""), json!(false), json!([]), json!({}), Value::Null];
    match status.as_object_mut() {
        Some(fields) if empty.contains(&value) => drop(fields.remove(field)),
        _ => status[field] = value,
    }
}

/// Writes into the conditions that a ReplicaSet was made or found, and that pauses and aborts began or ended.
pub fn note(context: &mut Context<'_>, made: Option<&str>) {
    let found = context.new_set().map(|set| set.key.name.clone()).unwrap_or_default();
    let is_paused = is_paused(context);
    let is_complete = !context.status("stableRS").is_empty() && context.is_promoted();
    let (aborts, stamp) = (context.is_set("/status/abort"), context.stamp.clone());
    let mut conditions = items(&context.rollout, "/status/conditions").to_vec();
    if let Some(made) = made {
        let message = format!("Created new replica set \"{made}\"");
        set(&mut conditions, "Progressing", "True", "NewReplicaSetCreated", &message, &stamp);
    } else if find(&conditions, "Progressing").is_none() {
        let message = format!("Found new replica set \"{found}\"");
        set(&mut conditions, "Progressing", "True", "FoundNewReplicaSet", &message, &stamp);
    }
    let reason = find(&conditions, "Progressing").map(|known| text(known, "/reason").to_owned()).unwrap_or_default();
    let aborted = reason == "RolloutAborted";
    if is_paused != (reason == "RolloutPaused") && !aborted && !is_complete {
        let (reason, message) = match is_paused {
            true => ("RolloutPaused", "Rollout is paused"),
            false => ("RolloutResumed", "Rollout is resumed"),
        };
        set(&mut conditions, "Progressing", "Unknown", reason, message, &stamp);
    }
    if aborted && !aborts {
        set(&mut conditions, "Progressing", "Unknown", "RolloutRetry", "Retrying Rollout after abort", &stamp);
    }
    let was_paused = find(&conditions, "Paused").is_some_and(|known| text(known, "/status") == "True");
    if is_paused != was_paused && !aborted {
        let holds = if is_paused { "True" } else { "False" };
        set(&mut conditions, "Paused", holds, "RolloutPaused", "Rollout is paused", &stamp);
    }
    context.rollout["status"]["conditions"] = json!(conditions);
}

fn is_paused(context: &Context<'_>) -> bool {
    context.is_set("/spec/paused") || !items(&context.rollout, "/status/pauseConditions").is_empty()
}

/// Forgets what the update before has left.
pub fn reset(context: &mut Context<'_>) {
    context.pauses.clear = true;
    context.pauses.end_abort = true;
    context.restarted_at = context.rollout.pointer("/spec/restartAt").cloned().unwrap_or_default();
}

/// The part of the status that is the same for both strategies.
pub fn base(context: &Context<'_>, is_reset: bool) -> Value {
    let mut status = json!({"currentPodHash": context.hash});
    let updated = context.new_set().map_or(0, |set| set.count("replicas"));
    put(&mut status, "replicas", json!(context.sum("replicas")));
    put(&mut status, "updatedReplicas", json!(updated));
    put(&mut status, "stableRS", json!(context.status("stableRS")));
    put(&mut status, "restartedAt", context.restarted_at.clone());
    put(&mut status, "promoteFull", json!(context.is_set("/status/promoteFull") && !is_reset));
    status
}

/// The counts of those ReplicaSets that serve, and the selector of their owner.
pub fn account(status: &mut Value, owner: &Value, count: &dyn Fn(&str) -> i64) {
    put(status, "HPAReplicas", json!(count("replicas")));
    put(status, "readyReplicas", json!(count("readyReplicas")));
    put(status, "availableReplicas", json!(count("availableReplicas")));
    let labels = owner.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    put(status, "selector", json!(pairs.collect::<Vec<_>>().join(",")));
}

/// Makes the new ReplicaSet the stable one.
pub fn promote(context: &mut Context<'_>, status: &mut Value) {
    context.pauses.clear = true;
    context.pauses.end_abort = true;
    put(status, "promoteFull", json!(false));
    status["stableRS"] = json!(context.hash);
}

/// The status where a Service is missing.
pub fn invalid(context: &Context<'_>, field: &str, service: &str) -> Value {
    let mut status = context.rollout.get("status").cloned().unwrap_or_else(|| json!({}));
    let place = format!("spec.strategy.blueGreen.{field}");
    let name = text(&context.rollout, "/metadata/name");
    let why = format!("{place}: Invalid value: \"{service}\": service \"{service}\" not found");
    let message = format!("The Rollout \"{name}\" is invalid: {why}");
    let mut conditions = items(&status, "/conditions").to_vec();
    set(&mut conditions, "InvalidSpec", "True", "InvalidSpec", &message, &context.stamp);
    status["conditions"] = json!(conditions);
    finish(context, status)
}

/// Adds conditions, pauses and phase.
pub fn complete(context: &mut Context<'_>, mut status: Value) -> Value {
    status["conditions"] = json!(conditions(context, &status));
    pauses(context, &mut status);
    finish(context, status)
}

fn finish(context: &Context<'_>, mut status: Value) -> Value {
    if !text(&context.rollout, "/spec/workloadRef/name").is_empty() {
        let generation = context.rollout["metadata"]["annotations"][WORKLOAD_GENERATION].clone();
        put(&mut status, "workloadObservedGeneration", generation);
    }
    let generation = number(&context.rollout, "/metadata/generation").unwrap_or(0);
    status["observedGeneration"] = json!(generation.to_string());
    let (phase, message) = phase(context, &status);
    status["phase"] = json!(phase);
    put(&mut status, "message", json!(message));
    status
}

fn pauses(context: &Context<'_>, status: &mut Value) {
    if context.is_aborted() {
        let before = context.rollout.pointer("/status/abortedAt").filter(|at| !at.is_null()).cloned();
        status["abort"] = json!(true);
        status["abortedAt"] = before.unwrap_or_else(|| json!(context.stamp));
        return;
    }
    if context.pauses.clear {
        return;
    }
    let before = items(&context.rollout, "/status/pauseConditions");
    let has = |reason: &str| before.iter().any(|pause| text(pause, "/reason") == reason);
    let mut pauses = before.to_vec();
    pauses.retain(|pause| Some(text(pause, "/reason")) != context.pauses.remove);
    let added = context.pauses.add.filter(|reason| !has(reason));
    pauses.extend(added.map(|reason| json!({"reason": reason, "startTime": context.stamp})));
    if !pauses.is_empty() {
        let held = context.is_set("/status/controllerPause") || added.is_some();
        put(status, "controllerPause", json!(held));
        status["pauseConditions"] = json!(pauses);
    }
}

fn conditions(context: &mut Context<'_>, status: &Value) -> Vec<Value> {
    let mut conditions = items(&context.rollout, "/status/conditions").to_vec();
    conditions.retain(|condition| text(condition, "/type") != "InvalidSpec");
    let (stamp, healthy) = (context.stamp.clone(), is_healthy(context, status));
    let was_healthy = find(&conditions, "Healthy").map(|known| text(known, "/status") == "True");
    let is_well = healthy && !is_paused(context);
    if is_well {
        set(&mut conditions, "Healthy", "True", "RolloutHealthy", "Rollout is healthy", &stamp);
    } else if was_healthy.is_some() {
        set(&mut conditions, "Healthy", "False", "RolloutHealthy", "Rollout is not healthy", &stamp);
    }
    if context.is_aborted() {
        let revision = &context.rollout["metadata"]["annotations"][NAMES.revision];
        let message = format!("Rollout aborted update to revision {}", revision.as_str().unwrap_or("0"));
        set(&mut conditions, "Progressing", "False", "RolloutAborted", &message, &stamp);
    } else {
        progress(context, &mut conditions, status, healthy, was_healthy == Some(true) && !is_well);
    }
    let serving = match text(status, "/blueGreen/activeSelector") {
        "" if is_blue_green(context) => 0,
        "" => context.sum("availableReplicas"),
        hash => context.sets.iter().find(|set| set.hash == hash).map_or(0, |set| set.count("availableReplicas")),
    };
    let (holds, message) = if serving >= context.replicas {
        ("True", "Rollout has minimum availability")
    } else {
        ("False", "Rollout does not have minimum availability")
    };
    set(&mut conditions, "Available", holds, "AvailableReason", message, &stamp);
    let complete = if text(status, "/stableRS") == context.hash { "True" } else { "False" };
    set(&mut conditions, "Completed", complete, "RolloutCompleted", "RolloutCompleted", &stamp);
    conditions
}

fn progress(
    context: &mut Context<'_>,
    conditions: &mut Vec<Value>,
    status: &Value,
    healthy: bool,
    became_unhealthy: bool,
) {
    let stamp = context.stamp.clone();
    let name = context.new_set().map(|set| set.key.name.clone()).unwrap_or_default();
    if healthy {
        let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
        set(conditions, "Progressing", "True", "NewReplicaSetAvailable", &message, &stamp);
        return;
    }
    if has_moved(context, status) || became_unhealthy {
        let lost = became_unhealthy && text(status, "/stableRS") == context.hash;
        let reason = if lost { "ReplicaSetNotAvailable" } else { "ReplicaSetUpdated" };
        let since = find(conditions, "Progressing").filter(|known| text(known, "/status") == "True").cloned();
        conditions.retain(|condition| text(condition, "/type") != "Progressing");
        let message = format!("ReplicaSet \"{name}\" is progressing.");
        set(conditions, "Progressing", "True", reason, &message, &stamp);
        if let (Some(since), Some(condition)) = (since, conditions.last_mut()) {
            condition["lastTransitionTime"] = since["lastTransitionTime"].clone();
        }
        return;
    }
    let Some(known) = find(conditions, "Progressing") else { return };
    let rests = is_paused(context)
        || waits_at_step(context)
        || (0..context.sets.len()).any(|set| context.others().contains(&set) && context.deadline(set).is_some());
    let is_over = ["ProgressDeadlineExceeded", "RolloutAborted", "RolloutPaused"].contains(&text(known, "/reason"));
    let since: Option<Timestamp> = text(known, "/lastUpdateTime").parse().ok();
    let Some(since) = since.filter(|_| !rests && !is_over) else { return };
    let seconds = number(&context.rollout, "/spec/progressDeadlineSeconds").unwrap_or(DEADLINE);
    let left = since.as_second() + seconds + 1 - context.now.time.as_second();
    if let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) {
        context.next = sooner(context.next, context.now.elapsed + Duration::from_secs(left));
        return;
    }
    let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
    set(conditions, "Progressing", "False", "ProgressDeadlineExceeded", &message, &stamp);
}

/// Whether the present step may take as long as it likes.
fn waits_at_step(context: &Context<'_>) -> bool {
    let index = number(&context.rollout, "/status/currentStepIndex").unwrap_or(0);
    let step = context.rollout.pointer(&format!("/spec/strategy/canary/steps/{index}"));
    step.is_some_and(|step| ["pause", "analysis", "experiment"].iter().any(|kind| step.get(kind).is_some()))
}

fn is_blue_green(context: &Context<'_>) -> bool {
    context.rollout.pointer("/spec/strategy/blueGreen").is_some_and(Value::is_object)
}

/// Whether anything has moved since the status before.
fn has_moved(context: &Context<'_>, status: &Value) -> bool {
    let old = context.rollout.get("status").cloned().unwrap_or_default();
    let count = |status: &Value, field: &str| number(status, &format!("/{field}")).unwrap_or(0);
    let grew = |field: &str| count(status, field) > count(&old, field);
    let former = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    let differs = |pointer: &str| status.pointer(pointer) != old.pointer(pointer);
    let strategy: &[&str] = match is_blue_green(context) {
        true => &["/blueGreen/activeSelector", "/blueGreen/previewSelector"],
        false => &["/stableRS", "/currentStepIndex", "/currentStepHash"],
    };
    differs("/updatedReplicas")
        || former(status) < former(&old)
        || grew("readyReplicas")
        || grew("availableReplicas")
        || strategy.iter().any(|pointer| differs(pointer))
}

fn is_healthy(context: &Context<'_>, status: &Value) -> bool {
    let generation = number(&context.rollout, "/metadata/generation").unwrap_or(0).to_string();
    let count = |field: &str| number(status, &format!("/{field}")).unwrap_or(0);
    let done = if is_blue_green(context) {
        let preview = text(&context.rollout, "/spec/strategy/blueGreen/previewService");
        text(status, "/blueGreen/activeSelector") == context.hash
            && (preview.is_empty() || text(status, "/blueGreen/previewSelector") == context.hash)
    } else {
        let steps = items(&context.rollout, "/spec/strategy/canary/steps").len();
        let at = number(status, "/currentStepIndex");
        at.is_none_or(|at| usize::try_from(at) == Ok(steps))
            && text(status, "/stableRS") == context.hash
            && count("replicas") == context.replicas
    };
    done && context.status("observedGeneration") == generation
        && count("updatedReplicas") == context.replicas
        && count("availableReplicas") == context.replicas
}

fn phase(context: &Context<'_>, status: &Value) -> (&'static str, String) {
    for condition in items(status, "/conditions") {
        let (reason, message) = (text(condition, "/reason"), text(condition, "/message"));
        let invalid = text(condition, "/type") == "InvalidSpec";
        if invalid || ["RolloutAborted", "ProgressDeadlineExceeded"].contains(&reason) {
            return ("Degraded", format!("{reason}: {message}"));
        }
    }
    if context.is_set("/spec/paused") {
        return ("Paused", "manually paused".to_owned());
    }
    if let Some(pause) = items(status, "/pauseConditions").first() {
        return ("Paused", text(pause, "/reason").to_owned());
    }
    match waiting(context, status) {
        "" => ("Healthy", String::new()),
        reason => ("Progressing", reason.to_owned()),
    }
}

/// What a Rollout that is neither paused nor degraded waits for; empty if for nothing.
fn waiting(context: &Context<'_>, status: &Value) -> &'static str {
    let count = |field: &str| number(status, &format!("/{field}")).unwrap_or(0);
    let restart = context.rollout.pointer("/spec/restartAt").filter(|at| !at.is_null());
    let stable = text(status, "/stableRS") == context.hash;
    let routed = context.rollout.pointer("/spec/strategy/canary/trafficRouting").is_some();
    if restart.is_some_and(|at| status.get("restartedAt") != Some(at)) {
        "rollout is restarting"
    } else if count("updatedReplicas") < context.replicas {
        "more replicas need to be updated"
    } else if count("availableReplicas") < count("updatedReplicas") {
        "updated replicas are still becoming available"
    } else if is_blue_green(context) {
        match (text(status, "/blueGreen/activeSelector") == context.hash, stable) {
            (false, _) => "active service cutover pending",
            (true, false) => "waiting for post-promotion verification to complete",
            (true, true) => "",
        }
    } else if !routed && count("replicas") > count("updatedReplicas") {
        "old replicas are pending termination"
    } else if !stable {
        "waiting for all steps to complete"
    } else {
        ""
    }
}

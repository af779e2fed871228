//! Canary: the new ReplicaSet grows by steps, beside the stable one.

use serde_json::{Value, json};

use super::restart::restart;
use super::{CANARY_PAUSE, Context, Set, status};
use crate::kubernetes::controller::workload::hash_at;
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{items, number, text};
use crate::kubernetes::write::Writer;

/// All of the traffic.
const WHOLE: i64 = 100;

/// Moves a Rollout a step on; returns its status, unless that stays.
///
/// # Errors
/// When the store refuses a write.
pub fn roll(context: &mut Context<'_>, writer: &mut Writer<'_>) -> Result<Option<Value>, Failure> {
    context.begin(writer)?;
    let steps = hash_at(&context.rollout, "/spec/strategy/canary/steps");
    let before = context.status("currentPodHash");
    if context.status("currentStepHash") != steps || (!before.is_empty() && before != context.hash) {
        return Ok(Some(finish_reset(context)));
    }
    if restart(context, writer)? {
        return Ok(None);
    }
    point_services(context, writer)?;
    route(context);
    if !context.is_set("/spec/paused") && !scale(context, writer)? {
        pause(context);
    }
    Ok(Some(finish(context)))
}

fn steps<'a>(context: &'a Context<'_>) -> &'a [Value] {
    items(&context.rollout, "/spec/strategy/canary/steps")
}

/// The index of the present step; none without steps.
fn index(context: &Context<'_>) -> Option<usize> {
    let index = number(&context.rollout, "/status/currentStepIndex").unwrap_or(0);
    (!steps(context).is_empty()).then(|| usize::try_from(index).unwrap_or(0))
}

fn is_routed(context: &Context<'_>) -> bool {
    context.rollout.pointer("/spec/strategy/canary/trafficRouting").is_some_and(Value::is_object)
}

/// The weight that the last `setWeight` up to a step asks for.
fn weight_until(context: &Context<'_>, end: usize) -> i64 {
    let set = steps(context).iter().take(end).rev();
    set.filter_map(|step| number(step, "/setWeight")).next().unwrap_or(0)
}

fn present_weight(context: &Context<'_>) -> i64 {
    match index(context) {
        _ if context.is_set("/status/abort") => 0,
        Some(index) if index < steps(context).len() => weight_until(context, index + 1),
        _ => WHOLE,
    }
}

/// The weight by which the ReplicaSets are scaled.
fn scale_weight(context: &Context<'_>) -> i64 {
    let whole = context.is_set("/status/promoteFull") || context.status("stableRS").is_empty() || context.is_promoted();
    if whole { WHOLE } else { present_weight(context) }
}

/// How many pods the new and the stable ReplicaSet should have now.
fn counts(context: &Context<'_>) -> (i64, i64) {
    let weight = scale_weight(context);
    if is_routed(context) {
        return ((weight * context.replicas + WHOLE - 1) / WHOLE, context.replicas);
    }
    let stable = context.stable().and_then(|index| context.sets.get(index));
    let Some(stable) = stable.filter(|stable| stable.hash != context.hash) else { return (context.replicas, 0) };
    let Some(new) = context.new_set() else { return (0, stable.desired) };
    let (surge, unavailable) = context.bounds();
    let wanted = approximate(context.replicas, weight, surge);
    let others: i64 = context.others().iter().filter_map(|index| context.sets.get(*index)).map(|set| set.desired).sum();
    // Up, the stable one first.
    let mut room = (context.replicas + surge - others - new.desired - stable.desired).max(0);
    let up = |set: &Set, wanted: i64, room: i64| (wanted - set.desired).clamp(0, room);
    let more = up(stable, wanted.1, room);
    room -= more;
    let mut next = (new.desired + up(new, wanted.0, room), stable.desired + more);
    if others > 0 {
        return next;
    }
    // Down: of the one that shrinks, pods that are not available count, too.
    let grows = wanted.0 >= new.desired;
    let spare = usable(new, !grows) + usable(stable, grows) - (context.replicas - unavailable);
    if spare > 0 && grows && stable.desired > wanted.1 {
        next.1 = wanted.1.max(stable.desired - spare);
    } else if spare > 0 && !grows && new.desired > wanted.0 {
        next.0 = wanted.0.max(new.desired - spare);
    }
    next
}

fn usable(set: &Set, ignore_availability: bool) -> i64 {
    if ignore_availability { set.desired } else { set.count("availableReplicas").min(set.desired) }
}

/// The counts of new and stable pods that come nearest to a weight.
fn approximate(replicas: i64, weight: i64, surge: i64) -> (i64, i64) {
    if replicas == 0 {
        return (0, 0);
    }
    let (floor, ceiling) = (replicas * weight / WHOLE, (replicas * weight + WHOLE - 1) / WHOLE);
    let tied = |total: i64| (total * weight) % WHOLE == WHOLE / 2;
    let zero_allowed = weight == WHOLE || weight == 0 || (replicas == 1 && surge == 0);
    let floor_allowed = floor != 0 || zero_allowed;
    let mut options = Vec::new();
    if ceiling < replicas || zero_allowed {
        options.push((ceiling, replicas));
    }
    if !tied(replicas) && floor_allowed {
        options.push((floor, replicas));
    }
    if surge > 0 {
        options.push((ceiling, replicas + 1));
        if !tied(replicas + 1) && floor_allowed {
            options.push((floor, replicas + 1));
        }
    }
    // Of equal ones the first. Both totals are multiplied in, so that whole numbers do.
    let distance =
        |(new, total): &(i64, i64)| (new * WHOLE - weight * total).abs() * (replicas * (replicas + 1) / total);
    options.iter().min_by_key(|option| distance(option)).map_or((0, replicas), |(new, total)| (*new, total - new))
}

fn is_at_counts(context: &Context<'_>) -> bool {
    let (new, stable) = counts(context);
    let others = context.others();
    let serving: i64 =
        others.iter().filter_map(|index| context.sets.get(*index)).map(|set| set.count("availableReplicas")).sum();
    let stable_set = context.stable().and_then(|index| context.sets.get(index));
    context.new_set().is_some_and(|set| set.desired == new && set.count("availableReplicas") == new)
        && stable_set.is_some_and(|set| set.desired == stable && set.count("replicas") == stable)
        && (is_routed(context) || serving == 0)
}

/// Makes the Services for stable and canary, where the strategy names them, select their ReplicaSets.
fn point_services(context: &Context<'_>, writer: &mut Writer<'_>) -> Result<(), Failure> {
    let (new, stable) = (context.hash.as_str(), context.status("stableRS"));
    let canary = if context.is_aborted() { stable } else { new };
    for (field, hash) in [("stableService", stable), ("canaryService", canary)] {
        let service = text(&context.rollout, &format!("/spec/strategy/canary/{field}"));
        let set = context.position(hash).and_then(|index| context.sets.get(index));
        let available = set.map_or(0, |set| set.count("availableReplicas"));
        let Some(selected) = context.selected(writer, service).filter(|_| available > 0) else { continue };
        // One that selects no ReplicaSet yet waits for all of them.
        if !selected.is_empty() || available == set.map_or(0, |set| set.desired) {
            context.switch(writer, service, hash)?;
        }
    }
    Ok(())
}

/// The weights of the traffic.
fn route(context: &mut Context<'_>) {
    if !is_routed(context) {
        context.weights = Value::Null;
        return;
    }
    let available = context.new_set().map_or(0, |set| set.count("availableReplicas"));
    let weight = match index(context) {
        _ if context.is_promoted() || context.is_aborted() || available == 0 => 0,
        _ if context.is_set("/status/promoteFull") => number(&context.weights, "/canary/weight").unwrap_or(0),
        Some(index) if !is_at_counts(context) => weight_until(context, index),
        Some(index) if index < steps(context).len() => present_weight(context),
        Some(_) => WHOLE,
        None => 0,
    };
    let stable = context.stable().and_then(|index| context.sets.get(index));
    let enough = (WHOLE - weight) * context.replicas / WHOLE;
    let Some(stable) = stable.filter(|stable| stable.count("availableReplicas") >= enough) else { return };
    let share = |weight: i64, hash: &str, service: &str| {
        let mut share = json!({"weight": weight, "podTemplateHash": hash});
        let service = text(&context.rollout, &format!("/spec/strategy/canary/{service}"));
        status::put(&mut share, "serviceName", json!(service));
        share
    };
    let canary = share(weight, &context.hash, "canaryService");
    context.weights = json!({"canary": canary, "stable": share(WHOLE - weight, &stable.hash, "stableService")});
}

/// Scales one ReplicaSet; true if there was one to scale.
fn scale(context: &mut Context<'_>, writer: &mut Writer<'_>) -> Result<bool, Failure> {
    context.keep_used(writer)?;
    if let Some(stable) = context.stable().filter(|stable| Some(*stable) != context.position(&context.hash)) {
        let count = counts(context).1;
        if context.scale(writer, stable, count)? {
            return Ok(true);
        }
    }
    let count = counts(context).0;
    if context.scale_new(writer, count)? {
        return Ok(true);
    }
    scale_others(context, writer)
}

/// Scales down what is neither new nor stable, sick pods first.
fn scale_others(context: &mut Context<'_>, writer: &mut Writer<'_>) -> Result<bool, Failure> {
    let mut scaled = false;
    let others = context.others();
    for index in others.clone() {
        let Some(set) = context.sets.get(index) else { continue };
        let healthy = set.count("availableReplicas").min(set.desired);
        scaled |= context.scale(writer, index, healthy)?;
    }
    let delay = number(&context.rollout, "/spec/strategy/canary/scaleDownDelaySeconds").unwrap_or(30);
    let mut spare = context.sum("availableReplicas") - (context.replicas - context.bounds().1);
    for index in others {
        let Some(set) = context.sets.get(index).filter(|set| set.desired > 0 && spare > 0) else { continue };
        let (desired, hash) = (set.desired, set.hash.clone());
        let is_weighted = ["canary", "stable"]
            .iter()
            .any(|share| context.status(&format!("canary/weights/{share}/podTemplateHash")) == hash);
        let kept = match is_routed(context) {
            true if is_weighted => continue,
            true if context.is_promoted() || context.deadline(index).is_some() => {
                context.delayed(writer, index, delay)?
            }
            true => 0,
            false => (desired - spare).max(0),
        };
        spare -= desired - kept;
        scaled |= context.scale(writer, index, kept)?;
    }
    Ok(scaled)
}

/// Begins the pause of the present step, or waits for its end.
fn pause(context: &mut Context<'_>) {
    let step = index(context).and_then(|index| steps(context).get(index)).cloned();
    let Some(pause) = step.as_ref().and_then(|step| step.get("pause")) else { return };
    if context.is_set("/status/promoteFull") {
        return;
    }
    match (context.paused_since(CANARY_PAUSE), seconds(pause.get("duration"))) {
        (Some(since), Some(seconds)) => drop(context.has_passed(since, seconds)),
        (None, _) if !context.is_set("/status/controllerPause") => context.pauses.add = Some(CANARY_PAUSE),
        _ => {}
    }
}

/// A duration in seconds: a number, or text as `90`, `30s`, `5m` or `1h`.
fn seconds(duration: Option<&Value>) -> Option<i64> {
    let text = match duration? {
        Value::Number(number) => return number.as_i64(),
        other => other.as_str()?,
    };
    let (digits, unit) = text.split_at(text.trim_end_matches(['s', 'm', 'h']).len());
    let factor = if unit == "h" {
        3_600
    } else if unit == "m" {
        60
    } else {
        1
    };
    Some(digits.parse::<i64>().ok()? * factor)
}

/// Whether the present step is over.
fn is_over(context: &mut Context<'_>) -> bool {
    let step = index(context).and_then(|index| steps(context).get(index)).cloned();
    let Some(step) = step.filter(|_| !context.is_set("/spec/paused")) else { return false };
    if let Some(pause) = step.get("pause") {
        let since = context.paused_since(CANARY_PAUSE);
        return match (since, seconds(pause.get("duration"))) {
            (None, _) => context.is_set("/status/controllerPause"),
            (Some(since), Some(seconds)) => context.has_passed(since, seconds),
            (Some(_), None) => false,
        };
    }
    match step.get("setWeight") {
        Some(_) => is_at_counts(context),
        None => step.get("setHeaderRoute").or(step.get("setMirrorRoute")).is_some(),
    }
}

/// The status where an update begins anew.
fn finish_reset(context: &mut Context<'_>) -> Value {
    status::reset(context);
    let mut status = base(context, true);
    let count = steps(context).len();
    if count > 0 {
        let back = context.status("stableRS") == context.hash;
        status["currentStepIndex"] = json!(if back { count } else { 0 });
    }
    status::complete(context, status)
}

fn base(context: &Context<'_>, is_reset: bool) -> Value {
    let mut status = status::base(context, is_reset);
    status::account(&mut status, &context.rollout, &|field| context.sum(field));
    status["currentStepHash"] = json!(hash_at(&context.rollout, "/spec/strategy/canary/steps"));
    if !context.weights.is_null() {
        status["canary"] = json!({"weights": context.weights});
    }
    status
}

fn finish(context: &mut Context<'_>) -> Value {
    let mut status = base(context, false);
    let count = steps(context).len();
    let mut at = index(context);
    if context.is_set("/status/promoteFull") {
        context.pauses.clear = true;
        context.pauses.end_abort = true;
        at = at.map(|_| count);
    }
    let complete = context.new_set().is_some_and(|new| new.count("availableReplicas") == context.replicas)
        && !context.is_aborted()
        && (context.is_set("/status/promoteFull") || index(context).is_none_or(|index| index == count));
    if context.stable().is_none() || complete {
        status::promote(context, &mut status);
        at = at.map(|_| count);
    } else if context.is_aborted() {
        at = at.map(|_| if context.status("stableRS") == context.hash { count } else { 0 });
    } else if is_over(context) {
        at = at.map(|index| index + 1);
        context.pauses.remove = Some(CANARY_PAUSE);
    }
    if let Some(at) = at {
        status["currentStepIndex"] = json!(at);
    }
    status::complete(context, status)
}

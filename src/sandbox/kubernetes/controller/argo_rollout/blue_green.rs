//! Blue-green: the new ReplicaSet is complete before the active Service selects it, and the old one stays for a while after.

use serde_json::{Value, json};

use super::restart::restart;
use super::{BLUE_GREEN_PAUSE, Context, status};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{number, text};
use crate::kubernetes::write::Writer;

/// Seconds after which a Rollout without its Service is looked at again.
const RETRY: i64 = 20;

/// The two Services, by name; the second may be missing from the strategy.
struct Services {
    active: String,
    preview: String,
}

/// Moves a Rollout a step on; returns its status.
///
/// # Errors
/// When the store refuses a write.
pub fn roll(context: &mut Context<'_>, writer: &mut Writer<'_>) -> Result<Option<Value>, Failure> {
    let name = |field: &str| text(&context.rollout, &format!("/spec/strategy/blueGreen/{field}Service")).to_owned();
    let services = Services { active: name("active"), preview: name("preview") };
    for (field, service) in [("activeService", &services.active), ("previewService", &services.preview)] {
        if (field == "activeService" || !service.is_empty()) && context.selected(writer, service).is_none() {
            context.has_passed(context.now.time, RETRY);
            return Ok(Some(status::invalid(context, field, service)));
        }
    }
    context.begin(writer)?;
    if !services.preview.is_empty() && !context.is_set("/spec/paused") {
        context.switch(writer, &services.preview, &context.hash)?;
    }
    let before = context.status("currentPodHash");
    if !before.is_empty() && before != context.hash {
        status::reset(context);
        return finish(context, writer, &services, true);
    }
    restart(context, writer)?;
    let fast = is_fast(context, writer, &services);
    scale(context, writer)?;
    pause(context, fast);
    switch_active(context, writer, &services, fast)?;
    finish(context, writer, &services, false)
}

/// Whether an update needs no pause: it goes back to a ReplicaSet that was not scaled down yet, or the Service has selected no other.
fn is_fast(context: &Context<'_>, writer: &Writer<'_>, services: &Services) -> bool {
    let selected = context.selected(writer, &services.active).unwrap_or_default();
    let new = context.position(&context.hash);
    context.is_set("/status/promoteFull")
        || selected.is_empty()
        || selected == context.hash
        || new.is_some_and(|new| context.deadline(new).is_some() && !context.is_aborted())
}

fn scale(context: &mut Context<'_>, writer: &mut Writer<'_>) -> Result<(), Failure> {
    context.keep_used(writer)?;
    if let Some(stable) = context.stable() {
        context.scale(writer, stable, context.replicas)?;
    }
    if context.stable() != context.position(&context.hash) || context.stable().is_none() {
        context.scale_new(writer, context.replicas)?;
    }
    let delay = number(&context.rollout, "/spec/strategy/blueGreen/scaleDownDelaySeconds").unwrap_or(30);
    for index in context.others() {
        let Some(set) = context.sets.get(index) else { continue };
        let used = ["blueGreen/activeSelector", "blueGreen/previewSelector"]
            .iter()
            .any(|field| context.status(field) == set.hash);
        if used || set.desired == 0 {
            continue;
        }
        let kept = context.delayed(writer, index, delay)?;
        context.scale(writer, index, kept)?;
    }
    Ok(())
}

/// Whether the new ReplicaSet has all its pods, and all are available.
fn is_saturated(context: &Context<'_>) -> bool {
    let replicas = context.replicas;
    context.new_set().is_some_and(|new| new.desired == replicas && new.count("availableReplicas") == replicas)
}

fn needs_pause(context: &Context<'_>) -> bool {
    context.rollout.pointer("/spec/strategy/blueGreen/autoPromotionEnabled") == Some(&Value::Bool(false))
        || promotion_seconds(context) > 0
}

fn promotion_seconds(context: &Context<'_>) -> i64 {
    number(&context.rollout, "/spec/strategy/blueGreen/autoPromotionSeconds").unwrap_or(0)
}

/// Begins and ends the pause before the switch.
fn pause(context: &mut Context<'_>, fast: bool) {
    if context.is_set("/status/abort") || !is_saturated(context) || context.is_set("/spec/paused") {
        return;
    }
    if fast || !needs_pause(context) {
        context.pauses.remove = Some(BLUE_GREEN_PAUSE);
    } else if context.paused_since(BLUE_GREEN_PAUSE).is_some() {
        if is_pause_over(context) {
            context.pauses.remove = Some(BLUE_GREEN_PAUSE);
        }
    } else if !context.is_set("/status/controllerPause") {
        context.pauses.add = Some(BLUE_GREEN_PAUSE);
    }
}

/// Whether the pause was ended by a person, or is over.
fn is_pause_over(context: &mut Context<'_>) -> bool {
    if context.pauses.add.is_some() {
        return false;
    }
    let since = context.paused_since(BLUE_GREEN_PAUSE);
    if context.rollout.pointer("/spec/strategy/blueGreen/autoPromotionEnabled") == Some(&Value::Bool(false)) {
        return context.is_set("/status/controllerPause") && since.is_none();
    }
    let seconds = promotion_seconds(context);
    seconds == 0 || since.is_some_and(|since| context.has_passed(since, seconds))
}

fn switch_active(
    context: &mut Context<'_>,
    writer: &mut Writer<'_>,
    services: &Services,
    fast: bool,
) -> Result<(), Failure> {
    if context.is_set("/spec/paused") || !is_saturated(context) {
        return Ok(());
    }
    let over = is_pause_over(context);
    let hash = if context.is_set("/status/abort") {
        context.status("stableRS").to_owned()
    } else if fast || over {
        context.hash.clone()
    } else {
        context.selected(writer, &services.active).unwrap_or_default()
    };
    context.switch(writer, &services.active, &hash)
}

fn finish(
    context: &mut Context<'_>,
    writer: &Writer<'_>,
    services: &Services,
    is_reset: bool,
) -> Result<Option<Value>, Failure> {
    let mut status = status::base(context, is_reset);
    if context.is_set("/status/promoteFull") {
        context.pauses.clear = true;
        context.pauses.end_abort = true;
    }
    let active = context.selected(writer, &services.active).unwrap_or_default();
    let preview = context.selected(writer, &services.preview).unwrap_or_default();
    let mut selectors = json!({});
    for (field, hash) in [("activeSelector", &active), ("previewSelector", &preview)] {
        status::put(&mut selectors, field, json!(hash));
    }
    status::put(&mut status, "blueGreen", selectors);
    // A first update is stable before its Service selects it: or that would never be.
    let first = context.stable().is_none() || active.is_empty();
    let done = active == context.hash && (context.is_set("/status/promoteFull") || !context.is_aborted());
    if first || done {
        status::promote(context, &mut status);
    }
    match context.position(&active).and_then(|index| context.sets.get(index)) {
        Some(set) => status::account(&mut status, &set.object, &|field| set.count(field)),
        None => status::account(&mut status, &context.rollout, &|field| context.sum(field)),
    }
    Ok(Some(status::complete(context, status)))
}

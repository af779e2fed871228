//! Argo Rollouts: canary and blue-green.
//!
//! Rules and messages follow `rollout` of argoproj/argo-rollouts (1.8). Where its controller writes several patches in one look, here one
//! step writes their sum. With traffic routing only the weights in the status move. Left out: analyses, experiments, plugins (a step of
//! these waits for ever), `setCanaryScale`, `dynamicStableScale`, ping-pong, `previewReplicaCount`, `progressDeadlineAbort`, windows and
//! limits of revisions, `minReadySeconds`, and a `workloadRef` whose Deployment is to be scaled down.

mod blue_green;
mod canary;
mod restart;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pods::{Round, sooner};
use super::replica_sets::{Names, Set, ensure_new_set, find_sets, patch, resize};
use super::workload::{is_complete, share, template_hash};
use super::{Controller, Moment};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, is_ending, items, number, text};
use crate::kubernetes::patch::merge;
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{Part, PatchForm, Writer};

const NAMES: Names = Names { revision: "rollout.argoproj.io/revision", hash: "rollouts-pod-template-hash" };
/// The annotation with the generation of the Deployment that the template is read from.
const WORKLOAD_GENERATION: &str = "rollout.argoproj.io/workload-generation";
/// The annotation of a ReplicaSet with the time when it is to go.
const SCALE_DOWN: &str = "scale-down-deadline";

/// A pause that a controller began.
const CANARY_PAUSE: &str = "CanaryPauseStep";
const BLUE_GREEN_PAUSE: &str = "BlueGreenPause";

/// What is to become of pauses and of an abort.
#[derive(Debug, Default)]
struct Pauses {
    add: Option<&'static str>,
    remove: Option<&'static str>,
    clear: bool,
    end_abort: bool,
}

/// One look at one Rollout.
#[derive(Debug)]
struct Context<'a> {
    /// As it is stored, with the template of its workload.
    rollout: Value,
    replicas: i64,
    /// Of the present template.
    hash: String,
    sets: Vec<Set>,
    pauses: Pauses,
    weights: Value,
    restarted_at: Value,
    now: &'a Moment,
    /// The present time, as objects carry it.
    stamp: String,
    /// When to look again.
    next: Option<Duration>,
}

/// Moves one Rollout a step on; returns when to look again.
///
/// # Errors
/// When the store refuses a write.
pub fn reconcile(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    object: &Arc<Object>,
    now: &Moment,
) -> Result<Option<Duration>, Failure> {
    let mut round = Round { uid: &object.uid, now, may_become_ready: 1, next: None };
    let sets = find_sets(controller, writer, &NAMES, &mut round)?;
    let mut rollout = object.value();
    if is_ending(&rollout) || !resolve(writer, object, &mut rollout)? {
        return Ok(round.next);
    }
    if !is_complete(&rollout) || (sets.is_empty() && is_seeded(&rollout)) {
        return Ok(round.next);
    }
    let Some(replicas) = number(&rollout, "/spec/replicas") else {
        let change = json!({"spec": {"replicas": 1}});
        writer.patch(Kind::ArgoRollout, &object.key, PatchForm::Merge, &change, Part::Main)?;
        return Ok(round.next);
    };
    let mut context = Context {
        hash: template_hash(&rollout),
        weights: rollout.pointer("/status/canary/weights").cloned().unwrap_or_default(),
        restarted_at: rollout.pointer("/status/restartedAt").cloned().unwrap_or_default(),
        stamp: writer.now.clone(),
        pauses: Pauses::default(),
        next: None,
        rollout,
        replicas,
        sets,
        now,
    };
    let mut stored = object.value();
    let status = if context.rollout.pointer("/spec/strategy/blueGreen").is_some_and(Value::is_object) {
        blue_green::roll(&mut context, writer)?
    } else {
        canary::roll(&mut context, writer)?
    };
    if let Some(status) = status {
        stored["status"] = status;
    }
    let revision = context.rollout["metadata"]["annotations"][NAMES.revision].as_str();
    if let Some(revision) = revision {
        // Written with the status, and so without raising the generation.
        merge(&mut stored, &json!({"metadata": {"annotations": {NAMES.revision: revision}}}));
    }
    if stored != object.value() {
        writer.state.put(Kind::ArgoRollout, stored);
    }
    for set in &mut context.sets {
        resize(controller, writer, set, &mut round)?;
    }
    Ok(context.next.map_or(round.next, |next| sooner(round.next, next)))
}

/// Whether a Rollout without ReplicaSets reports itself as done.
fn is_seeded(rollout: &Value) -> bool {
    let generation = number(rollout, "/metadata/generation").map(|generation| generation.to_string());
    text(rollout, "/status/phase") == "Healthy"
        && generation.as_deref() == Some(text(rollout, "/status/observedGeneration"))
}

/// Takes the template and the selector from the Deployment that the Rollout refers to. False if there is none, or when its generation
/// had to be noted first, which is a write of its own.
fn resolve(writer: &mut Writer<'_>, object: &Object, rollout: &mut Value) -> Result<bool, Failure> {
    let name = text(rollout, "/spec/workloadRef/name");
    if name.is_empty() {
        return Ok(true);
    }
    let Some(deployment) = writer.state.get(Kind::Deployment, &Key::new(object.key.namespace.as_str(), name)) else {
        return Ok(false);
    };
    let deployment = deployment.value();
    let generation = json!(number(&deployment, "/metadata/generation").unwrap_or(0).to_string());
    if rollout["metadata"]["annotations"][WORKLOAD_GENERATION] != generation {
        let change = json!({"metadata": {"annotations": {WORKLOAD_GENERATION: generation}}});
        writer.patch(Kind::ArgoRollout, &object.key, PatchForm::Merge, &change, Part::Main)?;
        return Ok(false);
    }
    rollout["spec"]["template"] = deployment["spec"]["template"].clone();
    if rollout["spec"]["selector"].is_null() {
        rollout["spec"]["selector"] = deployment["spec"]["selector"].clone();
    }
    Ok(true)
}

impl Context<'_> {
    /// Makes the ReplicaSet of the present template if there is none, and notes what was found of pauses.
    fn begin(&mut self, writer: &mut Writer<'_>) -> Result<(), Failure> {
        let made = ensure_new_set(writer, &self.rollout, &NAMES, &self.hash, &mut self.sets)?;
        if let Some((name, revision)) = self.new_set().map(|set| (set.key.name.clone(), set.revision)) {
            self.rollout["metadata"]["annotations"][NAMES.revision] = json!(revision.to_string());
            status::note(self, made.then_some(name.as_str()));
        }
        self.pauses.end_abort = self.is_promoted();
        Ok(())
    }

    /// Whether the ReplicaSet that the status calls current is the stable one.
    fn is_promoted(&self) -> bool {
        self.status("stableRS") == self.status("currentPodHash")
    }

    fn status(&self, field: &str) -> &str {
        text(&self.rollout, &format!("/status/{field}"))
    }

    fn is_set(&self, pointer: &str) -> bool {
        self.rollout.pointer(pointer) == Some(&Value::Bool(true))
    }

    fn is_aborted(&self) -> bool {
        !self.pauses.end_abort && self.is_set("/status/abort")
    }

    /// When the pause for this reason began.
    fn paused_since(&self, reason: &str) -> Option<Timestamp> {
        let pauses = items(&self.rollout, "/status/pauseConditions");
        text(pauses.iter().find(|pause| text(pause, "/reason") == reason)?, "/startTime").parse().ok()
    }

    /// Whether so many seconds have passed; if not, looks again when they have.
    fn has_passed(&mut self, since: Timestamp, seconds: i64) -> bool {
        let end = since.checked_add(Duration::from_secs(seconds.unsigned_abs())).unwrap_or(since);
        let left = end.duration_since(self.now.time);
        if left.is_positive() {
            self.next = sooner(self.next, self.now.elapsed + left.unsigned_abs());
        }
        !left.is_positive()
    }

    fn position(&self, hash: &str) -> Option<usize> {
        self.sets.iter().position(|set| set.hash == hash)
    }

    fn stable(&self) -> Option<usize> {
        self.position(self.status("stableRS"))
    }

    fn new_set(&self) -> Option<&Set> {
        self.sets.iter().find(|set| set.hash == self.hash)
    }

    /// The ReplicaSets that are neither new nor stable, the newest first.
    fn others(&self) -> Vec<usize> {
        let known = [self.position(&self.hash), self.stable()];
        (0..self.sets.len()).rev().filter(|index| !known.contains(&Some(*index))).collect()
    }

    /// `maxSurge` and `maxUnavailable`, resolved.
    fn bounds(&self) -> (i64, i64) {
        let quarter = json!("25%");
        let part = |field: &str, up: bool| {
            let value = self.rollout.pointer(&format!("/spec/strategy/canary/{field}")).unwrap_or(&quarter);
            share(Some(value), self.replicas, up)
        };
        let (surge, unavailable) = (part("maxSurge", true), part("maxUnavailable", false));
        // Both zero would never move.
        (surge, if surge == 0 && unavailable == 0 { 1 } else { unavailable.min(self.replicas) })
    }

    fn sum(&self, field: &str) -> i64 {
        self.sets.iter().map(|set| set.count(field)).sum()
    }

    /// Asks a ReplicaSet for so many pods; true if that changed anything.
    fn scale(&mut self, writer: &mut Writer<'_>, index: usize, count: i64) -> Result<bool, Failure> {
        let goes = count == 0 && self.abort_delay().is_none();
        let Some(set) = self.sets.get_mut(index).filter(|set| set.desired != count) else { return Ok(false) };
        let mut change = json!({"spec": {"replicas": count}});
        if goes {
            change["metadata"] = json!({"annotations": {SCALE_DOWN: null}});
        }
        set.object = patch(writer, &set.key, &change)?;
        set.desired = count;
        Ok(true)
    }

    /// Scales the new ReplicaSet. After an abort it stays for a while where traffic is switched and not shared.
    fn scale_new(&mut self, writer: &mut Writer<'_>, count: i64) -> Result<bool, Failure> {
        let Some(index) = self.position(&self.hash) else { return Ok(false) };
        let mut count = count;
        if let Some(delay) = self.abort_delay() {
            match self.deadline(index) {
                Some(deadline) if !self.has_passed(deadline, 0) => return Ok(false),
                Some(_) => count = 0,
                None => {
                    let stable = self.stable().and_then(|stable| self.sets.get(stable));
                    if stable.is_some_and(|stable| stable.count("availableReplicas") == self.replicas) {
                        self.set_deadline(writer, index, Some(delay))?;
                        self.has_passed(self.now.time, delay);
                    }
                    return Ok(false);
                }
            }
        }
        self.scale(writer, index, count)
    }

    /// The seconds for which a new ReplicaSet stays after an abort; none if it is scaled as always.
    fn abort_delay(&self) -> Option<i64> {
        let strategy = if self.rollout.pointer("/spec/strategy/blueGreen").is_some() { "blueGreen" } else { "canary" };
        let basic = strategy == "canary" && self.rollout.pointer("/spec/strategy/canary/trafficRouting").is_none();
        let delay = number(&self.rollout, &format!("/spec/strategy/{strategy}/abortScaleDownDelaySeconds"));
        let delay = delay.unwrap_or(30);
        (self.is_aborted() && self.stable().is_some() && !basic && delay != 0).then_some(delay)
    }

    fn deadline(&self, index: usize) -> Option<Timestamp> {
        self.sets.get(index)?.object["metadata"]["annotations"][SCALE_DOWN].as_str()?.parse().ok()
    }

    /// Notes on a ReplicaSet when it is to go, in so many seconds; or that it stays.
    fn set_deadline(&mut self, writer: &mut Writer<'_>, index: usize, seconds: Option<i64>) -> Result<(), Failure> {
        let now = self.now.time;
        let at = seconds.and_then(|seconds| now.checked_add(Duration::from_secs(seconds.unsigned_abs())).ok());
        let at = at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let Some(set) = self.sets.get_mut(index) else { return Ok(()) };
        set.object = patch(writer, &set.key, &json!({"metadata": {"annotations": {SCALE_DOWN: at}}}))?;
        Ok(())
    }

    /// ReplicaSets that are in use are not to go.
    fn keep_used(&mut self, writer: &mut Writer<'_>) -> Result<(), Failure> {
        let new = self.position(&self.hash).filter(|_| self.abort_delay().is_none());
        for index in [new, self.stable()].into_iter().flatten() {
            if self.deadline(index).is_some() {
                self.set_deadline(writer, index, None)?;
            }
        }
        Ok(())
    }

    /// How many pods an old ReplicaSet keeps: all for a while, then none.
    fn delayed(&mut self, writer: &mut Writer<'_>, index: usize, delay: i64) -> Result<i64, Failure> {
        let desired = self.sets.get(index).map_or(0, |set| set.desired);
        match self.deadline(index) {
            Some(deadline) => Ok(if self.has_passed(deadline, 0) { 0 } else { desired }),
            None if delay == 0 => Ok(0),
            None => {
                self.set_deadline(writer, index, Some(delay))?;
                self.has_passed(self.now.time, delay);
                Ok(desired)
            }
        }
    }

    /// The hash that a Service selects by; none if there is no such Service.
    fn selected(&self, writer: &Writer<'_>, service: &str) -> Option<String> {
        let key = Key::new(text(&self.rollout, "/metadata/namespace"), service);
        let service = writer.state.get(Kind::Service, &key)?.value();
        Some(service["spec"]["selector"][NAMES.hash].as_str().unwrap_or_default().to_owned())
    }

    /// Makes a Service select the pods of this hash. That changes nothing where it does already.
    fn switch(&self, writer: &mut Writer<'_>, service: &str, hash: &str) -> Result<(), Failure> {
        let key = Key::new(text(&self.rollout, "/metadata/namespace"), service);
        let owner = text(&self.rollout, "/metadata/name");
        let change = json!({
            "metadata": {"annotations": {"argo-rollouts.argoproj.io/managed-by-rollouts": owner}},
            "spec": {"selector": {NAMES.hash: hash}},
        });
        writer.patch(Kind::Service, &key, PatchForm::Merge, &change, Part::Main).map(drop)
    }
}

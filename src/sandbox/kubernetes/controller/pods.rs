//! Scheduler and kubelet: what a pod of a ReplicaSet is doing, and how its status says so.
//!
//! Not for how many pods there are: that is in `rollout`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Controller, Moment, PodFate};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Writer};

/// What a pod is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Has a node, and its containers are being made.
    Starting,
    /// Its image could not be pulled just now.
    PullFailed,
    /// Waits before the next attempt to pull.
    PullBackOff,
    /// Waits before the next attempt to run.
    CrashBackOff,
    /// Runs and is not ready.
    Unready,
    Unscheduled,
    /// Runs and is ready.
    Ready,
}

/// What the kubelet knows of one pod.
#[derive(Clone, Copy, Debug)]
pub struct PodRun {
    /// What it is doing.
    stage: Stage,
    /// Since when, counted from the making of the cluster.
    since: Duration,
    /// When its end began.
    ending_since: Option<Duration>,
    /// The version under which it was first seen: tells young from old.
    born: u64,
}

/// A pod as the controllers above see it.
#[derive(Debug)]
pub struct Pod {
    pub key: Key,
    /// Whether its Ready condition is true.
    pub ready: bool,
    /// Whether it has been ready for long enough to count.
    pub available: bool,
    /// Larger for younger pods.
    pub born: u64,
}

/// One look at one Deployment.
#[derive(Debug)]
pub struct Round<'a> {
    pub uid: &'a str,
    /// `minReadySeconds`.
    pub min_ready: Duration,
    pub now: &'a Moment,
    /// How many more pods may become ready.
    pub may_become_ready: u32,
    /// When there is something to do without anything changing.
    pub next: Option<Duration>,
    /// Pods that are ending but not gone.
    pub ending: usize,
}

impl Round<'_> {
    /// Notes that there is something to do at `at`.
    pub fn wake_at(&mut self, at: Duration) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

/// Whether a deletion has begun.
pub fn is_terminating(pod: &Value) -> bool {
    !text(pod, "/metadata/deletionTimestamp").is_empty()
}

impl Controller {
    /// Moves the pods of a ReplicaSet on and returns those that are not ending.
    pub fn run_pods(
        &mut self,
        writer: &mut Writer<'_>,
        set_uid: &str,
        round: &mut Round<'_>,
    ) -> Result<Vec<Pod>, Failure> {
        let mut alive = Vec::new();
        for object in writer.state.children(set_uid).into_iter().filter(|object| object.kind == Kind::Pod) {
            let mut pod = object.value();
            if is_terminating(&pod) {
                self.end_pod(writer, &object, round)?;
                continue;
            }
            let known = self.pods.get(&object.uid).copied();
            let start =
                PodRun { stage: Stage::Starting, since: round.now.elapsed, ending_since: None, born: object.version };
            let mut run = known.unwrap_or(start);
            let stage = if known.is_some() { self.next_stage(&pod, &run, round) } else { run.stage };
            if known.is_none() || stage != run.stage {
                if stage == Stage::Ready {
                    self.last_ready.insert(round.uid.to_owned(), round.now.elapsed);
                }
                run = PodRun { stage, since: round.now.elapsed, ..run };
                show(&mut pod, stage, &writer.now);
                writer.state.put(Kind::Pod, pod.clone());
            }
            self.pods.insert(object.uid.clone(), run);
            let available_at = run.since + round.min_ready;
            let ready = is_ready(&pod);
            if ready && available_at > round.now.elapsed {
                round.wake_at(available_at);
            }
            let available = ready && available_at <= round.now.elapsed;
            alive.push(Pod { key: object.key.clone(), ready, available, born: run.born });
        }
        Ok(alive)
    }

    /// Makes a pod for a ReplicaSet.
    pub fn start_pod(&mut self, writer: &mut Writer<'_>, set: &Value, round: &mut Round<'_>) -> Result<(), Failure> {
        let name = text(set, "/metadata/name");
        let template = set.pointer("/spec/template").cloned().unwrap_or_default();
        let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
        metadata["generateName"] = json!(format!("{name}-"));
        metadata["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": text(set, "/metadata/uid"),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")});
        let made = writer.create(Kind::Pod, text(set, "/metadata/namespace"), pod)?;
        let stage = Stage::Starting;
        let run = PodRun { stage, since: round.now.elapsed, ending_since: None, born: made.version };
        let mut pod = made.value();
        show(&mut pod, stage, &writer.now);
        writer.state.put(Kind::Pod, pod);
        self.pods.insert(made.uid.clone(), run);
        round.wake_at(round.now.elapsed);
        Ok(())
    }

    fn end_pod(&mut self, writer: &mut Writer<'_>, pod: &Object, round: &mut Round<'_>) -> Result<(), Failure> {
        let now = round.now.elapsed;
        let unknown = PodRun { stage: Stage::Unready, since: now, ending_since: None, born: pod.version };
        let run = self.pods.entry(pod.uid.clone()).or_insert(unknown);
        let is_new = run.ending_since.is_none();
        let gone_at = *run.ending_since.get_or_insert(now) + self.timings.pod_gone;
        // Even without delays a client can see the pod end: it goes one step later.
        if is_new || gone_at > now {
            round.ending += 1;
            round.wake_at(gone_at);
            return Ok(());
        }
        let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
        writer.delete(Kind::Pod, &pod.key, &at_once).map(drop)
    }

    /// What a pod does next.
    fn next_stage(&self, pod: &Value, run: &PodRun, round: &mut Round<'_>) -> Stage {
        let now = round.now.elapsed;
        match self.fate(pod) {
            Some(PodFate::Unschedulable) => Stage::Unscheduled,
            Some(PodFate::Crashes) => Stage::CrashBackOff,
            Some(PodFate::NeverReady) => Stage::Unready,
            Some(PodFate::CannotPull) => match run.stage {
                Stage::PullFailed if run.since + self.timings.image_back_off > now => {
                    round.wake_at(run.since + self.timings.image_back_off);
                    Stage::PullFailed
                }
                Stage::PullFailed | Stage::PullBackOff => Stage::PullBackOff,
                Stage::Starting | Stage::CrashBackOff | Stage::Unready | Stage::Unscheduled | Stage::Ready => {
                    round.wake_at(now + self.timings.image_back_off);
                    Stage::PullFailed
                }
            },
            None if run.stage == Stage::Ready => Stage::Ready,
            None => {
                let before = self.last_ready.get(round.uid).copied().unwrap_or_default();
                let ready_at = run.since.max(before) + self.timings.pod_ready;
                if ready_at > now || round.may_become_ready == 0 {
                    round.wake_at(ready_at);
                    // A pod that was unwell says so until it is ready, or until it is known to be starting again.
                    return run.stage;
                }
                round.may_become_ready -= 1;
                Stage::Ready
            }
        }
    }

    fn fate(&self, pod: &Value) -> Option<PodFate> {
        let containers = |list: &str| pod.pointer(list).and_then(Value::as_array).into_iter().flatten();
        let mut images = containers("/spec/containers").chain(containers("/spec/initContainers"));
        images.find_map(|container| self.fates.get(text(container, "/image")).copied())
    }
}

/// Whether its Ready condition is true.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True")
}

/// Writes what the pod is doing into its spec and status, as scheduler and kubelet would.
fn show(pod: &mut Value, stage: Stage, now: &str) {
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = if holds { "True" } else { "False" };
        let mut condition = json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now});
        if !reason.is_empty() {
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
        }
        condition
    };
    if stage == Stage::Unscheduled {
        let message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No \
                       preemption victims found for incoming pod.";
        let conditions = [condition("PodScheduled", false, "Unschedulable", message)];
        drop(pod["spec"].as_object_mut().and_then(|spec| spec.remove("nodeName")));
        pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort", "conditions": conditions});
        return;
    }
    let ready = stage == Stage::Ready;
    let running = matches!(stage, Stage::Ready | Stage::Unready | Stage::CrashBackOff);
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).cloned().unwrap_or_default();
    let names: Vec<&str> = containers.iter().map(|container| text(container, "/name")).collect();
    let unready = format!("containers with unready status: [{}]", names.join(" "));
    let because = if ready { ("", "") } else { ("ContainersNotReady", unready.as_str()) };
    let conditions = [
        condition("Initialized", true, "", ""),
        condition("Ready", ready, because.0, because.1),
        condition("ContainersReady", ready, because.0, because.1),
        condition("PodScheduled", true, "", ""),
    ];
    let statuses: Vec<Value> = containers.iter().map(|container| container_status(container, stage, now)).collect();
    pod["spec"]["nodeName"] = json!("node-1");
    pod["status"] = json!({
        "phase": if running { "Running" } else { "Pending" }, "qosClass": "BestEffort", "hostIP": "192.0.2.1",
        "startTime": now, "conditions": conditions, "containerStatuses": statuses,
    });
    if running {
        pod["status"]["podIP"] = json!("10.244.0.2");
    }
}

fn container_status(container: &Value, stage: Stage, now: &str) -> Value {
    let (name, image) = (text(container, "/name"), text(container, "/image"));
    let waiting = |reason: &str, message: String| {
        let mut state = json!({"waiting": {"reason": reason}});
        if !message.is_empty() {
            state["waiting"]["message"] = json!(message);
        }
        state
    };
    let state = match stage {
        Stage::Ready | Stage::Unready => json!({"running": {"startedAt": now}}),
        Stage::Starting | Stage::Unscheduled => waiting("ContainerCreating", String::new()),
        Stage::PullFailed => waiting(
            "ErrImagePull",
            format!(
                "failed to pull and unpack image \"{image}\": failed to resolve reference \"{image}\": {image}: not \
                 found"
            ),
        ),
        Stage::PullBackOff => waiting("ImagePullBackOff", format!("Back-off pulling image \"{image}\"")),
        Stage::CrashBackOff => waiting("CrashLoopBackOff", format!("back-off 5m0s restarting failed container={name}")),
    };
    let crashed = stage == Stage::CrashBackOff;
    let last = json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}});
    json!({
        "name": name, "image": image, "imageID": "", "ready": stage == Stage::Ready,
        "started": matches!(stage, Stage::Ready | Stage::Unready), "restartCount": if crashed { 5 } else { 0 },
        "state": state, "lastState": if crashed { last } else { json!({}) },
    })
}

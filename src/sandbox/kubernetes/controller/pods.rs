//! Scheduler and kubelet: what a pod of a workload is doing, and how its status says so.
//!
//! Not for how many pods there are: the workload's controller decides that.

use std::time::Duration;

use serde_json::{Value, json};

use super::nodes::node_of;
use super::workload::{is_complete, is_settled};
use super::{Controller, Moment, PodFate};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, holds, is_ending, items, text};
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
    /// Whether its node does not answer, and so its status is not the kubelet's.
    silent: bool,
}

impl PodRun {
    fn new(since: Duration, born: u64) -> PodRun {
        PodRun { stage: Stage::Starting, since, ending_since: None, born, silent: false }
    }
}

/// A pod as the controllers above see it.
#[derive(Debug)]
pub struct Pod {
    pub key: Key,
    /// Whether its Ready condition is true. It then counts as available, too.
    pub ready: bool,
    /// Larger for younger pods.
    pub born: u64,
}

/// One look at one workload.
#[derive(Debug)]
pub struct Round<'a> {
    pub uid: &'a str,
    pub now: &'a Moment,
    /// How many more pods may become ready.
    pub may_become_ready: u32,
    /// When there is something to do without anything changing.
    pub next: Option<Duration>,
}

impl Round<'_> {
    /// Notes that there is something to do at `at`.
    pub fn wake_at(&mut self, at: Duration) {
        self.next = sooner(self.next, at);
    }
}

/// The sooner of two times.
pub fn sooner(next: Option<Duration>, at: Duration) -> Option<Duration> {
    Some(next.map_or(at, |next| next.min(at)))
}

/// A pod by the template of its owner.
pub fn pod_of(owner: &Value) -> Value {
    let name = text(owner, "/metadata/name");
    let template = owner.pointer("/spec/template").cloned().unwrap_or_default();
    let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    metadata["generateName"] = json!(format!("{name}-"));
    metadata["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")})
}

impl Controller {
    /// Begins a look at a set that owns its pods itself: they move on. Returns whether the set is acted upon: one that a test has stored
    /// without a part that it needs, or as settled without pods, is left alone.
    ///
    /// # Errors
    /// When the store refuses a write.
    pub fn begin_set(
        &mut self,
        writer: &mut Writer<'_>,
        set: &Value,
        has_pods: bool,
        (wanted, counts): (Option<i64>, &[&str]),
        round: &mut Round<'_>,
    ) -> Result<bool, Failure> {
        let uid = round.uid;
        self.run_pods(writer, uid, round)?;
        let is_seeded = !has_pods && !self.revisions.contains_key(uid) && is_settled(set, wanted, counts);
        Ok(is_complete(set) && !is_seeded)
    }

    /// Moves the pods of an owner on and returns those that are not ending.
    ///
    /// # Errors
    /// When the store refuses a write.
    pub fn run_pods(
        &mut self,
        writer: &mut Writer<'_>,
        owner_uid: &str,
        round: &mut Round<'_>,
    ) -> Result<Vec<Pod>, Failure> {
        let mut alive = Vec::new();
        for object in writer.state.children(owner_uid).into_iter().filter(|object| object.kind == Kind::Pod) {
            let mut pod = object.value();
            let is_new = !self.pods.contains_key(&object.uid);
            let start = PodRun::new(round.now.elapsed, object.version);
            let run = *self.pods.entry(object.uid.clone()).or_insert(start);
            if self.is_silent(&pod) {
                self.silence(writer, &object.uid, &mut pod);
            } else if is_ending(&pod) {
                self.end_pod(writer, &object, round)?;
            } else {
                let stage = if is_new { run.stage } else { self.next_stage(&pod, &run, round) };
                if is_new || run.silent || stage != run.stage {
                    if stage == Stage::Ready {
                        self.last_ready.insert(round.uid.to_owned(), round.now.elapsed);
                    }
                    let run = PodRun { stage, since: round.now.elapsed, silent: false, ..run };
                    show(&mut pod, stage, &writer.now);
                    writer.state.put(Kind::Pod, pod.clone());
                    self.pods.insert(object.uid.clone(), run);
                }
            }
            if !is_ending(&pod) {
                alive.push(Pod { key: object.key.clone(), ready: holds(&pod, "Ready"), born: run.born });
            }
        }
        Ok(alive)
    }

    /// The age of a pod: larger for younger ones.
    pub fn born(&self, pod: &Object) -> u64 {
        self.pods.get(&pod.uid).map_or(pod.version, |run| run.born)
    }

    fn is_silent(&self, pod: &Value) -> bool {
        let node = text(pod, "/spec/nodeName");
        self.nodes.iter().any(|known| known.name == node && !known.answers)
    }

    /// What the node controller does where no kubelet speaks: the pod is not ready.
    fn silence(&mut self, writer: &mut Writer<'_>, uid: &str, pod: &mut Value) {
        self.pods.entry(uid.to_owned()).and_modify(|run| run.silent = true);
        if !holds(pod, "Ready") {
            return;
        }
        let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter(|condition| text(condition, "/type") == "Ready") {
            condition["status"] = json!("False");
            condition["lastTransitionTime"] = json!(writer.now);
        }
        writer.state.put(Kind::Pod, pod.clone());
    }

    /// Makes a pod.
    ///
    /// # Errors
    /// 409 when its name is taken.
    pub fn start_pod(
        &mut self,
        writer: &mut Writer<'_>,
        namespace: &str,
        pod: Value,
        round: &mut Round<'_>,
    ) -> Result<(), Failure> {
        let made = writer.create(Kind::Pod, namespace, pod)?;
        let run = PodRun::new(round.now.elapsed, made.version);
        let mut pod = made.value();
        show(&mut pod, run.stage, &writer.now);
        writer.state.put(Kind::Pod, pod);
        self.pods.insert(made.uid.clone(), run);
        round.wake_at(round.now.elapsed);
        Ok(())
    }

    fn end_pod(&mut self, writer: &mut Writer<'_>, pod: &Object, round: &mut Round<'_>) -> Result<(), Failure> {
        let now = round.now.elapsed;
        let run = self.pods.entry(pod.uid.clone()).or_insert(PodRun::new(now, pod.version));
        let is_new = run.ending_since.is_none();
        let gone_at = *run.ending_since.get_or_insert(now) + self.timings.pod_gone;
        // Even without delays a client can see the pod end: it goes one step later.
        if is_new || gone_at > now {
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
            Some(PodFate::CannotPull) => match run.stage {
                Stage::PullFailed if run.since + self.timings.image_back_off > now => {
                    round.wake_at(run.since + self.timings.image_back_off);
                    Stage::PullFailed
                }
                Stage::PullFailed | Stage::PullBackOff => Stage::PullBackOff,
                Stage::Starting | Stage::Unscheduled | Stage::Ready => {
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
        let mut containers = items(pod, "/spec/containers").iter().chain(items(pod, "/spec/initContainers"));
        containers.find_map(|container| self.fates.get(text(container, "/image")).copied())
    }
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
    let containers = items(pod, "/spec/containers");
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
    pod["spec"]["nodeName"] = json!(node_of(pod));
    pod["status"] = json!({
        "phase": if ready { "Running" } else { "Pending" }, "qosClass": "BestEffort", "hostIP": "192.0.2.1",
        "startTime": now, "conditions": conditions, "containerStatuses": statuses,
    });
    if ready {
        pod["status"]["podIP"] = json!("10.244.0.2");
    }
}

fn container_status(container: &Value, stage: Stage, now: &str) -> Value {
    let (name, image) = (text(container, "/name"), text(container, "/image"));
    let state = match stage {
        Stage::Ready => json!({"running": {"startedAt": now}}),
        Stage::Starting | Stage::Unscheduled => json!({"waiting": {"reason": "ContainerCreating"}}),
        Stage::PullFailed => {
            let why = format!("failed to resolve reference \"{image}\": {image}: not found");
            let message = format!("failed to pull and unpack image \"{image}\": {why}");
            json!({"waiting": {"reason": "ErrImagePull", "message": message}})
        }
        Stage::PullBackOff => {
            let message = format!("Back-off pulling image \"{image}\"");
            json!({"waiting": {"reason": "ImagePullBackOff", "message": message}})
        }
    };
    let ready = stage == Stage::Ready;
    json!({
        "name": name, "image": image, "imageID": "", "ready": ready, "started": ready, "restartCount": 0,
        "state": state, "lastState": {},
    })
}

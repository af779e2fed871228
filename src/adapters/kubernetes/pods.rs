//! A pod's JSON, reduced to whether it is ready and, if not, what is wrong with it in words a person can act on.
//!
//! Not for deciding which pods belong to a workload: the labels are handed on for its selector.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::decode::PodSpec;
use super::parts::Condition;
use kernel::id::Kind;
use kernel::names::selector::Labels;
use kernel::text::{explained, first};
use kernel::unreadable::Unreadable;
use purge::workloads::readiness::Pod;

/// Most of an explanation of Kubernetes that is repeated. The scheduler's begin with what matters, and say every node.
pub(super) const WORDS_CHARS_MAX: usize = 120;

/// Reasons to wait that every pod goes through; no trouble.
pub(super) const ORDINARY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Reasons that say all there is to say; the message behind them only repeats the image or the container.
pub(super) const PLAIN: [&str; 4] = ["ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "CrashLoopBackOff"];

/// Why a pod is not ready whose containers are.
/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-readiness-gate>
const GATES_NOT_READY: &str = "ReadinessGatesNotReady";

/// Phases of a pod whose containers have ended for good.
/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase>
pub(super) const FINISHED: [&str; 2] = ["Succeeded", "Failed"];

/// A pod, and the labels it is selected by.
pub(super) type LabelledPod = (Labels, Pod);

/// Reads a pod.
///
/// # Errors
/// When a field that is used has another type than Kubernetes gives it, in words.
pub(super) fn pod(json: &str) -> Result<LabelledPod, Unreadable> {
    Ok(identified(json)?.1)
}

/// The UIDs of a pod and of its controller, and that one's kind and name; empty where there is none.
pub(super) struct Uids {
    pub own: String,
    pub controller: String,
    controller_kind: String,
    pub controller_name: String,
}

impl Uids {
    /// Whether the controller of a workload of this kind is, as far as kinds tell, the controller of the pod. A StatefulSet and a Deployment
    /// may have one name.
    pub fn fits(&self, kind: Kind) -> bool {
        match kind {
            Kind::Deployment | Kind::Rollout => self.controller_kind == "ReplicaSet",
            Kind::StatefulSet | Kind::DaemonSet => self.controller_kind == kind.name(),
            // It may make pods by itself, or ReplicaSets.
            Kind::Custom(_) => true,
        }
    }

    /// The name of the workload that a pod with these labels is of: a ReplicaSet has that of its own workload, and the hash of its template
    /// behind it.
    pub fn workload(&self, labels: &Labels) -> Option<&str> {
        let hashes = [Kind::Rollout, Kind::Deployment].map(kinds::template_label);
        let of = hashes.iter().filter_map(|label| labels.get(*label)).find_map(|hash| {
            let name = self.controller_name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
            (!name.is_empty()).then_some(name)
        });
        of.or(Some(self.controller_name.as_str())).filter(|name| !name.is_empty())
    }
}

/// Reads a pod and whose it is.
///
/// # Errors
/// The same.
pub(super) fn identified(json: &str) -> Result<(Uids, LabelledPod), Unreadable> {
    let raw: RawPod = serde_json::from_str(json)?;
    let status = raw.status.unwrap_or_default();
    let ready = status.condition("Ready").is_some_and(|condition| condition.holds());
    let trouble = if ready { None } else { status.trouble(raw.spec.node_name()) };
    let pod = Pod {
        name: raw.metadata.name,
        version: raw.spec.version(None).ok(),
        ready,
        terminating: raw.metadata.deletion_timestamp.is_some(),
        started: status.phase.as_deref().is_some_and(|phase| phase != "Pending"),
        finished: status.phase.as_deref().is_some_and(|phase| FINISHED.contains(&phase)),
        trouble,
    };
    let mut owners = raw.metadata.owner_references.into_iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true)).unwrap_or_default();
    let uids = Uids {
        own: raw.metadata.uid.unwrap_or_default(),
        controller: controller.uid.unwrap_or_default(),
        controller_kind: controller.kind.unwrap_or_default(),
        controller_name: controller.name.unwrap_or_default(),
    };
    Ok((uids, (raw.metadata.labels.unwrap_or_default(), pod)))
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Metadata,
    spec: PodSpec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: Option<String>,
    owner_references: Option<Vec<Owner>>,
    labels: Option<Labels>,
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Owner {
    kind: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    ready: Option<bool>,
    state: Option<State>,
    last_state: Option<State>,
}

#[derive(Deserialize)]
struct State {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Deserialize)]
struct Waiting {
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    reason: Option<String>,
    exit_code: Option<i32>,
}

impl Status {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().flatten().find(|condition| condition.kind == kind)
    }

    /// What keeps the pod from being ready, the nearest cause first: init containers run before the others.
    fn trouble(&self, node: Option<&str>) -> Option<String> {
        let containers =
            || self.init_container_statuses.iter().flatten().chain(self.container_statuses.iter().flatten());
        containers()
            .find_map(ContainerStatus::stuck)
            .or_else(|| self.unschedulable())
            .or_else(|| self.failed())
            .or_else(|| self.beyond_containers(node))
            .or_else(|| containers().find_map(ContainerStatus::restarted))
    }

    /// Why a pod is not ready whose containers are: a readiness gate, or a node that does not answer, of whose pods only this
    /// condition is changed (<https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/util/node/controller_utils.go#L99>).
    fn beyond_containers(&self, node: Option<&str>) -> Option<String> {
        let ready =
            self.condition("Ready").filter(|_| self.condition("ContainersReady").is_some_and(Condition::holds))?;
        if ready.reason.as_deref() == Some(GATES_NOT_READY) {
            return Some(explained(GATES_NOT_READY, ready.message.as_deref(), WORDS_CHARS_MAX));
        }
        let node = first(node?, WORDS_CHARS_MAX);
        Some(format!("its node {node} does not seem to answer; mend it, or remove it by `kubectl delete node {node}`"))
    }

    fn unschedulable(&self) -> Option<String> {
        let condition = self.condition("PodScheduled").filter(|condition| !condition.holds())?;
        let reason = condition.reason.as_deref().filter(|reason| !reason.is_empty())?;
        Some(explained(reason, condition.message.as_deref(), WORDS_CHARS_MAX))
    }

    /// The pod as a whole has failed, for example by eviction.
    fn failed(&self) -> Option<String> {
        (self.phase.as_deref() == Some("Failed"))
            .then(|| explained(self.reason.as_deref().unwrap_or("Failed"), self.message.as_deref(), WORDS_CHARS_MAX))
    }
}

impl ContainerStatus {
    /// The container waits for something that does not come, or has ended badly.
    fn stuck(&self) -> Option<String> {
        let state = self.state.as_ref()?;
        if let Some(waiting) = &state.waiting {
            let reason = waiting.reason.as_deref().filter(|reason| !reason.is_empty() && !ORDINARY.contains(reason))?;
            let last = self.last_end().map(|end| format!(" after {end}")).unwrap_or_default();
            return Some(match PLAIN.contains(&reason) {
                true => format!("{reason}{last}"),
                false => explained(reason, waiting.message.as_deref(), WORDS_CHARS_MAX),
            });
        }
        state.terminated.as_ref().and_then(Terminated::words)
    }

    /// The container runs again after it had ended badly.
    fn restarted(&self) -> Option<String> {
        if self.ready == Some(true) { None } else { self.last_end().map(|end| format!("restarted after {end}")) }
    }

    fn last_end(&self) -> Option<String> {
        self.last_state.as_ref()?.terminated.as_ref()?.words()
    }
}

impl Terminated {
    /// How it ended: `OOMKilled`, `Error (exit code 3)`; `None` if it ended well.
    fn words(&self) -> Option<String> {
        let code = self.exit_code.filter(|code| *code != 0)?;
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("Error");
        Some(if reason == "OOMKilled" { reason.to_owned() } else { format!("{reason} (exit code {code})") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(status: Value) -> Pod {
        let object = json!({
            "metadata": {"name": "web-7c9-x4", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "shop/web:1.2"}]},
            "status": status,
        });
        pod(&object.to_string()).unwrap().1
    }

    fn trouble(status: Value) -> Option<String> {
        read(status).trouble
    }

    #[test]
    fn a_ready_pod_has_no_trouble_whatever_happened_before() {
        let pod = read(json!({
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"ready": true, "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}],
        }));
        assert!(pod.ready && pod.trouble.is_none());
        assert_eq!(pod.version.unwrap().to_string(), "web shop/web:1.2");
    }

    #[test]
    fn what_a_container_waits_for_is_named() {
        let waiting = |reason: &str| {
            let state = json!({"waiting": {"reason": reason, "message": "secret \"db\" not found"}});
            trouble(json!({"phase": "Pending", "containerStatuses": [{"ready": false, "state": state}]}))
        };
        assert_eq!(waiting("ImagePullBackOff").as_deref(), Some("ImagePullBackOff"));
        assert_eq!(waiting("ErrImagePull").as_deref(), Some("ErrImagePull"));
        assert_eq!(
            waiting("CreateContainerConfigError").as_deref(),
            Some("CreateContainerConfigError: secret \"db\" not found")
        );
        assert_eq!(waiting("ContainerCreating"), None);
    }

    #[test]
    fn a_crash_loop_says_how_the_container_ended() {
        let crash = |end: Value| {
            trouble(json!({"containerStatuses": [{
                "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": end},
            }]}))
        };
        let error = json!({"reason": "Error", "exitCode": 3});
        assert_eq!(crash(error).as_deref(), Some("CrashLoopBackOff after Error (exit code 3)"));
        let oom = json!({"reason": "OOMKilled", "exitCode": 137});
        assert_eq!(crash(oom).as_deref(), Some("CrashLoopBackOff after OOMKilled"));
    }

    #[test]
    fn an_init_container_in_trouble_comes_before_the_containers_behind_it() {
        let status = json!({
            "initContainerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}],
            "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
        });
        assert_eq!(trouble(status).as_deref(), Some("Error (exit code 1)"));
        let done =
            json!({"initContainerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]});
        assert_eq!(trouble(done), None);
    }

    #[test]
    fn an_unschedulable_pod_repeats_the_beginning_of_what_the_scheduler_says() {
        let condition = |message: String| {
            json!({"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},
            ]})
        };
        let short = trouble(condition("0/3 nodes are available".into()));
        assert_eq!(short.as_deref(), Some("Unschedulable: 0/3 nodes are available"));
        let long = trouble(condition("ä".repeat(500))).unwrap();
        assert_eq!(long.chars().count(), "Unschedulable: ".len() + WORDS_CHARS_MAX + 1);
    }

    #[test]
    fn an_evicted_pod_and_a_restarted_container_are_told() {
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
        assert_eq!(trouble(evicted).as_deref(), Some("Evicted: low on memory"));
        let restarted = json!({"containerStatuses": [{
            "ready": false, "state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        }]});
        assert_eq!(trouble(restarted).as_deref(), Some("restarted after OOMKilled"));
    }

    #[test]
    fn what_keeps_a_pod_from_being_ready_whose_containers_are_is_told() {
        let with = |reason: Option<&str>| {
            let object = json!({
                "metadata": {"name": "agent-x4"},
                "spec": {"nodeName": "node-2", "containers": [{"name": "agent", "image": "shop/agent:1"}]},
                "status": {
                    "conditions": [
                        {"type": "Ready", "status": "False", "reason": reason, "message": "gate \"lb\" is not \"True\""},
                        {"type": "ContainersReady", "status": "True"},
                    ],
                    "containerStatuses": [{"ready": true, "state": {"running": {}}}],
                },
            });
            pod(&object.to_string()).unwrap().1.trouble
        };
        let gate = "ReadinessGatesNotReady: gate \"lb\" is not \"True\"";
        assert_eq!(with(Some("ReadinessGatesNotReady")).as_deref(), Some(gate));
        let node = "its node node-2 does not seem to answer; mend it, or remove it by `kubectl delete node node-2`";
        assert_eq!(with(None).as_deref(), Some(node));
    }

    #[test]
    fn a_pod_without_status_is_not_ready_and_not_in_trouble() {
        let pod = read(json!(null));
        assert!(!pod.ready && pod.trouble.is_none());
    }
}

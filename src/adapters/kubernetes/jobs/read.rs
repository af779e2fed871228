//! A Job's and a pod's JSON, reduced to what a run knows of them.
//!
//! Not for what follows from it; that is `objects::repo`'s.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::parts::{self, Annotations, Condition};
use super::super::pods::{FINISHED, ORDINARY, PLAIN, WORDS_CHARS_MAX};
use super::{ACTION, ATTEMPT, JOB_UID, LOG_ON_ERROR, REVISION, SEQ, STARTED, WITHDRAWN, lock};
use kernel::id::{NotACommitId, RunSeq};
use kernel::text::explained;
use kernel::unreadable::Unreadable;
use objects::repo::job::{End, Job, Place, Pod, Pods, Step, StepKind, StepState};
use objects::repo::status::{Action, Attempt};

/// Why a pod ended of which its kubelet may know nothing: its node is lost, or gone
/// (<https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions>).
const NODE_LOST: [&str; 3] = ["DeletionByPodGC", "DeletionByTaintManager", "NodeLost"];

/// Reads a Job of ours.
///
/// # Errors
/// When it does not say which of our Jobs it is, in words.
pub(super) fn job(json: &str) -> Result<Job, Unreadable> {
    let RawJob { metadata, spec, status } = serde_json::from_str(json)?;
    let status = status.unwrap_or_default();
    let labels = metadata.labels.unwrap_or_default();
    let annotations = metadata.annotations;
    let number = |key| labels.get(key).and_then(|value| value.parse::<u64>().ok());
    let attempt = || {
        Some(Attempt {
            seq: RunSeq(number(SEQ)?),
            action: Action::named(labels.get(ACTION)?)?,
            number: u32::try_from(number(ATTEMPT)?).ok()?,
        })
    };
    let unnamed = || Unreadable::because(format!("its labels {SEQ}, {ACTION}, {ATTEMPT} name no attempt of a run"));
    let attempt = attempt().ok_or_else(unnamed)?;
    let revision =
        annotations.get(REVISION).ok_or_else(|| Unreadable::because(format!("it has no annotation {REVISION}")))?;
    let revision = revision
        .parse()
        .map_err(|why: NotACommitId| Unreadable::because(format!("its annotation {REVISION}: {why}")))?;
    Ok(Job {
        name: metadata.name,
        uid: metadata.uid,
        version: metadata.resource_version,
        owner: controller(metadata.owner_references),
        attempt,
        revision,
        marked: annotations.contains_key(STARTED),
        withdrawn: annotations.contains_key(WITHDRAWN),
        suspended: spec.suspend.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        pods: status.pods(),
        end: status.conditions.into_iter().flatten().find_map(end),
    })
}

/// Reads a pod.
///
/// # Errors
/// When a field that is used has another type than Kubernetes gives it, in words.
pub(super) fn pod(json: &str) -> Result<Pod, Unreadable> {
    let RawPod { metadata, spec, status } = serde_json::from_str(json)?;
    let status = status.unwrap_or_default();
    let finished = status.phase.as_deref().is_some_and(|phase| FINISHED.contains(&phase));
    let place = match spec.node_name.as_deref() {
        None | Some("") => Place::Nowhere,
        Some(_) if finished && !status.is_lost() => Place::Ended,
        Some(_) => Place::Node,
    };
    Ok(Pod {
        job: metadata.labels.and_then(|mut labels| labels.remove(JOB_UID)).unwrap_or_default(),
        name: metadata.name,
        place,
        alive: !finished || metadata.deletion_timestamp.is_some(),
        waits: if finished { None } else { status.waits() },
        disrupted: status.disrupted(finished),
        steps: steps(spec, status),
    })
}

/// The containers that we know, in the order in which they run. Others are put in by a mesh.
fn steps(spec: PodSpec, status: PodStatus) -> Vec<Step> {
    let mut states = BTreeMap::new();
    for one in status.init_container_statuses.into_iter().chain(status.container_statuses).flatten() {
        states.insert(one.name, one.state);
    }
    let names = spec.init_containers.into_iter().flatten().chain(spec.containers);
    let known = names.filter_map(|container| Some((StepKind::named(&container.name)?, container)));
    known
        .map(|(kind, Container { name, termination_message_policy: policy })| {
            let state = states.remove(&name).flatten().unwrap_or_default().read();
            Step { kind, state: if policy.as_deref() == Some(LOG_ON_ERROR) { without_log(state) } else { state } }
        })
        .collect()
}

/// The message of a container that failed may be the end of its log, which may hold secrets: all that is kept of it is whose lock is
/// in the way.
fn without_log(state: StepState) -> StepState {
    match state {
        StepState::Ended(code, reason, message) if code != 0 => match lock::held(&message) {
            Some(lock) => StepState::Locked(code, reason, lock),
            None => StepState::Ended(code, reason, String::new()),
        },
        StepState::Ended(..) | StepState::Locked(..) | StepState::Running | StepState::Waiting => state,
    }
}

fn end(condition: Condition) -> Option<End> {
    if !condition.holds() {
        return None;
    }
    match condition.kind.as_str() {
        "Complete" => Some(End::Complete),
        "Failed" => Some(End::Failed(condition.reason.unwrap_or_default(), condition.message.unwrap_or_default())),
        // Suspended, and those that say that an end is near.
        _ => None,
    }
}

fn controller(owners: Option<Vec<Owner>>) -> Option<String> {
    owners.into_iter().flatten().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid)
}

fn count(number: Option<u32>) -> u32 {
    number.unwrap_or_default()
}

fn wanted(key: &str) -> bool {
    [REVISION, STARTED, WITHDRAWN].contains(&key)
}

fn annotations<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Annotations, D::Error> {
    parts::annotations(deserializer, wanted)
}

#[derive(Deserialize)]
struct RawJob {
    metadata: Metadata,
    spec: JobSpec,
    status: Option<JobStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    labels: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "annotations")]
    annotations: Annotations,
    owner_references: Option<Vec<Owner>>,
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
    controller: Option<bool>,
}

#[derive(Deserialize)]
struct JobSpec {
    suspend: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobStatus {
    active: Option<u32>,
    terminating: Option<u32>,
    succeeded: Option<u32>,
    failed: Option<u32>,
    uncounted_terminated_pods: Option<Uncounted>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Metadata,
    spec: PodSpec,
    status: Option<PodStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    init_containers: Option<Vec<Container>>,
    containers: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    termination_message_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    conditions: Option<Vec<Condition>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    name: String,
    state: Option<State>,
}

#[derive(Default, Deserialize)]
struct State {
    waiting: Option<Waiting>,
    running: Option<IgnoredAny>,
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
    exit_code: i32,
    reason: Option<String>,
    message: Option<String>,
}

/// Pods that have ended and are in no count yet.
#[derive(Deserialize)]
struct Uncounted {
    succeeded: Option<Vec<IgnoredAny>>,
    failed: Option<Vec<IgnoredAny>>,
}

impl JobStatus {
    fn pods(&self) -> Pods {
        let uncounted = self.uncounted_terminated_pods.iter().flat_map(|pods| [&pods.succeeded, &pods.failed]);
        let uncounted: usize = uncounted.flatten().map(Vec::len).sum();
        let counted = count(self.succeeded).saturating_add(count(self.failed));
        Pods {
            active: count(self.active),
            terminating: count(self.terminating),
            ended: counted.saturating_add(u32::try_from(uncounted).unwrap_or(u32::MAX)),
            at_rest: self.conditions.iter().flatten().any(|one| one.kind == "Suspended" && one.holds()),
        }
    }
}

impl PodStatus {
    /// Whether it was said to have ended by another than its kubelet.
    fn is_lost(&self) -> bool {
        let by = self.condition("DisruptionTarget").filter(|condition| condition.holds());
        let reasons = [by.and_then(|condition| condition.reason.as_deref()), self.reason.as_deref()];
        reasons.into_iter().flatten().any(|reason| NODE_LOST.contains(&reason))
    }

    /// Why it does not run: the first container that waits for what does not come by itself, or the scheduler.
    fn waits(&self) -> Option<String> {
        let mut containers = self.init_container_statuses.iter().chain(&self.container_statuses).flatten();
        containers.find_map(|one| one.state.as_ref()?.waiting.as_ref()?.words()).or_else(|| {
            let condition = self.condition("PodScheduled").filter(|condition| !condition.holds())?;
            let reason = condition.reason.as_deref().filter(|reason| !reason.is_empty())?;
            Some(explained(reason, condition.message.as_deref(), WORDS_CHARS_MAX))
        })
    }

    /// Why it was ended from outside. Of a pod that ended by itself, or by its Job's deadline, neither of the two is there.
    fn disrupted(&self, finished: bool) -> Option<String> {
        let by_condition = self.condition("DisruptionTarget").filter(|condition| condition.holds());
        let by_condition = by_condition.map(|condition| (condition.reason.as_deref(), condition.message.as_deref()));
        let by_status =
            self.reason.as_deref().filter(|_| finished).map(|reason| (Some(reason), self.message.as_deref()));
        let (reason, message) = by_condition.or(by_status)?;
        Some(explained(reason.unwrap_or("DisruptionTarget"), message, WORDS_CHARS_MAX))
    }

    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().flatten().find(|condition| condition.kind == kind)
    }
}

impl Waiting {
    fn words(&self) -> Option<String> {
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty() && !ORDINARY.contains(reason))?;
        let message = self.message.as_deref().filter(|_| !PLAIN.contains(&reason));
        Some(explained(reason, message, WORDS_CHARS_MAX))
    }
}

impl State {
    fn read(self) -> StepState {
        match self {
            Self { terminated: Some(Terminated { exit_code, reason, message }), .. } => {
                StepState::Ended(exit_code, reason.unwrap_or_default(), message.unwrap_or_default())
            }
            Self { running: Some(_), .. } => StepState::Running,
            Self { .. } => StepState::Waiting,
        }
    }
}

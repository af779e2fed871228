//! The controllers of a cluster, as far as a rollout or a Job needs them: Deployments, ReplicaSets, StatefulSets, DaemonSets, Argo
//! Rollouts, EndpointSlices, Jobs, scheduler and kubelet.
//!
//! Level-triggered like the real ones: a step looks at what has changed, moves every such workload one step on and remembers when to look
//! again. With no delays in [`Timings`] one step is: at most one pod per workload becomes ready, the rollout is rescaled, pods are made or
//! ended, the statuses are written. So a test can stop between any two states that a client could see.
//!
//! Each kind says which rules it follows and what it leaves out. Left out of all: probes, evictions, pods without an owner (they only end).

mod argo_rollout;
mod conditions;
mod daemon_set;
mod endpoints;
mod jobs;
mod nodes;
mod owners;
mod pods;
mod replica_sets;
mod rollout;
mod stateful_set;
mod workload;

pub(super) use conditions::NO_DEADLINE;
pub use jobs::{ContainerRun, End, Outcome, Script};
pub use nodes::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::failure::Failure;
use super::object::{Key, Object, is_ending};
use super::resource::Kind;
use super::selector::Selector;
use super::store::{Scope, State};
use super::write::{DeleteOptions, Writer};
use endpoints::Endpoints;
use jobs::Jobs;
use owners::{Owner, Owners};
use pods::PodRun;
use workload::Revisions;

/// The kinds the controllers watch.
pub const WATCHED: [Kind; 8] = [
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::ArgoRollout,
    Kind::ReplicaSet,
    Kind::Service,
    Kind::Job,
    Kind::Pod,
];

/// Changes read from the log at once.
const CHANGES_PER_TURN: usize = 1_000;

/// How long things take in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// From the later of a pod's creation and the readiness of the pod before it to its own readiness: the pods of one
    /// workload become ready one after another.
    pub pod_ready: Duration,
    /// From the deletion of a pod until it is gone.
    pub pod_gone: Duration,
    /// From `ErrImagePull` to `ImagePullBackOff`.
    pub image_back_off: Duration,
}

impl Timings {
    /// No delays: everything happens as soon as it is stepped. For tests.
    pub const IMMEDIATE: Timings =
        Timings { pod_ready: Duration::ZERO, pod_gone: Duration::ZERO, image_back_off: Duration::ZERO };

    /// A small, brisk cluster that a person can watch.
    pub const LIFELIKE: Timings = Timings {
        pod_ready: Duration::from_millis(1_500),
        pod_gone: Duration::from_millis(1_000),
        image_back_off: Duration::from_secs(5),
    };
}

/// What becomes of the pods that run an image. Pods of other images become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodFate {
    /// The image is not found: `ErrImagePull`, then `ImagePullBackOff`.
    CannotPull,
    /// No node has room: `PodScheduled=False`, reason `Unschedulable`.
    Unschedulable,
}

/// A moment in the cluster.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Since the cluster was made.
    pub elapsed: Duration,
    /// As objects carry it.
    pub time: jiff::Timestamp,
}

/// What the controllers know besides what is in the store.
#[derive(Debug)]
pub struct Controller {
    timings: Timings,
    fates: BTreeMap<String, PodFate>,
    nodes: Vec<Node>,
    /// Per watched kind, the version up to which changes have been noticed.
    seen: BTreeMap<Kind, u64>,
    owners: Owners,
    /// UIDs of removed workloads and ReplicaSets whose children are still there.
    orphaned: BTreeSet<String>,
    /// Pods without an owner that are to end.
    ending: BTreeSet<Key>,
    /// What each pod is doing, by UID.
    pods: BTreeMap<String, PodRun>,
    /// When a pod of this workload (by UID) last became ready.
    last_ready: BTreeMap<String, Duration>,
    /// The templates of each StatefulSet and DaemonSet that was ever moved, by its UID.
    revisions: BTreeMap<String, Revisions>,
    /// Which pods Services lead to.
    endpoints: Endpoints,
    pub jobs: Jobs,
}

impl Controller {
    /// Controllers that have seen nothing yet.
    pub fn new(timings: Timings) -> Controller {
        Controller {
            timings,
            fates: BTreeMap::new(),
            nodes: Node::pair(),
            seen: BTreeMap::new(),
            owners: Owners::default(),
            orphaned: BTreeSet::new(),
            ending: BTreeSet::new(),
            pods: BTreeMap::new(),
            last_ready: BTreeMap::new(),
            revisions: BTreeMap::new(),
            endpoints: Endpoints::default(),
            jobs: Jobs::default(),
        }
    }

    /// Decides what becomes of the pods of an image; `None` heals it. Takes effect at the next step.
    pub fn set_fate(&mut self, image: &str, fate: Option<PodFate>) {
        match fate {
            Some(fate) => self.fates.insert(image.to_owned(), fate),
            None => self.fates.remove(image),
        };
        self.owners.look_again();
    }

    /// Decides which nodes there are from now on.
    pub fn set_nodes(&mut self, nodes: Vec<Node>) {
        self.nodes = nodes;
        self.owners.look_again();
    }

    /// Changes the timings from now on.
    pub fn set_timings(&mut self, timings: Timings) {
        self.timings = timings;
        self.jobs.look_again();
        self.owners.look_again();
    }

    /// Notices what has changed in the store since the last call.
    pub fn notice(&mut self, state: &State) {
        for kind in WATCHED {
            let mut seen = self.seen.get(&kind).copied().unwrap_or(0);
            loop {
                let Ok(changes) = state.changes(kind, seen, CHANGES_PER_TURN) else {
                    self.relist(state, kind);
                    break;
                };
                for change in &changes {
                    seen = change.object.version;
                    self.notice_object(state, kind, &change.object, change.removed);
                }
                if changes.len() < CHANGES_PER_TURN {
                    break;
                }
            }
            self.seen.insert(kind, state.version());
        }
    }

    /// The workloads to look at now, at most `limit`, and no longer noted as such.
    pub fn take_due(&mut self, now: Duration, limit: usize) -> Vec<Owner> {
        self.owners.take_due(now, limit)
    }

    /// When to look again without anything having changed.
    pub fn next_due(&self) -> Option<Duration> {
        self.owners.next_due().into_iter().chain(self.jobs.next_due()).min()
    }

    /// Moves one workload a step on.
    ///
    /// # Errors
    /// When the store refuses a write, which is a fault of this program.
    pub fn reconcile(&mut self, writer: &mut Writer<'_>, owner: &Owner, now: &Moment) -> Result<(), Failure> {
        let (kind, key) = owner;
        let Some(workload) = writer.state.get(*kind, key) else { return Ok(()) };
        let next = match kind {
            Kind::ArgoRollout => argo_rollout::reconcile(self, writer, &workload, now)?,
            Kind::DaemonSet => daemon_set::reconcile(self, writer, &workload, now)?,
            Kind::StatefulSet => stateful_set::reconcile(self, writer, &workload, now)?,
            _ => rollout::reconcile(self, writer, &workload, now)?,
        };
        self.owners.set_due(owner, next);
        Ok(())
    }

    /// Moves every Job that has something to do a step on; returns how many those were. Nothing is locked while the script is asked.
    pub fn run_jobs(
        &mut self,
        now: &Moment,
        mut locked: impl FnMut(&mut dyn FnMut(&mut Writer<'_>) -> Result<(), Failure>),
    ) -> usize {
        let (uids, timings) = (self.jobs.take_due(now.elapsed), self.timings);
        for uid in &uids {
            locked(&mut |writer| self.jobs.reconcile(writer, uid, now, timings));
        }
        uids.len() + self.jobs.ask(timings)
    }

    /// Writes the EndpointSlices that follow from what was noticed.
    pub fn publish_endpoints(&mut self, writer: &mut Writer<'_>) {
        self.endpoints.publish(writer);
    }

    /// Removes objects that have lost their owner, and ends pods without one; returns how many objects that were.
    pub fn collect_garbage(&mut self, writer: &mut Writer<'_>) -> usize {
        let mut collected = 0;
        let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
        self.orphaned.append(&mut writer.state.take_bereaved());
        while let Some(uid) = self.orphaned.pop_first() {
            for child in writer.state.children(&uid) {
                if child.kind == Kind::ReplicaSet {
                    self.orphaned.insert(child.uid.clone());
                }
                // Where a finalizer holds it, it stays, as in a real cluster.
                collected += usize::from(writer.delete(child.kind, &child.key, &at_once).is_ok());
            }
        }
        for key in std::mem::take(&mut self.ending) {
            collected += usize::from(writer.delete(Kind::Pod, &key, &at_once).is_ok());
        }
        collected
    }

    fn relist(&mut self, state: &State, kind: Kind) {
        let scope = Scope { kind, namespace: String::new(), selector: Selector::default() };
        for object in state.list(&scope) {
            self.notice_object(state, kind, &object, false);
        }
    }

    fn notice_object(&mut self, state: &State, kind: Kind, object: &Object, removed: bool) {
        match kind {
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet | Kind::ArgoRollout => {
                self.owners.notice(object, removed);
                if removed {
                    self.revisions.remove(&object.uid);
                    self.last_ready.remove(&object.uid);
                    self.orphaned.insert(object.uid.clone());
                }
            }
            Kind::ReplicaSet => {
                self.owners.notice_set(object, removed);
                if removed {
                    self.orphaned.insert(object.uid.clone());
                }
            }
            Kind::Service => self.endpoints.notice_service(state, object, removed),
            Kind::Job => self.jobs.notice_job(object, removed),
            _ if self.jobs.notice_pod(object, removed) => {}
            _ => {
                self.endpoints.notice_pod(object, removed);
                if !self.owners.notice_pod(object) && is_ending(&object.value()) {
                    self.ending.insert(object.key.clone());
                }
                if removed {
                    self.pods.remove(&object.uid);
                    self.ending.remove(&object.key);
                }
            }
        }
    }
}

//! Which workloads the controllers are to look at, and when.
//!
//! A change of a workload, of one of its ReplicaSets or of one of its pods is a reason to look at that workload. Not for Jobs, which have
//! books of their own (`jobs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::kubernetes::object::{Key, Object};
use crate::kubernetes::resource::Kind;

/// A workload: it owns pods, itself or through ReplicaSets.
pub type Owner = (Kind, Key);

/// The workloads of a cluster.
#[derive(Debug, Default)]
pub struct Owners {
    /// The workload that a UID belongs to, its own or that of one of its ReplicaSets.
    known: BTreeMap<String, Owner>,
    /// To look at now.
    dirty: BTreeSet<Owner>,
    /// The Argo Rollouts, which may take their templates from Deployments.
    rollouts: BTreeSet<Key>,
    /// To look at later, with the time since the cluster was made.
    due: BTreeMap<Owner, Duration>,
}

impl Owners {
    /// A workload was written or removed.
    pub fn notice(&mut self, workload: &Object, removed: bool) {
        let owner = (workload.kind, workload.key.clone());
        if workload.kind == Kind::Deployment {
            let beside = self.rollouts.iter().filter(|rollout| rollout.namespace == workload.key.namespace);
            self.dirty.extend(beside.map(|rollout| (Kind::ArgoRollout, rollout.clone())));
        }
        if removed {
            self.known.remove(&workload.uid);
            self.due.remove(&owner);
            if workload.kind == Kind::ArgoRollout {
                self.rollouts.remove(&workload.key);
            }
        } else {
            if workload.kind == Kind::ArgoRollout {
                self.rollouts.insert(workload.key.clone());
            }
            self.known.insert(workload.uid.clone(), owner.clone());
            self.dirty.insert(owner);
        }
    }

    /// A ReplicaSet was written or removed.
    pub fn notice_set(&mut self, set: &Object, removed: bool) {
        if let Some(owner) = set.owner.as_ref().and_then(|owner| self.known.get(owner)).cloned() {
            self.known.insert(set.uid.clone(), owner.clone());
            self.dirty.insert(owner);
        }
        if removed {
            self.known.remove(&set.uid);
        }
    }

    /// A pod was written or removed; true if it belongs to a workload.
    pub fn notice_pod(&mut self, pod: &Object) -> bool {
        let owner = pod.owner.as_ref().and_then(|owner| self.known.get(owner));
        self.dirty.extend(owner.cloned());
        owner.is_some()
    }

    /// Looks at every workload again at the next step.
    pub fn look_again(&mut self) {
        self.dirty.extend(self.known.values().cloned());
    }

    /// The workloads to look at now, at most `limit`, and no longer noted as such.
    pub fn take_due(&mut self, now: Duration, limit: usize) -> Vec<Owner> {
        let ripe: Vec<Owner> = self.due.iter().filter(|(_, at)| **at <= now).map(|(owner, _)| owner.clone()).collect();
        for owner in ripe {
            self.due.remove(&owner);
            self.dirty.insert(owner);
        }
        let owners: Vec<Owner> = self.dirty.iter().take(limit).cloned().collect();
        for owner in &owners {
            self.dirty.remove(owner);
        }
        owners
    }

    /// When to look at one again without anything having changed.
    pub fn set_due(&mut self, owner: &Owner, at: Option<Duration>) {
        match at {
            Some(at) => drop(self.due.insert(owner.clone(), at)),
            None => drop(self.due.remove(owner)),
        }
    }

    /// When to look again at the first of them.
    pub fn next_due(&self) -> Option<Duration> {
        self.due.values().min().copied()
    }
}

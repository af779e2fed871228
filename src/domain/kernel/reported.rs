//! Whether a rollout is complete, by what its controller reports; and if not, why not, in words a person can act on.
//!
//! `kubectl rollout status` semantics, stricter where that is too early. Looking at the `Available` or `Progressing`
//! condition alone is not enough: both can be left over from the generation before.
//!
//! Purges and Pipelines judge by it. Not for single pods; those are `workloads::readiness`'s.

use std::fmt;

/// The fields of a Deployment that say how its rollout stands.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    pub replicas: Replicas,
    /// `spec.paused`.
    pub paused: bool,
    /// A deletion timestamp is set.
    pub deleting: bool,
    /// The `Progressing` condition, if there is one.
    pub progressing: Option<&'a Progressing>,
    /// Why pods are not made, as the `ReplicaFailure` condition says it.
    pub refused: Option<&'a str>,
}

/// Counts of pods of a workload. A negative number never comes from Kubernetes and is read as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Replicas {
    /// `spec.replicas` (1 when unset).
    pub desired: u32,
    /// `status.replicas`: all pods, old and new.
    pub total: u32,
    /// `status.updatedReplicas`: pods of the current template.
    pub updated: u32,
    /// `status.readyReplicas`.
    pub ready: u32,
    /// `status.availableReplicas`: ready for at least `minReadySeconds`.
    pub available: u32,
}

impl Replicas {
    /// Pods of earlier templates.
    pub const fn old(self) -> u32 {
        self.total.saturating_sub(self.updated)
    }
}

/// The `Progressing` condition of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progressing {
    /// For example `NewReplicaSetAvailable` or `ProgressDeadlineExceeded`.
    pub reason: String,
    /// `lastUpdateTime`, as written: it is only ever compared with another one of the same object.
    pub last_update: String,
}

/// The reason of a missed progress deadline.
const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// The reasons by which the Deployment controller says that the newest ReplicaSet is not complete, from
/// <https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/deployment/util/deployment_util.go#L66-L100>.
const NOT_AVAILABLE_YET: [&str; 5] =
    ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ReplicaSetCreateError", DEADLINE_EXCEEDED];

impl Progressing {
    /// The controller has given up waiting for progress.
    pub fn deadline_exceeded(&self) -> bool {
        self.reason == DEADLINE_EXCEEDED
    }

    /// The newest ReplicaSet has never been available: it was created, found, updated, could not be created, or ran out of time.
    /// Once it was, the reason stays `NewReplicaSetAvailable`, whatever becomes of its pods. A paused or just resumed Deployment
    /// says nothing of it.
    pub fn is_not_available_yet(&self) -> bool {
        NOT_AVAILABLE_YET.contains(&self.reason.as_str())
    }
}

/// The state of a workload's current rollout at one sight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Every pod is of the version and available, and nothing of the old one is left.
    Complete,
    Waiting(Wait),
    /// The controller reports that it stopped making progress. One sight does not prove it: a stale report can survive the
    /// first status write of a new generation.
    DeadlineExceeded {
        /// The condition's `lastUpdateTime`.
        last_update: String,
    },
}

/// The wait of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The object is being deleted.
    Deleting,
    /// The controller has not acted on the newest spec, so its counts are about an older one.
    NotObserved {
        /// `metadata.generation`.
        generation: i64,
    },
    /// The rollout is paused; its clock stands still.
    Paused,
    /// There are no pods to be ready; the clock stands still.
    ScaledToZero,
    /// Pods of the new version are missing or not available yet.
    Pods {
        /// Available pods of the new version, as far as the counts tell.
        available: u32,
        desired: u32,
        /// Why Kubernetes makes no more of them, if it says so.
        refused: Option<String>,
    },
    /// The new pods are available, but old ones are still there.
    OldPods { count: u32 },
}

impl Wait {
    /// Whether time spent waiting for this counts towards the timeout.
    pub fn counts(&self) -> bool {
        match self {
            Self::Paused | Self::ScaledToZero => false,
            Self::Deleting | Self::NotObserved { .. } | Self::Pods { .. } | Self::OldPods { .. } => true,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleting => f.write_str("the workload is being deleted"),
            Self::NotObserved { generation } => {
                write!(f, "the Deployment controller has not acted on generation {generation} yet")
            }
            Self::Paused => f.write_str("the rollout is paused"),
            Self::ScaledToZero => f.write_str("the workload is scaled to zero"),
            Self::Pods { available, desired, refused } => {
                write!(f, "{available} of {desired} pods available")?;
                refused.as_ref().map_or(Ok(()), |why| write!(f, "; {why}"))
            }
            Self::OldPods { count: 1 } => f.write_str("1 old pod has not gone yet"),
            Self::OldPods { count } => write!(f, "{count} old pods have not gone yet"),
        }
    }
}

impl Reported<'_> {
    /// Judges one sight against the predicate of completeness. The caller has already established that it is the same object
    /// (UID) and the rollout's version.
    pub fn standing(self, zero_is_complete: bool) -> Standing {
        let replicas = self.replicas;
        if self.deleting {
            return Standing::Waiting(Wait::Deleting);
        }
        if self.observed_generation < self.generation {
            return Standing::Waiting(Wait::NotObserved { generation: self.generation });
        }
        if self.paused {
            return Standing::Waiting(Wait::Paused);
        }
        if replicas.desired == 0 && !zero_is_complete {
            return Standing::Waiting(Wait::ScaledToZero);
        }
        if let Some(progressing) = self.progressing
            && progressing.deadline_exceeded()
        {
            return Standing::DeadlineExceeded { last_update: progressing.last_update.clone() };
        }
        let old = replicas.old();
        if old > 0 && replicas.updated == replicas.desired && replicas.available >= replicas.updated.saturating_add(old)
        {
            return Standing::Waiting(Wait::OldPods { count: old });
        }
        let all_new = replicas.updated == replicas.desired && replicas.total == replicas.updated;
        if !all_new || replicas.available != replicas.updated {
            return Standing::Waiting(self.pods_wanting());
        }
        Standing::Complete
    }

    /// The numbers of new pods by the counts. While old pods serve, `available` counts them too, so at least so many are
    /// new as are more than the old ones.
    pub fn pods_wanting(self) -> Wait {
        let replicas = self.replicas;
        let available = replicas.available.saturating_sub(replicas.old()).min(replicas.updated);
        Wait::Pods { available, desired: replicas.desired, refused: self.refused.map(str::to_owned) }
    }

    /// Whether the workload itself says that a rollout is under way: the controller has not acted on its newest spec, pods of the
    /// newest template are missing or old ones are left, or the newest ReplicaSet has not become available yet. This, and not a
    /// pod that is not ready, is what makes the first sight of a workload a rollout: one that crashes long after it was complete
    /// is a baseline (decision 28).
    pub fn is_under_way(self) -> bool {
        let replicas = self.replicas;
        self.observed_generation < self.generation
            || replicas.updated < replicas.desired
            || replicas.updated < replicas.total
            || self.progressing.is_some_and(Progressing::is_not_available_yet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three pods of the current generation, all available.
    fn settled() -> Reported<'static> {
        let replicas = Replicas { desired: 3, total: 3, updated: 3, ready: 3, available: 3 };
        Reported {
            generation: 4,
            observed_generation: 4,
            replicas,
            paused: false,
            deleting: false,
            progressing: None,
            refused: None,
        }
    }

    #[test]
    fn old_pods_all_ready_before_the_new_generation_is_observed_is_not_success() {
        let reported = Reported { generation: 5, ..settled() };
        assert_eq!(reported.standing(false), Standing::Waiting(Wait::NotObserved { generation: 5 }));
        assert_eq!(settled().standing(false), Standing::Complete);
    }

    #[test]
    fn an_unschedulable_pod_is_not_success() {
        let replicas = Replicas { desired: 3, total: 3, updated: 3, ready: 2, available: 2 };
        let reported = Reported { replicas, ..settled() };
        assert_eq!(reported.standing(false), Standing::Waiting(Wait::Pods { available: 2, desired: 3, refused: None }));
    }

    #[test]
    fn an_old_pod_that_still_serves_is_waited_for() {
        let replicas = Replicas { desired: 3, total: 4, updated: 3, ready: 4, available: 4 };
        let reported = Reported { replicas, ..settled() };
        assert_eq!(reported.standing(false), Standing::Waiting(Wait::OldPods { count: 1 }));
    }

    #[test]
    fn scaled_to_zero_waits_without_end_unless_zero_is_allowed() {
        let reported = Reported { replicas: Replicas::default(), ..settled() };
        assert_eq!(reported.standing(false), Standing::Waiting(Wait::ScaledToZero));
        assert!(!Wait::ScaledToZero.counts());
        assert_eq!(reported.standing(true), Standing::Complete);
    }

    #[test]
    fn a_missed_deadline_is_reported_with_its_time() {
        let progressing = Progressing { reason: "ProgressDeadlineExceeded".into(), last_update: "t1".into() };
        let reported = Reported { progressing: Some(&progressing), ..settled() };
        assert_eq!(reported.standing(false), Standing::DeadlineExceeded { last_update: "t1".into() });
    }

    #[test]
    fn a_first_sight_is_under_way_while_the_newest_replica_set_was_never_available() {
        let with = |reason: &str, replicas: Replicas| {
            let progressing =
                (!reason.is_empty()).then(|| Progressing { reason: reason.into(), last_update: "t".into() });
            Reported { progressing: progressing.as_ref(), replicas, ..settled() }.is_under_way()
        };
        let all = settled().replicas;
        let slow = Replicas { ready: 0, available: 0, ..all };
        // As a real 1.36 says it: pods that never were ready, then pods that crash after they were.
        for reason in ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ProgressDeadlineExceeded"] {
            assert!(with(reason, slow), "{reason}");
        }
        assert!(!with("NewReplicaSetAvailable", slow), "crashed long after it was complete");
        assert!(!with("", slow), "no progress deadline, so nothing is said");
        assert!(!with("NewReplicaSetAvailable", all));
        // Recreate: the old pods are gone, and no new one is there yet.
        assert!(with("", Replicas { total: 0, updated: 0, ready: 0, available: 0, desired: 3 }));
        assert!(with("", Replicas { total: 4, ..all }), "an old pod is left");
        assert!(!with("NewReplicaSetAvailable", Replicas::default()), "scaled to zero");
        assert!(Reported { generation: 5, ..settled() }.is_under_way());
    }
}

//! Whether a rollout is complete, by what its controller reports; and if not, why not, in words a person can act on.
//!
//! `kubectl rollout status` semantics, stricter where that is too early. Looking at the `Available` or `Progressing`
//! condition alone is not enough: both can be left over from the generation before.
//!
//! Purges and Pipelines judge by it. Not for single pods; those are `workloads::readiness`'s.

use std::fmt;

/// What says how a rollout stands.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    pub replicas: Replicas,
    /// A deletion timestamp is set.
    pub deleting: bool,
    pub says: &'a Says,
    /// Why pods are missing.
    pub refused: Option<&'a str>,
    /// The pods of the newest template were never available.
    pub starting: bool,
}

/// What a kind says beside its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Says {
    /// Nothing.
    #[default]
    Counts,
    /// A person or a setting keeps pods as they are: which, and what to do.
    Held(String),
    /// Its controller has not finished, whatever the counts say: what it waits for.
    Unfinished(String),
    /// What the operator declares complete holds; its counts are not judged.
    Met,
    /// It does not: what is missing. Its counts are not judged.
    Unmet(String),
    GivenUp(GivenUp),
}

/// Why a controller has given a rollout up, as it says itself. One sight does not prove it: a stale report can survive the first status
/// write of a new generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GivenUp {
    /// A Deployment missed its progress deadline.
    DeadlineExceeded {
        /// The condition's `lastUpdateTime`, as written: it is only ever compared with another one of the same object.
        last_update: String,
    },
    /// A person or an analysis has aborted it, in the words of the controller.
    Aborted(String),
    /// The controller calls it degraded, in its words.
    Degraded(String),
    /// What the operator declares failed holds.
    Declared(String),
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineExceeded { last_update: _ } => f.write_str("the Deployment missed its progress deadline"),
            Self::Aborted(why) => write!(f, "the rollout was aborted: {why}"),
            Self::Degraded(why) => write!(f, "Argo Rollouts calls it degraded: {why}"),
            Self::Declared(what) => write!(f, "workloads.custom calls it failed: {what}"),
        }
    }
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

/// The state of a workload's current rollout at one sight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Every pod is of the version and available, and nothing of the old one is left.
    Complete,
    Waiting(Wait),
    GivenUp(GivenUp),
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
    /// Pods are kept as they are, in the words of its kind; its clock stands still, and begins anew after it.
    Held(String),
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
    /// The counts are as they are to be, and its controller has not finished: what it waits for.
    Unfinished(String),
}

impl Wait {
    /// Whether time spent waiting for this counts towards the timeout.
    pub fn counts(&self) -> bool {
        match self {
            Self::Held(_) | Self::ScaledToZero => false,
            Self::Deleting
            | Self::NotObserved { .. }
            | Self::Pods { .. }
            | Self::OldPods { .. }
            | Self::Unfinished(_) => true,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleting => f.write_str("the workload is being deleted"),
            Self::NotObserved { generation } => {
                write!(f, "its controller has not acted on generation {generation} yet")
            }
            Self::Held(why) | Self::Unfinished(why) => f.write_str(why),
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
        if let Says::Held(why) = self.says {
            return Standing::Waiting(Wait::Held(why.clone()));
        }
        if replicas.desired == 0 && !zero_is_complete {
            return Standing::Waiting(Wait::ScaledToZero);
        }
        match self.says {
            Says::GivenUp(why) => return Standing::GivenUp(why.clone()),
            Says::Met => return Standing::Complete,
            Says::Unmet(why) => return Standing::Waiting(Wait::Unfinished(why.clone())),
            Says::Counts | Says::Held(_) | Says::Unfinished(_) => {}
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
        if let Says::Unfinished(why) = self.says {
            return Standing::Waiting(Wait::Unfinished(why.clone()));
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
    /// newest template are missing or old ones are left, or those of the newest template were never available. This, and not a
    /// pod that is not ready, is what makes the first sight of a workload a rollout: one that crashes long after it was complete
    /// is a baseline (decision 28).
    pub fn is_under_way(self) -> bool {
        let replicas = self.replicas;
        match self.says {
            Says::Met | Says::Unmet(_) => return self.observed_generation < self.generation || *self.says != Says::Met,
            Says::Counts | Says::Held(_) | Says::Unfinished(_) | Says::GivenUp(_) => {}
        }
        self.observed_generation < self.generation
            || replicas.updated < replicas.desired
            || replicas.updated < replicas.total
            || self.starting
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
            deleting: false,
            says: &Says::Counts,
            refused: None,
            starting: false,
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
    fn an_old_pod_that_is_not_available_is_waited_for_as_well() {
        let replicas = Replicas { desired: 3, total: 4, updated: 3, ready: 3, available: 3 };
        let reported = Reported { replicas, ..settled() };
        // By the counts, it may be one of the new pods that is not available.
        assert_eq!(reported.standing(false), Standing::Waiting(Wait::Pods { available: 2, desired: 3, refused: None }));
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
        let late = GivenUp::DeadlineExceeded { last_update: "t1".into() };
        let says = Says::GivenUp(late.clone());
        let reported = Reported { says: &says, ..settled() };
        assert_eq!(reported.standing(false), Standing::GivenUp(late));
    }

    #[test]
    fn counts_alone_are_not_success_while_its_controller_has_not_finished() {
        let says = Says::Unfinished("waiting for all steps to complete".into());
        let reported = Reported { says: &says, ..settled() };
        let Says::Unfinished(why) = &says else { unreachable!() };
        assert_eq!(reported.standing(true), Standing::Waiting(Wait::Unfinished(why.clone())));
        let fewer = Replicas { updated: 2, total: 2, available: 2, ..settled().replicas };
        let reported = Reported { replicas: fewer, ..reported };
        assert_eq!(reported.standing(true), Standing::Waiting(Wait::Pods { available: 2, desired: 3, refused: None }));
    }

    #[test]
    fn a_first_sight_is_under_way_while_pods_are_missing_old_or_were_never_available() {
        let with = |starting, replicas| Reported { starting, replicas, ..settled() }.is_under_way();
        let all = settled().replicas;
        let slow = Replicas { ready: 0, available: 0, ..all };
        assert!(with(true, slow));
        assert!(!with(false, slow), "crashed long after it was complete");
        assert!(!with(false, all));
        // Recreate: the old pods are gone, and no new one is there yet.
        assert!(with(false, Replicas { total: 0, updated: 0, ready: 0, available: 0, desired: 3 }));
        assert!(with(false, Replicas { total: 4, ..all }), "an old pod is left");
        assert!(!with(false, Replicas::default()), "scaled to zero");
        assert!(Reported { generation: 5, ..settled() }.is_under_way());
    }
}

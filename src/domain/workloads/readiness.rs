//! Whether a rollout is complete, and if not, why not, in words a person can act on.
//!
//! `kubectl rollout status` semantics, stricter where that is too early. Looking at the `Available` or `Progressing`
//! condition alone is not enough: both can be left over from the generation before.

use std::fmt;

use crate::names::image::Version;
use crate::workloads::workload::{Progressing, Workload};

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

/// Judges one sight of a workload against the predicate of completeness. The caller has already established that it is the
/// same object (UID) and the rollout's version.
pub fn standing(workload: &Workload, zero_is_complete: bool) -> Standing {
    let replicas = workload.replicas;
    if workload.deleting {
        return Standing::Waiting(Wait::Deleting);
    }
    if workload.observed_generation < workload.generation {
        return Standing::Waiting(Wait::NotObserved { generation: workload.generation });
    }
    if workload.paused {
        return Standing::Waiting(Wait::Paused);
    }
    if replicas.desired == 0 && !zero_is_complete {
        return Standing::Waiting(Wait::ScaledToZero);
    }
    if let Some(progressing) = &workload.progressing
        && progressing.deadline_exceeded()
    {
        return Standing::DeadlineExceeded { last_update: progressing.last_update.clone() };
    }
    let old = replicas.total.saturating_sub(replicas.updated);
    if old > 0 && replicas.updated == replicas.desired && replicas.available >= replicas.updated.saturating_add(old) {
        return Standing::Waiting(Wait::OldPods { count: old });
    }
    let all_new = replicas.updated == replicas.desired && replicas.total == replicas.updated;
    if !all_new || replicas.available != replicas.updated {
        return Standing::Waiting(pods_wanting(workload));
    }
    Standing::Complete
}

/// The state of a rollout when its predicate first held. From then on neither a count nor a generation takes that back,
/// only another version: whatever writes the workload over and over must not keep a purge from being made
/// (decision 49).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Pods wanted then. More of them come from an autoscaler or a person, and are not waited for.
    pub wanted: u32,
    /// `metadata.generation` then: counts of this one and of those after it are about the version.
    pub generation: i64,
}

impl Held {
    /// As of this sight.
    pub const fn of(workload: &Workload) -> Self {
        Self { wanted: workload.replicas.desired, generation: workload.generation }
    }

    /// The wait of a rollout of the same version now, if any. `overdue` means that it has waited long enough for a
    /// sight at which all is as wanted: then it takes the pods of the newest template that there are, and they have to
    /// be available.
    pub fn misses(self, workload: &Workload, zero_is_complete: bool, overdue: bool) -> Option<Wait> {
        let Standing::Waiting(wait) = standing(workload, zero_is_complete) else { return None };
        let replicas = workload.replicas;
        let old = replicas.total.saturating_sub(replicas.updated);
        let available = replicas.available.saturating_sub(old);
        let goes_on = match &wait {
            Wait::Deleting | Wait::Paused | Wait::ScaledToZero => false,
            // What of these counts is about the version may be about an earlier spec; but no other version was seen since.
            Wait::NotObserved { .. } | Wait::Pods { .. } | Wait::OldPods { .. } if overdue => {
                let some = if replicas.desired == 0 { zero_is_complete } else { replicas.updated > 0 };
                let about_it = workload.observed_generation >= self.generation && !workload.paused;
                about_it && some && available >= replicas.updated
            }
            Wait::NotObserved { .. } | Wait::OldPods { .. } => false,
            Wait::Pods { .. } => old == 0 && available >= self.wanted.min(replicas.desired),
        };
        (!goes_on).then_some(wait)
    }
}

/// The numbers of new pods by the counts. While old pods serve, `available` counts them too, so at least so many are
/// new as are more than the old ones.
pub fn pods_wanting(workload: &Workload) -> Wait {
    let replicas = workload.replicas;
    let old = replicas.total.saturating_sub(replicas.updated);
    let available = replicas.available.saturating_sub(old).min(replicas.updated);
    Wait::Pods { available, desired: replicas.desired, refused: workload.refused.clone() }
}

/// Whether the workload itself says that a rollout is under way: the controller has not acted on its newest spec, pods of the
/// newest template are missing or old ones are left, or the newest ReplicaSet has not become available yet. This, and not a
/// pod that is not ready, is what makes the first sight of a workload a rollout: one that crashes long after it was complete
/// is a baseline (decision 28).
pub fn rollout_under_way(workload: &Workload) -> bool {
    let replicas = workload.replicas;
    workload.observed_generation < workload.generation
        || replicas.updated < replicas.desired
        || replicas.updated < replicas.total
        || workload.progressing.as_ref().is_some_and(Progressing::is_not_available_yet)
}

/// One pod of a workload with a rollout in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pod {
    pub name: String,
    /// The images it was made from; `None` when they cannot be read.
    pub version: Option<Version>,
    /// Its `Ready` condition.
    pub ready: bool,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// It has got beyond `Pending`: it may have been ready before it was seen.
    pub started: bool,
    /// Its containers have ended for good.
    pub finished: bool,
    /// Its trouble, for example `ImagePullBackOff` or `Unschedulable: 0/3 nodes are available`.
    pub trouble: Option<String>,
}

/// The pods of one rollout, in brief.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pods {
    /// Pods of the new version that are ready.
    pub ready: u32,
    /// Pods of the new version.
    pub updated: u32,
    /// Pods of the new version that are not ready, or are on their way out, and may have been ready before they were seen.
    pub started: u32,
    /// Pods of any version that are on their way out.
    pub leaving: u32,
    /// Those of them that are still ready.
    pub leaving_ready: u32,
    /// The first troubled pods by name, each with what is wrong.
    pub troubled: Vec<(String, String)>,
}

/// Troubled pods named in one sentence; more of them nearly always suffer from the same thing.
const TROUBLED_PODS_MAX: usize = 2;

/// Sums up the pods of `version`, and those that go.
pub fn summarise<'a>(pods: impl IntoIterator<Item = &'a Pod>, version: &Version) -> Pods {
    let mut summary = Pods::default();
    for pod in pods {
        // A pod may have containers the template has not: sidecars are injected on the way.
        let made_from = |images: &Version| version.iter().all(|(name, image)| images.image(name) == Some(image));
        let own = pod.version.as_ref().is_some_and(made_from);
        summary.started += u32::from(own && pod.started && (pod.terminating || !pod.ready));
        if pod.terminating {
            summary.leaving += 1;
            summary.leaving_ready += u32::from(pod.ready);
        }
        if pod.terminating || !own {
            continue;
        }
        summary.updated += 1;
        if pod.ready {
            summary.ready += 1;
        } else if let Some(trouble) = &pod.trouble {
            summary.troubled.push((pod.name.clone(), trouble.clone()));
        }
    }
    summary.troubled.sort();
    summary.troubled.truncate(TROUBLED_PODS_MAX);
    summary
}

/// The wait of the rollout, with the pods' own troubles: `2 of 5 pods ready; web-7c9-x4: ImagePullBackOff`.
pub fn words(wait: &Wait, pods: Option<&Pods>) -> String {
    let Some(pods) = pods else { return wait.to_string() };
    let counted = match wait {
        // Counted pod by pod this is exact, where the workload's own counts mix old and new. Where all are ready, it is not that which
        // is waited for.
        Wait::Pods { desired, refused, .. } if pods.ready < *desired => {
            let ready = format!("{} of {desired} pods ready", pods.ready);
            refused.iter().fold(ready, |words, why| format!("{words}; {why}"))
        }
        Wait::Pods { .. }
        | Wait::Deleting
        | Wait::NotObserved { .. }
        | Wait::Paused
        | Wait::ScaledToZero
        | Wait::OldPods { .. } => wait.to_string(),
    };
    pods.troubled.iter().fold(counted, |words, (pod, trouble)| format!("{words}; {pod}: {trouble}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::workloads::workload::Replicas;

    /// Three pods of the current generation, all available.
    fn settled() -> Workload {
        testing::settled(testing::version("1"), 4, 3)
    }

    #[test]
    fn old_pods_all_ready_before_the_new_generation_is_observed_is_not_success() {
        let workload = Workload { generation: 5, ..settled() };
        assert_eq!(standing(&workload, false), Standing::Waiting(Wait::NotObserved { generation: 5 }));
        assert_eq!(standing(&settled(), false), Standing::Complete);
    }

    #[test]
    fn an_unschedulable_pod_is_not_success() {
        let replicas = Replicas { desired: 3, total: 3, updated: 3, ready: 2, available: 2 };
        let workload = Workload { replicas, ..settled() };
        assert_eq!(
            standing(&workload, false),
            Standing::Waiting(Wait::Pods { available: 2, desired: 3, refused: None })
        );
    }

    #[test]
    fn an_old_pod_that_still_serves_is_waited_for() {
        let replicas = Replicas { desired: 3, total: 4, updated: 3, ready: 4, available: 4 };
        let workload = Workload { replicas, ..settled() };
        assert_eq!(standing(&workload, false), Standing::Waiting(Wait::OldPods { count: 1 }));
    }

    #[test]
    fn scaled_to_zero_waits_without_end_unless_zero_is_allowed() {
        let workload = Workload { replicas: Replicas::default(), ..settled() };
        assert_eq!(standing(&workload, false), Standing::Waiting(Wait::ScaledToZero));
        assert!(!Wait::ScaledToZero.counts());
        assert_eq!(standing(&workload, true), Standing::Complete);
    }

    #[test]
    fn a_missed_deadline_is_reported_with_its_time() {
        let progressing = Progressing { reason: "ProgressDeadlineExceeded".into(), last_update: "t1".into() };
        let workload = Workload { progressing: Some(progressing), ..settled() };
        assert_eq!(standing(&workload, false), Standing::DeadlineExceeded { last_update: "t1".into() });
    }

    #[test]
    fn a_first_sight_is_under_way_while_the_newest_replica_set_was_never_available() {
        let with = |reason: &str, replicas: Replicas| {
            let progressing =
                (!reason.is_empty()).then(|| Progressing { reason: reason.into(), last_update: "t".into() });
            rollout_under_way(&Workload { progressing, replicas, ..settled() })
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
        assert!(rollout_under_way(&Workload { generation: 5, ..settled() }));
    }

    #[test]
    fn words_name_the_troubled_pod() {
        let pods = Pods {
            ready: 2,
            updated: 3,
            started: 1,
            leaving: 0,
            leaving_ready: 0,
            troubled: vec![("web-x4".into(), "ImagePullBackOff".into())],
        };
        let wait = Wait::Pods { available: 2, desired: 5, refused: None };
        assert_eq!(words(&wait, Some(&pods)), "2 of 5 pods ready; web-x4: ImagePullBackOff");
    }

    #[test]
    fn words_say_why_pods_are_not_made() {
        let refused = Some("FailedCreate: exceeded quota: compute".to_owned());
        let replicas = Replicas { desired: 2, ..Replicas::default() };
        let Standing::Waiting(wait) = standing(&Workload { refused, replicas, ..settled() }, false) else {
            panic!("it is not complete")
        };
        assert_eq!(words(&wait, None), "0 of 2 pods available; FailedCreate: exceeded quota: compute");
        assert_eq!(words(&wait, Some(&Pods::default())), "0 of 2 pods ready; FailedCreate: exceeded quota: compute");
    }
}

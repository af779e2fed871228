//! Whether a rollout that was complete once still is, and what its pods say.
//!
//! Not for the predicate of completeness; that is `kinds::reported`'s.

use crate::workloads::workload::Workload;
use kernel::names::image::Version;
use kinds::reported::{Says, Standing, Wait};

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
        let Standing::Waiting(wait) = workload.standing(zero_is_complete) else { return None };
        let replicas = workload.replicas;
        let old = replicas.old();
        let available = replicas.available.saturating_sub(old);
        let goes_on = match &wait {
            Wait::Deleting | Wait::Held(_) | Wait::ScaledToZero | Wait::Unfinished(_) => false,
            // What of these counts is about the version may be about an earlier spec; but no other version was seen since.
            Wait::NotObserved { .. } | Wait::Pods { .. } | Wait::OldPods { .. } if overdue => {
                let about_it = workload.observed_generation >= self.generation && !workload.is_held();
                let some = if replicas.desired == 0 { zero_is_complete } else { replicas.updated > 0 };
                let counted = some && available >= replicas.updated;
                about_it && if workload.id.kind.custom().is_some() { workload.says == Says::Met } else { counted }
            }
            Wait::NotObserved { .. } | Wait::OldPods { .. } => false,
            Wait::Pods { .. } => old == 0 && available >= self.wanted.min(replicas.desired),
        };
        (!goes_on).then_some(wait)
    }
}

/// One pod of a workload with a rollout in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pod {
    pub name: String,
    /// The images it was made from; `None` when they cannot be read.
    pub version: Option<Version>,
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
        let own = pod.version.as_ref().is_some_and(|images| images.has_images_of(version));
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
        | Wait::Held(_)
        | Wait::ScaledToZero
        | Wait::OldPods { .. }
        | Wait::Unfinished(_) => wait.to_string(),
    };
    pods.troubled.iter().fold(counted, |words, (pod, trouble)| format!("{words}; {pod}: {trouble}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{declared, settled, version};
    use kernel::id::WorkloadId;
    use kinds::reported::Replicas;

    /// A writer that keeps raising the generation holds up no kind; the counts of one that is declared mean nothing, its expression does.
    #[test]
    fn what_lags_behind_for_too_long_goes_on_by_what_its_kind_says_of_a_generation_after_it_was_complete() {
        let kind = declared("readiness.example.com");
        let id = WorkloadId::new(kind, "shop", "web");
        let met = Workload {
            id,
            object: kind,
            says: Says::Met,
            replicas: Replicas { desired: 2, ..Replicas::default() },
            ..settled(version("1"), 4, 2)
        };
        let held = Held::of(&met);
        let lags = |observed_generation, says| Workload { generation: 9, observed_generation, says, ..met.clone() };
        let misses = |workload: &Workload, overdue| held.misses(workload, false, overdue).is_some();
        assert!(misses(&lags(8, Says::Met), false), "it is waited for at first");
        assert!(!misses(&lags(8, Says::Met), true), "whatever its counts are");
        assert!(misses(&lags(3, Says::Met), true), "of before");
        let unmet = Says::Unmet("not yet".to_owned());
        assert!(misses(&lags(8, unmet), true));
        let counted = Workload { id: settled(version("1"), 4, 2).id, ..lags(8, Says::Met) };
        assert!(misses(&counted, true), "a kind that is built in has counts");
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
        let Standing::Waiting(wait) = Workload { refused, replicas, ..settled(version("1"), 4, 3) }.standing(false)
        else {
            panic!("it is not complete")
        };
        assert_eq!(words(&wait, None), "0 of 2 pods available; FailedCreate: exceeded quota: compute");
        assert_eq!(words(&wait, Some(&Pods::default())), "0 of 2 pods ready; FailedCreate: exceeded quota: compute");
    }
}

//! The pods of a Repo as seen by a watch without a gap: whether one is left of an earlier Job, and whether the Job that
//! matters now can have run anything of the user's (decision 62).
//!
//! ```text
//! of each pod: not bound ──▶ on a node ──▶ its kubelet says that it ended        a container but `source` started: may have run
//!                  └── gone: never ran   └── gone, with no end reported: may have run        └── gone: as it said
//! ```
//!
//! Not for how a Job ended; that is `outcome`.

use std::collections::BTreeMap;

use crate::repo::job::{Job, Place, Pod, Pods, Step, StepKind, StepState};

/// The pods that were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Witness {
    /// By name, as they were seen last; `None` until they were listed. Those of the Job that matters are kept when they are gone.
    pods: Option<BTreeMap<String, Seen>>,
    /// The UID of the Job that matters.
    of: String,
    /// A pod of it may have been overlooked, or went without a word of its kubelet.
    missed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    pod: Pod,
    gone: bool,
}

/// The known state of a Job: whether anything but `source` was started in a pod of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// Not so far, and a pod of it is left, or may come.
    NotYet,
    /// No, and it never can have.
    Never,
    Perhaps,
}

impl Witness {
    /// They are not watched any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The Job of this UID matters now. `missed`: pods of it may have come and gone unseen.
    pub(super) fn attend(&mut self, uid: &str, missed: bool) {
        if self.of == uid {
            return;
        }
        uid.clone_into(&mut self.of);
        self.missed = missed;
        if let Some(pods) = &mut self.pods {
            pods.retain(|_, seen| !seen.gone || seen.pod.job == uid);
        }
    }

    pub(super) fn listed(&mut self, all: Vec<Pod>) {
        let before = self.pods.replace(BTreeMap::new()).unwrap_or_default();
        for pod in all {
            self.seen(pod);
        }
        // What a listing has not is gone, and what became of it in the meantime was not seen.
        for (name, Seen { pod, gone }) in before {
            let Some(pods) = &mut self.pods else { return };
            if pod.job == self.of && !pods.contains_key(&name) {
                self.missed |= !gone && pod.place != Place::Ended;
                pods.insert(name, Seen { pod, gone: true });
            }
        }
    }

    pub(super) fn seen(&mut self, pod: Pod) {
        if let Some(pods) = &mut self.pods {
            pods.insert(pod.name.clone(), Seen { pod, gone: false });
        }
    }

    pub(super) fn gone(&mut self, name: &str) {
        let Some(pods) = &mut self.pods else { return };
        match pods.get_mut(name) {
            Some(seen) if seen.pod.job == self.of => {
                self.missed |= seen.pod.place == Place::Node;
                seen.gone = true;
            }
            Some(_) | None => drop(pods.remove(name)),
        }
    }

    /// A pod that has not ended, of whichever Job of a Repo of this name; `Err`: they were not listed yet.
    pub(super) fn alive(&self) -> Result<Option<&str>, ()> {
        let pods = self.pods.as_ref().ok_or(())?;
        let alive = pods.values().find(|seen| seen.pod.alive && !seen.gone);
        Ok(alive.map(|seen| seen.pod.name.as_str()))
    }

    /// The pod of the Job that matters, while it has not ended.
    pub(super) fn pod(&self) -> Option<&Pod> {
        self.known().find(|seen| seen.pod.alive && !seen.gone).map(|seen| &seen.pod)
    }

    /// The pods of the Job that matters, as they were seen last.
    fn known(&self) -> impl Iterator<Item = &Seen> {
        self.pods.iter().flat_map(|pods| pods.values()).filter(|seen| seen.pod.job == self.of)
    }

    /// The known state of the Job that matters; `job`: as it is now, or as it was seen last.
    pub(super) fn ran(&self, job: &Job) -> Ran {
        let known: Vec<&Seen> = self.known().collect();
        let Pods { active, terminating, ended, .. } = job.pods;
        let counted = usize::try_from(active.saturating_add(terminating).saturating_add(ended)).unwrap_or(usize::MAX);
        let is_overlooked = self.pods.is_none() || job.uid != self.of || self.missed || counted > known.len();
        if is_overlooked || known.iter().any(|seen| !seen.pod.is_untouched()) {
            return Ran::Perhaps;
        }
        // While a pod may still come, nothing is over yet.
        let is_closed = job.end.is_some() || job.pods.at_rest;
        if is_closed && known.iter().all(|seen| seen.is_over()) { Ran::Never } else { Ran::NotYet }
    }

    /// The same of a Job that is gone, of which no count is left: it made one pod at most, so one that was seen is all that there was.
    pub(super) fn ran_without_its_job(&self, uid: &str) -> Ran {
        let known: Vec<&Seen> = self.known().collect();
        if self.of != uid || self.missed || known.is_empty() || known.iter().any(|seen| !seen.pod.is_untouched()) {
            return Ran::Perhaps;
        }
        if known.iter().all(|seen| seen.is_over()) { Ran::Never } else { Ran::NotYet }
    }
}

impl Seen {
    fn is_over(&self) -> bool {
        self.gone || self.pod.place == Place::Ended
    }
}

impl Pod {
    /// No container but `source` has started in it, as far as it says.
    fn is_untouched(&self) -> bool {
        let is_idle = |step: &Step| step.kind == StepKind::Source || step.state == StepState::Waiting;
        !self.steps.is_empty() && self.steps.iter().all(is_idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::status::{Action, Attempt};
    use kernel::id::RunSeq;

    fn job(ended: u32) -> Job {
        Job {
            name: "infra-1".to_owned(),
            uid: "job".to_owned(),
            version: "1".to_owned(),
            owner: None,
            attempt: Attempt { seq: RunSeq(1), action: Action::Apply, number: 1 },
            revision: "a".repeat(40).parse().expect("a commit's id"),
            marked: true,
            withdrawn: false,
            suspended: false,
            deleting: false,
            pods: Pods { ended, at_rest: true, ..Pods::default() },
            end: None,
        }
    }

    fn pod(place: Place, applies: bool) -> Pod {
        let ended = StepState::Ended(0, String::new(), String::new());
        let state = if applies { StepState::Running } else { StepState::Waiting };
        let steps = vec![Step { kind: StepKind::Source, state: ended }, Step { kind: StepKind::Apply, state }];
        let alive = place != Place::Ended;
        Pod { name: "pod".to_owned(), job: "job".to_owned(), place, alive, steps, ..Pod::default() }
    }

    fn witness(sights: &[Pod]) -> Witness {
        let mut witness = Witness::default();
        witness.attend("job", false);
        witness.listed(Vec::new());
        sights.iter().cloned().for_each(|pod| witness.seen(pod));
        witness
    }

    #[test]
    fn only_a_pod_whose_end_is_known_and_that_started_nothing_never_ran() {
        let cases = [
            (vec![], Ran::Never),
            (vec![pod(Place::Nowhere, false)], Ran::Never),
            (vec![pod(Place::Nowhere, false), pod(Place::Node, false)], Ran::Perhaps),
            (vec![pod(Place::Node, false), pod(Place::Ended, false)], Ran::Never),
            (vec![pod(Place::Node, true), pod(Place::Ended, true)], Ran::Perhaps),
        ];
        for (sights, expected) in cases {
            let mut witness = witness(&sights);
            if let Some(last) = sights.last() {
                let is_over = last.place == Place::Ended;
                let before = witness.ran(&job(0));
                assert!(is_over || matches!(before, Ran::NotYet | Ran::Perhaps), "{sights:?}: {before:?}");
            }
            witness.gone("pod");
            assert_eq!(witness.ran(&job(0)), expected, "{sights:?}");
        }
    }

    #[test]
    fn what_was_not_seen_may_have_run() {
        assert_eq!(Witness::default().ran(&job(0)), Ran::Perhaps, "nothing was listed");
        assert_eq!(witness(&[]).ran(&job(1)), Ran::Perhaps, "its Job counts a pod that was never shown");
        let mut late = Witness::default();
        late.listed(Vec::new());
        late.attend("job", true);
        assert_eq!(late.ran(&job(0)), Ran::Perhaps, "it was started before anybody looked");
        for (place, expected) in [(Place::Nowhere, Ran::Perhaps), (Place::Ended, Ran::Never)] {
            let mut witness = witness(&[pod(place, false)]);
            witness.listed(Vec::new());
            assert_eq!(witness.ran(&job(0)), expected, "{place:?}: it went between two watches");
        }
    }
}

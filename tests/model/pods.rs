//! What pods there are, in the searches that are about them.

use kernel::names::image::Version;
use purge::bounds::policy::OnRollback;
use purge::rollouts::rollout::{Event, Rollout};
use purge::testing;
use purge::workloads::readiness::{Pod, Pods};
use purge::workloads::serving::{OldPods, Serving, old_pods};
use purge::workloads::workload::Workload;

use crate::mutants::Mutant;
use crate::world::{State, World};

/// The version that pods show to who asks what an aborted update went back to.
pub fn before(of: &Workload) -> Option<Version> {
    of.withdrawn.as_ref().map(|_| testing::version("a"))
}

impl World {
    /// What runs at a place of the script: while an update is aborted, the pods before.
    pub fn runs(&self, at: usize) -> Option<Workload> {
        let workload = self.script[at].clone()?;
        Some(workload.returned(testing::version("a")).unwrap_or(workload))
    }

    /// What the watch of pods shows whoever follows them. It leaves nothing out, whatever the watch of Deployments does.
    pub fn show_pods(&self, next: &mut State, w: usize, place: usize) {
        let rolling = next.workers[w].machine.as_deref().and_then(Rollout::rolling);
        let Some((_, version)) = rolling else { return };
        let same = self.script[place].as_ref().is_some_and(|workload| workload.version.as_ref() == Ok(version));
        let ready = same && self.served.contains(&place) && self.mutant != Some(Mutant::ServedUnseen);
        let pods = Pods { updated: u32::from(same), ready: u32::from(ready), ..Pods::default() };
        if self.policy.on_rollback == OnRollback::IfServed {
            self.step(next, w, Event::ServicesSeen { publish_unready: false });
            self.step(next, w, Event::PodsSeen(pods));
        }
    }

    /// What a reading of the pods shows: while an old one serves, it is there beside a new one.
    pub fn old_pods(&self, at: usize) -> OldPods {
        if !self.serving.contains(&at) || self.mutant == Some(Mutant::OldPodsIgnored) {
            return OldPods::default();
        }
        let pod = |name: &str, terminating| {
            let pod = Pod {
                name: name.into(),
                version: None,
                ready: true,
                terminating,
                started: false,
                finished: false,
                trouble: None,
            };
            ([("pod-template-hash".to_owned(), name.to_owned())].into(), pod)
        };
        let seen = Serving { pods: vec![pod("new", false), pod("old", true)], endpoints: Vec::new() };
        old_pods(&seen, &testing::settled(Default::default(), 1, 1))
    }
}

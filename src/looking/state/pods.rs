//! The pods of the rollouts in flight, for who watches them. What they come to is in the words of the rollout.

use serde::{Deserialize, Serialize};

use crate::looking::LabelledPods;
use crate::looking::layout::Tone;
use kernel::names::image::{Version, brief};
use purge::workloads::readiness::Pod;
use purge::workloads::workload::Workload;

/// The pods of one workload, those of the new version first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PodsOf {
    /// As other parts of the state name it: `deployment/shop/web`.
    pub workload: String,
    pub pods: Vec<PodSeen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PodSeen {
    pub name: String,
    /// Empty where it cannot be read.
    pub version: String,
    /// It is of the version that is rolled out.
    pub is_new: bool,
    /// `ready`, `not ready`, `terminating`, `finished`, or its trouble.
    pub state: String,
}

impl PodsOf {
    pub(super) fn new(workload: &Workload, version: &Version, listed: &LabelledPods) -> Self {
        let own = listed.iter().filter(|(labels, _)| workload.selector.matches(labels));
        let mut pods: Vec<PodSeen> = own.map(|(_, pod)| PodSeen::new(pod, version)).collect();
        pods.sort_by(|one, other| (!one.is_new, &one.name).cmp(&(!other.is_new, &other.name)));
        Self { workload: workload.id.to_string(), pods }
    }
}

impl PodSeen {
    fn new(pod: &Pod, version: &Version) -> Self {
        let state = match pod {
            Pod { finished: true, .. } => "finished",
            Pod { terminating: true, .. } => "terminating",
            Pod { trouble: Some(trouble), ready: false, .. } => trouble,
            Pod { ready: true, .. } => "ready",
            Pod { ready: false, .. } => "not ready",
        };
        Self {
            name: pod.name.clone(),
            version: pod.version.as_ref().map(brief).unwrap_or_default(),
            is_new: pod.version.as_ref().is_some_and(|images| images.has_images_of(version)),
            state: state.to_owned(),
        }
    }

    /// `web-7c9-x4 web: 1.2.4, ImagePullBackOff`.
    pub fn line(&self) -> String {
        format!("{} {}", self.name, self.words())
    }

    pub fn words(&self) -> String {
        let Self { version, is_new, state, .. } = self;
        let age = if *is_new { "new" } else { "old" };
        if version.is_empty() { format!("{age}: {state}") } else { format!("{age} ({version}): {state}") }
    }

    pub fn tone(&self) -> Tone {
        match (self.is_new, self.state.as_str()) {
            (true, "ready") => Tone::Good,
            (_, "not ready" | "terminating") => Tone::Moving,
            (false, "ready") | (_, "finished") => Tone::Plain,
            _ => Tone::Look,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::looking::tests::{labels, rolling, version};

    fn pod(name: &str, tag: &str) -> Pod {
        Pod {
            name: name.to_owned(),
            version: Some(version(tag)),
            ready: true,
            terminating: false,
            started: true,
            finished: false,
            trouble: None,
        }
    }

    #[test]
    fn its_own_pods_are_shown_those_of_the_new_version_first() {
        let others = BTreeMap::from([("app".to_owned(), "db".to_owned())]);
        let pods = [
            (labels(), pod("a", "1.2.3")),
            (labels(), Pod { terminating: true, ..pod("b", "1.2.3") }),
            (others, pod("c", "1.2.4")),
            (labels(), Pod { ready: false, trouble: Some("ImagePullBackOff".to_owned()), ..pod("e", "1.2.4") }),
            (labels(), Pod { ready: false, ..pod("f", "1.2.4") }),
            (labels(), pod("d", "1.2.4")),
            // It was in trouble, and is not any more.
            (labels(), Pod { trouble: Some("CrashLoopBackOff".to_owned()), ..pod("g", "1.2.4") }),
            (labels(), Pod { version: None, ready: false, finished: true, ..pod("h", "1.2.3") }),
        ];
        let seen = PodsOf::new(&rolling(), &version("1.2.4"), &pods.to_vec());
        assert_eq!(seen.workload, "deployment/shop/web");
        let lines: Vec<(String, Tone)> = seen.pods.iter().map(|pod| (pod.line(), pod.tone())).collect();
        let expected = [
            ("d new (web: 1.2.4): ready", Tone::Good),
            ("e new (web: 1.2.4): ImagePullBackOff", Tone::Look),
            ("f new (web: 1.2.4): not ready", Tone::Moving),
            ("g new (web: 1.2.4): ready", Tone::Good),
            ("a old (web: 1.2.3): ready", Tone::Plain),
            ("b old (web: 1.2.3): terminating", Tone::Moving),
            ("h old: finished", Tone::Plain),
        ];
        assert_eq!(lines, expected.map(|(line, tone)| (line.to_owned(), tone)));
    }
}

//! Which pods of an earlier template may still answer requests when a rollout is complete by its counts.
//!
//! A terminating pod is in no count of its workload, and serves on until it has ended: what it answers after a purge brings
//! yesterday back to the edge. So the pods themselves are looked at, and the EndpointSlices by which Services find them
//! (decision 33).
//!
//! Not for how long they are waited for; that is `rollout`.

use std::collections::BTreeSet;
use std::fmt;

use crate::workloads::readiness::Pod;
use crate::workloads::workload::Workload;
use kernel::id::Kind;
use kernel::names::image::Version;
use kernel::names::selector::Labels;
use kernel::text;
use kinds::{GENERATION_LABEL, Newest};

/// Old pods named in one sentence; if there are more, they nearly always have one reason.
const NAMED_MAX: usize = 2;

/// Longest name of a pod (a DNS subdomain), so that what is kept of an answer is bounded.
const NAME_CHARS_MAX: usize = 253;

/// The pods of one workload and what Services say of them, read afresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// The workload's pods, with their labels, those on their way out included.
    pub pods: Vec<(Labels, Pod)>,
    /// Endpoints of EndpointSlices of the namespace, of other workloads as well. None of a pod that had the name of one of `pods`
    /// before: StatefulSets use names again.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint of an EndpointSlice that is a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub pod: String,
    /// Requests may be sent to it: it is `serving`, or `ready` because its Service publishes addresses that are not.
    pub serves: bool,
}

/// The old pods that may still answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OldPods {
    count: usize,
    named: Vec<String>,
    /// There are old pods that have not ended, whether they serve or not.
    stay: bool,
    /// The version of all pods of the newest template that stay, if it was asked for: of a workload whose update was aborted.
    runs: Option<Version>,
    /// Another workload serves another version of the site, in words. It is not waited for.
    beside: Option<String>,
}

impl OldPods {
    /// Whether one that is still there may answer again.
    pub fn may_serve_again(&self) -> bool {
        self.stay
    }

    /// The version of the pods that an aborted update went back to, with whatever containers pods have.
    pub fn runs(&self) -> Option<&Version> {
        self.runs.as_ref()
    }

    /// The same with another answer to that.
    #[must_use]
    pub fn running(self, runs: Option<Version>) -> Self {
        Self { runs, ..self }
    }

    /// The same, and what serves beside the workload's own pods.
    #[must_use]
    pub fn with_beside(self, beside: Option<String>) -> Self {
        Self { beside, ..self }
    }

    /// What serves another version beside it.
    pub fn beside(&self) -> Option<&str> {
        self.beside.as_deref()
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for OldPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named.join(" and ");
        match self.count {
            0 => f.write_str("no old pod serves any more"),
            1 => write!(f, "old pod {named} still serves"),
            count if count == self.named.len() => write!(f, "old pods {named} still serve"),
            count => write!(f, "{count} old pods still serve, among them {named}"),
        }
    }
}

/// The old pods that may still answer: terminating, and of another template than the newest. Where the workload does not say which that
/// is, all pods that stay are of it; with no pod left, every terminating one is old. Where it does, one that stays is old as well. A
/// pod serves if a Service says so; where none knows the workload, one that is ending serves until it is gone.
pub fn old_pods(seen: &Serving, of: &Workload) -> OldPods {
    let known: BTreeSet<&str> = seen.endpoints.iter().map(|endpoint| endpoint.pod.as_str()).collect();
    let serving: BTreeSet<&str> =
        seen.endpoints.iter().filter(|endpoint| endpoint.serves).map(|endpoint| endpoint.pod.as_str()).collect();
    let has_service = seen.pods.iter().any(|(_, pod)| known.contains(pod.name.as_str()));
    let old = old(&seen.pods, of);
    let answers = |pod: &&&Pod| serving.contains(pod.name.as_str()) || (pod.terminating && !has_service);
    let names: BTreeSet<&str> = old.iter().filter(answers).map(|pod| pod.name.as_str()).collect();
    let named = names.iter().take(NAMED_MAX).map(|name| text::first(name, NAME_CHARS_MAX).to_owned()).collect();
    OldPods { count: names.len(), named, stay: !old.is_empty(), runs: running_version(&seen.pods, of), beside: None }
}

/// The one version of the pods that stay of a workload whose update was aborted.
fn running_version(pods: &[(Labels, Pod)], of: &Workload) -> Option<Version> {
    let Newest::Labelled(hash) = of.withdrawn.as_ref().map(|_| &of.newest)? else { return None };
    let is_of = |labels: &Labels| labels.get(kinds::template_label(of.object)) == Some(hash);
    let stay = pods.iter().filter(|(labels, pod)| is_of(labels) && !pod.terminating && !pod.finished);
    let mut versions = stay.map(|(_, pod)| pod.version.as_ref());
    let first = versions.next()??;
    versions.all(|version| version == Some(first)).then(|| first.clone())
}

/// Whether there are pods of which Services have to be asked.
pub fn has_old(pods: &[(Labels, Pod)], of: &Workload) -> bool {
    !old(pods, of).is_empty()
}

/// Those that have not ended: what is still said of the others, they answer nothing.
fn running(pods: &[(Labels, Pod)]) -> impl Iterator<Item = &(Labels, Pod)> {
    pods.iter().filter(|(_, pod)| !pod.finished)
}

pub(super) fn staying(pods: &[(Labels, Pod)]) -> impl Iterator<Item = &(Labels, Pod)> {
    running(pods).filter(|(_, pod)| !pod.terminating)
}

pub(super) fn has_version_of(pod: &Pod, of: &Workload) -> bool {
    let has_its_images = |images: &Version| of.version.as_ref().is_ok_and(|version| images.has_images_of(version));
    pod.version.as_ref().is_some_and(has_its_images)
}

/// The hashes of the newest template by what the workload says; empty where it does not say.
pub(super) fn newest<'a>(pods: &'a [(Labels, Pod)], of: &'a Workload) -> BTreeSet<Option<&'a str>> {
    let label = kinds::template_label(of.object);
    match &of.newest {
        Newest::Labelled(hash) => BTreeSet::from([Some(hash.as_str())]),
        Newest::Generation(number) => running(pods)
            .filter(|(labels, _)| labels.get(GENERATION_LABEL) == Some(number))
            .map(|(labels, _)| labels.get(label).map(String::as_str))
            .collect(),
        Newest::OfItsVersion => staying(pods)
            .filter(|(labels, pod)| labels.contains_key(label) && has_version_of(pod, of))
            .map(|(labels, _)| labels.get(label).map(String::as_str))
            .collect(),
        Newest::Unsaid => BTreeSet::new(),
    }
}

fn old<'a>(pods: &'a [(Labels, Pod)], of: &'a Workload) -> Vec<&'a Pod> {
    let label = kinds::template_label(of.object);
    let newest = newest(pods, of);
    let is_known = !newest.is_empty();
    // One without a label that every pod has is of no template that is known.
    let may_lack_it = of.newest != Newest::OfItsVersion;
    let hashes = || staying(pods).map(|(labels, _)| labels.get(label).map(String::as_str));
    let newest = if is_known { newest } else { hashes().filter(|hash| may_lack_it || hash.is_some()).collect() };
    running(pods)
        .filter(|(_, pod)| pod.terminating || is_known)
        .filter(|(labels, pod)| !newest.contains(&labels.get(label).map(String::as_str)) && !is_beside(labels, pod, of))
        .map(|(_, pod)| pod)
        .collect()
}

/// Whether a pod that stays is of the Deployment beside a Rollout of the same name, and as new as the Rollout's own: another template of the
/// same version.
fn is_beside(labels: &Labels, pod: &Pod, of: &Workload) -> bool {
    let is_of_deployment = !labels.contains_key(kinds::template_label(Kind::Rollout))
        && labels.contains_key(kinds::template_label(Kind::Deployment));
    of.object == Kind::Rollout && is_of_deployment && !pod.terminating && has_version_of(pod, of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{declared, settled, version};
    use kernel::id::WorkloadId;

    const TEMPLATE_HASH: &str = "pod-template-hash";

    fn pod(name: &str, hash: &str, terminating: bool) -> (Labels, Pod) {
        let pod = Pod {
            name: name.into(),
            version: None,
            ready: true,
            terminating,
            started: false,
            finished: false,
            trouble: None,
        };
        (Labels::from([("app".into(), "web".into()), (TEMPLATE_HASH.into(), hash.into())]), pod)
    }

    fn endpoint(pod: &str, serves: bool) -> Endpoint {
        Endpoint { pod: pod.into(), serves }
    }

    fn words(pods: Vec<(Labels, Pod)>, endpoints: Vec<Endpoint>) -> String {
        old_pods(&Serving { pods, endpoints }, &settled(version("1"), 1, 3)).to_string()
    }

    #[test]
    fn a_terminating_pod_of_the_template_before_serves_while_an_endpoint_says_so() {
        let pods = || vec![pod("new-1", "b", false), pod("old-1", "a", true), pod("old-2", "a", true)];
        let both = vec![endpoint("new-1", true), endpoint("old-1", true), endpoint("old-2", false)];
        assert_eq!(words(pods(), both), "old pod old-1 still serves");
        let gone = vec![endpoint("new-1", true), endpoint("old-1", false)];
        assert_eq!(words(pods(), gone), "no old pod serves any more", "one that no Service names any more does not");
    }

    #[test]
    fn without_a_service_an_old_pod_serves_until_it_is_gone() {
        let pods = || vec![pod("new-1", "b", false), pod("old-1", "a", true), pod("old-2", "a", true)];
        let of_others = vec![endpoint("shop-1", true)];
        assert_eq!(words(pods(), of_others), "old pods old-1 and old-2 still serve");
        let mut ended = pods();
        ended[1].1.finished = true;
        assert_eq!(words(ended, Vec::new()), "old pod old-2 still serves");
        assert_eq!(words(vec![pod("new-1", "b", false)], Vec::new()), "no old pod serves any more");
    }

    #[test]
    fn a_pod_of_the_same_template_that_goes_is_not_old() {
        let pods = vec![pod("new-1", "b", false), pod("new-2", "b", true)];
        assert_eq!(words(pods, vec![endpoint("new-2", true)]), "no old pod serves any more");
    }

    #[test]
    fn with_no_pod_left_every_terminating_one_is_old() {
        let pods = vec![pod("a-1", "a", true), pod("a-2", "a", true), pod("b-1", "b", true)];
        assert_eq!(words(pods, Vec::new()), "3 old pods still serve, among them a-1 and a-2");
    }

    fn of(kind: Kind, newest: Newest, pods: &[(&str, &str, &str, bool)], endpoints: &[(&str, bool)]) -> String {
        let labelled = |(name, hash, generation, terminating): &(&str, &str, &str, bool)| {
            let (_, pod) = pod(name, hash, *terminating);
            let labels = [(kinds::template_label(kind), *hash), (GENERATION_LABEL, *generation)];
            (labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into(), pod)
        };
        let endpoints = endpoints.iter().map(|(pod, serves)| endpoint(pod, *serves)).collect();
        let id = WorkloadId::new(kind, "shop", "web");
        let workload = Workload { id, object: kind, newest, ..settled(version("1"), 1, 2) };
        old_pods(&Serving { pods: pods.iter().map(labelled).collect(), endpoints }, &workload).to_string()
    }

    #[test]
    fn where_the_newest_template_is_known_a_pod_of_another_that_stays_is_old_while_it_serves() {
        let newest = || Newest::Labelled("b".to_owned());
        let pods = [("web-0", "b", "", false), ("web-1", "a", "", false), ("gone", "a", "", true)];
        let serving = [("web-0", true), ("web-1", true), ("gone", false)];
        assert_eq!(of(Kind::StatefulSet, newest(), &pods, &serving), "old pod web-1 still serves");
        let left = [("web-0", true), ("web-1", false), ("gone", false)];
        assert_eq!(of(Kind::StatefulSet, newest(), &pods, &left), "no old pod serves any more");
    }

    #[test]
    fn a_pod_of_a_daemon_set_is_new_by_its_count_or_by_the_hash_of_one_that_is() {
        // The template came back: what was left of its first time is as new.
        let pods = [("web-a", "x", "3", false), ("web-b", "x", "1", false), ("web-c", "y", "2", false)];
        let newest = |number: &str| Newest::Generation(number.to_owned());
        let serving = [("web-a", true), ("web-b", true), ("web-c", true)];
        assert_eq!(of(Kind::DaemonSet, newest("3"), &pods, &serving), "old pod web-c still serves");
        assert_eq!(
            of(Kind::DaemonSet, newest("3"), &pods, &[]),
            "no old pod serves any more",
            "no Service leads to it"
        );
        assert_eq!(
            of(Kind::DaemonSet, newest("4"), &pods, &[]),
            "no old pod serves any more",
            "none says which is new"
        );
    }

    #[test]
    fn the_new_pods_of_a_kind_that_is_declared_are_those_of_its_version_and_each_has_its_label() {
        let kind = declared("serving.example.com");
        let workload = Workload { object: kind, newest: Newest::OfItsVersion, ..settled(version("2"), 1, 2) };
        let of = |pods: &[(&str, Option<&str>, &str, bool)]| {
            let labelled = |(name, hash, tag, terminating): &(&str, Option<&str>, &str, bool)| {
                let labels = hash.map(|hash| (kinds::template_label(kind).to_owned(), hash.to_owned()));
                let (_, pod) = pod(name, "", *terminating);
                (labels.into_iter().collect(), Pod { version: Some(version(tag)), ..pod })
            };
            let endpoints = pods.iter().map(|(name, ..)| endpoint(name, true)).collect();
            old_pods(&Serving { pods: pods.iter().map(labelled).collect(), endpoints }, &workload).to_string()
        };
        let none = "no old pod serves any more";
        let new = ("new", Some("b"), "2", false);
        assert_eq!(of(&[new, ("more", Some("b"), "2", true)]), none);
        assert_eq!(of(&[new, ("old", Some("a"), "1", false)]), "old pod old still serves", "though it stays");
        assert_eq!(of(&[new, ("old", Some("a"), "1", true)]), "old pod old still serves");
        assert_eq!(of(&[new, ("same", Some("a"), "2", false)]), none, "another template of its version");
        assert_eq!(of(&[new, ("bare", None, "1", false)]), "old pod bare still serves");
        assert_eq!(
            of(&[("bare", None, "2", false), ("old", None, "1", true)]),
            "old pod old still serves",
            "a wrong label"
        );
        let injected = [("new", Some("b"), "with-a-sidecar", false), ("old", Some("a"), "1", true)];
        assert_eq!(of(&injected), "old pod old still serves", "by the pods that stay");
    }

    #[test]
    fn the_old_pods_of_a_rollout_run_on_behind_no_service_and_so_do_those_of_the_deployment_before_it() {
        let newest = || Newest::Labelled("b".to_owned());
        let pods = [("green", "b", "", false), ("blue", "a", "", false)];
        let of = |serving: &[(&str, bool)]| of(Kind::Rollout, newest(), &pods, serving);
        assert_eq!(of(&[("green", true), ("blue", true)]), "old pod blue still serves");
        assert_eq!(of(&[("green", true)]), "no old pod serves any more", "the active Service has left it");

        let rollout = Workload { object: Kind::Rollout, newest: newest(), ..settled(version("2"), 1, 1) };
        let beside = |tag: &str| {
            let (labels, before) = pod("web-1", "x", false);
            let pods = vec![(labels, Pod { version: Some(version(tag)), ..before })];
            old_pods(&Serving { pods, endpoints: vec![endpoint("web-1", true)] }, &rollout).to_string()
        };
        assert_eq!(beside("1"), "old pod web-1 still serves");
        assert_eq!(beside("2"), "no old pod serves any more", "it is of the Deployment, and as new");
    }
}

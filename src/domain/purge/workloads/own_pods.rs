//! The owners of the pods in one namespace: each pod of a rollout belongs to the followers whose selector matches its
//! labels.
//!
//! A sight of a pod touches only the followers it belongs to, before or after, and only those are summed up again. Three hundred
//! rollouts in one namespace would otherwise look at a thousand pods each, ten times a second.
//!
//! Not for the state of a rollout; that is [`crate::workloads::readiness`].

use std::collections::{BTreeMap, BTreeSet};

use crate::workloads::readiness::{Pod, Pods, summarise};
use kernel::id::WorkloadId;
use kernel::names::image::Version;
use kernel::names::selector::{LabelSelector, Labels};

/// The pods of a namespace and their followers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPods {
    pods: BTreeMap<String, Seen>,
    followers: BTreeMap<WorkloadId, Follower>,
    index: Index,
    /// Followers whose pods may differ from their last report.
    touched: BTreeSet<WorkloadId>,
    /// Those of them whose last terminating pod has stopped being ready, or has gone, since that report.
    urgent: BTreeSet<WorkloadId>,
}

/// One pod, as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    labels: Labels,
    pod: Pod,
    /// The followers it belongs to.
    of: BTreeSet<WorkloadId>,
}

/// A workload with a rollout in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Follower {
    selector: LabelSelector,
    version: Version,
    /// Its pods, by name.
    own: BTreeSet<String>,
    /// The last report to it.
    told: Option<Pods>,
}

impl OwnPods {
    /// A workload follows the pods that its selector matches, counting those of this version. Its first report is due.
    pub fn follow(&mut self, workload: WorkloadId, selector: LabelSelector, version: Version) {
        self.unfollow(&workload);
        let mut own = BTreeSet::new();
        for (name, seen) in self.pods.iter_mut().filter(|(_, seen)| selector.matches(&seen.labels)) {
            seen.of.insert(workload.clone());
            own.insert(name.clone());
        }
        self.index.add(&workload, &selector);
        self.touched.insert(workload.clone());
        self.followers.insert(workload, Follower { selector, version, own, told: None });
    }

    pub fn unfollow(&mut self, workload: &WorkloadId) {
        let Some(Follower { selector, own, .. }) = self.followers.remove(workload) else { return };
        for name in own {
            if let Some(seen) = self.pods.get_mut(&name) {
                seen.of.remove(workload);
            }
        }
        self.index.remove(workload, &selector);
        self.touched.remove(workload);
        self.urgent.remove(workload);
    }

    /// A pod was seen.
    pub fn seen(&mut self, labels: Labels, pod: Pod) {
        if self.pods.get(&pod.name).is_some_and(|known| known.labels == labels && known.pod == pod) {
            return;
        }
        let selects = |workload: &&WorkloadId| {
            self.followers.get(*workload).is_some_and(|follower| follower.selector.matches(&labels))
        };
        let of: BTreeSet<WorkloadId> = self.index.candidates(&labels).filter(selects).cloned().collect();
        let was_ready = self.pods.get(&pod.name).is_some_and(|known| known.pod.ready);
        // Its labels may have changed, and with them its followers.
        self.forget(&pod.name);
        for workload in &of {
            if let Some(follower) = self.followers.get_mut(workload) {
                follower.own.insert(pod.name.clone());
            }
        }
        self.touched.extend(of.iter().cloned());
        if was_ready && pod.terminating && !pod.ready {
            self.note_last(&of, |pod| pod.ready);
        }
        self.pods.insert(pod.name.clone(), Seen { labels, pod, of });
    }

    /// A pod is gone.
    pub fn gone(&mut self, name: &str) {
        let Some(Seen { pod, of, .. }) = self.forget(name) else { return };
        if pod.terminating {
            self.note_last(&of, |other| other.ready || !pod.ready);
        }
    }

    /// Marks the followers as urgent that have no terminating pod left for which `counts` is true.
    fn note_last(&mut self, followers: &BTreeSet<WorkloadId>, counts: impl Fn(&Pod) -> bool) {
        let goes = |name: &String| self.pods.get(name).is_some_and(|seen| seen.pod.terminating && counts(&seen.pod));
        let is_last = |workload: &&WorkloadId| {
            self.followers.get(*workload).is_some_and(|follower| !follower.own.iter().any(goes))
        };
        let last: Vec<WorkloadId> = followers.iter().filter(is_last).cloned().collect();
        self.urgent.extend(last);
    }

    /// Removes a pod from the known ones and from its followers.
    fn forget(&mut self, name: &str) -> Option<Seen> {
        let seen = self.pods.remove(name)?;
        for workload in &seen.of {
            if let Some(follower) = self.followers.get_mut(workload) {
                follower.own.remove(name);
            }
        }
        self.touched.extend(seen.of.iter().cloned());
        Some(seen)
    }

    /// No pod is known any more: all are listed again.
    pub fn clear(&mut self) {
        self.pods.clear();
        self.followers.values_mut().for_each(|follower| follower.own.clear());
        self.touched.extend(self.followers.keys().cloned());
    }

    /// Followers whose pods differ from their last report, each with the pods now. Repeated until it is [`told`].
    ///
    /// [`told`]: Self::told
    pub fn news(&mut self) -> Vec<(WorkloadId, Pods)> {
        self.urgent.clear();
        let touched = std::mem::take(&mut self.touched);
        self.news_of(touched)
    }

    /// The same, only for followers whose last terminating pod has stopped being ready or has gone: a rollout at the
    /// barrier waits for that. Returned once for each time, so a swarm of terminating pods makes one or two.
    ///
    /// [`told`]: Self::told
    pub fn urgent_news(&mut self) -> Vec<(WorkloadId, Pods)> {
        let urgent = std::mem::take(&mut self.urgent);
        self.news_of(urgent)
    }

    fn news_of(&mut self, followers: BTreeSet<WorkloadId>) -> Vec<(WorkloadId, Pods)> {
        let of = |workload: WorkloadId| {
            let follower = self.followers.get(&workload)?;
            let own = follower.own.iter().filter_map(|name| self.pods.get(name)).map(|seen| &seen.pod);
            let pods = summarise(own, &follower.version);
            (follower.told.as_ref() != Some(&pods)).then_some((workload, pods))
        };
        let news: Vec<_> = followers.into_iter().filter_map(of).collect();
        self.touched.extend(news.iter().map(|(workload, _)| workload.clone()));
        news
    }

    /// A follower received this report.
    pub fn told(&mut self, workload: &WorkloadId, pods: Pods) {
        if let Some(follower) = self.followers.get_mut(workload) {
            follower.told = Some(pods);
            self.touched.remove(workload);
        }
    }

    /// The reports no longer hold for the followers, so all of them receive new ones.
    pub fn forget_told(&mut self) {
        self.followers.values_mut().for_each(|follower| follower.told = None);
        self.touched.extend(self.followers.keys().cloned());
    }
}

/// Finds the followers that a pod may belong to without a look at all of them: each is listed under one label that its selector
/// demands, and those that demand none under no label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Index {
    by_label: BTreeMap<String, BTreeMap<String, BTreeSet<WorkloadId>>>,
    unlabelled: BTreeSet<WorkloadId>,
}

impl Index {
    /// Lists it under the demanded label with the fewest followers: a label that all workloads share selects nothing.
    fn add(&mut self, workload: &WorkloadId, selector: &LabelSelector) {
        let crowd = |(key, value): &(&String, &String)| {
            self.by_label.get(*key).and_then(|values| values.get(*value)).map_or(0, BTreeSet::len)
        };
        let listed = match selector.match_labels.iter().min_by_key(crowd) {
            Some((key, value)) => self.by_label.entry(key.clone()).or_default().entry(value.clone()).or_default(),
            None => &mut self.unlabelled,
        };
        listed.insert(workload.clone());
    }

    fn remove(&mut self, workload: &WorkloadId, selector: &LabelSelector) {
        self.unlabelled.remove(workload);
        for (key, value) in &selector.match_labels {
            let Some(values) = self.by_label.get_mut(key) else { continue };
            if values.get_mut(value).is_some_and(|listed| listed.remove(workload) && listed.is_empty()) {
                values.remove(value);
            }
            if values.is_empty() {
                self.by_label.remove(key);
            }
        }
    }

    /// All whose selectors can match these labels, and perhaps others.
    fn candidates<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = &'a WorkloadId> {
        let listed = labels.iter().filter_map(|(key, value)| self.by_label.get(key)?.get(value));
        listed.flatten().chain(&self.unlabelled)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;
    use kernel::names::selector::{Operator, Requirement};

    #[derive(Clone, Debug)]
    enum Step {
        Follow(u8, LabelSelector),
        Unfollow(u8),
        Seen(u8, Labels, bool),
        Gone(u8),
        Clear,
        /// All followers receive their reports but this one, whose mailbox is full.
        Tell(u8),
        Forget,
    }

    fn workload(number: u8) -> WorkloadId {
        WorkloadId::deployment("shop", format!("web-{number}"))
    }

    fn pod(number: u8, ready: bool) -> Pod {
        Pod {
            name: format!("pod-{number}"),
            version: Some(testing::version("1")),
            ready,
            terminating: false,
            started: true,
            finished: false,
            trouble: None,
        }
    }

    fn labels() -> impl Strategy<Value = Labels> {
        let pair = (prop::sample::select(vec!["app", "tier", "team"]), prop::sample::select(vec!["a", "b"]));
        prop::collection::vec(pair, 0..3)
            .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    fn selector() -> impl Strategy<Value = LabelSelector> {
        let operator = prop::sample::select(vec![Operator::Exists, Operator::DoesNotExist]);
        let requirement =
            operator.prop_map(|operator| Requirement { key: "tier".to_owned(), operator, values: BTreeSet::new() });
        (labels(), prop::collection::vec(requirement, 0..2))
            .prop_map(|(match_labels, match_expressions)| LabelSelector { match_labels, match_expressions })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..5_u8, selector()).prop_map(|(number, selector)| Step::Follow(number, selector)),
            1 => (0..5_u8).prop_map(Step::Unfollow),
            8 => (0..6_u8, labels(), any::<bool>()).prop_map(|(number, labels, ready)| Step::Seen(number, labels, ready)),
            2 => (0..6_u8).prop_map(Step::Gone),
            1 => Just(Step::Clear),
            6 => (0..8_u8).prop_map(Step::Tell),
            1 => Just(Step::Forget),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The oracle looks at every pod for every follower, each time.
        #[test]
        fn followers_are_told_what_looking_at_all_pods_for_each_would_say(steps in prop::collection::vec(step(), 1..60)) {
            let mut own_pods = OwnPods::default();
            let mut pods: BTreeMap<String, (Labels, Pod)> = BTreeMap::new();
            let mut followers: BTreeMap<WorkloadId, (LabelSelector, Option<Pods>)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Follow(number, selector) => {
                        own_pods.follow(workload(number), selector.clone(), testing::version("1"));
                        followers.insert(workload(number), (selector, None));
                    }
                    Step::Unfollow(number) => {
                        own_pods.unfollow(&workload(number));
                        followers.remove(&workload(number));
                    }
                    Step::Seen(number, labels, ready) => {
                        own_pods.seen(labels.clone(), pod(number, ready));
                        pods.insert(pod(number, ready).name, (labels, pod(number, ready)));
                    }
                    Step::Gone(number) => {
                        own_pods.gone(&pod(number, true).name);
                        pods.remove(&pod(number, true).name);
                    }
                    Step::Clear => {
                        own_pods.clear();
                        pods.clear();
                    }
                    Step::Forget => {
                        own_pods.forget_told();
                        followers.values_mut().for_each(|(_, told)| *told = None);
                    }
                    Step::Tell(deaf) => {
                        let news = own_pods.news();
                        let mut expected = Vec::new();
                        for (id, (selector, told)) in &mut followers {
                            let own = pods.values().filter(|(labels, _)| selector.matches(labels)).map(|(_, pod)| pod);
                            let now = summarise(own, &testing::version("1"));
                            if told.as_ref() == Some(&now) {
                                continue;
                            }
                            expected.push((id.clone(), now.clone()));
                            if *id != workload(deaf) {
                                *told = Some(now.clone());
                                own_pods.told(id, now);
                            }
                        }
                        prop_assert_eq!(news, expected);
                    }
                }
            }
            let ids: Vec<WorkloadId> = own_pods.followers.keys().cloned().collect();
            ids.iter().for_each(|id| own_pods.unfollow(id));
            prop_assert_eq!(&own_pods.index, &Index::default(), "the index keeps followers that are gone");
        }
    }

    /// A pod of the one follower that is on its way out.
    fn leaving(number: u8, ready: bool) -> Pod {
        Pod { terminating: true, ..pod(number, ready) }
    }

    #[test]
    fn only_the_last_pod_on_its_way_out_is_urgent_when_it_stops_and_when_it_goes() {
        let mut own_pods = OwnPods::default();
        own_pods.follow(workload(0), LabelSelector::default(), testing::version("1"));
        let urgent = |own_pods: &mut OwnPods| {
            let news = own_pods.urgent_news();
            news.iter().for_each(|(workload, pods)| own_pods.told(workload, pods.clone()));
            news.first().map(|(_, pods)| (pods.leaving, pods.leaving_ready))
        };
        for number in 0..3 {
            own_pods.seen(Labels::new(), pod(number, true));
            own_pods.seen(Labels::new(), leaving(number, true));
        }
        assert_eq!(urgent(&mut own_pods), None, "a pod that begins to go is no end of a wait");
        own_pods.seen(Labels::new(), leaving(0, false));
        own_pods.gone("pod-1");
        assert_eq!(urgent(&mut own_pods), None, "another one still answers");
        own_pods.seen(Labels::new(), leaving(2, false));
        assert_eq!(urgent(&mut own_pods), Some((2, 0)));
        assert_eq!(urgent(&mut own_pods), None, "once");
        own_pods.gone("pod-0");
        assert_eq!(urgent(&mut own_pods), None);
        own_pods.gone("pod-2");
        assert_eq!(urgent(&mut own_pods), Some((0, 0)), "without a Service it answers until it is gone");
        own_pods.seen(Labels::new(), pod(3, false));
        own_pods.seen(Labels::new(), pod(3, true));
        own_pods.gone("pod-3");
        assert_eq!(urgent(&mut own_pods), None, "it was not on its way out");
        own_pods.seen(Labels::new(), pod(4, true));
        own_pods.seen(Labels::new(), leaving(4, false));
        assert_eq!(urgent(&mut own_pods), Some((1, 0)), "both in one sight");
    }

    #[test]
    fn a_pod_touches_nobody_it_does_not_belong_to() {
        let mut own_pods = OwnPods::default();
        let labels = |app: &str| Labels::from([("app".into(), app.into()), ("all".into(), "shop".into())]);
        for number in 0..50 {
            let selector = LabelSelector { match_labels: labels(&number.to_string()), ..LabelSelector::default() };
            own_pods.follow(workload(number), selector, testing::version("1"));
        }
        for (id, pods) in own_pods.news() {
            own_pods.told(&id, pods);
        }
        assert!(own_pods.index.candidates(&labels("7")).count() <= 2, "a common label finds all");
        own_pods.seen(labels("7"), pod(7, true));
        assert_eq!(own_pods.touched, [workload(7)].into());
        // Its labels change, and with them its follower.
        own_pods.seen(labels("8"), pod(7, true));
        assert_eq!(own_pods.touched, [workload(7), workload(8)].into());
    }
}

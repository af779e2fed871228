//! DaemonSets: one pod on each node that takes one.
//!
//! Rules follow `pkg/controller/daemon` (Kubernetes 1.33). A node that does not answer takes no new pod unless the template tolerates that:
//! it is not desired then, and its pod is misscheduled and stays. A pod that ends there for ever keeps its node from a new one and counts
//! as unavailable. As the real controller reads a cache, this one sees the pods as they were before the kubelets moved in the same step.
//! Left out: node affinity in the template, taints but that one, `minReadySeconds`, ControllerRevision objects, failed pods.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::nodes::{Node, bind, node_of};
use super::pods::{Round, pod_of};
use super::workload::{delete_pod, share, template_hash};
use super::{Controller, Moment};
use crate::kubernetes::defaults::TEMPLATE_GENERATION;
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, holds, is_ending, number, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Writer};

/// The labels with a pod's revision and with the count of templates.
const REVISION_LABEL: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";

/// The counts of one that is done: as many as are desired.
const SETTLED: [&str; 2] = ["updatedNumberScheduled", "numberAvailable"];

/// A pod as the controller last saw it.
#[derive(Clone, Debug)]
struct Daemon {
    key: Key,
    node: String,
    updated: bool,
    ready: bool,
    ending: bool,
    born: u64,
}

/// A node and the pods on it, the oldest first.
#[derive(Debug)]
struct Place {
    node: String,
    /// Whether a pod is to be here.
    wanted: bool,
    /// Whether one that is here may stay.
    tolerated: bool,
    pods: Vec<Daemon>,
}

/// Pods to delete, and nodes to make one on.
#[derive(Debug, Default)]
struct Plan {
    delete: Vec<Key>,
    create: Vec<String>,
}

/// What a DaemonSet asks for.
#[derive(Debug)]
struct Wish<'a> {
    set: &'a Value,
    hash: String,
    surge: i64,
    unavailable: i64,
}

/// Moves one DaemonSet a step on; returns when to look again.
///
/// # Errors
/// When the store refuses a write.
pub fn reconcile(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    set: &Arc<Object>,
    now: &Moment,
) -> Result<Option<Duration>, Failure> {
    let value = set.value();
    let mut round = Round { uid: &set.uid, now, may_become_ready: 1, next: None };
    let hash = template_hash(&value);
    let pods = seen(controller, writer, &set.uid, &value, &hash);
    let settled = (number(&value, "/status/desiredNumberScheduled"), &SETTLED[..]);
    if !controller.begin_set(writer, &value, !pods.is_empty(), settled, &mut round)? || is_ending(&value) {
        return Ok(round.next);
    }
    let template = value.pointer("/spec/template").cloned().unwrap_or_default();
    controller.revisions.entry(set.uid.clone()).or_default().insert(hash.clone(), template);
    let (places, lost) = places(&controller.nodes, &value, pods);
    let wish = Wish::of(&value, hash, &places);
    let mut plan = wish.manage(&places);
    // The real controller waits until it has seen what it did before it goes on with an update.
    if plan.is_empty() && text(&value, "/spec/updateStrategy/type") != "OnDelete" {
        plan = if wish.surge == 0 { wish.replace(&places) } else { wish.surge(&places) };
    }
    write_status(writer, &value, &places);
    for key in &plan.delete {
        delete_pod(writer, key, &DeleteOptions::default())?;
    }
    // Nothing ends a pod whose node is gone, but the collector of pods.
    let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
    for pod in &lost {
        delete_pod(writer, &pod.key, &at_once)?;
    }
    for node in &plan.create {
        controller.start_pod(writer, &set.key.namespace, wish.pod(node), &mut round)?;
    }
    Ok(round.next)
}

fn seen(controller: &Controller, writer: &Writer<'_>, uid: &str, set: &Value, hash: &str) -> Vec<Daemon> {
    let generation = set["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    let pods = writer.state.children(uid).into_iter().filter(|object| object.kind == Kind::Pod);
    let daemon = |pod: Arc<Object>| {
        let value = pod.value();
        let label = |label: &str| pod.labels.get(label).map(String::as_str);
        let same_generation = generation.is_some() && label(GENERATION_LABEL) == generation;
        Daemon {
            key: pod.key.clone(),
            node: node_of(&value).to_owned(),
            updated: same_generation || label(REVISION_LABEL) == Some(hash),
            ready: holds(&value, "Ready"),
            ending: is_ending(&value),
            born: controller.born(&pod),
        }
    };
    let mut pods: Vec<Daemon> = pods.map(daemon).collect();
    pods.sort_by_key(|pod| pod.born);
    pods
}

/// The pods by their nodes, and those whose node is gone.
fn places(nodes: &[Node], set: &Value, pods: Vec<Daemon>) -> (Vec<Place>, Vec<Daemon>) {
    let spec = set.pointer("/spec/template/spec").cloned().unwrap_or_default();
    let place = |node: &Node| {
        let tolerated = node.is_selected(&spec);
        Place { node: node.name.clone(), wanted: tolerated && node.takes(&spec), tolerated, pods: Vec::new() }
    };
    let mut places: Vec<Place> = nodes.iter().map(place).collect();
    let mut lost = Vec::new();
    for pod in pods {
        match places.iter_mut().find(|place| place.node == pod.node) {
            Some(place) => place.pods.push(pod),
            None => lost.push(pod),
        }
    }
    (places, lost)
}

fn write_status(writer: &mut Writer<'_>, set: &Value, places: &[Place]) {
    let wanted = || places.iter().filter(|place| place.wanted);
    // The oldest pod of a node speaks for it.
    let oldest =
        |counts: &dyn Fn(&Daemon) -> bool| wanted().filter(|place| place.pods.first().is_some_and(counts)).count();
    let (desired, available) = (wanted().count(), oldest(&|pod| pod.ready));
    let misscheduled = places.iter().filter(|place| !place.wanted && !place.pods.is_empty()).count();
    let mut object = set.clone();
    let status = &mut object["status"];
    status["observedGeneration"] = set["metadata"]["generation"].clone();
    for (field, count) in [
        ("desiredNumberScheduled", desired),
        ("currentNumberScheduled", oldest(&|_| true)),
        ("numberMisscheduled", misscheduled),
        ("numberReady", available),
    ] {
        status[field] = json!(count);
    }
    for (field, count) in [
        ("updatedNumberScheduled", oldest(&|pod| pod.updated)),
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
    ] {
        match status.as_object_mut() {
            // As Go's `omitempty` does.
            Some(fields) if count == 0 => drop(fields.remove(field)),
            _ => status[field] = json!(count),
        }
    }
    if object != *set {
        writer.state.put(Kind::DaemonSet, object);
    }
}

impl Place {
    /// The pods that are not ending.
    fn alive(&self) -> impl Iterator<Item = &Daemon> {
        self.pods.iter().filter(|pod| !pod.ending)
    }

    /// The new pod and the old one; none if there are several of one sort, which is to be cleaned up first.
    fn split(&self) -> Option<(Option<&Daemon>, Option<&Daemon>)> {
        let (new, old): (Vec<&Daemon>, Vec<&Daemon>) = self.alive().partition(|pod| pod.updated);
        (new.len() <= 1 && old.len() <= 1).then(|| (new.first().copied(), old.first().copied()))
    }
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.create.is_empty()
    }
}

impl<'a> Wish<'a> {
    fn of(set: &'a Value, hash: String, places: &[Place]) -> Wish<'a> {
        let desired = places.iter().filter(|place| place.wanted).count() as i64;
        let part =
            |field: &str| share(set.pointer(&format!("/spec/updateStrategy/rollingUpdate/{field}")), desired, true);
        let (surge, unavailable) = (part("maxSurge"), part("maxUnavailable"));
        // Both zero would never move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Wish { set, hash, surge, unavailable }
    }

    /// One pod for each node that is to have one, and none for others.
    fn manage(&self, places: &[Place]) -> Plan {
        let mut plan = Plan::default();
        for place in places {
            if place.wanted && place.pods.is_empty() {
                plan.create.push(place.node.clone());
            } else if !place.tolerated {
                plan.delete.extend(place.alive().map(|pod| pod.key.clone()));
            } else if self.surge == 0 {
                plan.delete.extend(place.alive().skip(1).map(|pod| pod.key.clone()));
            } else if place.alive().next().is_none() && place.wanted {
                plan.create.push(place.node.clone());
            } else {
                plan.delete.extend(excess(place));
            }
        }
        plan
    }

    /// The update that deletes an old pod before the new one is made.
    fn replace(&self, places: &[Place]) -> Plan {
        let (mut unavailable, mut candidates, mut plan) = (0, Vec::new(), Plan::default());
        for place in places.iter().filter(|place| place.wanted || !place.pods.is_empty()) {
            match place.split() {
                Some((Some(new), None)) => unavailable += i64::from(!new.ready),
                Some((None, Some(old))) if !old.ready => {
                    plan.delete.push(old.key.clone());
                    unavailable += 1;
                }
                Some((None, Some(old))) if unavailable < self.unavailable => candidates.push(old.key.clone()),
                Some((None, Some(_))) => {}
                None | Some((None, None) | (Some(_), Some(_))) => unavailable += 1,
            }
        }
        let allowed = usize::try_from(self.unavailable - unavailable).unwrap_or(0);
        plan.delete.extend(candidates.into_iter().take(allowed));
        plan
    }

    /// The update that makes a new pod beside the old one.
    fn surge(&self, places: &[Place]) -> Plan {
        let (mut surging, mut candidates, mut plan) = (0, Vec::new(), Plan::default());
        for place in places.iter().filter(|place| place.wanted || !place.pods.is_empty()) {
            match place.split() {
                Some((_, None)) => {}
                Some((None, Some(old))) if !place.wanted && !old.ready => plan.delete.push(old.key.clone()),
                Some((None, Some(old))) if !old.ready => plan.create.push(place.node.clone()),
                Some((None, Some(_))) if place.wanted && surging < self.surge => candidates.push(place.node.clone()),
                Some((None, Some(_))) => {}
                Some((Some(new), Some(old))) if new.ready => plan.delete.push(old.key.clone()),
                None | Some((Some(_), Some(_))) => surging += 1,
            }
        }
        let allowed = usize::try_from(self.surge - surging).unwrap_or(0);
        plan.create.extend(candidates.into_iter().take(allowed));
        plan
    }

    fn pod(&self, node: &str) -> Value {
        let mut pod = pod_of(self.set);
        pod["metadata"]["labels"][REVISION_LABEL] = json!(self.hash);
        if let Some(generation) = self.set["metadata"]["annotations"].get(TEMPLATE_GENERATION) {
            pod["metadata"]["labels"][GENERATION_LABEL] = generation.clone();
        }
        bind(&mut pod, node);
        pod
    }
}

/// The pods that a node has too many while an update may make a second one: it keeps an old one that is ready until the new one is, too.
fn excess(place: &Place) -> Vec<Key> {
    let (new, old): (Vec<&Daemon>, Vec<&Daemon>) = place.alive().partition(|pod| pod.updated);
    let mut excess: Vec<Key> = new.iter().skip(1).chain(old.iter().skip(1)).map(|pod| pod.key.clone()).collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (new.ready || !old.ready)
    {
        excess.push(old.key.clone());
    }
    excess
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::{KubernetesStandIn, Options, PodFate};

    const SHOP: &str = "shop";

    fn apply(cluster: &KubernetesStandIn, image: &str, strategy: &Value, pod: &Value) {
        let mut spec = json!({"containers": [{"name": "log", "image": image}]});
        for (field, value) in pod.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let template = json!({"metadata": {"labels": {"app": "log"}}, "spec": spec});
        let selector = json!({"matchLabels": {"app": "log"}});
        let set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": SHOP, "name": "log"},
            "spec": {"selector": selector, "template": template, "updateStrategy": strategy},
        });
        cluster.apply(set).unwrap();
    }

    fn running(strategy: &Value, pod: &Value) -> KubernetesStandIn {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "log:1", strategy, pod);
        cluster.settle();
        cluster
    }

    fn status(cluster: &KubernetesStandIn, field: &str) -> i64 {
        cluster.get(Kind::DaemonSet, SHOP, "log").unwrap()["status"][field].as_i64().unwrap_or(0)
    }

    /// Nodes with a pod, with an updated pod, with a ready pod, without an available pod.
    fn counts(cluster: &KubernetesStandIn) -> [i64; 4] {
        ["currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberUnavailable"]
            .map(|field| status(cluster, field))
    }

    fn walk(cluster: &KubernetesStandIn) -> Vec<[i64; 4]> {
        let mut walked = Vec::new();
        while cluster.step() > 0 {
            walked.push(counts(cluster));
        }
        walked.dedup();
        walked
    }

    /// The node and the image of each pod.
    fn places(cluster: &KubernetesStandIn) -> Vec<String> {
        let place = |pod: &Value| format!("{} {}", text(pod, "/spec/nodeName"), text(pod, "/spec/containers/0/image"));
        let mut places: Vec<String> = cluster.list(Kind::Pod, SHOP).iter().map(place).collect();
        places.sort();
        places
    }

    #[test]
    fn each_node_gets_a_pod_and_an_update_takes_one_node_after_the_other() {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "log:1", &json!({}), &json!({}));
        assert_eq!(walk(&cluster), [[0, 0, 0, 2], [2, 2, 0, 2], [2, 2, 1, 1], [2, 2, 2, 0]]);
        assert_eq!(places(&cluster), ["node-1 log:1", "node-2 log:1"]);
        let pod = cluster.list(Kind::Pod, SHOP).remove(0);
        let labels = &pod["metadata"]["labels"];
        assert_eq!((&labels[GENERATION_LABEL], text(labels, "/controller-revision-hash").len()), (&json!("1"), 10));
        apply(&cluster, "log:2", &json!({}), &json!({}));
        let first = [[2, 0, 2, 0], [1, 0, 1, 1], [2, 1, 1, 1], [2, 1, 2, 0]];
        let second = [[1, 1, 1, 1], [2, 2, 1, 1], [2, 2, 2, 0]];
        assert_eq!(walk(&cluster), [&first[..], &second[..]].concat());
        assert_eq!(places(&cluster), ["node-1 log:2", "node-2 log:2"]);
        let set = cluster.get(Kind::DaemonSet, SHOP, "log").unwrap();
        assert_eq!(set["metadata"]["annotations"][TEMPLATE_GENERATION], "2");
        assert_eq!((status(&cluster, "observedGeneration"), status(&cluster, "numberMisscheduled")), (2, 0));
        let version = cluster.version();
        cluster.settle();
        assert_eq!(cluster.version(), version, "a cluster at rest writes nothing");
        cluster.delete(Kind::DaemonSet, SHOP, "log").unwrap();
        cluster.settle();
        assert!(places(&cluster).is_empty());
    }

    #[test]
    fn bounds_of_an_update_are_kept_and_a_surge_makes_the_new_pod_first() {
        let strategy = |bounds: Value| json!({"type": "RollingUpdate", "rollingUpdate": bounds});
        let both = strategy(json!({"maxUnavailable": "100%"}));
        let cluster = running(&both, &json!({}));
        apply(&cluster, "log:2", &both, &json!({}));
        assert!(walk(&cluster).contains(&[0, 0, 0, 2]), "both are gone at once");
        let surge = strategy(json!({"maxUnavailable": 0, "maxSurge": 1}));
        let cluster = running(&surge, &json!({}));
        apply(&cluster, "log:2", &surge, &json!({}));
        let mut most = 0;
        while cluster.step() > 0 {
            let alive = cluster.list(Kind::Pod, SHOP).iter().filter(|pod| !is_ending(pod)).count();
            most = most.max(alive);
            assert_eq!(counts(&cluster)[2], 2, "every node has a pod that is ready");
        }
        assert_eq!((most, counts(&cluster)), (3, [2, 2, 2, 0]));
        assert_eq!(places(&cluster), ["node-1 log:2", "node-2 log:2"]);
        cluster.set_fate("log:3", Some(PodFate::CannotPull));
        apply(&cluster, "log:3", &surge, &json!({}));
        cluster.settle();
        assert_eq!(places(&cluster), ["node-1 log:2", "node-1 log:3", "node-2 log:2"], "an old pod stays until then");
    }

    #[test]
    fn on_delete_replaces_only_what_is_deleted() {
        let cluster = running(&json!({"type": "OnDelete"}), &json!({}));
        apply(&cluster, "log:2", &json!({"type": "OnDelete"}), &json!({}));
        cluster.settle();
        assert_eq!((counts(&cluster), status(&cluster, "observedGeneration")), ([2, 0, 2, 0], 2));
        let name = text(&cluster.list(Kind::Pod, SHOP)[0], "/metadata/name").to_owned();
        cluster.delete(Kind::Pod, SHOP, &name).unwrap();
        cluster.settle();
        assert_eq!(counts(&cluster), [2, 1, 2, 0]);
    }

    #[test]
    fn a_broken_image_stops_the_update_at_its_bound_until_it_heals() {
        let cluster = running(&json!({}), &json!({}));
        cluster.set_fate("log:2", Some(PodFate::CannotPull));
        apply(&cluster, "log:2", &json!({}), &json!({}));
        cluster.settle();
        assert_eq!(counts(&cluster), [2, 1, 1, 1]);
        apply(&cluster, "log:3", &json!({}), &json!({}));
        cluster.settle();
        assert_eq!((counts(&cluster), places(&cluster)[0].as_str()), ([2, 2, 2, 0], "node-1 log:3"));
        cluster.set_fate("log:2", None);
        apply(&cluster, "log:2", &json!({}), &json!({}));
        cluster.settle();
        assert_eq!((counts(&cluster), places(&cluster)[0].as_str()), ([2, 2, 2, 0], "node-1 log:2"));
    }

    #[test]
    fn only_nodes_with_the_labels_get_a_pod_and_a_node_that_goes_takes_its_pod_along() {
        let disk = json!({"nodeSelector": {"disk": "ssd"}});
        let cluster = running(&json!({}), &disk);
        assert_eq!((status(&cluster, "desiredNumberScheduled"), status(&cluster, "observedGeneration")), (0, 1));
        let [one, two] = ["node-1", "node-2"].map(Node::new);
        cluster.set_nodes(vec![one.clone(), two.labelled("disk", "ssd")]);
        cluster.settle();
        assert_eq!((counts(&cluster), places(&cluster)), ([1, 1, 1, 0], vec!["node-2 log:1".to_owned()]));
        cluster.set_nodes(vec![one]);
        cluster.settle();
        assert_eq!((status(&cluster, "desiredNumberScheduled"), places(&cluster).len()), (0, 0));
    }

    #[test]
    fn on_a_node_that_does_not_answer_a_deleted_pod_stays_and_holds_the_update() {
        // Most agents that run as DaemonSets tolerate everything.
        let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
        for (pod, desired, misscheduled) in [(json!({}), 1, 1), (tolerant, 2, 0)] {
            let cluster = running(&json!({}), &pod);
            let [one, two] = ["node-1", "node-2"].map(Node::new);
            cluster.set_nodes(vec![one.clone(), two.clone().silent()]);
            cluster.settle();
            assert_eq!(status(&cluster, "desiredNumberScheduled"), desired);
            assert_eq!(status(&cluster, "numberMisscheduled"), misscheduled);
            assert_eq!((status(&cluster, "numberReady"), places(&cluster).len()), (1, 2));
            apply(&cluster, "log:2", &json!({}), &pod);
            cluster.run_for(Duration::from_secs(3_600));
            let ending: Vec<Value> = cluster.list(Kind::Pod, SHOP).into_iter().filter(is_ending).collect();
            assert!(ending.len() == 1 && !holds(&ending[0], "Ready"), "the old pod there ends for ever");
            assert_eq!(places(&cluster), ["node-1 log:1", "node-2 log:1"], "and no other may be missing meanwhile");
            cluster.set_nodes(vec![one, two]);
            cluster.settle();
            assert_eq!((counts(&cluster), places(&cluster).len()), ([2, 2, 2, 0], 2));
        }
    }

    #[test]
    fn a_seeded_set_rests_until_it_is_changed() {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "log:1", &json!({}), &json!({}));
        let done = json!({
            "observedGeneration": 1, "desiredNumberScheduled": 5, "updatedNumberScheduled": 5, "numberAvailable": 5,
        });
        cluster.patch(Kind::DaemonSet, SHOP, "log", &json!({"status": done})).unwrap();
        cluster.settle();
        assert_eq!((status(&cluster, "numberAvailable"), places(&cluster).len()), (5, 0));
        apply(&cluster, "log:2", &json!({}), &json!({}));
        cluster.settle();
        assert_eq!((counts(&cluster), places(&cluster).len()), ([2, 2, 2, 0], 2));
    }
}

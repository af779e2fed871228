//! StatefulSets: pods with names that are used again.
//!
//! Rules follow `pkg/controller/statefulset` (Kubernetes 1.33), oddities included: with OrderedReady a pod of a former template that never
//! becomes ready is not replaced by itself (kubernetes#67250), and `currentReplicas` goes down with each pod that an update deletes. As
//! the real controller reads a cache, this one sees the pods as they were before the kubelets moved in the same step. Left out: volume
//! claims, `minReadySeconds`, `maxUnavailable` (its gate is off by default), ControllerRevision objects, adoption of pods, failed pods.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::pods::{Round, pod_of};
use super::workload::{Revisions, delete_pod, template_hash};
use super::{Controller, Moment};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, holds, is_ending, number, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Writer};

/// The label with the name of a pod's revision.
const REVISION_LABEL: &str = "controller-revision-hash";

/// The counts of one that is done: as many as its spec wants.
const SETTLED: [&str; 3] = ["replicas", "updatedReplicas", "availableReplicas"];

/// A pod as the controller last saw it.
#[derive(Debug)]
struct Replica {
    key: Key,
    ordinal: i64,
    revision: String,
    /// Runs and is ready, and so available.
    ready: bool,
    ending: bool,
}

/// What a StatefulSet asks for.
#[derive(Debug)]
struct Wish<'a> {
    set: &'a Value,
    replicas: i64,
    /// The ordinal of the first pod, 0 unless the spec says otherwise.
    start: i64,
    /// The update strategy, unless it is OnDelete.
    rolling: bool,
    partition: Option<i64>,
    /// Whether pods are made and deleted one after another.
    ordered: bool,
    /// The names of the revisions.
    current: String,
    update: String,
}

/// Moves one StatefulSet a step on; returns when to look again.
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
    let pods = seen(writer, set);
    let settled = (number(&value, "/spec/replicas"), &SETTLED[..]);
    if !controller.begin_set(writer, &value, !pods.is_empty(), settled, &mut round)? {
        return Ok(round.next);
    }
    let revisions = controller.revisions.entry(set.uid.clone()).or_default();
    let wish = Wish::of(&value, revisions);
    let template = value.pointer("/spec/template").cloned().unwrap_or_default();
    revisions.insert(wish.update.clone(), template);
    let mut status = wish.status(&pods);
    if !is_ending(&value) {
        let deleted = sync(controller, writer, &wish, &pods, &mut round)?;
        status["currentReplicas"] = json!(number(&status, "/currentReplicas").unwrap_or(0) - deleted);
    }
    wish.complete(&mut status);
    if value.get("status") != Some(&status) {
        let mut object = value.clone();
        object["status"] = status;
        writer.state.put(Kind::StatefulSet, object);
    }
    Ok(round.next)
}

/// The pods of a set in the order of their ordinals.
fn seen(writer: &Writer<'_>, set: &Object) -> Vec<Replica> {
    let pods = writer.state.children(&set.uid).into_iter().filter(|object| object.kind == Kind::Pod);
    let replica = |pod: Arc<Object>| {
        let value = pod.value();
        Some(Replica {
            key: pod.key.clone(),
            ordinal: pod.key.name.strip_prefix(&set.key.name)?.strip_prefix('-')?.parse().ok()?,
            revision: pod.labels.get(REVISION_LABEL).cloned().unwrap_or_default(),
            ready: text(&value, "/status/phase") == "Running" && holds(&value, "Ready"),
            ending: is_ending(&value),
        })
    };
    let mut replicas: Vec<Replica> = pods.filter_map(replica).collect();
    replicas.sort_by_key(|replica| replica.ordinal);
    replicas
}

/// Makes and deletes pods as far as the order allows; returns how many were deleted to be updated.
fn sync(
    controller: &mut Controller,
    writer: &mut Writer<'_>,
    wish: &Wish<'_>,
    pods: &[Replica],
    round: &mut Round<'_>,
) -> Result<i64, Failure> {
    let ordinals = wish.start..wish.start + wish.replicas;
    for ordinal in ordinals.clone() {
        match pods.iter().find(|pod| pod.ordinal == ordinal) {
            None => {
                let pod = wish.pod(controller.revisions.get(round.uid), ordinal);
                controller.start_pod(writer, text(wish.set, "/metadata/namespace"), pod, round)?;
            }
            Some(pod) if pod.is_healthy() => continue,
            Some(_) => {}
        }
        if wish.ordered {
            return Ok(0);
        }
    }
    let (kept, condemned): (Vec<&Replica>, Vec<&Replica>) =
        pods.iter().partition(|pod| ordinals.contains(&pod.ordinal));
    let first_unhealthy = condemned.iter().find(|pod| !pod.is_healthy()).map(|pod| pod.ordinal);
    for pod in condemned.iter().rev() {
        let waits = wish.ordered && !pod.ready && first_unhealthy != Some(pod.ordinal);
        if !pod.ending && !waits {
            delete_pod(writer, &pod.key, &DeleteOptions::default())?;
        }
        if wish.ordered {
            return Ok(0);
        }
    }
    if !wish.rolling {
        return Ok(0);
    }
    let updated_from = wish.start + wish.partition.unwrap_or(0);
    for ordinal in ordinals.rev().take_while(|ordinal| *ordinal >= updated_from) {
        // One that was just made is not ready.
        let Some(pod) = kept.iter().find(|pod| pod.ordinal == ordinal) else { return Ok(0) };
        if pod.revision != wish.update && !pod.ending {
            delete_pod(writer, &pod.key, &DeleteOptions::default())?;
            return Ok(1);
        }
        if !pod.is_healthy() {
            return Ok(0);
        }
    }
    Ok(0)
}

impl Replica {
    fn is_healthy(&self) -> bool {
        self.ready && !self.ending
    }
}

impl<'a> Wish<'a> {
    fn of(set: &'a Value, revisions: &Revisions) -> Wish<'a> {
        let update = format!("{}-{}", text(set, "/metadata/name"), template_hash(set));
        let current = text(set, "/status/currentRevision");
        // One that is not known any more counts as the newest.
        let current = if revisions.contains_key(current) { current.to_owned() } else { update.clone() };
        Wish {
            set,
            replicas: number(set, "/spec/replicas").unwrap_or(1),
            start: number(set, "/spec/ordinals/start").unwrap_or(0),
            rolling: text(set, "/spec/updateStrategy/type") != "OnDelete",
            partition: number(set, "/spec/updateStrategy/rollingUpdate/partition"),
            ordered: text(set, "/spec/podManagementPolicy") != "Parallel",
            current,
            update,
        }
    }

    /// The pod of this ordinal. Below the partition it has the current revision; so it has without a partition while as many pods are
    /// said to have it.
    fn pod(&self, revisions: Option<&Revisions>, ordinal: i64) -> Value {
        let current = self.partition.or(number(self.set, "/status/currentReplicas").filter(|_| self.rolling));
        let revision = if ordinal < self.start + current.unwrap_or(0) { &self.current } else { &self.update };
        let mut set = self.set.clone();
        if let Some(template) = revisions.and_then(|revisions| revisions.get(revision)) {
            set["spec"]["template"] = template.clone();
        }
        let mut pod = pod_of(&set);
        let name = format!("{}-{ordinal}", text(&set, "/metadata/name"));
        pod["metadata"]["labels"][REVISION_LABEL] = json!(revision);
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        pod["spec"]["hostname"] = json!(name);
        if let Some(service) = self.set.pointer("/spec/serviceName") {
            pod["spec"]["subdomain"] = service.clone();
        }
        pod["metadata"]["name"] = json!(name);
        pod
    }

    fn status(&self, pods: &[Replica]) -> Value {
        let count = |counts: &dyn Fn(&Replica) -> bool| pods.iter().filter(|pod| counts(pod)).count();
        let ready = count(&|pod| pod.ready);
        json!({
            "observedGeneration": self.set.pointer("/metadata/generation"), "replicas": pods.len(),
            "readyReplicas": ready, "availableReplicas": ready,
            "currentReplicas": count(&|pod| pod.revision == self.current && !pod.ending),
            "updatedReplicas": count(&|pod| pod.revision == self.update && !pod.ending),
            "currentRevision": self.current, "updateRevision": self.update,
            "collisionCount": number(self.set, "/status/collisionCount").unwrap_or(0),
        })
    }

    /// Ends an update that is complete, and leaves out what Go's `omitempty` does.
    fn complete(&self, status: &mut Value) {
        let done = ["replicas", "readyReplicas", "updatedReplicas"];
        if self.rolling && done.iter().all(|field| status.get(field) == Some(&json!(self.replicas))) {
            status["currentReplicas"] = json!(self.replicas);
            status["currentRevision"] = json!(self.update);
        }
        for field in ["readyReplicas", "currentReplicas", "updatedReplicas"] {
            if let Some(fields) = status.as_object_mut().filter(|fields| fields.get(field) == Some(&json!(0))) {
                fields.remove(field);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::{KubernetesStandIn, Options, PodFate};

    const SHOP: &str = "shop";

    fn apply(cluster: &KubernetesStandIn, image: &str, replicas: u32, more: &Value) {
        let mut spec = json!({
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": image}]},
            },
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let metadata = json!({"namespace": SHOP, "name": "db"});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec});
        cluster.apply(set).unwrap();
    }

    /// A cluster with a StatefulSet of this many pods that is complete.
    fn running(replicas: u32, more: &Value) -> KubernetesStandIn {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "db:1", replicas, more);
        cluster.settle();
        cluster
    }

    fn status(cluster: &KubernetesStandIn) -> Value {
        cluster.get(Kind::StatefulSet, SHOP, "db").unwrap()["status"].take()
    }

    /// Pods, ready, of the current revision, of the update revision.
    fn counts(cluster: &KubernetesStandIn) -> [i64; 4] {
        let status = status(cluster);
        ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"].map(|f| status[f].as_i64().unwrap_or(0))
    }

    /// The image of each pod, by name.
    fn images(cluster: &KubernetesStandIn) -> Vec<(String, String)> {
        let pods = cluster.list(Kind::Pod, SHOP);
        let image = |pod: &Value| text(pod, "/spec/containers/0/image").to_owned();
        pods.iter().map(|pod| (text(pod, "/metadata/name").to_owned(), image(pod))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, image)| ((*name).to_owned(), (*image).to_owned())).collect()
    }

    fn is_updated(cluster: &KubernetesStandIn) -> bool {
        let status = status(cluster);
        status["currentRevision"] == status["updateRevision"]
    }

    /// The counts after each step, as long as there is something to do, without repetitions.
    fn walk(cluster: &KubernetesStandIn) -> Vec<[i64; 4]> {
        let mut walked = Vec::new();
        while cluster.step() > 0 {
            walked.push(counts(cluster));
        }
        walked.dedup();
        walked
    }

    #[test]
    fn pods_are_made_in_order_and_have_names_of_their_own() {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "db:1", 2, &json!({}));
        assert_eq!(
            walk(&cluster),
            [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1], [2, 1, 2, 2], [2, 2, 2, 2]],
            "the second pod waits for the first"
        );
        let (pod, status) = (cluster.get(Kind::Pod, SHOP, "db-1").unwrap(), status(&cluster));
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["controller-revision-hash"], status["updateRevision"]);
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-1");
        assert_eq!(labels["apps.kubernetes.io/pod-index"], "1");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
        assert!(text(&status, "/updateRevision").starts_with("db-") && is_updated(&cluster));
        assert_eq!((&status["collisionCount"], &status["observedGeneration"]), (&json!(0), &json!(1)));
        let version = cluster.version();
        cluster.settle();
        assert_eq!(cluster.version(), version, "a cluster at rest writes nothing");
    }

    #[test]
    fn a_rolling_update_goes_from_the_highest_ordinal_down_and_keeps_the_names() {
        let cluster = running(2, &json!({}));
        let uid = |name: &str| cluster.get(Kind::Pod, SHOP, name).map(|pod| text(&pod, "/metadata/uid").to_owned());
        let before = uid("db-1");
        apply(&cluster, "db:2", 2, &json!({}));
        assert_eq!(status(&cluster)["observedGeneration"], 1);
        let mut walked = Vec::new();
        while cluster.step() > 0 {
            walked.push(counts(&cluster));
            assert_eq!(is_updated(&cluster), counts(&cluster) == [2, 2, 2, 2], "it lags until the end");
        }
        walked.dedup();
        let first = [[2, 2, 1, 0], [1, 1, 1, 0], [2, 1, 1, 1]];
        let second = [[2, 2, 0, 1], [1, 1, 0, 1], [2, 1, 0, 2], [2, 2, 2, 2]];
        assert_eq!(walked, [&first[..], &second[..]].concat());
        assert_eq!(images(&cluster), pairs(&[("db-0", "db:2"), ("db-1", "db:2")]));
        assert_ne!(uid("db-1"), before);
    }

    #[test]
    fn below_the_partition_pods_stay_at_the_current_revision_even_when_made_again() {
        let cluster = running(3, &json!({}));
        let partition = |from: u32| json!({"updateStrategy": {"rollingUpdate": {"partition": from}}});
        apply(&cluster, "db:2", 3, &partition(2));
        cluster.settle();
        assert_eq!(counts(&cluster), [3, 3, 2, 1]);
        cluster.delete(Kind::Pod, SHOP, "db-0").unwrap();
        cluster.settle();
        assert_eq!(images(&cluster), pairs(&[("db-0", "db:1"), ("db-1", "db:1"), ("db-2", "db:2")]));
        assert!(!is_updated(&cluster));
        apply(&cluster, "db:2", 3, &partition(0));
        cluster.settle();
        assert_eq!((counts(&cluster), is_updated(&cluster)), ([3, 3, 3, 3], true));
    }

    #[test]
    fn on_delete_replaces_only_what_is_deleted_and_never_completes() {
        let cluster = running(2, &json!({"updateStrategy": {"type": "OnDelete"}}));
        apply(&cluster, "db:2", 2, &json!({"updateStrategy": {"type": "OnDelete"}}));
        cluster.settle();
        assert_eq!(counts(&cluster), [2, 2, 2, 0]);
        for (name, expected) in [("db-0", [2, 2, 1, 1]), ("db-1", [2, 2, 0, 2])] {
            cluster.delete(Kind::Pod, SHOP, name).unwrap();
            cluster.settle();
            assert_eq!((counts(&cluster), is_updated(&cluster)), (expected, false));
        }
    }

    /// kubernetes#67250.
    #[test]
    fn in_order_a_broken_pod_is_replaced_only_after_its_deletion() {
        for (policy, heals) in [("OrderedReady", false), ("Parallel", true)] {
            let more = json!({"podManagementPolicy": policy});
            let cluster = running(2, &more);
            cluster.set_fate("db:2", Some(PodFate::CannotPull));
            apply(&cluster, "db:2", 2, &more);
            cluster.settle();
            assert_eq!(counts(&cluster), [2, 1, 1, 1]);
            apply(&cluster, "db:3", 2, &more);
            cluster.settle();
            assert_eq!(images(&cluster)[1].1 == "db:3", heals, "{policy}");
            assert_eq!(counts(&cluster) == [2, 2, 2, 2], heals, "{policy}");
            cluster.delete(Kind::Pod, SHOP, "db-1").unwrap();
            cluster.settle();
            assert_eq!((counts(&cluster), is_updated(&cluster)), ([2, 2, 2, 2], true));
        }
    }

    #[test]
    fn a_broken_pod_heals_with_its_image_and_the_update_goes_on() {
        let cluster = running(2, &json!({}));
        cluster.set_fate("db:2", Some(PodFate::CannotPull));
        apply(&cluster, "db:2", 2, &json!({}));
        cluster.settle();
        assert_eq!(images(&cluster), pairs(&[("db-0", "db:1"), ("db-1", "db:2")]));
        cluster.set_fate("db:2", None);
        cluster.settle();
        assert_eq!((counts(&cluster), is_updated(&cluster)), ([2, 2, 2, 2], true));
    }

    #[test]
    fn in_parallel_all_pods_are_made_at_once_and_in_order_they_go_from_the_end() {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "db:1", 3, &json!({"podManagementPolicy": "Parallel"}));
        cluster.step();
        assert_eq!(images(&cluster).len(), 3);
        let cluster = running(3, &json!({}));
        apply(&cluster, "db:1", 1, &json!({}));
        cluster.step();
        let ending = |name: &str| is_ending(&cluster.get(Kind::Pod, SHOP, name).unwrap());
        assert!(ending("db-2") && !ending("db-1"));
        cluster.settle();
        assert_eq!((counts(&cluster), images(&cluster)), ([1, 1, 1, 1], pairs(&[("db-0", "db:1")])));
        cluster.delete(Kind::StatefulSet, SHOP, "db").unwrap();
        cluster.settle();
        assert_eq!(images(&cluster), []);
    }

    #[test]
    fn a_seeded_set_rests_until_it_is_changed() {
        let cluster = KubernetesStandIn::new(Options::default());
        apply(&cluster, "db:1", 1, &json!({}));
        let seeded = json!({
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "currentRevision": "a", "updateRevision": "a",
        });
        cluster.patch(Kind::StatefulSet, SHOP, "db", &json!({"status": seeded})).unwrap();
        cluster.settle();
        assert_eq!((status(&cluster), images(&cluster)), (seeded, Vec::new()));
        apply(&cluster, "db:2", 1, &json!({}));
        cluster.settle();
        assert_eq!((counts(&cluster), images(&cluster)), ([1, 1, 1, 1], pairs(&[("db-0", "db:2")])));
    }
}

//! A Deployment's JSON, reduced to the [`Workload`] that decisions use.
//!
//! Only used fields are decoded: of the 6 to 20 KiB of a Deployment, most of it `managedFields` and
//! `last-applied-configuration`, some hundred bytes are kept. Absent and `null` mean the same everywhere, as in Kubernetes.
//!
//! Not for judging what was read; that is [`domain`].

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::parts::{Annotations, Condition, annotations, explained};
use kernel::id::WorkloadId;
use kernel::names::image::{Container, Image, Version};
use kernel::names::selector::{LabelSelector, Labels};
use kernel::reported::{Progressing, Replicas};
use kernel::unreadable::Unreadable;
use purge::workloads::workload::{ANNOTATION_PREFIX, NoVersion, Tuning, Workload, own_deadline, recordable};

/// Most of the message of a `ReplicaFailure` condition that is repeated. A quota's begins with the pod's name and ends with what is
/// requested, used and limited: about 150 characters for one resource.
const REFUSAL_CHARS_MAX: usize = 200;

/// Reads a Deployment.
///
/// # Errors
/// When a field that is used has another type than Kubernetes gives it.
pub fn deployment(json: &str) -> Result<Workload, Unreadable> {
    let raw: Deployment = serde_json::from_str(json)?;
    let Deployment { metadata, spec, status } = raw;
    let status = status.unwrap_or_default();
    let annotations = metadata.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut tuning = Tuning::read(annotations);
    tuning.own_deadline = own_deadline(spec.progress_deadline_seconds.map(count), spec.min_ready_seconds.map(count));
    let version = spec.template.spec.version(tuning.containers.as_ref()).map(|all| chosen(all, &mut tuning));
    let version = version.and_then(recordable);
    Ok(Workload {
        id: WorkloadId::deployment(metadata.namespace, metadata.name),
        uid: metadata.uid,
        // One without a time takes no name from another.
        created: metadata.creation_timestamp.unwrap_or_else(|| "9999".to_owned()),
        generation: metadata.generation.unwrap_or_default(),
        observed_generation: status.observed_generation.unwrap_or_default(),
        version,
        replicas: Replicas {
            desired: spec.replicas.map_or(1, count),
            total: status.replicas.map_or(0, count),
            updated: status.updated_replicas.map_or(0, count),
            ready: status.ready_replicas.map_or(0, count),
            available: status.available_replicas.map_or(0, count),
        },
        paused: spec.paused.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        refused: status.refused(),
        progressing: status.progressing(),
        selector: spec.selector,
        template_labels: spec.template.metadata.and_then(|metadata| metadata.labels).unwrap_or_default(),
        tuning,
    })
}

/// Only the containers the owner asked for. Names of containers that are not there are a fault of the annotation, which
/// then does not hold: a typing error must not make every change invisible.
fn chosen(all: Version, tuning: &mut Tuning) -> Version {
    let Some(names) = &tuning.containers else { return all };
    match all.only(names) {
        Ok(version) => version,
        Err(error) => {
            tuning.fault(|| format!("annotation {ANNOTATION_PREFIX}containers: {error}"));
            tuning.containers = None;
            all
        }
    }
}

#[derive(Deserialize)]
struct Deployment {
    metadata: Metadata,
    spec: Spec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    creation_timestamp: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "own_annotations")]
    annotations: Annotations,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    paused: Option<bool>,
    progress_deadline_seconds: Option<i64>,
    min_ready_seconds: Option<i64>,
    selector: LabelSelector,
    template: Template,
}

#[derive(Deserialize)]
struct Template {
    metadata: Option<TemplateMetadata>,
    spec: PodSpec,
}

#[derive(Deserialize)]
struct TemplateMetadata {
    labels: Option<Labels>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: Option<i64>,
    replicas: Option<i64>,
    updated_replicas: Option<i64>,
    ready_replicas: Option<i64>,
    available_replicas: Option<i64>,
    conditions: Option<Vec<Condition>>,
}

impl Status {
    /// Why the ReplicaSets cannot make their pods: `FailedCreate: pods "web-7c9-" is forbidden: exceeded quota: …`.
    fn refused(&self) -> Option<String> {
        let failed = |condition: &&Condition| condition.kind == "ReplicaFailure" && condition.holds();
        let condition = self.conditions.iter().flatten().find(failed)?;
        let reason = condition.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("ReplicaFailure");
        Some(explained(reason, condition.message.as_deref(), REFUSAL_CHARS_MAX))
    }

    fn progressing(self) -> Option<Progressing> {
        let condition = self.conditions?.into_iter().find(|condition| condition.kind == "Progressing")?;
        Some(Progressing {
            reason: condition.reason.unwrap_or_default(),
            last_update: condition.last_update_time.unwrap_or_default(),
        })
    }
}

/// The containers of a pod or of a pod template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodSpec {
    containers: Vec<ContainerSpec>,
    init_containers: Option<Vec<ContainerSpec>>,
}

#[derive(Deserialize)]
struct ContainerSpec {
    name: String,
    image: Option<String>,
}

impl PodSpec {
    /// The version these containers make. An image that cannot be read matters only if its container does: all do, unless
    /// `only` names some.
    pub fn version(self, only: Option<&BTreeSet<String>>) -> Result<Version, NoVersion> {
        let main = self.containers.into_iter().map(|spec| (Container::Main(spec.name), spec.image));
        let init = self.init_containers.into_iter().flatten();
        let init = init.map(|spec| (Container::Init(spec.name), spec.image));
        let mut images = Vec::new();
        for (container, image) in main.chain(init) {
            match Image::parse(image.as_deref().unwrap_or_default()) {
                Ok(image) => images.push((container, image)),
                Err(_) if only.is_some_and(|names| !names.contains(container.name())) => {}
                Err(error) => return Err(NoVersion::Image(container, Box::new(error))),
            }
        }
        Ok(images.into_iter().collect())
    }
}

/// A count of pods; a negative one never comes from Kubernetes.
fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

fn own_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Annotations, D::Error> {
    annotations(deserializer, |key| key.starts_with(ANNOTATION_PREFIX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use serde_json::{Value, json};

    fn example() -> Value {
        json!({
            "metadata": {
                "namespace": "shop", "name": "web", "uid": "u-1", "generation": 4, "resourceVersion": "99",
                "labels": {"unused": "x"},
                "annotations": {
                    "allclear.dev/hosts": "www.example.com",
                    "deployment.kubernetes.io/revision": "7",
                    "kubectl.kubernetes.io/last-applied-configuration": "{\"a\":1}",
                },
            },
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web", "tier": "front"}},
                    "spec": {
                        "containers": [{"name": "web", "image": "shop/web:1.2"}, {"name": "proxy", "image": "envoy:1"}],
                        "initContainers": [{"name": "migrate", "image": "shop/migrate:1.2"}],
                    },
                },
            },
            "status": {
                "observedGeneration": 4, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3,
                "conditions": [
                    {"type": "Available", "status": "True"},
                    {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "lastUpdateTime": "t1"},
                ],
            },
        })
    }

    /// The example with one field replaced.
    fn with(pointer: &str, value: Value) -> Result<Workload, Unreadable> {
        let mut object = example();
        *object.pointer_mut(pointer).unwrap() = value;
        deployment(&object.to_string())
    }

    #[test]
    fn every_field_that_decisions_use_is_read() {
        let workload = deployment(&example().to_string()).unwrap();
        assert_eq!(workload.id, WorkloadId::deployment("shop", "web"));
        assert_eq!((workload.uid.as_str(), workload.generation, workload.observed_generation), ("u-1", 4, 4));
        assert_eq!(workload.replicas, Replicas { desired: 3, total: 3, updated: 2, ready: 3, available: 3 });
        assert_eq!(workload.version.unwrap().iter().len(), 3);
        assert_eq!(
            workload.progressing,
            Some(Progressing { reason: "ReplicaSetUpdated".into(), last_update: "t1".into() })
        );
        assert!(workload.selector.matches(&workload.template_labels));
        assert_eq!(workload.tuning.hosts.map(|hosts| hosts.len()), Some(1));
        assert_eq!(workload.tuning.faults, Vec::<String>::new());
        assert!(!workload.paused && !workload.deleting);
    }

    // Faults: P4
    #[test]
    fn why_pods_are_not_made_is_read_with_the_beginning_of_the_message() {
        let refused = |status: &str, message: String| {
            let failure =
                json!({"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": message});
            with("/status/conditions", json!([{"type": "Available", "status": "True"}, failure])).unwrap().refused
        };
        let quota =
            "pods \"web-7c9-\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2";
        assert_eq!(refused("True", quota.to_owned()), Some(format!("FailedCreate: {quota}")));
        assert_eq!(refused("False", quota.to_owned()), None);
        let long = refused("True", "ü".repeat(5_000)).unwrap();
        assert_eq!(long.chars().count(), "FailedCreate: ".len() + REFUSAL_CHARS_MAX + 1);
    }

    #[test]
    fn absent_and_null_mean_the_same() {
        for status in [json!(null), json!({}), json!({"conditions": null, "replicas": null})] {
            let workload = with("/status", status).unwrap();
            assert_eq!((workload.observed_generation, workload.progressing), (0, None));
            assert_eq!(workload.replicas, Replicas { desired: 3, ..Replicas::default() });
        }
        assert_eq!(with("/spec/replicas", json!(null)).unwrap().replicas.desired, 1);
        let tuning = Tuning { own_deadline: Some(Duration::from_secs(600)), ..Tuning::default() };
        assert_eq!(with("/metadata/annotations", json!(null)).unwrap().tuning, tuning);
    }

    #[test]
    fn the_deadline_of_its_own_is_read_and_a_missing_one_is_none() {
        let own = |deadline: Value, min_ready: Value| {
            let mut object = example();
            object["spec"]["progressDeadlineSeconds"] = deadline;
            object["spec"]["minReadySeconds"] = min_ready;
            deployment(&object.to_string()).unwrap().tuning.own_deadline.map(|deadline| deadline.as_secs())
        };
        assert_eq!(own(json!(null), json!(null)), Some(600));
        assert_eq!(own(json!(3600), json!(120)), Some(3720));
        assert_eq!(own(json!(2_147_483_647), json!(120)), None, "no deadline");
    }

    #[test]
    fn a_field_of_the_wrong_type_makes_the_object_unreadable_in_words() {
        for (pointer, value) in [
            ("/spec/replicas", json!("three")),
            ("/status/conditions", json!("none")),
            ("/spec/template/spec/containers", json!(null)),
            ("/metadata/uid", json!(7)),
            ("/spec", json!(null)),
            ("/metadata/annotations", json!([])),
        ] {
            let error = with(pointer, value).unwrap_err().to_string();
            assert!(error.contains("invalid type"), "{pointer}: {error}");
        }
        // Nothing is decided from it, so it may be anything.
        assert!(with("/metadata/labels", json!(7)).is_ok());
    }

    #[test]
    fn an_image_that_cannot_be_read_is_a_fault_of_the_version_alone() {
        let workload = with("/spec/template/spec/containers/1/image", json!("envoy:1:2")).unwrap();
        let error = workload.version.unwrap_err().to_string();
        assert!(error.starts_with("container proxy: \"envoy:1:2\" is not an image reference"), "{error}");
    }

    #[test]
    fn only_the_containers_asked_for_make_the_version() {
        let mut object = example();
        object["metadata"]["annotations"] = json!({"allclear.dev/containers": "web"});
        object["spec"]["template"]["spec"]["containers"][1]["image"] = json!("not an image");
        let version = deployment(&object.to_string()).unwrap().version.unwrap();
        assert_eq!(version.to_string(), "web shop/web:1.2");
    }

    // Faults: T3
    #[test]
    fn a_version_too_large_for_a_record_is_a_fault_until_containers_are_chosen() {
        let mut object = example();
        let many: Vec<Value> =
            (0..900).map(|number| json!({"name": format!("c-{number}"), "image": "shop/web:1"})).collect();
        object["spec"]["template"]["spec"]["containers"] = json!(many);
        let why = deployment(&object.to_string()).unwrap().version.unwrap_err().to_string();
        assert!(why.contains("allclear.dev/containers"), "{why}");
        object["metadata"]["annotations"] = json!({"allclear.dev/containers": "c-7"});
        assert_eq!(deployment(&object.to_string()).unwrap().version.unwrap().to_string(), "c-7 shop/web:1");
    }

    #[test]
    fn a_container_that_is_not_there_is_a_fault_and_all_containers_count() {
        let workload = with("/metadata/annotations", json!({"allclear.dev/containers": "wbe"})).unwrap();
        assert_eq!(workload.version.unwrap().iter().len(), 3);
        assert_eq!(workload.tuning.containers, None);
        assert!(workload.tuning.faults[0].contains("no container is named wbe"), "{:?}", workload.tuning.faults);
    }
}

//! The JSON of a workload, reduced to the [`Workload`] that decisions use.
//!
//! Of the 6 to 20 KiB of one, most of it `managedFields` and `last-applied-configuration`, spec and status are read, and some hundred
//! bytes are kept. Absent and `null` mean the same everywhere, as in Kubernetes.
//!
//! Not for how its rollout stands; that is [`kinds`].

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::parts::{Annotations, annotations};
use kernel::id::{CustomKind, Kind, WorkloadId};
use kernel::names::image::{Beside, Container, Fields, Image, Version, VersionOf};
use kernel::names::selector::{LabelSelector, Labels};
use kernel::unreadable::Unreadable;
use kinds::object::{Object, dotted};
use kinds::{Own, Report, TEMPLATE_GENERATION, TemplateFrom, WORKLOAD_GENERATION};
use purge::workloads::template_of::TemplateOf;
use purge::workloads::workload::{ANNOTATION_PREFIX, NoVersion, Tuning, Workload, recordable};

/// What reads workloads of a kind, with versions of this beside images.
pub fn workload(kind: Kind, of: &VersionOf) -> impl Fn(&str) -> Result<Workload, Unreadable> + Send + Sync + use<> {
    let of = of.clone();
    move |json| read(kind, &of, json)
}

/// Reads a Deployment.
///
/// # Errors
/// When a field that is used has another type than Kubernetes gives it.
pub fn deployment(json: &str) -> Result<Workload, Unreadable> {
    read(Kind::Deployment, &VersionOf::Images, json)
}

fn read(kind: Kind, of: &VersionOf, json: &str) -> Result<Workload, Unreadable> {
    let Raw { metadata, spec, status } = serde_json::from_str(json)?;
    let parts = [("metadata", Some(metadata.judged())), ("spec", spec), ("status", status)];
    let parts = parts.into_iter().map(|(name, part)| (name.to_owned(), part.unwrap_or_default()));
    let value = Value::Object(parts.collect());
    let object = Object(&value);
    let template_of = if kind == Kind::Rollout { template_of(object, &metadata.namespace)? } else { None };
    let Report { generation, observed_generation, deleting, own } = kinds::read(kind, object)?;
    let Own { replicas, says, refused, starting, deadline, newest, stable } = own;
    let annotations = metadata.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut tuning = Tuning::read(annotations);
    tuning.deadlines.own = deadline;
    let declared = kind.custom().map(CustomKind::says);
    let template = declared.map_or("/spec/template", |declared| declared.template.as_str());
    let inherits = template_of.as_ref().is_some_and(|of| !of.selects);
    let version = if template_of.is_some() {
        Ok(Version::default())
    } else {
        let pods: PodSpec = part(object, &format!("{template}/spec"))?;
        let beside = beside((object, template), of, json, &mut tuning)?;
        let version = pods.version(tuning.counts.containers.as_ref()).map(|all| chosen(all, &mut tuning));
        version.map(|images| images.with(beside)).and_then(recordable)
    };
    let selector = declared.map_or("/spec/selector", |declared| declared.selector.as_str());
    let selector: LabelSelector = if inherits { LabelSelector::default() } else { part(object, selector)? };
    if declared.is_some() && selector.is_empty() {
        // It would take all pods of the namespace for its own.
        return Err(Unreadable::because("its selector has neither matchLabels nor matchExpressions"));
    }
    let labels: Option<Labels> = part(object, &format!("{template}/metadata/labels"))?;
    Ok(Workload {
        id: WorkloadId::new(kind, metadata.namespace, metadata.name),
        object: kind,
        uid: metadata.uid,
        // One without a time takes no name from another.
        created: metadata.creation_timestamp.unwrap_or_else(|| "9999".to_owned()),
        generation,
        observed_generation,
        version,
        replicas,
        deleting,
        says,
        refused,
        starting,
        newest,
        template_of: template_of.map(Box::new),
        stable: stable.map(Box::new),
        withdrawn: None,
        selector,
        template_labels: labels.unwrap_or_default(),
        tuning,
    })
}

/// The Deployment that the template of a Rollout is from, if it is from one.
fn template_of(object: Object<'_>, namespace: &str) -> Result<Option<TemplateOf>, Unreadable> {
    let Some(TemplateFrom { deployment, noted }) = kinds::template_from(object)? else { return Ok(None) };
    let deployment = WorkloadId::new(Kind::Deployment, namespace, deployment);
    Ok(Some(TemplateOf { deployment, noted, selects: object.at("/spec/selector").is_some() }))
}

/// What is at a place, whether something is or not.
fn part<'a, T: Deserialize<'a>>(object: Object<'a>, at: &str) -> Result<T, Unreadable> {
    let part = object.at(at).unwrap_or(&Value::Null);
    T::deserialize(part).map_err(|error| Unreadable::because(format!("{}: {error}", dotted(at))))
}

/// What makes the version beside the images.
fn beside(
    (object, template): (Object<'_>, &str),
    of: &VersionOf,
    json: &str,
    tuning: &mut Tuning,
) -> Result<Option<Beside>, Unreadable> {
    let own = tuning.counts.of.clone();
    Ok(match own.as_ref().unwrap_or(of) {
        VersionOf::Images => None,
        VersionOf::Template => {
            let fields = Fields::of(object.at(template).unwrap_or(&Value::Null));
            // Of an Argo Rollout: it makes new pods of the same template.
            Some(Beside::Template(match object.text("/spec/restartAt")? {
                Some(at) => fields.and("restartAt", at),
                None => fields,
            }))
        }
        VersionOf::Annotation(key) => {
            let in_template: Option<Annotations> = part(object, &format!("{template}/metadata/annotations"))?;
            let Annotated { metadata } = serde_json::from_str(json)?;
            let all = [in_template, metadata.annotations];
            let value = all.iter().flatten().find_map(|annotations| annotations.get(&**key));
            if value.is_none() && own.is_some() {
                tuning.fault(|| {
                    format!(
                        "annotation {ANNOTATION_PREFIX}change: neither the workload nor its pod template has an annotation {key}; only \
                         images count until one has"
                    )
                });
            }
            Some(Beside::annotation(key, value.map(String::as_str)))
        }
    })
}

/// All annotations, which are read only where one of them counts.
#[derive(Deserialize)]
struct Annotated {
    metadata: AllAnnotations,
}

#[derive(Deserialize)]
struct AllAnnotations {
    annotations: Option<Annotations>,
}

/// Only the containers the owner asked for. Names of containers that are not there are a fault of the annotation, which
/// then does not hold: a typing error must not make every change invisible.
fn chosen(all: Version, tuning: &mut Tuning) -> Version {
    let Some(names) = &tuning.counts.containers else { return all };
    match all.only(names) {
        Ok(version) => version,
        Err(error) => {
            tuning.fault(|| format!("annotation {ANNOTATION_PREFIX}containers: {error}"));
            tuning.counts.containers = None;
            all
        }
    }
}

#[derive(Deserialize)]
struct Raw {
    metadata: Metadata,
    spec: Option<Value>,
    status: Option<Value>,
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

impl Metadata {
    /// What a kind judges by.
    fn judged(&self) -> Value {
        let annotation = |(key, value): (&String, &String)| (key.clone(), Value::from(value.as_str()));
        json!({
            "name": self.name.as_str(),
            "generation": self.generation,
            "deletionTimestamp": self.deletion_timestamp.map(|IgnoredAny| true),
            "annotations": self.annotations.iter().map(annotation).collect::<Map<_, _>>(),
        })
    }
}

fn own_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Annotations, D::Error> {
    annotations(deserializer, |key| {
        key.starts_with(ANNOTATION_PREFIX) || key == TEMPLATE_GENERATION || key == WORKLOAD_GENERATION
    })
}

/// The containers and volumes of a pod or of a pod template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodSpec {
    node_name: Option<String>,
    containers: Vec<ContainerSpec>,
    init_containers: Option<Vec<ContainerSpec>>,
    volumes: Option<Vec<VolumeSpec>>,
}

#[derive(Deserialize)]
struct ContainerSpec {
    name: String,
    image: Option<String>,
}

#[derive(Deserialize)]
struct VolumeSpec {
    name: String,
    image: Option<VolumeImage>,
}

/// <https://kubernetes.io/docs/concepts/storage/volumes/#image>
#[derive(Deserialize)]
struct VolumeImage {
    reference: Option<String>,
}

impl PodSpec {
    /// The node that it is bound to.
    pub fn node_name(&self) -> Option<&str> {
        self.node_name.as_deref()
    }

    /// The version that these containers and volumes make. An image that cannot be read matters only if its container does: all do, unless
    /// `only` names some.
    pub fn version(self, only: Option<&BTreeSet<String>>) -> Result<Version, NoVersion> {
        let main = self.containers.into_iter().map(|spec| (Container::Main(spec.name), spec.image));
        let init = self.init_containers.into_iter().flatten();
        let init = init.map(|spec| (Container::Init(spec.name), spec.image));
        // One whose reference something else fills in, pod by pod, has none that could be compared.
        let reference = |volume: VolumeSpec| {
            let reference = volume.image?.reference.filter(|reference| !reference.is_empty())?;
            Some((Container::volume(&volume.name), Some(reference)))
        };
        let volumes = self.volumes.into_iter().flatten().filter_map(reference);
        let mut images = Vec::new();
        for (container, image) in main.chain(init).chain(volumes) {
            match Image::parse(image.as_deref().unwrap_or_default()) {
                Ok(image) => images.push((container, image)),
                Err(_) if only.is_some_and(|names| !names.contains(container.name())) => {}
                Err(error) => return Err(NoVersion::Image(container, Box::new(error))),
            }
        }
        Ok(images.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use kinds::reported::{Replicas, Says};
    use purge::workloads::workload::Deadlines;

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
        assert_eq!(workload.version.as_ref().map(|version| version.iter().len()), Ok(3));
        assert_eq!((&workload.says, workload.starting), (&Says::Counts, true));
        assert!(workload.selector.matches(&workload.template_labels));
        assert_eq!(workload.tuning.hosts.as_ref().map(Vec::len), Some(1));
        assert_eq!(workload.tuning.faults, Vec::<String>::new());
        assert!(!workload.is_held() && !workload.deleting);
    }

    #[test]
    fn absent_and_null_mean_the_same() {
        for status in [json!(null), json!({}), json!({"conditions": null, "replicas": null})] {
            let workload = with("/status", status).unwrap();
            assert_eq!((workload.observed_generation, workload.starting), (0, false));
            assert_eq!(workload.replicas, Replicas { desired: 3, ..Replicas::default() });
        }
        assert_eq!(with("/spec/replicas", json!(null)).unwrap().replicas.desired, 1);
        let deadlines = Deadlines { own: Some(Duration::from_secs(600)), ..Deadlines::default() };
        let tuning = Tuning { deadlines, ..Tuning::default() };
        assert_eq!(with("/metadata/annotations", json!(null)).unwrap().tuning, tuning);
    }

    #[test]
    fn a_field_of_the_wrong_type_makes_the_object_unreadable_in_words() {
        for (pointer, value, words) in [
            ("/spec/replicas", json!("three"), ".spec.replicas is not a whole number"),
            ("/status/conditions", json!("none"), ".status.conditions is not a list"),
            ("/spec/template/spec/containers", json!(null), ".spec.template.spec: invalid type: null"),
            ("/spec/selector", json!("app=web"), ".spec.selector: invalid type: string"),
            ("/metadata/uid", json!(7), "invalid type: integer"),
            ("/spec", json!(null), ".spec.template.spec: invalid type: null"),
            ("/metadata/annotations", json!([]), "invalid type: sequence"),
        ] {
            let error = with(pointer, value).unwrap_err().to_string();
            assert!(error.contains(words), "{pointer}: {error}");
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

    fn counted(of: &str, change: impl FnOnce(&mut Value)) -> Workload {
        let mut object = example();
        change(&mut object);
        workload(Kind::Deployment, &VersionOf::parse(of).unwrap())(&object.to_string()).unwrap()
    }

    fn difference(before: &Workload, after: &Workload) -> String {
        let version = |workload: &Workload| workload.version.clone().unwrap();
        kernel::names::image::difference(&version(before), &version(after))
    }

    #[test]
    fn an_image_volume_counts_and_one_without_a_reference_does_not() {
        let with = |volumes: Value| counted("images", |object| object["spec"]["template"]["spec"]["volumes"] = volumes);
        let plain = json!([{"name": "tmp", "emptyDir": {}}, {"name": "later", "image": {}}, {"name": "x", "image": {"reference": ""}}]);
        assert_eq!(with(plain).version, counted("images", |_| {}).version);
        let content = |tag: &str| json!([{"name": "content", "image": {"reference": format!("shop/site:{tag}")}}]);
        assert_eq!(difference(&with(content("1")), &with(content("2"))), "volume:content: 1 → 2");
        let bad = with(json!([{"name": "content", "image": {"reference": "a b"}}]));
        assert!(bad.version.unwrap_err().to_string().starts_with("volume:content: "));
    }

    #[test]
    fn a_template_or_an_annotation_counts_where_it_is_asked_for() {
        let restart = |object: &mut Value| {
            object["spec"]["template"]["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/restartedAt": "now"});
        };
        let at_rest = |of: &str| counted(of, |_| {});
        assert_eq!(counted("images", restart).version, at_rest("images").version);
        let words = difference(&at_rest("template"), &counted("template", restart));
        assert_eq!(words, "pod template: annotations[kubectl.kubernetes.io/restartedAt]");
        assert_eq!(
            counted("template", |object| object["spec"]["replicas"] = json!(9)).version,
            at_rest("template").version
        );
        let site = |at: &str, value: &str| {
            let annotations = json!({"example.com/site": value});
            counted("annotation example.com/site", |object| {
                *object.pointer_mut(at).unwrap() = json!({"annotations": annotations});
            })
        };
        let template = "/spec/template/metadata";
        assert_eq!(difference(&site(template, "1"), &site(template, "2")), "example.com/site: 1 → 2");
    }

    #[test]
    fn the_owner_says_what_counts_and_hears_that_it_is_not_there() {
        let own = |value: &str| {
            counted("template", |object| {
                object["metadata"]["annotations"] = json!({"allclear.dev/change": value, "example.com/site": "7"});
            })
        };
        assert_eq!(own("images").version, counted("images", |_| {}).version);
        assert!(own("annotation example.com/site").version.unwrap().to_string().ends_with(", example.com/site 7"));
        let missing = own("annotation example.com/other");
        assert!(missing.tuning.faults[0].contains("only images count until one has"), "{:?}", missing.tuning.faults);
        let bad = own("everything");
        assert!(bad.tuning.faults[0].contains("\"everything\" is none of"), "{:?}", bad.tuning.faults);
        assert!(bad.version.unwrap().beside().is_some(), "then the configuration's choice holds");
        let everywhere = counted("annotation example.com/other", |_| {});
        assert_eq!(everywhere.tuning.faults, [""; 0], "many workloads may have none");
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
        assert_eq!(workload.version.as_ref().map(|version| version.iter().len()), Ok(3));
        assert_eq!(workload.tuning.counts.containers, None);
        assert!(workload.tuning.faults[0].contains("no container is named wbe"), "{:?}", workload.tuning.faults);
    }
}

//! What an API server fills into an object that leaves it open, and the few checks whose failure a client must survive.
//!
//! Defaults matter here because they decide what is *no change*: writing the manifest again must meet the stored
//! object. They are those of Kubernetes 1.33 for the fields our programs and `kubectl rollout` read; not a schema
//! validation, and unknown fields are kept. Those of Jobs:
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/>.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::object::{items, labels, text};
use super::resource::Kind;

/// Longest object name: DNS subdomain, RFC 1123.
const NAME_BYTES_MAX: usize = 253;

/// The annotation with the count of a DaemonSet's templates.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// What of a Job's spec a write may not change. Parts of the template may change while a Job that never started is suspended; here
/// none does.
const IMMUTABLE: [&str; 5] = ["template", "completions", "selector", "podFailurePolicy", "completionMode"];

/// Fills what is left open.
pub fn fill(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Deployment => deployment(object),
        Kind::ReplicaSet => {
            set(object, "/spec", "replicas", json!(1));
            pod_template(object);
        }
        Kind::Job => {
            job(object);
            pod_template(object);
        }
        Kind::Pod => {
            if let Some(spec) = object.get_mut("spec") {
                pod_spec(spec);
            }
        }
        Kind::Service => service(object),
        Kind::Namespace => {
            let name = text(object, "/metadata/name").to_owned();
            ensure(object, "/metadata", "labels");
            set(object, "/metadata/labels", "kubernetes.io/metadata.name", json!(name));
            ensure(object, "", "spec");
            set(object, "/spec", "finalizers", json!(["kubernetes"]));
        }
        Kind::Secret => secret(object),
        Kind::StatefulSet => stateful_set(object),
        Kind::DaemonSet => daemon_set(object),
        _ => {}
    }
}

/// Counts the templates of a DaemonSet, as its API server does.
pub fn count_templates(set: &mut Value, previous: Option<&Value>) {
    let annotation = |set: &Value| set["metadata"]["annotations"][TEMPLATE_GENERATION].as_str()?.parse().ok();
    let before: i64 = previous.and_then(annotation).unwrap_or(1);
    let template = set.pointer("/spec/template");
    let changed = previous.is_some_and(|previous| previous.pointer("/spec/template") != template);
    let count = json!((before + i64::from(changed)).to_string());
    ensure(set, "/metadata", "annotations");
    if let Some(Value::Object(annotations)) = set.pointer_mut("/metadata/annotations") {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), count);
    }
}

/// Names a new Job's pods by its UID and its name, as soon as it has a UID.
pub fn select_pods_of_job(job: &mut Value) {
    let (uid, name) = (text(job, "/metadata/uid").to_owned(), text(job, "/metadata/name").to_owned());
    ensure(job, "/spec/template", "metadata");
    ensure(job, "/spec/template/metadata", "labels");
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ];
    for (label, value) in labels {
        job["spec"]["template"]["metadata"]["labels"][label] = json!(value);
    }
    job["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
}

/// The status a new object starts with.
pub fn initial_status(kind: Kind) -> Option<Value> {
    match kind {
        Kind::Namespace => Some(json!({"phase": "Active"})),
        Kind::Pod => Some(json!({"phase": "Pending", "qosClass": "BestEffort"})),
        Kind::Service | Kind::Ingress => Some(json!({"loadBalancer": {}})),
        Kind::ReplicaSet => Some(json!({"replicas": 0})),
        Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet | Kind::Job => Some(json!({})),
        Kind::Pipeline | Kind::WeavePipeline | Kind::Repo => Some(json!({"observedGeneration": -1})),
        _ => None,
    }
}

/// Drops what a kind's CustomResourceDefinition does not have. Only one of those here is strict: that of upstream's Pipelines, of
/// whose status it keeps what upstream writes.
pub fn prune(kind: Kind, object: &mut Value) {
    if kind != Kind::WeavePipeline {
        return;
    }
    let keep = |value: &mut Value, names: &[&str]| {
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| names.contains(&name.as_str()));
        }
    };
    let Some(status) = object.get_mut("status") else { return };
    keep(status, &["observedGeneration", "conditions", "environments"]);
    for environment in status["environments"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        keep(environment, &["targets", "waitingApproval"]);
        if let Some(waiting) = environment.get_mut("waitingApproval") {
            keep(waiting, &["revision"]);
        }
    }
}

/// Checks a complete object, and against the one it replaces.
///
/// # Errors
/// 422 naming the field.
pub fn check(kind: Kind, object: &Value, previous: Option<&Value>) -> Result<(), Failure> {
    let name = text(object, "/metadata/name");
    let valid = name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !valid {
        let why = format!(
            "Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
             characters, '-' or '.'"
        );
        return Err(Failure::invalid(kind, name, "metadata.name", "FieldValueInvalid", &why));
    }
    if matches!(kind, Kind::Deployment | Kind::ReplicaSet) {
        return workload(kind, name, object, previous);
    }
    if kind == Kind::Job {
        return check_job(name, object, previous);
    }
    Ok(())
}

fn workload(kind: Kind, name: &str, object: &Value, previous: Option<&Value>) -> Result<(), Failure> {
    let invalid = |field, cause, why: &str| Err(Failure::invalid(kind, name, field, cause, why));
    let Some(selector) = object.pointer("/spec/selector") else {
        return invalid("spec.selector", "FieldValueRequired", "Required value");
    };
    let template = labels(object.pointer("/spec/template").unwrap_or(&Value::Null));
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let matches = |(key, value): (&String, &Value)| template.get(key).map(String::as_str) == value.as_str();
    if !wanted.into_iter().flatten().all(matches) {
        let why = "Invalid value: `selector` does not match template `labels`";
        return invalid("spec.template.metadata.labels", "FieldValueInvalid", why);
    }
    if items(object, "/spec/template/spec/containers").is_empty() {
        return invalid("spec.template.spec.containers", "FieldValueRequired", "Required value");
    }
    if previous.and_then(|previous| previous.pointer("/spec/selector")).is_some_and(|previous| previous != selector) {
        return invalid("spec.selector", "FieldValueInvalid", "Invalid value: field is immutable");
    }
    Ok(())
}

fn check_job(name: &str, job: &Value, previous: Option<&Value>) -> Result<(), Failure> {
    let invalid = |field: &str, cause, why: &str| Err(Failure::invalid(Kind::Job, name, field, cause, why));
    let restart = text(job, "/spec/template/spec/restartPolicy");
    if !["Never", "OnFailure"].contains(&restart) {
        let why = "Required value: valid values: \"OnFailure\", \"Never\"";
        return invalid("spec.template.spec.restartPolicy", "FieldValueRequired", why);
    }
    if restart != "Never" && job.pointer("/spec/podFailurePolicy").is_some_and(Value::is_object) {
        let why = "Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified";
        return invalid("spec.template.spec.restartPolicy", "FieldValueInvalid", why);
    }
    if items(job, "/spec/template/spec/containers").is_empty() {
        return invalid("spec.template.spec.containers", "FieldValueRequired", "Required value");
    }
    for field in IMMUTABLE {
        let at = format!("/spec/{field}");
        if previous.is_some_and(|previous| previous.pointer(&at) != job.pointer(&at)) {
            return invalid(&format!("spec.{field}"), "FieldValueInvalid", "Invalid value: field is immutable");
        }
    }
    Ok(())
}

fn secret(object: &mut Value) {
    set(object, "", "type", json!("Opaque"));
    // Plain text is for writing alone, and what is read is encoded.
    let plain = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(plain)) = plain else { return };
    ensure(object, "", "data");
    for (key, value) in plain {
        object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
}

fn deployment(object: &mut Value) {
    set(object, "/spec", "replicas", json!(1));
    set(object, "/spec", "revisionHistoryLimit", json!(10));
    set(object, "/spec", "progressDeadlineSeconds", json!(600));
    set(object, "/spec", "strategy", json!({"type": "RollingUpdate"}));
    set(object, "/spec/strategy", "type", json!("RollingUpdate"));
    if text(object, "/spec/strategy/type") == "RollingUpdate" {
        ensure(object, "/spec/strategy", "rollingUpdate");
        set(object, "/spec/strategy/rollingUpdate", "maxSurge", json!("25%"));
        set(object, "/spec/strategy/rollingUpdate", "maxUnavailable", json!("25%"));
    }
    pod_template(object);
}

fn stateful_set(object: &mut Value) {
    set(object, "/spec", "replicas", json!(1));
    set(object, "/spec", "revisionHistoryLimit", json!(10));
    set(object, "/spec", "podManagementPolicy", json!("OrderedReady"));
    ensure(object, "/spec", "updateStrategy");
    // A type that is named without a partition keeps none, and pods are then made by another rule.
    if text(object, "/spec/updateStrategy/type").is_empty() {
        set(object, "/spec/updateStrategy", "type", json!("RollingUpdate"));
        ensure(object, "/spec/updateStrategy", "rollingUpdate");
    }
    set(object, "/spec/updateStrategy/rollingUpdate", "partition", json!(0));
    pod_template(object);
}

fn daemon_set(object: &mut Value) {
    set(object, "/spec", "revisionHistoryLimit", json!(10));
    ensure(object, "/spec", "updateStrategy");
    set(object, "/spec/updateStrategy", "type", json!("RollingUpdate"));
    if text(object, "/spec/updateStrategy/type") == "RollingUpdate" {
        ensure(object, "/spec/updateStrategy", "rollingUpdate");
        set(object, "/spec/updateStrategy/rollingUpdate", "maxUnavailable", json!(1));
        set(object, "/spec/updateStrategy/rollingUpdate", "maxSurge", json!(0));
    }
    pod_template(object);
}

/// Fills what is left open, but for the pod template.
fn job(job: &mut Value) {
    let guarded = job.pointer("/spec/podFailurePolicy").is_some_and(Value::is_object);
    let replacement = if guarded { "Failed" } else { "TerminatingOrFailed" };
    for (field, default) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
    ] {
        set(job, "/spec", field, default);
    }
}

fn pod_template(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Value) {
    set(spec, "", "restartPolicy", json!("Always"));
    set(spec, "", "terminationGracePeriodSeconds", json!(30));
    set(spec, "", "dnsPolicy", json!("ClusterFirst"));
    set(spec, "", "securityContext", json!({}));
    set(spec, "", "schedulerName", json!("default-scheduler"));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let image = text(container, "/image");
            let floating =
                image.ends_with(":latest") || !image.rsplit('/').next().unwrap_or(image).contains([':', '@']);
            let policy = if floating { "Always" } else { "IfNotPresent" };
            set(container, "", "imagePullPolicy", json!(policy));
            set(container, "", "resources", json!({}));
            set(container, "", "terminationMessagePath", json!("/dev/termination-log"));
            set(container, "", "terminationMessagePolicy", json!("File"));
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                set(port, "", "protocol", json!("TCP"));
            }
        }
    }
}

fn service(object: &mut Value) {
    ensure(object, "", "spec");
    set(object, "/spec", "type", json!("ClusterIP"));
    set(object, "/spec", "sessionAffinity", json!("None"));
    set(object, "/spec", "internalTrafficPolicy", json!("Cluster"));
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set(port, "", "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        set(port, "", "targetPort", number);
    }
}

/// Sets a field of the object at `pointer` unless it is there.
fn set(value: &mut Value, pointer: &str, field: &str, default: Value) {
    if let Some(Value::Object(fields)) = value.pointer_mut(pointer) {
        let present = fields.entry(field).or_insert(Value::Null);
        if present.is_null() {
            *present = default;
        }
    }
}

/// Makes sure that there is an object in a field.
fn ensure(value: &mut Value, pointer: &str, field: &str) {
    set(value, pointer, field, Value::Object(Map::new()));
}

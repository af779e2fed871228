//! What the API server fills into a Job, and which of its fields never change.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/>
//!
//! Not for what a Job does; that is the controller's.

use serde_json::{Value, json};

use super::{ensure, set};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::text;
use crate::kubernetes::resource::Kind;

/// What of a Job's spec a write may not change. Parts of the template may change while a Job that never started is suspended; here
/// none does.
const IMMUTABLE: [&str; 5] = ["template", "completions", "selector", "podFailurePolicy", "completionMode"];

/// Fills what is left open, but for the pod template.
pub fn fill(job: &mut Value) {
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

/// Names a new Job's pods by its UID and its name, as soon as it has a UID.
pub fn select(job: &mut Value) {
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

/// Checks a complete Job, and against the one it replaces.
///
/// # Errors
/// 422 naming the field.
pub fn check(name: &str, job: &Value, previous: Option<&Value>) -> Result<(), Failure> {
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
    let containers = job.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
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

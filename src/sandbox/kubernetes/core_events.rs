//! Events under their old address: `v1` Event as a view of `events.k8s.io/v1` Event, as our own programs write it and
//! `kubectl describe` and `kubectl get events` read it.
//!
//! In a real server the two are one object in two versions; here the old one can be created, read and listed only. The
//! mapping of fields is that of `pkg/apis/events/v1/conversion.go`, the rules are those of `ValidateEventCreate` in
//! `pkg/apis/core/validation/events.go` (Kubernetes 1.33). Not for the new address, where nothing of ours writes, nor for updates.

use serde_json::{Map, Value, json};

use super::KubernetesStandIn;
use super::body::body;
use super::failure::Failure;
use super::object::{Key, text};
use super::resource::Kind;
use super::selector::{Selector, comparison, terms};
use super::store::Scope;
use crate::http::{Reply, Request};

/// What `kubectl describe` selects by, and where it is in the new version.
const FIELDS: [(&str, &str); 4] = [
    ("involvedObject.kind", "/regarding/kind"),
    ("involvedObject.namespace", "/regarding/namespace"),
    ("involvedObject.name", "/regarding/name"),
    ("involvedObject.uid", "/regarding/uid"),
];

/// The names of fields that differ: in the old version, and in the new one.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Longest `reportingInstance`, `action` and `reason`, in bytes.
const WORD_BYTES_MAX: usize = 128;

/// Longest `note`, in bytes.
const NOTE_BYTES_MAX: usize = 1024;

/// Answers a request if it is about Events under their old address.
pub fn answer(stand_in: &KubernetesStandIn, request: &Request) -> Option<Result<Reply, Failure>> {
    let (namespace, name) = match request.segments().as_slice() {
        ["api", "v1", "events"] => (String::new(), None),
        ["api", "v1", "namespaces", namespace, "events"] => ((*namespace).to_owned(), None),
        ["api", "v1", "namespaces", namespace, "events", name] => ((*namespace).to_owned(), Some((*name).to_owned())),
        _ => return None,
    };
    let watch = request.query.get("watch").is_some_and(|flag| flag == "true" || flag == "1");
    let answered = match request.method.as_str() {
        "POST" if name.is_none() => create(stand_in, request, &namespace).map(|body| (201, body)),
        "GET" if !watch => read(stand_in, request, namespace, name).map(|body| (200, body)),
        _ => Err(Failure::method_not_allowed()),
    };
    let reply = |(status, body): (u16, Value)| Reply::full(status, "application/json", body.to_string());
    Some(answered.map(reply).map_err(in_old_words))
}

fn create(stand_in: &KubernetesStandIn, request: &Request, namespace: &str) -> Result<Value, Failure> {
    stand_in.count_write();
    if request.query.contains_key("dryRun") {
        return Err(Failure::bad_request("the stand-in has no dry run"));
    }
    let old = body(request, ("v1", "Event"), namespace, "")?;
    let namespace =
        if namespace.is_empty() { text(&old, "/metadata/namespace").to_owned() } else { namespace.to_owned() };
    if namespace.is_empty() {
        return Err(Failure::bad_request("an empty namespace may not be set during creation"));
    }
    let event = new_form(old)?;
    check(&event, &namespace)?;
    let written = stand_in.write(|writer| writer.create(Kind::Event, &namespace, event))?;
    Ok(whole(&written.value()))
}

fn read(
    stand_in: &KubernetesStandIn,
    request: &Request,
    namespace: String,
    name: Option<String>,
) -> Result<Value, Failure> {
    if let Some(name) = name {
        let event = stand_in.get_object(Kind::Event, &Key::new(namespace, name.as_str()));
        let event = event.ok_or_else(|| Failure::not_found(Kind::Event, &name))?;
        return Ok(whole(&event.value()));
    }
    let get = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    let mut wanted = Vec::new();
    for term in terms(get("fieldSelector")) {
        let unsupported = || Failure::bad_request(format!("field label not supported: {term}"));
        let (key, value) = comparison(term).ok_or_else(unsupported)?;
        let (_, pointer) = FIELDS.iter().find(|(field, _)| *field == key).ok_or_else(unsupported)?;
        wanted.push((*pointer, value));
    }
    let selector = Selector::parse(get("labelSelector"), "")?;
    let state = stand_in.store().lock();
    let events = state.list(&Scope { kind: Kind::Event, namespace, selector });
    let items: Vec<Value> = events
        .iter()
        .map(|event| event.value())
        .filter(|event| wanted.iter().all(|(pointer, value)| text(event, pointer) == *value))
        .map(|event| old_form(&event))
        .collect();
    let metadata = json!({"resourceVersion": state.version().to_string()});
    Ok(json!({"kind": "EventList", "apiVersion": "v1", "metadata": metadata, "items": items}))
}

/// An Event in its old form, as it is outside lists.
fn whole(event: &Value) -> Value {
    let mut event = old_form(event);
    event["apiVersion"] = json!("v1");
    event["kind"] = json!("Event");
    event
}

fn old_form(event: &Value) -> Value {
    let mut old = event.clone();
    let Some(fields) = old.as_object_mut() else { return old };
    for field in ["apiVersion", "kind"] {
        fields.remove(field);
    }
    rename(fields, RENAMED.map(|(old, new)| (new, old)));
    // These are written whether there is anything in them or not.
    for (field, empty) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        fields.entry(field).or_insert(empty);
    }
    old
}

fn new_form(mut event: Value) -> Result<Value, Failure> {
    if let Some(fields) = event.as_object_mut() {
        rename(fields, RENAMED);
        fields.insert("apiVersion".to_owned(), json!(Kind::Event.describe().api_version()));
        for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
            let Some(written) = fields.get(field) else { continue };
            let time: Option<jiff::Timestamp> = written.as_str().and_then(|text| text.parse().ok());
            let unread =
                || Failure::bad_request(format!("Event in version \"v1\" cannot be handled: {written} is no time"));
            // A fraction is read, and not kept: `metav1.Time` is written in whole seconds.
            let kept = time.ok_or_else(unread)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            fields.insert(field.to_owned(), json!(kept));
        }
    }
    Ok(event)
}

/// Renames fields, and drops those that say nothing.
fn rename<const N: usize>(fields: &mut Map<String, Value>, names: [(&str, &str); N]) {
    fields.retain(|_, value| !value.is_null() && *value != json!(0));
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

/// The rules of a new one. An Event with an `eventTime` is held to those of the new address. The names of fields in refusals are those of the
/// old version: it is the one that is checked.
///
/// # Errors
/// 422 naming the field.
fn check(event: &Value, namespace: &str) -> Result<(), Failure> {
    let about = text(event, "/regarding/namespace");
    let is_new = !text(event, "/eventTime").is_empty();
    let agrees = match (is_new, about) {
        (_, "") => namespace.is_empty() || namespace == "default" || (is_new && namespace == "kube-system"),
        (false, about) => namespace.is_empty() || about == namespace,
        (true, _) => true,
    };
    if !agrees {
        return refused(event, "involvedObject.namespace", false, "does not match event.namespace");
    }
    if !is_new {
        return Ok(());
    }
    // RFC3339Micro: exactly six digits.
    let fraction = text(event, "/eventTime").split_once('.').map(|(_, fraction)| fraction.trim_end_matches('Z').len());
    if fraction != Some(6) {
        let why = format!("cannot parse {:?} as a time with microseconds", text(event, "/eventTime"));
        return Err(Failure::bad_request(why));
    }
    for (field, bytes_max) in [
        ("reportingController", usize::MAX),
        ("reportingInstance", WORD_BYTES_MAX),
        ("action", WORD_BYTES_MAX),
        ("reason", WORD_BYTES_MAX),
    ] {
        let bytes = text(event, &format!("/{field}")).len();
        if bytes == 0 {
            return refused(event, field, true, "");
        }
        if bytes > bytes_max {
            return refused(event, field, false, &format!("can have at most {bytes_max} characters"));
        }
    }
    if !is_qualified(text(event, "/reportingController")) {
        return refused(event, "reportingController", false, "name part must consist of alphanumeric characters");
    }
    if text(event, "/note").len() > NOTE_BYTES_MAX {
        return refused(event, "message", false, &format!("can have at most {NOTE_BYTES_MAX} characters"));
    }
    Ok(())
}

/// `example.com/name` or `name`, as `IsQualifiedName` wants it.
fn is_qualified(name: &str) -> bool {
    let (prefix, name) = name.split_once('/').map_or((None, name), |(prefix, name)| (Some(prefix), name));
    let ends = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_domain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    ends(name)
        && name.len() <= 63
        && name.chars().all(is_part)
        && prefix.is_none_or(|prefix| ends(prefix) && prefix.chars().all(is_domain))
}

fn refused(event: &Value, field: &str, required: bool, why: &str) -> Result<(), Failure> {
    let (cause, words) = if required {
        ("FieldValueRequired", "Required value".to_owned())
    } else {
        ("FieldValueInvalid", format!("Invalid value: {why}"))
    };
    Err(Failure::invalid(Kind::Event, text(event, "/metadata/name"), field, cause, &words))
}

/// A refusal names the kind by its address.
fn in_old_words(mut failure: Failure) -> Failure {
    failure.message = failure.message.replace("events.events.k8s.io", "events").replace("Event.events.k8s.io", "Event");
    if let Some(details) = failure.details.as_object_mut() {
        details.remove("group");
    }
    failure
}

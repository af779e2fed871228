//! Events under their old address: `v1` Event as a view of `events.k8s.io/v1` Event, for `kubectl describe` and
//! `kubectl get events`.
//!
//! In a real server the two are one object in two versions; here the old one can be read and listed only. The mapping
//! of fields is that of `pkg/apis/events/v1/conversion.go` (Kubernetes 1.33). Not for our own programs: they write and
//! read the new version.

use serde_json::{Value, json};

use super::KubernetesStandIn;
use super::failure::Failure;
use super::object::{Key, text};
use super::resource::Kind;
use super::selector::{Selector, comparison, terms};
use super::store::Scope;
use crate::sandbox::http::{Reply, Request};

/// The field of the old version a selector may name, and where it is in the new one.
const FIELDS: [(&str, &str); 11] = [
    ("involvedObject.kind", "/regarding/kind"),
    ("involvedObject.namespace", "/regarding/namespace"),
    ("involvedObject.name", "/regarding/name"),
    ("involvedObject.uid", "/regarding/uid"),
    ("involvedObject.apiVersion", "/regarding/apiVersion"),
    ("reportingComponent", "/reportingController"),
    ("source", "/reportingController"),
    ("reason", "/reason"),
    ("type", "/type"),
    ("metadata.name", "/metadata/name"),
    ("metadata.namespace", "/metadata/namespace"),
];

/// Answers a request if it is about Events under their old address.
pub fn answer(stand_in: &KubernetesStandIn, request: &Request) -> Option<Result<Reply, Failure>> {
    let (namespace, name) = match request.segments().as_slice() {
        ["api", "v1", "events"] => (String::new(), None),
        ["api", "v1", "namespaces", namespace, "events"] => ((*namespace).to_owned(), None),
        ["api", "v1", "namespaces", namespace, "events", name] => ((*namespace).to_owned(), Some((*name).to_owned())),
        _ => return None,
    };
    let watch = request.query.get("watch").is_some_and(|flag| flag == "true" || flag == "1");
    if request.method != http::Method::GET || watch {
        return Some(Err(Failure::method_not_allowed()));
    }
    Some(read(stand_in, request, namespace, name).map(|body| Reply::full(200, "application/json", body.to_string())))
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
        let mut event = old_form(&event.value());
        event["apiVersion"] = json!("v1");
        event["kind"] = json!("Event");
        return Ok(event);
    }
    let get = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    let mut wanted = Vec::new();
    for term in terms(get("fieldSelector")) {
        let unsupported = || Failure::bad_request(format!("field label not supported: {term}"));
        let (key, equal, value) = comparison(term).ok_or_else(unsupported)?;
        let (_, pointer) = FIELDS.iter().find(|(field, _)| *field == key).ok_or_else(unsupported)?;
        wanted.push((*pointer, equal, value));
    }
    let selector = Selector::parse(Kind::Event, get("labelSelector"), "")?;
    let state = stand_in.store().lock();
    let events = state.list(&Scope { kind: Kind::Event, namespace, selector });
    let items: Vec<Value> = events
        .iter()
        .map(|event| event.value())
        .filter(|event| wanted.iter().all(|(pointer, equal, value)| (text(event, pointer) == *value) == *equal))
        .map(|event| old_form(&event))
        .collect();
    let metadata = json!({"resourceVersion": state.version().to_string()});
    Ok(json!({"kind": "EventList", "apiVersion": "v1", "metadata": metadata, "items": items}))
}

fn old_form(event: &Value) -> Value {
    let field = |name: &str| event.get(name).cloned().unwrap_or_default();
    json!({
        "metadata": field("metadata"), "involvedObject": field("regarding"), "related": field("related"),
        "reason": field("reason"), "message": field("note"), "type": field("type"), "action": field("action"),
        "eventTime": field("eventTime"), "series": field("series"), "count": field("deprecatedCount"),
        "reportingComponent": field("reportingController"), "reportingInstance": field("reportingInstance"),
        "source": {"component": field("reportingController")},
        "firstTimestamp": field("deprecatedFirstTimestamp"), "lastTimestamp": field("deprecatedLastTimestamp"),
    })
}

//! Objects as a `Table`, which is what `kubectl get` asks for and prints: columns and cells as kube-apiserver has them
//! (<https://github.com/kubernetes/kubernetes/blob/v1.33.0/pkg/printers/internalversion/printers.go>), for the kinds that the demo speaks
//! of. All others have a name and an age.
//!
//! Not for `-o wide`, nor for what `kubectl describe` prints: that reads the objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object::{items, number, text};

/// What stands where there is nothing to say.
const NONE: &str = "<none>";

/// Whether a client takes a table, and asks for it first.
pub fn is_asked_for(accept: &str) -> bool {
    let first = accept.split(',').next().unwrap_or_default();
    first.split(';').any(|part| part.trim() == "as=Table") && first.contains("g=meta.k8s.io")
}

/// A list, or one object, as a table; `None` if it is neither.
pub fn of(document: &Value, now: Timestamp) -> Option<Value> {
    let (metadata, version, kind) = (document.get("metadata")?, document.get("apiVersion")?, text(document, "/kind"));
    let is_list = document.get("items").is_some();
    let kind = kind.strip_suffix("List").filter(|_| is_list).unwrap_or(kind);
    let objects = if is_list { items(document, "/items") } else { std::slice::from_ref(document) };
    let (columns, cells) = columns(kind);
    let header = |name: &&str| {
        let format = if *name == "Name" { "name" } else { "" };
        json!({"name": name, "type": "string", "format": format, "priority": 0, "description": ""})
    };
    let row = |object: &Value| {
        let mut whole = object.clone();
        whole["apiVersion"] = version.clone();
        whole["kind"] = json!(kind);
        json!({"cells": cells(object, now), "object": whole})
    };
    Some(json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": if is_list { metadata.clone() } else { json!({}) },
        "columnDefinitions": columns.iter().map(header).collect::<Vec<_>>(),
        "rows": objects.iter().map(row).collect::<Vec<_>>(),
    }))
}

/// How an object fills the columns of its kind.
type Cells = fn(&Value, Timestamp) -> Vec<String>;

fn columns(kind: &str) -> (&'static [&'static str], Cells) {
    match kind {
        "Pod" => (&["Name", "Ready", "Status", "Restarts", "Age"], pod),
        "Deployment" => (&["Name", "Ready", "Up-to-date", "Available", "Age"], deployment),
        "Ingress" => (&["Name", "Class", "Hosts", "Address", "Ports", "Age"], ingress),
        "Event" => (&["Last Seen", "Type", "Reason", "Object", "Message"], event),
        _ => (&["Name", "Age"], |object, now| vec![name(object), age(object, now)]),
    }
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name").to_owned()
}

fn age(object: &Value, now: Timestamp) -> String {
    since(text(object, "/metadata/creationTimestamp"), now)
}

/// How long ago that was, in the largest unit of which there are two.
fn since(time: &str, now: Timestamp) -> String {
    let Ok(then) = time.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    match (now.as_second() - then.as_second()).max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

fn count(object: &Value, pointer: &str) -> i64 {
    number(object, pointer).unwrap_or(0)
}

fn deployment(object: &Value, now: Timestamp) -> Vec<String> {
    vec![
        name(object),
        format!("{}/{}", count(object, "/status/readyReplicas"), count(object, "/spec/replicas")),
        count(object, "/status/updatedReplicas").to_string(),
        count(object, "/status/availableReplicas").to_string(),
        age(object, now),
    ]
}

/// A pod, whose status is the first reason for which a container does not run.
fn pod(object: &Value, now: Timestamp) -> Vec<String> {
    let statuses = items(object, "/status/containerStatuses");
    let ready = statuses.iter().filter(|one| one["ready"] == json!(true)).count();
    let reasons = ["/state/waiting/reason", "/state/terminated/reason"];
    let mut why = statuses.iter().flat_map(|one| reasons.map(|reason| text(one, reason)));
    let status = match text(object, "/metadata/deletionTimestamp") {
        "" => why.find(|why| !why.is_empty()).unwrap_or_else(|| text(object, "/status/phase")),
        _ => "Terminating",
    };
    vec![
        name(object),
        format!("{ready}/{}", items(object, "/spec/containers").len()),
        status.to_owned(),
        statuses.iter().map(|one| count(one, "/restartCount")).sum::<i64>().to_string(),
        age(object, now),
    ]
}

fn ingress(object: &Value, now: Timestamp) -> Vec<String> {
    let hosts: Vec<&str> = items(object, "/spec/rules").iter().map(|rule| text(rule, "/host")).collect();
    let class = Some(text(object, "/spec/ingressClassName")).filter(|class| !class.is_empty()).unwrap_or(NONE);
    let ports = if items(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![name(object), class.to_owned(), hosts.join(","), String::new(), ports.to_owned(), age(object, now)]
}

/// An Event under either of its addresses: the old one has `involvedObject` and `message`, the new one `regarding` and `note`.
fn event(object: &Value, now: Timestamp) -> Vec<String> {
    let first = |pointers: &[&str]| pointers.iter().map(|at| text(object, at)).find(|text| !text.is_empty());
    let kind = first(&["/involvedObject/kind", "/regarding/kind"]).unwrap_or_default().to_lowercase();
    let about = first(&["/involvedObject/name", "/regarding/name"]).unwrap_or_default();
    let last = first(&["/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"]).unwrap_or_default();
    vec![
        since(last, now),
        text(object, "/type").to_owned(),
        text(object, "/reason").to_owned(),
        format!("{kind}/{about}"),
        first(&["/message", "/note"]).unwrap_or_default().to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-23T10:05:00Z".parse().unwrap()
    }

    fn metadata() -> Value {
        json!({"name": "web", "namespace": "shop", "creationTimestamp": "2026-11-23T10:00:00Z"})
    }

    /// The cells of one object, one after another.
    fn shown(kind: &str, object: &Value) -> String {
        let list = json!({"kind": format!("{kind}List"), "apiVersion": "v1", "metadata": {}, "items": [object]});
        let table = of(&list, now()).unwrap();
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), cells.len(), "{table}");
        cells.iter().map(|cell| cell.as_str().unwrap()).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_pod_says_what_keeps_it() {
        let of = |status: Value| {
            let object = json!({"metadata": metadata(), "spec": {"containers": [{"name": "web"}]}, "status": status});
            shown("Pod", &object)
        };
        let container = |state: Value| json!([{"name": "web", "ready": false, "restartCount": 2, "state": state}]);
        let waiting = container(json!({"waiting": {"reason": "ImagePullBackOff"}}));
        let pending = of(json!({"phase": "Pending", "containerStatuses": waiting}));
        assert_eq!(pending, "web | 0/1 | ImagePullBackOff | 2 | 5m");
        let running = container(json!({"running": {}}));
        assert_eq!(of(json!({"phase": "Running", "containerStatuses": running})), "web | 0/1 | Running | 2 | 5m");
    }

    #[test]
    fn an_event_under_either_address_is_one_row() {
        let old = json!({
            "metadata": metadata(), "type": "Normal", "reason": "PurgeCompleted", "message": "CloudFront reports the purge completed",
            "involvedObject": {"kind": "Deployment", "name": "web"}, "lastTimestamp": "2026-11-23T10:04:30Z",
        });
        let new = json!({
            "metadata": metadata(), "type": "Normal", "reason": "PurgeCompleted", "note": "CloudFront reports the purge completed",
            "regarding": {"kind": "Deployment", "name": "web"}, "eventTime": "2026-11-23T10:04:30.000000Z",
        });
        let expected = "30s | Normal | PurgeCompleted | deployment/web | CloudFront reports the purge completed";
        assert_eq!([shown("Event", &old), shown("Event", &new)], [expected, expected]);
    }

    #[test]
    fn every_kind_has_as_many_cells_as_columns_also_of_an_object_with_nothing_in_it() {
        for kind in ["Pod", "Deployment", "Ingress", "Event", "Repo"] {
            assert!(shown(kind, &json!({"metadata": {"name": "web"}})).contains("<unknown>"), "{kind}");
        }
        assert_eq!(of(&json!({"major": "1"}), now()), None);
    }
}

//! `scale` of Deployments and ReplicaSets, as `kubectl scale` reads and patches it, and `log` of pods.
//!
//! Containers do not run here, so a log only says what would: nothing is made up. Not for `status`, which is a part of every object
//! (`write`), nor for `exec` and `attach`, which nothing here could answer.

use serde_json::{Value, json};

use super::KubernetesStandIn;
use super::body::{parse, patch_form};
use super::failure::Failure;
use super::object::{Key, number, text};
use super::patch;
use super::resource::Kind;
use super::write::{Part, PatchForm};
use crate::http::{Reply, Request};

/// Answers a request if it is about one of these.
pub fn answer(stand_in: &KubernetesStandIn, request: &Request) -> Option<Result<Reply, Failure>> {
    match request.segments().as_slice() {
        ["apis", "apps", "v1", "namespaces", namespace, plural, name, "scale"] => {
            let kind = Kind::served_at("apps", "v1", plural).filter(|kind| *kind != Kind::DaemonSet)?;
            Some(scale(stand_in, request, kind, &Key::new(*namespace, *name)))
        }
        ["api", "v1", "namespaces", namespace, "pods", name, "log"] => {
            Some(log(stand_in, request, &Key::new(*namespace, *name)))
        }
        _ => None,
    }
}

fn scale(stand_in: &KubernetesStandIn, request: &Request, kind: Kind, key: &Key) -> Result<Reply, Failure> {
    let found = stand_in.get_object(kind, key).ok_or_else(|| Failure::not_found(kind, &key.name))?;
    let before = scale_of(&found.value());
    let after = match request.method.as_str() {
        "GET" => return Ok(Reply::full(200, "application/json", before.to_string())),
        "PUT" => parse(&request.body)?,
        "PATCH" => {
            let (mut after, change) = (before.clone(), parse(&request.body)?);
            match patch_form(request)? {
                PatchForm::Merge | PatchForm::Strategic | PatchForm::Apply => patch::merge(&mut after, &change),
                PatchForm::Operations => patch::apply_operations(&mut after, &change)?,
            }
            after
        }
        _ => return Err(Failure::method_not_allowed()),
    };
    stand_in.count_write();
    let version = text(&after, "/metadata/resourceVersion");
    if !version.is_empty() && version != text(&before, "/metadata/resourceVersion") {
        return Err(Failure::conflict(kind, &key.name));
    }
    let replicas = number(&after, "/spec/replicas").unwrap_or(0);
    if replicas < 0 {
        let why = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(Failure::invalid(kind, &key.name, "spec.replicas", "FieldValueInvalid", &why));
    }
    let change = json!({"spec": {"replicas": replicas}});
    let (written, _) = stand_in.write(|writer| writer.patch(kind, key, PatchForm::Merge, &change, Part::Main))?;
    Ok(Reply::full(200, "application/json", scale_of(&written.value()).to_string()))
}

/// An object as its scale (`autoscaling/v1`).
fn scale_of(object: &Value) -> Value {
    let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata: serde_json::Map<String, Value> =
        kept.into_iter().map(|field| (field.to_owned(), object["metadata"][field].clone())).collect();
    let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object).into_iter().flatten();
    let selector: Vec<String> =
        labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": number(object, "/spec/replicas").unwrap_or(1)},
        "status": {"replicas": number(object, "/status/replicas").unwrap_or(0), "selector": selector.join(",")},
    })
}

/// What a container would have written. One that does not run has written nothing, and the answer says why, as a kubelet's does.
fn log(stand_in: &KubernetesStandIn, request: &Request, key: &Key) -> Result<Reply, Failure> {
    if request.method != http::Method::GET {
        return Err(Failure::method_not_allowed());
    }
    let pod = stand_in.get_object(Kind::Pod, key).ok_or_else(|| Failure::not_found(Kind::Pod, &key.name))?.value();
    let asked = request.query.get("container").map(String::as_str).unwrap_or_default();
    let all = |field: &str| pod.pointer(field).and_then(Value::as_array).into_iter().flatten();
    let mut named = all("/spec/containers").chain(all("/spec/initContainers"));
    let container = named.find(|one| asked.is_empty() || text(one, "/name") == asked);
    let container = container
        .ok_or_else(|| Failure::bad_request(format!("container {asked} is not valid for pod {}", key.name)))?;
    let name = text(container, "/name");
    let mut statuses = all("/status/containerStatuses").chain(all("/status/initContainerStatuses"));
    let state = statuses.find(|one| text(one, "/name") == name).map(|one| &one["state"]);
    if let Some(why) = state.map(|state| text(state, "/waiting/reason")).filter(|why| !why.is_empty()) {
        let words = format!("container \"{name}\" in pod \"{}\" is waiting to start: {why}", key.name);
        return Err(Failure::bad_request(words));
    }
    let image = text(container, "/image");
    let words = format!("This is a stand-in for a cluster: {image} is not run, and so it writes no log.\n");
    Ok(Reply::full(200, "text/plain", words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Body, StandIn as _};
    use crate::kubernetes::Options;
    use bytes::Bytes;

    fn ask(stand_in: &KubernetesStandIn, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("application/merge-patch+json"));
        let body = Bytes::copy_from_slice(body.as_bytes());
        let request = Request::new(method.parse().unwrap(), &path.parse().unwrap(), headers, body);
        let reply = stand_in.answer(&request);
        let Body::Full(bytes) = reply.body else { panic!("{path} is no stream") };
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        (reply.status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
    }

    #[test]
    fn a_deployment_is_scaled_as_kubectl_does_it() {
        let stand_in = KubernetesStandIn::new(Options::default());
        stand_in.deploy("shop", "web", "web:1", 3).unwrap();
        let path = "/apis/apps/v1/namespaces/shop/deployments/web/scale";
        let (code, scale) = ask(&stand_in, "GET", path, "");
        assert_eq!((code, &scale["spec"]["replicas"], text(&scale, "/status/selector")), (200, &json!(3), "app=web"));
        let (code, scale) = ask(&stand_in, "PATCH", path, r#"{"spec":{"replicas":5}}"#);
        assert_eq!((code, text(&scale, "/kind"), &scale["spec"]["replicas"]), (200, "Scale", &json!(5)));
        let stored = stand_in.get(Kind::Deployment, "shop", "web").unwrap();
        assert_eq!((&stored["spec"]["replicas"], &stored["metadata"]["generation"]), (&json!(5), &json!(2)));
        let stale = r#"{"metadata":{"resourceVersion":"1"},"spec":{"replicas":1}}"#;
        assert_eq!(ask(&stand_in, "PATCH", path, stale).0, 409);
        assert_eq!(ask(&stand_in, "PATCH", path, r#"{"spec":{"replicas":-1}}"#).0, 422);
        assert_eq!(ask(&stand_in, "GET", "/apis/apps/v1/namespaces/shop/deployments/no/scale", "").0, 404);
        assert_eq!(stand_in.get(Kind::Deployment, "shop", "web").unwrap()["spec"]["replicas"], json!(5));
    }

    #[test]
    fn a_log_says_that_nothing_runs_here_and_why_a_container_waits() {
        let stand_in = KubernetesStandIn::new(Options::default());
        let pod = |state: Value| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web-1"},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                "status": {"phase": "Pending", "containerStatuses": [{"name": "web", "state": state}]},
            })
        };
        stand_in.put(pod(json!({"running": {}}))).unwrap();
        let path = "/api/v1/namespaces/shop/pods/web-1/log";
        let (code, log) = ask(&stand_in, "GET", path, "");
        assert!(code == 200 && log.as_str().is_some_and(|log| log.contains("web:1 is not run")), "{log}");
        stand_in.put(pod(json!({"waiting": {"reason": "ImagePullBackOff"}}))).unwrap();
        let (code, refused) = ask(&stand_in, "GET", &format!("{path}?container=web"), "");
        assert_eq!(code, 400);
        assert!(text(&refused, "/message").ends_with("is waiting to start: ImagePullBackOff"), "{refused}");
        assert_eq!(ask(&stand_in, "GET", &format!("{path}?container=no"), "").0, 400);
        assert_eq!(ask(&stand_in, "GET", "/api/v1/namespaces/shop/pods/no/log", "").0, 404);
    }
}

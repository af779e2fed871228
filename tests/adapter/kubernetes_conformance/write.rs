//! Writing: fields the server owns, generations, status as a place of its own, patches and deletions.

use serde_json::json;

use super::support::{Api, Check, checks, names, refused, version};

pub const CHECKS: &[(&str, Check)] = checks![
    the_server_fills_in_identity,
    versions_grow_and_writes_without_change_leave_none,
    a_deployment_is_given_its_defaults,
    a_deployments_generation_counts_spec_and_annotations,
    an_ingress_generation_counts_the_spec_alone,
    status_is_written_at_its_own_place,
    a_custom_resource_differs_where_they_do_on_demand,
    every_form_of_patch_works,
    server_side_apply_creates_and_merges,
    a_lease_cannot_be_updated_blindly,
    events_are_kept,
    the_old_address_takes_events_with_both_times,
    an_event_with_a_time_is_held_to_the_new_rules,
    a_delete_minds_its_preconditions,
    finalizers_hold_an_object,
    a_pod_without_a_node_ends_at_once,
];

async fn the_server_fills_in_identity(api: Api) {
    let mut map = api.config_map("a", "1");
    map["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    map["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    let made = api.post(&api.path("configmaps"), &map).await.unwrap();
    let metadata = &made["metadata"];
    assert_eq!(metadata["namespace"], json!(api.namespace));
    assert_ne!(metadata["uid"], map["metadata"]["uid"]);
    assert_ne!(metadata["creationTimestamp"], map["metadata"]["creationTimestamp"]);
    let mut generated = api.config_map("b", "1");
    generated["metadata"]["name"] = json!(null);
    generated["metadata"]["generateName"] = json!("some-");
    let (one, two) = (
        api.post(&api.path("configmaps"), &generated).await.unwrap(),
        api.post(&api.path("configmaps"), &generated).await.unwrap(),
    );
    let name = one["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("some-") && name.len() == 10 && one["metadata"]["name"] != two["metadata"]["name"]);
    assert_ne!(one["metadata"]["uid"], two["metadata"]["uid"]);
}

async fn versions_grow_and_writes_without_change_leave_none(api: Api) {
    let made = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    let same = api.put(&path, &made).await.unwrap();
    assert_eq!(version(&same), version(&made));
    let same = api.merge(&path, &json!({"data": {"v": "1"}})).await.unwrap();
    assert_eq!(version(&same), version(&made));
    let blind = api.put(&path, &api.config_map("a", "2")).await.unwrap();
    let number = |object| version(object).parse::<u64>().unwrap();
    assert!(number(&blind) > number(&made), "without a resourceVersion the update is unconditional");
    assert_eq!(blind["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(blind["metadata"]["creationTimestamp"], made["metadata"]["creationTimestamp"]);
}

async fn a_deployment_is_given_its_defaults(api: Api) {
    let mut deployment = api.deployment("a");
    deployment["spec"].as_object_mut().unwrap().remove("replicas");
    deployment["spec"]["paused"] = json!(true);
    deployment["status"] = json!({"replicas": 7});
    let made = api.post(&api.path("deployments"), &deployment).await.unwrap();
    let spec = &made["spec"];
    assert_eq!((&spec["replicas"], &spec["progressDeadlineSeconds"]), (&json!(1), &json!(600)));
    assert_eq!(spec["revisionHistoryLimit"], 10);
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    assert_eq!(spec["strategy"], rolling);
    assert_eq!(spec["template"]["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(spec["template"]["spec"]["terminationGracePeriodSeconds"], 30);
    assert!(made["status"]["replicas"].is_null(), "a status cannot be created");
    assert_eq!(made["metadata"]["generation"], 1);
}

async fn a_deployments_generation_counts_spec_and_annotations(api: Api) {
    api.post(&api.path("deployments"), &api.deployment("a")).await.unwrap();
    let path = format!("{}/{}", api.path("deployments"), api.name("a"));
    let image =
        |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}});
    for (change, expected, why) in [
        (json!({"metadata": {"labels": {"a": "b"}}}), 1, "labels do not count"),
        (image("web:2"), 2, "the spec counts"),
        (image("web:2"), 2, "no change is no change"),
        (json!({"metadata": {"annotations": {"a": "b"}}}), 3, "annotations count, for Deployments"),
        (json!({"status": {"replicas": 9}}), 3, "status is ignored here"),
        (json!({"metadata": {"generation": 50}}), 3, "the number is the server's"),
        (json!({"spec": {"paused": true}}), 4, "every field of the spec counts"),
    ] {
        let after = api.patch(&path, "strategic-merge-patch+json", &change).await.unwrap();
        assert_eq!(after["metadata"]["generation"], expected, "{why}");
    }
    let status = api.merge(&format!("{path}/status"), &json!({"status": {"collisionCount": 3}})).await.unwrap();
    assert_eq!((&status["metadata"]["generation"], &status["status"]["collisionCount"]), (&json!(4), &json!(3)));
}

async fn an_ingress_generation_counts_the_spec_alone(api: Api) {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": api.name("a")}, "spec": {"defaultBackend": backend},
    });
    let made = api.post(&api.path("ingresses"), &ingress).await.unwrap();
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{}/{}", api.path("ingresses"), api.name("a"));
    let annotated = api.merge(&path, &json!({"metadata": {"annotations": {"a": "b"}}})).await.unwrap();
    assert_eq!(annotated["metadata"]["generation"], 1);
    let changed = json!({"spec": {"defaultBackend": {"service": {"name": "other"}}}});
    assert_eq!(api.merge(&path, &changed).await.unwrap()["metadata"]["generation"], 2);
}

async fn status_is_written_at_its_own_place(api: Api) {
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": api.name("a")},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    });
    api.post(&api.path("ingresses"), &ingress).await.unwrap();
    let path = format!("{}/{}", api.path("ingresses"), api.name("a"));
    let balancer = |ip: &str| json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
    let main = api.merge(&path, &json!({"status": balancer("192.0.2.1")})).await.unwrap();
    assert_eq!(main["status"], json!({"loadBalancer": {}}));
    let mut both = main.clone();
    both["status"] = balancer("192.0.2.2");
    both["spec"]["defaultBackend"]["service"]["name"] = json!("ignored");
    let status = api.put(&format!("{path}/status"), &both).await.unwrap();
    assert_eq!(status["status"]["loadBalancer"]["ingress"][0]["ip"], "192.0.2.2");
    assert_eq!(status["spec"], main["spec"]);
    assert_ne!(version(&status), version(&main));
    refused(api.put(&format!("{path}/status"), &both).await, 409, "Conflict");
    assert_eq!(api.get(&format!("{path}/status")).await.unwrap()["status"], status["status"]);
}

/// On demand because a real cluster may lack the Gateway API.
async fn a_custom_resource_differs_where_they_do_on_demand(api: Api) {
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": api.name("a"), "labels": {"check": api.check}}, "spec": {"hostnames": ["www.example.com"]},
    });
    let made = api.post(&api.path("httproutes"), &route).await.unwrap();
    let path = format!("{}/{}", api.path("httproutes"), api.name("a"));
    assert_eq!(made["metadata"]["generation"], 1);
    let annotated = api.merge(&path, &json!({"metadata": {"annotations": {"a": "b"}}})).await.unwrap();
    assert_eq!(annotated["metadata"]["generation"], 1);
    let changed = api.merge(&path, &json!({"spec": {"hostnames": ["example.com"]}})).await.unwrap();
    assert_eq!(changed["metadata"]["generation"], 2);
    refused(api.put(&path, &route).await, 422, "Invalid");
    let strategic = api.patch(&path, "strategic-merge-patch+json", &json!({"spec": {}})).await;
    refused(strategic, 415, "UnsupportedMediaType");
    let list = api.get(&format!("{}?{}", api.path("httproutes"), api.mine())).await.unwrap();
    assert_eq!(list["items"][0]["kind"], "HTTPRoute", "items of custom lists carry their type");
}

async fn every_form_of_patch_works(api: Api) {
    api.post(&api.path("deployments"), &api.deployment("a")).await.unwrap();
    let path = format!("{}/{}", api.path("deployments"), api.name("a"));
    let merged = json!({"metadata": {"labels": {"x": "1", "y": "2"}}});
    assert_eq!(api.merge(&path, &merged).await.unwrap()["metadata"]["labels"]["x"], "1");
    let removed = api.merge(&path, &json!({"metadata": {"labels": {"x": null}}})).await.unwrap();
    assert!(removed["metadata"]["labels"]["x"].is_null() && removed["metadata"]["labels"]["y"] == "2");
    let operations = json!([
        {"op": "test", "path": "/metadata/labels/y", "value": "2"},
        {"op": "replace", "path": "/metadata/labels/y", "value": "3"},
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "1"}},
        {"op": "add", "path": "/metadata/annotations/a~1c", "value": "2"},
    ]);
    let patched = api.patch(&path, "json-patch+json", &operations).await.unwrap();
    assert_eq!(
        (&patched["metadata"]["labels"]["y"], &patched["metadata"]["annotations"]["a/c"]),
        (&json!("3"), &json!("2"))
    );
    let failing = json!([{"op": "test", "path": "/metadata/labels/y", "value": "2"}]);
    assert_eq!(api.patch(&path, "json-patch+json", &failing).await.unwrap_err().code, 422);
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}});
    let both = api.patch(&path, "strategic-merge-patch+json", &sidecar).await.unwrap();
    assert_eq!(both["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2);
}

async fn server_side_apply_creates_and_merges(api: Api) {
    let path = format!("{}/{}?fieldManager=check", api.path("configmaps"), api.name("a"));
    let made = api.patch(&path, "apply-patch+yaml", &api.config_map("a", "1")).await.unwrap();
    let changed = api.patch(&path, "apply-patch+yaml", &api.config_map("a", "2")).await.unwrap();
    assert_eq!((&changed["data"]["v"], &changed["metadata"]["uid"]), (&json!("2"), &made["metadata"]["uid"]));
}

async fn a_lease_cannot_be_updated_blindly(api: Api) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": api.name("a")},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15},
    });
    let mut made = api.post(&api.path("leases"), &lease).await.unwrap();
    let path = format!("{}/{}", api.path("leases"), api.name("a"));
    let status = refused(api.put(&path, &lease).await, 422, "Invalid");
    assert_eq!(status.details.unwrap().causes[0].field, "metadata.resourceVersion");
    made["spec"]["holderIdentity"] = json!("two");
    assert_eq!(api.put(&path, &made).await.unwrap()["spec"]["holderIdentity"], "two");
    refused(api.put(&path, &made).await, 409, "Conflict");
}

async fn events_are_kept(api: Api) {
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": api.name("a"), "labels": {"check": api.check}},
        "eventTime": "2026-11-20T10:00:00.000000Z", "reportingController": "allclear.dev/check",
        "reportingInstance": "check-1", "action": "Check", "reason": "Checked", "type": "Normal", "note": "a check ran",
        "regarding": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": api.namespace},
    });
    api.post(&api.path("events"), &event).await.unwrap();
    let list = api.get(&format!("{}?{}", api.path("events"), api.mine())).await.unwrap();
    assert_eq!((&list["kind"], &list["items"][0]["note"]), (&json!("EventList"), &json!("a check ran")));
    // What `kubectl describe` asks for.
    let about = format!(
        "involvedObject.kind%3DDeployment,involvedObject.name%3Dweb,involvedObject.namespace%3D{}",
        api.namespace
    );
    let path = format!("/api/v1/namespaces/{}/events?{}&fieldSelector={about}", api.namespace, api.mine());
    let old = api.get(&path).await.unwrap();
    assert_eq!(
        (&old["items"][0]["message"], &old["items"][0]["involvedObject"]["name"]),
        (&json!("a check ran"), &json!("web"))
    );
}

/// An Event under its old address, whole: both kinds of time, as our adapter writes it.
fn old_event(api: &Api, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": api.name(name), "labels": {"check": api.check}},
        "eventTime": "2026-11-20T10:00:00.250000Z", "firstTimestamp": "2026-11-20T10:00:00Z",
        "lastTimestamp": "2026-11-20T10:00:00Z", "count": 1, "reportingComponent": "allclear.dev/check",
        "reportingInstance": "check-1", "action": "Check", "reason": "Checked", "type": "Normal", "message": "a check ran",
        "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": api.namespace},
    })
}

async fn the_old_address_takes_events_with_both_times(api: Api) {
    let events = format!("/api/v1/namespaces/{}/events", api.namespace);
    // By name, and not in the order in which they were made.
    for name in ["b", "a"] {
        let made = api.post(&events, &old_event(&api, name)).await.unwrap();
        assert_eq!((&made["apiVersion"], &made["lastTimestamp"]), (&json!("v1"), &json!("2026-11-20T10:00:00Z")));
    }
    let list = api.get(&format!("{events}?{}", api.mine())).await.unwrap();
    assert_eq!(names(&list), ["a", "b"]);
    let status = refused(api.post(&events, &old_event(&api, "a")).await, 409, "AlreadyExists");
    assert_eq!(status.message, format!("events \"{}\" already exists", api.name("a")));
    // The other version of the same object.
    let new = api.get(&format!("{}/{}", api.path("events"), api.name("a"))).await.unwrap();
    assert_eq!(
        (&new["deprecatedLastTimestamp"], &new["eventTime"], &new["deprecatedCount"]),
        (&json!("2026-11-20T10:00:00Z"), &json!("2026-11-20T10:00:00.250000Z"), &json!(1))
    );
}

async fn an_event_with_a_time_is_held_to_the_new_rules(api: Api) {
    let events = format!("/api/v1/namespaces/{}/events", api.namespace);
    for (field, value) in [
        ("action", json!("")),
        ("reason", json!("r".repeat(129))),
        ("reportingInstance", json!("")),
        ("reportingComponent", json!("not a name")),
        ("message", json!("m".repeat(1_025))),
        ("involvedObject", json!({"kind": "Deployment", "name": "web"})),
    ] {
        let mut event = old_event(&api, "a");
        event[field] = value;
        refused(api.post(&events, &event).await, 422, "Invalid");
    }
    let mut event = old_event(&api, "a");
    event["eventTime"] = json!("2026-11-20T10:00:00Z");
    refused(api.post(&events, &event).await, 400, "BadRequest");
}

async fn a_delete_minds_its_preconditions(api: Api) {
    let made = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    let delete = |condition: serde_json::Value| {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": condition});
        let (api, path) = (api.clone(), path.clone());
        async move { api.send("DELETE", &path, Some(&options), "application/json").await }
    };
    refused(delete(json!({"uid": "00000000-0000-4000-8000-000000000000"})).await, 409, "Conflict");
    refused(delete(json!({"resourceVersion": "1"})).await, 409, "Conflict");
    let done = delete(json!({"uid": made["metadata"]["uid"]})).await.unwrap();
    assert_eq!((&done["kind"], &done["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(done["details"]["uid"], made["metadata"]["uid"]);
    refused(api.get(&path).await, 404, "NotFound");
    let again = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    assert_ne!(again["metadata"]["uid"], made["metadata"]["uid"]);
}

async fn finalizers_hold_an_object(api: Api) {
    let mut deployment = api.deployment("a");
    deployment["metadata"]["finalizers"] = json!(["allclear.dev/check"]);
    api.post(&api.path("deployments"), &deployment).await.unwrap();
    let path = format!("{}/{}", api.path("deployments"), api.name("a"));
    api.delete(&path).await.unwrap();
    let held = api.get(&path).await.unwrap();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held["metadata"]["generation"], 2, "the beginning of a deletion counts too");
    api.merge(&path, &json!({"metadata": {"finalizers": null}})).await.unwrap();
    refused(api.get(&path).await, 404, "NotFound");
}

async fn a_pod_without_a_node_ends_at_once(api: Api) {
    // A scheduler that does not exist: the pod never gets a node, also in a real cluster.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": api.name("a")},
        "spec": {"schedulerName": "allclear-none", "containers": [{"name": "web", "image": "web:1"}]},
    });
    let made = api.post(&api.path("pods"), &pod).await.unwrap();
    assert_eq!(made["status"]["phase"], "Pending");
    let path = format!("{}/{}", api.path("pods"), api.name("a"));
    assert_eq!(api.delete(&path).await.unwrap()["kind"], "Pod");
    refused(api.get(&path).await, 404, "NotFound");
}

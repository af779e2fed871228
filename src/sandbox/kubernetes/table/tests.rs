use super::*;

fn now() -> Timestamp {
    "2026-11-23T10:05:00Z".parse().unwrap()
}

/// The cells of one object under the names of their columns.
fn cells(kind: &str, object: &Value) -> Vec<(String, Value)> {
    let list = json!({"kind": format!("{kind}List"), "metadata": {"resourceVersion": "7"}, "items": [object]});
    let table = of(&list, "Metadata", now());
    let names = table["columnDefinitions"].as_array().unwrap().iter().map(|column| text(column, "/name").to_owned());
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    let names: Vec<String> = names.collect();
    assert_eq!(names.len(), cells.len(), "{table}");
    names.into_iter().zip(cells.iter().cloned()).collect()
}

fn shown(kind: &str, object: &Value) -> String {
    let cells = cells(kind, object);
    let words = cells.iter().map(|(name, cell)| match cell {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    words.collect::<Vec<_>>().join(" | ")
}

fn metadata() -> Value {
    json!({"name": "web", "namespace": "shop", "creationTimestamp": "2026-11-23T10:00:00Z"})
}

#[test]
fn a_deployment_says_how_far_it_is() {
    let object = json!({
        "metadata": metadata(),
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:2"}]}}},
        "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
    });
    let expected = "Name=web | Ready=2/3 | Up-to-date=1 | Available=2 | Age=5m | Containers=web,log | Images=web:1,log:2 | \
                    Selector=app=web";
    assert_eq!(shown("Deployment", &object), expected);
    assert!(shown("Deployment", &json!({"metadata": metadata()})).contains("Ready=0/0"));
}

#[test]
fn a_pod_says_what_keeps_it() {
    let of = |status: Value| {
        let object = json!({"metadata": metadata(), "spec": {"containers": [{"name": "web"}]}, "status": status});
        cells("Pod", &object)[2].1.clone()
    };
    let container = |state: Value| json!([{"name": "web", "ready": false, "restartCount": 2, "state": state}]);
    let waiting = container(json!({"waiting": {"reason": "ImagePullBackOff"}}));
    let ended = container(json!({"terminated": {"exitCode": 137}}));
    assert_eq!(of(json!({"phase": "Pending", "containerStatuses": waiting})), "ImagePullBackOff");
    assert_eq!(of(json!({"phase": "Running", "containerStatuses": ended})), "ExitCode:137");
    assert_eq!(of(json!({"phase": "Running", "containerStatuses": container(json!({"running": {}}))})), "Running");
    assert_eq!(of(json!({"phase": "Failed", "reason": "Evicted"})), "Evicted");
    let init =
        json!([{"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"running": {}}}]);
    assert_eq!(of(json!({"phase": "Pending", "initContainerStatuses": init})), "Init:1/2");
    let mut going = json!({"metadata": metadata(), "status": {"phase": "Running"}});
    going["metadata"]["deletionTimestamp"] = json!("2026-11-23T10:04:00Z");
    assert_eq!(cells("Pod", &going)[2].1, "Terminating");
}

#[test]
fn an_event_of_either_version_is_one_row() {
    let old = json!({
        "metadata": metadata(), "type": "Normal", "reason": "PurgeCompleted", "message": "the edge is fresh\n",
        "involvedObject": {"kind": "Deployment", "name": "web"}, "lastTimestamp": "2026-11-23T10:04:30Z",
        "source": {"component": "allclear"},
    });
    let new = json!({
        "metadata": metadata(), "type": "Normal", "reason": "PurgeCompleted", "note": "the edge is fresh",
        "regarding": {"kind": "Deployment", "name": "web"}, "eventTime": "2026-11-23T10:04:30.000000Z",
        "reportingController": "allclear",
    });
    let expected = "Last Seen=30s | Type=Normal | Reason=PurgeCompleted | Object=deployment/web | Source=allclear | \
                    Message=the edge is fresh";
    assert_eq!(shown("Event", &old), expected);
    assert_eq!(shown("Event", &new), expected);
}

#[test]
fn services_and_ingresses_say_where_they_are() {
    let service = json!({
        "metadata": metadata(), "spec": {"clusterIP": "10.0.0.7", "selector": {"app": "web"},
            "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]},
    });
    let expected = "Name=web | Type=ClusterIP | Cluster-IP=10.0.0.7 | External-IP=<none> | Port(s)=80/TCP,53/UDP | Age=5m | \
                    Selector=app=web";
    assert_eq!(shown("Service", &service), expected);
    let rules: Vec<Value> = ["a", "b", "c", "d", "e"].map(|host| json!({"host": host})).to_vec();
    let ingress = json!({
        "metadata": metadata(), "spec": {"rules": rules, "tls": [{}]},
        "status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}, {"ip": "10.0.0.1"}]}},
    });
    let expected =
        "Name=web | Class=<none> | Hosts=a,b,c + 2 more... | Address=lb.example.com,10.0.0.1 | Ports=80, 443 | Age=5m";
    assert_eq!(shown("Ingress", &ingress), expected);
}

#[test]
fn every_kind_has_as_many_cells_as_columns_also_of_an_object_with_nothing_in_it() {
    for kind in Kind::ALL {
        let kind = kind.describe().kind;
        let cells = cells(kind, &json!({"metadata": {"name": "web"}}));
        assert!(cells.len() >= 2, "{kind}");
    }
}

#[test]
fn a_row_says_of_its_object_what_is_asked_for() {
    let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "x"}, "items": [{"metadata": metadata()}]});
    let row = |with: &str| of(&list, with, now())["rows"][0].clone();
    assert_eq!(row("")["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row("Object")["object"], json!({"metadata": metadata()}));
    assert_eq!(row("None").get("object"), None);
    assert_eq!(of(&list, "", now())["metadata"], json!({"resourceVersion": "7", "continue": "x"}));
    let one = json!({"kind": "Pod", "metadata": metadata()});
    assert_eq!(of(&one, "", now())["rows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn only_who_asks_for_a_table_gets_one() {
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    assert!(is_asked_for(kubectl));
    for other in [
        "",
        "application/json",
        "application/json, */*",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ] {
        assert!(!is_asked_for(other), "{other}");
    }
}

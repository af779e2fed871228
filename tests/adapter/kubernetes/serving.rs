//! Who serves: pods of one workload and the EndpointSlices of its namespace, read afresh.

use std::time::Duration;

use kinds::reported::Standing;
use purge::ports::{ClusterView, Retry};
use purge::workloads::beside::another_version;
use purge::workloads::serving::old_pods;
use sandbox::kubernetes::{Kind, KubernetesStandIn, Timings};
use serde_json::{Value, json};

use super::{Bench, web};

/// Pods take this long to end.
const GRACE: Duration = Duration::from_secs(30);

/// A new version of `web`, complete by its counts, whose old pods have not ended.
async fn rolled_out(expose: bool) -> Bench {
    let bench = Bench::start().await;
    bench.api.set_timings(Timings { pod_gone: GRACE, ..Timings::IMMEDIATE });
    for name in ["web", "blog"] {
        bench.api.deploy("shop", name, &format!("shop/{name}:1"), 2).unwrap();
    }
    if expose {
        bench.api.expose("shop", "web", "www.example.com").unwrap();
    }
    bench.api.expose("shop", "blog", "blog.example.com").unwrap();
    bench.api.settle();
    bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
    bench.api.settle();
    bench
}

async fn old(bench: &Bench) -> String {
    let view = bench.view();
    let workload = view.workload(&web()).await.unwrap().unwrap();
    assert_eq!(workload.standing(false), Standing::Complete, "terminating pods are in no count");
    old_pods(&view.serving(&workload).await.unwrap(), &workload).to_string()
}

fn conditions(api: &KubernetesStandIn, service: &str) -> Vec<Value> {
    let slices = api.list(Kind::EndpointSlice, "shop");
    let own = slices.iter().filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == *service);
    own.flat_map(|slice| slice["endpoints"].as_array().unwrap()).map(|end| end["conditions"].clone()).collect()
}

#[tokio::test]
async fn old_pods_serve_until_their_endpoints_say_otherwise() {
    let bench = rolled_out(true).await;
    let leaving = json!({"ready": false, "serving": true, "terminating": true});
    let staying = json!({"ready": true, "serving": true, "terminating": false});
    let seen = conditions(&bench.api, "web");
    assert_eq!(seen.iter().filter(|conditions| **conditions == leaving).count(), 2, "{seen:?}");
    assert_eq!(seen.iter().filter(|conditions| **conditions == staying).count(), 2, "{seen:?}");
    assert!(old(&bench).await.ends_with("still serve"));
    // They fail their readiness probes while they end.
    for mut pod in bench.api.list(Kind::Pod, "shop") {
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
            bench.api.put(pod).unwrap();
        }
    }
    bench.api.settle();
    assert_eq!(old(&bench).await, "no old pod serves any more");
    assert_eq!(bench.api.list(Kind::Pod, "shop").len(), 6, "though all of them are still there");
}

#[tokio::test]
async fn without_a_service_old_pods_serve_until_they_are_gone() {
    let bench = rolled_out(false).await;
    assert!(old(&bench).await.ends_with("still serve"));
    bench.api.run_for(GRACE);
    assert_eq!(old(&bench).await, "no old pod serves any more");
    let slices = bench.seen(|seen| seen.path.contains("endpointslices"));
    assert_eq!(slices.len(), 1, "where no pod is ending, nobody is asked who serves");
    let pods = bench.seen(|seen| seen.path.ends_with("/pods"));
    assert!(pods.iter().all(|seen| seen.query.get("labelSelector").is_some_and(|selector| selector == "app=web")));
    assert!(pods.iter().chain(&slices).all(|seen| !seen.query.contains_key("resourceVersion")), "{pods:?}");
}

// Faults: P2
#[tokio::test]
async fn whoever_may_not_see_who_serves_is_told_which_right_is_missing() {
    for (plural, resource) in [("/pods", "pods"), ("/endpointslices", "endpointslices.discovery.k8s.io")] {
        let bench = rolled_out(true).await;
        let view = bench.view();
        let workload = view.workload(&web()).await.unwrap().unwrap();
        bench.refuse(403, 10, move |request| request.path.ends_with(plural));
        let error = view.serving(&workload).await.unwrap_err();
        assert_eq!(
            (error.attempted.as_str(), error.retry),
            (format!("failed to list {resource} in shop").as_str(), Retry::Never)
        );
    }
}

#[tokio::test]
async fn a_service_that_publishes_unready_pods_counts_only_for_the_pods_it_selects() {
    let bench = rolled_out(true).await;
    let view = bench.view();
    let workload = view.workload(&web()).await.unwrap().unwrap();
    let publish = |service: &str| {
        let change = json!({"spec": {"publishNotReadyAddresses": true}});
        bench.api.patch(Kind::Service, "shop", service, &change).unwrap();
    };
    assert_eq!(view.publishes_unready(&workload).await, Ok(false));
    publish("blog");
    assert_eq!(view.publishes_unready(&workload).await, Ok(false));
    let of_one_template = json!({"spec": {"selector": {"app": "web", "pod-template-hash": "5d4"}}});
    bench.api.patch(Kind::Service, "shop", "blog", &of_one_template).unwrap();
    assert_eq!(view.publishes_unready(&workload).await, Ok(true));
    bench.api.patch(Kind::Service, "shop", "blog", &json!({"spec": {"selector": {"app": "blog"}}})).unwrap();
    assert_eq!(view.publishes_unready(&workload).await, Ok(false));
    publish("web");
    assert_eq!(view.publishes_unready(&workload).await, Ok(true));
}

/// What serves beside `web`, in words.
async fn beside(bench: &Bench) -> Option<String> {
    let view = bench.view();
    let workload = view.workload(&web()).await.unwrap().unwrap();
    another_version(&view.beside(&workload).await.unwrap(), &workload, true)
}

#[tokio::test]
async fn a_pod_of_another_workload_behind_the_same_service_is_found_with_its_workload_and_version() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:2", 1).unwrap();
    bench.api.expose("shop", "web", "www.example.com").unwrap();
    let stable = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "stable"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web", "track": "stable"}},
            "template": {
                "metadata": {"labels": {"app": "web", "track": "stable"}},
                "spec": {"containers": [{"name": "web", "image": "shop/web:1"}]},
            },
        },
    });
    bench.api.settle();
    assert_eq!(beside(&bench).await, None);
    let slices = |bench: &Bench| bench.seen(|seen| seen.path.ends_with("/endpointslices")).len();
    assert_eq!(slices(&bench), 0, "its pods alone are behind it");
    bench.api.apply(stable).unwrap();
    bench.api.settle();
    let words = beside(&bench).await.unwrap();
    assert!(words.starts_with("another version serves beside it: pod stable-"), "{words}");
    assert!(words.ends_with(" of stable (web: 1) behind Service web"), "{words}");
    assert_eq!(slices(&bench), 1);
    // It fails its readiness probe.
    for mut pod in bench.api.list(Kind::Pod, "shop") {
        if pod["metadata"]["labels"]["track"] == "stable" {
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
            bench.api.put(pod).unwrap();
        }
    }
    bench.api.settle();
    assert_eq!(beside(&bench).await, None, "it gets no requests");
}

#[tokio::test]
async fn a_pod_of_a_stateful_set_that_is_called_like_the_deployment_is_another_workloads() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:2", 1).unwrap();
    bench.api.expose("shop", "web", "www.example.com").unwrap();
    bench.api.settle();
    let mut pod = bench.api.list(Kind::Pod, "shop").remove(0);
    pod["metadata"] = json!({
        "namespace": "shop", "name": "web-0", "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "another", "controller": true}],
    });
    pod["spec"]["containers"][0]["image"] = json!("shop/web:1");
    bench.api.put(pod).unwrap();
    bench.api.settle();
    let words = beside(&bench).await.unwrap();
    assert!(words.ends_with("pod web-0 of web (web: 1) behind Service web"), "{words}");
}

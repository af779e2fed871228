//! Traffic that moves and the real program: a Service that selects other pods, and an Ingress that leads to another Service, are purged
//! once each; also where nobody watched.

use std::time::Duration;

use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use crate::commands::{allclear, said};
use crate::scene::{DISTRIBUTION, HOST, NAME, NAMESPACE, Scene, image};

/// Who may ask whether an edge is purged.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The workload beside [`NAME`]; its container has its name, so that the two run different versions.
const GREEN: &str = "green";

async fn scene() -> Scene {
    let mut scene = Scene::new().await;
    scene.add_workload(GREEN);
    scene.start().await;
    scene.wait_until("it is known what leads to whom", async |scene| leads(scene, NAME)).await;
    assert_eq!(scene.purged(), [""; 0], "a first look finds no move");
    scene
}

/// What a gate of another allclear is answered that asks for the edge of a workload.
async fn verdict(scene: &Scene, name: &str) -> Value {
    let address = scene.process().address("/livez").expect("it has begun");
    let url = format!("http://{address}/api/v1/fresh/{NAMESPACE}/{name}");
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().expect("a client");
    let answer = client.get(url).bearer_auth(TOKEN).send().await.expect("an answer");
    serde_json::from_str(&answer.text().await.expect("a body")).expect("a verdict")
}

/// Whether the record of a workload says that something leads to it.
fn leads(scene: &Scene, name: &str) -> bool {
    scene.record_of(name).is_some_and(|record| !record.leads.is_empty())
}

fn select(scene: &Scene, name: &str) {
    let change = json!({"spec": {"selector": {"app": name}}});
    scene.world.kubernetes.patch(Kind::Service, NAMESPACE, NAME, &change).expect("the cluster takes it");
}

async fn is_purged(scene: &Scene, times: usize, to: &str, from: &str) {
    let over = async |scene: &Scene| {
        let is_over = scene.record_of(to).is_some_and(|record| !record.is_open() && record.moved.is_some());
        is_over && scene.purged().len() == times && leads(scene, to) && !leads(scene, from)
    };
    scene.wait_until(&format!("purge {times} is that of {to}"), over).await;
    assert_eq!(scene.purged(), vec![DISTRIBUTION; times]);
}

#[tokio::test]
async fn from_blue_to_green_and_back_while_nobody_watched_is_one_purge_each() {
    let mut scene = scene().await;
    select(&scene, GREEN);
    is_purged(&scene, 1, GREEN, NAME).await;
    let told = scene.note(GREEN, "RolloutStarted");
    assert!(told.starts_with("traffic moved from web (web: 1.0) to green (green: 1.0): www.example.com"), "{told}");
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    select(&scene, NAME);
    scene.start().await;
    is_purged(&scene, 2, NAME, GREEN).await;
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until("the next change is purged once", async |scene| scene.purged().len() == 3).await;
}

#[tokio::test]
async fn an_ingress_that_leads_to_another_service_is_one_purge() {
    let scene = scene().await;
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        })
    };
    scene.apply(service(GREEN));
    let backend = json!({"service": {"name": GREEN, "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    let change = json!({"spec": {"rules": [{"host": HOST, "http": {"paths": paths}}]}});
    scene.world.kubernetes.patch(Kind::Ingress, NAMESPACE, NAME, &change).expect("the cluster takes it");
    is_purged(&scene, 1, GREEN, NAME).await;
}

/// Goal: a canary behind the Service of the stable pods is purged, and its edge is not called purged, in Events, `explain`, `wait` and for the gates of others,
/// until the stable ones run its version too. Method: two Deployments with one label that the Service selects.
#[tokio::test]
async fn an_edge_is_not_called_purged_while_another_deployment_serves_another_version_behind_the_same_service() {
    const CANARY: &str = "canary";
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).expect("the token is written");
    let mut scene = Scene::new().await.with("ALLCLEAR__HTTP__FRESH_TOKEN_FILE", token.to_str().expect("a path"));
    let kubernetes = &scene.world.kubernetes;
    let labelled = json!({"spec": {"template": {"metadata": {"labels": {"site": "www"}}}}});
    kubernetes.patch(Kind::Deployment, NAMESPACE, NAME, &labelled).expect("the cluster takes it");
    let change = json!({"spec": {"selector": {"app": null, "site": "www"}}});
    kubernetes.patch(Kind::Service, NAMESPACE, NAME, &change).expect("the cluster takes it");
    scene.apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": CANARY},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": CANARY}},
            "template": {
                "metadata": {"labels": {"app": CANARY, "site": "www"}},
                "spec": {"containers": [{"name": NAME, "image": image("1.0")}]},
            },
        },
    }));
    scene.start().await;
    let known = async |scene: &Scene| leads(scene, NAME) && leads(scene, CANARY);
    scene.wait_until("it is known what leads to whom", known).await;

    scene.world.kubernetes.set_image(NAMESPACE, CANARY, NAME, &image("1.1")).expect("the cluster takes it");
    let over = async |scene: &Scene| scene.is_over(CANARY, 2);
    scene.wait_until("the canary is purged", over).await;
    assert_eq!(scene.purged(), [DISTRIBUTION], "it does not wait for the stable pods");
    let named = |text: &str| {
        text.contains("another version serves beside it: pod web-")
            && text.contains(" of web (web: 1.0) behind Service web")
    };
    let told = scene.note(CANARY, "PurgeCompleted");
    assert!(named(&told) && told.starts_with("purged: ") && !told.contains("CloudFront reports"), "{told}");
    let (_, out, err) = said(&allclear(&scene, &["explain", "shop/canary"]).await);
    assert!(named(&out), "{out}\n{err}");
    let (code, _, err) = said(&allclear(&scene, &["wait", "shop/canary", "--timeout", "1s"]).await);
    assert!(code == 3 && named(&err), "{code} {err}");
    let closed = verdict(&scene, CANARY).await;
    assert!(closed["open"] == false && named(&closed["reason"].to_string()), "{closed}");

    scene.roll_out("1.1");
    scene.wait_until("the stable pods are purged", async |scene| scene.is_over(NAME, 2)).await;
    let told = scene.note(NAME, "PurgeCompleted");
    assert!(told.starts_with("CloudFront reports the purge completed: "), "{told}");
    let (code, out, err) = said(&allclear(&scene, &["wait", "shop/canary", "--timeout", "50s"]).await);
    assert_eq!(code, 0, "{out}\n{err}");
    let is_open = async |scene: &Scene| verdict(scene, CANARY).await == json!({"open": true});
    scene.wait_until("a gate that asks for it opens", is_open).await;
}

//! Argo Rollouts and the real program: a canary and a blue-green Rollout are purged once, when the new pods are the stable ones and not before.

use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use crate::kinds::{purged, record, roll_out};
use crate::scene::{NAME, NAMESPACE, Scene, image};
use purge::records::record::{Failure, Outcome};

const CANARY: (&str, &str) = ("canary", "E2CANARY");
const BLUE_GREEN: (&str, &str) = ("colours", "E2COLOURS");

/// A world with a Rollout that serves a host of its own, settled.
async fn scene((name, distribution): (&str, &str), strategy: Value) -> Scene {
    let scene = Scene::new().await;
    scene.world.kubernetes.set_installed("argoproj.io", true);
    let host = format!("{name}.example.com");
    scene.world.kubernetes.expose(NAMESPACE, name, &host).expect("the cluster takes it");
    scene.add_distribution(distribution, &host);
    scene.apply(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name},
        "spec": {
            "replicas": 3, "strategy": strategy, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": image("1.0")}]},
            },
        },
    }));
    scene.wait_until("it is settled", async |scene| phase(scene, name) == "Healthy").await;
    scene
}

fn phase(scene: &Scene, name: &str) -> String {
    let object = scene.world.kubernetes.get(Kind::ArgoRollout, NAMESPACE, name).unwrap_or_default();
    object["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

fn say(scene: &Scene, name: &str, status: &Value) {
    let change = json!({"status": status});
    scene.world.kubernetes.patch(Kind::ArgoRollout, NAMESPACE, name, &change).expect("the cluster takes it");
}

fn promote(scene: &Scene, name: &str) {
    say(scene, name, &json!({"pauseConditions": null}));
}

async fn until_it_says(scene: &Scene, words: &str) {
    let says = async |scene: &Scene| scene.process().state().await.to_string().contains(words);
    scene.wait_until(words, says).await;
}

/// Until its rollout is closed as purged, for so many times now.
async fn until_purged(scene: &Scene, (name, distribution): (&str, &str), times: usize) {
    let is_over = async |scene: &Scene| {
        let record = record(scene, "Deployment", name);
        record.is_some_and(|record| {
            !record.is_open() && record.history.last().map(|last| &last.outcome) == Some(&Outcome::Purged)
        }) && purged(scene, distribution) == times
    };
    scene.wait_until(&format!("{name} is purged, {times} times"), is_over).await;
}

async fn restart(scene: &mut Scene) {
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    scene.start().await;
}

#[tokio::test]
async fn a_canary_is_held_at_its_pause_and_purged_once_when_it_is_through_and_once_after_an_abort() {
    let steps = json!([{"setWeight": 30}, {"pause": {}}, {"setWeight": 60}]);
    let mut scene = scene(CANARY, json!({"canary": {"steps": steps}})).await;
    let (name, distribution) = CANARY;
    scene.start().await;
    scene.wait_until("it has a baseline", async |scene| record(scene, "Deployment", name).is_some()).await;
    let held = "it is at step 2 of 3 of its canary: a pause until it is promoted";

    roll_out(&scene, Kind::ArgoRollout, name, "1.1");
    until_it_says(&scene, held).await;
    restart(&mut scene).await;
    until_it_says(&scene, held).await;
    assert_eq!(purged(&scene, distribution), 0, "the old pods serve, too");
    promote(&scene, name);
    until_purged(&scene, CANARY, 1).await;

    roll_out(&scene, Kind::ArgoRollout, name, "1.2");
    until_it_says(&scene, held).await;
    say(&scene, name, &json!({"abort": true}));
    let has_failed = async |scene: &Scene| {
        let record = record(scene, "Deployment", name);
        let mut history = record.iter().flat_map(|record| &record.history);
        history.any(|closed| closed.outcome == Outcome::Failed(Failure::Aborted))
    };
    scene.wait_until("the abort is a failure", has_failed).await;
    assert_eq!((purged(&scene, distribution), phase(&scene, name).as_str()), (1, "Degraded"));
    restart(&mut scene).await;
    until_purged(&scene, CANARY, 2).await;
    let after = record(&scene, "Deployment", name).expect("it has a record");
    assert_eq!(after.version.to_string(), format!("{name} {}", image("1.1")), "that is what runs");
    until_it_says(&scene, "the update to canary: 1.2 was aborted").await;
    restart(&mut scene).await;

    say(&scene, name, &json!({"abort": false}));
    until_it_says(&scene, held).await;
    assert_eq!(purged(&scene, distribution), 2, "of the abort, and no more by a restart or a retry");
    promote(&scene, name);
    until_purged(&scene, CANARY, 3).await;

    let events = scene.world.kubernetes.list(Kind::Event, NAMESPACE);
    let about: Vec<&Value> = events.iter().filter(|event| event["regarding"]["name"] == name).collect();
    assert!(about.iter().any(|event| event["reason"] == "RolloutFailed"), "{about:?}");
    assert!(about.iter().all(|event| event["regarding"]["kind"] == "Rollout"), "{about:?}");
}

#[tokio::test]
async fn blue_green_is_purged_once_after_the_switch_though_the_old_pods_run_on() {
    let strategy = json!({
        "activeService": BLUE_GREEN.0, "autoPromotionEnabled": false, "scaleDownDelaySeconds": 3_600,
    });
    let mut scene = scene(BLUE_GREEN, json!({"blueGreen": strategy})).await;
    let (name, distribution) = BLUE_GREEN;
    scene.start().await;
    scene.wait_until("it has a baseline", async |scene| record(scene, "Deployment", name).is_some()).await;
    roll_out(&scene, Kind::ArgoRollout, name, "1.1");
    until_it_says(&scene, "its new pods wait behind the preview Service until they are promoted").await;
    assert_eq!(purged(&scene, distribution), 0, "the active Service leads to the old pods");
    promote(&scene, name);
    until_purged(&scene, BLUE_GREEN, 1).await;
    let pods = scene.world.kubernetes.list(Kind::Pod, NAMESPACE);
    let old = pods.iter().filter(|pod| pod["spec"]["containers"][0]["image"] == image("1.0")).count();
    assert_eq!(old, 6, "those of the Deployment of the scene, and the blue ones");
    restart(&mut scene).await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!(purged(&scene, distribution), 1);
}

#[tokio::test]
async fn a_cluster_goes_from_a_deployment_to_a_rollout_of_the_same_name() {
    let mut scene = Scene::new().await;
    scene.world.kubernetes.set_installed("argoproj.io", true);
    scene.start().await;
    let web = |scene: &Scene| scene.record().expect("it has a record");
    scene.wait_until("it has a baseline", async |scene| scene.record().is_some()).await;
    let deployment = scene.world.kubernetes.get(Kind::Deployment, NAMESPACE, NAME).expect("it is there");
    let mut spec = json!({"replicas": 3, "strategy": {"canary": {}}});
    for part in ["selector", "template"] {
        spec[part] = deployment["spec"][part].clone();
    }
    // The stand-in hashes templates of both kinds in one way, and ReplicaSets are named by it.
    spec["template"]["metadata"]["annotations"] = json!({"by": "argo"});
    scene.apply(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": NAME}, "spec": spec,
    }));
    scene.wait_until("the Rollout is healthy", async |scene| phase(scene, NAME) == "Healthy").await;
    scene.wait_until("the Rollout counts", async |scene| web(scene).stand_in.is_some()).await;
    let is_warned = async |scene: &Scene| web(scene).conditions.iter().any(|words| words.contains("has pods, too"));
    scene.wait_until("both have pods, and that is said", is_warned).await;
    scene.world.kubernetes.delete(Kind::Deployment, NAMESPACE, NAME).expect("it is deleted");
    assert_eq!((web(&scene).seq.0, scene.purged().len()), (1, 0), "the images are the same");
    roll_out(&scene, Kind::ArgoRollout, NAME, "1.1");
    scene.wait_until_over(2).await;
    assert_eq!(scene.purged().len(), 1);
}

#[tokio::test]
async fn a_rollout_with_the_template_of_a_deployment_takes_its_place_under_another_name() {
    let mut scene = Scene::new().await;
    scene.world.kubernetes.set_installed("argoproj.io", true);
    let (name, distribution) = ("next", "E2NEXT");
    scene.world.kubernetes.expose(NAMESPACE, name, "next.example.com").expect("the cluster takes it");
    scene.add_distribution(distribution, "next.example.com");
    scene.world.kubernetes.deploy(NAMESPACE, "legacy", &image("1.0"), 0).expect("the cluster takes it");
    scene.start().await;
    let legacy = async |scene: &Scene| record(scene, "Deployment", "legacy").is_some();
    scene.wait_until("the Deployment has a baseline", legacy).await;
    scene.apply(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name},
        "spec": {
            "replicas": 2, "strategy": {"canary": {}}, "selector": {"matchLabels": {"app": "legacy"}},
            "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "legacy", "scaleDown": "never"},
        },
    }));
    scene
        .world
        .kubernetes
        .patch(Kind::Service, NAMESPACE, name, &json!({"spec": {"selector": {"app": "legacy"}}}))
        .expect("the cluster takes it");
    until_purged(&scene, (name, distribution), 1).await;
    scene.wait_until("the record of the Deployment has gone", async |scene| !legacy(scene).await).await;
    scene.world.kubernetes.set_image(NAMESPACE, "legacy", "legacy", &image("1.1")).expect("the cluster takes it");
    until_purged(&scene, (name, distribution), 2).await;
    let after = record(&scene, "Deployment", name).expect("it has a record");
    assert_eq!(after.version.to_string(), format!("legacy {}", image("1.1")));
    restart(&mut scene).await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!((purged(&scene, distribution), legacy(&scene).await), (2, false), "after a restart, too");
}

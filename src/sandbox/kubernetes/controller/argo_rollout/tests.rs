//! Whole updates, step by step.

use super::*;
use crate::kubernetes::{KubernetesStandIn, Options, PodFate};

const SHOP: &str = "shop";

fn cluster() -> KubernetesStandIn {
    let cluster = KubernetesStandIn::new(Options::default());
    for service in ["web", "web-preview"] {
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
        let metadata = json!({"namespace": SHOP, "name": service});
        cluster.apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})).unwrap();
    }
    cluster
}

fn rollout(image: &str, strategy: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"namespace": SHOP, "name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    })
}

/// A cluster where the first image is rolled out.
fn running(strategy: &Value) -> KubernetesStandIn {
    let cluster = cluster();
    cluster.apply(rollout("web:1", strategy)).unwrap();
    cluster.settle();
    assert_eq!(phase(&cluster), "Healthy");
    cluster
}

fn update(cluster: &KubernetesStandIn, image: &str) {
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}});
    patch(cluster, &change);
}

fn patch(cluster: &KubernetesStandIn, change: &Value) {
    cluster.patch(Kind::ArgoRollout, SHOP, "web", change).unwrap();
}

fn status(cluster: &KubernetesStandIn) -> Value {
    cluster.get(Kind::ArgoRollout, SHOP, "web").unwrap()["status"].take()
}

fn phase(cluster: &KubernetesStandIn) -> String {
    let status = status(cluster);
    match text(&status, "/message") {
        "" => text(&status, "/phase").to_owned(),
        message => format!("{}: {message}", text(&status, "/phase")),
    }
}

/// Pods, updated, ready and available ones.
fn counts(cluster: &KubernetesStandIn) -> [i64; 4] {
    let status = status(cluster);
    ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"].map(|f| status[f].as_i64().unwrap_or(0))
}

/// The images of the pods, in order.
fn images(cluster: &KubernetesStandIn) -> Vec<String> {
    let pods = cluster.list(Kind::Pod, SHOP);
    let mut images: Vec<String> = pods.iter().map(|pod| text(pod, "/spec/containers/0/image").to_owned()).collect();
    images.sort();
    images
}

/// The image of the ReplicaSet that a Service selects by its hash; empty if it selects by none.
fn serves(cluster: &KubernetesStandIn, service: &str) -> String {
    let service = cluster.get(Kind::Service, SHOP, service).unwrap();
    let hash = &service["spec"]["selector"][NAMES.hash];
    let sets = cluster.list(Kind::ReplicaSet, SHOP);
    let set = sets.iter().find(|set| set["metadata"]["labels"][NAMES.hash] == *hash);
    set.map(|set| text(set, "/spec/template/spec/containers/0/image").to_owned()).unwrap_or_default()
}

/// The phases after each step, as long as there is something to do, without repetitions.
fn walk(cluster: &KubernetesStandIn) -> Vec<String> {
    let mut phases = Vec::new();
    while cluster.step() > 0 {
        phases.push(phase(cluster));
    }
    phases.dedup();
    phases
}

fn stepped() -> Value {
    json!({"canary": {"steps": [{"setWeight": 50}, {"pause": {}}, {"setWeight": 100}]}})
}

#[test]
fn a_canary_without_steps_rolls_on_to_the_end() {
    let cluster = running(&json!({"canary": {}}));
    let set = cluster.list(Kind::ReplicaSet, SHOP).remove(0);
    let before = status(&cluster);
    assert_eq!((&before["currentPodHash"], &before["observedGeneration"]), (&before["stableRS"], &json!("1")));
    assert_eq!(set["metadata"]["labels"][NAMES.hash], before["stableRS"]);
    assert_eq!(set["metadata"]["ownerReferences"][0]["kind"], "Rollout");
    update(&cluster, "web:2");
    while cluster.step() > 0 {
        let [replicas, _, _, available] = counts(&cluster);
        assert!((2..=3).contains(&replicas) && available >= 2, "{replicas} pods, {available} available");
    }
    assert_eq!((phase(&cluster), counts(&cluster)), ("Healthy".to_owned(), [2, 2, 2, 2]));
    assert_eq!(images(&cluster), ["web:2", "web:2"]);
    let after = status(&cluster);
    assert_ne!(after["stableRS"], before["stableRS"]);
    assert_eq!((&after["HPAReplicas"], &after["observedGeneration"]), (&json!(2), &json!("2")));
    let version = cluster.version();
    cluster.settle();
    assert_eq!(cluster.version(), version, "a cluster at rest writes nothing");
}

#[test]
fn a_canary_pauses_until_a_person_goes_on() {
    let cluster = running(&stepped());
    update(&cluster, "web:2");
    let phases = walk(&cluster);
    assert_eq!(phases, ["Progressing: more replicas need to be updated", "Paused: CanaryPauseStep",]);
    let paused = status(&cluster);
    assert_eq!((images(&cluster), counts(&cluster)), (vec!["web:1".to_owned(), "web:2".to_owned()], [2, 1, 2, 2]));
    assert_eq!((&paused["currentStepIndex"], &paused["controllerPause"]), (&json!(1), &json!(true)));
    assert_eq!(paused["pauseConditions"][0]["reason"], "CanaryPauseStep");
    cluster.run_for(Duration::from_secs(3_600));
    assert_eq!(phase(&cluster), "Paused: CanaryPauseStep", "a pause has no deadline");
    patch(&cluster, &json!({"status": {"pauseConditions": null}}));
    cluster.settle();
    let done = status(&cluster);
    assert_eq!((phase(&cluster), counts(&cluster)), ("Healthy".to_owned(), [2, 2, 2, 2]));
    assert_eq!((&done["currentStepIndex"], &done["pauseConditions"]), (&json!(3), &Value::Null));
    assert_eq!((&done["controllerPause"], &done["stableRS"]), (&Value::Null, &done["currentPodHash"]));
}

#[test]
fn a_pause_with_a_duration_ends_by_itself_and_the_next_one_is_another() {
    let steps = json!([{"setWeight": 50}, {"pause": {"duration": "2m"}}, {"pause": {"duration": 60}}]);
    let cluster = running(&json!({"canary": {"steps": steps}}));
    update(&cluster, "web:2");
    cluster.settle();
    let pause = |cluster: &KubernetesStandIn| {
        let status = status(cluster);
        (status["currentStepIndex"].as_i64(), text(&status, "/pauseConditions/0/startTime").to_owned())
    };
    cluster.run_for(Duration::from_secs(110));
    let first = pause(&cluster);
    cluster.run_for(Duration::from_secs(15));
    let second = pause(&cluster);
    assert_eq!((first.0, second.0, phase(&cluster)), (Some(1), Some(2), "Paused: CanaryPauseStep".to_owned()));
    assert!(first.1 < second.1, "{first:?} {second:?}");
    cluster.run_for(Duration::from_secs(60));
    assert_eq!((phase(&cluster), images(&cluster)[0].as_str()), ("Healthy".to_owned(), "web:2"));
}

#[test]
fn an_abort_goes_back_to_the_stable_pods_and_a_retry_begins_anew() {
    let cluster = running(&stepped());
    update(&cluster, "web:2");
    cluster.settle();
    patch(&cluster, &json!({"status": {"abort": true}}));
    cluster.settle();
    let aborted = status(&cluster);
    assert_eq!(phase(&cluster), "Degraded: RolloutAborted: Rollout aborted update to revision 2");
    assert_eq!((images(&cluster), counts(&cluster)), (vec!["web:1".to_owned(); 2], [2, 0, 2, 2]));
    assert_eq!((&aborted["currentStepIndex"], aborted["abortedAt"].is_string()), (&json!(0), true));
    assert_ne!(aborted["stableRS"], aborted["currentPodHash"]);
    patch(&cluster, &json!({"status": {"abort": false}}));
    cluster.settle();
    assert_eq!(
        (phase(&cluster), status(&cluster)["abortedAt"].is_null()),
        ("Paused: CanaryPauseStep".to_owned(), true)
    );
    update(&cluster, "web:1");
    cluster.settle();
    assert_eq!((phase(&cluster), images(&cluster)), ("Healthy".to_owned(), vec!["web:1".to_owned(); 2]));
    assert_eq!(status(&cluster)["currentStepIndex"], 3, "back at the stable one, there are no steps");
}

#[test]
fn a_promotion_in_full_skips_the_steps_and_spec_paused_holds_everything() {
    let cluster = running(&stepped());
    patch(&cluster, &json!({"spec": {"paused": true}}));
    update(&cluster, "web:2");
    cluster.settle();
    assert_eq!((phase(&cluster), images(&cluster)[1].as_str()), ("Paused: manually paused".to_owned(), "web:1"));
    patch(&cluster, &json!({"spec": {"paused": false}}));
    cluster.settle();
    assert_eq!(phase(&cluster), "Paused: CanaryPauseStep");
    patch(&cluster, &json!({"status": {"promoteFull": true}}));
    cluster.settle();
    let done = status(&cluster);
    assert_eq!((phase(&cluster), images(&cluster)), ("Healthy".to_owned(), vec!["web:2".to_owned(); 2]));
    assert_eq!((&done["promoteFull"], &done["currentStepIndex"]), (&Value::Null, &json!(3)));
}

#[test]
fn with_traffic_routing_the_stable_pods_stay_and_the_weights_move() {
    let cluster = running(&json!({"canary": {
        "trafficRouting": {"nginx": {"stableIngress": "web"}}, "steps": [{"setWeight": 50}, {"pause": {}}],
    }}));
    let weights = |cluster: &KubernetesStandIn| {
        let status = status(cluster);
        ["canary", "stable"].map(|share| status["canary"]["weights"][share]["weight"].as_i64().unwrap())
    };
    assert_eq!(weights(&cluster), [0, 100]);
    update(&cluster, "web:2");
    let mut seen = Vec::new();
    while cluster.step() > 0 {
        seen.push(weights(&cluster));
    }
    seen.dedup();
    assert_eq!((seen, counts(&cluster)), (vec![[0, 100], [50, 50]], [3, 1, 3, 3]));
    patch(&cluster, &json!({"status": {"abort": true}}));
    cluster.settle();
    assert_eq!((weights(&cluster), counts(&cluster)), ([0, 100], [3, 1, 3, 3]), "the canary stays for a while");
    cluster.run_for(Duration::from_secs(31));
    assert_eq!(counts(&cluster), [2, 0, 2, 2]);
    patch(&cluster, &json!({"status": {"abort": false}}));
    cluster.settle();
    patch(&cluster, &json!({"status": {"pauseConditions": null}}));
    cluster.settle();
    assert_eq!((phase(&cluster), counts(&cluster)), ("Healthy".to_owned(), [4, 2, 4, 4]));
    cluster.run_for(Duration::from_secs(31));
    assert_eq!((counts(&cluster), images(&cluster)), ([2, 2, 2, 2], vec!["web:2".to_owned(); 2]));
}

fn blue_green(more: &Value) -> Value {
    let mut strategy = json!({"activeService": "web", "previewService": "web-preview", "scaleDownDelaySeconds": 60});
    for (field, value) in more.as_object().unwrap() {
        strategy[field] = value.clone();
    }
    json!({"blueGreen": strategy})
}

#[test]
fn blue_green_switches_when_all_new_pods_are_ready_and_keeps_the_old_ones_for_a_while() {
    let cluster = running(&blue_green(&json!({})));
    assert_eq!((serves(&cluster, "web"), serves(&cluster, "web-preview")), ("web:1".to_owned(), "web:1".to_owned()));
    update(&cluster, "web:2");
    let mut seen = Vec::new();
    while cluster.step() > 0 {
        let new = images(&cluster).iter().filter(|image| *image == "web:2").count();
        seen.push((serves(&cluster, "web"), serves(&cluster, "web-preview"), new));
    }
    seen.dedup();
    let at = |active: &str, preview: &str, new| (active.to_owned(), preview.to_owned(), new);
    let expected = [at("web:1", "web:2", 0), at("web:1", "web:2", 2), at("web:2", "web:2", 2)];
    assert_eq!(seen, expected, "the preview first, the active Service last");
    let done = status(&cluster);
    assert_eq!((phase(&cluster), counts(&cluster)), ("Healthy".to_owned(), [4, 2, 2, 2]));
    assert_eq!(
        (&done["blueGreen"]["activeSelector"], &done["stableRS"]),
        (&done["currentPodHash"], &done["currentPodHash"])
    );
    let slice = cluster.get(Kind::EndpointSlice, SHOP, "web-slice").unwrap();
    assert_eq!(items(&slice, "/endpoints").len(), 2, "of four pods the Service leads to the new ones");
    cluster.run_for(Duration::from_secs(50));
    assert_eq!(images(&cluster).len(), 4);
    cluster.run_for(Duration::from_secs(15));
    assert_eq!((images(&cluster), phase(&cluster)), (vec!["web:2".to_owned(); 2], "Healthy".to_owned()));
}

#[test]
fn blue_green_waits_for_a_person_where_it_is_not_to_promote_itself_and_can_be_aborted() {
    let cluster = running(&blue_green(&json!({})));
    update(&cluster, "web:2");
    cluster.step();
    cluster.step();
    patch(&cluster, &json!({"status": {"abort": true}}));
    cluster.settle();
    assert_eq!((images(&cluster).len(), serves(&cluster, "web").as_str()), (4, "web:1"), "all new pods are ready");
    let cluster = running(&blue_green(&json!({"autoPromotionEnabled": false})));
    update(&cluster, "web:2");
    cluster.settle();
    let paused = status(&cluster);
    assert_eq!(phase(&cluster), "Paused: BlueGreenPause");
    assert_eq!((serves(&cluster, "web"), serves(&cluster, "web-preview")), ("web:1".to_owned(), "web:2".to_owned()));
    assert_ne!(paused["blueGreen"]["activeSelector"], paused["blueGreen"]["previewSelector"]);
    patch(&cluster, &json!({"status": {"abort": true}}));
    cluster.settle();
    assert!(phase(&cluster).starts_with("Degraded: RolloutAborted"), "{}", phase(&cluster));
    assert_eq!(serves(&cluster, "web"), "web:1");
    cluster.run_for(Duration::from_secs(31));
    assert_eq!(images(&cluster), ["web:1", "web:1"]);
    update(&cluster, "web:3");
    cluster.settle();
    assert_eq!(phase(&cluster), "Paused: BlueGreenPause");
    patch(&cluster, &json!({"status": {"pauseConditions": null}}));
    cluster.settle();
    assert_eq!((phase(&cluster), serves(&cluster, "web")), ("Healthy".to_owned(), "web:3".to_owned()));
}

#[test]
fn a_broken_image_is_degraded_after_the_deadline_and_heals() {
    let cluster = running(&json!({"canary": {"steps": [{"setWeight": 50}, {"setWeight": 100}]}}));
    cluster.set_fate("web:2", Some(PodFate::CannotPull));
    update(&cluster, "web:2");
    cluster.settle();
    assert_eq!(status(&cluster)["currentStepIndex"], 0, "the step waits for the pod");
    assert!(phase(&cluster).starts_with("Progressing: "), "{}", phase(&cluster));
    cluster.run_for(Duration::from_secs(610));
    assert!(phase(&cluster).starts_with("Degraded: ProgressDeadlineExceeded"), "{}", phase(&cluster));
    cluster.set_fate("web:2", None);
    cluster.settle();
    assert_eq!((phase(&cluster), counts(&cluster)), ("Healthy".to_owned(), [2, 2, 2, 2]));
}

#[test]
fn a_restart_replaces_every_pod_and_a_missing_service_is_named() {
    let cluster = running(&json!({"canary": {}}));
    cluster.run_for(Duration::from_secs(10));
    let names = |cluster: &KubernetesStandIn| -> Vec<String> {
        cluster.list(Kind::Pod, SHOP).iter().map(|pod| text(pod, "/metadata/name").to_owned()).collect()
    };
    let before = names(&cluster);
    let at = cluster.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": SHOP, "name": "clock"},
    }));
    patch(&cluster, &json!({"spec": {"restartAt": at.unwrap()["metadata"]["creationTimestamp"]}}));
    cluster.settle();
    cluster.run_for(Duration::from_secs(120));
    assert!(names(&cluster).iter().all(|name| !before.contains(name)) && names(&cluster).len() == 2);
    assert_eq!((phase(&cluster), status(&cluster)["restartedAt"].is_string()), ("Healthy".to_owned(), true));
    patch(&cluster, &json!({"spec": {"strategy": {"canary": null, "blueGreen": {"activeService": "gone"}}}}));
    cluster.settle();
    assert!(phase(&cluster).contains("service \"gone\" not found"), "{}", phase(&cluster));
}

#[test]
fn the_template_may_be_that_of_a_deployment_and_a_seeded_rollout_rests() {
    let cluster = cluster();
    cluster.deploy(SHOP, "legacy", "web:1", 0).unwrap();
    let mut referring = rollout("web:1", &json!({"canary": {}}));
    let spec = referring["spec"].as_object_mut().unwrap();
    spec.remove("template");
    spec.remove("selector");
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "legacy", "scaleDown": "never"});
    spec.insert("workloadRef".to_owned(), reference);
    cluster.apply(referring).unwrap();
    cluster.settle();
    assert_eq!(
        (phase(&cluster), status(&cluster)["workloadObservedGeneration"].clone()),
        ("Healthy".to_owned(), json!("1"))
    );
    cluster.set_image(SHOP, "legacy", "legacy", "web:2").unwrap();
    cluster.settle();
    assert_eq!(
        (images(&cluster), status(&cluster)["workloadObservedGeneration"].clone()),
        (vec!["web:2".to_owned(); 2], json!("2"))
    );
    cluster.delete(Kind::ArgoRollout, SHOP, "web").unwrap();
    cluster.settle();
    assert!(images(&cluster).is_empty() && cluster.list(Kind::ReplicaSet, SHOP).len() < 3);
    let mut seeded = rollout("web:1", &json!({"canary": {}}));
    seeded["status"] = json!({"observedGeneration": "1", "phase": "Healthy", "currentPodHash": "a", "stableRS": "a"});
    cluster.apply(seeded).unwrap();
    cluster.settle();
    assert!(images(&cluster).is_empty() && status(&cluster)["currentPodHash"] == "a");
}

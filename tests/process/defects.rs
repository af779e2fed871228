//! Each defect known of the program this one replaces, as a fact about this one.

use std::time::{Duration, Instant};

use sandbox::cloudfront::Distribution;
use sandbox::http::{Action, Fault, Reply, When};
use sandbox::kubernetes::{Kind, PodFate, Timings};
use serde_json::json;

use crate::scene::{DISTRIBUTION, NAME, NAMESPACE, Scene, image};

/// What is told of a rollout that ends with a purge.
const PURGED: [&str; 4] = ["PurgeCompleted", "PurgeStarted", "RolloutCompleted", "RolloutStarted"];

#[tokio::test]
async fn a_tag_that_was_rolled_out_before_is_purged_again() {
    let mut scene = Scene::new().await;
    scene.start().await;
    for (tag, seq) in [("1.1", 2), ("1.0", 3), ("1.1", 4)] {
        scene.roll_out(tag);
        scene.wait_until_over(seq).await;
    }
    let invalidations = scene.world.cloudfront.invalidations();
    let references: std::collections::BTreeSet<&String> = invalidations.iter().map(|each| &each.reference).collect();
    assert_eq!((references.len(), invalidations.len(), scene.calls()), (3, 3, 3));
}

/// The old program stored the tag first, and whatever failed then was never tried again.
#[tokio::test]
async fn an_error_anywhere_after_the_tag_was_stored_loses_nothing() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let broken = || Action::Answer(Reply::empty(500));
    for place in ["/ingresses", "/deployments/", "/events", "/configmaps"] {
        let after_the_record = move |path: &str| path.contains(place) && !path.contains("/allclear-ledger-");
        let fault = Fault::once(When::Before, broken()).matching(move |request| after_the_record(&request.path));
        scene.world.api.inject(fault);
    }
    for method in ["GET", "POST"] {
        scene.world.cdn.inject(Fault::once(When::Before, broken()).matching(move |r| r.method == method).times(2));
    }
    scene.world.hook.inject(Fault::once(When::Before, broken()));
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!((scene.purged(), scene.calls()), (vec![DISTRIBUTION.to_owned()], 1));
    assert_eq!(scene.reasons_of(NAME), PURGED);
}

#[tokio::test]
async fn an_image_without_a_tag_or_with_the_port_of_a_registry_is_a_version_like_any_other() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let images = ["registry.example.com:5000/shop/web", "localhost:5000/web:2", "web@sha256:"];
    for (seq, image) in (2..).zip(images) {
        let digest = if image.ends_with(':') { "0123456789abcdef".repeat(4) } else { String::new() };
        scene.set_image(NAME, &format!("{image}{digest}"));
        scene.wait_until_over(seq).await;
    }
    assert_eq!((scene.purged().len(), scene.calls()), (3, 3));
    assert!(scene.process().complaints().is_empty(), "{:#?}", scene.process().complaints());
}

#[tokio::test]
async fn a_pod_that_cannot_be_scheduled_is_no_success() {
    let mut scene = Scene::new().await.with("ALLCLEAR__ROLLOUT__TIMEOUT", "1s");
    scene.world.kubernetes.set_fate(&image("1.1"), Some(PodFate::Unschedulable));
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!(scene.reasons_of(NAME), ["RolloutFailed", "RolloutStarted"]);
    let note = scene.note(NAME, "RolloutFailed");
    assert!(note.contains("the rollout timeout passed") && note.contains("Unschedulable"), "{note}");
    assert_eq!((scene.purged().len(), scene.calls()), (0, 0));
}

/// The controllers stand still, so everything but the generation says that three of three pods are available.
#[tokio::test]
async fn old_pods_that_are_all_ready_before_the_new_generation_is_observed_are_no_success() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.freeze();
    scene.roll_out("1.1");
    let waits = async |scene: &Scene| scene.waits_for().await.contains("has not acted on generation");
    scene.wait_until("it waits for the Deployment controller", waits).await;
    let started = async |scene: &Scene| scene.reasons_of(NAME) == ["RolloutStarted"];
    scene.wait_until("the rollout has started and nothing else has happened", started).await;
    assert!(scene.purged().is_empty());
    scene.thaw();
    scene.wait_until_over(2).await;
    assert_eq!(scene.purged(), [DISTRIBUTION]);
}

// Faults: P1
/// The counts of the Deployment say that it is complete; then the old pods end; then the default `rollout.settle` passes.
#[tokio::test]
async fn old_pods_that_have_not_ended_hold_up_the_purge_and_so_does_the_settling() {
    let mut scene = Scene::new().await.with("ALLCLEAR__ROLLOUT__SETTLE", "3s");
    scene.world.kubernetes.set_timings(Timings { pod_gone: Duration::from_secs(2), ..Timings::IMMEDIATE });
    scene.start().await;
    scene.roll_out("1.1");
    let waits = async |scene: &Scene| scene.waits_for().await.contains("still serve");
    scene.wait_until("it waits for old pods", waits).await;
    let gone = async |scene: &Scene| scene.world.kubernetes.list(Kind::Pod, NAMESPACE).len() == 3;
    scene.wait_until("the old pods have ended", gone).await;
    let ended = Instant::now();
    assert!(scene.purged().is_empty());
    scene.wait_until("it is purged", async |scene| !scene.purged().is_empty()).await;
    // Both moments are seen a little late.
    assert!(ended.elapsed() > Duration::from_millis(2_500), "{:?} after the last old pod", ended.elapsed());
    scene.wait_until_over(2).await;
    assert_eq!(scene.reasons_of(NAME).iter().filter(|reason| *reason == "WorkloadFaulty").count(), 0);
}

/// Goal: no success, no failure, however long. Method: another rollout, which begins later, is the clock.
#[tokio::test]
async fn a_workload_scaled_to_zero_is_neither_a_success_nor_a_failure() {
    let mut scene = Scene::new().await.with("ALLCLEAR__ROLLOUT__TIMEOUT", "1s");
    scene.world.kubernetes.set_fate(&image("bad"), Some(PodFate::CannotPull));
    scene.add_workload("clock");
    scene.start().await;
    let scale =
        |to: u32| scene.world.kubernetes.patch(Kind::Deployment, NAMESPACE, NAME, &json!({"spec": {"replicas": to}}));
    scale(0).expect("the cluster takes it");
    scene.roll_out("1.1");
    let waits = async |scene: &Scene| scene.waits_for().await.contains("scaled to zero");
    scene.wait_until("it waits for replicas", waits).await;
    scene.set_image("clock", &image("bad"));
    scene.wait_until("the other rollout has timed out", async |scene| scene.is_over("clock", 2)).await;
    assert_eq!((scene.reasons_of(NAME), scene.purged().len()), (vec!["RolloutStarted".to_owned()], 0));
    scale(3).expect("the cluster takes it");
    scene.wait_until_over(2).await;
    assert_eq!(scene.purged(), [DISTRIBUTION]);
}

#[tokio::test]
async fn a_workload_with_several_hosts_is_purged_from_every_distribution_and_told_once() {
    let mut scene = Scene::new().await;
    scene.add_distribution("E3WILD", "*.shop.example.com");
    scene.add_distribution("E4NOTE", "static.example.com");
    scene.add_distribution("E5OTHER", "shop.example.com");
    let backend = json!({"service": {"name": NAME, "port": {"number": 80}}});
    let paths = json!({"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]});
    scene.apply(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "name": "front", "annotations": {"external-dns.alpha.kubernetes.io/hostname": "static.example.com"},
        },
        "spec": {"rules": [{"host": "eu.shop.example.com", "http": paths}]},
    }));
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let mut purged = scene.purged();
    purged.sort();
    assert_eq!((purged, scene.calls()), (vec![DISTRIBUTION.to_owned(), "E3WILD".to_owned(), "E4NOTE".to_owned()], 1));
}

#[tokio::test]
async fn an_ingress_and_a_service_of_other_names_than_the_workload_are_found() {
    let mut scene = Scene::new().await;
    scene.add_workload("api");
    scene.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "backend"},
        "spec": {"selector": {"app": "api"}, "ports": [{"name": "http", "port": 80}]},
    }));
    let backend = json!({"service": {"name": "backend", "port": {"name": "http"}}});
    let paths = json!({"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]});
    scene.apply(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "entrance"},
        "spec": {"rules": [{"host": "api.example.com", "http": paths}]},
    }));
    scene.add_distribution("E3API", "api.example.com");
    scene.start().await;
    scene.set_image("api", &image("1.1"));
    scene.wait_until("the rollout is over", async |scene| scene.is_over("api", 2)).await;
    assert_eq!(
        (scene.purged(), scene.reasons_of("api")),
        (vec!["E3API".to_owned()], PURGED.map(str::to_owned).to_vec())
    );
}

#[tokio::test]
async fn an_ingress_with_nothing_but_a_default_backend_is_found_by_its_load_balancer() {
    let mut scene = Scene::new().await;
    scene.add_workload("api");
    let balancer = "k8s-shop-0123456789.eu-central-1.elb.amazonaws.com";
    scene.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "api"},
        "spec": {"selector": {"app": "api"}, "ports": [{"port": 80}]},
    }));
    scene.apply(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "api"},
        "spec": {"defaultBackend": {"service": {"name": "api", "port": {"number": 80}}}},
        "status": {"loadBalancer": {"ingress": [{"hostname": balancer}]}},
    }));
    scene.world.cloudfront.add_distribution(Distribution::new("E3ORIGIN").alias("www.example.org").origin(balancer));
    scene.start().await;
    scene.set_image("api", &image("1.1"));
    scene.wait_until("the rollout is over", async |scene| scene.is_over("api", 2)).await;
    assert_eq!(scene.purged(), ["E3ORIGIN"]);
}

#[tokio::test]
async fn a_workload_that_nothing_reaches_is_followed_quietly() {
    let mut scene = Scene::new().await;
    scene.add_workload("worker");
    scene.start().await;
    scene.set_image("worker", &image("1.1"));
    scene.wait_until("the rollout is over", async |scene| scene.is_over("worker", 2)).await;
    assert_eq!(scene.reasons_of("worker"), ["RolloutCompleted", "RolloutStarted"]);
    let listings = |path: &str| path.ends_with("/distribution");
    assert!(scene.purged().is_empty(), "nothing was purged");
    assert!(scene.world.cdn.seen().iter().all(|seen| listings(&seen.path)), "CloudFront was only asked what there is");
    assert!(scene.process().complaints().is_empty(), "{:#?}", scene.process().complaints());
}

// Faults: H7
/// Goal: troubles stay with whom they belong to. Method: every kind of it at once, and one workload that is well.
#[tokio::test]
async fn a_dead_receiver_a_bad_image_and_an_unknown_host_disturb_nobody_else() {
    let mut scene = Scene::new().await;
    for (name, host) in [("mute", "mute.example.com"), ("lost", "lost.example.com")] {
        scene.add_workload(name);
        scene.world.kubernetes.expose(NAMESPACE, name, host).expect("the cluster takes it");
    }
    scene.add_distribution("E3MUTE", "mute.example.com");
    scene.add_workload("sick");
    scene.add_workload("odd");
    scene.world.kubernetes.set_fate(&image("bad"), Some(PodFate::CannotPull));
    let hook = |name: &str, url: &str| json!({"name": name, "url": url, "method": "POST", "headers": {}, "parameters": {"site": name}});
    let dead = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        format!("http://{}/", taken.local_addr().expect("it has an address"))
    };
    let hooks = json!([hook("mute", &dead), hook(NAME, &format!("{}/purged", scene.world.hook.url()))]);
    scene.world.subscribe(&hooks).expect("the file can be written");
    scene.start().await;
    for name in ["mute", "lost"] {
        scene.set_image(name, &image("1.1"));
    }
    scene.set_image("sick", &image("bad"));
    scene.set_image("odd", "not an image:::");
    let troubled = async |scene: &Scene| {
        scene.outbox() == 1
            && scene.is_over("lost", 2)
            && !scene.note("odd", "WorkloadFaulty").is_empty()
            && scene.reasons_of("sick") == ["RolloutStarted"]
            && scene.process().said("webhook not delivered")
    };
    scene.wait_until("everything that can go wrong has", troubled).await;
    assert!(scene.note("lost", "PurgeFailed").contains("lost.example.com"), "{:?}", scene.events_of("lost"));
    scene.roll_out("1.1");
    scene.wait_until("the one that is well is over", async |scene| scene.is_over(NAME, 2) && scene.calls() == 1).await;
    assert_eq!(
        (scene.purged(), scene.reasons_of(NAME)),
        (vec!["E3MUTE".to_owned(), DISTRIBUTION.to_owned()], PURGED.map(str::to_owned).to_vec(),)
    );
}

#[tokio::test]
async fn a_change_made_while_the_program_was_down_is_found_at_its_start() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.take_process().kill();
    scene.roll_out("1.1");
    scene.wait_until("it is rolled out", async |scene| scene.is_rolled_out(2)).await;
    scene.world.kubernetes.compact();
    scene.start().await;
    scene.wait_until_over(2).await;
    assert_eq!((scene.purged(), scene.calls()), (vec![DISTRIBUTION.to_owned()], 1));
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_do_and_what_it_saw_is_not_purged_afterwards() {
    let mut scene = Scene::new().await;
    let writes = scene.world.kubernetes.writes();
    scene.launch(&["run", "--dry-run"]);
    let seen = async |scene: &Scene| scene.process().state().await["workloads"] == 1;
    scene.wait_until("the cluster was listed", seen).await;
    scene.roll_out("1.1");
    let says = async |scene: &Scene| {
        let process = scene.process();
        process.said("dry run: would create this invalidation") && process.said("dry run: would call this webhook")
    };
    scene.wait_until("it says what it would do", says).await;
    assert!(scene.process().said(DISTRIBUTION), "it says to which distribution");
    let told = format!("would be purged now: {DISTRIBUTION}");
    scene.wait_until("it tells of the end", async |scene| scene.process().said(&told)).await;
    assert!(scene.process().said(&format!("an invalidation of {DISTRIBUTION} would be created")));
    let state = scene.process().state().await.to_string();
    assert!(state.contains(&format!("would be purged ({DISTRIBUTION})")), "{state}");
    let (_, metrics) = scene.process().get("/metrics").await.unwrap_or_default();
    assert!(metrics.contains("allclear_rollout_fresh_seconds_count 0"), "no edge is purged: {metrics}");
    for untrue in ["was created", "CloudFront reports", "\"state\":\"completed\"", "by dry-run", "invalidation dry-run"]
    {
        assert!(!scene.process().said(untrue) && !state.contains(untrue), "{untrue}: {state}");
    }
    scene.take_process().kill();
    assert_eq!((scene.purged().len(), scene.calls(), scene.events_of(NAME).len()), (0, 0, 0));
    assert_eq!(scene.world.kubernetes.writes(), writes, "nothing at all was written to the cluster");
    scene.start().await;
    scene.roll_out("1.2");
    scene.wait_until_over(2).await;
    assert_eq!((scene.purged().len(), scene.calls()), (1, 1), "only what came afterwards");
}

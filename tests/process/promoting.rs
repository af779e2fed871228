//! A Pipeline and the real program: killed before and after every request that a promotion makes, ended in order, and with two of it at
//! once (fault rows PF1 and PF2). The requests are not listed by hand: see `kills`.
//!
//! The promotion goes by a notification, whose receiver stands for the program that rolls prod out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use sandbox::http::{Action, Fault, Request, Seen, When};
use sandbox::kubernetes::{Kind, Timings};
use sandbox::world::World;
use serde_json::{Value, json};
use support::process::{Process, comes_true};

use crate::scene::{LEDGER_NAMESPACE, NAME, Scene, image};

const STAGING: &str = "staging";
const PROD: &str = "prod";

/// Where the Pipeline is.
const NAMESPACE: &str = "shop";

/// The purpose of a request that tells a notice as an Event.
const EVENT: &str = "event";

/// Worlds at once.
const AT_ONCE: usize = 3;

/// How the program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Killed,
    InOrder,
}

/// The `nth` request of this kind, and whether it happens.
#[derive(Clone, Debug)]
struct Point {
    what: &'static str,
    nth: usize,
    when: When,
    ending: Ending,
}

/// Everything at 1.0 in staging and in prod, and a Pipeline between them.
async fn scene() -> Scene {
    let world = World::new(Timings::IMMEDIATE, None).await.expect("loopback is there");
    world.kubernetes.set_installed("allclear.dev", true);
    for namespace in [STAGING, PROD] {
        world.kubernetes.seed(namespace, NAME, &image("1.0"), 3).expect("the cluster takes it");
    }
    let pipeline = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "environments": [
                {"name": STAGING, "targets": [{"namespace": STAGING}]},
                {"name": PROD, "targets": [{"namespace": PROD}]},
            ],
            "promotion": {"strategy": {"notification": {}}},
        },
    });
    world.kubernetes.apply(pipeline).expect("the cluster takes it");
    let scene = Scene::of(world);
    let hook = json!({
        "name": "deployer", "url": format!("{}/promote", scene.world.hook.url()), "method": "POST", "headers": {},
        "format": "json", "workloads": ["shop/web"], "events": ["promotion.started", "promotion.completed"],
    });
    scene.world.subscribe(&json!([hook])).expect("the file can be written");
    scene
}

fn status(scene: &Scene) -> Value {
    let object = scene.world.kubernetes.get(Kind::Pipeline, NAMESPACE, NAME).expect("it is there");
    object["status"].clone()
}

/// The newest promotion into prod.
fn promotion(scene: &Scene) -> Value {
    status(scene)["environments"][PROD]["promotion"].clone()
}

/// Different ids of what the receiver was told, by kind.
fn told(scene: &Scene) -> BTreeMap<String, BTreeSet<String>> {
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for call in scene.world.receiver.received() {
        let id = call.request.header("webhook-id").expect("it has an id").to_owned();
        let body: Value = serde_json::from_slice(&call.request.body).expect("the body is JSON");
        told.entry(body["type"].as_str().unwrap_or_default().to_owned()).or_default().insert(id);
    }
    told
}

fn deploy(scene: &Scene, namespace: &str, tag: &str) {
    scene.world.kubernetes.set_image(namespace, NAME, NAME, &image(tag)).expect("the cluster takes it");
}

/// Waits until the Pipeline was judged at rest, and all three Deployments are recorded: what the ledger does at a start is no part
/// of a promotion.
async fn at_rest(scene: &Scene) {
    let recorded = |scene: &Scene| {
        let maps = scene.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
        let data = maps.iter().filter_map(|map| map["data"].as_object());
        data.flat_map(|data| data.keys()).filter(|key| key.starts_with("deployment.")).count()
    };
    let judged = async |scene: &Scene| {
        status(scene)["environments"][PROD]["targets"][0]["ready"] == true && recorded(scene) == 3
    };
    scene.wait_until("the Pipeline is judged", judged).await;
}

/// Rolls prod out when the receiver is told, and waits for the end.
async fn finish(scene: &Scene) {
    let started = async |scene: &Scene| told(scene).contains_key("promotion.started");
    scene.wait_until("the receiver is told to promote", started).await;
    deploy(scene, PROD, "1.1");
    let over = async |scene: &Scene| {
        promotion(scene)["phase"] == "Completed"
            && status(scene)["untold"].as_array().is_none_or(Vec::is_empty)
            && scene.outbox() == 0
    };
    scene.wait_until("the promotion is completed and told", over).await;
}

/// One of everything, whatever happened on the way.
fn check(scene: &Scene, what: &str) {
    let promotion = promotion(scene);
    assert_eq!((&promotion["seq"], &promotion["revision"]), (&json!(1), &json!("1.1")), "{what}");
    let counts: Vec<_> = told(scene).into_iter().map(|(kind, ids)| (kind, ids.len())).collect();
    let once = |kind: &str| (kind.to_owned(), 1);
    assert_eq!(counts, [once("promotion.completed"), once("promotion.started")], "{what}");
    let reasons = scene.reasons_of(NAME).into_iter().filter(|reason| reason.starts_with("Promotion"));
    assert_eq!(reasons.collect::<Vec<_>>(), ["PromotionCompleted", "PromotionStarted"], "{what}");
    let remarks = scene.reasons_of(NAME).into_iter().filter(|reason| reason == "Promote").count();
    assert!(remarks <= 1, "{what}: nothing waits for it, and it is never said twice");
}

/// What a request is for, as far as a promotion is concerned.
fn purpose(method: &str, path: &str, is_watch: bool) -> Option<&'static str> {
    let target = [STAGING, PROD].map(|namespace| format!("/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}"));
    match (method, path) {
        ("PUT", path) if path.ends_with("/pipelines/web/status") => Some("status"),
        ("GET", path) if !is_watch && target.iter().any(|target| target == path) => Some("fresh look"),
        ("POST", path) if path.ends_with("/events") => Some(EVENT),
        ("POST" | "PUT" | "PATCH", path) if path.contains("/allclear-outbox-") || path.ends_with("/configmaps") => {
            Some("outbox")
        }
        _ => None,
    }
}

/// Remarks are no part of it: nothing waits for them, and how many there are depends on time.
fn purpose_of(request: &Request) -> Option<&'static str> {
    let purpose = purpose(request.method.as_str(), &request.path, request.query.contains_key("watch"))?;
    let is_notice = || {
        let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        event["reason"].as_str().is_some_and(|reason| reason.starts_with("Promotion"))
    };
    (purpose != EVENT || is_notice()).then_some(purpose)
}

/// The points of an undisturbed promotion with this many notices.
fn points(seen: &[Seen], notices: usize) -> Vec<Point> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut points = Vec::new();
    for one in seen {
        let is_watch = one.query.contains_key("watch");
        let Some(what) = purpose(one.method.as_str(), &one.path, is_watch) else { continue };
        let nth = counts.entry(what).or_default();
        if what == EVENT && *nth >= notices {
            continue;
        }
        let whens: &[When] = if one.method == "GET" { &[When::Before] } else { &[When::Before, When::After] };
        for when in whens {
            points.push(Point { what, nth: *nth, when: *when, ending: Ending::Killed });
        }
        // An end in order may cut off what waits for an answer, too.
        if what == "status" {
            points.push(Point { what, nth: *nth, when: When::After, ending: Ending::InOrder });
        }
        *nth += 1;
    }
    points
}

/// A promotion in a world of its own, whose program ends at `point`. Whether that was reached.
async fn run(point: Point) -> bool {
    let mut scene = scene().await;
    scene.launch(&["run"]);
    at_rest(&scene).await;
    let (what, nth) = (point.what, point.nth);
    let count = AtomicUsize::new(0);
    let matches =
        move |request: &Request| purpose_of(request) == Some(what) && count.fetch_add(1, Ordering::Relaxed) == nth;
    scene.world.api.inject(Fault::once(point.when, Action::Hold).matching(matches));
    deploy(&scene, STAGING, "1.1");
    let reached = tokio::select! {
        () = scene.world.api.held() => true,
        () = finish(&scene) => false,
    };
    let mut process = scene.take_process();
    if point.ending == Ending::InOrder {
        process.signal("TERM");
        let ended = process.ended(Duration::from_secs(6)).await;
        assert!(ended.is_some_and(|status| status.success()), "{point:?}: it did not end in time\n{}", process.tail());
    } else {
        process.kill();
    }
    scene.world.api.clear_faults();
    scene.launch(&["run"]);
    finish(&scene).await;
    check(&scene, &format!("{point:?}"));
    reached
}

// Faults: PF1
#[tokio::test]
async fn killed_at_any_request_of_a_promotion_it_is_told_once() {
    let mut scene = scene().await;
    scene.launch(&["run"]);
    at_rest(&scene).await;
    let before = scene.world.api.seen().len();
    deploy(&scene, STAGING, "1.1");
    finish(&scene).await;
    check(&scene, "undisturbed");
    let notices = scene.reasons_of(NAME).into_iter().filter(|reason| reason.starts_with("Promotion")).count();
    let points = points(&scene.world.api.seen()[before..], notices);
    drop(scene);
    let purposes: BTreeSet<_> = points.iter().map(|point| point.what).collect();
    assert_eq!(purposes, BTreeSet::from(["event", "fresh look", "outbox", "status"]), "{points:#?}");
    let runs = futures_util::stream::iter(points.iter().cloned().map(run)).buffered(AT_ONCE);
    let reached: Vec<bool> = runs.collect().await;
    println!("{} points, {} reached", points.len(), reached.iter().filter(|reached| **reached).count());
    // How often sentences for people are written depends on time; nothing else does.
    let missed = points.iter().zip(&reached).filter(|(_, reached)| !**reached).map(|(point, _)| point.what);
    assert!(missed.clone().all(|what| what == "status") && missed.count() <= 6, "{points:#?} {reached:?}");
}

// Faults: PF2
#[tokio::test]
async fn two_programs_that_both_lead_promote_once() {
    let mut scene = scene().await;
    scene.launch(&["run"]);
    let other = Process::start(&["run"], scene.environment.clone());
    at_rest(&scene).await;
    let both = async || other.state().await["promoting"]["pipelines"][0]["live"] == true;
    assert!(comes_true(both).await, "{}", other.tail());
    deploy(&scene, STAGING, "1.1");
    finish(&scene).await;
    // Both know, and neither has anything left to tell.
    let done = |state: &Value| {
        state["promoting"]["pipelines"][0]["environments"][1]["promotion"]["phase"] == "Completed"
            && state["deliveries"].as_array().is_some_and(Vec::is_empty)
    };
    let all = async || done(&other.state().await) && done(&scene.process().state().await);
    assert!(comes_true(all).await, "{}\n{}", other.tail(), scene.process().tail());
    check(&scene, "two that lead");
}

//! A Repo and the real program: killed before and after every request that a run makes, and with two of it at once (fault rows RF1 to
//! RF3). The requests are not listed by hand: see `kills`. What upstream's own tests say of its Jobs is said here too.
//!
//! The wanted commit is named in the spec, so no git host is needed; the containers are the stand-in kubelet's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use sandbox::http::{Action, Fault, Request, Seen, When};
use sandbox::kubernetes::{ContainerRun, End, Kind, Outcome, Script, Timings};
use sandbox::receiver::Answer;
use sandbox::world::World;
use serde_json::{Value, json};
use support::process::{Process, comes_true};

use crate::commands::{allclear, said};
use crate::scene::Scene;

/// Where the Repo is, and its name.
const NAMESPACE: &str = "platform";
const NAME: &str = "infra";

const FIRST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const SECOND: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// Worlds at once.
const AT_ONCE: usize = 3;

/// The `nth` request of this kind, and whether it happens.
#[derive(Clone, Debug)]
struct Point {
    what: &'static str,
    nth: usize,
    when: When,
}

fn repo(commit: &str) -> Value {
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "url": "https://git.example.com/platform/infra.git", "ref": {"commit": commit},
            "runner": {"preset": "Command", "image": "tool:1", "steps": {"apply": ["apply"]}},
        },
    })
}

/// A cluster with the kind, and containers that each take a moment.
async fn scene() -> Scene {
    let world = World::new(Timings::IMMEDIATE, None).await.expect("loopback is there");
    world.kubernetes.set_installed("allclear.dev", true);
    let scene = Scene::of(world);
    let hook = json!({
        "name": "told", "url": format!("{}/told", scene.world.hook.url()), "method": "POST", "headers": {},
        "format": "json", "workloads": ["platform/infra"], "events": ["run.started", "run.completed", "run.failed"],
    });
    scene.world.subscribe(&json!([hook])).expect("the file can be written");
    scene.with("ALLCLEAR__REPO__STEP_IMAGE", "allclear:test")
}

fn apply(scene: &Scene, object: Value) {
    scene.world.kubernetes.apply(object).expect("the cluster takes it");
}

fn status(scene: &Scene) -> Value {
    scene.world.kubernetes.get(Kind::Repo, NAMESPACE, NAME).map(|object| object["status"].clone()).unwrap_or_default()
}

fn jobs(scene: &Scene) -> Vec<Value> {
    scene.world.kubernetes.list(Kind::Job, NAMESPACE)
}

/// How many Events of this reason there are.
fn reasons(scene: &Scene, reason: &str) -> usize {
    let events = scene.world.kubernetes.list(Kind::Event, NAMESPACE);
    events.iter().filter(|event| event["reason"] == reason).count()
}

/// Waits until this commit is applied and everything is told.
async fn finish(scene: &Scene, commit: &str) {
    let over = async |scene: &Scene| {
        let status = status(scene);
        status["gitSHA"] == commit
            && status["runStatus"] == "Completed"
            && status["untold"].as_array().is_none_or(Vec::is_empty)
            && scene.outbox() == 0
    };
    scene.wait_until("the commit is applied and told", over).await;
}

/// Different ids of what the receiver was told, by kind.
fn told(scene: &Scene) -> BTreeMap<String, usize> {
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for call in scene.world.receiver.received() {
        let id = call.request.header("webhook-id").expect("it has an id").to_owned();
        let body: Value = serde_json::from_slice(&call.request.body).expect("the body is JSON");
        told.entry(body["type"].as_str().unwrap_or_default().to_owned()).or_default().insert(id);
    }
    told.into_iter().map(|(kind, ids)| (kind, ids.len())).collect()
}

/// One Job and one pod for each commit, whatever happened on the way.
fn check(scene: &Scene, commits: usize, what: &str) {
    let jobs = jobs(scene);
    assert_eq!(jobs.len(), commits, "{what}: {jobs:#?}");
    for job in &jobs {
        let uid = job["metadata"]["uid"].as_str().expect("a UID");
        assert_eq!(scene.world.kubernetes.pods_ever(uid), 1, "{what}");
    }
    let applies = scene.world.kubernetes.started_containers();
    let applies = applies.iter().filter(|run| run.container == "apply").count();
    assert_eq!(applies, commits, "{what}");
    let expected = BTreeMap::from([("run.completed".to_owned(), commits), ("run.started".to_owned(), commits)]);
    assert_eq!(told(scene), expected, "{what}");
}

/// What a request is for, as far as a run is concerned.
fn purpose(method: &str, path: &str, query: &BTreeMap<String, String>) -> Option<&'static str> {
    let is_watch = query.contains_key("watch");
    let is_of_a_job = query.get("labelSelector").is_some_and(|labels| labels.starts_with("job-name="));
    match (method, path) {
        ("PUT", path) if path.ends_with("/repos/infra/status") => Some("status"),
        ("POST", path) if path.ends_with("/platform/jobs") => Some("make"),
        ("PATCH", path) if path.contains("/platform/jobs/") => Some("start"),
        ("GET", path) if !is_watch && path.contains("/platform/jobs") => Some("look at Jobs"),
        ("GET", path) if is_of_a_job && path.contains("/platform/pods") => Some("pods"),
        ("GET", path) if !is_watch && path.contains("/platform/pods") => Some("list pods"),
        ("POST", path) if path.ends_with("/platform/events") => Some("event"),
        _ => None,
    }
}

fn purpose_of(request: &Request) -> Option<&'static str> {
    purpose(request.method.as_str(), &request.path, &request.query)
}

/// The points of an undisturbed run.
fn points(seen: &[Seen]) -> Vec<Point> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut points = Vec::new();
    for one in seen {
        let Some(what) = purpose(one.method.as_str(), &one.path, &one.query) else { continue };
        let nth = counts.entry(what).or_default();
        let whens: &[When] = if one.method == "GET" { &[When::Before] } else { &[When::Before, When::After] };
        points.extend(whens.iter().map(|when| Point { what, nth: *nth, when: *when }));
        *nth += 1;
    }
    points
}

/// A run in a world of its own, whose program is killed at `point`. Whether that was reached.
async fn run(point: Point) -> bool {
    let mut scene = scene().await;
    scene.start().await;
    let (what, nth) = (point.what, point.nth);
    let count = AtomicUsize::new(0);
    let matches =
        move |request: &Request| purpose_of(request) == Some(what) && count.fetch_add(1, Ordering::Relaxed) == nth;
    scene.world.api.inject(Fault::once(point.when, Action::Hold).matching(matches));
    apply(&scene, repo(FIRST));
    let reached = tokio::select! {
        () = scene.world.api.held() => true,
        () = finish(&scene, FIRST) => false,
    };
    scene.take_process().kill();
    scene.world.api.clear_faults();
    scene.launch(&["run"]);
    finish(&scene, FIRST).await;
    check(&scene, 1, &format!("{point:?}"));
    reached
}

// Faults: RF1, RF3
#[tokio::test]
async fn killed_at_any_request_of_a_run_there_is_one_started_job() {
    let mut scene = scene().await;
    scene.start().await;
    let before = scene.world.api.seen().len();
    apply(&scene, repo(FIRST));
    finish(&scene, FIRST).await;
    check(&scene, 1, "undisturbed");
    let points = points(&scene.world.api.seen()[before..]);
    drop(scene);
    let purposes: BTreeSet<_> = points.iter().map(|point| point.what).collect();
    let always = ["event", "make", "pods", "start", "status"];
    assert!(always.iter().all(|what| purposes.contains(what)), "{points:#?}");
    let runs = futures_util::stream::iter(points.iter().cloned().map(run)).buffered(AT_ONCE);
    let reached: Vec<bool> = runs.collect().await;
    println!("{} points, {} reached", points.len(), reached.iter().filter(|reached| **reached).count());
    // How often sentences for people are written and remarks published depends on time. So does whether the Job changes before it is
    // started: then it is looked at, and started as it is.
    let missed = points.iter().zip(&reached).filter(|(_, reached)| !**reached).map(|(point, _)| point);
    let by_time = |point: &Point| {
        point.nth > 0 || matches!(point.what, "status" | "event" | "pods" | "list pods" | "look at Jobs")
    };
    assert!(missed.clone().all(by_time) && missed.count() <= 10, "{points:#?} {reached:?}");
}

/// Ends the program at this request of a run. The next one has another template, as every release has: by its own image at least.
async fn upgrade((what, when): (&'static str, When)) {
    let mut scene = scene().await;
    scene.start().await;
    let matches = move |request: &Request| purpose_of(request) == Some(what);
    scene.world.api.inject(Fault::once(when, Action::Hold).matching(matches));
    apply(&scene, repo(FIRST));
    scene.world.api.held().await;
    let made = jobs(&scene).remove(0);
    scene.take_process().kill();
    scene.world.api.clear_faults();
    scene.set("ALLCLEAR__REPO__STEP_IMAGE", "allclear:later");
    scene.launch(&["run"]);
    finish(&scene, FIRST).await;
    check(&scene, 1, &format!("{what}, {when:?}"));
    let kept = jobs(&scene).remove(0);
    assert_eq!(
        (&kept["metadata"]["uid"], &kept["spec"]["template"]),
        (&made["metadata"]["uid"], &made["spec"]["template"])
    );
    apply(&scene, repo(SECOND));
    finish(&scene, SECOND).await;
    check(&scene, 2, &format!("{what}, {when:?}, and the next commit"));
    let image = |job: &Value| job["spec"]["template"]["spec"]["initContainers"][0]["image"].clone();
    let images: BTreeSet<String> =
        jobs(&scene).iter().map(|job| image(job).as_str().expect("a name").to_owned()).collect();
    assert_eq!(images, BTreeSet::from(["allclear:later".to_owned(), "allclear:test".to_owned()]));
}

// Faults: RF14
#[tokio::test]
async fn an_upgrade_in_the_middle_of_a_run_leaves_its_job_as_it_was_made() {
    let moments = [("make", When::After), ("start", When::Before), ("start", When::After), ("pods", When::Before)];
    futures_util::stream::iter(moments).map(upgrade).buffered(AT_ONCE).collect::<()>().await;
}

// Faults: RF2
#[tokio::test]
async fn two_programs_that_both_lead_start_one_job() {
    let mut scene = scene().await;
    scene.start().await;
    let other = Process::start(&["run"], scene.environment.clone());
    apply(&scene, repo(FIRST));
    finish(&scene, FIRST).await;
    let both = async || other.state().await["running"]["repos"][0]["run"]["phase"] == "Succeeded";
    assert!(comes_true(both).await, "{}", other.tail());
    apply(&scene, repo(SECOND));
    finish(&scene, SECOND).await;
    check(&scene, 2, "two that lead");
}

/// An image that cannot be pulled blocks neither the commit nor the spec that mends it (decision 62).
#[tokio::test]
async fn a_job_that_cannot_run_gives_way_to_the_next_commit_and_is_removed() {
    let mut scene = scene().await;
    scene.world.kubernetes.set_job_script(Some(Script::new(|run: &ContainerRun| match run.container.as_str() {
        "apply" if run.env.get("GIT_SHA").is_some_and(|commit| commit == FIRST) => {
            Outcome::Waits("ErrImagePull".to_owned(), String::new())
        }
        _ => Outcome::Ends(Duration::from_millis(10), End::default()),
    })));
    scene.start().await;
    apply(&scene, repo(FIRST));
    let says =
        |scene: &Scene, words: &str| status(scene)["run"]["message"].as_str().unwrap_or_default().contains(words);
    scene.wait_until("the image is missed", async |scene| says(scene, "its Job waits: ErrImagePull")).await;
    apply(&scene, repo(SECOND));
    finish(&scene, SECOND).await;
    let outcomes: Vec<Value> =
        status(&scene)["history"].as_array().expect("runs").iter().map(|run| run["outcome"].clone()).collect();
    assert_eq!(outcomes, ["Superseded", "Succeeded"]);
    scene.wait_until("only the Job that ran is left", async |scene| jobs(scene).len() == 1).await;
    let applies = scene.world.kubernetes.started_containers().into_iter().filter(|run| run.container == "apply");
    assert_eq!(applies.count(), 1);
}

// Faults: RF6
#[tokio::test]
async fn a_job_is_the_repos_own_and_an_apply_is_never_disturbed() {
    let mut scene = scene().await;
    let hold = Script::new(|run: &ContainerRun| match run.container.as_str() {
        "apply" => Outcome::Holds,
        _ => Outcome::Ends(Duration::from_millis(10), End::default()),
    });
    scene.world.kubernetes.set_job_script(Some(hold));
    scene.start().await;
    apply(&scene, repo(FIRST));
    let applying = |scene: &Scene| {
        let name = jobs(scene).first().map(|job| job["metadata"]["name"].as_str().expect("a name").to_owned());
        name.filter(|name| scene.world.kubernetes.running_step(NAMESPACE, name).as_deref() == Some("apply"))
    };
    // A commit that comes before this was seen takes the Job back (decision 62).
    let seen =
        |scene: &Scene| status(scene)["run"]["message"].as_str().is_some_and(|words| words.contains("step apply runs"));
    scene.wait_until("the apply is seen to run", async |scene| seen(scene)).await;
    let job = jobs(&scene).remove(0);
    let object = scene.world.kubernetes.get(Kind::Repo, NAMESPACE, NAME).expect("it is there");
    // Upstream's tests: its labels, its owner, its environment, and the commit in the status.
    assert_eq!((&job["metadata"]["labels"]["app"], &object["status"]["gitSHA"]), (&json!(NAME), &json!(FIRST)));
    assert_eq!(job["metadata"]["labels"]["controller"], "repos.terraform.gitops.k8s.io");
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Repo"), &object["metadata"]["uid"]));
    let env = &job["spec"]["template"]["spec"]["containers"][0]["env"];
    for pair in [json!({"name": "REPO_NAME", "value": NAME}), json!({"name": "GIT_SHA", "value": FIRST})] {
        assert!(env.as_array().expect("a list").contains(&pair), "{env:#}");
    }
    // Newer commits, a kill and an end in order leave what runs alone.
    for commit in [SECOND, "cccccccccccccccccccccccccccccccccccccccc", SECOND] {
        apply(&scene, repo(commit));
        scene.wait_until("it is next", async |scene| status(scene)["next"]["revision"] == commit).await;
    }
    scene.take_process().kill();
    scene.launch(&["run"]);
    scene.wait_until_started().await;
    let mut process = scene.take_process();
    process.signal("TERM");
    assert!(process.ended(Duration::from_secs(6)).await.is_some_and(|status| status.success()));
    scene.launch(&["run"]);
    scene.wait_until_started().await;
    assert_eq!(jobs(&scene).len(), 1);
    let name = applying(&scene).expect("it still runs");
    scene.world.kubernetes.set_job_script(None);
    assert!(scene.world.kubernetes.finish(NAMESPACE, &name, End::with(1)));
    finish(&scene, SECOND).await;
    assert_eq!(jobs(&scene).len(), 2, "the newest follows, although the apply before it failed");
    let skipped = &status(&scene)["run"]["skipped"];
    assert_eq!(skipped, &json!(["cccccccccccccccccccccccccccccccccccccccc"]));
    // Upstream's Event, once for the run that succeeded.
    scene.wait_until("it is synced", async |scene| reasons(scene, "Synced") == 1).await;
}

#[tokio::test]
async fn a_job_of_another_with_that_name_is_an_error_and_nothing_is_run() {
    let mut scene = scene().await;
    scene.start().await;
    // The name is known only from a run, so the first Job's name is taken in a second life of the same Repo.
    let is_make = |request: &Request| purpose_of(request) == Some("make");
    scene.world.api.inject(Fault::once(When::Before, Action::Cut).times(u32::MAX).matching(is_make));
    apply(&scene, repo(FIRST));
    scene.wait_until("it is ordered", async |scene| status(scene)["run"]["job"]["name"].is_string()).await;
    let name = status(&scene)["run"]["job"]["name"].clone();
    apply(
        &scene,
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}},
        }),
    );
    scene.world.api.clear_faults();
    scene.wait_until("it says so", async |scene| reasons(scene, "ErrResourceExists") == 1).await;
    let conditions = status(&scene)["conditions"].clone();
    assert!(conditions.to_string().contains("already exists and is not managed by Repo"), "{conditions:#}");
    assert_eq!(scene.world.kubernetes.started_containers(), []);
}

/// Outside a pod, the ledger is where allclear is installed; the namespace of a kubeconfig's context says nothing about that.
#[tokio::test]
async fn a_repo_beside_the_ledger_is_refused_and_one_where_the_kubeconfig_points_is_run() {
    let mut scene = scene().await.with("ALLCLEAR__LEDGER__NAMESPACE", "own");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}});
    apply(&scene, namespace);
    scene.launch(&["run"]);
    for namespace in ["own", "default"] {
        let mut object = repo(FIRST);
        object["metadata"]["namespace"] = json!(namespace);
        apply(&scene, object);
    }
    let ready = |scene: &Scene, namespace: &str| {
        let object = scene.world.kubernetes.get(Kind::Repo, namespace, NAME).expect("it is there");
        object["status"]["conditions"][0]["reason"].as_str().unwrap_or_default().to_owned()
    };
    scene.wait_until("one is run", async |scene| ready(scene, "default") == "Applied").await;
    scene.wait_until("the other is refused", async |scene| ready(scene, "own") == "InvalidSpec").await;
    assert_eq!(scene.world.kubernetes.list(Kind::Job, "own"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_dry_run_says_which_job_it_would_run_and_makes_none() {
    let mut scene = scene().await.with("ALLCLEAR__DRY_RUN", "true");
    apply(&scene, repo(FIRST));
    scene.launch(&["run"]);
    let said = async |scene: &Scene| scene.process().said("dry run: would run this Job");
    scene.wait_until("it says what it would do", said).await;
    let shown = async || scene.process().state().await["running"]["repos"][0]["run"]["phase"] == "Starting";
    assert!(comes_true(shown).await, "{}", scene.process().tail());
    assert_eq!(jobs(&scene), Vec::<Value>::new());
    assert_eq!(status(&scene), json!({"observedGeneration": -1}), "nothing is written");
}

#[tokio::test]
async fn what_was_given_up_about_a_repo_is_sent_again_once_its_owner_asks() {
    let mut scene = scene().await;
    scene.world.receiver.answer_always(Answer::status(410));
    scene.start().await;
    apply(&scene, repo(FIRST));
    let asked = async |scene: &Scene, words: &[&str]| said(&allclear(scene, words).await);
    let given_up = async |scene: &Scene| {
        let (_, out, _) = asked(scene, &["webhook", "list", "-o", "json"]).await;
        serde_json::from_str::<Value>(&out).is_ok_and(|listed| listed["receivers"][0]["given_up"] == 2)
    };
    scene.wait_until("both notices are given up", given_up).await;
    let ids = |scene: &Scene| {
        let received = scene.world.receiver.received();
        received.iter().map(|call| call.request.header("webhook-id").unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let before: BTreeSet<String> = ids(&scene).into_iter().collect();
    scene.world.receiver.answer_always(Answer::status(204));
    let (code, _, err) = asked(&scene, &["webhook", "resend", "repo/platform/other"]).await;
    assert!(code == 1 && err.contains("repo/platform/other: nothing to send again"), "{code} {err}");
    let (code, _, err) = asked(&scene, &["webhook", "resend", "repo/infra"]).await;
    assert!(code == 2 && err.contains("write its namespace and name"), "{code} {err}");
    let (code, out, err) = asked(&scene, &["webhook", "resend", "repo/platform/infra"]).await;
    assert!(code == 0 && out.contains("repo/platform/infra: asked allclear to send again run."), "{out} {err}");
    scene.wait_until("both are taken", async |scene| scene.outbox() == 0).await;
    let after: Vec<String> = ids(&scene);
    let again: BTreeSet<String> = after.iter().rev().take(2).cloned().collect();
    // The receiver that said 410 was not called for the second notice.
    assert!(again.len() == 2 && before.is_subset(&again), "{before:?} {again:?}");

    // The annotation stays, and the next life sees it again.
    scene.take_process().kill();
    scene.start().await;
    apply(&scene, repo(SECOND));
    finish(&scene, SECOND).await;
    assert_eq!(ids(&scene).len(), after.len() + 2, "the same request sends nothing twice");
}

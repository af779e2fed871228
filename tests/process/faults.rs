//! A world that misbehaves (fault rows A1–A4, F1, F2, F5, F6, W1, W2): what it costs, and that the end is the same.

use std::time::Duration;

use sandbox::cloudfront::CloudFrontStandIn;
use sandbox::http::{Action, Fault, Reply, Request, When};
use serde_json::json;
use support::process::Process;

use crate::scene::{DISTRIBUTION, HOST, NAME, Scene, image};

fn is_store(request: &Request) -> bool {
    request.method == "PUT" && request.path.contains("/configmaps/allclear-ledger-")
}

fn is_creation(request: &Request) -> bool {
    request.method == "POST"
}

/// A refusal as the API server writes it.
fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
        "message": message,
    });
    Reply::full(code, "application/json", status.to_string())
}

/// Rolls out 1.1 in a world in which these requests to the API server go wrong, and sees it through.
async fn with_stores_that_fail(faults: impl IntoIterator<Item = Fault>) -> Scene {
    let mut scene = Scene::new().await;
    scene.start().await;
    faults.into_iter().for_each(|fault| scene.world.api.inject(fault.matching(is_store)));
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_purged_once(&scene);
    scene
}

fn assert_purged_once(scene: &Scene) {
    assert_eq!((scene.purged(), scene.calls()), (vec![DISTRIBUTION.to_owned()], 1));
    assert_eq!(scene.reasons_of(NAME), ["PurgeCompleted", "PurgeStarted", "RolloutCompleted", "RolloutStarted"]);
    assert_eq!(scene.record().map(|record| record.history.len()), Some(1), "one rollout, one number");
}

// Faults: A1
#[tokio::test]
async fn a_ledger_that_is_overloaded_for_a_while_delays_a_rollout_and_changes_nothing() {
    let broken = || Action::Answer(Reply::empty(500));
    let busy = || Action::Answer(refusal(429, "TooManyRequests", "too many requests").header("retry-after", "1"));
    with_stores_that_fail([
        Fault::once(When::Before, broken()).times(2),
        Fault::once(When::Before, busy()),
        Fault::once(When::After, broken()),
    ])
    .await;
}

// Faults: A3
#[tokio::test]
async fn a_record_that_was_written_without_an_answer_is_recognised_as_our_own() {
    with_stores_that_fail([Fault::once(When::After, Action::Cut).times(2)]).await;
}

// Faults: A2
#[tokio::test]
async fn a_record_that_somebody_else_wrote_first_is_read_again_and_the_rollout_goes_on() {
    let conflict = refusal(409, "Conflict", "the object has been modified");
    with_stores_that_fail([Fault::once(When::Before, Action::Answer(conflict)).times(3)]).await;
}

// Faults: A4
#[tokio::test]
async fn without_the_right_to_write_it_says_which_and_goes_on_when_it_has_it() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let forbidden = "configmaps \"allclear-ledger-00\" is forbidden: User \"allclear\" cannot update resource";
    let fault = Fault::once(When::Before, Action::Answer(refusal(403, "Forbidden", forbidden)));
    scene.world.api.inject(fault.matching(is_store).times(u32::MAX));
    scene.roll_out("1.1");
    let says = async |scene: &Scene| {
        scene.process().complaints().iter().any(|line| {
            ["update", "configmap", "allclear-ledger-", "in default"].iter().all(|word| line.contains(word))
        })
    };
    scene.wait_until("it names the verb, the object and the namespace", says).await;
    assert!(scene.purged().is_empty(), "nothing is done that the ledger does not say");
    scene.world.api.clear_faults();
    scene.wait_until_over(2).await;
    assert_purged_once(&scene);
}

// Faults: F1
/// CloudFront throttles with a 400, for the listing and for the creation alike.
#[tokio::test]
async fn a_throttled_account_is_asked_again_and_purged_once() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let throttled = || Action::Answer(CloudFrontStandIn::error(400, "Throttling", "Rate exceeded"));
    for (method, times) in [("GET", 2), ("POST", 3)] {
        let fault = Fault::once(When::Before, throttled()).times(times);
        scene.world.cdn.inject(fault.matching(move |request| request.method == method));
    }
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_purged_once(&scene);
}

// Faults: F6
/// The first attempt after a denial comes after 15 to 30 s, because only a person can change it.
#[tokio::test]
async fn an_account_that_denies_purges_is_named_and_asked_again_until_it_allows_them() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let denied = CloudFrontStandIn::error(403, "AccessDenied", "User is not authorized to perform this action");
    scene.world.cdn.inject(Fault::once(When::Before, Action::Answer(denied)).matching(is_creation));
    scene.roll_out("1.1");
    scene.wait_until("somebody is told", async |scene| !scene.note(NAME, "PurgeFailed").is_empty()).await;
    let note = scene.note(NAME, "PurgeFailed");
    assert!(note.contains("AccessDenied") && note.contains("it is tried again"), "{note}");
    scene.wait_until_over(2).await;
    assert_eq!((scene.purged(), scene.calls()), (vec![DISTRIBUTION.to_owned()], 1));
}

// Faults: F2
#[tokio::test]
async fn an_invalidation_that_was_accepted_without_an_answer_is_not_made_twice() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.world.cdn.inject(Fault::once(When::After, Action::Cut).matching(is_creation));
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_purged_once(&scene);
    assert!(scene.world.cloudfront.invalidations()[0].repeats > 0, "it was asked for again, by the same reference");
}

// Faults: F5
/// Somebody has used our reference with other paths: the purge exists, so it is found and waited for.
#[tokio::test]
async fn a_reference_that_was_used_with_other_paths_is_found_and_waited_for() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let late = Action::Delay(Duration::from_secs(2));
    scene.world.cdn.inject(Fault::once(When::Before, late).matching(is_creation));
    scene.roll_out("1.1");
    let reference = |scene: &Scene| {
        let record = scene.record()?;
        let purge = record.votes.first()?.purges.listed.values().next()?;
        Some(purge.reference.to_string())
    };
    scene.wait_until("the purge is planned", async |scene| reference(scene).is_some()).await;
    let batch = format!(
        "<InvalidationBatch xmlns=\"http://cloudfront.amazonaws.com/doc/2020-05-31/\"><Paths><Quantity>1</Quantity>\
         <Items><Path>/other/*</Path></Items></Paths><CallerReference>{}</CallerReference></InvalidationBatch>",
        reference(&scene).expect("it is there")
    );
    let url = format!("{}/2020-05-31/distribution/{DISTRIBUTION}/invalidation", scene.world.cdn.url());
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let made = client.post(url).header("authorization", "Credential=SOMEBODY/").body(batch).send().await;
    assert_eq!(made.expect("an answer").status(), 201);
    scene.wait_until_over(2).await;
    let invalidations = scene.world.cloudfront.invalidations();
    assert_eq!((invalidations.len(), invalidations[0].paths.as_slice()), (1, ["/other/*".to_owned()].as_slice()));
    assert_eq!(scene.calls(), 1);
}

// Faults: F6
#[tokio::test]
async fn a_distribution_that_is_gone_ends_the_rollout_with_a_reason() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let gone = CloudFrontStandIn::error(404, "NoSuchDistribution", "The specified distribution does not exist.");
    scene.world.cdn.inject(Fault::once(When::Before, Action::Answer(gone)).matching(is_creation));
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let note = scene.note(NAME, "PurgeFailed");
    assert!(note.contains(DISTRIBUTION) && note.contains("is impossible"), "{note}");
    assert_eq!((scene.purged().len(), scene.calls()), (0, 0));
    scene.roll_out("1.2");
    scene.wait_until_over(3).await;
    assert_eq!(scene.purged(), [DISTRIBUTION], "the next one is purged as ever");
}

/// As when Terraform replaces a distribution: it has another id, and the same hosts.
#[tokio::test]
async fn a_distribution_in_the_place_of_one_that_is_gone_is_found_without_a_restart() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let has_listed = async |scene: &Scene| !scene.process().state().await["distributions"].is_null();
    scene.wait_until("the distributions are listed", has_listed).await;
    scene.world.cloudfront.remove_distribution(DISTRIBUTION);
    scene.add_distribution("E2REPLACED", HOST);
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert!(scene.note(NAME, "PurgeFailed").contains("NoSuchDistribution"), "{:?}", scene.events_of(NAME));
    assert_eq!(scene.purged(), ["E2REPLACED"], "the listing after the vote has it");
    scene.roll_out("1.2");
    scene.wait_until_over(3).await;
    assert_eq!(scene.purged(), ["E2REPLACED", "E2REPLACED"]);
}

// Faults: W1
#[tokio::test]
async fn a_watch_that_is_cut_or_expires_hides_nothing() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let cluster = scene.world.kubernetes.clone();
    let cut: [(&str, &dyn Fn()); 2] = [("1.1", &|| cluster.expire_watches()), ("1.2", &|| cluster.close_watches())];
    for (seq, (tag, cut)) in (2..).zip(cut) {
        cut();
        scene.roll_out(tag);
        cut();
        scene.wait_until_over(seq).await;
    }
    assert_eq!((scene.purged().len(), scene.calls()), (2, 2));
}

#[tokio::test]
async fn twenty_workloads_of_one_distribution_released_together_cost_three_purges_at_most() {
    let mut scene = Scene::new().await;
    scene.add_distribution("E3SHARED", "*.shared.example.com");
    let names: Vec<String> = (0..20).map(|number| format!("part-{number}")).collect();
    for name in &names {
        scene.add_workload(name);
        let host = format!("{name}.shared.example.com");
        scene.world.kubernetes.expose(crate::scene::NAMESPACE, name, &host).expect("the cluster takes it");
    }
    scene.start().await;
    let known = async |scene: &Scene| names.iter().all(|name| scene.record_of(name).is_some());
    scene.wait_until("all have a baseline", known).await;
    names.iter().for_each(|name| scene.set_image(name, &image("1.1")));
    let over = async |scene: &Scene| names.iter().all(|name| scene.is_over(name, 2));
    scene.wait_until("all rollouts are over", over).await;
    let purges = scene.purged().len();
    assert!((1..=3).contains(&purges), "{purges} purges");
    for name in &names {
        assert!(scene.note(name, "PurgeCompleted").contains("E3SHARED"), "{name}: {:?}", scene.events_of(name));
    }
}

// Faults: X1
#[tokio::test]
async fn a_bad_configuration_ends_it_with_2_and_every_mistake_at_once() {
    let scene = Scene::new().await;
    let mut environment = scene.environment.clone();
    let mistakes = [
        ("ALLCLEAR__ROLLOUT__TIMEOUT", "15"),
        ("ALLCLEAR__LEDGER__BACKEND", "etcd"),
        ("ALLCLEAR__PURGE__PATHS", "no-slash"),
        ("ALLCLEAR__PURGE__DEBUONCE", "2s"),
    ];
    environment.extend(mistakes.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut process = Process::start(&["run"], environment);
    let status = process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    let log = process.log().join("\n");
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(mistakes.iter().all(|(name, _)| log.contains(name)), "{log}");
    assert!(scene.world.api.seen().is_empty(), "nothing was touched");
}

#[tokio::test]
async fn a_port_that_is_taken_ends_it_with_1_and_a_way_out() {
    let scene = Scene::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    for name in ["ALLCLEAR__HTTP__LISTEN", "ALLCLEAR__HTTP__PAGE"] {
        let mut environment = scene.environment.clone();
        environment.insert(name.to_owned(), address.clone());
        let mut process = Process::start(&["run"], environment);
        let status = process.ended(support::process::PATIENCE).await.expect("it ends by itself");
        let log = process.log().join("\n");
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains(&address) && log.contains(name), "{log}");
    }
}

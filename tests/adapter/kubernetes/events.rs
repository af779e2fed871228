//! Notices as Events: what is written, how often, and in which order `kubectl` shows it.

use allclear::adapters::kubernetes::Events;
use expect_test::expect_file;
use kernel::id::{NoticeId, PipelineId, RepoId, Seq, Subject};
use kernel::remark::{Remark, Remarked};
use notices::notice::{Kind as NoticeKind, Notice};
use purge::ports::{EventSink, Retry};
use sandbox::http::{Action, Fault, When};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};
use support::snapshot::redacted;

use super::{Bench, web};

fn notice(message: &str) -> Notice {
    Notice {
        id: NoticeId("msg_0a1b2c".to_owned()),
        kind: NoticeKind::PurgeFailed,
        at_ms: 1_700_000_000_123,
        about: web().into(),
        seq: Seq(1),
        rollout: "r".to_owned(),
        change: "web: 1 → 2".to_owned(),
        message: message.to_owned(),
    }
}

/// A Deployment to write Events on, and its UID.
fn deploy(bench: &Bench) -> String {
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// What the API server lists for `kubectl describe` of a Deployment (`searchEvents` in kubectl's `pkg/describe`).
async fn listed(bench: &Bench, uid: &str) -> Vec<Value> {
    listed_of(bench, "Deployment", uid).await
}

/// The same of another kind.
async fn listed_of(bench: &Bench, kind: &str, uid: &str) -> Vec<Value> {
    let about = [&format!("kind%3D{kind}"), "name%3Dweb", "namespace%3Dshop"];
    let about = about.map(|term| format!("involvedObject.{term},"));
    let path =
        format!("/api/v1/namespaces/shop/events?fieldSelector={}involvedObject.uid%3D{uid}&limit=500", about.concat());
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let list: Value = bench.clients.request.request(request).await.unwrap();
    list["items"].as_array().unwrap().clone()
}

/// By what `kubectl describe` sorts, and nothing else (`SortableEvents` in kubectl's `pkg/util/event`). A time that is not
/// there is the zero time, before all others; these times sort as their text does.
fn last_timestamp(event: &Value) -> &str {
    event["lastTimestamp"].as_str().unwrap_or_default()
}

/// The Events in the order of `kubectl describe`. Go's `sort.Sort` of up to twelve is an insertion sort, which is stable, as
/// this sort is.
fn described(mut events: Vec<Value>) -> Vec<String> {
    events.sort_by(|one, other| last_timestamp(one).cmp(last_timestamp(other)));
    events.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_notice_told_twice_is_one_event_on_its_workload() {
    let bench = Bench::start().await;
    let uid = deploy(&bench);
    let events = Events::new(bench.clients.request.clone(), "allclear-6f7-x2");
    let long = notice(&"purge failed ä ".repeat(200));
    // The first answer is lost: it is not known whether the Event exists.
    bench.server.inject(Fault::once(When::After, Action::Cut));
    assert_eq!(events.publish(&long, &uid).await.unwrap_err().retry, Retry::Later);
    events.publish(&long, &uid).await.unwrap();
    events.publish(&long, &uid).await.unwrap();

    let stored = bench.api.list(Kind::Event, "shop");
    assert_eq!(stored.len(), 1);
    let mut event = listed(&bench, &uid).await.remove(0);
    event["metadata"] = event["metadata"]["name"].clone();
    // kubectl shows "x2 over …" above a count of one, and whom it is from: the controller, where no source is named.
    let shown = redacted(&format!("{event:#}\n"), &[(&uid, "UID"), ("purge failed ä ", "")]);
    expect_file!["event.json"].assert_eq(&shown);
    assert!(event["message"].as_str().unwrap().len() <= 1024);
}

/// Goal: `kubectl describe` shows Events as they happened. Method: notices whose ids, and the order in which they are told, say
/// nothing of the time, some of them in one second and some in one millisecond; then what kubectl does with the list.
#[tokio::test]
async fn kubectl_describe_shows_events_as_they_happened() {
    use NoticeKind::*;
    let bench = Bench::start().await;
    let uid = deploy(&bench);
    let events = Events::new(bench.clients.request.clone(), "allclear-6f7-x2");
    let second = 1_700_000_000_000;
    let happened = [
        (second, RolloutStarted),
        (second + 999, RolloutCompleted),
        (second + 1_010, PurgeStarted),
        (second + 1_900, PurgeCompleted),
        // One step ended a rollout and began the next one.
        (second + 2_000, RolloutSuperseded),
        (second + 2_000, RolloutStarted),
        (second + 2_001, RolloutFailed),
        (second + 90_000, RolloutCompleted),
        // In a group, all notices of a purge carry the time of its last vote.
        (second + 90_500, PurgeStarted),
        (second + 90_500, PurgeStalled),
        (second + 90_500, PurgeCompleted),
    ];
    // 7 and 11 have no common factor: each is told once, in no order of theirs.
    for told in 0..happened.len() {
        let (at_ms, kind) = happened[told * 7 % happened.len()];
        let id = NoticeId(format!("msg_{:04x}", 0xffff - told));
        events.publish(&Notice { id, kind, at_ms, ..notice("it happened") }, &uid).await.unwrap();
    }
    let expected: Vec<&str> = happened.iter().map(|(_, kind)| kind.reason()).collect();
    let list = listed(&bench, &uid).await;
    assert_eq!(described(list.clone()), expected);
    // A longer list is sorted by an algorithm that does not keep the order of equals, unless it is sorted already.
    assert!(list.is_sorted_by_key(|event| last_timestamp(event).to_owned()), "{list:#?}");

    // What the controllers of Kubernetes write, by the name that client-go gives it, has its place between ours.
    let scaled = json!({
        "apiVersion": "v1", "kind": "Event", "reason": "ScalingReplicaSet", "type": "Normal", "message": "Scaled up",
        "metadata": {"name": format!("web.{:x}", (second + 5) * 1_000_000 + 17), "namespace": "shop"},
        "firstTimestamp": "2023-11-14T22:13:20Z", "lastTimestamp": "2023-11-14T22:13:20Z", "count": 1,
        "source": {"component": "deployment-controller"},
        "involvedObject": {"kind": "Deployment", "name": "web", "namespace": "shop", "uid": uid},
    });
    let request = http::Request::post("/api/v1/namespaces/shop/events").header("content-type", "application/json");
    let request = request.body(scaled.to_string().into_bytes()).unwrap();
    let _: Value = bench.clients.request.request(request).await.unwrap();
    let shown = described(listed(&bench, &uid).await);
    assert_eq!(&shown[..3], ["RolloutStarted", "ScalingReplicaSet", "RolloutCompleted"]);
}

#[tokio::test]
async fn an_event_that_may_not_be_made_names_the_missing_right() {
    let bench = Bench::start().await;
    bench.refuse(403, 1, |_| true);
    let events = Events::new(bench.clients.request.clone(), "");
    let error = events.publish(&notice("x"), "u").await.unwrap_err();
    assert!(error.retry == Retry::Never && error.denied);
    assert!(error.to_string().ends_with("allow the owner of these credentials to create events in shop"), "{error}");
}

#[tokio::test]
async fn a_remark_is_an_event_with_annotations_on_its_pipeline() {
    let bench = Bench::start().await;
    deploy(&bench);
    let events = Events::new(bench.clients.request.clone(), "allclear-6f7-x2");
    let remark = Remark {
        reason: "Promote",
        is_warning: false,
        message: "Promote pipeline shop/web to prod with version 1.1".to_owned(),
        annotations: vec![("environment", "prod".to_owned()), ("version", "1.1".to_owned())],
    };
    let subject = Subject::Pipeline(PipelineId::new("shop", "web"));
    let mut pipeline = Remarked { subject, uid: "web-uid".to_owned(), serial: 1 };
    for _ in 0..2 {
        events.remark(&remark, &pipeline, 1_700_000_000_123).await.unwrap();
    }
    pipeline.serial += 1;
    events.remark(&remark, &pipeline, 1_700_000_000_123).await.unwrap();
    let seen = listed_of(&bench, "Pipeline", &pipeline.uid).await;
    assert_eq!(seen.len(), 2, "one for each change of status: {seen:#?}");
    let event = &seen[0];
    let said = ["reason", "type", "message"].map(|field| event[field].as_str().unwrap());
    assert_eq!(said, ["Promote", "Normal", remark.message.as_str()]);
    assert_eq!(event["metadata"]["annotations"], json!({"environment": "prod", "version": "1.1"}));
    let on = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "namespace": "shop", "name": "web", "uid": pipeline.uid,
    });
    assert_eq!(event["involvedObject"], on);
    let repo = Remarked { subject: Subject::Repo(RepoId::new("shop", "web")), uid: "repo-uid".to_owned(), serial: 1 };
    events.remark(&remark, &repo, 1_700_000_000_123).await.unwrap();
    let seen = listed_of(&bench, "Repo", "repo-uid").await;
    assert_eq!((seen.len(), &seen[0]["action"]), (1, &json!("Run")));
}

#[tokio::test]
async fn what_is_about_no_change_names_none() {
    let bench = Bench::start().await;
    let uid = deploy(&bench);
    let events = Events::new(bench.clients.request.clone(), "one");
    events.publish(&Notice { change: String::new(), ..notice("it was restored") }, &uid).await.unwrap();
    assert_eq!(listed(&bench, &uid).await[0]["message"], "it was restored");
}

//! What others read of each kind of notice, in each format: the official SDK of CloudEvents, the schemas of CDEvents, and our own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use allclear::config::{BodyTemplate, BodyValue};
use kernel::id::{Environment, PipelineId, RepoId, Revision, Subject};
use kernel::names::host::Host;
use notices::notice::{PromotionFact, PurgeFact, RunFact};
use serde_json::{Value, json};

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema(path: &str) -> Value {
    let text = std::fs::read_to_string(top().join(path)).expect(path);
    serde_json::from_str(&text).expect(path)
}

/// A notice of a kind, with all that it may mention and with the least.
fn notices_of(kind: Kind) -> [Notice; 2] {
    let of = |about: About| Notice { kind, about, message: "\"said\"\n<b>".to_owned(), ..notice() };
    let subject: Subject = match kind.name().split('.').next().expect("a word") {
        "promotion" | "pipeline" => PipelineId::new("shop", "web").into(),
        "run" | "repo" => RepoId::new("platform", "infra").into(),
        _ => WorkloadId::deployment("shop", "web").into(),
    };
    let full = match subject.clone() {
        Subject::Workload(id) => {
            let purge = PurgeFact {
                distribution: "E1".parse().expect("an id"),
                invalidation: Some("I1".into()),
                paths: vec!["/*".parse().expect("a path")],
            };
            let hosts = vec![Host::parse("www.example.com").expect("a host")];
            About::Workload(id, Mentions { hosts, purges: vec![purge], cut: true, ..Mentions::default() })
        }
        Subject::Pipeline(id) => {
            let fact = PromotionFact {
                environment: Environment("prod".to_owned()),
                revision: Some(Revision("1.2 ü".to_owned())),
                from: Some(Revision("1.1".to_owned())),
                ticket: Some("0123456789ab".to_owned()),
                request: Some("https://git.example.com/shop/pull/7".to_owned()),
            };
            About::Pipeline(id, Some(fact))
        }
        Subject::Repo(id) => {
            let fact = RunFact {
                revision: COMMIT.parse().expect("a commit"),
                action: "apply".to_owned(),
                attempt: 1,
                job: Some("infra-0123456789ab".to_owned()),
                ticket: Some("0123456789ab".to_owned()),
                plan: Some("2 to add".to_owned()),
                skipped: vec![COMMIT.parse().expect("a commit")],
            };
            About::Repo(id, Some(fact))
        }
    };
    [of(full), of(subject.into())]
}

fn hook_for_all(bench: &Bench, format: HookFormat) -> Hook {
    Hook {
        events: BTreeSet::from(Kind::ALL),
        workloads: vec![WorkloadPattern::All],
        is_old_form: false,
        parameters: BTreeMap::new(),
        format,
        ..bench.hook()
    }
}

/// Sends these, and what a test is, in one format; as they arrived.
async fn arrived(format: HookFormat, notices: &[Notice]) -> Vec<Request> {
    let bench = Bench::start().await;
    let hook = hook_for_all(&bench, format);
    let webhooks = webhooks(vec![hook.clone()], None);
    for notice in notices {
        let delivery = webhooks.deliveries(notice).remove(0);
        assert_eq!(webhooks.send(&delivery).await, Reply::Delivered { status: 204 });
    }
    let rehearsal = webhooks.rehearse(&hook).await;
    assert_eq!(rehearsal.heard.reply, Reply::Delivered { status: 204 });
    bench.receiver.received().into_iter().map(|received| received.request).collect()
}

fn text(request: &Request) -> String {
    String::from_utf8(request.body.to_vec()).expect("text")
}

fn judged(sent: &[(&str, Request)]) -> Vec<Value> {
    let folder = "tests/adapter/webhook/cdevents";
    let mut cdevents = serde_json::Map::new();
    for name in ["servicedeployed", "servicepublished", "serviceupgraded", "taskrunstarted", "taskrunfinished"] {
        let one = schema(&format!("{folder}/{name}.json"));
        let of = one["properties"]["context"]["properties"]["type"]["default"].as_str().expect("a type").to_owned();
        cdevents.insert(of, one);
    }
    let sent = sent.iter().map(|(format, request)| {
        let pairs = request.headers.iter();
        let headers: BTreeMap<&str, &str> =
            pairs.map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
        json!({"format": format, "headers": headers, "body": text(request)})
    });
    let asked = json!({
        "own": schema("docs/webhooks.schema.json"), "custom": schema(&format!("{folder}/custom.json")),
        "cdevents": cdevents, "sent": sent.collect::<Vec<_>>(),
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), asked.to_string()).expect("it is written");
    let output = Command::new(top().join(".venv/bin/python"))
        .arg(top().join("tests/adapter/webhook/judge.py"))
        .arg(file.path())
        .output()
        .unwrap_or_else(|error| panic!("no .venv ({error}), so nothing was checked: run scripts/test-setup.sh"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nothing was checked: run scripts/test-setup.sh\n{complaint}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn all() -> Vec<Notice> {
    Kind::ALL.into_iter().flat_map(notices_of).collect()
}

#[tokio::test]
async fn each_event_is_what_its_schema_says() {
    let mut sent: Vec<(&str, Request)> =
        arrived(HookFormat::Json, &all()).await.into_iter().map(|request| ("json", request)).collect();
    assert_eq!(sent.len(), Kind::ALL.len() * 2 + 1);
    // And a schema that holds anything would hold this.
    for broken in [
        r#"{"type": "run.failed", "timestamp": "2025-11-20T10:00:00Z", "data": {"message": ""}}"#,
        r#"{"type": "purge.completed", "timestamp": "2025-11-20T10:00:00Z", "data": {"message": ""}, "more": 1}"#,
    ] {
        let body = Bytes::from(broken);
        sent.push(("json", Request { body, ..sent[0].1.clone() }));
    }
    let judged = judged(&sent);
    let (good, bad) = judged.split_at(judged.len() - 2);
    for (said, (_, request)) in good.iter().zip(&sent) {
        assert_eq!(said["wrong"], json!([]), "{}", text(request));
    }
    assert!(bad.iter().all(|said| said["wrong"] != json!([])), "{bad:?}");
}

#[tokio::test]
async fn the_sdk_of_cloudevents_reads_what_was_sent() {
    let notices = all();
    let arrived = arrived(HookFormat::CloudEvents, &notices).await;
    let sent: Vec<(&str, Request)> = arrived.into_iter().map(|request| ("cloudevents", request)).collect();
    let judged = judged(&sent);
    for ((said, notice), (_, request)) in judged.iter().zip(&notices).zip(&sent) {
        let expected = json!({
            "specversion": "1.0", "id": "msg_1", "source": "/allclear", "time": "2025-11-20T10:00:00Z",
            "type": format!("dev.allclear.{}", notice.kind.name()), "subject": notice.about.subject().to_string(),
            "data": serde_json::from_str::<Value>(&text(request)).expect("JSON"),
        });
        assert_eq!(said["read"], expected);
        assert_eq!(said["read"]["data"]["message"], "\"said\"\\n<b>", "the data is that of the event, and no more");
        assert_eq!(request.header("webhook-id"), Some("msg_1"));
    }
    let test = &judged.last().expect("a test")["read"];
    assert_eq!((&test["type"], &test["subject"]), (&json!("dev.allclear.webhook.test"), &json!("test")));
}

#[tokio::test]
async fn the_parameters_of_a_cloudevent_are_members_of_its_data() {
    let bench = Bench::start().await;
    bench.send(Hook { format: HookFormat::CloudEvents, ..bench.hook() }).await;
    travelled(&bench.only().request, expect_file!["cloudevents.http"]);
}

#[tokio::test]
async fn each_event_of_cdevents_is_what_their_schema_says() {
    let notices = all();
    let arrived = arrived(HookFormat::CdEvents, &notices).await;
    let sent: Vec<(&str, Request)> = arrived.into_iter().map(|request| ("cdevents", request)).collect();
    let judged = judged(&sent);
    let mut types = BTreeMap::new();
    for (said, (_, request)) in judged.iter().zip(&sent) {
        assert_eq!(said["wrong"], json!([]), "{}", text(request));
        let event: Value = serde_json::from_str(&text(request)).expect("JSON");
        let read = &said["read"];
        assert_eq!(read["data"], event);
        let context = &event["context"];
        let repeated =
            [&context["id"], &context["source"], &context["type"], &context["timestamp"], &event["subject"]["id"]];
        assert_eq!(["id", "source", "type", "time", "subject"].map(|name| &read[name]), repeated);
        *types.entry(context["type"].as_str().expect("a type").to_owned()).or_insert(0) += 1;
    }
    let theirs: Vec<(&str, i32)> =
        types.iter().filter_map(|(name, count)| Some((name.strip_prefix("dev.cdevents.")?, *count))).collect();
    let expected = [
        ("service.published.0.3.0", 2),
        ("service.upgraded.0.3.0", 1),
        ("taskrun.finished.0.3.0", 3),
        ("taskrun.started.0.3.0", 1),
    ];
    assert_eq!(theirs, expected);
    assert_eq!(types["dev.cdeventsx.allclear-group.indoubt.0.1.0"], 2);
    assert_eq!(types["dev.cdeventsx.allclear-webhook.test.0.1.0"], 1);
}

#[tokio::test]
async fn a_promotion_where_nothing_was_is_deployed() {
    let [Notice { about, .. }, _] = notices_of(Kind::PromotionCompleted);
    let About::Pipeline(id, Some(fact)) = about else { panic!("a promotion") };
    let about = About::Pipeline(id, Some(PromotionFact { from: None, ..fact }));
    let notices = [Notice { kind: Kind::PromotionCompleted, about, ..notice() }];
    let sent = arrived(HookFormat::CdEvents, &notices).await.remove(0);
    let event: Value = serde_json::from_str(&text(&sent)).expect("JSON");
    assert_eq!(event["context"]["type"], "dev.cdevents.service.deployed.0.3.0");
    let content = json!({"environment": {"id": "prod"}, "artifactId": "pkg:generic/shop/web@1.2%20%C3%BC"});
    assert_eq!(event["subject"], json!({"id": "pipeline/shop/web", "content": content}));
    assert_eq!(judged(&[("cdevents", sent)])[0]["wrong"], json!([]));
}

#[tokio::test]
async fn chats_get_a_message_and_a_card() {
    let bench = Bench::start().await;
    for format in [HookFormat::Slack, HookFormat::Teams] {
        bench.send(Hook { parameters: BTreeMap::new(), format, ..bench.hook() }).await;
    }
    let received = bench.receiver.received();
    travelled(&received[0].request, expect_file!["slack.http"]);
    travelled(&received[1].request, expect_file!["teams.http"]);
}

/// What the configuration takes for granted when it tries a body with samples is what events have.
#[tokio::test]
async fn a_body_of_ones_own_has_the_values_that_the_configuration_promises() {
    let list = |names: &[BodyValue]| {
        let places = names.iter().map(|value| format!("{{{{ {} }}}}", value.name()));
        format!("[{}]", places.collect::<Vec<_>>().join(","))
    };
    for kind in Kind::ALL {
        let read = |text: &str, events: &BTreeSet<Kind>| BodyTemplate::parse(text, true, events).ok();
        let only = BTreeSet::from([kind]);
        let has = |value: &BodyValue| read(&list(&[*value]), &only).is_some();
        let (has, lacks): (Vec<BodyValue>, Vec<BodyValue>) = BodyValue::ALL.into_iter().partition(has);
        let everything = read(&list(&BodyValue::ALL), &BTreeSet::from(Kind::ALL)).expect("each is of some event");
        let [full, least] = notices_of(kind);
        let bodies = arrived(HookFormat::Template(everything), &[full, least]).await;
        let [full, least, test] = [0, 1, 2].map(|at| {
            let values: Vec<Value> = serde_json::from_str(&text(&bodies[at])).expect("JSON");
            BodyValue::ALL.into_iter().zip(values).collect::<BTreeMap<BodyValue, Value>>()
        });
        assert!(has.iter().all(|value| !full[value].is_null()), "{kind:?}: {full:?}");
        assert!(lacks.iter().all(|value| full[value].is_null() && least[value].is_null()), "{kind:?}: {full:?}");
        let event = json!(kind.name());
        assert_eq!((&full[&BodyValue::Type], &full[&BodyValue::Event]["type"]), (&event, &event));
        assert_eq!((&test[&BodyValue::Reason], &test[&BodyValue::Namespace]), (&json!("WebhookTest"), &Value::Null));
    }
}

#[tokio::test]
async fn a_body_of_ones_own_is_made_when_it_is_sent_and_is_in_no_ledger() {
    let bench = Bench::start().await;
    let body = r#"{"routing_key":"s3cret","payload":{"summary":"{{ message }} ({{ severity }})","hosts":{{ hosts }}}}"#;
    let format = HookFormat::Template(BodyTemplate::parse(body, true, &BTreeSet::from(Kind::ALL)).expect("a body"));
    let hook = hook_for_all(&bench, format);
    let webhooks = webhooks(vec![hook.clone()], None);
    let [full, _] = notices_of(Kind::PurgeFailed);
    let stored = serde_json::to_string(&webhooks.deliveries(&full).remove(0)).expect("JSON");
    assert!(!stored.contains("s3cret"), "{stored}");
    webhooks.send(&serde_json::from_str::<Delivery>(&stored).expect("a delivery")).await;
    let expected = json!({
        "routing_key": "s3cret",
        "payload": {"summary": "\"said\"\\n<b> (error)", "hosts": ["www.example.com"]},
    });
    assert_eq!(serde_json::from_str::<Value>(&text(&bench.only().request)).expect("JSON"), expected);
}

/// A receiver may repeat what it got, or a part of it; a person who tries the hook must not be shown it.
#[tokio::test]
async fn no_answer_to_a_body_of_ones_own_is_shown() {
    let bench = Bench::start().await;
    let events = BTreeSet::from(Kind::ALL);
    let plain = ("Key s3cr3t-abc: {{ message }}", false);
    for (body, is_json) in [plain, (r#"{"key":"Key s3cr3t-abc: {{ message }}"}"#, true)] {
        let template = BodyTemplate::parse(body, is_json, &events).expect("a body");
        let hook = hook_for_all(&bench, HookFormat::Template(template));
        let webhooks = webhooks(vec![hook.clone()], None);
        bench.receiver.answer_always(Answer::status(400).body(AnswerBody::Full(Bytes::from("no such key s3cr3t-abc"))));
        let rehearsal = webhooks.rehearse(&hook).await;
        assert_eq!(rehearsal.heard.answer, "•••, for it may repeat the body");
        assert!(!rehearsal.body.expect("a body").contains("s3cr3t"));
        bench.receiver.answer_always(Answer::status(204));
        assert_eq!(webhooks.rehearse(&hook).await.heard.answer, "");
    }
}

#[tokio::test]
async fn of_a_test_the_body_is_shown_that_was_sent() {
    let bench = Bench::start().await;
    for format in [HookFormat::Json, HookFormat::CloudEvents, HookFormat::CdEvents, HookFormat::Slack] {
        let hook = hook_for_all(&bench, format);
        let shown = webhooks(vec![hook.clone()], None).rehearse(&hook).await.body;
        let sent = bench.receiver.received().pop().expect("a request").request;
        assert_eq!(shown, Some(text(&sent)), "{:?}", hook.format);
    }
}

#[tokio::test]
async fn what_was_stored_for_another_format_is_not_sent_in_this_one() {
    let bench = Bench::start().await;
    let stored = |format| webhooks(vec![hook_for_all(&bench, format)], None).deliveries(&notice()).remove(0);
    for (was, is) in [
        (HookFormat::Slack, HookFormat::CloudEvents),
        (HookFormat::Slack, HookFormat::CdEvents),
        (HookFormat::Slack, HookFormat::Json),
        (HookFormat::Slack, HookFormat::Teams),
        (HookFormat::Teams, HookFormat::Slack),
        (HookFormat::Json, HookFormat::Slack),
        (HookFormat::Flux, HookFormat::Json),
        (HookFormat::CdEvents, HookFormat::Json),
        (HookFormat::Form, HookFormat::Json),
        (HookFormat::Form, HookFormat::Slack),
    ] {
        let reply = webhooks(vec![hook_for_all(&bench, is.clone())], None).send(&stored(was.clone())).await;
        let Reply::Blocked { reason } = reply else { panic!("{was:?} as {is:?}: {reply:?}") };
        assert_eq!(reason, "not sent: the hook had another format when this was stored");
    }
    assert!(bench.receiver.received().is_empty());
}

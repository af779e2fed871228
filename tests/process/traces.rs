//! Traces, as a collector sees them: read by hand from what arrives, by the specification of OTLP and not by our own code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use purge::records::record::Phase;
use sandbox::http::Server;
use sandbox::receiver::{Answer, Receiver};
use serde_json::Value;

use crate::group::field::Field;
use crate::scene::{DISTRIBUTION, NAME, NAMESPACE, Scene};

const ENDPOINT: &str = "ALLCLEAR__TRACES__ENDPOINT";

/// A collector that takes everything.
struct Collector {
    receiver: Arc<Receiver>,
    server: Server,
}

/// A span that arrived.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    start_ms: u128,
    end_ms: u128,
    failed: bool,
    /// Those of the resource too.
    attributes: BTreeMap<String, Value>,
}

impl Collector {
    async fn start() -> Self {
        let receiver = Arc::new(Receiver::new());
        receiver.answer_always(Answer::status(200));
        Self { server: Server::start(receiver.clone()).await.unwrap(), receiver }
    }

    fn url(&self) -> String {
        format!("{}/v1/traces", self.server.url())
    }

    /// Every span that was taken, in the order of arrival. One that arrived twice counts once, as it does for the collectors that people
    /// have: a batch whose answer had not come when the program ended is sent again.
    fn spans(&self) -> Vec<Span> {
        let bodies = self.receiver.received().into_iter().map(|received| {
            assert_eq!((received.request.method.as_str(), received.request.path.as_str()), ("POST", "/v1/traces"));
            assert_eq!(received.request.header("content-type"), Some("application/json"));
            serde_json::from_slice::<Value>(&received.request.body).unwrap()
        });
        let arrived =
            bodies.flat_map(|body| list(&body, "resourceSpans").iter().flat_map(of_resource).collect::<Vec<_>>());
        arrived.fold(Vec::new(), |mut spans, span| {
            if !spans.contains(&span) {
                spans.push(span);
            }
            spans
        })
    }
}

fn of_resource(sent: &Value) -> Vec<Span> {
    let resource = attributes(&sent["resource"]);
    let spans = list(sent, "scopeSpans").iter().flat_map(|scope| list(scope, "spans"));
    spans.map(|span| read(span, &resource)).collect()
}

fn read(span: &Value, resource: &BTreeMap<String, Value>) -> Span {
    let hex = |name: &str, digits: usize| {
        let text = span[name].as_str().unwrap().to_owned();
        assert!(text.len() == digits && text.chars().all(|c| c.is_ascii_hexdigit()), "{name}: {text}");
        text
    };
    let ms = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap() / 1_000_000;
    let mut attributes = attributes(span);
    attributes.extend(resource.clone());
    Span {
        trace: hex("traceId", 32),
        id: hex("spanId", 16),
        parent: span.get("parentSpanId").map(|_| hex("parentSpanId", 16)),
        name: span["name"].as_str().unwrap().to_owned(),
        start_ms: ms("startTimeUnixNano"),
        end_ms: ms("endTimeUnixNano"),
        failed: span["status"]["code"] == 2,
        attributes,
    }
}

fn attributes(holder: &Value) -> BTreeMap<String, Value> {
    let named = |pair: &Value| {
        let (_, value) = pair["value"].as_object().unwrap().iter().next().unwrap();
        (pair["key"].as_str().unwrap().to_owned(), value.clone())
    };
    list(holder, "attributes").iter().map(named).collect()
}

fn list<'a>(holder: &'a Value, name: &str) -> &'a [Value] {
    holder[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The only span of this name.
fn only<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:#?}");
    found[0]
}

/// All of one trace, below one root, each once and no longer than nothing; the trace is the one that the receiver was told of.
fn judge(spans: &[Span], scene: &Scene) {
    let root = only(spans, "rollout");
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "{spans:#?}");
    for span in spans {
        assert_eq!(span.trace, told(scene), "{spans:#?}");
        assert_eq!(span.parent.as_ref(), (span.name != "rollout").then_some(&root.id), "{span:?}");
        assert!(span.start_ms <= span.end_ms && root.start_ms <= span.start_ms, "{span:?} {root:?}");
        assert_eq!(span.attributes["k8s.namespace.name"], NAMESPACE);
        assert_eq!(span.attributes["k8s.deployment.name"], NAME);
        assert_eq!(span.attributes["service.name"], "allclear");
    }
}

/// The rollout's id, as the webhook's body has it.
fn told(scene: &Scene) -> String {
    let calls = scene.world.receiver.received();
    let body: Value = serde_json::from_slice(&calls.last().unwrap().request.body).unwrap();
    body["data"]["rollout"].as_str().unwrap().to_owned()
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()
}

/// Ends the program in order: what waits is sent then.
async fn stop(scene: &mut Scene) {
    let mut process = scene.take_process();
    process.signal("TERM");
    let status = process.ended(Duration::from_secs(10)).await;
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", process.tail());
}

#[tokio::test]
async fn a_rollout_is_one_trace_whose_stages_follow_each_other() {
    let collector = Collector::start().await;
    let mut scene = Scene::new()
        .await
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.server.url())
        .with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2")
        .with("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    scene.start().await;
    let before_ms = now_ms();
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let log = scene.process().log().join("\n");
    stop(&mut scene).await;
    assert!(!log.contains("hunter2") && log.contains("exporting traces"), "{log}");
    let received = collector.receiver.received();
    assert!(received.iter().all(|call| call.request.header("authorization") == Some("Bearer hunter2")));

    let spans = collector.spans();
    judge(&spans, &scene);
    let [root, pods, agreement, purge, webhook] =
        ["rollout", "pods", "agreement", "purge", "webhook"].map(|name| only(&spans, name));
    assert_eq!(spans.len(), 5, "{spans:#?}");
    assert!(before_ms <= root.start_ms && root.end_ms <= now_ms(), "{root:?}");
    assert_eq!((root.start_ms, pods.end_ms), (pods.start_ms, agreement.start_ms), "{spans:#?}");
    assert_eq!(agreement.end_ms, purge.start_ms, "{spans:#?}");
    assert!(purge.end_ms <= root.end_ms, "a newer listing is compared before the end: {spans:#?}");
    assert!(pods.start_ms < pods.end_ms && purge.start_ms < purge.end_ms, "each takes its time: {spans:#?}");
    assert!(webhook.start_ms >= purge.end_ms, "{spans:#?}");
    assert!(spans.iter().all(|span| !span.failed));
    let made = &scene.world.cloudfront.invalidations()[0];
    assert_eq!(purge.attributes["allclear.invalidation"], made.id.as_str());
    assert_eq!(purge.attributes["allclear.distribution"], DISTRIBUTION);
    assert_eq!(webhook.attributes["http.response.status_code"], "204");
    assert_eq!(root.attributes["allclear.outcome"], "purged");
    assert_eq!(root.attributes["deployment.environment.name"], "test");
}

#[tokio::test]
async fn a_life_that_began_in_the_middle_tells_the_whole_rollout() {
    let collector = Collector::start().await;
    let mut scene = Scene::new().await.with(ENDPOINT, &collector.url());
    scene.start().await;
    scene.freeze();
    scene.roll_out("1.1");
    let is_rolling = async |scene: &Scene| scene.record().is_some_and(|record| record.phase == Phase::Rolling);
    scene.wait_until("the rollout is on record", is_rolling).await;
    scene.take_process().kill();
    let killed_ms = now_ms();
    scene.thaw();
    scene.start().await;
    scene.wait_until_over(2).await;
    stop(&mut scene).await;
    let spans = collector.spans();
    judge(&spans, &scene);
    let pods = only(&spans, "pods");
    assert!(pods.start_ms <= killed_ms && killed_ms < pods.end_ms, "killed at {killed_ms}: {spans:#?}");
    assert_eq!(only(&spans, "rollout").start_ms, pods.start_ms);
}

#[tokio::test]
async fn all_members_of_a_group_tell_one_trace() {
    let collector = Collector::start().await;
    let mut field = Field::of(2, Some(Duration::from_millis(150)), &[]).await;
    field.set(&[(ENDPOINT, &collector.url())]);
    field.start().await;
    field.roll_out("1.1");
    field.wait_until_over(2).await;
    for member in &mut field.members {
        stop(member).await;
    }
    let spans = collector.spans();
    judge(&spans, &field[0]);
    let by = |name: &str| -> Vec<&Span> { spans.iter().filter(|span| span.name == name).collect() };
    for name in ["pods", "agreement"] {
        let instances: BTreeSet<&str> =
            by(name).iter().map(|span| span.attributes["service.instance.id"].as_str().unwrap()).collect();
        assert_eq!((by(name).len(), instances), (2, BTreeSet::from(["eu-1", "us-1"])), "{name}: {spans:#?}");
    }
    let agreed: BTreeSet<u128> = by("agreement").iter().map(|span| span.end_ms).collect();
    assert_eq!(agreed.len(), 1, "they were agreed at one moment: {spans:#?}");
    let purge = only(&spans, "purge");
    let maker = &field[field.maker(&field.purges()[0])].world.name;
    assert_eq!(purge.attributes["k8s.cluster.name"], maker.as_str(), "{spans:#?}");
    assert_eq!(by("webhook").len(), 1, "{spans:#?}");
}

#[tokio::test]
async fn a_collector_that_is_away_holds_nothing_up_and_gets_its_spans_later() {
    let collector = Collector::start().await;
    collector.receiver.answer_always(Answer::status(503));
    let mut scene = Scene::new().await.with(ENDPOINT, &collector.url());
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let tried = async |_: &Scene| collector.receiver.received().len() >= 3;
    scene.wait_until("it has tried three times", tried).await;
    let complaints = scene.process().complaints();
    assert_eq!(complaints.len(), 1, "one line for all attempts: {complaints:#?}");
    assert!(complaints[0].contains("could not send spans") && complaints[0].contains("503"), "{complaints:#?}");
    collector.receiver.clear();
    collector.receiver.answer_always(Answer::status(200));
    let arrived = async |_: &Scene| collector.spans().iter().any(|span| span.name == "rollout");
    scene.wait_until("the spans have arrived", arrived).await;
    let counted = async |scene: &Scene| {
        let (_, text) = scene.process().get("/metrics").await.unwrap_or_default();
        text.contains("\nallclear_spans_total{result=\"exported\"} 5\n")
            && text.contains("\nallclear_spans_total{result=\"dropped\"} 0\n")
            && !text.contains("\nallclear_failures_total{operation=\"export_spans\"} 0\n")
    };
    scene.wait_until("all spans are counted as exported", counted).await;
}

#[tokio::test]
async fn a_collector_that_never_comes_delays_no_end() {
    let collector = Collector::start().await;
    let mut scene = Scene::new().await.with(ENDPOINT, &collector.url());
    collector
        .server
        .inject(sandbox::http::Fault::once(sandbox::http::When::Before, sandbox::http::Action::Hold).times(u32::MAX));
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let mut process = scene.take_process();
    process.signal("TERM");
    // The program's own bound is 4 s; Kubernetes gives 30.
    let status = process.ended(Duration::from_secs(8)).await;
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", process.tail());
    assert!(process.said("dropped spans at the end"), "{}", process.tail());
}

#[tokio::test]
async fn without_an_address_nothing_is_traced_and_the_record_keeps_no_times() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.freeze();
    scene.roll_out("1.1");
    scene.wait_until("it is on record", async |scene| scene.record().is_some_and(|record| record.seq.0 == 2)).await;
    assert!(scene.record().unwrap().times.is_blank());
    assert!(!scene.process().said("exporting traces"));
}

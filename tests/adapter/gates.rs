//! Gates that others judge, on the wire: verdicts and edges of other allclears, with every answer that is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::adapters::edge::FreshEdges;
use allclear::adapters::forge_http::ForgeHttp;
use allclear::adapters::ledger::memory::MemoryLedger;
use allclear::adapters::verdict::HttpVerdicts;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use kernel::id::{Environment, PipelineId, RepoId, Revision, Subject};
use kernel::machine::Timestamp;
use kernel::names::destination::Purpose;
use kernel::names::workload_name::WorkloadName;
use objects::asked::Opening;
use objects::gates::VerdictSource;
use objects::pipeline::judge::Stale;
use objects::pipeline::spec::{Purged, PurgedBy, Until};
use objects::ports::pipeline::Edges;
use objects::ports::{Asking, Secrets, Unanswered, Verdicts};
use purge::bounds::policy::Policy;
use purge::ports::{Clock, PortError};
use sandbox::http::{Action, Fault, Server, StandIn, When};
use sandbox::receiver::{Answer, AnswerBody, Receiver};
use serde_json::{Value, json};
use sha2::Sha256;
use support::fakes::World;

/// 2025-11-20T10:00:00Z
const NOW_MS: i64 = 1_763_632_800_000;

/// What no error may contain.
const KEY: &str = "hmac-key-hunter2";
const TOKEN: &str = "token-hunter2";

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }
    fn wall_ms(&self) -> i64 {
        NOW_MS
    }
}

/// One Secret, `shop/key`.
struct Safe;

#[async_trait]
impl Secrets for Safe {
    async fn read(&self, namespace: &str, name: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        match (namespace, name) {
            ("shop", "key") => {
                let pairs = [("hmac-key", KEY), ("token", TOKEN)];
                Ok(pairs.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).into())
            }
            ("shop", "empty") => Ok(BTreeMap::new()),
            _ => Err(PortError::denied("failed to get secrets", "not yours")),
        }
    }
}

struct Bench {
    receiver: Arc<Receiver>,
    server: Server,
    verdicts: HttpVerdicts,
    edges: FreshEdges,
    world: World,
}

impl Bench {
    /// Whose hosts may be on loopback if `private`.
    async fn start(private: bool) -> Self {
        let receiver = Arc::new(Receiver::new());
        let server = Server::start(Arc::clone(&receiver) as Arc<dyn StandIn>).await.unwrap();
        let hosts = private.then(|| "127.0.0.1".to_owned());
        let http = Arc::new(ForgeHttp::new(hosts).with_plain_http());
        let verdicts = HttpVerdicts::new(http.clone(), Arc::new(Safe), Arc::new(Stopped));
        let world = World::new(1);
        let ledger = Arc::new(MemoryLedger::new("test".into()));
        let edges = FreshEdges::new(ledger, Arc::new(world.clone()), Policy::default(), http, Arc::new(Safe));
        Self { receiver, server, verdicts, edges, world }
    }

    fn answers(&self, status: u16, body: &Value) -> &Self {
        self.says(Answer::status(status).body(AnswerBody::Full(Bytes::from(body.to_string()))))
    }

    fn says(&self, answer: Answer) -> &Self {
        self.receiver.answer_next([answer]);
        self
    }

    async fn ask(&self, secret: Option<&str>) -> Result<Opening, Unanswered> {
        let source = VerdictSource {
            url: format!("{}/may?token=hunter2", self.server.url()),
            secret: secret.map(str::to_owned),
            timeout: Duration::from_secs(5),
        };
        self.ask_of(source).await
    }

    async fn ask_of(&self, source: VerdictSource) -> Result<Opening, Unanswered> {
        let (revision, from) = (Revision("1.2.4".to_owned()), Some(Revision("1.2.3".to_owned())));
        let subject = Subject::Pipeline(PipelineId::new("shop", "web"));
        let environment = Some(Environment("prod".to_owned()));
        let answer = self.verdicts.ask(&Asking { source, subject, environment, revision, from, seq: 7 }).await;
        if let Err(Unanswered { why, .. }) = &answer {
            assert!(!why.contains("hunter2"), "{why}");
        }
        answer
    }

    async fn edge(&self, secret: Option<&str>) -> Result<Result<(), Stale>, PortError> {
        self.edge_until(Until::Purged, secret).await
    }

    async fn edge_until(&self, until: Until, secret: Option<&str>) -> Result<Result<(), Stale>, PortError> {
        let by = PurgedBy {
            server: format!("{}/", self.server.url()),
            secret: secret.map(str::to_owned),
            namespace: "shop".to_owned(),
        };
        let workloads = ["web", "statefulset/db"].map(|name| WorkloadName::parse(name).unwrap()).into();
        let purged = Purged { workloads, by: Some(by), until };
        let fresh = self.edges.are_fresh(&purged, &BTreeSet::from(["prod".to_owned()])).await;
        assert!(!format!("{fresh:?}").contains("hunter2"), "{fresh:?}");
        fresh
    }
}

#[tokio::test]
async fn a_verdict_is_asked_for_by_a_signed_question_and_its_words_are_told() {
    let bench = Bench::start(true).await;
    let opening = bench.answers(200, &json!({"open": true, "more": [1]})).ask(Some("key")).await.unwrap();
    assert_eq!(opening, Opening { open: true, changes_after: None, words: "127.0.0.1 says open".to_owned() });
    let request = bench.receiver.received().remove(0).request;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/may"));
    let asked: Value = serde_json::from_slice(&request.body).unwrap();
    let pipeline = json!({"namespace": "shop", "name": "web"});
    let expected = json!({"pipeline": pipeline, "environment": "prod", "revision": "1.2.4", "from": "1.2.3", "seq": 7});
    assert_eq!(asked, expected);
    // As a receiver with a library of Standard Webhooks checks it.
    let header = |name: &str| request.header(name).unwrap().to_owned();
    let (id, second) = (header("webhook-id"), header("webhook-timestamp"));
    assert_eq!(second, "1763632800");
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
    mac.update(&[format!("{id}.{second}.").as_bytes(), &request.body].concat());
    assert_eq!(header("webhook-signature"), format!("v1,{}", BASE64.encode(mac.finalize().into_bytes())));

    let closed = json!({"open": false, "reason": "budget\u{1b}[2J used up", "retryAfter": 90});
    let closed = bench.answers(200, &closed).ask(None).await.unwrap();
    assert_eq!((closed.open, closed.changes_after), (false, Some(Duration::from_secs(90))));
    assert_eq!(closed.words, "127.0.0.1 says closed: budget\\u{1b}[2J used up");
    assert_eq!(bench.receiver.received()[1].request.header("webhook-signature"), None);
}

// Faults: PF16
#[tokio::test]
async fn what_is_no_verdict_is_no_answer() {
    let bench = Bench::start(true).await;
    let page = |status: u16, body: &str| Answer::status(status).body(AnswerBody::Full(Bytes::from(body.to_owned())));
    let endless = AnswerBody::Slow { pause: Duration::ZERO, chunk: Bytes::from(vec![b' '; 8192]), chunks: u64::MAX };
    for (answer, words) in [
        (page(200, "<html>Log in</html>"), "no verdict: 200"),
        (page(200, r#"{"open": "true"}"#), "no verdict: 200"),
        (page(200, r#"{"opens": true}"#), "no verdict: 200"),
        (page(200, r#"[{"open": true}]"#), "no verdict: 200"),
        (page(200, ""), "no verdict: 200"),
        (page(201, r#"{"open": true}"#), "answered 201"),
        (page(204, ""), "answered 204"),
        (Answer::redirect(302, "/login"), "answered 302"),
        (page(401, r#"{"open": true}"#), "answered 401"),
        (page(500, r#"{"open": true}"#), "answered 500"),
        (Answer::status(200).body(endless), "more than 65536 bytes"),
    ] {
        let Err(Unanswered { why, rest }) = bench.says(answer).ask(None).await else { panic!("{words}: it was taken") };
        assert!(why.starts_with("127.0.0.1") && why.contains(words), "{words}: {why}");
        assert_eq!(rest, Duration::ZERO);
    }
    bench.server.inject(Fault::once(When::Before, Action::Cut));
    assert!(bench.ask(None).await.is_err());
    assert_eq!(bench.receiver.received().iter().filter(|seen| seen.request.path != "/may").count(), 0, "no redirect");
}

// Faults: PF16
#[tokio::test]
async fn the_other_side_says_when_to_ask_again() {
    let bench = Bench::start(true).await;
    let date = Answer::status(429)
        .header("retry-after", "Thu, 20 Nov 2025 10:02:00 GMT")
        .header("date", "Thu, 20 Nov 2025 10:00:00 GMT");
    for (answer, seconds) in [
        (Answer::status(503).header("retry-after", "120"), 120),
        (date, 120),
        (Answer::status(503).header("retry-after", "99999999999"), 24 * 60 * 60),
        (Answer::status(503).header("retry-after", "soon"), 0),
    ] {
        let Err(Unanswered { rest, .. }) = bench.says(answer).ask(None).await else { panic!("it was taken") };
        assert_eq!(rest, Duration::from_secs(seconds));
    }
}

// Faults: PF18
#[tokio::test]
async fn nobody_is_asked_where_that_is_not_allowed_or_the_key_is_missing() {
    let bench = Bench::start(true).await;
    for (secret, words) in [("empty", "Secret empty in shop has no key hmac-key"), ("other", "not yours")] {
        let Err(Unanswered { why, .. }) = bench.ask(Some(secret)).await else { panic!("{secret}: it was asked") };
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(bench.receiver.received().len(), 0);
    let guarded = Bench::start(false).await;
    let Err(Unanswered { why, .. }) = guarded.ask(None).await else { panic!("it is private") };
    assert!(why.contains("127.0.0.1 is") && guarded.receiver.received().is_empty(), "{why}");
    let silent = AnswerBody::Slow { pause: Duration::from_secs(60), chunk: Bytes::from("x"), chunks: 1 };
    bench.says(Answer::status(200).body(silent));
    let source = VerdictSource { url: bench.server.url(), secret: None, timeout: Duration::from_millis(100) };
    assert!(bench.ask_of(source).await.unwrap_err().why.contains("did not answer within 100ms"));
}

#[tokio::test]
async fn a_namespace_whose_systems_are_silent_keeps_no_other_waiting() {
    let bench = Bench::start(true).await;
    let is_silent = |request: &sandbox::http::Request| request.path == "/silent";
    bench.server.inject(Fault::once(When::Before, Action::Hold).times(u32::MAX).matching(is_silent));
    let asking = |namespace: &str, path: &str| Asking {
        source: VerdictSource {
            url: format!("{}{path}", bench.server.url()),
            secret: None,
            timeout: Duration::from_secs(60),
        },
        subject: Subject::Repo(RepoId::new(namespace, "infra")),
        environment: None,
        revision: Revision("1.2.4".to_owned()),
        from: None,
        seq: 7,
    };
    let silent = asking("hostile", "/silent");
    // More than there are places in all.
    let hostile = join_all((0..100).map(|_| bench.verdicts.ask(&silent)));
    bench.answers(200, &json!({"open": true}));
    let open = asking("shop", "/may");
    tokio::select! {
        biased;
        _ = hostile => panic!("nobody answers it"),
        answer = bench.verdicts.ask(&open) => assert!(answer.unwrap().open),
    }
}

// Faults: PF16
#[tokio::test]
async fn another_allclear_is_asked_with_the_token_of_the_pipeline() {
    let bench = Bench::start(true).await;
    let open = json!({"open": true});
    assert_eq!(bench.answers(200, &open).answers(200, &open).edge(Some("key")).await, Ok(Ok(())));
    let requests = bench.receiver.received().into_iter().map(|received| received.request);
    for (request, path) in requests.zip(["/api/v1/fresh/prod/web", "/api/v1/fresh/prod/statefulset/db"]) {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", path));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    }
    let stale = bench.answers(200, &json!({"open": false, "reason": "its purge is under way"})).edge(None).await;
    assert_eq!(stale, Ok(Err(Stale("the edge of prod/web: 127.0.0.1 says: its purge is under way".to_owned()))));
    assert_eq!(bench.receiver.received()[2].request.header("authorization"), None);
    for (status, words, denied) in [
        (401, "does not accept the token", true),
        (404, "http.fresh_token_file", false),
        (302, "answered 302", false),
        (500, "answered 500", false),
    ] {
        let error = bench.answers(status, &json!({"open": true})).edge(None).await.unwrap_err();
        assert!(error.to_string().contains(words) && error.denied == denied, "{error}");
    }
    assert!(bench.says(Answer::status(200)).edge(None).await.unwrap_err().to_string().contains("no verdict"));
    assert!(bench.edge(Some("empty")).await.unwrap_err().to_string().contains("it has no key token"));
    // A release from before there was more to ask for ignores what it is asked, and says nothing of it.
    let older = bench.answers(200, &json!({"open": true})).edge_until(Until::Fresh, None).await;
    let why = "the edge of prod/web: 127.0.0.1 cannot say whether its edge is fresh: it is of an older release";
    assert_eq!(older, Ok(Err(Stale(why.to_owned()))));
    assert_eq!(bench.receiver.received().last().unwrap().request.raw_query, "until=fresh");
    let fresh = json!({"open": true, "until": "fresh"});
    assert_eq!(bench.answers(200, &fresh).answers(200, &fresh).edge_until(Until::Fresh, None).await, Ok(Ok(())));
    assert!(Bench::start(false).await.edge(None).await.unwrap_err().to_string().contains("127.0.0.1 is"));
}

#[tokio::test]
async fn our_own_edges_are_read_afresh_ten_in_a_second() {
    let bench = Bench::start(true).await;
    let purged = |name| Purged { workloads: vec![WorkloadName::parse(name).unwrap()], by: None, until: Until::Purged };
    let prod = BTreeSet::from(["prod".to_owned()]);
    let missing = bench.edges.are_fresh(&purged("web"), &prod).await;
    let why = "the edge of prod/web: there is no such workload in a namespace that allclear watches";
    assert_eq!(missing, Ok(Err(Stale(why.to_owned()))));
    assert_eq!(bench.world.asked("cluster.workload", "deployment/prod/web").len(), 1);
    let missing = bench.edges.are_fresh(&purged("statefulset/web"), &prod).await.unwrap().unwrap_err();
    assert!(missing.0.starts_with("the edge of statefulset/prod/web: there is no such workload"), "{missing:?}");
    assert_eq!(bench.world.asked("cluster.workload", "statefulset/prod/web").len(), 1);
    let began = Instant::now();
    for _ in 0..5 {
        bench.edges.are_fresh(&purged("web"), &prod).await.unwrap().unwrap_err();
    }
    assert!(began.elapsed() >= Duration::from_millis(450), "{:?}", began.elapsed());
}

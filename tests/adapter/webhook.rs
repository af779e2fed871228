//! Webhooks on the wire: the old contract byte for byte, signatures as a receiver verifies them, and every way a receiver
//! can misbehave.

mod formats;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::adapters::http::{Client, Egress, Lookup, Settings};
use allclear::adapters::webhook::Webhooks;
use allclear::config::{Hook, HookFormat, HookMethod, Secret, WebUrl, WorkloadPattern};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use expect_test::{ExpectFile, expect_file};
use kernel::id::{Seq, WorkloadId};
use kernel::machine::Timestamp;
use notices::delivery::{Delivery, Reply};
use notices::notice::{About, Kind, Mentions, Notice};
use purge::ports::{Clock, Notifier};
use sandbox::http::{Action, Fault, Request, Server, StandIn, When};
use sandbox::receiver::{Answer, AnswerBody, Received, Receiver};
use sha2::{Digest, Sha256};
use support::snapshot::redacted;

/// 2025-11-20T10:00:00Z
const NOW_MS: i64 = 1_763_632_800_000;

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }
    fn wall_ms(&self) -> i64 {
        NOW_MS + 999
    }
}

/// Knows one address, for every name.
pub struct Knows(pub IpAddr);

#[async_trait::async_trait]
impl Lookup for Knows {
    async fn addresses(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![self.0])
    }
}

struct Bench {
    receiver: Arc<Receiver>,
    server: Server,
}

impl Bench {
    async fn start() -> Self {
        let receiver = Arc::new(Receiver::new());
        let server = Server::start(Arc::clone(&receiver) as Arc<dyn StandIn>).await.expect("server");
        Self { receiver, server }
    }

    fn hook(&self) -> Hook {
        hook(&format!("{}/hook?kept=1", self.server.url()))
    }

    async fn send(&self, hook: Hook) -> Reply {
        send(hook, None).await
    }

    fn only(&self) -> Received {
        let received = self.receiver.received();
        assert_eq!(received.len(), 1, "exactly one request");
        received[0].clone()
    }
}

fn hook(url: &str) -> Hook {
    Hook {
        name: "web".to_owned(),
        url: WebUrl::parse(url).expect("a URL"),
        method: HookMethod::Post,
        headers: BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer hunter2".to_owned()))]),
        parameters: BTreeMap::from([
            ("site".to_owned(), Secret::new("shop & web".to_owned())),
            ("token".to_owned(), Secret::new("ä=1".to_owned())),
        ]),
        events: BTreeSet::from([Kind::PurgeCompleted]),
        is_old_form: true,
        workloads: vec![WorkloadPattern::Name("web".to_owned())],
        format: HookFormat::Form,
        secrets: Vec::new(),
        timeout: Duration::from_secs(10),
        schedule: vec![Duration::ZERO],
    }
}

fn notice() -> Notice {
    Notice {
        id: "msg_1".into(),
        kind: Kind::PurgeCompleted,
        about: WorkloadId::deployment("shop", "web").into(),
        seq: Seq(7),
        at_ms: NOW_MS,
        rollout: "3f0c".to_owned(),
        change: "web: 1 → 2".to_owned(),
        message: "CloudFront reports the purge completed".to_owned(),
    }
}

fn webhooks(hooks: Vec<Hook>, address: Option<&str>) -> Webhooks {
    let mut settings = Settings::new(Egress { allow_private: true });
    if let Some(address) = address {
        settings.lookup = Arc::new(Knows(address.parse().expect("an address")));
    }
    Webhooks::new(hooks, Client::new(settings).expect("a client"), Arc::new(Stopped))
}

async fn send(hook: Hook, address: Option<&str>) -> Reply {
    let webhooks = webhooks(vec![hook], address);
    let deliveries = webhooks.deliveries(&notice());
    webhooks.send(deliveries.first().expect("a delivery")).await
}

fn reason(reply: Reply) -> String {
    match reply {
        Reply::Failed { reason } => reason,
        other => panic!("not a failure: {other:?}"),
    }
}

/// The whole request: its line, its headers by name, and its body.
fn travelled(request: &Request, expected: ExpectFile) {
    let Request { method, path, raw_query, headers, body, .. } = request;
    let headers: BTreeSet<String> =
        headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().expect("text"))).collect();
    let json = serde_json::from_slice::<serde_json::Value>(body).map(|body| format!("{body:#}"));
    let body = json.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    let whole = format!("{method} {path}?{raw_query}\n{}\n{body}\n", headers.into_iter().collect::<String>());
    expected.assert_eq(&redacted(&whole, &[(env!("CARGO_PKG_VERSION"), "VERSION")]));
}

#[tokio::test]
async fn the_old_form_is_posted_as_a_form_with_the_headers_of_the_file() {
    let bench = Bench::start().await;
    assert_eq!(bench.send(bench.hook()).await, Reply::Delivered { status: 204 });
    travelled(&bench.only().request, expect_file!["webhook/form.http"]);
}

#[tokio::test]
async fn the_old_form_of_a_get_has_its_parameters_in_the_query_and_no_body() {
    let bench = Bench::start().await;
    bench.send(Hook { method: HookMethod::Get, ..bench.hook() }).await;
    travelled(&bench.only().request, expect_file!["webhook/get.http"]);
}

/// HMAC from its definition (RFC 2104), so that the test shares no code with what it checks.
fn hmac(key: &[u8], message: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize();
    format!("v1,{}", BASE64.encode(outer))
}

#[tokio::test]
async fn a_flux_event_is_posted_as_notification_controller_does() {
    let bench = Bench::start().await;
    bench.send(Hook { format: HookFormat::Flux, parameters: BTreeMap::new(), ..bench.hook() }).await;
    travelled(&bench.only().request, expect_file!["webhook/flux.http"]);
}

#[tokio::test]
async fn a_json_notice_is_signed_with_every_key_over_the_bytes_that_travel() {
    let bench = Bench::start().await;
    let keys = [b"a key of more than 24 bytes, new".to_vec(), b"and the one before it".to_vec()];
    let secrets = keys.iter().cloned().map(Secret::new).collect();
    bench.send(Hook { format: HookFormat::Json, secrets, ..bench.hook() }).await;
    let Received { request, .. } = bench.only();
    let signed = [b"msg_1.1763632800.".as_slice(), request.body.as_ref()].concat();
    let expected = keys.map(|key| hmac(&key, &signed)).join(" ");
    assert_eq!(request.header("webhook-signature"), Some(expected.as_str()));
    travelled(&request, expect_file!["webhook/signed.http"]);
}

#[tokio::test]
async fn every_attempt_has_the_same_id_and_bytes() {
    let bench = Bench::start().await;
    bench.receiver.answer_next([Answer::status(500)]);
    let webhooks = webhooks(vec![Hook { format: HookFormat::Json, ..bench.hook() }], None);
    let delivery = webhooks.deliveries(&notice()).remove(0);
    assert_eq!(webhooks.send(&delivery).await, Reply::Refused { status: 500, retry_after: None });
    // As after a restart: from the ledger.
    let text = serde_json::to_string(&delivery).expect("JSON");
    assert!(!text.contains("hunter2") && !text.contains("shop & web") && !text.contains("127.0.0.1"), "{text}");
    webhooks.send(&serde_json::from_str::<Delivery>(&text).expect("a delivery")).await;
    let received = bench.receiver.received();
    assert_eq!(received[0].request.body, received[1].request.body);
    assert_eq!(received[0].request.header("webhook-id"), received[1].request.header("webhook-id"));
}

// Faults: H3
#[tokio::test]
async fn a_redirect_to_the_metadata_service_is_an_answer_and_not_followed() {
    let bench = Bench::start().await;
    bench.receiver.answer_always(Answer::redirect(307, "http://169.254.169.254/latest/meta-data/"));
    assert_eq!(bench.send(bench.hook()).await, Reply::Refused { status: 307, retry_after: None });
    bench.only();
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_busy_is_understood() {
    let bench = Bench::start().await;
    bench.receiver.answer_next([
        Answer::status(410),
        Answer::status(429).header("retry-after", "120"),
        Answer::status(503)
            .header("date", "Thu, 20 Nov 2025 09:00:00 GMT")
            .header("retry-after", "Thu, 20 Nov 2025 09:01:30 GMT"),
        Answer::status(500).header("retry-after", "120"),
    ]);
    assert_eq!(bench.send(bench.hook()).await, Reply::Gone);
    let busy = |status, seconds: Option<u64>| Reply::Refused { status, retry_after: seconds.map(Duration::from_secs) };
    assert_eq!(bench.send(bench.hook()).await, busy(429, Some(120)));
    assert_eq!(bench.send(bench.hook()).await, busy(503, Some(90)));
    assert_eq!(bench.send(bench.hook()).await, busy(500, None));
}

// Faults: H2
#[tokio::test]
async fn an_answer_that_never_begins_ends_with_the_timeout() {
    let bench = Bench::start().await;
    bench.server.inject(Fault::once(When::After, Action::Hold));
    let reply = bench.send(Hook { timeout: Duration::from_millis(200), ..bench.hook() }).await;
    assert_eq!(reason(reply), "no answer within 200ms");
}

// Faults: H2
#[tokio::test]
async fn an_answer_that_never_ends_counts_by_its_status_and_is_cut() {
    let bench = Bench::start().await;
    let drip = |chunk: usize| AnswerBody::Slow {
        pause: Duration::from_millis(1),
        chunk: Bytes::from(vec![b'x'; chunk]),
        chunks: u64::MAX,
    };
    bench.receiver.answer_next([Answer::status(200).body(drip(1)), Answer::status(200).body(drip(16 * 1024))]);
    let slow = Hook { timeout: Duration::from_millis(300), ..bench.hook() };
    assert_eq!(bench.send(slow).await, Reply::Delivered { status: 200 });
    let before = Instant::now();
    let large = Hook { timeout: Duration::from_secs(60), ..bench.hook() };
    assert_eq!(bench.send(large).await, Reply::Delivered { status: 200 });
    assert!(before.elapsed() < Duration::from_secs(30), "64 KiB are enough");
}

// Faults: H5
#[tokio::test]
async fn a_connection_that_breaks_is_told_in_words_without_secrets() {
    let bench = Bench::start().await;
    bench.server.inject(Fault::once(When::After, Action::Cut));
    let words = reason(bench.send(bench.hook()).await);
    assert!(words.starts_with("the connection broke before there was an answer"), "{words}");
    assert!(!words.contains("hook") && !words.contains("kept"), "{words}");
    bench.only();
    let url = bench.hook();
    bench.server.stop().await;
    let words = reason(send(url, None).await);
    assert!(words.starts_with("no connection: ") && words.contains("refused"), "{words}");
}

#[tokio::test]
async fn metadata_and_link_local_literals_are_blocked_in_every_notation() {
    for host in ["169.254.169.254", "0xa9fea9fe", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00:ec2::254]"] {
        let reply = send(hook(&format!("http://{host}/latest")), None).await;
        let Reply::Blocked { reason } = reply else { panic!("{host}: {reply:?}") };
        assert!(reason.starts_with("not sent: "), "{reason}");
    }
}

// Faults: H4
#[tokio::test]
async fn a_name_that_resolves_to_a_link_local_address_is_blocked() {
    let reply = send(hook("http://innocent.example.com/"), Some("169.254.169.254")).await;
    let Reply::Blocked { reason } = reply else { panic!("{reply:?}") };
    assert_eq!(
        reason,
        "not sent: innocent.example.com is 169.254.169.254, a link-local address, where metadata services are"
    );
}

#[tokio::test]
async fn a_name_is_resolved_and_reaches_the_receiver_under_its_own_name() {
    let bench = Bench::start().await;
    let url = format!("http://ci.example.com:{}/", bench.server.address().port());
    assert_eq!(send(hook(&url), Some("127.0.0.1")).await, Reply::Delivered { status: 204 });
    assert!(bench.only().request.header("host").is_some_and(|host| host.starts_with("ci.example.com:")));
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_a_failure_with_a_reason() {
    let bench = Bench::start().await;
    let url = bench.server.url().replace("http://", "https://");
    let words = reason(bench.send(hook(&url)).await);
    assert!(words.starts_with("TLS failed: "), "{words}");
}

#[tokio::test]
async fn a_notice_goes_to_the_hooks_that_subscribe_to_it_and_to_no_other() {
    let json = |name: &str, workloads| Hook {
        name: name.to_owned(),
        format: HookFormat::Json,
        is_old_form: false,
        workloads,
        ..hook("http://127.0.0.1/")
    };
    let exact = WorkloadPattern::Exact { namespace: "shop".to_owned(), name: "web".to_owned() };
    let hooks = vec![
        hook("http://127.0.0.1/"),
        hook("http://127.0.0.1/"),
        Hook { events: BTreeSet::from([Kind::PurgeFailed]), ..json("failures", vec![WorkloadPattern::All]) },
        json("all", vec![WorkloadPattern::All]),
        json("exact", vec![exact]),
        json("other", vec![WorkloadPattern::Name("api".to_owned())]),
    ];
    let webhooks = webhooks(hooks, None);
    let names = |notice: &Notice| -> Vec<String> {
        webhooks.deliveries(notice).into_iter().map(|delivery| delivery.hook).collect()
    };
    assert_eq!(names(&notice()), ["web", "web#2", "all", "exact"]);
    let mentions = Mentions { late: true, ..Mentions::default() };
    let late = Notice { about: About::Workload(WorkloadId::deployment("shop", "web"), mentions), ..notice() };
    assert_eq!(names(&late), ["all", "exact"], "the old form is skipped for good");
    let hears =
        |namespace: &str, name: &str, kind| webhooks.hears(&WorkloadId::deployment(namespace, name).into(), kind);
    assert!(hears("shop", "web", Kind::PurgeCompleted) && hears("else", "where", Kind::PurgeFailed));
    assert!(!hears("shop", "web", Kind::PromotionStarted), "no hook has it in its events");
    let unknown = Delivery { hook: "removed".to_owned(), ..webhooks.deliveries(&notice()).remove(0) };
    assert_eq!(webhooks.send(&unknown).await, Reply::UnknownHook);
}

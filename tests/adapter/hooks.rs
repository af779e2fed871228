//! The endpoints for other programs over real sockets, against an API server. The machine that answers questions and makes requests is
//! played here: what it would write into the status, the test writes.

mod approvals;
mod older;
mod pokes;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix::{Actor, Context, Handler, MessageResult};
use allclear::actors::browse::{Browse, Listing};
use allclear::actors::message::Observe;
use allclear::actors::observation::Observation;
use allclear::adapters::clock::SystemClock;
use allclear::adapters::kubernetes::crd::repo::Installation;
use allclear::adapters::kubernetes::desk::Desk;
use allclear::adapters::kubernetes::objects::GROUP;
use allclear::adapters::kubernetes::secrets::KubernetesSecrets;
use allclear::http::hooks::{Hooks, Key, Trust};
use allclear::http::{Addresses, Front, Serving, serve};
use allclear::looking::About;
use allclear::telemetry::Metrics;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use purge::ports::Clock;
use reqwest::Method;
use sandbox::http::{Action, Fault, Reply, Request, Server, When};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::served;

/// The key of the older controller's tests.
const KEY: &str = "hmac-secret";

/// The key of those that poke.
const POKE_KEY: &str = "the-key-of-a-forge-0123456789";

/// How long an outcome is waited for here.
const SHOWN_WITHIN: Duration = Duration::from_secs(3);

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

struct Mute;

impl Actor for Mute {
    type Context = Context<Self>;
}

impl Handler<Observe> for Mute {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _: &mut Self::Context) -> Self::Result {
        MessageResult(Observation::default())
    }
}

impl Handler<Browse> for Mute {
    type Result = MessageResult<Browse>;

    fn handle(&mut self, _: Browse, _: &mut Self::Context) -> Self::Result {
        MessageResult(Listing::default())
    }
}

struct Bench {
    api: KubernetesStandIn,
    server: Server,
    serving: Serving,
    at: SocketAddr,
    metrics: Arc<Metrics>,
}

struct Answer {
    code: u16,
    body: String,
    headers: BTreeMap<String, String>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// As the older controller is without a Secret.
fn open() -> Trust {
    Trust { allow_unsigned: true, empty_approvals: true, ..Trust::default() }
}

/// As allclear is by default, with a key for pokes.
fn closed() -> Trust {
    Trust { keys: Key::of(POKE_KEY.as_bytes()).into_iter().collect(), ..Trust::default() }
}

impl Bench {
    async fn start(trust: Trust) -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        api.set_installed(GROUP, true);
        let server = api.start().await.unwrap();
        let clients = served::clients(&api, &server).await;
        let metrics: Arc<Metrics> = Arc::default();
        let hooks = Hooks {
            marks: Arc::new(Desk::new(&clients, &[GROUP.to_owned()], false)),
            repos: Arc::new(Desk::of_repos(&clients, Installation::default())),
            secrets: Arc::new(KubernetesSecrets::new(&clients, BTreeMap::new())),
            clock: Arc::new(SystemClock::default()),
            metrics: metrics.clone(),
            trust,
            shown_within: SHOWN_WITHIN,
        };
        let root = Mute.start();
        let front = Front {
            root: root.clone().recipient(),
            browse: root.recipient(),
            explained: None,
            clock: Arc::new(SystemClock::default()),
            metrics: metrics.clone(),
            about: About { member: "self".into(), group: "default".into(), dry_run: false },
            fresh: None,
            hooks: Some(hooks),
            draining: Arc::new(AtomicBool::new(false)),
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = serve(Addresses { probes: any, page: any, hooks: Some(any) }, front).await.unwrap();
        let at = serving.addresses().hooks.unwrap();
        Self { api, server, serving, at, metrics }
    }

    async fn stop(self) {
        self.serving.stop().await;
    }

    /// The whole answer to a request. A bench takes twenty: all come from one address.
    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.request(method, format!("http://{}{path}", self.at)).body(body.to_vec());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        let headers = answer.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        Answer { code: answer.status().as_u16(), headers, body: answer.text().await.unwrap() }
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send(Method::POST, path, headers, body).await
    }

    /// A Secret of the namespace of the Pipelines.
    fn secret(&self, name: &str, data: &Value) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": name}, "data": data});
        self.api.apply(secret).unwrap();
    }

    fn annotation(&self, name: &str) -> Option<String> {
        let object = self.api.get(Kind::Pipeline, "default", "app").unwrap();
        let value = object["metadata"].get("annotations")?.get(format!("allclear.dev/{name}"))?;
        value.as_str().map(str::to_owned)
    }

    /// Waits until this is the text of an annotation, or any text is.
    async fn marked(&self, name: &str, value: Option<&str>) {
        let came = tokio::time::timeout(PATIENCE, async {
            while self.annotation(name).is_none_or(|found| value.is_some_and(|value| found != value)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(came.await.is_ok(), "{name} was never {value:?}");
    }

    /// What the machine writes about prod.
    fn say(&self, prod: &Value) {
        let status = json!({"status": {"serial": 2, "observedGeneration": 1, "environments": {"prod": prod}}});
        self.api.patch(Kind::Pipeline, "default", "app", &status).unwrap();
    }

    fn refuse(&self, code: u16, matches: impl Fn(&Request) -> bool + Send + Sync + 'static) {
        let body = json!({"kind": "Status", "code": code, "message": "no"}).to_string();
        let answer = Action::Answer(Reply::full(code, "application/json", body));
        self.server.inject(Fault::once(When::Before, answer).matching(matches).times(u32::MAX));
    }

    /// Requests that changed something.
    fn writes(&self) -> usize {
        self.server.seen().iter().filter(|seen| seen.method != "GET").count()
    }
}

/// The older controller's `buildTestPipeline`, with a promotion.
fn pipeline(promotion: &Value) -> Value {
    let target = json!([{"namespace": "default"}]);
    let mut pipeline = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": {"namespace": "default", "name": "app"},
        "spec": {
            "appRef": {"apiVersion": "helm.toolkit.fluxcd.io/v2beta1", "kind": "HelmRelease", "name": "app"},
            "environments": [
                {"name": "dev", "targets": target}, {"name": "prod", "targets": target}, {"name": "no-targets", "targets": []},
            ],
        },
    });
    if !promotion.is_null() {
        pipeline["spec"]["promotion"] = promotion.clone();
    }
    pipeline
}

fn notification() -> Value {
    json!({"strategy": {"notification": {}}})
}

/// A promotion with a key.
fn keyed() -> Value {
    json!({"strategy": {"notification": {}, "secretRef": {"name": "app"}}})
}

fn key(text: &str) -> Value {
    json!({"hmac-key": BASE64.encode(text)})
}

/// The older controller's `createEvent`.
fn event() -> Value {
    json!({
        "involvedObject": {
            "apiVersion": "helm.toolkit.fluxcd.io/v2beta1", "kind": "HelmRelease", "name": "app", "namespace": "default",
        },
        "metadata": {"revision": "5.0.0"},
    })
}

fn mac(key: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the older controller's callers send, and Flux.
fn x_signature(key: &str, body: &[u8]) -> String {
    format!("sha256={}", hex(&mac(key, &[body])))
}

/// The headers of Standard Webhooks.
fn standard(key: &str, body: &[u8]) -> [(&'static str, String); 3] {
    let at = (SystemClock::default().wall_ms() / 1_000).to_string();
    let signature = mac(key, &[b"msg_1.", at.as_bytes(), b".", body]);
    let signature = format!("v1,{}", BASE64.encode(signature));
    [("webhook-id", "msg_1".to_owned()), ("webhook-timestamp", at), ("webhook-signature", signature)]
}

fn promotion(phase: &str, ticket: Option<&str>) -> Value {
    let mut promotion = json!({"seq": 1, "revision": "5.0.0", "phase": phase});
    if let Some(ticket) = ticket {
        promotion["approval"] = json!({"ticket": ticket, "at": "2026-11-22T22:10:00Z"});
    }
    promotion
}

fn waiting(ticket: &str, question: &str) -> Value {
    json!({"revision": "5.0.0", "ticket": ticket, "for": question, "since": "2026-11-22T22:10:00Z"})
}

/// A pull request as the machine writes it.
fn request() -> Value {
    json!({"seq": 1, "number": 7, "url": "https://git.example.com/shop/config/pulls/7"})
}

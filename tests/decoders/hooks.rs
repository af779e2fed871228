//! Requests of other programs: whoever can reach the port writes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::http::{Method, Uri, header};
use actix_web::{App, test};
use allclear::adapters::clock::SystemClock;
use allclear::adapters::kubernetes::crd;
use allclear::http::hooks::{Hooks, Key, Trust, endpoints};
use allclear::telemetry::Metrics;
use async_trait::async_trait;
use kernel::id::{PipelineId, RepoId};
use kernel::names::destination::Purpose;
use objects::pipeline::callers::{Called, Mark};
use objects::ports::Secrets;
use objects::ports::pipeline::Marks;
use objects::ports::repo::Pokes;
use purge::ports::PortError;

use crate::{Target, api, target};

pub const TARGETS: &[Target] = &[target("hook_request", request)];

/// What a sender without it cannot guess.
const KEY: &[u8] = b"Wd7PuQzs1 is a key that no corpus has";

/// A Pipeline that asks before prod, and one Repo. It counts what was done.
#[derive(Default)]
struct Cluster(AtomicUsize);

const PIPELINE: &str = r#"{"apiVersion":"allclear.dev/v1alpha1","kind":"Pipeline","metadata":{"namespace":"shop","name":"web",
    "uid":"u","generation":1,"resourceVersion":"7"},"spec":{"appRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
    "promotion":{"strategy":{"notification":{},"secretRef":{"name":"keys"}}},"environments":[
    {"name":"staging","targets":[{"namespace":"staging"}]},{"name":"prod","targets":[{"namespace":"prod"}]}]}}"#;

#[async_trait]
impl Marks for Cluster {
    async fn read(&self, id: &PipelineId) -> Result<Option<Called>, PortError> {
        let ours = PipelineId::new("shop", "web");
        Ok((*id == ours).then(|| crd::called(PIPELINE).unwrap()))
    }

    async fn mark(&self, _: &Called, _: &Mark) -> Result<bool, PortError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

#[async_trait]
impl Pokes for Cluster {
    async fn poke(&self, repo: &RepoId, _: i64) -> Result<bool, PortError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(*repo == RepoId::new("shop", "web"))
    }
}

#[async_trait]
impl Secrets for Cluster {
    async fn read(&self, _: &str, _: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        Ok(BTreeMap::from([("hmac-key".to_owned(), KEY.to_vec())]))
    }
}

/// A line `METHOD PATH`, lines of headers, an empty line, and the body.
fn request(bytes: &[u8]) -> bool {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = (crate::text(&bytes[..end]), bytes.get(end + 2..).unwrap_or_default());
    let mut lines = head.lines();
    let (method, path) = lines.next().unwrap_or_default().split_once(' ').unwrap_or_default();
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), path.parse::<Uri>()) else { return false };
    let headers: Vec<(header::HeaderName, header::HeaderValue)> = lines
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(name, value)| Some((name.parse().ok()?, value.trim().parse().ok()?)))
        .collect();
    let send = |trust: Trust| {
        let cluster = Arc::new(Cluster::default());
        let hooks = Hooks {
            marks: Arc::clone(&cluster) as Arc<dyn Marks>,
            repos: Arc::clone(&cluster) as Arc<dyn Pokes>,
            secrets: Arc::clone(&cluster) as Arc<dyn Secrets>,
            clock: Arc::new(SystemClock::default()),
            metrics: Arc::new(Metrics::default()),
            trust,
            shown_within: Duration::from_millis(1),
        };
        let status = api::run(async {
            let app = test::init_service(App::new().configure(endpoints(hooks))).await;
            let mut sent = test::TestRequest::with_uri(&uri.to_string()).method(method.clone());
            for header in &headers {
                sent = sent.append_header(header.clone());
            }
            let answer = test::call_service(&app, sent.set_payload(body.to_vec()).to_request()).await;
            answer.status()
        });
        (status, cluster.0.load(Ordering::Relaxed))
    };
    let closed = Trust { keys: Key::of(KEY).into_iter().collect(), ..Trust::default() };
    let (status, marks) = send(closed);
    assert!(status.is_client_error() || (method != Method::POST && status.is_success()), "{status}");
    assert_eq!(marks, 0, "without the key nothing is done");
    let (status, marks) = send(Trust { allow_unsigned: true, empty_approvals: true, ..Trust::default() });
    assert!(!status.is_server_error(), "{status}");
    assert!(marks == 0 || status.is_success() || status.as_u16() == 404, "{status} after {marks} marks");
    marks > 0
}

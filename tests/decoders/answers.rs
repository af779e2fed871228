//! What other systems answer: CloudFront, the edge's bodies, verdicts of others, another allclear, collectors of traces, and the header by which all ask for patience.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::cloudfront::{CloudFront, Options, StaticCredentials, Timeouts};
use allclear::adapters::collector::rejected;
use allclear::adapters::edge::FreshEdges;
use allclear::adapters::edge_look::decode::decoded;
use allclear::adapters::http::retry_after;
use allclear::adapters::kubernetes::secrets::KubernetesSecrets;
use allclear::adapters::kubernetes::{Cluster, Scope};
use allclear::adapters::ledger::memory::MemoryLedger;
use allclear::adapters::verdict::HttpVerdicts;
use async_trait::async_trait;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use forge::{Authorities, Http, HttpError};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use kernel::id::{InvalidationId, Origin, Reference, Revision, Subject, WorkloadId};
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::names::workload_name::WorkloadName;
use miniz_oxide::deflate::compress_to_vec;
use objects::gates::VerdictSource;
use objects::pipeline::spec::{Purged, PurgedBy, Until};
use objects::ports::pipeline::Edges;
use objects::ports::{Asking, Verdicts};
use proof::asked::{BODY_BYTES_MAX, Body};
use purge::bounds::policy::Policy;
use purge::ports::{Cdn, CdnError};

use crate::api::{self, Answer};
use crate::{Target, target};

pub const TARGETS: &[Target] = &[
    target("cloudfront_distributions", distributions),
    target("cloudfront_invalidations", invalidations),
    target("cloudfront_error", refused),
    target("coded_body", coded_body),
    target("verdict", verdict),
    target("fresh_edge", fresh_edge),
    target("retry_after", patience),
    target("collector_answer", collector),
];

/// Bytes of the words of another that are repeated, with ours around them.
const WORDS_BYTES_MAX: usize = 2_048;

/// Three digits of a status, and a body.
fn split(bytes: &[u8]) -> Option<(StatusCode, Bytes)> {
    let (status, body) = bytes.split_at(bytes.len().min(3));
    let status = StatusCode::from_bytes(status).ok().filter(|status| status.as_u16() < 600)?;
    Some((status, Bytes::copy_from_slice(body)))
}

#[derive(Debug)]
struct Connector(u16, Bytes);

impl HttpConnector for Connector {
    fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
        let status = self.0.try_into().expect("a status of HTTP");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(self.1.clone()))))
    }
}

async fn cloudfront(status: u16, body: Bytes) -> CloudFront {
    let http = http_client_fn(move |_, _| SharedHttpConnector::new(Connector(status, body.clone())));
    let key = StaticCredentials { access_key_id: "id".to_owned(), secret_access_key: "key".to_owned() };
    let options = Options {
        endpoint_url: Some("http://127.0.0.1:9".to_owned()),
        region: Some("us-east-1".to_owned()),
        credentials: Some(key),
        role: None,
        timeouts: Timeouts::default(),
    };
    CloudFront::over(http, options).await
}

fn of<T>(bytes: &[u8], ask: impl AsyncFn(CloudFront) -> T) -> T {
    let body = Bytes::copy_from_slice(bytes);
    api::run(async { ask(cloudfront(200, body).await).await })
}

fn distribution() -> DistributionId {
    DistributionId::parse("E1ALLCLEAR").unwrap()
}

fn spoken(error: &CdnError) -> bool {
    assert!(!error.message.is_empty() && error.message.len() <= WORDS_BYTES_MAX, "{} bytes", error.message.len());
    false
}

/// What is kept of a listing is no larger than the listing.
fn distributions(bytes: &[u8]) -> bool {
    let shared = [distribution()].into();
    match of(bytes, async |cdn| cdn.distribution_tenants(&shared).await) {
        Ok(found) => {
            let kept: usize = found.iter().flat_map(|one| &one.aliases).map(String::len).sum();
            assert!(kept <= bytes.len(), "{kept} bytes from {}", bytes.len());
            assert!(found.iter().all(|one| one.id.is_of_distribution_tenant()));
        }
        Err(error) => _ = spoken(&error),
    }
    let domain = Host::parse("www.example.com").unwrap();
    if let Err(error) = of(bytes, async |cdn| cdn.distribution_tenant(&domain).await) {
        spoken(&error);
    }
    match of(bytes, async |cdn| cdn.distributions().await) {
        Ok(found) => {
            let names = |one: &Distribution| {
                one.aliases.iter().chain(&one.origins).chain([&one.domain_name]).map(String::len).sum::<usize>()
            };
            let kept: usize = found.iter().map(|one| one.id.as_str().len() + names(one)).sum();
            assert!(kept <= bytes.len(), "{kept} bytes from {}", bytes.len());
            !found.is_empty()
        }
        Err(error) => spoken(&error),
    }
}

fn invalidations(bytes: &[u8]) -> bool {
    let id = InvalidationId("I1JLWSDAP8FU89".to_owned());
    let is_read = match of(bytes, async |cdn| cdn.status(&distribution(), &id).await) {
        Ok(_) => true,
        Err(error) => spoken(&error),
    };
    if let Err(error) = of(bytes, async |cdn| cdn.cache_tag_header(&distribution()).await) {
        spoken(&error);
    }
    match of(bytes, async |cdn| cdn.create(&distribution(), &Reference("ref".to_owned()), &Default::default()).await) {
        Ok(made) => {
            let id = made.id.0;
            assert!(id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        }
        Err(error) => _ = spoken(&error),
    }
    if let Err(error) = of(bytes, async |cdn| cdn.find(&distribution(), &Reference("ref".to_owned())).await) {
        spoken(&error);
    }
    is_read
}

/// The first line is the coding, and what follows is coded so. A body is within its bound, and by the other way to it the same.
fn coded_body(bytes: &[u8]) -> bool {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (Some(codings), Some(coded)) = (parts.next(), parts.next()) else { return false };
    let Body::Whole(body) = decoded(&String::from_utf8_lossy(codings), coded) else { return false };
    assert!(body.len() <= BODY_BYTES_MAX, "{} bytes", body.len());
    let length = u32::try_from(body.len()).unwrap();
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let again = [head.as_slice(), &compress_to_vec(&body, 1), &[0; 4], &length.to_le_bytes()].concat();
    assert_eq!(decoded("gzip", &again), Body::Whole(body));
    true
}

/// A refusal is never a success, and never says what could be a credential.
fn refused(bytes: &[u8]) -> bool {
    let Some((status, body)) = split(bytes).filter(|(status, _)| status.as_u16() >= 400) else { return false };
    let made = api::run(async {
        let cdn = cloudfront(status.as_u16(), body).await;
        cdn.create(&distribution(), &Reference("ref".to_owned()), &Default::default()).await
    });
    let error = made.expect_err("a refusal");
    spoken(&error);
    error.class != purge::ports::CdnErrorClass::Unexpected
}

/// One that answers everything so.
struct Other(StatusCode, Bytes);

#[async_trait]
impl Http for Other {
    async fn send(
        &self,
        _: Request<Bytes>,
        _: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        if self.1.len() > answer_max {
            return Err(HttpError::TooLong);
        }
        Ok(Response::builder().status(self.0).body(self.1.clone()).unwrap())
    }
}

fn secrets() -> Arc<KubernetesSecrets> {
    Arc::new(KubernetesSecrets::new(&api::clients(|_| Answer::missing()), BTreeMap::new()))
}

fn verdict(bytes: &[u8]) -> bool {
    let Some((status, body)) = split(bytes) else { return false };
    api::run(async {
        let other = Arc::new(Other(status, body));
        let verdicts = HttpVerdicts::new(other, secrets(), Arc::new(SystemClock::default()));
        let asking = Asking {
            source: VerdictSource {
                url: "https://gate.example.com/may".to_owned(),
                secret: None,
                timeout: Duration::from_secs(5),
            },
            subject: Subject::from(WorkloadId::deployment("shop", "web")),
            environment: None,
            revision: Revision("1.3".to_owned()),
            from: None,
            seq: 3,
        };
        let (one, other) = (verdicts.ask(&asking).await, verdicts.ask(&asking).await);
        assert_eq!(one, other);
        match one {
            Ok(opening) => {
                assert_eq!(status, StatusCode::OK);
                assert!(opening.words.len() <= WORDS_BYTES_MAX && !opening.words.chars().any(char::is_control));
                assert!(opening.changes_after.is_none_or(|after| after <= Duration::from_secs(24 * 60 * 60)));
                true
            }
            Err(unanswered) => {
                assert!(unanswered.why.len() <= WORDS_BYTES_MAX);
                false
            }
        }
    })
}

fn fresh_edge(bytes: &[u8]) -> bool {
    let Some((status, body)) = split(bytes) else { return false };
    api::run(async {
        let cluster = Cluster::new(&api::clients(|_| Answer::missing()), Scope::All, api::tempo());
        let http = Arc::new(Other(status, body));
        let edges = FreshEdges::new(
            Arc::new(MemoryLedger::new(Origin("o".to_owned()))),
            Arc::new(cluster),
            Policy::default(),
            http,
            secrets(),
        );
        let by =
            PurgedBy { server: "https://allclear.example.com".to_owned(), secret: None, namespace: "shop".to_owned() };
        let purged =
            Purged { workloads: vec![WorkloadName::parse("web").unwrap()], by: Some(by), until: Until::Purged };
        match edges.are_fresh(&purged, &BTreeSet::from(["shop".to_owned()])).await {
            Ok(Ok(())) => {
                assert_eq!(status, StatusCode::OK);
                true
            }
            Ok(Err(why)) => {
                assert!(
                    status == StatusCode::OK && why.0.len() <= WORDS_BYTES_MAX && !why.0.chars().any(char::is_control)
                );
                true
            }
            Err(error) => {
                assert!(error.to_string().len() <= WORDS_BYTES_MAX);
                false
            }
        }
    })
}

/// Seconds, or a date.
fn patience(bytes: &[u8]) -> bool {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return false };
    let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, value)]);
    let now_ms = 1_795_309_611_407;
    let (now, later) = (retry_after(&headers, now_ms), retry_after(&headers, now_ms + 1_000));
    // A second later it is a second less where it is a date, and the same where it is a time.
    match (now, later) {
        (Some(now), Some(later)) => assert!(later == now || later + Duration::from_secs(1) == now || later.is_zero()),
        (Some(now), None) => assert!(now <= Duration::from_secs(1), "{now:?}"),
        (None, later) => assert_eq!(later, None),
    }
    now.is_some()
}

/// How many spans a collector says it has rejected: said again as the specification has it, it is the same.
fn collector(bytes: &[u8]) -> bool {
    let Some((count, why)) = rejected(bytes) else { return false };
    assert!(count > 0 && why.len() <= bytes.len(), "{count} {why}");
    let partial = serde_json::json!({"rejectedSpans": count.to_string(), "errorMessage": why});
    let again = serde_json::json!({"partialSuccess": partial}).to_string();
    assert_eq!(rejected(again.as_bytes()), Some((count, why)));
    true
}

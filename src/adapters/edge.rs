//! Whether edges are purged, as [`Edges`]: read afresh from our own ledger and cluster, or asked of another allclear.
//!
//! ```text
//! GET SERVER/api/v1/fresh/NS/NAME        also NS/statefulset/NAME; Authorization: Bearer TOKEN
//! 200   {"open": true}   or   {"open": false, "reason": "its purge is under way"}
//! …?until=fresh: the same with "until": "fresh". A release that does not know it leaves that out, and answers something else.
//! ```
//!
//! Not for what that rests on; that is `purge::rollouts::edge`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION};
use ::http::{HeaderValue, Request, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use forge::{Authorities, Http};
use kernel::id::WorkloadId;
use kernel::names::destination::Purpose;
use kernel::names::workload_name::WorkloadName;
use kernel::text::clean;
use objects::pipeline::judge::Stale;
use objects::pipeline::spec::{Purged, PurgedBy, Until};
use objects::ports::Secrets;
use objects::ports::pipeline::Edges;
use purge::bounds::policy::Policy;
use purge::ports::{ClusterView, Ledger, PortError, Retry};
use purge::records::record::Record;
use purge::rollouts::edge::{self, AtEdge};
use purge::workloads::beside::another_version;
use purge::workloads::workload::Workload;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::http::{ANSWER_BYTES_MAX, header_value, retry_after};
use super::verdict::{host, unsaid};

/// Time between two looks: ten in a second, whoever asks. A look at our own is two reads.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Longest wait for the answer of another allclear.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The key of a Secret that holds the token for another allclear.
const TOKEN: &str = "token";

/// Bytes of another allclear's words that are repeated.
const REASON_BYTES_MAX: usize = 160;

/// What is attempted, for errors.
const ATTEMPTED: &str = "failed to ask another allclear whether its edge is purged";

/// All edges, ours and others'.
pub struct FreshEdges {
    ledger: Arc<dyn Ledger>,
    cluster: Arc<dyn ClusterView>,
    policy: Policy,
    /// The way to other allclears, where they may be asked.
    others: Option<Others>,
    next: Mutex<Option<Instant>>,
}

struct Others {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
}

/// What another allclear answers: a verdict.
#[derive(Deserialize)]
struct Answered {
    open: bool,
    reason: Option<String>,
    /// What it answered to, where that is more than purged.
    until: Option<String>,
}

impl FreshEdges {
    /// Ours, by this ledger and this cluster, and those that `http` can reach, which judges whom we may talk to.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        cluster: Arc<dyn ClusterView>,
        policy: Policy,
        http: Arc<dyn Http>,
        secrets: Arc<dyn Secrets>,
    ) -> Self {
        Self { others: Some(Others { http, secrets }), ..Self::ours(ledger, cluster, policy) }
    }

    pub fn ours(ledger: Arc<dyn Ledger>, cluster: Arc<dyn ClusterView>, policy: Policy) -> Self {
        Self { ledger, cluster, policy, others: None, next: Mutex::default() }
    }

    /// Waits until one more look is in time.
    async fn paced(&self) {
        let mut next = self.next.lock().await;
        if let Some(next) = *next {
            sleep_until(next).await;
        }
        *next = Some(Instant::now() + LOOK_EVERY);
    }

    /// One of our own.
    async fn look(&self, id: &WorkloadId, until: Until) -> Result<Result<(), Stale>, PortError> {
        let (record, workload) = tokio::try_join!(self.ledger.load(id), self.cluster.workload(id))?;
        judged(self.cluster.as_ref(), &self.policy, (record.as_ref(), workload.as_ref()), until).await
    }
}

/// How an edge stands, by what the ledger and the cluster say just now of a workload.
///
/// # Errors
/// The cluster cannot be read.
pub async fn judged(
    cluster: &dyn ClusterView,
    policy: &Policy,
    (record, workload): (Option<&Record>, Option<&Workload>),
    until: Until,
) -> Result<Result<(), Stale>, PortError> {
    let mut at_edge = edge::at_edge(record, workload, policy);
    if let (AtEdge::Purged, Some(workload)) = (&at_edge, workload) {
        let beside = cluster.beside(workload).await?;
        at_edge = at_edge.beside(another_version(&beside, workload, policy.version.same_digest_is_same));
    }
    if until == Until::Fresh {
        at_edge = at_edge.proved(record);
    }
    Ok(at_edge.stale().map_or(Ok(()), |why| Err(Stale(why))))
}

impl Others {
    /// One of another allclear's.
    async fn ask(
        &self,
        by: &PurgedBy,
        keys: Option<&(HeaderValue, Option<Authorities>)>,
        id: &WorkloadId,
        until: Until,
    ) -> Result<Result<(), Stale>, PortError> {
        let (server, name) = (by.server.trim_end_matches('/'), WorkloadName::of(id));
        let query = if until == Until::Fresh { format!("?until={}", until.word()) } else { String::new() };
        let address = format!("{server}/api/v1/fresh/{}/{name}{query}", id.namespace);
        let mut request = Request::get(address).body(Bytes::new());
        let request = request.as_mut().map_err(|_| PortError::lasting(ATTEMPTED, "its address is no URL"))?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().extend(keys.map(|(token, _)| (AUTHORIZATION, token.clone())));
        let host = host(request.uri());
        let authorities = keys.and_then(|(_, authorities)| authorities.as_ref());
        let exchange =
            timeout(ANSWER_MAX, self.http.send(std::mem::take(request), authorities, ANSWER_BYTES_MAX)).await;
        let answer = exchange.map_err(|_| PortError::passing(ATTEMPTED, format!("{host} did not answer in time")))?;
        let answer = answer.map_err(|error| PortError::passing(ATTEMPTED, unsaid(&host, &error)))?;
        let failed = |why: String| match retry_after(answer.headers(), 0) {
            Some(rest) => PortError { retry: Retry::After(rest), ..PortError::passing(ATTEMPTED, why) },
            None => PortError::passing(ATTEMPTED, why),
        };
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let why =
                    format!("{host} does not accept the token; see purged.secretRef, and http.fresh_token_file there");
                return Err(PortError::denied(ATTEMPTED, why));
            }
            StatusCode::NOT_FOUND => {
                let why = format!(
                    "{host} has no /api/v1/fresh; set http.fresh_token_file there, and name its address of probes"
                );
                return Err(failed(why));
            }
            status => return Err(failed(format!("{host} answered {status}"))),
        }
        let answered: Answered = serde_json::from_slice(answer.body())
            .map_err(|_| failed(format!("{host} answered no verdict: 200, and not {{\"open\": …}}")))?;
        if until == Until::Fresh && answered.until.as_deref() != Some(until.word()) {
            return Ok(Err(Stale(format!("{host} cannot say whether its edge is fresh: it is of an older release"))));
        }
        let reason =
            || answered.reason.map_or_else(|| "no reason given".to_owned(), |why| clean(&why, REASON_BYTES_MAX));
        Ok(if answered.open { Ok(()) } else { Err(Stale(format!("{host} says: {}", reason()))) })
    }

    /// The token, and who may vouch for the server beside the system's authorities.
    async fn keys(&self, by: &PurgedBy) -> Result<Option<(HeaderValue, Option<Authorities>)>, PortError> {
        let Some(name) = &by.secret else { return Ok(None) };
        let secret = self.secrets.read(&by.namespace, name, Purpose::sent_to(&by.server)).await?;
        let attempted = || format!("failed to read the token in Secret {name} in {}", by.namespace);
        let token = secret.get(TOKEN).and_then(|token| str::from_utf8(token).ok()).map(str::trim).unwrap_or_default();
        if token.is_empty() {
            return Err(PortError::lasting(attempted(), format!("it has no key {TOKEN}")));
        }
        let value = header_value(&format!("Bearer {token}"));
        let value = value.map(|value| Some((value, Authorities::of(&secret))));
        value.map_err(|_| PortError::lasting(attempted(), "it has characters that none can have"))
    }
}

#[async_trait]
impl Edges for FreshEdges {
    async fn are_fresh(&self, purged: &Purged, namespaces: &BTreeSet<String>) -> Result<Result<(), Stale>, PortError> {
        let by = match (&purged.by, &self.others) {
            (None, _) => None,
            (Some(by), Some(others)) => Some((by, others, others.keys(by).await?)),
            (Some(_), None) => return Err(PortError::lasting(ATTEMPTED, "only our own edges are known here")),
        };
        for namespace in namespaces {
            for name in &purged.workloads {
                let id = name.within(namespace);
                self.paced().await;
                let at_edge = match &by {
                    Some((by, others, keys)) => others.ask(by, keys.as_ref(), &id, purged.until).await?,
                    None => self.look(&id, purged.until).await?,
                };
                if let Err(why) = at_edge {
                    return Ok(Err(Stale(format!("the edge of {}: {why}", id.display_name()))));
                }
            }
        }
        Ok(Ok(()))
    }
}

//! Verdicts of other systems as [`Verdicts`]: one question over HTTPS, signed as webhooks are, and a strict answer.
//!
//! ```text
//! POST URL   {"pipeline": {"namespace": "shop", "name": "web"}, "environment": "prod", "revision": "1.2.4", "from": "1.2.3", "seq": 7}
//!            {"repo": {"namespace": "platform", "name": "infra"}, "revision": "3f0c…", "from": "9a1b…", "seq": 7}
//! 200        {"open": true}   or   {"open": false, "reason": "error budget is used up", "retryAfter": 120}
//! ```
//!
//! `from` is left out where it is not known, and `retryAfter` is in seconds. Whatever is answered otherwise is no answer: a login
//! page is 200, too.
//!
//! Not for what follows from a verdict, nor for how often one is asked for; that is `objects::pipeline::gates`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderValue, Request, StatusCode, Uri};
use async_trait::async_trait;
use bytes::Bytes;
use forge::{Authorities, Http, HttpError};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::http::{ANSWER_BYTES_MAX, retry_after};
use super::webhook::sign::sign;
use crate::config::{Secret, webhook_key};
use kernel::id::{Environment, Kind, Revision, Subject, notice_id};
use kernel::names::destination::Purpose;
use kernel::text::clean;
use objects::asked::Opening;
use objects::ports::{Asking, Secrets, Unanswered, Verdicts};
use purge::ports::Clock;

/// The key of a Secret that holds the signing key.
const KEY: &str = "hmac-key";

/// Questions under way at a time: each has one connection, for at most a minute. So many that a system that is silent keeps the
/// questions of 500 Pipelines to others waiting for a minute or two.
const ASKED_MAX: usize = 64;

/// Those of one namespace: a system that is silent keeps its own namespace waiting first.
const OF_ONE_MAX: usize = 16;

/// Longest pause that an answer can ask for: a day; a person's poke does not end it.
const REST_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of the other system's words that are repeated.
const REASON_BYTES_MAX: usize = 160;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// All other systems that are asked.
pub struct HttpVerdicts {
    http: Arc<dyn Http>,
    secrets: Arc<dyn Secrets>,
    clock: Arc<dyn Clock>,
    asked: Semaphore,
    /// By namespace, as long as one of it is asked or waits.
    of_one: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(flatten)]
    subject: About<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a Environment>,
    revision: &'a Revision,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a Revision>,
    seq: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum About<'a> {
    Deployment(Named<'a>),
    StatefulSet(Named<'a>),
    DaemonSet(Named<'a>),
    /// Of a kind that the operator declares.
    Workload {
        kind: &'a str,
        #[serde(flatten)]
        named: Named<'a>,
    },
    Pipeline(Named<'a>),
    Repo(Named<'a>),
}

#[derive(Serialize)]
struct Named<'a> {
    namespace: &'a str,
    name: &'a str,
}

/// What is answered. Members that are not known are left to later versions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    open: bool,
    reason: Option<String>,
    retry_after: Option<u64>,
}

impl HttpVerdicts {
    /// Those that can be reached by `http`, which judges whom we may talk to.
    pub fn new(http: Arc<dyn Http>, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> Self {
        Self { http, secrets, clock, asked: Semaphore::new(ASKED_MAX), of_one: Mutex::default() }
    }

    /// The places of a namespace.
    fn places_of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut all = self.of_one.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = all.get(namespace).and_then(Weak::upgrade) {
            return places;
        }
        let places = Arc::new(Semaphore::new(OF_ONE_MAX));
        all.retain(|_, places| places.strong_count() > 0);
        all.insert(namespace.to_owned(), Arc::downgrade(&places));
        places
    }

    /// The question, signed if a Secret is named.
    async fn request(&self, asking: &Asking) -> Result<(Request<Bytes>, Option<Authorities>), Unanswered> {
        let Asking { source, subject, environment, revision, from, seq } = asking;
        let (namespace, name) = (subject.namespace(), subject.name());
        let named = Named { namespace, name };
        let about = match subject {
            Subject::Workload(id) => match id.kind {
                // A Rollout goes by the name of a Deployment.
                Kind::Deployment | Kind::Rollout => About::Deployment(named),
                Kind::StatefulSet => About::StatefulSet(named),
                Kind::DaemonSet => About::DaemonSet(named),
                Kind::Custom(kind) => About::Workload { kind: kind.word(), named },
            },
            Subject::Pipeline(_) => About::Pipeline(named),
            Subject::Repo(_) => About::Repo(named),
        };
        let environment = environment.as_ref();
        let asked = Asked { subject: about, environment, revision, from: from.as_ref(), seq: *seq };
        let body = Bytes::from(serde_json::to_vec(&asked).map_err(|_| at_once("the question cannot be written"))?);
        let (keys, authorities) = match &source.secret {
            Some(secret) => {
                let (key, authorities) = self.key(namespace, secret, &source.url).await?;
                (vec![key], authorities)
            }
            None => (Vec::new(), None),
        };
        let mut request =
            Request::post(source.url.as_str()).body(body.clone()).map_err(|_| at_once("its address is no URL"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, JSON);
        // The same question again is no other one.
        let within = environment.map(|environment| format!("/{environment}")).unwrap_or_default();
        let id = notice_id(&format!("{subject}{within}/{seq}"), "verdict").0;
        let timestamp_s = self.clock.wall_ms().div_euclid(1_000);
        sign(headers, &keys, &id, timestamp_s, &body).map_err(at_once)?;
        Ok((request, authorities))
    }

    /// What signs the question, and who may vouch for the server beside the system's authorities.
    async fn key(
        &self,
        namespace: &str,
        name: &str,
        url: &str,
    ) -> Result<(Secret<Vec<u8>>, Option<Authorities>), Unanswered> {
        let mut secret = self.secrets.read(namespace, name, Purpose::sent_to(url)).await.map_err(at_once)?;
        let authorities = Authorities::of(&secret);
        let key = secret.remove(KEY).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| at_once(format!("Secret {name} in {namespace} has no key {KEY}")))?;
        let key = match str::from_utf8(&key) {
            Ok(text) if text.starts_with("whsec_") => webhook_key(text.trim_end())
                .map_err(|refused| at_once(format!("{KEY} of Secret {name} in {namespace} {}", refused.message)))?,
            Ok(_) | Err(_) => Secret::new(key),
        };
        Ok((key, authorities))
    }
}

/// It could not be had this time.
fn at_once(why: impl Display) -> Unanswered {
    Unanswered { why: why.to_string(), rest: Duration::ZERO }
}

#[async_trait]
impl Verdicts for HttpVerdicts {
    async fn ask(&self, asking: &Asking) -> Result<Opening, Unanswered> {
        // Closed never.
        let places = self.places_of(asking.subject.namespace());
        let _of_one = places.acquire().await;
        let _asked = self.asked.acquire().await;
        let (request, authorities) = self.request(asking).await?;
        let host = host(request.uri());
        let exchange = self.http.send(request, authorities.as_ref(), ANSWER_BYTES_MAX);
        let answer = match tokio::time::timeout(asking.source.timeout, exchange).await {
            Ok(answer) => answer.map_err(|error| at_once(unsaid(&host, &error)))?,
            Err(_) => return Err(at_once(format!("{host} did not answer within {:?}", asking.source.timeout))),
        };
        let rest = retry_after(answer.headers(), self.clock.wall_ms()).unwrap_or_default().min(REST_MAX);
        if answer.status() != StatusCode::OK {
            return Err(Unanswered { why: format!("{host} answered {}, which is no verdict", answer.status()), rest });
        }
        let unread = || Unanswered { why: format!("{host} answered no verdict: 200, and not {{\"open\": …}}"), rest };
        let answered = serde_json::from_slice(answer.body()).map_err(|_| unread())?;
        Ok(opening(answered, &host, rest))
    }
}

/// Reads an answer. `rest`: the pause that its headers ask for.
fn opening(Answered { open, reason, retry_after }: Answered, host: &str, rest: Duration) -> Opening {
    let state = if open { "open" } else { "closed" };
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let words = match reason {
        Some(reason) => format!("{host} says {state}: {}", clean(reason.trim(), REASON_BYTES_MAX)),
        None => format!("{host} says {state}"),
    };
    let rest = retry_after.map_or(rest, |seconds| Duration::from_secs(seconds).min(REST_MAX));
    Opening { open, changes_after: (!rest.is_zero()).then_some(rest), words }
}

/// For words: paths and queries may be secret.
pub(super) fn host(uri: &Uri) -> String {
    uri.host().unwrap_or_default().to_owned()
}

/// Why there is no answer.
pub(super) fn unsaid(host: &str, error: &HttpError) -> String {
    match error {
        HttpError::Refused(words)
        | HttpError::Unreachable(words)
        | HttpError::Failed(words)
        | HttpError::Untrusted(words) => format!("{host}: {words}"),
        HttpError::TooLong => format!("{host} answered more than {ANSWER_BYTES_MAX} bytes"),
    }
}

//! Whether the edge is purged for what a workload runs, for those who wait for that elsewhere: `GET /api/v1/fresh/NS/NAME` of a
//! Deployment, `NS/statefulset/NAME` of another kind.
//!
//! With `?until=fresh` it is asked for more: that a look has shown what new pods answer. The answer says then that it is about that.
//!
//! They are other allclears (`purged.server`), and tools that ask before they go on. So it is answered where the probes are, to who
//! has its token, and in the form of a verdict: `{"open": true}`, or `{"open": false, "reason": "…", "retryAfter": 2}`.
//!
//! Not for what that rests on; that is `purge::rollouts::edge`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::names::workload;
use super::reply;
use kernel::names::workload_name::WorkloadName;
use objects::pipeline::spec::{Purged, Until};
use objects::ports::pipeline::Edges;

/// What its paths begin with.
pub(super) const PATH: &str = "/api/v1/fresh/";

/// How long an answer may take: a hundred may wait, at ten in a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// When to ask again while an edge is not purged, in seconds.
const AGAIN_S: u64 = 2;

/// The token of the endpoint, and the source of its answers.
#[derive(Clone)]
pub struct Fresh {
    /// The token's digest: comparing digests takes as long for every wrong token.
    token: [u8; 32],
    edges: Arc<dyn Edges>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// What was asked for, where that is more than purged: who asks knows by it that it was understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<&'static str>,
}

impl Fresh {
    /// Answers those who send this token from these edges.
    pub fn new(token: &str, edges: Arc<dyn Edges>) -> Self {
        Self { token: Sha256::digest(token).into(), edges }
    }

    /// Answers a request for what follows [`PATH`].
    pub(super) async fn answer(&self, request: &HttpRequest, asked: &str) -> HttpResponse {
        if !self.is_known(request) {
            let words = "this needs the token of http.fresh_token_file: Authorization: Bearer TOKEN\n";
            let mut refusal = reply::text(StatusCode::UNAUTHORIZED, words.to_owned());
            refusal.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            return refusal;
        }
        let Some(id) = workload(asked) else {
            let words = format!("ask for {PATH}NAMESPACE/NAME of a Deployment, or {PATH}NAMESPACE/statefulset/NAME\n");
            return reply::text(StatusCode::NOT_FOUND, words);
        };
        let Some(until) = until(request.query_string()) else {
            return reply::text(
                StatusCode::BAD_REQUEST,
                "the query is nothing, until=purged or until=fresh\n".to_owned(),
            );
        };
        let said = (until == Until::Fresh).then(|| until.word());
        let purged = Purged { workloads: vec![WorkloadName::of(&id)], by: None, until };
        let namespaces = BTreeSet::from([id.namespace]);
        match reply::within(ANSWER_WITHIN, self.edges.are_fresh(&purged, &namespaces)).await {
            Some(Ok(Ok(()))) => reply::json(&Verdict { open: true, reason: None, retry_after: None, until: said }),
            Some(Ok(Err(why))) => {
                reply::json(&Verdict { open: false, reason: Some(why.0), retry_after: Some(AGAIN_S), until: said })
            }
            Some(Err(error)) => busy(error.to_string()),
            None => busy("others are asking, too".to_owned()),
        }
    }

    fn is_known(&self, request: &HttpRequest) -> bool {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|value| value.strip_prefix("Bearer "));
        token.is_some_and(|token| <[u8; 32]>::from(Sha256::digest(token.trim())) == self.token)
    }
}

/// What is asked for.
fn until(query: &str) -> Option<Until> {
    if query.is_empty() { Some(Until::default()) } else { Until::named(query.strip_prefix("until=")?) }
}

/// It could not be found out. What is open stays closed meanwhile.
fn busy(why: String) -> HttpResponse {
    let mut answer = reply::text(StatusCode::SERVICE_UNAVAILABLE, why + "\n");
    answer.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from(AGAIN_S));
    answer
}

//! Whether the edge is purged for what a workload runs, for those who wait for that elsewhere: `GET /api/v1/fresh/NS/NAME` of a
//! Deployment, `NS/statefulset/NAME` of another kind.
//!
//! With `?until=fresh` it is asked for more: that a look has shown what new pods answer. The answer says then that it is about that.
//!
//! They are other allclears (`purged.server`), and tools that ask before they go on. So it is answered where the probes are, to who
//! has its token, and in the form of a verdict: `{"open": true}`, or `{"open": false, "reason": "…", "retryAfter": 2}`.
//!
//! A POST asks the same, for tools that go by the status and can send no header, as Flagger's webhooks: 409 is a closed gate, and the
//! token may be the password of Basic authentication. Its body is not read, and nothing is changed by it.
//!
//! Not for what that rests on; that is `purge::rollouts::edge`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::names::workload;
use super::reply;
use kernel::names::workload_name::WorkloadName;
use objects::pipeline::judge::Stale;
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

/// Whether what waits for an edge may go on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    pub open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// What was asked for, where that is more than purged: who asks knows by it that it was understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<&'static str>,
}

impl Verdict {
    pub fn of(fresh: Result<(), Stale>, until: Until) -> Self {
        let said = (until == Until::Fresh).then(|| until.word());
        match fresh {
            Ok(()) => Self { open: true, reason: None, retry_after: None, until: said },
            Err(why) => Self { open: false, reason: Some(why.0), retry_after: Some(AGAIN_S), until: said },
        }
    }
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
        let purged = Purged { workloads: vec![WorkloadName::of(&id)], by: None, until };
        let namespaces = BTreeSet::from([id.namespace]);
        let is_gate = request.method() == Method::POST;
        match reply::within(ANSWER_WITHIN, self.edges.are_fresh(&purged, &namespaces)).await {
            Some(Ok(Err(why))) if is_gate => reply::text(StatusCode::CONFLICT, why.0 + "\n"),
            Some(Ok(fresh)) => reply::json(&Verdict::of(fresh, until)),
            Some(Err(error)) => busy(error.to_string()),
            None => busy("others are asking, too".to_owned()),
        }
    }

    fn is_known(&self, request: &HttpRequest) -> bool {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|value| match value.split_once(' ')? {
            ("Bearer", token) => Some(token.trim().as_bytes().to_vec()),
            ("Basic", pair) if request.method() == Method::POST => password(pair.trim()),
            _ => None,
        });
        token.is_some_and(|token| <[u8; 32]>::from(Sha256::digest(token)) == self.token)
    }
}

/// That of `user:password` in base64. <https://www.rfc-editor.org/rfc/rfc7617#section-2>
fn password(pair: &str) -> Option<Vec<u8>> {
    let pair = STANDARD.decode(pair).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    pair.get(colon + 1..).map(<[u8]>::to_vec)
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

#[cfg(test)]
mod tests {
    use super::super::Front;
    use super::super::tests::{ThreeEdges, ask_as, showing, start, synced};
    use super::*;

    /// As Flagger asks: a POST, with the token as the password in its address.
    #[actix::test]
    async fn a_gate_is_answered_by_its_status() {
        let path = |name: &str| format!("/api/v1/fresh/{name}");
        let off = start(showing(synced())).await;
        let token = "authorization: Basic eDpodW50ZXIyLWh1bnRlcjI=\r\n";
        let closed = ask_as(off.addresses().probes, "POST", &path("shop/web"), token).await;
        assert!(closed.starts_with("HTTP/1.1 405"), "it is off: {closed}");
        let fresh = Some(Fresh::new("hunter2-hunter2", Arc::new(ThreeEdges)));
        let serving = start(Front { fresh, ..showing(synced()) }).await;
        let probes = serving.addresses().probes;
        for (name, status, words) in [
            ("shop/web", "200", r#""open": true"#),
            ("shop/statefulset/late", "409", "its purge is under way"),
            ("shop/lost", "503", "no answer"),
            ("shop/..", "404", "ask for"),
        ] {
            let answer = ask_as(probes, "POST", &path(name), token).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(words), "{name}: {answer}");
        }
        let bearer = "authorization: Bearer hunter2-hunter2\r\n";
        assert!(ask_as(probes, "POST", &path("shop/web"), bearer).await.starts_with("HTTP/1.1 200"));
        // The user, no pair, and another password; and what is in a browser's address bar is no token.
        for wrong in ["aHVudGVyMi1odW50ZXIyOg==", "aHVudGVyMi1odW50ZXIy", "eDpodW50ZXIy", "?"] {
            let line = format!("authorization: Basic {wrong}\r\n");
            assert!(ask_as(probes, "POST", &path("shop/web"), &line).await.starts_with("HTTP/1.1 401"), "{wrong}");
        }
        assert!(ask_as(probes, "GET", &path("shop/web"), token).await.starts_with("HTTP/1.1 401"));
        for method in ["PUT", "DELETE", "PATCH"] {
            assert!(ask_as(probes, method, &path("shop/web"), bearer).await.starts_with("HTTP/1.1 405"), "{method}");
        }
    }
}

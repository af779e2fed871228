//! The answers, each with the headers that keep a browser from doing anything but showing it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::{Method, StatusCode, header};
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpResponse, HttpResponseBuilder};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::Stream;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::doors::Door;
use super::page::{SCRIPT, STYLE};
use kernel::text::{visible, visible_json, visible_lines};

/// The page loads nothing: its one style sheet and its one script are inside it and named here by their hashes, its icon is a `data:`
/// address. The script connects to where it came from, for events, and the form of the search leads there.
static CONTENT_SECURITY_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
});

/// What was asked for, unless that takes longer than this.
pub async fn within<T>(time: Duration, asked: impl Future<Output = T>) -> Option<T> {
    actix_rt::time::timeout(time, asked).await.ok()
}

/// An answer that ends its connection where the request's body was not read to its end. Without that actix reads on and throws away,
/// for as long as the client sends (actix-http 3.20, `should_close_for_unread_payload`: it looks whether the body is
/// still held).
pub fn ending(answer: HttpResponse, payload: Payload) -> HttpResponse {
    answer.map_body(|_, body| BoxBody::new(Holding { body, _payload: Box::new(payload) }))
}

struct Holding {
    body: BoxBody,
    _payload: Box<Payload>,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

pub fn text(status: StatusCode, text: String) -> HttpResponse {
    guarded(status).content_type("text/plain; charset=utf-8").body(visible_lines(&text).into_owned())
}

/// The status page. maud escapes what others wrote; marks that turn letters around, and the like, are shown here.
/// Only the style sheet and the script have lines.
pub fn page(status: StatusCode, html: &str) -> HttpResponse {
    let unscripted = |part: &str| part.split(SCRIPT).map(visible).collect::<Vec<_>>().join(SCRIPT);
    let body = html.split(STYLE).map(unscripted).collect::<Vec<_>>().join(STYLE);
    guarded(status).content_type("text/html; charset=utf-8").body(body)
}

pub fn events(events: impl Stream<Item = Result<Bytes, Infallible>> + 'static) -> HttpResponse {
    guarded(StatusCode::OK).content_type("text/event-stream").streaming(events)
}

/// There is no place for another stream of events.
pub fn no_stream(streams_max: usize) -> HttpResponse {
    let words = format!("{streams_max} pages are being kept fresh already; this one can be reloaded\n");
    text(StatusCode::SERVICE_UNAVAILABLE, words)
}

/// A value as JSON.
pub fn json(value: &impl Serialize) -> HttpResponse {
    match serde_json::to_string_pretty(value) {
        Ok(body) => {
            guarded(StatusCode::OK).content_type("application/json").body(visible_json(&body).into_owned() + "\n")
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("failed to write the state as JSON: {error}\n")),
    }
}

/// The metrics, in the form that `Accept` prefers.
pub fn metrics(content_type: &'static str, body: String) -> HttpResponse {
    guarded(StatusCode::OK).content_type(content_type).insert_header((header::VARY, "accept")).body(body)
}

/// There is nothing at this path.
pub fn not_found(path: &str, door: Door) -> HttpResponse {
    let here = match door {
        Door::Page => "there are /, /workloads/NAMESPACE/NAME, /livez, /readyz, /metrics and /api/v1/state",
        Door::Probes => {
            "here are /livez, /readyz and /metrics; the status page and /api/v1/state are at http.page, port 8081 unless \
             configured otherwise, which kubectl port-forward reaches"
        }
        Door::Hooks => "requests of other programs are taken here",
    };
    text(StatusCode::NOT_FOUND, format!("there is nothing at {path:?}; {here}\n"))
}

/// Only looking is allowed.
pub fn method_not_allowed(method: &Method) -> HttpResponse {
    let words = format!("{method} is not allowed: nothing can be changed here, only GET and HEAD\n");
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, words);
    answer.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
    answer
}

fn guarded(status: StatusCode) -> HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    answer
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY.as_str()))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"));
    answer
}

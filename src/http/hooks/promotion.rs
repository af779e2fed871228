//! `POST /promotion/NAMESPACE/NAME/ENVIRONMENT`: an app has become ready in that environment, says an event of Flux. It is not believed:
//! it makes us look, and the event decides only how it is refused, in the older controller's order and words.

use actix_web::http::StatusCode;

use super::refusals::Told;
use super::signature::older;
use super::{Next, Porter, Sent, body};
use kernel::id::PipelineId;
use objects::pipeline::callers::{Called, Mark, NO_REVISION, NO_STRATEGY, Shown};

impl Porter {
    pub(super) async fn promote(&self, sent: &Sent<'_>, id: &PipelineId, source: &str) -> Result<Told, Told> {
        let secret = |called: &Called| called.promotion_secret(source).map(str::to_owned);
        let (called, _) = self.proven(id, secret, |keys| older(sent.headers, &sent.body, keys)).await?;
        let event = body::event(&sent.body).ok_or_else(|| {
            let remedy = "send an event of Flux: the Provider's type is generic-hmac";
            Told::refused(StatusCode::BAD_REQUEST, "", "its body is no event", remedy)
        })?;
        let Some(revision) = event.revision else {
            return Err(unprocessable(NO_REVISION, "send events of the app, which have it, and no others"));
        };
        let next = called.next(source, &event.claim).map_err(|why| {
            unprocessable(&why.to_string(), "compare the address and the event's object with the Pipeline")
        })?;
        let into = next.name.0.as_str();
        usable(&called, into)?;
        self.mark(&called, &Mark::Look(self.hooks.clock.wall_ms())).await?;
        tracing::debug!(pipeline = %id, source, into, "a request to promote made us look");
        Ok(self.wait(id, |called| shown(called, into, &revision).map_or(Next::Wait, Next::Told)).await)
    }
}

/// What has come of it, as the older controller says it.
fn shown(called: &Called, into: &str, revision: &str) -> Option<Told> {
    if called.is_asked(into, revision) {
        return Some(Told::done(StatusCode::NO_CONTENT, ""));
    }
    outcome(called, into, revision)
}

/// What has come of a promotion.
pub(super) fn outcome(called: &Called, into: &str, revision: &str) -> Option<Told> {
    match called.shown(into, revision) {
        Shown::Nothing => None,
        Shown::Requested(url) => Some(Told::at(StatusCode::CREATED, url)),
        Shown::Done => Some(Told::done(StatusCode::NO_CONTENT, "")),
    }
}

/// A Pipeline that says how a revision gets into an environment, and whose spec can be used.
pub(super) fn usable(called: &Called, into: &str) -> Result<(), Told> {
    let refused = |why: String, remedy| Err(Told::refused(StatusCode::INTERNAL_SERVER_ERROR, NO_STRATEGY, why, remedy));
    if called.how(into).is_none() {
        return refused(
            format!("its spec does not say how a revision gets into {into}"),
            "add a promotion with a strategy",
        );
    }
    match &called.object.spec {
        Ok(_) => Ok(()),
        Err(why) => refused(format!("its spec cannot be used: {why}"), "correct the spec"),
    }
}

/// An unprocessable request is answered with its HTML characters escaped, as the older controller does
/// (<https://pkg.go.dev/html/template#HTMLEscape>).
fn unprocessable(why: &str, remedy: &str) -> Told {
    let mut words = String::new();
    for character in why.chars() {
        match character {
            '&' => words.push_str("&amp;"),
            '<' => words.push_str("&lt;"),
            '>' => words.push_str("&gt;"),
            '\'' => words.push_str("&#39;"),
            '"' => words.push_str("&#34;"),
            other => words.push(other),
        }
    }
    // That one text it writes as it is.
    let body = if why == NO_REVISION { why } else { &words };
    Told::refused(StatusCode::UNPROCESSABLE_ENTITY, body, why, remedy)
}

//! `POST /approval/NAMESPACE/NAME/ENVIRONMENT/REVISION`: a person's yes, by a program that has the key. It names the ticket of the
//! question, `{"ticket": …, "by": …}`, signed with it; so a captured request answers nothing but the question that it was made for.
//!
//! The older controller's yes names nothing, and its signature, of nothing, is the same for ever. Where `hooks.empty_approvals` takes it
//! all the same, it answers the question that is open about that revision.

use actix_web::http::StatusCode;

use super::promotion::{outcome, usable};
use super::refusals::Told;
use super::signature::{is_older, older, standard};
use super::{Next, Porter, Proof, Sent, body, unknown};
use kernel::id::PipelineId;
use kernel::text::clean;
use objects::pipeline::callers::{Called, Mark, NOT_WAITING, Yes};

/// Bytes of the name of who says yes. With what is said of the key it stays below what the status keeps.
const BY_BYTES_MAX: usize = 80;

impl Porter {
    pub(super) async fn approve(
        &self,
        sent: &Sent<'_>,
        id: &PipelineId,
        environment: &str,
        revision: &str,
    ) -> Result<Told, Told> {
        let is_empty = sent.body.is_empty();
        if is_empty && !self.hooks.trust.empty_approvals {
            let remedy =
                "send {\"ticket\": …, \"by\": …}, signed; hooks.empty_approvals takes the older controller's as well";
            return Err(unknown("it names no ticket", remedy));
        }
        let secret = |called: &Called| called.approval_secret(environment).map(str::to_owned);
        let judged = |keys: &[_]| match is_empty && is_older(sent.headers) {
            true => older(sent.headers, b"", keys),
            false => standard(sent.headers, &sent.body, keys, self.wall_s()),
        };
        let (called, proof) = self.proven(id, secret, judged).await?;
        let answer = body::answer(&sent.body);
        if answer.is_none() && !is_empty {
            return Err(not_waiting("its body is no {\"ticket\": …, \"by\": …}", NOT_WAITING));
        }
        let ticket = answer.as_ref().map(|answer| answer.ticket.as_str());
        let yes = called.approve(environment, revision, ticket).map_err(|why| {
            not_waiting(
                "no question with this ticket is open about this revision in this environment",
                &why.to_string(),
            )
        })?;
        usable(&called, environment)?;
        let Yes::To(ticket) = yes else {
            let mut again = outcome(&called, environment, revision).unwrap_or_else(|| Told::done(StatusCode::OK, ""));
            again.status = StatusCode::OK;
            return Ok(again);
        };
        let by = named(answer.and_then(|answer| answer.by), &proof);
        tracing::info!(pipeline = %id, environment, revision, ticket, by, "a request said yes");
        let mark = Mark::Yes { ticket: ticket.clone(), by };
        self.mark(&called, &mark).await?;
        let next = |called: &Called| next(called, environment, revision, &ticket, &mark);
        Ok(self.wait(id, next).await)
    }
}

/// The outcome of an approval, once its question is closed. An object has room for one answer: if another environment's
/// answer overwrote it before it was read (no leader), it is written again.
fn next(called: &Called, environment: &str, revision: &str, ticket: &str, mark: &Mark) -> Next {
    match called.is_open(environment, ticket) {
        true if called.object.answers.approve(ticket) => Next::Wait,
        true => Next::Mark(mark.clone()),
        false => outcome(called, environment, revision).map_or(Next::Wait, Next::Told),
    }
}

/// The approver: the given name, and the proof for it.
fn named(by: Option<String>, proof: &Proof) -> String {
    let by = by.map(|by| clean(&by, BY_BYTES_MAX)).filter(|by| !by.is_empty());
    let by = by.unwrap_or_else(|| "somebody".to_owned());
    match proof {
        Proof::Key(secret) => format!("{by}, with the key of Secret {}", clean(secret, BY_BYTES_MAX / 2)),
        Proof::None => format!("{by}, by a request without a signature"),
    }
}

fn not_waiting(why: &str, words: &str) -> Told {
    let remedy = "read the ticket again: `allclear explain pipeline/NAMESPACE/NAME`, or the notice promotion.waiting";
    Told::refused(StatusCode::UNPROCESSABLE_ENTITY, words, why, remedy)
}

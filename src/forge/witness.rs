//! What the exchanges of one call say about their host, in words that hold nothing of the repository: others read them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};

use crate::rests::Outcome;
use crate::{Authorities, Http, HttpError, limits};

/// An [`Http`] that remembers what its last exchange says.
pub(crate) struct Witness {
    http: Arc<dyn Http>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    last: Outcome,
    spare: Option<Duration>,
}

impl Witness {
    pub(crate) fn of(http: &Arc<dyn Http>) -> Arc<Self> {
        Arc::new(Self { http: Arc::clone(http), seen: Mutex::default() })
    }

    /// What the last exchange says.
    pub(crate) fn outcome(&self) -> Outcome {
        self.seen().last.clone()
    }

    /// How long the credentials should be left alone: the host allows them little more. A tenth is left to others with the same ones.
    pub(crate) fn spare(&self) -> Option<Duration> {
        self.seen().spare
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Http for Witness {
    async fn send(
        &self,
        request: Request<Bytes>,
        authorities: Option<&Authorities>,
        answer_max: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        // A caller that gives up meanwhile has had no whole answer.
        self.seen().last = Outcome::Nothing;
        let answer = self.http.send(request, authorities, answer_max).await;
        let spare = answer.as_ref().ok().and_then(|answer| limits::running_out(answer.headers()));
        let mut seen = self.seen();
        (seen.last, seen.spare) = (outcome(&answer), spare.or(seen.spare));
        drop(seen);
        answer
    }
}

fn outcome(answer: &Result<Response<Bytes>, HttpError>) -> Outcome {
    let answer = match answer {
        Err(HttpError::Unreachable(why)) => return Outcome::Unreachable(why.clone()),
        Err(HttpError::Failed(why)) => return Outcome::Fails(why.clone(), None),
        // It works, but not for those who trust what this one trusts.
        Err(HttpError::Untrusted(_) | HttpError::Refused(_)) => return Outcome::Nothing,
        Err(HttpError::TooLong) => return Outcome::Answers,
        Ok(answer) => answer,
    };
    let (status, headers) = (answer.status(), answer.headers());
    let why = format!("it answers {}", status.as_u16());
    match () {
        () if status == StatusCode::UNAUTHORIZED => Outcome::Unauthorized(why),
        () if limits::is_limit(status, headers, &String::from_utf8_lossy(answer.body())) => {
            Outcome::AsksForRest(why, limits::rest(headers).unwrap_or(limits::REST))
        }
        () if status.is_server_error() => Outcome::Fails(why, limits::rest(headers)),
        () => Outcome::Answers,
    }
}

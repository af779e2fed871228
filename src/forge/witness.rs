//! What the exchanges of one call say about their host, in words that hold nothing of the repository: others read them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};

use crate::rests::Outcome;
use crate::ssh::{Answer, Call, SshError};
use crate::{Authorities, Http, HttpError, limits};

/// An [`Http`] that remembers what its last exchange says.
pub(crate) struct Witness {
    http: Arc<dyn Http>,
    /// Its host is that of the forge's API: SSH is another place, and a failure there is the repository's.
    of_api: bool,
    seen: Mutex<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    last: Outcome,
    spare: Option<Duration>,
}

impl Witness {
    pub(crate) fn of(http: &Arc<dyn Http>) -> Arc<Self> {
        Arc::new(Self { http: Arc::clone(http), of_api: false, seen: Mutex::default() })
    }

    /// The same, of calls that are counted at the host of the forge's API.
    pub(crate) fn of_api(http: &Arc<dyn Http>) -> Arc<Self> {
        Arc::new(Self { http: Arc::clone(http), of_api: true, seen: Mutex::default() })
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

    async fn call(&self, call: Call<'_>) -> Result<Answer, SshError> {
        self.seen().last = Outcome::Nothing;
        let answer = self.http.call(call).await;
        self.seen().last = match outcome_of_call(&answer) {
            Outcome::Unreachable(why) if self.of_api => Outcome::Fails(why, None),
            outcome => outcome,
        };
        answer
    }
}

/// What a call of a host's program says, likewise.
fn outcome_of_call(answer: &Result<Answer, SshError>) -> Outcome {
    match answer {
        Ok(_) | Err(SshError::TooLong) => Outcome::Answers,
        Err(SshError::Unreachable(why)) => Outcome::Unreachable(why.clone()),
        Err(SshError::Failed(why)) => Outcome::Fails(why.clone(), None),
        Err(SshError::Denied(why)) => Outcome::Unauthorized(why.clone()),
        // It works, but not for those who know what this one knows.
        Err(SshError::Untrusted(_) | SshError::Refused(_)) => Outcome::Nothing,
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

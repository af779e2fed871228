//! One repository in the API of a forge: what is sent and read there has JSON in it, and what is refused has its class.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use kernel::text;
use purge::ports::{PortError, Retry};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::{self, text_of};
use crate::{Authorities, Http, HttpError};

/// Longest answer that is read, in bytes. One request of GitHub takes about 25 KiB with what it says of its repositories, and
/// its body up to 256 KiB; a page has 50.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Longest words of a server that are repeated, in bytes.
const WORDS_BYTES_MAX: usize = 300;

/// A repository in the API of its forge.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) http: Arc<dyn Http>,
    /// Its address, without a slash at the end.
    pub(crate) root: String,
    /// The repository, for people.
    pub(crate) name: String,
    /// Headers of every request.
    pub(crate) headers: HeaderMap,
    /// What no error may repeat.
    pub(crate) secrets: Vec<String>,
    pub(crate) authorities: Option<Authorities>,
}

/// Why a forge did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What it answered; `None` if it did not answer.
    pub(crate) status: Option<StatusCode>,
    pub(crate) error: PortError,
}

/// An answer with the mark of its version, where the forge gives one.
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) etag: Option<String>,
}

impl Failure {
    /// A refusal that does not pass by itself, unless the forge says when to come again.
    pub(crate) fn for_good(self) -> PortError {
        let retry = if self.error.retry == Retry::Later { Retry::Never } else { self.error.retry };
        PortError { retry, ..self.error }
    }
}

impl From<Failure> for PortError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The headers of every request: `authorization` is the value of that header, `accept` what is asked for.
///
/// # Errors
/// Lasting: the token fits into no header.
pub(crate) fn headers(authorization: &str, accept: &'static str) -> Result<HeaderMap, PortError> {
    let mut proof = HeaderValue::from_str(authorization).map_err(|_invalid| {
        PortError::lasting(
            "failed to use the Secret",
            "its token has a character that no token has, perhaps a line break",
        )
    })?;
    proof.set_sensitive(true);
    // GitHub refuses requests without a User-Agent.
    let fixed = [(ACCEPT, accept), (USER_AGENT, "allclear"), (CONTENT_TYPE, "application/json")];
    let fixed = fixed.map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok(fixed.into_iter().chain([(AUTHORIZATION, proof)]).collect())
}

impl Api {
    /// Reads what is at a path below the repository, query included.
    pub(crate) async fn get<T: DeserializeOwned>(&self, attempted: &str, path: &str) -> Result<T, Failure> {
        let answer = self.exchange(attempted, Method::GET, path, None, None).await?;
        self.read(attempted, &answer)
    }

    /// Reads it if it is no longer what had this mark; `None` if it still is.
    pub(crate) async fn get_changed<T: DeserializeOwned>(
        &self,
        attempted: &str,
        path: &str,
        etag: Option<&str>,
    ) -> Result<Option<Versioned<T>>, Failure> {
        let answer = self.exchange(attempted, Method::GET, path, None, etag).await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let etag = text_of(answer.headers(), &ETAG).map(str::to_owned);
        Ok(Some(Versioned { value: self.read(attempted, &answer)?, etag }))
    }

    /// Sends a document and reads the answer.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        attempted: &str,
        method: Method,
        path: &str,
        document: &Value,
    ) -> Result<T, Failure> {
        let answer = self.exchange(attempted, method, path, Some(document), None).await?;
        self.read(attempted, &answer)
    }

    /// Sends a document; the answer may be empty, and says nothing more than that it is done.
    pub(crate) async fn order(
        &self,
        attempted: &str,
        method: Method,
        path: &str,
        document: &Value,
    ) -> Result<(), Failure> {
        self.exchange(attempted, method, path, Some(document), None).await.map(|_done| ())
    }

    async fn exchange(
        &self,
        attempted: &str,
        method: Method,
        path: &str,
        document: Option<&Value>,
        etag: Option<&str>,
    ) -> Result<Response<Bytes>, Failure> {
        let body = document.map_or_else(Bytes::new, |document| Bytes::from(document.to_string()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        let uri = format!("{}{path}", self.root).parse();
        *request.uri_mut() =
            uri.map_err(|_no_uri| self.lasting(attempted, "the URL of the repository cannot be used"))?;
        *request.headers_mut() = self.headers.clone();
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            request.headers_mut().insert(IF_NONE_MATCH, etag);
        }
        let answer = self.http.send(request, self.authorities.as_ref(), ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| match error {
            HttpError::Refused(why) => self.lasting(attempted, &why),
            HttpError::Unreachable(why) | HttpError::Failed(why) | HttpError::Untrusted(why) => {
                self.passing(attempted, &why)
            }
            HttpError::TooLong => {
                self.passing(attempted, &format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"))
            }
        })?;
        let is_unchanged = etag.is_some() && answer.status() == StatusCode::NOT_MODIFIED;
        if answer.status().is_success() || is_unchanged { Ok(answer) } else { Err(self.refused(attempted, &answer)) }
    }

    fn read<T: DeserializeOwned>(&self, attempted: &str, answer: &Response<Bytes>) -> Result<T, Failure> {
        serde_json::from_slice(answer.body()).map_err(|_not_as_documented| {
            let why = "the answer is not that of this kind of forge: a login page, a proxy, or another product";
            Failure { status: Some(answer.status()), ..self.passing(attempted, why) }
        })
    }

    /// What a status means. Only what a person must change lasts.
    fn refused(&self, attempted: &str, answer: &Response<Bytes>) -> Failure {
        let (status, words) = (answer.status(), self.words(answer.body()));
        let code = status.as_u16();
        let said = if words.is_empty() { words } else { format!(": {words}") };
        let failure = if limits::is_limit(status, answer.headers(), &said) {
            let rest = limits::rest(answer.headers()).unwrap_or(limits::REST);
            let failure = self.passing(attempted, &format!("the forge asks for patience ({code}){said}"));
            Failure { error: PortError { retry: Retry::After(rest), ..failure.error }, ..failure }
        } else {
            match status {
                StatusCode::UNAUTHORIZED => self.denied(attempted, &format!("the token is refused ({code}){said}")),
                StatusCode::FORBIDDEN => {
                    self.denied(attempted, &format!("the token has no right to this ({code}){said}"))
                }
                StatusCode::NOT_FOUND => {
                    self.lasting(attempted, &format!("not found, or the token does not show it ({code}){said}"))
                }
                _ if status.is_redirection() => self.lasting(attempted, &moved(answer.headers())),
                _ => {
                    let failure = self.passing(attempted, &format!("the forge answers {code}{said}"));
                    let retry = limits::rest(answer.headers()).map_or(Retry::Later, Retry::After);
                    Failure { error: PortError { retry, ..failure.error }, ..failure }
                }
            }
        };
        Failure { status: Some(status), ..failure }
    }

    /// What a refusal says; nothing of a page for people.
    fn words(&self, body: &Bytes) -> String {
        self.said(&serde_json::from_slice(body).unwrap_or_default())
    }

    /// What an answer says against what was asked, of all the places where forges say it.
    pub(crate) fn said(&self, document: &Value) -> String {
        let mut words: Vec<&str> = Vec::new();
        for said in ["message", "error", "error_description", "errors"].into_iter().filter_map(|key| document.get(key))
        {
            match said {
                Value::Array(all) => words.extend(all.iter().filter_map(sentence)),
                one => words.extend(sentence(one)),
            }
        }
        let said = words.join("; ");
        let secrets = self.secrets.iter().filter(|secret| !secret.is_empty());
        let said = secrets.fold(said, |said, secret| said.replace(secret, "…"));
        text::clean(&said, WORDS_BYTES_MAX)
    }

    pub(crate) fn passing(&self, attempted: &str, why: &str) -> Failure {
        Failure { status: None, error: PortError::passing(self.attempted(attempted), why) }
    }

    fn lasting(&self, attempted: &str, why: &str) -> Failure {
        Failure { status: None, error: PortError::lasting(self.attempted(attempted), why) }
    }

    fn denied(&self, attempted: &str, why: &str) -> Failure {
        Failure { status: None, error: PortError::denied(self.attempted(attempted), why) }
    }

    fn attempted(&self, attempted: &str) -> String {
        format!("failed to {attempted} in {}", self.name)
    }
}

/// A sentence, alone or in an object.
fn sentence(said: &Value) -> Option<&str> {
    said.as_str().or_else(|| said.get("message")?.as_str())
}

/// The words of a redirect. Its query may hold a secret.
fn moved(headers: &HeaderMap) -> String {
    let location =
        text_of(headers, &LOCATION).and_then(|location| location.split(['?', '#']).next()).unwrap_or_default();
    let location = if location.contains('@') { "" } else { location };
    format!(
        "the forge redirects, which is not followed; if the repository has moved, change its URL; to {}",
        text::clean(location, WORDS_BYTES_MAX)
    )
}

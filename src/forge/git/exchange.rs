//! One HTTP exchange of git's protocol ([gitprotocol-http]): whom it goes to, what proves us, and what each status means.
//!
//! [gitprotocol-http]: https://git-scm.com/docs/gitprotocol-http

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use purge::ports::PortError;

use super::failure::Failure;
use super::packet::WORDS_BYTES_MAX;
use crate::{Authorities, Http, limits};

/// GitHub and Bitbucket answer only clients whose name begins with `git/` ([dulwich#562], [ocaml-git#66]), and some hosts refuse
/// those before 1.6.6, which had no smart protocol ([libgit2#4041]).
///
/// [dulwich#562]: https://github.com/jelmer/dulwich/issues/562
/// [ocaml-git#66]: https://github.com/mirage/ocaml-git/pull/66
/// [libgit2#4041]: https://github.com/libgit2/libgit2/pull/4041
const NAME: &str = concat!("git/2.0 (allclear ", env!("CARGO_PKG_VERSION"), ")");

/// What proves to the server who we are. Sent with every request to the repository's own URL, and never said.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// User and password, or user and token.
    Basic {
        /// The user; where a token is the password, most hosts take any name.
        user: String,
        /// The password or token.
        password: String,
    },
    Bearer(String),
}

/// Which program of git's is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    UploadPack,
    ReceivePack,
}

/// A repository behind HTTP.
pub(super) struct Web {
    http: Arc<dyn Http>,
    /// Without a slash at its end.
    url: String,
    /// Host and path, for people.
    name: String,
    /// The header, and what in it is secret.
    proof: Option<(HeaderValue, String)>,
    authorities: Option<Authorities>,
}

impl Web {
    pub(super) fn new(
        http: Arc<dyn Http>,
        url: &str,
        credentials: Option<&Credentials>,
        authorities: Option<Authorities>,
    ) -> Result<Self, PortError> {
        let uri: Uri = url.parse().map_err(|_no_uri| refuse("it is no URL"))?;
        let host = host(url)?;
        if url.contains(['?', '#']) {
            return Err(refuse("it has a query or a fragment"));
        }
        let proof = credentials.map(Credentials::proof).transpose().map_err(refuse)?;
        let name = format!("{host}{}", uri.path().trim_end_matches('/'));
        Ok(Self { http, url: url.trim_end_matches('/').to_owned(), name, proof, authorities })
    }

    /// What the server says before it is asked, at most `answer_max` bytes of it.
    pub(super) async fn advertisement(&self, service: Service, answer_max: usize) -> Result<Bytes, Failure> {
        let path = format!("info/refs?service={service}");
        self.exchange(service, Method::GET, &path, Bytes::new(), answer_max).await
    }

    /// What the server answers to a request, at most `answer_max` bytes of it.
    pub(super) async fn ask(&self, service: Service, body: Vec<u8>, answer_max: usize) -> Result<Bytes, Failure> {
        self.exchange(service, Method::POST, &service.to_string(), body.into(), answer_max).await
    }

    /// A failure with what was attempted here, and without what is secret.
    pub(super) fn error(&self, attempted: &str, failure: Failure) -> PortError {
        let secrets = self.proof.as_ref().map(|(header, secret)| [header.to_str().unwrap_or_default(), secret]);
        let secrets: Vec<&str> = secrets.into_iter().flatten().flat_map(|secret| [secret, last_word(secret)]).collect();
        failure.while_trying(format!("{attempted} {}", self.name), &secrets)
    }

    async fn exchange(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: Bytes,
        answer_max: usize,
    ) -> Result<Bytes, Failure> {
        let kind = if method == Method::GET { "advertisement" } else { "result" };
        let expected = format!("application/x-{service}-{kind}");
        let mut request =
            Request::builder().method(&method).uri(format!("{}/{path}", self.url)).header(ACCEPT, &expected);
        request = request.header(USER_AGENT, NAME);
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, format!("application/x-{service}-request"));
        }
        if service == Service::UploadPack {
            request = request.header("git-protocol", "version=2");
        }
        if let Some((proof, _)) = &self.proof {
            request = request.header(AUTHORIZATION, proof);
        }
        let request = request.body(body).map_err(|_invalid| Failure::lasting("the URL cannot be used"))?;
        let answer = self.http.send(request, self.authorities.as_ref(), answer_max).await;
        let answer = answer.map_err(|error| Failure::of_http(error, answer_max))?;
        if answer.status() != StatusCode::OK {
            return Err(self.refusal(&answer));
        }
        let kind = header(answer.headers(), CONTENT_TYPE.as_str()).and_then(|kind| kind.split(';').next());
        if kind != Some(&expected) {
            return Err(Failure::answer("the answer is not git's: a login page, or a proxy, or no git host"));
        }
        Ok(answer.into_body())
    }

    /// What a status other than 200 means.
    fn refusal(&self, answer: &Response<Bytes>) -> Failure {
        let status = answer.status();
        let said = match header(answer.headers(), CONTENT_TYPE.as_str()) {
            Some(kind) if kind.starts_with("text/plain") => {
                let words = answer.body().get(..WORDS_BYTES_MAX).unwrap_or(answer.body());
                format!(": {}", String::from_utf8_lossy(words))
            }
            Some(_) | None => String::new(),
        };
        let after = header(answer.headers(), RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
        let after = after.map(|seconds| Duration::from_secs(seconds).min(limits::REST_MAX));
        match status {
            StatusCode::UNAUTHORIZED if self.proof.is_none() => Failure::denied("it asks for credentials (401)"),
            StatusCode::UNAUTHORIZED => Failure::denied(format!("the credentials are refused (401){said}")),
            StatusCode::FORBIDDEN => Failure::denied(format!("the credentials do not allow it (403){said}")),
            StatusCode::NOT_FOUND => {
                Failure::lasting(format!("no such repository, or the credentials do not show it (404){said}"))
            }
            _ if status.is_redirection() => Failure::lasting(moved(header(answer.headers(), LOCATION.as_str()))),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Failure::passing(format!("the server asks for patience ({}){said}", status.as_u16()), after)
            }
            _ => {
                let cause = format!("the server answers {}{said}", status.as_u16());
                if status.is_server_error() { Failure::broken(cause) } else { Failure::answer(cause) }
            }
        }
    }
}

/// The host of a URL, with its port if one is named, in lower case.
pub(super) fn host(url: &str) -> Result<String, PortError> {
    let uri: Uri = url.parse().map_err(|_no_uri| refuse("it is no URL"))?;
    let host = uri.authority().filter(|_| matches!(uri.scheme_str(), Some("http" | "https")));
    let host = host.ok_or_else(|| refuse("only https://HOST/PATH and ssh://USER@HOST/PATH are understood"))?.as_str();
    match host.contains('@') {
        true => Err(refuse("it holds a user or password; put those into the Secret")),
        false => Ok(host.to_ascii_lowercase()),
    }
}

pub(super) fn refuse(why: &str) -> PortError {
    PortError::lasting("failed to use the URL of the repository", why)
}

/// The words of a redirect. Its query may hold a secret.
fn moved(location: Option<&str>) -> String {
    let path = location.and_then(|location| location.split(['?', '#']).next()).unwrap_or_default();
    let path = path.strip_suffix("/info/refs").unwrap_or(path);
    match path.contains('@') || path.is_empty() {
        true => "it redirects to another place, which is not followed".to_owned(),
        false => format!("it redirects to {path}, which is not followed; if the repository is there, change the URL"),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Behind `Basic` or `Bearer`.
pub(crate) fn last_word(proof: &str) -> &str {
    proof.rsplit(' ').next().unwrap_or(proof)
}

impl Credentials {
    /// The value of their header, with this word before a token that has no user, and what in it is secret.
    pub(crate) fn authorization(&self, scheme: &str) -> (String, &String) {
        match self {
            Self::Basic { user, password } => {
                (format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))), password)
            }
            Self::Bearer(token) => (format!("{scheme} {token}"), token),
        }
    }

    fn proof(&self) -> Result<(HeaderValue, String), &'static str> {
        let (text, secret) = self.authorization("Bearer");
        let mut header =
            HeaderValue::from_str(&text).map_err(|_invalid| "the token in the Secret holds a line break")?;
        header.set_sensitive(true);
        Ok((header, secret.clone()))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        })
    }
}

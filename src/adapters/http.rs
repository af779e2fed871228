//! The one client for requests to places that configuration names: bounded in time and in what it reads, and careful
//! where it connects.
//!
//! - The address is judged after resolving ([`Egress`]), for every attempt anew: connections are not kept.
//! - Redirects are not followed, and nothing is sent twice: a 3xx is an answer, a retry is the caller's decision.
//! - No proxy but a configured one. What a proxy resolves only it can judge, so names are not sent to it unless the operator
//!   says that it does.
//! - Errors name no path, query, user or headers of the request: each may be a secret.
//!
//! Not for: CloudFront and Kubernetes, whose clients bring their own transport.

mod egress;
mod special;

use std::error::Error as StdError;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::CertificateError;
use url::{Host, Url};

pub use egress::{Egress, refusal_of_cluster};

/// Bytes of an answer that are read at most; then the connection is dropped. Only a person who looks for an error
/// message reads an answer.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Time for resolving and connecting, handshake included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Characters of the other side's words in a reason.
const WORDS_CHARS_MAX: usize = 200;

/// How the words of a server begin that is not who it should be, or does not speak TLS.
pub const TLS_FAILED: &str = "TLS failed";

/// How a certificate is spoken of whose authority is unknown.
pub const UNTRUSTED: &str = "its certificate is signed by an authority that is not trusted here";

/// How the words begin where there is no connection.
pub const NOT_CONNECTED: &str = "no connection";

/// How the words begin where a name leads nowhere.
pub const UNRESOLVED: &str = "the name could not be resolved";

/// How we name ourselves to receivers.
const USER_AGENT: &str = concat!("allclear/", env!("CARGO_PKG_VERSION"));

/// Turns names into addresses.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of a name.
    ///
    /// # Errors
    /// In the words of the server that was asked.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Knows no name: beside stand-ins nothing is reached.
#[derive(Clone, Copy, Debug)]
pub struct NoLookup;

#[async_trait]
impl Lookup for NoLookup {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::Error::other("no names are looked up here"))
    }
}

/// What a [`Client`] is built from.
#[derive(Clone)]
pub struct Settings {
    /// Where it may connect to.
    pub egress: Egress,
    /// Certificates (PEM) of authorities that are believed beside the system's; empty for none.
    pub authorities: Bytes,
    /// The proxy for all requests, which may have a private address.
    pub proxy: Option<Url>,
    /// The proxy judges the addresses of names itself. Unless it does, no name is sent to it.
    pub proxy_judges: bool,
    /// Time for resolving and connecting; [`CONNECT_TIMEOUT`].
    pub connect_timeout: Duration,
    pub lookup: Arc<dyn Lookup>,
}

pub struct Request {
    pub method: Method,
    /// The address; user and password in it become an `Authorization` header.
    pub url: Url,
    /// Sent as they are.
    pub headers: HeaderMap,
    /// Sent as it is.
    pub body: Bytes,
    /// For everything, from resolving to the last byte.
    pub timeout: Duration,
}

/// What came back, whatever its status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body; of [`Client::send`] as much as came in time, at most [`ANSWER_BYTES_MAX`].
    pub body: Bytes,
}

/// An answer whose body is still to be read. Dropped, it ends the connection.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    /// Each line by itself, also of a name that comes twice.
    pub headers: HeaderMap,
    /// Without its headers.
    response: reqwest::Response,
}

/// Why there is no answer, in words without a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address may not be talked to.
    #[error("{0}")]
    Blocked(String),
    #[error("{0}")]
    Failed(String),
    /// The client or the request cannot be built.
    #[error("{0}")]
    Unusable(String),
}

/// The client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    client: reqwest::Client,
    egress: Egress,
    /// Names are resolved by a proxy, and we do not know whether it judges addresses.
    names_unjudged: bool,
}

impl Settings {
    /// The system's resolver, the usual time to connect, and no proxy.
    pub fn new(egress: Egress) -> Self {
        Self {
            egress,
            authorities: Bytes::new(),
            proxy: None,
            proxy_judges: false,
            connect_timeout: CONNECT_TIMEOUT,
            lookup: Arc::new(SystemLookup),
        }
    }
}

impl Client {
    /// Builds the client.
    ///
    /// # Errors
    /// [`Error::Unusable`] where this machine has no certificates to check servers with, or the proxy or the authorities cannot
    /// be used.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let Settings { egress, authorities, proxy, proxy_judges, connect_timeout, lookup } = settings;
        let names_unjudged = proxy.is_some() && !proxy_judges;
        let proxy_name = proxy.as_ref().and_then(Url::domain).map(str::to_owned);
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .user_agent(USER_AGENT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(connect_timeout)
            .pool_max_idle_per_host(0)
            .dns_resolver(GuardedLookup { egress, lookup, proxy_name });
        if !authorities.is_empty() {
            let found = reqwest::Certificate::from_pem_bundle(&authorities).ok().filter(|found| !found.is_empty());
            let found = found.ok_or_else(|| Error::Unusable("the authorities hold no certificate (PEM)".to_owned()))?;
            builder = builder.tls_certs_merge(found);
        }
        if let Some(proxy) = proxy {
            let proxy = reqwest::Proxy::all(proxy)
                .map_err(|error| Error::Unusable(format!("the proxy cannot be used: {}", words(&error))))?;
            builder = builder.proxy(proxy);
        }
        let client = builder
            .build()
            .map_err(|error| Error::Unusable(format!("failed to set up the HTTP client: {}", words(&error))))?;
        Ok(Self { client, egress, names_unjudged })
    }

    /// Sends a request once. An answer whose body does not end in time is an answer all the same: its status came.
    ///
    /// # Errors
    /// Says in words why there is no answer. Ends at the latest after the request's own timeout.
    pub async fn send(&self, request: Request) -> Result<Answer, Error> {
        let timeout = request.timeout;
        let mut time_is_up = pin!(tokio::time::sleep(timeout));
        let mut response = tokio::select! {
            response = self.begin(request) => response?,
            () = &mut time_is_up => return Err(Error::Failed(format!("no answer within {}", spoken(timeout)))),
        };
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while body.len() < ANSWER_BYTES_MAX {
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk,
                () = &mut time_is_up => break,
            };
            let Ok(Some(chunk)) = chunk else { break };
            let room = ANSWER_BYTES_MAX.saturating_sub(body.len());
            body.extend(chunk.into_iter().take(room));
        }
        Ok(Answer { status, headers, body: Bytes::from(body) })
    }

    /// Sends a request once and reads all of its answer: `None` if it is longer than `answer_max` bytes.
    ///
    /// # Errors
    /// Says in words why there is no whole answer. Ends at the latest after the request's own timeout.
    pub async fn whole(&self, request: Request, answer_max: usize) -> Result<Option<Answer>, Error> {
        let timeout = request.timeout;
        let reading = async {
            let mut head = self.opened(request).await?;
            let (status, headers) = (head.status, std::mem::take(&mut head.headers));
            Ok(head.body(answer_max).await?.map(|body| Answer { status, headers, body }))
        };
        let too_late = |_| Err(Error::Failed(format!("no whole answer within {}", spoken(timeout))));
        tokio::time::timeout(timeout, reading).await.unwrap_or_else(too_late)
    }

    /// Sends a request once and returns when the head of its answer is there. For those who judge by the head whether they read on.
    ///
    /// # Errors
    /// Says in words why there is no answer. Ends at the latest after the request's own timeout.
    pub async fn head(&self, request: Request) -> Result<Head, Error> {
        let timeout = request.timeout;
        let too_late = |_| Err(Error::Failed(format!("no answer within {}", spoken(timeout))));
        tokio::time::timeout(timeout, self.opened(request)).await.unwrap_or_else(too_late)
    }

    /// Sends a request and reads the head of its answer, without a bound of time.
    async fn opened(&self, request: Request) -> Result<Head, Error> {
        let mut response = self.begin(request).await?;
        let headers = std::mem::take(response.headers_mut());
        Ok(Head { status: response.status().as_u16(), headers, response })
    }

    /// Sends a request; its answer's body is still to be read.
    async fn begin(&self, request: Request) -> Result<reqwest::Response, Error> {
        let Request { method, url, headers, body, timeout: _ } = request;
        self.check(&url)?;
        let request = self.client.request(method, url).headers(headers).body(body).build();
        let request =
            request.map_err(|error| Error::Unusable(format!("the request is not valid: {}", words(&error))))?;
        self.client.execute(request).await.map_err(|error| explained(&error))
    }

    /// Literal addresses are never resolved, so they are judged here. `Url` has read every odd notation of them already.
    /// Names are judged when they are resolved, unless a proxy does that.
    fn check(&self, url: &Url) -> Result<(), Error> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(name)) if self.names_unjudged => {
                return Err(Error::Blocked(format!(
                    "not sent: {name} would be resolved by the proxy, which may lead anywhere; if the proxy itself refuses \
                     metadata and other special addresses, set webhooks.proxy_judges = true"
                )));
            }
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        match self.egress.refusal(address) {
            Some(refusal) => Err(Error::Blocked(format!("not sent: {address} is {refusal}"))),
            None => Ok(()),
        }
    }
}

impl Head {
    /// Reads all of the body: `None` if it is longer than `body_max` bytes. A body may never end: whoever reads bounds the time.
    ///
    /// # Errors
    /// Says in words why it broke off.
    pub async fn body(mut self, body_max: usize) -> Result<Option<Bytes>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = self.response.chunk().await.map_err(|error| explained(&error))? {
            if chunk.len() > body_max.saturating_sub(body.len()) {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(Bytes::from(body)))
    }
}

/// `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3). A date is compared with the receiver's own `Date`, where
/// it sends one, so that a wrong clock on either side does no harm.
pub fn retry_after(headers: &HeaderMap, wall_ms: i64) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let date = |text: &str| DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let wanted = text(RETRY_AFTER)?;
    if let Ok(seconds) = wanted.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = date(wanted)?;
    let now = text(DATE).and_then(date).or_else(|| Timestamp::from_millisecond(wall_ms).ok())?;
    // Before now: at once.
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

/// A value of a header that is left out of every debug output of the HTTP stack.
///
/// # Errors
/// [`Error::Unusable`] where it cannot be sent.
pub fn header_value(value: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| Error::Unusable("a header has a value that cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A proxy's URL may hold a password.
        f.debug_struct("Settings").field("egress", &self.egress).finish_non_exhaustive()
    }
}

/// Resolves names and leaves out what may not be talked to, so that the connection goes to what was judged.
struct GuardedLookup {
    egress: Egress,
    lookup: Arc<dyn Lookup>,
    /// May be private, whatever `egress` says.
    proxy_name: Option<String>,
}

impl Resolve for GuardedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self.proxy_name.as_deref() == Some(name.as_str());
        let egress = Egress { allow_private: self.egress.allow_private || is_proxy };
        let lookup = Arc::clone(&self.lookup);
        Box::pin(async move {
            let found = lookup.addresses(name.as_str()).await?;
            let allowed: Vec<SocketAddr> = found
                .iter()
                .filter(|address| egress.refusal(**address).is_none())
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            let refused = found.iter().find_map(|address| Some((*address, egress.refusal(*address)?)));
            match refused {
                Some((address, refusal)) if allowed.is_empty() => {
                    Err(Denied { name: name.as_str().to_owned(), address, refusal }.into())
                }
                Some(_) | None => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// A name all of whose addresses may not be talked to.
#[derive(Debug, thiserror::Error)]
#[error("not sent: {name} is {address}, {refusal}")]
struct Denied {
    name: String,
    address: IpAddr,
    refusal: &'static str,
}

/// A failure in words, from the most telling cause in its chain.
fn explained(error: &reqwest::Error) -> Error {
    let causes: Vec<&(dyn StdError + 'static)> = causes(error).collect();
    if let Some(denied) = causes.iter().find_map(|cause| cause.downcast_ref::<Denied>()) {
        return Error::Blocked(denied.to_string());
    }
    let words = words(error);
    let tls = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>());
    Error::Failed(match tls {
        Some(tls) => format!("{TLS_FAILED}: {}", distrust(tls)),
        None if error.is_dns() => format!("{UNRESOLVED}: {words}"),
        None if error.is_connect() && error.is_timeout() => format!("{NOT_CONNECTED} in time: {words}"),
        None if error.is_connect() => format!("{NOT_CONNECTED}: {words}"),
        None if error.is_body() || error.is_decode() => format!("the connection broke within the answer: {words}"),
        None => format!("the connection broke before there was an answer: {words}"),
    })
}

/// Why a certificate is not believed, for people.
fn distrust(tls: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(why) = tls else { return cut(&tls.to_string()) };
    match why {
        CertificateError::UnknownIssuer => UNTRUSTED.to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name".to_owned()
        }
        // What `openssl req -x509` makes by default, used as it is.
        why if format!("{why:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority (CA:TRUE), which a server may not use as its own: let it sign one for the \
             server, or make one with basicConstraints=CA:FALSE"
                .to_owned()
        }
        why => cut(&why.to_string()),
    }
}

/// The innermost cause, which names what happened; the outer ones name the request, which may be secret.
fn words(error: &reqwest::Error) -> String {
    let innermost = causes(error).last().map(ToString::to_string);
    // A `reqwest::Error` without a cause of its own prints its URL, if it has one.
    match innermost {
        Some(words) => cut(&words),
        None if error.url().is_some() => "the request failed".to_owned(),
        None => cut(&error.to_string()),
    }
}

/// Every cause, outermost first. An `io::Error` made from another error hides that one from `source`, so it is asked.
fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause: &&'a (dyn StdError + 'static)| {
        let hidden = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        hidden.map(|hidden| hidden as &(dyn StdError + 'static)).or_else(|| StdError::source(*cause))
    })
}

fn cut(words: &str) -> String {
    words.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect()
}

fn spoken(timeout: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(timeout)
}

//! Asks the edge for pages, as a visitor does, and new pods for what is right: the questions of `proof::asked`.
//!
//! - GET, with what browsers accept of codings that CloudFront keys by; no cookies. A connection of its own for each request.
//! - Names are resolved and judged by the guard of [`super::http`], for each request anew: public addresses only, unless the operator
//!   allows a host. Addresses of pods may be private. None may be link-local or that of a metadata service.
//! - A redirect is followed within the host only, and over https only. Where it leads is never repeated whole: it may hold a secret.
//! - A body is read only where the question asks for it, and read and decoded within a bound ([`decode`]).
//!
//! Not for what an answer means, nor for which pages and pods are asked, nor how often; that is crate `proof`.

pub mod decode;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, LOCATION, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use bytes::Bytes;
use futures_util::future::join_all;
use kernel::text::clean;
use proof::asked::{Answer, Answers, Body, Headers, Question, REQUESTS_MAX, Reply, WAIT_MAX};
use purge::ports::Clock;
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::http::{Client, Egress, Error, Head, Request, Settings, header_value};

/// How we name ourselves to sites, whose owners find us in their logs.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("allclear/", env!("CARGO_PKG_VERSION"), " (looks at pages after a purge)"));

/// CloudFront's key has the codings that a visitor accepts; these two are what it knows, and what browsers send:
/// <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/ServingCompressedFiles.html>.
const CODINGS: HeaderValue = HeaderValue::from_static("gzip, br");

/// Pods serve behind what ends TLS, and many redirect to https where they are not told that it was there.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Answers of pods to one question: more than two prove nothing that two do not, and one proves nothing of itself.
pub const PODS_MAX: usize = 2;

/// Longest target of a redirect, in bytes. A path that is asked for has 256 at most (`proof::asked::PATH_BYTES_MAX`); redirects add
/// languages and queries.
const TARGET_BYTES_MAX: usize = 2_048;

/// Bytes of words about pods that were not found. Those of an API server may be long.
const WORDS_BYTES_MAX: usize = 400;

/// Bytes of a host's name in words.
const NAME_BYTES_MAX: usize = 100;

/// The way to the edge and to new pods.
pub struct EdgeLook {
    /// For hosts with public addresses.
    public: Client,
    /// For pods, for hosts that the operator allows, and for stand-ins.
    private: Client,
    /// Names of hosts that may have private addresses, in lower case.
    private_hosts: BTreeSet<String>,
    /// Where hosts of these names are stood in for, without TLS.
    stand_ins: BTreeMap<String, SocketAddr>,
    /// For one question, pods included; [`WAIT_MAX`].
    wait_max: Duration,
    clock: Arc<dyn Clock>,
}

/// Where the requests of a page go.
struct Way<'a> {
    client: &'a Client,
    /// To this address over plain HTTP, in place of the page's own host.
    to: Option<SocketAddr>,
    /// What ends TLS is passed by.
    is_pod: bool,
}

/// What a hop leaves: the page, or the next one.
enum Next {
    Nothing,
    Page(Url),
    Refused(Stray),
}

/// Why a redirect is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Stray {
    #[error("it redirects to something that is no address")]
    NoAddress,
    #[error("it redirects to {0}")]
    Host(String),
    #[error("it redirects to plain http")]
    Plain,
    #[error("it redirects to another port, or with a name and a password")]
    Authority,
    #[error("it redirects to a path of {0} bytes, the most is {TARGET_BYTES_MAX}")]
    Long(usize),
    #[error("it redirects on and on: {0} requests are the most")]
    TooMany(u8),
}

impl EdgeLook {
    /// Only these hosts, in lower case, may have private addresses. Of `settings`, where it may connect to does not count.
    ///
    /// # Errors
    /// [`Error::Unusable`] as of [`Client::new`].
    pub fn new(
        settings: &Settings,
        private_hosts: impl IntoIterator<Item = String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let client = |allow_private| Client::new(Settings { egress: Egress { allow_private }, ..settings.clone() });
        let private_hosts = private_hosts.into_iter().collect();
        let stand_ins = BTreeMap::new();
        Ok(Self { public: client(false)?, private: client(true)?, private_hosts, stand_ins, wait_max: WAIT_MAX, clock })
    }

    /// The same, with stand-ins on loopback in place of these hosts, by name. They have no certificates.
    #[must_use]
    pub fn with_stand_ins(self, stand_ins: BTreeMap<String, SocketAddr>) -> Self {
        Self { stand_ins, ..self }
    }

    /// The same, with another bound of time.
    #[must_use]
    pub fn with_wait_max(self, wait_max: Duration) -> Self {
        Self { wait_max, ..self }
    }

    /// Asks the edge, and then, if they are to be asked, two of the pods that `find` finds, side by side. They are looked for while the
    /// edge answers, and in no other case.
    pub async fn ask<E: Display>(
        &self,
        question: &Question,
        find: impl Future<Output = Result<Vec<SocketAddr>, E>>,
    ) -> Answers {
        let deadline = Instant::now() + self.wait_max;
        if !question.asks_pods {
            return Answers { edge: self.edge(question, deadline).await, pods: Vec::new() };
        }
        let (edge, found) = tokio::join!(self.edge(question, deadline), timeout_at(deadline, find));
        let failure = match found {
            Ok(Ok(pods)) if !pods.is_empty() => {
                // One that is there alone is asked twice.
                let pods = pods.iter().cycle().take(PODS_MAX);
                let pods = join_all(pods.map(|pod| self.pod(question, *pod, deadline))).await;
                return Answers { edge, pods };
            }
            Ok(Ok(_)) => "there are none".to_owned(),
            Ok(Err(why)) => clean(&why.to_string(), WORDS_BYTES_MAX),
            Err(_) => format!("they were not found within {}", humantime::format_duration(self.wait_max)),
        };
        Answers { edge, pods: vec![Reply { failure: Some(failure), ..Reply::default() }; PODS_MAX] }
    }

    /// Asks the edge alone.
    pub async fn edge(&self, question: &Question, deadline: Instant) -> Reply {
        let host = question.page.host().as_str();
        let to = self.stand_ins.get(host).copied();
        let is_private = to.is_some() || self.private_hosts.contains(host);
        let client = if is_private { &self.private } else { &self.public };
        let way = Way { client, to, is_pod: false };
        self.walk(&way, question, question.requests_max, deadline).await
    }

    /// Asks a pod, at an address of the workload's own Service, as what ends TLS before it would.
    pub async fn pod(&self, question: &Question, address: SocketAddr, deadline: Instant) -> Reply {
        let way = Way { client: &self.private, to: Some(address), is_pod: true };
        self.walk(&way, question, REQUESTS_MAX, deadline).await
    }

    /// Asks for the page and follows its redirects.
    async fn walk(&self, way: &Way<'_>, question: &Question, requests_max: u8, deadline: Instant) -> Reply {
        let mut reply = Reply::default();
        let page = Url::parse(&format!("https://{}", question.page));
        let Ok(mut url) = page else { return Reply { failure: Some("the page is no address".to_owned()), ..reply } };
        // One at least: a question that allows none is no question.
        for asked in 1..=requests_max.max(1) {
            let (answer, next) = match self.hop(way, &url, question, deadline).await {
                Ok(found) => found,
                Err(failure) => return Reply { failure: Some(failure.to_string()), ..reply },
            };
            reply.hops.push(answer);
            let stray = match next {
                Next::Nothing => return reply,
                Next::Page(_) if asked >= requests_max => Stray::TooMany(requests_max),
                Next::Page(next) => {
                    url = next;
                    continue;
                }
                Next::Refused(stray) => stray,
            };
            return Reply { failure: Some(stray.to_string()), ..reply };
        }
        reply
    }

    /// One request. Its body is read if it is wanted and nothing follows.
    async fn hop(
        &self,
        way: &Way<'_>,
        url: &Url,
        question: &Question,
        deadline: Instant,
    ) -> Result<(Answer, Next), Error> {
        let too_late =
            |_| Err(Error::Failed(format!("no answer within {}", humantime::format_duration(self.wait_max))));
        let request = way.request(url, question, self.wait_max)?;
        let started = self.clock.now();
        let head = timeout_at(deadline, way.client.head(request)).await.unwrap_or_else(too_late)?;
        let ended = self.clock.now();
        let next = next(url, &head, way.is_pod);
        let headers = headers(&head.headers, question.marker_header.as_deref());
        let status = head.status;
        let body = match next {
            // A body that does not end in time is unread, as one that broke off; its head came.
            Next::Nothing if question.wants_body => timeout_at(deadline, read(head)).await.unwrap_or_default(),
            Next::Nothing | Next::Page(_) | Next::Refused(_) => Body::Unread,
        };
        let path = url[Position::BeforePath..Position::AfterQuery].to_owned();
        Ok((Answer { path, started, ended, status, headers, body }, next))
    }
}

impl Way<'_> {
    fn request(&self, url: &Url, question: &Question, timeout: Duration) -> Result<Request, Error> {
        let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, CODINGS), (USER_AGENT, AGENT)]);
        let mut url = url.clone();
        if let Some(to) = self.to {
            let target = &url[Position::BeforePath..Position::AfterQuery];
            let there = Url::parse(&format!("http://{to}{target}"));
            url = there.map_err(|_no_url| Error::Unusable("the page is no address".to_owned()))?;
            headers.insert(HOST, header_value(question.page.host().as_str())?);
        }
        if self.is_pod {
            headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        }
        Ok(Request { method: Method::GET, url, headers, body: Bytes::new(), timeout })
    }
}

/// Where an answer leads (RFC 9110, section 15.4).
fn next(from: &Url, head: &Head, is_pod: bool) -> Next {
    if !matches!(head.status, 301 | 302 | 303 | 307 | 308) {
        return Next::Nothing;
    }
    let mut targets = head.headers.get_all(LOCATION).iter();
    let (Some(target), None) = (targets.next(), targets.next()) else { return Next::Nothing };
    target.to_str().ok().and_then(|target| from.join(target).ok()).map_or(Next::Refused(Stray::NoAddress), |to| {
        match stray(from, &to, is_pod) {
            Some(stray) => Next::Refused(stray),
            None => as_page(from, &to).map_or(Next::Refused(Stray::NoAddress), Next::Page),
        }
    })
}

/// Why a redirect leads astray. To pods http is as good as https: what ends TLS stands before them.
fn stray(from: &Url, to: &Url, is_pod: bool) -> Option<Stray> {
    let host = |url: &Url| url.host_str().map(str::to_owned);
    let has_name = !to.username().is_empty() || to.password().is_some();
    let length = to[Position::BeforePath..Position::AfterQuery].len();
    match to.scheme() {
        "https" | "http" if host(to) != host(from) => {
            Some(Stray::Host(clean(to.host_str().unwrap_or_default(), NAME_BYTES_MAX)))
        }
        // A port that is the scheme's own is none (`Url::port`).
        "https" | "http" if to.port().is_some() || has_name => Some(Stray::Authority),
        "http" if !is_pod => Some(Stray::Plain),
        "https" | "http" => (length > TARGET_BYTES_MAX).then_some(Stray::Long(length)),
        _ => Some(Stray::NoAddress),
    }
}

/// The path and the query of `to` at the host of `from`.
fn as_page(from: &Url, to: &Url) -> Option<Url> {
    let authority = &from[..Position::AfterPort];
    Url::parse(&format!("{authority}{}", &to[Position::BeforePath..Position::AfterQuery])).ok()
}

fn headers(all: &HeaderMap, marker: Option<&str>) -> Headers {
    let texts: Vec<(&str, String)> = all
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    Headers::of(texts.iter().map(|(name, value)| (*name, value.as_str())), marker)
}

/// The whole body, decoded.
async fn read(head: Head) -> Body {
    let codings = head.headers.get_all(CONTENT_ENCODING).iter().map(|coding| coding.to_str().unwrap_or("unreadable"));
    let codings = codings.collect::<Vec<_>>().join(",");
    match head.body(decode::CODED_BYTES_MAX).await {
        Ok(Some(coded)) => decode::decoded(&codings, &coded),
        Ok(None) => Body::TooLong,
        Err(_) => Body::Unread,
    }
}

//! A question to the edge, and its answer, as plain values.
//!
//! Whoever asks judges nothing: a status, a header or a failure comes back as it was. What it holds to:
//!
//! - A GET, `Accept-Encoding: gzip, br`, no cookies, a connection of its own for each question ("two connections" is part of the proof),
//!   and [`WAIT_MAX`] for all of it.
//! - A redirect is followed only within the host, and only while [`Question::requests_max`] allows; each request is an [`Answer`] of its own,
//!   the redirect too.
//! - The body is read and decoded only where [`Question::wants_body`], and only of the last answer.
//! - [`Answer::started`] is taken before the request is sent, and [`Answer::ended`] when its headers are there, both on the clock that the
//!   machine is driven by.
//! - A header is given with all its values, one for each line, and bytes that are no UTF-8 replaced. [`Headers`] leaves out what does
//!   not matter.
//!
//! Not for what an answer means; that is [`crate::age`] and [`crate::marker`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use kernel::machine::Timestamp;
use kernel::names::host::{self, Host};
use kernel::names::paths::{self, Path, PathSet};
use kernel::text;
use serde::{Deserialize, Serialize};

/// Time for one question, with all its redirects. A page that takes longer is not what its visitors wait for.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// Longest body that is judged, in bytes after decoding (256 KiB). A marker is at home in pages and small documents.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// Requests of one question: the page and two redirects, as from `/` to `/en` to `/en/`.
pub const REQUESTS_MAX: u8 = 3;

/// Longest path that is looked at, in bytes. It stands in a record, up to 32 times, and people read it in a sentence.
pub const PATH_BYTES_MAX: usize = 256;

/// Paths that are looked at on one host. A page, its other language and a shop say as much as forty would.
pub const PATHS_MAX: usize = 4;

/// How much of a refused path an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// Values kept of one header, and bytes of each. `Via` has one line for each proxy at most; longer ones are not kept.
const HEADER_VALUES_MAX: usize = 8;
const VALUE_BYTES_MAX: usize = 512;

/// The headers that anything is judged by, or told of; that of a marker comes beside them.
const JUDGED: [&str; 13] = [
    "age",
    "cache-control",
    "cache-status",
    "cf-ray",
    "content-type",
    "etag",
    "location",
    "set-cookie",
    "vary",
    "via",
    "x-amz-cf-id",
    "x-amz-cf-pop",
    "x-cache",
];

/// One path of one host. In words and in records: `www.example.com/shop`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Page {
    host: Host,
    path: Path,
}

/// Why something is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPage {
    #[error("{0} is a wildcard: a look needs a name that can be asked")]
    Wildcard(Host),
    #[error("{} is no single path: name one page, as in /shop/", text::first(.0.as_str(), SHOWN_CHARS_MAX))]
    Many(Path),
    #[error("a path to look at has {0} bytes, the most is {PATH_BYTES_MAX}")]
    Long(usize),
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Path(#[from] paths::Error),
}

impl NotAPage {
    /// The reason without the path, for callers that show it themselves.
    pub fn reason(&self) -> String {
        match self {
            Self::Many(_) => "a star or a cache tag stands for many pages".to_owned(),
            Self::Path(error) => error.reason(),
            Self::Wildcard(_) | Self::Long(_) | Self::Host(_) => self.to_string(),
        }
    }
}

impl Page {
    /// # Errors
    /// For wildcards, cache tags and long paths.
    pub fn new(host: Host, path: Path) -> Result<Self, NotAPage> {
        if host.is_wildcard() { Err(NotAPage::Wildcard(host)) } else { Ok(Self { host, path: single(path)? }) }
    }

    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// As CloudFront has it, percent-encoded, with a query if it has one.
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a purge of `paths` is about it. Which pages a cache tag selects is not known here: whoever names the page knows.
    pub fn is_of(&self, paths: &PathSet) -> bool {
        paths.has_tags() || paths.iter().any(|one| one.covers(&self.path))
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.host.as_str(), self.path)
    }
}

impl From<Page> for String {
    fn from(page: Page) -> Self {
        page.to_string()
    }
}

impl TryFrom<String> for Page {
    type Error = NotAPage;

    fn try_from(text: String) -> Result<Self, NotAPage> {
        let at = text.find('/').unwrap_or(text.len());
        let (host, path) = text.split_at(at);
        Self::new(Host::parse(host)?, Path::parse(path)?)
    }
}

/// Reads a path that is one page, for hosts that are known later.
///
/// # Errors
/// For what is no path, wildcards, cache tags and long paths.
pub fn one_path(text: &str) -> Result<Path, NotAPage> {
    single(Path::parse(text)?)
}

/// Each path once, in the order of the list: a page is asked for once.
pub fn distinct(mut paths: Vec<Path>) -> Vec<Path> {
    let mut seen = BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

fn single(path: Path) -> Result<Path, NotAPage> {
    match () {
        () if path.is_tag() || path.is_wildcard() => Err(NotAPage::Many(path)),
        () if path.as_str().len() > PATH_BYTES_MAX => Err(NotAPage::Long(path.as_str().len())),
        () => Ok(path),
    }
}

/// Which question an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId {
    /// Of the first purge (0), or of which further one.
    pub round: u8,
    /// Its place in the list of pages.
    pub page: u8,
    /// Its number among the looks at that page, from 1.
    pub look: u8,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub id: QuestionId,
    pub page: Page,
    /// Requests to the edge that may be made for it, redirects included; at least 1.
    pub requests_max: u8,
    /// The body of the last answer is judged.
    pub wants_body: bool,
    /// A header that is judged beside those that always are, in lower case.
    pub marker_header: Option<String>,
    /// After the edge has answered, the same page is asked of two new pods, through the workload's own Service, with the page's host and
    /// `X-Forwarded-Proto: https`. Their answers have redirects like those of the edge.
    pub asks_pods: bool,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answers {
    pub edge: Reply,
    /// Of two new pods, if they were asked; where there is one, of that one twice: what is never the same twice is no marker.
    pub pods: Vec<Reply>,
}

/// The answers to one question: the page's own, and one for each redirect that was followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reply {
    pub hops: Vec<Answer>,
    /// Why there is no further answer: no connection, no time left, a redirect to elsewhere or one too many. For people.
    pub failure: Option<String>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// The path that was asked for, with its query.
    pub path: String,
    /// Before the request was sent.
    pub started: Timestamp,
    /// When its headers were there.
    pub ended: Timestamp,
    pub status: u16,
    pub headers: Headers,
    pub body: Body,
}

/// The headers that matter, by their name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Headers(BTreeMap<String, Vec<String>>);

impl Headers {
    /// Of all lines of an answer, in their order, those that anything is judged by.
    pub fn of<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>, marker: Option<&str>) -> Self {
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in lines {
            let name = name.to_ascii_lowercase();
            if !JUDGED.contains(&name.as_str()) && marker != Some(name.as_str()) {
                continue;
            }
            // That there is a cookie matters, and what it is is nobody's business.
            let value = if name == "set-cookie" { "" } else { value.trim() };
            let values = headers.entry(name).or_default();
            if values.len() < HEADER_VALUES_MAX {
                values.push(text::head(value, VALUE_BYTES_MAX).to_owned());
            }
        }
        Self(headers)
    }

    /// All values of one, in their order.
    pub fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Its value, if it has exactly one.
    pub fn only(&self, name: &str) -> Option<&str> {
        match self.all(name) {
            [one] => Some(one),
            [] | [_, _, ..] => None,
        }
    }
}

/// What is known of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Body {
    /// It was not wanted, or broke off.
    #[default]
    Unread,
    /// All of it, decoded.
    Whole(Vec<u8>),
    /// It has more than [`BODY_BYTES_MAX`] bytes.
    TooLong,
}

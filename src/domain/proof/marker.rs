//! What tells one version's answers from another's: a marker, compared with what two new pods answer, or with a value given.
//!
//! | text | what it is |
//! |---|---|
//! | `header:NAME` | a header of the answer |
//! | `json:/pointer` | a value in a JSON body (RFC 6901) |
//! | `body-hash` | the SHA-256 of the decoded body, as `sha256sum` writes it |
//! | `etag` | the entity tag, compared weakly (RFC 9110, section 8.8.3.2) |
//!
//! With `=VALUE` at its end no pod is asked for what is right: `header:x-version=v7`.
//!
//! It alone finds an answer of an old pod that was stored after the purge. Where it is missing at the edge nothing is said: the CDN may
//! take it away.

use std::fmt;
use std::str::FromStr;

use kernel::text;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::age::Why;
use crate::asked::{Answer, Answers, Body, Reply};

/// Longest marker in bytes, with its value. It stands in an annotation and in a record.
const MARKER_BYTES_MAX: usize = 256;

/// How much of a refused text an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// Bytes of a reason in a notice.
const WHY_BYTES_MAX: usize = 80;

/// A marker. Serialised as its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Marker {
    what: What,
    given: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    /// In lower case.
    Header(String),
    Json(String),
    BodyHash,
    Etag,
}

/// Why a text is no marker: which, what is wrong with it, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no marker: {problem}")]
pub struct NotAMarker {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("write header:NAME, json:/pointer, body-hash or etag, each with =VALUE after it if you know what is right")]
    Unknown,
    #[error("it has {0} bytes, the most is {MARKER_BYTES_MAX}")]
    TooLong(usize),
    #[error("{0:?} is no name of a header; write one, as in header:x-version")]
    Header(String),
    #[error("a pointer begins with /, as in json:/version, and has ~0 for ~ and ~1 for / in its parts")]
    Pointer,
    #[error("nothing follows the =; write the value, or leave the = out, and new pods are asked for it")]
    NoValue,
    #[error("a hash of a body has 64 hexadecimal digits, as sha256sum writes them")]
    Hash,
}

/// What a comparison showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// The edge answers what is right.
    New,
    /// It answers something else. What is right, as a fingerprint: what differs from something that changes proves nothing.
    Other(u64),
    Unknown(Why),
}

impl Marker {
    /// # Errors
    /// Where it is none of those in the table, in words for its owner.
    pub fn parse(text: &str) -> Result<Self, NotAMarker> {
        let text = text.trim();
        parsed(text).map_err(|problem| NotAMarker { text: text::first(text, SHOWN_CHARS_MAX).to_owned(), problem })
    }

    pub const fn wants_body(&self) -> bool {
        matches!(self.what, What::Json(_) | What::BodyHash)
    }

    /// Whether new pods say what is right.
    pub const fn asks_pods(&self) -> bool {
        self.given.is_none()
    }

    /// The header that it is, in lower case.
    pub fn header(&self) -> Option<&str> {
        match &self.what {
            What::Header(name) => Some(name),
            What::Json(_) | What::BodyHash | What::Etag => None,
        }
    }

    /// Compares what the edge answered with what is right.
    pub fn compare(&self, answers: &Answers) -> Content {
        let edge = match last(&answers.edge) {
            Ok(edge) => edge,
            Err(why) => return Content::Unknown(why),
        };
        match self.value(edge).and_then(|seen| Ok((seen, self.right(edge, &answers.pods)?))) {
            Ok((seen, right)) if seen == right => Content::New,
            Ok((_, right)) => Content::Other(text::fingerprint(&right)),
            Err(why) => Content::Unknown(why),
        }
    }

    /// What the edge is to answer.
    fn right(&self, edge: &Answer, pods: &[Reply]) -> Result<String, Why> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let no_pods = |why: &str| Why::NoPods(text::clean(why, WHY_BYTES_MAX));
        let [one, other] = pods else { return Err(no_pods("there are not two")) };
        let value = |pod: &Reply| {
            let answer = last(pod).map_err(|why| no_pods(&why.words()))?;
            if answer.path == edge.path { self.value(answer) } else { Err(no_pods("they lead to another path")) }
        };
        let (one, other) = (value(one)?, value(other)?);
        if one == other { Ok(one) } else { Err(Why::PodsDiffer) }
    }

    fn value(&self, answer: &Answer) -> Result<String, Why> {
        let body = || match &answer.body {
            Body::Whole(bytes) => Ok(bytes.as_slice()),
            Body::TooLong => Err(Why::TooLong),
            Body::Unread => Err(Why::NoMarker),
        };
        match &self.what {
            What::Header(name) => answer.headers.only(name).map(str::to_owned).ok_or(Why::NoMarker),
            What::Etag => answer.headers.only("etag").map(opaque).ok_or(Why::NoMarker),
            What::BodyHash => Ok(Sha256::digest(body()?).iter().map(|byte| format!("{byte:02x}")).collect()),
            What::Json(pointer) => {
                let document: serde_json::Value = serde_json::from_slice(body()?).map_err(|_| Why::NoMarker)?;
                match document.pointer(pointer) {
                    None | Some(serde_json::Value::Null) => Err(Why::NoMarker),
                    Some(serde_json::Value::String(text)) => Ok(text.clone()),
                    Some(other) => Ok(other.to_string()),
                }
            }
        }
    }
}

/// The answer that a reply ends with, if it is a page.
fn last(reply: &Reply) -> Result<&Answer, Why> {
    match (&reply.failure, reply.hops.last()) {
        (Some(why), _) => Err(Why::NoAnswer(text::clean(why, WHY_BYTES_MAX))),
        (None, None) => Err(Why::NoAnswer("none came".to_owned())),
        (None, Some(answer)) if (200..300).contains(&answer.status) => Ok(answer),
        (None, Some(answer)) => Err(Why::Status(answer.status)),
    }
}

/// An entity tag without what says that it is weak, and without its quotes.
fn opaque(tag: &str) -> String {
    tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"').to_owned()
}

fn parsed(text: &str) -> Result<Marker, Problem> {
    if text.len() > MARKER_BYTES_MAX {
        return Err(Problem::TooLong(text.len()));
    }
    let (what, given) = match text.split_once('=') {
        Some((_, value)) if value.trim().is_empty() => return Err(Problem::NoValue),
        Some((what, value)) => (what.trim(), Some(value.trim().to_owned())),
        None => (text, None),
    };
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let what = match what.split_once(':') {
        Some(("header", name)) if name.is_empty() || !name.chars().all(is_token) => {
            return Err(Problem::Header(name.to_owned()));
        }
        Some(("header", name)) => What::Header(name.to_ascii_lowercase()),
        Some(("json", pointer)) if is_pointer(pointer) => What::Json(pointer.to_owned()),
        Some(("json", _)) => return Err(Problem::Pointer),
        None if what == "body-hash" => What::BodyHash,
        None if what == "etag" => What::Etag,
        Some(_) | None => return Err(Problem::Unknown),
    };
    let given = match (&what, given) {
        (What::Etag, Some(value)) => Some(opaque(&value)),
        (What::BodyHash, Some(value)) if value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(value.to_ascii_lowercase())
        }
        (What::BodyHash, Some(_)) => return Err(Problem::Hash),
        (What::Header(_) | What::Json(_) | What::BodyHash, given) => given,
        (What::Etag, None) => None,
    };
    Ok(Marker { what, given })
}

fn is_pointer(text: &str) -> bool {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    text.starts_with('/') && escapes
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Header(name) => write!(f, "header:{name}")?,
            What::Json(pointer) => write!(f, "json:{pointer}")?,
            What::BodyHash => f.write_str("body-hash")?,
            What::Etag => f.write_str("etag")?,
        }
        self.given.as_ref().map_or(Ok(()), |given| write!(f, "={given}"))
    }
}

impl FromStr for Marker {
    type Err = NotAMarker;

    fn from_str(text: &str) -> Result<Self, NotAMarker> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Marker {
    type Error = NotAMarker;

    fn try_from(text: String) -> Result<Self, NotAMarker> {
        Self::parse(&text)
    }
}

impl From<Marker> for String {
    fn from(marker: Marker) -> Self {
        marker.to_string()
    }
}

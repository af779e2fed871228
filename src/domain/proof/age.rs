//! What the age of an answer proves (RFC 9111, section 4.2.3).
//!
//! An `Age` passes through tiers: it says when the origin made the answer, wherever it was kept. So it alone decides, whatever `X-Cache`
//! says of the last tier. Only this life's own clock is compared with it, never a `Date`.
//!
//! ```text
//!        before                                              now
//!   ───────┼──────────────────────────────────────────────────┼──▶
//!   stale  │ ±2 s: cannot say          renewed                │
//! ```
//!
//! What was made after the purge was ordered was not stored before it, also while the purge was under way: visitors fill an edge before
//! CloudFront says that it is complete. A life that did not see the order counts from when it was complete, *after*. A member that did not
//! order it itself knows two instants between which that was, and says nothing of what was made between them.
//!
//! A miss without an age proves that its place was empty, and nothing of the answer.
//!
//! Not for what an answer holds, nor for caches that hide an age from CloudFront: those need a marker.

use kernel::machine::Timestamp;
use kernel::text;
use serde::{Deserialize, Serialize};

use crate::asked::Answer;

/// How far an age may be off, in milliseconds: each of two tiers cuts off a part of a second.
const ERROR_MS: i64 = 2_000;

/// The largest age there is, in seconds (RFC 9111, section 1.2.2).
const OLDEST_S: u32 = 1 << 31;

/// Longest name of a place in characters. CloudFront's have up to nine, as in `FRA56-P12`.
const PLACE_CHARS_MAX: usize = 16;

/// Longest name of another CDN in bytes.
const NAME_BYTES_MAX: usize = 60;

/// Instants of this life, in milliseconds of its clock; one that lies before its beginning is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The purge had not been ordered yet. `None` in a life that did not see it.
    pub before: Option<i64>,
    /// It had been ordered by then. `None` in a life that does not know.
    pub ordered: Option<i64>,
    /// It was complete by then.
    pub after: i64,
}

/// Why an answer, or none, proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Why {
    /// No answer, or not the last one; with the reason.
    #[serde(rename = "a")]
    NoAnswer(String),
    #[serde(rename = "s")]
    Status(u16),
    #[serde(rename = "c")]
    NotCloudFront,
    /// It ends at a path that is not purged.
    #[serde(rename = "o")]
    Outside,
    #[serde(rename = "g")]
    NoAge,
    #[serde(rename = "b")]
    BadAge,
    /// Misses alone.
    #[serde(rename = "m")]
    NotCached,
    /// Made within two seconds of the order, or of the instants between which that was.
    #[serde(rename = "d")]
    During,
    /// It may be from before the purge, and this life does not know when that was.
    #[serde(rename = "l")]
    NoBefore,
    /// Another CDN is in front of CloudFront, or may be.
    #[serde(rename = "f")]
    InFront(String),
    /// It was seen old, and not at two looks that count.
    #[serde(rename = "1")]
    OldOnce,
    /// One look showed what two in a row are to show.
    #[serde(rename = "0")]
    Once,
    /// New pods do not agree with each other.
    #[serde(rename = "2")]
    PodsDiffer,
    /// What new pods answer changes by itself.
    #[serde(rename = "v")]
    Varies,
    #[serde(rename = "p")]
    NoPods(String),
    #[serde(rename = "k")]
    NoMarker,
    #[serde(rename = "t")]
    TooLong,
}

impl Why {
    /// The end of "nothing says whether it is fresh: ".
    pub fn words(&self) -> String {
        match self {
            Self::NoAnswer(why) => format!("no answer: {why}"),
            Self::Status(status) => format!("it answers {status}"),
            Self::NotCloudFront => "the answer does not come from CloudFront".to_owned(),
            Self::Outside => "it leads to a path that is not purged".to_owned(),
            Self::NoAge => "the CDN shows no age".to_owned(),
            Self::BadAge => "its age is no number, or there are several".to_owned(),
            Self::NotCached => "it is not cached".to_owned(),
            Self::During => "it was stored at about the time when the purge was ordered".to_owned(),
            Self::NoBefore => {
                "it may have been stored before the purge, which this allclear did not see ordered".to_owned()
            }
            Self::InFront(name) => format!("{name} may be in front of CloudFront, and its age is not CloudFront's"),
            Self::OldOnce => "it was old, but not at two looks half a minute after the purge".to_owned(),
            Self::Once => "one look alone showed it".to_owned(),
            Self::PodsDiffer => "two new pods do not answer the same; choose another marker".to_owned(),
            Self::Varies => "what the new pods answer changes by itself; choose another marker".to_owned(),
            Self::NoPods(why) => format!("two new pods could not be asked: {why}"),
            Self::NoMarker => "the answer has no marker".to_owned(),
            Self::TooLong => "its body is too long to be compared".to_owned(),
        }
    }
}

/// What an answer shows of when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// The origin made it between these two, in milliseconds of this life's clock.
    Made {
        earliest: i64,
        latest: i64,
        age_s: u32,
    },
    /// CloudFront had nothing in this place.
    Empty,
    Nothing(Why),
}

/// How what is shown lies to the purge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// By at least so many milliseconds.
    Before {
        age_s: u32,
        by_ms: u64,
    },
    After,
    Empty,
    Nothing(Why),
}

impl Span {
    pub fn relate(&self, shown: &Shown) -> Relation {
        let (earliest, latest, age_s) = match shown {
            Shown::Made { earliest, latest, age_s } => (*earliest, *latest, *age_s),
            Shown::Empty => return Relation::Empty,
            Shown::Nothing(why) => return Relation::Nothing(why.clone()),
        };
        let bound = self.ordered.unwrap_or(self.after);
        if earliest > bound.saturating_add(ERROR_MS) {
            return Relation::After;
        }
        match self.before {
            None => Relation::Nothing(Why::NoBefore),
            Some(before) if latest < before.saturating_sub(ERROR_MS) => {
                Relation::Before { age_s, by_ms: u64::try_from(before.saturating_sub(latest)).unwrap_or_default() }
            }
            Some(_) => Relation::Nothing(Why::During),
        }
    }
}

/// A clock's time as a number that may lie before its beginning.
pub fn signed(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

/// Whether an answer can show anything: errors, and what CloudFront has not touched, do not.
///
/// # Errors
/// Why it shows nothing.
pub fn counts(answer: &Answer) -> Result<(), Why> {
    match answer.status {
        200..400 if is_of_cloudfront(answer) => Ok(()),
        200..400 => Err(Why::NotCloudFront),
        status => Err(Why::Status(status)),
    }
}

/// Reads one answer.
pub fn shown(answer: &Answer) -> Shown {
    if let Err(why) = counts(answer) {
        return Shown::Nothing(why);
    }
    match answer.headers.all("age") {
        [] if is_miss(answer) => Shown::Empty,
        [] => Shown::Nothing(Why::NoAge),
        [age] => age_of(age).map_or(Shown::Nothing(Why::BadAge), |age_s| {
            let made = |at: Timestamp| signed(at).saturating_sub(i64::from(age_s).saturating_mul(1_000));
            Shown::Made { earliest: made(answer.started), latest: made(answer.ended), age_s }
        }),
        [_, _, ..] => Shown::Nothing(Why::BadAge),
    }
}

/// Digits alone: `+5` and `5, 5` are no age.
fn age_of(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|age| digits && *age <= OLDEST_S)
}

/// Whether every cache says that it had nothing (X-Cache; RFC 9211, section 2). One that joined another's request, or looked whether what
/// it had was still good, had something.
pub fn is_miss(answer: &Answer) -> bool {
    let said = members(answer.headers.all("x-cache"));
    let misses = !said.is_empty() && said.iter().all(|one| one.starts_with("miss"));
    let had = ["hit", "hit=?1", "collapsed", "collapsed=?1", "fwd=stale"];
    let status = answer.headers.all("cache-status").iter().map(|value| value.to_ascii_lowercase());
    misses && !status.into_iter().any(|value| value.split([',', ';']).any(|part| had.contains(&part.trim())))
}

/// The point of presence that answered; empty if it names none, or no name.
pub fn place(answer: &Answer) -> &str {
    let is_name = |name: &&str| {
        name.len() <= PLACE_CHARS_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    answer.headers.only("x-amz-cf-pop").filter(is_name).unwrap_or_default()
}

pub(crate) fn is_of_cloudfront(answer: &Answer) -> bool {
    let has_id = answer.headers.all("x-amz-cf-id").iter().any(|id| !id.is_empty());
    has_id || members(answer.headers.all("via")).iter().any(|via| via.contains("cloudfront"))
}

/// The name of a CDN that answers before CloudFront does, if there is one. `Via` lists from the origin on (RFC 9110, section 7.6.3), so it is
/// what comes after CloudFront's last. Cloudflare does not write `Via`, and its own mark does not say on which side it is.
pub fn in_front(answer: &Answer) -> Option<String> {
    if !answer.headers.all("cf-ray").is_empty() {
        return Some("Cloudflare".to_owned());
    }
    let via = members(answer.headers.all("via"));
    let ours = via.iter().rposition(|one| one.contains("cloudfront"))?;
    let next = via.get(ours.saturating_add(1))?;
    Some(text::clean(next.split_whitespace().nth(1).unwrap_or(next), NAME_BYTES_MAX))
}

/// The members of a list, in lower case.
fn members(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|value| value.split(','));
    parts.map(|part| part.trim().to_ascii_lowercase()).filter(|part| !part.is_empty()).collect()
}

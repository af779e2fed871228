//! A record as text: compact JSON with the form's number, and no more than [`RECORD_BYTES_MAX`] bytes.
//!
//! The number is left out while it is 1, because ten thousand idle records would carry it for nothing. A record of a
//! newer form is refused, never guessed at: during an upgrade old and new program share a ledger, and what the old one
//! cannot read it must not overwrite. What a member publishes has the same form. Not for where the text is kept; that is the
//! business of the ledger and the board.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::records::record::{
    ABSENT_REVISION, Brief, Outcome, Published, Purge, RECORD_BYTES_MAX, Record, SCHEMA, Vote,
};
use crate::records::rules::Rules;
use kernel::id::Seq;
use kernel::names::image::Version;
use notices::notice::{Kind, Notice};

/// The form of a record that does not name one.
const FIRST_SCHEMA: u32 = 1;

/// The form of rules 2.
const SECOND_SCHEMA: u32 = 2;

/// The form of rules 3.
const THIRD_SCHEMA: u32 = 3;

/// The form of a version that is of more than its images.
const FOURTH_SCHEMA: u32 = 4;

/// The form of looks at the edge.
const FIFTH_SCHEMA: u32 = 5;

/// The oldest form that can say all that is in this record. The second and third are those of the rules of their numbers: a program that
/// knows only older forms would pass over what is new in it, and drop it with its next write. So it must not read it (decision 41).
#[must_use]
pub fn form(record: &Record) -> u32 {
    match () {
        () if record.names_distribution_tenant() => SCHEMA,
        () if is_fifth(record) => FIFTH_SCHEMA,
        () if is_fourth(record) => FOURTH_SCHEMA,
        () if is_third(record) => THIRD_SCHEMA,
        () if is_second(record) => SECOND_SCHEMA,
        () => FIRST_SCHEMA,
    }
}

/// True if it looks at the edge.
fn is_fifth(record: &Record) -> bool {
    !record.looks.is_empty() || record.untold.iter().any(|notice| notice.kind.is_of_edge())
}

/// True if a version of it is of more than its images.
fn is_fourth(record: &Record) -> bool {
    let others = [&record.settled, &record.from, &record.withdrawn].into_iter().flatten();
    let own = std::iter::once(&record.version).chain(others);
    let passed = record.passed.iter().map(|passed| &passed.version);
    own.chain(passed).chain(record.all_kept().map(|vote| &vote.version)).any(|version| version.beside().is_some())
}

/// True if it has fields of decisions 48 to 56 (rules 3).
fn is_third(record: &Record) -> bool {
    let has_nonce = |vote: &Vote| vote.vector.0.values().any(|component| !component.nonce.is_none());
    let was_refused = |vote: &Vote| vote.purges.listed.values().any(|purge| !purge.refused.is_empty());
    !record.nonce.is_none()
        || record.group_version.is_some()
        || !record.passed.is_empty()
        || record.group_name.is_some()
        || record.all_kept().any(|vote| vote.name.is_some())
        || record.last.as_ref().is_some_and(Brief::has_nonces)
        || record.all_kept().any(|vote| vote.cast.rules > Rules::SECOND || has_nonce(vote) || was_refused(vote))
        || record.history.iter().any(|closed| closed.outcome.is_third())
        || record.untold.iter().any(|notice| notice.kind.is_third())
}

/// True if it has fields of decisions 28 to 33 (rules 2).
fn is_second(record: &Record) -> bool {
    let vote = |vote: &Vote| {
        vote.cast.rules > Rules::FIRST
            || vote.purges.owed_ms != 0
            || vote.purges.unlisted.is_some()
            || !vote.plan.narrow.is_empty()
            || vote.purges.listed.values().any(Purge::is_new)
            || vote.closed.as_ref().is_some_and(Outcome::is_new)
    };
    record.off
        || record.request.is_some()
        || !record.owed.is_empty()
        || record.votes.iter().any(vote)
        || record.history.iter().any(|closed| closed.outcome.is_new())
        || record.untold.iter().any(|notice| notice.kind.is_new())
}

/// Why a record was not written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A newer program wrote it.
    #[error(
        "failed to read a record of form {found}: this program knows forms up to {SCHEMA}; run the version that wrote it \
         or a newer one"
    )]
    Newer {
        /// The form it says it has.
        found: u32,
    },
    /// It is not a record at all.
    #[error("failed to read a record: {0}")]
    Malformed(String),
    /// It cannot be turned into text.
    #[error("failed to write a record: {0}")]
    Unwritable(String),
    /// It is larger than any ledger promises to hold.
    #[error("failed to write a record of {bytes} bytes: a record may have at most {RECORD_BYTES_MAX}")]
    TooLong {
        /// Its size in bytes.
        bytes: usize,
    },
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(rename = "z", skip_serializing_if = "is_first")]
    schema: u32,
    #[serde(flatten)]
    record: &'a Record,
}

fn is_first(schema: &u32) -> bool {
    *schema == FIRST_SCHEMA
}

/// All that is read before the form is known to be readable.
#[derive(Deserialize)]
struct Form {
    #[serde(rename = "z", default = "first_schema")]
    schema: u32,
}

const fn first_schema() -> u32 {
    FIRST_SCHEMA
}

/// The text of a record.
///
/// # Errors
/// [`CodecError::TooLong`] above [`RECORD_BYTES_MAX`].
pub fn encode(record: &Record) -> Result<String, CodecError> {
    let text = serde_json::to_string(&Written { schema: form(record), record })
        .map_err(|error| CodecError::Unwritable(error.to_string()))?;
    if text.len() > RECORD_BYTES_MAX { Err(CodecError::TooLong { bytes: text.len() }) } else { Ok(text) }
}

/// Makes a record fit, and hands back the notices it has no room for, oldest first: the caller tells them, since nothing
/// else will. Then how the oldest rollouts ended is forgotten; each was announced, and is in the log. Then the oldest that were gone
/// past are dropped, and at last looks at the edge. That a purge is complete, and what a purge depends on, is never taken out: a record that is too long with these
/// alone is not written.
pub fn shed(record: &mut Record) -> Vec<Notice> {
    let mut excess = Vec::new();
    // Once for the notices and once for the history, and again only where what was taken out said more than its own text.
    while let Err(CodecError::TooLong { bytes }) = encode(record) {
        let mut surplus = bytes - RECORD_BYTES_MAX;
        let shed_before = excess.len();
        let (kept, out) = std::mem::take(&mut record.untold).into_iter().partition(|notice| {
            let goes = surplus > 0 && notice.kind != Kind::PurgeCompleted;
            surplus -= if goes { surplus.min(text_bytes(notice)) } else { 0 };
            !goes
        });
        record.untold = kept;
        excess.extend::<Vec<Notice>>(out);
        if excess.len() == shed_before {
            let look = record.looks.iter().find(|(first, proving)| proving.again(first).is_none());
            match (look.map(|(first, _)| first.clone()), record.history.is_empty(), record.passed.is_empty()) {
                (_, false, _) => drop(record.history.remove(0)),
                (_, true, false) => drop(record.passed.remove(0)),
                (Some(look), true, true) => drop(Arc::make_mut(&mut record.looks).remove(&look)),
                (None, true, true) => break,
            }
        }
    }
    excess
}

/// The bytes of a list's item in a record's text, with its comma.
fn text_bytes(notice: &Notice) -> usize {
    serde_json::to_string(notice).map_or(0, |text| text.len() + 1)
}

/// How many bytes a record has room for.
pub fn room(record: &Record) -> usize {
    encode(record).map_or(0, |text| RECORD_BYTES_MAX - text.len())
}

/// The record a text stands for. Fields this program does not know are passed over: within one form they are additions.
///
/// # Errors
/// [`CodecError::Newer`] for a form of the future, [`CodecError::Malformed`] for anything else.
pub fn decode(text: &[u8]) -> Result<Record, CodecError> {
    let malformed = |error: serde_json::Error| CodecError::Malformed(error.to_string());
    let form: Form = serde_json::from_slice(text).map_err(malformed)?;
    if form.schema > SCHEMA {
        return Err(CodecError::Newer { found: form.schema });
    }
    serde_json::from_slice(text).map_err(malformed)
}

/// [`Published::Absent`] as text: the first release wrote a record that no ledger holds.
#[derive(Serialize, Deserialize)]
struct Absent {
    #[serde(rename = "r")]
    revision: u64,
    #[serde(rename = "u")]
    uid: String,
    #[serde(rename = "s")]
    seq: Seq,
    #[serde(rename = "v")]
    version: Version,
    #[serde(rename = "p")]
    phase: AbsentPhase,
    #[serde(rename = "k")]
    closed: Seq,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AbsentPhase {
    Absent,
}

/// What the other members are shown of a record: without its looks, which concern this member alone. An older release could not read the
/// rest of it with them, and would wait.
fn for_group(record: &Record) -> Cow<'_, Record> {
    if !is_fifth(record) {
        return Cow::Borrowed(record);
    }
    let mut shown = Record { looks: Arc::default(), ..record.clone() };
    shown.untold.retain(|notice| !notice.kind.is_of_edge());
    Cow::Owned(shown)
}

/// The text of what a member publishes.
///
/// # Errors
/// As [`encode`].
pub fn encode_published(published: &Published) -> Result<String, CodecError> {
    match published {
        Published::Record(record) => encode(&for_group(record)),
        Published::Absent(seq) => {
            let (revision, uid, version) = (ABSENT_REVISION, String::new(), Version::default());
            let absent = Absent { revision, uid, seq: *seq, version, phase: AbsentPhase::Absent, closed: *seq };
            serde_json::to_string(&absent).map_err(|error| CodecError::Unwritable(error.to_string()))
        }
    }
}

/// Reads a member's published text.
///
/// # Errors
/// As [`decode`].
pub fn decode_published(text: &[u8]) -> Result<Published, CodecError> {
    match decode(text) {
        Ok(record) => Ok(record.into()),
        Err(malformed @ CodecError::Malformed(_)) => {
            serde_json::from_slice(text).map(|Absent { seq, .. }| Published::Absent(seq)).map_err(|_| malformed)
        }
        Err(error) => Err(error),
    }
}

//! Markers: comments in a YAML file that say which value a promotion sets.
//!
//! ```yaml
//! tag: 1.2.2  # {"$promotion": "shop:web:prod"}
//! # {"$promotion": "shop:web:prod:image"}
//! image: ghcr.io/shop/web:1.2.2
//! ```
//!
//! A marker is a comment that is one JSON object of strings, nothing around it, whose `$promotion` is
//! `namespace:pipeline:environment`. It stands behind the value on its line, or on a line of its own directly above the line of
//! the value; other comments may stand between. Its line must hold one value only, or the marker is refused. A suffix `:tag`,
//! `:digest`, `:name` or `:image` sets that part of an image reference (`part`).
//!
//! Only the bytes of the value change. The edited file is read again and must say the same everywhere else: a mistake of ours
//! becomes an error, never a commit.
//!
//! Not for which files are looked at, nor for what a promotion is.

mod part;
mod scalar;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

// `Event` is the input of machines; these are pieces of a text.
use granit_parser::{Event as Token, Parser, ScanError, options};

use self::part::Part;
use self::scalar::Scalar;
use kernel::id::{Environment, PipelineId, Revision};
use kernel::text;

/// Largest file that is edited, in bytes: the largest manifests that people keep in git are CRDs of about 1 MiB. Reading one of
/// 5 MiB takes 0.5 s.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Every marker contains these bytes: a file without them need not be read.
const KEY_QUOTED: &[u8] = br#""$promotion""#;

/// The key of a marker's JSON object.
const KEY: &str = "$promotion";

const NO_VALUE: &str = "its line has no value: put it behind one, or on the line above one";

/// Longest reason of the parser that is shown, in bytes.
const REASON_BYTES_MAX: usize = 200;

/// A file with its markers' values set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole file; the same as before if all values were set already.
    pub text: String,
    /// How many markers of this Pipeline and environment it has.
    pub markers: usize,
}

/// Why a file is not edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not YAML that we can read; a template, perhaps. Markers in it are out of reach.
    #[error("line {line}: {reason}")]
    Unreadable {
        /// Where reading ended, from 1.
        line: usize,
        /// In the parser's words.
        reason: String,
    },
    /// A marker in it cannot be obeyed.
    #[error("line {line}: {reason}")]
    Marker {
        /// The marker's line, from 1.
        line: usize,
        /// Why, and how to mend it.
        reason: String,
    },
}

/// Whether a file may have markers: without these bytes it has none.
pub fn may_have_markers(file: &[u8]) -> bool {
    file.windows(KEY_QUOTED.len()).any(|bytes| bytes == KEY_QUOTED)
}

/// The text that a person looks for in files that should have a marker and have none.
pub fn example(pipeline: &PipelineId, environment: &Environment) -> String {
    format!("# {{\"{KEY}\": \"{}\"}}", name(pipeline, environment))
}

fn name(pipeline: &PipelineId, environment: &Environment) -> String {
    format!("{}:{}:{environment}", pipeline.namespace, pipeline.name)
}

/// Sets the value of every marker of this Pipeline and environment to `revision`.
///
/// # Errors
/// [`Refused`]; then nothing of the file may be used.
pub fn edit(
    text: &str,
    pipeline: &PipelineId,
    environment: &Environment,
    revision: &Revision,
) -> Result<Edited, Refused> {
    if text.len() > FILE_BYTES_MAX {
        let reason = format!("the file has {} bytes, at most {FILE_BYTES_MAX} are read", text.len());
        return Err(Refused::Unreadable { line: 1, reason });
    }
    let (marks, mut lines) = marks(text, &name(pipeline, environment))?;
    if marks.is_empty() {
        return Ok(Edited { text: text.to_owned(), markers: 0 });
    }
    find_values(text, &mut lines)?;
    let mut changes: BTreeMap<usize, Change> = BTreeMap::new();
    for mark in &marks {
        let refused = |reason| Refused::Marker { line: mark.line, reason };
        let line = lines.get(mark.about).ok_or_else(|| refused(NO_VALUE.to_owned()))?;
        let (event, change) = change(text, line, mark.part.as_ref(), revision).map_err(refused)?;
        if changes.get(&event).is_some_and(|other| *other != change) {
            return Err(refused("another marker sets the same value differently: remove one".to_owned()));
        }
        changes.insert(event, change);
    }
    let edited = spliced(text, &changes);
    if edited != text {
        prove(text, &edited, &changes)?;
    }
    Ok(Edited { text: edited, markers: marks.len() })
}

struct Mark {
    /// Its own line, from 1.
    line: usize,
    /// The part that it sets, or why there is none.
    part: Result<Part, String>,
    /// The line that it is about, as a place in the list of those.
    about: usize,
}

/// A line that markers are about.
struct Line {
    at: Range<usize>,
    /// How many values are on it.
    values: usize,
    /// The last of them.
    found: Option<Found>,
}

/// The node in the place of a value.
#[derive(Clone)]
enum Found {
    Scalar(Scalar),
    Alias,
    Collection,
}

/// The new text of one scalar. Changes are kept by the number of the scalar's event.
#[derive(PartialEq, Eq)]
struct Change {
    /// The scalar's bytes in the file.
    at: Range<usize>,
    bytes: String,
    /// How a reader of YAML understands that.
    value: String,
}

fn change(
    text: &str,
    line: &Line,
    part: Result<&Part, &String>,
    revision: &Revision,
) -> Result<(usize, Change), String> {
    if line.values > 1 {
        return Err(format!("its line has {} values: put the one to be set on a line of its own", line.values));
    }
    let scalar = match line.found.as_ref().ok_or(NO_VALUE)? {
        Found::Scalar(scalar) => scalar,
        Found::Alias => return Err("the value is an alias: put the marker at its anchor".to_owned()),
        Found::Collection => return Err("it stands at a mapping or a list: put it at one value".to_owned()),
    };
    let value = part.map_err(Clone::clone)?.set(&scalar.value, revision)?;
    let bytes = scalar.written(text, &value)?;
    Ok((scalar.event, Change { at: scalar.at.clone(), bytes, value }))
}

/// An event with its bytes and its line.
type Placed<'a> = (Token<'a>, Range<usize>, usize);

fn events(text: &str) -> impl Iterator<Item = Result<Placed<'_>, Refused>> {
    // A long block of comments is common in Helm values; the file's size bounds it.
    let options = options! { max_buffered_comment_events: usize::MAX };
    Parser::new_from_str_with_options(text, options).map(|event| {
        let (event, span) = event.map_err(|error| unreadable(&error))?;
        Ok((event, span.byte_range().unwrap_or_default(), span.start.line()))
    })
}

fn unreadable(error: &ScanError) -> Refused {
    Refused::Unreadable { line: error.marker().line(), reason: text::clean(&error.info(), REASON_BYTES_MAX) }
}

/// The markers of this name and the lines that they are about, each in the order of the file.
fn marks(text: &str, name: &str) -> Result<(Vec<Mark>, Vec<Line>), Refused> {
    let (mut marks, mut lines) = (Vec::new(), Vec::<Line>::new());
    for event in events(text) {
        let (Token::Comment(comment, _), at, line) = event? else { continue };
        let Some(part) = named(&comment).and_then(|named| Part::of_suffix(named.strip_prefix(name)?)) else { continue };
        // One of several comments above the same line: not searched for again, or many would take long.
        if lines.last().is_none_or(|last| last.at.end <= at.start) {
            lines.push(Line { at: line_about(text, &at), values: 0, found: None });
        }
        marks.push(Mark { line, part, about: lines.len() - 1 });
    }
    Ok((marks, lines))
}

/// The name in a comment, if it is a marker.
fn named(comment: &str) -> Option<String> {
    let mut object: BTreeMap<String, String> = serde_json::from_str(comment.trim_start_matches('#')).ok()?;
    object.remove(KEY)
}

/// The bytes of the line that a comment is about: its own, or, if the comment has its line for itself, the next one that is no
/// comment.
fn line_about(text: &str, comment: &Range<usize>) -> Range<usize> {
    let is_break = |c: char| c == '\n' || c == '\r';
    let before = text.get(..comment.start).unwrap_or_default();
    let own = before.rfind(is_break).map_or(0, |at| at + 1)..comment.end;
    if !text.get(own.start..comment.start).unwrap_or_default().trim_matches(['\u{feff}', ' ', '\t']).is_empty() {
        return own;
    }
    let mut end = comment.end;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let below = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(is_break)).unwrap_or_default();
        let start = text.len() - below.len();
        end = below.find(is_break).map_or(text.len(), |length| start + length);
        if !below.trim_start_matches([' ', '\t']).starts_with('#') {
            return start..end;
        }
    }
}

struct Open {
    /// Of a mapping: whether its next node is a key.
    next_is_key: Option<bool>,
    /// Whether all of it is part of a key.
    in_key: bool,
}

/// Notes the values on each line. The value of a key on that line counts, even if it begins further down.
fn find_values(text: &str, lines: &mut [Line]) -> Result<(), Refused> {
    let mut open: Vec<Open> = Vec::new();
    // The lines of the key whose value comes next.
    let mut of_key = 0..0;
    for (number, event) in events(text).enumerate() {
        let (event, at, _) = event?;
        let begins = match event {
            Token::MappingStart(..) => Some(Some(true)),
            Token::SequenceStart(..) => Some(None),
            Token::Scalar(..) | Token::Alias(_) => None,
            Token::MappingEnd | Token::SequenceEnd => {
                open.pop();
                continue;
            }
            _ => continue,
        };
        let is_key = open.last_mut().is_some_and(|parent| {
            let is_key = parent.next_is_key == Some(true);
            parent.next_is_key = parent.next_is_key.map(|_| !is_key);
            is_key || parent.in_key
        });
        open.extend(begins.map(|next_is_key| Open { next_is_key, in_key: is_key }));
        let here = touched(lines, &at);
        if is_key {
            of_key = here;
            continue;
        }
        let of_key = std::mem::take(&mut of_key);
        // A collection on the line is no value, what is in it is. What is empty has no place: its key says where it is.
        let is_here = |line: &usize| begins.is_none() && (!at.is_empty() || of_key.contains(line));
        let below = of_key.clone().filter(|line| !here.contains(line));
        for line in below.chain(here.clone().filter(is_here)) {
            let Some(line) = lines.get_mut(line) else { continue };
            line.values += 1;
            line.found = Some(Found::new(number, &at, &event));
        }
    }
    Ok(())
}

/// Which of the lines these bytes touch: at most the first and the last one of a text of several.
fn touched(lines: &[Line], at: &Range<usize>) -> Range<usize> {
    let first = lines.partition_point(|line| line.at.end <= at.start);
    let end = lines.partition_point(|line| line.at.start < at.end.max(at.start + 1));
    first..end.max(first)
}

impl Found {
    fn new(number: usize, at: &Range<usize>, event: &Token<'_>) -> Self {
        match event {
            Token::Scalar(value, style, _, tag) => Self::Scalar(Scalar {
                event: number,
                at: at.clone(),
                style: *style,
                tagged: tag.is_some(),
                value: value.to_string(),
            }),
            Token::Alias(_) => Self::Alias,
            _ => Self::Collection,
        }
    }
}

fn spliced(text: &str, changes: &BTreeMap<usize, Change>) -> String {
    let (mut edited, mut copied) = (String::with_capacity(text.len()), 0);
    for change in changes.values() {
        edited.push_str(text.get(copied..change.at.start).unwrap_or_default());
        edited.push_str(&change.bytes);
        copied = change.at.end;
    }
    edited.push_str(text.get(copied..).unwrap_or_default());
    edited
}

/// Reads both and compares them event by event: values that were changed must read as meant, all else must be the same.
fn prove(text: &str, edited: &str, changes: &BTreeMap<usize, Change>) -> Result<(), Refused> {
    let (mut after, mut line) = (events(edited), 1);
    for (number, before) in events(text).enumerate() {
        let before = before?;
        line = before.2;
        let same = match (before.0, after.next(), changes.get(&number)) {
            (before, Some(Ok((after, ..))), None) => before == after,
            (
                Token::Scalar(_, _, anchor, tag),
                Some(Ok((Token::Scalar(value, _, its_anchor, its_tag), ..))),
                Some(change),
            ) => value == change.value && anchor == its_anchor && tag == its_tag,
            _ => false,
        };
        if !same {
            return Err(misread(line));
        }
    }
    if after.next().is_some() { Err(misread(line)) } else { Ok(()) }
}

fn misread(line: usize) -> Refused {
    Refused::Marker {
        line,
        reason: "the edited file would not read as meant: write the value on one line, in quotes".to_owned(),
    }
}

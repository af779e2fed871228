//! JSON from outside as what it means: the same value has the same bytes, whatever the order of its keys and the space around.
//!
//! Numbers count as they are written: Terraform's have any length, and a machine's do not. Texts are taken apart one level at a
//! time, so that a plan of many megabytes is not held twice.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::NoPlan;

/// Values within values. Providers' schemas go ten deep; what is deeper comes from no provider.
const DEPTH_MAX: usize = 100;

/// A value, one level of it.
enum Shape<'a> {
    /// `null`, `true`, `false` or a number, as it is written.
    Plain(&'a str),
    Text(String),
    List(Vec<&'a RawValue>),
    Map(BTreeMap<String, &'a RawValue>),
}

fn shape(value: &RawValue) -> Result<Shape<'_>, NoPlan> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).map(Shape::Text),
        Some(b'[') => serde_json::from_str(text).map(Shape::List),
        Some(b'{') => serde_json::from_str(text).map(Shape::Map),
        Some(_) | None => Ok(Shape::Plain(text)),
    }
    .map_err(|_| NoPlan("the plan holds JSON that cannot be read"))
}

/// Feeds a hash so that no two different lists of parts come to the same bytes.
#[derive(Clone, Default)]
pub(super) struct Feed(Sha256);

impl Feed {
    /// A part of a known kind, with its length in front.
    pub(super) fn part(&mut self, kind: u8, part: &[u8]) {
        self.0.update([kind]);
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// How many parts follow.
    pub(super) fn count(&mut self, kind: u8, count: usize) {
        self.part(kind, &(count as u64).to_be_bytes());
    }

    /// A value that may not be there; a missing one is `null`.
    pub(super) fn value(&mut self, value: Option<&RawValue>) -> Result<(), NoPlan> {
        self.open(value, 0)
    }

    /// The hash of all that was fed.
    pub(super) fn end(self) -> Vec<u8> {
        self.0.finalize().to_vec()
    }

    fn open(&mut self, value: Option<&RawValue>, depth: usize) -> Result<(), NoPlan> {
        let below = deeper(depth)?;
        let Some(value) = value else {
            self.part(b'p', b"null");
            return Ok(());
        };
        match shape(value)? {
            Shape::Plain(text) => self.part(b'p', text.as_bytes()),
            Shape::Text(text) => self.part(b't', text.as_bytes()),
            Shape::List(items) => {
                self.count(b'l', items.len());
                items.into_iter().try_for_each(|item| self.open(Some(item), below))?;
            }
            Shape::Map(members) => {
                self.count(b'm', members.len());
                for (key, member) in members {
                    self.part(b'k', key.as_bytes());
                    self.open(Some(member), below)?;
                }
            }
        }
        Ok(())
    }

    /// The value after a change, where marks say what of it is sensitive: there only counts whether it is another one than before.
    pub(super) fn masked(&mut self, change: &Masked<'_>) -> Result<(), NoPlan> {
        self.masked_at(*change, 0)
    }

    fn masked_at(&mut self, change: Masked<'_>, depth: usize) -> Result<(), NoPlan> {
        let below = deeper(depth)?;
        let Masked { before, after, marks } = change;
        let marks = [mark(marks[0])?, mark(marks[1])?];
        if marks.iter().any(|mark| matches!(mark, Mark::All)) {
            let changes = digest(before)? != digest(after)?;
            self.part(b's', if changes { b"changes" } else { b"stays" });
            return Ok(());
        }
        let (Some(value), true) = (after, marks.iter().any(|mark| !matches!(mark, Mark::None))) else {
            return self.open(after, depth);
        };
        let before = before.map(shape).transpose()?;
        match shape(value)? {
            Shape::Plain(text) => self.part(b'p', text.as_bytes()),
            Shape::Text(text) => self.part(b't', text.as_bytes()),
            Shape::List(items) => {
                self.count(b'l', items.len());
                for (at, item) in items.into_iter().enumerate() {
                    let before = before.as_ref().and_then(|before| before.item(at));
                    let marks = [marks[0].item(at), marks[1].item(at)];
                    self.masked_at(Masked { before, after: Some(item), marks }, below)?;
                }
            }
            Shape::Map(members) => {
                self.count(b'm', members.len());
                for (key, member) in members {
                    self.part(b'k', key.as_bytes());
                    let before = before.as_ref().and_then(|before| before.member(&key));
                    let marks = [marks[0].member(&key), marks[1].member(&key)];
                    self.masked_at(Masked { before, after: Some(member), marks }, below)?;
                }
            }
        }
        Ok(())
    }
}

/// A value before and after a change, and what of it is sensitive, by the marks of both.
#[derive(Clone, Copy)]
pub(super) struct Masked<'a> {
    pub(super) before: Option<&'a RawValue>,
    pub(super) after: Option<&'a RawValue>,
    pub(super) marks: [Option<&'a RawValue>; 2],
}

/// A mark: `true` for the whole value, or the same shape as the value with `true` at its sensitive parts.
enum Mark<'a> {
    None,
    All,
    Parts(Shape<'a>),
}

fn mark(raw: Option<&RawValue>) -> Result<Mark<'_>, NoPlan> {
    Ok(match raw.map(shape).transpose()? {
        None | Some(Shape::Plain("false" | "null")) => Mark::None,
        Some(parts @ (Shape::List(_) | Shape::Map(_))) => Mark::Parts(parts),
        // `true`; what is no mark at all hides everything.
        Some(Shape::Plain(_) | Shape::Text(_)) => Mark::All,
    })
}

impl<'a> Mark<'a> {
    fn item(&self, at: usize) -> Option<&'a RawValue> {
        match self {
            Self::Parts(parts) => parts.item(at),
            Self::None | Self::All => None,
        }
    }

    fn member(&self, key: &str) -> Option<&'a RawValue> {
        match self {
            Self::Parts(parts) => parts.member(key),
            Self::None | Self::All => None,
        }
    }
}

impl<'a> Shape<'a> {
    fn item(&self, at: usize) -> Option<&'a RawValue> {
        match self {
            Self::List(items) => items.get(at).copied(),
            Self::Map(_) | Self::Text(_) | Self::Plain(_) => None,
        }
    }

    fn member(&self, key: &str) -> Option<&'a RawValue> {
        match self {
            Self::Map(members) => members.get(key).copied(),
            Self::List(_) | Self::Text(_) | Self::Plain(_) => None,
        }
    }
}

/// Whether two values are the same.
fn digest(value: Option<&RawValue>) -> Result<Vec<u8>, NoPlan> {
    let mut feed = Feed::default();
    feed.value(value)?;
    Ok(feed.end())
}

fn deeper(depth: usize) -> Result<usize, NoPlan> {
    if depth < DEPTH_MAX {
        Ok(depth.saturating_add(1))
    } else {
        Err(NoPlan("the plan holds values within values without end"))
    }
}

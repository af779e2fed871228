//! The items of a purge: paths and cache tags, in the form CloudFront accepts, and sets of them in normal form.
//!
//! The normal form matters beyond tidiness: a purge reference is derived from the set (GA-7), so two members that mean
//! the same paths must arrive at the same text.
//!
//! Rules from *What you need to know when invalidating files* and *… when invalidating tags*, read 2026-11:
//! <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-specifying-objects.html>
//! <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-specifying-tags.html>
//!
//! Not for: quotas of purges in progress. Those are learnt from CloudFront's errors.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::parsed::parsed;
use crate::text;

/// Longest path in characters, after encoding (documented by CloudFront).
pub const PATH_CHARS_MAX: usize = 4_000;

/// Longest cache tag in characters, without its `#` (documented by CloudFront).
pub const TAG_CHARS_MAX: usize = 256;

/// How much of a refused text an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// The path that covers everything.
const EVERYTHING: &str = "/*";

/// One item of a purge: a path (`/index.html`), all paths with a prefix (`/images/*`) or a cache tag (`#product:7`).
///
/// Percent-encoded the way CloudFront wants it. Ordered and serialised as its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Box<str>);

/// The items of a purge in normal form: never empty, sorted, and without an item that another one covers.
///
/// The default is everything, `/*`. Serialised as a list of texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Path>", into = "Vec<Path>")]
pub struct PathSet(BTreeSet<Path>);

/// Why a text is neither a path nor a cache tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} cannot be purged: {problem}")]
pub struct Error {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("it is empty")]
    Empty,
    #[error("a path starts with / and a cache tag with #")]
    Start,
    #[error("a star may only be the last character, as in /images/*")]
    MisplacedStar,
    #[error("CloudFront purges no path with a tilde, encoded or not; purge a prefix that ends before it")]
    Tilde,
    #[error("it contains the control character {0:?}")]
    Control(char),
    #[error("it has {0} characters when encoded, the most is {PATH_CHARS_MAX}")]
    LongPath(usize),
    #[error("the cache tag has {0} characters, the most is {TAG_CHARS_MAX}")]
    LongTag(usize),
    #[error("{0:?} may not be in a cache tag; visible ASCII characters may, but no comma")]
    TagCharacter(char),
    #[error("a cache tag has no wildcard")]
    TagStar,
}

impl Error {
    /// The reason without the text, for callers that show the text themselves.
    pub fn reason(&self) -> String {
        self.problem.to_string()
    }
}

impl Path {
    /// Parses a path or, with a leading `#`, a cache tag. White space around it is dropped.
    ///
    /// In a path, what RFC 1738 calls unsafe and what is not ASCII becomes percent-encoded; escapes that are already
    /// there stay exactly as they are, because CloudFront tells `%41` from `A`. A tag becomes lower case, because
    /// CloudFront does not tell `#A` from `#a`.
    ///
    /// # Errors
    /// A text CloudFront would refuse, with what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let parsed = match text.chars().next() {
            None => Err(Problem::Empty),
            Some('/') => encode(text),
            Some('#') => fold_tag(text),
            Some(_) => Err(Problem::Start),
        };
        parsed
            .map(|text| Self(text.into_boxed_str()))
            .map_err(|problem| Error { text: text::first(text, SHOWN_CHARS_MAX).to_owned(), problem })
    }

    /// The text CloudFront gets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a cache tag. A distribution without `CacheTagConfig` knows none.
    #[must_use]
    pub fn is_tag(&self) -> bool {
        self.0.starts_with('#')
    }

    /// Whether this is a path that ends in a star.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.prefix().is_some()
    }

    /// Whether purging this purges all that `other` would. Reflexive and transitive. `/*` covers every tag too, since
    /// a tag only selects among the objects of the distribution.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match self.prefix() {
            Some("/") => true,
            Some(prefix) => other.prefix().unwrap_or(&other.0).starts_with(prefix),
            None => self == other,
        }
    }

    /// The text without its star.
    fn stem(&self) -> &str {
        self.0.strip_suffix('*').unwrap_or(&self.0)
    }

    /// The longest text that both begin with, and that breaks no escape in two.
    fn common<'a>(&'a self, other: &Self) -> &'a str {
        let same = self.stem().bytes().zip(other.stem().bytes()).take_while(|(one, other)| one == other).count();
        let text = self.stem().get(..same).unwrap_or("/");
        // An escape is a percent sign and two digits; all is ASCII here.
        let whole = text.rfind('%').filter(|at| at + 3 > text.len()).unwrap_or(text.len());
        text.get(..whole).unwrap_or("/")
    }

    /// All paths that begin as this one does, by so many bytes.
    fn beginning(&self, bytes: usize) -> Self {
        Self(format!("{}*", self.stem().get(..bytes).unwrap_or("/")).into_boxed_str())
    }

    /// The part before the star.
    fn prefix(&self) -> Option<&str> {
        if self.is_tag() { None } else { self.0.strip_suffix('*') }
    }
}

impl PathSet {
    /// Of these items, in normal form; `None` if there are none.
    #[must_use]
    pub fn of(items: Vec<Path>) -> Option<Self> {
        (!items.is_empty()).then(|| items.into_iter().collect())
    }

    /// The items, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.0.iter()
    }

    /// How many items there are: what CloudFront counts and bills, tags and wildcards as one each. Never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many of the items are wildcards; CloudFront has a quota of its own for them.
    #[must_use]
    pub fn wildcards(&self) -> usize {
        self.iter().filter(|path| path.is_wildcard()).count()
    }

    /// Whether any item is a cache tag.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.iter().any(Path::is_tag)
    }

    /// Whether this is everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.iter().any(|path| path.as_str() == EVERYTHING)
    }

    /// The items for a distribution that knows no cache tags: the paths, or everything where only tags were asked for.
    #[must_use]
    pub fn without_tags(&self) -> Self {
        self.iter().filter(|item| !item.is_tag()).cloned().collect()
    }

    /// Whether purging this purges all that `other` would.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        // In normal form, at most one item can cover a given one, but finding it by search needs no such argument. Sets
        // are small: both are bounded by what one annotation or configuration lists.
        other.iter().all(|theirs| self.0.contains(theirs) || self.iter().any(|mine| mine.covers(theirs)))
    }

    /// Both together, in normal form.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).cloned().collect()
    }

    /// The items in both, in normal form; `None` if there are none. Cache tags are in both only if both name them, or
    /// one is everything: which paths a tag selects is not known.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let within = |path: &&Path, all: &Self| all.iter().any(|one| one.covers(path));
        let mine = self.iter().filter(|path| within(path, other));
        let theirs = other.iter().filter(|path| within(path, self));
        Self::of(mine.chain(theirs).cloned().collect())
    }

    /// The same or more, in at most `most` items: the paths that have the longest beginning in common become one, ending in a
    /// star. CloudFront bills each item, and nothing says how many of them a workload's owner writes down.
    ///
    /// Cache tags stay as they are; where they leave no room, it is everything.
    #[must_use]
    pub fn at_most(&self, most: usize) -> Self {
        if self.len() <= most {
            return self.clone();
        }
        let (tags, paths): (Vec<&Path>, Vec<&Path>) = self.iter().partition(|item| item.is_tag());
        let room = most.saturating_sub(tags.len());
        if tags.len().saturating_add(usize::from(!paths.is_empty())) > most {
            return Self::default();
        }
        // Sorted by what is before the star: those with the longest beginning in common are neighbours, and stay so.
        let mut kept: Vec<Path> = paths.into_iter().cloned().collect();
        kept.sort_by(|one, other| one.stem().cmp(other.stem()));
        while kept.len() > room {
            let common = |pair: &[Path]| pair.first().zip(pair.last()).map_or("", |(one, next)| one.common(next)).len();
            // The first of the longest, so that all members come to the same.
            let Some(length) = kept.windows(2).map(common).max() else { break };
            let Some(at) = kept.windows(2).position(|pair| common(pair) == length) else { break };
            let Some(wide) = kept.get(at).map(|path| path.beginning(length)) else { break };
            kept.retain(|path| !wide.covers(path));
            kept.insert(at.min(kept.len()), wide);
        }
        kept.into_iter().chain(tags.into_iter().cloned()).collect()
    }
}

impl Default for PathSet {
    fn default() -> Self {
        Self(BTreeSet::from([Path(EVERYTHING.into())]))
    }
}

/// Brings items into normal form. Of no items it makes everything, which is what not saying what to purge means.
impl FromIterator<Path> for PathSet {
    fn from_iter<I: IntoIterator<Item = Path>>(items: I) -> Self {
        let items: BTreeSet<Path> = items.into_iter().collect();
        let everything = Path(EVERYTHING.into());
        if items.is_empty() || items.contains(&everything) {
            return Self::default();
        }
        // Sorted by prefix, wildcards before exact paths, all that a wildcard covers follows it directly.
        let mut by_prefix: Vec<&Path> = items.iter().collect();
        by_prefix.sort_by_key(|path| (path.prefix().unwrap_or(path.as_str()), !path.is_wildcard()));
        let mut kept: BTreeSet<Path> = BTreeSet::new();
        let mut wildcard: Option<&Path> = None;
        for path in by_prefix {
            if wildcard.is_some_and(|wildcard| wildcard.covers(path)) {
                continue;
            }
            if path.is_wildcard() {
                wildcard = Some(path);
            }
            kept.insert(path.clone());
        }
        Self(kept)
    }
}

/// Percent-encodes what CloudFront wants encoded, and nothing else.
fn encode(text: &str) -> Result<String, Problem> {
    let body = text.strip_suffix('*').unwrap_or(text);
    let mut encoded = String::with_capacity(text.len());
    let mut rest = body.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => return Err(Problem::MisplacedStar),
            '~' => return Err(Problem::Tilde),
            '%' => match escaped(rest.as_str()) {
                Some(b'~') => return Err(Problem::Tilde),
                Some(_) => encoded.push('%'),
                None => encoded.push_str("%25"),
            },
            character if character.is_control() => return Err(Problem::Control(character)),
            character if is_unsafe(character) => escape(character, &mut encoded),
            character => encoded.push(character),
        }
    }
    if body.len() < text.len() {
        encoded.push('*');
    }
    if encoded.len() > PATH_CHARS_MAX { Err(Problem::LongPath(encoded.len())) } else { Ok(encoded) }
}

/// The byte that the two digits after a `%` stand for; `None` if they are not two hexadecimal digits.
fn escaped(after_percent: &str) -> Option<u8> {
    let digits = after_percent.get(..2)?;
    if digits.bytes().all(|b| b.is_ascii_hexdigit()) { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The unsafe characters of RFC 1738 §2.2, and all that is not ASCII. The tilde and the percent sign have rules of
/// their own.
fn is_unsafe(character: char) -> bool {
    !character.is_ascii()
        || matches!(character, ' ' | '<' | '>' | '"' | '#' | '{' | '}' | '|' | '\\' | '^' | '[' | ']' | '`')
}

fn escape(character: char, encoded: &mut String) {
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a String cannot fail.
        let _ = write!(encoded, "%{byte:02X}");
    }
}

fn fold_tag(text: &str) -> Result<String, Problem> {
    let tag = text.strip_prefix('#').unwrap_or(text);
    if tag.is_empty() {
        return Err(Problem::Empty);
    }
    if let Some(character) = tag.chars().find(|c| !c.is_ascii_graphic() || *c == ',') {
        return Err(Problem::TagCharacter(character));
    }
    if tag.contains('*') {
        return Err(Problem::TagStar);
    }
    if tag.len() > TAG_CHARS_MAX { Err(Problem::LongTag(tag.len())) } else { Ok(text.to_ascii_lowercase()) }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

parsed!(Path, Error);

impl From<Vec<Path>> for PathSet {
    fn from(items: Vec<Path>) -> Self {
        items.into_iter().collect()
    }
}

impl From<PathSet> for Vec<Path> {
    fn from(set: PathSet) -> Self {
        set.0.into_iter().collect()
    }
}

/// The items with blanks between them: `/a/* /b #tag`.
impl fmt::Display for PathSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for path in &self.0 {
            write!(f, "{separator}{path}")?;
            separator = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

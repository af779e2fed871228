//! What to purge: paths and cache tags, in the form CloudFront accepts, and sets of them in normal form.
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
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest path in characters, after encoding (documented by CloudFront).
pub const PATH_CHARS_MAX: usize = 4_000;

/// Longest cache tag in characters, without its `#` (documented by CloudFront).
pub const TAG_CHARS_MAX: usize = 256;

/// Paths CloudFront processes at once for one distribution, by its documented default quota. More of them in one
/// configuration deserve a warning, not a refusal: quotas can be raised.
pub const PATHS_ADVISED_MAX: usize = 3_000;

/// Paths with a wildcard CloudFront processes at once for one distribution, by its documented default quota.
pub const WILDCARDS_ADVISED_MAX: usize = 15;

/// How much of a refused text an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// The path that covers everything.
const EVERYTHING: &str = "/*";

/// One item of a purge: a path (`/index.html`), all paths with a prefix (`/images/*`) or a cache tag (`#product:7`).
///
/// Percent-encoded the way CloudFront wants it. Ordered and serialised as its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path(Box<str>);

/// What to purge, in normal form: never empty, sorted, and without an item that another one covers.
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
    /// What is wrong, without the text, for those who show the text in their own way.
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
            .map_err(|problem| Error { text: text.chars().take(SHOWN_CHARS_MAX).collect(), problem })
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

    /// What is before the star.
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

    /// What to purge in a distribution that knows no cache tags: the paths, or everything where only tags were asked for.
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

/// What RFC 1738 §2.2 calls unsafe, and all that is not ASCII. The tilde and the percent sign have rules of their own.
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

impl FromStr for Path {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Path {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.0.into()
    }
}

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
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> PathSet {
        texts.iter().map(|text| Path::parse(text).unwrap()).collect()
    }

    fn problem(text: &str) -> String {
        Path::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn unsafe_characters_are_encoded_and_escapes_stay_as_they_are() {
        for (text, expected) in [
            ("/a b", "/a%20b"),
            ("/naïve", "/na%C3%AFve"),
            ("/test[1].html", "/test%5B1%5D.html"),
            ("/100%", "/100%25"),
            ("/%zz", "/%25zz"),
            ("/%c3%A9", "/%c3%A9"),
            ("/%41", "/%41"),
            ("/%2A", "/%2A"),
            ("/a#b", "/a%23b"),
            ("/i.jpg?size=1&x=@:;,$+!'()", "/i.jpg?size=1&x=@:;,$+!'()"),
            ("/%2*", "/%252*"),
            ("/%€", "/%25%E2%82%AC"),
        ] {
            assert_eq!(Path::parse(text).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        for (text, expected) in [
            ("", "empty"),
            ("#", "empty"),
            ("index.html", "starts with /"),
            ("*", "starts with /"),
            ("/a*/b", "last character"),
            ("/**", "last character"),
            ("/~user/*", "tilde"),
            ("/%7Euser", "tilde"),
            ("/%7euser", "tilde"),
            ("/a\nb", "control"),
            ("#a,b", "no comma"),
            ("#a b", "visible ASCII"),
            ("#é", "visible ASCII"),
            ("#a*", "no wildcard"),
        ] {
            assert!(problem(text).contains(expected), "{text:?}: {}", problem(text));
        }
        assert!(problem(&format!("/{}", "a".repeat(4_000))).contains("4001 characters"));
        assert!(problem(&format!("/{}", "é".repeat(1_000))).contains("6001 characters when encoded"));
        assert!(problem(&format!("#{}", "a".repeat(257))).contains("257 characters"));
        assert!(problem(&"é".repeat(100_000)).len() < 400);
    }

    #[test]
    fn the_longest_path_and_tag_are_accepted() {
        assert!(Path::parse(&format!("/{}", "a".repeat(3_999))).is_ok());
        assert!(Path::parse(&format!("#{}", "a".repeat(256))).is_ok());
    }

    #[test]
    fn a_set_is_sorted_and_has_nothing_twice() {
        let set = set(&["/b", "/a/*", "#Shop", "/a/x?q=1", "/a/b/*", "/b", "#shop"]);
        assert_eq!(set.to_string(), "#shop /a/* /b");
        assert_eq!((set.len(), set.wildcards(), set.has_tags()), (3, 1, true));
        assert_eq!(serde_json::to_string(&set).unwrap(), r##"["#shop","/a/*","/b"]"##);
    }

    #[test]
    fn everything_covers_paths_and_tags_alike() {
        assert_eq!(set(&["#shop", "/a", "/*"]), PathSet::default());
        assert!(PathSet::default().covers(&set(&["#shop", "/a/*"])));
    }

    #[test]
    fn a_directory_wildcard_does_not_cover_the_directory_itself() {
        assert!(!set(&["/a/*"]).covers(&set(&["/a"])));
        assert!(set(&["/a*"]).covers(&set(&["/a", "/a/*", "/ab"])));
        // '!' sorts before '*': the order of the texts alone would miss this.
        assert_eq!(set(&["/a", "/a!", "/a*"]).to_string(), "/a*");
    }

    #[test]
    fn nothing_named_means_everything() {
        assert_eq!(set(&[]), PathSet::default());
        assert_eq!(serde_json::from_str::<PathSet>("[]").unwrap(), PathSet::default());
        assert_eq!(PathSet::default().to_string(), "/*");
    }

    #[test]
    fn where_tags_mean_nothing_everything_is_purged_instead() {
        assert_eq!(set(&["#shop", "#cart"]).without_tags(), PathSet::default());
        assert_eq!(set(&["#shop", "/a"]).without_tags(), set(&["/a"]));
        assert_eq!(set(&["/a"]).without_tags(), set(&["/a"]));
    }

    #[test]
    fn a_stored_path_is_checked_again() {
        assert!(serde_json::from_str::<PathSet>(r#"["/a", "b"]"#).is_err());
    }
}

//! What the headers of an answer say of how it is cached, as far as that matters for a purge.
//!
//! A purge empties CloudFront. What browsers keep, it does not reach; what was never kept, it does not change; and what never changes, it
//! throws away for nothing. An answer says which of these it is. Each finding has a sentence on what was seen, one on why that matters for
//! a purge, and one on what to do. The directives are those of RFC 9111 (5.2.2), RFC 5861 (3, 4) and RFC 8246; what CloudFront makes of them:
//! <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/Expiration.html>.
//!
//! Not for whether an answer is fresh; that is [`crate::age`]. Nor for asking.

use std::collections::BTreeMap;
use std::fmt;

use crate::age;
use crate::asked::{Answer, Headers};
use kernel::names::paths::Path;
use kernel::text;

/// From here on what has a hash in its name counts as one that never changes, in seconds: 30 days. Build tools advise a year.
const FOR_GOOD_S: u64 = 30 * 24 * 60 * 60;

/// Characters of the shortest hash in a name: build tools write eight and more.
const HASH_CHARS_MIN: usize = 8;

/// Most assets that are taken from one page.
pub const LINKED_MAX: usize = 4;

/// Bytes of a header's name in a sentence.
const NAME_BYTES_MAX: usize = 60;

/// Endings of what pages load and that is often made with a hash in its name.
const ASSETS: [&str; 12] = ["avif", "css", "gif", "jpeg", "jpg", "js", "mjs", "png", "svg", "webp", "woff", "woff2"];

/// Headers that browsers send with nearly as many values as there are visitors.
const PERSONAL: [&str; 3] = ["authorization", "cookie", "user-agent"];

/// One thing about how an answer is cached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// It did not come through CloudFront.
    NotCloudFront,
    /// Browsers keep a page for so many seconds.
    BrowserKeeps(u64),
    /// An error is kept at the edge.
    ErrorKept(u16),
    /// An answer is kept together with a cookie.
    CookieKept,
    /// It is to carry cache tags in this header, and does not.
    Untagged(String),
    /// It never changes.
    NeverChanges,
    /// What has expired may be served for so many seconds more.
    StaleServed(u64),
    /// It says that nobody may keep it, and the edge does not.
    NeverKept,
    /// It says that only browsers may keep it, and the edge does not.
    Private,
    /// It says that the edge may not keep it, and the edge does.
    KeptAllTheSame,
    /// `Vary: *`.
    VariesByAll,
    /// It is another one for each value of this header.
    VariesBy(String),
}

impl Found {
    /// Its word in tables.
    pub const fn id(&self) -> &'static str {
        match self {
            Self::NotCloudFront => "not-cloudfront",
            Self::BrowserKeeps(_) => "browser-keeps",
            Self::ErrorKept(_) => "error-kept",
            Self::CookieKept => "cookie-kept",
            Self::Untagged(_) => "untagged",
            Self::NeverChanges => "never-changes",
            Self::StaleServed(_) => "stale-served",
            Self::NeverKept => "never-kept",
            Self::Private => "private",
            Self::KeptAllTheSame => "kept-all-the-same",
            Self::VariesByAll => "varies-by-all",
            Self::VariesBy(_) => "varies-by",
        }
    }

    /// Why it matters for a purge.
    pub const fn why(&self) -> &'static str {
        match self {
            Self::NotCloudFront => "a purge of CloudFront does not reach who answers here",
            Self::BrowserKeeps(_) => "no purge reaches a browser: visitors see the old page until then",
            Self::ErrorKept(_) => "after a purge the edge may fetch an error and keep it",
            Self::CookieKept => "what one visitor's answer sets, all others get until the next purge",
            Self::Untagged(_) => "a purge by tag does not remove it",
            Self::NeverChanges => "a purge of /* throws it away, and all visitors load the same again",
            Self::StaleServed(_) => "browsers and caches before CloudFront may show the old answer after a purge",
            Self::NeverKept | Self::Private => "there is nothing at the edge to purge",
            Self::KeptAllTheSame => {
                "a purge is the only way to remove it before the distribution's minimum TTL is over"
            }
            Self::VariesByAll => "no answer may be used twice, so a purge changes nothing",
            Self::VariesBy(_) => "a look after a purge sees one of the answers, and says nothing of the others",
        }
    }

    /// What to do about it.
    pub const fn cure(&self) -> &'static str {
        match self {
            Self::NotCloudFront => "check where the name leads in DNS, and what stands before CloudFront",
            Self::BrowserKeeps(_) => {
                "send Cache-Control: max-age=0, s-maxage=… with pages: browsers ask again, and the edge keeps them"
            }
            Self::ErrorKept(_) => {
                "send Cache-Control: no-store with errors, and set the error caching minimum TTL of the distribution to 0"
            }
            Self::CookieKept => {
                "set cookies only in answers with Cache-Control: no-store, or do not cache answers that set one"
            }
            Self::Untagged(_) => "send the header with every answer, or purge by paths",
            Self::NeverChanges => {
                "purge the paths of pages alone: purge.paths, or allclear.dev/paths; \"routes\" leaves out what others serve"
            }
            Self::StaleServed(_) => "shorten it to what visitors may see after a release, or leave it out for pages",
            Self::NeverKept => {
                "where it may be kept, send s-maxage; where all pages of the workload are so, take it out by \
                 allclear.dev/enabled: \"false\""
            }
            Self::Private => "where it is the same for all visitors, send s-maxage in place of private",
            Self::KeptAllTheSame => "set the minimum TTL of its cache policy to 0",
            Self::VariesByAll => "name the headers that the answer depends on",
            Self::VariesBy(_) => "leave the header out of Vary where the answer does not depend on it",
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCloudFront => f.write_str("the answer does not come from CloudFront"),
            Self::BrowserKeeps(seconds) => write!(f, "browsers keep the page for {}", for_so_long(*seconds)),
            Self::ErrorKept(status) => write!(f, "the edge keeps an answer of {status}"),
            Self::CookieKept => f.write_str("the edge keeps an answer that sets a cookie"),
            Self::Untagged(header) => {
                write!(f, "the answer comes without the header {header} that is to carry its tags")
            }
            Self::NeverChanges => f.write_str("the answer is one that never changes"),
            Self::StaleServed(seconds) => {
                write!(f, "what has expired may be served for {} more", for_so_long(*seconds))
            }
            Self::NeverKept => f.write_str("nobody may keep the answer (no-store)"),
            Self::Private => f.write_str("only browsers may keep the answer (private)"),
            Self::KeptAllTheSame => f.write_str("the edge keeps an answer that it was told not to keep"),
            Self::VariesByAll => f.write_str("the answer depends on everything (Vary: *)"),
            Self::VariesBy(header) => write!(f, "the answer is another one for each value of {header} (Vary)"),
        }
    }
}

/// What one answer says. `tags` is the header in which it is to carry cache tags, in lower case. Sorted, each once.
#[must_use]
pub fn found(answer: &Answer, tags: Option<&str>) -> Vec<Found> {
    if !age::is_of_cloudfront(answer) {
        return vec![Found::NotCloudFront];
    }
    let headers = &answer.headers;
    let (told, is_hit) = (Told::of(headers), is_kept(answer));
    let is_error = answer.status >= 400;
    let is_page = (200..300).contains(&answer.status);
    let mut all = Vec::new();
    let mut note = |so: bool, found: Found| {
        if so {
            all.push(found);
        }
    };
    note(is_error && is_hit, Found::ErrorKept(answer.status));
    note(is_hit && !headers.all("set-cookie").is_empty(), Found::CookieKept);
    note(is_hit && (told.no_store || told.private), Found::KeptAllTheSame);
    note(!is_error && !is_hit && told.no_store, Found::NeverKept);
    note(!is_error && !is_hit && told.private && !told.no_store, Found::Private);
    if is_page {
        let keeps = told.max_age.unwrap_or_default();
        let is_for_good = told.immutable || keeps >= FOR_GOOD_S && has_hash(&answer.path);
        let asks_always = told.no_store || told.no_cache;
        note(is_html(headers) && keeps > 0 && !asks_always, Found::BrowserKeeps(keeps));
        note(!is_html(headers) && is_for_good && !asks_always && !told.private, Found::NeverChanges);
        let stale = told.stale.filter(|seconds| *seconds > 0 && !told.no_store);
        note(stale.is_some(), Found::StaleServed(stale.unwrap_or_default()));
        let untagged = tags.filter(|tags| headers.all(tags).is_empty());
        note(untagged.is_some(), Found::Untagged(text::clean(untagged.unwrap_or_default(), NAME_BYTES_MAX)));
    }
    let varies = members(headers.all("vary"));
    note(varies.iter().any(|name| name == "*"), Found::VariesByAll);
    for name in PERSONAL {
        note(varies.iter().any(|one| one == name), Found::VariesBy(name.to_owned()));
    }
    all.sort();
    all
}

/// Whether the edge had the answer already, or a part of it that it asked for again.
fn is_kept(answer: &Answer) -> bool {
    let has_age = answer.headers.only("age").is_some_and(|age| age.parse::<u64>().is_ok_and(|age| age > 0));
    let said = members(answer.headers.all("x-cache"));
    has_age || said.iter().any(|one| one.starts_with("hit") || one.starts_with("refreshhit"))
}

fn is_html(headers: &Headers) -> bool {
    let kind = headers.only("content-type").unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("text/html") || kind.starts_with("application/xhtml")
}

/// Whether the name of a file has a part that looks like a hash: `app.3f2a9c1b.js`. Only then is a new version another file.
fn has_hash(path: &str) -> bool {
    let file = path.split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    file.split(['.', '-', '_']).any(|part| {
        let has = |is: fn(&char) -> bool| part.chars().any(|one| is(&one));
        part.len() >= HASH_CHARS_MIN
            && part.chars().all(|one| one.is_ascii_alphanumeric())
            && has(char::is_ascii_digit)
            && has(char::is_ascii_alphabetic)
    })
}

/// What Cache-Control says.
#[derive(Default)]
struct Told {
    no_store: bool,
    no_cache: bool,
    private: bool,
    immutable: bool,
    max_age: Option<u64>,
    /// The longer of `stale-while-revalidate` and `stale-if-error`.
    stale: Option<u64>,
}

impl Told {
    /// Names are compared in any case, a value may stand in quotes, and of two values the first counts (RFC 9111, 5.2 and 4.2.1).
    /// With a value, `no-cache` and `private` are about some headers, and not about the answer (5.2.2.4, 5.2.2.7).
    fn of(headers: &Headers) -> Self {
        let mut named: BTreeMap<String, String> = BTreeMap::new();
        for directive in members(headers.all("cache-control")) {
            let (name, value) = directive.split_once('=').unwrap_or((&directive, ""));
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            if value.is_empty() || !matches!(name, "no-cache" | "private") {
                named.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        let has = |name: &str| named.contains_key(name);
        let seconds = |name: &str| named.get(name).and_then(|value| value.parse().ok());
        Self {
            no_store: has("no-store"),
            no_cache: has("no-cache"),
            private: has("private"),
            immutable: has("immutable"),
            max_age: seconds("max-age"),
            stale: seconds("stale-while-revalidate").max(seconds("stale-if-error")),
        }
    }
}

/// The members of a list, in lower case.
fn members(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|value| value.split(','));
    parts.map(|part| part.trim().to_ascii_lowercase()).filter(|part| !part.is_empty()).collect()
}

fn for_so_long(seconds: u64) -> String {
    text::duration(std::time::Duration::from_secs(seconds))
}

/// The first assets of its own host that a page links to, [`LINKED_MAX`] at most: values of `src` and `href` that begin with one slash and
/// end as scripts, styles, pictures and fonts do. It finds what tools write, and is no parser of HTML.
#[must_use]
pub fn linked(html: &str) -> Vec<Path> {
    let mut found: Vec<Path> = Vec::new();
    let lower = html.to_ascii_lowercase();
    for at in lower.match_indices(['s', 'h']).map(|(at, _)| at) {
        let rest = lower.get(at..).unwrap_or_default();
        let Some(name) = ["src=", "href="].into_iter().find(|name| rest.starts_with(name)) else { continue };
        let value = html.get(at.saturating_add(name.len())..).unwrap_or_default();
        let Some(quote) = value.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        let Some(link) = value.get(1..).and_then(|value| value.split(quote).next()) else { continue };
        let plain = link.split(['?', '#']).next().unwrap_or_default();
        let is_asset =
            plain.rsplit_once('.').is_some_and(|(_, end)| ASSETS.contains(&end.to_ascii_lowercase().as_str()));
        let is_here = link.starts_with('/') && !link.starts_with("//") && !link.contains('*');
        let path = Path::parse(link.split('#').next().unwrap_or_default()).ok().filter(|_| is_asset && is_here);
        found.extend(path.filter(|path| !found.contains(path)));
        if found.len() == LINKED_MAX {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests;

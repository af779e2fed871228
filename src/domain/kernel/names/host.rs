//! A host: one DNS name, or one wildcard over DNS names, validated and lower-cased once.
//!
//! Three systems write wildcards the same way and mean different things, so a host says which one it means:
//!
//! | text              | covers                                   | written by                   |
//! |-------------------|------------------------------------------|------------------------------|
//! | `www.example.com` | that name                                | all of these                 |
//! | `*.example.com`   | one label more: `a.example.com`          | Kubernetes Ingress           |
//! | `**.example.com`  | one label or more: `b.a.example.com` too | Gateway API, CloudFront, DNS |
//!
//! All of them write a single star. A reader of texts of the last kind says so with [`Host::at_any_depth`].
//!
//! No form covers the apex `example.com`. The difference is part of the text, so that it survives a vote and a ledger.
//!
//! Not for: addresses, ports, internationalised names in Unicode (write the `xn--` form), or deciding which
//! distribution serves a host (that is [`crate::names::distribution`]).

use std::fmt;

use crate::parsed::parsed;
use crate::text;

/// Longest host in characters, the star included. RFC 1035 §2.3.4 allows 255 octets on the wire, which is 253 as text.
pub const HOST_CHARS_MAX: usize = 253;

/// Longest label in characters (RFC 1035 §2.3.4).
pub const LABEL_CHARS_MAX: usize = 63;

/// How much of a refused text an error repeats: enough to find it, not enough to flood an event (1,024 bytes).
const SHOWN_CHARS_MAX: usize = 80;

/// A DNS name or a wildcard over DNS names: lower case, no trailing dot, never an address.
///
/// Ordered and serialised as its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Box<str>);

/// Why a text is not a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{text:?} is not a host name: {problem}")]
pub struct Error {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
enum Problem {
    #[error("it is empty")]
    Empty,
    #[error("it has {0} characters, the most is {HOST_CHARS_MAX}")]
    TooLong(usize),
    #[error("{0:?} is not ASCII; write an international name in its xn-- form")]
    NotAscii(char),
    #[error("a host has no scheme, port or path")]
    Url,
    #[error("a star may only be the whole first label, as in *.example.com")]
    MisplacedStar,
    #[error("a star needs a domain after it, as in *.example.com")]
    BareStar,
    #[error("it has an empty label (two dots in a row, or one at the start)")]
    EmptyLabel,
    #[error("label {0:?} has {len} characters, the most is {LABEL_CHARS_MAX}", len = .0.len())]
    LongLabel(String),
    #[error("label {0:?} starts or ends with a hyphen")]
    EdgeHyphen(String),
    #[error("{0:?} may not be in a host name")]
    BadCharacter(char),
    #[error("it is an IP address")]
    Address,
}

/// Which names a wildcard covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// Exactly one label in place of the star.
    One,
    /// One label or more in place of the star.
    Any,
}

impl Host {
    /// Parses `www.example.com`, `*.example.com` or `**.example.com`. White space around it and one trailing dot are
    /// dropped, letters become lower case. Underscores are allowed, because DNS allows them and origins have them.
    ///
    /// # Errors
    /// Everything else, with the text (shortened) and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        check(text.strip_suffix('.').unwrap_or(text))
            .map(|name| Self(name.to_ascii_lowercase().into_boxed_str()))
            .map_err(|problem| Error { text: text::first(text, SHOWN_CHARS_MAX).to_owned(), problem })
    }

    /// The whole text, stars included.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its stars: `example.com` for `*.example.com`, and the name itself if it is no wildcard.
    #[must_use]
    pub fn domain(&self) -> &str {
        split_star(&self.0).1
    }

    /// How deep the wildcard goes; `None` for a plain name.
    #[must_use]
    pub fn depth(&self) -> Option<Depth> {
        split_star(&self.0).0
    }

    /// Whether this is a wildcard of either kind.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.depth().is_some()
    }

    /// Whether this is a wildcard over names of many owners, such as `*.com` or `*.co.uk`: its domain is a public suffix
    /// (<https://publicsuffix.org>), beneath which anyone can have a name.
    #[must_use]
    pub fn is_of_many_owners(&self) -> bool {
        self.is_wildcard() && psl::domain(self.domain().as_bytes()).is_none()
    }

    /// The same host, its wildcard (if any) covering any depth. For texts whose writer means that by a single star:
    /// Gateway API, CloudFront, DNS records.
    #[must_use]
    pub fn at_any_depth(self) -> Self {
        match self.depth() {
            // A host of 253 characters grows by one here. That is harmless: nothing sends a host back to DNS.
            Some(Depth::One) => Self(format!("**.{}", self.domain()).into_boxed_str()),
            Some(Depth::Any) | None => self,
        }
    }

    /// Whether every name `other` stands for is also one of this host's. Reflexive and transitive.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let Some(depth) = self.depth() else { return self == other };
        let beneath = labels_beneath(other.domain(), self.domain());
        match (depth, other.depth(), beneath) {
            (_, _, None) => false,
            (Depth::One, None, Some(labels)) => labels == 1,
            (Depth::One, Some(Depth::One), Some(labels)) => labels == 0,
            (Depth::One, Some(Depth::Any), Some(_)) => false,
            (Depth::Any, None, Some(labels)) => labels >= 1,
            (Depth::Any, Some(_), Some(_)) => true,
        }
    }

    /// The wildcards that cover it, but for itself: one for each domain above it, at most 127, and one for the star's own label.
    pub fn wildcards_above(&self) -> impl Iterator<Item = Self> {
        let domain = self.domain();
        let parent = |domain: &'_ str| domain.split_once('.').map_or("", |(_, parent)| parent).to_owned();
        let one = self.depth().is_none().then(|| format!("*.{}", parent(domain)));
        let first = if self.depth() == Some(Depth::One) { domain.to_owned() } else { parent(domain) };
        let above = std::iter::successors(Some(first), move |domain| Some(parent(domain)));
        let any = above.take_while(|domain| !domain.is_empty()).map(|domain| format!("**.{domain}"));
        one.into_iter().filter(|text| text != "*.").chain(any).map(|text| Self(text.into_boxed_str()))
    }

    /// Whether some name is both of this host and of `other`. Names are trees: two hosts that meet are one within the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }

    /// The names that are both of this host and of `other`.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.covers(other) { Some(other.clone()) } else { other.covers(self).then(|| self.clone()) }
    }
}

/// How many labels `name` has in front of `domain`; `None` if it is not `domain` or beneath it.
fn labels_beneath(name: &str, domain: &str) -> Option<usize> {
    let front = name.strip_suffix(domain)?;
    if front.is_empty() {
        return Some(0);
    }
    front.strip_suffix('.').map(|labels| labels.split('.').count())
}

fn split_star(text: &str) -> (Option<Depth>, &str) {
    if let Some(domain) = text.strip_prefix("**.") {
        (Some(Depth::Any), domain)
    } else if let Some(domain) = text.strip_prefix("*.") {
        (Some(Depth::One), domain)
    } else {
        (None, text)
    }
}

fn check(text: &str) -> Result<&str, Problem> {
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    if let Some(character) = text.chars().find(|c| !c.is_ascii()) {
        return Err(Problem::NotAscii(character));
    }
    let (depth, domain) = split_star(text);
    // Measured without the stars' second one, so that `at_any_depth` of a valid host is valid.
    let length = domain.len() + depth.map_or(0, |_| "*.".len());
    if length > HOST_CHARS_MAX {
        return Err(Problem::TooLong(length));
    }
    if domain.is_empty() || domain == "*" || domain == "**" {
        return Err(Problem::BareStar);
    }
    if domain.contains('*') {
        return Err(Problem::MisplacedStar);
    }
    if domain.contains(['/', ':', '[', '@']) {
        return Err(Problem::Url);
    }
    domain.split('.').try_for_each(check_label)?;
    // No top-level domain is a number (RFC 3696 §2), so a name that ends in one is an IPv4 address, or a typing error.
    let numeric = domain.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if numeric { Err(Problem::Address) } else { Ok(text) }
}

fn check_label(label: &str) -> Result<(), Problem> {
    if label.is_empty() {
        return Err(Problem::EmptyLabel);
    }
    if label.len() > LABEL_CHARS_MAX {
        return Err(Problem::LongLabel(text::first(label, SHOWN_CHARS_MAX).to_owned()));
    }
    if let Some(character) = label.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))) {
        return Err(Problem::BadCharacter(character));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(Problem::EdgeHyphen(label.to_owned()));
    }
    Ok(())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

parsed!(Host, Error);

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn problem(text: &str) -> String {
        Host::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_widest_wildcard_is_that_of_a_domain_somebody_can_register() {
        let wide = |text: &str| Host::parse(text).unwrap().is_of_many_owners();
        for text in ["*.com", "**.co.uk", "*.github.io", "*.local", "*.cloudfront.net", "*.eu-west-1.elb.amazonaws.com"]
        {
            assert!(wide(text), "{text}");
        }
        for text in ["*.example.com", "**.example.co.uk", "*.shop.local", "com", "www.example.com"] {
            assert!(!wide(text), "{text}");
        }
    }

    #[test]
    fn a_host_is_lower_cased_trimmed_and_loses_its_trailing_dot() {
        assert_eq!(host(" Shop.Example.COM. ").as_str(), "shop.example.com");
        assert_eq!(host("_dmarc.example.com").as_str(), "_dmarc.example.com");
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        for (text, expected) in [
            ("", "empty"),
            (".", "empty"),
            ("bücher.example", "xn--"),
            ("https://example.com", "no scheme"),
            ("example.com:443", "port"),
            ("*", "needs a domain"),
            ("*.", "needs a domain"),
            ("*.*", "needs a domain"),
            ("***.example.com", "whole first label"),
            ("www.*.com", "whole first label"),
            ("*shop.example.com", "whole first label"),
            ("a..b", "empty label"),
            ("-a.example.com", "hyphen"),
            ("a b.example.com", "may not be"),
            ("10.0.0.1", "IP address"),
            ("[::1]", "no scheme"),
        ] {
            assert!(problem(text).contains(expected), "{text:?}: {}", problem(text));
        }
        assert!(problem(&format!("{}.com", "a".repeat(64))).contains("the most is 63"));
        assert!(problem(&vec!["abc"; 64].join(".")).contains("the most is 253"));
    }

    #[test]
    fn a_refusal_never_repeats_a_very_long_text() {
        assert!(problem(&"x".repeat(100_000)).len() < 300);
        assert!(problem(&"é".repeat(100_000)).len() < 300);
    }

    #[test]
    fn an_ingress_wildcard_covers_one_label_and_a_deep_one_any_number() {
        let one = host("*.example.com");
        let any = host("*.example.com").at_any_depth();
        assert_eq!(any.as_str(), "**.example.com");
        assert!(one.covers(&host("a.example.com")) && any.covers(&host("a.example.com")));
        assert!(!one.covers(&host("b.a.example.com")) && any.covers(&host("b.a.example.com")));
        assert!(any.covers(&one) && !one.covers(&any));
        assert!(any.covers(&host("*.a.example.com")) && !one.covers(&host("*.a.example.com")));
    }

    #[test]
    fn a_wildcard_never_covers_the_apex_or_a_name_that_only_ends_alike() {
        for wildcard in [host("*.example.com"), host("**.example.com")] {
            assert!(!wildcard.covers(&host("example.com")));
            assert!(!wildcard.covers(&host("badexample.com")));
        }
    }

    #[test]
    fn the_wildcards_above_a_host_are_all_that_cover_it() {
        let names = ["a.b.c", "b.c", "c", "x.b.c", "a.c"];
        let hosts = names.iter().flat_map(|name| [host(name), host(&format!("*.{name}")), host(&format!("**.{name}"))]);
        let hosts: Vec<Host> = hosts.collect();
        for one in &hosts {
            let above: Vec<Host> = one.wildcards_above().collect();
            assert!(above.iter().all(|wildcard| wildcard.covers(one) && wildcard != one), "{one}: {above:?}");
            assert!(
                hosts.iter().filter(|wide| wide.covers(one) && *wide != one).all(|wide| above.contains(wide)),
                "{one}"
            );
        }
    }

    #[test]
    fn a_plain_host_covers_only_itself() {
        assert!(host("a.example.com").covers(&host("A.example.com")));
        assert!(!host("a.example.com").covers(&host("b.a.example.com")));
        assert!(!host("a.example.com").covers(&host("*.a.example.com")));
    }
}

//! Keeps secrets out of sight: a wrapper for what is secret by nature, and one rule for showing any other text.
//!
//! The rule goes by shape and not by key, so a password put into the wrong key is masked as well: what stands before an `@`,
//! and what looks like a token. A bare word in a value that is in effect is shown. What was refused may be anything, so it
//! is shown only where it can be no secret ([`harmless`]).

use std::fmt;

use config::ValueKind;
use serde::{Serialize, Serializer};

use kernel::text::{first, visible};

/// What is shown instead of a secret.
pub const MASK: &str = "•••";

/// Characters of a value that are shown at most, so that a pasted file does not fill the terminal.
const SHOWN_CHARS_MAX: usize = 120;

/// Letters and digits in a row from which on they are taken for a token if both occur. Names in Kubernetes have shorter
/// runs (the hash of a ReplicaSet has 10), tokens longer ones.
const TOKEN_CHARS_MIN: usize = 20;

/// Characters of an AWS secret access key
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html>); it may have `/` and `+` in it.
const AWS_KEY_CHARS: usize = 40;

/// What credentials begin with: AWS key ids, tokens of GitHub, GitLab, Slack, Stripe and Google, Standard Webhooks, JWT.
const PREFIXES: [&str; 16] = [
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "sk_live_",
    "rk_live_",
    "AIza",
    "whsec_",
    "eyJ",
];

/// A value that is never printed: `Debug`, `Display` and `Serialize` all give [`MASK`].
///
/// It is not wiped on drop: configuration lives as long as the process, and its source (environment, file) stays
/// readable to anyone who can read our memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the one place that needs it. Search for this name to find every such place.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// A value that is safe to show: what stands before an `@`, in a query or in a fragment is masked, control characters
/// are escaped, and the rest is cut to a line.
pub fn shown(text: &str) -> String {
    let masked = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => format!("{scheme}://{}", masked_authority(rest)),
        _ => match text.rsplit_once('@') {
            Some((_, after)) => format!("{MASK}@{after}"),
            None => text.to_owned(),
        },
    };
    shortened(&without_tokens(&masked))
}

/// A value as it may be shown, in JSON.
pub(super) fn masked(value: &ValueKind) -> serde_json::Value {
    json_of(value, shown)
}

/// A value as JSON, each text as `text` has it.
pub(super) fn json_of(value: &ValueKind, text: fn(&str) -> String) -> serde_json::Value {
    match value {
        ValueKind::Boolean(value) => serde_json::json!(value),
        ValueKind::I64(number) => serde_json::json!(number),
        ValueKind::Float(number) => serde_json::json!(number),
        ValueKind::Array(items) => items.iter().map(|item| json_of(&item.kind, text)).collect(),
        ValueKind::String(value) => serde_json::json!(text(value)),
        ValueKind::Table(entries) => {
            entries.iter().map(|(name, value)| (name.clone(), json_of(&value.kind, text))).collect()
        }
        ValueKind::Nil | ValueKind::I128(_) | ValueKind::U64(_) | ValueKind::U128(_) => serde_json::Value::Null,
    }
}

/// A refused value, if it can be no secret: a short number, perhaps with a unit.
pub(super) fn harmless(value: &str) -> Option<String> {
    const CHARS_MAX: usize = 6;
    let (number, unit) = value.split_at(value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len()));
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let is_unit = unit.len() <= 2 && unit.chars().all(|c| c.is_ascii_lowercase());
    (value.len() <= CHARS_MAX && is_number && is_unit).then(|| value.to_owned())
}

/// A text without what looks like a token: a known beginning, a PEM block, or a long run of letters and digits.
fn without_tokens(text: &str) -> String {
    if text.contains("-----BEGIN") {
        return MASK.to_owned();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '-' | '.' | '~' | '/' | '%');
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        shown.push_str(before);
        shown.push_str(if looks_secret(word) { MASK } else { word });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

fn looks_secret(word: &str) -> bool {
    let has = |part: &str, is: fn(&char) -> bool| part.chars().any(|c| is(&c));
    let is_mixed = |part: &str| has(part, char::is_ascii_digit) && has(part, char::is_ascii_alphabetic);
    let is_aws_key = |part: &str| {
        part.len() == AWS_KEY_CHARS
            && is_mixed(part)
            && has(part, char::is_ascii_uppercase)
            && has(part, char::is_ascii_lowercase)
    };
    // Eight characters after a known beginning are enough: no name of ours begins so.
    let is_known =
        |part: &str| PREFIXES.iter().any(|prefix| part.len() >= prefix.len() + 8 && part.starts_with(prefix));
    let mut runs = word.split(['-', '_', '.', '/', '~', '%']);
    is_known(word)
        || word.split(['/', '.']).any(is_known)
        || is_aws_key(word)
        || is_aws_key(word.trim_matches(['-', '_', '.', '~', '%', '/']))
        || word.split('/').any(is_uuid)
        || runs.any(|run| run.len() >= TOKEN_CHARS_MIN && is_mixed(run))
}

/// Many tokens are UUIDs, and nothing that is configured here is one.
fn is_uuid(word: &str) -> bool {
    let lengths = word.split('-').map(|part| (part.len(), part.chars().all(|c| c.is_ascii_hexdigit())));
    lengths.eq([8, 4, 4, 4, 12].map(|length| (length, true)))
}

/// One item of a longer text, such as a comma list. When the whole holds an `@`, an item without one may be the first
/// half of a password with a comma in it, so nothing of it is shown, unless every item is an address by itself.
pub fn shown_item(item: &str, whole: &str) -> String {
    let may_be_half = whole.contains('@') && !item.contains('@');
    if may_be_half && !whole.split(',').all(|item| is_address(item.trim())) { MASK.to_owned() } else { shown(item) }
}

/// Whether a text is an address, with a user and a password or without: what follows the comma of a password is none.
fn is_address(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let server = match rest.rsplit_once('@') {
        Some(_) if scheme.is_empty() => return false,
        Some((_, server)) => server,
        None => rest,
    };
    let server = server.split_once('/').map_or(server, |(server, _)| server);
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => (server, "0"),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok()
}

/// What follows `://`. The last `@` counts, because people forget to escape one in a password.
fn masked_authority(rest: &str) -> String {
    let (secret, public) = match rest.rsplit_once('@') {
        Some((_, public)) => (format!("{MASK}@"), public),
        None => (String::new(), rest),
    };
    match public.find(['?', '#']) {
        Some(end) => format!("{secret}{}?{MASK}", public.get(..end).unwrap_or_default()),
        None => format!("{secret}{public}"),
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn shortened(text: &str) -> String {
    let shown = first(text, SHOWN_CHARS_MAX);
    let more = if shown == text { "" } else { "…" };
    format!("{}{more}", visible(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints_itself() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret} {secret:?}"), "••• •••");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"•••\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn everything_before_the_last_at_sign_is_masked() {
        assert_eq!(shown("redis://user:pa@ss@cache:6379/2"), "redis://•••@cache:6379/2");
        assert_eq!(shown("user:pass@cache"), "•••@cache");
    }

    #[test]
    fn queries_and_fragments_are_masked() {
        assert_eq!(shown("https://hooks.example.com/a?token=t"), "https://hooks.example.com/a?•••");
        assert_eq!(shown("rediss://cache/#t"), "rediss://cache/?•••");
    }

    #[test]
    fn what_looks_like_a_token_is_masked_wherever_it_stands() {
        for secret in [
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
        ] {
            for text in [secret.to_owned(), format!("/{secret}"), format!("a={secret}, b"), format!("cache:{secret}")] {
                let shown = shown(&text);
                assert!(shown.contains(MASK) && !shown.contains(&secret[..secret.len() / 2]), "{text}: {shown}");
            }
        }
    }

    #[test]
    fn names_and_paths_are_not_taken_for_tokens() {
        for plain in [
            "allclear-7d9f8b6c5d-x2x4z",
            "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
            "master.my-redis.abc123.use1.cache.amazonaws.com:6379",
            "arn:aws:iam::123456789012:role/allclear",
            "info,allclear::adapters=debug",
            "0s, 5s, 5m, 30m",
        ] {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn a_refused_value_is_shown_only_where_it_can_be_no_secret() {
        for plain in ["0", "900", "0s", "10ms", "-1", "2.5"] {
            assert_eq!(harmless(plain).as_deref(), Some(plain));
        }
        for secret in ["", "hunter2", "8675309", "s3cret", "cache:5", "1a2b", "12AB", "é"] {
            assert_eq!(harmless(secret), None, "{secret}");
        }
    }

    #[test]
    fn plain_text_is_shown_on_one_line_and_cut() {
        assert_eq!(shown("15m"), "15m");
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), SHOWN_CHARS_MAX + 1);
    }

    #[test]
    fn half_a_password_in_a_comma_list_is_not_shown() {
        assert_eq!(shown_item("redis://:hun", "redis://:hun,ter@cache"), "•••");
        assert_eq!(shown_item("cache-a", "cache-a,cache-b"), "cache-a");
        // A number is taken for a port; what follows it is no address.
        assert_eq!(shown_item("redis://me:123", "redis://me:123,45@cache"), "•••");
        assert_eq!(shown_item("ter", "redis://me:hun,ter,x@cache"), "•••");
    }

    #[test]
    fn addresses_without_a_password_are_shown_beside_one_that_has_it() {
        let whole = "redis.eu-2:6379,rediss://me:secret@redis.us-1:6380/2,[::1]:7000,cache__6379";
        for plain in ["redis.eu-2:6379", "[::1]:7000", "cache__6379"] {
            assert_eq!(shown_item(plain, whole), plain);
        }
        assert_eq!(shown_item("rediss://me:secret@redis.us-1:6380/2", whole), "rediss://•••@redis.us-1:6380/2");
    }
}

//! Keeps secrets out of sight: a wrapper for what is secret by nature, and one rule for showing any other text.
//!
//! The rule goes by shape and not by key, so a password put into the wrong key is masked as well. It is not a guess
//! at what looks random: a bare word in a key that holds no secrets is shown.

use std::fmt;

use serde::{Serialize, Serializer};

/// What is shown instead of a secret.
pub const MASK: &str = "•••";

/// Characters of a value that are shown at most, so that a pasted file does not fill the terminal.
const SHOWN_CHARS_MAX: usize = 120;

/// A value that is never printed: `Debug`, `Display` and `Serialize` all give [`MASK`].
///
/// It is not wiped on drop: configuration lives as long as the process, and its source (environment, file) stays
/// readable to whoever can read our memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
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

/// A value as it may be shown to anybody: what stands before an `@`, in a query or in a fragment is masked, control
/// characters are escaped, and the rest is cut to a line.
pub fn shown(text: &str) -> String {
    let masked = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => format!("{scheme}://{}", masked_authority(rest)),
        _ => match text.rsplit_once('@') {
            Some((_, after)) => format!("{MASK}@{after}"),
            None => text.to_owned(),
        },
    };
    shortened(&masked)
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
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
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

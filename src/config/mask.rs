//! Keeps secrets out of sight: a wrapper for what is secret by nature, and what of any other value is shown.
//!
//! A value that is in effect is shown by the rule of [`kernel::mask`], whatever its key. What was refused may be anything, so it is
//! shown only where it can be no secret ([`harmless`]).

use std::fmt;

use config::ValueKind;
use serde::{Serialize, Serializer};

use kernel::mask::{MASK, shown};

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
    fn a_refused_value_is_shown_only_where_it_can_be_no_secret() {
        for plain in ["0", "900", "0s", "10ms", "-1", "2.5"] {
            assert_eq!(harmless(plain).as_deref(), Some(plain));
        }
        for secret in ["", "hunter2", "8675309", "s3cret", "cache:5", "1a2b", "12AB", "é"] {
            assert_eq!(harmless(secret), None, "{secret}");
        }
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

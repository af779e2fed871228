//! Words that the pages of all kinds have in common.

use crate::looking::page::stamp;
use objects::status::{ConditionView, HISTORY_MAX};

/// `Ready, Applied since …: …`.
pub(super) fn condition(one: &ConditionView, now_ms: Option<i64>) -> String {
    let holds = match one.holds {
        Some(true) => "",
        Some(false) => "not ",
        None => "not known to be ",
    };
    format!("{holds}{}, {} since {}: {}", one.kind, one.reason, stamp(one.since_ms, now_ms), one.message)
}

/// Who said yes, and when.
pub(super) fn approved((by, at_ms): &(String, i64), now_ms: Option<i64>) -> String {
    let by = if by.is_empty() { "a person who gave no name" } else { by };
    format!("approved by {by}, {}", stamp(*at_ms, now_ms))
}

/// Where those are that a list of so many has forgotten.
pub(super) fn earlier(command: &str, name: &str, count: usize) -> Option<String> {
    (count >= HISTORY_MAX).then(|| format!("`allclear {command} history {name}` has earlier ones"))
}

/// Who had said yes to what ended.
pub(super) fn approved_by(by: Option<&String>) -> String {
    by.map_or_else(String::new, |by| format!(", approved by {by}"))
}

/// `, started 2026-11-22 22:10:05Z`, once it was.
pub(super) fn at(what: &str, at_ms: Option<i64>, now_ms: Option<i64>) -> String {
    at_ms.map_or_else(String::new, |at_ms| format!(", {what} {}", stamp(at_ms, now_ms)))
}

/// What something says of itself, if it says anything.
pub(super) fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// With a line break at its end.
pub(super) fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

//! Times as answers have them.

use jiff::Timestamp;

/// `2026-11-22 22:10:05Z`.
pub(crate) fn time(at_ms: i64) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

//! What statuses of all our kinds have in common: counts, times, and what an API server did not keep of one.
//!
//! Not for what is in a status.

use jiff::Timestamp;
use serde_json::Value;

/// Most of what is said about an object in one place.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Most that is counted: whole numbers above it are not the same to every reader of JSON
/// (<https://www.rfc-editor.org/rfc/rfc8259#section-6>), and a write a second would take 285 million years.
const COUNT_MAX: u64 = 1 << 53;

/// The most dropped fields that are named.
const LOST_MAX: usize = 5;

/// What was written and is not in the answer, by its place: the API server drops what its CRD does not have.
pub fn lost(written: &Value, answered: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    find_lost(written, answered, "status", &mut lost);
    lost
}

fn find_lost(written: &Value, answered: &Value, place: &str, lost: &mut Vec<String>) {
    match (written, answered) {
        (Value::Object(written), Value::Object(answered)) => {
            for (name, value) in written {
                let place = format!("{place}.{name}");
                match answered.get(name) {
                    Some(answered) => find_lost(value, answered, &place, lost),
                    None if lost.len() < LOST_MAX => lost.push(place),
                    None => return,
                }
            }
        }
        (Value::Array(written), Value::Array(answered)) if written.len() == answered.len() => {
            for (written, answered) in written.iter().zip(answered) {
                find_lost(written, answered, place, lost);
            }
        }
        (written, answered) if written != answered && lost.len() < LOST_MAX => lost.push(place.to_owned()),
        _ => {}
    }
}

/// A number of the CRD, which knows no unsigned ones.
pub fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Reads a count. One above `COUNT_MAX` was edited by hand and could not be incremented.
pub fn count(number: i64, what: &str) -> Result<u64, String> {
    match u64::try_from(number) {
        Err(_) => Err(format!("{what} is negative")),
        Ok(count) if count > COUNT_MAX => Err(format!("{what} is {count}, and nothing was counted so far")),
        Ok(count) => Ok(count),
    }
}

/// A time with its milliseconds; years beyond 9999 have none.
pub fn at(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX).to_string()
}

/// The time of such a text, in milliseconds since the Unix epoch.
pub fn ms(text: &str) -> Result<i64, String> {
    let read: Result<Timestamp, _> = text.parse();
    read.map(Timestamp::as_millisecond).map_err(|_| format!("{text:?} is no time"))
}

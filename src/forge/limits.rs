//! What a forge says of its limits: in the status and the headers of any answer.
//!
//! Not for what follows from it (`rests`, and the class of an error in `rest`).

use std::time::Duration;

use http::header::{DATE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

/// The pause where a server asks for one without a duration: GitHub's rule for its secondary limit
/// (<https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api>).
pub(crate) const REST: Duration = Duration::from_secs(60);

/// Longest pause that a server can ask for. Limits are by the hour, and one call finds out whether it is too early.
pub(crate) const REST_MAX: Duration = Duration::from_secs(600);

/// Whether a refusal is about pace. GitHub refuses so with 403, too, and says it in headers or in words.
pub(crate) fn is_limit(status: StatusCode, headers: &HeaderMap, said: &str) -> bool {
    let in_words = || said.to_ascii_lowercase().contains("rate limit");
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::FORBIDDEN && (headers.contains_key(RETRY_AFTER) || is_used_up(headers) || in_words())
}

fn is_used_up(headers: &HeaderMap) -> bool {
    number(headers, ["x-ratelimit-remaining", "ratelimit-remaining"]) == Some(0)
}

/// The pause that a server asks for: in seconds, until a date, or until its limits are reset. Its dates are measured
/// against its own clock.
pub(crate) fn rest(headers: &HeaderMap) -> Option<Duration> {
    let after = text_of(headers, &RETRY_AFTER).and_then(|text| {
        let in_seconds = text.trim().parse().ok().map(Duration::from_secs);
        in_seconds.or_else(|| until(headers, seconds_of(text)?))
    });
    let rest = after.or_else(|| if is_used_up(headers) { until_counted_anew(headers) } else { None });
    // A moment more, as its clock has whole seconds.
    rest.map(|rest| rest.saturating_add(Duration::from_secs(1)).min(REST_MAX))
}

/// How long to leave a server alone that has less than a tenth left of what it allows us.
pub(crate) fn running_out(headers: &HeaderMap) -> Option<Duration> {
    let left = number(headers, ["x-ratelimit-remaining", "ratelimit-remaining"])?;
    let limit = number(headers, ["x-ratelimit-limit", "ratelimit-limit"])?;
    let rest = if left < limit / 10 { until_counted_anew(headers) } else { None };
    rest.map(|rest| rest.saturating_add(Duration::from_secs(1)).min(REST_MAX))
}

fn until_counted_anew(headers: &HeaderMap) -> Option<Duration> {
    until(headers, number(headers, ["x-ratelimit-reset", "ratelimit-reset"])?)
}

/// From a server's own now to a second since the Unix epoch.
fn until(headers: &HeaderMap, at: i64) -> Option<Duration> {
    let now = seconds_of(text_of(headers, &DATE)?)?;
    u64::try_from(at.saturating_sub(now)).ok().map(Duration::from_secs)
}

/// A date of HTTP ([RFC 9110, 5.6.7](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7)).
fn seconds_of(date: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(date).ok().map(|date| date.timestamp().as_second())
}

/// The number in the first of these headers: GitHub's, or GitLab's name of it.
fn number(headers: &HeaderMap, names: [&'static str; 2]) -> Option<i64> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok()?.parse().ok())
}

/// A header as text.
pub(crate) fn text_of<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

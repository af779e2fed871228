//! Moments and spans as the page shows them: absolute, in UTC, and how long ago that was.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};

use kernel::text::duration;

/// A moment: `12:04:31 UTC` and `3 min ago`; with its day where it was another one than today. The script refines the second part,
/// which is by the minute here, so that a page at rest stays the same bytes.
pub(super) fn moment(at_ms: i64, now_ms: i64) -> Markup {
    html! { (absolute(at_ms, now_ms)) " " small.ago { (ago(at_ms, now_ms)) } }
}

/// The first part alone.
pub(super) fn absolute(at_ms: i64, now_ms: i64) -> Markup {
    let (at, now) = (timestamp(at_ms), timestamp(now_ms));
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    let form = if day(at) == day(now) { "%H:%M:%S UTC" } else { "%Y-%m-%d %H:%M UTC" };
    html! { time datetime=(at) data-ms=(at_ms) { (at.strftime(form)) } }
}

/// How long something took: `7s`.
pub(super) fn span(from_ms: i64, to_ms: i64) -> String {
    duration(Duration::from_millis(u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or_default()))
}

/// `just now`, `3 min ago`.
pub(super) fn ago(at_ms: i64, now_ms: i64) -> String {
    let minutes = now_ms.saturating_sub(at_ms).max(0) / 60_000;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        _ => format!("{} d ago", minutes / 1440),
    }
}

/// `2026-11-22 22:10 UTC`.
pub(super) fn day_and_time(at_ms: i64) -> String {
    timestamp(at_ms).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn timestamp(at_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_700_049_600_000;

    #[test]
    fn a_moment_of_today_has_no_day_and_an_older_one_has() {
        let shown = moment(NOON - 200_000, NOON).into_string();
        assert!(shown.contains("11:56:40 UTC</time>") && shown.contains("3 min ago"), "{shown}");
        assert!(shown.contains("datetime=\"2023-11-15T11:56:40Z\""), "{shown}");
        let shown = moment(NOON - 90_000_000, NOON).into_string();
        assert!(shown.contains("2023-11-14 11:00 UTC</time>") && shown.contains("1 d ago"), "{shown}");
    }

    #[test]
    fn a_clock_that_went_back_makes_no_negative_time() {
        assert_eq!(ago(NOON + 5_000, NOON), "just now");
        assert_eq!(span(NOON + 5_000, NOON), "0ms");
        assert_eq!(span(NOON, NOON + 7_400), "7s");
        assert!(moment(i64::MIN, NOON).into_string().contains("1970"));
    }
}

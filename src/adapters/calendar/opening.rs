//! Whether a moment is in a window and in no freeze, and when that changes next: a function of the time and of what people wrote.
//!
//! A window follows the clock on the wall: it is open at every moment at which that clock shows a time within it. So an hour that a
//! clock skips is in no window, and one that it shows twice is in it twice.
//!
//! Between two moments at which a freeze begins or ends, only windows open and close; those repeat each week. So from each such
//! moment [`SEARCHED`] is searched, and the moments at which anything can change are few: a window's ends on each day, and the
//! changes of its zone.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use objects::asked::Opening;
use objects::gates::{Freeze, Window};

/// How far is looked for the next change of windows. They repeat each week, but for an hour, or in Samoa once a whole day, that is
/// skipped.
const SEARCHED: SignedDuration = SignedDuration::from_hours(15 * 24);

/// The days from now on of which the day of the week is a date.
const WEEK: SignedDuration = SignedDuration::from_hours(6 * 24);

/// Changes of a zone that are looked at within [`SEARCHED`]. There were never more than two.
const CHANGES_MAX: usize = 8;

/// Whether `now` is in a window, or there are none, and in no freeze.
pub(super) fn at(now: Timestamp, windows: &[(Window, TimeZone)], freezes: &[Freeze]) -> Opening {
    let rules = Rules { windows, freezes };
    let open = rules.is_open(now);
    let change = rules.change(now);
    let when = change.map(|change| rules.spoken(now, change));
    let reason = rules.freeze(now).map(|freeze| format!(": {}", freeze.reason)).unwrap_or_default();
    let state = if open { "open" } else { "closed" };
    let words = when.map_or_else(|| format!("{state}{reason}"), |when| format!("{state} until {when}{reason}"));
    let after = change.map(|change| Duration::try_from(change.duration_since(now)).unwrap_or_default());
    Opening { open, changes_after: after, words }
}

struct Rules<'a> {
    windows: &'a [(Window, TimeZone)],
    freezes: &'a [Freeze],
}

impl Rules<'_> {
    fn is_open(&self, at: Timestamp) -> bool {
        let in_window = || self.windows.iter().any(|(window, zone)| holds(window, zone.to_datetime(at)));
        self.freeze(at).is_none() && (self.windows.is_empty() || in_window())
    }

    /// Of several, the one that ends last.
    fn freeze(&self, at: Timestamp) -> Option<&Freeze> {
        let now = self.freezes.iter().filter(|freeze| (freeze.from..freeze.to).contains(&at.as_second()));
        now.max_by_key(|freeze| freeze.to)
    }

    /// The next moment after `now` at which it opens or closes; `None` if it never does.
    fn change(&self, now: Timestamp) -> Option<Timestamp> {
        let is_open = self.is_open(now);
        let ends = self.freezes.iter().flat_map(|freeze| [freeze.from, freeze.to]);
        let ends = ends.filter_map(|second| Timestamp::from_second(second).ok()).filter(|end| *end > now);
        let marks: BTreeSet<Timestamp> = ends.chain([now]).collect();
        let mut next = marks.iter().skip(1).copied().map(Some).chain([None]);
        marks.iter().find_map(|from| {
            let until = next.next().flatten().unwrap_or(Timestamp::MAX);
            // A freeze that has begun ends at a mark.
            let moments = if self.freeze(*from).is_some() { BTreeSet::new() } else { self.moments(*from, until) };
            std::iter::once(*from).chain(moments).find(|at| *at > now && self.is_open(*at) != is_open)
        })
    }

    /// All moments soon after `from`, and before `until`, at which a window may open or close.
    fn moments(&self, from: Timestamp, until: Timestamp) -> BTreeSet<Timestamp> {
        let until = from.checked_add(SEARCHED).map_or(until, |end| end.min(until));
        let mut moments = BTreeSet::new();
        for (window, zone) in self.windows {
            // The clock may be a day ahead, or behind, after a change of its zone.
            let (first, last) = (zone.to_datetime(from).date(), zone.to_datetime(until).date());
            for date in days(first, last) {
                moments.extend(occurrences(zone, date, window.from).chain(occurrences(zone, date, window.to)));
            }
            let changes = zone.following(from).take(CHANGES_MAX).map(|change| change.timestamp());
            moments.extend(changes.take_while(|change| *change < until));
        }
        moments.retain(|at| *at > from && *at < until);
        moments
    }

    /// A later moment in words, by the clock of the window that changes then.
    fn spoken(&self, now: Timestamp, at: Timestamp) -> String {
        let before = at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(at);
        let changes = |(window, zone): &&(Window, TimeZone)| {
            holds(window, zone.to_datetime(at)) != holds(window, zone.to_datetime(before))
        };
        let named = self.windows.iter().find(changes).or(self.windows.first());
        let (wall, name) = match named {
            Some((window, zone)) => (zone.to_datetime(at), window.zone.as_str()),
            None => (TimeZone::UTC.to_datetime(at), "UTC"),
        };
        let day = if at.duration_since(now) <= WEEK {
            spelled(wall.date().weekday()).to_owned()
        } else {
            wall.date().to_string()
        };
        format!("{day} {:02}:{:02} {name}", wall.hour(), wall.minute())
    }
}

/// Whether a clock that shows this is in a window.
fn holds(window: &Window, wall: DateTime) -> bool {
    let minute = u16::try_from(i32::from(wall.hour()) * 60 + i32::from(wall.minute())).unwrap_or_default();
    let on = |day: i8| u8::try_from(day).is_ok_and(|day| window.days.contains(&day));
    let today = wall.date().weekday().to_monday_zero_offset();
    let yesterday = (today + 6) % 7;
    if window.from < window.to {
        return on(today) && (window.from..window.to).contains(&minute);
    }
    (on(today) && minute >= window.from) || (on(yesterday) && minute < window.to)
}

/// From the day before `first` to the day after `last`.
fn days(first: Date, last: Date) -> impl Iterator<Item = Date> {
    let last = last.tomorrow().unwrap_or(last);
    std::iter::successors(Some(first.yesterday().unwrap_or(first)), move |date| {
        date.tomorrow().ok().filter(|date| *date <= last)
    })
}

/// The moments at which a clock shows this minute of a day, `24:00` included: none or one, or two where it was set back.
fn occurrences(zone: &TimeZone, date: Date, minute: u16) -> impl Iterator<Item = Timestamp> + use<> {
    let (date, minute) = if minute < 24 * 60 { (Some(date), minute) } else { (date.tomorrow().ok(), 0) };
    let part = |minutes: u16| i8::try_from(minutes).unwrap_or_default();
    let wall = date.map(|date| date.at(part(minute / 60), part(minute % 60), 0, 0));
    let offsets = wall.map(|wall| match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => [offset, offset],
        AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => [before, after],
    });
    let moment = move |offset: Offset| offset.to_timestamp(wall?).ok();
    offsets.into_iter().flatten().filter_map(moment)
}

const fn spelled(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

#[cfg(test)]
mod tests;

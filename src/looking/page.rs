//! Answers for people: each part under its name, laid out as its output wants it.

use std::fmt;

use jiff::Timestamp;

use crate::looking::Section;
use crate::looking::layout::{Tone, behind, line, toned};
use kernel::text::visible;

/// Where the text of a part begins.
const INDENT: usize = 16;

/// Lines of one part. The JSON has all of them.
const LINES_MAX: usize = 20;

/// A page that is being written.
pub(crate) struct Page<'a, 'b> {
    pub(crate) f: &'a mut fmt::Formatter<'b>,
}

impl Page<'_, '_> {
    /// The name of what the parts below are about.
    pub(crate) fn title(&mut self, name: &str) -> fmt::Result {
        line(self.f, Tone::Title, name)
    }

    /// A part of the page; nothing if it has no lines.
    pub(crate) fn part(&mut self, name: &str, lines: impl IntoIterator<Item = String>) -> fmt::Result {
        self.toned(name, Tone::Plain, lines)
    }

    /// The same, in the colour of what it says.
    pub(crate) fn toned(&mut self, name: &str, tone: Tone, lines: impl IntoIterator<Item = String>) -> fmt::Result {
        self.entries(name, lines.into_iter().map(|line| (tone, line)))
    }

    /// The same, each line in a colour of its own.
    pub(crate) fn entries(&mut self, name: &str, lines: impl IntoIterator<Item = (Tone, String)>) -> fmt::Result {
        let lines: Vec<(Tone, String)> = lines.into_iter().collect();
        let mut label = name;
        for (tone, line) in lines.iter().take(LINES_MAX) {
            self.entry(label, *tone, line)?;
            label = "";
        }
        match lines.len().saturating_sub(LINES_MAX) {
            0 => Ok(()),
            more => self.entry(label, Tone::Aside, &format!("and {more} more; -o json has them all")),
        }
    }

    /// A part of the page, or why it is missing.
    pub(crate) fn section<T>(
        &mut self,
        name: &str,
        section: &Section<T>,
        lines: impl FnOnce(&T) -> Vec<String>,
    ) -> fmt::Result {
        match section {
            Section::Known(part) => self.part(name, lines(part)),
            Section::Missing { missing } => self.toned(name, Tone::Look, [format!("missing: {missing}")]),
        }
    }

    fn entry(&mut self, label: &str, tone: Tone, text: &str) -> fmt::Result {
        let indented = INDENT.saturating_sub(2);
        let label = format!("  {:<indented$}", visible(label));
        let label = toned(self.f, Tone::Aside, &label);
        behind(self.f, (&label, INDENT), tone, text)
    }
}

/// `1 vote`, `2 votes`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// `2026-11-22 22:10:05Z`.
pub(crate) fn time(at_ms: i64) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The same, and how long ago that was for who looks now: `2026-11-22 22:10:05Z (4m ago)`.
pub(crate) fn stamp(at_ms: i64, now_ms: Option<i64>) -> String {
    now_ms.map_or_else(|| time(at_ms), |now_ms| format!("{} ({})", time(at_ms), age(now_ms.saturating_sub(at_ms))))
}

/// In its largest unit, as kubectl says ages.
pub(crate) fn age(ms: i64) -> String {
    let seconds = ms.unsigned_abs() / 1_000;
    let words = match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    };
    if ms < 0 { format!("in {words}") } else { format!("{words} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_its_age_for_who_looks_now() {
        let now = 1_795_385_405_000;
        assert_eq!(stamp(now, None), "2026-11-22 22:10:05Z");
        assert_eq!(stamp(now, Some(now + 250_000)), "2026-11-22 22:10:05Z (4m ago)");
        assert_eq!(stamp(now, Some(now - 7_200_000)), "2026-11-22 22:10:05Z (in 2h)");
        let ages = [0, 59_999, 60_000, 3_599_999, 3_600_000, 86_399_999, 86_400_000, 864_000_000].map(age);
        assert_eq!(ages, ["0s ago", "59s ago", "1m ago", "59m ago", "1h ago", "23h ago", "1d ago", "10d ago"]);
    }
}

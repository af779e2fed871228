//! Answers for people: lines of at most [`COLUMNS`] characters, each part under its name.

use std::fmt;

use jiff::Timestamp;

use crate::looking::Section;
use kernel::text::visible;

/// Characters on a line.
const COLUMNS: usize = 100;

/// Where the text of a part begins.
const INDENT: usize = 16;

/// Lines of one part. The JSON has all of them.
const LINES_MAX: usize = 20;

/// A blank at which no line is wrapped and that is not left out, for columns.
pub(crate) const PAD: char = '\u{2007}';

/// A page that is being written.
pub(crate) struct Page<'a, 'b> {
    pub(crate) f: &'a mut fmt::Formatter<'b>,
}

impl Page<'_, '_> {
    /// A part of the page; nothing if it has no lines.
    pub(crate) fn part(&mut self, name: &str, lines: impl IntoIterator<Item = String>) -> fmt::Result {
        let lines: Vec<String> = lines.into_iter().collect();
        let mut label = name;
        for line in lines.iter().take(LINES_MAX) {
            self.line(label, line)?;
            label = "";
        }
        match lines.len().saturating_sub(LINES_MAX) {
            0 => Ok(()),
            more => self.line(label, &format!("and {more} more; -o json has them all")),
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
            Section::Missing { missing } => self.part(name, [format!("missing: {missing}")]),
        }
    }

    /// One entry, wrapped between words; what continues is set in by two more.
    fn line(&mut self, label: &str, text: &str) -> fmt::Result {
        let mut label = label;
        let mut line = String::new();
        for word in text.split(|c: char| c.is_whitespace() && c != PAD).filter(|word| !word.is_empty()) {
            // Line breaks are blanks by now; what else others hid is shown.
            let word = &*visible(word);
            let width = line.chars().count() + 1 + word.chars().count();
            if !line.trim().is_empty() && INDENT + width > COLUMNS {
                self.put(label, &line)?;
                label = "";
                line = format!("  {word}");
            } else if line.is_empty() {
                line.push_str(word);
            } else {
                line.push(' ');
                line.push_str(word);
            }
        }
        self.put(label, &line)
    }

    fn put(&mut self, label: &str, line: &str) -> fmt::Result {
        let indented = INDENT.saturating_sub(2);
        writeln!(self.f, "  {:<indented$}{}", visible(label), line.replace(PAD, " "))
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

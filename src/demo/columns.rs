//! The group side by side: a column for each cluster, redrawn in place while a chapter is told, and left whole at its end. Where
//! standard output is no terminal, or one too narrow for columns, a line for each thing that happens.
//!
//! The cursor is never hidden, and every picture is one write that ends in the usual colour: a program that is ended in the middle
//! leaves the terminal as it was. Not for what is told; that is in `clusters`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crate::demo::narration::{PLAIN, broken, colour, has_colours, say_raw, size};

/// Columns of a terminal, and of each cluster, below which lines are easier to read.
const WIDTH_MIN: usize = 100;
const COLUMN_MIN: usize = 28;

/// Blanks at the left, and between two columns.
const GAP: usize = 2;

/// A state that is over before it can be read is drawn over by the next one.
const GLIMPSE: Duration = Duration::from_millis(250);

/// What an entry is about that says what a cluster waits for.
const WAITS: &str = "waits";

/// Lines of a picture that never scroll: the names and what underlines them.
const HEAD: usize = 2;

/// What happened, and in which column; `None`: outside of all clusters.
struct Entry {
    at: Duration,
    column: Option<usize>,
    what: String,
    text: String,
}

/// A line of a picture: as the terminal gets it, and its length in columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    text: String,
    length: usize,
}

/// How the chapter is told. Decided by its first entry; a terminal that becomes too narrow gets lines from there on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Undecided,
    Columns,
    Lines,
}

/// Where a group's chapters are told.
pub struct Page {
    names: Vec<String>,
    entries: Vec<Entry>,
    form: Form,
    /// The lengths of the lines that are to be drawn over.
    drawn: Vec<usize>,
}

impl Page {
    /// A page for clusters of these names.
    pub fn new(names: Vec<String>) -> Self {
        Self { names, entries: Vec::new(), form: Form::Undecided, drawn: Vec::new() }
    }

    /// Tells what happened in a cluster, or, without a name, outside of all.
    pub fn tell(&mut self, at: Duration, name: &str, what: &str, text: &str) -> io::Result<()> {
        let terminal = size().filter(|_| io::stdout().is_terminal());
        let room = terminal.and_then(|(width, _)| column_width(self.names.len(), width));
        if self.form == Form::Undecided || room.is_none() {
            self.form = if room.is_some() { Form::Columns } else { Form::Lines };
        }
        if self.form == Form::Lines {
            let seconds = at.as_secs_f64();
            return say_raw(&format!("  {seconds:5.2} s  {name:<5} {what:<20} {text}\n"));
        }
        let column = self.names.iter().position(|known| known == name);
        note(&mut self.entries, Entry { at, column, what: what.to_owned(), text: text.to_owned() });
        self.draw(terminal, true)
    }

    /// Ends a chapter: what the terminal was too low for is shown, too.
    pub fn end(&mut self) -> io::Result<()> {
        if self.form == Form::Columns {
            self.draw(size(), false)?;
        }
        self.entries.clear();
        self.drawn.clear();
        self.form = Form::Undecided;
        Ok(())
    }

    /// Draws over what was drawn before; `within`: only as much as the terminal shows at once.
    fn draw(&mut self, terminal: Option<(usize, usize)>, within: bool) -> io::Result<()> {
        let Some((width, height)) = terminal else { return Ok(()) };
        let mut lines = picture(&self.names, &self.entries, width, has_colours());
        if within {
            // One line is the cursor's.
            lines = tail(lines, height.saturating_sub(1));
        }
        let mut text = over(&self.drawn, width);
        for line in &lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        self.drawn = lines.iter().map(|line| line.length).collect();
        say_raw(&text)
    }
}

/// Adds an entry, in place of the last one of its column where both are states and the old one was only glimpsed.
fn note(entries: &mut Vec<Entry>, entry: Entry) {
    let last = entries.iter_mut().rev().find(|last| last.column == entry.column);
    match last.filter(|last| last.what == WAITS && entry.what == WAITS && entry.at.saturating_sub(last.at) < GLIMPSE) {
        Some(glimpsed) => glimpsed.text = entry.text,
        None => entries.push(entry),
    }
}

/// How wide each of so many columns is; `None`: there is no room for them.
fn column_width(columns: usize, width: usize) -> Option<usize> {
    // A line as wide as the terminal would leave some of them a blank line.
    let room = width.checked_sub(1 + GAP * columns)?.checked_div(columns)?;
    (width >= WIDTH_MIN && room >= COLUMN_MIN).then_some(room)
}

/// The sequence that goes back over lines of these lengths, however many rows they take at this width, and clears them.
fn over(drawn: &[usize], width: usize) -> String {
    let rows: usize = drawn.iter().map(|length| length.div_ceil(width.max(1)).max(1)).sum();
    if rows == 0 { String::new() } else { format!("\r\u{1b}[{rows}A\u{1b}[J") }
}

/// The head, and as many of the last lines as there is room for.
fn tail(lines: Vec<Line>, room: usize) -> Vec<Line> {
    let skipped = lines.len().saturating_sub(room.max(HEAD));
    lines.into_iter().enumerate().filter(|(at, _)| *at < HEAD || *at >= HEAD + skipped).map(|(_, line)| line).collect()
}

fn picture(names: &[String], entries: &[Entry], width: usize, painted: bool) -> Vec<Line> {
    let Some(room) = column_width(names.len(), width) else { return Vec::new() };
    let mut columns: Vec<Vec<Line>> = names.iter().map(|name| vec![plain(name), plain(&"─".repeat(room))]).collect();
    let mut below = Vec::new();
    for entry in entries {
        match entry.column.and_then(|at| columns.get_mut(at)) {
            Some(column) => column.extend(entry.lines(room, painted)),
            None => below.extend(entry.lines(width - 1 - GAP, painted).into_iter().map(|line| beside(&[line], 0))),
        }
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| {
        let cells: Vec<Line> = columns.iter().map(|column| column.get(at).cloned().unwrap_or_default()).collect();
        beside(&cells, room)
    };
    (0..rows).map(row).chain(below).collect()
}

impl Entry {
    /// A line with the time and what it is about, and the text below.
    fn lines(&self, room: usize, painted: bool) -> Vec<Line> {
        let (seconds, what) = (self.at.as_secs_f64(), &self.what);
        let mut head = plain(&format!("{seconds:5.2} s  {what}"));
        if painted {
            head.text = format!("{seconds:5.2} s  {}{what}{PLAIN}", colour(what));
        }
        let text = fitted(&self.text, room.saturating_sub(GAP));
        [vec![head], text.iter().map(|line| plain(&format!("{:GAP$}{line}", ""))).collect()].concat()
    }
}

fn plain(text: &str) -> Line {
    Line { text: text.to_owned(), length: text.chars().count() }
}

/// Cells side by side, each this wide but the last, which ends where it ends.
fn beside(cells: &[Line], room: usize) -> Line {
    let mut line = Line::default();
    for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.length > 0) {
        let blanks = (GAP + at * (room + GAP)).saturating_sub(line.length);
        line.text.push_str(&" ".repeat(blanks));
        line.text.push_str(&cell.text);
        line.length += blanks + cell.length;
    }
    line
}

/// A text in lines of at most so many characters; a word that is longer is cut, behind a slash if it has one.
fn fitted(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in broken(text, room) {
        let mut rest = line.as_str();
        while rest.chars().count() > room.max(1) {
            let end = rest.char_indices().nth(room.max(1)).map_or(rest.len(), |(end, _)| end);
            let end = rest.get(..end).and_then(|fits| fits.rfind('/')).map_or(end, |slash| slash + 1);
            let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            lines.push(piece.to_owned());
            rest = after;
        }
        lines.push(rest.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "kubectl set image deployment/web web=registry.example.com/shop/web:1.1";

    fn names(count: usize) -> Vec<String> {
        let long = "a-cluster-with-a-long-name-1".to_owned();
        ["eu-1".to_owned(), long, "ap-1".to_owned(), "eu-2".to_owned()].into_iter().take(count).collect()
    }

    fn entries() -> Vec<Entry> {
        let entry = |column, what: &str, text: &str| Entry {
            at: Duration::from_millis(1_250),
            column,
            what: what.to_owned(),
            text: text.to_owned(),
        };
        vec![
            entry(Some(0), "deployment", IMAGE),
            entry(Some(1), "waits", "0 of 3 pods ready"),
            entry(None, "webhook", "POST /purged with site=www.example.com, answered 204"),
            entry(Some(2), "rollout failed", "the rollout timeout passed (web: 1.1 → 2.0)"),
        ]
    }

    fn letters(text: &str) -> String {
        text.chars().filter(|letter| !letter.is_whitespace()).collect()
    }

    #[test]
    fn columns_fit_into_the_terminal_and_lose_no_letter() {
        for width in [100, 120, 200] {
            let room = column_width(3, width).unwrap();
            let lines = picture(&names(3), &entries(), width, false);
            assert!(lines.iter().all(|line| line.text.chars().count() == line.length && line.length < width));
            for (at, entry) in entries().iter().enumerate().filter(|(_, entry)| entry.column.is_some()) {
                let from = GAP + entry.column.unwrap() * (room + GAP);
                let column = lines.iter().map(|line| line.text.chars().skip(from).take(room).collect::<String>());
                let column: String = column.collect();
                let wanted = [entry.what.as_str(), &entry.text].concat();
                assert!(letters(&column).contains(&letters(&wanted)), "{at}: {column}");
            }
            let last = lines.last().unwrap();
            assert_eq!(last.text, "    POST /purged with site=www.example.com, answered 204");
        }
    }

    #[test]
    fn a_state_that_was_only_glimpsed_is_drawn_over_and_nothing_else_is() {
        let mut entries = Vec::new();
        let mut tell = |ms, column, what: &str, text: &str| {
            let (what, text) = (what.to_owned(), text.to_owned());
            note(&mut entries, Entry { at: Duration::from_millis(ms), column: Some(column), what, text });
        };
        tell(0, 0, "waits", "a glimpse");
        tell(10, 1, "waits", "of another");
        tell(100, 0, "waits", "kept, because it stays");
        tell(600, 0, "waits", "kept, because an event follows");
        tell(610, 0, "change seen", "an event");
        tell(620, 0, "change seen", "and another");
        tell(630, 0, "waits", "the last");
        let texts: Vec<&str> = entries.iter().map(|entry| entry.text.as_str()).collect();
        let kept = ["kept, because it stays", "of another", "kept, because an event follows"];
        assert_eq!(texts, [&kept[..], &["an event", "and another", "the last"]].concat());
    }

    #[test]
    fn a_long_word_is_cut_behind_a_slash_or_else_where_the_room_ends() {
        assert_eq!(
            fitted(IMAGE, 29),
            ["kubectl set image", "deployment/web", "web=registry.example.com/", "shop/web:1.1"]
        );
        assert_eq!(fitted("→→→→→ a", 2), ["→→", "→→", "→", "a"]);
        assert_eq!(fitted("", 5), [""]);
    }

    #[test]
    fn a_terminal_that_is_too_narrow_has_no_columns() {
        assert_eq!(column_width(3, 80), None);
        assert_eq!(column_width(3, 99), None);
        assert_eq!(column_width(3, 100), Some(31));
        assert_eq!(column_width(4, 100), None);
        assert_eq!(column_width(5, 160), Some(29));
        assert_eq!(column_width(0, 100), None);
    }

    #[test]
    fn a_low_terminal_shows_the_names_and_the_newest() {
        let lines: Vec<Line> = (0..10).map(|at| plain(&at.to_string())).collect();
        let shown = |room| tail(lines.clone(), room).into_iter().map(|line| line.text).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(5), "0 1 7 8 9");
        assert_eq!(shown(10), "0 1 2 3 4 5 6 7 8 9");
        assert_eq!(shown(1), "0 1");
    }

    #[test]
    fn a_narrower_terminal_has_wrapped_what_is_drawn_over() {
        assert_eq!(over(&[], 100), "");
        assert_eq!(over(&[90, 0, 100], 100), "\r\u{1b}[3A\u{1b}[J");
        assert_eq!(over(&[90, 0, 100], 60), "\r\u{1b}[5A\u{1b}[J");
    }

    #[test]
    fn colours_change_no_length_and_end_in_their_cell() {
        let (plain, painted) = (picture(&names(3), &entries(), 120, false), picture(&names(3), &entries(), 120, true));
        assert_eq!(plain.len(), painted.len());
        assert!(plain.iter().zip(&painted).all(|(one, other)| one.length == other.length));
        let text: String = painted.into_iter().map(|line| line.text).collect();
        assert_eq!(text.matches('\u{1b}').count(), 2 * entries().len());
        assert_eq!(text.matches(PLAIN).count(), entries().len());
    }
}

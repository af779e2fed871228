//! What standard output and standard error are: terminals or not, how wide, and whether their owner wants colours. By `--color`, and by
//! the variables that other programs go by, too (<https://no-color.org>, <https://bixense.com/clicolors>).
//!
//! Not for how an answer is laid out there; that is `looking::layout`.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use crate::adapters::clock::SystemClock;
use crate::looking::layout::{Screen, Sentence, Tone, own_sequence};
use kernel::text::{visible, visible_lines};
use purge::ports::Clock;

/// `--color`, for all that this process writes.
pub(super) fn choose(color: clap::ColorChoice) {
    match color {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
    .write_global();
}

/// The standard output that there is; `None` where it gets whole lines without colours.
pub(super) fn here() -> Option<Screen> {
    let out = io::stdout();
    let is_terminal = out.is_terminal();
    let columns = is_terminal.then(terminal_size::terminal_size).flatten().map(|(columns, _)| columns.0);
    let now_ms = is_terminal.then(|| SystemClock::default().wall_ms());
    let screen = Screen { columns, is_coloured: AutoStream::choice(&out) != ColorChoice::Never, now_ms };
    (screen != Screen::default()).then_some(screen)
}

/// Writes an answer. Its lines and colours are ours; nothing of others moves the cursor.
pub(super) fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let is_coloured = AutoStream::choice(&out) != ColorChoice::Never;
    out.write_all(harmless(text, is_coloured).as_bytes())?;
    out.flush()
}

/// Clears a terminal, or begins at its top, and clears what is behind or below (ECMA-48, ED, CUP and EL).
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";
const TOP: &str = "\u{1b}[H";
const END_OF_LINE: &str = "\u{1b}[K\n";
const BELOW: &str = "\u{1b}[J";

/// Draws a text over the last one, as far as the terminal is high, with a line below it.
pub(super) fn draw_over(text: &str, below: &str, is_first: bool) -> io::Result<()> {
    let rows = terminal_size::terminal_size().map(|(_, rows)| usize::from(rows.0));
    let mut out = io::stdout().lock();
    let is_coloured = AutoStream::choice(&out) != ColorChoice::Never;
    let drawn = frame(&harmless(text, is_coloured), below, rows);
    out.write_all(format!("{}{drawn}", if is_first { CLEAR } else { TOP }).as_bytes())?;
    out.flush()
}

/// A screen full of a text: nothing scrolls, since then the top would not be the top any more.
fn frame(text: &str, below: &str, rows: Option<usize>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    // One for the blank line, one for the line below, one for the cursor.
    let room = rows.map_or(usize::MAX, |rows| rows.saturating_sub(3));
    let shown = if lines.len() > room { room.saturating_sub(1) } else { lines.len() };
    let mut frame: String = lines.iter().take(shown).map(|line| format!("{line}{END_OF_LINE}")).collect();
    if shown < lines.len() {
        frame.push_str(&format!("… and {} more lines{END_OF_LINE}", lines.len() - shown));
    }
    format!("{frame}{END_OF_LINE}{below}{END_OF_LINE}{BELOW}")
}

/// Writes what is no answer, with the word `error` as people look for it. A reader that has gone away is not an error of ours.
pub(super) fn write_err(text: &str) {
    let mut err = io::stderr().lock();
    let painted = match text.strip_prefix("error: ") {
        Some(rest) if AutoStream::choice(&err) != ColorChoice::Never => {
            format!("{} {}", Tone::Bad.painted("error:"), visible_lines(rest))
        }
        Some(_) | None => visible_lines(text).into_owned(),
    };
    let _ = err.write_all(painted.as_bytes());
}

/// Writes how a command that takes its time is getting on.
pub(super) fn write_progress(line: &str) {
    let mut err = io::stderr().lock();
    let line = visible(line);
    let (mark, line) = match (err.is_terminal(), AutoStream::choice(&err)) {
        (false, _) => ("", line),
        (true, ColorChoice::Never) => (Tone::Moving.mark(), line),
        (true, _) => (Tone::Moving.mark(), Tone::Moving.painted(&line).into_owned().into()),
    };
    let _ = writeln!(err, "{mark}{line}");
}

/// A sentence that says that a goal is reached, as standard output has it.
pub(super) fn reached(sentence: &str) -> String {
    here().map_or_else(|| sentence.to_owned(), |screen| screen.draw(&Sentence(Tone::Good, sentence)))
}

/// A text in which nothing hidden is left but line breaks and, where there are colours, ours.
fn harmless(text: &str, is_coloured: bool) -> String {
    let mut pieces = text.split('\u{1b}');
    let mut harmless = visible_lines(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        let escape = format!("\u{1b}{piece}");
        let ours = own_sequence(&escape).filter(|_| is_coloured);
        let rest = ours.and_then(|ours| escape.strip_prefix(ours));
        harmless.push_str(ours.unwrap_or_default());
        harmless.push_str(&visible_lines(rest.unwrap_or(&escape)));
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_over_is_never_higher_than_the_terminal() {
        let shown = |rows| frame("a\nb\nc\nd\n", "below", rows).replace(END_OF_LINE, "|").replace(BELOW, "");
        assert_eq!(shown(None), "a|b|c|d||below|");
        assert_eq!(shown(Some(7)), "a|b|c|d||below|");
        assert_eq!(shown(Some(6)), "a|b|… and 2 more lines||below|");
        assert_eq!(shown(Some(6)).matches('|').count(), 5, "and the cursor's own");
    }

    #[test]
    fn of_sequences_only_our_colours_reach_a_terminal() {
        let text = format!("{}\n{}\u{1b}[2J\u{1b}]0;title\u{7}", Tone::Good.painted("well"), Tone::Bad.painted("not"));
        let shown = "\u{1b}[32mwell\u{1b}[0m\n\u{1b}[31mnot\u{1b}[0m\\u{1b}[2J\\u{1b}]0;title\\u{7}";
        assert_eq!(harmless(&text, true), shown);
        assert_eq!(harmless("a\u{1b}[32mb", false), "a\\u{1b}[32mb", "a pipe gets none");
    }
}

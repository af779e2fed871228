//! How an answer for people is laid out on its output: within the width of a terminal, and in colour where its owner wants that. A pipe
//! or a file gets whole lines without colours, so that a program finds a row in one line.
//!
//! What is laid out is a [`Display`](fmt::Display), and what it has to know of its output are the parameters that each formatter has
//! anyway: its width is the number of columns, and none where there is no end to them; its flag `#` is for colours. So one text is
//! written once, for every output. Not for finding out what the output is; that is in `cli::screen`.

use std::borrow::Cow;
use std::fmt;

use kernel::text::visible;

/// The output that an answer is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Where a line ends; `None` where it does not.
    pub columns: Option<u16>,
    pub is_coloured: bool,
    /// The time, where a person looks at it now: ages are for them, and a text that is kept has none.
    pub now_ms: Option<i64>,
}

impl Screen {
    pub fn draw(self, answer: &impl fmt::Display) -> String {
        let columns = self.columns.map(usize::from);
        match (columns, self.is_coloured) {
            (Some(columns), true) => format!("{answer:#columns$}"),
            (Some(columns), false) => format!("{answer:columns$}"),
            (None, true) => format!("{answer:#}"),
            (None, false) => answer.to_string(),
        }
    }
}

/// What a text says of the thing that it is about. Each has its own colour, and a mark, since a colour is never all there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing but its words.
    #[default]
    Plain,
    /// The name of what is below.
    Title,
    /// A label, or what can be skipped.
    Aside,
    /// It ended well.
    Good,
    /// It is under way.
    Moving,
    /// A person should look.
    Look,
    /// The edge is stale, or something does not work.
    Bad,
}

impl Tone {
    /// The sequences of terminals that set it (ECMA-48, 8.3.117), each of them alone.
    const fn sequence(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Title => Some("\u{1b}[1m"),
            Self::Aside => Some("\u{1b}[2m"),
            Self::Good => Some("\u{1b}[32m"),
            Self::Moving => Some("\u{1b}[34m"),
            Self::Look => Some("\u{1b}[33m"),
            Self::Bad => Some("\u{1b}[31m"),
        }
    }

    /// `✓`, with the blank behind it; empty where it has none.
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Plain | Self::Title | Self::Aside => "",
            Self::Good => "✓ ",
            Self::Moving => "… ",
            Self::Look => "! ",
            Self::Bad => "✗ ",
        }
    }

    /// A text in this tone, for an output with colours.
    pub fn painted(self, text: &str) -> Cow<'_, str> {
        match self.sequence() {
            Some(sequence) if !text.trim().is_empty() => Cow::Owned(format!("{sequence}{text}{PLAIN}")),
            Some(_) | None => Cow::Borrowed(text),
        }
    }
}

/// What ends a tone.
const PLAIN: &str = "\u{1b}[0m";

/// Every tone that is painted.
const PAINTED: [Tone; 6] = [Tone::Title, Tone::Aside, Tone::Good, Tone::Moving, Tone::Look, Tone::Bad];

/// The beginning of a text that may go to a terminal as it is, if it is a sequence of ours: it colours, and moves nothing.
pub(crate) fn own_sequence(text: &str) -> Option<&'static str> {
    let all = PAINTED.into_iter().filter_map(Tone::sequence).chain([PLAIN]);
    all.into_iter().find(|sequence| text.starts_with(sequence))
}

/// A text in a tone, where the output has colours.
pub(crate) fn toned<'a>(f: &fmt::Formatter<'_>, tone: Tone, text: &'a str) -> Cow<'a, str> {
    if f.alternate() { tone.painted(text) } else { Cow::Borrowed(text) }
}

/// A line, wrapped where the output has an end of lines. On such an output it begins with the mark of its tone: people look at that, and
/// programs search for words.
pub(crate) fn line(f: &mut fmt::Formatter<'_>, tone: Tone, text: &str) -> fmt::Result {
    let mark = if f.width().is_some() { tone.mark() } else { "" };
    // Two blanks are between columns, and stay.
    behind(f, ("", 0), tone, &format!("{mark}{text}").replace("  ", &format!("{PAD} ")))
}

/// A text behind a margin of so many columns.
pub(crate) fn behind(
    f: &mut fmt::Formatter<'_>,
    (margin, columns): (&str, usize),
    tone: Tone,
    text: &str,
) -> fmt::Result {
    let room = f.width().map(|width| width.saturating_sub(columns));
    let mut margin = Cow::Borrowed(margin);
    for line in wrapped(text, room) {
        let line = toned(f, tone, &line);
        writeln!(f, "{margin}{line}")?;
        margin = Cow::Owned(" ".repeat(columns));
    }
    Ok(())
}

/// A line below a title. On a terminal, its mark has the colour of its tone.
pub(crate) fn listed(f: &mut fmt::Formatter<'_>, tone: Tone, text: &str) -> fmt::Result {
    let mark = if f.width().is_some() { tone.mark() } else { "" };
    let margin = format!("  {}", toned(f, tone, mark));
    behind(f, (&margin, 2 + mark.chars().count()), Tone::Plain, text)
}

/// A sentence that is the whole answer.
pub(crate) struct Sentence<'a>(pub Tone, pub &'a str);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.lines().try_for_each(|text| line(f, self.0, text))
    }
}

/// A blank at which no line is wrapped and that is not left out, for columns.
pub(crate) const PAD: char = '\u{2007}';

/// Columns of text at least: on a terminal that is narrower, lines end where the terminal ends them.
const ROOM_MIN: usize = 24;

/// A text with its words in lines of at most `room` columns; what continues is set in by two. Without an end it is one line.
pub(crate) fn wrapped(text: &str, room: Option<usize>) -> Vec<String> {
    let room = room.map(|room| room.max(ROOM_MIN));
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() && c != PAD).filter(|word| !word.is_empty()) {
        // Line breaks are blanks by now; what else others hid is shown.
        let word = &*visible(word);
        let width = line.chars().count() + 1 + word.chars().count();
        if !line.trim().is_empty() && room.is_some_and(|room| width > room) {
            lines.push(std::mem::replace(&mut line, format!("  {word}")));
        } else if line.is_empty() {
            line.push_str(word);
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.push(line);
    lines.iter().map(|line| line.replace(PAD, " ").trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_the_output_ends_and_a_pipe_has_no_end() {
        let text = "seven words that are one line\tin a pipe";
        assert_eq!(wrapped(text, None), ["seven words that are one line in a pipe"]);
        assert_eq!(wrapped(text, Some(29)), ["seven words that are one line", "  in a pipe"]);
        assert_eq!(wrapped(text, Some(28)), ["seven words that are one", "  line in a pipe"]);
        let narrow = "on three columns a terminal breaks lines itself";
        assert_eq!(wrapped(narrow, Some(3)), wrapped(narrow, Some(ROOM_MIN)));
        let long = format!("{} {}", "x".repeat(40), "y".repeat(40));
        assert_eq!(wrapped(&long, Some(30)), ["x".repeat(40), format!("  {}", "y".repeat(40))]);
        assert_eq!(wrapped(&format!("a{PAD}{PAD}b"), Some(30)), ["a  b"]);
        assert_eq!(wrapped("a\u{1b}[31mb\nc", None), ["a\\u{1b}[31mb c"], "what others hid is shown");
    }

    struct Said;

    impl fmt::Display for Said {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            line(f, Tone::Bad, "the edge has an older version")
        }
    }

    #[test]
    fn a_mark_is_for_terminals_and_a_colour_for_those_who_want_it() {
        let drawn = |columns, is_coloured| Screen { columns, is_coloured, now_ms: None }.draw(&Said);
        assert_eq!(drawn(None, false), "the edge has an older version\n");
        assert_eq!(drawn(None, true), "\u{1b}[31mthe edge has an older version\u{1b}[0m\n");
        assert_eq!(drawn(Some(80), false), "✗ the edge has an older version\n");
        let wrapped = "\u{1b}[31m✗ the edge has an older\u{1b}[0m\n\u{1b}[31m  version\u{1b}[0m\n";
        assert_eq!(drawn(Some(26), true), wrapped, "a wrapped line ends its colour");
    }

    struct Listed;

    impl fmt::Display for Listed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            listed(f, Tone::Look, "the edge has an older version")
        }
    }

    #[test]
    fn what_continues_below_a_title_stands_under_its_words_and_not_under_the_mark() {
        let drawn = |columns| Screen { columns, is_coloured: false, now_ms: None }.draw(&Listed);
        assert_eq!(drawn(Some(30)), "  ! the edge has an older\n      version\n");
        assert_eq!(drawn(None), "  the edge has an older version\n");
    }

    #[test]
    fn only_what_colours_is_a_sequence_of_ours() {
        for tone in PAINTED {
            let painted = tone.painted("x").into_owned();
            let ours = own_sequence(&painted).unwrap();
            assert_eq!(painted, format!("{ours}x{PLAIN}"));
        }
        assert_eq!(own_sequence("\u{1b}[2J"), None);
        assert_eq!(own_sequence("\u{1b}[8mhidden"), None);
        assert_eq!(own_sequence("no\u{1b}[1m"), None);
    }
}

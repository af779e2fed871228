//! How a line of the log is written: nothing in it begins another line, moves a cursor, or turns letters around.
//!
//! Values come from annotations, pods and peers. In text format a value that holds blanks, quotes or `=` is quoted, so it cannot
//! look like another field. JSON quotes by itself; hidden characters are written as its escapes, which are the same value to a
//! program. Not for what is logged, nor for secrets: those never come here.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::config::LogFormat;
use kernel::text::{clean, visible_json};

/// Longest value in text format, in bytes. Container runtimes divide longer lines than this (CRI-O and containerd: 16 KiB).
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Name and `=` of a field on a terminal, as tracing-subscriber shows them: italic and dimmed (ECMA-48, SGR).
const ITALIC: &str = "\u{1b}[3m";
const DIMMED: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Writes lines in this format; `colours` are for a terminal.
pub fn lines<S, W>(format: LogFormat, colours: bool, to: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(to);
    match format {
        LogFormat::Json => {
            Box::new(lines.json().flatten_event(true).with_current_span(false).map_event_format(VisibleJson))
        }
        LogFormat::Text => Box::new(lines.with_ansi(colours).fmt_fields(Quoted)),
    }
}

/// The lines of another format, which are JSON, with nothing hidden.
struct VisibleJson<F>(F);

impl<S, N, F> FormatEvent<S, N> for VisibleJson<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(&visible_json(&line))
    }
}

/// Fields as `name=value`, quoted where needed, beside the message.
struct Quoted;

impl<'w> FormatFields<'w> for Quoted {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line { writer, begun: false, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    begun: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn put(&mut self, field: &Field, value: &str, quotes: bool) -> fmt::Result {
        if self.begun {
            self.writer.write_char(' ')?;
        }
        self.begun = true;
        let name = field.name().trim_start_matches("r#");
        // Most messages are constant sentences of ours. Only `=` could make one look like a field.
        let is_message = name == "message";
        if !is_message && self.writer.has_ansi_escapes() {
            write!(self.writer, "{ITALIC}{name}{PLAIN}{DIMMED}={PLAIN}")?;
        } else if !is_message {
            write!(self.writer, "{name}=")?;
        }
        let needs_quotes = if is_message {
            value.contains('=')
        } else {
            quotes || value.contains(|c: char| c.is_whitespace() || matches!(c, '=' | '"'))
        };
        if !needs_quotes {
            return self.writer.write_str(&clean(value, VALUE_BYTES_MAX));
        }
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        write!(self.writer, "\"{}\"", clean(&escaped, VALUE_BYTES_MAX))
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.result = self.result.and_then(|()| self.put(field, value, field.name() != "message"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.result = self.result.and_then(|()| self.put(field, &format!("{value:?}"), false));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Everything that was written.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written of a line that says `value` in every way there is, with its time taken off.
    fn written(format: LogFormat, colours: bool, value: &str) -> String {
        let log = Log::default();
        let to = log.clone();
        let layer = lines(format, colours, move || to.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(given = value, shown = %value, error = ?io::Error::other(value.to_owned()), number = 7, "{value}");
        });
        let bytes = log.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// A line break and a line like ours, a red letter by both escapes, a turn around, a mark without a width.
    const HOSTILE: &str = "soon\n2026-11-22T00:00:00.000000Z  INFO allclear: kind=\"x\"\r\u{1b}[31mred\u{9b}32m \u{202e}txt\u{200b}\u{2028}";

    /// Anything that a terminal would not print, or print elsewhere; by its numbers, not by the code's own list.
    fn hidden(text: &str) -> Vec<char> {
        let marks = [0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff];
        let is_mark =
            |code| marks.contains(&code) || (0x202a..=0x202e).contains(&code) || (0x2066..=0x2069).contains(&code);
        let is_hidden =
            |c: &char| (u32::from(*c)) < 32 || (127..160).contains(&u32::from(*c)) || is_mark(u32::from(*c));
        text.chars().filter(is_hidden).collect()
    }

    // Faults: T12
    #[test]
    fn t12_a_value_begins_no_line_and_carries_no_escape() {
        let text = written(LogFormat::Text, false, HOSTILE);
        assert_eq!(hidden(&text), ['\n'], "{text:?}");
        assert!(text.ends_with('\n') && !text.contains(" kind=\"x\" "), "{text}");
        let json = written(LogFormat::Json, false, HOSTILE);
        assert_eq!(hidden(&json), ['\n'], "{json:?}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        for field in ["given", "shown", "message"] {
            assert_eq!(read[field], HOSTILE, "a program reads what was sent");
        }
    }

    #[test]
    fn an_honest_line_is_as_it_was() {
        let text = written(LogFormat::Text, false, "web");
        let (_, line) = text.split_once("WARN ").unwrap();
        let told = "web given=\"web\" shown=web error=\"Custom { kind: Other, error: \\\"web\\\" }\" number=7\n";
        assert_eq!(line, format!("{}: {told}", module_path!()));
        let coloured = written(LogFormat::Text, true, "web");
        assert!(coloured.contains("\u{1b}[3mshown\u{1b}[0m\u{1b}[2m=\u{1b}[0mweb"), "{coloured:?}");
    }

    #[test]
    fn a_long_value_is_cut() {
        let text = written(LogFormat::Text, false, &"x".repeat(100_000));
        assert!(text.len() < 5 * VALUE_BYTES_MAX && text.contains('…'), "{}", text.len());
    }
}

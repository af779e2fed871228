//! What a command came to, as standard output, standard error and the exit code say it.

use std::fmt;
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::screen;
use crate::looking::layout::Screen;
use kernel::text::{visible, visible_json, visible_lines};

/// Exit code of a command that failed.
pub(crate) const EXIT_FAILED: u8 = 1;

/// Exit code of arguments, or of a configuration, that were refused.
pub(crate) const EXIT_INVALID: u8 = 2;

/// How an answer is written (`-o`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people, in whole lines without colours, as a pipe or a file gets it.
    Table,
    /// For people, on this output.
    Drawn(Screen),
    /// For programs: one JSON object.
    Json,
    /// For programs that speak for a model: both of these forms of one answer, in one JSON object ([`both`]).
    Both,
}

impl Output {
    /// The time, where a person looks at it now.
    pub(crate) const fn now_ms(self) -> Option<i64> {
        match self {
            Self::Drawn(screen) => screen.now_ms,
            Self::Table | Self::Json | Self::Both => None,
        }
    }
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For standard output; ends in a line break unless it is empty.
    pub out: String,
    /// For standard error; ends in a line break unless it is empty.
    pub err: String,
    pub code: u8,
}

/// What was found, in the form that was asked for. What cannot be written as JSON is a failure, not an empty answer.
pub(crate) fn answer(found: &(impl Serialize + fmt::Display), output: Output, code: u8) -> Outcome {
    let out = match output {
        Output::Table => found.to_string(),
        Output::Drawn(screen) => screen.draw(found),
        Output::Json => match serde_json::to_string_pretty(found) {
            Ok(json) => visible_json(&json).into_owned() + "\n",
            Err(error) => return unwritten(&error),
        },
        Output::Both => match serde_json::to_value(found) {
            Ok(value) => both(&found.to_string(), &value),
            Err(error) => return unwritten(&error),
        },
    };
    Outcome { out, err: String::new(), code }
}

/// An answer in both forms: what is printed for people as `text`, and what is printed for programs as `value`.
pub(crate) fn both(text: &str, value: &Value) -> String {
    json!({ "text": text, "value": value }).to_string()
}

fn unwritten(error: &serde_json::Error) -> Outcome {
    let err = format!("error: failed to write the answer as JSON: {error}\n");
    Outcome { out: String::new(), err, code: EXIT_FAILED }
}

/// A command that did what was asked, in a text that has lines and no colours.
pub(crate) fn done(out: String) -> Outcome {
    Outcome { out: visible_lines(&out).into_owned(), err: String::new(), code: 0 }
}

/// A command that failed, and why.
pub(crate) fn refused(why: &(impl fmt::Display + ?Sized)) -> Outcome {
    Outcome { out: String::new(), err: format!("error: {}\n", visible(&why.to_string())), code: EXIT_FAILED }
}

/// Arguments that were refused, and why.
pub(crate) fn invalid(why: &(impl fmt::Display + ?Sized)) -> Outcome {
    Outcome { code: EXIT_INVALID, ..refused(why) }
}

/// Prints what a command came to. A reader that has gone away is not an error of ours.
pub(crate) fn print(outcome: &Outcome) -> ExitCode {
    let _ = screen::write_out(&outcome.out);
    screen::write_err(&outcome.err);
    ExitCode::from(outcome.code)
}

/// Says how a command that takes its time is getting on, on standard error.
pub(crate) fn progress(line: &str) {
    screen::write_progress(line);
}

/// Says why a command failed.
pub(crate) fn failed(error: &dyn fmt::Display) -> ExitCode {
    screen::write_err(&format!("error: {}\n", visible(&error.to_string())));
    ExitCode::from(EXIT_FAILED)
}

/// How an answer is printed, as `--output` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// As it is asked for, on the standard output that there is.
impl From<Format> for Output {
    fn from(format: Format) -> Self {
        match format {
            Format::Table => screen::here().map_or(Self::Table, Self::Drawn),
            Format::Json => Self::Json,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    struct NoJson(BTreeMap<(u8, u8), u8>);

    impl fmt::Display for NoJson {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("for people\n")
        }
    }

    #[test]
    fn an_answer_that_cannot_be_written_is_a_failure() {
        let found = NoJson(BTreeMap::from([((1, 2), 3)]));
        assert_eq!(answer(&found, Output::Table, 0).out, "for people\n");
        let failed = answer(&found, Output::Json, 0);
        assert_eq!((failed.out.as_str(), failed.code), ("", EXIT_FAILED));
        assert!(failed.err.contains("as JSON"), "{}", failed.err);
        assert_eq!(answer(&found, Output::Both, 0), failed);
    }
}

//! What is wrong with a configuration, where, and how to put it right.

use std::fmt;
use std::path::{Path, PathBuf};

use super::mask::harmless;
use kernel::mask::shown;

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// `configs/default.toml`, compiled in.
    Default,
    /// A line of a file, counted from 1; both are 0 where the file as a whole is meant.
    File {
        /// As it was named to us.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
    },
    /// An environment variable, or two that were put together (`REDIS_HOST, REDIS_PORT`).
    Environment(String),
    /// A flag of the command line, with its dashes.
    Flag(String),
    /// The running controller, as it wrote beside its ledger.
    Controller,
}

impl Place {
    /// A file as a whole.
    pub fn whole_file(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), line: 0, column: 0 }
    }

    /// The layer and the place in it, for `config show`: `file /etc/allclear/config.toml line 12`.
    pub fn layer(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File { path, line: 0, column: _ } => format!("file {}", named(path)),
            Self::File { path, line, column: _ } => format!("file {} line {line}", named(path)),
            Self::Environment(name) => format!("environment {name}"),
            Self::Flag(name) => format!("flag {name}"),
            Self::Controller => "the running allclear".to_owned(),
        }
    }
}

/// The place as compilers write it, so that editors can jump there: `config.toml:12:9`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0, column: _ } => write!(f, "{}", named(path)),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", named(path)),
            Self::Default | Self::Environment(_) | Self::Flag(_) | Self::Controller => f.write_str(&self.layer()),
        }
    }
}

/// A path; a key that was given in place of its file is none.
fn named(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// One thing that stops the start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where the offending value was given.
    pub place: Place,
    /// The dotted key (`purge.paths`) or the JSON pointer (`/webhooks/0/url`); empty for a file as a whole.
    pub key: String,
    /// The offending value, where it can be no secret.
    pub value: Option<String>,
    /// What is wrong with it.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}", self.key)?;
            if let Some(value) = &self.value {
                write!(f, " = \"{value}\"")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}\n    fix: {}", self.message, self.fix)
    }
}

/// Something an operator should know about a configuration that is good enough to start with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Where it comes from.
    pub place: Place,
    /// The dotted key or the JSON pointer.
    pub key: String,
    /// What will happen, and what to do if that is not wanted.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.key, self.message)
    }
}

/// The configuration was refused: every problem there is, in the order of their places, never only the first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {}\n{}", counted(.problems.len()), lines(.problems))]
pub struct Invalid {
    /// At least one.
    pub problems: Vec<Problem>,
    /// What would have been warned about, had it been valid.
    pub warnings: Vec<Warning>,
}

fn counted(problems: usize) -> String {
    if problems == 1 { "a problem".to_owned() } else { format!("{problems} problems") }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n")
}

/// Everything found so far while one configuration is read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Any of these stops the start.
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
    /// The file, or a part of it, could not be read; that was reported.
    pub unread: bool,
}

impl Findings {
    pub fn refuse(
        &mut self,
        place: &Place,
        key: &str,
        value: Option<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        // An unknown key is free text: on one line, and cut.
        let (place, key) = (place.clone(), shown(key));
        // What was refused may be a password in the wrong place; the place says where to look.
        let value = value.as_deref().and_then(harmless);
        self.problems.push(Problem { place, key, value, message: message.into(), fix: fix.into() });
    }

    pub fn warn(&mut self, place: &Place, key: &str, message: impl Into<String>) {
        self.warnings.push(Warning { place: place.clone(), key: key.to_owned(), message: message.into() });
    }
}

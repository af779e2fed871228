//! `allclear completion SHELL`, and the hidden command `__complete` that its scripts call at each press of the key.
//!
//! The answer has the form that kubectl reads of its plugins, Cobra's: a word on each line, what it is behind a tab, and a last line
//! `:NUMBER` that says what the shell does with them
//! (<https://github.com/spf13/cobra/blob/main/site/content/completions/_index.md>). So a symlink `kubectl_complete-allclear` is all that
//! `kubectl allclear` needs. It answers within [`WITHIN`], whatever the cluster does, and what fails is left out without a word:
//! nothing may get into the line that a person is typing.

mod names;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use clap::{Command, CommandFactory};

use crate::cli::arguments::{Cli, Shell};
use crate::cli::examples;
use kernel::text::visible;
use names::Finding;
use place::{Place, Source};

/// Time for the cluster to answer.
const WITHIN: Duration = Duration::from_secs(1);

/// Names that are shown at most. A person who sees them types on.
const SHOWN_MAX: usize = 2_000;

/// The program's name when kubectl asks it for completions.
pub const OF_PLUGIN: &str = "kubectl_complete-allclear";

/// What the shell does with the words, as Cobra numbers it: no blank behind the word, and no names of files.
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;

/// One word that may stand there, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub word: String,
    /// What it is; may be empty.
    pub about: String,
}

/// Prints the script of a shell.
pub(super) fn script(shell: Shell) -> ExitCode {
    let generated = |shell: clap_complete::Shell| {
        // Into memory first: the library panics where its reader has gone away.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut examples::dressed(Cli::command(), None), "allclear", &mut script);
        script
    };
    let script = match shell {
        Shell::Bash => include_bytes!("completion/allclear.bash").to_vec(),
        Shell::Zsh => include_bytes!("completion/allclear.zsh").to_vec(),
        Shell::Fish => include_bytes!("completion/allclear.fish").to_vec(),
        Shell::Elvish => generated(clap_complete::Shell::Elvish),
        Shell::Power => generated(clap_complete::Shell::PowerShell),
    };
    let _ = io::stdout().write_all(&script);
    ExitCode::SUCCESS
}

/// Answers what may stand in the place of the last word.
pub(super) fn complete(words: &[OsString], environment: BTreeMap<String, String>) -> ExitCode {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = examples::dressed(Cli::command(), None);
    command.build();
    let _ = io::stdout().write_all(answer(&command, &words, environment).as_bytes());
    ExitCode::SUCCESS
}

/// The words and what the shell does with them.
fn answer(command: &Command, words: &[String], environment: BTreeMap<String, String>) -> String {
    let place = Place::of(command, words);
    if place.source == Some(Source::Files) {
        return ":0\n".to_owned();
    }
    let mut found: BTreeSet<Candidate> =
        place.fixed.iter().filter(|one| one.word.starts_with(&place.word)).cloned().collect();
    if place.source.is_some() {
        let (names, whole) = looked_up(&place, environment);
        let whole = whole && names.len() <= SHOWN_MAX;
        found.extend(names.into_iter().take(SHOWN_MAX));
        if !whole && !found.is_empty() {
            // Shells type what all words begin with, so a part of the words must not look like all of them.
            let word = if place.word.is_empty() { "…".to_owned() } else { place.word.clone() };
            found.insert(Candidate { word, about: "there are more; type on".to_owned() });
        }
    }
    let directive = if found.iter().any(|one| one.word.ends_with('/')) { NO_FILES | NO_SPACE } else { NO_FILES };
    let mut text = String::new();
    for Candidate { word, about } in &found {
        text.push_str(&visible(word));
        if let Some(line) = about.lines().next().filter(|line| !line.is_empty()) {
            text.push('\t');
            text.push_str(&visible(line));
        }
        text.push('\n');
    }
    text.push_str(&format!(":{directive}\n"));
    text
}

/// The names that fit, and whether they are all. A thread of its own looks: credential plugins block where they run, and this
/// program ends without waiting for them.
fn looked_up(place: &Place, environment: BTreeMap<String, String>) -> (BTreeSet<Candidate>, bool) {
    let found = Arc::new(Mutex::new(BTreeSet::new()));
    let (done, is_done) = mpsc::channel();
    let finding = Finding { place: place.clone(), environment, found: Arc::clone(&found) };
    let look = move || {
        let whole = actix::System::new().block_on(finding.find());
        // The receiver has gone away if the time is over.
        let _ = done.send(whole);
    };
    if std::thread::Builder::new().name("names".to_owned()).spawn(look).is_err() {
        return (BTreeSet::new(), true);
    }
    let whole = is_done.recv_timeout(WITHIN).unwrap_or(false);
    let names = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (names, whole)
}

#[cfg(test)]
mod tests;

//! Which argument the last word of a command line is for, by the same tables as the arguments are read with, and what may stand there.

use std::collections::BTreeMap;

use clap::{Arg, Command};

use super::Candidate;

/// Where the last word stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// What was typed of the word so far; of `--namespace=sh`, what is behind the `=`.
    pub word: String,
    /// Words that do not depend on a cluster.
    pub fixed: Vec<Candidate>,
    /// Where further words come from.
    pub source: Option<Source>,
    /// What was given before, by the names of the arguments.
    pub given: BTreeMap<String, String>,
}

/// What the names are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Namespaces,
    Workloads,
    Pipelines,
    Repos,
    /// The environments of the Pipeline that was given.
    Environments,
    /// Members of the group.
    Members,
    Receivers,
    /// Contexts of the kubeconfig.
    Contexts,
    /// Files; the shell knows them.
    Files,
}

/// A command line as far as it was read.
struct Reading<'a> {
    command: &'a Command,
    path: Vec<&'a str>,
    positionals: usize,
    /// The option whose value is next.
    open: Option<&'a Arg>,
    /// After `--`.
    only_values: bool,
    given: BTreeMap<String, String>,
}

impl Place {
    /// Of the words behind the program's name; the last one is being typed, and may be empty.
    pub fn of(command: &Command, words: &[String]) -> Self {
        let Some((word, before)) = words.split_last() else { return Self::default() };
        let mut reading = Reading {
            command,
            path: Vec::new(),
            positionals: 0,
            open: None,
            only_values: false,
            given: BTreeMap::new(),
        };
        before.iter().for_each(|word| reading.take(word));
        reading.place(word)
    }
}

impl<'a> Reading<'a> {
    fn take(&mut self, word: &str) {
        if let Some(option) = self.open.take() {
            self.given.insert(option.get_id().to_string(), word.to_owned());
        } else if self.only_values || !word.starts_with('-') || word == "-" {
            self.take_value(word);
        } else if word == "--" {
            self.only_values = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            self.take_option(self.long(name), value);
        } else {
            let mut letters = word.chars().skip(1);
            let option = letters.next().and_then(|letter| self.short(letter));
            let value: String = letters.collect();
            self.take_option(option, Some(value.as_str()).filter(|value| !value.is_empty()));
        }
    }

    fn take_option(&mut self, option: Option<&'a Arg>, value: Option<&str>) {
        let Some(option) = option.filter(|option| takes_value(option)) else { return };
        match value {
            Some(value) => drop(self.given.insert(option.get_id().to_string(), value.to_owned())),
            None if !option.is_require_equals_set() => self.open = Some(option),
            None => {}
        }
    }

    fn take_value(&mut self, word: &str) {
        if self.positionals == 0
            && let Some(next) = self.command.find_subcommand(word)
        {
            self.command = next;
            self.path.push(next.get_name());
            return;
        }
        if let Some(positional) = self.positional() {
            self.given.insert(positional.get_id().to_string(), word.to_owned());
        }
        self.positionals += 1;
    }

    fn place(self, word: &str) -> Place {
        if let Some(option) = self.open {
            return self.values(option, word);
        }
        if !self.only_values && word.starts_with('-') {
            let named = word.strip_prefix("--").and_then(|long| long.split_once('='));
            return match named.map(|(name, value)| (self.long(name), value)) {
                Some((Some(option), value)) => self.values(option, value),
                Some((None, _)) => Place::default(),
                None => self.options(word),
            };
        }
        let mut place = match self.positional() {
            Some(positional) => self.values(positional, word),
            None => Place { word: word.to_owned(), given: self.given.clone(), ..Place::default() },
        };
        if self.positionals == 0 {
            let shown = self.command.get_subcommands().filter(|one| !one.is_hide_set());
            place.fixed.extend(shown.map(|one| candidate(one.get_name(), one.get_about())));
        }
        place
    }

    fn options(&self, word: &str) -> Place {
        let shown = self.command.get_arguments().filter(|option| !option.is_hide_set());
        let named = shown.filter_map(|option| Some((option.get_long()?, option)));
        let fixed = named.map(|(long, option)| candidate(&format!("--{long}"), option.get_help())).collect();
        Place { word: word.to_owned(), fixed, source: None, given: self.given.clone() }
    }

    /// What may be the value of an argument.
    fn values(&self, argument: &Arg, word: &str) -> Place {
        let possible = argument.get_possible_values();
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let fixed: Vec<Candidate> = shown.map(|value| candidate(value.get_name(), value.get_help())).collect();
        let source = if fixed.is_empty() { self.source(argument.get_id().as_str(), word) } else { None };
        Place { word: word.to_owned(), fixed, source, given: self.given.clone() }
    }

    fn source(&self, argument: &str, word: &str) -> Option<Source> {
        match (argument, self.path.first().copied()) {
            ("name", Some("pipeline")) => Some(Source::Pipelines),
            ("name", Some("repo")) => Some(Source::Repos),
            ("name", Some("explain")) if word.starts_with("pipeline/") => Some(Source::Pipelines),
            ("name", Some("explain")) if word.starts_with("repo/") => Some(Source::Repos),
            ("name", _) => Some(Source::Workloads),
            ("environment", Some("pipeline")) => Some(Source::Environments),
            ("member", Some("group")) => Some(Source::Members),
            ("receiver", _) => Some(Source::Receivers),
            ("namespace" | "ledger_namespace", _) => Some(Source::Namespaces),
            ("context", _) => Some(Source::Contexts),
            ("config" | "kubeconfig", _) => Some(Source::Files),
            _ => None,
        }
    }

    fn positional(&self) -> Option<&'a Arg> {
        self.command.get_positionals().nth(self.positionals)
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|option| option.get_long() == Some(name))
    }

    fn short(&self, letter: char) -> Option<&'a Arg> {
        self.command.get_arguments().find(|option| option.get_short() == Some(letter))
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn candidate(word: &str, about: Option<&clap::builder::StyledStr>) -> Candidate {
    Candidate { word: word.to_owned(), about: about.map(ToString::to_string).unwrap_or_default() }
}

//! The reference of all keys, made from what is compiled in: `configs/default.toml` for defaults and words, the
//! validator for what is accepted. README's table is this text, which a test holds it to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use super::env::{name_of, old_names_of};
use super::layers::{DEFAULT_TOML, Layer, built_in};
use super::problem::Findings;
use super::show::plain_text;
use super::validate;
use super::values::Values;

/// One key, documented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Dotted.
    pub key: String,
    /// As `config show` shows it; empty for "not set".
    pub default: String,
    /// What it accepts, with unit and bounds.
    pub accepts: String,
    /// `ALLCLEAR__…`
    pub environment: String,
    /// The old program's names for it; none for most keys.
    pub old_names: Vec<&'static str>,
    /// What it does.
    pub text: String,
}

/// All keys in the order of `configs/default.toml`.
pub fn reference() -> Vec<Reference> {
    let mut findings = Findings::default();
    let defaults = built_in(&mut findings);
    let accepts = accepted(&defaults);
    let documented = |(key, text): (String, String)| {
        let default = defaults.values.get(&key).map(|given| plain_text(&given.value)).unwrap_or_default();
        let accepts = accepts.get(key.as_str()).cloned().unwrap_or_default();
        let (environment, old_names) = (name_of(&key), old_names_of(&key).to_vec());
        Reference { key, default, accepts, environment, old_names, text }
    };
    comments(DEFAULT_TOML).into_iter().map(documented).collect()
}

/// README's table, one row for each key.
pub fn reference_table() -> String {
    let mut table = String::from("| key | default | accepts | what it does |\n|---|---|---|---|\n");
    for Reference { key, default, accepts, environment, old_names, text } in reference() {
        let default = if default.is_empty() { "not set".to_owned() } else { format!("`{default}`") };
        let names: Vec<String> = old_names.iter().map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() {
            format!("`{environment}`")
        } else {
            format!("`{environment}`, {}", names.join(", "))
        };
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| `{key}`<br>{names} | {} | {} | {} |", cell(&default), cell(&accepts), cell(&text));
    }
    table
}

/// What each key accepts, found by reading the defaults.
pub(super) fn accepted(defaults: &Layer) -> BTreeMap<&'static str, String> {
    let mut findings = Findings::default();
    let mut values = Values::new(defaults, &mut findings);
    validate::config(&mut values, &|_| Err(io::ErrorKind::NotFound.into()));
    values.accepts
}

/// A table's cell: a bar would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The comment right above each key. Only our own file is read like this, so lines are enough.
fn comments(text: &str) -> Vec<(String, String)> {
    let (mut section, mut comment, mut found) = (String::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            comment.push(words);
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((name, _)) = line.split_once(" = ") {
            found.push((format!("{section}{name}"), comment.join(" ")));
        }
        comment.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    // `configs/default.toml` and the validator are written by hand, one beside the other.
    #[test]
    fn every_key_is_read_documented_and_has_a_default() {
        let mut findings = Findings::default();
        let defaults = built_in(&mut findings);
        let in_file: Vec<&str> = defaults.keys().collect();
        let read: Vec<&str> = accepted(&defaults).into_keys().collect();
        assert_eq!(in_file, read);
        let mut documented: Vec<String> = reference().into_iter().map(|row| row.key).collect();
        documented.sort();
        assert_eq!(documented, in_file);
        for row in reference() {
            assert!(row.text.len() > 20 && row.text.ends_with('.'), "{row:?}");
            assert!(!row.accepts.is_empty(), "{row:?}");
        }
    }

    #[test]
    fn readme_has_this_table() {
        let readme = include_str!("../../README.md");
        let (_, from) = readme.split_once("<!-- configuration: ").unwrap();
        let (_, from) = from.split_once("-->\n").unwrap();
        let (table, _) = from.split_once("<!-- /configuration -->").unwrap();
        let expected = reference_table();
        assert_eq!(table, expected, "put this between the markers in README.md:\n\n{expected}");
    }

    #[test]
    fn the_table_has_a_row_for_each_key() {
        let table = reference_table();
        assert_eq!(table.lines().count(), reference().len() + 2);
        let url = table.lines().find(|line| line.contains("`redis.url`")).unwrap();
        assert!(url.contains("`ALLCLEAR__REDIS__URL`, `REDIS_HOST`, `REDIS_PORT` | not set |"), "{url}");
    }
}

//! The reference of all keys, made from what is compiled in: `configs/default.toml` for defaults and words, the
//! validator for what is accepted. `docs/configuration.md` shows this text, which a test holds it to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use super::env::{name_of, old_names_of};
use super::layers::{DEFAULT_TOML, Layer, built_in};
use super::problem::Findings;
use super::show::plain_text;
use super::validate;
use super::values::Values;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub key: String,
    /// As `config show` shows it; empty for "not set".
    pub default: String,
    /// What it accepts, with unit and bounds.
    pub accepts: String,
    /// `ALLCLEAR__…`
    pub environment: String,
    /// The old program's names for it; none for most keys.
    pub old_names: Vec<&'static str>,
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

/// The heading above the keys that belong to no section.
const TOP: &str = "The whole program";

/// The tables of `docs/configuration.md`: one for each section, and in it one row for each key.
pub fn reference_tables() -> String {
    let mut tables = String::new();
    let mut section = None;
    for Reference { key, default, accepts, environment, old_names, text } in reference() {
        let of = key.split_once('.').map_or(TOP, |(section, _)| section).to_owned();
        // Writing to a String cannot fail.
        if section.as_ref() != Some(&of) {
            let heading = if of == TOP { of.clone() } else { format!("`{of}`") };
            let _ = writeln!(tables, "\n### {heading}\n");
            let _ = writeln!(tables, "| key | environment | default | accepts | what it does |\n|---|---|---|---|---|");
            section = Some(of);
        }
        let default = if default.is_empty() { "not set".to_owned() } else { format!("`{default}`") };
        let names: Vec<String> =
            std::iter::once(environment.as_str()).chain(old_names).map(|name| format!("`{name}`")).collect();
        let names = names.join("<br>");
        let _ = writeln!(tables, "| `{key}` | {names} | {} | {} | {} |", cell(&default), cell(&accepts), cell(&text));
    }
    tables
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

    /// Around the tables in `docs/configuration.md`.
    const BEGIN: &str = "<!-- made by make_the_configuration_reference -->\n";
    const END: &str = "\n<!-- /made -->";

    fn page() -> String {
        concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md").to_owned()
    }

    /// What stands before, between and after the marks.
    fn parts(text: &str) -> [&str; 3] {
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (made, after) = rest.split_once(END).unwrap();
        [before, made, after]
    }

    #[test]
    fn the_page_of_the_configuration_is_current() {
        let text = std::fs::read_to_string(page()).unwrap();
        let [_, made, _] = parts(&text);
        assert_eq!(
            made,
            reference_tables(),
            "make it again: cargo test --lib -- --ignored make_the_configuration_reference"
        );
    }

    #[test]
    #[ignore = "writes docs/configuration.md"]
    fn make_the_configuration_reference() {
        let text = std::fs::read_to_string(page()).unwrap();
        let [before, _, after] = parts(&text);
        std::fs::write(page(), [before, BEGIN, &reference_tables(), END, after].concat()).unwrap();
    }

    #[test]
    fn the_tables_have_a_row_for_each_key_below_its_section() {
        let tables = reference_tables();
        assert_eq!(tables.matches("\n| `").count(), reference().len());
        let url = tables.lines().find(|line| line.contains("`redis.url`")).unwrap();
        assert!(
            url.contains("| `ALLCLEAR__REDIS__URL`<br>`REDIS_HOST`<br>`REDIS_PORT` | not set | `host`, `host:port`"),
            "{url}"
        );
        let (_, from) = tables.split_once("### `redis`\n").unwrap();
        let (redis, _) = from.split_once("### ").unwrap();
        assert!(redis.contains("`redis.url`") && redis.contains("`redis.ca_file`"), "{redis}");
        assert!(tables.starts_with("\n### The whole program\n"), "{tables}");
    }
}

//! The four layers and their merging. A layer is a map from dotted key to value, and remembers where each was given.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use config::{ConfigError, Map, Source, Value, ValueKind};
use toml::de::{DeTable, DeValue};

use super::problem::{Findings, Place};
use super::suggest::{listed, nearest, unknown};
use super::syntax::Broken;
use kernel::text::unread;

/// The built-in layer, and the list of all keys.
pub(super) const DEFAULT_TOML: &str = include_str!("../../configs/default.toml");

/// The keys that are lists of tables, each table with keys of its own: `[[tenants.allow]]`. Only a file can give them.
const TABLES: [&str; 4] = ["cache", "tenants.allow", "workloads.custom", "aws.account"];

/// A value as it was given, not yet judged.
#[derive(Clone)]
pub(super) struct Given {
    /// Text, number, truth value or a list of such.
    pub value: ValueKind,
    pub place: Place,
}

/// The values of one layer by dotted key.
#[derive(Clone, Default)]
pub(super) struct Layer {
    pub values: BTreeMap<String, Given>,
}

impl Layer {
    pub fn insert(&mut self, key: &str, value: ValueKind, place: Place) {
        self.values.insert(key.to_owned(), Given { value, place });
    }

    /// Takes a misspelt key's value for that of the key that was meant, unless that one is given too: what is said of the other
    /// keys must not follow from the slip as well.
    pub fn insert_meant(&mut self, meant: Vec<(String, ValueKind, Place)>) {
        for (key, value, place) in meant {
            self.values.entry(key).or_insert(Given { value, place });
        }
    }

    /// All keys there are. Only the built-in layer may be asked.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.values.keys().map(String::as_str)
    }
}

/// The layer of the file that was `named`, or of the `usual` one where there is one.
pub(super) fn file_layer(
    (named, usual): (Option<&Path>, &str),
    read: impl Fn(&Path) -> io::Result<String>,
    known: &Layer,
    findings: &mut Findings,
) -> Layer {
    let path = named.unwrap_or(Path::new(usual));
    match read(path) {
        Ok(text) => of_file(&text, path, known, findings),
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Layer::default(),
        Err(error) => {
            let message = format!("cannot be read: {}", unread(&error));
            let fix =
                if named.is_some() { "name an existing file with --config" } else { "make it readable, or remove it" };
            findings.refuse(&Place::whole_file(path), "", None, message, fix);
            findings.unread = true;
            Layer::default()
        }
    }
}

/// Names only: a value may hold a password.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let value = |given: &Given| Value::new(Some(&given.place.layer()), given.value.clone());
        Ok(self.values.iter().map(|(key, given)| (key.clone(), value(given))).collect())
    }
}

/// Puts layers on top of each other, the later ones winning key by key. A list replaces a list as a whole.
pub(super) fn merged(layers: &[Layer]) -> Result<Layer, ConfigError> {
    let builder = layers.iter().fold(config::Config::builder(), |builder, layer| builder.add_source(layer.clone()));
    let root = builder.build()?.cache;
    let mut out = Layer::default();
    let keys: BTreeSet<&str> = layers.iter().flat_map(Layer::keys).collect();
    for key in keys {
        let place = layers.iter().rev().find_map(|layer| layer.values.get(key)).map(|given| given.place.clone());
        if let (Some(value), Some(place)) = (value_at(&root, key), place) {
            out.insert(key, value.kind.clone(), place);
        }
    }
    Ok(out)
}

fn value_at<'a>(root: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(root, |value, name| match &value.kind {
        ValueKind::Table(table) => table.get(name),
        _ => None,
    })
}

pub(super) fn built_in(findings: &mut Findings) -> Layer {
    TomlReader::new(&|_| Place::Default, None, findings).read(DEFAULT_TOML)
}

/// The layer of a file: every key must be one of `known`.
pub(super) fn of_file(text: &str, path: &Path, known: &Layer, findings: &mut Findings) -> Layer {
    let lines = Lines::new(text);
    let place = |offset| lines.place(path, offset);
    TomlReader::new(&place, Some(known), findings).read(text)
}

/// The layer of the command line.
pub(super) fn of_flags(flags: &BTreeMap<String, String>, known: &Layer, findings: &mut Findings) -> Layer {
    let mut layer = Layer::default();
    for (key, text) in flags {
        let place = |key: &str| Place::Flag(format!("--{}", key.replace(['.', '_'], "-")));
        if known.values.contains_key(key) {
            layer.insert(key, ValueKind::String(text.clone()), place(key));
        } else {
            let named = unknown(key);
            findings.refuse(&place(&named), &named, None, "is not a key", did_you_mean(key, known));
        }
    }
    layer
}

/// What to do about a key that does not exist.
pub(super) fn did_you_mean(key: &str, known: &Layer) -> String {
    if let Some(name) = nearest(key, known.keys()) {
        return format!("did you mean {name}?");
    }
    // The right name in the wrong section.
    let last = key.rsplit('.').next().unwrap_or(key);
    let homes: Vec<&str> = known.keys().filter(|name| name.rsplit('.').next() == Some(last)).collect();
    if !homes.is_empty() {
        return format!("did you mean {}?", listed(homes));
    }
    if let Some(section) = nearest_section(key, known) {
        return format!("did you mean the section {section}?");
    }
    let section = key.split_once('.').map(|(section, _)| format!("{section}."));
    let siblings: Vec<&str> =
        section.map(|section| known.keys().filter(|name| name.starts_with(&section)).collect()).unwrap_or_default();
    if siblings.is_empty() {
        format!("remove it, or use a key of {}", listed(sections(known)))
    } else {
        format!("remove it, or use {}", listed(siblings))
    }
}

fn sections(known: &Layer) -> BTreeSet<&str> {
    known.keys().filter_map(|name| name.split_once('.')).map(|(section, _)| section).collect()
}

/// The section that was meant by a section that does not exist, or by the first part of a key.
fn nearest_section<'a>(key: &str, known: &'a Layer) -> Option<&'a str> {
    let section = key.split('.').next().unwrap_or(key);
    let sections = sections(known);
    if sections.contains(section) { None } else { nearest(section, sections) }
}

/// Byte offsets of lines, to turn an offset into a line and a column.
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub fn new(text: &str) -> Self {
        let after_newline = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after_newline).collect() }
    }

    /// Line from 1; column in bytes from 1, so that it costs nothing in a file of one long line.
    pub fn place(&self, path: &Path, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or(0);
        Place::File { path: path.to_owned(), line: line.max(1), column: offset.saturating_sub(start) + 1 }
    }
}

struct TomlReader<'a> {
    place: &'a dyn Fn(usize) -> Place,
    /// `None` while the list of keys itself is read.
    known: Option<&'a Layer>,
    findings: &'a mut Findings,
    layer: Layer,
    /// Values of misspelt keys, by the key that was meant.
    meant: Vec<(String, ValueKind, Place)>,
    broken: Broken,
}

impl<'a> TomlReader<'a> {
    fn new(place: &'a dyn Fn(usize) -> Place, known: Option<&'a Layer>, findings: &'a mut Findings) -> Self {
        Self { place, known, findings, layer: Layer::default(), meant: Vec::new(), broken: Broken::default() }
    }

    fn read(mut self, text: &str) -> Layer {
        let (table, errors) = DeTable::parse_recoverable(text);
        self.broken = Broken::of(text, &errors);
        for mistake in &self.broken.mistakes {
            let place = (self.place)(mistake.offset);
            self.findings.refuse(&place, "", None, mistake.message.as_str(), mistake.fix);
            self.findings.unread = true;
        }
        self.table("", table.get_ref());
        self.layer.insert_meant(self.meant);
        self.layer
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            if !self.broken.judges(name.span().start) {
                continue;
            }
            let key = format!("{prefix}{}", name.get_ref());
            let is_section = prefix.is_empty() && self.is_section(&key);
            match value.get_ref() {
                DeValue::Table(inner) if is_section => self.table(&format!("{key}."), inner),
                _ if is_section => {
                    let place = (self.place)(value.span().start);
                    let fix = format!("write [{key}] on a line of its own, and its keys below");
                    self.findings.refuse(&place, &key, None, "is a section, not a key", fix);
                }
                value_kind => self.key(&key, &name.span(), &value.span(), value_kind),
            }
        }
    }

    fn key(&mut self, key: &str, name_span: &Range<usize>, value_span: &Range<usize>, value: &DeValue<'_>) {
        if let Some(known) = self.known.filter(|known| !known.values.contains_key(key)) {
            let fix = did_you_mean(key, known);
            // A misspelt key may be a misspelt secret, so its value is not shown.
            let what = if matches!(value, DeValue::Table(_)) { "is not a section" } else { "is not a key" };
            self.findings.refuse(&(self.place)(name_span.start), &unknown(key), None, what, fix);
            match (value, nearest_section(key, known), nearest(key, known.keys())) {
                (DeValue::Table(inner), Some(section), _) => self.table(&format!("{section}."), inner),
                (value, _, Some(meant)) => {
                    let meant = plain(value).map(|kind| (meant.to_owned(), kind, (self.place)(value_span.start)));
                    self.meant.extend(meant);
                }
                (_, _, None) => {}
            }
            return;
        }
        // Half a value is no value: it was reported as a mistake of the syntax.
        if !self.broken.judges_all(value_span) {
            return;
        }
        let place = (self.place)(value_span.start);
        let read = if TABLES.contains(&key) { tables(value) } else { plain(value) };
        match read {
            Ok(kind) => self.layer.insert(key, kind, place),
            Err(kind) => self.findings.refuse(&place, key, None, format!("cannot be a {kind}"), "write a plain value"),
        }
    }

    fn is_section(&self, name: &str) -> bool {
        match self.known {
            Some(known) => known.keys().any(|key| key.split_once('.').is_some_and(|(section, _)| section == name)),
            None => !DEFAULT_TOML.contains(&format!("\n{name} = ")),
        }
    }
}

/// A list of tables of plain values, or of tables of scalars; otherwise the name of what it is.
fn tables(value: &DeValue<'_>) -> Result<ValueKind, &'static str> {
    let DeValue::Array(items) = value else { return plain(value) };
    let table = |item: &DeValue<'_>| match item {
        DeValue::Table(entries) => entries
            .iter()
            .map(|(name, value)| Ok((name.get_ref().to_string(), Value::new(None, entry(value.get_ref())?))))
            .collect::<Result<Map<String, Value>, &'static str>>()
            .map(|table| Value::new(None, ValueKind::Table(table))),
        other => scalar(other).map(|kind| Value::new(None, kind)),
    };
    items.iter().map(|item| table(item.get_ref())).collect::<Result<Vec<Value>, _>>().map(ValueKind::Array)
}

/// A value of an entry.
fn entry(value: &DeValue<'_>) -> Result<ValueKind, &'static str> {
    let DeValue::Table(inner) = value else { return plain(value) };
    let scalars =
        inner.iter().map(|(name, value)| Ok((name.get_ref().to_string(), Value::new(None, scalar(value.get_ref())?))));
    scalars.collect::<Result<Map<String, Value>, &'static str>>().map(ValueKind::Table)
}

/// A scalar or a list of scalars; otherwise the name of what it is.
fn plain(value: &DeValue<'_>) -> Result<ValueKind, &'static str> {
    Ok(match value {
        DeValue::String(text) => ValueKind::String(text.to_string()),
        DeValue::Boolean(value) => ValueKind::Boolean(*value),
        // Numbers stay as they were written until the key's own rule reads them.
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => ValueKind::I64(number),
            Err(_) => return Err("number of this size"),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => ValueKind::Float(number),
            Err(_) => return Err("number of this form"),
        },
        DeValue::Array(items) => {
            let items: Result<Vec<Value>, _> =
                items.iter().map(|item| scalar(item.get_ref()).map(|kind| Value::new(None, kind))).collect();
            ValueKind::Array(items?)
        }
        DeValue::Datetime(_) => return Err("date"),
        DeValue::Table(_) => return Err("table"),
    })
}

fn scalar(value: &DeValue<'_>) -> Result<ValueKind, &'static str> {
    match value {
        DeValue::Array(_) => Err("list of lists"),
        DeValue::Table(_) => Err("list of tables"),
        scalar => plain(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Layer {
        let mut findings = Findings::default();
        let known = built_in(&mut findings);
        assert_eq!(findings.problems, []);
        known
    }

    fn problems(text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        of_file(text, Path::new("c.toml"), &known(), &mut findings);
        findings.problems.iter().map(|problem| problem.to_string().replace("\n    fix", "; fix")).collect()
    }

    #[test]
    fn every_mistake_of_a_file_is_found_with_its_place() {
        let text =
            "dry_rum = true\nhttp = 8080\n[purge]\ndebonce = \"1s\"\npaths = [\"/*\", [\"/a\"]]\n\n[purgee]\nx = 1\n";
        assert_eq!(
            problems(text),
            [
                "c.toml:1:1: dry_rum: is not a key; fix: did you mean dry_run?",
                "c.toml:2:8: http: is a section, not a key; fix: write [http] on a line of its own, and its keys below",
                "c.toml:4:1: purge.debonce: is not a key; fix: did you mean purge.debounce?",
                "c.toml:5:9: purge.paths: cannot be a list of lists; fix: write a plain value",
                "c.toml:7:2: purgee: is not a section; fix: did you mean the section purge?",
                "c.toml:8:1: purge.x: is not a key; fix: remove it, or use purge.again_after, purge.again_max, purge.budget, \
                 purge.completion_timeout, purge.creations_per_second, purge.creations_per_second_max, \
                 purge.debounce, purge.on_recovered, purge.on_rollback, purge.paths, purge.poll_first or \
                 purge.sample_tags",
            ]
        );
    }

    #[test]
    fn a_syntax_error_does_not_quote_the_line() {
        let found = problems("[redis]\nurl = \"redis://:hunter2@cache\n[purge]\ndebonce = 1\n");
        assert!(found.iter().any(|problem| problem.starts_with("c.toml:2:")), "{found:?}");
        assert!(!found.concat().contains("hunter2"), "{found:?}");
    }

    #[test]
    fn the_right_name_in_the_wrong_section_is_recognised() {
        assert_eq!(did_you_mean("rollout.debounce", &known()), "did you mean purge.debounce?");
        assert_eq!(did_you_mean("log.colour", &known()), "remove it, or use log.format or log.level");
    }

    #[test]
    fn ten_thousand_levels_of_nesting_are_survived() {
        let deep = format!("{}a = 1", "a.".repeat(10_000));
        assert!(!problems(&deep).is_empty());
        assert!(!problems(&format!("a = {}", "[".repeat(10_000))).is_empty());
    }
}

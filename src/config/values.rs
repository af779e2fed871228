//! Reads one value after the other into its type, and goes on after a bad one, so that all are reported together.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use config::{Map, Value, ValueKind};

use super::address::Refused;
use super::layers::{Given, Layer};
use super::mask::shown_item;
use super::problem::{Findings, Place};
use super::suggest::{listed, nearest};
use kernel::mask::shown;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Characters of a DNS label, which namespaces are (RFC 1123, 2.1).
pub(super) const LABEL_CHARS_MAX: usize = 63;

/// The merged values, and what was found out about them. Every method gives `None` after it has reported a problem.
pub(super) struct Values<'a> {
    pub given: &'a Layer,
    pub findings: &'a mut Findings,
    /// What every key accepts, in words: filled while values are read, so that documentation cannot differ from it.
    pub accepts: BTreeMap<&'static str, String>,
}

/// One item of a list, and how it may be shown.
struct Item {
    text: String,
    shown: String,
}

impl<'a> Values<'a> {
    pub fn new(given: &'a Layer, findings: &'a mut Findings) -> Self {
        Self { given, findings, accepts: BTreeMap::new() }
    }

    /// Where a key's value was given.
    pub fn place(&self, key: &str) -> Place {
        self.given.values.get(key).map_or(Place::Default, |given| given.place.clone())
    }

    /// `true` or `false`.
    pub fn truth(&mut self, key: &'static str) -> Option<bool> {
        self.accepts(key, "`true` or `false`");
        let given = self.given(key)?;
        match &given.value {
            ValueKind::Boolean(value) => Some(*value),
            ValueKind::String(text) if is_untyped(&given) => match text.trim().to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => self.refuse(
                    key,
                    Some(shown(text)),
                    Refused::new("is neither true nor false", "write true or false"),
                ),
            },
            other => self.wrong_type(key, other, "true or false, without quotes"),
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let words = || choices.iter().map(|(word, _)| *word);
        let quoted: Vec<String> = words().map(|word| format!("`{word}`")).collect();
        self.accepts(key, listed(quoted.iter().map(String::as_str)));
        let text = self.text(key)?;
        match choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())) {
            Some((_, choice)) => Some(*choice),
            None => {
                let fix = match nearest(text.trim(), words()) {
                    Some(word) => format!("did you mean {word}? Possible are {}", listed(words())),
                    None => format!("write {}", listed(words())),
                };
                self.refuse(key, Some(shown(&text)), Refused::new("is not a choice", fix))
            }
        }
    }

    /// A number with a unit, such as `15m`.
    pub fn duration(&mut self, key: &'static str, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.accepts(key, format!("duration, {}", in_words(&range)));
        let given = self.given(key)?;
        if let ValueKind::I64(_) | ValueKind::Float(_) = given.value {
            return self.refuse(key, Some(given.value.to_string()), no_unit());
        }
        let text = self.text(key)?;
        match parse_duration(&text, &range) {
            Ok(duration) => Some(duration),
            Err(refused) => self.refuse(key, Some(shown(&text)), refused),
        }
    }

    /// A list of durations.
    pub fn durations(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Duration>,
        items_max: usize,
    ) -> Option<Vec<Duration>> {
        let accepts = format!("list of durations, each {}", in_words(&range));
        self.list(key, &accepts, items_max, |text| parse_duration(text, &range))
    }

    pub fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        self.accepts(key, format!("number, {} to {}", range.start(), range.end()));
        let given = self.given(key)?;
        let number = match &given.value {
            ValueKind::Float(number) => Some(*number),
            ValueKind::I64(number) => i32::try_from(*number).ok().map(f64::from),
            ValueKind::String(text) if is_untyped(&given) => text.trim().parse().ok(),
            other => return self.wrong_type(key, other, "a number, without quotes"),
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let fix = format!("write a number from {} to {}", range.start(), range.end());
                self.refuse(key, Some(shown(&given.value.to_string())), Refused::new("is not in range", fix))
            }
        }
    }

    /// A number without a fraction.
    pub fn whole<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + Display + FromStr + PartialOrd + TryFrom<i64>,
    {
        self.accepts(key, format!("whole number, {} to {}", range.start(), range.end()));
        let given = self.given(key)?;
        let number = match &given.value {
            ValueKind::I64(number) => T::try_from(*number).ok(),
            ValueKind::Float(_) => None,
            ValueKind::String(text) if is_untyped(&given) => text.trim().parse().ok(),
            other => return self.wrong_type(key, other, "a whole number, without quotes"),
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let fix = format!("write a whole number from {} to {}", range.start(), range.end());
                self.refuse(key, Some(shown(&given.value.to_string())), Refused::new("is not in range", fix))
            }
        }
    }

    /// A text that must be given.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        accepts: &str,
        parse: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<T> {
        self.accepts(key, accepts);
        let text = self.text(key)?;
        match parse(text.trim()) {
            Ok(value) => Some(value),
            Err(refused) => self.refuse(key, Some(shown(&text)), refused),
        }
    }

    /// A text that may be left out, by leaving it empty.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        accepts: &str,
        parse: impl FnOnce(&str) -> Result<T, Refused>,
    ) -> Option<Option<T>> {
        self.parsed(key, accepts, |text| if text.is_empty() { Ok(None) } else { parse(text).map(Some) })
    }

    /// The path of a file.
    pub fn file(&mut self, key: &'static str) -> Option<Option<PathBuf>> {
        self.optional(key, "path of a file", |text| match text.contains('\0') {
            true => Err(Refused::new("is not a path", "write the path of a file")),
            false => Ok(PathBuf::from(text)),
        })
    }

    /// A list, or a text with commas. Blanks around commas and empty items of a text do not count; an item of a list
    /// may hold commas, and may not be empty.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        accepts: &str,
        items_max: usize,
        parse: impl Fn(&str) -> Result<T, Refused>,
    ) -> Option<Vec<T>> {
        self.accepts(key, accepts);
        let items = self.items(key)?;
        if items.len() > items_max {
            let refused = Refused::new(format!("has {} items", items.len()), format!("give at most {items_max}"));
            return self.refuse(key, None, refused);
        }
        let wanted = items.len();
        let mut parsed = Vec::with_capacity(wanted);
        for (index, item) in items.into_iter().enumerate() {
            match parse(&item.text) {
                Ok(value) => parsed.push(value),
                Err(Refused { message, fix }) => {
                    let message = format!("item {} {message}", index + 1);
                    let _: Option<T> = self.refuse(key, Some(item.shown), Refused { message, fix });
                }
            }
        }
        (parsed.len() == wanted).then_some(parsed)
    }

    /// The same for a list whose items are secrets: none is quoted where it is refused.
    pub fn unquoted<T>(
        &mut self,
        key: &'static str,
        accepts: &str,
        items_max: usize,
        parse: impl Fn(&str) -> Result<T, Refused>,
    ) -> Option<Vec<T>> {
        let refused = std::cell::RefCell::new(Vec::new());
        let parsed = self.list(key, accepts, items_max, |text| {
            let parsed = parse(text);
            Ok(parsed.map_err(|Refused { message, fix }| refused.borrow_mut().push((message, fix))).ok())
        })?;
        for (message, fix) in refused.into_inner() {
            let _: Option<T> = self.refuse(key, None, Refused { message: format!("has an item that {message}"), fix });
        }
        parsed.into_iter().collect()
    }

    /// A list of tables, each a map of its own keys; what they mean is for the caller to judge.
    pub fn tables(&mut self, key: &'static str, accepts: &str, items_max: usize) -> Option<Vec<Map<String, Value>>> {
        self.accepts(key, accepts);
        let given = self.given(key)?;
        let fix = format!("write [[{key}]] on a line of its own in the file, and the keys of one entry below");
        let ValueKind::Array(items) = &given.value else {
            return self.refuse(key, None, Refused::new("is not a list of tables", fix));
        };
        if items.len() > items_max {
            let refused = Refused::new(format!("has {} entries", items.len()), format!("give at most {items_max}"));
            return self.refuse(key, None, refused);
        }
        let table = |item: &Value| if let ValueKind::Table(table) = &item.kind { Some(table.clone()) } else { None };
        match items.iter().map(table).collect() {
            Some(tables) => Some(tables),
            None => self.refuse(key, None, Refused::new("has an entry that is not a table", fix)),
        }
    }

    fn items(&mut self, key: &'static str) -> Option<Vec<Item>> {
        let given = self.given(key)?;
        match &given.value {
            ValueKind::String(whole) => {
                let items = whole.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(items.map(|item| Item { text: item.to_owned(), shown: shown_item(item, whole) }).collect())
            }
            ValueKind::Array(items) => {
                let text = |item: &Value| match &item.kind {
                    ValueKind::String(text) => Some(Item { text: text.trim().to_owned(), shown: shown(text) }),
                    _ => None,
                };
                match items.iter().map(text).collect() {
                    Some(items) => Some(items),
                    None => {
                        let refused = Refused::new("has an item that is not a text", "put every item in quotes");
                        self.refuse(key, None, refused)
                    }
                }
            }
            other => self.wrong_type(key, other, "a list of texts in quotes"),
        }
    }

    fn text(&mut self, key: &'static str) -> Option<String> {
        match self.given(key)?.value {
            ValueKind::String(text) => Some(text),
            other => self.wrong_type(key, &other, "a text in quotes"),
        }
    }

    fn given(&mut self, key: &'static str) -> Option<Given> {
        let given = self.given.values.get(key).cloned();
        if given.is_none() {
            // Cannot happen while `configs/default.toml` names every key, which a test holds it to.
            self.findings.refuse(&Place::Default, key, None, "has no default", "report this as a bug");
        }
        given
    }

    fn accepts(&mut self, key: &'static str, accepts: impl Into<String>) {
        self.accepts.insert(key, accepts.into());
    }

    fn wrong_type<T>(&mut self, key: &str, value: &ValueKind, wanted: impl Display) -> Option<T> {
        let is = match value {
            ValueKind::Boolean(_) => "a truth value",
            ValueKind::String(_) => "a text",
            ValueKind::Array(_) => "a list",
            ValueKind::Table(_) => "a section",
            ValueKind::Nil => "nothing",
            ValueKind::Float(_) | ValueKind::I64(_) | ValueKind::I128(_) | ValueKind::U64(_) | ValueKind::U128(_) => {
                "a number"
            }
        };
        self.refuse(key, None, Refused::new(format!("is {is}"), format!("write {wanted}")))
    }

    /// Reports a problem at the place of a key.
    pub fn refuse<T>(&mut self, key: &str, value: Option<String>, refused: Refused) -> Option<T> {
        let place = self.place(key);
        self.findings.refuse(&place, key, value, refused.message, refused.fix);
        None
    }
}

/// The environment and flags have text only; a file has types, and a wrong one there is a mistake.
fn is_untyped(given: &Given) -> bool {
    matches!(given.place, Place::Environment(_) | Place::Flag(_))
}

/// Reads `15m`, `1h 30m`, `500ms`.
pub(super) fn parse_duration(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, Refused> {
    if text.trim().parse::<f64>().is_ok() {
        return Err(no_unit());
    }
    let fix = "write a number and a unit, such as 15m, 1h 30m or 500ms";
    let duration = humantime::parse_duration(text.trim()).map_err(|_| Refused::new("is not a duration", fix))?;
    if range.contains(&duration) {
        Ok(duration)
    } else {
        Err(Refused::new("is not in range", format!("write a duration of {}", in_words(range))))
    }
}

/// A DNS label, as the API server wants it of namespaces.
pub(super) fn label(text: &str) -> Result<String, Refused> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = !text.is_empty() && text.len() <= LABEL_CHARS_MAX && text.chars().all(is_inner);
    if is_label && !text.starts_with('-') && !text.ends_with('-') {
        Ok(text.to_owned())
    } else {
        let fix = "write a namespace: lower-case letters, digits and hyphens, 63 at most";
        Err(Refused::new("is not a namespace", fix))
    }
}

fn no_unit() -> Refused {
    Refused::new("has no unit", "write a number and a unit, such as 15m, 1h 30m or 500ms")
}

fn in_words(range: &RangeInclusive<Duration>) -> String {
    let word = |duration: &Duration| humantime::format_duration(*duration).to_string();
    format!("{} to {}", word(range.start()), word(range.end()))
}

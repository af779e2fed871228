//! The status of an object, between the API server and the domain, both ways, for all our kinds. What was read and written again is
//! the same. Its form is that of the domain's types; here is where in it something is wrong, and what an API server did not keep of it.
//!
//! Not for what only one kind has in its status; that is its `remembered`.

use std::fmt;
use std::str::Chars;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The most dropped fields that are named.
const LOST_MAX: usize = 5;

/// Something in a status that is not what we write.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, as `environments.prod.seq`.
    pub at: String,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.at, self.what) }
    }
}

/// Reads the status of an object; without one it is that of an object that was never judged.
pub fn read<T: DeserializeOwned>(json: Option<&str>) -> Result<T, Fault> {
    let json = json.filter(|json| *json != "null").unwrap_or("{}");
    serde_json::from_str(json).map_err(|error| {
        let lines: usize = json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let (what, (line, column)) = (error.to_string(), (error.line(), error.column()));
        let what = what.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&what).to_owned();
        Fault { at: place(json.get(..lines + column).unwrap_or(json)), what }
    })
}

/// The status as it stands in the object.
pub fn written(status: &impl Serialize) -> serde_json::Result<Value> {
    let mut written = serde_json::to_value(status)?;
    let judged = written.get("observedGeneration").cloned().unwrap_or_default();
    let conditions = written.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        condition.insert("observedGeneration".to_owned(), judged.clone());
    }
    Ok(written)
}

/// Where a reader of JSON is that has read this: the names that lead there. Entries of a list have none.
fn place(read: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut rest = read.chars();
    while let Some(character) = rest.next() {
        match character {
            '{' | '[' => names.push(String::new()),
            '}' | ']' => drop(names.pop()),
            '"' => {
                let text = string(&mut rest);
                if let (Some(name), Some(':')) = (names.last_mut(), rest.clone().find(|next| !next.is_whitespace())) {
                    *name = text;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names.join(".")
}

/// The rest of a string, up to its quotation mark.
fn string(rest: &mut Chars<'_>) -> String {
    let mut text = String::new();
    while let Some(character) = rest.next() {
        match character {
            '"' => break,
            '\\' => text.extend(rest.next()),
            other => text.push(other),
        }
    }
    text
}

/// What was written and is not in the answer, by its place: the API server drops what its CRD does not have.
pub fn lost(written: &Value, answered: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    find_lost(written, answered, "status", &mut lost);
    lost
}

fn find_lost(written: &Value, answered: &Value, place: &str, lost: &mut Vec<String>) {
    match (written, answered) {
        (Value::Object(written), Value::Object(answered)) => {
            for (name, value) in written {
                let place = format!("{place}.{name}");
                match answered.get(name) {
                    Some(answered) => find_lost(value, answered, &place, lost),
                    None if lost.len() < LOST_MAX => lost.push(place),
                    None => return,
                }
            }
        }
        (Value::Array(written), Value::Array(answered)) if written.len() == answered.len() => {
            for (written, answered) in written.iter().zip(answered) {
                find_lost(written, answered, place, lost);
            }
        }
        (written, answered) if written != answered && lost.len() < LOST_MAX => lost.push(place.to_owned()),
        _ => {}
    }
}

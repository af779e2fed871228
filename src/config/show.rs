//! What is in effect and where it came from, with nothing secret in it.

use comfy_table::{Table, presets};
use config::ValueKind;
use serde_json::{Value, json};

use super::hook::Hook;
use super::layers::{Given, Layer};
use super::mask::{masked, shown_item};
use super::problem::{Place, Problem, Warning};
use super::traces::{HEADERS, masked_header};
use super::{Config, Invalid, Loaded};
use kernel::mask::{MASK, shown};

/// The effective values, masked when they were collected, so that nothing that holds one can print a secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// In the order of keys.
    pub settings: Vec<Setting>,
    /// One for each hook, in the order of the file.
    pub hooks: Vec<HookSummary>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub key: String,
    /// As it was given, masked.
    pub value: Value,
    /// The layer that won.
    pub place: Place,
}

/// One hook as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSummary {
    pub name: String,
    /// Scheme, host and port.
    pub url: String,
    pub method: &'static str,
    /// The names of the kinds of notices that it receives.
    pub events: Vec<&'static str>,
    /// The workloads whose notices it receives.
    pub workloads: Vec<String>,
    /// The form of its body.
    pub format: &'static str,
    /// How many keys it is signed with; 0: unsigned.
    pub keys: usize,
}

impl Effective {
    pub(super) fn of(merged: &Layer, defaults: &Layer, config: &Config) -> Self {
        let setting = |(key, given): (&String, &Given)| Setting {
            key: key.clone(),
            value: match masked_as(&given.value, defaults.values.get(key).map(|default| &default.value)) {
                Value::Array(items) if key == HEADERS => headers(&given.value, items.len()),
                value => value,
            },
            place: given.place.clone(),
        };
        let settings = merged.values.iter().map(setting).collect();
        Self { settings, hooks: config.webhooks.hooks.iter().map(HookSummary::of).collect() }
    }

    /// Whether no file, variable or flag says this key.
    pub fn is_default(&self, key: &str) -> bool {
        self.settings.iter().any(|setting| setting.key == key && setting.place == Place::Default)
    }

    /// For people: one line for each key, then one for each hook.
    pub fn table(&self) -> String {
        let mut settings = plain_table(["KEY", "VALUE", "FROM"]);
        for Setting { key, value, place } in &self.settings {
            settings.add_row([key.clone(), words(value), place.layer()]);
        }
        if self.hooks.is_empty() {
            return format!("{}\n", settings.trim_fmt());
        }
        let mut hooks = plain_table(["WEBHOOK", "SENDS", "ON", "FOR", "SIGNED"]);
        for HookSummary { name, url, method, events, workloads, format, keys } in &self.hooks {
            let signed = if *keys == 0 { "no".to_owned() } else { format!("{keys} keys") };
            let sends = format!("{method} {url} ({format})");
            hooks.add_row([name.clone(), sends, events.join(", "), workloads.join(", "), signed]);
        }
        format!("{}\n\n{}\n", settings.trim_fmt(), hooks.trim_fmt())
    }

    pub fn json(&self) -> Value {
        let setting =
            |Setting { key, value, place }: &Setting| json!({"key": key, "value": value, "from": place.layer()});
        let hook = |HookSummary { name, url, method, events, workloads, format, keys }: &HookSummary| {
            json!({
                "name": name, "url": url, "method": method, "events": events, "workloads": workloads,
                "format": format, "keys": keys,
            })
        };
        json!({
            "settings": self.settings.iter().map(setting).collect::<Vec<_>>(),
            "webhooks": self.hooks.iter().map(hook).collect::<Vec<_>>(),
        })
    }
}

impl HookSummary {
    fn of(hook: &Hook) -> Self {
        // Named one by one, so that a new field of a hook is either shown here or left out on purpose.
        let Hook {
            name,
            url,
            method,
            headers: _,
            parameters: _,
            events,
            is_old_form: _,
            workloads,
            format,
            secrets,
            timeout: _,
            schedule: _,
        } = hook;
        Self {
            name: shown(name),
            url: url.to_string(),
            method: method.name(),
            events: events.iter().map(|kind| kind.name()).collect(),
            workloads: workloads.iter().map(|pattern| shown(&pattern.to_string())).collect(),
            format: format.name(),
            keys: secrets.len(),
        }
    }
}

impl Loaded {
    /// The same report as of a configuration that was refused, without problems.
    pub fn report(&self) -> Value {
        report(&[], &self.warnings)
    }
}

impl Invalid {
    /// Problems and warnings for programs: what `config validate -o json` prints.
    pub fn report(&self) -> Value {
        report(&self.problems, &self.warnings)
    }
}

fn report(problems: &[Problem], warnings: &[Warning]) -> Value {
    let problem = |Problem { place, key, value, message, fix }: &Problem| json!({"place": place.to_string(), "key": key, "value": value, "message": message, "fix": fix});
    let warning =
        |Warning { place, key, message }: &Warning| json!({"place": place.to_string(), "key": key, "message": message});
    json!({
        "valid": problems.is_empty(),
        "problems": problems.iter().map(problem).collect::<Vec<_>>(),
        "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
    })
}

/// Headers by name; what they hold is a secret whatever it looks like.
fn headers(given: &ValueKind, count: usize) -> Value {
    let items: Vec<String> = match given {
        ValueKind::String(whole) => {
            whole.split(',').map(str::trim).filter(|item| !item.is_empty()).map(masked_header).collect()
        }
        ValueKind::Array(items) => items.iter().map(|item| masked_header(&plain_text(&item.kind))).collect(),
        _ => vec![MASK.to_owned(); count],
    };
    json!(items)
}

/// A value in one line, unmasked: for defaults, which hold no secrets.
pub(super) fn plain_text(value: &ValueKind) -> String {
    match value {
        ValueKind::Array(items) => items.iter().map(|item| plain_text(&item.kind)).collect::<Vec<_>>().join(", "),
        ValueKind::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value masked, in the type of its default: the environment and flags have text only.
fn masked_as(value: &ValueKind, default: Option<&ValueKind>) -> Value {
    match (value, default) {
        (ValueKind::String(whole), Some(ValueKind::Array(_))) => {
            let items = whole.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(|item| json!(shown_item(item, whole))).collect()
        }
        (ValueKind::String(text), Some(ValueKind::Boolean(_))) => json!(text.trim().eq_ignore_ascii_case("true")),
        (ValueKind::String(text), Some(ValueKind::Float(_))) => json!(text.trim().parse::<f64>().ok()),
        (value, _) => masked(value),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn plain_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

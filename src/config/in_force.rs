//! What is in force: the settings of the running controller that others have to know, as it leaves them beside its ledger, and as a
//! command at a laptop takes them over (decision 64).
//!
//! No secret is among them: only keys of [`PUBLISHED`] are, and of those no value that would be masked where it is shown. Where to
//! connect, and with what, stays the caller's own. Not for where the text is kept; that is the ledger's.

use std::collections::BTreeMap;

use config::{Value, ValueKind};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::layers::Layer;
use super::mask::{json_of, masked};
use super::problem::Place;

/// The keys that are published: each is about what becomes of a workload, and none names a file, an address or a credential. A name
/// that ends in a dot stands for all keys of a section.
const PUBLISHED: [&str; 24] = [
    "watch.",
    "cache",
    "rollout.",
    "version.",
    "purge.",
    "proof.enabled",
    "proof.from",
    "proof.paths",
    "tenants.",
    "distributions.",
    "group.name",
    "group.member",
    "group.members",
    "group.timeout",
    "group.takeover",
    "group.policy",
    "group.absent",
    "group.unsigned",
    "group.repository_prefixes",
    "site.",
    "workloads.",
    "leader.lease",
    "pipeline.",
    "repo.",
];

/// Bytes of the text at most. The ledger's own object, in which it is, may have 1 MiB, and is written whole with each change.
const BYTES_MAX: usize = 32 * 1024;

/// The settings of a running controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InForce {
    /// The version of the program.
    pub version: String,
    /// When these settings were first written, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Values by dotted key.
    pub settings: BTreeMap<String, Json>,
    /// Keys whose values are too long, or may be secret. What they are set to is not known here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl InForce {
    /// Of these layers, without a time.
    pub(super) fn of(merged: &Layer, defaults: &Layer) -> Self {
        let mut all = Self { version: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() };
        for (key, given) in merged.values.iter().filter(|(key, _)| is_published(key)) {
            let typed = typed(&given.value, defaults.values.get(key).map(|default| &default.value));
            let (whole, shown) = (json_of(&typed, str::to_owned), masked(&typed));
            if whole == shown {
                all.settings.insert(key.clone(), whole);
            } else {
                all.left_out.push(key.clone());
            }
        }
        all
    }

    /// The text to be kept, written at this time.
    pub fn text(mut self, at_ms: i64) -> String {
        self.at_ms = at_ms;
        loop {
            let text = serde_json::to_string(&self).unwrap_or_default();
            let longest =
                self.settings.iter().max_by_key(|(_, value)| value.to_string().len()).map(|(key, _)| key.clone());
            match longest.filter(|_| text.len() > BYTES_MAX) {
                None => return text,
                Some(key) => {
                    self.settings.remove(&key);
                    self.left_out.push(key);
                }
            }
        }
    }

    /// What a text says.
    ///
    /// # Errors
    /// When it is none of ours.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Whether two texts are of the same settings, whenever they were written: a restart changes nothing.
    pub fn say_the_same(one: &str, other: &str) -> bool {
        let untimed = |text| Self::parse(text).map(|read| Self { at_ms: 0, ..read });
        one == other || untimed(one).is_ok_and(|one| untimed(other).is_ok_and(|other| one == other))
    }

    /// The settings that this program knows as well, to be put above its own.
    pub(super) fn layer(&self, known: &Layer) -> Layer {
        let mut layer = Layer::default();
        let shared = self.settings.iter().filter(|(key, _)| is_published(key) && known.values.contains_key(*key));
        for (key, value) in shared {
            if let Some(kind) = kind_of(value) {
                layer.insert(key, kind, Place::Controller);
            }
        }
        layer
    }

    /// The keys that `here` sets otherwise.
    pub fn differing(&self, here: &Self) -> Vec<&str> {
        let other = |key: &&String| here.settings.get(*key).is_some_and(|value| self.settings.get(*key) != Some(value));
        self.settings.keys().filter(other).map(String::as_str).collect()
    }
}

/// A value in the type of its default: the environment and flags have text only.
fn typed(value: &ValueKind, default: Option<&ValueKind>) -> ValueKind {
    let ValueKind::String(text) = value else { return value.clone() };
    let item = |item: &str| Value::new(None, ValueKind::String(item.to_owned()));
    match default {
        Some(ValueKind::Array(_)) => {
            ValueKind::Array(text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(item).collect())
        }
        Some(ValueKind::Boolean(_)) => ValueKind::Boolean(text.trim().eq_ignore_ascii_case("true")),
        Some(ValueKind::I64(_)) => text.trim().parse().map_or_else(|_| value.clone(), ValueKind::I64),
        Some(ValueKind::Float(_)) => text.trim().parse().map_or_else(|_| value.clone(), ValueKind::Float),
        _ => value.clone(),
    }
}

fn is_published(key: &str) -> bool {
    PUBLISHED.iter().any(|name| *name == key || (name.ends_with('.') && key.starts_with(name)))
}

fn kind_of(value: &Json) -> Option<ValueKind> {
    let item = |value: &Json| Some(Value::new(None, kind_of(value)?));
    Some(match value {
        Json::Bool(truth) => ValueKind::Boolean(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(number) => ValueKind::I64(number),
            None => ValueKind::Float(number.as_f64()?),
        },
        Json::String(text) => ValueKind::String(text.clone()),
        Json::Array(items) => ValueKind::Array(items.iter().map(item).collect::<Option<_>>()?),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| Some((name.clone(), item(value)?)));
            ValueKind::Table(entries.collect::<Option<_>>()?)
        }
        Json::Null => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::layers::{built_in, merged};
    use super::super::problem::Findings;
    use super::*;

    fn layers(given: &[(&str, ValueKind)]) -> (Layer, Layer) {
        let defaults = built_in(&mut Findings::default());
        let mut layer = Layer::default();
        given.iter().for_each(|(key, value)| layer.insert(key, value.clone(), Place::Environment("X".to_owned())));
        (merged(&[defaults.clone(), layer]).unwrap(), defaults)
    }

    fn of(given: &[(&str, ValueKind)]) -> InForce {
        let (merged, defaults) = layers(given);
        InForce::of(&merged, &defaults)
    }

    fn text(value: &str) -> ValueKind {
        ValueKind::String(value.to_owned())
    }

    #[test]
    fn each_key_is_published_or_has_a_reason_not_to_be() {
        // Addresses, files and credentials; what only the process itself meets; and what a dry run keeps in no ledger.
        let own = [
            "cloudfront.",
            "aws.",
            "redis.",
            "group.remotes",
            "group.key_file",
            "proof.private_hosts",
            "ledger.",
            "leader.replica",
            "webhooks.",
            "git.",
            "secrets.",
            "http.",
            "hooks.",
            "log.",
            "traces.",
            "dry_run",
        ];
        let defaults = built_in(&mut Findings::default());
        for key in defaults.keys() {
            let is_own = own.iter().any(|name| key == *name || (name.ends_with('.') && key.starts_with(name)));
            assert!(is_own != is_published(key), "{key}");
        }
    }

    #[test]
    fn what_was_written_is_read_back_with_its_types() {
        let given = of(&[
            ("watch.namespaces", text("shop, blog")),
            ("purge.creations_per_second", text("0.25")),
            ("purge.again_max", text("3")),
            ("version.same_digest_is_same", text("FALSE")),
        ]);
        let read = InForce::parse(&given.clone().text(7)).unwrap();
        assert_eq!(read, InForce { at_ms: 7, ..given });
        let layer = read.layer(&built_in(&mut Findings::default()));
        let value = |key: &str| layer.values.get(key).map(|given| given.value.clone());
        assert!(matches!(value("watch.namespaces"), Some(ValueKind::Array(items)) if items.len() == 2));
        assert_eq!(value("purge.creations_per_second"), Some(ValueKind::Float(0.25)));
        assert_eq!(value("purge.again_max"), Some(ValueKind::I64(3)));
        assert_eq!(value("version.same_digest_is_same"), Some(ValueKind::Boolean(false)));
        assert_eq!(value("rollout.timeout"), Some(text("15m")));
        assert_eq!(
            read.differing(&of(&[("rollout.timeout", text("1m"))])),
            [
                "purge.again_max",
                "purge.creations_per_second",
                "rollout.timeout",
                "version.same_digest_is_same",
                "watch.namespaces"
            ]
        );
    }

    #[test]
    fn nothing_secret_and_nothing_endless_is_written() {
        let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        let long = "x".repeat(BYTES_MAX);
        let given = [
            ("group.name", text(secret)),
            ("redis.url", text("redis://:hunter2@cache")),
            ("purge.paths", ValueKind::Array((0..9_000).map(|n| Value::new(None, text(&format!("/{n}")))).collect())),
        ];
        let written = of(&given).text(0);
        assert!(!written.contains(secret) && !written.contains("hunter2") && written.len() <= BYTES_MAX, "{written}");
        assert_eq!(InForce::parse(&written).unwrap().left_out, ["group.name", "purge.paths"]);
        assert!(of(&[("group.name", text(&long))]).left_out.contains(&"group.name".to_owned()));
    }

    #[test]
    fn a_restart_with_the_same_settings_says_nothing_new() {
        let with = |timeout: &str, at_ms| of(&[("rollout.timeout", text(timeout))]).text(at_ms);
        assert!(InForce::say_the_same(&with("1m", 1), &with("1m", 2)));
        assert!(!InForce::say_the_same(&with("1m", 1), &with("2m", 1)));
        let newer = with("1m", 1).replace(env!("CARGO_PKG_VERSION"), "99.0.0");
        assert!(!InForce::say_the_same(&newer, &with("1m", 1)), "another version left them");
        assert!(!InForce::say_the_same("nonsense", &with("1m", 1)));
    }

    #[test]
    fn what_another_version_knows_is_passed_over() {
        let read = InForce::parse(r#"{"version": "9.0.0", "at_ms": 1, "more": 7, "settings": {"rollout.nosuch": 1, "redis.url": "x", "rollout.timeout": "1m"}}"#).unwrap();
        let layer = read.layer(&built_in(&mut Findings::default()));
        assert_eq!(layer.keys().collect::<Vec<_>>(), ["rollout.timeout"]);
        assert!(InForce::parse("nonsense").is_err());
    }
}

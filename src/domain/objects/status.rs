//! What the statuses of all our kinds have in common, in the form in which it stands in the objects. The CRDs are made from these
//! types too, so their comments are what `kubectl explain` says.
//!
//! Not for when a status is written; that is `own_status`.

use serde::de::value::{Error as Refusal, StringDeserializer};
use serde::de::{Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::form::{At, Form, In};

#[cfg(feature = "schema")]
use schemars::JsonSchema;

/// Ended promotions of a Pipeline, or runs of a Repo, that are kept for people.
pub const HISTORY_MAX: usize = 10;

/// Notices that wait for the outbox. It takes one in milliseconds; sixteen are twenty environments' worth of a bad minute.
/// Beyond it the oldest are sent without being durable: nothing waits for them.
pub const UNTOLD_MAX: usize = 16;

/// What a status says before its first write.
pub(crate) const fn before_the_first() -> i64 {
    -1
}

/// A condition, as Kubernetes has them, of the conditions `K` of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition<K> {
    pub kind: K,
    /// Whether it holds; `None` for `Unknown`.
    pub holds: Option<bool>,
    pub reason: String,
    pub message: String,
    /// Since when that is so, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

impl<K> Condition<K> {
    /// One whose time is not known yet.
    pub fn new(kind: K, holds: Option<bool>, reason: &str, message: &str) -> Self {
        Self { kind, holds, reason: reason.to_owned(), message: message.to_owned(), since_ms: 0 }
    }
}

impl<K: Copy + Eq> Condition<K> {
    /// Takes over since when it is so, if one of these says the same; otherwise it is so since now.
    pub(crate) fn since(&mut self, earlier: &[Self], now_ms: i64) {
        let same = earlier.iter().find(|one| one.kind == self.kind && one.holds == self.holds);
        self.since_ms = same.map_or(now_ms, |same| same.since_ms);
    }
}

/// A condition, as Kubernetes has them.
// As it stands in the object; a fault of one names it as below.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Condition", rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(crate) struct Written {
    // The CRD of each kind lists them.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(length(max = 316)))]
    kind: String,
    /// True, False or Unknown.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^(True|False|Unknown)$")))]
    status: String,
    /// The reason in one word, for programs.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
    reason: String,
    /// The reason in a sentence, for people.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 32768)))]
    message: String,
    /// Since when it is so.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    last_transition_time: String,
    /// The generation that this condition describes.
    // That of the status, which is filled in where the whole is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
}

impl Written {
    /// A condition of ours; others' are theirs to write.
    fn own<K: for<'de> Deserialize<'de>>(self) -> Result<Option<Condition<K>>, String> {
        let name: StringDeserializer<Refusal> = self.kind.into_deserializer();
        let Ok(kind) = K::deserialize(name) else { return Ok(None) };
        Ok(Some(Condition {
            kind,
            holds: match self.status.as_str() {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            },
            reason: self.reason,
            message: self.message,
            since_ms: At::parse(&self.last_transition_time)?.value(),
        }))
    }
}

/// For `#[serde(with = "Conditions")]`.
pub(crate) struct Conditions;

crate::form::schema_as!(Conditions, Vec<Written>);

impl Conditions {
    pub(crate) fn serialize<K: Copy + Into<&'static str>, S: Serializer>(
        conditions: &[Condition<K>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let kind = |kind: K| -> &'static str { kind.into() };
        serializer.collect_seq(conditions.iter().map(|one| Written {
            kind: kind(one.kind).to_owned(),
            status: one.holds.map_or("Unknown", |holds| if holds { "True" } else { "False" }).to_owned(),
            reason: one.reason.clone(),
            message: one.message.clone(),
            last_transition_time: At::of(one.since_ms).to_string(),
            observed_generation: None,
        }))
    }

    pub(crate) fn deserialize<'de, K: for<'name> Deserialize<'name>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Condition<K>>, D::Error> {
        let all = Vec::<Written>::deserialize(deserializer)?;
        all.into_iter().filter_map(|one| one.own().transpose()).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// A condition for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionView {
    /// The name of the kind.
    pub kind: String,
    /// Whether it holds; `None` for `Unknown`.
    pub holds: Option<bool>,
    pub reason: String,
    pub message: String,
    /// Since when that is so, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

impl<K: Copy + Into<&'static str>> From<&Condition<K>> for ConditionView {
    fn from(one: &Condition<K>) -> Self {
        let kind: &'static str = one.kind.into();
        let Condition { kind: _, holds, reason, message, since_ms } = one.clone();
        Self { kind: kind.to_owned(), holds, reason, message, since_ms }
    }
}

/// The yes of a person to one question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Approval {
    /// Who, as they said.
    // The admission policy makes it true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The ticket of the question that it answers.
    pub ticket: String,
    /// When it was seen.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
    /// Time and verdict gates are open for what was approved.
    #[serde(rename = "override", default, skip_serializing_if = "std::ops::Not::not")]
    pub overrides: bool,
}

/// Something is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Late {
    /// Since when it waits.
    #[serde(rename = "since", with = "In::<At>")]
    pub since_ms: i64,
    /// A notice has said that this takes long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

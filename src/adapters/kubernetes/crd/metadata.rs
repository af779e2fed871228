//! What objects of all our kinds have in common: who they are, and what people have answered on them. Spec and status stay text.
//!
//! Not for what is in a spec or a status.

use std::collections::BTreeMap;

use kernel::names::selector::Labels;
use kernel::text::clean;
use notices::delivery::Resend;
use objects::kept::{Answers, Finalizers};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::parts::annotations;

const PREFIX: &str = "allclear.dev/";
/// Keeps a Repo that is being deleted until people have answered whether it is destroyed.
pub const FINALIZER: &str = "allclear.dev/destroy";
/// Those by which Kubernetes has its garbage collector see to the dependents first
/// (<https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion>).
const CASCADES: [&str; 2] = ["foregroundDeletion", "orphan"];
/// What a person's words are cut to.
pub const WORDS_BYTES_MAX: usize = 160;
/// Most of what is said about an object in one place.
pub const MESSAGE_BYTES_MAX: usize = 1024;

#[derive(Deserialize)]
pub struct RawObject<'a> {
    pub metadata: Metadata,
    /// What it asks for.
    #[serde(borrow)]
    pub spec: Option<&'a RawValue>,
    #[serde(borrow)]
    pub status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    #[serde(default)]
    pub generation: Option<i64>,
    pub resource_version: String,
    /// All, for whoever selects it by them.
    #[serde(default)]
    pub labels: Labels,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
    #[serde(default, deserialize_with = "own_annotations")]
    annotations: BTreeMap<String, String>,
}

fn own_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    annotations(deserializer, |key| key.starts_with(PREFIX))
}

impl Metadata {
    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// What keeps it while it is being deleted.
    pub fn finalizers(&self) -> Finalizers {
        let has = |names: &[&str]| self.finalizers.iter().flatten().any(|one| names.contains(&one.as_str()));
        Finalizers { ours: has(&[FINALIZER]), cascading: has(&CASCADES) }
    }

    /// What people have answered.
    pub fn answers(&self) -> Answers {
        let words = |name: &str| self.annotation(name).map(|words| clean(words, WORDS_BYTES_MAX));
        Answers {
            approve: self.annotation("approve").map(str::to_owned),
            overrides: self.annotation("override").map(str::to_owned),
            by: words("approved-by"),
            promote: self.annotation("promote").map(str::to_owned),
            keep: self.annotation("keep").map(str::to_owned),
            poked: words("requested-at"),
            resend: self.annotation("resend").map(Resend::parse),
        }
    }

    /// Why nothing new starts: a person's words, or that the spec says so.
    pub fn suspended(&self, by_spec: bool) -> Option<String> {
        let said = self.annotation("suspend").map(|words| clean(words, WORDS_BYTES_MAX));
        said.or(by_spec.then(|| "spec.suspend is true".to_owned()))
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(&format!("{PREFIX}{name}")).map(String::as_str)
    }
}

//! Which scopes are listed: an entry of the ledger's own object, beside the members.
//!
//! With it is kept which object each shard was. One that is missing later, or is another object (deleted, and restored from
//! some backup), has forgotten workloads, so for those the scopes count as not listed. A shard that was put back in place
//! cannot be told from one that was written: what it forgot is purged once too often, which is the safe side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};

use super::KubernetesLedger;
use super::pin::Meta;
use crate::domain::listed::{Listed, Scope};
use crate::ports::{PinError, PortError};

/// The entry's name.
const LISTED_KEY: &str = "listed";

/// Characters of a shard's UID that are kept: two objects of one name have the same ones in one of 4 billion cases.
const UID_CHARS: usize = 8;

/// The entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Entry {
    scopes: Listed,
    /// The shards there were, each with the beginning of its UID.
    shards: BTreeMap<usize, String>,
}

/// What is known of the shards as objects.
#[derive(Debug, Default)]
pub(super) struct Shards {
    /// The beginning of the UID of each shard there is.
    present: Mutex<BTreeMap<usize, String>>,
    /// Something is listed: shards that are created are noted.
    noted: AtomicBool,
}

impl Shards {
    /// Starts anew with those that were found.
    pub(super) fn adopt(&self, present: BTreeMap<usize, String>, listed: &Listed) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
        self.noted.store(!listed.is_empty(), Ordering::Release);
    }

    fn present(&self) -> BTreeMap<usize, String> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The beginning of an object's UID.
pub(super) fn brief(map: &ConfigMap) -> String {
    map.metadata.uid.iter().flat_map(|uid| uid.chars()).take(UID_CHARS).collect()
}

/// What the ledger's object says is listed, in the light of the shards there are. An entry that cannot be read says nothing.
pub(super) fn of(meta: &ConfigMap, present: &BTreeMap<usize, String>) -> Listed {
    let Entry { mut scopes, shards } = entry(meta);
    let lost = shards.iter().filter(|(index, uid)| present.get(index) != Some(*uid));
    lost.for_each(|(index, _)| scopes.forget(*index));
    scopes
}

fn entry(meta: &ConfigMap) -> Entry {
    let text = meta.data.as_ref().and_then(|data| data.get(LISTED_KEY));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn text_of(entry: &Entry) -> Result<String, PortError> {
    serde_json::to_string(entry).map_err(|error| PortError::lasting("failed to write what is listed", error))
}

impl KubernetesLedger {
    pub(super) async fn write_listed(&self, added: &BTreeSet<Scope>) -> Result<(), PinError> {
        let present = self.shards.present();
        let add = |meta: &ConfigMap| {
            // What a lost shard means for the other scopes is kept; the shards are those there are now.
            let mut scopes = of(meta, &present);
            added.iter().for_each(|scope| scopes.add(scope.clone()));
            let now = Entry { scopes, shards: present.clone() };
            let change = if now == entry(meta) { None } else { Some((LISTED_KEY, text_of(&now)?)) };
            Ok(Meta { answer: (), change })
        };
        self.change_meta(add).await?;
        self.shards.noted.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes note of a shard that was created just now. If that fails it is a shard like one that an older program created: when
    /// it is lost, that is not noticed.
    pub(super) async fn note_shard(&self, index: usize, map: &ConfigMap) {
        let uid = brief(map);
        self.shards.present.lock().unwrap_or_else(PoisonError::into_inner).insert(index, uid.clone());
        if !self.shards.noted.load(Ordering::Acquire) {
            return;
        }
        let note = |meta: &ConfigMap| {
            let mut entry = entry(meta);
            entry.shards.insert(index, uid.clone());
            Ok(Meta { answer: (), change: Some((LISTED_KEY, text_of(&entry)?)) })
        };
        if let Err(error) = self.change_meta(note).await {
            tracing::debug!(index, %error, "a new shard could not be noted");
        }
    }
}

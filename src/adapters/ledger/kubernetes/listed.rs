//! Which scopes are listed: an entry of the ledger's own object, beside the members.
//!
//! With it is kept which object each shard was, and each object beside one: those that namespaces were moved to, and journals. One
//! that is missing later, or is another object (deleted, and restored from some backup), has forgotten workloads: see
//! [`super::lost`]. A shard that was put back in place cannot be distinguished from one that was written: what it forgot is purged
//! once too often, which is the safe side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as AsyncMutex;

use super::pin::Meta;
use super::{KubernetesLedger, LAYOUT_KEY, SHARDS, moved, shard_name};
use kernel::watches::listed::{Listed, Scope};
use purge::ports::{PinError, PortError};

const LISTED_KEY: &str = "listed";

/// Characters of a shard's UID that are kept: two objects of one name have the same ones in one of 4 billion cases.
const UID_CHARS: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Entry {
    scopes: Listed,
    /// The shards there were, each with the beginning of its UID.
    shards: BTreeMap<usize, String>,
    /// The same of the objects beside shards, by name. Written only where there are any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    moved: BTreeMap<String, String>,
}

/// The objects there are, each with the beginning of its UID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) shards: BTreeMap<usize, String>,
    /// Objects beside shards, or those that were to be, by name: namespaces were moved there, or they are journals.
    pub(super) moved: BTreeMap<String, String>,
}

/// What is known of the shards as objects.
#[derive(Debug, Default)]
pub(super) struct Shards {
    present: Mutex<Present>,
    /// Something is listed: shards that are created are noted.
    noted: AtomicBool,
    /// Objects that were created, while the ledger's own object does not count them yet.
    unnoted: Mutex<Unnoted>,
    /// Whoever has it notes all of these at once. Notes of one moment would overwrite each other, and be refused.
    noting: AsyncMutex<()>,
}

/// What is to be written to the ledger's own object.
#[derive(Clone, Debug, Default)]
struct Unnoted {
    shards: BTreeSet<usize>,
    /// Objects beside shards, by name: the beginning of the UID, and the layout that has such.
    beside: BTreeMap<String, (String, &'static str)>,
}

impl Unnoted {
    /// What an object has to say with these, of those that are present.
    fn change(
        &self,
        meta: &ConfigMap,
        present: &Present,
        noted: bool,
    ) -> Result<Vec<(&'static str, String)>, PortError> {
        let (before, mut now) = (entry(meta), entry(meta));
        if noted {
            let created = present.shards.iter().filter(|(index, _)| self.shards.contains(index));
            now.shards.extend(created.map(|(index, uid)| (*index, uid.clone())));
            now.moved.extend(self.beside.iter().map(|(name, (uid, _))| (name.clone(), uid.clone())));
        }
        // The layouts are numbers of one digit, and each knows the ones before it.
        let there = meta.data.as_ref().and_then(|data| data.get(LAYOUT_KEY)).map_or("", String::as_str);
        let layout = self.beside.values().map(|(_, layout)| *layout).max().filter(|layout| there < *layout);
        let mut change: Vec<_> = layout.map(|layout| (LAYOUT_KEY, layout.to_owned())).into_iter().collect();
        if now != before {
            change.push((LISTED_KEY, text_of(&now)?));
        }
        Ok(change)
    }

    /// These were written.
    fn remove(&mut self, written: &Self) {
        self.shards.retain(|index| !written.shards.contains(index));
        self.beside.retain(|name, object| written.beside.get(name) != Some(object));
    }
}

impl Present {
    /// The beginning of the UID of the object of this name.
    pub(super) fn uid(&self, name: &str) -> Option<&String> {
        let is_shard = |(index, _): &(&usize, &String)| shard_name(**index) == name;
        self.moved.get(name).or_else(|| self.shards.iter().find(is_shard).map(|(_, uid)| uid))
    }
}

impl Shards {
    /// The beginning of the UID of the object of this name, if there is to be one.
    pub(super) fn uid(&self, name: &str) -> Option<String> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).uid(name).cloned()
    }

    /// Another worker has made this object anew.
    pub(super) fn replace(&self, name: &str, uid: String) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        match (0..SHARDS).find(|index| shard_name(*index) == name) {
            Some(index) => drop(present.shards.insert(index, uid)),
            None => drop(present.moved.insert(name.to_owned(), uid)),
        }
    }

    /// Starts anew with those that were found.
    pub(super) fn adopt(&self, present: Present, listed: &Listed) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
        *self.unnoted() = Unnoted::default();
        self.noted.store(!listed.is_empty(), Ordering::Release);
    }

    fn unnoted(&self) -> MutexGuard<'_, Unnoted> {
        self.unnoted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn present(&self) -> Present {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The beginning of an object's UID.
pub(super) fn brief(map: &ConfigMap) -> String {
    map.metadata.uid.iter().flat_map(|uid| uid.chars()).take(UID_CHARS).collect()
}

/// What the ledger's object says is listed, in the light of the shards there are. An entry that cannot be read says nothing.
pub(super) fn of(meta: &ConfigMap, present: &Present) -> Listed {
    let Entry { mut scopes, shards, moved } = entry(meta);
    let lost = shards.iter().filter(|(index, uid)| present.shards.get(index) != Some(*uid));
    lost.for_each(|(index, _)| scopes.forget(*index));
    let lost = moved.iter().filter(|(name, uid)| present.moved.get(*name) != Some(*uid));
    lost.filter_map(|(name, _)| moved::index_of(name)).for_each(|index| scopes.forget(index));
    scopes
}

/// The objects that the ledger's object counts.
pub(super) fn known(meta: &ConfigMap) -> Present {
    let Entry { shards, moved, .. } = entry(meta);
    Present { shards, moved }
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
            let now = Entry { scopes, shards: present.shards.clone(), moved: present.moved.clone() };
            let change = if now == entry(meta) { Vec::new() } else { vec![(LISTED_KEY, text_of(&now)?)] };
            Ok(Meta { answer: (), change })
        };
        self.change_meta(add).await?;
        self.shards.noted.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes note of a shard that was created just now. Where that fails the next one tries it for all. Until then it is a shard like one
    /// that an older program created: when it is lost, that is not noticed.
    pub(super) async fn note_shard(&self, index: usize, map: &ConfigMap) {
        self.shards.replace(&shard_name(index), brief(map));
        if !self.shards.noted.load(Ordering::Acquire) {
            return;
        }
        self.shards.unnoted().shards.insert(index);
        if let Err(error) = self.note(|unnoted| unnoted.shards.contains(&index)).await {
            tracing::debug!(index, %error, "a new shard could not be noted");
        }
    }

    /// Takes note of an object beside a shard, and of the layout that has such. Until this is written nothing may count on the object:
    /// a program that knows only an earlier layout would take the workloads in it for unknown, or for what they were.
    pub(super) async fn note_beside(&self, map: &ConfigMap, layout: &'static str) -> Result<(), PinError> {
        let (name, uid) = (map.metadata.name.clone().unwrap_or_default(), brief(map));
        self.shards.present.lock().unwrap_or_else(PoisonError::into_inner).moved.insert(name.clone(), uid.clone());
        self.shards.unnoted().beside.insert(name.clone(), (uid, layout));
        self.note(|unnoted| unnoted.beside.contains_key(&name)).await
    }

    /// Writes all that is not noted yet, unless what `is_open` is about was noted meanwhile: of those that are created at one moment, one
    /// writes for all, and the others wait here. Where that fails, each tries it for itself.
    async fn note(&self, is_open: impl Fn(&Unnoted) -> bool) -> Result<(), PinError> {
        let _noting = self.shards.noting.lock().await;
        let unnoted = self.shards.unnoted().clone();
        if !is_open(&unnoted) {
            return Ok(());
        }
        let (present, noted) = (self.shards.present(), self.shards.noted.load(Ordering::Acquire));
        let note = |meta: &ConfigMap| Ok(Meta { answer: (), change: unnoted.change(meta, &present, noted)? });
        self.change_meta(note).await?;
        self.shards.unnoted().remove(&unnoted);
        Ok(())
    }

    /// Takes note that a part of a shard was lost, so that later lives know which workloads may have had a record, until all are listed
    /// again. If that fails they are taken for new ones.
    pub(super) async fn note_loss(&self, index: usize) {
        let note = |meta: &ConfigMap| {
            let (before, mut now) = (entry(meta), entry(meta));
            now.scopes.forget(index);
            let change = if now == before { Vec::new() } else { vec![(LISTED_KEY, text_of(&now)?)] };
            Ok(Meta { answer: (), change })
        };
        if let Err(error) = self.change_meta(note).await {
            tracing::warn!(index, %error, "it could not be noted that a part of the ledger was lost");
        }
    }
}

#[cfg(test)]
mod tests;

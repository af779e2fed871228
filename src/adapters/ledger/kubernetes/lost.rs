//! What the ledger is known to have had and has not any more: it is *set back*, and never empty (decision 48).
//!
//! ```text
//! a shard that the ledger's own object counts ─┐
//! a part that its shard names                  ├── is gone, or is another object ──▶ what is left of it, above a floor that none of
//! a journal that its base names                ┘                                     its numbers reaches: `seq_floor` and `set_back`
//! ```
//!
//! A record at or below `set_back` may be older than what was done for it. A rollout of it goes on above the floor, so what is read
//! later says by itself that it is done with. The mark is written at once, and until that worked it is found again by each reading.
//!
//! Not for what follows for the workloads; that is `purge::rollouts::rollout`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::listed::{self, Present};
use super::maps::Failed;
use super::shard::Shard;
use super::stored::Stored;
use super::writer::ShardCopy;
use super::{Contents, KubernetesLedger, META_NAME, Part, SHARDS, copy_of, is_ours, moved, shard_name};
use kernel::id::Seq;
use purge::ports::PortError;

/// How far above everything that survived numbers go on: more than any shard ever counted, and room for as many losses.
const STEP: u64 = 1 << 32;

const GONE: &str = "is gone";
const OTHER: &str = "is another object than it was";

/// What is wrong with an object that the ledger knows by the beginning of this UID, if it does. One that `must` be there is also
/// missed where nothing is noted.
fn wrong(found: Option<&ConfigMap>, noted: Option<&String>, must: bool) -> Option<&'static str> {
    match found {
        None => (must || noted.is_some()).then_some(GONE),
        Some(map) => noted.is_some_and(|uid| *uid != listed::brief(map)).then_some(OTHER),
    }
}

/// What was listed, and what of it is not what the ledger's own object knows.
pub(super) struct Found<'a> {
    meta: &'a OwnerReference,
    known: Present,
    maps: BTreeMap<String, ConfigMap>,
}

impl Found<'_> {
    /// The copy of an object, with its journal, as far as they are what they were.
    fn take(&mut self, name: &str, noted: Option<String>, must: bool) -> Option<ShardCopy> {
        let base = self.maps.remove(name);
        let problem = wrong(base.as_ref(), noted.as_ref(), must);
        let mut lost: Vec<String> = problem.map(|what| format!("{name} {what}")).into_iter().collect();
        let mut copy = match base {
            Some(base) => copy_of(base, None, self.meta),
            None if lost.is_empty() => return None,
            None => ShardCopy::default(),
        };
        if let Some(journal) = copy.shard.journal_name().map(str::to_owned) {
            let map = self.maps.remove(&journal);
            let noted = self.known.moved.get(&journal);
            lost.extend(join(&mut copy, &journal, map, noted));
        }
        copy.lost = lost;
        Some(copy)
    }
}

/// Joins a base with the journal that it names. Returns what is wrong with that one: then it counts as none.
fn join(copy: &mut ShardCopy, name: &str, map: Option<ConfigMap>, noted: Option<&String>) -> Option<String> {
    let problem = wrong(map.as_ref(), noted, true);
    match map.filter(|_| problem.is_none()) {
        Some(map) => {
            copy.journal = map.metadata.resource_version;
            copy.shard = Shard::of(std::mem::take(&mut copy.shard.base), map.data);
        }
        None => copy.shard.lose_journal(),
    }
    problem.map(|what| format!("{name} {what}"))
}

impl KubernetesLedger {
    /// All shards of this ledger, and the parts that they name. Those of which something is lost are marked.
    pub(super) async fn read_shards(&self, meta: &OwnerReference, map: &ConfigMap) -> Result<Contents, PortError> {
        let mut contents = self.list_shards(meta, map).await?;
        contents.set_back();
        Ok(contents)
    }

    async fn list_shards(&self, meta: &OwnerReference, map: &ConfigMap) -> Result<Contents, PortError> {
        let known = listed::known(map);
        let named = |map: ConfigMap| Some((map.metadata.name.clone()?, map));
        let mut maps: BTreeMap<_, _> = self.maps.list("shard").await?.into_iter().filter_map(named).collect();
        let counted = known.shards.keys().map(|index| shard_name(*index)).chain(known.moved.keys().cloned());
        for name in counted.collect::<Vec<_>>() {
            // One that does not show may only have lost its label.
            if !maps.contains_key(&name)
                && let Some(map) = self.maps.get(&name).await?
            {
                maps.insert(name, map);
            }
        }
        let mut contents = Contents { present: present(&maps, meta), ..Contents::default() };
        let mut found = Found { meta, known, maps };
        for index in 0..SHARDS {
            let noted = found.known.shards.get(&index).cloned();
            let Some(copy) = found.take(&shard_name(index), noted, false) else { continue };
            for (namespace, name) in copy.shard.moved() {
                let noted = found.known.moved.get(name).cloned();
                let copy = found.take(name, noted, true).unwrap_or_default();
                contents.parts.push(Part { index, namespace: namespace.to_owned(), name: name.to_owned(), copy });
            }
            contents.shards.insert(index, copy);
        }
        Ok(contents)
    }
}

/// The objects there are.
fn present(maps: &BTreeMap<String, ConfigMap>, meta: &OwnerReference) -> Present {
    let mut present = Present::default();
    for (name, map) in maps.iter().filter(|(_, map)| is_ours(map, meta)) {
        match (0..SHARDS).find(|index| *name == shard_name(*index)) {
            Some(index) => drop(present.shards.insert(index, listed::brief(map))),
            None if moved::index_of(name).is_some() => drop(present.moved.insert(name.clone(), listed::brief(map))),
            None => {}
        }
    }
    present
}

impl Contents {
    pub(super) fn copies(&self) -> impl Iterator<Item = &ShardCopy> {
        self.shards.values().chain(self.parts.iter().map(|part| &part.copy))
    }

    /// Above every number and revision that survived.
    pub(super) fn floor(&self) -> Seq {
        let highest = self.copies().map(|copy| copy.shard.highest()).max();
        Seq(highest.unwrap_or_default().saturating_add(STEP))
    }

    /// Marks those of which something is lost.
    fn set_back(&mut self) {
        if self.copies().all(|copy| copy.lost.is_empty()) {
            return;
        }
        let floor = self.floor();
        let parts = self.parts.iter_mut().map(|part| &mut part.copy);
        self.shards.values_mut().chain(parts).filter(|copy| !copy.lost.is_empty()).for_each(|copy| {
            tell(&copy.lost, floor);
            copy.shard.set_back(floor);
        });
    }
}

fn tell(lost: &[String], floor: Seq) {
    tracing::error!(
        lost = lost.join(", "),
        floor = floor.0,
        "a part of the ledger was deleted or replaced; what is left of it counts as set back: alone, each of its workloads is purged \
         once more; in a group, those whose record is gone, or was seen newer by the others, are held until `allclear ledger adopt`"
    );
}

impl Stored<'_> {
    /// Looks for what is lost in a copy that was read just now.
    pub(super) async fn examined(&self, base: Option<ConfigMap>) -> Result<ShardCopy, PortError> {
        let (noted, must) = (self.noted(&self.name), self.namespace.is_some());
        let mut lost = Vec::new();
        lost.extend(self.confirmed(&self.name, base.as_ref(), noted.as_ref(), must).await?);
        let mut copy = base.map(|base| copy_of(base, None, &self.meta)).unwrap_or_default();
        if let Some(name) = copy.shard.journal_name().map(str::to_owned) {
            let map = self.ledger.maps.get(&name).await?;
            let noted = self.noted(&name);
            let problem = self.confirmed(&name, map.as_ref(), noted.as_ref(), true).await?;
            drop(join(&mut copy, &name, map.filter(|_| problem.is_none()), None));
            lost.extend(problem);
        }
        if lost.is_empty() {
            return Ok(copy);
        }
        // Where the ledger itself is gone, nothing of it was lost. The next write reports that.
        let ledger = self.ledger.maps.get(META_NAME).await?;
        let Some(map) = ledger.filter(|map| map.metadata.uid.as_ref() == Some(&self.meta.uid)) else { return Ok(copy) };
        let floor = self.ledger.list_shards(&self.meta, &map).await?.floor();
        tell(&lost, floor);
        copy.lost = lost;
        copy.shard.set_back(floor);
        Ok(self.kept(copy).await)
    }

    /// What is wrong with an object, in words. Another worker may have made it anew, and noted that.
    async fn confirmed(
        &self,
        name: &str,
        found: Option<&ConfigMap>,
        noted: Option<&String>,
        must: bool,
    ) -> Result<Option<String>, PortError> {
        let Some(what) = wrong(found, noted, must) else { return Ok(None) };
        if let Some(there) = found
            && let Some(meta) = self.ledger.maps.get(META_NAME).await?
            && wrong(found, listed::known(&meta).uid(name), must).is_none()
        {
            self.ledger.shards.replace(name, listed::brief(there));
            return Ok(None);
        }
        Ok(Some(format!("{name} {what}")))
    }

    fn noted(&self, name: &str) -> Option<String> {
        self.ledger.shards.uid(name)
    }

    /// Writes what a copy lost. If that fails, its next write does it, and each reading before that finds it again.
    pub(super) async fn kept(&self, mut copy: ShardCopy) -> ShardCopy {
        if copy.lost.is_empty() {
            return copy;
        }
        self.ledger.note_loss(self.index).await;
        if let Err(failed) = self.keep(&mut copy).await {
            tracing::warn!(?failed, name = self.name, "that a part of the ledger was set back could not be noted yet");
        }
        copy
    }

    async fn keep(&self, copy: &mut ShardCopy) -> Result<(), Failed> {
        if copy.shard.unwritten.journal {
            copy.journal = self.put_journal(&copy.shard, copy.journal.clone()).await?.metadata.resource_version;
            copy.shard.unwritten.journal = false;
        }
        if copy.shard.unwritten.base {
            let written = self.put(&copy.shard.base, copy.version.clone()).await?;
            self.note_object(&written).await;
            copy.version = written.metadata.resource_version;
            copy.shard.unwritten.base = false;
        }
        Ok(())
    }
}

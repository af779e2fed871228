//! One shard at the API server, or the part of it that a namespace has to itself: reading it, and writing it by compare-and-set,
//! its base and its journal.
//!
//! Not for what is in it (`shard`), nor for when it is written (`writer`).

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::maps::Failed;
use super::maps::config_map;
use super::shard::{Entries, Shard};
use super::writer::{ShardCopy, ShardStore, Spare};
use super::{KubernetesLedger, LAYOUT_DIVIDED, LAYOUT_JOURNALED, META_NAME, SHARDS, random_name};
use purge::ports::PortError;

/// How often we read a shard that is folded at that moment. It is folded once in minutes.
const READS_MAX: u32 = 3;

/// One shard, or a part of it.
#[derive(Clone)]
pub(super) struct Stored<'a> {
    pub(super) ledger: &'a KubernetesLedger,
    pub(super) index: usize,
    pub(super) name: String,
    /// The namespace whose part it is; `None` for the shard.
    pub(super) namespace: Option<String>,
    pub(super) meta: OwnerReference,
}

impl ShardStore for Stored<'_> {
    async fn read(&self) -> Result<ShardCopy, PortError> {
        for _ in 0..READS_MAX {
            let copy = self.read_once().await?;
            if !copy.shard.is_torn() {
                self.note(&copy.shard);
                return Ok(copy);
            }
        }
        let attempted = self.ledger.maps.attempt("get", &self.name);
        Err(PortError::passing(attempted, "another worker writes it again and again"))
    }

    async fn write(&self, copy: &ShardCopy) -> Result<String, Failed> {
        let written = self.put(&copy.shard.base, copy.version.clone()).await?;
        Ok(written.metadata.resource_version.unwrap_or_default())
    }

    async fn write_journal(&self, copy: &ShardCopy) -> Result<String, Failed> {
        let written = self.put_journal(&copy.shard, copy.journal.clone()).await?;
        Ok(written.metadata.resource_version.unwrap_or_default())
    }

    fn name_journal(&self) -> Option<String> {
        random_name(self.index).ok()
    }

    fn is_divisible(&self) -> bool {
        self.namespace.is_none()
    }

    fn note(&self, shard: &Shard) {
        if self.is_divisible() {
            self.ledger.routes.note(self.index, shard);
        }
    }

    async fn relieve(&self, copy: ShardCopy, namespace: &str, spare: &mut Option<Spare>) -> Result<ShardCopy, Failed> {
        self.divide(copy, namespace, spare).await
    }
}

impl Stored<'_> {
    /// The part of this shard that has the records of a namespace.
    pub(super) fn for_namespace(&self, namespace: &str, name: &str) -> Self {
        Self { name: name.to_owned(), namespace: Some(namespace.to_owned()), ..self.clone() }
    }

    /// The base first: it names the journal.
    async fn read_once(&self) -> Result<ShardCopy, PortError> {
        let base = self.ledger.maps.get(&self.name).await?;
        self.examined(base).await
    }

    /// Writes its base if it is still of that version, or creates it if there was none.
    pub(super) async fn put(&self, base: &Entries, version: Option<String>) -> Result<ConfigMap, Failed> {
        let mut map = self.config_map(base);
        if version.is_none() {
            return self.create(&map).await;
        }
        map.metadata.resource_version = version;
        match self.ledger.maps.replace(&self.name, &map).await {
            // Deleted under us: what we hold is the only copy left of what was in it.
            Err(failed) if failed.status() == Some(404) => {
                map.metadata.resource_version = None;
                self.create(&map).await
            }
            written => Ok(written?),
        }
    }

    /// The same of its journal.
    pub(super) async fn put_journal(&self, shard: &Shard, version: Option<String>) -> Result<ConfigMap, Failed> {
        let (name, entries) = (shard.journal_name().unwrap_or_default(), shard.journal.clone().unwrap_or_default());
        let about = format!("The records in flight of {}, which names this object.", self.name);
        let mut map = self.owned(config_map(name, "shard", &about, entries));
        // One that we began before, and that the base does not name yet, is used again.
        let is_new = version.is_none();
        map.metadata.resource_version = match version {
            Some(version) => Some(version),
            None => self.ledger.maps.get(name).await?.and_then(|map| map.metadata.resource_version),
        };
        let written = match &map.metadata.resource_version {
            None => None,
            Some(_) => match self.ledger.maps.replace(name, &map).await {
                // Deleted under us, as a shard may be.
                Err(failed) if failed.status() == Some(404) => None,
                written => Some(written?),
            },
        };
        if let Some(written) = written {
            if is_new {
                self.ledger.note_beside(&written, LAYOUT_JOURNALED).await?;
            }
            return Ok(written);
        }
        map.metadata.resource_version = None;
        self.still_our_ledger().await?;
        let created = self.ledger.maps.create(name, &map).await?;
        self.ledger.note_beside(&created, LAYOUT_JOURNALED).await?;
        Ok(created)
    }

    fn config_map(&self, base: &Entries) -> ConfigMap {
        let index = self.index;
        let about = match &self.namespace {
            None => format!("Shard {index} of {SHARDS} of the ledger {META_NAME}: one record per workload."),
            Some(namespace) => format!(
                "The records of namespace {namespace} that crowded shard {index} of the ledger {META_NAME}, which names this object."
            ),
        };
        self.owned(config_map(&self.name, "shard", &about, base.clone()))
    }

    fn owned(&self, mut map: ConfigMap) -> ConfigMap {
        map.metadata.owner_references = Some(vec![self.meta.clone()]);
        map
    }

    async fn create(&self, map: &ConfigMap) -> Result<ConfigMap, Failed> {
        self.still_our_ledger().await?;
        let created = self.ledger.maps.create(&self.name, map).await?;
        self.note_object(&created).await;
        Ok(created)
    }

    /// Notes which object it is now.
    pub(super) async fn note_object(&self, map: &ConfigMap) {
        match &self.namespace {
            None => self.ledger.note_shard(self.index, map).await,
            // A new one is noted before it counts, and one that was deleted under us here.
            Some(_) => {
                if let Err(error) = self.ledger.note_beside(map, LAYOUT_DIVIDED).await {
                    tracing::debug!(name = self.name, %error, "a part of a shard could not be noted");
                }
            }
        }
    }

    /// Checks that the ledger itself was not deleted: shards of a deleted ledger must not rise again. A shard that is created
    /// costs this one more reading, in all the life of a ledger 64 of them.
    async fn still_our_ledger(&self) -> Result<(), Failed> {
        let found = self.ledger.maps.get(META_NAME).await?.and_then(|map| map.metadata.uid);
        if found.as_ref() == Some(&self.meta.uid) {
            return Ok(());
        }
        Err(Failed::Lost(self.ledger.lost("update", &self.name)))
    }
}

//! One shard at the API server, or the part of it that a namespace has to itself: reading it, and writing it by compare-and-set.
//!
//! Not for what is in it (`shard`), nor for when it is written (`writer`).

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::maps::Failed;
use super::maps::config_map;
use super::shard::Shard;
use super::writer::{ShardCopy, ShardStore, Spare};
use super::{KubernetesLedger, META_NAME, SHARDS, copy_of};
use domain::ports::PortError;

/// One shard, or a part of it.
#[derive(Clone)]
pub(super) struct Stored<'a> {
    pub(super) ledger: &'a KubernetesLedger,
    pub(super) index: usize,
    pub(super) name: String,
    /// Whose part it is; `None` for the shard.
    pub(super) namespace: Option<String>,
    pub(super) meta: OwnerReference,
}

impl ShardStore for Stored<'_> {
    async fn read(&self) -> Result<ShardCopy, PortError> {
        let copy = match self.ledger.maps.get(&self.name).await? {
            Some(map) => copy_of(map, &self.meta),
            None => ShardCopy { shard: Shard::default(), version: None },
        };
        self.note(&copy.shard);
        Ok(copy)
    }

    async fn write(&self, copy: &ShardCopy) -> Result<String, Failed> {
        let written = self.put(&copy.shard, copy.version.clone()).await?;
        Ok(written.metadata.resource_version.unwrap_or_default())
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

    /// Writes it if it is still of that version, or creates it if there was none.
    pub(super) async fn put(&self, shard: &Shard, version: Option<String>) -> Result<ConfigMap, Failed> {
        let mut map = self.config_map(shard);
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

    fn config_map(&self, shard: &Shard) -> ConfigMap {
        let index = self.index;
        let about = match &self.namespace {
            None => format!("Shard {index} of {SHARDS} of the ledger {META_NAME}: one record per workload."),
            Some(namespace) => format!(
                "The records of namespace {namespace} that crowded shard {index} of the ledger {META_NAME}, which names this object."
            ),
        };
        let mut map = config_map(&self.name, "shard", &about, shard.entries().clone());
        map.metadata.owner_references = Some(vec![self.meta.clone()]);
        map
    }

    async fn create(&self, map: &ConfigMap) -> Result<ConfigMap, Failed> {
        self.still_our_ledger().await?;
        let created = self.ledger.maps.create(&self.name, map).await?;
        match &self.namespace {
            None => self.ledger.note_shard(self.index, &created).await,
            // A new one is noted before it counts, and one that was deleted under us here.
            Some(_) => {
                if let Err(error) = self.ledger.note_moved(&created).await {
                    tracing::debug!(name = self.name, %error, "a part of a shard could not be noted");
                }
            }
        }
        Ok(created)
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

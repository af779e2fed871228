//! Namespaces whose records are in an object of their own, because they crowded a shard: no namespace can take the room that
//! another needs.
//!
//! ```text
//! shard 07 above 512 KiB ──▶ (1) create allclear-ledger-07-<random> with a copy of the largest namespace's records, and the floor
//!                            (2) the ledger's own object says layout 2, and which object that is
//!                            (3) compare-and-set of the shard: without these records, and with `moved.<namespace>` naming the object
//! ```
//!
//! Only (3) counts. An object that no shard names is passed over, so a crash before it changes nothing, and leaves an object that
//! goes with the ledger. Its name is random: only its maker writes to it before a shard names it, so a slow second worker cannot
//! overwrite what has become the truth. From (3) on it is written by compare-and-set, as a shard is, in a queue of its own, and
//! refuses what it has no room for: that is its namespace's own loss. Nothing is ever moved back.
//!
//! Not for when a shard is crowded; that is `shard` and `writer`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::maps::Failed;
use super::shard::Shard;
use super::stored::Stored;
use super::writer::{ShardCopy, ShardQueue, Spare};
use super::{LAYOUT_DIVIDED, META_NAME, SHARDS, random_name};

/// The object that has the records of a namespace, and the writes to it.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) name: String,
    pub(super) queue: Arc<ShardQueue>,
}

/// Where the records of moved namespaces are, as the shards were last seen to say.
#[derive(Debug, Default)]
pub(super) struct Routes(Mutex<BTreeMap<(usize, String), Route>>);

impl Routes {
    /// Where those of this namespace and shard are; `None`: in the shard, as far as is known.
    pub(super) fn of(&self, index: usize, namespace: &str) -> Option<Route> {
        self.routes().get(&(index, namespace.to_owned())).cloned()
    }

    /// Takes over what a shard says.
    pub(super) fn note(&self, index: usize, shard: &Shard) {
        let mut routes = self.routes();
        let moved: BTreeMap<&str, &str> = shard.moved().collect();
        // A shard that was set back says less than before.
        routes.retain(|(of, namespace), route| {
            *of != index || moved.get(namespace.as_str()) == Some(&route.name.as_str())
        });
        for (namespace, name) in moved {
            let new = || Route { name: name.to_owned(), queue: Arc::default() };
            routes.entry((index, namespace.to_owned())).or_insert_with(new);
        }
    }

    /// Forgets all of it: it is found again with the shards.
    pub(super) fn clear(&self) {
        self.routes().clear();
    }

    fn routes(&self) -> MutexGuard<'_, BTreeMap<(usize, String), Route>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shard that an object of a namespace belongs to, by its name.
pub(super) fn index_of(name: &str) -> Option<usize> {
    let (index, _) = name.strip_prefix(META_NAME)?.strip_prefix('-')?.split_once('-')?;
    index.parse().ok().filter(|index| *index < SHARDS)
}

impl Stored<'_> {
    /// See [`ShardStore::relieve`].
    pub(super) async fn divide(
        &self,
        copy: ShardCopy,
        namespace: &str,
        spare: &mut Option<Spare>,
    ) -> Result<ShardCopy, Failed> {
        let name = match spare.take_if(|spare| spare.namespace == namespace) {
            Some(left) => left.name,
            None => random_name(self.index)?,
        };
        // An attempt whose outcome is not known may have been carried out, or be carried out yet: for the same namespace, and with the
        // same object. So that is used again, and never for another namespace.
        *spare = Some(Spare { namespace: namespace.to_owned(), name: name.clone() });
        let mut copy = copy;
        let theirs = copy.shard.move_out(namespace, &name);
        let own = self.for_namespace(namespace, &name);
        let there = self.ledger.maps.get(&name).await?;
        let made = own.put(&theirs.base, there.and_then(|map| map.metadata.resource_version)).await?;
        self.ledger.note_beside(&made, LAYOUT_DIVIDED).await?;
        tracing::info!(
            namespace,
            configmap = name,
            shard = self.name,
            "the records of a namespace crowd a part of the ledger, and get one of their own"
        );
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_namespace_is_told_from_a_shard_by_its_name() {
        let name = random_name(7).unwrap();
        assert_eq!(index_of(&name), Some(7), "{name}");
        for other in ["allclear-ledger-07", "allclear-ledger", "allclear-ledger-64-0a", "allclear-ledger-of-tomorrow"] {
            assert_eq!(index_of(other), None, "{other}");
        }
    }
}

//! The default ledger: ConfigMaps in our own namespace.
//!
//! | object | holds |
//! |---|---|
//! | `allclear-ledger` | the form of the ledger, the members of the group, what is listed, what the last life left, and the settings in force; its UID is the origin |
//! | `allclear-ledger-00` … `-63` | a shard of the records each, created with its first record |
//! | `allclear-ledger-07-<random>` | the records of one namespace that crowded shard 07, or its records in flight; the shard names it |
//! | `allclear-outbox-<id>` | one delivery each |
//!
//! A shard is owned by the `allclear-ledger` it was created under. So `kubectl delete configmap allclear-ledger` deletes
//! the ledger (the garbage collector takes the shards), and shards of an earlier ledger, restored from some backup, are
//! recognised and count as empty. Deleting one shard under a running process is healed from its copy where a rollout of
//! it is in flight. Deleting it at rest, or while nothing runs, sets it back (see [`lost`]): delete the ledger, never a shard.
//!
//! [`shard`] knows what is in a shard, [`stored`] where it is, [`writer`] when it is written, [`journal`] how a large one is written
//! in small pieces, and [`moved`] what becomes of one that is crowded. [`outbox`] keeps the deliveries, [`pin`] the members and [`listed`] the scopes that are listed, [`find`] knows by
//! what a ledger is found, and [`maps`] makes the calls; this file joins them.

pub mod find;
mod in_force;
mod journal;
mod life;
mod listed;
mod lost;
mod maps;
mod moved;
mod outbox;
mod pin;
pub mod rehearse;
mod shard;
mod stored;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tokio::sync::Mutex as AsyncMutex;

use self::listed::{Present, Shards};
use self::maps::{Maps, config_map};
use self::moved::Routes;
use self::shard::{Change, Shard};
use self::stored::Stored;
use self::writer::{ShardCopy, ShardQueue, WRITES_AT_ONCE_MAX, Writes};
use super::{SHARDS, pin_of, shard_of};
use crate::adapters::kubernetes::no_namespace;
use kernel::floor::Floor;
use kernel::id::{Origin, WorkloadId};
use kernel::watches::listed::Scope;
use kernel::watches::lives::LifeNote;
use notices::delivery::Delivery;
use purge::agreement::roster::Pin;
use purge::ports::{Ledger, LedgerContents, PinError, PortError, StoreError};
use purge::records::record::{Record, Records};

/// The ledger's own object.
pub const META_NAME: &str = "allclear-ledger";

/// The form of the ledger as a whole: which objects there are and how records are spread over them.
const LAYOUT: &str = "1";

/// The same, where the records of a namespace were moved out of a shard. A program that knows only the first form refuses it by
/// name: it would take those workloads for unknown, and number them anew.
const LAYOUT_DIVIDED: &str = "2";

/// The same, where shards may have journals, and namespaces may have been moved.
const LAYOUT_JOURNALED: &str = "3";

/// The entry of the meta object that says so.
const LAYOUT_KEY: &str = "layout";

/// A ledger in ConfigMaps. One for a process: the copies of the shards, and what travels together, are in it.
pub struct KubernetesLedger {
    maps: Maps,
    namespace: String,
    meta: Mutex<Option<OwnerReference>>,
    /// Whoever has it changes the ledger's own object. Changes of one moment would refuse each other.
    changing_meta: AsyncMutex<()>,
    queues: Vec<Arc<ShardQueue>>,
    routes: Routes,
    writes: Writes,
    shards: Shards,
    outbox: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for KubernetesLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesLedger").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl KubernetesLedger {
    /// The ledger in `namespace`. The client should be one without retries of its own (`Config::default_retry = false`):
    /// fifteen retries inside a call would only eat its time-out.
    pub fn new(client: kube::Client, namespace: &str) -> Self {
        Self {
            maps: Maps::new(client, namespace),
            namespace: namespace.to_owned(),
            meta: Mutex::default(),
            changing_meta: AsyncMutex::default(),
            queues: std::iter::repeat_with(Arc::default).take(SHARDS).collect(),
            routes: Routes::default(),
            writes: Writes::default(),
            shards: Shards::default(),
            outbox: Mutex::default(),
        }
    }

    /// The error of a call that came upon another ledger than the one that was opened, or upon none.
    fn lost(&self, verb: &'static str, name: &str) -> PortError {
        let cause = format!("the ledger {META_NAME} was deleted; it must be opened again, which starts a new one");
        PortError::lasting(self.maps.attempt(verb, name), cause)
    }

    /// The meta object as it is now, created if there is none.
    async fn find_or_create_meta(&self) -> Result<(OwnerReference, ConfigMap), PortError> {
        let map = match self.maps.get(META_NAME).await? {
            Some(map) => map,
            None => self.create_meta().await?,
        };
        Ok((self.read_meta(&map)?, map))
    }

    fn read_meta(&self, map: &ConfigMap) -> Result<OwnerReference, PortError> {
        let layout = map.data.as_ref().and_then(|data| data.get(LAYOUT_KEY)).map_or("", String::as_str);
        let known = [LAYOUT, LAYOUT_DIVIDED, LAYOUT_JOURNALED];
        if !known.contains(&layout) {
            return Err(PortError::lasting(
                format!("failed to open the ledger {META_NAME} in namespace {}", self.namespace),
                format!(
                    "its layout is {layout:?} and this program knows {}; run the version that wrote it",
                    known.join(", ")
                ),
            ));
        }
        owner(map).ok_or_else(|| {
            PortError::passing(
                format!("failed to open the ledger {META_NAME} in namespace {}", self.namespace),
                "the API server gave it no UID",
            )
        })
    }

    async fn create_meta(&self) -> Result<ConfigMap, PortError> {
        let about = "What allclear knows about the workloads of this cluster. Deleting it makes allclear forget all of it: \
                     every workload is then taken as it is, without a purge.";
        let data = BTreeMap::from([(LAYOUT_KEY.to_owned(), LAYOUT.to_owned())]);
        match self.maps.create(META_NAME, &config_map(META_NAME, "ledger", about, data)).await {
            Ok(map) => Ok(map),
            // Another worker was faster, or the answer to our own creation was lost.
            Err(failed) if failed.status() == Some(409) => self.maps.get(META_NAME).await?.ok_or(failed.error),
            Err(failed) if failed.status() == Some(404) => Err(no_namespace(failed.error, &self.namespace)),
            Err(failed) => Err(failed.error),
        }
    }

    /// The meta object of the open ledger; opens it first if necessary.
    async fn meta(&self) -> Result<OwnerReference, PortError> {
        if let Some(meta) = self.known_meta() {
            return Ok(meta);
        }
        let (found, _) = self.find_or_create_meta().await?;
        let mut known = self.meta.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.get_or_insert(found).clone())
    }

    fn known_meta(&self) -> Option<OwnerReference> {
        self.meta.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn settle(&self, workload: &WorkloadId, change: Change) -> Result<(), StoreError> {
        loop {
            let Place { queue, store } = self.place(workload).await?;
            let waiting = queue.enqueue(workload.clone(), change.clone());
            if let Some(answer) = queue.settle(waiting, &store, &self.writes).await {
                return answer;
            }
        }
    }

    /// Settles changes of one place, all in one write if nothing comes in between.
    async fn settle_all(&self, Place { queue, store }: Place<'_>, records: &[(&WorkloadId, &Record)]) -> Failures {
        let change = |record: &Record| Change::Store(Box::new(record.clone()));
        let queued: Vec<_> = records.iter().map(|(id, record)| queue.enqueue((*id).clone(), change(record))).collect();
        let mut failed = BTreeMap::new();
        for (waiting, (workload, record)) in queued.into_iter().zip(records) {
            let answer = match queue.settle(waiting, &store, &self.writes).await {
                Some(answer) => answer,
                None => self.settle(workload, change(record)).await,
            };
            if let Err(error) = answer {
                failed.insert((*workload).clone(), error);
            }
        }
        failed
    }

    async fn look<T: Send>(
        &self,
        workload: &WorkloadId,
        fresh: bool,
        look: impl Fn(&Shard) -> Result<T, PortError> + Send + Sync,
    ) -> Result<T, PortError> {
        loop {
            let Place { queue, store } = self.place(workload).await?;
            let is_elsewhere = |shard: &Shard| store.namespace.is_none() && shard.is_moved(&workload.namespace);
            let seen = queue.look(fresh, &store, |shard| match is_elsewhere(shard) {
                true => {
                    self.routes.note(store.index, shard);
                    None
                }
                false => Some(look(shard)),
            });
            if let Some(seen) = seen.await? {
                return seen;
            }
        }
    }

    fn shard(&self, index: usize, meta: &OwnerReference) -> Stored<'_> {
        Stored { ledger: self, index, name: shard_name(index), namespace: None, meta: meta.clone() }
    }

    /// Where the record of a workload is, as far as is known. A queue that knows better does not answer, and then so does this.
    async fn place(&self, workload: &WorkloadId) -> Result<Place<'_>, PortError> {
        let index = shard_of(workload);
        let shard = self.shard(index, &self.meta().await?);
        Ok(match self.routes.of(index, &workload.namespace) {
            Some(route) => Place { queue: route.queue, store: shard.for_namespace(&workload.namespace, &route.name) },
            None => Place { queue: self.queues.get(index).ok_or_else(|| no_such_shard(index))?.clone(), store: shard },
        })
    }
}

/// Where a record is: the object, and the writes to it.
struct Place<'a> {
    queue: Arc<ShardQueue>,
    store: Stored<'a>,
}

type Failures = BTreeMap<WorkloadId, StoreError>;

/// What a listing shows of the ledger.
#[derive(Default)]
struct Contents {
    shards: BTreeMap<usize, ShardCopy>,
    /// The parts that shards name.
    parts: Vec<Part>,
    present: Present,
}

/// The records of a namespace that have an object of their own.
struct Part {
    index: usize,
    namespace: String,
    name: String,
    copy: ShardCopy,
}

impl Contents {
    /// Adds all of its records to what was read.
    fn gather(&self, read: &mut LedgerContents) {
        for (index, copy) in &self.shards {
            gather(&copy.shard, read, |workload| {
                // It is read and written in its own shard, so one elsewhere, which a person put there, would hide that for ever.
                let belongs = shard_of(workload) == *index;
                if !belongs {
                    tracing::warn!(%workload, shard = index, "left out a record that is in the shard of others");
                }
                belongs && !copy.shard.is_moved(&workload.namespace)
            });
        }
        for Part { index, namespace, copy, .. } in &self.parts {
            gather(&copy.shard, read, |workload| workload.namespace == *namespace && shard_of(workload) == *index);
        }
        read.set_back.lost = self.copies().flat_map(|copy| copy.lost.iter().cloned()).collect();
    }
}

#[async_trait]
impl Ledger for KubernetesLedger {
    async fn open(&self) -> Result<LedgerContents, PortError> {
        let (meta, map) = self.find_or_create_meta().await?;
        let mut contents = self.read_shards(&meta, &map).await?;
        self.label(&map).await;
        *self.meta.lock().unwrap_or_else(PoisonError::into_inner) = Some(meta.clone());
        let mut opened = ledgered(&meta, &map, &contents.present);
        contents.gather(&mut opened);
        self.shards.adopt(std::mem::take(&mut contents.present), &opened.listed);
        self.routes.clear();
        for (index, queue) in self.queues.iter().enumerate() {
            let copy = contents.shards.remove(&index).unwrap_or_default();
            self.routes.note(index, &copy.shard);
            queue.adopt(self.shard(index, &meta).kept(copy).await).await;
        }
        for Part { index, namespace, name, copy } in contents.parts {
            if let Some(route) = self.routes.of(index, &namespace) {
                let store = self.shard(index, &meta).for_namespace(&namespace, &name);
                route.queue.adopt(store.kept(copy).await).await;
            }
        }
        Ok(opened)
    }

    async fn peek(&self) -> Result<Option<LedgerContents>, PortError> {
        let Some(map) = self.maps.get(META_NAME).await? else { return Ok(None) };
        let meta = self.read_meta(&map)?;
        let contents = self.read_shards(&meta, &map).await?;
        let mut seen = ledgered(&meta, &map, &contents.present);
        contents.gather(&mut seen);
        // The caller looks again because the cluster may have been set back. Then a shard may have back what was moved out of it.
        for queue in &self.queues {
            queue.forget().await;
        }
        self.routes.clear();
        Ok(Some(seen))
    }

    async fn load(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        self.look(workload, true, |shard| shard.record(workload)).await
    }

    async fn store(&self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError> {
        self.settle(workload, Change::Store(Box::new(record.clone()))).await
    }

    async fn store_all(&self, records: &Records) -> BTreeMap<WorkloadId, StoreError> {
        let (mut places, mut failed) = (BTreeMap::new(), Failures::new());
        for (workload, record) in records {
            match self.place(workload).await {
                Ok(place) => {
                    let entry = places.entry(place.store.name.clone()).or_insert_with(|| (place, Vec::new()));
                    entry.1.push((workload, record.as_ref()));
                }
                Err(error) => drop(failed.insert(workload.clone(), error.into())),
            }
        }
        let writes: Vec<_> = places
            .into_values()
            .map(|(place, records)| async move { self.settle_all(place, &records).await })
            .collect();
        // Further ones would only wait for a permit, each with copies of all its records in hand.
        let answers = stream::iter(writes).buffer_unordered(WRITES_AT_ONCE_MAX);
        failed.extend(answers.collect::<Vec<_>>().await.into_iter().flatten());
        failed
    }

    async fn remove(&self, workload: &WorkloadId, revision: u64) -> Result<(), StoreError> {
        self.settle(workload, Change::Remove(revision)).await
    }

    async fn floor(&self, workload: &WorkloadId) -> Result<Floor, PortError> {
        // The copy will do: a record that starts at or below the real floor is refused, after a fresh read.
        self.look(workload, false, Shard::floor).await
    }

    async fn pin(&self) -> Result<Option<Pin>, PinError> {
        self.read_pin().await
    }

    async fn store_pin(&self, pin: &Pin, over: Option<&Pin>) -> Result<bool, PinError> {
        self.write_pin(pin, over).await
    }

    async fn store_listed(&self, scopes: &BTreeSet<Scope>) -> Result<(), PinError> {
        self.write_listed(scopes).await
    }

    async fn store_life(&self, life: &LifeNote, over: Option<&LifeNote>) -> Result<(), PinError> {
        self.write_life(life, over).await
    }

    async fn bill(&self) -> Result<Option<String>, PortError> {
        self.read_bill().await
    }

    async fn store_bill(&self, text: &str) -> Result<(), PinError> {
        self.write_bill(text).await
    }

    async fn in_force(&self) -> Result<Option<String>, PortError> {
        self.read_in_force().await
    }

    async fn store_in_force(&self, text: &str) -> Result<(), PinError> {
        self.write_in_force(text).await
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        self.list_deliveries().await
    }

    async fn store_delivery(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.put_delivery(delivery).await
    }

    async fn remove_delivery(&self, id: &str) -> Result<(), PortError> {
        self.delete_delivery(id).await
    }
}

fn shard_name(index: usize) -> String {
    format!("{META_NAME}-{index:02}")
}

/// A name for an object beside a shard.
fn random_name(index: usize) -> Result<String, PortError> {
    let number = getrandom::u64().map_err(|error| {
        PortError::passing("failed to name a part of the ledger", format!("no randomness: {error}"))
    })?;
    Ok(format!("{}-{number:016x}", shard_name(index)))
}

fn no_such_shard(index: usize) -> PortError {
    PortError::lasting("failed to find a shard of the ledger", format!("there is none with the number {index}"))
}

/// The reference by which shards belong to their ledger. `blockOwnerDeletion` stays unset: setting it needs rights on
/// finalizers where `OwnerReferencesPermissionEnforcement` is on (OpenShift).
fn owner(meta: &ConfigMap) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: META_NAME.to_owned(),
        uid: meta.metadata.uid.clone()?,
        ..OwnerReference::default()
    })
}

/// Adds the records of a shard that belong there to what was read.
fn gather(shard: &Shard, read: &mut LedgerContents, belongs: impl Fn(&WorkloadId) -> bool) {
    for workload in shard.workloads().filter(belongs) {
        match shard.record(&workload) {
            Ok(Some(record)) => {
                if shard.is_behind(record.seq) {
                    read.set_back.records.insert(workload.clone());
                }
                drop(read.records.insert(workload, Arc::new(record)));
            }
            Ok(None) => {}
            Err(error) => drop(read.unreadable.insert(workload, error.to_string())),
        }
    }
}

/// What the ledger's own object says.
fn ledgered(meta: &OwnerReference, map: &ConfigMap, present: &Present) -> LedgerContents {
    let pin = pin::of(map).and_then(|text| pin_of(text).ok());
    let (listed, life) = (listed::of(map, present), life::of(map));
    let layout = map.data.as_ref().and_then(|data| data.get(LAYOUT_KEY)).cloned().unwrap_or_default();
    LedgerContents { origin: Origin(meta.uid.clone()), pin, listed, layout, life, ..LedgerContents::default() }
}

fn is_ours(map: &ConfigMap, meta: &OwnerReference) -> bool {
    map.metadata.owner_references.iter().flatten().any(|owner| owner.uid == meta.uid)
}

/// What a shard holds, as far as it belongs to this ledger; with its journal, if that is there.
fn copy_of(base: ConfigMap, journal: Option<ConfigMap>, meta: &OwnerReference) -> ShardCopy {
    let version = base.metadata.resource_version.clone();
    if !is_ours(&base, meta) {
        return ShardCopy { version, ..ShardCopy::default() };
    }
    let (journal, entries) = journal.map(|map| (map.metadata.resource_version, map.data)).unwrap_or_default();
    ShardCopy { shard: Shard::of(base.data.unwrap_or_default(), entries), version, journal, lost: Vec::new() }
}

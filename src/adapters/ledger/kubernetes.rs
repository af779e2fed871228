//! The default ledger: ConfigMaps in our own namespace.
//!
//! | object | holds |
//! |---|---|
//! | `allclear-ledger` | the form of the ledger, the members of the group, and what is listed; its UID is the origin |
//! | `allclear-ledger-00` … `-63` | a shard of the records each, created with its first record |
//! | `allclear-outbox-<id>` | one delivery each |
//!
//! A shard is owned by the `allclear-ledger` it was created under. So `kubectl delete configmap allclear-ledger` deletes
//! the ledger (the garbage collector takes the shards), and shards of an earlier ledger, restored from some backup, are
//! recognised and count as empty. Deleting one shard under a running process is healed from its copy; deleting it while
//! nothing runs forgets its records and their numbers, and its workloads are taken as they are: delete the ledger, never a
//! shard.
//!
//! [`shard`] knows what is in a shard, [`writer`] when it is written, [`outbox`] keeps the deliveries, [`pin`] the members
//! and [`listed`] the scopes that are listed, and [`find`] knows by what a ledger is found; this file joins them.

mod call;
pub mod find;
mod listed;
mod outbox;
mod pin;
mod shard;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Api, ListParams, PostParams};

use self::call::{Call, Failed};
use self::listed::Shards;
use self::shard::{Change, Shard};
use self::writer::{Copy, Lane, ShardStore, WRITES_AT_ONCE_MAX, Writes};
use super::{SHARDS, pin_of, shard_of};
use crate::domain::delivery::Delivery;
use crate::domain::id::{Origin, Seq, WorkloadId};
use crate::domain::listed::Scope;
use crate::domain::record::Record;
use crate::domain::roster::Pin;
use crate::ports::{Ledger, Ledgered, PinError, PortError, StoreError};

/// The ledger's own object.
pub const META_NAME: &str = "allclear-ledger";

/// The form of the ledger as a whole: which objects there are and how records are spread over them.
const LAYOUT: &str = "1";

/// The entry of the meta object that says so.
const LAYOUT_KEY: &str = "layout";

/// Marks everything we create, as `kubectl get configmap -l` and other tools expect it.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "allclear");

/// Tells the kinds of our ConfigMaps apart: `ledger`, `shard`, `delivery`.
const PART_LABEL: &str = "allclear.dev/part";

/// Says to people what they are looking at.
const DESCRIPTION: &str = "allclear.dev/description";

/// Objects read in one page of a listing. Shards of 40 KB make pages of 640 KB, full ones of 16 MiB.
const PAGE: u32 = 16;

/// A ledger in ConfigMaps. One for a process: the copies of the shards, and what travels together, are in it.
pub struct KubernetesLedger {
    maps: Api<ConfigMap>,
    namespace: String,
    meta: Mutex<Option<OwnerReference>>,
    lanes: Vec<Lane>,
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
            maps: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            meta: Mutex::default(),
            lanes: std::iter::repeat_with(Lane::default).take(SHARDS).collect(),
            writes: Writes::default(),
            shards: Shards::default(),
            outbox: Mutex::default(),
        }
    }

    fn call<'a>(&'a self, verb: &'static str, name: &'a str) -> Call<'a> {
        Call { verb, name, namespace: &self.namespace }
    }

    /// The error of a call that came upon another ledger than the one that was opened, or upon none.
    fn lost(&self, verb: &'static str, name: &str) -> PortError {
        let cause = format!("the ledger {META_NAME} was deleted; it must be opened again, which starts a new one");
        PortError::lasting(self.call(verb, name).attempted(), cause)
    }

    async fn get(&self, name: &str) -> Result<Option<ConfigMap>, PortError> {
        let call = self.call("get", name);
        call.make(self.maps.get_opt(name)).await.map_err(|failed| call.unexpected(failed))
    }

    async fn create(&self, name: &str, map: &ConfigMap) -> Result<ConfigMap, Failed> {
        self.call("create", name).make(self.maps.create(&PostParams::default(), map)).await
    }

    async fn replace(&self, name: &str, map: &ConfigMap) -> Result<ConfigMap, Failed> {
        self.call("update", name).make(self.maps.replace(name, &PostParams::default(), map)).await
    }

    /// All ConfigMaps of one part. A listing that expires half-way is read again in one piece (fault W3).
    async fn list(&self, part: &str) -> Result<Vec<ConfigMap>, PortError> {
        let call = self.call("list", META_NAME);
        let (key, value) = MANAGED_BY;
        let all = ListParams::default().labels(&format!("{key}={value},{PART_LABEL}={part}"));
        let mut found = Vec::new();
        let mut page = all.clone().limit(PAGE);
        loop {
            match call.make(self.maps.list(&page)).await {
                Ok(list) => {
                    found.extend(list.items);
                    match list.metadata.continue_.filter(|token| !token.is_empty()) {
                        Some(token) => page = page.continue_token(&token),
                        None => return Ok(found),
                    }
                }
                Err(Failed::Expired) if page.limit.is_some() => {
                    found.clear();
                    page = all.clone();
                }
                Err(failed) => return Err(call.unexpected(failed)),
            }
        }
    }

    /// The meta object as it is now, created if there is none.
    async fn find_or_create_meta(&self) -> Result<(OwnerReference, ConfigMap), PortError> {
        let map = match self.get(META_NAME).await? {
            Some(map) => map,
            None => self.create_meta().await?,
        };
        Ok((self.read_meta(&map)?, map))
    }

    fn read_meta(&self, map: &ConfigMap) -> Result<OwnerReference, PortError> {
        let layout = map.data.as_ref().and_then(|data| data.get(LAYOUT_KEY)).map_or("", String::as_str);
        if layout != LAYOUT {
            return Err(PortError::lasting(
                format!("failed to open the ledger {META_NAME} in namespace {}", self.namespace),
                format!("its layout is {layout:?} and this program knows {LAYOUT:?}; run the version that wrote it"),
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
        match self.create(META_NAME, &config_map(META_NAME, "ledger", about, data)).await {
            Ok(map) => Ok(map),
            // Another worker was faster, or the answer to our own creation was lost.
            Err(Failed::Conflict) => self.get(META_NAME).await?.ok_or_else(|| {
                PortError::passing(format!("failed to create configmap {META_NAME}"), "it appears and disappears")
            }),
            Err(failed) => Err(self.call("create", META_NAME).unexpected(failed)),
        }
    }

    /// All shards of this ledger, and which objects they are.
    async fn read_shards(
        &self,
        meta: &OwnerReference,
    ) -> Result<(BTreeMap<usize, Copy>, BTreeMap<usize, String>), PortError> {
        let (mut copies, mut present) = (BTreeMap::new(), BTreeMap::new());
        for map in self.list("shard").await? {
            let index = (0..SHARDS).find(|index| map.metadata.name.as_ref() == Some(&shard_name(*index)));
            let Some(index) = index else { continue };
            if is_ours(&map, meta) {
                present.insert(index, listed::brief(&map));
            }
            copies.insert(index, copy_of(map, meta));
        }
        Ok((copies, present))
    }

    /// The meta object of the ledger that was opened, opening it now if nobody has.
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
        let index = shard_of(workload);
        let store = self.shard_store(index).await?;
        let Some(lane) = self.lanes.get(index) else { return Err(no_such_shard(index).into()) };
        loop {
            let waiting = lane.enqueue(workload.clone(), change.clone());
            if let Some(answer) = lane.settle(waiting, &store, &self.writes).await {
                return answer;
            }
        }
    }

    /// Settles changes of one shard, all in one write if nothing comes in between.
    async fn settle_all(&self, index: usize, records: &[(&WorkloadId, &Record)]) -> BTreeMap<WorkloadId, StoreError> {
        let store = match self.shard_store(index).await {
            Ok(store) => store,
            Err(error) => return records.iter().map(|(id, _)| ((*id).clone(), error.clone().into())).collect(),
        };
        let Some(lane) = self.lanes.get(index) else { return BTreeMap::new() };
        let change = |record: &Record| Change::Store(Box::new(record.clone()));
        let queued: Vec<_> = records.iter().map(|(id, record)| lane.enqueue((*id).clone(), change(record))).collect();
        let mut failed = BTreeMap::new();
        for (waiting, (workload, record)) in queued.into_iter().zip(records) {
            let answer = match lane.settle(waiting, &store, &self.writes).await {
                Some(answer) => answer,
                None => self.settle(workload, change(record)).await,
            };
            if let Err(error) = answer {
                failed.insert((*workload).clone(), error);
            }
        }
        failed
    }

    async fn look<T>(
        &self,
        workload: &WorkloadId,
        fresh: bool,
        look: impl FnOnce(&Shard) -> Result<T, PortError> + Send,
    ) -> Result<T, PortError> {
        let index = shard_of(workload);
        let store = self.shard_store(index).await?;
        self.lanes.get(index).ok_or_else(|| no_such_shard(index))?.look(fresh, &store, look).await?
    }

    async fn shard_store(&self, index: usize) -> Result<Stored<'_>, PortError> {
        Ok(Stored { ledger: self, index, name: shard_name(index), meta: self.meta().await? })
    }
}

#[async_trait]
impl Ledger for KubernetesLedger {
    async fn open(&self) -> Result<Ledgered, PortError> {
        let (meta, map) = self.find_or_create_meta().await?;
        let (mut copies, present) = self.read_shards(&meta).await?;
        self.label(&map).await;
        *self.meta.lock().unwrap_or_else(PoisonError::into_inner) = Some(meta.clone());
        let mut opened = ledgered(meta, &map, &present);
        self.shards.adopt(present, &opened.listed);
        for (index, lane) in self.lanes.iter().enumerate() {
            let none = Copy { shard: Shard::default(), version: None };
            let copy = copies.remove(&index).unwrap_or(none);
            gather(&copy.shard, &mut opened);
            lane.adopt(copy).await;
        }
        Ok(opened)
    }

    async fn peek(&self) -> Result<Option<Ledgered>, PortError> {
        let Some(map) = self.get(META_NAME).await? else { return Ok(None) };
        let meta = self.read_meta(&map)?;
        let (copies, present) = self.read_shards(&meta).await?;
        let mut seen = ledgered(meta, &map, &present);
        copies.values().for_each(|copy| gather(&copy.shard, &mut seen));
        Ok(Some(seen))
    }

    async fn load(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        self.look(workload, true, |shard| shard.record(workload)).await
    }

    async fn store(&self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError> {
        self.settle(workload, Change::Store(Box::new(record.clone()))).await
    }

    async fn store_all(&self, records: &BTreeMap<WorkloadId, Record>) -> BTreeMap<WorkloadId, StoreError> {
        let mut shards: BTreeMap<usize, Vec<(&WorkloadId, &Record)>> = BTreeMap::new();
        for (workload, record) in records {
            shards.entry(shard_of(workload)).or_default().push((workload, record));
        }
        let writes: Vec<_> = shards.iter().map(|(index, records)| self.settle_all(*index, records)).collect();
        // Further ones would only wait for a permit, each with copies of all its records in hand.
        let answers = stream::iter(writes).buffer_unordered(WRITES_AT_ONCE_MAX);
        answers.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    async fn remove(&self, workload: &WorkloadId, revision: u64) -> Result<(), StoreError> {
        self.settle(workload, Change::Remove(revision)).await
    }

    async fn seq_floor(&self, workload: &WorkloadId) -> Result<Seq, PortError> {
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

/// One shard at the API server.
struct Stored<'a> {
    ledger: &'a KubernetesLedger,
    index: usize,
    name: String,
    meta: OwnerReference,
}

impl ShardStore for Stored<'_> {
    async fn read(&self) -> Result<Copy, PortError> {
        Ok(match self.ledger.get(&self.name).await? {
            Some(map) => copy_of(map, &self.meta),
            None => Copy { shard: Shard::default(), version: None },
        })
    }

    async fn write(&self, copy: &Copy) -> Result<String, Failed> {
        let mut map = self.config_map(&copy.shard);
        let written = match &copy.version {
            None => self.create(&map).await,
            Some(version) => {
                map.metadata.resource_version = Some(version.clone());
                match self.ledger.replace(&self.name, &map).await {
                    // Deleted under us: what we hold is the only copy left of what was in it.
                    Err(Failed::NotFound) => {
                        map.metadata.resource_version = None;
                        self.create(&map).await
                    }
                    written => written,
                }
            }
        };
        Ok(written?.metadata.resource_version.unwrap_or_default())
    }

    fn failed(&self, failed: Failed) -> PortError {
        self.ledger.call("update", &self.name).unexpected(failed)
    }
}

impl Stored<'_> {
    fn config_map(&self, shard: &Shard) -> ConfigMap {
        let about = format!("Shard {} of {SHARDS} of the ledger {META_NAME}: one record per workload.", self.index);
        let mut map = config_map(&self.name, "shard", &about, shard.entries().clone());
        map.metadata.owner_references = Some(vec![self.meta.clone()]);
        map
    }

    async fn create(&self, map: &ConfigMap) -> Result<ConfigMap, Failed> {
        self.still_our_ledger().await?;
        let created = self.ledger.create(&self.name, map).await?;
        self.ledger.note_shard(self.index, &created).await;
        Ok(created)
    }

    /// Checks that the ledger itself was not deleted: shards of a deleted ledger must not rise again. A shard that is created
    /// costs this one more reading, in all the life of a ledger 64 of them.
    async fn still_our_ledger(&self) -> Result<(), Failed> {
        let found = self.ledger.get(META_NAME).await.map_err(Failed::Other)?.and_then(|map| map.metadata.uid);
        if found.as_ref() == Some(&self.meta.uid) {
            return Ok(());
        }
        Err(Failed::Lost(self.ledger.lost("update", &self.name)))
    }
}

fn shard_name(index: usize) -> String {
    format!("{META_NAME}-{index:02}")
}

fn no_such_shard(index: usize) -> PortError {
    PortError::lasting("failed to find a shard of the ledger", format!("there is none with the number {index}"))
}

/// A ConfigMap of ours, without owner.
fn config_map(name: &str, part: &str, about: &str, data: BTreeMap<String, String>) -> ConfigMap {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let (managed_by, us) = MANAGED_BY;
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([pair(managed_by, us), pair(PART_LABEL, part)])),
            annotations: Some(BTreeMap::from([pair(DESCRIPTION, about)])),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
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

/// Adds the records of a shard to what was read.
fn gather(shard: &Shard, read: &mut Ledgered) {
    for workload in shard.workloads() {
        match shard.record(&workload) {
            Ok(Some(record)) => drop(read.records.insert(workload, record)),
            Ok(None) => {}
            Err(error) => drop(read.unreadable.insert(workload, error.to_string())),
        }
    }
}

/// What the ledger's own object says.
fn ledgered(meta: OwnerReference, map: &ConfigMap, present: &BTreeMap<usize, String>) -> Ledgered {
    let pin = pin::of(map).and_then(|text| pin_of(text).ok());
    Ledgered { origin: Origin(meta.uid), pin, listed: listed::of(map, present), ..Ledgered::default() }
}

fn is_ours(map: &ConfigMap, meta: &OwnerReference) -> bool {
    map.metadata.owner_references.iter().flatten().any(|owner| owner.uid == meta.uid)
}

/// What a shard holds, as far as it belongs to this ledger.
fn copy_of(map: ConfigMap, meta: &OwnerReference) -> Copy {
    let shard = if is_ours(&map, meta) { Shard::of(map.data.unwrap_or_default()) } else { Shard::default() };
    Copy { shard, version: map.metadata.resource_version }
}

//! What one shard holds, and what a change makes of it. No client required: everything that talks is in `writer`.
//!
//! A shard is the `data` of a ConfigMap: one entry per record under a key people can read (`deployment.shop.web`), and
//! `seq_floor`. Entries are kept as text, so what this program cannot read survives its writes byte for byte.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::adapters::ledger::{Ruling, judge_removal, judge_store, unusable};
use crate::domain::id::{Seq, WorkloadId};
use crate::domain::record::Record;
use crate::domain::record_codec::{decode, encode};
use crate::ports::{PortError, StoreError};

/// Most a ConfigMap may hold, in bytes: `MaxSecretSize` of the API server's validation, which counts the values; keys
/// are counted here too, so that this guard speaks before the server does.
const BYTES_MAX: usize = 1024 * 1024;

/// Longest key of a ConfigMap (DNS subdomain, 253 characters).
const KEY_CHARS_MAX: usize = 253;

/// The entry of the floor. It has no dot, so it is no workload's.
const FLOOR_KEY: &str = "seq_floor";

/// Keys of workloads whose name is too long to be a key; the workload is named in the value.
const HASHED_PREFIX: &str = "hashed.";

/// One thing to do to one record.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Store this, by compare-and-set.
    Store(Box<Record>),
    /// Remove the record of this revision.
    Remove(u64),
}

/// What a change did.
#[derive(Debug)]
pub(super) enum Applied {
    /// The shard is another one now and has to be written.
    Changed,
    /// Nothing: it was so already.
    Unchanged,
    /// Nothing: it was refused.
    Refused(StoreError),
}

/// The content of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    entries: BTreeMap<String, String>,
    bytes: usize,
}

impl Shard {
    /// The shard a ConfigMap's data stand for.
    pub(super) fn of(entries: BTreeMap<String, String>) -> Self {
        let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        Self { entries, bytes }
    }

    /// The data of the ConfigMap.
    pub(super) fn entries(&self) -> &BTreeMap<String, String> {
        &self.entries
    }

    /// The lowest seq a new record of this shard may start after.
    pub(super) fn floor(&self) -> Result<Seq, PortError> {
        let Some(text) = self.entries.get(FLOOR_KEY) else { return Ok(Seq::default()) };
        // Guessing 0 could repeat a vector (GA-2), so a damaged floor stops new records of this shard, not the old ones.
        text.parse().map(Seq).map_err(|_| {
            PortError::lasting(format!("failed to read {FLOOR_KEY} {text:?} of the ledger"), "it is not a whole number")
        })
    }

    /// One record.
    pub(super) fn record(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        let key = key_of(workload);
        let Some(value) = self.entries.get(&key) else { return Ok(None) };
        let text = if key.starts_with(HASHED_PREFIX) { value.split_once(' ').map_or("", |(_, text)| text) } else { value };
        decode(text.as_bytes()).map(Some).map_err(|error| unusable(workload, &error))
    }

    /// Every workload with an entry. Entries that name none are not ours and are passed over.
    pub(super) fn workloads(&self) -> impl Iterator<Item = WorkloadId> {
        self.entries.iter().filter_map(|(key, value)| workload_of(key, value))
    }

    /// Carries out one change, here only.
    pub(super) fn apply(&mut self, workload: &WorkloadId, change: &Change) -> Applied {
        self.try_apply(workload, change).unwrap_or_else(Applied::Refused)
    }

    fn try_apply(&mut self, workload: &WorkloadId, change: &Change) -> Result<Applied, StoreError> {
        let current = self.record(workload)?;
        let ruling = match change {
            Change::Store(record) => judge_store(current.as_ref(), self.floor()?, record),
            Change::Remove(revision) => judge_removal(current.as_ref(), *revision),
        };
        match (ruling, change) {
            (Ruling::Apply, Change::Store(record)) => {
                let text = encode(record).map_err(|error| unusable(workload, &error))?;
                let key = key_of(workload);
                let value = if key.starts_with(HASHED_PREFIX) { format!("{workload} {text}") } else { text };
                self.put(key, value)?;
            }
            (Ruling::Apply, Change::Remove(_)) => {
                let removed = current.map(|record| record.seq).unwrap_or_default();
                let floor = self.floor()?.max(removed);
                let key = key_of(workload);
                if let Some(value) = self.entries.remove(&key) {
                    self.bytes -= key.len() + value.len();
                }
                self.put(FLOOR_KEY.to_owned(), floor.to_string())?;
            }
            (Ruling::Done, _) => return Ok(Applied::Unchanged),
            (Ruling::Refuse, _) => return Err(StoreError::Conflict(current.map(Box::new))),
        }
        Ok(Applied::Changed)
    }

    fn put(&mut self, key: String, value: String) -> Result<(), PortError> {
        let before = self.entries.get(&key).map_or(0, |old| key.len() + old.len());
        let after = self.bytes - before + key.len() + value.len();
        // What makes a shard smaller is always let through: it is the way back from a full one.
        if after > BYTES_MAX && after > self.bytes {
            return Err(PortError::lasting(
                format!("failed to store {key} in its shard of the ledger"),
                format!(
                    "the shard would have {after} bytes, and a ConfigMap holds {BYTES_MAX}; finish or remove rollouts of \
                     workloads in this shard, or use ledger = \"redis\""
                ),
            ));
        }
        self.bytes = after;
        self.entries.insert(key, value);
        Ok(())
    }
}

/// The key of a workload. A namespace is a DNS label and a kind a word, so neither has a dot and the key can be read back.
fn key_of(workload: &WorkloadId) -> String {
    let key = format!("{}.{}.{}", workload.kind, workload.namespace, workload.name);
    if key.len() <= KEY_CHARS_MAX {
        return key;
    }
    let digest = Sha256::digest(key.as_bytes());
    digest.iter().fold(HASHED_PREFIX.to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

fn workload_of(key: &str, value: &str) -> Option<WorkloadId> {
    if key.starts_with(HASHED_PREFIX) {
        return value.split_once(' ')?.0.parse().ok();
    }
    let mut parts = key.splitn(3, '.');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    format!("{kind}/{namespace}/{name}").parse().ok()
}

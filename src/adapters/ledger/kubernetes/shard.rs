//! What one shard holds, and what a change makes of it. No client required: everything that talks is in `writer`.
//!
//! A shard is the `data` of a ConfigMap, its *base*: one entry per record under a key people can read (`deployment.shop.web`), and
//! `seq_floor`. Entries are kept as text, so what this program cannot read survives its writes byte for byte. Where the records of
//! a namespace are in an object of their own (see [`super::moved`]), the entry `moved.shop` names it; the data of that object are a
//! shard too. A large shard has a second, small object beside its base: see [`super::journal`].

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::shard_name;
use crate::adapters::ledger::{Ruling, judge_removal, judge_store, shard_of, unusable, unwritable};
use kernel::floor::Floor;
use kernel::id::{CustomKind, Seq, WorkloadId};
use purge::ports::{PortError, StoreError};
use purge::records::record::Record;
use purge::records::record_codec::{decode, encode};

/// Most a ConfigMap may hold, in bytes: `MaxSecretSize` of the API server's validation, which counts the values; keys
/// are counted here too, so that this guard speaks before the server does.
const BYTES_MAX: usize = 1024 * 1024;

/// Longest key of a ConfigMap (DNS subdomain, 253 characters).
const KEY_CHARS_MAX: usize = 253;

/// The entry of the floor. It has no dot, so it is no workload's.
pub(super) const FLOOR_KEY: &str = "seq_floor";

/// The entry of a shard of which something was lost: a record at or below this number may be older than what was done for it.
pub(super) const SET_BACK_KEY: &str = "set_back";

/// The entries that name a namespace whose records are elsewhere. There is no second dot in them, so they are no workload's.
pub(super) const MOVED_PREFIX: &str = "moved.";

/// From here on a shard is crowded: its largest namespace goes to an object of its own. Half of what it may hold, so that
/// all others still have the other half while that is done.
pub(super) const CROWDED_BYTES: usize = BYTES_MAX / 2;

/// Keys of workloads whose name is too long to be a key; the workload is named in the value.
const HASHED_PREFIX: &str = "hashed.";

/// In a journal: the base has such an entry, and it does not count any more. No record is empty.
pub(super) const REMOVED: &str = "";

/// One thing to do to one record.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Store this, by compare-and-set.
    Store(Box<Record>),
    /// Remove the record of this revision.
    Remove(u64),
}

impl Change {
    /// Whether it is one of several that follow each other.
    pub(super) fn is_of_flight(&self) -> bool {
        match self {
            Self::Store(record) => record.is_open(),
            Self::Remove(_) => false,
        }
    }
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
    /// Nothing: there is no room for it.
    Full(PortError),
    /// Nothing: the records of its namespace are in an object of their own.
    UnreachableLedger,
}

/// The data of a ConfigMap.
pub(super) type Entries = BTreeMap<String, String>;

/// The content of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    pub(super) base: Entries,
    /// What has changed since the base was written; an entry of it hides the one of the base.
    pub(super) journal: Option<Entries>,
    /// What of it is not written yet.
    pub(super) unwritten: Unwritten,
    /// Of all that is not hidden.
    bytes: usize,
}

/// The objects of a shard that are to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unwritten {
    pub(super) base: bool,
    pub(super) journal: bool,
}

impl Shard {
    /// The shard that the data of a ConfigMap stand for, and those of its journal, where it names one.
    pub(super) fn of(base: Entries, journal: Option<Entries>) -> Self {
        let mut shard = Self { base, ..Self::default() };
        shard.journal = shard.journal_name().is_some().then(|| journal.unwrap_or_default());
        shard.count();
        shard
    }

    /// Counts its bytes anew.
    pub(super) fn count(&mut self) {
        self.bytes = self.entries().map(|(key, value)| key.len() + value.len()).sum();
    }

    /// All that is not hidden.
    fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        let journal = self.journal.iter().flatten().filter(|(_, value)| *value != REMOVED);
        let base = self.base.iter().filter(|(key, value)| !self.is_hidden(key, value));
        journal.chain(base).map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether an entry of the base does not count any more.
    fn is_hidden(&self, key: &str, value: &str) -> bool {
        let Some(journal) = &self.journal else { return false };
        let is_moved = |id: WorkloadId| journal.contains_key(&moved_key(&id.namespace));
        journal.contains_key(key) || (has_moved(journal) && workload_of(key, value).is_some_and(is_moved))
    }

    fn entry(&self, key: &str) -> Option<&str> {
        let written = self.journal.as_ref().and_then(|journal| journal.get(key)).or_else(|| self.base.get(key));
        written.map(String::as_str).filter(|value| *value != REMOVED)
    }

    /// The object that is written next.
    fn open(&mut self) -> &mut Entries {
        match &mut self.journal {
            Some(journal) => {
                self.unwritten.journal = true;
                journal
            }
            None => {
                self.unwritten.base = true;
                &mut self.base
            }
        }
    }

    /// What a new record of this shard starts above.
    pub(super) fn floor(&self) -> Result<Floor, PortError> {
        Ok(Floor { seq: self.number(FLOOR_KEY)?, lost: self.number(SET_BACK_KEY)? })
    }

    fn number(&self, key: &str) -> Result<Seq, PortError> {
        let Some(text) = self.entry(key) else { return Ok(Seq::default()) };
        // Guessing 0 could repeat a vector (GA-2), so a damaged floor stops new records of this shard, not the old ones.
        text.parse().map(Seq).map_err(|_| {
            PortError::lasting(format!("failed to read {key} {text:?} of the ledger"), "it is not a whole number")
        })
    }

    /// Whether a record of this number may be older than what was done for it, because something of the shard was lost.
    pub(super) fn is_behind(&self, seq: Seq) -> bool {
        self.passed().is_behind(seq)
    }

    /// The floor as a record that is there has to do with it.
    fn passed(&self) -> Floor {
        Floor { seq: Seq::default(), lost: self.number(SET_BACK_KEY).unwrap_or_default() }
    }

    /// Something of it was lost: what is left may be old, and new numbers start above `floor`.
    pub(super) fn set_back(&mut self, floor: Seq) {
        for key in [FLOOR_KEY, SET_BACK_KEY] {
            self.open().insert(key.to_owned(), floor.to_string());
        }
        self.count();
    }

    /// The highest number or revision in it that can be read.
    pub(super) fn highest(&self) -> u64 {
        let records = self.workloads().filter_map(|workload| self.record(&workload).ok().flatten());
        let floor = self.number(FLOOR_KEY).unwrap_or_default().0;
        records.map(|record| record.seq.0.max(record.revision)).chain([floor]).max().unwrap_or_default()
    }

    pub(super) fn record(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        let key = key_of(workload);
        let Some(value) = self.entry(&key) else { return Ok(None) };
        decode(text_of(&key, value).as_bytes()).map(Some).map_err(|error| {
            let failed = unusable(workload, &error);
            PortError { cause: format!("{}; it is the key {key} in a ConfigMap of the ledger", failed.cause), ..failed }
        })
    }

    /// Every workload with an entry. Entries that name none are not ours and are passed over.
    pub(super) fn workloads(&self) -> impl Iterator<Item = WorkloadId> {
        self.entries().filter_map(|(key, value)| workload_of(key, value))
    }

    /// Each namespace whose records are elsewhere, and the name of the object that has them.
    pub(super) fn moved(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries().filter_map(|(key, name)| Some((key.strip_prefix(MOVED_PREFIX)?, name)))
    }

    /// Whether the records of this namespace are elsewhere.
    pub(super) fn is_moved(&self, namespace: &str) -> bool {
        self.entry(&moved_key(namespace)).is_some()
    }

    /// Whether its largest namespace is to be moved.
    pub(super) fn is_crowded(&self) -> bool {
        self.bytes > CROWDED_BYTES
    }

    /// The namespace whose records take most of it.
    pub(super) fn largest(&self) -> Option<String> {
        let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
        for (key, value) in self.entries() {
            if let Some(workload) = workload_of(key, value) {
                *sizes.entry(workload.namespace).or_default() += key.len() + value.len();
            }
        }
        sizes.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(namespace, _)| namespace)
    }

    /// Takes the records of a namespace out, to be found in the object `name`, and returns what that begins with: them, whether
    /// they can be read or not, and the floors.
    pub(super) fn move_out(&mut self, namespace: &str, name: &str) -> Self {
        let is_theirs = |key: &str, value: &str| workload_of(key, value).is_some_and(|id| id.namespace == namespace);
        let goes = |(key, value): &(&str, &str)| [FLOOR_KEY, SET_BACK_KEY].contains(key) || is_theirs(key, value);
        let theirs = self.entries().filter(goes).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let open = self.open();
        open.retain(|key, value| !is_theirs(key, value));
        open.insert(moved_key(namespace), name.to_owned());
        self.count();
        Self::of(theirs, None)
    }

    /// Carries out one change, here only.
    pub(super) fn apply(&mut self, workload: &WorkloadId, change: &Change) -> Applied {
        if self.is_moved(&workload.namespace) {
            return Applied::UnreachableLedger;
        }
        self.try_apply(workload, change).unwrap_or_else(Applied::Refused)
    }

    fn try_apply(&mut self, workload: &WorkloadId, change: &Change) -> Result<Applied, StoreError> {
        let current = self.record(workload)?;
        let ruling = match change {
            Change::Store(record) => {
                let floor = if current.is_none() { self.floor()? } else { self.passed() };
                judge_store(current.as_ref(), floor, record)
            }
            Change::Remove(revision) => judge_removal(current.as_ref(), *revision),
        };
        match (ruling, change) {
            (Ruling::Apply, Change::Store(record)) => {
                let text = encode(record).map_err(|error| unwritable(workload, &error))?;
                let key = key_of(workload);
                let value = if key.starts_with(HASHED_PREFIX) { format!("{workload} {text}") } else { text };
                if let Err(full) = self.put(workload, key, value) {
                    return Ok(Applied::Full(full));
                }
            }
            (Ruling::Apply, Change::Remove(_)) => {
                let removed = current.map(|record| record.seq).unwrap_or_default();
                let floor = self.floor()?.seq.max(removed);
                self.take_out(key_of(workload));
                if let Err(full) = self.put(workload, FLOOR_KEY.to_owned(), floor.to_string()) {
                    return Ok(Applied::Full(full));
                }
            }
            (Ruling::Done, _) => return Ok(Applied::Unchanged),
            (Ruling::Refuse, _) => return Err(StoreError::Conflict(current.map(Box::new))),
        }
        Ok(Applied::Changed)
    }

    fn take_out(&mut self, key: String) {
        self.bytes -= self.entry(&key).map_or(0, |value| key.len() + value.len());
        let hides = self.journal.is_some();
        let open = self.open();
        open.remove(&key);
        if hides {
            open.insert(key, REMOVED.to_owned());
        }
    }

    fn put(&mut self, workload: &WorkloadId, key: String, value: String) -> Result<(), PortError> {
        let before = self.entry(&key).map_or(0, |old| key.len() + old.len());
        let after = self.bytes - before + key.len() + value.len();
        // What makes a shard smaller is always let through: it is the way back from a full one.
        if after > BYTES_MAX && after > self.bytes {
            return Err(PortError::lasting(
                format!("failed to store the record of {workload} in the part of {}", shard_name(shard_of(workload))),
                format!(
                    "it would have {after} bytes, and a ConfigMap holds {BYTES_MAX}; it has room again once rollouts of \
                     the workloads in it are over, once some are deleted, or where fewer of their containers count \
                     (annotation allclear.dev/containers)"
                ),
            ));
        }
        self.bytes = after;
        self.open().insert(key, value);
        Ok(())
    }
}

/// The record in an entry.
pub(super) fn text_of<'a>(key: &str, value: &'a str) -> &'a str {
    if key.starts_with(HASHED_PREFIX) { value.split_once(' ').map_or("", |(_, text)| text) } else { value }
}

/// Whether any namespace is named as moved.
fn has_moved(entries: &Entries) -> bool {
    entries.range(MOVED_PREFIX.to_owned()..).next().is_some_and(|(key, _)| key.starts_with(MOVED_PREFIX))
}

fn moved_key(namespace: &str) -> String {
    format!("{MOVED_PREFIX}{namespace}")
}

/// The key of a workload. A namespace is a DNS label and a kind a word, so neither has a dot and the key can be read back. One that the
/// operator declares has dots, and none is the beginning of another.
fn key_of(workload: &WorkloadId) -> String {
    let key = format!("{}.{}.{}", workload.kind, workload.namespace, workload.name);
    if key.len() <= KEY_CHARS_MAX {
        return key;
    }
    let digest = Sha256::digest(key.as_bytes());
    digest.iter().fold(HASHED_PREFIX.to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

pub(super) fn workload_of(key: &str, value: &str) -> Option<WorkloadId> {
    if key.starts_with(HASHED_PREFIX) {
        return value.split_once(' ')?.0.parse().ok();
    }
    if let Some((kind, rest)) = CustomKind::of_key(key) {
        let (namespace, name) = rest.split_once('.')?;
        return format!("{kind}/{namespace}/{name}", kind = kind.word()).parse().ok();
    }
    let mut parts = key.splitn(3, '.');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    format!("{kind}/{namespace}/{name}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(revision: u64, uid_bytes: usize) -> Record {
        let text = format!(r#"{{"r":{revision},"u":"{}","s":1,"v":{{}}}}"#, "u".repeat(uid_bytes));
        decode(text.as_bytes()).unwrap()
    }

    fn store(shard: &mut Shard, workload: &WorkloadId, record: Record) -> Applied {
        shard.apply(workload, &Change::Store(Box::new(record)))
    }

    #[test]
    fn a_workload_with_a_name_longer_than_a_key_is_found_again() {
        let long = WorkloadId::deployment("n".repeat(63), format!("{}.{}", "a".repeat(120), "b".repeat(120)));
        let short = WorkloadId::deployment("shop", "web.v2");
        let mut shard = Shard::default();
        for workload in [&long, &short] {
            assert!(matches!(store(&mut shard, workload, record(1, 8)), Applied::Changed));
        }
        let shard = Shard::of(shard.base.clone(), None);
        assert!(shard.base.keys().all(|key| key.len() <= KEY_CHARS_MAX));
        assert_eq!(shard.workloads().collect::<Vec<_>>(), [short.clone(), long.clone()]);
        assert_eq!(shard.record(&long).unwrap(), Some(record(1, 8)));
        assert_eq!(shard.record(&short).unwrap(), Some(record(1, 8)));
    }

    #[test]
    fn a_full_shard_refuses_growth_by_name_and_accepts_what_makes_it_smaller() {
        let mut shard = Shard::default();
        let mut number = 0;
        let error = loop {
            let workload = WorkloadId::deployment("shop", format!("web-{number}"));
            match store(&mut shard, &workload, record(1, 15_000)) {
                Applied::Changed => number += 1,
                Applied::Full(error) => break error,
                other => panic!("{other:?}"),
            }
        };
        assert!(shard.bytes <= BYTES_MAX && shard.bytes > BYTES_MAX - 16_000, "{}", shard.bytes);
        assert!(error.attempted.contains("the part of allclear-ledger-"), "{error}");
        let web = WorkloadId::deployment("shop", "web-0");
        assert!(matches!(store(&mut shard, &web, record(2, 10)), Applied::Changed));
        assert!(matches!(shard.apply(&web, &Change::Remove(2)), Applied::Changed));
        assert_eq!(Shard::of(shard.base.clone(), None).bytes, shard.bytes, "counted as it went along, and anew");
    }

    #[test]
    fn a_namespace_that_is_moved_out_takes_all_of_its_records_and_the_floor_with_it() {
        let long = WorkloadId::deployment("shop", format!("{}.{}", "a".repeat(120), "b".repeat(120)));
        let [web, gone] = ["web", "gone"].map(|name| WorkloadId::deployment("shop", name));
        let blog = WorkloadId::deployment("blog", "blog");
        let mut shard = Shard::of(BTreeMap::from([("deployment.shop.odd".to_owned(), "{\"z\":99}".to_owned())]), None);
        for workload in [&long, &web, &gone, &blog] {
            assert!(matches!(store(&mut shard, workload, record(1, 100)), Applied::Changed));
        }
        assert!(matches!(shard.apply(&gone, &Change::Remove(1)), Applied::Changed));
        assert_eq!(shard.largest().as_deref(), Some("shop"));
        let own = shard.move_out("shop", "allclear-ledger-07-0a1b");
        let names = |shard: &Shard| shard.workloads().map(|id| id.name).collect::<Vec<_>>();
        assert_eq!(
            (names(&own), names(&shard)),
            (vec!["odd".into(), "web".into(), long.name.clone()], vec!["blog".into()])
        );
        assert_eq!((own.floor().unwrap().seq, shard.floor().unwrap().seq), (Seq(1), Seq(1)));
        assert_eq!(shard.moved().collect::<Vec<_>>(), [("shop", "allclear-ledger-07-0a1b")]);
        assert!(matches!(store(&mut shard, &web, record(2, 100)), Applied::UnreachableLedger));
        assert!(matches!(store(&mut shard, &blog, record(2, 100)), Applied::Changed));
        assert_eq!(Shard::of(shard.base.clone(), None).bytes, shard.bytes);
    }

    // Faults: W9
    #[test]
    fn a_record_of_a_kind_that_is_not_declared_is_passed_over_and_survives_the_writes_of_its_neighbours() {
        let key = "clonesets.ledger.example.com.shop.web.v2";
        let mut shard = Shard::of(BTreeMap::from([(key.to_owned(), r#"{"r":1}"#.to_owned())]), None);
        assert_eq!(shard.workloads().count(), 0);
        assert!(matches!(store(&mut shard, &WorkloadId::deployment("shop", "web"), record(1, 8)), Applied::Changed));
        assert_eq!(shard.base.get(key).map(String::as_str), Some(r#"{"r":1}"#));
        let kind = purge::testing::declared("ledger.example.com");
        let web = WorkloadId::new(kind, "shop", "web.v2");
        assert_eq!((key_of(&web).as_str(), workload_of(key, "")), (key, Some(web.clone())));
        assert!(shard.workloads().any(|id| id == web), "and is there once it is declared");
        let long = WorkloadId::new(kind, "n".repeat(63), "a".repeat(200));
        assert_eq!(workload_of(&key_of(&long), &format!("{long} {{}}")), Some(long));
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_survives_the_writes_of_its_neighbours() {
        let newer = r#"{"z":2,"what":"ever"}"#;
        let mut shard = Shard::of(BTreeMap::from([("deployment.shop.old".to_owned(), newer.to_owned())]), None);
        let (old, web) = (WorkloadId::deployment("shop", "old"), WorkloadId::deployment("shop", "web"));
        assert!(matches!(store(&mut shard, &old, record(1, 8)), Applied::Refused(StoreError::Unavailable(_))));
        assert!(matches!(store(&mut shard, &web, record(1, 8)), Applied::Changed));
        assert_eq!(shard.base.get("deployment.shop.old").map(String::as_str), Some(newer));
    }

    #[test]
    fn a_damaged_floor_stops_new_records_only() {
        let mut shard = Shard::default();
        let (old, web) = (WorkloadId::deployment("shop", "old"), WorkloadId::deployment("shop", "web"));
        assert!(matches!(store(&mut shard, &old, record(1, 8)), Applied::Changed));
        shard.base.insert(FLOOR_KEY.to_owned(), "many".to_owned());
        assert!(matches!(store(&mut shard, &web, record(1, 8)), Applied::Refused(StoreError::Unavailable(_))));
        assert!(matches!(store(&mut shard, &old, record(2, 8)), Applied::Changed));
    }
}

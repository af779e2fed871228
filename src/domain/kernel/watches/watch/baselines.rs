//! The first records of objects that a first listing found at rest. They are written together, so that ten thousand of them cost a
//! few writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::machine::Timestamp;
use crate::watches::watch::{Attention, Kind, Latest};

/// How long a baseline for which the ledger has no room is put off.
const NO_ROOM: Duration = Duration::from_secs(300);

/// Baselines on their way into the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Baselines<K: Kind> {
    /// To be written together; their numbers are set when they are.
    found: BTreeMap<K::Id, Arc<K::Record>>,
    writing: BTreeSet<K::Id>,
    /// Sights of those that came meanwhile.
    overtaken: BTreeMap<K::Id, Latest<K>>,
    /// The ledger has no room for these. They hold up neither the others nor the notices about them.
    put_off: BTreeMap<(Timestamp, K::Id), Arc<K::Record>>,
}

impl<K: Kind> Default for Baselines<K> {
    fn default() -> Self {
        let (found, writing) = (BTreeMap::new(), BTreeSet::new());
        Self { found, writing, overtaken: BTreeMap::new(), put_off: BTreeMap::new() }
    }
}

impl<K: Kind> Baselines<K> {
    /// The objects whose baseline is not written yet.
    pub fn waiting(&self) -> impl Iterator<Item = &K::Id> + Clone {
        self.found.keys().chain(&self.writing)
    }

    pub fn contain(&self, id: &K::Id) -> bool {
        self.found.contains_key(id) || self.is_writing(id)
    }

    pub fn are_being_written(&self) -> bool {
        !self.writing.is_empty()
    }

    pub fn is_writing(&self, id: &K::Id) -> bool {
        self.writing.contains(id)
    }

    /// A baseline is to be written.
    pub fn find(&mut self, id: K::Id, record: Arc<K::Record>) {
        // The sight is not kept: ten thousand of them are more than all the rest of the process.
        self.found.insert(id, record);
    }

    /// Whether a sight has to wait for the baseline of its object. It is kept if it says something new.
    pub fn hold(&mut self, kind: &K, id: &K::Id, sight: &Latest<K>) -> bool {
        if self.is_writing(id) {
            self.overtaken.insert(id.clone(), sight.clone());
            return true;
        }
        let (Some(seen), Some(pending)) = (sight, self.found.get(id)) else { return false };
        // What it was at first sight is written first, and then this is judged in its light.
        let is_idle = matches!(kind.attention(Some(pending), seen, true), Attention::Idle);
        if !is_idle || self.overtaken.contains_key(id) {
            self.overtaken.insert(id.clone(), sight.clone());
        }
        true
    }

    /// Another way was found: the baseline is not written. Says whether there was one.
    pub fn drop(&mut self, id: &K::Id) -> bool {
        self.found.remove(id).is_some()
    }

    /// Takes the baselines to be written now.
    pub fn begin(&mut self) -> BTreeMap<K::Id, Arc<K::Record>> {
        let found = std::mem::take(&mut self.found);
        self.writing.extend(found.keys().cloned());
        found
    }

    /// Writing one has ended, in one way or another.
    pub fn end(&mut self, id: &K::Id) {
        self.writing.remove(id);
    }

    /// The sight that came meanwhile, if one did.
    pub fn overtaken(&mut self, id: &K::Id) -> Option<Latest<K>> {
        self.overtaken.remove(id)
    }

    /// The ledger has no room for one. It is written later.
    pub fn put_off(&mut self, now: Timestamp, id: K::Id, record: Arc<K::Record>) {
        self.put_off.entry((now.after(NO_ROOM), id)).or_insert(record);
    }

    /// Takes one that was put off and is due.
    pub fn due(&mut self, now: Timestamp) -> Option<(K::Id, Arc<K::Record>)> {
        let first = self.put_off.first_entry().filter(|first| first.key().0 <= now)?;
        let ((_, id), record) = first.remove_entry();
        Some((id, record))
    }

    /// One that was due is to be written, unless it was found again meanwhile.
    pub fn find_again(&mut self, id: K::Id, record: Arc<K::Record>) {
        self.found.entry(id).or_insert(record);
    }

    /// When the next is due.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.put_off.first_key_value().map(|((at, _), _)| *at)
    }
}

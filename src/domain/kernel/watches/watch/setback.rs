//! A cluster that was restored from a backup while we watched it. The ledger was restored with it, so we compare it with what
//! this life knows.
//!
//! `rollout` (`remembering`) decides what a record that fell behind means. A child at work finds out when its next write
//! conflicts, and it does nothing before a write. Objects with nothing left to write are looked into when their child ends.

use std::collections::BTreeSet;

use crate::id::{ObjectId, Seq};

/// This life's memory of numbers that a restored ledger may have forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Setback<I> {
    /// The highest number of a record that this life has removed.
    removed: Option<Seq>,
    /// The highest number this life had seen when the cluster was last set back. New numbers start above it.
    pub spent: Seq,
    /// Objects whose record is to be compared with the ledger since then.
    fallen: BTreeSet<I>,
    /// Objects that the ledger had something of, which it lost before this life.
    forgotten: BTreeSet<I>,
}

impl<I: ObjectId> Default for Setback<I> {
    fn default() -> Self {
        Self { removed: None, spent: Seq::default(), fallen: BTreeSet::new(), forgotten: BTreeSet::new() }
    }
}

impl<I: ObjectId> Setback<I> {
    /// Whether the ledger may have forgotten numbers in this life.
    pub fn has_happened(&self) -> bool {
        self.spent > Seq::default()
    }

    /// A record with this number was removed.
    pub fn removed(&mut self, seq: Seq) {
        self.removed = self.removed.max(Some(seq));
    }

    /// The cluster was set back. Numbers that were given out in this life are not given out again.
    pub fn begin(&mut self, known: impl Iterator<Item = Seq>) {
        self.spent = known.chain(self.removed).chain([self.spent]).max().unwrap_or_default();
    }

    /// The ledger had lost a part before this life: the records of these objects may be older than what was done for them.
    pub fn was_before(&mut self, behind: BTreeSet<I>) {
        self.fallen.extend(behind.iter().cloned());
        self.forgotten = behind;
    }

    /// So it had, and the record of this object with it.
    pub fn forgot(&mut self, id: I) {
        self.forgotten.insert(id);
    }

    /// Whether no life knows what the ledger had of this object.
    pub fn has_forgotten(&self, id: &I) -> bool {
        self.forgotten.contains(id)
    }

    /// A child has seen to it.
    pub fn recovered(&mut self, id: &I) {
        self.forgotten.remove(id);
    }

    /// These objects are to be looked into.
    pub fn look_into(&mut self, ids: impl Iterator<Item = I>) {
        self.fallen.extend(ids);
    }

    /// Takes the objects to look into now: those that are free.
    pub fn free(&mut self, is_free: impl Fn(&I) -> bool) -> BTreeSet<I> {
        self.fallen.extract_if(.., |id| is_free(id)).collect()
    }
}

//! The listings under way, which show which objects no longer exist, and the scopes whose objects are all on record.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{Kind, ObjectId};
use crate::watches::listed::{Listed, Scope};

/// The finished and pending listings of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Listings<I> {
    /// For each scope being listed, the objects seen since its listing began.
    under_way: BTreeMap<Scope, BTreeSet<I>>,
    /// Everything in view was listed at least once in this life.
    pub synced: bool,
    /// Where an object without a record is new.
    listed: Listed,
    /// Scopes listed in this life, while the ledger does not say so yet.
    unnoted: BTreeSet<Scope>,
}

impl<I: ObjectId> Listings<I> {
    pub fn new(listed: Listed) -> Self {
        Self { under_way: BTreeMap::new(), synced: false, listed, unnoted: BTreeSet::new() }
    }

    pub fn are_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether a listing of its scope is under way.
    pub fn are_listing(&self, id: &I) -> bool {
        self.under_way.keys().any(|scope| scope.contains(id))
    }

    /// Whether an object without a record is new.
    pub fn cover(&self, id: &I) -> bool {
        self.listed.covers(id)
    }

    /// The same of an object of this kind.
    pub fn cover_as(&self, kind: Option<Kind>, id: &I) -> bool {
        self.listed.covers_as(kind, id)
    }

    /// Whether an object without a record may have had one that the ledger lost.
    pub fn has_forgotten(&self, id: &I) -> bool {
        self.listed.has_forgotten(id)
    }

    pub fn was_listed(&self, scope: &Scope) -> bool {
        self.listed.has(scope)
    }

    /// It cannot be listed now, so nothing waits for the end of its listing.
    pub fn leave_out(&mut self, scope: &Scope) {
        self.under_way.remove(scope);
    }

    pub fn begin(&mut self, scope: Scope) {
        self.under_way.insert(scope, BTreeSet::new());
    }

    /// Remembers that the listings under way contain this object.
    pub fn note(&mut self, id: &I) {
        for (_, seen) in self.under_way.iter_mut().filter(|(scope, _)| scope.contains(id)) {
            seen.insert(id.clone());
        }
    }

    /// A listing is complete. Names those of the `known` objects that it did not contain.
    pub fn end<'a>(&mut self, scope: Scope, known: impl Iterator<Item = &'a I>) -> BTreeSet<I>
    where
        I: 'a,
    {
        // Without a listing, a watch goes on after a trouble.
        let Some(seen) = self.under_way.remove(&scope) else { return BTreeSet::new() };
        let gone = known.filter(|id| scope.contains(*id) && !seen.contains(id)).cloned().collect();
        if !self.listed.is_whole(&scope) {
            self.listed.add(scope.clone());
            self.unnoted.insert(scope);
        }
        gone
    }

    /// Takes the scopes to note as listed, except those with an object that waits for its first record.
    pub fn take_unnoted<'a>(&mut self, waiting: impl Iterator<Item = &'a I> + Clone) -> BTreeSet<Scope>
    where
        I: 'a,
    {
        let waits = |scope: &Scope| waiting.clone().any(|id| scope.may_list(id));
        let (later, now) = std::mem::take(&mut self.unnoted).into_iter().partition(waits);
        self.unnoted = later;
        now
    }

    /// Noting these failed; we note them later.
    pub fn put_back(&mut self, scopes: BTreeSet<Scope>) {
        self.unnoted.extend(scopes);
    }
}

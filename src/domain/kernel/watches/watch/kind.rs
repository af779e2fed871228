//! The interface of the kind of objects that a watch watches.

use std::fmt::Debug;
use std::hash::Hash;

use crate::floor::State;
use crate::id::{self, ObjectId};

/// The newest sight of an object; `None` for "gone".
pub type Latest<K> = Option<Box<<K as Kind>::Sight>>;

/// A kind of objects. The value holds what its judgement depends on.
pub trait Kind: Clone + Debug + Eq + Hash {
    type Id: ObjectId;
    /// An object as it was seen once.
    type Sight: Clone + Debug + Eq + Hash;
    /// The ledger's record of an object.
    type Record: Clone + Debug + Eq + Hash;
    /// The meaning of an object without a record, for its child.
    type Arrival: Copy + Debug + Eq + Hash;

    /// The arrival of an object that a first listing found at rest.
    const AT_REST: Self::Arrival;

    /// The arrival of an object that came after all others of its scope were on record.
    const NEW: Self::Arrival;

    /// The arrival of an object that may have been there before.
    const OPEN: Self::Arrival;

    /// The arrival of an object that was not seen. `is_listed`: all others of its scope are on record.
    fn unseen(is_listed: bool) -> Self::Arrival {
        if is_listed { Self::NEW } else { Self::OPEN }
    }

    /// Which object this is.
    fn id(sight: &Self::Sight) -> &Self::Id;

    /// By which kind it is listed, where a watch lists more than one.
    fn listed_as(sight: &Self::Sight) -> Option<id::Kind> {
        Self::id(sight).kind()
    }

    /// The attention that a sight needs, compared with the record of its object.
    fn attention(&self, record: Option<&Self::Record>, sight: &Self::Sight, is_listed: bool) -> Attention<Self>;

    /// Why an object without a record gets none, if its owner has to do something about it.
    fn unusable(&self, record: Option<&Self::Record>, sight: &Self::Sight) -> Option<String>;

    /// The record's state: of two records, the one with the higher state is newer.
    fn state(record: &Self::Record) -> State;
}

/// The attention that a sight needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attention<K: Kind> {
    /// Nothing: the record says the same.
    Idle,
    /// A first record, its baseline, and no more.
    Baseline(Box<K::Record>),
    /// A child, which takes an object without a record for this.
    Child(K::Arrival),
}

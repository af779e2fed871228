//! The ports of every kind of ours to the outside: its objects, Secrets, and those who judge its gates.

pub mod pipeline;
pub mod repo;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::asked::Opening;
use crate::gates::{Freeze, VerdictSource, Window};
use crate::history::Entry;
use crate::history::figures::Figure;
use crate::kept::{Kept, Object, ObjectSight, OwnKind, Written};
use kernel::answer::{Flow, PortError};
use kernel::id::{Environment, Revision, Subject};
use kernel::names::destination::Purpose;

/// What every kind needs of the outside.
#[derive(Clone)]
pub struct KindPorts<K: OwnKind> {
    /// The objects of each place: an API group, and a namespace where those are listed. Of two objects of one name that of the earlier
    /// place counts.
    pub objects: Vec<Arc<dyn Objects<Object<K>>>>,
    pub calendar: Arc<dyn Calendar>,
    pub verdicts: Arc<dyn Verdicts>,
    pub histories: Arc<dyn Histories>,
    /// The kind must be there: that it is not is a trouble, not a cluster without it.
    pub required: bool,
}

impl<K: OwnKind> KindPorts<K> {
    /// Keeps the places of these numbers.
    pub fn keep(&mut self, places: &BTreeSet<usize>) {
        let mut number = 0..;
        self.objects.retain(|_| number.next().is_some_and(|number| places.contains(&number)));
    }
}

/// The objects of one of our kinds in this cluster, each with a status that is ours alone to write.
#[async_trait]
pub trait Objects<T: Kept>: Send + Sync {
    /// The API group that they are in.
    fn group(&self) -> &str;

    /// Whether the API server knows the kind.
    ///
    /// # Errors
    /// When it cannot be asked.
    async fn are_served(&self) -> Result<bool, PortError>;

    /// Why we may not list them, in words, where that is because a right is missing.
    async fn refused(&self) -> Option<String>;

    /// Watches all of them in scope, for ever.
    fn watch(&self) -> Flow<ObjectSight<T>>;

    /// Reads one afresh, not from any cache; `None` if there is none.
    ///
    /// # Errors
    /// In words.
    async fn read(&self, id: &T::Id) -> Result<Option<T>, PortError>;

    /// Writes the object's status, if the object is still of the version that it says. Everything else of it is left alone.
    ///
    /// # Errors
    /// In words. The status may have been written nevertheless.
    async fn write(&self, object: &T) -> Result<Written<T>, PortError>;
}

/// Names an object whose history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub group: String,
    /// `Pipeline` or `Repo`.
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    /// `metadata.uid`: another object of the name has another history.
    pub uid: String,
}

/// The histories of objects of ours, each in an object of its own.
#[async_trait]
pub trait Histories: Send + Sync {
    /// Adds to a history what it does not have ([`grown`](crate::history::grown)), once, whoever else writes. What that amounts to, if it was written.
    ///
    /// # Errors
    /// In words; lasting where the cluster does not have the kind, denied where we have no right to it.
    async fn keep(&self, of: &Owner, remembered: &[Entry], news: &[Entry]) -> Result<Vec<Figure>, PortError>;
}

/// Secrets of this cluster, read by name on each use, never cached.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The content of a Secret, for this purpose and no other.
    ///
    /// # Errors
    /// In words; lasting where it is not there or may not be sent there, denied where we have no right to it.
    async fn read(&self, namespace: &str, name: &str, purpose: Purpose)
    -> Result<BTreeMap<String, Vec<u8>>, PortError>;
}

/// The wall clock and the time zones of the world. The only way by which a decision learns what time it is.
pub trait Calendar: Send + Sync {
    /// Whether now is in one of the windows (with none: always) and in no freeze, until when that stays so, and why, in words.
    ///
    /// # Errors
    /// In words: an unknown time zone.
    fn read(&self, windows: &[Window], freezes: &[Freeze]) -> Result<Opening, PortError>;
}

/// A verdict that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    pub why: String,
    /// Not to be asked again before this time has passed: what the other system demands.
    pub rest: Duration,
}

/// A question to another system: may this promotion, or this run, start?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    pub source: VerdictSource,
    /// Of which Pipeline or Repo.
    pub subject: Subject,
    pub environment: Option<Environment>,
    /// The promoted revision, or the applied commit.
    pub revision: Revision,
    /// The present revision there, if known.
    pub from: Option<Revision>,
    /// The number of the promotion or run.
    pub seq: u64,
}

/// Other systems that are asked before something starts.
#[async_trait]
pub trait Verdicts: Send + Sync {
    /// Asks whether it may start.
    ///
    /// # Errors
    /// When no clear answer came: then the gate is neither open nor closed.
    async fn ask(&self, asking: &Asking) -> Result<Opening, Unanswered>;
}

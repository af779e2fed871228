//! The events and effects of a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::id::Seq;
use crate::watches::listed::Scope;
use crate::watches::lives::LifeNote;
use crate::watches::watch::{Case, Kind, Latest};

/// How a child ended.
#[derive(Clone, Debug)]
pub enum End<R> {
    /// It panicked, or ended in another way that it did not announce.
    Crashed,
    /// It had nothing left to do; the record as the ledger has it.
    Finished(Option<Box<R>>),
    /// It wrote its record over and over while nothing happened.
    Overdrawn,
    Drained,
}

/// How writing a baseline ended.
#[derive(Clone, Debug)]
pub enum Written<R> {
    /// It is on record.
    Done,
    /// Another writer was first, and this is the record now.
    Conflict(Option<Box<R>>),
    /// The ledger has no room for it.
    NoRoom,
    /// It failed in a way that passes.
    Failed,
}

/// A baseline whose writing has ended.
#[derive(Clone, Debug)]
pub struct Baseline<K: Kind> {
    pub id: K::Id,
    /// With its number, if that could be found out.
    pub record: Arc<K::Record>,
    pub written: Written<K::Record>,
}

#[derive(Clone, Debug)]
pub enum Event<K: Kind> {
    /// A new listing of a scope begins.
    Relisting(Scope),
    /// The listing of a scope is complete, or its watch goes on; `all`: everything in view was listed at least once.
    Listed(Scope, bool),
    /// A scope is left out, for want of a right; `all`: everything else in view was listed at least once.
    LeftOut(Scope, bool),
    /// An object as it is now.
    Seen(Box<K::Sight>),
    /// An object that exists and cannot be read.
    Unreadable(K::Id),
    /// An object was deleted.
    Gone(K::Id),
    /// The cluster was set back: it was restored from a backup while it was watched.
    SetBack,
    /// The ledger was read again: its records, and why others cannot be read. Answers [`Effect::ReadLedger`].
    Compared(BTreeMap<K::Id, Arc<K::Record>>, BTreeMap<K::Id, String>),
    /// Baselines were written, or were not. Answers [`Effect::WriteBaselines`].
    BaselinesWritten(Vec<Baseline<K>>),
    /// These records were written beside their objects, which had no child.
    Rewritten(BTreeMap<K::Id, Arc<K::Record>>),
    /// Noting these scopes as listed ended, well or not. Answers [`Effect::NoteListed`].
    ListedNoted(BTreeSet<Scope>, bool),
    /// Noting what is worked on ended, well or not. Answers [`Effect::NoteLife`].
    LifeNoted(bool),
    /// Another member waits for our part in this object, whether we have it or not.
    Wanted(K::Id),
    /// The child's mailbox had no room for a sight.
    PassedInVain(K::Id),
    /// The child's mailbox had no room for the addresses of its peers.
    DirectedInVain(K::Id),
    /// Peers of the children were rebuilt.
    PeersRebuilt,
    /// A child is dead.
    Died(K::Id, End<K::Record>),
    /// A second has passed, and every child that is dead was named.
    Swept,
    /// The process is to end.
    Dismissed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect<K: Kind> {
    /// Start a child. Answered by [`Event::Died`].
    Start(Box<Start<K>>),
    /// Pass the newest sight on to the child. Answered by [`Event::PassedInVain`], if at all.
    Pass(K::Id, Latest<K>),
    /// Tell the child where its peers are now. Answered by [`Event::DirectedInVain`], if at all.
    Direct(K::Id),
    /// Give these first records numbers above what the ledger has and above this one, and write them.
    WriteBaselines(BTreeMap<K::Id, Arc<K::Record>>, Seq),
    /// Note in the ledger that every object of these scopes is on record.
    NoteListed(BTreeSet<Scope>),
    /// Note in the ledger what is worked on.
    NoteLife(LifeNote<K::Id>),
    /// Read the whole ledger again.
    ReadLedger,
    /// Say that a child crashed and is rebuilt. No answer.
    TellRebuilt(K::Id),
    /// Say that an object is left alone, why, and for how long if that is known. No answer.
    TellLeftAlone(K::Id, String, Option<Duration>),
    /// Say that an object is tried that may be why this program ended abruptly. No answer.
    TellTried(K::Id),
}

/// The inputs of a new child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Start<K: Kind> {
    pub id: K::Id,
    /// The known state of its object.
    pub case: Case<K>,
    /// The record as this life knows it, and, where it knows none since the ledger was set back, the highest number it has seen.
    pub known: Option<Box<K::Record>>,
    pub spent: Seq,
    /// The ledger has lost what it had of it, in part or as a whole, and no life knows it.
    pub forgotten: bool,
}

//! The children of one parent: what each has to learn, whether it is rebuilt after a crash, and which objects are left alone.
//!
//! Common to all parents with one child for each object that needs one. Not for which object needs a child.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::budget::Budget;
use crate::machine::Timestamp;
use crate::watches::watch::{Effect, Kind, Latest};

/// How long we leave an object alone after its child crashed too often, or wrote too often (decision 16).
pub(super) const QUARANTINE: Duration = Duration::from_secs(300);

/// An object that wants a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case<K: Kind> {
    /// The newest sight, kept so that one that came too late for a child is not lost.
    pub latest: Latest<K>,
    /// The meaning of an object without a record, by the sight that asked for the child. A child that is rebuilt after
    /// a crash gets the same value.
    pub arrival: K::Arrival,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Child<K: Kind> {
    case: Case<K>,
    /// Its mailbox was full: the newest sight must be sent again.
    needs_sight: bool,
    /// Its mailbox was full when peers were rebuilt: their new addresses must be sent again.
    needs_peers: bool,
}

/// The wait of an object before it gets a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wait {
    /// For a note to be stored; that takes a moment.
    Note,
    /// For its turn, because it may be why this program ended abruptly. In words.
    Turn(String),
    /// For the end of its quarantine; with the reason for that.
    Quarantine(Timestamp, &'static str),
}

/// The children, and the objects that wait to have one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nursery<K: Kind> {
    children: BTreeMap<K::Id, Child<K>>,
    budgets: BTreeMap<K::Id, Budget>,
    aside: BTreeMap<K::Id, (Case<K>, Wait)>,
}

impl<K: Kind> Default for Nursery<K> {
    fn default() -> Self {
        Self { children: BTreeMap::new(), budgets: BTreeMap::new(), aside: BTreeMap::new() }
    }
}

impl<K: Kind> Nursery<K> {
    /// The objects with a child.
    pub fn children(&self) -> impl ExactSizeIterator<Item = &K::Id> {
        self.children.keys()
    }

    /// The sight that a child has, or will have soon, of its object.
    pub fn newest(&self, id: &K::Id) -> Option<&K::Sight> {
        self.children.get(id)?.case.latest.as_deref()
    }

    /// Children that may not know where their peers are.
    pub fn needing_peers(&self) -> impl Iterator<Item = &K::Id> {
        self.children.iter().filter(|(_, child)| child.needs_peers).map(|(id, _)| id)
    }

    /// The objects that are left alone for a while, and why.
    pub fn left_alone(&self) -> impl Iterator<Item = (&K::Id, &str)> {
        self.aside.iter().filter_map(|(id, (_, wait))| match wait {
            Wait::Note => None,
            Wait::Turn(why) => Some((id, why.as_str())),
            Wait::Quarantine(_, why) => Some((id, *why)),
        })
    }

    pub(super) fn has_child(&self, id: &K::Id) -> bool {
        self.children.contains_key(id)
    }

    /// Whether an object has a child, or waits for one.
    pub fn sees_to(&self, id: &K::Id) -> bool {
        self.children.contains_key(id) || self.aside.contains_key(id)
    }

    /// Keeps the newest sight of an object, and passes it on to its child.
    pub(super) fn see(&mut self, id: &K::Id, sight: Latest<K>, effects: &mut Vec<Effect<K>>) {
        if let Some(child) = self.children.get_mut(id) {
            child.case.latest.clone_from(&sight);
            child.needs_sight = false;
            effects.push(Effect::Pass(id.clone(), sight));
        } else if let Some((case, _)) = self.aside.get_mut(id) {
            case.latest = sight;
        }
    }

    /// The child's mailbox refused a sight.
    pub(super) fn passed_in_vain(&mut self, id: &K::Id) {
        self.children.get_mut(id).into_iter().for_each(|child| child.needs_sight = true);
    }

    /// The child's mailbox refused the addresses of its peers.
    pub(super) fn directed_in_vain(&mut self, id: &K::Id) {
        self.children.get_mut(id).into_iter().for_each(|child| child.needs_peers = true);
    }

    /// Every child must learn where its peers are now.
    pub(super) fn direct(&mut self, effects: &mut Vec<Effect<K>>) {
        self.children.values_mut().for_each(|child| child.needs_peers = true);
        self.direct_again(effects);
    }

    /// Sends again what mailboxes refused.
    pub(super) fn send_again(&mut self, effects: &mut Vec<Effect<K>>) {
        for (id, child) in self.children.iter_mut().filter(|(_, child)| child.needs_sight) {
            child.needs_sight = false;
            effects.push(Effect::Pass(id.clone(), child.case.latest.clone()));
        }
        self.direct_again(effects);
    }

    fn direct_again(&mut self, effects: &mut Vec<Effect<K>>) {
        for (id, child) in self.children.iter_mut().filter(|(_, child)| child.needs_peers) {
            child.needs_peers = false;
            effects.push(Effect::Direct(id.clone()));
        }
    }

    /// A child is started.
    pub(super) fn add(&mut self, id: K::Id, case: Case<K>) {
        self.children.insert(id, Child { case, needs_sight: false, needs_peers: false });
    }

    /// A child is dead; returns what it leaves.
    pub(super) fn remove(&mut self, id: &K::Id) -> Option<Case<K>> {
        self.children.remove(id).map(|child| child.case)
    }

    /// A child ended in order. Its crashes are forgotten.
    pub(super) fn forgive(&mut self, id: &K::Id) {
        self.budgets.remove(id);
    }

    /// Whether a child that crashed may be rebuilt once more.
    pub(super) fn may_rebuild(&mut self, now: Timestamp, id: &K::Id) -> bool {
        self.budgets.entry(id.clone()).or_default().spend(now)
    }

    /// An object gets no child before its wait is over.
    pub(super) fn put_aside(&mut self, id: K::Id, case: Case<K>, wait: Wait) {
        self.aside.insert(id, (case, wait));
    }

    /// The wait of an object is over.
    pub(super) fn take_back(&mut self, id: &K::Id) -> Option<Case<K>> {
        self.aside.remove(id).map(|(case, _)| case)
    }

    /// The objects whose quarantine is over.
    pub(super) fn due(&self, now: Timestamp) -> Vec<K::Id> {
        self.quarantined().filter(|(until, _)| *until <= now).map(|(_, id)| id.clone()).collect()
    }

    /// When the next quarantine is over.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.quarantined().map(|(until, _)| until).min()
    }

    fn quarantined(&self) -> impl Iterator<Item = (Timestamp, &K::Id)> {
        self.aside.iter().filter_map(|(id, (_, wait))| match wait {
            Wait::Quarantine(until, _) => Some((*until, id)),
            Wait::Note | Wait::Turn(_) => None,
        })
    }
}

//! The objects, their history, and the one counter that orders both.
//!
//! Every write takes the next resourceVersion and appends one [`Change`] to the log of its kind. A watch is a cursor
//! into that log; a page of an older list is the present with the log undone ([`State::page`]). Where the log has been
//! cut ([`State::compact`], or [`State::changes_max`]), both answer 410, as a real server does after compaction.
//!
//! Not for rules about objects: the store takes any object with a name (`write` knows the rules).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::failure::Failure;
use super::object::{Key, Object};
use super::resource::Kind;
use super::selector::Selector;

#[derive(Debug)]
pub struct Change {
    /// The object as written; for a removal, as it was last, with the version of the removal.
    pub object: Arc<Object>,
    /// The object before; none for a creation.
    pub previous: Option<Arc<Object>>,
    /// Whether the object is gone.
    pub removed: bool,
}

/// What a list returns.
#[derive(Debug)]
pub struct Page {
    /// The objects, in order of namespace and name.
    pub items: Vec<Arc<Object>>,
    /// The version the list shows.
    pub version: u64,
    /// Whether more objects follow the last item.
    pub more: bool,
    /// How many follow; only where nothing was filtered.
    pub remaining: Option<usize>,
}

/// Which objects a list or watch is about.
#[derive(Clone, Debug)]
pub struct Scope {
    pub kind: Kind,
    /// Empty: all namespaces.
    pub namespace: String,
    pub selector: Selector,
}

impl Scope {
    /// Whether `object` is in the scope.
    pub fn contains(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || self.namespace == object.key.namespace)
            && self.selector.matches(&object.key.name, &object.labels)
    }
}

/// One kind's objects and their history.
#[derive(Clone, Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    log: VecDeque<Arc<Change>>,
    /// The oldest version from which a new watch or a list of the past may start.
    floor: u64,
    /// The version of the newest forgotten change. Below `floor` after a compaction: an open watch that has seen
    /// everything goes on.
    forgotten: u64,
}

/// What [`State::backup`] keeps.
#[derive(Clone, Debug)]
pub struct Backup {
    version: u64,
    objects: Vec<BTreeMap<Key, Arc<Object>>>,
}

/// The content of the store, under its lock.
#[derive(Clone, Debug)]
pub struct State {
    version: u64,
    tables: Vec<Table>,
    children: BTreeMap<String, BTreeSet<(Kind, Key)>>,
    /// UIDs of removed objects that owned something and that no controller here works on.
    bereaved: BTreeSet<String>,
    changes_max: usize,
    /// Numbers given out so far: UIDs, generated names and cluster IPs come from it, so that a run repeats.
    pub serial: u64,
}

/// The store: the state and, per kind, a signal that something was written.
#[derive(Debug)]
pub struct Store {
    state: Mutex<State>,
    signals: Vec<watch::Sender<u64>>,
}

impl Store {
    /// An empty store whose log keeps `changes_max` changes per kind.
    pub fn new(changes_max: usize) -> Store {
        let tables = Kind::all().map(|_| Table::default()).collect();
        let state =
            State { version: 1, tables, children: BTreeMap::new(), bereaved: BTreeSet::new(), changes_max, serial: 0 };
        Store { state: Mutex::new(state), signals: Kind::all().map(|_| watch::Sender::new(1)).collect() }
    }

    /// The state. Hold it only while computing: every request waits for it.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave the state half written in a way that matters to a test that is failing anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write` on the state and wakes the watches of every kind it wrote.
    pub fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let answer = write(&mut state);
        let latest: Vec<u64> = state.tables.iter().map(|table| table.latest()).collect();
        drop(state);
        for (signal, latest) in self.signals.iter().zip(latest) {
            // It may go down, by a restore.
            signal.send_if_modified(|seen| std::mem::replace(seen, latest) != latest);
        }
        answer
    }

    /// Wakes those that wait for changes of `kind`, although there are none.
    pub fn wake(&self, kind: Kind) {
        if let Some(signal) = self.signals.get(kind as usize) {
            signal.send_modify(|_| {});
        }
    }

    /// A receiver that changes whenever an object of `kind` is written.
    pub fn signal(&self, kind: Kind) -> Option<watch::Receiver<u64>> {
        self.signals.get(kind as usize).map(watch::Sender::subscribe)
    }
}

impl Table {
    /// The version of the newest change, forgotten ones included.
    fn latest(&self) -> u64 {
        self.log.back().map_or(self.forgotten, |change| change.object.version)
    }

    fn since(&self, version: u64) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        let start = self.log.partition_point(|change| change.object.version <= version);
        self.log.range(start..)
    }
}

impl State {
    /// The version of the newest write of any kind.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The oldest version a watch or list of `kind` may start from.
    pub fn floor(&self, kind: Kind) -> u64 {
        self.table(kind).map_or(0, |table| table.floor)
    }

    pub fn get(&self, kind: Kind, key: &Key) -> Option<Arc<Object>> {
        self.table(kind)?.objects.get(key).cloned()
    }

    /// All objects in a scope as they are now.
    pub fn list(&self, scope: &Scope) -> Vec<Arc<Object>> {
        let Some(table) = self.table(scope.kind) else { return Vec::new() };
        let start = Key::new(scope.namespace.clone(), "");
        let range = table.objects.range(start..).map(|(_, object)| object);
        let in_namespace =
            range.take_while(|object| scope.namespace.is_empty() || object.key.namespace == scope.namespace);
        in_namespace.filter(|object| scope.contains(object)).cloned().collect()
    }

    /// The objects whose controller has this UID.
    pub fn children(&self, uid: &str) -> Vec<Arc<Object>> {
        let children = self.children.get(uid).into_iter().flatten();
        children.filter_map(|(kind, key)| self.get(*kind, key)).collect()
    }

    /// Up to `limit` objects behind `after`, as they were at `version`.
    ///
    /// # Errors
    /// 410 when that version is forgotten.
    pub fn page(&self, scope: &Scope, version: u64, after: Option<&Key>, limit: usize) -> Result<Page, Failure> {
        let Some(table) = self.table(scope.kind) else { return Err(Failure::internal("no such table")) };
        if version < table.floor {
            return Err(Failure::expired(version, table.floor));
        }
        // What an object was at `version` is what the first later change says it was before.
        let mut undone: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        for change in table.since(version) {
            undone.entry(&change.object.key).or_insert(change.previous.as_ref());
        }
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let unchanged = table.objects.range::<Key, _>((from, Bound::Unbounded));
        let unchanged = unchanged.filter(|(key, _)| !undone.contains_key(key));
        let restored = undone.iter().filter_map(|(key, object)| Some((*key, (*object)?)));
        let mut all: Vec<&Arc<Object>> = if undone.is_empty() {
            unchanged.map(|(_, object)| object).filter(|object| scope.contains(object)).collect()
        } else {
            let restored = restored.filter(|(key, _)| after.is_none_or(|after| *key > after));
            let merged: BTreeMap<&Key, &Arc<Object>> = unchanged.chain(restored).collect();
            merged.into_values().filter(|object| scope.contains(object)).collect()
        };
        let more = all.len() > limit;
        let remaining = (more && scope.selector.is_empty()).then(|| all.len() - limit);
        all.truncate(limit);
        Ok(Page { items: all.into_iter().cloned().collect(), version, more, remaining })
    }

    /// At most `limit` changes of `kind` after `version`, oldest first, for one who has seen all up to `version`.
    ///
    /// # Errors
    /// 410 when a change after `version` is forgotten.
    pub fn changes(&self, kind: Kind, version: u64, limit: usize) -> Result<Vec<Arc<Change>>, Failure> {
        let Some(table) = self.table(kind) else { return Ok(Vec::new()) };
        if version < table.forgotten {
            return Err(Failure::expired(version, table.floor));
        }
        Ok(table.since(version).take(limit).cloned().collect())
    }

    /// Writes an object, new or not, under the next version.
    pub fn put(&mut self, kind: Kind, value: Value) -> Arc<Object> {
        self.version += 1;
        let object = Arc::new(Object::new(kind, self.version, value));
        let previous = self.table_mut(kind).and_then(|table| table.objects.insert(object.key.clone(), object.clone()));
        if let Some(previous) = &previous {
            self.unlink(previous);
        }
        if let Some(owner) = &object.owner {
            self.children.entry(owner.clone()).or_default().insert((kind, object.key.clone()));
        }
        self.append(Change { object: object.clone(), previous, removed: false });
        object
    }

    /// Removes an object under the next version; nothing happens when it is not there.
    pub fn remove(&mut self, kind: Kind, key: &Key) -> Option<Arc<Object>> {
        let previous = self.table_mut(kind)?.objects.remove(key)?;
        self.version += 1;
        self.unlink(&previous);
        if kind.describe().custom && self.children.contains_key(&previous.uid) {
            self.bereaved.insert(previous.uid.clone());
        }
        let object = Arc::new(Object::new(kind, self.version, previous.value()));
        self.append(Change { object: object.clone(), previous: Some(previous), removed: true });
        Some(object)
    }

    /// UIDs of custom objects that were removed since the last call and owned something.
    pub fn take_bereaved(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.bereaved)
    }

    /// Everything as it is now, without its history.
    pub fn backup(&self) -> Backup {
        Backup { version: self.version, objects: self.tables.iter().map(|table| table.objects.clone()).collect() }
    }

    /// Goes back to a backup, versions included, as an etcd that is restored from a snapshot: no watch gets an event, and
    /// nothing from before is remembered. Numbers of names go on, or two objects would have one UID.
    pub fn restore(&mut self, backup: &Backup) {
        self.version = backup.version;
        self.children.clear();
        for (table, objects) in self.tables.iter_mut().zip(&backup.objects) {
            *table = Table { objects: objects.clone(), floor: backup.version, ..Table::default() };
            for object in objects.values() {
                let Some(owner) = &object.owner else { continue };
                self.children.entry(owner.clone()).or_default().insert((object.kind, object.key.clone()));
            }
        }
    }

    /// Forgets all history, as etcd does every five minutes in a real cluster.
    pub fn compact(&mut self) {
        for table in &mut self.tables {
            table.forgotten = table.latest();
            table.log.clear();
            table.floor = self.version;
        }
    }

    /// The next of the numbers from which names and UIDs are made.
    pub fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn append(&mut self, change: Change) {
        let changes_max = self.changes_max;
        let Some(table) = self.table_mut(change.object.kind) else { return };
        table.log.push_back(Arc::new(change));
        while table.log.len() > changes_max {
            if let Some(forgotten) = table.log.pop_front() {
                table.forgotten = forgotten.object.version;
                table.floor = table.floor.max(table.forgotten);
            }
        }
    }

    fn unlink(&mut self, object: &Object) {
        let Some(owner) = &object.owner else { return };
        if let Some(children) = self.children.get_mut(owner) {
            children.remove(&(object.kind, object.key.clone()));
            if children.is_empty() {
                self.children.remove(owner);
            }
        }
    }

    fn table(&self, kind: Kind) -> Option<&Table> {
        self.tables.get(kind as usize)
    }

    fn table_mut(&mut self, kind: Kind) -> Option<&mut Table> {
        self.tables.get_mut(kind as usize)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        Scope { kind: Kind::ConfigMap, namespace: String::new(), selector: Selector::default() }
    }

    fn put(state: &mut State, name: &str, data: &str) {
        state.put(Kind::ConfigMap, json!({"metadata": {"name": name, "namespace": "ns"}, "data": {"v": data}}));
    }

    fn names(page: &Page) -> Vec<String> {
        page.items.iter().map(|o| format!("{}={}", o.key.name, o.value()["data"]["v"].as_str().unwrap())).collect()
    }

    #[test]
    fn a_page_shows_the_past_whatever_was_written_since() {
        let store = Store::new(100);
        let mut state = store.lock();
        for name in ["a", "b", "c", "d"] {
            put(&mut state, name, "old");
        }
        let version = state.version();
        put(&mut state, "b", "new");
        put(&mut state, "b", "newer");
        put(&mut state, "aa", "new");
        state.remove(Kind::ConfigMap, &Key::new("ns", "c"));
        let page = state.page(&scope(), version, None, 2).unwrap();
        assert_eq!((names(&page), page.more, page.remaining), (vec!["a=old".into(), "b=old".into()], true, Some(2)));
        let page = state.page(&scope(), version, Some(&Key::new("ns", "b")), 2).unwrap();
        assert_eq!((names(&page), page.more), (vec!["c=old".into(), "d=old".into()], false));
    }

    #[test]
    fn forgotten_history_is_an_error_and_not_a_guess() {
        let store = Store::new(2);
        let mut state = store.lock();
        for name in ["a", "b", "c", "d"] {
            put(&mut state, name, "x");
        }
        assert_eq!(state.changes(Kind::ConfigMap, 2, 10).unwrap_err().code, 410);
        assert_eq!(state.changes(Kind::ConfigMap, 3, 10).unwrap().len(), 2);
        let version = state.version();
        state.compact();
        assert!(state.changes(Kind::ConfigMap, version, 10).unwrap().is_empty());
        assert_eq!(state.changes(Kind::ConfigMap, version - 1, 10).unwrap_err().code, 410);
        assert_eq!(state.floor(Kind::ConfigMap), version);
        assert_eq!(state.page(&scope(), version - 1, None, 10).unwrap_err().code, 410);
    }

    #[test]
    fn children_follow_their_owner_references() {
        let store = Store::new(100);
        let mut state = store.lock();
        let owner = json!([{"uid": "u1", "controller": true}]);
        let pod = |owners: &Value| json!({"metadata": {"name": "p", "namespace": "ns", "ownerReferences": owners}});
        state.put(Kind::Pod, pod(&owner));
        assert_eq!(state.children("u1").len(), 1);
        state.put(Kind::Pod, pod(&json!([])));
        assert!(state.children("u1").is_empty());
        state.put(Kind::Pod, pod(&owner));
        state.remove(Kind::Pod, &Key::new("ns", "p"));
        assert!(state.children("u1").is_empty());
    }
}

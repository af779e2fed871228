//! The objects of one kind, as an API server keeps them: whatever kind that is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::stream::poll_fn;
use kernel::answer::PortError;
use objects::kept::{Object, ObjectSight, OwnKind, Remembered, Written};
use objects::ports::{KindPorts, Objects};
use purge::ports::Flow;
use tokio::sync::mpsc;

use super::{Millis, SIMULATED, World, failed};

/// A channel into a flow; `None` makes its reader panic.
pub(super) type Out<T> = mpsc::UnboundedSender<Option<T>>;

pub(super) fn flow<T: Send + 'static>(mut receiver: mpsc::UnboundedReceiver<Option<T>>, what: &'static str) -> Flow<T> {
    Box::pin(poll_fn(move |context| {
        receiver.poll_recv(context).map(|said| match said {
            Some(Some(said)) => Some(said),
            Some(None) => panic!("{SIMULATED} in {what}"),
            None => None,
        })
    }))
}

/// A handle to the objects of a kind.
pub struct Shelf<K: OwnKind>(Arc<Mutex<All<K>>>);

struct All<K: OwnKind> {
    served: bool,
    objects: BTreeMap<K::Id, Object<K>>,
    version: u64,
    watches: Vec<Out<ObjectSight<Object<K>>>>,
    written: Vec<(Millis, K::Id, K::Status)>,
}

/// The calls about a kind, by the names under which faults are planned.
#[derive(Clone, Copy)]
pub struct Calls {
    pub served: &'static str,
    pub read: &'static str,
    pub write: &'static str,
}

/// The port to them.
struct Port<K: OwnKind> {
    world: World,
    shelf: Shelf<K>,
    calls: Calls,
}

impl<K: OwnKind> Clone for Shelf<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: OwnKind> Default for Shelf<K> {
    fn default() -> Self {
        let (objects, watches, written) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self(Arc::new(Mutex::new(All { served: false, objects, version: 0, watches, written })))
    }
}

impl World {
    /// What every kind needs, with these objects.
    pub fn kind_ports<K: OwnKind>(&self, objects: Arc<dyn Objects<Object<K>>>) -> KindPorts<K> {
        let (calendar, verdicts) = (Arc::new(self.clone()), Arc::new(self.clone()));
        KindPorts { objects: vec![objects], calendar, verdicts, histories: Arc::new(self.clone()), required: false }
    }
}

impl<K: OwnKind> All<K> {
    fn show(&mut self, id: &K::Id) {
        let Some(object) = self.objects.get(id).cloned() else { return };
        self.watches.retain(|watch| watch.send(Some(ObjectSight::Seen(Box::new(object.clone())))).is_ok());
    }
}

impl<K: OwnKind> Shelf<K> {
    fn all(&self) -> MutexGuard<'_, All<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The port to them in a world, where these calls may go wrong.
    pub fn port(&self, world: &World, calls: Calls) -> Arc<dyn Objects<Object<K>>> {
        Arc::new(Port { world: world.clone(), shelf: self.clone(), calls })
    }

    /// Whether the API server has the kind.
    pub fn serve(&self, served: bool) {
        self.all().served = served;
    }

    /// A person applies an object, or changes it; the status stays. The kind is there from then on.
    pub fn apply(&self, object: Object<K>) {
        let mut all = self.all();
        all.served = true;
        all.version += 1;
        let version = all.version.to_string();
        let status = all.objects.get(&object.id).map_or_else(|| object.status.clone(), |known| known.status.clone());
        let id = object.id.clone();
        all.objects.insert(id.clone(), Object { version, status, ..object });
        all.show(&id);
    }

    /// A person deletes one.
    pub fn remove(&self, id: &K::Id) {
        let mut all = self.all();
        all.objects.remove(id);
        all.watches.retain(|watch| watch.send(Some(ObjectSight::Gone(id.clone()))).is_ok());
    }

    pub fn get(&self, id: &K::Id) -> Option<Object<K>> {
        self.all().objects.get(id).cloned()
    }

    /// Every status that was written, in its order.
    pub fn written(&self) -> Vec<(Millis, K::Id, K::Status)> {
        self.all().written.clone()
    }

    /// The reader of the watch panics.
    pub fn panic(&self) {
        self.all().watches.retain(|out| out.send(None).is_ok());
    }

    pub(super) fn life_ends(&self) {
        self.all().watches.clear();
    }
}

#[async_trait]
impl<K: OwnKind> Objects<Object<K>> for Port<K> {
    fn group(&self) -> &'static str {
        "allclear.dev"
    }

    async fn are_served(&self) -> Result<bool, PortError> {
        self.world.port(self.calls.served, "").await?;
        Ok(self.shelf.all().served)
    }

    async fn refused(&self) -> Option<String> {
        None
    }

    fn watch(&self) -> Flow<ObjectSight<Object<K>>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut all = self.shelf.all();
        let objects = all.objects.values().map(|object| ObjectSight::Seen(Box::new(object.clone())));
        for sight in std::iter::once(ObjectSight::Restarted).chain(objects).chain([ObjectSight::Synced]) {
            let _ = sender.send(Some(sight));
        }
        all.watches.push(sender);
        flow(receiver, "the watch of objects")
    }

    async fn read(&self, id: &K::Id) -> Result<Option<Object<K>>, PortError> {
        let lost = self.world.port(self.calls.read, &id.to_string()).await?;
        if lost { Err(failed(self.calls.read)) } else { Ok(self.shelf.get(id)) }
    }

    async fn write(&self, object: &Object<K>) -> Result<Written<Object<K>>, PortError> {
        let lost = self.world.port(self.calls.write, &object.id.to_string()).await?;
        let mut state = self.world.state();
        let mut all = self.shelf.all();
        let version = (all.version + 1).to_string();
        let written = match all.objects.get_mut(&object.id) {
            Some(known) if known.version == object.version && known.uid == object.uid => {
                // What a refused write holds was never sent.
                state.note_notices(object.status.untold());
                (known.version, known.status) = (version, object.status.clone());
                let known = Box::new(known.clone());
                all.version += 1;
                all.written.push((state.now(), object.id.clone(), object.status.clone()));
                all.show(&object.id);
                Written::Stored(known)
            }
            known => Written::Conflict(known.map(|known| Box::new(known.clone()))),
        };
        drop((all, state));
        if lost { Err(failed(self.calls.write)) } else { Ok(written) }
    }
}

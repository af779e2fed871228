//! Pipelines and Repos in a dry run (decision 23): everything is watched, judged and remembered, and nothing is written, neither a
//! status nor a pull request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt;
use kernel::mask::shown;
use objects::kept::{Kept, ObjectSight, Written};
use objects::pipeline::proposal::{Order, Proposed, Request, RequestState};
use objects::ports::Objects;
use objects::ports::pipeline::Forge;
use purge::ports::{Flow, PortError};

/// The real objects, with a status that is kept in memory from its first write on.
pub struct DryObjects<T: Kept> {
    real: Arc<dyn Objects<T>>,
    written: Arc<Mutex<AllWritten<T>>>,
}

/// What would have been written, by the object's name.
type AllWritten<T> = BTreeMap<<T as Kept>::Id, Overlay<<T as Kept>::Status>>;

/// What would have been written of one object.
struct Overlay<S> {
    uid: String,
    status: S,
    /// How often it was: part of the object's version.
    writes: u64,
}

impl<T: Kept> DryObjects<T> {
    /// Reads these, and leaves them as they are.
    pub fn new(real: Arc<dyn Objects<T>>) -> Self {
        Self { real, written: Arc::new(Mutex::new(BTreeMap::new())) }
    }
}

/// The object as it would be.
fn overlaid<T: Kept>(written: &mut AllWritten<T>, mut object: T) -> T {
    if written.get(object.id()).is_some_and(|overlay| overlay.uid != object.identity().uid) {
        written.remove(object.id());
    }
    if let Some(Overlay { status, writes, .. }) = written.get(object.id()) {
        let version = format!("{}, {writes} dry", object.identity().version);
        object.overlay(status.clone(), version);
    }
    object
}

fn lock<T: Kept>(written: &Mutex<AllWritten<T>>) -> MutexGuard<'_, AllWritten<T>> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl<T: Kept> Objects<T> for DryObjects<T> {
    fn group(&self) -> &str {
        self.real.group()
    }

    async fn are_served(&self) -> Result<bool, PortError> {
        self.real.are_served().await
    }

    async fn refused(&self) -> Option<String> {
        self.real.refused().await
    }

    fn watch(&self) -> Flow<ObjectSight<T>> {
        let written = Arc::clone(&self.written);
        Box::pin(self.real.watch().map(move |sight| match sight {
            ObjectSight::Seen(object) => ObjectSight::Seen(Box::new(overlaid(&mut lock::<T>(&written), *object))),
            ObjectSight::Gone(id) => {
                lock::<T>(&written).remove(&id);
                ObjectSight::Gone(id)
            }
            other @ (ObjectSight::Restarted
            | ObjectSight::Unreadable(..)
            | ObjectSight::Synced
            | ObjectSight::Trouble(_)) => other,
        }))
    }

    async fn read(&self, id: &T::Id) -> Result<Option<T>, PortError> {
        let real = self.real.read(id).await?;
        let mut written = lock::<T>(&self.written);
        if real.is_none() {
            written.remove(id);
        }
        Ok(real.map(|object| overlaid(&mut written, object)))
    }

    async fn write(&self, object: &T) -> Result<Written<T>, PortError> {
        let Some(real) = self.real.read(object.id()).await? else {
            lock::<T>(&self.written).remove(object.id());
            return Ok(Written::Conflict(None));
        };
        let mut written = lock::<T>(&self.written);
        let now = overlaid(&mut written, real.clone());
        if now.identity() != object.identity() {
            return Ok(Written::Conflict(Some(Box::new(now))));
        }
        let writes = written.get(object.id()).map_or(0, |overlay| overlay.writes) + 1;
        let (status, uid) = (object.status().clone(), object.identity().uid.to_owned());
        written.insert(object.id().clone(), Overlay { uid, status, writes });
        tracing::info!(object = %object.id(), writes, "dry run: would write its status");
        Ok(Written::Stored(Box::new(overlaid(&mut written, real))))
    }
}

/// Says which pull requests would be made, and makes none: to Pipelines each is open, and is never merged.
pub struct DryForge;

#[async_trait]
impl Forge for DryForge {
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError> {
        let Order { pipeline, environment, revision, repository, .. } = order;
        tracing::info!(
            %pipeline, %environment, %revision, repository = shown(&repository.url), base = repository.base,
            "dry run: would make this pull request"
        );
        Ok(Proposed::Open(Request {
            url: "dry run: no pull request was made".to_owned(),
            number: 0,
            commit: None,
            lacks: Default::default(),
        }))
    }

    async fn look(&self, _: &Order, _: u64) -> Result<RequestState, PortError> {
        Ok(RequestState::Open)
    }

    async fn withdraw(&self, order: &Order, _: Option<u64>, why: &str) -> Result<(), PortError> {
        let Order { pipeline, environment, .. } = order;
        tracing::info!(%pipeline, %environment, why, "dry run: would close this pull request");
        Ok(())
    }
}

//! Pipelines in a dry run (decision 23): everything is watched, judged and remembered, and nothing is written, neither a status nor
//! a pull request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::id::PipelineId;
use domain::pipeline::proposal::{Order, Proposed, Request, RequestState};
use domain::pipeline::spec::Object;
use domain::pipeline::status::Status;
use domain::ports::pipeline::{Forge, ObjectSight, Objects, Written};
use domain::ports::{Flow, PortError};
use futures_util::StreamExt;

/// The real objects, with a status that is kept in memory from its first write on.
pub struct DryObjects {
    real: Arc<dyn Objects<Object>>,
    kept: Arc<Mutex<BTreeMap<PipelineId, Kept>>>,
}

/// What would have been written of one object.
struct Kept {
    uid: String,
    status: Status,
    /// How often it was: part of the object's version.
    writes: u64,
}

impl DryObjects {
    /// Reads these, and leaves them as they are.
    pub fn new(real: Arc<dyn Objects<Object>>) -> Self {
        Self { real, kept: Arc::default() }
    }
}

/// The object as it would be.
fn overlaid(kept: &mut BTreeMap<PipelineId, Kept>, mut object: Object) -> Object {
    if kept.get(&object.id).is_some_and(|kept| kept.uid != object.uid) {
        kept.remove(&object.id);
    }
    if let Some(Kept { status, writes, .. }) = kept.get(&object.id) {
        object.status = status.clone();
        object.version = format!("{}, {writes} dry", object.version);
    }
    object
}

fn lock(kept: &Mutex<BTreeMap<PipelineId, Kept>>) -> MutexGuard<'_, BTreeMap<PipelineId, Kept>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Objects<Object> for DryObjects {
    fn group(&self) -> &str {
        self.real.group()
    }

    async fn are_served(&self) -> Result<bool, PortError> {
        self.real.are_served().await
    }

    fn watch(&self) -> Flow<ObjectSight<Object>> {
        let kept = Arc::clone(&self.kept);
        Box::pin(self.real.watch().map(move |sight| match sight {
            ObjectSight::Seen(object) => ObjectSight::Seen(Box::new(overlaid(&mut lock(&kept), *object))),
            ObjectSight::Gone(id) => {
                lock(&kept).remove(&id);
                ObjectSight::Gone(id)
            }
            other @ (ObjectSight::Restarted
            | ObjectSight::Unreadable(..)
            | ObjectSight::Synced
            | ObjectSight::Trouble(_)) => other,
        }))
    }

    async fn read(&self, id: &PipelineId) -> Result<Option<Object>, PortError> {
        let real = self.real.read(id).await?;
        let mut kept = lock(&self.kept);
        if real.is_none() {
            kept.remove(id);
        }
        Ok(real.map(|object| overlaid(&mut kept, object)))
    }

    async fn write(&self, object: &Object) -> Result<Written<Object>, PortError> {
        let Some(real) = self.real.read(&object.id).await? else {
            lock(&self.kept).remove(&object.id);
            return Ok(Written::Conflict(None));
        };
        let mut kept = lock(&self.kept);
        let now = overlaid(&mut kept, real.clone());
        if now.version != object.version || now.uid != object.uid {
            return Ok(Written::Conflict(Some(Box::new(now))));
        }
        let writes = kept.get(&object.id).map_or(0, |kept| kept.writes) + 1;
        let status = object.status.clone();
        kept.insert(object.id.clone(), Kept { uid: object.uid.clone(), status, writes });
        tracing::info!(pipeline = %object.id, serial = object.status.serial, "dry run: would write this status");
        Ok(Written::Stored(Box::new(overlaid(&mut kept, real))))
    }
}

/// Says which pull requests would be made, and makes none: to Pipelines each is open, and is never merged.
pub struct DryForge;

#[async_trait]
impl Forge for DryForge {
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError> {
        let Order { pipeline, environment, revision, repository, .. } = order;
        tracing::info!(
            %pipeline, %environment, %revision, repository = crate::config::shown(&repository.url), base = repository.base,
            "dry run: would make this pull request"
        );
        Ok(Proposed::Open(Request { url: "dry run: no pull request was made".to_owned(), number: 0, commit: None }))
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

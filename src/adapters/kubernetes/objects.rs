//! The Pipelines of this cluster as [`Objects`]: watched, read, and written to by compare-and-set on their `resourceVersion`.
//!
//! Group and plural are data, since objects of `pipelines.weave.works` are served as well. Under that group's own CRD the API server
//! drops the fields that only we have, and says so only by what it answers: so the answer is compared with what was written.
//!
//! Not for what is in an object; that is `crd`'s.

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::api::{Api, Clients, Collection, Look, Name, Reach, Reading, Resource, Tempo, Watches};
use super::crd;
use domain::id::PipelineId;
use domain::pipeline::spec::Object;
use domain::ports::pipeline::{ObjectSight, Objects, Written};
use domain::ports::{Flow, PortError};

/// The group that is ours.
pub const GROUP: &str = "allclear.dev";

const VERSION: &str = "v1alpha1";
const PLURAL: &str = "pipelines";

/// The Pipelines of one group, in one namespace or in all.
pub struct Pipelines {
    watches: Watches,
    api: Api,
    group: String,
    namespace: Option<String>,
    confined: bool,
}

impl Pipelines {
    /// The Pipelines of this group in this namespace; `None`: in all. Nothing is asked for yet.
    pub fn new(clients: &Clients, group: &str, namespace: Option<&str>, tempo: Tempo) -> Self {
        Self {
            watches: Watches::new(clients.watch.clone(), tempo),
            api: Api::new(clients.request.clone()),
            group: group.to_owned(),
            namespace: namespace.map(str::to_owned),
            confined: false,
        }
    }

    /// The same, where a cluster that another namespace names is wrong in a spec (`pipeline.cross_namespace`).
    #[must_use]
    pub fn confined(self) -> Self {
        Self { confined: true, ..self }
    }

    /// Reads an object, as far as it may reach.
    fn decoder(&self) -> impl Fn(&str) -> Result<Object, String> + Clone + Send + Sync + 'static {
        let confined = self.confined;
        move |json| crd::object(json).map(|object| if confined { crd::confined(object) } else { object })
    }

    fn of(&self, namespace: Option<&str>) -> Collection {
        of(&self.group, namespace)
    }

    /// What was written, as it came back, and as it was asked for.
    fn stored(&self, answered: &Value, status: &Value, attempted: &str) -> Result<Written<Object>, PortError> {
        // The write is done, so it is not to be given up for good, whatever the answer is.
        let unreadable = |why: String| PortError::passing(attempted, format!("its answer cannot be read: {why}"));
        let lost = crd::lost(status, answered.get("status").unwrap_or(&Value::Null));
        let object = Box::new(self.decoder()(&answered.to_string()).map_err(unreadable)?);
        Ok(if lost.is_empty() { Written::Stored(object) } else { Written::Pruned(object, lost) })
    }
}

#[async_trait]
impl Objects<Object> for Pipelines {
    fn group(&self) -> &str {
        &self.group
    }

    async fn are_served(&self) -> Result<bool, PortError> {
        let kinds = self.api.kinds(&self.group, VERSION).await?;
        Ok(kinds.is_some_and(|all| all.iter().any(|one| one.plural == PLURAL)))
    }

    fn watch(&self) -> Flow<ObjectSight<Object>> {
        let looks = self.watches.watch(self.of(self.namespace.as_deref()), self.decoder(), Reach::default());
        Box::pin(looks.map(sight))
    }

    async fn read(&self, id: &PipelineId) -> Result<Option<Object>, PortError> {
        let Some(answer) = self.api.get(&self.of(Some(&id.namespace)), &id.name).await? else { return Ok(None) };
        let unreadable = |why| PortError::lasting(answer.attempted.as_str(), format!("it cannot be read: {why}"));
        answer.object(self.decoder()).map(Some).map_err(unreadable)
    }

    async fn write(&self, object: &Object) -> Result<Written<Object>, PortError> {
        let PipelineId { namespace, name } = &object.id;
        let of = self.of(Some(namespace));
        let attempted = of.attempt_one("update the status of", name).to_string();
        let status = serde_json::to_value(crd::written(object));
        let status = status.map_err(|error| PortError::lasting(attempted.as_str(), error))?;
        // A write of a status takes nothing else from what it is sent.
        let body = json!({
            "apiVersion": format!("{}/{VERSION}", self.group),
            "kind": "Pipeline",
            "metadata": {"namespace": namespace, "name": name, "uid": object.uid, "resourceVersion": object.version},
            "status": status,
        });
        match self.api.replace_status(&of, name, &body).await {
            Ok(answer) => self.stored(&answer.json::<Value>()?, &status, &attempted),
            // Another version, or another object of the name.
            Err(failed) if matches!(failed.status(), Some(404 | 409)) => {
                Ok(Written::Conflict(self.read(&object.id).await?.map(Box::new)))
            }
            Err(failed) => Err(failed.error),
        }
    }
}

/// The Pipelines of this group in this namespace; `None`: in all.
pub(super) fn of(group: &str, namespace: Option<&str>) -> Collection {
    let resource = Resource { group: group.to_owned().into(), version: VERSION.into(), plural: PLURAL.into() };
    Collection { resource, namespace: namespace.map(str::to_owned), only: None }
}

fn sight(look: Look<Object>) -> ObjectSight<Object> {
    let id = |Name { namespace, name }: Name| PipelineId::new(namespace, name);
    match look {
        Look::Restarted => ObjectSight::Restarted,
        Look::Seen(Reading::Read(object)) => ObjectSight::Seen(Box::new(object)),
        Look::Seen(Reading::Unreadable(name, why)) => ObjectSight::Unreadable(id(name), why),
        Look::Gone(name) => ObjectSight::Gone(id(name)),
        Look::Synced => ObjectSight::Synced,
        Look::Trouble(error) => ObjectSight::Trouble(error),
    }
}

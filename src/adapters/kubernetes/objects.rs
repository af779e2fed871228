//! The objects of our own kinds as [`Objects`]: watched, read, and written to by compare-and-set on their `resourceVersion`. What makes
//! one kind another is a [`Kind`].
//!
//! The group is data, since objects of `pipelines.weave.works` are served as well. Under that group's own CRD the API server drops
//! the fields that only we have, and says so only by what it answers: so the answer is compared with what was written.
//!
//! Not for what is in an object; that is `crd`'s.

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::crd;
use super::crd::repo::Installation;
use apiserver::{Api, Clients, Collection, Look, Name, Reach, Reading, Resource, Tempo, Watches, proofs};
use kernel::id::{ObjectId, PipelineId, RepoId};
use kernel::unreadable::Unreadable;
use kernel::watches::horizon::Verdict;
use objects::kept::{Identity, Kept, ObjectSight, Written};
use objects::pipeline;
use objects::ports::Objects;
use objects::repo;
use purge::ports::{Flow, PortError};

/// The group that is ours.
pub const GROUP: &str = "allclear.dev";

pub const VERSION: &str = "v1alpha1";

/// One of our kinds: its names, and how its objects are read and written.
pub trait Kind: Clone + Send + Sync + 'static {
    type Object: Kept;

    /// Its name in objects.
    const NAME: &'static str;
    /// Its name in addresses.
    const PLURAL: &'static str;
    /// Why there is nothing to see in a cluster without it.
    const ABSENT: &'static str;

    /// The object of this name.
    fn id(namespace: String, name: String) -> <Self::Object as Kept>::Id;

    /// The object's name without its namespace.
    fn name(id: &<Self::Object as Kept>::Id) -> &str;

    /// Reads an object.
    ///
    /// # Errors
    /// When a field that is used is missing or of another type.
    fn read(&self, json: &str) -> Result<Self::Object, Unreadable>;

    /// The object's status as it stands in it.
    ///
    /// # Errors
    /// When it has no form in JSON.
    fn written(object: &Self::Object) -> serde_json::Result<Value>;
}

#[derive(Clone, Debug, Default)]
pub struct PipelineKind {
    /// A cluster that another namespace names is wrong in a spec (`pipeline.cross_namespace`).
    confined: bool,
}

impl PipelineKind {
    /// The kind, as far as its objects may reach.
    pub const fn new(confined: bool) -> Self {
        Self { confined }
    }

    /// An object, as far as it may reach.
    pub fn confine(&self, object: pipeline::spec::Object) -> pipeline::spec::Object {
        if self.confined { crd::confined(object) } else { object }
    }
}

impl Kind for PipelineKind {
    type Object = pipeline::spec::Object;

    const NAME: &'static str = "Pipeline";
    const PLURAL: &'static str = "pipelines";
    const ABSENT: &'static str =
        "this cluster does not have the kind Pipeline; `allclear crds | kubectl apply -f -` adds it";

    fn id(namespace: String, name: String) -> PipelineId {
        PipelineId { namespace, name }
    }

    fn name(id: &PipelineId) -> &str {
        &id.name
    }

    fn read(&self, json: &str) -> Result<Self::Object, Unreadable> {
        crd::object(json).map(|object| self.confine(object)).map_err(Unreadable::because)
    }

    fn written(object: &Self::Object) -> serde_json::Result<Value> {
        crd::written(object)
    }
}

#[derive(Clone, Debug, Default)]
pub struct RepoKind {
    /// What this installation of allclear adds to each spec.
    pub installation: Installation,
}

impl Kind for RepoKind {
    type Object = repo::spec::Object;

    const NAME: &'static str = "Repo";
    const PLURAL: &'static str = "repos";
    const ABSENT: &'static str =
        "this cluster does not have the kind Repo; `allclear crds | kubectl apply -f -` adds it";

    fn id(namespace: String, name: String) -> RepoId {
        RepoId { namespace, name }
    }

    fn name(id: &RepoId) -> &str {
        &id.name
    }

    fn read(&self, json: &str) -> Result<Self::Object, Unreadable> {
        crd::repo::object(json, &self.installation).map_err(Unreadable::because)
    }

    fn written(object: &Self::Object) -> serde_json::Result<Value> {
        crd::repo::written(object)
    }
}

/// The objects of one kind and group, in one namespace or in all.
pub struct Served<K> {
    watches: Watches,
    api: Api,
    group: String,
    namespace: Option<String>,
    kind: K,
}

/// The Pipelines of one group, in one namespace or in all.
pub type Pipelines = Served<PipelineKind>;

/// The Repos of this cluster, in one namespace or in all.
pub type Repos = Served<RepoKind>;

impl Pipelines {
    /// The Pipelines of this group in this namespace; `None`: in all. Nothing is asked for yet.
    pub fn new(clients: &Clients, group: &str, namespace: Option<&str>, tempo: Tempo) -> Self {
        Self::of_kind(clients, group, namespace, tempo, PipelineKind::default())
    }

    /// The same, where a cluster that another namespace names is wrong in a spec (`pipeline.cross_namespace`).
    #[must_use]
    pub fn confined(self) -> Self {
        Self { kind: PipelineKind { confined: true }, ..self }
    }
}

impl Repos {
    /// The Repos in this namespace; `None`: in all. Nothing is asked for yet.
    pub fn new(clients: &Clients, namespace: Option<&str>, tempo: Tempo, installation: Installation) -> Self {
        Self::of_kind(clients, GROUP, namespace, tempo, RepoKind { installation })
    }
}

impl<K: Kind> Served<K> {
    fn of_kind(clients: &Clients, group: &str, namespace: Option<&str>, tempo: Tempo, kind: K) -> Self {
        Self {
            watches: Watches::new(clients.watch.clone(), tempo),
            api: Api::new(clients.request.clone()),
            group: group.to_owned(),
            namespace: namespace.map(str::to_owned),
            kind,
        }
    }

    /// Reads an object, as far as it may reach.
    fn decoder(&self) -> impl Fn(&str) -> Result<K::Object, Unreadable> + Clone + Send + Sync + use<K> {
        let kind = self.kind.clone();
        move |json| kind.read(json)
    }

    fn of(&self, namespace: Option<&str>) -> Collection {
        of::<K>(&self.group, namespace)
    }

    /// What was written, as it came back, and as it was asked for.
    fn stored(&self, answered: &Value, status: &Value, attempted: &str) -> Result<Written<K::Object>, PortError> {
        // The write is done, so it is not to be given up for good, whatever the answer is.
        let unreadable = |why| PortError::passing(attempted, format!("its answer cannot be read: {why}"));
        let lost = crd::lost(status, answered.get("status").unwrap_or(&Value::Null));
        let object = Box::new(self.kind.read(&answered.to_string()).map_err(unreadable)?);
        Ok(if lost.is_empty() { Written::Stored(object) } else { Written::Pruned(object, lost) })
    }
}

#[async_trait]
impl<K: Kind> Objects<K::Object> for Served<K> {
    fn group(&self) -> &str {
        &self.group
    }

    async fn are_served(&self) -> Result<bool, PortError> {
        let kinds = self.api.kinds(&self.group, VERSION).await?;
        Ok(kinds.is_some_and(|all| all.iter().any(|one| one.plural == K::PLURAL)))
    }

    async fn refused(&self) -> Option<String> {
        let listed = self.api.list(&self.of(self.namespace.as_deref()), &ListParams::default().limit(1)).await;
        listed.err().filter(|failed| failed.error.denied).map(|failed| failed.error.to_string())
    }

    fn watch(&self) -> Flow<ObjectSight<K::Object>> {
        let (of, decoder, reach) = (self.of(self.namespace.as_deref()), self.decoder(), Reach::default());
        let proofs = proofs(self.api.clone(), vec![of.clone()], reach.clone(), self.watches.tempo.prove);
        let watches = self.watches.clone();
        let begin = move || watches.watch(of.clone(), decoder.clone(), reach.clone());
        // A watch that goes on from a version of the future, as after a restore, receives nothing at all.
        Box::pin(unfold((begin(), proofs, begin), |(mut looks, mut proofs, begin)| async move {
            loop {
                tokio::select! {
                    look = looks.next() => return Some((sight::<K>(look?), (looks, proofs, begin))),
                    Some(verdict) = proofs.next() => match verdict {
                        Verdict::Level | Verdict::InDoubt => {}
                        Verdict::CaughtUp | Verdict::SetBack(..) => looks = begin(),
                    },
                }
            }
        }))
    }

    async fn read(&self, id: &<K::Object as Kept>::Id) -> Result<Option<K::Object>, PortError> {
        let Some(answer) = self.api.get(&self.of(Some(id.namespace())), K::name(id)).await? else { return Ok(None) };
        answer.read(self.decoder()).map(Some)
    }

    async fn write(&self, object: &K::Object) -> Result<Written<K::Object>, PortError> {
        let id = object.id();
        let (namespace, name) = (id.namespace(), K::name(id));
        let of = self.of(Some(namespace));
        let attempted = of.attempt_one("update the status of", name).to_string();
        let status = K::written(object).map_err(|error| PortError::lasting(attempted.as_str(), error))?;
        let Identity { uid, version } = object.identity();
        // A write of a status takes nothing else from what it is sent.
        let body = json!({
            "apiVersion": format!("{}/{VERSION}", self.group),
            "kind": K::NAME,
            "metadata": {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": version},
            "status": status,
        });
        match self.api.replace_status(&of, name, &body).await {
            Ok(answer) => self.stored(&answer.json::<Value>()?, &status, &attempted),
            // Another version, or another object of the name.
            Err(failed) if matches!(failed.status(), Some(404 | 409)) => {
                Ok(Written::Conflict(self.read(id).await?.map(Box::new)))
            }
            Err(failed) => Err(failed.error),
        }
    }
}

/// The objects of this kind and group in this namespace; `None`: in all.
pub(super) fn of<K: Kind>(group: &str, namespace: Option<&str>) -> Collection {
    let resource = Resource { group: group.to_owned().into(), version: VERSION.into(), plural: K::PLURAL.into() };
    Collection { resource, namespace: namespace.map(str::to_owned), only: None }
}

fn sight<K: Kind>(look: Look<K::Object>) -> ObjectSight<K::Object> {
    let id = |Name { namespace, name }: Name| K::id(namespace, name);
    match look {
        Look::Restarted => ObjectSight::Restarted,
        Look::Seen(Reading::Read(object)) => ObjectSight::Seen(Box::new(object)),
        Look::Seen(Reading::Unreadable(name, why)) => ObjectSight::Unreadable(id(name), why),
        Look::Gone(name) => ObjectSight::Gone(id(name)),
        Look::Synced => ObjectSight::Synced,
        Look::Trouble(error) => ObjectSight::Trouble(error),
    }
}

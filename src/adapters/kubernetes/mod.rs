//! The cluster as [`ClusterView`] and [`EventSink`](purge::ports::EventSink), on kube's client.
//!
//! What is read is reduced at once: `apiserver` asks the server and takes its answers apart into objects, and `decode`, `pods` and
//! `routing` keep of each object what decisions use. Nothing of `k8s_openapi` gets further than this module.
//!
//! Not for remembering what was seen, nor for deciding anything about it.

mod apps;
mod claims;
pub mod crd;
mod decode;
pub mod desk;
mod endpoints;
mod events;
pub mod finalizer;
pub(crate) mod followed;
pub mod freezes;
mod gateway;
mod gateways;
pub mod hand;
pub mod histories;
pub mod installation;
pub mod jobs;
pub mod kubeconfig;
mod lagging;
pub mod leaf;
mod leaf_config;
mod lease;
pub mod names;
mod new_pods;
pub mod objects;
pub mod outputs;
mod parts;
mod pods;
mod rerouting;
pub mod reviews;
mod rollouts;
mod routing;
pub mod secrets;
mod serving;
mod site;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use kube::api::ListParams;

pub use apiserver::{Clients, ConnectError, Options, Tempo, connect};
pub use decode::workload as workload_decoder;
pub use endpoints::{Endpoints, NoEndpoints};
pub use events::{CONTROLLER, Events};
pub use lease::KubernetesLease;

use apiserver::{Api, Collection, Look, NAMESPACES, Name, Reach, Reading, Resource, Watches};
use claims::ClaimReader;
use kernel::id::{Kind, WorkloadId};
use kernel::names::image::VersionOf;
use kernel::refusal::Refused;
use purge::ports::{ClusterView, Flow, PodSight, PortError, Present, RoutingSight, Sight};
use purge::site::{Age, Gathered, RouteClaim};
use purge::workloads::beside::Beside;
use purge::workloads::joining::{joined, takes};
use purge::workloads::new_pods::{NoWay, addresses};
use purge::workloads::serving::Serving;
use purge::workloads::workload::Workload;
use rollouts::Presence;
use serving::ServingReader;
use site::SiteReader;

/// Adds the remedy where the namespace of our own objects is missing: a creation in it gets 404.
pub(crate) fn no_namespace(error: PortError, namespace: &str) -> PortError {
    let cure = format!(
        "make it with `kubectl create namespace {namespace}`, or name another one by ledger.namespace (ALLCLEAR__LEDGER__NAMESPACE, \
         --ledger-namespace)"
    );
    PortError { cause: format!("{}; {cure}", error.cause), ..error }
}

const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments");

fn resource_of(kind: Kind) -> Resource {
    match kind {
        Kind::Deployment => DEPLOYMENTS,
        Kind::StatefulSet => Resource::new("apps", "v1", "statefulsets"),
        Kind::DaemonSet => Resource::new("apps", "v1", "daemonsets"),
        Kind::Rollout => Resource::new("argoproj.io", "v1alpha1", "rollouts"),
        Kind::Custom(kind) => {
            let (group, version, plural) = kind.place();
            Resource::new(group, version, plural)
        }
    }
}

/// The namespace every cluster has, and has from its beginning: its UID is the closest there is to a cluster's own
/// (<https://github.com/kubernetes/kubernetes/issues/77487>).
const KUBE_SYSTEM: &str = "kube-system";

const PODS: Resource = Resource::new("", "v1", "pods");

/// Workloads that are looked at afresh at the same time. A look takes some milliseconds. Ten thousand at once, when a cluster comes
/// back from a restore, would each want a connection, and an API server's priority and fairness would refuse most of them.
const LOOKS_AT_ONCE: usize = 16;

/// Which namespaces are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All, by one watch.
    All,
    /// These, by one watch each.
    Namespaces(BTreeSet<String>),
}

impl Scope {
    /// All namespaces if our credentials allow that, else our own; with the reason, for people (decision 20).
    ///
    /// # Errors
    /// When the API server cannot be asked, or does not accept our credentials at all.
    pub async fn all_or_own(clients: &Clients) -> Result<(Self, String), PortError> {
        let one = ListParams { limit: Some(1), ..ListParams::default() };
        match Api::new(clients.request.clone()).list(&Collection::everywhere(DEPLOYMENTS), &one).await {
            Ok(_) => Ok((Self::All, "NAMESPACE is not set, and we may list deployments in all namespaces".to_owned())),
            Err(refused) if refused.status() == Some(403) => {
                let own = clients.namespace.clone();
                let why = format!(
                    "NAMESPACE is not set, and we may not list deployments in all namespaces ({})",
                    refused.failure.message
                );
                Ok((Self::Namespaces(BTreeSet::from([own])), why))
            }
            Err(failed) => Err(failed.error),
        }
    }

    /// Whether a namespace is watched.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(names) => names.contains(namespace),
        }
    }

    /// Where one kind is listed.
    fn listed(&self, kind: Kind) -> Vec<workloads::Listed> {
        match self {
            Self::All => vec![(kind, Collection::everywhere(resource_of(kind)))],
            Self::Namespaces(names) => {
                names.iter().map(|name| (kind, Collection::of(resource_of(kind), name))).collect()
            }
        }
    }
}

/// What identifies the cluster: the UID of `kube-system`.
///
/// # Errors
/// When it cannot be read; with [`purge::ports::Retry::Never`] if we have no right to.
pub async fn cluster_uid(clients: &Clients) -> Result<String, PortError> {
    let namespaces = Collection::everywhere(NAMESPACES);
    let found = Api::new(clients.request.clone()).get(&namespaces, KUBE_SYSTEM).await?;
    let uid = |object: serde_json::Value| Some(object.get("metadata")?.get("uid")?.as_str()?.to_owned());
    found
        .and_then(|answer| uid(answer.json().ok()?))
        .filter(|uid| !uid.is_empty())
        .ok_or_else(|| PortError::passing(namespaces.attempt_one("get", KUBE_SYSTEM).to_string(), "it has no UID"))
}

/// A view of one cluster.
pub struct Cluster {
    watches: Watches,
    api: Api,
    looks: Api,
    scope: Scope,
    kinds: BTreeSet<Kind>,
    of: VersionOf,
    rollouts: Presence,
    sites: SiteReader,
    claims: ClaimReader,
    serving: ServingReader,
}

impl Cluster {
    /// A view of the workloads of every kind in `scope`. Nothing is asked for before the first watch.
    pub fn new(clients: &Clients, scope: Scope, tempo: Tempo) -> Self {
        let api = Api::new(clients.request.clone());
        Self {
            watches: Watches::new(clients.watch.clone(), tempo),
            scope,
            kinds: Kind::ALL.into(),
            of: VersionOf::Images,
            rollouts: Presence::default(),
            sites: SiteReader::new(api.clone()),
            claims: ClaimReader::new(api.clone()),
            serving: ServingReader::new(api.clone()),
            looks: api.at_once(LOOKS_AT_ONCE),
            api,
        }
    }

    /// The same of these kinds alone. Of others it is not known whether they are there.
    #[must_use]
    pub fn following(self, kinds: BTreeSet<Kind>) -> Self {
        Self { kinds, ..self }
    }

    /// The same, with versions that are of more than images.
    #[must_use]
    pub fn versions(self, of: VersionOf) -> Self {
        Self { of, ..self }
    }

    /// The addresses of the new pods of a workload, read afresh, as its own Service leads to them: one at least.
    ///
    /// # Errors
    /// Where there is none that can be asked, or that could not be read.
    pub async fn new_pods(&self, id: &WorkloadId) -> Result<Vec<SocketAddr>, NoNewPods> {
        let workload = self.workload(id).await?.ok_or_else(|| NoWay::Gone(id.display_name()))?;
        let around = self.serving.around(&workload).await?;
        // Where it cannot be seen which Services routes lead to, the one that is likely to be it is taken among all.
        let fronts = self.sites.facts(&id.namespace, Age::Recent).await.map(|facts| {
            let fronts = facts.fronts(workload.pods()).into_iter();
            fronts.map(|front| front.name.clone()).collect()
        });
        Ok(addresses(&workload, &around, &fronts.unwrap_or_default())?)
    }

    async fn look(&self, kind: Kind, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        look(&self.looks, kind, &self.of, id).await
    }

    /// Reads the Rollout of this name, where Rollouts are followed. A missing right counts as none, unless one of this name was seen: a
    /// right that is taken away holds up no other workload.
    async fn rollout(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        let is_followed = self.rollouts.is_followed(&id.namespace);
        if !self.kinds.contains(&Kind::Rollout) || is_followed == Some(false) {
            return Ok(None);
        }
        match self.look(Kind::Rollout, id).await {
            Err(error) if error.refused() == Some(Refused::Right) && !self.rollouts.knows(id) => Ok(None),
            found => found,
        }
    }

    /// The Deployment, or the Rollout in its place, that counts under a name; none where a Rollout of another name has taken it.
    async fn deployment(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        let (deployment, rollout) = tokio::join!(self.look(Kind::Deployment, id), self.rollout(id));
        let (deployment, rollout) = (deployment?, rollout?);
        let template = self.template(rollout.as_ref(), deployment.as_ref()).await?;
        let rollouts = Collection::of(resource_of(Kind::Rollout), &id.namespace);
        let found = joined(deployment, rollout, template.as_ref())
            .map_err(|why| PortError::lasting(rollouts.attempt_one("read", &id.name).to_string(), why))?;
        let Some(deployment) = found.as_ref().filter(|found| found.object == Kind::Deployment) else {
            return Ok(found);
        };
        for referring in self.rollouts.referring(id) {
            if self.rollout(&referring).await?.is_some_and(|rollout| takes(&rollout, deployment)) {
                return Ok(None);
            }
        }
        Ok(found)
    }

    /// The Deployment that a Rollout refers to, where that is not the one of its name, which was read.
    async fn template(
        &self,
        rollout: Option<&Workload>,
        deployment: Option<&Workload>,
    ) -> Result<Option<Workload>, PortError> {
        let Some(of) = rollout.and_then(|rollout| rollout.template_of.as_ref()) else { return Ok(None) };
        match deployment.filter(|deployment| deployment.id == of.deployment) {
            Some(deployment) => Ok(Some(deployment.clone())),
            None => self.look(Kind::Deployment, &of.deployment).await,
        }
    }
}

/// Why no new pod of a workload can be asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoNewPods {
    #[error(transparent)]
    NoWay(#[from] NoWay),
    #[error(transparent)]
    Unread(#[from] PortError),
}

/// Of all objects of a namespace, the workloads that count.
fn all_joined(mut found: BTreeMap<WorkloadId, Workload>, rollouts: Vec<Workload>) -> Vec<Workload> {
    let mut counting = Vec::new();
    let mut taken = BTreeSet::new();
    for rollout in rollouts {
        let id = rollout.id.clone();
        let template = rollout.template_of.as_ref().and_then(|of| found.get(&of.deployment));
        taken.extend(template.filter(|template| takes(&rollout, template)).map(|template| template.id.clone()));
        // One whose template is not there cannot be said; what it does is not known, and so is a Deployment of its name.
        counting.push((id.clone(), joined(found.get(&id).cloned(), Some(rollout), template).ok().flatten()));
    }
    found.retain(|id, _| !taken.contains(id));
    for (id, counts) in counting {
        found.remove(&id);
        found.extend(counts.map(|workload| (id, workload)));
    }
    found.into_values().collect()
}

/// Reads one object of a kind.
async fn look(api: &Api, kind: Kind, of: &VersionOf, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
    let collection = Collection::of(resource_of(kind), &id.namespace);
    let Some(answer) = api.get(&collection, &id.name).await? else { return Ok(None) };
    answer.read(decode::workload(kind, of)).map(Some)
}

#[async_trait]
impl ClusterView for Cluster {
    fn watch(&self) -> Flow<Sight> {
        let listed = self.kinds.iter().flat_map(|kind| self.scope.listed(*kind)).collect();
        workloads::watch(self.watches.clone(), self.api.clone(), listed, self.rollouts.clone(), self.of.clone())
    }

    fn watch_routing(&self) -> Flow<RoutingSight> {
        rerouting::watch(&self.watches, &self.api, &self.scope)
    }

    fn watch_pods(&self, namespace: &str) -> Flow<PodSight> {
        let collection = Collection::of(PODS, namespace);
        let attempt = collection.attempt("watch").to_string();
        let looks = self.watches.watch(collection, pods::pod, Reach::default());
        Box::pin(looks.map(move |look| pod_sight(look, &attempt)))
    }

    async fn workload(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        let unlooked_at = match () {
            () if !self.scope.contains(&id.namespace) => Some("this namespace is not watched (watch.namespaces)"),
            () if !self.kinds.contains(&id.kind) => Some("this kind is not followed (workloads.kinds)"),
            () => None,
        };
        if let Some(why) = unlooked_at {
            let collection = Collection::of(resource_of(id.kind), &id.namespace);
            return Err(PortError::lasting(collection.attempt_one("get", &id.name).to_string(), why));
        }
        if id.kind != Kind::Deployment {
            return self.look(id.kind, id).await;
        }
        self.deployment(id).await
    }

    async fn workloads(&self, namespace: &str) -> Result<Present, PortError> {
        let (mut kinds, mut unread) = (BTreeSet::new(), BTreeSet::new());
        let (mut found, mut rollouts) = (BTreeMap::new(), Vec::new());
        for kind in self.kinds.iter().copied().filter(|_| self.scope.contains(namespace)) {
            let keep = |name: Name| unread.extend([WorkloadId::new(kind, namespace, name.name)]);
            let of = Collection::of(resource_of(kind), namespace);
            let listed = match self.api.sorted(&of, decode::workload(kind, &self.of), keep).await {
                Ok(listed) => listed,
                // The cluster does not have the kind.
                Err(failed) if kind == Kind::Rollout && failed.status() == Some(404) => Vec::new(),
                // It may have it in another version.
                Err(failed) if kind.custom().is_some() && failed.status() == Some(404) => continue,
                Err(failed) if kind != Kind::Deployment && failed.error.refused() == Some(Refused::Right) => continue,
                Err(failed) => return Err(failed.error),
            };
            kinds.insert(kind);
            if kind == Kind::Rollout {
                rollouts = listed;
            } else {
                found.extend(listed.into_iter().map(|workload| (workload.id.clone(), workload)));
            }
        }
        Ok(Present { kinds, workloads: all_joined(found, rollouts), unread })
    }

    async fn lagging(&self, namespace: &str) -> Result<BTreeSet<String>, PortError> {
        lagging::lagging(&self.api, namespace).await
    }

    async fn pods(&self, namespace: &str) -> Result<Vec<pods::LabelledPod>, PortError> {
        Ok(self.api.all(&Collection::of(PODS, namespace), None, pods::pod).await?)
    }

    async fn serving(&self, workload: &Workload) -> Result<Serving, PortError> {
        self.serving.read(workload).await
    }

    async fn beside(&self, workload: &Workload) -> Result<Vec<Beside>, PortError> {
        let facts = self.sites.facts(&workload.id.namespace, Age::Recent).await?;
        self.serving.beside(workload, &facts.fronts(workload.pods())).await
    }

    async fn publishes_unready(&self, workload: &Workload) -> Result<bool, PortError> {
        self.serving.publishes_unready(workload).await
    }

    async fn site_facts(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError> {
        self.sites.facts(namespace, age).await
    }

    async fn site_facts_in_part(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError> {
        self.sites.facts_in_part(namespace, age).await
    }

    async fn route_claims(&self) -> Result<Arc<Vec<RouteClaim>>, PortError> {
        self.claims.claims().await
    }
}

fn pod_sight(look: Look<pods::LabelledPod>, attempt: &str) -> PodSight {
    match look {
        Look::Restarted => PodSight::Restarted,
        Look::Seen(Reading::Read((labels, pod))) => PodSight::Seen(labels, pod),
        Look::Seen(Reading::Unreadable(name, why)) => {
            PodSight::Trouble(PortError::lasting(attempt, format!("pod {} cannot be read: {why}", name.name)))
        }
        Look::Gone(name) => PodSight::Gone(name.name),
        Look::Synced => PodSight::Synced,
        Look::Trouble(error) => PodSight::Trouble(error),
    }
}

//! The cluster as [`ClusterView`] and [`EventSink`](crate::ports::EventSink), on kube's client.
//!
//! What is read is reduced at once: `api` asks the server and takes its answers apart into objects, and `decode`, `pods` and
//! `routing` keep of each object what decisions use. Nothing of `k8s_openapi` gets further than this module.
//!
//! Not for remembering what was seen, nor for deciding anything about it.

pub(crate) mod api;
mod claims;
mod decode;
mod events;
mod few;
mod gateway;
mod gateways;
mod lease;
mod pods;
mod routing;
mod serving;
mod site;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use futures_util::StreamExt;
use kube::Client;
use kube::api::{GetParams, ListParams};

pub use api::{Clients, ConnectError, Options, Tempo, connect};
pub use decode::deployment as decode_deployment;
pub use events::{CONTROLLER, Events};
pub use lease::KubernetesLease;

use crate::domain::id::WorkloadId;
use crate::domain::readiness::Pod;
use crate::domain::serving::Serving;
use crate::domain::site::{Age, Gathered, RouteClaim};
use crate::domain::workload::Workload;
use crate::ports::{ClusterView, Flow, PodSight, PortError, Sight};
use api::text::{self, Name, Reading};
use api::{ANSWER_MAX, Collection, Failure, Look, OBJECT_BYTES_MAX, Reach, Resource, list};
use claims::ClaimReader;
use serving::ServingReader;
use site::SiteReader;

const DEPLOYMENTS: Resource = Resource { group: "apps", version: "v1", plural: "deployments" };

const NAMESPACES: Resource = Resource { group: "", version: "v1", plural: "namespaces" };

/// The namespace every cluster has, and has from its beginning: its UID is the closest there is to a cluster's own
/// (<https://github.com/kubernetes/kubernetes/issues/77487>).
const KUBE_SYSTEM: &str = "kube-system";

const PODS: Resource = Resource { group: "", version: "v1", plural: "pods" };

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
        let everywhere = Collection { resource: DEPLOYMENTS, namespace: None };
        let params = ListParams { limit: Some(1), ..ListParams::default() };
        let listed = match kube::core::Request::new(everywhere.path()).list(&params) {
            Ok(request) => api::read(&clients.request, request, ANSWER_MAX, OBJECT_BYTES_MAX).await,
            Err(error) => Err(Failure::unanswered(error)),
        };
        match listed {
            Ok(_) => Ok((Self::All, "NAMESPACE is not set, and we may list deployments in all namespaces".to_owned())),
            Err(Failure { status: Some(403), message, .. }) => {
                let own = clients.namespace.clone();
                let why =
                    format!("NAMESPACE is not set, and we may not list deployments in all namespaces ({message})");
                Ok((Self::Namespaces(BTreeSet::from([own])), why))
            }
            Err(failure) => Err(everywhere.attempt("list").failed(failure)),
        }
    }

    fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(names) => names.contains(namespace),
        }
    }

    fn collections(&self) -> Vec<Collection> {
        match self {
            Self::All => vec![Collection { resource: DEPLOYMENTS, namespace: None }],
            Self::Namespaces(names) => names.iter().map(|name| Collection::of(DEPLOYMENTS, name)).collect(),
        }
    }
}

/// What identifies the cluster: the UID of `kube-system`.
///
/// # Errors
/// When it cannot be read; with [`crate::ports::Retry::Never`] if we have no right to.
pub async fn cluster_uid(clients: &Clients) -> Result<String, PortError> {
    let collection = Collection { resource: NAMESPACES, namespace: None };
    let attempt = collection.attempt_one("get", KUBE_SYSTEM);
    let request = kube::core::Request::new(collection.path()).get(KUBE_SYSTEM, &GetParams::default());
    let request = request.map_err(|error| attempt.failed(Failure::unanswered(error)))?;
    let body = api::read(&clients.request, request, ANSWER_MAX, OBJECT_BYTES_MAX).await;
    let body = body.map_err(|failure| attempt.failed(failure))?;
    let uid = |body: &[u8]| {
        let object: serde_json::Value = serde_json::from_slice(body).ok()?;
        Some(object.get("metadata")?.get("uid")?.as_str()?.to_owned())
    };
    uid(&body).ok_or_else(|| PortError::passing(attempt.to_string(), "it has no UID"))
}

/// A view of one cluster.
pub struct Cluster {
    looker: Looker,
    request: Client,
    scope: Scope,
    sites: SiteReader,
    claims: ClaimReader,
    serving: ServingReader,
}

/// Begins watches.
#[derive(Clone)]
struct Looker {
    client: Client,
    tempo: Tempo,
    /// The API server has refused a streaming list; all watches share this.
    streaming_refused: Arc<AtomicBool>,
}

impl Looker {
    /// Watches a collection, noting in `reach` how far it gets.
    fn look<T: Send + 'static>(&self, of: Collection, decode: text::Decoder<T>, reach: Reach) -> Flow<Look<T>> {
        let shared = api::Shared { refused: Arc::clone(&self.streaming_refused), reach };
        Box::pin(api::watch(self.client.clone(), of, decode, self.tempo.clone(), shared))
    }
}

impl Cluster {
    /// A view of `scope`. Nothing is asked for before the first watch.
    pub fn new(clients: &Clients, scope: Scope, tempo: Tempo) -> Self {
        Self {
            looker: Looker { client: clients.watch.clone(), tempo, streaming_refused: Arc::default() },
            request: clients.request.clone(),
            scope,
            sites: SiteReader::new(clients.request.clone()),
            claims: ClaimReader::new(clients.request.clone()),
            serving: ServingReader::new(clients.request.clone()),
        }
    }

    fn look<T: Send + 'static>(&self, of: Collection, decode: text::Decoder<T>) -> Flow<Look<T>> {
        self.looker.look(of, decode, Reach::default())
    }
}

#[async_trait]
impl ClusterView for Cluster {
    fn watch(&self) -> Flow<Sight> {
        workloads::watch(self.looker.clone(), self.request.clone(), self.scope.collections())
    }

    fn watch_pods(&self, namespace: &str) -> Flow<PodSight> {
        let collection = Collection::of(PODS, namespace);
        let attempt = collection.attempt("watch").to_string();
        Box::pin(self.look(collection, pods::pod).map(move |look| pod_sight(look, &attempt)))
    }

    async fn workload(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        if !self.scope.contains(&id.namespace) {
            return Ok(None);
        }
        let collection = Collection::of(DEPLOYMENTS, &id.namespace);
        let attempt = collection.attempt_one("get", &id.name);
        // Without a resourceVersion the API server answers from a quorum of etcd, not from its cache.
        let request = kube::core::Request::new(collection.path()).get(&id.name, &GetParams::default());
        let request = request.map_err(|error| attempt.failed(Failure::unanswered(error)))?;
        match api::read(&self.request, request, ANSWER_MAX, OBJECT_BYTES_MAX).await {
            Ok(body) => text::object(&body, decode::deployment)
                .map(Some)
                .map_err(|why| PortError::lasting(attempt.to_string(), format!("it cannot be read: {why}"))),
            Err(Failure { status: Some(404), .. }) => Ok(None),
            Err(failure) => Err(attempt.failed(failure)),
        }
    }

    async fn pods(&self, namespace: &str) -> Result<Vec<(BTreeMap<String, String>, Pod)>, PortError> {
        let collection = Collection::of(PODS, namespace);
        let listed = list::all(&self.request, &collection, None, pods::pod).await;
        listed.map_err(|failure| collection.attempt("list").failed(failure))
    }

    async fn serving(&self, workload: &Workload) -> Result<Serving, PortError> {
        self.serving.read(workload).await
    }

    async fn publishes_unready(&self, workload: &Workload) -> Result<bool, PortError> {
        self.serving.publishes_unready(workload).await
    }

    async fn site_facts(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError> {
        self.sites.facts(namespace, age).await
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

fn named(name: Name) -> WorkloadId {
    WorkloadId::deployment(name.namespace, name.name)
}

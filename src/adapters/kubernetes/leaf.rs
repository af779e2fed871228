//! Clusters in which apps are looked at, as [`Leaves`]: this one, and others by kubeconfigs in Secrets.
//!
//! App watches of this cluster share nothing with the core's: it is a leaf like any other. Each object is reduced to what it says to
//! the targets that name it, as its bytes come in.
//!
//! Not for which collections are watched, nor for how long; that is `objects::apps::leaf`.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{iter, pending, unfold};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::apps::{Kinds, Looks, Wanted};
use super::kubeconfig::{self, Origin};
use super::leaf_config::{self, Finding};
use apiserver::{Api, Clients, Collection, Look, Name, Reach, Reading, Resource, Tempo, Watches, connect_judged};
use objects::apps::app::{ClusterKey, LeafId, TargetKey};
use objects::apps::leaf;
use objects::apps::leaf::News;
use objects::apps::ready::look;
use objects::ports::pipeline::{Leaf, Leaves, Link};
use purge::ports::{Flow, PortError, Retry};

/// Reads of one cluster that are under way at a time: a recheck of a thousand targets is no burst.
const READS_MAX: usize = 8;

/// Longest wait for an answer of a leaf to begin.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// All clusters in which apps are looked at.
pub struct Clusters {
    here: Clients,
    tempo: Tempo,
    origin: Origin,
}

impl Clusters {
    /// This cluster and those whose kubeconfigs are in it. `origin`: what a kubeconfig may lead to.
    pub fn new(here: Clients, tempo: Tempo, origin: Origin) -> Self {
        let answer = tempo.answer.min(ANSWER_MAX);
        Self { here, tempo: Tempo { answer, prove: None, ..tempo }, origin }
    }
}

impl Leaves for Clusters {
    fn link(&self, cluster: &ClusterKey) -> Flow<Link> {
        match cluster {
            ClusterKey::Here => {
                let here: Arc<dyn Leaf> = Arc::new(OneCluster::new(&self.here, self.tempo.clone()));
                Box::pin(iter([Link::Up(here)]).chain(pending()))
            }
            ClusterKey::Leaf(id) => {
                let watches = Watches::new(self.here.watch.clone(), self.tempo.clone());
                let (id, tempo, origin) = (id.clone(), self.tempo.clone(), self.origin);
                let findings = leaf_config::follow(watches, id.clone());
                Box::pin(findings.then(move |finding| linked(finding, id.clone(), tempo.clone(), origin)))
            }
        }
    }
}

/// Where a kubeconfig leads.
async fn linked(finding: Finding, id: LeafId, tempo: Tempo, origin: Origin) -> Link {
    let kubeconfig = match finding {
        Ok(kubeconfig) => kubeconfig.0,
        Err(error) => return Link::Down(error),
    };
    // Others wrote it: what takes long to parse must not hold up who drives this.
    let read = tokio::task::spawn_blocking(move || kubeconfig::read(&kubeconfig, origin)).await;
    let refused = |why: &dyn Display| PortError::lasting(format!("failed to use the kubeconfig of {id}"), why);
    let config = match read {
        Ok(Ok(config)) => config,
        Ok(Err(why)) => return Link::Down(refused(&why)),
        Err(_) => return Link::Down(refused(&"it cannot be parsed")),
    };
    match connect_judged(&config, &format!("the kubeconfig of {id}"), origin.judge()) {
        Ok(clients) => Link::Up(Arc::new(OneCluster::new(&clients, tempo))),
        Err(error) => Link::Down(refused(&error)),
    }
}

/// One cluster, by one kubeconfig.
#[derive(Clone)]
struct OneCluster {
    api: Api,
    watches: Watches,
    kinds: Kinds,
    wanted: Wanted,
    reads: Arc<Semaphore>,
}

impl OneCluster {
    fn new(clients: &Clients, tempo: Tempo) -> Self {
        Self {
            api: Api::new(clients.request.clone()),
            watches: Watches::new(clients.watch.clone(), tempo),
            kinds: Kinds::default(),
            wanted: Wanted::default(),
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// The resource of a kind whose objects are in namespaces.
    async fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, PortError> {
        let found = self.kinds.find(&self.api, api_version, kind).await?;
        if found.namespaced {
            return Ok(found.resource);
        }
        let attempted = format!("failed to look for {kind} of {api_version} in a namespace");
        Err(PortError::lasting(attempted, "its objects are in none"))
    }
}

#[async_trait]
impl Leaf for OneCluster {
    fn want(&self, targets: &std::collections::BTreeSet<TargetKey>) {
        self.wanted.set(targets.iter());
    }

    fn watch(&self, of: &leaf::Collection) -> Flow<News> {
        let watched = Watched { cluster: self.clone(), of: of.clone(), resource: None, looks: None, failures: 0 };
        Box::pin(unfold(watched, |mut watched| async move {
            loop {
                if let Some(news) = watched.next().await {
                    return Some((news, watched));
                }
            }
        }))
    }

    async fn read(&self, target: &TargetKey) -> Result<Option<objects::apps::app::Look>, PortError> {
        // Closed never.
        let _permit = self.reads.acquire().await;
        let resource = self.resource(&target.app.api_version, &target.app.kind).await?;
        let of = Collection::of(resource, &target.namespace);
        let Some(answer) = self.api.get(&of, &target.name).await? else { return Ok(None) };
        let object: Value = answer.json()?;
        let unreadable = |why| PortError::lasting(answer.attempted.as_str(), format!("it cannot be read: {why}"));
        look(&target.app, &target.name, &object).map(Some).map_err(unreadable)
    }
}

/// A watch of a kind that is found first, and found anew when the server does not know it any more.
struct Watched {
    cluster: OneCluster,
    of: leaf::Collection,
    resource: Option<Resource>,
    looks: Option<Flow<Look<Looks>>>,
    /// How often the kind was not found, in a row.
    failures: u32,
}

impl Watched {
    /// What it says next, if that is something.
    async fn next(&mut self) -> Option<News> {
        let Some(looks) = &mut self.looks else { return self.begin().await };
        let leaf::Collection { api_version, kind, .. } = &self.of;
        match looks.next().await? {
            Look::Restarted => Some(News::Restarted),
            Look::Seen(Reading::Read(looks)) => (!looks.is_empty()).then_some(News::Seen(looks)),
            Look::Seen(Reading::Unreadable(Name { namespace, name }, why)) => {
                let looks = self.cluster.wanted.unreadable(api_version, kind, (namespace, name), why);
                (!looks.is_empty()).then_some(News::Seen(looks))
            }
            Look::Gone(Name { namespace, name }) => Some(News::Gone { namespace, name }),
            Look::Synced => {
                self.failures = 0;
                Some(News::Synced)
            }
            Look::Trouble(error) => {
                // A version that is not served any more is answered so: another one may be.
                if error.retry == Retry::Never && !error.denied {
                    self.cluster.kinds.forget(api_version, kind);
                    self.looks = None;
                }
                Some(News::Trouble(error))
            }
        }
    }

    /// Finds the kind, and begins to watch it; says why it cannot be found.
    async fn begin(&mut self) -> Option<News> {
        let leaf::Collection { api_version, kind, namespace } = &self.of;
        if self.failures > 0 {
            let pause = self.cluster.watches.tempo.backoff.delay(self.failures, kind);
            tokio::time::sleep(pause).await;
        }
        match self.cluster.resource(api_version, kind).await {
            Ok(resource) => {
                // What begins again at once after trouble is slowed down by its own failures.
                self.failures =
                    if self.resource.as_ref() == Some(&resource) { self.failures.saturating_add(1) } else { 0 };
                let of = Collection { resource: resource.clone(), namespace: namespace.clone(), only: None };
                let (wanted, api_version, kind) = (self.cluster.wanted.clone(), api_version.clone(), kind.clone());
                let decode = move |json: &str| wanted.read(&api_version, &kind, json);
                self.looks = Some(self.cluster.watches.watch(of, decode, Reach::default()));
                self.resource = Some(resource);
                None
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                Some(News::Trouble(error))
            }
        }
    }
}

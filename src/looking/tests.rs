//! A scripted world to look at, for tests of what is found in it and how it is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::adapters::ledger::memory::MemoryLedger;
use kernel::id::{InvalidationId, Origin, Reference, Seq};
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::image::{Container, Image};
use kernel::names::paths::PathSet;
use kernel::names::selector::LabelSelector;
use kernel::watches::listed::Scope;
use kernel::watches::lives::LifeNote;
use kinds::reported::Replicas;
use purge::ports::{
    CdnError, CdnErrorClass, Flow, Found, Invalidation, InvalidationStatus, PodSight, Present, RoutingSight, Sight,
};
use purge::purges::accounts::Accounts;
use purge::records::record::{Change, Closed, Edge, Outcome};
use purge::site::{Age, Gathered, IngressFact, IngressRule, RouteClaim, ServiceFact, SiteFacts};
use purge::testing;
use purge::workloads::beside::Beside;
use purge::workloads::serving::Serving;

pub(crate) type Labels = BTreeMap<String, String>;

pub(crate) struct Cluster {
    pub(crate) workloads: Result<Vec<Workload>, PortError>,
    pub(crate) facts: Result<SiteFacts, PortError>,
    pub(crate) pods: Result<Vec<(Labels, Pod)>, PortError>,
    pub(crate) claims: Vec<RouteClaim>,
    pub(crate) serving: Result<Serving, PortError>,
    pub(crate) beside: Result<Vec<Beside>, PortError>,
}

#[async_trait]
impl ClusterView for Cluster {
    fn watch(&self) -> Flow<Sight> {
        let sights = match &self.workloads {
            Ok(workloads) => {
                let seen = workloads.iter().cloned().map(|workload| Sight::Seen(Box::new(workload)));
                seen.chain([Sight::Synced { scope: Scope::of(None), all: true }]).collect()
            }
            Err(error) => vec![Sight::Trouble { scope: Scope::of(None), error: error.clone() }],
        };
        Box::pin(futures_util::stream::iter(sights))
    }

    fn watch_routing(&self) -> Flow<RoutingSight> {
        panic!("explain only looks")
    }

    async fn workloads(&self, _: &str) -> Result<Present, PortError> {
        panic!("explain lists all namespaces at once")
    }

    async fn lagging(&self, _: &str) -> Result<BTreeSet<String>, PortError> {
        panic!("explain takes no part in it")
    }

    fn watch_pods(&self, _: &str) -> Flow<PodSight> {
        Box::pin(futures_util::stream::empty())
    }

    async fn workload(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        self.workloads.clone().map(|all| all.into_iter().find(|workload| workload.id == *id))
    }

    async fn pods(&self, _: &str) -> Result<Vec<(Labels, Pod)>, PortError> {
        self.pods.clone()
    }

    async fn serving(&self, _: &Workload) -> Result<Serving, PortError> {
        self.serving.clone()
    }

    async fn beside(&self, _: &Workload) -> Result<Vec<Beside>, PortError> {
        self.beside.clone()
    }

    async fn publishes_unready(&self, _: &Workload) -> Result<bool, PortError> {
        panic!("explain takes no part in it")
    }

    async fn site_facts(&self, _: &str, _: Age) -> Result<Arc<Gathered>, PortError> {
        self.facts.clone().map(|facts| Arc::new(facts.into()))
    }

    async fn route_claims(&self) -> Result<Arc<Vec<RouteClaim>>, PortError> {
        Ok(Arc::new(self.claims.clone()))
    }
}

pub(crate) struct Account(pub(crate) Result<Vec<Distribution>, CdnError>);

pub(crate) fn only_looks<T>() -> Result<T, CdnError> {
    panic!("explain only looks")
}

#[async_trait]
impl Cdn for Account {
    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        let distributions = |all: Vec<Distribution>| all.into_iter().filter(|one| !one.id.is_of_distribution_tenant());
        self.0.clone().map(|all| distributions(all).collect())
    }

    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        assert!(!of.is_empty(), "an account without any is not asked for them");
        let tenants = self.0.clone()?.into_iter().filter(|one| one.id.is_of_distribution_tenant());
        let tenants: Vec<Distribution> = tenants.collect();
        // Here, one that lists none may not list them.
        let denied =
            || CdnError { class: CdnErrorClass::Denied, message: "AccessDenied for distribution tenants".into() };
        if tenants.is_empty() { Err(denied()) } else { Ok(tenants) }
    }

    async fn distribution_tenant(&self, _: &Host) -> Result<Option<Distribution>, CdnError> {
        only_looks()
    }

    async fn cache_tag_header(&self, _: &DistributionId) -> Result<Option<String>, CdnError> {
        only_looks()
    }

    async fn create(&self, _: &DistributionId, _: &Reference, _: &PathSet) -> Result<Invalidation, CdnError> {
        only_looks()
    }

    async fn status(&self, _: &DistributionId, _: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        only_looks()
    }

    async fn find(&self, _: &DistributionId, _: &Reference) -> Result<Option<Found>, CdnError> {
        only_looks()
    }
}

pub(crate) fn version(tag: &str) -> Version {
    let image = Image::parse(&format!("registry.example.com/shop/web:{tag}")).unwrap();
    [(Container::Main("web".into()), image)].into_iter().collect()
}

pub(crate) fn labels() -> Labels {
    BTreeMap::from([("app".to_owned(), "web".to_owned())])
}

/// Five pods of 1.2.4, all available.
pub(crate) fn web() -> Workload {
    let selector = LabelSelector { match_labels: labels(), ..LabelSelector::default() };
    Workload { uid: "u".into(), selector, template_labels: labels(), ..testing::settled(version("1.2.4"), 4, 5) }
}

pub(crate) fn rolling() -> Workload {
    Workload { replicas: Replicas { desired: 5, total: 5, updated: 3, ready: 4, available: 4 }, ..web() }
}

pub(crate) fn named(name: &str) -> Workload {
    Workload { id: WorkloadId::deployment("shop", name), ..web() }
}

/// The rollout 7 from 1.2.3 to 1.2.4, a minute and a half old; the one before it was purged.
pub(crate) fn record() -> Record {
    Record {
        revision: 1,
        uid: "u".into(),
        seq: Seq(7),
        version: version("1.2.4"),
        generation: 4,
        change: Change::Changed,
        phase: Phase::Rolling,
        elapsed_ms: 90_000,
        settled: Some(version("1.2.3")),
        edge: Edge::Settled,
        closed: Seq(6),
        history: vec![Closed {
            seq: Seq(6),
            change: "web: 1.2.2 → 1.2.3".into(),
            outcome: Outcome::Purged,
            why: String::new(),
            purges: vec![("E1".parse().unwrap(), Some("I1".into()))],
            more: 0,
            seen: None,
        }],
        ..Record::first(Seq(7))
    }
}

/// An Ingress leads two hosts to a Service that selects `app=web`; one of the hosts is none.
pub(crate) fn facts() -> SiteFacts {
    let rule = |host: &str| IngressRule {
        host: Some(host.into()),
        backends: vec!["web-svc".into()],
        ..IngressRule::default()
    };
    SiteFacts {
        services: vec![ServiceFact {
            namespace: "shop".into(),
            name: "web-svc".into(),
            selector: labels(),
            ..ServiceFact::default()
        }],
        ingresses: vec![IngressFact {
            namespace: "shop".into(),
            name: "public".into(),
            rules: vec![rule("www.example.com"), rule("api.example.com"), rule("10.0.0.1")],
            ..IngressFact::default()
        }],
        ..SiteFacts::default()
    }
}

pub(crate) fn distribution(id: &str, alias: &str, enabled: bool) -> Distribution {
    Distribution {
        id: id.parse().unwrap(),
        domain_name: format!("{}.cloudfront.net", id.to_lowercase()),
        aliases: vec![alias.into()],
        origins: Vec::new(),
        enabled,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    }
}

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) records: Vec<(WorkloadId, Record)>,
    pub(crate) listed: bool,
    pub(crate) life: Option<LifeNote>,
    pub(crate) account: Account,
}

impl World {
    pub(crate) fn new(workload: Workload) -> Self {
        let distributions =
            vec![distribution("E1", "www.example.com", true), distribution("E2", "*.example.com", false)];
        let pod = |name: &str, trouble: Option<&str>| Pod {
            name: name.into(),
            version: Some(version("1.2.4")),
            ready: trouble.is_none(),
            terminating: false,
            started: false,
            finished: false,
            trouble: trouble.map(str::to_owned),
        };
        let pods = [pod("web-7c9-a1", None), pod("web-7c9-b2", None), pod("web-7c9-x4", Some("ImagePullBackOff"))];
        Self {
            records: vec![(workload.id.clone(), record())],
            listed: false,
            life: None,
            cluster: Cluster {
                claims: Vec::new(),
                serving: Ok(Serving::default()),
                beside: Ok(Vec::new()),
                workloads: Ok(vec![workload]),
                facts: Ok(facts()),
                pods: Ok(pods.map(|pod| (labels(), pod)).into()),
            },
            account: Account(Ok(distributions)),
        }
    }

    /// Through which its answers come.
    pub(crate) async fn sources(self) -> Sources {
        let ledger = MemoryLedger::new(Origin("o".into()));
        for (id, record) in &self.records {
            ledger.store(id, record).await.unwrap();
        }
        if self.listed {
            ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
        }
        if let Some(life) = &self.life {
            ledger.store_life(life, None).await.unwrap();
        }
        Sources {
            cluster: Arc::new(self.cluster),
            ledger: Arc::new(ledger),
            cdn: Arc::new(self.account),
            accounts: Accounts::default(),
            group: None,
            installation: None,
            desk: None,
            repos: None,
            own_namespace: "shop".into(),
            ledger_place: "namespace allclear".into(),
            us: About { member: "self".into(), group: "default".into(), dry_run: false },
            policy: Policy::default(),
            whose: Whose::Itself,
        }
    }
}

//! `explain` over scripted sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::adapters::ledger::memory::MemoryLedger;
use crate::cli::read::Us;
use crate::cli::read::whose::Whose;
use domain::bounds::policy::Policy;
use domain::kernel::id::{Component, InvalidationId, Origin, Reference, Seq, Vector, WorkloadId};
use domain::kernel::reported::Replicas;
use domain::names::distribution::{Distribution, DistributionId};
use domain::names::image::{Container, Image, Version};
use domain::names::paths::PathSet;
use domain::names::selector::LabelSelector;
use domain::ports::{
    Cdn, CdnError, CdnErrorClass, ClusterView, Flow, Found, Invalidation, InvalidationStatus, Ledger, PodSight,
    PortError, Sight,
};
use domain::records::record::{Change, Closed, Edge, Outcome as Ended, Phase, Purge, PurgeState, Record, Vote};
use domain::site::{Age, Gathered, IngressFact, IngressRule, RouteClaim, ServiceFact, SiteFacts};
use domain::testing;
use domain::watches::listed::Scope;
use domain::watches::lives::LifeNote;
use domain::workloads::readiness::Pod;
use domain::workloads::serving::Serving;
use domain::workloads::workload::{Asks, Tuning, Workload};

mod absent;
mod barrier;
mod lives;
mod sites;

type Labels = BTreeMap<String, String>;

struct Cluster {
    workloads: Result<Vec<Workload>, PortError>,
    facts: Result<SiteFacts, PortError>,
    pods: Result<Vec<(Labels, Pod)>, PortError>,
    claims: Vec<RouteClaim>,
    serving: Result<Serving, PortError>,
}

#[async_trait]
impl ClusterView for Cluster {
    fn watch(&self) -> Flow<Sight> {
        let sights = match &self.workloads {
            Ok(workloads) => {
                let seen = workloads.iter().cloned().map(|workload| Sight::Seen(Box::new(workload)));
                seen.chain([Sight::Synced { scope: None, all: true }]).collect()
            }
            Err(error) => vec![Sight::Trouble { scope: None, error: error.clone() }],
        };
        Box::pin(futures_util::stream::iter(sights))
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

struct Account(Result<Vec<Distribution>, CdnError>);

fn only_looks<T>() -> Result<T, CdnError> {
    panic!("explain only looks")
}

#[async_trait]
impl Cdn for Account {
    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        self.0.clone()
    }

    async fn has_cache_tags(&self, _: &DistributionId) -> Result<bool, CdnError> {
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

fn version(tag: &str) -> Version {
    let image = Image::parse(&format!("registry.example.com/shop/web:{tag}")).unwrap();
    [(Container::Main("web".into()), image)].into_iter().collect()
}

fn labels() -> Labels {
    BTreeMap::from([("app".to_owned(), "web".to_owned())])
}

/// Five pods of 1.2.4, all available.
fn web() -> Workload {
    let selector = LabelSelector { match_labels: labels(), ..LabelSelector::default() };
    Workload { uid: "u".into(), selector, template_labels: labels(), ..testing::settled(version("1.2.4"), 4, 5) }
}

fn rolling() -> Workload {
    Workload { replicas: Replicas { desired: 5, total: 5, updated: 3, ready: 4, available: 4 }, ..web() }
}

fn named(name: &str) -> Workload {
    Workload { id: WorkloadId::deployment("shop", name), ..web() }
}

/// The rollout 7 from 1.2.3 to 1.2.4, a minute and a half old; the one before it was purged.
fn record() -> Record {
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
            outcome: Ended::Purged,
            why: String::new(),
            purges: vec![("E1".parse().unwrap(), Some("I1".into()))],
            more: 0,
        }],
        ..Record::first(Seq(7))
    }
}

/// An Ingress leads two hosts to a Service that selects `app=web`; one of the hosts is none.
fn facts() -> SiteFacts {
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

fn distribution(id: &str, alias: &str, enabled: bool) -> Distribution {
    Distribution {
        id: id.parse().unwrap(),
        domain_name: format!("{}.cloudfront.net", id.to_lowercase()),
        aliases: vec![alias.into()],
        origins: Vec::new(),
        enabled,
        staging: false,
        tenant_only: false,
        cache_tags: false,
    }
}

struct World {
    cluster: Cluster,
    records: Vec<(WorkloadId, Record)>,
    listed: bool,
    life: Option<LifeNote>,
    account: Account,
}

impl World {
    fn new(workload: Workload) -> Self {
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
                workloads: Ok(vec![workload]),
                facts: Ok(facts()),
                pods: Ok(pods.map(|pod| (labels(), pod)).into()),
            },
            account: Account(Ok(distributions)),
        }
    }

    async fn ask(self, name: Option<&str>, output: Output) -> Outcome {
        self.ask_in(None, name, output).await
    }

    async fn ask_in(self, namespace: Option<&str>, name: Option<&str>, output: Output) -> Outcome {
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
        let sources = Sources {
            cluster: Arc::new(self.cluster),
            ledger: Arc::new(ledger),
            cdn: Arc::new(self.account),
            group: None,
            installation: None,
            desk: None,
            repos: None,
        };
        explain(&sources, &question(namespace, name), output).await
    }

    /// The answer about `web` as text.
    async fn text(self) -> String {
        let outcome = self.ask(Some("web"), Output::Table).await;
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
        outcome.out
    }
}

fn question(namespace: Option<&str>, name: Option<&str>) -> Question {
    Question {
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        own_namespace: "shop".into(),
        policy: Policy::default(),
        ledger_place: "namespace allclear".into(),
        us: Us::default(),
        whose: Whose::Itself,
    }
}

fn forbidden(attempted: &str) -> PortError {
    PortError::lasting(attempted, "forbidden")
}

#[tokio::test]
async fn one_screen_says_how_it_is_and_why() {
    let expected = "\
shop/web
  State         2 of 5 pods ready; web-7c9-x4: ImagePullBackOff, at most 13m 30s of 15m left
  Next          purges when every pod is of the new version and available
  Would purge   /* of E1

  Deployment    web registry.example.com/shop/web:1.2.4
                3 of 5 pods of the newest version, 4 available, 5 in all
                waits for completion: 2 of 5 pods ready; web-7c9-x4: ImagePullBackOff
  Record        rollout 7, rolling: web: 1.2.3 → 1.2.4
                the edge has web registry.example.com/shop/web:1.2.3
                last purge: web: 1.2.2 → 1.2.3: purged (E1 by I1)
  Hosts         api.example.com: Ingress shop/public rule
                www.example.com: Ingress shop/public rule
                left out, Ingress shop/public rule: \"10.0.0.1\" is not a host name: it is an IP
                  address
  Distributions E1 (e1.cloudfront.net): alias www.example.com
                not E2 (e2.cloudfront.net): disabled; otherwise by alias *.example.com covers host
                  api.example.com
                none serves api.example.com (2 looked at)
  Paths         /* (from the configuration)
  History       web: 1.2.2 → 1.2.3: purged (E1 by I1)
";
    assert_eq!(World::new(rolling()).text().await, expected);
}

#[tokio::test]
async fn json_is_the_same_answer_for_programs() {
    let outcome = World::new(rolling()).ask(Some("web"), Output::Json).await;
    let answer: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(outcome.code, 0);
    assert_eq!(answer["workload"], "deployment/shop/web");
    assert_eq!(answer["deployment"]["images"]["web"], "registry.example.com/shop/web:1.2.4");
    assert_eq!(answer["record"]["phase"], "rolling");
    assert_eq!(answer["record"]["stage"], "rollout");
    assert_eq!(answer["site"]["hosts"]["www.example.com"][0], "Ingress shop/public rule");
    assert_eq!(answer["distributions"]["matched"][0]["id"], "E1");
    assert_eq!(answer["distributions"]["unmatched"][0], "api.example.com");
    assert_eq!(answer["paths"], serde_json::json!({"items": ["/*"], "from": "configuration"}));
}

#[tokio::test]
async fn what_cannot_be_read_hides_nothing_else() {
    let mut world = World::new(rolling());
    world.account =
        Account(Err(CdnError { class: CdnErrorClass::Denied, message: "failed to list distributions: denied".into() }));
    world.cluster.pods = Err(forbidden("failed to list pods in shop"));
    let text = world.text().await;
    assert!(text.contains("Distributions missing: failed to list distributions: denied\n"), "{text}");
    assert!(text.contains("missing: failed to list pods in shop: forbidden\n"), "{text}");
    assert!(text.contains("Hosts         api.example.com: Ingress shop/public rule\n"), "{text}");
    assert!(text.contains("State         2 of 5 pods available, at most 13m 30s of 15m left\n"), "{text}");
    assert!(!text.contains("Would purge"), "{text}");
}

#[tokio::test]
async fn without_rights_to_the_deployment_the_record_still_answers() {
    let mut world = World::new(web());
    world.cluster.workloads = Err(forbidden("failed to get deployments.apps web in shop"));
    world.cluster.facts = Err(forbidden("failed to list services in shop"));
    let text = world.text().await;
    assert!(text.contains("Deployment    missing: failed to get deployments.apps web in shop: forbidden\n"), "{text}");
    assert!(text.contains("Record        rollout 7, rolling: web: 1.2.3 → 1.2.4\n"), "{text}");

    let mut blind = World::new(web());
    blind.cluster.workloads = Err(forbidden("failed to get deployments.apps web in shop"));
    blind.records.clear();
    let outcome = blind.ask(Some("web"), Output::Table).await;
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("State         not known: the Deployment could not be read\n"), "{}", outcome.out);
}

#[tokio::test]
async fn an_open_vote_shows_its_purges() {
    let mut world = World::new(web());
    let purge = Purge { state: PurgeState::Created, invalidation: Some("I2X".into()), ..Purge::wanted("ref".into()) };
    let record = &mut world.records[0].1;
    record.phase = Phase::Complete;
    let vector = Vector::of_one("self".into(), Component::bare("o".into(), Seq(7)));
    let json = serde_json::json!({ "v": vector, "s": 7, "i": version("1.2.4"), "p": ["/*"], "h": ["www.example.com"] });
    let vote: Vote = serde_json::from_value(json).unwrap();
    record.votes.push(Vote { purges: BTreeMap::from([("E1".parse().unwrap(), purge)]), ..vote });
    let text = world.text().await;
    assert!(text.contains("State         invalidation I2X of E1 in progress\n"), "{text}");
    assert!(text.contains("1 open vote\n"), "{text}");
}

#[tokio::test]
async fn the_owners_annotations_are_named_as_the_source_and_bad_ones_as_conditions() {
    let tuning = Tuning::read([
        ("allclear.dev/distribution-ids", "E9"),
        ("allclear.dev/paths", "/a/*,/b"),
        ("allclear.dev/rollout-timeout", "soon"),
    ]);
    let text = World::new(Workload { tuning, ..web() }).text().await;
    assert!(text.contains("Would purge   /a/*, /b of E9\n"), "{text}");
    assert!(text.contains("E9: annotation distribution-ids; this account has no such distribution\n"), "{text}");
    assert!(text.contains("Paths         /a/*, /b (from the annotation)\n"), "{text}");
    assert!(text.contains("Conditions    annotation allclear.dev/rollout-timeout: "), "{text}");
}

#[tokio::test]
async fn what_nobody_reaches_would_purge_nothing_and_the_remedy_is_named() {
    let mut world = World::new(web());
    world.cluster.facts = Ok(SiteFacts::default());
    let text = world.text().await;
    assert!(text.contains("Would purge   nothing: no Ingress, route or annotation gives it a host"), "{text}");
    assert!(text.contains("Hosts         none: no Ingress, route or annotation leads to it\n"), "{text}");
}

#[tokio::test]
async fn a_change_nobody_recorded_and_a_workload_without_a_record_are_told_apart() {
    let text = World::new(Workload { version: Ok(version("1.2.5")), ..web() }).text().await;
    assert!(text.contains("State         web: 1.2.4 → 1.2.5; allclear has not recorded this yet\n"), "{text}");
    let asking = Tuning { asks: Asks { requested_at: Some("1".into()), ..Asks::default() }, ..Tuning::default() };
    let text = World::new(Workload { tuning: asking, ..web() }).text().await;
    assert!(text.contains("a purge was requested by annotation; allclear has not recorded this yet\n"), "{text}");
    for (listed, next) in [(false, "taken as it is, without a purge"), (true, "on record, so it is new")] {
        let text = World { records: vec![], listed, ..World::new(web()) }.text().await;
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("; not recorded in the ledger in namespace allclear Next "), "{text}");
        assert!(flat.contains("name it by --ledger-namespace") && text.contains("Record        none\n"), "{text}");
        assert!(flat.contains(next), "{text}");
    }
    let text = World::new(Workload { tuning: Tuning { disabled: true, ..Tuning::default() }, ..web() }).text().await;
    assert!(text.contains("State         taken out by its owner"), "{text}");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_answered_with_near_ones() {
    let world = |name| {
        let mut world = World::new(named(name));
        world.records.clear();
        world
    };
    let outcome = world("checkout").ask(Some("chekout"), Output::Table).await;
    assert_eq!((outcome.code, outcome.out.as_str()), (1, ""));
    assert_eq!(outcome.err, "error: there is no Deployment chekout in namespace shop; did you mean shop/checkout?\n");
    let outcome = world("web").ask_in(Some("blog"), Some("web"), Output::Table).await;
    assert_eq!(outcome.err, "error: there is no Deployment web in namespace blog; did you mean shop/web?\n");
    let outcome = world("checkout").ask(Some("zebra"), Output::Table).await;
    assert_eq!(outcome.err, "error: there is no Deployment zebra in namespace shop\n");
}

#[tokio::test]
async fn a_name_may_be_written_in_every_usual_way() {
    for name in ["web", "deployment/web", "deploy/web", "shop/web", "deployment/shop/web"] {
        assert_eq!(World::new(web()).ask(Some(name), Output::Table).await.code, 0, "{name}");
    }
    for name in ["", "a/b/c/d", "Web", "we b", "shop/"] {
        assert_eq!(World::new(web()).ask(Some(name), Output::Table).await.code, 2, "{name}");
    }
    assert_eq!(World::new(web()).ask_in(Some("blog"), Some("shop/web"), Output::Table).await.code, 2);
}

#[tokio::test]
async fn without_a_name_all_workloads_are_listed() {
    let world = || {
        let mut world = World::new(rolling());
        world.cluster.workloads =
            Ok(vec![rolling(), named("worker"), Workload { id: WorkloadId::deployment("blog", "x"), ..web() }]);
        world
    };
    let outcome = world().ask_in(Some("shop"), None, Output::Table).await;
    let expected = "\
NAMESPACE  NAME    VERSION  PHASE    STATE                                      LAST PURGE
shop       web     1.2.4    rolling  2 of 5 pods available, at most 13m 30s of  web: 1.2.2 → 1.2.3
                                     15m left
shop       worker  1.2.4    –        complete; not recorded                     –
not recorded: in the ledger in namespace allclear; --ledger-namespace looks into another
";
    assert_eq!((outcome.code, outcome.out.as_str()), (0, expected));
    let outcome = world().ask(None, Output::Json).await;
    let listing: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(listing["workloads"].as_array().unwrap().len(), 3);
    assert_eq!(listing["workloads"][1]["last_purge"], "web: 1.2.2 → 1.2.3");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_rights_shows_the_records_and_says_what_is_missing() {
    let mut world = World::new(web());
    world.cluster.workloads = Err(forbidden("failed to watch deployments"));
    let outcome = world.ask(None, Output::Table).await;
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("shop"), "{}", outcome.out);
    assert!(outcome.out.ends_with("missing: failed to watch deployments: forbidden\n"), "{}", outcome.out);
}

#[tokio::test]
async fn no_line_is_wider_than_the_screen_and_nothing_moves_the_cursor() {
    let mut world = World::new(web());
    let long = format!("failed to list distributions: {} \u{1b}[2J", "very denied ".repeat(30));
    world.account = Account(Err(CdnError { class: CdnErrorClass::Denied, message: long }));
    let text = world.text().await;
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

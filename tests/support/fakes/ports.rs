//! The ports themselves: each method writes down what was asked, lets the plan or chance have its way, and answers from the
//! [`World`]'s state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kernel::floor::Floor;
use kernel::id::{Nonces, Subject, WorkloadId};
use kernel::machine::Timestamp;
use kernel::remark::{Remark, Remarked};
use kernel::watches::listed::Scope;
use kernel::watches::lives::LifeNote;
use notices::delivery::{Content, Delivery, Reply};
use notices::notice::{Kind, Notice};
use proof::asked::{self, Answers, Question};
use purge::agreement::roster::Pin;
use purge::caches::asking;
use purge::ports::{
    Caches, Clock, ClusterView, EdgeSight, EventSink, Flow, Ledger, LedgerContents, Notifier, PinError, PodSight,
    PortError, Present, Random, Receiver, RoutingSight, Sight, StoreError,
};
use purge::records::record::{Record, Records};
use purge::site::{Age, Gathered, IngressFact, IngressRule, RouteClaim, ServiceFact, SiteFacts};
use purge::workloads::beside::Beside;
use purge::workloads::readiness::Pod;
use purge::workloads::serving::Serving;
use purge::workloads::workload::Workload;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Fault, Read, SIMULATED, Shown, World, failed};
use allclear::adapters::ledger::memory::MemoryLedger;

/// Tokio's paused time, counted from the beginning of a life.
pub(super) struct FakeClock {
    pub(super) began: Instant,
    pub(super) world: World,
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn wall_ms(&self) -> i64 {
        wall(self.world.now())
    }
}

/// Counted: random enough that no two are alike, and the same in each run.
impl Random for World {
    fn bits(&self) -> u64 {
        let mut state = self.state();
        state.draws += 1;
        Nonces::seeded(state.draws).draw().0
    }
}

/// What all wall clocks show, this many milliseconds after the world began.
pub(super) fn wall(ms: u64) -> i64 {
    1_750_000_000_000 + i64::try_from(ms).unwrap_or(i64::MAX)
}

#[async_trait]
impl ClusterView for World {
    fn watch(&self) -> Flow<Sight> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.watches_opened += 1;
        for sight in state.listing() {
            let _ = sender.send(Shown::Sight(Box::new(sight)));
        }
        state.watches.push(sender);
        Box::pin(futures_util::stream::poll_fn(move |context| {
            receiver.poll_recv(context).map(|shown| match shown {
                Some(Shown::Sight(sight)) => Some(*sight),
                Some(Shown::Panic) => panic!("{SIMULATED} in a watch"),
                None => None,
            })
        }))
    }

    fn watch_routing(&self) -> Flow<RoutingSight> {
        Box::pin(futures_util::stream::pending())
    }

    async fn workloads(&self, namespace: &str) -> Result<Present, PortError> {
        let lost = self.port("cluster.workloads", namespace).await?;
        if lost {
            return Err(failed("cluster.workloads"));
        }
        let state = self.state();
        let there = state.cluster.values().filter(|workload| workload.id.namespace == namespace);
        let (kinds, workloads) = (kernel::id::Kind::ALL.into(), there.cloned().collect());
        Ok(Present { kinds, workloads, ..Present::default() })
    }

    async fn lagging(&self, namespace: &str) -> Result<BTreeSet<String>, PortError> {
        let lost = self.port("cluster.lagging", namespace).await?;
        if lost { Err(failed("cluster.lagging")) } else { Ok(BTreeSet::new()) }
    }

    fn watch_pods(&self, _namespace: &str) -> Flow<PodSight> {
        let mut sights = vec![PodSight::Restarted];
        match &self.state().pods {
            Ok(pods) => {
                sights.extend(pods.iter().map(|pod| PodSight::Seen(BTreeMap::new(), pod.clone())));
                sights.push(PodSight::Synced);
            }
            Err(error) => sights.push(PodSight::Trouble(error.clone())),
        }
        Box::pin(futures_util::StreamExt::chain(futures_util::stream::iter(sights), futures_util::stream::pending()))
    }

    async fn pods(&self, _namespace: &str) -> Result<Vec<(BTreeMap<String, String>, Pod)>, PortError> {
        Ok(Vec::new())
    }

    async fn workload(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError> {
        let lost = self.port("cluster.workload", &id.to_string()).await?;
        let mut state = self.state();
        let sight = state.cluster.get(id).cloned();
        let at = state.now();
        state.reads.push(Read { at, workload: id.clone(), sight: sight.clone() });
        if lost { Err(failed("cluster.workload")) } else { Ok(sight) }
    }

    async fn serving(&self, workload: &Workload) -> Result<Serving, PortError> {
        let lost = self.port("cluster.serving", &workload.id.to_string()).await?;
        let seen = self.state().serving.get(&workload.id).cloned().unwrap_or_default();
        if lost { Err(failed("cluster.serving")) } else { Ok(seen) }
    }

    async fn beside(&self, _workload: &Workload) -> Result<Vec<Beside>, PortError> {
        Ok(Vec::new())
    }

    async fn publishes_unready(&self, _workload: &Workload) -> Result<bool, PortError> {
        Ok(self.state().publishes_unready)
    }

    async fn site_facts(&self, namespace: &str, _age: Age) -> Result<Arc<Gathered>, PortError> {
        let lost = self.port("cluster.site_facts", namespace).await?;
        if lost {
            return Err(failed("cluster.site_facts"));
        }
        let state = self.state();
        let ingress = |id: &WorkloadId| {
            let ways = state.ways.get(&id.name).into_iter().flatten().map(|way| (id.name.clone(), way.clone()));
            let ways: Vec<_> = ways.collect();
            let backends = ways.first().map(|(service, _)| service.clone()).into_iter().collect();
            let host = Some(format!("{}.example.com", id.name));
            IngressFact {
                namespace: id.namespace.clone(),
                name: id.name.clone(),
                rules: vec![IngressRule { host, backends, ways, ..IngressRule::default() }],
                ..IngressFact::default()
            }
        };
        let service = |(id, workload): (&WorkloadId, &Workload)| ServiceFact {
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            selector: workload.template_labels.clone(),
            ..ServiceFact::default()
        };
        let routed = state.cluster.keys().filter(|id| !state.unrouted.contains(&id.name));
        let selecting = state.cluster.iter().filter(|(id, _)| state.ways.contains_key(&id.name));
        let services = selecting.map(service).collect();
        let facts = SiteFacts { ingresses: routed.map(ingress).collect(), services, ..SiteFacts::default() };
        Ok(Arc::new(facts.into()))
    }

    async fn route_claims(&self) -> Result<Arc<Vec<RouteClaim>>, PortError> {
        let lost = self.port("cluster.route_claims", "").await?;
        if lost { Err(failed("cluster.route_claims")) } else { Ok(Arc::new(self.state().claims.clone())) }
    }
}

#[async_trait]
impl EventSink for World {
    async fn publish(&self, notice: &Notice, _workload_uid: &str) -> Result<(), PortError> {
        let lost = self.port("events.publish", &notice.about.subject().to_string()).await?;
        let mut state = self.state();
        let at = state.now();
        state.published.push((at, notice.id.clone(), notice.clone()));
        if lost { Err(failed("events.publish")) } else { Ok(()) }
    }

    async fn remark(&self, remark: &Remark, on: &Remarked, _at_ms: i64) -> Result<(), PortError> {
        let lost = self.port("events.remark", &on.subject.to_string()).await?;
        self.state().remarked.push((on.subject.clone(), remark.clone()));
        if lost { Err(failed("events.remark")) } else { Ok(()) }
    }
}

fn answer<T>(call: &str, lost: bool, done: Result<T, StoreError>) -> Result<T, StoreError> {
    if lost { Err(StoreError::Unavailable(failed(call))) } else { done }
}

impl World {
    fn ledger(&self) -> MemoryLedger {
        self.state().ledger.clone()
    }

    /// Whether writes have to be refused because the ledger that was opened is no more.
    fn lost(&self) -> Option<StoreError> {
        self.state()
            .ledger_lost
            .then(|| StoreError::Lost(PortError::lasting("failed to store", "the ledger was deleted")))
    }

    fn pin_lost(&self) -> Result<(), PinError> {
        match self.lost() {
            Some(StoreError::Lost(error)) => Err(PinError::Lost(error)),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Ledger for World {
    async fn open(&self) -> Result<LedgerContents, PortError> {
        let lost = self.port("ledger.open", "").await?;
        self.state().ledger_lost = false;
        let opened = self.ledger().open().await;
        if lost { Err(failed("ledger.open")) } else { opened }
    }

    async fn peek(&self) -> Result<Option<LedgerContents>, PortError> {
        self.ledger().peek().await
    }

    async fn load(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        let lost = self.port("ledger.load", &workload.to_string()).await?;
        let loaded = self.ledger().load(workload).await;
        if lost { Err(failed("ledger.load")) } else { loaded }
    }

    async fn store(&self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError> {
        let lost = self.storing("ledger.store", &workload.to_string()).await?;
        if let Some(error) = self.lost() {
            return Err(error);
        }
        let stored = self.ledger().store(workload, record).await;
        if stored.is_ok() {
            self.state().note_write(workload, Some(record));
        }
        answer("ledger.store", lost, stored)
    }

    async fn store_all(&self, records: &Records) -> BTreeMap<WorkloadId, StoreError> {
        let mut failures = BTreeMap::new();
        for (workload, record) in records {
            let outcome = match self.storing("ledger.store_all", &workload.to_string()).await {
                Err(error) => Err(error),
                Ok(_) if self.lost().is_some() => Err(self.lost().expect("just seen")),
                Ok(lost) => {
                    let stored = self.ledger().store(workload, record).await;
                    if stored.is_ok() {
                        self.state().note_write(workload, Some(record));
                    }
                    answer("ledger.store_all", lost, stored)
                }
            };
            if let Err(error) = outcome {
                failures.insert(workload.clone(), error);
            }
        }
        failures
    }

    async fn remove(&self, workload: &WorkloadId, revision: u64) -> Result<(), StoreError> {
        let lost = self.port("ledger.remove", &workload.to_string()).await?;
        if let Some(error) = self.lost() {
            return Err(error);
        }
        let removed = self.ledger().remove(workload, revision).await;
        if removed.is_ok() {
            self.state().note_write(workload, None);
        }
        answer("ledger.remove", lost, removed)
    }

    async fn floor(&self, workload: &WorkloadId) -> Result<Floor, PortError> {
        let lost = self.port("ledger.floor", &workload.to_string()).await?;
        let floor = self.ledger().floor(workload).await;
        if lost { Err(failed("ledger.floor")) } else { floor }
    }

    async fn pin(&self) -> Result<Option<Pin>, PinError> {
        let lost = self.port("ledger.pin", "").await?;
        self.pin_lost()?;
        let pin = self.ledger().pin().await;
        if lost { Err(failed("ledger.pin").into()) } else { pin }
    }

    async fn store_pin(&self, pin: &Pin, over: Option<&Pin>) -> Result<bool, PinError> {
        let lost = self.port("ledger.store_pin", "").await?;
        self.pin_lost()?;
        let stored = self.ledger().store_pin(pin, over).await;
        if lost { Err(failed("ledger.store_pin").into()) } else { stored }
    }

    async fn store_listed(&self, scopes: &BTreeSet<Scope>) -> Result<(), PinError> {
        let about: String = scopes.iter().map(|scope| format!("[{}]", scope.as_str())).collect();
        let lost = self.port("ledger.store_listed", &about).await?;
        self.pin_lost()?;
        self.ledger().store_listed(scopes).await?;
        if lost { Err(failed("ledger.store_listed").into()) } else { Ok(()) }
    }

    async fn store_life(&self, life: &LifeNote, over: Option<&LifeNote>) -> Result<(), PinError> {
        let lost = self.port("ledger.store_life", "").await?;
        self.pin_lost()?;
        self.ledger().store_life(life, over).await?;
        if lost { Err(failed("ledger.store_life").into()) } else { Ok(()) }
    }

    async fn bill(&self) -> Result<Option<String>, PortError> {
        self.ledger().bill().await
    }

    async fn store_bill(&self, text: &str) -> Result<(), PinError> {
        self.ledger().store_bill(text).await
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        let lost = self.port("ledger.deliveries", "").await?;
        let deliveries = self.ledger().deliveries().await;
        if lost { Err(failed("ledger.deliveries")) } else { deliveries }
    }

    async fn store_delivery(&self, delivery: &Delivery) -> Result<(), PortError> {
        let lost = self.port("ledger.store_delivery", &delivery.subject.to_string()).await?;
        self.ledger().store_delivery(delivery).await?;
        if lost { Err(failed("ledger.store_delivery")) } else { Ok(()) }
    }

    async fn remove_delivery(&self, id: &str) -> Result<(), PortError> {
        let lost = self.port("ledger.remove_delivery", id).await?;
        self.ledger().remove_delivery(id).await?;
        if lost { Err(failed("ledger.remove_delivery")) } else { Ok(()) }
    }
}

#[async_trait]
impl EdgeSight for World {
    async fn ask(&self, _: Option<&WorkloadId>, question: &Question) -> Answers {
        let no_answer = || {
            let failure = Some("no answer, as simulated".to_owned());
            Answers { edge: asked::Reply { failure, ..asked::Reply::default() }, pods: Vec::new() }
        };
        match self.pass_through("edge.ask", &question.page.to_string()).await {
            Ok(false) => self.state().edge.clone().unwrap_or_else(no_answer),
            Ok(true) | Err(_) => no_answer(),
        }
    }
}

/// Every cache has two pods, which let go at once.
#[async_trait]
impl Caches for World {
    async fn ask(&self, _: &WorkloadId, question: &asking::Question) -> Result<asking::Answers, PortError> {
        self.pass_through("caches.ask", &question.cache.name).await.map_err(|_| failed("caches.ask"))?;
        let pod = |n: u8| asking::Endpoint {
            name: format!("inner-{n}"),
            address: format!("10.0.0.{n}:80"),
            uid: n.to_string(),
        };
        let answer = |pod: asking::Endpoint| {
            let is_known = question.cleared.contains(&pod);
            (pod, if is_known { asking::Answer::Before } else { asking::Answer::Cleared })
        };
        Ok(asking::Answers { endpoints: [1, 2].map(pod).map(answer).into(), unready: 0 })
    }
}

#[async_trait]
impl Notifier for World {
    fn hears(&self, _: &Subject, _: Kind) -> bool {
        true
    }

    /// Two hooks: `ops` hears everything, `site` that the purge is completed.
    fn deliveries(&self, notice: &Notice) -> Vec<Delivery> {
        if let Some(Fault::Panic) =
            self.state().next_planned("notifier.deliveries", &notice.about.subject().to_string())
        {
            panic!("{SIMULATED} in notifier.deliveries");
        }
        let body = serde_json::to_string(notice).expect("a notice is JSON");
        let mut deliveries = vec![delivery(notice, "ops", Content::Json(body))];
        if notice.kind == Kind::PurgeCompleted {
            deliveries.push(delivery(notice, "site", Content::Parameters));
        }
        deliveries
    }

    async fn send(&self, delivery: &Delivery) -> Reply {
        let unreachable = || Reply::Failed { reason: "no answer, as simulated".to_owned() };
        match self.pass_through("notifier.send", &delivery.subject.to_string()).await {
            Err(_) => unreachable(),
            Ok(lost) => {
                let mut state = self.state();
                let at = state.now();
                state.delivered.push((at, delivery.id.clone(), delivery.content.clone()));
                if lost { unreachable() } else { Reply::Delivered { status: 200 } }
            }
        }
    }

    fn receivers(&self) -> Vec<Receiver> {
        let receiver = |name: &str, events: &[Kind]| Receiver {
            name: name.to_owned(),
            events: events.to_vec(),
            workloads: vec!["*".to_owned()],
        };
        vec![receiver("ops", &Kind::ALL), receiver("site", &[Kind::PurgeCompleted])]
    }
}

/// A delivery with an id that names its notice, so that a test can tell what it was about.
fn delivery(notice: &Notice, hook: &str, content: Content) -> Delivery {
    Delivery { id: format!("{}/{hook}", notice.id), ..Delivery::new(notice, hook, content) }
}

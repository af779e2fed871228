//! What Pipelines meet: objects that an API server keeps, apps in several clusters, a forge that keeps one request for each
//! environment, and others who are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};
use kernel::names::selector::Labels;
use kernel::unreadable::Unreadable;
use objects::apps::app::{AppKind, ClusterKey, LeafId, LeafKind, Look, Present, TargetKey};
use objects::apps::leaf::{Collection, News};
use objects::asked::Opening;
use objects::gates::{Freeze, Window};
use objects::history::Entry;
use objects::history::figures::Figure;
use objects::kept::{Answers, Finalizers};
use objects::pipeline::Pipeline;
use objects::pipeline::freezes::PromotionFreeze;
use objects::pipeline::judge::Stale;
use objects::pipeline::proposal::{Order, Proposed, Request, RequestState};
use objects::pipeline::spec::{Advance, EnvironmentSpec, Gates, Object, PromotionSpec, Purged, Spec, Strategy};
use objects::pipeline::status::{Phase, Status};
use objects::ports::pipeline::{Edges, Forge, FreezeBook, Leaf, Leaves, Link, Promoting, Renewals};
use objects::ports::{Asking, Calendar, Histories, Owner, Unanswered, Verdicts};
use purge::ports::{Flow, PortError};
use tokio::sync::mpsc;

use super::objects::{Calls, Out, Shelf, flow};
use super::{Fault, Millis, SIMULATED, World, failed};

const CALLS: Calls = Calls { served: "pipelines.served", read: "pipelines.read", write: "pipelines.write" };

#[derive(Default)]
pub struct Promotions {
    /// Whether the feature is switched on.
    pub on: bool,
    pub shelf: Shelf<Pipeline>,
    pub(super) targets: BTreeMap<TargetKey, Look>,
    leaf_watches: Vec<(ClusterKey, Collection, Out<News>)>,
    links: Vec<(ClusterKey, Out<Link>)>,
    down: BTreeSet<ClusterKey>,
    /// The requests there are, by the id of their promotion.
    pub requests: BTreeMap<String, (Order, RequestState)>,
    /// Whether the edge is purged, or why not.
    pub edge: Option<String>,
    /// Fresh reads of targets.
    pub reads: Vec<(Millis, TargetKey)>,
}

/// The Deployment `web` of this namespace, here or in the cluster of this name.
pub fn target(cluster: Option<&str>, namespace: &str) -> TargetKey {
    let app = AppKind::new("apps/v1", "Deployment");
    let leaf = |name: &str| LeafId { kind: LeafKind::Secret, namespace: "shop".to_owned(), name: name.to_owned() };
    let cluster = cluster.map_or(ClusterKey::Here, |name| ClusterKey::Leaf(leaf(name)));
    TargetKey::new(cluster, app, namespace, "web")
}

/// An environment that is promoted into by a notification.
pub fn environment(name: &str, targets: &[TargetKey]) -> EnvironmentSpec {
    EnvironmentSpec {
        name: Environment(name.to_owned()),
        after: Vec::new(),
        targets: targets.to_vec(),
        promotion: Some(PromotionSpec { manual: false, strategy: Strategy::Notification }),
        gates: Gates::default(),
        suspended: false,
        purged: None,
        stalled_after: Duration::from_hours(1),
        parts: Vec::new(),
        rollback: None,
    }
}

/// A Pipeline as a person applied it: each environment after the one before it.
pub fn pipeline(name: &str, mut environments: Vec<EnvironmentSpec>) -> Object {
    for place in 1..environments.len() {
        environments[place].after = vec![environments[place - 1].name.clone()];
    }
    let spec = Spec {
        environments,
        advance: Advance::Latest,
        suspended: None,
        labels: Labels::new(),
        passed_over: Vec::new(),
        apps: Vec::new(),
    };
    Object {
        id: PipelineId::new("shop", name),
        uid: format!("{name}-uid"),
        generation: 1,
        version: String::new(),
        spec: Ok(spec),
        answers: Answers::default(),
        status: Status { observed_generation: -1, ..Status::default() },
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

impl Promotions {
    pub(super) fn life_ends(&mut self) {
        self.shelf.life_ends();
        self.leaf_watches.clear();
        self.links.clear();
    }

    fn news(&self, of: &Collection, cluster: &ClusterKey) -> Vec<(TargetKey, Result<Look, Unreadable>)> {
        let within = |target: &TargetKey| {
            target.cluster == *cluster
                && target.app.kind == of.kind
                && of.namespace.as_ref().is_none_or(|namespace| *namespace == target.namespace)
        };
        let looks = self.targets.iter().filter(|(target, _)| within(target));
        looks.map(|(target, look)| (target.clone(), Ok(look.clone()))).collect()
    }
}

impl World {
    fn promoting(&self) -> Promoting {
        let shelf = self.state().promotions.shelf.clone();
        Promoting {
            kind: self.kind_ports(shelf.port(self, CALLS)),
            leaves: Arc::new(self.clone()),
            forge: Arc::new(self.clone()),
            edges: Arc::new(self.clone()),
            freezes: Arc::new(self.clone()),
            renewals: Arc::new(self.clone()),
        }
    }

    /// What Pipelines meet, where the feature is on.
    pub(super) fn promoting_ports(&self) -> Option<Promoting> {
        let on = self.state().promotions.on;
        on.then(|| self.promoting())
    }

    /// A person applies a Pipeline, or changes it; the status stays.
    pub fn apply(&self, object: Object) {
        let promotions = &mut self.state().promotions;
        promotions.on = true;
        promotions.shelf.apply(object);
    }

    /// A person deletes a Pipeline.
    pub fn unapply(&self, id: &PipelineId) {
        self.state().promotions.shelf.remove(id);
    }

    /// The Pipeline of this name in `shop`, as the API server has it.
    pub fn applied(&self, name: &str) -> Option<Object> {
        self.state().promotions.shelf.get(&PipelineId::new("shop", name))
    }

    /// How far the newest promotion into an environment is.
    pub fn phase(&self, name: &str, environment: &str) -> Option<(PromotionSeq, Revision, Phase)> {
        let object = self.applied(name)?;
        let known = object.status.environment(&Environment(environment.to_owned()))?.promotion.clone()?;
        Some((known.seq, known.revision, known.phase))
    }

    /// An app is at this revision, and ready or not.
    pub fn deploy(&self, target: &TargetKey, revision: &str, ready: bool) {
        let unready = (!ready).then(|| "1 of 3 pods are available".to_owned());
        let present = Present {
            uid: format!("{}-{}", target.display_name(), target.app.kind),
            unready,
            revision: Ok(Revision(revision.to_owned())),
        };
        let look = Look { present, twice: false };
        let mut state = self.state();
        let promotions = &mut state.promotions;
        promotions.targets.insert(target.clone(), look.clone());
        let concerns = |cluster: &ClusterKey, of: &Collection| {
            *cluster == target.cluster && of.namespace.as_ref().is_none_or(|namespace| *namespace == target.namespace)
        };
        promotions.leaf_watches.retain(|(cluster, of, out)| {
            !concerns(cluster, of) || out.send(Some(News::Seen(vec![(target.clone(), Ok(look.clone()))]))).is_ok()
        });
    }

    /// The way to a cluster is cut, or mended.
    pub fn cut(&self, cluster: &ClusterKey, down: bool) {
        let mut state = self.state();
        let promotions = &mut state.promotions;
        if down {
            promotions.down.insert(cluster.clone());
        } else {
            promotions.down.remove(cluster);
        }
        let world = self.clone();
        promotions.links.retain(|(of, out)| *of != *cluster || out.send(Some(world.way(cluster, down))).is_ok());
    }

    /// The reader of the Pipelines' watch panics, or that of a cluster's apps.
    pub fn panic_promoting(&self, of_clusters: bool) {
        let mut state = self.state();
        if of_clusters {
            state.promotions.leaf_watches.retain(|(.., out)| out.send(None).is_ok());
        } else {
            state.promotions.shelf.panic();
        }
    }

    fn way(&self, cluster: &ClusterKey, down: bool) -> Link {
        if down {
            return Link::Down(failed("leaf.connect"));
        }
        Link::Up(Arc::new(FakeLeaf { world: self.clone(), cluster: cluster.clone() }))
    }
}

impl Leaves for World {
    fn link(&self, cluster: &ClusterKey) -> Flow<Link> {
        if let Some(Fault::Panic) = self.state().next_planned("leaves.link", &cluster.display_name()) {
            panic!("{SIMULATED} in leaves.link");
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let down = self.state().promotions.down.contains(cluster);
        let _ = sender.send(Some(self.way(cluster, down)));
        self.state().promotions.links.push((cluster.clone(), sender));
        flow(receiver, "the way to a cluster")
    }
}

/// One of the clusters.
struct FakeLeaf {
    world: World,
    cluster: ClusterKey,
}

#[async_trait]
impl Leaf for FakeLeaf {
    fn want(&self, _: &BTreeSet<TargetKey>) {}

    fn watch(&self, of: &Collection) -> Flow<News> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.world.state();
        let seen = state.promotions.news(of, &self.cluster);
        for news in [News::Restarted, News::Seen(seen), News::Synced] {
            let _ = sender.send(Some(news));
        }
        state.promotions.leaf_watches.push((self.cluster.clone(), of.clone(), sender));
        flow(receiver, "a watch of apps")
    }

    async fn read(&self, target: &TargetKey) -> Result<Option<Look>, PortError> {
        let lost = self.world.port("leaf.read", &target.display_name()).await?;
        let mut state = self.world.state();
        let now = state.now();
        state.promotions.reads.push((now, target.clone()));
        let is_down = state.promotions.down.contains(&self.cluster);
        let look = state.promotions.targets.get(target).cloned();
        if lost || is_down { Err(failed("leaf.read")) } else { Ok(look) }
    }
}

#[async_trait]
impl Forge for World {
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError> {
        let lost = self.port("forge.propose", &order.pipeline.to_string()).await?;
        let proposed = {
            let mut state = self.state();
            let requests = &mut state.promotions.requests;
            let of_branch = |known: &Order| known.pipeline == order.pipeline && known.environment == order.environment;
            let newest = requests.values().filter(|(known, _)| of_branch(known)).map(|(known, _)| known.seq).max();
            let number = u64::try_from(requests.len()).unwrap_or_default() + 1;
            let request = |number| Request {
                url: format!("https://git.example.com/pull/{number}"),
                number,
                commit: None,
                lacks: Default::default(),
            };
            match (requests.get(&order.id).map(|(_, state)| state), newest) {
                (Some(RequestState::Open | RequestState::Lacks(_) | RequestState::Held(_)), _) => {
                    Proposed::Open(request(number - 1))
                }
                (Some(RequestState::Merged), _) => Proposed::Merged(request(number - 1)),
                (Some(RequestState::Closed), _) => Proposed::Closed(request(number - 1)),
                (None, Some(newest)) if newest > order.seq => Proposed::Outdated(newest),
                (None, _) => {
                    // The branch has one open request: it is rewritten.
                    requests.retain(|_, (known, state)| !of_branch(known) || *state != RequestState::Open);
                    requests.insert(order.id.clone(), (order.clone(), RequestState::Open));
                    Proposed::Open(request(number))
                }
            }
        };
        if lost { Err(failed("forge.propose")) } else { Ok(proposed) }
    }

    async fn look(&self, order: &Order, _number: u64) -> Result<RequestState, PortError> {
        let lost = self.port("forge.look", &order.pipeline.to_string()).await?;
        let state =
            self.state().promotions.requests.get(&order.id).map_or(RequestState::Closed, |(_, state)| state.clone());
        if lost { Err(failed("forge.look")) } else { Ok(state) }
    }

    async fn withdraw(&self, order: &Order, _number: Option<u64>, _why: &str) -> Result<(), PortError> {
        let lost = self.port("forge.withdraw", &order.pipeline.to_string()).await?;
        for (known, state) in self.state().promotions.requests.values_mut() {
            let of_branch = known.pipeline == order.pipeline && known.environment == order.environment;
            if of_branch && known.seq <= order.seq && *state == RequestState::Open {
                *state = RequestState::Closed;
            }
        }
        if lost { Err(failed("forge.withdraw")) } else { Ok(()) }
    }
}

#[async_trait]
impl Histories for World {
    async fn keep(&self, _: &Owner, _: &[Entry], _: &[Entry]) -> Result<Vec<Figure>, PortError> {
        Ok(Vec::new())
    }
}

impl Calendar for World {
    fn read(&self, _: &[Window], _: &[Freeze]) -> Result<Opening, PortError> {
        Ok(Opening { open: true, changes_after: None, words: "open".to_owned() })
    }
}

#[async_trait]
impl Verdicts for World {
    async fn ask(&self, asking: &Asking) -> Result<Opening, Unanswered> {
        let unanswered = |error: PortError| Unanswered { why: error.to_string(), rest: Duration::from_secs(10) };
        self.port("verdict.ask", &asking.subject.to_string()).await.map_err(unanswered)?;
        Ok(Opening { open: true, changes_after: None, words: "open".to_owned() })
    }
}

#[async_trait]
impl Edges for World {
    async fn are_fresh(&self, _: &Purged, _: &BTreeSet<String>) -> Result<Result<(), Stale>, PortError> {
        self.port("edge.see", "").await?;
        Ok(self.state().promotions.edge.clone().map_or(Ok(()), |why| Err(Stale(why))))
    }
}

/// Nobody freezes the fleet here.
impl FreezeBook for World {
    fn watch(&self) -> Flow<Result<Option<Arc<[PromotionFreeze]>>, PortError>> {
        use futures_util::StreamExt;
        Box::pin(futures_util::stream::iter([Ok(Some(Arc::default()))]).chain(futures_util::stream::pending()))
    }
}

/// Nobody renews a Secret here.
impl Renewals for World {
    fn changes(&self, _: &str, _: &str) -> Flow<()> {
        Box::pin(futures_util::stream::pending())
    }
}

/// What the promotions of one Pipeline ended as, by environment: how often each.
pub fn outcomes(object: &Object) -> BTreeMap<(Environment, PromotionSeq), Phase> {
    object.status.history.iter().map(|ended| ((ended.environment.clone(), ended.seq), ended.outcome)).collect()
}

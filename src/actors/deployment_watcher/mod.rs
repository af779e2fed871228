//! Watches the workloads of this cluster, compares each sight with the ledger, and keeps a rollout actor for every one that
//! needs attention.
//!
//! Events only say "look again": nothing is decided from the difference of two. So a restart never looks like a rollout, and
//! a change made while we were down is found. What a sight asks for is decided by `domain::rollout::attention`.

mod baselines;
mod children;
mod lives;
mod restored;
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, StreamHandler};
use actix::{ResponseActFuture, WrapFuture};
use futures_util::future::join_all;

use crate::actors::directory::{Directory, PeersRestarted};
use crate::actors::lifecycle::{Collar, Leash, Obituary};
use crate::actors::message::{Drain, End, FollowPods, Observe, Sighted};
use crate::actors::observation::Observation;
use crate::actors::pod_watcher::PodWatcher;
use crate::actors::rollout::RolloutActor;
use crate::actors::troubles::Troubles;
use crate::actors::{MAILBOX_MAX, Surroundings};
use domain::budget::Budget;
use domain::id::{Origin, Seq, WorkloadId};
use domain::listed::{Listed, Scope};
use domain::lives::Lives;
use domain::ports::{Ledgered, Sight};
use domain::record::Record;
use domain::rollout::{Arrival, Attention, Summary, attention, unusable};
use domain::unwell;
use domain::workload::Workload;

/// How often children are looked over: a death notice can be lost on a full mailbox, a sight on a full child.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How often the end of the children is looked for while draining.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// A workload with a rollout actor.
struct Child {
    addr: Addr<RolloutActor>,
    /// The newest sight, kept so that one that came too late for the actor is not lost; `None` for "gone".
    latest: Option<Box<Workload>>,
    /// What the sight that asked for it made of a workload without a record.
    arrival: Arrival,
    /// The child's mailbox was full: the newest sight is sent again.
    lagging: bool,
    /// Its mailbox was full when peers were rebuilt: where they are is told again.
    astray: bool,
}

/// A workload that wants a rollout actor and has none yet.
struct Aside {
    /// The newest sight; `None` for "gone".
    latest: Option<Box<Workload>>,
    arrival: Arrival,
    /// It is left alone for a while, and somebody was told; otherwise it only waits for a note to be stored.
    told: bool,
}

/// The actor. See the module's text.
pub struct DeploymentWatcher {
    surroundings: Surroundings,
    directory: Directory,
    collar: Collar,
    obituary: Obituary,
    leash: Leash,
    origin: Origin,
    records: BTreeMap<WorkloadId, Record>,
    children: BTreeMap<WorkloadId, Child>,
    budgets: BTreeMap<WorkloadId, Budget>,
    aside: BTreeMap<WorkloadId, Aside>,
    lives: Lives,
    /// Where a workload without a record is new.
    listed: Listed,
    /// Scopes listed in this life, while the ledger does not say so yet.
    unnoted: BTreeSet<Scope>,
    pods: BTreeMap<String, Addr<PodWatcher>>,
    /// For each scope being listed, the workloads seen since its listing began.
    listings: BTreeMap<Option<String>, BTreeSet<WorkloadId>>,
    /// Baselines found by the listing under way, to be written together; their numbers are set when they are.
    baselines: BTreeMap<WorkloadId, Record>,
    /// Baselines being written.
    writing: BTreeSet<WorkloadId>,
    /// Sights of those that came meanwhile; `None` for "gone".
    overtaken: BTreeMap<WorkloadId, Option<Box<Workload>>>,
    synced: bool,
    /// The highest number of a record that this life has removed.
    removed: Option<Seq>,
    /// The highest number this life had seen when the cluster was last set back. Nothing new is counted from below it.
    spent: Seq,
    /// Workloads whose record is to be compared with the ledger since then.
    fallen: BTreeSet<WorkloadId>,
    troubles: Troubles,
    /// Workloads whose record cannot be read, and why. They are left alone: starting one afresh would forget its purges.
    barred: BTreeMap<WorkloadId, String>,
    recent: Vec<Summary>,
    draining: bool,
}

impl DeploymentWatcher {
    /// A watcher that knows what the ledger holds, and what became of the lives before this one.
    pub fn new(
        surroundings: Surroundings,
        directory: Directory,
        ledgered: Ledgered,
        lives: Lives,
        collar: Collar,
        obituary: Obituary,
    ) -> Self {
        let Ledgered { origin, records, unreadable, pin: _, listed, life: _ } = ledgered;
        Self {
            surroundings,
            directory,
            leash: Leash::under(collar.clone()),
            collar,
            obituary,
            origin,
            records,
            children: BTreeMap::new(),
            budgets: BTreeMap::new(),
            aside: BTreeMap::new(),
            lives,
            listed,
            unnoted: BTreeSet::new(),
            pods: BTreeMap::new(),
            listings: BTreeMap::new(),
            baselines: BTreeMap::new(),
            writing: BTreeSet::new(),
            overtaken: BTreeMap::new(),
            synced: false,
            removed: None,
            spent: Seq::default(),
            fallen: BTreeSet::new(),
            troubles: Troubles::default(),
            barred: unreadable,
            recent: Vec::new(),
            draining: false,
        }
    }

    fn seen(&mut self, workload: Box<Workload>, ctx: &mut Context<Self>) {
        let id = workload.id.clone();
        self.note_listed(&id);
        // One with a rollout actor is followed by it, and its record says what is wrong.
        match unusable(self.records.get(&id), &workload).filter(|_| !self.children.contains_key(&id)) {
            Some(why) => self.troubles.unreadable(self.surroundings.ports.clock.now(), &id, why),
            None => self.troubles.readable(&id),
        }
        if !self.barred.contains_key(&id) {
            self.attend(&id, Some(workload), ctx);
        }
    }

    /// Remembers that the listing under way, if there is one, contains this workload.
    fn note_listed(&mut self, id: &WorkloadId) {
        for (scope, seen) in &mut self.listings {
            if scope.as_ref().is_none_or(|namespace| *namespace == id.namespace) {
                seen.insert(id.clone());
            }
        }
    }

    /// Passes a sight on to the actor or the list that it concerns.
    fn attend(&mut self, id: &WorkloadId, sight: Option<Box<Workload>>, ctx: &mut Context<Self>) {
        if let Some(child) = self.children.get_mut(id) {
            child.latest.clone_from(&sight);
            child.lagging = child.addr.try_send(Sighted(sight)).is_err();
            return;
        }
        if let Some(aside) = self.aside.get_mut(id) {
            aside.latest = sight;
            return;
        }
        if self.writing.contains(id) {
            self.overtaken.insert(id.clone(), sight);
            return;
        }
        let policy = &self.surroundings.settings.policy;
        if let (Some(workload), Some(pending)) = (&sight, self.baselines.get(id)) {
            // What it was at first sight is written first, and then this is judged in its light.
            let news = attention(Some(pending), workload, true, policy) != Attention::Idle;
            if news || self.overtaken.contains_key(id) {
                self.overtaken.insert(id.clone(), sight);
            }
            return;
        }
        let listed = self.listed.covers(id);
        match sight.as_ref().map(|workload| attention(self.records.get(id), workload, listed, policy)) {
            Some(Attention::Idle) => {}
            Some(Attention::Baseline(record)) => {
                // The sight is not kept: ten thousand of them are more than all the rest of the process.
                self.baselines.insert(id.clone(), *record);
                if self.listings.is_empty() {
                    self.write_baselines(ctx);
                }
            }
            Some(Attention::Rollout) => {
                let arrival = sight.as_ref().map_or(Arrival::New, |workload| Arrival::of(workload, listed));
                self.start(id, sight, arrival, ctx);
            }
            // A baseline whose write failed may have been written after all.
            None if self.baselines.remove(id).is_some() || self.records.contains_key(id) => {
                self.overtaken.remove(id);
                self.start(id, None, Arrival::New, ctx);
            }
            None => {}
        }
    }

    /// The listing of a scope is complete: what of it was not contained is gone.
    fn listed(&mut self, scope: &Option<String>, all: bool, ctx: &mut Context<Self>) {
        self.synced |= all;
        self.troubles.watch_works(self.surroundings.ports.clock.now(), scope);
        if let Some(seen) = self.listings.remove(scope) {
            let within = |id: &&WorkloadId| scope.as_ref().is_none_or(|namespace| *namespace == id.namespace);
            let gone = self.records.keys().chain(self.children.keys()).filter(within).filter(|id| !seen.contains(id));
            for id in gone.cloned().collect::<BTreeSet<_>>() {
                self.attend(&id, None, ctx);
            }
            let scope = Scope::of(scope.as_deref());
            if !self.listed.is_whole(&scope) {
                self.listed.add(scope.clone());
                self.unnoted.insert(scope);
            }
        }
        self.write_baselines(ctx);
        self.note_listed_scopes(ctx);
        self.count();
    }

    /// Finds children whose death notice or whose newest sight was lost, and baselines that could not be written.
    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let dead: Vec<WorkloadId> =
            self.children.iter().filter(|(_, child)| !child.addr.connected()).map(|(id, _)| id.clone()).collect();
        for id in dead {
            self.bury(&id, End::Crashed, ctx);
        }
        for child in self.children.values_mut().filter(|child| child.lagging) {
            child.lagging = child.addr.try_send(Sighted(child.latest.clone())).is_err();
        }
        for child in self.children.values_mut().filter(|child| child.astray) {
            child.astray = child.addr.try_send(PeersRestarted(self.directory.clone())).is_err();
        }
        if self.listings.is_empty() && !self.draining {
            self.write_baselines(ctx);
            self.note_listed_scopes(ctx);
            self.look_into_fallen(ctx);
        }
        if !self.draining {
            self.look_after_lives(ctx);
        }
        // A few nanoseconds for each record.
        self.surroundings.metrics.unwell(self.records.values().filter_map(unwell::reason));
        self.count();
    }

    /// Workloads that are left alone for a while.
    fn left_alone(&self) -> impl Iterator<Item = &WorkloadId> {
        self.aside.iter().filter(|(_, aside)| aside.told).map(|(id, _)| id)
    }

    fn blind(&self) -> Option<String> {
        self.troubles.blind(self.surroundings.ports.clock.now())
    }

    fn count(&self) {
        self.surroundings.metrics.blind(!self.synced || self.blind().is_some());
        self.surroundings.metrics.workloads(self.records.len(), self.children.len(), self.left_alone().count());
    }
}

impl Actor for DeploymentWatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.collar.clone().bind(self, ctx);
        ctx.add_stream(self.surroundings.ports.cluster.watch());
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl StreamHandler<Sight> for DeploymentWatcher {
    fn handle(&mut self, sight: Sight, ctx: &mut Self::Context) {
        match sight {
            Sight::Restarted { scope } => {
                self.surroundings.metrics.relist();
                self.listings.insert(scope, BTreeSet::new());
            }
            Sight::Seen(workload) => self.seen(workload, ctx),
            Sight::Unreadable(id, why) => {
                self.note_listed(&id);
                self.surroundings.metrics.failure("decode_workload");
                self.troubles.unreadable(self.surroundings.ports.clock.now(), &id, why);
            }
            Sight::Gone(id) => {
                self.troubles.readable(&id);
                self.troubles.stored(&id);
                self.attend(&id, None, ctx);
            }
            Sight::Synced { scope, all } => self.listed(&scope, all, ctx),
            Sight::Trouble { scope, error } => {
                self.surroundings.metrics.failure("watch_workloads");
                let now = self.surroundings.ports.clock.now();
                self.troubles.watch_failed(now, scope, &error);
                self.count();
            }
            Sight::SetBack { from, to } => self.set_back(from, to, ctx),
        }
    }

    /// A watch never ends by itself; without one there is nothing to do here but to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<FollowPods> for DeploymentWatcher {
    type Result = ();

    /// Passes it on to the watcher of the namespace, which lives as long as somebody follows.
    fn handle(&mut self, follow: FollowPods, _ctx: &mut Self::Context) {
        self.pods.retain(|_, watcher| watcher.connected());
        let namespace = follow.workload.namespace.clone();
        match self.pods.get(&namespace) {
            // A watcher that is full or just ending costs this rollout the names of its troubled pods, and no more.
            Some(watcher) => drop(watcher.try_send(follow)),
            None => {
                let watcher = PodWatcher::new(self.surroundings.clone(), follow, self.leash.collar());
                self.pods.insert(namespace, watcher.start());
            }
        }
    }
}

impl Handler<PeersRestarted> for DeploymentWatcher {
    type Result = ();

    fn handle(&mut self, message: PeersRestarted, _ctx: &mut Self::Context) {
        self.directory = message.0.clone();
        for child in self.children.values_mut() {
            child.astray = child.addr.try_send(message.clone()).is_err();
            if child.astray {
                self.surroundings.metrics.overflow("rollout");
            }
        }
    }
}

impl Handler<Drain> for DeploymentWatcher {
    type Result = ResponseActFuture<Self, ()>;

    /// Answers when every child has ended: nothing is being written any more.
    fn handle(&mut self, drain: Drain, _ctx: &mut Self::Context) -> Self::Result {
        self.draining = true;
        let children: Vec<Addr<RolloutActor>> = self.children.values().map(|child| child.addr.clone()).collect();
        let ended = async move {
            join_all(children.iter().map(|child| child.send(drain))).await;
            // A child that is writing ends after its write. The sender of this message waits with a bound of its own.
            while children.iter().any(Addr::connected) {
                tokio::time::sleep(DRAIN_POLL).await;
            }
        };
        let closed = ended.into_actor(self).then(|(), actor, _| actor.close_life().into_actor(actor));
        Box::pin(closed.map(|(), actor, ctx| {
            actor.obituary.end = End::Drained;
            ctx.stop();
        }))
    }
}

impl Handler<Observe> for DeploymentWatcher {
    type Result = ResponseActFuture<Self, Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let children: Vec<_> = self.children.values().map(|child| child.addr.send(observe)).collect();
        let barred = self.barred.iter().map(|(id, why)| format!("the record of {} cannot be read: {why}", id.spoken()));
        let own = Observation {
            synced: self.synced,
            blind: self.blind(),
            troubles: self.troubles.words().chain(barred).collect(),
            workloads: self.records.len(),
            recent: self.recent.clone(),
            quarantined: self.left_alone().cloned().collect(),
            unwell: self.records.iter().filter_map(|(id, record)| unwell::unwell(id, record)).collect(),
            ..Observation::default()
        };
        Box::pin(join_all(children).into_actor(self).map(move |seen, _, _| {
            let mut all = own;
            seen.into_iter().flatten().for_each(|observation| all.absorb(observation));
            all
        }))
    }
}

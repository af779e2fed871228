//! The rollout actors, and the watchers of their pods.

use actix::dev::ToEnvelope;
use actix::{Actor, AsyncContext, Context, Handler, Message};

use super::DeploymentWatcher;
use crate::actors::directory::PeersRestarted;
use crate::actors::lifecycle::Obituary;
use crate::actors::message::{Died, End, FollowPods, ResendDeliveries, RetryPurges, Wanted, Who};
use crate::actors::pod_watcher::PodWatcher;
use crate::actors::rollout::{self, RolloutActor};
use crate::actors::shell::Drives;
use kernel::id::WorkloadId;
use kernel::watches::watch::{Case, Event, Start};
use purge::deployments::Deployments;
use purge::workloads::workload::Asks;

impl DeploymentWatcher {
    /// Finds children whose death notice was lost, and lets the machine try again what failed.
    pub(super) fn sweep(&mut self, ctx: &mut Context<Self>) {
        let dead = self.children.iter().filter(|(_, child)| !child.connected()).map(|(id, _)| id.clone());
        for id in dead.collect::<Vec<_>>() {
            self.died(id, End::Crashed, ctx);
        }
        self.feed(Event::Swept, ctx);
        self.hand_over_requests();
        self.tell_kinds();
        self.look_for_baselines();
        self.follow_traffic(ctx);
        // A few nanoseconds for each record.
        self.count_unwell();
        self.count();
    }

    /// Starts a rollout actor.
    pub(super) fn start(&mut self, start: Start<Deployments>, ctx: &mut Context<Self>) {
        let Start { id, case: Case { latest, arrival }, known, spent, forgotten } = start;
        let (workload, origin) = (id.clone(), self.origin.clone());
        let child = RolloutActor::new(
            rollout::Start { workload, origin, sight: latest, arrival, known, spent, forgotten },
            self.env.clone(),
            self.directory.clone(),
            rollout::Parent { pods: ctx.address().recipient(), moves: ctx.address().recipient() },
            self.stop_signal.listener(),
            Obituary::new(ctx.address().recipient(), Who::Rollout(id.clone())),
        );
        self.children.insert(id, child.start());
        self.count();
    }

    /// Sends a child something. Says whether its mailbox had room.
    pub(super) fn reach<M>(&self, id: &WorkloadId, message: M) -> bool
    where
        M: Message<Result = ()> + Send + 'static,
        RolloutActor: Handler<M>,
        Context<RolloutActor>: ToEnvelope<RolloutActor, M>,
    {
        self.children.get(id).is_some_and(|child| child.try_send(message).is_ok())
    }

    /// A child may be dead; the notice may also be about an earlier child.
    pub(super) fn died(&mut self, id: WorkloadId, end: End, ctx: &mut Context<Self>) {
        if self.children.get(&id).is_none_or(|child| child.connected()) {
            return;
        }
        self.children.remove(&id);
        match &end {
            End::Crashed => self.env.metrics.restart("rollout"),
            End::Finished(Some(record)) => self.remember(&id, record),
            End::Finished(None) | End::Overdrawn | End::Drained => {}
        }
        let before = self.watch().records().get(&id).cloned();
        let finished = matches!(end, End::Finished(_));
        self.feed(Event::Died(id.clone(), end), ctx);
        if finished {
            self.note_end(id, before.as_deref());
        }
        self.count();
    }
}

impl Handler<Died> for DeploymentWatcher {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        match who {
            Who::Rollout(id) => self.died(id, end, ctx),
            Who::Singleton(_) | Who::Part(_) | Who::Pipeline(_) | Who::Repo(_) | Who::Cluster(_) => {}
        }
    }
}

impl DeploymentWatcher {
    /// Takes in what the owner of a workload asks for.
    pub(super) fn note_requests(&mut self, id: &WorkloadId, asks: &Asks) {
        self.resends.seen(id, asks.resend.as_ref());
        self.retries.seen(id, asks.retry_at.as_ref());
        self.hand_over_requests();
    }

    /// Gives the outbox what owners ask to be sent again, and the invalidator what they ask to be tried again. What finds a mailbox full
    /// waits for the next sweep.
    pub(super) fn hand_over_requests(&mut self) {
        let (outbox, invalidator) = (&self.directory.outbox.resend, &self.directory.retry);
        self.resends
            .hand_over(|id, request| outbox.try_send(ResendDeliveries(id.clone().into(), request.clone())).is_ok());
        self.retries.hand_over(|id, _| invalidator.try_send(RetryPurges(id.clone())).is_ok());
    }
}

impl Handler<Wanted> for DeploymentWatcher {
    type Result = ();

    /// If no rollout can start now, the broker asks again.
    fn handle(&mut self, Wanted(id): Wanted, ctx: &mut Self::Context) {
        self.feed(Event::Wanted(id), ctx);
    }
}

impl Handler<PeersRestarted> for DeploymentWatcher {
    type Result = ();

    fn handle(&mut self, message: PeersRestarted, ctx: &mut Self::Context) {
        self.directory = message.0;
        // An invalidator that was rebuilt tries everything at once.
        self.resends.rebuilt();
        self.feed(Event::PeersRebuilt, ctx);
        for _ in self.watch().nursery().needing_peers() {
            self.env.metrics.overflow("rollout");
        }
    }
}

impl Handler<FollowPods> for DeploymentWatcher {
    type Result = ();

    /// Passes it to the watcher of the namespace, which lives as long as it has followers.
    fn handle(&mut self, follow: FollowPods, _ctx: &mut Self::Context) {
        self.pods.retain(|_, watcher| watcher.connected());
        let namespace = follow.workload.namespace.clone();
        match self.pods.get(&namespace) {
            // If the watcher is full or just ending, this rollout only misses the names of its troubled pods.
            Some(watcher) => drop(watcher.try_send(follow)),
            None => {
                let watcher = PodWatcher::new(self.env.clone(), follow, self.stop_signal.listener());
                self.pods.insert(namespace, watcher.start());
            }
        }
    }
}

//! What the watcher of traffic reads of the records, writes into them, and asks of rollouts.

use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, MessageResult, ResponseActFuture, WrapFuture,
};

use super::DeploymentWatcher;
use crate::actors::message::Show;
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use crate::actors::traffic::{AskToPurge, KeepLeads, MoveTaken, Remembered, Rerouted, RolloutEnded, TrafficMoved};
use crate::actors::traffic_watcher::{Parent, TrafficWatcher};
use kernel::id::WorkloadId;
use kernel::watches::watch::Event;
use purge::ports::StoreError;
use purge::records::record::{Record, Records};
use purge::traffic::Was;

fn namespaces(records: &Records) -> Vec<String> {
    let mut all: Vec<String> = records.keys().map(|id| id.namespace.clone()).collect();
    all.sort();
    all.dedup();
    all
}

impl DeploymentWatcher {
    /// Starts the watcher of traffic where it is wanted and there is none.
    pub(super) fn follow_traffic(&mut self, ctx: &mut Context<Self>) {
        let is_there = self.traffic.as_ref().is_some_and(Addr::connected);
        if is_there || !self.env.settings.follows_traffic {
            return;
        }
        if self.traffic.is_some() {
            self.env.metrics.restart("traffic_watcher");
        }
        let (remembered, keep, ask) = (ctx.address().recipient(), ctx.address().recipient(), ctx.address().recipient());
        let parent = Parent { remembered, keep, ask };
        let begin_with = namespaces(self.watch().records());
        let watcher = TrafficWatcher::new(self.env.clone(), self.stop_signal.listener(), parent, begin_with);
        self.traffic = Some(watcher.start());
    }

    /// Records were made of workloads that were seen for the first time.
    pub(super) fn note_first_records(&self, written: &Records) {
        if let Some(traffic) = self.traffic.as_ref().filter(|_| !written.is_empty()) {
            send_even_if_full(&traffic.clone().recipient(), Rerouted(namespaces(written)));
        }
    }

    /// A rollout has ended, and this was the record before it: what leads to its workload may be other than its record says, and the
    /// record may be gone.
    pub(super) fn note_end(&self, workload: WorkloadId, before: Option<&Record>) {
        let Some(traffic) = &self.traffic else { return };
        let record = self.watch().records().get(&workload);
        // One that was new may have served from its first pod on.
        let departed = record.is_none().then(|| before.map_or_else(Was::unknown, Was::of).into());
        let moved = record.and_then(|record| record.moved.as_ref()).map(|moved| moved.token.clone());
        send_even_if_full(&traffic.clone().recipient(), RolloutEnded { workload, moved, departed });
    }
}

impl Handler<Remembered> for DeploymentWatcher {
    type Result = MessageResult<Remembered>;

    fn handle(&mut self, Remembered { namespace }: Remembered, _ctx: &mut Self::Context) -> Self::Result {
        let records = self.watch().records().iter();
        let about = records.filter(|(id, record)| id.namespace == namespace || !record.leads.is_empty());
        let about: Records = about.map(|(id, record)| (id.clone(), Arc::clone(record))).collect();
        // Its rollout has a newer record, and may have served what this one does not say.
        let in_flight = about.keys().filter(|id| self.children.contains_key(*id)).cloned().collect();
        MessageResult((about, in_flight))
    }
}

impl Handler<AskToPurge> for DeploymentWatcher {
    type Result = ();

    /// Where no rollout can start now, or its mailbox is full, it is asked again.
    fn handle(&mut self, AskToPurge { workload, moved, leads }: AskToPurge, ctx: &mut Self::Context) {
        if !self.children.contains_key(&workload) {
            self.feed(Event::Wanted(workload.clone()), ctx);
        }
        let words = moved.words.clone();
        if self.reach(&workload, TrafficMoved(moved, leads)) {
            tracing::info!(workload = %workload.display_name(), "{words}");
        }
    }
}

impl Handler<KeepLeads> for DeploymentWatcher {
    type Result = ResponseActFuture<Self, <KeepLeads as actix::Message>::Result>;

    /// Writes into the records of workloads at rest, in few writes; a rollout writes its own.
    fn handle(&mut self, KeepLeads(mut all): KeepLeads, _ctx: &mut Self::Context) -> Self::Result {
        all.retain(|id, _| !self.watch().nursery().sees_to(id));
        let records = self.watch().records();
        let changed = all.into_iter().filter_map(|(id, leads)| {
            let record = records.get(&id)?;
            let revision = record.revision.saturating_add(1);
            Some((id, Arc::new(Record { leads, revision, ..Record::clone(record) })))
        });
        let changed: Records = changed.collect();
        let ledger = self.env.ports.ledger.clone();
        let writing = async move { (ledger.store_all(&changed).await, changed) };
        Box::pin(writing.into_actor(self).map(|(failed, mut written), actor, ctx| {
            written.retain(|id, _| !failed.contains_key(id));
            for (id, error) in failed {
                actor.env.metrics.failure("store_traffic");
                tracing::debug!(%error, "what leads to a workload could not be written; trying again");
                if let StoreError::Conflict(Some(current)) = error {
                    written.insert(id, (*current).into());
                }
            }
            if actor.directory.show.try_send(Show(written.clone())).is_err() {
                actor.env.metrics.overflow("cluster_group");
            }
            let leads = written.iter().map(|(id, record)| (id.clone(), record.leads.clone())).collect();
            actor.feed(Event::Rewritten(written), ctx);
            leads
        }))
    }
}

impl Handler<MoveTaken> for DeploymentWatcher {
    type Result = ();

    fn handle(&mut self, taken: MoveTaken, _ctx: &mut Self::Context) {
        // Where its mailbox is full, it asks again.
        let _ = self.traffic.as_ref().map(|traffic| traffic.try_send(taken));
    }
}

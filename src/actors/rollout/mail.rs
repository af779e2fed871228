//! The messages to a rollout: each is an event of its machine.

use actix::{Handler, MessageResult};

use super::RolloutActor;
use crate::actors::directory::PeersRestarted;
use crate::actors::looks::EdgeAnswered;
use crate::actors::message::{Drain, End, Observe, PodsReported, PurgeReported, Sighted, ViewReported};
use crate::actors::observation::Observation;
use crate::actors::traffic::TrafficMoved;
use purge::rollouts::rollout::{Event, Summary};

impl Handler<Sighted> for RolloutActor {
    type Result = ();

    fn handle(&mut self, Sighted(workload): Sighted, ctx: &mut Self::Context) {
        if self.shell.is_some() {
            self.feed_unless_draining(workload.map_or(Event::Missed, Event::Seen), ctx);
        } else {
            self.start.sight = workload;
        }
    }
}

impl Handler<TrafficMoved> for RolloutActor {
    type Result = ();

    fn handle(&mut self, TrafficMoved(moved, leads): TrafficMoved, ctx: &mut Self::Context) {
        self.moved = Some(TrafficMoved(moved.clone(), leads.clone()));
        let Some(shell) = &self.shell else { return };
        match shell.machine().durable().filter(|durable| durable.moved.as_ref().is_some_and(|last| last.is(&moved))) {
            Some(durable) => self.tell_move_taken(durable),
            None => self.feed_unless_draining(Event::Moved(moved, leads), ctx),
        }
    }
}

impl Handler<PodsReported> for RolloutActor {
    type Result = ();

    fn handle(&mut self, PodsReported(pods): PodsReported, ctx: &mut Self::Context) {
        self.feed_unless_draining(pods.map_or(Event::PodsUnseen, Event::PodsSeen), ctx);
    }
}

impl Handler<ViewReported> for RolloutActor {
    type Result = ();

    fn handle(&mut self, ViewReported(view): ViewReported, ctx: &mut Self::Context) {
        self.feed_unless_draining(Event::ViewChanged(view), ctx);
    }
}

impl Handler<PurgeReported> for RolloutActor {
    type Result = ();

    fn handle(&mut self, PurgeReported(reference, progress): PurgeReported, ctx: &mut Self::Context) {
        self.feed_unless_draining(Event::Purged(reference, progress), ctx);
    }
}

impl Handler<EdgeAnswered> for RolloutActor {
    type Result = ();

    fn handle(&mut self, EdgeAnswered(reference, id, answers): EdgeAnswered, ctx: &mut Self::Context) {
        self.feed_unless_draining(Event::EdgeAnswered(reference, id, answers), ctx);
    }
}

impl Handler<PeersRestarted> for RolloutActor {
    type Result = ();

    fn handle(&mut self, PeersRestarted(directory): PeersRestarted, ctx: &mut Self::Context) {
        self.directory = directory;
        self.feed_unless_draining(Event::PeersRestarted, ctx);
        self.publish_again(ctx);
    }
}

impl Handler<Drain> for RolloutActor {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.draining = true;
        if !self.storing.is_under_way() {
            self.end(End::Drained, ctx);
        }
    }
}

impl Handler<Observe> for RolloutActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let summary = match &self.shell {
            Some(shell) => shell.machine().summary(shell.now()),
            None => Some(Summary::unknown(&self.start.workload, self.loading.borrow().clone())),
        };
        let troubles = self.storing.trouble(&self.start.workload).into_iter().collect();
        let unwell = self.counted.unwell().cloned().into_iter().collect();
        MessageResult(Observation {
            rollouts: summary.into_iter().collect(),
            troubles,
            unwell,
            ..Observation::default()
        })
    }
}

//! The messages to a Pipeline: each is an event of its machine.

use actix::{Handler, MessageResult};

use super::PipelineActor;
use crate::actors::lifecycle::GiveWay;
use crate::actors::message::Observe;
use crate::actors::object_watcher::{ObjectSeen, PeersRebuilt};
use crate::actors::observation::{Observation, PromotingSeen};
use crate::actors::promoting::message::{Peers, Reported};
use crate::actors::shell::Drives;
use domain::pipeline::Event;
use domain::pipeline::spec::Object;
use domain::pipeline::view::view;

impl Handler<ObjectSeen<Object>> for PipelineActor {
    type Result = ();

    fn handle(&mut self, ObjectSeen(object): ObjectSeen<Object>, ctx: &mut Self::Context) {
        self.feed(object.map_or(Event::Missed, Event::Seen), ctx);
    }
}

impl Handler<GiveWay> for PipelineActor {
    type Result = ();

    fn handle(&mut self, GiveWay: GiveWay, ctx: &mut Self::Context) {
        self.end(ctx);
    }
}

impl Handler<Reported> for PipelineActor {
    type Result = ();

    fn handle(&mut self, Reported(sights): Reported, ctx: &mut Self::Context) {
        self.feed(Event::Reported(sights.into_iter().collect()), ctx);
        self.count_targets();
    }
}

impl Handler<PeersRebuilt<Peers>> for PipelineActor {
    type Result = ();

    fn handle(&mut self, PeersRebuilt(peers): PeersRebuilt<Peers>, ctx: &mut Self::Context) {
        self.peers = peers;
        self.feed(Event::PeersRestarted, ctx);
    }
}

impl Handler<Observe> for PipelineActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let machine = self.shell.machine();
        let trouble =
            machine.trouble().map(|why| format!("the status of {} cannot be written: {why}", machine.object().id));
        let promoting = PromotingSeen {
            pipelines: vec![view(machine.object(), machine.durable(), Some(machine.sights()))],
            troubles: trouble.into_iter().collect(),
            ..PromotingSeen::default()
        };
        MessageResult(Observation { promoting: Some(promoting), ..Observation::default() })
    }
}

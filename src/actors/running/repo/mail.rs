//! The messages to a Repo: each is an event of its machine.

use actix::{Handler, MessageResult, Recipient};

use super::RepoActor;
use crate::actors::lifecycle::GiveWay;
use crate::actors::message::{Observe, TellNotice};
use crate::actors::object_watcher::{ObjectSeen, PeersRebuilt};
use crate::actors::observation::{Observation, RunningSeen};
use crate::actors::shell::Drives;
use domain::repo::Event;
use domain::repo::spec::Object;
use domain::repo::view::view;

impl Handler<ObjectSeen<Object>> for RepoActor {
    type Result = ();

    fn handle(&mut self, ObjectSeen(object): ObjectSeen<Object>, ctx: &mut Self::Context) {
        self.feed(object.map_or(Event::Missed, Event::Seen), ctx);
    }
}

impl Handler<GiveWay> for RepoActor {
    type Result = ();

    fn handle(&mut self, GiveWay: GiveWay, ctx: &mut Self::Context) {
        self.end(ctx);
    }
}

impl Handler<PeersRebuilt<Recipient<TellNotice>>> for RepoActor {
    type Result = ();

    fn handle(&mut self, PeersRebuilt(tell_notice): PeersRebuilt<Recipient<TellNotice>>, ctx: &mut Self::Context) {
        self.tell_notice = tell_notice;
        self.tick(ctx);
    }
}

impl Handler<Observe> for RepoActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let machine = self.shell.machine();
        let trouble =
            machine.trouble().map(|why| format!("the status of {} cannot be written: {why}", machine.object().id));
        let running = RunningSeen {
            repos: vec![view(machine.object(), machine.durable())],
            troubles: trouble.into_iter().collect(),
        };
        MessageResult(Observation { running: Some(running), ..Observation::default() })
    }
}

//! What a reader hears: from its cluster, and from those that want to know.

use actix::{ActorContext, Handler, MessageResult, StreamHandler};

use super::{LeafActor, Told};
use crate::actors::lifecycle::GiveWay;
use crate::actors::message::Observe;
use crate::actors::observation::{LeafSeen, Observation, PromotingSeen};
use crate::actors::promoting::message::{Follow, LookAt};
use crate::actors::shell::Drives;
use objects::apps::leaf::{Event, News};
use objects::ports::pipeline::Link;

impl StreamHandler<Link> for LeafActor {
    fn handle(&mut self, link: Link, ctx: &mut Self::Context) {
        match link {
            Link::Up(leaf) => {
                self.leaf = Some(leaf);
                self.hear(Event::Linked, ctx);
            }
            Link::Down(error) => self.unlink(&error, ctx),
        }
    }

    /// It never ends by itself; without it, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl StreamHandler<Told> for LeafActor {
    fn handle(&mut self, Told(number, news): Told, ctx: &mut Self::Context) {
        if matches!(news, News::Trouble(_)) {
            self.env.metrics.failure("watch_targets");
        }
        self.hear(Event::Told(number, news), ctx);
    }

    /// See the other one.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Follow> for LeafActor {
    type Result = ();

    fn handle(&mut self, Follow { owner, targets }: Follow, ctx: &mut Self::Context) {
        let id = owner.id.clone();
        if targets.is_empty() {
            self.owners.remove(&id);
        } else {
            self.owners.insert(id.clone(), owner);
        }
        self.hear(Event::Wanted(id, targets), ctx);
    }
}

impl Handler<GiveWay> for LeafActor {
    type Result = ();

    fn handle(&mut self, GiveWay: GiveWay, ctx: &mut Self::Context) {
        self.end(ctx);
    }
}

impl Handler<LookAt> for LeafActor {
    type Result = ();

    fn handle(&mut self, LookAt { owner, ticket, targets }: LookAt, ctx: &mut Self::Context) {
        self.feed(Event::LookedFor(owner, ticket, targets), ctx);
    }
}

impl Handler<Observe> for LeafActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let machine = self.shell.machine();
        let own =
            LeafSeen { name: self.cluster.display_name(), watches: machine.watches(), troubles: machine.troubles() };
        let promoting = PromotingSeen { leaves: vec![own], ..PromotingSeen::default() };
        MessageResult(Observation { promoting: Some(promoting), ..Observation::default() })
    }
}

//! Publishes a notice: as an Event, and to the webhooks.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::RolloutActor;
use crate::actors::shell::Drives;
use notices::notice::Notice;
use purge::rollouts::rollout::Event;

impl RolloutActor {
    pub(super) fn tell(&mut self, notice: Box<Notice>, ctx: &mut Context<Self>) {
        let errand = self.errands.begin(&notice.id);
        if errand.first {
            self.env.metrics.notice(&notice);
            let fresh = self.stopwatch.hear(&notice);
            fresh.into_iter().for_each(|after| self.env.metrics.edge.fresh(after));
            self.env.metrics.chronicle.note(&notice, self.env.ports.clock.wall_ms());
        }
        let (env, tell_notice) = (self.env.clone(), self.directory.outbox.tell.clone());
        let uid = self.shell.as_ref().and_then(|shell| shell.machine().durable()).map(|record| record.uid.clone());
        let id = notice.id.clone();
        let told = async move { env.carry(errand, notice, uid.as_deref().unwrap_or_default(), &tell_notice).await };
        ctx.spawn(told.into_actor(self).map(move |(event, handed), actor, ctx| {
            let event = match actor.errands.end(&id, event, handed) {
                None => Event::Told(id),
                Some(why) => Event::TellFailed(id, why),
            };
            actor.feed(event, ctx);
        }));
    }
}

//! Publishes a notice: as an Event, and to the webhooks.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::RolloutActor;
use crate::actors::ANSWER_WITHIN;
use crate::actors::message::TellNotice;
use crate::actors::shell::Drives;
use domain::delivery::Publication;
use domain::notice::Notice;
use domain::ports::Retry;
use domain::rollout::Event;

impl RolloutActor {
    pub(super) fn tell(&mut self, notice: Box<Notice>, ctx: &mut Context<Self>) {
        let errand = self.errands.begin(&notice.id);
        if errand.first {
            self.env.metrics.notice(&notice);
        }
        let (env, tell_notice) = (self.env.clone(), self.directory.tell_notice.clone());
        let uid = self.shell.as_ref().and_then(|shell| shell.machine().durable()).map(|record| record.uid.clone());
        let id = notice.id.clone();
        let told = async move {
            let event = match env.publish(&notice, uid.as_deref().unwrap_or_default()).await {
                Ok(()) => Publication::Done,
                Err(error) if error.retry == Retry::Never => Publication::Never,
                Err(error) => Publication::Failed(error.to_string()),
            };
            if !errand.to_outbox {
                return (event, None);
            }
            let handed = tell_notice.send(TellNotice(notice)).timeout(ANSWER_WITHIN).await;
            (event, Some(handed.unwrap_or_else(|_| Err("the webhooks' actor is being restarted".to_owned()))))
        };
        ctx.spawn(told.into_actor(self).map(move |(event, handed), actor, ctx| {
            let event = match actor.errands.end(&id, event, handed) {
                Ok(()) => Event::Told(id),
                Err(why) => Event::TellFailed(id, why),
            };
            actor.feed(event, ctx);
        }));
    }
}

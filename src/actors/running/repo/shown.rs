//! What is shown of a Repo beside its status: counts, and Events that nothing waits for.

use actix::{AsyncContext, Context, WrapFuture};

use super::RepoActor;
use crate::actors::shell::Drives;
use crate::telemetry::{Metrics, Share};
use domain::kernel::id::Subject;
use domain::kernel::remark::Remarked;
use domain::repo::Event;
use domain::repo::remark::{ended, remarks};
use domain::repo::spec::Object;
use domain::repo::status::Status;

/// What this Repo adds to the metrics.
pub(super) struct Counted {
    open: Share,
}

impl Counted {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { open: metrics.runs.open() }
    }
}

impl RepoActor {
    /// A write of the status has ended with this event; if it was carried out, the object is `written`, and its status was `before`.
    pub(super) fn stored(&mut self, event: Event, written: &Object, before: &Status, ctx: &mut Context<Self>) {
        let happened = matches!(event, Event::Stored { whole: true, .. });
        self.feed(event, ctx);
        let run = self.shell.machine().durable().run.as_ref();
        self.counted.open.set(run.filter(|run| run.phase.is_open()).map(|run| run.phase.name()).into_iter());
        if happened {
            if let Some(attempt) = ended(before, &written.status) {
                self.env.metrics.runs.ended(&attempt);
            }
            self.remark(written, before, ctx);
        }
    }

    /// Publishes the remarks on a change one after the other. None is tried again: the status says the same.
    fn remark(&self, written: &Object, before: &Status, ctx: &mut Context<Self>) {
        let remarks = remarks(&written.status, before);
        if remarks.is_empty() {
            return;
        }
        let (env, subject) = (self.env.clone(), Subject::Repo(written.id.clone()));
        let on = Remarked { subject, uid: written.uid.clone(), serial: written.status.serial };
        let publishing = async move {
            let at_ms = env.ports.clock.wall_ms();
            for remark in &remarks {
                if let Err(error) = env.ports.events.remark(remark, &on, at_ms).await {
                    env.metrics.failure("publish_event");
                    tracing::debug!(repo = %on.subject, reason = remark.reason, %error, "could not publish an Event");
                    return;
                }
            }
        };
        ctx.spawn(publishing.into_actor(self));
    }
}

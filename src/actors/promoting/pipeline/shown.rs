//! What is shown of a Pipeline beside its status: counts, and Events that nothing waits for.

use actix::{AsyncContext, Context, WrapFuture};

use super::PipelineActor;
use crate::actors::shell::Drives;
use crate::telemetry::{Metrics, Share};
use domain::kernel::id::Subject;
use domain::kernel::remark::Remarked;
use domain::pipeline::Event;
use domain::pipeline::remark::{ended, remarks};
use domain::pipeline::spec::Object;
use domain::pipeline::status::{EnvironmentStatus, Status};

/// What this Pipeline adds to the metrics.
pub(super) struct Counted {
    open: Share,
    targets: Share,
}

impl Counted {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { open: metrics.promotions.open(), targets: metrics.promotions.targets() }
    }
}

impl PipelineActor {
    /// The targets said something.
    pub(super) fn count_targets(&mut self) {
        let targets = self.shell.machine().sights().values().map(domain::apps::app::Sight::standing);
        self.counted.targets.set(targets);
    }

    /// A write of the status has ended with this event; if it was carried out, the object is `written`, and its status was `before`.
    pub(super) fn stored(&mut self, event: Event, written: &Object, before: &Status, ctx: &mut Context<Self>) {
        let happened = matches!(event, Event::Stored { whole: true, .. });
        self.feed(event, ctx);
        let open = self.shell.machine().durable().environments.values().filter_map(EnvironmentStatus::open);
        self.counted.open.set(open.map(|promotion| promotion.phase.name()));
        if happened {
            ended(before, &written.status).for_each(|ended| self.env.metrics.promotions.ended(ended.outcome));
            self.remark(written, before, ctx);
        }
    }

    /// Publishes the remarks on a change one after the other. None is tried again: the status says the same.
    fn remark(&self, written: &Object, before: &Status, ctx: &mut Context<Self>) {
        let remarks = remarks(written, before);
        if remarks.is_empty() {
            return;
        }
        let (env, id) = (self.env.clone(), written.id.clone());
        let (subject, uid, serial) = (Subject::Pipeline(id.clone()), written.uid.clone(), written.status.serial);
        let on = Remarked { subject, uid, serial };
        let publishing = async move {
            let at_ms = env.ports.clock.wall_ms();
            for remark in &remarks {
                if let Err(error) = env.ports.events.remark(remark, &on, at_ms).await {
                    env.metrics.failure("publish_event");
                    tracing::debug!(pipeline = %id, reason = remark.reason, %error, "could not publish an Event");
                    return;
                }
            }
        };
        ctx.spawn(publishing.into_actor(self));
    }
}

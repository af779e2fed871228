//! What is counted of a Pipeline.

use actix::Handler;

use super::PipelineActor;
use crate::actors::promoting::message::Reported;
use crate::actors::shell::Drives;
use objects::owned::OwnMachine;
use objects::pipeline::Event;
use objects::pipeline::remark::ended;
use objects::pipeline::set;
use objects::pipeline::status::{EnvironmentStatus, Status};

impl PipelineActor {
    /// Counts the promotions that are open, and those that ended with this change.
    pub(in crate::actors::promoting) fn count_promotions(&mut self, change: Option<(&Status, &Status)>) {
        let open = self.shell.machine().durable().environments.values().filter_map(EnvironmentStatus::open);
        self.extra.open.set(open.map(|promotion| promotion.phase.name()));
        if let Some((before, written)) = change {
            ended(before, written).for_each(|ended| self.env.metrics.promotions.ended(ended.outcome));
        }
    }
}

impl Handler<Reported> for PipelineActor {
    type Result = ();

    fn handle(&mut self, Reported(sights): Reported, ctx: &mut Self::Context) {
        self.feed(Event::Reported(sights.into_iter().collect()), ctx);
        self.extra.targets.set(
            self.shell
                .machine()
                .sights()
                .iter()
                .filter(|(target, _)| !set::is_place(target))
                .map(|(_, sight)| sight.standing()),
        );
    }
}

//! The messages to the broker: each is an event of its machine.

use actix::{Handler, MessageResult};

use super::ClusterGroupActor;
use crate::actors::message::{Absent, Follows, Forget, Observe, Publish, Show};
use crate::actors::observation::Observation;
use crate::actors::shell::Drives;
use kernel::id::WorkloadId;
use purge::agreement::tally::tally;
use purge::broker::Event;

impl Handler<Publish> for ClusterGroupActor {
    type Result = MessageResult<Publish>;

    fn handle(&mut self, Publish { workload, record, follower }: Publish, ctx: &mut Self::Context) -> Self::Result {
        self.followers.begin(workload.clone(), follower);
        self.feed(Event::Published(workload.clone(), record), ctx);
        MessageResult(self.view(&workload))
    }
}

impl Handler<Show> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Show(records): Show, ctx: &mut Self::Context) {
        self.feed(Event::Shown(records), ctx);
    }
}

impl Handler<Absent> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Absent(workload, seq): Absent, ctx: &mut Self::Context) {
        self.feed(Event::Absent(workload, seq), ctx);
    }
}

impl Handler<Follows> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Follows(kinds): Follows, ctx: &mut Self::Context) {
        self.feed(Event::Follows(kinds), ctx);
    }
}

impl Handler<Forget> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Forget { workload, seq, revision }: Forget, ctx: &mut Self::Context) {
        self.feed(Event::Forgotten(workload, seq, revision), ctx);
    }
}

impl Handler<Observe> for ClusterGroupActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let (broker, now) = (self.shell.machine(), self.shell.now());
        let own = &self.env.settings;
        let tally = |workload| tally(workload, &broker.view(now, workload), &own.member, &own.policy.group);
        let followed = self.followers.workloads().filter(|_| own.grouping.is_some());
        let tallies = followed.map(tally).collect();
        let lately: Vec<WorkloadId> = broker.lately().collect();
        let shown = self.followers.workloads().chain(&lately).filter(|_| own.grouping.is_some());
        let parts = shown.map(|workload| broker.parts(now, workload)).collect();
        let troubles = broker.troubles(now).iter().map(ToString::to_string).collect();
        let group = broker.seen(now);
        MessageResult(Observation { troubles, group, tallies, parts, ..Observation::default() })
    }
}

//! What the broker reports to people: in the log, in metrics, and as Events on workloads that wait.

use actix::{AsyncContext, Context, WrapFuture};

use super::ClusterGroupActor;
use kernel::id::WorkloadId;
use purge::agreement::roster::{Hold, Reason};

impl ClusterGroupActor {
    pub(super) fn tell_hold(&self, Hold { reason, words }: &Hold) {
        self.env.metrics.boards.held(*reason, true);
        tracing::warn!(reason = reason.name(), why = words, "the group was held up; nothing is purged");
    }

    pub(super) fn tell_release(&self, reason: Reason) {
        self.env.metrics.boards.held(reason, false);
        tracing::warn!(reason = reason.name(), "the group was released; it is held up for this reason no more");
    }

    /// Puts an Event on a workload that waits. It may be lost: the status says the same.
    pub(super) fn tell_held_up(&mut self, workload: &WorkloadId, hold: &Hold, ctx: &mut Context<Self>) {
        let env = self.env.clone();
        let at_ms = env.ports.clock.wall_ms();
        let notice = self.shell.machine().notice_of_hold(self.shell.now(), at_ms, workload, hold);
        let Some((notice, uid)) = notice else { return };
        ctx.spawn(async move { drop(env.publish(&notice, &uid).await) }.into_actor(self));
    }

    pub(super) fn tell_rejected(&self, index: usize, copies: u64, why: &str) {
        let board = self.boards.get(index).map_or("", |board| board.name());
        tracing::warn!(board, copies, why, "copies were not believed; this is the last one's reason");
    }
}

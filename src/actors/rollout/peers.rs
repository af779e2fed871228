//! What a rollout asks of the other actors: of the pod watcher, the group and the invalidator. An actor that dies is rebuilt
//! without its questions, so the rollout asks again once it knows the successor's address.

use actix::prelude::SendError;
use actix::{ActorFutureExt, AsyncContext, Context, MailboxError, WrapFuture};

use super::RolloutActor;
use crate::actors::ANSWER_WITHIN;
use crate::actors::looks::{AskEdge, LeaveEdge};
use crate::actors::message::{Absent, FollowPods, Follower, MatchPlan, PlaceOrder, Publish};
use crate::actors::shell::Shell;
use crate::actors::traffic::{MoveTaken, TrafficMoved};
use kernel::id::{Reference, Seq, Vector};
use proof::asked::Question;
use purge::bounds::plan::Plan;
use purge::purges::purge::Order;
use purge::records::record::Record;
use purge::rollouts::rollout::Event;

impl RolloutActor {
    /// Asks once for the pods of each rollout in flight.
    pub(super) fn follow_pods(&mut self, ctx: &mut Context<Self>) {
        let Some(rollout) = self.shell.as_ref().map(Shell::machine) else { return };
        let Some((seq, version)) = rollout.rolling() else { return };
        let Some(workload) = rollout.workload().filter(|_| self.following != Some(seq)) else { return };
        let follow = FollowPods {
            workload: workload.id.clone(),
            selector: workload.selector.clone(),
            version: version.clone(),
            report_to: ctx.address().recipient(),
        };
        let workload = workload.clone();
        self.following = Some(seq);
        if self.parent.pods.try_send(follow).is_err() {
            // Pods that we do not see count as served; the next sight asks again.
            self.env.metrics.overflow("pod_watcher");
            self.following = None;
        }
        self.see_services(workload, ctx);
    }

    /// Says that the record has the move of traffic that was asked for. What the watcher has no room for it asks for again.
    pub(super) fn tell_move_taken(&self, record: &Record) {
        let asked = self.moved.as_ref().map(|TrafficMoved(moved, _)| moved);
        if let Some(moved) = record.moved.as_ref().filter(|moved| asked.is_some_and(|asked| asked.is(moved))) {
            let taken = MoveTaken(self.start.workload.clone(), moved.token.clone());
            let _ = self.parent.moves.try_send(taken);
        }
    }

    pub(super) fn publish(&mut self, record: Box<Record>, ctx: &mut Context<Self>) {
        self.tell_move_taken(&record);
        let follower = Follower { view_reported: ctx.address().recipient(), observe: ctx.address().recipient() };
        let publish = Publish { workload: self.start.workload.clone(), record, follower };
        let answer = self.directory.publish.send(publish).timeout(ANSWER_WITHIN);
        ctx.spawn(answer.into_actor(self).map(|view, actor, ctx| match view {
            Ok(view) => actor.feed_unless_draining(Event::ViewChanged(view), ctx),
            // A group actor that died is rebuilt, and then everything is published again.
            Err(MailboxError::Closed) => {}
            Err(MailboxError::Timeout) => actor.publish_again(ctx),
        }));
    }

    pub(super) fn publish_again(&mut self, ctx: &mut Context<Self>) {
        if let Some(record) = self.shell.as_ref().and_then(|shell| shell.machine().durable()).cloned() {
            self.publish(Box::new(record), ctx);
        }
    }

    pub(super) fn tell_absent(&self, floor: Seq) {
        if self.directory.absent.try_send(Absent(self.start.workload.clone(), floor)).is_err() {
            // A member that waits for it asks again.
            self.env.metrics.overflow("cluster_group");
        }
    }

    pub(super) fn match_plan(&mut self, vector: Vector, plan: Box<Plan>, newer: bool, ctx: &mut Context<Self>) {
        // Without a time-out: the invalidator answers every question, after its own time-outs, or is rebuilt.
        let namespace = self.start.workload.namespace.clone();
        let answer = self.directory.match_plan.send(MatchPlan { namespace, plan: plan.clone(), newer });
        ctx.spawn(answer.into_actor(self).map(move |answer, actor, ctx| match answer {
            Ok(Some(Ok(found))) => actor.feed_unless_draining(Event::Matched(vector, plan, found), ctx),
            Ok(Some(Err(why))) => actor.feed_unless_draining(Event::MatchFailed(vector, why.to_string()), ctx),
            // It died; we ask its successor once its address is known.
            Ok(None) | Err(_) => {}
        }));
    }

    pub(super) fn order(&mut self, order: Box<Order>, ctx: &mut Context<Self>) {
        let order = PlaceOrder { order, report_to: ctx.address().recipient() };
        let placed = self.directory.place_order.send(order).timeout(ANSWER_WITHIN);
        ctx.spawn(placed.into_actor(self).map(|placed, actor, ctx| match placed {
            Ok(()) => {}
            // It died. Another order before its successor's address is known would fail again at once.
            Err(MailboxError::Closed) => {}
            Err(MailboxError::Timeout) => actor.feed_unless_draining(Event::PeersRestarted, ctx),
        }));
    }

    pub(super) fn ask_edge(&mut self, reference: Reference, question: Box<Question>, ctx: &mut Context<Self>) {
        let asker = (self.start.workload.clone(), reference);
        let ask = AskEdge { asker, question, answer_to: ctx.address().recipient() };
        let asked = self.directory.edge.ask.send(ask).timeout(ANSWER_WITHIN);
        ctx.spawn(asked.into_actor(self).map(|asked, actor, ctx| match asked {
            // As with an order: of a successor we hear.
            Ok(()) | Err(MailboxError::Closed) => {}
            Err(MailboxError::Timeout) => actor.feed_unless_draining(Event::PeersRestarted, ctx),
        }));
    }

    pub(super) fn leave_edge(&self, reference: Reference) {
        let leave = LeaveEdge((self.start.workload.clone(), reference));
        if let Err(SendError::Full(_)) = self.directory.edge.leave.try_send(leave) {
            // What it waits for is asked in vain, and it is forgotten with this actor.
            self.env.metrics.overflow("invalidator");
        }
    }
}

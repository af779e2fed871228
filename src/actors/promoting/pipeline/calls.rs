//! The calls to the outside: each answer is an event of the machine.

use std::collections::BTreeSet;

use actix::{AsyncContext, Context};

use super::PipelineActor;
use crate::actors::promoting::message::{Follow, Owner};
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use kernel::id::Environment;
use objects::apps::app::TargetKey;
use objects::asked::Topic;
use objects::pipeline::Event;
use objects::pipeline::judge::Stale;
use objects::pipeline::proposal::{Order, Proposed};
use purge::ports::{PortError, Retry};

impl PipelineActor {
    /// Has the clusters report these.
    pub(in crate::actors::promoting) fn follow(&self, targets: Vec<TargetKey>, ctx: &Context<Self>) {
        let (reported, looked, frozen) =
            (ctx.address().recipient(), ctx.address().recipient(), ctx.address().recipient());
        let owner = Owner { id: self.id(), reported, frozen, looked };
        send_even_if_full(&self.peers.beside.follow, Follow { owner, targets: targets.into_iter().collect() });
    }

    pub(super) fn see_edge(&mut self, environment: Environment, topic: Topic, ctx: &mut Context<Self>) {
        let edges = self.tended.edges.clone();
        let spec = self.object().spec.as_ref().ok();
        let Some(own) = spec.and_then(|spec| spec.environments.iter().find(|own| own.name == environment)) else {
            return;
        };
        let Some(purged) = own.purged.clone() else { return };
        let namespaces: BTreeSet<_> = own.targets.iter().map(|target| target.namespace.clone()).collect();
        let metrics = self.env.metrics.clone();
        let seeing = async move { edges.are_fresh(&purged, &namespaces).await };
        self.ask(ctx, seeing, move |seen| {
            let fresh = seen.unwrap_or_else(|error| {
                metrics.failure("see_edge");
                Err(Stale(error.to_string()))
            });
            Event::EdgeSeen(environment, topic, fresh)
        });
    }

    pub(super) fn propose(&mut self, order: Box<Order>, ctx: &mut Context<Self>) {
        let (forge, env) = (self.tended.forge.clone(), self.env.clone());
        let proposing = async move {
            let from = env.ports.clock.now();
            let proposed = forge.propose(&order).await;
            env.metrics.took("propose", env.ports.clock.now().since(from));
            let outcome = proposed.as_ref().map_or("failed", Proposed::name);
            env.metrics.promotions.forge_call(order.repository.forge, outcome);
            match proposed {
                Ok(proposed) => Event::Proposed(order, proposed),
                Err(error) => {
                    env.metrics.failure("propose");
                    Event::ProposeFailed(order, error.cause, error.retry == Retry::Never)
                }
            }
        };
        self.ask(ctx, proposing, |event| event);
    }

    pub(super) fn look_at_proposal(&mut self, order: Box<Order>, number: u64, ctx: &mut Context<Self>) {
        let (forge, metrics) = (self.tended.forge.clone(), self.env.metrics.clone());
        let looking = async move {
            let seen = forge.look(&order, number).await;
            metrics.promotions.forge_call(order.repository.forge, seen.as_ref().map_or("failed", |state| state.name()));
            match seen {
                Ok(state) => Event::ProposalSeen(order, state),
                Err(error) => {
                    metrics.failure("look_at_proposal");
                    Event::ProposalUnseen(order, error.to_string())
                }
            }
        };
        self.ask(ctx, looking, |event| event);
    }

    pub(super) fn withdraw(&mut self, order: Box<Order>, number: Option<u64>, why: String, ctx: &mut Context<Self>) {
        let (forge, metrics) = (self.tended.forge.clone(), self.env.metrics.clone());
        let withdrawing = async move {
            let withdrawn: Result<(), PortError> = forge.withdraw(&order, number, &why).await;
            let outcome = if withdrawn.is_ok() { "withdrawn" } else { "failed" };
            metrics.promotions.forge_call(order.repository.forge, outcome);
            match withdrawn {
                Ok(()) => Event::Withdrawn(order),
                Err(error) => {
                    metrics.failure("withdraw");
                    Event::WithdrawFailed(order, error.cause, error.retry == Retry::Never)
                }
            }
        };
        self.ask(ctx, withdrawing, |event| event);
    }
}

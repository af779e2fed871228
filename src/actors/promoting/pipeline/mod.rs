//! What is done for a Pipeline alone: performs what `objects::pipeline` decides about its promotions.

mod calls;
mod looks;
mod secrets;
mod shown;

use std::collections::BTreeMap;

use actix::{Context, SpawnHandle};

use crate::actors::object::ObjectActor;
use crate::actors::promoting::pipeline::looks::Looks;
use crate::telemetry::{Metrics, Share};
use objects::pipeline::{Effect, Event};
use objects::ports::pipeline::Promoting;

/// The actor of a Pipeline.
pub type PipelineActor = ObjectActor<Promoting>;

/// What the actor of a Pipeline keeps.
pub struct Promotes {
    looks: Looks,
    followed: BTreeMap<String, SpawnHandle>,
    /// What it adds to the metrics.
    open: Share,
    targets: Share,
}

impl Promotes {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let (open, targets) = (metrics.promotions.open(), metrics.promotions.targets());
        Self { looks: Looks::default(), followed: BTreeMap::new(), open, targets }
    }
}

impl PipelineActor {
    pub(super) fn perform_effect(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("pipeline", effect.name());
        match effect {
            Effect::Object(effect) => self.perform_own(effect, ctx),
            Effect::Follow(targets) => self.follow(targets, ctx),
            Effect::Recheck(environment, seq, targets) => self.look_afresh(environment, seq, targets, ctx),
            Effect::Ask(environment, ask) => {
                self.ask_gate(Some(environment.clone()), ask, ctx, |answer| Event::Answered(environment, answer));
            }
            Effect::SeeEdge(environment, topic) => self.see_edge(environment, topic, ctx),
            Effect::Propose(order) => self.propose(order, ctx),
            Effect::LookAtProposal(order, number) => self.look_at_proposal(order, number, ctx),
            Effect::Withdraw(order, number, why) => self.withdraw(order, number, why, ctx),
            Effect::FollowSecrets(names) => self.follow_secrets(&names, ctx),
        }
    }
}

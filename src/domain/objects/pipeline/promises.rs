//! The promises that a Pipeline checks on its own effects.

use crate::owned::{self, OwnMachine};
use crate::pipeline::status::{EnvironmentStatus, Phase, Status};
use crate::pipeline::{Effect, Pipeline};
use kernel::promise::Promise;

/// The promises that an effect would break.
pub(super) fn broken_by(pipeline: &Pipeline, effect: &Effect) -> Vec<Promise> {
    let durable = pipeline.durable();
    match effect {
        Effect::Object(owned::Effect::Store(status, _)) => may_follow(durable, status),
        Effect::Propose(order) | Effect::LookAtProposal(order, _) => {
            let known = durable.environment(&order.environment).and_then(|known| known.promotion.as_ref());
            let is_durable = known.is_some_and(|promotion| {
                promotion.seq == order.seq && promotion.revision == order.revision && promotion.phase >= Phase::Started
            });
            (!is_durable).then_some(Promise::PromotionsDurable).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The promises that a status breaks if it follows on `before` in one object.
pub fn may_follow(before: &Status, after: &Status) -> Vec<Promise> {
    let mut broken = Vec::new();
    for (name, was) in &before.environments {
        let Some(is) = after.environments.get(name) else { continue };
        if is.seq < was.seq {
            broken.push(Promise::SeqsRise);
        }
        if !promotion_may_follow(was, is) {
            broken.push(Promise::PromotionsInOrder);
        }
    }
    broken
}

fn promotion_may_follow(was: &EnvironmentStatus, is: &EnvironmentStatus) -> bool {
    match (&was.promotion, &is.promotion) {
        (Some(was), Some(is)) if was.seq == is.seq => was.revision == is.revision && is.phase.may_follow(was.phase),
        (Some(was), Some(is)) => is.seq > was.seq,
        (Some(_), None) => false,
        (None, _) => true,
    }
}

//! Fresh looks at targets, which several clusters may have to take: one question at a time, answered when all have answered.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use actix::{AsyncContext, Context, Handler, SpawnHandle};

use super::PipelineActor;
use crate::actors::promoting::message::{LookAt, Looked};
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use kernel::id::{Environment, PromotionSeq};
use objects::apps::app::{Sight, TargetKey};
use objects::pipeline::Event;

/// How long all clusters may take. Each read has a bound of 15 s, and a thousand of them take turns.
const LOOK_WITHIN: Duration = Duration::from_secs(60);

/// What a fresh look is for: of which Pipeline, by its UID. Promotions of the next one of its name have the same numbers.
struct For {
    uid: String,
    environment: Environment,
    seq: PromotionSeq,
}

/// The fresh looks of one Pipeline.
#[derive(Default)]
pub(super) struct Looks {
    last: u64,
    open: Option<Open>,
    waiting: VecDeque<(For, BTreeSet<TargetKey>)>,
}

struct Open {
    ticket: u64,
    of: For,
    missing: BTreeSet<TargetKey>,
    sights: Vec<(TargetKey, Sight)>,
    bound: SpawnHandle,
}

impl PipelineActor {
    pub(super) fn look_afresh(
        &mut self,
        environment: Environment,
        seq: PromotionSeq,
        targets: Vec<TargetKey>,
        ctx: &mut Context<Self>,
    ) {
        let uid = self.object().uid.clone();
        self.extra.looks.waiting.push_back((For { uid, environment, seq }, targets.into_iter().collect()));
        self.look_next(ctx);
    }

    /// A reader answers only the newest question of a Pipeline, so the next one is asked after the answer to this.
    fn look_next(&mut self, ctx: &mut Context<Self>) {
        if self.extra.looks.open.is_some() {
            return;
        }
        let Some((of, targets)) = self.extra.looks.waiting.pop_front() else { return };
        if targets.is_empty() {
            self.answer(of, |environment, seq| Event::Rechecked(environment, seq, Vec::new()), ctx);
            return self.look_next(ctx);
        }
        self.extra.looks.last += 1;
        let ticket = self.extra.looks.last;
        let bound = ctx.run_later(LOOK_WITHIN, Self::look_took_too_long);
        self.extra.looks.open = Some(Open { ticket, of, missing: targets.clone(), sights: Vec::new(), bound });
        let owner = self.id();
        send_even_if_full(&self.peers.beside.look_at, LookAt { owner, ticket, targets });
    }

    fn look_took_too_long(&mut self, ctx: &mut Context<Self>) {
        let Some(Open { of, missing, .. }) = self.extra.looks.open.take() else { return };
        let names: Vec<_> = missing.iter().take(3).map(TargetKey::display_name).collect();
        let why = format!("a fresh look at {} took longer than {} s", names.join(", "), LOOK_WITHIN.as_secs());
        self.answer(of, |environment, seq| Event::RecheckFailed(environment, seq, why), ctx);
        self.look_next(ctx);
    }

    /// A look for an earlier Pipeline is no answer to this one.
    fn answer(
        &mut self,
        For { uid, environment, seq }: For,
        event: impl FnOnce(Environment, PromotionSeq) -> Event,
        ctx: &mut Context<Self>,
    ) {
        if self.object().uid == uid {
            self.feed(event(environment, seq), ctx);
        }
    }
}

impl Handler<Looked> for PipelineActor {
    type Result = ();

    fn handle(&mut self, Looked(ticket, sights): Looked, ctx: &mut Self::Context) {
        let Some(open) = self.extra.looks.open.as_mut().filter(|open| open.ticket == ticket) else { return };
        for (target, sight) in sights {
            if open.missing.remove(&target) {
                open.sights.push((target, sight));
            }
        }
        if !open.missing.is_empty() {
            return;
        }
        if let Some(Open { of, sights, bound, .. }) = self.extra.looks.open.take() {
            ctx.cancel_future(bound);
            self.answer(of, |environment, seq| Event::Rechecked(environment, seq, sights), ctx);
        }
        self.look_next(ctx);
    }
}

//! Asks the edge for the pages that looks want, each when its turn comes.

use std::collections::BTreeMap;

use actix::prelude::SendError;
use actix::{ActorFutureExt, AsyncContext, Context, Handler, Recipient, WrapFuture};

use super::Invalidator;
use crate::actors::Env;
use crate::actors::looks::{AskEdge, EdgeAnswered, LeaveEdge};
use crate::actors::shell::{Drives, Shell};
use proof::asked::{Answers, Question};
use proof::turns::{Asker, Effect, Event, Turns};

/// The questions to the edge, and where their answers go.
pub(super) struct Looks {
    turns: Shell<Turns>,
    /// One recipient for each look, kept until it ends.
    answer_to: BTreeMap<Asker, Recipient<EdgeAnswered>>,
    /// How many of them there may be before those whose rollouts are gone are looked for.
    swept_at: usize,
}

impl Looks {
    /// Nobody looks yet.
    pub fn new(env: &Env) -> Self {
        Self { turns: Shell::new(Turns::default(), env), answer_to: BTreeMap::new(), swept_at: 0 }
    }

    /// The looks whose rollouts are gone. They are looked for as often as the number of all has doubled: however many there are, one costs
    /// little.
    fn gone(&mut self) -> Vec<Asker> {
        if self.answer_to.len() <= self.swept_at {
            return Vec::new();
        }
        let gone = self.answer_to.iter().filter(|(_, to)| !to.connected()).map(|(asker, _)| asker.clone());
        let gone: Vec<Asker> = gone.collect();
        self.swept_at = (self.answer_to.len() - gone.len()) * 2;
        gone
    }
}

impl Drives<Turns> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Turns>> {
        Some(&mut self.looks.turns)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("turns", effect.name());
        match effect {
            Effect::Ask(asker, question) => self.ask_edge(asker, question, ctx),
        }
        self.show_waiting();
    }
}

impl Invalidator {
    fn ask_edge(&mut self, asker: Asker, question: Box<Question>, ctx: &mut Context<Self>) {
        let edge = self.env.ports.edge.clone();
        let call = async move {
            let answers = edge.ask(Some(&asker.0), &question).await;
            (asker, question, answers)
        };
        ctx.spawn(call.into_actor(self).map(|(asker, question, answers), actor, ctx| {
            actor.edge_answered(asker, &question, answers, ctx);
        }));
    }

    fn edge_answered(&mut self, asker: Asker, question: &Question, answers: Answers, ctx: &mut Context<Self>) {
        self.env.metrics.edge.asked(answers.edge.failure.is_some());
        let requests = u8::try_from(answers.edge.hops.len()).unwrap_or(u8::MAX);
        self.feed_turns(Event::Answered(question.page.host().clone(), requests), ctx);
        // It may have ended meanwhile.
        let Some(to) = self.looks.answer_to.get(&asker) else { return };
        match to.try_send(EdgeAnswered(asker.1.clone(), question.id, Box::new(answers))) {
            Ok(()) => {}
            // Its look does without it, after a time.
            Err(SendError::Full(_)) => self.env.metrics.overflow("rollout"),
            // A rebuilt rollout asks again.
            Err(SendError::Closed(_)) => self.left(asker, ctx),
        }
    }

    fn left(&mut self, asker: Asker, ctx: &mut Context<Self>) {
        self.looks.answer_to.remove(&asker);
        self.feed_turns(Event::Left(asker), ctx);
    }

    fn feed_turns(&mut self, event: Event, ctx: &mut Context<Self>) {
        Drives::<Turns>::feed(self, event, ctx);
        self.show_waiting();
    }

    /// Lets the metrics know how many questions wait.
    pub(super) fn show_waiting(&self) {
        self.env.metrics.edge.waiting(self.looks.turns.machine().waiting());
    }
}

impl Handler<AskEdge> for Invalidator {
    type Result = ();

    fn handle(&mut self, AskEdge { asker, question, answer_to }: AskEdge, ctx: &mut Self::Context) {
        self.looks.answer_to.insert(asker.clone(), answer_to);
        self.looks.gone().into_iter().for_each(|gone| self.left(gone, ctx));
        self.feed_turns(Event::Wanted(asker, question), ctx);
    }
}

impl Handler<LeaveEdge> for Invalidator {
    type Result = ();

    fn handle(&mut self, LeaveEdge(asker): LeaveEdge, ctx: &mut Self::Context) {
        self.left(asker, ctx);
    }
}

//! The conditions of an apply, beside a person's approval: time, other systems, and objects that it needs.

use std::time::Duration;

use crate::kernel::call::Call;
use crate::kernel::machine::Timestamp;
use crate::objects::asked::Opening;
use crate::objects::asked::{Asked, Topic};
use crate::repo::needs::Needs;
use crate::repo::spec::Spec;
use crate::repo::status::{Phase, Run};
use crate::repo::{Effect, Question, Repo};

/// The known states of gates that others judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gatekeeper {
    pub(super) calendar: Asked,
    verdict: Asked,
    pub(super) needs: Needs,
}

impl Gatekeeper {
    /// Peers may have forgotten our questions, or the answers are no longer wanted.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Asks the calendar and the needs now. A verdict keeps its pace: the other system demands it.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.calendar.call.hurry(now);
        self.needs.hurry(now);
    }

    /// Returns the question if it is still about this topic. The answer to another question does not count.
    fn answered(asked: &mut Asked, topic: Topic) -> Option<&mut Asked> {
        Some(asked).filter(|asked| asked.is_about(topic))
    }

    pub(super) fn calendar_read(&mut self, now: Timestamp, topic: Topic, opening: Opening) {
        if let Some(asked) = Self::answered(&mut self.calendar, topic) {
            asked.read(now, opening);
        }
    }

    pub(super) fn calendar_failed(&mut self, topic: Topic, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if let Some(asked) = Self::answered(&mut self.calendar, topic) {
            asked.call.failed(again, why);
        }
    }

    pub(super) fn verdict_given(&mut self, now: Timestamp, topic: Topic, opening: Opening) {
        if let Some(asked) = Self::answered(&mut self.verdict, topic) {
            asked.given(now, opening);
        }
    }

    pub(super) fn verdict_failed(&mut self, now: Timestamp, topic: Topic, why: String, rest: Duration) {
        if let Some(asked) = Self::answered(&mut self.verdict, topic) {
            asked.refused(now, why, rest);
        }
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let calls = [&mut self.calendar.call, &mut self.verdict.call, &mut self.needs.call];
        calls.into_iter().for_each(|call| call.wake(now));
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        [&self.calendar.call, &self.verdict.call, &self.needs.call].into_iter().filter_map(Call::deadline).min()
    }
}

impl Repo {
    /// Why an apply of this run may not start yet, for all gates that are closed; asks those who judge. A person may open those of
    /// time and of other systems; what a run needs is there and ready in any case.
    pub(super) fn closed_gates(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        run: &Run,
        effects: &mut Vec<Effect>,
    ) -> Vec<String> {
        let mut closed = Vec::new();
        if !run.approval.as_ref().is_some_and(|approval| approval.overrides) {
            self.judged_elsewhere(now, spec, run, effects, &mut closed);
        }
        let needs = &spec.gates.needs;
        if !needs.is_empty() {
            effects.extend(self.keeper.needs.ask(now, needs, closed.is_empty()).map(Effect::SeeNeeds));
            closed.extend(self.keeper.needs.closed(needs));
        }
        closed
    }

    /// Why the calendar and the other system keep it from starting.
    fn judged_elsewhere(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        run: &Run,
        effects: &mut Vec<Effect>,
        closed: &mut Vec<String>,
    ) {
        let gates = &spec.gates;
        if !(gates.windows.is_empty() && gates.freezes.is_empty()) {
            let topic = Topic::of(&(&gates.windows, &gates.freezes));
            self.keeper.calendar.ask_about(topic);
            if self.keeper.calendar.is_due(now) {
                effects.push(Effect::ReadCalendar(topic, gates.windows.clone(), gates.freezes.clone()));
            }
            closed.extend(self.keeper.calendar.closed("the calendar"));
        }
        if let Some(source) = &gates.verdict {
            let seq = run.attempt.seq;
            let applied = self.status.durable.history.iter().rev().find(|ended| ended.outcome == Phase::Succeeded);
            let from = applied.map(|ended| ended.revision.clone());
            let question = Question { source: source.clone(), seq, revision: run.revision.clone(), from };
            self.keeper.verdict.ask_about(question.topic());
            if self.keeper.verdict.is_due(now) {
                effects.push(Effect::AskVerdict(Box::new(question)));
            }
            closed.extend(self.keeper.verdict.closed("the verdict"));
        }
    }
}

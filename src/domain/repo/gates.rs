//! What must hold before an apply starts, beside what a person says: time, other systems, and objects that it needs.

use std::time::Duration;

use crate::asked::Asked;
use crate::call::Call;
use crate::id::RunSeq;
use crate::machine::Timestamp;
use crate::pipeline::Opening;
use crate::repo::needs::Needs;
use crate::repo::spec::Spec;
use crate::repo::status::{Phase, Run};
use crate::repo::{Effect, Question, Repo};

/// What is known of gates that others judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gatekeeper {
    pub(super) calendar: Asked,
    verdict: Asked,
    /// The run that the verdict is about.
    verdict_of: RunSeq,
    pub(super) needs: Needs,
}

impl Gatekeeper {
    /// What others were asked may have been forgotten, or is not wanted any more.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Somebody asked for a look. A verdict keeps its pace: the other system demands it.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.calendar.call.hurry(now);
        self.needs.hurry(now);
    }

    pub(super) fn verdict_given(&mut self, now: Timestamp, seq: RunSeq, opening: Opening) {
        if self.verdict_of == seq {
            self.verdict.given(now, opening);
        }
    }

    pub(super) fn verdict_failed(&mut self, now: Timestamp, seq: RunSeq, why: String, rest: Duration) {
        if self.verdict_of == seq {
            self.verdict.refused(now, why, rest);
        }
    }

    /// Ends every rest that is over, so that no deadline stays in the past.
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
            if self.keeper.calendar.is_due(now) {
                effects.push(Effect::ReadCalendar(gates.windows.clone(), gates.freezes.clone()));
            }
            closed.extend(self.keeper.calendar.closed("the calendar"));
        }
        if let Some(source) = &gates.verdict {
            let seq = run.attempt.seq;
            if self.keeper.verdict_of != seq {
                self.keeper.verdict_of = seq;
                self.keeper.verdict = Asked::default();
            }
            if self.keeper.verdict.is_due(now) {
                let applied = self.status.durable.history.iter().rev().find(|ended| ended.outcome == Phase::Succeeded);
                let from = applied.map(|ended| ended.revision.clone());
                let question = Question { source: source.clone(), seq, revision: run.revision.clone(), from };
                effects.push(Effect::AskVerdict(Box::new(question)));
            }
            closed.extend(self.keeper.verdict.closed("the verdict"));
        }
    }
}

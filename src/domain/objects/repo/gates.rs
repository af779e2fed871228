//! The conditions of an apply, beside a person's approval: time, other systems, and objects that it needs.

use crate::asked::{AskedGates, Question};
use crate::repo::needs::Needs;
use crate::repo::spec::Spec;
use crate::repo::status::{Phase, Run};
use crate::repo::{Effect, Repo};
use kernel::machine::Timestamp;

/// The known states of gates that others judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gatekeeper {
    pub(super) asked: AskedGates,
    pub(super) needs: Needs,
}

impl Gatekeeper {
    /// Peers may have forgotten our questions, or the answers are no longer wanted.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Asks the calendar and the needs now.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.asked.hurry(now);
        self.needs.hurry(now);
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.asked.wake(now);
        self.needs.call.wake(now);
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        [self.asked.deadline(), self.needs.call.deadline()].into_iter().flatten().min()
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
    pub(super) fn judged_elsewhere(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        run: &Run,
        effects: &mut Vec<Effect>,
        closed: &mut Vec<String>,
    ) {
        let (gates, asked) = (&spec.gates, &mut self.keeper.asked);
        let mut ask = |ask| effects.push(Effect::Ask(ask));
        if !(gates.windows.is_empty() && gates.freezes.is_empty()) {
            closed.extend(asked.calendar(now, &gates.windows, &gates.freezes, &mut ask));
        }
        if let Some(source) = &gates.verdict {
            let seq = run.attempt.seq.0;
            let mut history = self.own.status.durable.history.iter().rev();
            let applied = history.find(|ended| ended.outcome == Phase::Succeeded);
            let from = applied.map(|ended| ended.revision.clone().into());
            let question = Question { source: source.clone(), seq, revision: run.revision.clone().into(), from };
            closed.extend(asked.verdict(now, question, &mut ask));
        }
    }
}

//! Runs that plan and never apply, whatever anybody says yes to: `approval: Never`, for the branch of a request.
//!
//! Such a run ends with its plan. It keeps the phase `Planned`, and has an end: nothing of it was applied, so it is none of those that
//! succeeded, which others are compared with, looked at for drift, and wait for. Under another `approval` its commit is judged anew.
//!
//! Not for how a plan is made; that goes the way of every other.

use crate::repo::Repo;
use crate::repo::job::{StepKind, logs};
use crate::repo::run::Stand;
use crate::repo::spec::{Approving, Spec};
use crate::repo::status::{Action, Phase, Run};
use kernel::machine::Timestamp;
use notices::notice::Kind;

impl Run {
    /// Whether it has ended with its plan.
    pub fn is_only_planned(&self) -> bool {
        self.phase == Phase::Planned && self.ended_ms.is_some()
    }

    /// Whether it goes on.
    pub fn is_open(&self) -> bool {
        self.phase.is_open() && !self.is_only_planned()
    }
}

impl Repo {
    /// A plan of which nothing is applied. A person may want it made anew, for what is there changes without a commit.
    pub(super) fn only_planned(&mut self, now: Timestamp, spec: &Spec) -> Stand {
        let Some(run) = self.own.status.draft.run.as_ref() else { return Stand::Done };
        if run.is_open() {
            let would = match &run.plan {
                Some(plan) => plan.counts.map_or_else(|| "something".to_owned(), |counts| counts.to_string()),
                None => "nothing".to_owned(),
            };
            let namespace = &self.own.object.id.namespace;
            let log = run.newest_job().map(|(job, _)| format!("; {}", logs(namespace, &job.name, StepKind::Plan)));
            let log = log.unwrap_or_default();
            let message = format!("an apply of {} would change {would}; it is only planned{log}", run.revision.short());
            self.end(now, Phase::Planned, &message);
            self.announce(now, Kind::RunPlanned, "", &message);
        }
        match self.once_more(now, spec) {
            Stand::Done => Stand::OnlyPlanned,
            begun => begun,
        }
    }

    /// Whether the newest run is an apply that this spec forbids.
    pub(super) fn may_not_apply(&self, spec: &Spec) -> bool {
        let run = self.own.status.draft.run.as_ref();
        spec.approval == Approving::Never && run.is_some_and(|run| run.attempt.action == Action::Apply)
    }
}

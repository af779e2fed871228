//! The number of the next run, and the next Job of one: when it is ordered, and what it is to do.
//!
//! Not for whether its run may go on; that is the run's.

use crate::repo::Repo;
use crate::repo::job::{self, Order};
use crate::repo::outcome::REST_MAX_MS;
use crate::repo::run::Stand;
use crate::repo::spec::Spec;
use crate::repo::status::{Action, JobRef, Phase, Run};
use crate::repo::unlock::unlocks;
use kernel::id::RunSeq;
use kernel::machine::Timestamp;

impl Repo {
    /// The number of a run that is to begin: above all that were given out, by the status and by the Jobs that are there. Or why none may
    /// begin yet.
    pub(super) fn next_number(&mut self, now: Timestamp) -> Result<RunSeq, Stand> {
        let Some(known) = self.jobs.known() else {
            return Err(Stand::Listing(self.jobs.trouble().map(str::to_owned)));
        };
        // Decide nothing while a write is pending: another worker may have started what it makes durable.
        if !self.own.status.is_free(now) {
            return Err(Stand::Making(None));
        }
        let highest = known.values().map(|job| job.attempt.seq).max().unwrap_or_default();
        match self.make_room() {
            Some(stand) => Err(stand),
            None => Ok(self.own.status.draft.seq.max(highest).next()),
        }
    }

    /// Orders the next Job of a run, once its pause is over and nothing else runs.
    pub(super) fn order_next(&mut self, now: Timestamp, mut run: Run) -> Stand {
        // A pause longer than the longest was set by another clock: this one was set back since.
        let rest = run.failing.not_before_ms.map(|until| (until, until.saturating_sub(self.own.wall_ms(now))));
        if let Some((until, _)) = rest.filter(|(_, rest)| (1..=REST_MAX_MS).contains(rest)) {
            self.own.wake_at(self.at_wall(now, until));
            return Stand::Resting;
        }
        if let Some(stand) = self.behind() {
            return stand;
        }
        let Some(known) = self.jobs.known() else { return Stand::Listing(None) };
        // How the Job before ended is durable before the next is ordered.
        if !self.own.status.is_free(now) || self.was_started() {
            return Stand::Making(None);
        }
        let of_run = known.values().map(|job| job.attempt).filter(|attempt| attempt.seq == run.attempt.seq);
        let highest = of_run.map(|attempt| attempt.number).chain([run.attempt.number]).max().unwrap_or_default();
        run.attempt.number = highest.saturating_add(1);
        run.phase = Phase::Starting;
        run.job = Some(JobRef { name: job::name(&self.own.object.id, &self.own.object.uid, run.attempt), uid: None });
        run.started_ms = Some(self.own.wall_ms(now));
        run.failing.not_before_ms = None;
        self.order_unlock(&run);
        if let Some(newest) = self.own.status.draft.newest_mut() {
            *newest = run;
        }
        Stand::Making(None)
    }

    pub(super) fn order(&self, spec: &Spec, run: &Run, name: &str) -> Order {
        let action = run.attempt.action;
        let is_planned = spec.approval.first() == Action::Plan || !matches!(action, Action::Plan | Action::Apply);
        let approved = run.plan.as_ref().filter(|_| is_planned && action.is_change());
        Order {
            name: name.to_owned(),
            repo: self.own.object.id.clone(),
            uid: self.own.object.uid.clone(),
            attempt: run.attempt,
            revision: run.revision.clone(),
            source: spec.source.clone(),
            runner: spec.runner.clone(),
            workspace: spec.workspace.clone(),
            planned: is_planned,
            fingerprint: approved.map(|plan| plan.fingerprint.clone()),
            unlock: unlocks(&self.own.status.draft, run.attempt).cloned(),
            addresses: spec.wants_addresses() && matches!(action, Action::Plan | Action::Apply),
        }
    }
}

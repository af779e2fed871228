//! The conductor: what follows from the present facts. Called after every event and tick; does nothing when nothing has changed.

use std::cmp::Reverse;

use crate::repo::ask::plan_words;
use crate::repo::job::{End, Job};
use crate::repo::run::Stand;
use crate::repo::spec::Keep;
use crate::repo::status::{Action, Phase, Run, Status};
use crate::repo::{Effect, Repo};
use kernel::machine::Timestamp;
use kernel::text;

/// The longest part of a foreign ticket that is quoted.
const TICKET_BYTES_MAX: usize = 24;

impl Repo {
    pub(super) fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        self.keeper.wake(now);
        self.weighing.wake(now);
        self.reporting.wake(now);
        self.jobs.wake(now);
        let mut effects = Vec::from_iter(self.own.begin(now).map(Effect::Object));
        if self.own.gone {
            effects.extend(self.jobs.watch(false).map(Effect::WatchJobs));
        } else {
            self.judge(now, &mut effects);
        }
        effects.extend(self.own.rest(now).into_iter().map(Effect::Object));
        effects
    }

    fn judge(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        match self.own.object.spec.clone() {
            Ok(_) if self.is_leaving() => {}
            Ok(spec) => effects.extend(self.look_for_head(now, &spec)),
            Err(why) => self.own.tell_faulty(now, &format!("its spec cannot be used: {why}")),
        }
        self.drop_destroy();
        // A Repo that is being deleted starts nothing: Kubernetes collects its Jobs.
        self.attend_finalizer(now, effects);
        let draft = &self.own.status.draft;
        if self.is_leaving() {
            self.stand = self.leave(now, effects);
        } else if !self.own.object.deleting || draft.present().is_some_and(|run| run.phase == Phase::Started) {
            let before = (draft.run.clone(), draft.drift.clone());
            self.stand = self.conduct(now, effects);
            // A decision that rests on nothing else is taken at once; there are a handful of them at most.
            let draft = &self.own.status.draft;
            if (&before.0, &before.1) != (&draft.run, &draft.drift) {
                self.stand = self.conduct(now, effects);
            }
        }
        self.queue_head(now);
        effects.extend(self.tidy(now));
        let wanted = self.wants_jobs(now);
        effects.extend(self.jobs.watch(wanted).map(Effect::WatchJobs));
        if !self.own.object.deleting {
            effects.extend(self.report(now));
        }
        self.show(now);
    }

    /// Whether its Jobs have to be known: for a run that goes on, one that is to begin, or Jobs that are to be removed.
    fn wants_jobs(&self, now: Timestamp) -> bool {
        let draft = &self.own.status.draft;
        // Also until the end of a run is durable: only then its Job may be removed.
        let is_open = [draft, &self.own.status.durable].into_iter().filter_map(Status::present).any(Run::is_open);
        let is_looking = || self.drifting.is_due(self.own.wall_ms(now));
        let is_wanted_again = || draft.run.as_ref().is_some_and(|run| self.is_wanted_again(run));
        let is_to_begin = match (self.own.spec(), &draft.head) {
            (Some(spec), Some(head)) => {
                let is_news = || self.is_news(spec, head) && !self.is_being_weighed(spec, head);
                let is_drifted = || self.is_run_for_drift_next(now, spec) || is_looking();
                spec.suspended.is_none() && (is_news() || is_wanted_again() || is_drifted())
            }
            (Some(_) | None, _) => false,
        };
        is_open || is_to_begin || self.is_destroy_next() || self.jobs.is_removing() || self.spare().is_some()
    }

    /// Removes a Job that is not kept.
    fn tidy(&mut self, now: Timestamp) -> Option<Effect> {
        let Job { name, uid, .. } = self.spare()?;
        self.jobs.begin_removal(now, &name).then_some(Effect::Remove(name, uid))
    }

    /// A Job that is not kept: an ended one beyond the bound, or one that was made for a run that another took the place of. Only what
    /// is durably over.
    fn spare(&self) -> Option<Job> {
        let known = self.jobs.known()?;
        let run = self.own.status.durable.run.as_ref()?;
        if let Some(spare) = known.values().find(|job| self.is_spare_look(job)).or_else(|| self.spare_of_destroy(known))
        {
            return Some(spare.clone());
        }
        let keep = self.own.spec().map_or(Keep::default(), |spec| spec.keep);
        let is_present = |job: &Job| {
            matches!(run.phase, Phase::Starting | Phase::Started)
                && job.attempt.seq == run.attempt.seq
                && job.attempt.number == run.attempt.number
        };
        let order = |job: &Job| (job.attempt.seq, job.attempt.number);
        let is_past = |job: &&Job| {
            matches!(job.attempt.action, Action::Plan | Action::Apply)
                && order(job) <= (run.attempt.seq, run.attempt.number)
                && !is_present(job)
                && !job.deleting
                && job.owner.as_ref() == Some(&self.own.object.uid)
        };
        let mut past: Vec<&Job> = known.values().filter(is_past).collect();
        if let Some(unstarted) = past.iter().find(|job| job.suspended && (!job.marked || job.withdrawn)) {
            return Some((*unstarted).clone());
        }
        past.retain(|job| {
            job.is_over() && run.plan.as_ref().is_none_or(|plan| !run.phase.is_open() || plan.job != job.name)
        });
        past.sort_by_key(|job| Reverse(order(job)));
        let (failed, succeeded): (Vec<&Job>, Vec<&Job>) =
            past.into_iter().partition(|job| matches!(job.end, Some(End::Failed(..))));
        let oldest = |jobs: Vec<&Job>, keep: usize| jobs.into_iter().skip(keep).next_back().cloned();
        // The newest that failed stays in any case: its log says why.
        oldest(succeeded, keep.succeeded).or_else(|| oldest(failed, keep.failed.max(1)))
    }

    /// Whether this is the Job of a look that is durably over, or was given up, and whose log nothing names.
    fn is_spare_look(&self, job: &Job) -> bool {
        let durable = &self.own.status.durable;
        let is_present = durable.look().is_some_and(|look| look.attempt == job.attempt);
        let drift = durable.drift.as_ref();
        // One of a higher number was begun by another worker.
        let is_past = drift.is_some_and(|drift| job.attempt.number <= drift.looks && !drift.names(&job.name));
        let is_unstarted = job.suspended && (!job.marked || job.withdrawn);
        job.attempt.action == Action::Drift
            && job.owner.as_ref() == Some(&self.own.object.uid)
            && !job.deleting
            && !is_present
            && is_past
            && (is_unstarted || job.is_over())
    }

    /// Where it stands, in words.
    pub(super) fn words(&self) -> String {
        match &self.stand {
            Stand::Resting | Stand::OnlyPlanned => {
                self.own.status.draft.newest().map_or_else(String::new, |run| run.message.clone())
            }
            Stand::Asked(question) => {
                let plan = self.own.status.draft.newest().and_then(|run| run.plan.as_ref());
                let plan = plan.filter(|_| question.is_of_plan()).map(plan_words).unwrap_or_default();
                format!("{}{plan}{}", question.words(), self.void_yes().unwrap_or_default())
            }
            stand => stand.to_string(),
        }
    }

    /// That a yes is there which is to another question, behind other words.
    fn void_yes(&self) -> Option<String> {
        let asked = &self.own.status.draft.waiting.as_ref()?.ticket;
        let said = self.own.object.answers.approve.as_ref().filter(|said| *said != asked)?;
        Some(format!("; the yes to ticket {} was to an earlier question", text::clean(said, TICKET_BYTES_MAX)))
    }
}

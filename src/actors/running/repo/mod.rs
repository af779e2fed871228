//! What is done for a Repo alone: performs what `objects::repo` decides about its runs.

mod calls;
mod jobs;

use actix::{Context, SpawnHandle};

use crate::actors::object::ObjectActor;
use crate::telemetry::{Metrics, Share};
use objects::owned::OwnMachine;
use objects::ports::repo::Running;
use objects::repo::remark::ended;
use objects::repo::status::Status;
use objects::repo::{Effect, Event};

/// The actor of a Repo.
pub type RepoActor = ObjectActor<Running>;

/// What the actor of a Repo keeps.
pub struct Runs {
    /// The watch of its Jobs, while there is one.
    watch: Option<SpawnHandle>,
    /// What it adds to the metrics.
    open: Share,
    drift: Share,
}

impl Runs {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { watch: None, open: metrics.runs.open(), drift: metrics.runs.drift() }
    }
}

impl RepoActor {
    pub(super) fn perform_effect(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("repo", effect.name());
        match effect {
            Effect::Object(effect) => self.perform_own(effect, ctx),
            Effect::Resolve(due) => self.resolve(due, ctx),
            Effect::Compare(question) => self.compare(question, ctx),
            Effect::WatchJobs(wanted) => self.watch_jobs(wanted, ctx),
            Effect::Make(order) => self.make(order, ctx),
            Effect::Start(job) => self.start_job(job, ctx),
            Effect::Withdraw(job) => self.withdraw(job, ctx),
            Effect::LookAtJob(name) => self.look_at_job(name, ctx),
            Effect::ReadPods(name, uid) => self.read_pods(name, uid, ctx),
            Effect::Remove(name, uid) => self.remove(name, uid, ctx),
            Effect::Hold(held) => self.hold(held, ctx),
            Effect::Ask(ask) => self.ask_gate(None, ask, ctx, Event::Answered),
            Effect::SeeNeeds(needs) => self.see_needs(needs, ctx),
            Effect::Report(saying) => self.report(saying, ctx),
        }
    }

    /// Counts the run that is open, what is known of drift, and the attempt that ended with this change.
    pub(super) fn count_runs(&mut self, change: Option<(&Status, &Status)>) {
        let durable = self.shell.machine().durable();
        self.extra.drift.set(durable.drift_state().into_iter());
        let run = durable.newest();
        self.extra.open.set(run.filter(|run| run.is_open()).map(|run| run.phase.name()).into_iter());
        if let Some(attempt) = change.and_then(|(before, written)| ended(before, written)) {
            self.env.metrics.runs.ended(&attempt);
        }
    }
}

//! The calls to git, to forges and about other objects: each answer is an event of the machine.

use actix::Context;

use super::RepoActor;
use crate::actors::shell::Drives;
use kernel::machine::Timestamp;
use objects::apps::app::TargetKey;
use objects::ports::repo::Saying;
use objects::repo::{Comparison, Event};

impl RepoActor {
    /// Asks git for the wanted commit, which was to be asked for at this time.
    pub(super) fn resolve(&mut self, due: Timestamp, ctx: &mut Context<Self>) {
        let Ok(spec) = self.object().spec.clone() else { return };
        let (heads, id, env) = (self.tended.heads.clone(), self.id(), self.env.clone());
        let looking = async move {
            let from = env.ports.clock.now();
            let begins = || env.metrics.runs.began_looking(env.ports.clock.now().since(due));
            let found = heads.resolve(&id, &spec, &begins).await;
            env.metrics.took("look_at_git", env.ports.clock.now().since(from));
            env.metrics.runs.looked(if found.is_ok() { "found" } else { "failed" });
            found
        };
        self.ask(ctx, looking, |found| found.map_or_else(Event::ResolveFailed, Event::Resolved));
    }

    /// Asks git whether two commits are alike in what concerns the Repo.
    pub(super) fn compare(&mut self, question: Box<Comparison>, ctx: &mut Context<Self>) {
        let (heads, id, env) = (self.tended.heads.clone(), self.id(), self.env.clone());
        let comparing = async move {
            let alike = heads.compare(&id, &question).await;
            env.metrics.runs.compared(match alike {
                Ok(true) => "unchanged",
                Ok(false) => "changed",
                Err(_) => "failed",
            });
            (question, alike)
        };
        self.ask(ctx, comparing, |(question, alike)| Event::Compared(question, alike));
    }

    /// Reports a run to the forge of its repository.
    pub(super) fn report(&mut self, saying: Box<Saying>, ctx: &mut Context<Self>) {
        let (reports, env) = (self.tended.reports.clone(), self.env.clone());
        let reporting = async move {
            let answer = reports.say(&saying).await;
            if let Err(failed) = &answer {
                env.metrics.failure("report_run");
                tracing::warn!(repo = %saying.repo, why = failed.why, "a run was not reported; trying again");
            }
            (saying, answer)
        };
        self.ask(ctx, reporting, |(saying, answer)| Event::Reported(saying, answer));
    }

    /// Puts our finalizer on the object, or takes it away.
    pub(super) fn hold(&mut self, held: bool, ctx: &mut Context<Self>) {
        let (holds, id, uid) = (self.tended.holds.clone(), self.id(), self.object().uid.clone());
        let metrics = self.env.metrics.clone();
        let holding = async move {
            let written = holds.hold(&id, &uid, held).await;
            if let Err(error) = &written {
                metrics.failure("write_finalizer");
                tracing::warn!(repo = %id, %error, held, "could not write the finalizer of a Repo; trying again");
            }
            written
        };
        self.ask(ctx, holding, |written| match written {
            Ok(()) => Event::Held,
            Err(error) => Event::HoldFailed(error.to_string()),
        });
    }

    pub(super) fn see_needs(&mut self, needs: Vec<TargetKey>, ctx: &mut Context<Self>) {
        let (port, metrics) = (self.tended.needs.clone(), self.env.metrics.clone());
        self.ask(ctx, async move { port.see(&needs).await }, move |reads| {
            if reads.iter().any(|(_, read)| read.is_err()) {
                metrics.failure("see_needs");
            }
            Event::NeedsSeen(reads)
        });
    }
}

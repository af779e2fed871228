//! The calls about Jobs, and what the watch of a Repo's Jobs says.

use actix::{ActorContext, AsyncContext, Context, StreamHandler};

use super::RepoActor;
use crate::actors::shell::Drives;
use objects::ports::repo::{JobSight, Start};
use objects::repo::Event;
use objects::repo::job::{Job, Order};
use purge::ports::{PortError, Retry};

impl RepoActor {
    /// Watches the Jobs of the object as it is now, or stops that.
    pub(super) fn watch_jobs(&mut self, wanted: bool, ctx: &mut Context<Self>) {
        if let Some(watch) = self.extra.watch.take() {
            ctx.cancel_future(watch);
        }
        if wanted {
            let object = self.object();
            let sights = self.tended.jobs.watch(&object.id, &object.uid);
            self.extra.watch = Some(ctx.add_stream(sights));
        }
    }

    /// What a call came to, with a line in the log where it failed.
    fn failed(&self, operation: &'static str, name: &str, error: &PortError) -> String {
        self.env.metrics.failure(operation);
        tracing::warn!(repo = %self.id(), job = name, %error, operation, "a call about a Job failed; trying again");
        error.to_string()
    }

    pub(super) fn make(&mut self, order: Box<Order>, ctx: &mut Context<Self>) {
        let (jobs, name) = (self.tended.jobs.clone(), order.name.clone());
        let making = async move { jobs.make(&order).await };
        self.call(ctx, making, move |actor, made| match made {
            Ok(made) => Event::Made(name, made),
            Err(error) => {
                let (why, lasting) =
                    (actor.failed("make_job", &name, &error), error.retry == Retry::Never && !error.denied);
                Event::MakeFailed(name, why, lasting)
            }
        });
    }

    pub(super) fn start_job(&mut self, job: Box<Job>, ctx: &mut Context<Self>) {
        let (jobs, repo, name) = (self.tended.jobs.clone(), self.id(), job.name.clone());
        let revision = job.revision.clone();
        let starting = async move { jobs.start(&repo, &job).await };
        self.call(ctx, starting, move |actor, started| match started {
            Ok(start) => {
                let repo = actor.id();
                if matches!(start, Start::Done(_)) {
                    tracing::info!(%repo, job = name, %revision, "started a Job");
                } else {
                    tracing::debug!(%repo, job = name, "a Job has changed since it was seen; looking again");
                }
                Event::StartAnswered(name, start)
            }
            Err(error) => {
                let why = actor.failed("start_job", &name, &error);
                Event::StartFailed(name, why)
            }
        });
    }

    pub(super) fn withdraw(&mut self, job: Box<Job>, ctx: &mut Context<Self>) {
        let (jobs, repo, name) = (self.tended.jobs.clone(), self.id(), job.name.clone());
        let withdrawing = async move { jobs.withdraw(&repo, &job).await };
        self.call(ctx, withdrawing, move |actor, withdrawn| match withdrawn {
            Ok(answer) => {
                if matches!(answer, Start::Done(_)) {
                    tracing::info!(repo = %actor.id(), job = name, "took a Job back that had not run");
                }
                Event::WithdrawAnswered(name, answer)
            }
            Err(error) => {
                let why = actor.failed("withdraw_job", &name, &error);
                Event::WithdrawFailed(name, why)
            }
        });
    }

    pub(super) fn look_at_job(&mut self, name: String, ctx: &mut Context<Self>) {
        let (jobs, repo, of) = (self.tended.jobs.clone(), self.id(), name.clone());
        let looking = async move { jobs.look(&repo, &of).await };
        self.call(ctx, looking, move |actor, seen| match seen {
            Ok(job) => Event::JobLooked(name, job.map(Box::new)),
            Err(error) => {
                let why = actor.failed("look_at_job", &name, &error);
                Event::JobLookFailed(name, why)
            }
        });
    }

    pub(super) fn read_pods(&mut self, name: String, uid: String, ctx: &mut Context<Self>) {
        let (jobs, repo, of) = (self.tended.jobs.clone(), self.id(), (name.clone(), uid.clone()));
        let reading = async move { jobs.pods(&repo, &of.0, &of.1).await };
        self.call(ctx, reading, move |actor, read| match read {
            Ok(pods) => Event::PodsRead(uid, pods),
            Err(error) => {
                let why = actor.failed("read_pods", &name, &error);
                Event::PodsFailed(uid, why)
            }
        });
    }

    pub(super) fn remove(&mut self, name: String, uid: String, ctx: &mut Context<Self>) {
        let (jobs, repo, of) = (self.tended.jobs.clone(), self.id(), name.clone());
        let removing = async move { jobs.remove(&repo, &of, &uid).await };
        self.call(ctx, removing, move |actor, removed| match removed {
            Ok(()) => Event::Removed(name),
            Err(error) => {
                let why = actor.failed("remove_job", &name, &error);
                Event::RemoveFailed(name, why)
            }
        });
    }
}

impl StreamHandler<JobSight> for RepoActor {
    fn handle(&mut self, sight: JobSight, ctx: &mut Self::Context) {
        let event = match sight {
            JobSight::All(jobs) => Event::JobsListed(jobs),
            JobSight::Seen(job) => Event::JobSeen(job),
            JobSight::Gone(name) => Event::JobGone(name),
            JobSight::Pods(pods) => Event::PodsListed(pods),
            JobSight::Pod(pod) => Event::PodSeen(pod),
            JobSight::PodGone(name) => Event::PodGone(name),
            JobSight::Trouble(error) => {
                self.env.metrics.failure("watch_jobs");
                Event::JobsUnseen(error.to_string())
            }
        };
        self.feed(event, ctx);
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

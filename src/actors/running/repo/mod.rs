//! The actor of one Repo: performs what `domain::repo` decides, and owns the object's status.

mod calls;
mod jobs;
mod mail;
mod shown;

use std::sync::Arc;

use actix::{Actor, ActorContext, Context, Recipient, SpawnHandle};

use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{End, TellNotice};
use crate::actors::running::repo::shown::Counted;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use domain::notices::delivery::Errands;
use domain::ports::pipeline::Objects;
use domain::ports::repo::Running;
use domain::repo::spec::Object;
use domain::repo::{Effect, Repo};

/// The actor. See the module's text.
pub struct RepoActor {
    env: Env,
    running: Running,
    objects: Arc<dyn Objects<Object>>,
    tell_notice: Recipient<TellNotice>,
    stop_listener: StopListener,
    obituary: Obituary,
    shell: Shell<Repo>,
    errands: Errands,
    /// The watch of its Jobs, while there is one.
    watch: Option<SpawnHandle>,
    counted: Counted,
}

impl RepoActor {
    /// The actor of an object as it was just seen; `objects` are those of its place.
    pub fn new(
        env: Env,
        running: Running,
        objects: Arc<dyn Objects<Object>>,
        tell_notice: Recipient<TellNotice>,
        object: Object,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        let clock = &env.ports.clock;
        let epoch_ms = clock.wall_ms().saturating_sub_unsigned(clock.now().as_millis());
        Self {
            shell: Shell::new(Repo::new(epoch_ms, object), &env),
            counted: Counted::new(&env.metrics),
            env,
            running,
            objects,
            tell_notice,
            stop_listener,
            obituary,
            errands: Errands::default(),
            watch: None,
        }
    }

    /// Ends: nothing of it is lost that its status and its Jobs do not say.
    fn end(&mut self, ctx: &mut Context<Self>) {
        self.obituary.end = End::Finished(None);
        ctx.stop();
    }
}

impl Actor for RepoActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.tick(ctx);
    }
}

impl Drives<Repo> for RepoActor {
    fn shell(&mut self) -> Option<&mut Shell<Repo>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("repo", effect.name());
        match effect {
            Effect::Store(status, version) => self.store(*status, version, ctx),
            Effect::Look => self.look(ctx),
            Effect::Resolve(due) => self.resolve(due, ctx),
            Effect::WatchJobs(wanted) => self.watch_jobs(wanted, ctx),
            Effect::Make(order) => self.make(order, ctx),
            Effect::Start(job) => self.start_job(job, ctx),
            Effect::Withdraw(job) => self.withdraw(job, ctx),
            Effect::LookAtJob(name) => self.look_at_job(name, ctx),
            Effect::ReadPods(name, uid) => self.read_pods(name, uid, ctx),
            Effect::Remove(name, uid) => self.remove(name, uid, ctx),
            Effect::ReadCalendar(topic, windows, freezes) => self.read_calendar(topic, &windows, &freezes, ctx),
            Effect::AskVerdict(question) => self.ask_verdict(*question, ctx),
            Effect::SeeNeeds(needs) => self.see_needs(needs, ctx),
            Effect::Tell(notice) => self.tell(notice, ctx),
            Effect::End => self.end(ctx),
        }
    }
}

//! The calls to the API server, to git and to other systems: each answer is an event of the machine.

use std::future::ready;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::RepoActor;
use crate::actors::shell::Drives;
use domain::apps::app::TargetKey;
use domain::kernel::id::{ObjectId, RepoId, Subject};
use domain::kernel::machine::Timestamp;
use domain::notices::notice::Notice;
use domain::objects::asked::Topic;
use domain::objects::gates::{Freeze, Window};
use domain::objects::kept::Written;
use domain::ports::pipeline::Asking;
use domain::repo::spec::Object;
use domain::repo::status::Status;
use domain::repo::{Event, Question};

impl RepoActor {
    pub(super) fn id(&self) -> RepoId {
        self.shell.machine().object().id.clone()
    }

    /// Writes the status over this version of the object.
    pub(super) fn store(&mut self, status: Status, version: String, ctx: &mut Context<Self>) {
        let objects = self.objects.clone();
        let before = self.shell.machine().durable().clone();
        let object = Object { status, version, ..self.shell.machine().object().clone() };
        let (env, repo) = (self.env.clone(), object.id.display_name());
        let writing = async move {
            let from = env.ports.clock.now();
            let written = objects.write(&object).await;
            env.metrics.took("store_status", env.ports.clock.now().since(from));
            let event = match written {
                Ok(Written::Stored(object)) => Event::Stored { version: object.version, whole: true },
                Ok(Written::Pruned(object, lost)) => {
                    env.metrics.failure("store_status_pruned");
                    tracing::warn!(
                        repo,
                        lost = lost.join(", "),
                        "the API server dropped fields of a Repo's status, so nothing is run: apply the CRD of this version \
                         (allclear crds)"
                    );
                    Event::Stored { version: object.version, whole: false }
                }
                Ok(Written::Conflict(Some(object))) => Event::Conflicted(object),
                Ok(Written::Conflict(None)) => Event::StoreFailed("it does not exist any more".to_owned()),
                Err(error) => {
                    env.metrics.failure("store_status");
                    tracing::warn!(repo, %error, "could not write the status of a Repo; trying again");
                    Event::StoreFailed(error.to_string())
                }
            };
            (event, object)
        };
        ctx.spawn(writing.into_actor(self).map(move |(event, object), actor, ctx| {
            actor.stored(event, &object, &before, ctx);
        }));
    }

    pub(super) fn look(&mut self, ctx: &mut Context<Self>) {
        let (objects, id) = (self.objects.clone(), self.id());
        self.ask(ctx, async move { objects.read(&id).await }, |read| match read {
            Ok(object) => Event::Looked(object.map(Box::new)),
            Err(error) => Event::LookFailed(error.to_string()),
        });
    }

    /// Asks git for the wanted commit, which was to be asked for at this time.
    pub(super) fn resolve(&mut self, due: Timestamp, ctx: &mut Context<Self>) {
        let Ok(spec) = self.shell.machine().object().spec.clone() else { return };
        let (heads, id, env) = (self.running.heads.clone(), self.id(), self.env.clone());
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

    pub(super) fn read_calendar(
        &mut self,
        topic: Topic,
        windows: &[Window],
        freezes: &[Freeze],
        ctx: &mut Context<Self>,
    ) {
        let read = self.running.calendar.read(windows, freezes);
        self.ask(ctx, ready(read), move |read| match read {
            Ok(opening) => Event::CalendarRead(topic, opening),
            Err(error) => Event::CalendarFailed(topic, error.to_string()),
        });
    }

    pub(super) fn ask_verdict(&mut self, question: Question, ctx: &mut Context<Self>) {
        let (verdicts, metrics) = (self.running.verdicts.clone(), self.env.metrics.clone());
        let topic = question.topic();
        let Question { source, seq, revision, from } = question;
        let subject = Subject::Repo(self.id());
        let asking = Asking { source, subject, environment: None, revision, from, seq: seq.0 };
        self.ask(ctx, async move { verdicts.ask(&asking).await }, move |verdict| match verdict {
            Ok(opening) => Event::VerdictGiven(topic, opening),
            Err(unanswered) => {
                metrics.failure("ask_verdict");
                Event::VerdictFailed(topic, unanswered.why, unanswered.rest)
            }
        });
    }

    pub(super) fn see_needs(&mut self, needs: Vec<TargetKey>, ctx: &mut Context<Self>) {
        let (port, metrics) = (self.running.needs.clone(), self.env.metrics.clone());
        self.ask(ctx, async move { port.see(&needs).await }, move |reads| {
            if reads.iter().any(|(_, read)| read.is_err()) {
                metrics.failure("see_needs");
            }
            Event::NeedsSeen(reads)
        });
    }

    /// Publishes a notice: as an Event on the object, and to the webhooks.
    pub(super) fn tell(&mut self, notice: Box<Notice>, ctx: &mut Context<Self>) {
        let errand = self.errands.begin(&notice.id);
        if errand.first {
            self.env.metrics.notice(&notice);
        }
        let (env, outbox) = (self.env.clone(), self.tell_notice.clone());
        let (uid, id) = (self.shell.machine().object().uid.clone(), notice.id.clone());
        let told = async move { env.carry(errand, notice, &uid, &outbox).await };
        ctx.spawn(told.into_actor(self).map(move |(event, handed), actor, ctx| {
            let event = match actor.errands.end(&id, event, handed) {
                None => Event::Told(id),
                Some(why) => Event::TellFailed(id, why),
            };
            actor.feed(event, ctx);
        }));
    }
}

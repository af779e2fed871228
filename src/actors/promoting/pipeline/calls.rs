//! The calls to the outside: each answer is an event of the machine.

use std::collections::BTreeSet;
use std::future::ready;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::PipelineActor;
use crate::actors::promoting::message::{Follow, Owner};
use crate::actors::send_even_if_full;
use crate::actors::shell::Drives;
use domain::apps::app::TargetKey;
use domain::kernel::id::{Environment, ObjectId, Subject};
use domain::notices::notice::Notice;
use domain::objects::asked::Topic;
use domain::objects::gates::{Freeze, Window};
use domain::objects::kept::Written;
use domain::pipeline::judge::Stale;
use domain::pipeline::proposal::{Order, Proposed};
use domain::pipeline::spec::Object;
use domain::pipeline::status::Status;
use domain::pipeline::{Event, Question};
use domain::ports::pipeline::Asking;
use domain::ports::{PortError, Retry};

impl PipelineActor {
    /// Writes the status over this version of the object.
    pub(super) fn store(&mut self, status: Status, version: String, ctx: &mut Context<Self>) {
        let objects = self.objects.clone();
        let before = self.shell.machine().durable().clone();
        let object = Object { status, version, ..self.shell.machine().object().clone() };
        let (env, pipeline) = (self.env.clone(), object.id.display_name());
        let writing = async move {
            let from = env.ports.clock.now();
            let written = objects.write(&object).await;
            env.metrics.took("store_status", env.ports.clock.now().since(from));
            let event = match written {
                Ok(Written::Stored(object)) => Event::Stored { version: object.version, whole: true },
                Ok(Written::Pruned(object, lost)) => {
                    env.metrics.failure("store_status_pruned");
                    tracing::warn!(
                        pipeline,
                        lost = lost.join(", "),
                        "the API server dropped fields of a Pipeline's status, so nothing is promoted: apply the CRD of this \
                         version (allclear crds)"
                    );
                    Event::Stored { version: object.version, whole: false }
                }
                Ok(Written::Conflict(Some(object))) => Event::Conflicted(object),
                Ok(Written::Conflict(None)) => Event::StoreFailed("it does not exist any more".to_owned()),
                Err(error) => {
                    env.metrics.failure("store_status");
                    tracing::warn!(pipeline, %error, "could not write the status of a Pipeline; trying again");
                    Event::StoreFailed(error.to_string())
                }
            };
            (event, object)
        };
        ctx.spawn(writing.into_actor(self).map(move |(event, object), actor, ctx| {
            actor.stored(event, &object, &before, ctx);
        }));
    }

    /// Has the clusters report these.
    pub(super) fn follow(&self, targets: Vec<TargetKey>, ctx: &Context<Self>) {
        let (reported, looked) = (ctx.address().recipient(), ctx.address().recipient());
        let owner = Owner { id: self.shell.machine().object().id.clone(), reported, looked };
        send_even_if_full(&self.peers.follow, Follow { owner, targets: targets.into_iter().collect() });
    }

    pub(super) fn look(&mut self, ctx: &mut Context<Self>) {
        let (objects, id) = (self.objects.clone(), self.shell.machine().object().id.clone());
        self.ask(ctx, async move { objects.read(&id).await }, |read| match read {
            Ok(object) => Event::Looked(object.map(Box::new)),
            Err(error) => Event::LookFailed(error.to_string()),
        });
    }

    pub(super) fn read_calendar(
        &mut self,
        environment: Environment,
        topic: Topic,
        windows: Vec<Window>,
        freezes: Vec<Freeze>,
        ctx: &mut Context<Self>,
    ) {
        let read = self.promoting.calendar.read(&windows, &freezes);
        self.ask(ctx, ready(read), move |read| match read {
            Ok(opening) => Event::CalendarRead(environment, topic, opening),
            Err(error) => Event::CalendarFailed(environment, topic, error.to_string()),
        });
    }

    pub(super) fn ask_verdict(&mut self, environment: Environment, question: Question, ctx: &mut Context<Self>) {
        let (verdicts, id) = (self.promoting.verdicts.clone(), self.shell.machine().object().id.clone());
        let metrics = self.env.metrics.clone();
        let topic = question.topic();
        let Question { source, seq, revision, from } = question;
        let within = Some(environment.clone());
        let subject = Subject::Pipeline(id);
        let asking = Asking { source, subject, environment: within, revision, from, seq: seq.0 };
        let asking = async move { verdicts.ask(&asking).await };
        self.ask(ctx, asking, move |verdict| match verdict {
            Ok(opening) => Event::VerdictGiven(environment, topic, opening),
            Err(unanswered) => {
                metrics.failure("ask_verdict");
                Event::VerdictFailed(environment, topic, unanswered.why, unanswered.rest)
            }
        });
    }

    pub(super) fn see_edge(&mut self, environment: Environment, topic: Topic, ctx: &mut Context<Self>) {
        let edges = self.promoting.edges.clone();
        let spec = self.shell.machine().object().spec.as_ref().ok();
        let Some(own) = spec.and_then(|spec| spec.environments.iter().find(|own| own.name == environment)) else {
            return;
        };
        let Some(purged) = own.purged.clone() else { return };
        let namespaces: BTreeSet<_> = own.targets.iter().map(|target| target.namespace.clone()).collect();
        let metrics = self.env.metrics.clone();
        let seeing = async move { edges.are_fresh(&purged, &namespaces).await };
        self.ask(ctx, seeing, move |seen| {
            let fresh = seen.unwrap_or_else(|error| {
                metrics.failure("see_edge");
                Err(Stale(error.to_string()))
            });
            Event::EdgeSeen(environment, topic, fresh)
        });
    }

    pub(super) fn propose(&mut self, order: Box<Order>, ctx: &mut Context<Self>) {
        let (forge, env) = (self.promoting.forge.clone(), self.env.clone());
        let proposing = async move {
            let from = env.ports.clock.now();
            let proposed = forge.propose(&order).await;
            env.metrics.took("propose", env.ports.clock.now().since(from));
            let outcome = proposed.as_ref().map_or("failed", Proposed::name);
            env.metrics.promotions.forge_call(order.repository.forge, outcome);
            match proposed {
                Ok(proposed) => Event::Proposed(order, proposed),
                Err(error) => {
                    env.metrics.failure("propose");
                    Event::ProposeFailed(order, error.cause, error.retry == Retry::Never)
                }
            }
        };
        self.ask(ctx, proposing, |event| event);
    }

    pub(super) fn look_at_proposal(&mut self, order: Box<Order>, number: u64, ctx: &mut Context<Self>) {
        let (forge, metrics) = (self.promoting.forge.clone(), self.env.metrics.clone());
        let looking = async move {
            let seen = forge.look(&order, number).await;
            metrics.promotions.forge_call(order.repository.forge, seen.as_ref().map_or("failed", |state| state.name()));
            match seen {
                Ok(state) => Event::ProposalSeen(order, state),
                Err(error) => {
                    metrics.failure("look_at_proposal");
                    Event::ProposalUnseen(order, error.to_string())
                }
            }
        };
        self.ask(ctx, looking, |event| event);
    }

    pub(super) fn withdraw(&mut self, order: Box<Order>, number: Option<u64>, why: String, ctx: &mut Context<Self>) {
        let (forge, metrics) = (self.promoting.forge.clone(), self.env.metrics.clone());
        let withdrawing = async move {
            let withdrawn: Result<(), PortError> = forge.withdraw(&order, number, &why).await;
            let outcome = if withdrawn.is_ok() { "withdrawn" } else { "failed" };
            metrics.promotions.forge_call(order.repository.forge, outcome);
            match withdrawn {
                Ok(()) => Event::Withdrawn(order),
                Err(error) => {
                    metrics.failure("withdraw");
                    Event::WithdrawFailed(order, error.cause, error.retry == Retry::Never)
                }
            }
        };
        self.ask(ctx, withdrawing, |event| event);
    }

    /// Publishes a notice: as an Event on the object, and to the webhooks.
    pub(super) fn tell(&mut self, notice: Box<Notice>, ctx: &mut Context<Self>) {
        let errand = self.errands.begin(&notice.id);
        if errand.first {
            self.env.metrics.notice(&notice);
        }
        let (env, outbox) = (self.env.clone(), self.peers.tell_notice.clone());
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

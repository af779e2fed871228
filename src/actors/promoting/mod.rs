//! What Pipelines need: performs what `domain::replica::kind_lifecycle` decides. It asks whether their kind is served, and builds, rebuilds and ends the
//! two parts that attend to them.
//!
//! It lives on a thread of its own, so that decoding what other clusters send never holds up a purge. Whatever happens here never ends
//! the process.

pub mod clusters;
pub mod leaf;
pub mod message;
mod parts;
pub mod pipeline;
pub mod pipelines;

use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, Recipient, ResponseFuture, WrapFuture,
};
use futures_util::future::join;

use crate::actors::directory::PeersRestarted;
use crate::actors::lifecycle::StopListener;
use crate::actors::message::{Died, Observe, TellNotice, Who};
use crate::actors::object_watcher::{Served, served};
use crate::actors::observation::{Observation, PromotingSeen};
use crate::actors::promoting::parts::Built;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use domain::ports::PortError;
use domain::ports::pipeline::Promoting;
use domain::replica::kind_lifecycle::{Effect, Event, KindLifecycle, Part};

/// How often we check the parts for a death whose notice was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long a part may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(1);

/// What is built here.
const PARTS: [Part; 2] = [Part::Clusters, Part::Pipelines];

/// What to do where no API server has the kind.
const INSTALL: &str = "install it: allclear crds | kubectl apply -f -";

/// What a person does whose cluster has the kind, and no right of ours to it.
const RIGHTS: &str = "apply deploy/components/pipelines for the rights to them, or set pipeline.enabled to \"off\"";

/// The actor. See the module's text.
pub struct Promoter {
    env: Env,
    promoting: Promoting,
    tell_notice: Recipient<TellNotice>,
    stop_listener: StopListener,
    feature: Shell<KindLifecycle>,
    built: Option<Built>,
    /// Why we may not list them, where nothing is built because of that.
    refused: Option<String>,
}

impl Promoter {
    /// Starts it, on `arbiter` or, without one, on the caller's thread.
    pub fn launch(
        env: Env,
        promoting: Promoting,
        tell_notice: Recipient<TellNotice>,
        stop_listener: StopListener,
        arbiter: Option<&Arbiter>,
    ) -> Addr<Self> {
        let feature = Shell::new(KindLifecycle::new("Pipelines"), &env);
        let promoter = Self { env, promoting, tell_notice, stop_listener, feature, built: None, refused: None };
        match arbiter {
            Some(arbiter) => Self::start_in_arbiter(&arbiter.handle(), |_| promoter),
            None => promoter.start(),
        }
    }

    fn ask_what_is_served(&mut self, ctx: &mut Context<Self>) {
        let Promoting { objects, required, .. } = self.promoting.clone();
        let metrics = self.env.metrics.clone();
        let leave = !required && self.built.is_none();
        let asking = async move { served(&objects, leave).await };
        let answered = move |promoter: &mut Self, answer: Result<Served, PortError>| match answer {
            Ok(Served { places, refused: None }) if places.is_empty() && required => Event::AskFailed(format!(
                "pipeline.enabled is \"on\", and the API server does not have the kind; {INSTALL}"
            )),
            Ok(Served { places, refused }) => {
                promoter.refused = refused;
                Event::Served(places)
            }
            Err(error) => {
                metrics.failure("find_pipelines");
                Event::AskFailed(error.to_string())
            }
        };
        ctx.spawn(asking.into_actor(self).map(move |answer, promoter, ctx| {
            let event = answered(promoter, answer);
            promoter.feed(event, ctx);
        }));
    }
}

impl Actor for Promoter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.tick(ctx);
        ctx.run_interval(SWEEP_EVERY, |promoter, ctx| PARTS.into_iter().for_each(|part| promoter.check(part, ctx)));
    }
}

impl Drives<KindLifecycle> for Promoter {
    fn shell(&mut self) -> Option<&mut Shell<KindLifecycle>> {
        Some(&mut self.feature)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Ask => self.ask_what_is_served(ctx),
            Effect::Build(groups) => self.build(groups, ctx),
            Effect::Rebuild(part) => self.rebuild(part, ctx),
            Effect::End => self.end(ctx),
            Effect::TellAbsent => match &self.refused {
                Some(why) => tracing::info!(why, "nothing is done with Pipelines; {RIGHTS}"),
                None => tracing::info!("this cluster has no Pipelines: their kind is not installed"),
            },
            Effect::TellResting(part, rest) => {
                let (actor, for_s) = (part.name(), rest.as_secs());
                tracing::error!(actor, for_s, "an actor crashed too often; all Pipelines rest, and purges go on");
            }
        }
    }
}

impl Handler<Died> for Promoter {
    type Result = ();

    fn handle(&mut self, Died { who, end: _ }: Died, ctx: &mut Self::Context) {
        if let Who::Part(part) = who {
            self.check(part, ctx);
        }
    }
}

impl Handler<PeersRestarted> for Promoter {
    type Result = ();

    fn handle(&mut self, PeersRestarted(directory): PeersRestarted, _ctx: &mut Self::Context) {
        self.tell_notice = directory.tell_notice;
        self.direct();
    }
}

impl Handler<Observe> for Promoter {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let troubles = self.feature.machine().trouble().into_iter().collect();
        let own = PromotingSeen { troubles, ..PromotingSeen::default() };
        let seen = self.built.as_ref().map(|built| {
            let pipelines = built.pipelines.send(observe).timeout(OBSERVE_WITHIN);
            join(pipelines, built.clusters.send(observe).timeout(OBSERVE_WITHIN))
        });
        Box::pin(async move {
            let mut all = Observation { promoting: Some(own), ..Observation::default() };
            if let Some(seen) = seen {
                let (pipelines, clusters) = seen.await;
                [pipelines, clusters].into_iter().flatten().for_each(|seen| all.absorb(seen));
            }
            all
        })
    }
}

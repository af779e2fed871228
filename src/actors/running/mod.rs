//! What Repos need: performs what `domain::replica::kind_lifecycle` decides. It asks whether their kind is served, and builds, rebuilds and ends the
//! parent of their actors.
//!
//! It lives beside the promoter, on that thread. Whatever happens here never ends the process.

pub mod repo;
pub mod repos;

use std::collections::BTreeSet;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, Recipient, ResponseFuture, WrapFuture,
};

use crate::actors::directory::PeersRestarted;
use crate::actors::lifecycle::{Obituary, StopListener, StopSignal};
use crate::actors::message::{Died, Observe, TellNotice, Who};
use crate::actors::object_watcher::{PeersRebuilt, Served, served};
use crate::actors::observation::{Observation, RunningSeen};
use crate::actors::running::repos::Repos;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX, send_even_if_full};
use domain::ports::PortError;
use domain::ports::repo::Running;
use domain::replica::kind_lifecycle::{Effect, Event, KindLifecycle, Part};

/// How often we check the parent for a death whose notice was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long it may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(1);

/// What to do where the API server does not have the kind.
const INSTALL: &str = "install it: allclear crds | kubectl apply -f -";

/// What a person does whose cluster has the kind, and no right of ours to it.
const RIGHTS: &str = "apply deploy/components/repo for the rights to them, or set repo.enabled to \"off\"";

/// The actor. See the module's text.
pub struct Runner {
    env: Env,
    running: Running,
    tell_notice: Recipient<TellNotice>,
    stop_listener: StopListener,
    feature: Shell<KindLifecycle>,
    built: Option<Built>,
    /// Why we may not list them, where nothing is built because of that.
    refused: Option<String>,
}

/// The parent of all Repos. It ends when its signal is dropped.
struct Built {
    groups: BTreeSet<usize>,
    repos: Addr<Repos>,
    of_repos: StopSignal,
}

impl Runner {
    /// Starts it, on `arbiter` or, without one, on the caller's thread.
    pub fn launch(
        env: Env,
        running: Running,
        tell_notice: Recipient<TellNotice>,
        stop_listener: StopListener,
        arbiter: Option<&Arbiter>,
    ) -> Addr<Self> {
        let feature = Shell::new(KindLifecycle::new("Repos"), &env);
        let runner = Self { env, running, tell_notice, stop_listener, feature, built: None, refused: None };
        match arbiter {
            Some(arbiter) => Self::start_in_arbiter(&arbiter.handle(), |_| runner),
            None => runner.start(),
        }
    }

    /// All places have one API group: it is served in all of them, or in none.
    fn ask_what_is_served(&mut self, ctx: &mut Context<Self>) {
        let (Running { objects, required, .. }, metrics) = (self.running.clone(), self.env.metrics.clone());
        let leave = !required && self.built.is_none();
        let asking = async move { served(objects.get(..1).unwrap_or_default(), leave).await };
        let answered = move |runner: &mut Self, answer: Result<Served, PortError>| match answer {
            Ok(Served { places, refused: None }) if places.is_empty() && required => Event::AskFailed(format!(
                "repo.enabled is \"on\", and the API server does not have the kind; {INSTALL}"
            )),
            Ok(Served { places, refused }) => {
                runner.refused = refused;
                Event::Served(places)
            }
            Err(error) => {
                metrics.failure("find_repos");
                Event::AskFailed(error.to_string())
            }
        };
        ctx.spawn(asking.into_actor(self).map(move |answer, runner, ctx| {
            let event = answered(runner, answer);
            runner.feed(event, ctx);
        }));
    }

    fn build(&mut self, groups: BTreeSet<usize>, ctx: &Context<Self>) {
        let of_repos = StopSignal::under(self.stop_listener.clone());
        let obituary = Obituary::new(ctx.address().recipient(), Who::Part(Part::Repos));
        let (env, running, peers) = (self.env.clone(), self.running.clone(), self.tell_notice.clone());
        let repos = Repos::new(env, running, peers, of_repos.listener(), obituary).start();
        self.built = Some(Built { groups, repos, of_repos });
    }

    fn rebuild(&mut self, part: Part, ctx: &Context<Self>) {
        self.env.metrics.restart(part.name());
        tracing::error!(actor = part.name(), "an actor crashed; it is rebuilt");
        if let Some(built) = self.built.take() {
            self.build(built.groups, ctx);
        }
    }

    fn check(&mut self, ctx: &mut Context<Self>) {
        if self.built.as_ref().is_some_and(|built| !built.repos.connected()) {
            self.feed(Event::Crashed(Part::Repos), ctx);
        }
    }
}

impl Actor for Runner {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.tick(ctx);
        ctx.run_interval(SWEEP_EVERY, Self::check);
    }
}

impl Drives<KindLifecycle> for Runner {
    fn shell(&mut self) -> Option<&mut Shell<KindLifecycle>> {
        Some(&mut self.feature)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Ask => self.ask_what_is_served(ctx),
            Effect::Build(groups) => self.build(groups, ctx),
            Effect::Rebuild(part) => self.rebuild(part, ctx),
            Effect::End => {
                let built = self.built.take();
                let ended = async move {
                    if let Some(built) = built {
                        built.of_repos.end().await;
                    }
                };
                self.ask(ctx, ended, |()| Event::Ended);
            }
            Effect::TellAbsent => match &self.refused {
                Some(why) => tracing::info!(why, "nothing is done with Repos; {RIGHTS}"),
                None => tracing::info!("this cluster has no Repos: their kind is not installed"),
            },
            Effect::TellResting(part, rest) => {
                let (actor, for_s) = (part.name(), rest.as_secs());
                tracing::error!(actor, for_s, "an actor crashed too often; all Repos rest, and purges go on");
            }
        }
    }
}

impl Handler<Died> for Runner {
    type Result = ();

    fn handle(&mut self, _: Died, ctx: &mut Self::Context) {
        self.check(ctx);
    }
}

impl Handler<PeersRestarted> for Runner {
    type Result = ();

    fn handle(&mut self, PeersRestarted(directory): PeersRestarted, _ctx: &mut Self::Context) {
        self.tell_notice = directory.tell_notice;
        if let Some(built) = &self.built {
            send_even_if_full(&built.repos.clone().recipient(), PeersRebuilt(self.tell_notice.clone()));
        }
    }
}

impl Handler<Observe> for Runner {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let troubles = self.feature.machine().trouble().into_iter().chain(self.running.heads.troubles()).collect();
        let own = RunningSeen { troubles, ..RunningSeen::default() };
        let seen = self.built.as_ref().map(|built| built.repos.send(observe).timeout(OBSERVE_WITHIN));
        Box::pin(async move {
            let mut all = Observation { running: Some(own), ..Observation::default() };
            if let Some(seen) = seen {
                all.absorb(seen.await.unwrap_or_default());
            }
            all
        })
    }
}

//! What one kind of objects needs: performs what `kernel::replica::kind_lifecycle` decides. It asks whether the kind is served, and builds,
//! rebuilds and ends the watch of its objects, and what the kind has beside that.
//!
//! It lives on a thread apart, so that decoding what other clusters send never holds up a purge. Whatever happens here never ends the
//! process.

mod parts;
mod served;

use std::time::Duration;

use actix::{Actor, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use futures_util::future::{OptionFuture, join};

use crate::actors::directory::{Outbox, PeersRestarted};
use crate::actors::lifecycle::StopListener;
use crate::actors::message::{Died, Observe, Who};
use crate::actors::object::Tended;
use crate::actors::observation::Observation;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use kernel::replica::kind_lifecycle::{Effect, Event, KindLifecycle};
use parts::Built;
use purge::ports::PortError;
use served::{Served, served};

/// How often we check the parts for a death whose notice was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long a part may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(1);

/// What to do where no API server has the kind.
const INSTALL: &str = "install it: allclear crds | kubectl apply -f -";

/// The actor. See the module's text.
pub struct Supervisor<T: Tended> {
    env: Env,
    tended: T,
    outbox: Outbox,
    stop_listener: StopListener,
    feature: Shell<KindLifecycle>,
    built: Option<Built<T>>,
    /// Why we may not list them, where nothing is built because of that.
    refused: Option<String>,
}

impl<T: Tended + Send> Supervisor<T> {
    /// Starts it, on `arbiter` or, without one, on the caller's thread.
    pub fn launch(
        env: Env,
        tended: T,
        outbox: Outbox,
        stop_listener: StopListener,
        arbiter: Option<&Arbiter>,
    ) -> Addr<Self> {
        let feature = Shell::new(KindLifecycle::new(T::PLURAL), &env);
        let supervisor = Self { env, tended, outbox, stop_listener, feature, built: None, refused: None };
        match arbiter {
            Some(arbiter) => Self::start_in_arbiter(&arbiter.handle(), |_| supervisor),
            None => supervisor.start(),
        }
    }
}

impl<T: Tended> Supervisor<T> {
    fn ask_what_is_served(&mut self, ctx: &mut Context<Self>) {
        let (tended, metrics) = (self.tended.clone(), self.env.metrics.clone());
        let required = tended.ports().required;
        let leave = !required && self.built.is_none();
        let asking = async move { served(&tended, leave).await };
        let answered = move |supervisor: &mut Self, answer: Result<Served, PortError>| match answer {
            Ok(Served { places, refused: None }) if places.is_empty() && required => Event::AskFailed(format!(
                "{}.enabled is \"on\", and the API server does not have the kind; {INSTALL}",
                T::CHILD
            )),
            Ok(Served { places, refused }) => {
                supervisor.refused = refused;
                Event::Served(places)
            }
            Err(error) => {
                metrics.failure(T::FIND);
                Event::AskFailed(error.to_string())
            }
        };
        ctx.spawn(asking.into_actor(self).map(move |answer, supervisor, ctx| {
            let event = answered(supervisor, answer);
            supervisor.feed(event, ctx);
        }));
    }
}

impl<T: Tended> Actor for Supervisor<T> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.tick(ctx);
        ctx.run_interval(SWEEP_EVERY, |supervisor, ctx| {
            T::BESIDE.into_iter().chain([T::WATCH]).for_each(|part| supervisor.check(part, ctx));
        });
    }
}

impl<T: Tended> Drives<KindLifecycle> for Supervisor<T> {
    fn shell(&mut self) -> Option<&mut Shell<KindLifecycle>> {
        Some(&mut self.feature)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Ask => self.ask_what_is_served(ctx),
            Effect::Build(places) => self.build(places, ctx),
            Effect::Rebuild(part) => self.rebuild(part, ctx),
            Effect::End => self.end(ctx),
            Effect::TellAbsent => match &self.refused {
                Some(why) => tracing::info!(why, "nothing is done with {}; {}", T::PLURAL, T::RIGHTS),
                None => tracing::info!("this cluster has no {}: their kind is not installed", T::PLURAL),
            },
            Effect::TellResting(part, rest) => {
                let (actor, for_s) = (part.name(), rest.as_secs());
                tracing::error!(actor, for_s, "an actor crashed too often; all {} rest, and purges go on", T::PLURAL);
            }
        }
    }
}

impl<T: Tended> Handler<Died> for Supervisor<T> {
    type Result = ();

    fn handle(&mut self, Died { who, end: _ }: Died, ctx: &mut Self::Context) {
        if let Who::Part(part) = who {
            self.check(part, ctx);
        }
    }
}

impl<T: Tended> Handler<PeersRestarted> for Supervisor<T> {
    type Result = ();

    fn handle(&mut self, PeersRestarted(directory): PeersRestarted, _ctx: &mut Self::Context) {
        self.outbox = directory.outbox;
        self.direct();
    }
}

impl<T: Tended> Handler<Observe> for Supervisor<T> {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let troubles = self.feature.machine().trouble().into_iter().chain(self.tended.troubles());
        let mut all = T::shown(None, troubles.collect());
        let watch = self.built.as_ref().map(|built| built.watch.send(observe).timeout(OBSERVE_WITHIN));
        let beside = self.built.as_ref().and_then(|built| built.shows.as_ref());
        let beside = beside.map(|beside| beside.send(observe).timeout(OBSERVE_WITHIN));
        Box::pin(async move {
            let (watch, beside) = join(OptionFuture::from(watch), OptionFuture::from(beside)).await;
            [watch, beside].into_iter().flatten().flatten().for_each(|seen| all.absorb(seen));
            all
        })
    }
}

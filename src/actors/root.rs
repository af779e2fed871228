//! The parent of all: performs what `kernel::replica::duty` decides for this replica. It opens the ledger, builds and rebuilds the
//! singletons, ends them, and keeps the lease.

mod apart;
mod browsing;
mod leasing;
mod parent;
mod tree;
mod working;

use std::time::Duration;

use actix::{
    Actor, ActorContext, AsyncContext, Context, Handler, ResponseActFuture, ResponseFuture, SpawnHandle, WrapFuture,
};
use tokio::sync::oneshot;

use crate::actors::message::{Died, Drain, End, LedgerLost, Observe, Wanted, Who};
use crate::actors::observation::Observation;
use crate::actors::root::tree::{DRAIN_WITHIN, Tree};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use kernel::replica::duty::{Duty, Effect, Event, Singleton};
use kernel::replica::lease::{Election, RESIGNS_WITHIN};
use purge::ports::LedgerContents;

/// How often we check the singletons for a death whose notice was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long an actor may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(2);

/// How long an end in order takes at most: for the writes under way, and then for the lease, a renewal of it included.
pub const ENDS_WITHIN: Duration = DRAIN_WITHIN.saturating_add(RESIGNS_WITHIN).saturating_add(leasing::RELEASE_WITHIN);

/// Why the process ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp(pub String);

/// The actor. See the module's text.
pub struct Root {
    env: Env,
    duty: Shell<Duty>,
    /// The ledger that was opened last, until something is built from it.
    ledgered: Option<LedgerContents>,
    tree: Option<Tree>,
    /// The opening or the end under way.
    under_way: Option<SpawnHandle>,
    /// The settings are being left beside the ledger.
    leaving: Option<SpawnHandle>,
    given_up: Option<oneshot::Sender<GivenUp>>,
    /// Callers that wait for the end. They learn of it when these drop with this actor.
    dismissed_by: Vec<oneshot::Sender<()>>,
}

impl Root {
    /// The parent of everything. It signals `given_up` once if it cannot go on.
    pub fn new(env: Env, given_up: oneshot::Sender<GivenUp>) -> Self {
        let Env { ports, .. } = &env;
        let election = ports.lease.as_ref().map(|lease| Election::new(lease.replica().clone(), ports.clock.now()));
        Self {
            duty: Shell::new(Duty::new(election), &env),
            env,
            ledgered: None,
            tree: None,
            under_way: None,
            leaving: None,
            given_up: Some(given_up),
            dismissed_by: Vec::new(),
        }
    }

    fn give_up(&mut self, who: Singleton) {
        self.env.metrics.restart(who.name());
        self.say_given_up(format!("{} crashed more often than it may be rebuilt", who.name()));
    }

    fn say_given_up(&mut self, why: String) {
        if let Some(given_up) = self.given_up.take() {
            // The listener may be ending already.
            let _ = given_up.send(GivenUp(why));
        }
    }

    /// Checks whether a singleton is dead, and has it rebuilt.
    fn check(&mut self, who: Singleton, ctx: &mut Context<Self>) {
        if self.tree.as_ref().is_some_and(|tree| tree.is_dead(who)) {
            self.feed(Event::Crashed(who), ctx);
        }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        for who in Singleton::ALL {
            self.check(who, ctx);
        }
        if let Some(tree) = &mut self.tree {
            tree.send_directory();
            tree.revive_apart();
        }
    }
}

impl Actor for Root {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.tick(ctx);
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl Drives<Duty> for Root {
    fn shell(&mut self) -> Option<&mut Shell<Duty>> {
        Some(&mut self.duty)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Lease(effect) => self.call_lease(effect, ctx),
            Effect::Open => self.open(ctx),
            Effect::Build => self.build(ctx),
            Effect::Rebuild(who) => self.rebuild(who),
            Effect::GiveUp(who) => self.give_up(who),
            Effect::End => self.end(ctx),
            Effect::Abandon => self.abandon(ctx),
            Effect::Stop => ctx.stop(),
            Effect::TellLeading => tracing::info!("leading: this replica works"),
            Effect::TellTakenOver(leader) => {
                tracing::warn!(leader, "another replica has taken over; ending all work, and standing by");
            }
            Effect::TellStandingBy(leader) => tracing::info!(leader, "standing by: another replica leads"),
            Effect::TellTrouble(trouble) => {
                self.env.metrics.failure("lease");
                tracing::warn!("{trouble}");
            }
        }
    }
}

impl Handler<Died> for Root {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        match (who, end) {
            (Who::Singleton(who), End::Crashed) => self.check(who, ctx),
            // All others are children of singletons.
            (Who::Singleton(_), End::Finished(_) | End::Overdrawn | End::Drained) => {}
            (Who::Rollout(_) | Who::Part(_) | Who::Pipeline(_) | Who::Repo(_) | Who::Cluster(_), _) => {}
        }
    }
}

impl Handler<LedgerLost> for Root {
    type Result = ();

    fn handle(&mut self, LedgerLost(origin): LedgerLost, ctx: &mut Self::Context) {
        self.feed(Event::LedgerLost(origin), ctx);
    }
}

impl Handler<Wanted> for Root {
    type Result = ();

    fn handle(&mut self, wanted: Wanted, _ctx: &mut Self::Context) {
        if let Some(tree) = &self.tree {
            tree.pass(wanted);
        }
    }
}

impl Handler<Observe> for Root {
    type Result = ResponseActFuture<Self, Observation>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let duty = self.duty.machine();
        let standing_by = duty.standing_by().map(str::to_owned);
        let mut all = Observation { troubles: duty.troubles(), standing_by, ..Observation::default() };
        let seen = self.tree.as_ref().map(Tree::observe);
        let gathering = async move {
            if let Some(seen) = seen {
                all.absorb(seen.await);
            }
            all
        };
        Box::pin(gathering.into_actor(self))
    }
}

impl Handler<Drain> for Root {
    type Result = ResponseFuture<()>;

    /// Answers when no write is under way and the lease was given back, or after [`ENDS_WITHIN`].
    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) -> Self::Result {
        let (dismissed_by, stopped) = oneshot::channel();
        self.dismissed_by.push(dismissed_by);
        self.feed(Event::Dismissed, ctx);
        Box::pin(async move { drop(stopped.await) })
    }
}

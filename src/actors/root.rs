//! The parent of all: opens the ledger, builds the singletons, rebuilds the ones that crash, and ends the process when one of
//! them crashes too often or when it is told to. Where there is a lease, all of that only while it leads ([`leading`]).

mod leading;

use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFuture, ActorFutureExt, Addr, AsyncContext, Context, Handler, Recipient,
    ResponseActFuture, SpawnHandle, WrapFuture,
};
use tokio::sync::oneshot;

use crate::actors::cluster_group::ClusterGroupActor;
use crate::actors::deployment_watcher::DeploymentWatcher;
use crate::actors::directory::{Directory, PeersRestarted};
use crate::actors::invalidator::Invalidator;
use crate::actors::lifecycle::{Leash, Obituary};
use crate::actors::message::{Died, Drain, End, LedgerLost, Observe, Wanted, Who};
use crate::actors::observation::Observation;
use crate::actors::shell::Shell;
use crate::actors::webhook::Webhook;
use crate::actors::{MAILBOX_MAX, Surroundings, insist};
use crate::domain::budget::Budget;
use crate::domain::id::Origin;
use crate::domain::lease::{Claim, Election};
use crate::domain::refusal::Cause;
use crate::domain::roster::Pin;
use crate::ports::Ledgered;

/// How often the singletons are looked over for a death whose notice was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long an actor may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_secs(2);

/// Writes under way are given this long at the end (fault K16: ledger flushed within 2 s, exit within 5 s).
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// How long is waited before a lost ledger is opened again: one that is lost again and again must not make a hot loop.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// What exists once the ledger is open.
struct Household {
    origin: Origin,
    /// The members of the group, as the ledger had them when it was opened.
    pin: Option<Pin>,
    group: Addr<ClusterGroupActor>,
    invalidator: Addr<Invalidator>,
    webhook: Addr<Webhook>,
    /// `None` between its death and the ledger's next answer.
    watcher: Option<Addr<DeploymentWatcher>>,
    /// The watcher's mailbox was full when a singleton was rebuilt: the new directory must be sent again.
    astray: bool,
}

impl Household {
    fn directory(&self, root: Recipient<LedgerLost>) -> Directory {
        Directory {
            publish: self.group.clone().recipient(),
            show: self.group.clone().recipient(),
            absent: self.group.clone().recipient(),
            forget: self.group.clone().recipient(),
            match_plan: self.invalidator.clone().recipient(),
            place_order: self.invalidator.clone().recipient(),
            tell_notice: self.webhook.clone().recipient(),
            ledger_lost: root,
        }
    }
}

/// Why the process ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp(pub String);

/// The actor. See the module's text.
pub struct Root {
    surroundings: Surroundings,
    leash: Leash,
    household: Option<Household>,
    /// The opening of the ledger under way, or what comes before it. One at a time, or there would be two watchers.
    opening: Option<SpawnHandle>,
    /// `None`: this replica always works.
    election: Option<Shell<Election>>,
    /// We work, as far as the election goes.
    leading: bool,
    /// The household is being ended because another replica leads.
    standing_down: bool,
    /// The lease, to be given back at the end.
    to_release: Option<Claim>,
    /// What the log has said last of the lease.
    told_trouble: Option<String>,
    told_leader: Option<String>,
    budgets: [(Who, Budget); 4],
    given_up: Option<oneshot::Sender<GivenUp>>,
    draining: bool,
}

impl Root {
    /// The parent of everything. `given_up` is told once if it cannot go on.
    pub fn new(surroundings: Surroundings, given_up: oneshot::Sender<GivenUp>) -> Self {
        let budgets = [Who::Watcher, Who::Group, Who::Invalidator, Who::Webhook].map(|who| (who, Budget::default()));
        let clock = &surroundings.ports.clock;
        let election = surroundings
            .ports
            .lease
            .as_ref()
            .map(|lease| Shell::new(Election::new(lease.replica().clone(), clock.now()), &surroundings));
        Self {
            surroundings,
            leash: Leash::default(),
            household: None,
            opening: None,
            election,
            leading: false,
            standing_down: false,
            to_release: None,
            told_trouble: None,
            told_leader: None,
            budgets,
            given_up: Some(given_up),
            draining: false,
        }
    }

    /// Opens the ledger, again and again until it can be, and builds what is missing.
    fn open(&mut self, ctx: &mut Context<Self>) {
        let ledger = self.surroundings.ports.ledger.clone();
        let opening = insist("open_ledger", Cause::OpenLedger, self.surroundings.clone(), move || {
            let ledger = ledger.clone();
            async move { ledger.open().await }
        });
        let opening = opening.into_actor(self).map(|ledgered, root, ctx| root.opened(ledgered, ctx));
        self.open_by(opening, ctx);
    }

    fn open_by(&mut self, opening: impl ActorFuture<Self, Output = ()> + 'static, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.opening.take() {
            ctx.cancel_future(earlier);
        }
        self.opening = Some(ctx.spawn(opening));
    }

    /// The ledger is lost: whatever was built from it ends, and all is built again from the next one. What is in flight is
    /// judged by that one alone, so the present versions become baselines and nothing is purged for them (fault A4).
    fn begin_anew(&mut self, ctx: &mut Context<Self>) {
        tracing::error!(
            "the ledger was deleted while in use; starting a new one, which takes every workload as it is, without a purge"
        );
        self.surroundings.metrics.failure("ledger_lost");
        self.household = None;
        let ended = std::mem::take(&mut self.leash).end();
        let waited = async move {
            ended.await;
            tokio::time::sleep(REOPEN_AFTER).await;
        };
        let reopening = waited.into_actor(self).map(|(), root: &mut Self, ctx| root.open(ctx));
        self.open_by(reopening, ctx);
    }

    fn opened(&mut self, ledgered: Ledgered, ctx: &mut Context<Self>) {
        self.opening = None;
        if self.draining {
            return;
        }
        if self.household.as_ref().is_some_and(|known| known.origin != ledgered.origin) {
            return self.begin_anew(ctx);
        }
        tracing::info!(records = ledgered.records.len(), origin = %ledgered.origin, "ledger opened");
        let (origin, pin) = (ledgered.origin.clone(), ledgered.pin.clone());
        let mut household = match self.household.take() {
            Some(household) => Household { pin, astray: false, ..household },
            None => Household {
                group: self.group(&origin, pin.clone(), ctx),
                invalidator: self.invalidator(ctx),
                webhook: self.webhook(ctx),
                watcher: None,
                astray: false,
                origin,
                pin,
            },
        };
        let directory = household.directory(ctx.address().recipient());
        let obituary = self.obituary(Who::Watcher, ctx);
        let (surroundings, collar) = (self.surroundings.clone(), self.leash.collar());
        household.watcher = Some(DeploymentWatcher::new(surroundings, directory, ledgered, collar, obituary).start());
        self.household = Some(household);
    }

    fn obituary(&self, who: Who, ctx: &mut Context<Self>) -> Obituary {
        Obituary::new(ctx.address().recipient(), who)
    }

    fn group(&self, origin: &Origin, pin: Option<Pin>, ctx: &mut Context<Self>) -> Addr<ClusterGroupActor> {
        let obituary = self.obituary(Who::Group, ctx);
        let (watcher, root) = (ctx.address().recipient(), ctx.address().recipient());
        let (surroundings, collar) = (self.surroundings.clone(), self.leash.collar());
        ClusterGroupActor::new(surroundings, origin.clone(), pin, watcher, root, collar, obituary).start()
    }

    fn invalidator(&self, ctx: &mut Context<Self>) -> Addr<Invalidator> {
        let obituary = self.obituary(Who::Invalidator, ctx);
        Invalidator::new(self.surroundings.clone(), self.leash.collar(), obituary).start()
    }

    fn webhook(&self, ctx: &mut Context<Self>) -> Addr<Webhook> {
        let obituary = self.obituary(Who::Webhook, ctx);
        Webhook::new(self.surroundings.clone(), self.leash.collar(), obituary).start()
    }

    /// Rebuilds a singleton that is dead, if its budget allows, and tells the rollouts that it has forgotten everything.
    fn rebuild(&mut self, who: &Who, ctx: &mut Context<Self>) {
        let Some(household) = &self.household else { return };
        let alive = match who {
            Who::Watcher => household.watcher.as_ref().is_none_or(Addr::connected),
            Who::Group => household.group.connected(),
            Who::Invalidator => household.invalidator.connected(),
            Who::Webhook => household.webhook.connected(),
            // Rollouts are the watcher's children.
            Who::Rollout(_) => true,
        };
        if alive || self.draining || !self.may_restart(who) {
            return;
        }
        tracing::error!(actor = who.name(), "an actor crashed; it is rebuilt");
        let Some(mut household) = self.household.take() else { return };
        match who {
            Who::Watcher => {
                household.watcher = None;
                self.open(ctx);
            }
            Who::Group => household.group = self.group(&household.origin, household.pin.clone(), ctx),
            Who::Invalidator => household.invalidator = self.invalidator(ctx),
            Who::Webhook => household.webhook = self.webhook(ctx),
            Who::Rollout(_) => {}
        }
        household.astray = true;
        self.household = Some(household);
        self.tell_watcher(ctx);
    }

    /// Sends the watcher the directory, if it may not have the newest. A watcher that is not there is built with it.
    fn tell_watcher(&mut self, ctx: &Context<Self>) {
        let Some(household) = self.household.as_mut().filter(|household| household.astray) else { return };
        let Some(watcher) = &household.watcher else { return };
        household.astray = watcher.try_send(PeersRestarted(household.directory(ctx.address().recipient()))).is_err();
        if household.astray {
            self.surroundings.metrics.overflow(Who::Watcher.name());
        }
    }

    fn may_restart(&mut self, who: &Who) -> bool {
        let now = self.surroundings.ports.clock.now();
        self.surroundings.metrics.restart(who.name());
        let allowed = self.budgets.iter_mut().find(|(of, _)| of == who).is_none_or(|(_, budget)| budget.spend(now));
        if !allowed && let Some(given_up) = self.given_up.take() {
            // Whoever listened may be ending already.
            let _ = given_up.send(GivenUp(format!("{} crashed more often than it may be rebuilt", who.name())));
        }
        allowed
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        for who in [Who::Group, Who::Invalidator, Who::Webhook, Who::Watcher] {
            self.rebuild(&who, ctx);
        }
        self.tell_watcher(ctx);
    }
}

impl Actor for Root {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.begin(ctx);
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl Handler<Died> for Root {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        match end {
            End::Crashed => self.rebuild(&who, ctx),
            End::Finished(_) | End::Overdrawn | End::Drained => {}
        }
    }
}

impl Handler<LedgerLost> for Root {
    type Result = ();

    fn handle(&mut self, LedgerLost(origin): LedgerLost, ctx: &mut Self::Context) {
        // Whoever was built from an earlier one may say so late.
        let known = self.household.as_ref().is_some_and(|household| household.origin == origin);
        if known && !self.draining {
            self.begin_anew(ctx);
        }
    }
}

impl Handler<Wanted> for Root {
    type Result = ();

    fn handle(&mut self, wanted: Wanted, _ctx: &mut Self::Context) {
        let watcher = self.household.as_ref().and_then(|household| household.watcher.as_ref());
        // Without a watcher, or if its mailbox is full, it is wanted again in a few seconds.
        if watcher.is_some_and(|watcher| watcher.try_send(wanted).is_err()) {
            self.surroundings.metrics.overflow(Who::Watcher.name());
        }
    }
}

impl Handler<Observe> for Root {
    type Result = ResponseActFuture<Self, Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let Some(Household { group, invalidator, webhook, watcher, .. }) = &self.household else {
            return Box::pin(actix::fut::ready(self.blank()));
        };
        let group = group.send(observe).timeout(OBSERVE_WITHIN);
        let invalidator = invalidator.send(observe).timeout(OBSERVE_WITHIN);
        let webhook = webhook.send(observe).timeout(OBSERVE_WITHIN);
        let watcher = watcher.as_ref().map(|watcher| watcher.send(observe).timeout(OBSERVE_WITHIN));
        let mut all = Observation::default();
        all.troubles.extend(self.lease_trouble());
        let gathering = async move {
            let watcher = async move {
                match watcher {
                    Some(watcher) => watcher.await,
                    None => Err(actix::MailboxError::Closed),
                }
            };
            let (watcher, group, invalidator, webhook) = futures_util::join!(watcher, group, invalidator, webhook);
            for (who, seen) in
                [(Who::Watcher, watcher), (Who::Group, group), (Who::Invalidator, invalidator), (Who::Webhook, webhook)]
            {
                match seen {
                    Ok(seen) => all.absorb(seen),
                    Err(_) => all.troubles.push(format!("{} does not answer", who.name())),
                }
            }
            all
        };
        Box::pin(gathering.into_actor(self))
    }
}

impl Handler<Drain> for Root {
    type Result = ResponseActFuture<Self, ()>;

    /// Answers when nothing is being written any more, or after [`DRAIN_WITHIN`], and the lease was given back.
    fn handle(&mut self, _drain: Drain, _ctx: &mut Self::Context) -> Self::Result {
        self.draining = true;
        let ended = drain(self.household.take()).into_actor(self);
        let resigned = ended.then(|(), root, ctx| root.resign(ctx).into_actor(root));
        Box::pin(resigned.map(|(), _, ctx| ctx.stop()))
    }
}

/// Ends a household in order: no new work, and writes under way are finished.
async fn drain(household: Option<Household>) {
    let Some(Household { group, invalidator, webhook, watcher, .. }) = household else { return };
    if let Some(watcher) = watcher {
        // The rollouts first: their writes end what they began.
        let _ = watcher.send(Drain).timeout(DRAIN_WITHIN).await;
    }
    let _ = webhook.send(Drain).timeout(DRAIN_WITHIN).await;
    let _ = invalidator.send(Drain).timeout(DRAIN_WITHIN).await;
    let _ = group.send(Drain).timeout(DRAIN_WITHIN).await;
}

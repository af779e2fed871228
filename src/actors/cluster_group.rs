//! The broker of the group's records: carries them between our rollouts, the ledger and the boards.
//!
//! A single cluster is a group of one: the view is its own record. If a Redis is configured, every record is posted there
//! too: it is the cache of current tags that people and other programs read (decision 3). In a group every member's records
//! travel through every member's Redis. `purge::broker` decides what to post and read when, and whose copy counts;
//! `purge::agreement::group`, a function of the view, decides agreement.

mod boards;
mod followers;
mod ledger;
mod mail;
mod telling;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::{Actor, AsyncContext, Context, Recipient};

use crate::actors::cluster_group::followers::{Followers, SWEEP_EVERY};
use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::{LedgerLost, Wanted};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, Grouping, MAILBOX_MAX};
use kernel::id::Origin;
use purge::agreement::roster::{Pin, Roster, Stands, settings};
use purge::broker::{Broker, Effect, Identity};
use purge::ports::Board;

/// Brokers made in this process. Each counts its beats from zero, so other members see each as a new life.
static LIVES: AtomicU64 = AtomicU64::new(0);

/// The actor. See the module's text.
pub struct ClusterGroupActor {
    env: Env,
    origin: Origin,
    shell: Shell<Broker>,
    boards: Vec<Arc<dyn Board>>,
    watcher: Recipient<Wanted>,
    root: Recipient<LedgerLost>,
    followers: Followers,
    stop_listener: StopListener,
    /// Sent to root when this ends.
    _obituary: Obituary,
}

/// A name for the next broker of the process called `boot`.
fn life_of(boot: &str) -> String {
    format!("{boot}-{}", LIVES.fetch_add(1, Ordering::Relaxed))
}

impl ClusterGroupActor {
    /// The broker of the group. Its ledger is `origin` and held `pin` when it was opened. `watcher` starts the rollouts that
    /// others wait for; `root` begins anew when the ledger is lost.
    pub fn new(
        env: Env,
        origin: Origin,
        pin: Option<Pin>,
        watcher: Recipient<Wanted>,
        root: Recipient<LedgerLost>,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        let own = &env.settings;
        // Members that the ledger got after our start had looked: we hold, and post under no name that is not ours.
        let is_lost = own.grouping.is_none() && pin.as_ref().is_some_and(|pin| pin.names_others(&own.member));
        let grouping = own.grouping.clone().or_else(|| is_lost.then(Grouping::default));
        let boards = if is_lost { Vec::new() } else { env.ports.boards.clone() };
        let roster = grouping.as_ref().map(|grouping| {
            let settings = settings(&own.policy, grouping.trust.is_proof());
            let roster = Roster::new(own.member.clone(), origin.clone(), grouping.members.clone(), settings, pin)
                .on_own_redis_only(grouping.only_own);
            if grouping.is_derived { roster.derived_from(own.group.clone(), grouping.watch.clone()) } else { roster }
        });
        let names: Vec<String> = boards.iter().map(|board| board.name().to_owned()).collect();
        let mut stands = Stands {
            watch: grouping.as_ref().map(|grouping| grouping.watch.clone()).unwrap_or_default(),
            // Our own comes first. Its address tells people more than a name made from a UID.
            place: names.first().cloned().unwrap_or_default(),
            ..Stands::default()
        };
        // Until the watcher says which of them it may list.
        stands.follow(&own.policy.kinds);
        let identity = Identity {
            member: own.member.clone(),
            origin: origin.clone(),
            boot: grouping.as_ref().map(|grouping| life_of(&grouping.boot)).unwrap_or_default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            stands,
            listen_only: grouping.as_ref().is_some_and(|grouping| grouping.listen_only),
            trust: grouping.as_ref().map(|grouping| grouping.trust).unwrap_or_default(),
        };
        let shell = Shell::new(Broker::new(identity, roster, names), &env);
        Self {
            env,
            origin,
            shell,
            boards,
            watcher,
            root,
            followers: Followers::default(),
            stop_listener,
            _obituary: obituary,
        }
    }
}

impl Drives<Broker> for ClusterGroupActor {
    fn shell(&mut self) -> Option<&mut Shell<Broker>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("broker", effect.name());
        match effect {
            Effect::Identify(board) => self.identify(board, ctx),
            Effect::Read(board, cursor, interest) => self.read(board, cursor, interest, ctx),
            Effect::Post(board, postings) => self.post(board, postings, ctx),
            Effect::Heartbeat(board, beat) => self.beat(board, beat, ctx),
            Effect::GatherWords => self.gather_words(ctx),
            Effect::ReadLedger => self.read_ledger(ctx),
            Effect::LoadRecord(workload) => self.load_record(workload, ctx),
            Effect::ReadPin => self.read_pin(ctx),
            Effect::StorePin(pin, over) => self.store_pin(pin, over, ctx),
            Effect::Tell(workload) => self.tell(&workload),
            Effect::TellHold(hold) => self.tell_hold(&hold),
            Effect::TellRelease(reason) => self.tell_release(reason),
            Effect::TellHeldUp(workload, hold) => self.tell_held_up(&workload, &hold, ctx),
            Effect::TellRejected(board, copies, why) => self.tell_rejected(board, copies, &why),
            Effect::TellDoubt(why) => tracing::warn!(why, "newer copies of our own records proved nothing"),
            Effect::Want(workload) => {
                // The broker asks again in 5 s if no rollout follows it by then.
                if self.watcher.try_send(Wanted(workload)).is_err() {
                    self.env.metrics.overflow("root");
                }
            }
        }
    }
}

impl Actor for ClusterGroupActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.listen(ctx);
        self.tick(ctx);
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

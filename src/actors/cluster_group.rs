//! The broker of the group's records: carries them between our rollouts, the ledger and the boards.
//!
//! A single cluster is a group of one: the view is its own record. When a Redis is configured, every record is shown there
//! too, the cache of current tags that people and other programs read (decision 3). In a group every member's records travel
//! through every member's Redis. What is posted and read when, and whose copy counts, is decided by `domain::broker`;
//! agreement itself by `domain::group`, a function of the view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, MessageResult, Recipient, StreamHandler,
    WrapFuture,
};
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::actors::lifecycle::{Collar, Obituary};
use crate::actors::message::{
    Absent, Drain, End, Follower, Forget, LedgerLost, Observe, Publish, Show, ViewReported, Wanted,
};
use crate::actors::observation::Observation;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{MAILBOX_MAX, Surroundings};
use crate::domain::board::{Cursor, Interest, News};
use crate::domain::broker::{Broker, Effect, Event, Identity};
use crate::domain::group::NumberedView;
use crate::domain::id::{Origin, Seq, WorkloadId};
use crate::domain::image::brief;
use crate::domain::notice::{Kind, Notice};
use crate::domain::refusal::Cause;
use crate::domain::rollout::Summary;
use crate::domain::roster::{Hold, Pin, Reason, Roster, settings};
use crate::domain::tally::tally;
use crate::ports::{Board, PinError, PortError};

/// How often it is looked whether a rollout has ended, and one that could not be told is told again.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Rollouts whose words go into a beat. A beat is read by every member every 5 s; the status page has all of them.
const WORDS_MAX: usize = 50;

/// Characters of each.
const WORDS_CHARS_MAX: usize = 200;

/// How long a rollout may take to say how it stands, before the beat goes without it.
const WORDS_WITHIN: Duration = Duration::from_secs(1);

/// Brokers made in this process. Each begins to count its beats anew, so each is a life of its own to those who hear them.
static LIVES: AtomicU64 = AtomicU64::new(0);

/// The actor. See the module's text.
pub struct ClusterGroupActor {
    surroundings: Surroundings,
    origin: Origin,
    shell: Shell<Broker>,
    boards: Vec<Arc<dyn Board>>,
    watcher: Recipient<Wanted>,
    root: Recipient<LedgerLost>,
    followers: BTreeMap<WorkloadId, Follower>,
    /// Views given out so far.
    views: u64,
    /// Workloads whose follower's mailbox was full.
    untold: BTreeSet<WorkloadId>,
    collar: Collar,
    obituary: Obituary,
}

/// A board says that there is news.
struct Woken(usize);

/// Tells root when the ledger turns out to be no more: nothing but a ledger's next life helps then (fault A4).
struct Reporter {
    root: Recipient<LedgerLost>,
    origin: Origin,
}

impl Reporter {
    /// Looks at an answer of the ledger, and puts its error into words.
    fn heed<T>(&self, answer: Result<T, PinError>) -> Result<T, String> {
        if matches!(answer, Err(PinError::Lost(_))) {
            // If the message is lost, the next answer says so again.
            let _ = self.root.try_send(LedgerLost(self.origin.clone()));
        }
        answer.map_err(|error| error.to_string())
    }
}

/// A name for the next broker of the process that is called so.
fn life_of(boot: &str) -> String {
    format!("{boot}-{}", LIVES.fetch_add(1, Ordering::Relaxed))
}

impl ClusterGroupActor {
    /// The broker of the group whose own ledger is `origin` and held `pin` when it was opened. `watcher` starts the rollouts
    /// that are wanted, `root` begins anew when the ledger is lost.
    pub fn new(
        surroundings: Surroundings,
        origin: Origin,
        pin: Option<Pin>,
        watcher: Recipient<Wanted>,
        root: Recipient<LedgerLost>,
        collar: Collar,
        obituary: Obituary,
    ) -> Self {
        let own = &surroundings.settings;
        let boards = surroundings.ports.boards.clone();
        let roster = own.grouping.as_ref().map(|grouping| {
            let settings = settings(&own.policy, grouping.trust.is_proof());
            Roster::new(own.member.clone(), origin.clone(), grouping.members.clone(), settings, pin)
        });
        let names: Vec<String> = boards.iter().map(|board| board.name().to_owned()).collect();
        let identity = Identity {
            member: own.member.clone(),
            origin: origin.clone(),
            boot: own.grouping.as_ref().map(|grouping| life_of(&grouping.boot)).unwrap_or_default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // Our own comes first. Its address tells people more than a name made from a UID.
            place: names.first().cloned().unwrap_or_default(),
            silent: own.grouping.as_ref().is_some_and(|grouping| grouping.silent),
            trust: own.grouping.as_ref().map(|grouping| grouping.trust).unwrap_or_default(),
        };
        let shell = Shell::new(Broker::new(identity, roster, names), &surroundings);
        Self {
            surroundings,
            origin,
            shell,
            boards,
            watcher,
            root,
            followers: BTreeMap::new(),
            views: 0,
            untold: BTreeSet::new(),
            collar,
            obituary,
        }
    }

    /// Makes one call to a board, counts how it ends, and says it in words.
    fn call<F, T>(
        &mut self,
        (index, what): (usize, &'static str),
        call: impl FnOnce(Arc<dyn Board>) -> F + 'static,
        event: impl FnOnce(usize, Result<T, String>) -> Event + 'static,
        ctx: &mut Context<Self>,
    ) where
        F: Future<Output = Result<T, PortError>> + 'static,
        T: 'static,
    {
        let Some(board) = self.boards.get(index).cloned() else { return };
        let metrics = self.surroundings.metrics.clone();
        let clock = self.surroundings.ports.clock.clone();
        let made = async move {
            let (name, from) = (board.name().to_owned(), clock.now());
            let answer = call(board).await;
            metrics.took(what, clock.now().since(from));
            let failed = answer.as_ref().err().map(|error| error.reason.map_or("other", |reason| reason.name()));
            metrics.board(&name, what, failed, clock.wall_ms());
            answer
        };
        ctx.spawn(made.into_actor(self).map(move |answer, actor, ctx| {
            if let Err(error) = &answer
                && !actor.shell.machine().is_troubled(index)
            {
                tracing::warn!(%error, "a Redis of the group does not work; trying again, and the others are used");
            }
            actor.feed(event(index, answer.map_err(|error| error.to_string())), ctx);
        }));
    }

    /// The next view of a workload. Answers and reports may overtake each other, so they are numbered.
    fn view(&mut self, workload: &WorkloadId) -> NumberedView {
        self.views = self.views.saturating_add(1);
        NumberedView { number: self.views, view: self.shell.machine().view(self.shell.now(), workload) }
    }

    fn tell(&mut self, workload: &WorkloadId) {
        let Some(Follower { view_reported, .. }) = self.followers.get(workload).cloned() else { return };
        let view = self.view(workload);
        if view_reported.try_send(ViewReported(view)).is_err() && view_reported.connected() {
            self.surroundings.metrics.overflow("rollout");
            self.untold.insert(workload.clone());
        }
    }

    fn tell_hold(&self, Hold { reason, words }: &Hold) {
        self.surroundings.metrics.held(*reason, true);
        tracing::warn!(reason = reason.name(), why = words, "the group was held up; nothing is purged");
    }

    fn tell_release(&self, reason: Reason) {
        self.surroundings.metrics.held(reason, false);
        tracing::warn!(reason = reason.name(), "the group was released; it is held up for this reason no more");
    }

    /// Puts an Event on a workload that waits. It is for recent eyes; should it be lost, the status says the same.
    fn tell_held_up(&mut self, workload: &WorkloadId, hold: &Hold, ctx: &mut Context<Self>) {
        let view = self.shell.machine().view(self.shell.now(), workload);
        let own = view.members.get(&self.surroundings.settings.member).and_then(Option::as_ref);
        let Some(record) = own.map(|known| &known.record) else { return };
        let at_ms = self.surroundings.ports.clock.wall_ms();
        let rollout = format!("{}/{workload}/{}", self.origin, record.seq);
        let notice = Notice {
            id: Notice::id_of(&rollout, Kind::GroupStalled, &format!("held/{}/{at_ms}", hold.reason.name())),
            kind: Kind::GroupStalled,
            at_ms,
            workload: workload.clone(),
            seq: record.seq,
            rollout,
            change: brief(&record.version),
            message: format!("not purged while the group is held up: {}", hold.words),
            hosts: Vec::new(),
            purges: Vec::new(),
            cut: false,
            late: false,
        };
        let (surroundings, uid) = (self.surroundings.clone(), record.uid.clone());
        let publish = async move {
            let published = surroundings.ports.events.publish(&notice, &uid).await;
            surroundings.heard(Cause::PublishEvents, &notice.workload.namespace, published.as_ref().err());
            if published.is_err() {
                surroundings.metrics.failure("event");
            }
        };
        ctx.spawn(publish.into_actor(self));
    }

    fn reporter(&self) -> Reporter {
        Reporter { root: self.root.clone(), origin: self.origin.clone() }
    }

    /// Asks some rollouts how they stand.
    fn gather_words(&mut self, ctx: &mut Context<Self>) {
        let asked: Vec<_> = self
            .followers
            .values()
            .take(WORDS_MAX)
            .map(|follower| follower.observe.send(Observe).timeout(WORDS_WITHIN))
            .collect();
        let clock = self.surroundings.ports.clock.clone();
        self.ask(ctx, async move { (join_all(asked).await, clock.wall_ms()) }, |(seen, at_ms)| {
            let rollouts = seen.into_iter().flatten().flat_map(|seen| seen.rollouts);
            let words = rollouts.filter_map(|Summary { workload, seq, own, .. }| {
                Some((workload, (Seq(seq), own?.chars().take(WORDS_CHARS_MAX).collect::<String>())))
            });
            Event::WordsGathered(words.collect(), at_ms)
        });
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        for workload in std::mem::take(&mut self.untold) {
            self.tell(&workload);
        }
        let ended = self.followers.iter().filter(|(_, follower)| !follower.view_reported.connected());
        for workload in ended.map(|(workload, _)| workload.clone()).collect::<Vec<_>>() {
            self.followers.remove(&workload);
            self.feed(Event::Left(workload), ctx);
        }
    }

    /// Reads a board, and counts what was not believed of it.
    fn read(&mut self, index: usize, cursor: Cursor, interest: Interest, ctx: &mut Context<Self>) {
        let call = |board: Arc<dyn Board>| async move { board.read_of(&cursor, &interest).await.map(Box::new) };
        let metrics = self.surroundings.metrics.clone();
        let name = self.boards.get(index).map(|board| board.name().to_owned()).unwrap_or_default();
        let event = move |index, news: Result<Box<News>, String>| {
            metrics.board_rejected(&name, news.as_ref().map_or(0, |news| news.rejected.len()));
            Event::Read(index, news)
        };
        self.call((index, "board_read"), call, event, ctx);
    }
}

impl Drives<Broker> for ClusterGroupActor {
    fn shell(&mut self) -> Option<&mut Shell<Broker>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.surroundings.metrics.effect("broker", effect.name());
        let ledger = self.surroundings.ports.ledger.clone();
        match effect {
            Effect::Identify(index) => {
                let call = |board: Arc<dyn Board>| async move { board.identity().await };
                self.call((index, "board_identify"), call, Event::Identified, ctx);
            }
            Effect::Read(index, cursor, interest) => self.read(index, cursor, interest, ctx),
            Effect::Post(index, postings) => {
                let origin = self.origin.clone();
                let call = |board: Arc<dyn Board>| async move { board.post(&origin, &postings).await };
                self.call((index, "board_post"), call, Event::Posted, ctx);
            }
            Effect::Beat(index, beat) => {
                let call =
                    |board: Arc<dyn Board>| async move { board.beat(&beat).await.map(|beat| beat.map(Box::new)) };
                self.call((index, "board_beat"), call, Event::Beaten, ctx);
            }
            Effect::GatherWords => self.gather_words(ctx),
            Effect::ReadLedger => self.ask(ctx, async move { ledger.peek().await }, move |read| {
                let read = read.map(|read| read.map(|ledgered| (ledgered.origin, ledgered.records)));
                Event::LedgerRead(read.map_err(|error| error.to_string()))
            }),
            Effect::LoadRecord(workload) => {
                let reporter = self.reporter();
                let read = async move {
                    let record = async {
                        let record = ledger.load(&workload).await?;
                        let floor = ledger.seq_floor(&workload).await?;
                        // A ledger that was deleted has no records either. That is another matter than one set back.
                        ledger.pin().await?;
                        Ok((record.map(Box::new), floor))
                    };
                    (record.await, workload)
                };
                self.ask(ctx, read, move |(read, workload)| Event::RecordLoaded(workload, reporter.heed(read)));
            }
            Effect::ReadPin => {
                let reporter = self.reporter();
                self.ask(ctx, async move { ledger.pin().await }, move |pin| Event::PinRead(reporter.heed(pin)));
            }
            Effect::StorePin(pin, over) => {
                let reporter = self.reporter();
                let store = async move { (ledger.store_pin(&pin, over.as_ref()).await, pin) };
                self.ask(ctx, store, move |(stored, pin)| Event::PinStored(pin, reporter.heed(stored)));
            }
            Effect::Tell(workload) => self.tell(&workload),
            Effect::TellHold(hold) => self.tell_hold(&hold),
            Effect::TellRelease(reason) => self.tell_release(reason),
            Effect::TellHeldUp(workload, hold) => self.tell_held_up(&workload, &hold, ctx),
            Effect::TellRejected(index, copies, why) => {
                let board = self.boards.get(index).map_or("", |board| board.name());
                tracing::warn!(board, copies, why, "copies were not believed; this is the last one's reason");
            }
            Effect::TellDoubt(why) => tracing::warn!(why, "newer copies of our own records proved nothing"),
            Effect::Want(workload) => {
                // It is wanted again in 5 s if nobody follows it by then.
                if self.watcher.try_send(Wanted(workload)).is_err() {
                    self.surroundings.metrics.overflow("root");
                }
            }
        }
    }
}

impl Actor for ClusterGroupActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.collar.clone().bind(self, ctx);
        if self.surroundings.settings.grouping.is_some() {
            for (index, board) in self.boards.iter().enumerate() {
                ctx.add_stream(board.wake_ups().map(move |()| Woken(index)));
            }
        }
        self.tick(ctx);
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl StreamHandler<Woken> for ClusterGroupActor {
    fn handle(&mut self, Woken(index): Woken, ctx: &mut Self::Context) {
        self.feed(Event::Woken(index), ctx);
    }

    /// Without wake-ups there are still the polls.
    fn finished(&mut self, _: &mut Self::Context) {}
}

impl Handler<Publish> for ClusterGroupActor {
    type Result = MessageResult<Publish>;

    fn handle(&mut self, Publish { workload, record, follower }: Publish, ctx: &mut Self::Context) -> Self::Result {
        self.followers.insert(workload.clone(), follower);
        self.untold.remove(&workload);
        self.feed(Event::Published(workload.clone(), record), ctx);
        MessageResult(self.view(&workload))
    }
}

impl Handler<Show> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Show(records): Show, ctx: &mut Self::Context) {
        self.feed(Event::Shown(records), ctx);
    }
}

impl Handler<Absent> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Absent(workload, seq): Absent, ctx: &mut Self::Context) {
        self.feed(Event::Absent(workload, seq), ctx);
    }
}

impl Handler<Forget> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, Forget { workload, seq, revision }: Forget, ctx: &mut Self::Context) {
        self.feed(Event::Forgotten(workload, seq, revision), ctx);
    }
}

impl Handler<Drain> for ClusterGroupActor {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.obituary.end = End::Drained;
        ctx.stop();
    }
}

impl Handler<Observe> for ClusterGroupActor {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let (broker, now) = (self.shell.machine(), self.shell.now());
        let own = &self.surroundings.settings;
        let tally = |workload| tally(workload, &broker.view(now, workload), &own.member, &own.policy.group);
        let followed = self.followers.keys().filter(|_| own.grouping.is_some());
        let tallies = followed.map(tally).collect();
        let (troubles, group) = (broker.troubles(now), broker.seen(now));
        MessageResult(Observation { troubles, group, tallies, ..Observation::default() })
    }
}

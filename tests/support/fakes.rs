//! The outside, faked: a cluster that follows a script, a ledger, CloudFront, receivers, and time, all in virtual time and
//! all in memory, so that the real actors run thousands of lives a minute. Whatever is asked of it is written down.
//! A [`World`] outlives the systems that run in it, the way a cluster outlives a process.

pub mod backup;
mod board;
mod cdn;
mod dice;
mod noted;
pub mod objects;
mod ports;
pub mod promoting;
pub mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear::actors::ports::Ports;
use allclear::adapters::ledger::memory::MemoryLedger;
use kernel::id::{Kind, Member, NoticeId, Origin, Reference, Seq, Subject, WorkloadId};
use kernel::names::distribution::Distribution;
use kernel::remark::Remark;
use kernel::watches::listed::Scope;
use notices::delivery::{Content, Delivery};
use notices::notice::Notice;
use proof::asked::Answers;
use purge::ports::{CdnError, Ledger, PortError, Sight, StoreError};
use purge::purges::purge::CdnErrorClass;
use purge::records::record::Record;
use purge::site::{RouteClaim, Way};
use purge::workloads::readiness::Pod;
use purge::workloads::serving::Serving;
use purge::workloads::workload::Workload;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use self::board::Server;
pub use self::dice::{Dice, Odds};
pub use self::noted::{Asked, Created, Read, Written};
use self::ports::FakeClock;

/// What every simulated panic says, so that a real one is told from it.
pub const SIMULATED: &str = "simulated panic";

/// Milliseconds of the world's own time, which goes on from one life of the program to the next.
pub type Millis = u64;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It takes this long.
    Delay(Millis),
    /// It fails without having been carried out.
    Fail,
    /// It fails so after this long.
    FailAfter(Millis),
    /// It is refused: a right is missing.
    Deny,
    /// It is refused: what was sent has no room.
    Full,
    /// It is carried out and reports a failure.
    LoseAnswer,
    /// The actor that made it panics.
    Panic,
    /// It never answers.
    Hang,
}

/// Everything that is and was.
pub struct State {
    before: Millis,
    draws: u64,
    life_began: Option<Instant>,
    /// The Deployments there are.
    pub cluster: BTreeMap<WorkloadId, Workload>,
    /// The pods of workloads that are of interest, and who of them serves.
    pub serving: BTreeMap<WorkloadId, Serving>,
    /// What a watch of pods begins with; all are of the workload that is watched.
    pub pods: Result<Vec<Pod>, PortError>,
    /// Whether Services publish pods before they are ready.
    pub publishes_unready: bool,
    /// What Ingresses and routes of all namespaces take.
    pub claims: Vec<RouteClaim>,
    /// Names of workloads whose Ingress is gone.
    pub unrouted: BTreeSet<String>,
    /// What the Ingress of a workload sends to its Service, where it does not take the whole host by its name.
    pub ways: BTreeMap<String, Vec<Way>>,
    watches: Vec<mpsc::UnboundedSender<Shown>>,
    /// Watches under way, opened so far.
    pub watches_opened: usize,
    /// The ledger, as it is now.
    pub ledger: MemoryLedger,
    /// The ledger object was deleted: every write says so until it is opened again.
    pub ledger_lost: bool,
    ledgers: u64,
    /// What the account has.
    pub distributions: Vec<Distribution>,
    /// The invalidations CloudFront has, by their reference.
    pub created: BTreeMap<Reference, Created>,
    /// How long an invalidation takes.
    pub purge_takes: Millis,
    /// What the edge answers; `None`: nothing.
    pub edge: Option<Answers>,
    /// Every call, in its order.
    pub asked: Vec<Asked>,
    /// Every fresh read of a workload that was answered.
    pub reads: Vec<Read>,
    /// Every write of a record that the ledger carried out.
    pub written: Vec<Written>,
    /// Deliveries a receiver has taken: its id and its bytes.
    pub delivered: Vec<(Millis, String, Content)>,
    /// Notices that became Events, with their times.
    pub published: Vec<(Millis, NoticeId, Notice)>,
    /// Remarks that became Events.
    pub remarked: Vec<(Subject, Remark)>,
    /// Every notice the ledger has held.
    pub notices: BTreeMap<NoticeId, Notice>,
    /// Notices of one id with two contents.
    pub contradictions: Vec<String>,
    /// Faults at chosen calls, each for one call: the method, whom it must be about (a part of it), how many matching calls
    /// go well first, and what then happens.
    plan: Vec<(&'static str, String, u32, Fault)>,
    pub odds: Odds,
    /// What decides where something is up to chance.
    pub dice: Dice,
    group: Option<(Member, Vec<Server>)>,
    /// Whose CloudFront it uses, where that is not its own.
    account: Option<World>,
    pub promotions: promoting::Promotions,
    pub runs: running::Runs,
}

enum Shown {
    Sight(Box<Sight>),
    Panic,
}

/// A handle to everything outside.
#[derive(Clone)]
pub struct World(Arc<Mutex<State>>);

impl World {
    /// A world with nothing in it, whose chances follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            before: 0,
            draws: 0,
            life_began: None,
            cluster: BTreeMap::new(),
            serving: BTreeMap::new(),
            pods: Ok(Vec::new()),
            publishes_unready: false,
            claims: Vec::new(),
            unrouted: BTreeSet::new(),
            ways: BTreeMap::new(),
            watches: Vec::new(),
            watches_opened: 0,
            ledger: MemoryLedger::new(Origin("ledger-0".to_owned())),
            ledger_lost: false,
            ledgers: 0,
            distributions: Vec::new(),
            created: BTreeMap::new(),
            purge_takes: 20_000,
            edge: None,
            asked: Vec::new(),
            reads: Vec::new(),
            written: Vec::new(),
            delivered: Vec::new(),
            published: Vec::new(),
            remarked: Vec::new(),
            notices: BTreeMap::new(),
            contradictions: Vec::new(),
            plan: Vec::new(),
            odds: Odds::default(),
            dice: Dice(seed),
            group: None,
            account: None,
            promotions: promoting::Promotions::default(),
            runs: running::Runs::default(),
        })))
    }

    /// All of it, for this thread alone as long as it holds the guard.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world's own time.
    pub fn now(&self) -> Millis {
        self.state().now()
    }

    /// A process begins: its clock starts at zero, the world's goes on.
    pub fn life_begins(&self) {
        self.state().life_began = Some(Instant::now());
    }

    /// The process is gone.
    pub fn life_ends(&self) {
        let mut state = self.state();
        state.before = state.now();
        state.life_began = None;
        state.watches.clear();
        state.promotions.life_ends();
        state.runs.life_ends();
    }

    /// Time passes while no process runs.
    pub fn pass(&self, millis: Millis) {
        self.state().before += millis;
    }

    /// The ports of one process.
    pub fn ports(&self) -> Ports {
        Ports {
            clock: Arc::new(FakeClock { began: Instant::now(), world: self.clone() }),
            random: Arc::new(self.clone()),
            cluster: Arc::new(self.clone()),
            events: Arc::new(self.clone()),
            ledger: Arc::new(self.clone()),
            cdn: Arc::new(self.clone()),
            edge: Arc::new(self.clone()),
            caches: Arc::new(self.clone()),
            notifier: Arc::new(self.clone()),
            lease: None,
            boards: self.boards(),
            promoting: self.promoting_ports(),
            running: self.running_ports(),
        }
    }

    /// The next call of `method` about something that contains `about` goes wrong, after `skip` that go well.
    pub fn plan(&self, method: &'static str, about: &str, skip: u32, fault: Fault) {
        self.state().plan.push((method, about.to_owned(), skip, fault));
    }

    /// Whether all planned faults have happened.
    pub fn plan_is_done(&self) -> bool {
        self.state().plan.is_empty()
    }

    /// What is created from here is created in the AWS account of `other`, by its time; what goes wrong with the calls is
    /// still up to this world.
    pub fn shares_account(&self, other: &World) {
        self.state().account = Some(other.clone());
    }

    /// The world whose [`State::created`] counts.
    fn account(&self) -> World {
        self.state().account.clone().unwrap_or_else(|| self.clone())
    }

    /// A distribution that serves these hosts.
    pub fn distribution(&self, id: &str, aliases: &[&str]) {
        self.state().distributions.push(Distribution {
            id: id.parse().expect("a distribution id"),
            domain_name: format!("{}.cloudfront.net", id.to_lowercase()),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            origins: Vec::new(),
            enabled: true,
            staging: false,
            tenant_only: false,
            rewrites: false,
            cache_tags: false,
        });
    }

    /// The cluster changes, and its watches show it.
    pub fn set(&self, workload: Workload) {
        self.set_unseen(workload.clone());
        self.show(|| Sight::Seen(Box::new(workload.clone())));
    }

    /// The cluster changes, and no watch shows it: it was coalesced with what comes next.
    pub fn set_unseen(&self, workload: Workload) {
        self.state().cluster.insert(workload.id.clone(), workload);
    }

    /// A workload is deleted.
    pub fn delete(&self, id: &WorkloadId) {
        self.state().cluster.remove(id);
        self.show(|| Sight::Gone(id.clone()));
    }

    /// Every watch shows this.
    pub fn show(&self, sight: impl Fn() -> Sight) {
        self.state().watches.retain(|watch| watch.send(Shown::Sight(Box::new(sight()))).is_ok());
    }

    /// Every watch lists everything again.
    pub fn relist(&self) {
        let mut state = self.state();
        let listing = state.listing();
        state.watches.retain(|watch| listing.iter().all(|s| watch.send(Shown::Sight(Box::new(s.clone()))).is_ok()));
    }

    /// Whoever reads a watch panics.
    pub fn panic_watchers(&self) {
        self.state().watches.retain(|watch| watch.send(Shown::Panic).is_ok());
    }

    /// The ledger object is deleted: what was in it is gone.
    pub fn lose_ledger(&self) {
        let mut state = self.state();
        state.ledgers += 1;
        state.ledger = MemoryLedger::new(Origin(format!("ledger-{}", state.ledgers)));
        state.ledger_lost = true;
    }

    /// Calls of one method about something, with their times.
    pub fn asked(&self, method: &str, about: &str) -> Vec<Millis> {
        let state = self.state();
        let matching = state.asked.iter().filter(|asked| asked.call == method && asked.about.contains(about));
        matching.map(|asked| asked.at).collect()
    }

    /// Creations for one distribution, with their times.
    pub fn creations(&self, distribution: &str) -> Vec<Millis> {
        let state = self.state();
        let matching = state.created.values().filter(|created| created.distribution.to_string() == distribution);
        matching.map(|created| created.at).collect()
    }

    /// What happened to one workload, with its times: the effects others must not be able to change.
    pub fn effects(&self, name: &str, distribution: &str) -> Vec<(Millis, String)> {
        let state = self.state();
        let about = |asked: &&Asked| asked.about.contains(name) || asked.about.contains(distribution);
        let seen = state.asked.iter().filter(about).filter(|asked| !asked.call.starts_with("board."));
        let mut effects: Vec<_> = seen.map(|asked| (asked.at, asked.call.to_owned())).collect();
        effects.sort();
        effects
    }

    /// The record of a workload, as the ledger has it.
    pub fn record(&self, id: &WorkloadId) -> Option<Record> {
        let ledger = self.state().ledger.clone();
        futures_util::FutureExt::now_or_never(ledger.load(id)).expect("memory answers at once").expect("it can be read")
    }

    /// Deliveries the ledger still holds.
    pub fn outbox(&self) -> Vec<Delivery> {
        let ledger = self.state().ledger.clone();
        futures_util::FutureExt::now_or_never(ledger.deliveries())
            .expect("memory answers at once")
            .expect("it can be read")
    }

    /// Lets a call through: writes it down, and does to it what is planned or what chance wants. `Ok(true)` means that its
    /// answer is lost, an error how it failed.
    async fn pass_through(&self, call: &'static str, about: &str) -> Result<bool, Fault> {
        let (fault, delay) = {
            let mut state = self.state();
            let at = state.now();
            state.asked.push(Asked { at, call, about: about.to_owned() });
            (state.next_fault(call, about), state.chance_delay())
        };
        if let Some(delay) = delay {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        match fault {
            None => Ok(false),
            Some(Fault::Delay(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(false)
            }
            Some(fault @ (Fault::Fail | Fault::Deny | Fault::Full)) => Err(fault),
            Some(fault @ Fault::FailAfter(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Err(fault)
            }
            Some(Fault::LoseAnswer) => Ok(true),
            Some(Fault::Panic) => panic!("{SIMULATED} in {call} about {about}"),
            Some(Fault::Hang) => std::future::pending().await,
        }
    }

    async fn port(&self, call: &'static str, about: &str) -> Result<bool, PortError> {
        self.pass_through(call, about).await.map_err(|fault| match fault {
            Fault::Deny => PortError::denied(format!("failed to call {call}"), "no right, as simulated"),
            _ => failed(call),
        })
    }

    async fn storing(&self, call: &'static str, about: &str) -> Result<bool, StoreError> {
        self.pass_through(call, about).await.map_err(|fault| match fault {
            Fault::Deny => PortError::denied(format!("failed to call {call}"), "no right, as simulated").into(),
            Fault::Full => {
                StoreError::NoRoom(PortError::lasting(format!("failed to call {call}"), "no room, as simulated"))
            }
            _ => failed(call).into(),
        })
    }

    async fn cdn(&self, call: &'static str, about: &str) -> Result<bool, CdnError> {
        self.pass_through(call, about).await.map_err(|fault| {
            if fault == Fault::Deny {
                let message = format!("failed to call {call}: AccessDenied (HTTP 403)");
                return CdnError { class: CdnErrorClass::Denied, message };
            }
            let class = if self.state().dice.chance(500) { CdnErrorClass::Throttled } else { CdnErrorClass::Ambiguous };
            CdnError { class, message: format!("{call} failed, as simulated") }
        })
    }
}

fn failed(call: &str) -> PortError {
    PortError::passing(format!("failed to call {call}"), "as simulated")
}

impl State {
    /// The world's own time.
    pub fn now(&self) -> Millis {
        let life = self.life_began.map_or(Duration::ZERO, |began| began.elapsed());
        self.before + u64::try_from(life.as_millis()).unwrap_or(u64::MAX)
    }

    fn next_fault(&mut self, call: &str, about: &str) -> Option<Fault> {
        let matching =
            |(method, whom, ..): &(&'static str, String, u32, Fault)| *method == call && about.contains(whom);
        if let Some(place) = self.plan.iter().position(matching) {
            let (_, _, skip, fault) = &mut self.plan[place];
            if *skip == 0 {
                let fault = *fault;
                self.plan.remove(place);
                return Some(fault);
            }
            *skip -= 1;
        }
        let odds = self.odds;
        let dice = self.dice.below(1000);
        if dice < odds.fail {
            Some(Fault::Fail)
        } else if dice < odds.fail + odds.lose {
            Some(Fault::LoseAnswer)
        } else if dice < odds.fail + odds.lose + odds.panic && call != "ledger.open" {
            Some(Fault::Panic)
        } else {
            None
        }
    }

    /// Most calls are quick, some take seconds.
    fn chance_delay(&mut self) -> Option<Millis> {
        (self.odds.delay > 0 && self.dice.chance(self.odds.delay)).then(|| {
            let bound = if self.dice.chance(100) { 8_000 } else { 300 };
            self.dice.below(bound)
        })
    }

    fn listing(&self) -> Vec<Sight> {
        let mut listing = Vec::new();
        for kind in Kind::ALL {
            let (scope, all) = (Scope::of_kind(kind, None), Some(&kind) == Kind::ALL.last());
            listing.push(Sight::Restarted { scope: scope.clone() });
            let listed = self.cluster.values().filter(|workload| workload.id.kind == kind);
            listing.extend(listed.map(|workload| Sight::Seen(Box::new(workload.clone()))));
            listing.push(Sight::Synced { scope, all });
        }
        listing
    }

    fn note_notices(&mut self, untold: &[Notice]) {
        for notice in untold {
            let known = self.notices.entry(notice.id.clone()).or_insert_with(|| notice.clone());
            if known != notice {
                self.contradictions.push(format!("{known:?}\n  and {notice:?}"));
            }
        }
    }

    fn note_write(&mut self, workload: &WorkloadId, record: Option<&Record>) {
        self.note_notices(record.map_or(&[], |record| record.untold.as_slice()));
        let at = self.now();
        self.written.push(Written { at, workload: workload.clone(), record: record.cloned() });
    }
}

impl State {
    fn next_planned(&mut self, call: &str, about: &str) -> Option<Fault> {
        let odds = std::mem::take(&mut self.odds);
        let fault = self.next_fault(call, about);
        self.odds = odds;
        fault
    }

    /// References, by the vote they were ordered for: the workload and its rollout.
    pub fn purposes(&self) -> BTreeMap<Reference, BTreeSet<(WorkloadId, Seq)>> {
        let mut purposes: BTreeMap<Reference, BTreeSet<(WorkloadId, Seq)>> = BTreeMap::new();
        for written in &self.written {
            for vote in written.record.iter().flat_map(|record| &record.votes) {
                for purge in vote.purges.listed.values() {
                    let purpose = (written.workload.clone(), vote.seq);
                    purposes.entry(purge.reference.clone()).or_default().insert(purpose);
                }
            }
        }
        purposes
    }
}

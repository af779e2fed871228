//! Random histories of a group: members whose clusters go their own ways, whose processes are killed and stopped, and whose
//! boards lose everything or cannot be reached. Then the faults stop, and whatever all members have come to is at the edge,
//! by one creation, and everybody is silent.
//!
//! One seed is one run: `make sim SEEDS=17..18` repeats number 17.

mod past;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use allclear::actors::Settings;
use kernel::id::{Vector, WorkloadId};
use kernel::names::image::Version;
use kinds::reported::Standing;
use notices::notice::Kind;
use purge::bounds::policy::AtTimeout;
use purge::records::record::{Outcome, Phase};
use support::fakes::{Created, Dice, Millis, Odds, Read, Server, World};
use support::stage::{Life, Stage, deployment, id, in_system, sweep, unexpected_panics};
use tokio::task::{JoinHandle, LocalSet};

use crate::group::{NAMES, member, start};
use crate::group_script::{SITES, STORM, Turn, script};

/// Seeds every `cargo test` runs.
const SEEDS: u64 = 20;

/// The last release, which nothing disturbs, is over this long after the storm.
const LAST: Millis = 120_000;

const ROLLOUT_TIMEOUT: Duration = Duration::from_secs(3 * 60);

/// Then a rollout is told to be stalled; until then its age is stored once a minute.
const GROUP_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// After that, everything must be over within this: those timeouts, back-offs of a minute at most, and a quarantine of 5 min.
const CALM: Millis = 10 * 60_000;

/// And then nothing may happen for this long.
const SILENCE: Millis = 5 * 60_000;

/// What goes on for ever by design, each at its interval: the account is listed, the boards are read and beaten at, and the
/// pin is read, for somebody may have changed it by `allclear group forget`.
const POLLS: [&str; 5] = ["cdn.distributions", "board.read", "board.beat", "board.identity", "ledger.pin"];

/// What goes on as long as some have voted, for a version another member had completed and is not complete on any more.
const LOOKS: [&str; 2] = ["cluster.workload", "cluster.site_facts"];

/// And after a quarter of an hour of that it is told that no look confirms it.
const TELLINGS: [&str; 4] = ["events.publish", "ledger.store_delivery", "notifier.send", "ledger.remove_delivery"];

/// How bad calls are, by seed.
fn odds(seed: u64) -> Odds {
    match seed % 4 {
        0 => Odds::default(),
        1 => Odds { delay: 300, fail: 40, lose: 40, panic: 0 },
        2 => Odds { delay: 300, fail: 30, lose: 30, panic: 5 },
        _ => Odds { delay: 500, fail: 200, lose: 150, panic: 10 },
    }
}

/// A process whose tasks can be stopped and dropped, all at once and between any two of their steps.
struct Process {
    life: Life,
    tasks: JoinHandle<()>,
    brake: Rc<Brake>,
}

#[derive(Default)]
struct Brake {
    on: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

struct Braked(LocalSet, Rc<Brake>);

impl Future for Braked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.1.on.get() {
            *self.1.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll(context)
    }
}

impl Process {
    fn start(world: &World, settings: Settings) -> Self {
        let (set, brake) = (LocalSet::new(), Rc::<Brake>::default());
        let inside = set.enter();
        let life = start(world, settings);
        drop(inside);
        Self { life, tasks: tokio::task::spawn_local(Braked(set, Rc::clone(&brake))), brake }
    }

    fn brake(&self, on: bool) {
        self.brake.on.set(on);
        if let Some(waker) = self.brake.waker.take() {
            waker.wake();
        }
    }

    async fn kill(self) {
        self.tasks.abort();
        let _ = self.tasks.await;
        self.life.world.life_ends();
    }
}

/// The version each member has come to with one workload, if any.
type Reached = Vec<Option<Version>>;

struct Run {
    seed: u64,
    /// Where the invalidations are, and whose time is everybody's.
    account: World,
    worlds: Vec<World>,
    boards: Vec<Server>,
    processes: Vec<Option<Process>>,
    /// The uid and version each workload of each cluster has come to, and not left since.
    reached: BTreeMap<(&'static str, usize), (String, Version)>,
    /// Since when the clusters have come to which versions, by workload.
    common: BTreeMap<&'static str, Vec<(Millis, Reached)>>,
}

impl Run {
    fn new(seed: u64, dice: &mut Dice) -> Self {
        let size = if dice.chance(600) { 3 } else { 2 };
        let account = World::new(dice.roll());
        account.life_begins();
        let boards: Vec<Server> = NAMES[..size].iter().map(|name| Server::new(&format!("redis-{name}"))).collect();
        let one_distribution = dice.chance(500);
        let worlds = (0..size).map(|index| {
            let world = World::new(dice.roll());
            let mut seats = boards.clone();
            seats.swap(0, index);
            world.joins(NAMES[index], &seats);
            world.shares_account(&account);
            if one_distribution {
                world.distribution("EBOTH", &["web.example.com", "blog.example.com"]);
            } else {
                world.distribution("EWEB", &["web.example.com"]);
                world.distribution("EBLOG", &["blog.example.com"]);
            }
            SITES.iter().for_each(|name| world.set(deployment(name, 1, 1, "1", Stage::Complete)));
            world
        });
        let worlds = worlds.collect();
        let processes = (0..size).map(|_| None).collect();
        let mut run =
            Self { seed, account, worlds, boards, processes, reached: BTreeMap::new(), common: BTreeMap::new() };
        (0..size).for_each(|index| run.start(index));
        run.note_common();
        run
    }

    fn start(&mut self, index: usize) {
        if self.processes[index].is_some() {
            return;
        }
        let world = &self.worlds[index];
        world.pass(self.account.now() - world.now());
        let mut settings = member(NAMES[index]);
        settings.policy.rollout_timeout = ROLLOUT_TIMEOUT;
        settings.policy.group.timeout = GROUP_TIMEOUT;
        settings.policy.group.absent_left_out = self.seed.is_multiple_of(5);
        if self.seed.is_multiple_of(7) {
            settings.policy.group.at_timeout = AtTimeout::Skip;
        }
        self.processes[index] = Some(Process::start(world, settings));
    }

    async fn kill(&mut self, index: usize) {
        if let Some(process) = self.processes[index].take() {
            process.kill().await;
        }
    }

    async fn take_turn(&mut self, turn: Turn) {
        let brake = |index: usize, on| self.processes[index].iter().for_each(|process| process.brake(on));
        match turn {
            Turn::Set(index, workload) => self.worlds[index].set(*workload),
            Turn::Hide(index, workload) => self.worlds[index].set_unseen(*workload),
            Turn::Delete(index, id) => self.worlds[index].delete(&id),
            Turn::Relist(index) => self.worlds[index].relist(),
            Turn::PanicWatchers(index) => self.worlds[index].panic_watchers(),
            Turn::Kill(index) => self.kill(index).await,
            Turn::Start(index) => self.start(index),
            Turn::Stop(index) => brake(index, true),
            Turn::Continue(index) => brake(index, false),
            Turn::Cut(index, board) => self.boards[board].is_down_for(&[NAMES[index]], true),
            Turn::Heal(index, board) => self.boards[board].is_down_for(&[NAMES[index]], false),
            Turn::Wipe(board) => self.boards[board].board.wipe(),
            Turn::Empty(board) => self.boards[board].board.restart_empty(),
        }
        self.note_common();
    }

    /// The version all clusters that have the workload are complete on.
    fn common_now(&self, name: &str) -> Option<Version> {
        let version = |world: &World| {
            let workload = world.state().cluster.get(&id(name))?.clone();
            let complete = workload.standing(false) == Standing::Complete;
            Some(workload.version.ok().filter(|_| complete))
        };
        let versions: BTreeSet<_> = self.worlds.iter().filter_map(version).collect();
        if versions.len() == 1 { versions.into_iter().next().flatten() } else { None }
    }

    /// The version each member has come to and not left since. That of a Deployment whose spec changes and whose images do
    /// not is no other one, whatever becomes of it.
    fn come_to(&mut self, name: &'static str) -> Reached {
        let mut versions = Vec::new();
        for (index, world) in self.worlds.iter().enumerate() {
            let before = self.reached.remove(&(name, index));
            let workload = world.state().cluster.get(&id(name)).cloned();
            let complete = workload.as_ref().is_some_and(|workload| workload.standing(false) == Standing::Complete);
            let now = workload.map(|it| (it.uid, it.version.expect("images that can be read")));
            let now = now.filter(|now| complete || before.as_ref() == Some(now));
            versions.push(now.as_ref().map(|(_, version)| version.clone()));
            self.reached.extend(now.map(|now| ((name, index), now)));
        }
        versions
    }

    /// What the clusters had come to, from when until when.
    fn spans(&self, name: &str) -> Vec<(Millis, Millis, &Reached)> {
        let spans = self.common.get(name).into_iter().flatten();
        let ends = spans.clone().skip(1).map(|(at, _)| *at).chain([Millis::MAX]);
        spans.zip(ends).map(|((from, reached), end)| (*from, end, reached)).collect()
    }

    fn note_common(&mut self) {
        for name in SITES {
            let (now, versions) = (self.account.now(), self.come_to(name));
            self.common.entry(name).or_default().push((now, versions));
        }
    }

    /// Lives until `end`, and starts again whoever gives itself up, as Kubernetes would.
    async fn live(&mut self, turns: &mut std::iter::Peekable<std::vec::IntoIter<(Millis, Turn)>>, end: Millis) {
        while self.account.now() < end {
            let now = self.account.now();
            while let Some((_, turn)) = turns.next_if(|(at, _)| *at <= now) {
                self.take_turn(turn).await;
            }
            for index in 0..self.processes.len() {
                let given_up = self.processes[index].as_mut().is_some_and(|it| it.life.has_given_up().is_some());
                if given_up {
                    self.kill(index).await;
                    self.start(index);
                }
            }
            let next = turns.peek().map_or(end, |(at, _)| *at).min(end).min(now + 1_000);
            tokio::time::sleep(Duration::from_millis(next.saturating_sub(now).max(1))).await;
        }
    }

    fn set_odds(&self, odds: Odds) {
        self.worlds.iter().for_each(|world| world.state().odds = odds);
    }

    fn asked(&self) -> Vec<usize> {
        self.worlds.iter().map(|world| world.state().asked.len()).collect()
    }

    /// What is wrong when all should be over (O3).
    async fn is_over(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let common = SITES.iter().all(|name| self.common_now(name).is_some());
        for (process, name) in self.processes.iter().flatten().zip(NAMES) {
            let seen = process.life.observe().await;
            let idle = seen.purges.is_empty() && seen.deliveries.is_empty() && seen.quarantined.is_empty();
            let held = seen.group.as_ref().is_none_or(|group| group.hold.is_some());
            if !idle || held || (common && !seen.rollouts.is_empty()) {
                problems.push(format!("{name} is not done: {seen:#?}"));
            }
        }
        let asked = self.asked();
        tokio::time::sleep(Duration::from_millis(SILENCE)).await;
        for ((world, asked), name) in self.worlds.iter().zip(asked).zip(NAMES) {
            let mut more = world.state().asked[asked..].to_vec();
            more.retain(|asked| !POLLS.contains(&asked.call) && (common || !LOOKS.contains(&asked.call)));
            let told = more.iter().filter(|asked| asked.call == "events.publish").count();
            if !common && told <= SITES.len() {
                more.retain(|asked| !TELLINGS.contains(&asked.call));
            }
            if !more.is_empty() {
                problems.push(format!("{name} is not silent: {more:?}"));
            }
        }
        problems
    }
}

/// One run; what is wrong at its end, and its circumstances.
fn run(seed: u64) -> (Vec<String>, String) {
    let ended = in_system(async {
        let mut dice = Dice(seed ^ 0x0067_726f_7570);
        let mut run = Run::new(seed, &mut dice);
        let mut turns = script(run.worlds.len(), &mut dice).into_iter().peekable();
        // Members get to know each other first; a group that has never met does nothing, which is not the subject here.
        run.live(&mut turns, 10_000).await;
        run.set_odds(odds(seed));
        run.live(&mut turns, STORM).await;
        run.set_odds(Odds::default());
        run.live(&mut turns, STORM + LAST + CALM).await;
        let mut problems = run.is_over().await;
        problems.extend(creations_are_right(&run));
        problems.extend(notices_are_told(&run));
        problems.extend(SITES.iter().flat_map(|name| site_is_fresh(&run, name)));
        for index in 0..run.worlds.len() {
            run.kill(index).await;
        }
        (problems, format!("{} members, {:?}", run.worlds.len(), odds(seed)))
    });
    let panics = unexpected_panics();
    assert!(panics.is_empty(), "an actor panicked: {panics:#?}");
    ended
}

/// O1: one creation for a vector and distribution. O2: all were complete at one instant, and each member that voted had
/// looked itself. O4: no vector ends purged here and unpurged there.
fn creations_are_right(run: &Run) -> Vec<String> {
    let mut problems = Vec::new();
    let mut purposes: BTreeMap<_, BTreeSet<(WorkloadId, Vector)>> = BTreeMap::new();
    let mut ends: BTreeMap<(WorkloadId, Vector), BTreeSet<Outcome>> = BTreeMap::new();
    for world in &run.worlds {
        for written in &world.state().written {
            for vote in written.record.iter().flat_map(|record| &record.votes) {
                let purpose = (written.workload.clone(), vote.vector.clone());
                for purge in vote.purges.listed.values() {
                    purposes.entry(purge.reference.clone()).or_default().insert(purpose.clone());
                }
                ends.entry(purpose).or_default().extend(vote.closed.clone());
            }
        }
    }
    for (purpose, ends) in ends {
        if ends.len() > 1 && ends.contains(&Outcome::Purged) {
            problems.push(format!("{purpose:?} ended in several ways: {ends:?}"));
        }
    }
    let mut once = BTreeSet::new();
    for created in run.account.state().created.values() {
        let Some((workload, vector)) =
            purposes.get(&created.reference).filter(|all| all.len() == 1).and_then(|all| all.first())
        else {
            problems.push(format!("{created:?} serves {:?}", purposes.get(&created.reference)));
            continue;
        };
        if !once.insert((workload, vector, created.distribution.clone())) {
            problems.push(format!("{workload} {vector:?} was purged twice: {created:?}"));
        }
        problems.extend(was_agreed(run, workload, vector, created));
    }
    problems
}

/// Whether every member of the vector had voted for it after a look of its own: all of them complete at one instant, but for those that
/// had completed it and gone on.
fn was_agreed(run: &Run, workload: &WorkloadId, vector: &Vector, created: &Created) -> Option<String> {
    let wrong = |what: &str| Some(format!("{workload} {vector:?} was purged although {what}: {created:?}"));
    let (mut last_begun, mut last_voted, mut versions, mut stayed) = (0, 0, BTreeSet::new(), Vec::new());
    let spans = run.spans(&workload.name);
    for (index, (world, name)) in run.worlds.iter().zip(NAMES).enumerate() {
        let Some(component) = vector.0.get(&name.into()) else { continue };
        let state = world.state();
        let of_it = || state.written.iter().filter(|written| written.workload == *workload);
        let begun = of_it().find(|written| written.record.as_ref().is_some_and(|record| record.seq == component.seq));
        let voted = of_it().find_map(|written| {
            let vote = written.record.as_ref()?.votes.iter().find(|vote| vote.vector == *vector)?;
            Some((written.at, vote.version.clone()))
        });
        let (begun, Some((voted, version))) = (begun.map_or(0, |begun| begun.at), voted) else {
            return wrong(&format!("{name} had not voted"));
        };
        let looks =
            || state.reads.iter().filter(|read| read.workload == *workload && (begun..=voted).contains(&read.at));
        let shown = |read: &Read| read.sight.as_ref().and_then(|sight| sight.version.clone().ok());
        let looked = looks().any(|read| read.was_complete() && shown(read).as_ref() == Some(&version));
        let now = looks().next_back().and_then(shown);
        let went_on = || {
            let since = past::begins_after(of_it(), component.seq);
            let came = past::came_to(&spans, index, (since, voted), &version);
            came.is_some_and(|came| {
                past::is_past(&spans, index, came, &version, now.as_ref())
                    || past::is_joined(run, (workload, vector), name, voted)
            })
        };
        if voted > created.at || !(looked || went_on()) {
            return wrong(&format!("{name} had not seen it complete"));
        }
        if looked {
            (last_begun, last_voted) = (last_begun.max(begun), last_voted.max(voted));
            stayed.push(index);
        }
        versions.insert(version);
    }
    let together = spans.iter().any(|(from, end, reached)| {
        let agreed = stayed.iter().all(|voter| reached[*voter].as_ref() == versions.first());
        agreed && *from <= last_voted && last_begun <= *end
    });
    if versions.len() != 1 || !together { wrong("the members were never complete on it together") } else { None }
}

/// O4, O5: whatever the ledgers held was told by somebody, always in the same words.
fn notices_are_told(run: &Run) -> Vec<String> {
    let mut problems = Vec::new();
    let mut delivered: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
    for world in &run.worlds {
        problems.extend(world.state().contradictions.clone());
        for (_, id, content) in &world.state().delivered {
            delivered.entry(id.clone()).or_default().insert(content.clone());
        }
    }
    let differ = delivered.iter().filter(|(_, contents)| contents.len() > 1);
    problems.extend(differ.map(|(id, contents)| format!("{id} was told in different words: {contents:#?}")));
    for world in &run.worlds {
        for (id, notice) in &world.state().notices {
            let hooks = if notice.kind == Kind::PurgeCompleted { vec!["ops", "site"] } else { vec!["ops"] };
            if !hooks.iter().all(|hook| delivered.contains_key(&format!("{id}/{hook}"))) {
                problems.push(format!("not told: {notice:?}"));
            }
        }
        let left = world.outbox();
        if !left.is_empty() {
            problems.push(format!("left in the outbox: {left:#?}"));
        }
    }
    problems
}

/// O3: if all have come to one version, nothing is open, and the edge can hold no other: since the last purge of its
/// distribution no member has known another one complete.
fn site_is_fresh(run: &Run, name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let common = run.common_now(name);
    // What is skipped by policy stays as it is.
    let withdrawn = |world: &World| world.record(&id(name)).is_some_and(|record| record.phase == Phase::Withdrawn);
    let skipped = run.worlds.iter().any(withdrawn);
    let distribution = run.worlds[0]
        .state()
        .distributions
        .iter()
        .find_map(|it| it.aliases.contains(&format!("{name}.example.com")).then(|| it.id.clone()));
    let account = run.account.state();
    let purges = account.created.values().filter(|it| Some(&it.distribution) == distribution.as_ref());
    let purged = purges.map(|created| created.at).max().unwrap_or(0);
    for (world, who) in run.worlds.iter().zip(NAMES) {
        let record = world.record(&id(name));
        if record.as_ref().is_some_and(|record| common.is_some() && record.is_open()) {
            problems.push(format!("{who} is not done with {name}: {record:#?}"));
        }
        let state = world.state();
        let known: Vec<_> = state.written.iter().filter(|written| written.workload == id(name)).collect();
        // A workload that is gone takes with it what was known of it.
        let from = known.iter().rposition(|written| written.record.is_none()).map_or(0, |gone| gone + 1);
        let complete = |at: usize| known[at].record.as_ref().filter(|record| record.phase == Phase::Complete);
        let before = (from..known.len()).rev().find(|at| known[*at].at <= purged && complete(*at).is_some());
        let served = (from..known.len()).filter(|at| known[*at].at > purged).chain(before);
        let served: BTreeSet<_> = served.filter_map(complete).map(|record| record.version.clone()).collect();
        if !skipped && common.as_ref().is_some_and(|common| served.iter().any(|version| version != common)) {
            problems
                .push(format!("{name} is stale: {who} served {served:?} since {purged}, and all are at {common:?}"));
        }
    }
    problems
}

#[test]
fn whatever_happens_to_a_group_what_all_came_to_is_purged_once() {
    sweep("a group", 0..SEEDS, run);
}

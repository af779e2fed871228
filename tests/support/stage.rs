//! Where the actors play: one process at a time in a [`World`], a script of what the cluster does, and shorthands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Once};
use std::time::Duration;

use actix::{Actor, Addr};
use allclear::actors::message::Observe;
use allclear::actors::observation::Observation;
use allclear::actors::root::{GivenUp, Root};
use allclear::actors::{Env, Settings};
use allclear::telemetry::Metrics;
use kernel::id::WorkloadId;
use kernel::names::image::{Container, Version};
use kinds::reported::{self, Replicas, Says};
use notices::delivery;
use purge::bounds::policy::{AtBarrier, Policy};
use purge::purges::accounts::Accounts;
use purge::purges::catalog::Freshness;
use purge::purges::purge::Pace;
use purge::testing;
use purge::workloads::workload::Workload;
use tokio::sync::oneshot;

use crate::fakes::{Millis, SIMULATED, World};

thread_local! {
    /// Panics of this test's thread that nobody simulated.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// actix swallows the panic of an actor, so a failed assertion in a handler would pass. Every run ends by asking for
/// those that were not simulated.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let simulated = info.payload_as_str().is_some_and(|words| words.starts_with(SIMULATED));
            if !simulated {
                PANICS.with(|panics| panics.borrow_mut().push(info.to_string()));
                usual(info);
            }
        }));
    });
}

/// Panics of this thread since the last call that nobody simulated.
pub fn unexpected_panics() -> Vec<String> {
    PANICS.with(RefCell::take)
}

/// Runs `play` in an actix system of its own whose time is paused: it advances only when nothing else can happen.
pub fn in_system<T>(play: impl Future<Output = T>) -> T {
    watch_panics();
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    actix::System::with_tokio_rt(runtime).block_on(play)
}

pub struct Life {
    /// The outside, which outlives it.
    pub world: World,
    /// The actor that is the process.
    pub root: Addr<Root>,
    /// Says that it ends itself, and why.
    pub given_up: oneshot::Receiver<GivenUp>,
}

/// Runs one process in `world` for as long as `play` takes, and then kills it.
pub fn life<T>(world: &World, play: impl AsyncFnOnce(&mut Life) -> T) -> T {
    life_under(world, settings(), play)
}

/// The same, under settings of its own.
pub fn life_under<T>(world: &World, settings: Settings, play: impl AsyncFnOnce(&mut Life) -> T) -> T {
    let played = in_system(async {
        world.life_begins();
        let env = Env {
            ports: world.ports(),
            metrics: Arc::new(Metrics::default()),
            settings: Arc::new(settings),
            complaints: Arc::default(),
        };
        let (give_up, given_up) = oneshot::channel();
        let root = Root::new(env, give_up).start();
        let played = play(&mut Life { world: world.clone(), root, given_up }).await;
        world.life_ends();
        played
    });
    let panics = unexpected_panics();
    assert!(panics.is_empty(), "an actor panicked: {panics:#?}");
    played
}

impl Life {
    pub async fn pass(&self, millis: Millis) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// What the actors show of themselves.
    pub async fn observe(&self) -> Observation {
        self.root.send(Observe).await.expect("the root answers")
    }

    /// Waits until a fact holds, and says when; looks ten times a virtual second.
    pub async fn until(&self, what: &str, within: Millis, fact: impl Fn(&World) -> bool) -> Millis {
        let begin = self.world.now();
        while !fact(&self.world) {
            assert!(self.world.now() < begin + within, "not within {within} ms: {what}");
            self.pass(100).await;
        }
        self.world.now()
    }

    /// Whether the process has given itself up.
    pub fn has_given_up(&mut self) -> Option<GivenUp> {
        self.given_up.try_recv().ok()
    }
}

/// The settings of every process here.
pub fn settings() -> Settings {
    let often = std::iter::once(0).chain(std::iter::repeat_n(20, 60)).map(Duration::from_secs).collect::<Vec<_>>();
    let schedules = ["ops", "site"].map(|hook| (hook.to_owned(), often.clone()));
    Settings {
        member: "eu-1".into(),
        group: "default".to_owned(),
        grouping: None,
        is_unread: false,
        follows_traffic: true,
        own_thread: false,
        policy: Policy {
            rollout_timeout: Duration::from_secs(600),
            barrier: AtBarrier { settle: Duration::from_millis(300), ..AtBarrier::default() },
            ..Policy::default()
        },
        accounts: Accounts::default(),
        pace: Pace::default(),
        budget: 0,
        freshness: Freshness::default(),
        samples_tags: true,
        in_force: None,
        outbox: delivery::Settings { schedules: BTreeMap::from(schedules), ..delivery::Settings::default() },
    }
}

/// The Deployment of this name in `shop`, where everything is.
pub fn id(name: &str) -> WorkloadId {
    WorkloadId::deployment("shop", name)
}

/// A Deployment at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The controller has not seen the newest spec.
    Unobserved,
    /// Half of the pods are new.
    Half,
    /// All pods are new and available.
    Complete,
    /// The controller has given up waiting.
    Missed,
}

/// The Deployment `name`, with three pods. An Ingress of its name serves it as `<name>.example.com`.
pub fn deployment(name: &str, uid: u64, generation: i64, tag: &str, stage: Stage) -> Workload {
    let image = format!("registry.example.com/shop/{name}:{tag}").parse().expect("an image");
    let version: Version = [(Container::Main("web".to_owned()), image)].into_iter().collect();
    let counts = |total, updated, available| Replicas { desired: 3, total, updated, ready: available, available };
    Workload {
        id: id(name),
        uid: format!("{name}-{uid}"),
        observed_generation: if stage == Stage::Unobserved { generation - 1 } else { generation },
        replicas: match stage {
            Stage::Unobserved | Stage::Complete => counts(3, 3, 3),
            Stage::Half | Stage::Missed => counts(4, 2, 3),
        },
        says: match stage {
            Stage::Missed => {
                Says::GivenUp(reported::GivenUp::DeadlineExceeded { last_update: format!("t{generation}") })
            }
            Stage::Unobserved | Stage::Half | Stage::Complete => Says::Counts,
        },
        starting: matches!(stage, Stage::Unobserved | Stage::Half),
        ..testing::settled(version, generation, 3)
    }
}

/// A world with these workloads at version 1, each behind a distribution of its own: `EWEB` serves `web`.
pub fn settled(seed: u64, names: &[&str]) -> World {
    let world = World::new(seed);
    for name in names {
        world.distribution(&format!("E{}", name.to_uppercase()), &[&format!("{name}.example.com")]);
        world.set(deployment(name, 1, 1, "1", Stage::Complete));
    }
    world
}

/// Rolls `name` out to `tag` as its generation `generation`, complete after `takes`.
pub async fn roll_out(life: &Life, name: &str, generation: i64, tag: &str, takes: Millis) {
    life.world.set(deployment(name, 1, generation, tag, Stage::Unobserved));
    life.pass(takes / 2).await;
    life.world.set(deployment(name, 1, generation, tag, Stage::Half));
    life.pass(takes - takes / 2).await;
    life.world.set(deployment(name, 1, generation, tag, Stage::Complete));
}

/// The environment variable that chooses the seeds of both chaos tests: how many, or a range such as `17..18`.
const SEEDS: &str = "ALLCLEAR_SIM_SEEDS";

/// The seeds to run, from the environment where it says so.
fn seeds(usual: impl Iterator<Item = u64>) -> Vec<u64> {
    let Ok(wanted) = std::env::var(SEEDS) else { return usual.collect() };
    let (from, to) = wanted.split_once("..").unwrap_or(("0", &wanted));
    let number = |text: &str| text.parse().expect("the seeds are a number, or a range such as 17..18");
    (number(from)..number(to)).collect()
}

/// Runs every seed, prints how far it is and which ones fail, and fails if any does. A run gives its problems, and a few
/// words about itself.
pub fn sweep(what: &str, usual: impl Iterator<Item = u64>, run: impl Fn(u64) -> (Vec<String>, String)) {
    let seeds = seeds(usual);
    let mut failed = Vec::new();
    for (done, &seed) in seeds.iter().enumerate() {
        if done > 0 && done % 100 == 0 {
            println!("{what}: {done} of {} seeds, failed: {failed:?}", seeds.len());
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        // What this seed broke is told by now, and is not for the next one.
        drop(unexpected_panics());
        let (problems, about) = outcome.unwrap_or_else(|_| (vec!["it panicked; see above".to_owned()], String::new()));
        if !problems.is_empty() {
            println!("{what}: seed {seed} ({about}):\n  {}", problems.join("\n  "));
            failed.push(seed);
        }
    }
    println!("{what}: {} seeds, {} failed: {failed:?}", seeds.len(), failed.len());
    assert!(failed.is_empty(), "{what}: seeds {failed:?}; repeat one with `make sim SEEDS=17..18`, one above the last");
}

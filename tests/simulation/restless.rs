//! Clusters in which something never rests while a rollout completes: an annotation or a field that is written over and over, an
//! autoscaler, a controller that lags. What was rolled out is purged all the same, once, within a bound (decision 49).

use std::time::Duration;

use allclear::actors::Settings;
use kinds::reported::Replicas;
use notices::notice::Kind;
use purge::records::record::{Outcome, Phase};
use purge::workloads::readiness::Pod;
use purge::workloads::serving::{Endpoint, Serving};
use purge::workloads::workload::Workload;
use support::fakes::{Fault, Millis, World};
use support::stage::{Life, Stage, deployment, id, life_under, settings, settled};

use crate::group::{agreed, creations, group, member, pass, play, start};

const SETTLE: Millis = 3_000;
const DRAIN: Millis = 60_000;

/// When it goes on with what there is.
const GIVES_UP: Millis = DRAIN + SETTLE + 60_000;

fn defaults() -> Settings {
    let mut settings = settings();
    settings.policy.barrier.settle = Duration::from_millis(SETTLE);
    settings
}

/// Two pods of the new template, and one of the old that is on its way out and serves, as far as an endpoint says so.
fn serving(old_serves: bool) -> Serving {
    let pod = |name: &str, hash: &str, terminating| {
        let (version, trouble) = (None, None);
        let labels = [("pod-template-hash".to_owned(), hash.to_owned())].into();
        (labels, Pod { name: name.into(), version, ready: true, terminating, started: false, finished: false, trouble })
    };
    let endpoint = |pod: &str, serves| Endpoint { pod: pod.into(), serves };
    Serving {
        pods: vec![pod("web-new-1", "new", false), pod("web-old-1", "old", true)],
        endpoints: vec![endpoint("web-new-1", true), endpoint("web-old-1", old_serves)],
    }
}

fn show(world: &World, old: Option<bool>) {
    match old {
        Some(serves) => drop(world.state().serving.insert(id("web"), serving(serves))),
        None => drop(world.state().serving.remove(&id("web"))),
    }
}

/// Version 2, complete under this generation.
fn complete(generation: i64) -> Workload {
    deployment("web", 1, generation, "2", Stage::Complete)
}

/// The same with so many pods, of which so many are available.
fn scaled(generation: i64, pods: u32, available: u32) -> Workload {
    let replicas = Replicas { desired: pods, total: pods, updated: pods, ready: available, available };
    Workload { replicas, ..complete(generation) }
}

/// A writer: `sight` is each generation as its controller leaves it, `lags` after the write.
struct Writer<S> {
    every: Millis,
    lags: Millis,
    sight: S,
}

impl<S: Fn(i64) -> Workload> Writer<S> {
    /// Writes for so long, from this generation on; returns the next one.
    async fn writes(&self, life: &Life, mut generation: i64, lasts: Millis) -> i64 {
        let end = life.world.now() + lasts;
        while life.world.now() < end {
            let written = (self.sight)(generation);
            life.world.set(Workload { observed_generation: generation - 1, ..written.clone() });
            life.pass(self.lags).await;
            if self.lags < self.every {
                life.world.set(written);
            }
            life.pass(self.every - self.lags).await;
            generation += 1;
        }
        generation
    }
}

/// Rolls version 2 out beside this writer, with an old pod that serves for a while after; returns how long after the rollout was
/// complete by its counts its purge was made.
fn purged_after<S: Fn(i64) -> Workload>(writer: &Writer<S>, old_for: Millis, lasts: Millis) -> Millis {
    let world = settled(1, &["web"]);
    life_under(&world, defaults(), async |life| {
        life.pass(2_000).await;
        show(&world, (old_for > 0).then_some(true));
        life.world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(4_000).await;
        life.world.set(complete(2));
        let from = world.now();
        life.pass(200).await;
        let next = writer.writes(life, 3, old_for).await;
        show(&world, None);
        writer.writes(life, next, lasts).await;
        let purges = world.creations("EWEB");
        let [purge] = purges[..] else { panic!("{} purges: {:#?}", purges.len(), life.observe().await) };
        purge - from
    })
}

#[test]
fn an_annotation_written_over_and_over_keeps_no_purge_from_being_made() {
    for every in [1_000, 2_500, 20_000] {
        let writer = Writer { every, lags: 40, sight: complete };
        let took = purged_after(&writer, 0, 60_000);
        assert!((SETTLE..SETTLE + 500).contains(&took), "each {every} ms: {took}");
        let took = purged_after(&writer, 40_000, 60_000);
        assert!((40_000 + SETTLE..40_000 + SETTLE + 2_500).contains(&took), "each {every} ms, draining: {took}");
    }
    let writer = Writer { every: 20_000, lags: 40, sight: complete };
    let took = purged_after(&writer, 100_000, 60_000);
    assert!((DRAIN..DRAIN + 500).contains(&took), "an old pod that stays: {took}");
}

#[test]
fn a_field_that_two_controllers_fight_for_holds_up_a_purge_by_seconds_at_most() {
    // The Deployment controller is behind for nearly all of the time.
    let took = purged_after(&Writer { every: 2_000, lags: 1_900, sight: complete }, 0, 120_000);
    assert!(took <= SETTLE + 4_500, "{took}");
    // They fight for the number of pods, and the additional ones never live long enough to be available.
    let fight = |generation: i64| if generation % 2 == 0 { complete(generation) } else { scaled(generation, 6, 3) };
    let took = purged_after(&Writer { every: 2_000, lags: 40, sight: fight }, 20_000, 120_000);
    assert!(took <= 20_000 + SETTLE + 2_500, "{took}");
}

/// One pod more with each write, and the newest is not available yet.
fn grows(generation: i64) -> Workload {
    let pods = u32::try_from(generation + 1).expect("a few");
    scaled(generation, pods, pods - 1)
}

#[test]
fn an_autoscaler_that_adds_a_pod_each_fifteen_seconds_holds_nothing_up() {
    let took = purged_after(&Writer { every: 15_000, lags: 40, sight: grows }, 31_000, 120_000);
    assert!(took <= 31_000 + SETTLE + 2_500 + 15_000, "{took}");
}

#[test]
fn a_controller_that_never_comes_up_to_its_writer_is_waited_for_two_minutes_and_it_is_told() {
    let behind = |generation: i64| Workload { observed_generation: 2, ..complete(generation) };
    let took = purged_after(&Writer { every: 5_000, lags: 5_000, sight: behind }, 0, 200_000);
    assert!((GIVES_UP..GIVES_UP + 500).contains(&took), "{took}");
}

/// Version 2 is complete and an old pod serves; then this happens.
fn at_the_barrier(happens: impl AsyncFnOnce(&mut Life, &World)) {
    let world = settled(1, &["web"]);
    life_under(&world, defaults(), async |life| {
        life.pass(2_000).await;
        show(&world, Some(true));
        life.world.set(complete(2));
        life.pass(5_000).await;
        assert!(world.creations("EWEB").is_empty());
        happens(life, &world).await;
    });
}

#[test]
fn it_may_be_scaled_down_while_old_pods_drain() {
    at_the_barrier(async |life, world| {
        life.world.set(Workload { observed_generation: 2, ..scaled(3, 1, 1) });
        life.pass(40).await;
        life.world.set(scaled(3, 1, 1));
        life.pass(10_000).await;
        show(world, None);
        let gone = world.now();
        life.pass(30_000).await;
        let [purge] = world.creations("EWEB")[..] else { panic!("one purge") };
        assert!(purge <= gone + SETTLE + 2_500, "{gone} {purge}");
    });
}

#[test]
fn nothing_is_purged_while_it_is_scaled_to_zero_and_at_once_when_it_is_back() {
    at_the_barrier(async |life, world| {
        life.world.set(scaled(3, 0, 0));
        show(world, None);
        life.pass(3_600_000).await;
        assert!(world.creations("EWEB").is_empty());
        assert_eq!(world.record(&id("web")).map(|record| record.phase), Some(Phase::Rolling));
        let state = life.observe().await.rollouts.first().map(|rollout| rollout.state.clone()).unwrap_or_default();
        assert!(state.contains("now the workload is scaled to zero"), "{state}");
        life.world.set(scaled(4, 3, 1));
        life.pass(5_000).await;
        assert!(world.creations("EWEB").is_empty(), "one of three is back");
        life.world.set(complete(4));
        let back = world.now();
        life.pass(5_000).await;
        let [purge] = world.creations("EWEB")[..] else { panic!("one purge") };
        assert!(purge <= back + 500, "{back} {purge}");
    });
}

#[test]
fn a_new_version_in_the_middle_of_the_settling_is_settled_and_purged_instead() {
    at_the_barrier(async |life, world| {
        show(world, None);
        life.pass(2_000 + SETTLE / 2).await;
        life.world.set(deployment("web", 1, 3, "3", Stage::Complete));
        let complete = world.now();
        life.pass(60_000).await;
        let [purge] = world.creations("EWEB")[..] else { panic!("one purge") };
        assert!((complete + SETTLE..complete + SETTLE + 500).contains(&purge), "{complete} {purge}");
        let record = world.record(&id("web")).expect("a record");
        let ends: Vec<&Outcome> = record.history.iter().map(|closed| &closed.outcome).collect();
        assert_eq!(ends, [&Outcome::Superseded, &Outcome::Purged]);
        assert!(record.history[0].change.ends_with("1 → 2"), "{:?}", record.history);
    });
}

#[test]
fn an_old_pod_that_serves_again_is_waited_for_again() {
    at_the_barrier(async |life, world| {
        show(world, Some(false));
        life.pass(3_500).await;
        show(world, Some(true));
        life.pass(10_000).await;
        assert!(world.creations("EWEB").is_empty(), "it was seen to serve again");
        show(world, None);
        let gone = world.now();
        life.pass(30_000).await;
        let [purge] = world.creations("EWEB")[..] else { panic!("one purge") };
        assert!((gone + SETTLE..gone + SETTLE + 2_500).contains(&purge), "{gone} {purge}");
    });
}

#[test]
fn pods_that_nobody_can_read_cost_one_bound_whoever_writes_meanwhile() {
    let world = settled(1, &["web"]);
    life_under(&world, defaults(), async |life| {
        life.pass(2_000).await;
        (0..200).for_each(|_| world.plan("cluster.serving", "web", 0, Fault::Fail));
        life.world.set(complete(2));
        let from = world.now();
        Writer { every: 1_000, lags: 40, sight: complete }.writes(life, 3, 90_000).await;
        let [purge] = world.creations("EWEB")[..] else { panic!("one purge") };
        assert!((from + DRAIN..from + DRAIN + 500).contains(&purge), "{from} {purge}");
        let [told] = world.told("web", Kind::WorkloadFaulty)[..] else { panic!("it is told once") };
        assert!(told >= from + DRAIN);
    });
}

#[test]
fn an_autoscaler_in_one_member_holds_up_no_group() {
    play(async {
        let (worlds, _) = group(2);
        let restless = start(&worlds[0], Settings { policy: defaults().policy, ..member("eu-1") });
        let other = start(&worlds[1], member("eu-2"));
        let lives = [restless, other];
        agreed(&lives).await;
        let [restless, other] = lives;
        show(&worlds[0], Some(true));
        worlds[0].set(complete(2));
        pass(1_000).await;
        let writer = Writer { every: 15_000, lags: 40, sight: grows };
        let next = writer.writes(&restless, 3, 30_000).await;
        show(&worlds[0], None);
        let next = writer.writes(&restless, next, 30_000).await;
        assert_eq!(creations(&worlds), 0, "the other one has not completed it");
        // It completes long after, and the first one never comes to rest.
        worlds[1].set(complete(2));
        let from = other.world.now();
        writer.writes(&restless, next, 90_000).await;
        assert_eq!(creations(&worlds), 1);
        let purge = worlds.iter().flat_map(|world| world.creations("EWEB")).next().unwrap_or_default();
        assert!(purge <= from + 30_000, "{from} {purge}");
        pass(1_000).await;
    });
}

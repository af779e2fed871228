//! Caches between, asked by the real actors, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use notices::notice::Kind;
use purge::caches::Cache;
use purge::testing::cache;
use support::fakes::{Fault, World};
use support::stage::{Life, life_under, roll_out, settings, settled};

/// `web` is behind the caches `inner` and `outer`, and `blog` behind none.
fn caches() -> Vec<Arc<Cache>> {
    let hosts = || ["web.example.com".parse().unwrap()].into();
    let outer = Cache { hosts: hosts(), timeout: Duration::from_secs(20), ..cache("outer") };
    vec![Arc::new(Cache { hosts: hosts(), ..cache("inner") }), Arc::new(outer)]
}

fn play(world: &World, script: impl AsyncFnOnce(&mut Life)) {
    let mut settings = settings();
    settings.policy.caches = caches();
    life_under(world, settings, script);
}

fn first(world: &World, call: &str, about: &str) -> Option<u64> {
    world.asked(call, about).first().copied()
}

#[test]
fn a_purge_waits_for_its_own_caches_and_that_of_another_workload_for_none() {
    let world = settled(1, &["web", "blog"]);
    play(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        world.plan("caches.ask", "inner", 0, Fault::Delay(7_000));
        roll_out(life, "web", 2, "2", 1_000).await;
        roll_out(life, "blog", 2, "2", 1_000).await;
        life.pass(60_000).await;
    });
    let (asked, purged) = (first(&world, "caches.ask", "inner").unwrap(), first(&world, "cdn.create", "EWEB").unwrap());
    assert!(purged >= asked + 7_000, "{asked} {purged}");
    assert!(first(&world, "cdn.create", "EBLOG").unwrap() < purged, "it waits for nothing");
    assert_eq!((world.asked("caches.ask", "inner").len(), world.asked("caches.ask", "outer").len()), (2, 2));
    assert_eq!((world.creations("EWEB").len(), world.told("web", Kind::WorkloadFaulty).len()), (1, 0));
}

// Faults: P5
#[test]
fn a_cache_that_cannot_be_asked_is_told_and_the_purge_is_made_once() {
    let world = settled(1, &["web"]);
    play(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        (0..100).for_each(|_| world.plan("caches.ask", "outer", 0, Fault::Fail));
        roll_out(life, "web", 2, "2", 1_000).await;
        life.pass(120_000).await;
    });
    let (asked, purged) = (first(&world, "caches.ask", "outer").unwrap(), first(&world, "cdn.create", "EWEB").unwrap());
    assert!((20_000..30_000).contains(&(purged - asked)), "{asked} {purged}");
    assert!((5..20).contains(&world.asked("caches.ask", "outer").len()), "again and again, and not all the time");
    assert_eq!((world.creations("EWEB").len(), world.told("web", Kind::WorkloadFaulty).len()), (1, 1));
}

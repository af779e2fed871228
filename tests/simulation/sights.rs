//! First sights: what is new, what was there before, and who decides it (decision 28).

use kinds::reported::Replicas;
use purge::records::record::{Change, Outcome};
use purge::workloads::workload::Workload;
use support::fakes::{Fault, World};
use support::stage::{Stage, deployment, id, life, settled};

/// `web` as it is while none of its pods was ever ready.
fn slow(tag: &str) -> Workload {
    let replicas = Replicas { desired: 3, total: 3, updated: 3, ready: 0, available: 0 };
    Workload { replicas, ..deployment("web", 1, 1, tag, Stage::Half) }
}

fn ended(world: &World, name: &str) -> Option<Outcome> {
    world.record(&id(name))?.history.last().map(|closed| closed.outcome.clone())
}

/// `blog` has been there all along; `web` comes later.
fn with_blog() -> World {
    let world = settled(1, &["blog"]);
    world.distribution("EWEB", &["web.example.com"]);
    world
}

#[test]
fn a_deployment_that_is_created_while_we_watch_is_purged_whatever_its_first_sight() {
    for first in
        [slow("1"), deployment("web", 1, 1, "1", Stage::Unobserved), deployment("web", 1, 1, "1", Stage::Complete)]
    {
        let world = with_blog();
        life(&world, async |life| {
            life.pass(5_000).await;
            world.set(first.clone());
            life.pass(20_000).await;
            world.set(deployment("web", 1, 1, "1", Stage::Complete));
            life.pass(30_000).await;
        });
        assert_eq!((world.creations("EWEB").len(), ended(&world, "web")), (1, Some(Outcome::Purged)), "{first:?}");
        assert_eq!(world.creations("EBLOG").len(), 0, "there before us: a baseline");
    }
}

#[test]
fn what_is_created_while_nothing_runs_is_purged_by_the_next_life() {
    let world = with_blog();
    life(&world, async |life| life.pass(5_000).await);
    world.pass(60_000);
    world.set(deployment("web", 1, 1, "1", Stage::Complete));
    life(&world, async |life| life.pass(30_000).await);
    assert_eq!((world.creations("EWEB").len(), world.creations("EBLOG").len()), (1, 0));
    life(&world, async |life| life.pass(30_000).await);
    assert_eq!((world.creations("EWEB").len(), world.creations("EBLOG").len()), (1, 0), "and never again");
}

#[test]
fn a_scope_counts_as_listed_only_once_all_of_it_is_on_record() {
    let world = settled(1, &["web", "blog"]);
    // The first life cannot write one of its two baselines, and ends.
    (0..60).for_each(|_| world.plan("ledger.store_all", "shop/web", 0, Fault::Fail));
    life(&world, async |life| life.pass(5_000).await);
    let listed = |world: &World| !world.asked("ledger.store_listed", "[*]").is_empty();
    assert_eq!((world.record(&id("web")), listed(&world)), (None, false));
    let world_again = world.clone();
    life(&world, async |life| {
        life.until("a baseline", 120_000, |world| world.record(&id("web")).is_some()).await;
        life.pass(30_000).await;
    });
    assert_eq!(world_again.creations("EWEB").len(), 0, "it was there before us");
    assert!(listed(&world_again));
}

#[test]
fn the_sight_that_asked_for_a_rollout_decides_also_when_it_is_complete_by_the_time_the_record_is_read() {
    for fault in [Fault::FailAfter(8_000), Fault::Panic] {
        let world = settled(1, &["blog"]);
        world.distribution("EWEB", &["web.example.com"]);
        world.set(slow("1"));
        world.plan("ledger.load", "shop/web", 0, fault);
        life(&world, async |life| {
            life.pass(100).await;
            world.set(deployment("web", 1, 1, "1", Stage::Complete));
            life.pass(60_000).await;
        });
        assert!(world.plan_is_done(), "{fault:?}");
        assert_eq!(world.record(&id("web")).map(|record| record.change), Some(Change::Changed), "{fault:?}");
        assert_eq!((world.creations("EWEB").len(), ended(&world, "web")), (1, Some(Outcome::Purged)), "{fault:?}");
    }
}

#[test]
fn a_change_that_comes_before_the_first_record_is_written_is_no_baseline() {
    let world = settled(1, &["web"]);
    (0..3).for_each(|_| world.plan("ledger.store_all", "shop/web", 0, Fault::Fail));
    life(&world, async |life| {
        life.pass(1_500).await;
        assert_eq!(world.record(&id("web")), None);
        world.set(deployment("web", 1, 2, "2", Stage::Complete));
        life.pass(60_000).await;
    });
    assert_eq!((world.creations("EWEB").len(), ended(&world, "web")), (1, Some(Outcome::Purged)));
}

#[test]
fn a_deployment_that_is_switched_on_again_is_purged() {
    let world = settled(1, &["web", "blog"]);
    let off = |name: &str, tag: &str, generation: i64| {
        let mut workload = deployment(name, 1, generation, tag, Stage::Complete);
        workload.tuning.disabled = true;
        workload
    };
    life(&world, async |life| {
        life.pass(5_000).await;
        world.set(off("web", "1", 1));
        life.pass(5_000).await;
    });
    // There and back while it was off: nobody followed it.
    life(&world, async |life| {
        life.pass(5_000).await;
        world.set(off("web", "2", 2));
        life.pass(5_000).await;
        world.set(off("web", "1", 3));
        life.pass(5_000).await;
        assert_eq!(world.creations("EWEB").len(), 0);
        world.set(deployment("web", 1, 3, "1", Stage::Complete));
        life.pass(30_000).await;
    });
    assert_eq!((world.creations("EWEB").len(), ended(&world, "web")), (1, Some(Outcome::Purged)));
    assert_eq!(world.creations("EBLOG").len(), 0);
}

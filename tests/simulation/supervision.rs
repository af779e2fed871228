//! Supervision, fact by fact: what a crash, a lost message or a lost ledger may cost, and what it may not.

use std::collections::BTreeMap;
use std::time::Duration;

use allclear::actors::message::Drain;
use kernel::unreadable::Unreadable;
use notices::notice::Kind;
use purge::ports::Sight;
use purge::records::record::{Change, Phase};
use support::fakes::{Fault, Millis, World};
use support::stage::{Life, Stage, deployment, id, life, roll_out, settled};

/// Two rollouts at once; `web` is the one that gets hurt, `blog` the one that must not notice.
async fn two_rollouts(life: &Life) {
    life.pass(2_000).await;
    let web = roll_out(life, "web", 2, "2", 30_000);
    let blog = async {
        life.pass(8_000).await;
        roll_out(life, "blog", 2, "2", 15_000).await;
    };
    tokio::join!(web, blog);
    life.pass(90_000).await;
}

/// Plays both rollouts with a fault in the plan and returns the world. Asserts what holds whatever crashed.
fn play(method: &'static str, about: &str, skip: u32, fault: Option<Fault>) -> World {
    let world = settled(1, &["web", "blog"]);
    if let Some(fault) = fault {
        world.plan(method, about, skip, fault);
    }
    life(&world, async |life| {
        two_rollouts(life).await;
        let seen = life.observe().await;
        let quiet = seen.rollouts.is_empty() && seen.purges.is_empty() && seen.deliveries.is_empty();
        assert!(quiet && seen.quarantined.is_empty(), "{method} {about} {skip}: {seen:#?}");
        assert_eq!(life.has_given_up(), None);
    });
    for (name, distribution) in [("web", "EWEB"), ("blog", "EBLOG")] {
        assert_eq!(world.creations(distribution).len(), 1, "{method} {about} {skip}: {name}");
        assert!(!world.told(name, Kind::PurgeCompleted).is_empty(), "{method} {about} {skip}: {name} is told");
        assert_eq!(world.record(&id(name)).map(|record| record.is_open()), Some(false));
        let history = world.record(&id(name)).map(|record| record.history).unwrap_or_default();
        let known = history.iter().flat_map(|closed| &closed.purges).all(|(_, invalidation)| invalidation.is_some());
        assert!(known, "{method} {about} {skip}: {history:#?}");
    }
    world
}

/// Every call of this method in the course of a rollout panics once, each in a run of its own. Returns how many there were.
fn panic_at_every_call(method: &'static str, about: &str, check: impl Fn(&World)) -> u32 {
    for skip in 0..100 {
        let world = settled(1, &["web", "blog"]);
        world.plan(method, about, skip, Fault::Panic);
        let reached = life(&world, async |life| {
            two_rollouts(life).await;
            world.plan_is_done()
        });
        if !reached {
            return skip;
        }
        check(&play(method, about, skip, Some(Fault::Panic)));
    }
    panic!("{method} never ends");
}

// Faults: K18
#[test]
fn a_crash_of_a_rollout_costs_its_workload_nothing_and_the_others_notice_nothing() {
    let blog = play("", "", 0, None).effects("blog", "EBLOG");
    let mut panics = BTreeMap::new();
    for method in ["ledger.load", "ledger.store", "cluster.workload", "events.publish"] {
        let count = panic_at_every_call(method, "shop/web", |world| {
            assert_eq!(world.effects("blog", "EBLOG"), blog, "{method}");
        });
        panics.insert(method, count);
    }
    assert!(panics.values().all(|count| *count > 0), "{panics:?}");
}

#[test]
fn a_redis_that_hangs_or_fails_delays_no_purge() {
    let usual = play("", "", 0, None);
    for (method, fault) in [
        ("board.read", Fault::Hang),
        ("board.post", Fault::Hang),
        ("board.post", Fault::Fail),
        ("board.post", Fault::FailAfter(5_000)),
    ] {
        let world = play(method, "", 0, Some(fault));
        assert!(world.plan_is_done(), "{method} {fault:?}");
        for (name, distribution) in [("web", "EWEB"), ("blog", "EBLOG")] {
            let effects = (world.effects(name, distribution), usual.effects(name, distribution));
            assert_eq!(effects.0, effects.1, "{method} {fault:?}");
        }
    }
}

// Faults: K18
#[test]
fn a_crash_of_a_singleton_costs_no_rollout_its_purge_or_its_webhook() {
    let mut panics = BTreeMap::new();
    for (method, about) in [
        ("cluster.site_facts", "shop"),
        ("cdn.distributions", ""),
        ("cdn.create", "EWEB"),
        ("cdn.status", "EWEB"),
        ("board.post", "shop/web"),
        ("notifier.deliveries", "shop/web"),
        ("notifier.send", "shop/web"),
        ("ledger.store_delivery", "shop/web"),
        ("ledger.remove_delivery", ""),
        ("ledger.deliveries", ""),
        ("ledger.store_all", "shop/web"),
        ("ledger.floor", "shop/web"),
    ] {
        panics.insert(method, panic_at_every_call(method, about, |_| ()));
    }
    assert!(panics.values().all(|count| *count > 0), "{panics:?}");
}

#[test]
fn a_watcher_that_crashes_at_any_time_is_rebuilt_and_its_children_with_it() {
    for at in (500..70_000).step_by(1_500) {
        let world = settled(1, &["web", "blog"]);
        life(&world, async |life| {
            let crash = async {
                life.pass(at).await;
                world.panic_watchers();
            };
            tokio::join!(two_rollouts(life), crash);
            assert_eq!(life.has_given_up(), None);
            let seen = life.observe().await;
            assert!(seen.rollouts.is_empty(), "{at}: {seen:#?}");
        });
        assert_eq!(world.state().watches_opened, 2, "{at}");
        for (name, distribution) in [("web", "EWEB"), ("blog", "EBLOG")] {
            assert_eq!(world.creations(distribution).len(), 1, "{at}: {name}");
            assert!(!world.told(name, Kind::PurgeCompleted).is_empty(), "{at}: {name} is told");
        }
    }
}

#[test]
fn the_children_of_a_dead_watcher_end_with_all_that_they_were_trying() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        for _ in 0..500 {
            world.plan("ledger.load", "shop/web", 0, Fault::Fail);
        }
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        // Each of these leaves a rollout actor behind that tries to read its record again and again.
        for _ in 0..4 {
            life.pass(16_000).await;
            world.panic_watchers();
        }
        life.pass(100).await;
        let before = world.asked("ledger.load", "shop/web").len();
        life.pass(60_000).await;
        let loads = world.asked("ledger.load", "shop/web").len() - before;
        assert!((3..=9).contains(&loads), "{loads} attempts in a minute are not those of one actor with its back-off");
    });
}

// Faults: K18
#[test]
fn a_rollout_that_keeps_crashing_is_left_alone_and_tried_again_with_the_newest_sight() {
    let world = settled(1, &["web", "blog"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        let untouched = world.record(&id("web"));
        for _ in 0..6 {
            world.plan("ledger.load", "shop/web", 0, Fault::Panic);
        }
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(1_000).await;
        assert_eq!(life.observe().await.quarantined, [id("web")]);
        assert!(world.plan_is_done());

        // What happens to it meanwhile must not be forgotten, and the others go on.
        world.set(deployment("web", 1, 3, "3", Stage::Half));
        life.pass(1_000).await;
        world.set(deployment("web", 1, 3, "3", Stage::Complete));
        roll_out(life, "blog", 2, "2", 10_000).await;
        life.until("blog is told", 60_000, |world| !world.told("blog", Kind::PurgeCompleted).is_empty()).await;
        assert_eq!(world.record(&id("web")), untouched);
        assert!(world.creations("EWEB").is_empty());

        life.until("web is purged", 300_000, |world| !world.creations("EWEB").is_empty()).await;
        life.pass(60_000).await;
        assert!(life.observe().await.quarantined.is_empty());
        let record = world.record(&id("web")).expect("a record");
        assert_eq!(Ok(record.version), deployment("web", 1, 3, "3", Stage::Complete).version);
    });
    assert_eq!(world.creations("EWEB").len(), 1);
}

#[test]
fn a_workload_that_is_deleted_while_it_is_left_alone_is_forgotten() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        for _ in 0..6 {
            world.plan("ledger.load", "shop/web", 0, Fault::Panic);
        }
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(1_000).await;
        assert_eq!(life.observe().await.quarantined, [id("web")]);
        world.delete(&id("web"));
        life.pass(400_000).await;
        assert!(life.observe().await.rollouts.is_empty());
    });
    assert_eq!(world.record(&id("web")), None);
    assert!(world.creations("EWEB").is_empty());
}

// Faults: K18
#[test]
fn a_singleton_that_keeps_crashing_ends_the_process() {
    for (method, about, who) in [
        ("cdn.create", "EWEB", "invalidator"),
        ("notifier.send", "shop/web", "webhook"),
        ("board.post", "shop/web", "cluster_group"),
        ("ledger.floor", "shop/cart", "deployment_watcher"),
    ] {
        let world = settled(1, &["web"]);
        for _ in 0..20 {
            world.plan(method, about, 0, Fault::Panic);
        }
        world.set(deployment("cart", 1, 1, "1", Stage::Complete));
        life(&world, async |life| {
            life.pass(2_000).await;
            roll_out(life, "web", 2, "2", 5_000).await;
            life.pass(30_000).await;
            let given_up = life.has_given_up().unwrap_or_else(|| panic!("{who} went on"));
            assert!(given_up.0.contains(who), "{given_up:?}");
        });
    }
}

#[test]
fn a_storm_of_sights_loses_no_sight() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(5_000).await;
        for _ in 0..5_000 {
            world.set(deployment("web", 1, 2, "2", Stage::Half));
        }
        world.set(deployment("web", 1, 2, "2", Stage::Complete));
        life.pass(5_000).await;
    });
    assert_eq!(world.creations("EWEB").len(), 1);
}

#[test]
fn an_end_in_order_waits_for_the_write_under_way() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        world.plan("ledger.store", "shop/web", 0, Fault::Delay(1_000));
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(100).await;
        assert_eq!(world.record(&id("web")).map(|record| record.phase), Some(Phase::Complete), "not written yet");
        life.root.send(Drain).await.expect("it answers");
        assert_eq!(world.record(&id("web")).map(|record| record.phase), Some(Phase::Rolling), "written by the end");
        let asked = world.state().asked.len();
        life.pass(60_000).await;
        assert_eq!(world.state().asked.len(), asked, "and nothing is done after it");
    });
}

// Faults: K16
#[test]
fn an_end_in_order_does_not_wait_for_ever() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        world.plan("ledger.store", "shop/web", 0, Fault::Hang);
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(100).await;
        let begin = world.now();
        life.root.send(Drain).await.expect("it answers");
        assert!(world.now() - begin <= 2_000, "{} ms", world.now() - begin);
    });
}

#[test]
fn a_rollout_times_out_to_the_millisecond() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        life.pass(700_000).await;
    });
    let state = world.state();
    let failed = |written: &&support::fakes::Written| {
        written.record.as_ref().is_some_and(|record| matches!(record.phase, Phase::Failed(_)))
    };
    assert_eq!(state.written.iter().find(failed).map(|written| written.at), Some(602_000));
    assert!(state.created.is_empty());
}

// Faults: A4
#[test]
fn a_ledger_that_is_deleted_under_us_is_opened_again_and_everything_is_built_from_it() {
    let world = settled(1, &["web", "blog"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        roll_out(life, "web", 2, "2", 10_000).await;
        life.pass(60_000).await;
        world.lose_ledger();
        // Found out by the next write, which is lost with the ledger: this version becomes the baseline of the new one.
        roll_out(life, "web", 3, "3", 10_000).await;
        life.pass(60_000).await;
        assert_eq!(world.record(&id("web")).map(|record| record.seq.0), Some(1));
        assert!(world.record(&id("blog")).is_some_and(|record| record.change == Change::Baseline));
        assert_eq!(world.state().watches_opened, 2);
        // And it works: also, there is one set of actors, or receivers would hear everything twice.
        let heard = world.state().delivered.len();
        roll_out(life, "web", 4, "4", 10_000).await;
        life.pass(60_000).await;
        let state = world.state();
        let told: Vec<_> = state.delivered[heard..].iter().map(|(_, id, _)| id).collect();
        let distinct: std::collections::BTreeSet<_> = told.iter().collect();
        assert!(!told.is_empty() && told.len() == distinct.len(), "{told:#?}");
        drop(state);
        assert_eq!(life.has_given_up(), None);
    });
    let creations = world.creations("EWEB");
    assert!(creations.iter().any(|at| *at > 150_000), "{creations:?}");
}

#[test]
fn a_baseline_that_meets_a_deleted_ledger_opens_the_next_one() {
    let world = settled(1, &["web"]);
    world.set(deployment("cart", 1, 1, "1", Stage::Complete));
    world.plan("ledger.store_all", "shop/cart", 0, Fault::Delay(3_000));
    life(&world, async |life| {
        life.pass(2_000).await;
        world.lose_ledger();
        life.pass(10_000).await;
    });
    assert!(world.record(&id("cart")).is_some() && world.record(&id("web")).is_some());
}

#[test]
fn an_event_that_cannot_be_published_does_not_repeat_the_webhooks() {
    let world = settled(1, &["web"]);
    for _ in 0..12 {
        world.plan("events.publish", "shop/web", 0, Fault::Fail);
    }
    life(&world, async |life| {
        life.pass(2_000).await;
        roll_out(life, "web", 2, "2", 10_000).await;
        life.pass(300_000).await;
        assert!(life.observe().await.rollouts.is_empty());
    });
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    for (_, id, _) in &world.state().delivered {
        *taken.entry(id.clone()).or_default() += 1;
    }
    assert!(!taken.is_empty() && taken.values().all(|times| *times == 1), "{taken:#?}");
}

#[test]
fn a_workload_that_could_not_be_read_once_is_taken_up_when_it_can_be() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        world.show(|| Sight::Unreadable(id("cart"), Unreadable::because("spec.replicas is a text")));
        life.pass(2_000).await;
        assert!(!life.observe().await.troubles.is_empty());
        world.set(deployment("cart", 1, 1, "1", Stage::Complete));
        life.pass(5_000).await;
        assert!(world.record(&id("cart")).is_some());
        assert_eq!(life.observe().await.troubles, Vec::<String>::new());
    });
}

#[test]
fn a_workload_deleted_while_its_baseline_is_written_leaves_no_record() {
    for gone_at in [500, 1_500, 4_000] {
        let world = settled(1, &["web"]);
        world.plan("ledger.store_all", "shop/cart", 0, Fault::FailAfter(1_000));
        world.plan("ledger.store_all", "shop/cart", 0, Fault::Delay(1_000));
        world.set(deployment("cart", 1, 1, "1", Stage::Complete));
        life(&world, async |life| {
            life.pass(gone_at).await;
            world.delete(&id("cart"));
            life.pass(30_000).await;
        });
        assert_eq!(world.record(&id("cart")), None, "{gone_at}");
    }
}

#[test]
fn a_version_seen_while_the_baseline_before_it_is_written_is_not_forgotten() {
    for fault in [Fault::FailAfter(1_000), Fault::Delay(1_000)] {
        let world = settled(1, &["web"]);
        world.plan("ledger.store_all", "shop/cart", 0, fault);
        world.set(deployment("cart", 1, 1, "1", Stage::Complete));
        life(&world, async |life| {
            life.pass(500).await;
            world.set(deployment("cart", 1, 2, "2", Stage::Complete));
            life.pass(60_000).await;
        });
        let record = world.record(&id("cart")).expect("a record");
        assert_eq!(Ok(record.version), deployment("cart", 1, 2, "2", Stage::Complete).version, "{fault:?}");
    }
}

#[test]
fn twenty_workloads_released_together_cost_three_creations_at_most() {
    let names: Vec<String> = (0..20).map(|number| format!("app-{number:02}")).collect();
    let world = World::new(1);
    world.distribution("EALL", &["*.example.com"]);
    for name in &names {
        world.set(deployment(name, 1, 1, "1", Stage::Complete));
    }
    life(&world, async |life| {
        life.pass(2_000).await;
        for name in &names {
            world.set(deployment(name, 1, 2, "2", Stage::Half));
        }
        life.pass(20_000).await;
        for name in &names {
            world.set(deployment(name, 1, 2, "2", Stage::Complete));
            life.pass(50).await;
        }
        life.pass(120_000).await;
        let seen = life.observe().await;
        assert!(seen.rollouts.is_empty() && seen.purges.is_empty(), "{seen:#?}");
    });
    let creations = world.creations("EALL");
    assert!((1..=3).contains(&creations.len()), "{creations:?}");
    for name in &names {
        assert_eq!(world.told(name, Kind::PurgeCompleted).len(), 1, "{name}");
    }
}

#[test]
fn a_burst_of_panics_is_over_within_a_second() {
    let world = settled(1, &["web"]);
    for _ in 0..5 {
        world.plan("ledger.store", "shop/web", 0, Fault::Panic);
    }
    let purged: Millis = life(&world, async |life| {
        life.pass(2_000).await;
        roll_out(life, "web", 2, "2", 10_000).await;
        life.until("web is purged", 1_000, |world| !world.creations("EWEB").is_empty()).await
    });
    assert!(Duration::from_millis(purged) <= Duration::from_secs(13));
}

//! A site that is gone when its rollout completes: decided by the real actors, in virtual time.

use kernel::names::paths::Path;
use notices::notice::Kind;
use purge::site::RouteClaim;
use support::fakes::World;
use support::stage::{Life, life, roll_out, settled};

/// Two rollouts of `web`; its Ingress is taken away before the second one is complete, which is at the time returned.
async fn deprive(life: &Life) -> u64 {
    life.pass(2_000).await;
    roll_out(life, "web", 2, "2", 1_000).await;
    life.pass(5 * 60_000).await;
    assert_eq!(life.world.creations("EWEB").len(), 1);
    life.world.state().unrouted.insert("web".to_owned());
    roll_out(life, "web", 3, "3", 1_000).await;
    life.world.now()
}

fn told(world: &World) -> usize {
    world.told("web", Kind::SiteLost).len()
}

#[test]
fn an_ingress_that_is_gone_for_twelve_seconds_delays_its_purge_by_those() {
    let world = settled(1, &["web"]);
    life(&world, async |life: &mut Life| {
        let complete = deprive(life).await;
        life.pass(12_000).await;
        assert_eq!(world.creations("EWEB").len(), 1);
        world.state().unrouted.clear();
        let what = "it is purged";
        let purged = life.until(what, 10_000, |world| world.creations("EWEB").len() == 2).await;
        assert!(purged - complete >= 12_000, "{purged}");
        life.pass(10 * 60_000).await;
    });
    assert_eq!((world.creations("EWEB").len(), told(&world)), (2, 0));
}

#[test]
fn an_ingress_that_is_gone_for_good_is_told_after_five_minutes_and_purged_all_the_same() {
    let world = settled(1, &["web"]);
    life(&world, async |life: &mut Life| {
        let complete = deprive(life).await;
        let purged = life.until("it is purged", 6 * 60_000, |world| world.creations("EWEB").len() == 2).await;
        assert!((5 * 60_000..5 * 60_000 + 10_000).contains(&(purged - complete)), "{}", purged - complete);
        life.pass(60_000).await;
        // The next one is no site, and that is no news.
        roll_out(life, "web", 4, "4", 1_000).await;
        life.pass(10 * 60_000).await;
    });
    assert_eq!((world.creations("EWEB").len(), told(&world)), (2, 1));
    let record = world.record(&support::stage::id("web")).unwrap();
    assert!(!record.is_open() && record.serves_nothing(), "{record:?}");
}

#[test]
fn a_host_that_another_namespace_serves_now_is_not_purged_for_the_one_that_had_it() {
    let world = settled(1, &["web"]);
    life(&world, async |life: &mut Life| {
        world.state().claims.push(RouteClaim {
            created: "2026-11-24T00:00:00Z".to_owned(),
            namespace: "blog".to_owned(),
            object: "Ingress blog/web".to_owned(),
            accepted: true,
            expressions: false,
            hosts: vec![("web.example.com".parse().unwrap(), vec![Path::parse("/*").unwrap()])],
        });
        deprive(life).await;
        life.pass(10 * 60_000).await;
    });
    assert_eq!((world.creations("EWEB").len(), told(&world)), (1, 0));
}

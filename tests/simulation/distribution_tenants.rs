//! Distribution tenants among the actors: their listing fails, or may not be made, and what distributions serve is purged all the same.

use kernel::names::distribution::Distribution;
use notices::notice::Kind;
use support::fakes::{Fault, World};
use support::stage::{Life, Stage, deployment, life, roll_out, settled};

const TENANT: &str = "dt_2blog";

/// `web` is served by a distribution, `blog` by a distribution tenant.
fn world() -> World {
    let world = settled(1, &["web"]);
    world.distribution("ESHARED", &[]);
    world.distribution(TENANT, &["blog.example.com"]);
    let mut state = world.state();
    for one in state.distributions.iter_mut().skip(1) {
        *one = Distribution {
            tenant_only: !one.id.is_of_distribution_tenant(),
            domain_name: String::new(),
            ..one.clone()
        };
    }
    drop(state);
    world.set(deployment("blog", 1, 1, "1", Stage::Complete));
    world
}

/// Both are rolled out while `times` listings of distribution tenants go wrong, and `blog` once more.
fn play(fault: Fault, times: u32) -> World {
    let world = world();
    for _ in 0..times {
        world.plan("cdn.distribution_tenants", "ESHARED", 0, fault);
    }
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        tokio::join!(roll_out(life, "web", 2, "2", 10_000), roll_out(life, "blog", 2, "2", 10_000));
        life.until("web's purge", 5 * 60_000, |world| !world.told("web", Kind::PurgeCompleted).is_empty()).await;
        life.pass(15 * 60_000).await;
        roll_out(life, "blog", 3, "3", 10_000).await;
        life.pass(5 * 60_000).await;
        let paths = world.state().created.values().map(|created| created.paths.iter().count()).sum::<usize>();
        let bill = life.observe().await.bill;
        assert!(bill[0].contains(&format!("in AWS account default: {paths} paths")), "theirs count too: {bill:?}");
    });
    assert!(world.plan_is_done());
    assert_eq!((world.creations("EWEB").len(), world.creations("ESHARED").len()), (1, 0));
    world
}

#[test]
fn both_are_purged_once_for_each_rollout() {
    let world = play(Fault::Fail, 0);
    assert_eq!((world.creations(TENANT).len(), world.told("blog", Kind::PurgeCompleted).len()), (2, 2));
}

// Faults: F9
#[test]
fn a_listing_of_distribution_tenants_that_fails_is_waited_for_by_those_that_it_is_about() {
    let world = play(Fault::Fail, 2);
    assert!(world.creations("EWEB")[0] < world.creations(TENANT)[0], "a distribution does not wait for that");
    assert_eq!((world.creations(TENANT).len(), world.told("blog", Kind::PurgeCompleted).len()), (2, 2));
}

// Faults: F9
#[test]
fn distribution_tenants_that_may_not_be_listed_are_purged_from_the_first_rollout_on_that_may() {
    let world = play(Fault::Deny, 2);
    assert_eq!((world.creations(TENANT).len(), world.told("blog", Kind::PurgeCompleted).len()), (1, 1));
}

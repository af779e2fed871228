//! `allclear.dev/paths: routes`: what the real actors send, once routes are read, and what where they cannot be.

use std::collections::BTreeMap;

use purge::site::Way;
use purge::workloads::workload::{Tuning, Workload};
use support::fakes::{Fault, World};
use support::stage::{Life, Stage, deployment, life};

fn web(generation: i64) -> Workload {
    let tuning = Tuning::read([("allclear.dev/paths", "routes")]);
    let template_labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    Workload { tuning, template_labels, ..deployment("web", 1, generation, &generation.to_string(), Stage::Complete) }
}

/// What was sent to its distribution, in no order.
fn sent(world: &World) -> Vec<String> {
    world.state().created.values().map(|created| created.paths.to_string()).collect()
}

fn account() -> World {
    let world = World::new(1);
    world.distribution("EWEB", &["web.example.com"]);
    let ways = ["/shop", "/cart"].map(|path| Way::Prefix(path.to_owned()));
    world.state().ways.insert("web".to_owned(), ways.into());
    world.set(web(1));
    world
}

#[test]
fn the_first_purge_is_of_everything_and_the_next_of_what_routes_send_to_it() {
    let world = account();
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        for generation in 2..=3 {
            life.world.set(web(generation));
            life.pass(10 * 60_000).await;
        }
    });
    let mut sent = sent(&world);
    sent.sort();
    assert_eq!(sent, ["/*", "/cart* /shop*"]);
}

#[test]
fn where_it_is_not_known_who_routes_the_host_everything_is_purged_at_once() {
    let world = account();
    for _ in 0..2 {
        world.plan("cluster.route_claims", "", 0, Fault::Deny);
    }
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        for generation in 2..=3 {
            life.world.set(web(generation));
            life.pass(10 * 60_000).await;
        }
    });
    assert_eq!(sent(&world), ["/*", "/*"]);
}

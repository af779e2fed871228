//! By which paths routes lead to a workload: what would be purged by them, what is, and why that is everything.

use super::*;
use purge::site::Way;
use purge::workloads::extent::Extent;

/// A world in which the one Ingress of the workload sends it these.
fn world(tuning: Tuning, ways: &[Way]) -> World {
    let mut world = World::new(Workload { tuning, ..web() });
    let rules = world.cluster.facts.as_mut().unwrap().ingresses.iter_mut().flat_map(|one| &mut one.rules);
    for rule in rules {
        let backends = rule.backends.clone();
        rule.ways = backends.iter().flat_map(|to| ways.iter().map(|way| (to.clone(), way.clone()))).collect();
    }
    world
}

fn by_routes() -> Tuning {
    let extent = Extent::of(vec!["routes".parse().unwrap(), "/api/*".parse().unwrap()]).unwrap();
    Tuning { paths: Some(extent), ..Tuning::default() }
}

async fn paths(world: World) -> String {
    rows(&world.text().await, &["Would purge", "Paths"])
}

#[tokio::test]
async fn where_it_is_off_it_says_what_it_would_be() {
    expect![[r#"
        Would purge   /* of E1
        Paths         /* (from the configuration)
                      api.example.com: routes lead here by /shop* alone; with allclear.dev/paths: routes, all purges but the first are of these
                      www.example.com: routes lead here by /shop* alone; with allclear.dev/paths: routes, all purges but the first are of these
    "#]]
    .assert_eq(&paths(world(Tuning::default(), &[Way::Prefix("/shop".into())])).await);
}

#[tokio::test]
async fn where_it_is_on_it_says_which_paths_or_why_it_is_everything() {
    expect![[r#"
        Would purge   routes, /api/* of E1
        Paths         routes, /api/* (from the annotation)
                      api.example.com: routes lead here by /shop* alone
                      www.example.com: routes lead here by /shop* alone
    "#]]
    .assert_eq(&paths(world(by_routes(), &[Way::Prefix("/shop".into())])).await);
    expect![[r#"
        Would purge   routes, /api/* of E1
        Paths         routes, /api/* (from the annotation)
                      api.example.com: purged whole: Ingress shop/public has a regular expression
                      www.example.com: purged whole: Ingress shop/public has a regular expression
    "#]]
    .assert_eq(&paths(world(by_routes(), &[Way::Prefix("/shop".into()), Way::Expression])).await);
    let hosts = Some(vec!["www.example.com".parse().unwrap()]);
    expect![[r#"
        Would purge   routes, /api/* of E1
        Paths         routes, /api/* (from the annotation)
                      all of it: purged whole: its owner names its hosts or distributions, so no routes are looked at
    "#]]
    .assert_eq(&paths(world(Tuning { hosts, ..by_routes() }, &[])).await);
}

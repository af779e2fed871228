//! Where a workload stands that was not purged, or would not be: what was then, what is now, and what bounds a purge.

use std::collections::BTreeSet;

use super::*;
use crate::looking::tests::{distribution, record};
use purge::records::record::{Closed, LastSite, Outcome as Ended, Record};

/// The rollout 7 is complete, and ended so; `None`: it awaits its vote.
fn complete(outcome: Option<Ended>) -> Record {
    let mut record = Record { phase: Phase::Complete, ..record() };
    if let Some(outcome) = outcome {
        let change = "web: 1.2.3 → 1.2.4".into();
        record.close(Closed {
            seq: Seq(7),
            change,
            outcome,
            why: String::new(),
            purges: Vec::new(),
            more: 0,
            seen: None,
        });
    }
    record
}

fn world(record: Record) -> World {
    let mut world = World::new(web());
    world.records = vec![(world.records[0].0.clone(), record)];
    world
}

#[tokio::test]
async fn what_was_not_purged_then_is_told_apart_from_what_would_be_purged_now() {
    let names = ["State", "Next", "Would purge"];
    expect![[r#"
        State         web: 1.2.3 → 1.2.4: not purged, because nothing led to it when it was complete; distributions serve its hosts now
        Next          purges with the next version; for this one, set the annotation allclear.dev/requested-at to the time
        Would purge   /* of E1
    "#]].assert_eq(&world(complete(Some(Ended::NoSite))).rows(&names).await);
    let mut still = world(complete(Some(Ended::NoSite)));
    still.cluster.facts = Ok(SiteFacts::default());
    expect![[r#"
        State         web: 1.2.3 → 1.2.4: not purged: no Ingress, route or annotation gives the workload a host
        Next          waits for the next version
        Would purge   nothing: no Ingress, route or annotation gives it a host; annotation allclear.dev/hosts can name some
    "#]].assert_eq(&still.rows(&names).await);
    expect![[r#"
        State         web: 1.2.3 → 1.2.4: not purged, because no distribution served its hosts when it was complete; distributions serve its hosts now
        Next          purges with the next version; for this one, set the annotation allclear.dev/requested-at to the time
        Would purge   /* of E1
    "#]].assert_eq(&world(complete(Some(Ended::NoDistribution))).rows(&names).await);
}

#[tokio::test]
async fn hosts_that_cannot_be_read_are_what_a_complete_rollout_waits_for() {
    let mut world = world(complete(None));
    world.cluster.facts = Err(forbidden("failed to list ingresses.networking.k8s.io in shop"));
    expect![[r#"
        State         complete, and not voted for yet; its hosts cannot be read from here: failed to list ingresses.networking.k8s.io in shop: forbidden
        Next          votes for the purge once allclear can read its hosts; an Event says so if it cannot either
        Hosts         missing: failed to list ingresses.networking.k8s.io in shop: forbidden
    "#]].assert_eq(&world.rows(&["State", "Next", "Hosts"]).await);
}

#[tokio::test]
async fn hosts_that_are_lost_are_named() {
    let host = BTreeSet::from(["www.example.com".parse().unwrap()]);
    let mut world = world(Record { site: Some(LastSite::Hosts(host)), ..complete(None) });
    world.cluster.facts = Ok(SiteFacts::default());
    expect![[r#"
        State         complete; nothing leads to it any more, and it had www.example.com
        Next          looks for its hosts again for site.missing_timeout, and then goes by site.missing
    "#]]
    .assert_eq(&world.rows(&["State", "Next"]).await);
}

#[tokio::test]
async fn of_more_distributions_than_the_bound_those_are_named_that_would_be_purged() {
    let mut world = World::new(web());
    let ids = (0..60).map(|number| format!("E{number:03}"));
    world.account = Account(Ok(ids.map(|id| distribution(&id, "www.example.com", true)).collect()));
    let text = world.text().await;
    expect![[r#"
        Would purge   /* of E000, E001, E002, E003, E004, E005, E006, E007, E008, E009; 50 more are beyond the 10 distributions that one workload may purge; the operator can allow more by distributions_max in tenants.allow
    "#]].assert_eq(&rows(&text, &["Would purge"]));
    assert!(text.contains("not E010, E011"), "{text}");
}

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
        record.close(Closed { seq: Seq(7), change, outcome, why: String::new(), purges: Vec::new(), more: 0 });
    }
    record
}

/// Without the breaks of its lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn world(record: Record) -> World {
    let mut world = World::new(web());
    world.records = vec![(world.records[0].0.clone(), record)];
    world
}

#[tokio::test]
async fn what_was_not_purged_then_is_told_apart_from_what_would_be_purged_now() {
    let text = world(complete(Some(Ended::NoSite))).text().await;
    let state = "State         web: 1.2.3 → 1.2.4: not purged, because nothing led to it when it was complete; distributions \
                 serve its hosts now\n";
    assert!(flat(&text).contains(&flat(state)), "{text}");
    assert!(text.contains("Would purge   /* of E1"), "{text}");
    assert!(text.contains("allclear.dev/requested-at"), "{text}");

    let mut still = world(complete(Some(Ended::NoSite)));
    still.cluster.facts = Ok(SiteFacts::default());
    let text = still.text().await;
    assert!(flat(&text).contains("not purged: no Ingress, route or annotation gives the workload a host"), "{text}");

    let text = world(complete(Some(Ended::NoDistribution))).text().await;
    assert!(flat(&text).contains("no distribution served its hosts"), "{text}");
}

#[tokio::test]
async fn hosts_that_cannot_be_read_are_what_a_complete_rollout_waits_for() {
    let mut world = world(complete(None));
    world.cluster.facts = Err(forbidden("failed to list ingresses.networking.k8s.io in shop"));
    let text = world.text().await;
    assert!(flat(&text).contains("State complete, and not voted for yet; its hosts cannot be read"), "{text}");
    assert!(!text.contains("checking once more"), "{text}");
    assert!(flat(&text).contains("failed to list ingresses.networking.k8s.io in shop"), "{text}");
}

#[tokio::test]
async fn hosts_that_are_lost_are_named() {
    let host = BTreeSet::from(["www.example.com".parse().unwrap()]);
    let mut world = world(Record { site: Some(LastSite::Hosts(host)), ..complete(None) });
    world.cluster.facts = Ok(SiteFacts::default());
    let text = world.text().await;
    assert!(flat(&text).contains("complete; nothing leads to it any more, and it had www.example.com"), "{text}");
    assert!(text.contains("site.missing_timeout"), "{text}");
}

#[tokio::test]
async fn of_more_distributions_than_the_bound_those_are_named_that_would_be_purged() {
    let mut world = World::new(web());
    let ids = (0..60).map(|number| format!("E{number:03}"));
    world.account = Account(Ok(ids.map(|id| distribution(&id, "www.example.com", true)).collect()));
    let text = world.text().await;
    let would = text.split("Would purge").nth(1).unwrap().split("\n\n").next().unwrap();
    let would = would.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(would.starts_with("/* of E000, E001,") && would.contains("E009; 50 more are beyond the 10"), "{would}");
    assert!(would.contains("distributions_max in tenants.allow") && !would.contains("E010"), "{would}");
    assert!(text.contains("not E010, E011"), "{text}");
}

//! Whether the edge is purged, at each step of a rollout's life.

use super::*;
use crate::records::record::Edge;
use crate::rollouts::edge::{self, AtEdge};

/// What is said of the story's record and of what the cluster has, which the machine may not have seen yet.
fn why_stale(story: &Story) -> Option<String> {
    edge::at_edge(Some(story.record()), story.cluster.as_ref(), &without_barrier(OnRollback::default())).stale()
}

fn stale(story: &Story, why: &str) {
    let said = why_stale(story).unwrap();
    assert!(said.contains(why), "{said}");
}

// Faults: PF17
#[test]
fn the_edge_is_purged_from_the_end_of_a_purge_to_the_next_change() {
    let mut story = Story::begin(complete("a", 1));
    assert_eq!(why_stale(&story), None, "nothing has changed since the first sight");
    story.cluster = Some(complete("b", 2));
    stale(&story, "runs something else than allclear has on record");
    story.see(half("b", 2));
    stale(&story, "is not complete");
    story.held.insert("purge");
    story.see(complete("b", 2));
    stale(&story, "is under way");
    let order =
        story.effects.iter().find_map(|e| if let Effect::Purge(order) = e { Some(order.clone()) } else { None });
    let reference = order.expect("a purge").reference.clone();
    let open = story.record().votes.clone();
    let mut refused = story.record().clone();
    refused.votes[0].purges.listed.values_mut().for_each(|purge| purge.refused = "AccessDenied".to_owned());
    let said = edge::at_edge(Some(&refused), story.cluster.as_ref(), &Policy::default()).stale().unwrap();
    assert_eq!(said, "its purge is not made yet, and tried again: AccessDenied");
    story.step(Event::Purged(reference.clone(), Progress::Created("I1".into())));
    stale(&story, "is under way");
    story.step(Event::Purged(reference, Progress::Completed(None)));
    assert_eq!((story.last(), why_stale(&story)), (Some(&Outcome::Purged), None));
    let owed = Record { owed: open, ..story.record().clone() };
    let said = edge::at_edge(Some(&owed), story.cluster.as_ref(), &Policy::default()).stale().unwrap();
    assert!(said.contains("a purge is owed"), "{said}");
    story.held.clear();
    story.see(half("a", 3));
    stale(&story, "is not complete");
    story.see(complete("a", 3));
    assert_eq!(why_stale(&story), None, "it was purged for going back, too");
}

// Faults: PF17
#[test]
fn a_rollout_that_failed_or_was_not_purged_leaves_the_edge_stale() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.pass(Duration::from_secs(3600));
    stale(&story, "its rollout failed");
    let record = story.record().clone();
    let ended = |outcome: Outcome| {
        let closed = crate::records::record::Closed {
            seq: record.seq,
            change: String::new(),
            outcome,
            why: "E2: AccessDenied".to_owned(),
            purges: Vec::new(),
            more: 0,
            seen: None,
        };
        let (history, settled, edge) = (vec![closed], None, Edge::Settled);
        let done = Record { phase: Phase::Complete, closed: record.seq, history, settled, edge, ..record.clone() };
        edge::at_edge(Some(&done), Some(&complete("b", 2)), &Policy::default()).stale()
    };
    for outcome in [Outcome::Owed, Outcome::PartlyOwed, Outcome::Partly, Outcome::Impossible, Outcome::RecoveredSkipped]
    {
        let said = ended(outcome.clone()).unwrap();
        assert!(said.contains(&outcome.to_string()) && said.ends_with("(E2: AccessDenied)"), "{said}");
    }
    for outcome in [Outcome::Purged, Outcome::NothingNew, Outcome::Returned, Outcome::NoSite, Outcome::NoDistribution] {
        assert_eq!(ended(outcome), None);
    }
}

// Faults: PF17
#[test]
fn what_is_not_followed_is_never_purged() {
    let (story, policy) = (Story::begin(complete("a", 1)), Policy::default());
    let (record, workload) = (story.record(), complete("a", 1));
    let said = |record: Option<&Record>, workload: Option<&Workload>| {
        edge::at_edge(record, workload, &policy).stale().unwrap()
    };
    assert!(said(Some(record), None).contains("no such workload"));
    assert!(said(None, Some(&workload)).contains("no record of it yet"));
    assert!(said(Some(record), Some(&Workload { deleting: true, ..workload.clone() })).contains("being deleted"));
    let other = Workload { uid: "another".to_owned(), ..workload.clone() };
    assert!(said(Some(record), Some(&other)).contains("something else"));
    let unreadable = Workload { version: Err(unreadable_image()), ..workload.clone() };
    assert!(said(Some(record), Some(&unreadable)).contains("is not an image"));
    let mut off = workload.clone();
    off.tuning.disabled = true;
    assert!(said(Some(record), Some(&off)).contains("switched off"));
    for (edge, words) in [(Edge::Moved, "another version has been served"), (Edge::Unknown, "nothing was purged since")]
    {
        assert!(said(Some(&Record { edge, ..record.clone() }), Some(&workload)).contains(words));
    }
    let elsewhere = Record { settled: Some(version("b")), ..record.clone() };
    assert!(said(Some(&elsewhere), Some(&workload)).contains("another version"));
}

#[test]
fn only_an_edge_that_would_be_fresh_waits_for_another_version_beside_it() {
    let beside = |at_edge: AtEdge, another: Option<&str>| at_edge.beside(another.map(str::to_owned)).stale();
    assert_eq!(beside(AtEdge::Purged, None), None);
    let words = beside(AtEdge::Purged, Some("a pod of stable serves")).unwrap();
    assert!(words.starts_with("a pod of stable serves; "), "{words}");
    assert_eq!(
        beside(AtEdge::Edgeless("no site".to_owned()), Some("a pod of stable serves")),
        None,
        "nothing is cached"
    );
    let stuck = AtEdge::Stuck("its rollout failed".to_owned());
    assert_eq!(beside(stuck, Some("a pod of stable serves")).as_deref(), Some("its rollout failed"));
}

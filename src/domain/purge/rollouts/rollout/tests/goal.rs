//! The answers to a waiting CI job, at each step of a rollout's life.

use super::*;
use crate::records::record::{Closed, Edge};
use crate::rollouts::goal::{Goal, Way, way};
use kernel::id::NoticeId;
use notices::notice::Notice;

const ALL: [Goal; 3] = [Goal::Complete, Goal::Purged, Goal::Settled];

/// What waits for `tag` come to, by goal.
fn ways(story: &Story, tag: &str) -> [Way; 3] {
    let policy = without_barrier(OnRollback::default());
    ALL.map(|goal| way(goal, &version(tag), Some(story.record()), story.cluster.as_ref(), &policy))
}

fn is_awaited(way: &Way) -> bool {
    matches!(way, Way::Awaited(_))
}

fn has_ended(way: &Way, why: &str) -> bool {
    matches!(way, Way::Ended(words) if words.contains(why))
}

#[test]
fn a_change_that_was_not_seen_yet_is_never_taken_for_purged() {
    let mut story = Story::begin(complete("a", 1));
    assert_eq!(ways(&story, "a"), [Way::Reached, Way::Reached, Way::Reached], "at rest");
    story.cluster = Some(complete("b", 2));
    assert!(ways(&story, "b").iter().all(is_awaited), "the record is still that of a: {:?}", ways(&story, "b"));
    story.cluster = Some(half("b", 2));
    story.see(half("b", 2));
    assert!(ways(&story, "b").iter().all(is_awaited));
    story.held.insert("purge");
    story.see(complete("b", 2));
    let [complete_, purged, settled] = ways(&story, "b");
    assert_eq!(complete_, Way::Reached);
    assert!(is_awaited(&purged) && is_awaited(&settled), "{purged:?} {settled:?}");
}

#[test]
fn a_purge_that_was_asked_for_and_not_seen_yet_is_awaited() {
    let mut story = Story::begin(complete("a", 1));
    let mut asked = complete("a", 1);
    asked.tuning.asks.requested_at = Some("now".to_owned());
    story.cluster = Some(asked);
    assert!(ways(&story, "a").iter().all(is_awaited));
}

#[test]
fn a_rollout_that_fails_or_is_overtaken_ends_every_wait_with_its_reason() {
    let mut story = Story::begin(complete("a", 1));
    story.see(half("b", 2));
    story.cluster = Some(complete("c", 3));
    assert!(ways(&story, "b").iter().all(|way| has_ended(way, "another version took its place")));
    assert!(ways(&story, "c").iter().all(is_awaited));
    story.cluster = Some(half("b", 2));
    story.pass(Duration::from_secs(3600));
    assert!(ways(&story, "b").iter().all(|way| has_ended(way, "its rollout failed")), "{:?}", ways(&story, "b"));
    story.cluster = None;
    assert!(ways(&story, "b").iter().all(|way| has_ended(way, "no such workload")));
}

#[test]
fn what_no_host_leads_to_is_settled_and_never_purged_and_what_is_untold_is_not_settled() {
    let story = Story::begin(complete("a", 1));
    let at_rest = story.record().clone();
    let closed = |outcome| Closed {
        seq: at_rest.seq,
        change: String::new(),
        outcome,
        why: String::new(),
        purges: Vec::new(),
        more: 0,
        seen: None,
    };
    let policy = Policy::default();
    let ask = |record: &Record| ALL.map(|goal| way(goal, &version("a"), Some(record), story.cluster.as_ref(), &policy));
    let [complete_, purged, settled] = ask(&Record { history: vec![closed(Outcome::NoSite)], ..at_rest.clone() });
    assert_eq!((complete_, settled), (Way::Reached, Way::Reached));
    assert!(has_ended(&purged, "no Ingress") && has_ended(&purged, "--for settled"), "{purged:?}");
    for (outcome, ends) in [(Outcome::Owed, false), (Outcome::Impossible, true)] {
        let [_, purged, settled] = ask(&Record { history: vec![closed(outcome)], ..at_rest.clone() });
        assert_eq!((is_awaited(&purged), is_awaited(&settled)), (!ends, !ends), "{purged:?}");
    }
    let stale = ask(&Record { edge: Edge::Moved, ..at_rest.clone() });
    assert!(has_ended(&stale[1], "another version has been served"), "{stale:?}");
    let notice = Notice {
        id: NoticeId("n".to_owned()),
        kind: Kind::PurgeCompleted,
        at_ms: 1,
        about: crate::testing::web().into(),
        seq: at_rest.seq,
        rollout: String::new(),
        change: String::new(),
        message: String::new(),
    };
    let untold = ask(&Record { untold: vec![notice], ..at_rest.clone() });
    assert_eq!(untold[1], Way::Reached);
    assert!(is_awaited(&untold[2]), "{untold:?}");
}

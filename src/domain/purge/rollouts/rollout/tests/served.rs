//! What the edge may have of a version that never completed.

use super::*;

/// One of two pods is made and not available: the counts do not say whether it is ready.
fn stuck(tag: &str, generation: i64) -> Workload {
    let replicas = Replicas { desired: 2, total: 3, updated: 1, ready: 2, available: 2 };
    Workload { replicas, ..complete(tag, generation) }
}

fn pods(updated: u32, ready: u32) -> Event {
    Event::PodsSeen(Pods { updated, ready, ..Pods::default() })
}

fn services(publish_unready: bool) -> Event {
    Event::ServicesSeen { publish_unready }
}

/// `b` is stuck, these things are seen of its pods, and `a` comes back.
fn left(on_rollback: OnRollback, seen: &[Event]) -> Story {
    let mut story = Story::under(without_barrier(on_rollback), complete("a", 1));
    story.see(stuck("b", 2));
    seen.iter().for_each(|event| story.step(event.clone()));
    story.see(complete("a", 3));
    story
}

fn ends(on_rollback: OnRollback, seen: &[Event]) -> Option<Outcome> {
    left(on_rollback, seen).last().cloned()
}

#[test]
fn a_version_whose_pods_were_never_ready_leaves_nothing_at_the_edge() {
    let never = [services(false), pods(1, 0), pods(2, 0)];
    assert_eq!(ends(OnRollback::IfServed, &never), Some(Outcome::Returned));
    assert_eq!(ends(OnRollback::Purge, &never), Some(Outcome::Purged));
}

#[test]
fn one_ready_pod_is_enough_however_short() {
    let ready = [services(false), pods(1, 0), pods(1, 1), pods(1, 0)];
    assert_eq!(ends(OnRollback::IfServed, &ready), Some(Outcome::Purged));
    assert_eq!(ends(OnRollback::Close, &ready), Some(Outcome::Returned));
}

#[test]
fn a_service_that_publishes_unready_pods_serves_them() {
    assert_eq!(ends(OnRollback::IfServed, &[services(true), pods(1, 0)]), Some(Outcome::Purged));
    assert_eq!(ends(OnRollback::IfServed, &[services(true), pods(0, 0)]), Some(Outcome::Returned), "there was none");
}

#[test]
fn what_nobody_could_see_counts_as_served() {
    assert_eq!(ends(OnRollback::IfServed, &[]), Some(Outcome::Purged));
    assert_eq!(ends(OnRollback::IfServed, &[pods(1, 0)]), Some(Outcome::Purged), "no word of the Services");
    assert_eq!(ends(OnRollback::IfServed, &[services(false)]), Some(Outcome::Purged), "no word of the pods");
    let gap = [services(false), pods(1, 0), Event::PodsUnseen, pods(1, 0)];
    assert_eq!(ends(OnRollback::IfServed, &gap), Some(Outcome::Purged));
    let started = Event::PodsSeen(Pods { updated: 1, started: 1, ..Pods::default() });
    let at_first = [services(false), started.clone()];
    assert_eq!(
        ends(OnRollback::IfServed, &at_first),
        Some(Outcome::Purged),
        "it may have been ready before it was seen"
    );
    let from_the_beginning = [services(false), pods(1, 0), started];
    assert_eq!(ends(OnRollback::IfServed, &from_the_beginning), Some(Outcome::Returned));
}

// Faults: P3
#[test]
fn a_life_that_ended_while_it_was_rolling_has_not_seen_all() {
    let mut story = Story::begin(complete("a", 1));
    story.see(stuck("b", 2));
    [services(false), pods(1, 0)].into_iter().for_each(|event| story.step(event));
    let record = story.record().clone();
    story.machine = Rollout::resume(identity(), without_barrier(OnRollback::IfServed), Seq(0), Some(record));
    story.see(complete("a", 3));
    assert_eq!(story.last(), Some(&Outcome::Purged));
}

#[test]
fn a_pod_that_is_ready_after_the_rollout_has_failed_counts_too() {
    let mut story = Story::begin(complete("a", 1));
    story.see(stuck("b", 2));
    [services(false), pods(1, 0)].into_iter().for_each(|event| story.step(event));
    story.pass(Duration::from_secs(15 * 60));
    assert_eq!(story.record().phase, Phase::Failed(Failure::TimedOut));
    let policy = without_barrier(OnRollback::IfServed);
    let attended = |story: &Story, sight: &Workload| attention(Some(story.record()), sight, true, &policy);
    assert_eq!(attended(&story, &stuck("b", 2)), Attention::Idle);
    assert_eq!(attended(&story, &half("b", 2)), Attention::Rollout);
    story.see(half("b", 2));
    assert_eq!(attended(&story, &half("b", 2)), Attention::Idle, "it is on record");
    story.see(complete("a", 3));
    assert_eq!(story.last(), Some(&Outcome::Purged));
}

/// `a` is purged after `b` was served for the first time: the edge may have either.
#[test]
fn a_purge_that_completes_beside_a_served_version_does_not_settle_the_edge() {
    let mut story = Story::begin(complete("a", 1));
    story.see(complete("b", 2));
    story.held.insert("purge");
    story.see(complete("a", 3));
    let reference = story.purges().into_iter().next_back().cloned();
    let open =
        story.record().votes.iter().flat_map(|vote| vote.purges.listed.values()).next().map(|p| p.reference.clone());
    assert!(reference.is_some() && open.is_some());
    story.see(stuck("c", 4));
    [services(false), pods(1, 1)].into_iter().for_each(|event| story.step(event));
    story.step(Event::Purged(open.clone().unwrap(), Progress::Created("I7".into())));
    story.step(Event::Purged(open.unwrap(), Progress::Completed(None)));
    story.held.clear();
    story.see(complete("a", 5));
    assert_eq!(story.last(), Some(&Outcome::Purged));
    assert_eq!(story.record().history.last().map(|closed| closed.seq), Some(story.record().seq));
}

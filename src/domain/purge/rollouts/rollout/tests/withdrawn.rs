//! An update that is aborted: what the edge may have of it, and what runs then.

use super::*;
use crate::rollouts::goal::{Goal, Way, way};
use kernel::names::image::Container;
use kinds::Stable;

/// `b` while it is aborted: its spec stays. `back`: the two pods of `a` are alone again.
fn aborted(back: bool) -> Workload {
    let updated = if back { 2 } else { 1 };
    let replicas = Replicas { desired: 2, total: 2, updated, ready: 2, available: 2 };
    let stable = Stable { hash: "a".to_owned(), replicas, says: Says::Counts };
    let says = Says::GivenUp(GivenUp::Aborted("RolloutAborted: by ann".into()));
    Workload { object: id::Kind::Rollout, says, stable: Some(Box::new(stable)), ..half("b", 2) }
}

fn argo(workload: Workload) -> Workload {
    Workload { object: id::Kind::Rollout, ..workload }
}

fn runs(version: Version) -> Event {
    Event::OldPodsFound(OldPods::default().running(Some(version)))
}

/// `b` was half out when it was aborted, and that has failed it.
fn withdrawn(on_rollback: OnRollback) -> Story {
    let mut story = Story::under(without_barrier(on_rollback), argo(complete("a", 1)));
    story.held.insert("find_old_pods");
    story.see(argo(half("b", 2)));
    story.see(aborted(false));
    story.pass(Duration::from_secs(10));
    assert_eq!(story.record().phase, Phase::Failed(Failure::Aborted));
    story
}

fn questions(story: &Story) -> usize {
    story.effects.iter().filter(|effect| matches!(effect, Effect::FindOldPods(_))).count()
}

fn attended(story: &Story, on_rollback: OnRollback) -> Attention {
    attention(Some(story.record()), story.cluster.as_ref().unwrap(), true, &without_barrier(on_rollback))
}

#[test]
fn what_runs_after_an_abort_is_purged_once_and_not_before_it_runs_alone() {
    let mut story = withdrawn(OnRollback::IfServed);
    assert_eq!(attended(&story, OnRollback::IfServed), Attention::Rollout);
    story.step(runs(version("a")));
    let record = story.record().clone();
    assert_eq!((record.seq, record.phase, record.withdrawn), (Seq(3), Phase::Rolling, Some(version("b"))));
    assert_eq!((record.version, story.purges().len()), (version("a"), 0), "a pod of b is left");
    assert_eq!(story.state(), "1 of 2 pods available, 15m of 15m left; the update to web: b was aborted");
    story.see(aborted(true));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
    story.see(aborted(true));
    story.pass(Duration::from_secs(3600));
    assert_eq!((story.purges().len(), story.machine.next_deadline()), (1, None));
    assert_eq!(attended(&story, OnRollback::IfServed), Attention::Idle, "also in a later life");
    assert_eq!(story.record().history.last().map(|closed| closed.change.as_str()), Some("web: b → a"));
    let waited = |goal| way(goal, &version("b"), Some(story.record()), story.cluster.as_ref(), &Policy::default());
    for goal in [Goal::Complete, Goal::Purged, Goal::Settled] {
        assert!(matches!(waited(goal), Way::Ended(why) if why.contains("aborted")));
    }
}

#[test]
fn a_retry_is_a_rollout_of_its_own_and_what_was_withdrawn_before_needs_no_purge_then() {
    let mut story = withdrawn(OnRollback::IfServed);
    story.step(runs(version("a")));
    story.see(argo(half("b", 2)));
    let record = story.record().clone();
    assert_eq!((record.seq, record.version, record.withdrawn), (Seq(4), version("b"), None));
    story.see(argo(complete("b", 2)));
    story.pass(Duration::from_secs(3600));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
    // And where the retry comes before anything is known of what runs.
    let mut story = withdrawn(OnRollback::IfServed);
    story.see(argo(half("b", 2)));
    assert!(
        story
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Tell(told) if told.message.starts_with("it is tried again")))
    );
    story.step(runs(version("a")));
    let record = story.record().clone();
    assert_eq!(
        (record.seq, record.phase, record.version),
        (Seq(3), Phase::Rolling, version("b")),
        "too late an answer"
    );
    story.see(argo(complete("b", 2)));
    story.pass(Duration::from_secs(3600));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
}

#[test]
fn each_abort_that_may_have_served_is_purged_and_each_retry_that_completes() {
    let mut story = withdrawn(OnRollback::IfServed);
    story.step(runs(version("a")));
    story.see(aborted(true));
    story.see(argo(half("b", 2)));
    story.see(aborted(false));
    story.pass(Duration::from_secs(10));
    story.step(runs(version("a")));
    story.see(aborted(true));
    assert_eq!(story.purges().len(), 2);
    story.see(argo(complete("b", 2)));
    assert_eq!((story.purges().len(), story.last()), (3, Some(&Outcome::Purged)));
    story.see(argo(complete("b", 2)));
    assert_eq!((story.purges().len(), story.record().withdrawn.clone()), (3, None));
}

#[test]
fn a_spec_that_goes_back_to_what_runs_changes_nothing() {
    let mut story = withdrawn(OnRollback::IfServed);
    story.step(runs(version("a")));
    story.see(aborted(true));
    story.see(argo(complete("a", 3)));
    assert_eq!((story.record().seq, story.record().withdrawn.clone(), story.purges().len()), (Seq(3), None, 1));
    // Or while the pods of b are still there: then that is what completes it.
    let mut story = withdrawn(OnRollback::IfServed);
    story.step(runs(version("a")));
    story.see(argo(half("a", 3)));
    assert_eq!((story.record().seq, story.purges().len()), (Seq(3), 0));
    story.see(argo(complete("a", 3)));
    assert_eq!((story.record().seq, story.purges().len()), (Seq(3), 1));
}

#[test]
fn a_life_that_ends_at_any_point_purges_no_less_and_no_more() {
    let revive = |story: &mut Story| {
        let record = story.record().clone();
        let policy = without_barrier(OnRollback::IfServed);
        story.machine = Rollout::resume(identity(), policy, Seq(0), Some(record));
        let sight = story.cluster.clone().unwrap();
        story.see(sight);
    };
    let mut story = withdrawn(OnRollback::IfServed);
    revive(&mut story);
    story.step(runs(version("a")));
    revive(&mut story);
    assert_eq!((story.record().seq, story.record().phase.clone()), (Seq(3), Phase::Rolling));
    story.held.insert("purge");
    story.see(aborted(true));
    revive(&mut story);
    story.held.clear();
    revive(&mut story);
    revive(&mut story);
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
}

#[test]
fn nothing_is_purged_where_nothing_was_served_or_a_return_is_never_purged() {
    let story = withdrawn(OnRollback::Close);
    assert_eq!((questions(&story), attended(&story, OnRollback::Close)), (0, Attention::Idle));
    let mut story = Story::under(without_barrier(OnRollback::IfServed), argo(complete("a", 1)));
    let never = Replicas { desired: 2, total: 3, updated: 1, ready: 2, available: 2 };
    story.see(Workload { replicas: never, ..argo(half("b", 2)) });
    story.step(Event::ServicesSeen { publish_unready: false });
    story.step(Event::PodsSeen(Pods { updated: 1, ..Pods::default() }));
    story.see(Workload { replicas: never, ..aborted(true) });
    story.pass(Duration::from_secs(60));
    assert_eq!((story.record().phase.clone(), questions(&story)), (Phase::Failed(Failure::Aborted), 0));
    assert_eq!(attended(&story, OnRollback::IfServed), Attention::Idle);
}

#[test]
fn an_update_that_was_over_before_it_was_seen_may_have_served() {
    let mut story = Story::under(without_barrier(OnRollback::IfServed), argo(complete("a", 1)));
    story.held.insert("find_old_pods");
    story.see(aborted(true));
    story.step(Event::ServicesSeen { publish_unready: false });
    story.step(Event::PodsSeen(Pods::default()));
    story.pass(Duration::from_secs(10));
    story.step(runs(version("a")));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
}

#[test]
fn which_version_runs_is_asked_until_pods_say_so() {
    let mut story = withdrawn(OnRollback::IfServed);
    story.step(Event::OldPodsUnseen("pods is forbidden".to_owned()));
    assert!(story.state().contains("cannot see which version its pods are of: pods is forbidden"), "{}", story.state());
    story.pass(Duration::from_secs(60));
    story.step(Event::OldPodsFound(OldPods::default()));
    assert_eq!(story.record().seq, Seq(2), "no pod of it stays yet");
    let before = questions(&story);
    story.pass(Duration::from_secs(2));
    assert_eq!(questions(&story), before + 1);
    story.step(runs(version("a")));
    assert_eq!(story.record().version, version("a"));
}

#[test]
fn pods_have_the_version_that_the_record_knows_or_else_their_own() {
    let and = |of: &Version, more: &str| -> Version {
        let sidecar = (Container::Main("proxy".to_owned()), format!("envoy:{more}").parse().unwrap());
        of.iter().map(|(name, image)| (name.clone(), image.clone())).chain([sidecar]).collect()
    };
    for (seen, expected) in [
        (and(&version("a"), "1"), version("a")),
        // It was promoted while nobody looked.
        (and(&version("x"), "1"), version("x")),
    ] {
        let mut story = withdrawn(OnRollback::IfServed);
        story.step(runs(seen));
        assert_eq!(story.record().version, expected);
    }
}

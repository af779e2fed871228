//! Rollouts of Argo Rollouts: aborted, degraded, and in the place of a Deployment.

use super::*;

/// One of two pods of an update, in the words of its controller.
fn given_up(tag: &str, why: GivenUp) -> Workload {
    Workload { says: Says::GivenUp(why), ..half(tag, 2) }
}

fn aborted(tag: &str) -> Workload {
    given_up(tag, GivenUp::Aborted("RolloutAborted: by ann".into()))
}

fn degraded(tag: &str) -> Workload {
    given_up(tag, GivenUp::Degraded("InvalidSpec: service web not found".into()))
}

/// The same as a Rollout of the same name.
fn argo(workload: Workload) -> Workload {
    Workload { object: id::Kind::Rollout, uid: "uid-argo".to_owned(), ..workload }
}

#[test]
fn an_abort_purges_nothing_and_a_retry_that_completes_purges_once() {
    let mut story = Story::begin(complete("a", 1));
    story.see(aborted("b"));
    assert_eq!(story.record().phase, Phase::Rolling, "one sight may be of before the retry");
    story.pass(Duration::from_secs(2));
    assert_eq!((story.record().phase.clone(), story.purges().len()), (Phase::Failed(Failure::Aborted), 0));
    assert!(story.record().history.last().is_some_and(|closed| closed.why == "RolloutAborted: by ann"));
    story.see(half("b", 2));
    story.pass(Duration::from_secs(60));
    assert_eq!((story.record().seq, story.record().phase.clone(), story.purges().len()), (Seq(3), Phase::Rolling, 0));
    story.see(complete("b", 2));
    story.see(complete("b", 2));
    assert_eq!((story.record().change, story.purges().len()), (Change::Changed, 1));
}

#[test]
fn after_an_abort_the_version_before_is_purged_where_the_edge_may_have_the_other() {
    let mut story = Story::begin(complete("a", 1));
    story.see(aborted("b"));
    story.pass(Duration::from_secs(2));
    story.see(complete("a", 3));
    assert_eq!(story.last(), Some(&Outcome::Purged), "a pod of b was ready");
}

#[test]
fn a_degraded_rollout_has_failed_if_it_still_is_after_ten_seconds() {
    let mut story = Story::begin(complete("a", 1));
    story.see(degraded("b"));
    story.pass(Duration::from_secs(9));
    assert_eq!(story.record().phase, Phase::Rolling);
    story.pass(Duration::from_secs(1));
    assert_eq!(story.record().phase, Phase::Failed(Failure::Degraded));
    let mut passing = Story::begin(complete("a", 1));
    passing.see(degraded("b"));
    passing.pass(Duration::from_secs(9));
    passing.see(half("b", 2));
    passing.pass(Duration::from_secs(9));
    passing.see(degraded("b"));
    passing.pass(Duration::from_secs(9));
    assert_eq!(passing.record().phase, Phase::Rolling, "ten seconds each time");
}

#[test]
fn a_rollout_in_the_place_of_a_deployment_is_a_change_only_if_its_version_is_another() {
    let mut story = Story::begin(complete("a", 7));
    let policy = without_barrier(OnRollback::default());
    assert_eq!(attention(Some(story.record()), &argo(complete("a", 1)), true, &policy), Attention::Rollout);
    story.see(argo(complete("a", 1)));
    let record = story.record().clone();
    assert_eq!((record.uid.as_str(), record.stand_in), ("uid-argo", Some(id::Kind::Rollout)));
    assert_eq!((record.seq, record.generation, story.purges().len()), (Seq(1), 1, 0), "nothing has changed");
    assert_eq!(attention(Some(&record), &argo(complete("a", 1)), true, &policy), Attention::Idle);
    // Its generations count from 1.
    story.see(argo(complete("b", 2)));
    assert_eq!((story.record().seq, story.purges().len()), (Seq(2), 1));
    let told = story.effects.iter().find_map(|effect| match effect {
        Effect::Tell(notice) if notice.kind == Kind::RolloutCompleted => notice.about.mentions(),
        _ => None,
    });
    assert_eq!(told.and_then(|mentions| mentions.stand_in), Some(id::Kind::Rollout), "its Event is on the Rollout");
    // Back again; another Deployment of the same version has a number of its own.
    story.see(complete("b", 8));
    assert_eq!((story.record().stand_in, story.purges().len()), (None, 1));
    story.see(Workload { uid: "uid-2".to_owned(), ..complete("b", 1) });
    assert_eq!((story.record().seq, story.purges().len(), story.last()), (Seq(3), 1, Some(&Outcome::Returned)));
}

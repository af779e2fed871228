//! The barrier: what a rollout waits for when its counts say that it is complete.

use super::*;
use crate::readiness::Pod;
use crate::serving::{Serving, old_pods};

const SECOND: Duration = Duration::from_secs(1);

/// What a look finds while this pod of the template before is on its way out.
fn serving(old: &str) -> OldPods {
    let pod = |name: &str, hash: &str, terminating| {
        let pod = Pod {
            name: name.into(),
            version: None,
            ready: true,
            terminating,
            started: false,
            finished: false,
            trouble: None,
        };
        ([("pod-template-hash".to_owned(), hash.to_owned())].into(), pod)
    };
    old_pods(&Serving { pods: vec![pod("new-1", "b", false), pod(old, "a", true)], endpoints: Vec::new() })
}

/// `a` is at rest, and then all pods are of `b`; looks for old pods are in the test's hands.
fn at_the_barrier() -> Story {
    let mut story = Story::under(Policy::default(), complete("a", 1));
    story.held.insert("find_old_pods");
    story.see(half("b", 2));
    story.see(complete("b", 2));
    story
}

impl Story {
    fn looks(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::FindOldPods(_))).count()
    }

    fn messages(&self, kind: Kind) -> Vec<&str> {
        let told = |effect: &'_ Effect| matches!(effect, Effect::Tell(notice) if notice.kind == kind);
        let notices = self.effects.iter().filter(|effect| told(effect));
        notices.map(|effect| if let Effect::Tell(notice) = effect { notice.message.as_str() } else { "" }).collect()
    }
}

#[test]
fn nothing_is_voted_for_while_an_old_pod_serves_and_for_a_moment_after() {
    let mut story = at_the_barrier();
    assert_eq!((story.looks(), &story.record().phase), (1, &Phase::Rolling));
    story.step(Event::OldPodsFound(serving("old-1")));
    assert_eq!(story.state(), "every pod is new and available; old pod old-1 still serves, 0ms of 1m at most");
    story.pass(2 * SECOND);
    assert_eq!(story.looks(), 2, "it looks again");
    story.step(Event::OldPodsFound(OldPods::default()));
    assert_eq!(story.state(), "every pod is new and available; no old pod serves any more; settling for 3s");
    story.pass(3 * SECOND - Duration::from_millis(1));
    assert_eq!((story.purges().len(), &story.record().phase), (0, &Phase::Rolling));
    story.pass(Duration::from_millis(1));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
    assert_eq!(story.told(Kind::WorkloadFaulty), 0);
}

#[test]
fn a_pod_that_is_seen_to_go_is_worth_a_look_at_once() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(serving("old-1")));
    story.step(Event::PodsSeen(Pods { updated: 2, ready: 2, ..Pods::default() }));
    assert_eq!(story.looks(), 2);
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(3 * SECOND);
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn after_the_bound_it_goes_on_and_says_for_what_it_did_not_wait() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(serving("old-1")));
    story.held.remove("find_old_pods");
    for _ in 0..29 {
        story.held.insert("find_old_pods");
        story.pass(2 * SECOND);
        story.step(Event::OldPodsFound(serving("old-1")));
    }
    assert_eq!(story.purges().len(), 0);
    story.pass(2 * SECOND);
    assert_eq!(story.purges().len(), 1);
    let [faulty] = story.messages(Kind::WorkloadFaulty)[..] else { panic!("it is told once") };
    assert!(faulty.starts_with("old pod old-1 still serves, 1m after all pods were new"), "{faulty}");
    let [completed] = story.messages(Kind::RolloutCompleted)[..] else { panic!("it is told once") };
    assert!(completed.ends_with("not waited for any longer than 1m: old pod old-1 still serves"), "{completed}");
}

#[test]
fn where_nobody_can_see_old_pods_the_bound_ends_the_wait_and_it_is_told_why() {
    let mut story = at_the_barrier();
    while story.purges().is_empty() {
        assert!(story.now <= Timestamp::from_millis(60_000), "it never goes on");
        story.step(Event::OldPodsUnseen("failed to list pods in shop: forbidden".into()));
        assert!(story.state().contains("cannot see whether old pods still serve: failed to list pods"));
        story.pass(SECOND);
    }
    let [faulty] = story.messages(Kind::WorkloadFaulty)[..] else { panic!("it is told once") };
    assert!(faulty.contains("forbidden"), "{faulty}");
}

#[test]
fn a_broken_predicate_begins_both_waits_anew() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(2 * SECOND);
    story.see(half("b", 2));
    story.see(complete("b", 2));
    assert_eq!(story.looks(), 2);
    story.pass(2 * SECOND);
    assert_eq!(story.purges().len(), 0);
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(3 * SECOND - Duration::from_millis(1));
    assert_eq!(story.purges().len(), 0);
    story.pass(Duration::from_millis(1));
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn an_answer_from_before_the_predicate_held_again_says_nothing_of_now() {
    let mut story = at_the_barrier();
    story.see(half("b", 2));
    story.see(complete("b", 2));
    assert_eq!(story.looks(), 1, "one question at a time");
    story.step(Event::OldPodsFound(OldPods::default()));
    assert_eq!(story.looks(), 2, "and that answer was to an older one");
    story.pass(30 * SECOND);
    assert_eq!(story.purges().len(), 0);
}

#[test]
fn the_wait_at_the_barrier_does_not_count_towards_the_timeout() {
    let mut story = Story::under(Policy { rollout_timeout: 10 * SECOND, ..Policy::default() }, complete("a", 1));
    story.held.insert("find_old_pods");
    story.see(half("b", 2));
    story.pass(9 * SECOND);
    story.see(complete("b", 2));
    story.step(Event::OldPodsFound(serving("old-1")));
    story.pass(30 * SECOND);
    assert_eq!(story.record().phase, Phase::Rolling);
    story.see(half("b", 2));
    story.pass(SECOND);
    assert!(matches!(story.record().phase, Phase::Failed(_)), "the rest of the time runs on");
}

#[test]
fn a_restart_after_the_bound_does_not_wait_again() {
    let mut story = at_the_barrier();
    story.held.extend(["recheck", "find_site"]);
    story.step(Event::OldPodsFound(serving("old-1")));
    story.pass(60 * SECOND);
    assert_eq!((story.purges().len(), &story.record().phase), (0, &Phase::Complete));
    let record = story.record().clone();
    story.machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    story.held.clear();
    let looks = story.looks();
    story.see(complete("b", 2));
    assert_eq!((story.purges().len(), story.looks()), (1, looks));
}

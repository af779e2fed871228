//! The barrier: what a rollout waits for when its counts say that it is complete.

use super::*;
use crate::workloads::beside::BESIDE_CURE;
use crate::workloads::readiness::Pod;
use crate::workloads::serving::{Serving, old_pods};

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
    old_pods(
        &Serving { pods: vec![pod("new-1", "b", false), pod(old, "a", true)], endpoints: Vec::new() },
        &complete("b", 2),
    )
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

// Faults: P2
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

/// The controller has not acted on this generation yet.
fn unobserved(workload: Workload) -> Workload {
    Workload { observed_generation: workload.generation - 1, ..workload }
}

/// So many pods are wanted and there, and so many of them available.
fn scaled(tag: &str, generation: i64, pods: u32, available: u32) -> Workload {
    let replicas = Replicas { desired: pods, total: pods, updated: pods, ready: available, available };
    Workload { replicas, ..complete(tag, generation) }
}

#[test]
fn neither_counts_nor_generations_begin_a_wait_anew() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(2 * SECOND);
    for broken in [unobserved(complete("b", 3)), half("b", 3)] {
        story.see(broken);
        assert!(story.state().starts_with("every pod was new and available 2s ago; now "), "{}", story.state());
    }
    story.see(complete("b", 3));
    story.pass(SECOND - Duration::from_millis(1));
    assert_eq!((story.looks(), story.purges().len()), (1, 0));
    story.pass(Duration::from_millis(1));
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn a_missing_pod_holds_the_decision_up_and_not_the_clocks() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.see(half("b", 3));
    story.pass(60 * SECOND);
    assert_eq!(story.purges().len(), 0);
    story.see(complete("b", 3));
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn another_version_begins_both_waits_anew() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(2 * SECOND);
    story.see(complete("c", 3));
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
fn an_answer_about_another_version_says_nothing_of_this_one() {
    let mut story = at_the_barrier();
    story.see(complete("c", 3));
    assert_eq!(story.looks(), 1, "one question at a time");
    story.step(Event::OldPodsFound(OldPods::default()));
    assert_eq!(story.looks(), 2, "and that answer was to an older one");
    story.pass(30 * SECOND);
    assert_eq!(story.purges().len(), 0);
}

#[test]
fn an_old_pod_that_serves_again_begins_both_waits_anew() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(lingering(false)));
    story.pass(2 * SECOND);
    assert_eq!(story.looks(), 2, "it is still there");
    story.step(Event::OldPodsFound(lingering(true)));
    assert_eq!(story.state(), "every pod is new and available; old pod old-1 still serves, 0ms of 1m at most");
    story.pass(2 * SECOND);
    story.step(Event::OldPodsFound(lingering(false)));
    story.pass(3 * SECOND - Duration::from_millis(1));
    assert_eq!(story.purges().len(), 0);
    story.pass(Duration::from_millis(1));
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn one_that_serves_now_and_then_is_not_waited_for_without_end() {
    let mut story = at_the_barrier();
    while story.purges().is_empty() {
        assert!(story.now < Timestamp::from_millis(123_001), "it never goes on");
        let serves = story.looks().is_multiple_of(2);
        story.step(Event::OldPodsFound(lingering(serves)));
        story.pass(Duration::from_millis(500));
    }
    assert!(story.now >= Timestamp::from_millis(123_000), "{:?}", story.now);
    assert_eq!(story.told(Kind::WorkloadFaulty), 1);
}

/// An old pod whose endpoint serves or not, and which has not ended.
fn lingering(serves: bool) -> OldPods {
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
    let endpoint = |pod: &str, serves| crate::workloads::serving::Endpoint { pod: pod.into(), serves };
    let endpoints = vec![endpoint("new-1", true), endpoint("old-1", serves)];
    old_pods(&Serving { pods: vec![pod("new-1", "b", false), pod("old-1", "a", true)], endpoints }, &complete("b", 2))
}

/// The Deployment is written again and again, each time seen before and after the controller has acted on it; returns
/// when the purge was made, at most so long after the predicate first held.
fn written_each(every: Duration, stops: Duration, sight: impl Fn(i64) -> Workload) -> Duration {
    let mut story = at_the_barrier();
    let began = story.now;
    let mut generation = 2;
    while story.purges().is_empty() {
        assert!(story.now.since(began) <= 200 * SECOND, "starved: {}", story.state());
        generation += 1;
        story.see(unobserved(sight(generation)));
        story.pass(every / 10);
        story.see(sight(generation));
        let old = if story.now.since(began) < stops { serving("old-1") } else { OldPods::default() };
        story.step(Event::OldPodsFound(old));
        story.pass(every - every / 10);
    }
    story.now.since(began)
}

#[test]
fn a_writer_that_never_rests_keeps_no_purge_from_being_made() {
    for (every, stops) in [(1_000, 0), (2_500, 0), (1_000, 20_000), (20_000, 30_000)] {
        let (every, stops) = (Duration::from_millis(every), Duration::from_millis(stops));
        let took = written_each(every, stops, |generation| complete("b", generation));
        // It learns of the old pod by the test's step, and settles three seconds.
        assert!(took <= stops + 3 * SECOND + 2 * every, "{every:?}, {stops:?}: {took:?}");
    }
    let held = written_each(20 * SECOND, 1_000 * SECOND, |generation| complete("b", generation));
    assert!(held <= 80 * SECOND, "an old pod that never ends: {held:?}");
}

#[test]
fn replicas_that_two_writers_fight_for_and_those_of_an_autoscaler_hold_nothing_up() {
    // Two pods as at first, then five that take longer to start than the fight lets them.
    let fight =
        |generation: i64| if generation % 2 == 0 { complete("b", generation) } else { scaled("b", generation, 5, 2) };
    assert!(written_each(2 * SECOND, Duration::ZERO, fight) <= 7 * SECOND);
    // One more each time, and the newest is never available.
    let grows = |generation: i64| {
        scaled("b", generation, u32::try_from(generation).unwrap(), u32::try_from(generation - 1).unwrap())
    };
    assert!(written_each(15 * SECOND, 30 * SECOND, grows) <= 60 * SECOND);
}

#[test]
fn scaling_down_during_the_drain_changes_nothing() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(serving("old-1")));
    story.see(unobserved(scaled("b", 3, 1, 1)));
    story.see(scaled("b", 3, 1, 1));
    story.pass(2 * SECOND);
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(3 * SECOND);
    assert_eq!(story.purges().len(), 1);
    let [completed] = story.messages(Kind::RolloutCompleted)[..] else { panic!("it is told once") };
    assert_eq!(completed, "all 2 pods available; 1 are wanted now");
}

#[test]
fn nothing_is_purged_while_it_is_scaled_to_zero_and_no_wait_begins_anew_after_it() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.see(scaled("b", 3, 0, 0));
    story.pass(3_600 * SECOND);
    assert_eq!((story.purges().len(), &story.record().phase), (0, &Phase::Rolling));
    assert!(
        story.state().contains("now the workload is scaled to zero; no old pod serves any more"),
        "{}",
        story.state()
    );
    assert_eq!(story.machine.next_deadline(), None);
    story.see(scaled("b", 4, 2, 0));
    assert_eq!(story.purges().len(), 0);
    story.see(complete("b", 4));
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn a_controller_that_lags_is_waited_for_two_minutes_and_it_is_told() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.see(Workload { observed_generation: 2, ..complete("b", 7) });
    story.pass(123 * SECOND - Duration::from_millis(1));
    let state = story.state();
    assert!(state.contains("has not acted on generation 7 yet, waited for 2m 3s at most"), "{state}");
    assert_eq!(story.purges().len(), 0);
    story.pass(Duration::from_millis(1));
    assert_eq!(story.purges().len(), 1, "the re-check goes by the same predicate");
    let [faulty] = story.messages(Kind::WorkloadFaulty)[..] else { panic!("it is told once") };
    assert!(faulty.starts_with("its controller has not acted on generation 7 yet, 2m 3s after all"), "{faulty}");
    let [completed] = story.messages(Kind::RolloutCompleted)[..] else { panic!("it is told once") };
    assert!(completed.contains("not waited for any longer than 2m 3s"), "{completed}");
}

#[test]
fn the_bound_takes_no_pods_that_are_not_available_and_no_older_spec() {
    let mut story = at_the_barrier();
    story.step(Event::OldPodsFound(OldPods::default()));
    story.see(Workload { observed_generation: 1, ..complete("b", 7) });
    story.pass(300 * SECOND);
    assert_eq!(story.purges().len(), 0, "its counts are of the version before");
    story.see(scaled("b", 7, 2, 1));
    assert_eq!(story.purges().len(), 0);
    // A restart of its pods by an owner who changes the template: those of the newest one are available.
    let replicas = Replicas { desired: 2, total: 3, updated: 1, ready: 3, available: 3 };
    story.see(Workload { replicas, ..complete("b", 8) });
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn what_breaks_after_it_was_complete_still_times_out() {
    let mut story = Story::under(Policy { rollout_timeout: 90 * SECOND, ..Policy::default() }, complete("a", 1));
    story.held.insert("find_old_pods");
    story.see(complete("b", 2));
    story.step(Event::OldPodsFound(serving("old-1")));
    story.see(scaled("b", 2, 2, 0));
    story.held.clear();
    story.pass(89 * SECOND);
    assert_eq!(story.record().phase, Phase::Rolling);
    story.pass(SECOND);
    assert!(matches!(story.record().phase, Phase::Failed(_)));
    assert_eq!(story.purges().len(), 0);
}

#[test]
fn a_life_that_did_not_see_it_stand_votes_in_spite_of_a_writer() {
    let mut story = at_the_barrier();
    story.held.extend(["recheck", "find_site"]);
    story.step(Event::OldPodsFound(serving("old-1")));
    story.pass(60 * SECOND);
    let record = story.record().clone();
    story.machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    story.held.clear();
    story.see(Workload { observed_generation: 2, ..complete("b", 9) });
    story.pass(100 * SECOND);
    assert_eq!(story.purges().len(), 0);
    // The re-check is made again and again, a minute apart at most, and from the bound on it takes what there is.
    story.see(Workload { observed_generation: 9, ..complete("b", 10) });
    story.pass(90 * SECOND);
    assert_eq!(story.purges().len(), 1);
}

#[test]
fn the_time_told_is_that_until_all_pods_were_available() {
    let mut story = Story::under(Policy::default(), complete("a", 1));
    story.held.insert("find_old_pods");
    story.see(half("b", 2));
    story.pass(4 * SECOND);
    story.see(complete("b", 2));
    for generation in 3..50 {
        story.step(Event::OldPodsFound(serving("old-1")));
        story.see(unobserved(complete("b", generation)));
        story.pass(SECOND / 2);
        story.see(complete("b", generation));
        story.pass(SECOND / 2);
    }
    story.pass(2 * SECOND);
    story.step(Event::OldPodsFound(OldPods::default()));
    story.pass(3 * SECOND);
    let [completed] = story.messages(Kind::RolloutCompleted)[..] else { panic!("it is told once") };
    assert_eq!(completed, "all 2 pods available after 4s");
}

#[test]
fn a_nudge_while_a_look_is_under_way_is_not_lost_and_slices_that_lag_are_looked_at_soon() {
    let mut story = at_the_barrier();
    let pods = |leaving_ready| Pods { updated: 2, ready: 2, leaving: 1, leaving_ready, ..Pods::default() };
    story.step(Event::PodsSeen(pods(1)));
    story.step(Event::PodsSeen(pods(0)));
    assert_eq!(story.looks(), 1);
    story.step(Event::OldPodsFound(serving("old-1")));
    assert_eq!(story.looks(), 2, "what was seen meanwhile");
    for (number, rest) in [10, 20, 40, 80, 160, 320, 640, 1_280, 2_000, 2_000].into_iter().enumerate() {
        story.step(Event::OldPodsFound(serving("old-1")));
        story.pass(Duration::from_millis(rest - 1));
        assert_eq!(story.looks(), 2 + number);
        story.pass(Duration::from_millis(1));
        assert_eq!(story.looks(), 3 + number, "{rest}");
    }
    let looks = story.looks();
    story.step(Event::OldPodsFound(serving("old-1")));
    story.step(Event::PodsSeen(Pods { ready: 1, ..pods(0) }));
    assert_eq!(story.looks(), looks, "nothing has changed about those that go");
}

#[test]
fn what_it_did_not_wait_for_stays_in_state_and_history_until_the_next_rollout() {
    let mut story = at_the_barrier();
    story.held.insert("purge");
    for _ in 0..30 {
        story.step(Event::OldPodsFound(serving("old-1")));
        story.pass(2 * SECOND);
    }
    let record = story.record().clone();
    story.machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    story.held.clear();
    story.see(complete("b", 2));
    let said =
        "b: purged (E1EXAMPLE by I1EXAMPLE); went on after 1m; its pods at that time: old pod old-1 still serves";
    let summary = story.machine.summary(story.now).unwrap();
    assert!(summary.past.history[0].ends_with(said), "{:?}", summary.past.history);
    assert!(summary.state.ends_with(said), "{}", summary.state);
    story.held.insert("find_old_pods");
    story.see(complete("c", 3));
    assert_eq!(story.record().remark, "");
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

/// Goal: a canary beside the stable pods holds up no purge, and nobody says that CloudFront has reported it completed: in the notices of its completion and of
/// the purge, in state and history, also of a later life. Method: the look that finds no old pod finds another workload's.
#[test]
fn another_version_beside_it_is_named_and_holds_up_nothing() {
    let mut story = at_the_barrier();
    let words = "another version serves beside it: pod stable-1 of stable (web: 1) behind Service web";
    story.step(Event::OldPodsFound(OldPods::default().with_beside(Some(words.to_owned()))));
    story.held.insert("purge");
    story.pass(3 * SECOND);
    let completed = story.messages(Kind::RolloutCompleted).join("");
    assert!(completed.ends_with(&format!("; {words}; {BESIDE_CURE}")), "{completed}");
    assert_eq!(story.record().remark, words);
    let record = story.record().clone();
    story.machine = Rollout::resume(identity(), Policy::default(), Seq(0), Some(record));
    story.held.clear();
    story.see(complete("b", 2));
    let purged = story.messages(Kind::PurgeCompleted).join("");
    assert_eq!(purged, format!("purged: E1EXAMPLE by invalidation I1EXAMPLE; {words}; {BESIDE_CURE}"));
    let summary = story.machine.summary(story.now).unwrap();
    let said = format!("b: purged (E1EXAMPLE by I1EXAMPLE); {words}");
    assert!(summary.state.ends_with(&said) && summary.past.history[0].ends_with(&said), "{summary:?}");
    story.see(complete("c", 3));
    assert!(!story.record().remark.contains(words));
}

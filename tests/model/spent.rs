//! A reference that CloudFront has answered before, under a number that a restored ledger gave out again; and one that only seems so.

use std::time::Duration;

use kernel::machine::{Machine, Timestamp};
use purge::purges::purge::{CdnErrorClass, Effect, Event, Found, Order, Pace, Progress, Purger};

use crate::purge::{order, wall_ms};

/// What is told of each purge, and whether the second is created by itself, when the first is answered so and would cover it.
fn told(answer: impl FnOnce(&mut Purger, Timestamp) -> Vec<Effect>) -> (Vec<(String, Progress)>, bool) {
    let voted = Timestamp::from_millis(3_600_000);
    let mut purger = Purger::new(Pace::default());
    let mut effects = purger.step(voted, Event::Ordered(order(0, voted)));
    // It waits for its distribution, and r0 contains it.
    effects.extend(purger.step(voted, Event::Ordered(Order { subject: order(1, voted).subject, ..order(2, voted) })));
    effects.extend(answer(&mut purger, voted.after(Duration::from_secs(2))));
    let report = |effect: &Effect| match effect {
        Effect::Report(_, reference, progress) => Some((reference.to_string(), progress.clone())),
        Effect::Create(_) | Effect::Poll(..) | Effect::Search(..) => None,
    };
    let alone = effects.iter().any(|effect| matches!(effect, Effect::Create(order) if order.reference == "r2".into()));
    (effects.iter().filter_map(report).collect(), alone)
}

const APART_MS: i64 = 15 * 60 * 1_000;

fn voted_ms() -> i64 {
    wall_ms(Timestamp::from_millis(3_600_000))
}

// Faults: A5
#[test]
fn an_invalidation_from_before_the_vote_is_no_purge_and_covers_none() {
    let created =
        |created_ms| told(|purger, now| purger.step(now, Event::Created("r0".into(), "I1".into(), Some(created_ms))));
    let (kept, _) = created(voted_ms() - APART_MS);
    assert_eq!(kept[0], ("r0".to_owned(), Progress::Created("I1".into())), "clocks may be that far apart");
    let (spent, alone) = created(voted_ms() - APART_MS - 1);
    assert_eq!(spent, [("r0".to_owned(), Progress::Spent("I1".into()))]);
    assert!(alone, "the one that it would have covered is created");
}

#[test]
fn one_that_is_found_among_the_recent_ones_is_held_to_the_same() {
    let found = |created_ms| {
        told(|purger, now| {
            let (sent, why) = (order(0, now).paths, "used with other paths".to_owned());
            let reused = Event::CreateFailed("r0".into(), CdnErrorClass::ReferenceReused, why);
            let mut effects = purger.step(now, reused);
            let found = Found { invalidation: "I1".into(), sent, created_ms: Some(created_ms) };
            effects.extend(purger.step(now, Event::Searched("r0".into(), Some(found))));
            effects
        })
    };
    let (spent, alone) = found(voted_ms() - APART_MS - 1);
    assert_eq!(spent, [("r0".to_owned(), Progress::Spent("I1".into()))]);
    assert!(alone, "and it covers none");
    let (kept, alone) = found(voted_ms());
    assert_eq!(kept[0], ("r0".to_owned(), Progress::Created("I1".into())));
    assert!(alone, "when another member sent it, nobody else's rollout need have been complete");
}

// The machine sleeps for eight hours between two attempts, and its monotonic clock with it.
// Faults: A5
#[test]
fn an_invalidation_of_the_attempt_before_is_adopted_however_long_the_machine_slept() {
    let (kept, _) = told(|purger, now| {
        let mut effects =
            purger.step(now, Event::CreateFailed("r0".into(), CdnErrorClass::Ambiguous, "no answer".to_owned()));
        let again = purger.next_deadline().unwrap().max(now);
        effects.extend(purger.tick(again));
        effects.extend(purger.step(again, Event::Created("r0".into(), "I1".into(), Some(voted_ms() + 2_000))));
        effects
    });
    assert_eq!(kept[0], ("r0".to_owned(), Progress::Created("I1".into())));
}

#[test]
fn where_no_time_is_known_what_cloudfront_answers_counts() {
    for (voted_ms, created_ms) in [(0, Some(1)), (voted_ms(), None)] {
        let now = Timestamp::from_millis(3_600_000);
        let mut purger = Purger::new(Pace::default());
        drop(purger.step(now, Event::Ordered(Order { voted_ms, ..order(0, now) })));
        let effects = purger.step(now, Event::Created("r0".into(), "I1".into(), created_ms));
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Report(_, _, Progress::Created(_)))));
    }
}

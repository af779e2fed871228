//! A reference that CloudFront has answered before, under a number that a restored ledger gave out again.

use std::time::Duration;

use domain::machine::{Machine, Timestamp};
use domain::purge::{Effect, Event, Order, Pace, Progress, Purger};

use crate::purge::order;

#[test]
fn an_invalidation_from_before_the_vote_is_no_purge_and_covers_none() {
    let voted = Timestamp::from_millis(3_600_000);
    let answered = voted.after(Duration::from_secs(2));
    let apart = Duration::from_secs(15 * 60 + 2);
    let created = |age| {
        let mut purger = Purger::new(Pace::default());
        let mut effects = purger.step(voted, Event::Ordered(order(0, voted)));
        // It waits for its distribution, and r0 contains it.
        effects
            .extend(purger.step(voted, Event::Ordered(Order { subject: order(1, voted).subject, ..order(2, voted) })));
        effects.extend(purger.step(answered, Event::Created("r0".into(), "I1".into(), Some(age))));
        let told = |effect: &Effect| match effect {
            Effect::Report(_, reference, progress) => Some((reference.to_string(), progress.clone())),
            Effect::Create(_) | Effect::Poll(..) | Effect::Search(..) => None,
        };
        let alone =
            effects.iter().any(|effect| matches!(effect, Effect::Create(order) if order.reference == "r2".into()));
        (effects.iter().filter_map(told).collect::<Vec<_>>(), alone)
    };
    let (told, _) = created(apart);
    assert_eq!(told[0], ("r0".to_owned(), Progress::Created("I1".into())), "clocks may be that far apart");
    let (told, alone) = created(apart + Duration::from_millis(1));
    assert_eq!(told, [("r0".to_owned(), Progress::Spent("I1".into()))]);
    assert!(alone, "the one that it would have covered is created");
}

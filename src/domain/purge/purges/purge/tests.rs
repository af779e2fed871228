//! The machine of purges, rule by rule. What it may never do in any order of events is in the models.

mod cloudfront;
mod quotas;

use std::collections::BTreeMap;

use super::*;
use kernel::id::WorkloadId;
use kernel::machine::Machine;

/// What CloudFront is asked for `reference`, of everything unless a test says otherwise.
fn order(reference: &str, distribution: &str, paths: &[&str], now: Timestamp) -> Order {
    let paths: Vec<_> = paths.iter().map(|path| path.parse().unwrap()).collect();
    Order {
        reference: reference.into(),
        distribution: distribution.parse().unwrap(),
        paths: PathSet::of(paths).unwrap_or_default(),
        subject: WorkloadId::deployment("shop", format!("web-{reference}")).into(),
        invalidation: None,
        paths_per_hour: 1_000,
        purges_per_hour: u32::MAX,
        voted_at: Some(now),
        voted_ms: 0,
        ordered_ms: 0,
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn created(effects: &[Effect]) -> Vec<(String, PathSet)> {
    let created = effects.iter().filter_map(|effect| match effect {
        Effect::Create(order) => Some((order.reference.to_string(), order.paths.clone())),
        Effect::Poll(..) | Effect::Search(..) | Effect::Report(..) => None,
    });
    created.collect()
}

fn told(effects: &[Effect]) -> Vec<(String, Progress)> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Report(_, reference, progress) => Some((reference.to_string(), progress.clone())),
        Effect::Create(_) | Effect::Poll(..) | Effect::Search(..) => None,
    });
    told.collect()
}

fn paths(paths: &[&str]) -> PathSet {
    paths.iter().map(|path| path.parse().unwrap()).collect()
}

/// A machine whose distribution E1 has just had a creation, so that what is ordered now waits.
fn busy() -> Purger {
    let mut purger = Purger::new(Pace::default());
    assert_eq!(created(&purger.step(at(0), Event::Ordered(order("first", "E1", &["/*"], at(0))))).len(), 1);
    drop(purger.step(at(10), Event::Created("first".into(), "I0".into(), None)));
    purger
}

#[test]
fn paths_that_grew_by_what_an_older_purge_owes_are_sent_while_it_waits() {
    let mut purger = busy();
    assert_eq!(created(&purger.step(at(20), Event::Ordered(order("r1", "E1", &["/a"], at(20))))), []);
    let grown = order("r1", "E1", &["/a", "/owed/*"], at(20));
    assert_eq!(told(&purger.step(at(30), Event::Ordered(grown))), []);
    let sent = created(&purger.tick(at(2_000)));
    assert_eq!(sent, [("r1".to_owned(), paths(&["/a", "/owed/*"]))]);
    // Once it is sent it does not change, and a larger order gets that answer.
    let more = order("r1", "E1", &["/a", "/b", "/owed/*"], at(20));
    let told = told(&purger.step(at(2_001), Event::Ordered(more)));
    assert_eq!(told, [("r1".to_owned(), Progress::SentBefore(paths(&["/a", "/owed/*"])))]);
}

#[test]
fn an_old_invalidation_that_was_found_covers_no_newer_purge() {
    let mut purger = Purger::new(Pace::default());
    drop(purger.step(at(0), Event::Ordered(order("r1", "E1", &["/*"], at(0)))));
    // Complete before the vote for r1 of this life, so that r1, if it were new, would contain it.
    drop(purger.step(at(5), Event::Ordered(order("r2", "E1", &["/b"], at(0)))));
    let reused = Event::CreateFailed("r1".into(), CdnErrorClass::ReferenceReused, "used before".into());
    let looked = purger.step(at(10), reused);
    assert!(looked.iter().any(|effect| matches!(effect, Effect::Search(reference, _) if *reference == "r1".into())));
    let found = Found { invalidation: "IOLD".into(), sent: paths(&["/*"]), created_ms: None };
    let effects = purger.step(at(20), Event::Searched("r1".into(), Some(found)));
    let about_r2: Vec<_> = told(&effects).into_iter().filter(|(of, _)| of == "r2").collect();
    assert_eq!(about_r2, [], "it was created before r2 was complete");
    assert_eq!(created(&purger.tick(at(2_000))), [("r2".to_owned(), paths(&["/b"]))]);
}

/// How long a distribution is left alone after `refusals`, each of a creation that was sent then and refused then.
fn left_alone(refusals: &[(u64, u64)]) -> Duration {
    let mut lane = lane::Lane::default();
    let id: DistributionId = "E1".parse().unwrap();
    for (sent, refused) in refusals {
        lane.refused(at(*refused), at(*sent), &id, "denied".to_owned(), true);
    }
    let last = refusals.last().map(|(_, refused)| at(*refused)).unwrap();
    lane.refusal.unwrap().until.since(last)
}

#[test]
fn creations_that_were_under_way_when_one_was_refused_are_no_new_refusals() {
    let one = left_alone(&[(0, 100)]);
    assert_eq!(left_alone(&[(0, 100), (50, 100), (90, 100)]), one, "sent before the first was refused");
    let until = |refusals| at(100).after(left_alone(refusals)).since(at(100));
    assert!(until(&[(0, 100), (99_000, 99_100)]) > one / 2, "a try that was refused counts");
    let mut lane = lane::Lane::default();
    let id: DistributionId = "E1".parse().unwrap();
    lane.refused(at(100), at(0), &id, "denied".to_owned(), true);
    let first = lane.clone();
    lane.refused(at(9_000), at(50), &id, "denied, again".to_owned(), true);
    assert_eq!(lane, first, "it was sent before the refusal, so it says nothing new");
    lane.refused(at(9_100), at(8_000), &id, "denied, again".to_owned(), true);
    assert_ne!(lane, first);
}

#[test]
fn ten_thousand_orders_are_carried_out_and_none_is_forgotten() {
    let mut purger = Purger::new(Pace::default());
    let (mut now, mut effects, mut ended) = (at(0), Vec::new(), 0);
    for number in 0..10_000 {
        let order = order(&format!("r{number}"), &format!("E{}", number % 2_000), &["/*"], now);
        effects.extend(purger.step_and_catch_up(now, Event::Ordered(order)));
    }
    loop {
        for effect in std::mem::take(&mut effects) {
            let event = match effect {
                Effect::Create(order) => Event::Created(order.reference, "I1".into(), None),
                Effect::Poll(reference, ..) => Event::Completed(reference),
                Effect::Report(_, _, progress) => {
                    ended += usize::from(progress == Progress::Completed(None));
                    continue;
                }
                Effect::Search(..) => unreachable!("no reference is used twice"),
            };
            effects.extend(purger.step_and_catch_up(now, event));
        }
        if effects.is_empty() {
            let Some(next) = purger.next_deadline() else { break };
            now = now.max(next);
            effects = purger.tick(now);
        }
    }
    assert_eq!(ended, 10_000);
}

/// A CloudFront that performs each call at once, and rollouts that record the purger's answers and order accordingly.
struct World {
    purger: Purger,
    now: Timestamp,
    /// When each was created, for which distribution, and what.
    created: Vec<(Timestamp, DistributionId, PathSet)>,
    /// What is wanted, and since when.
    open: BTreeMap<Reference, (Order, Timestamp)>,
    longest: Duration,
    /// The counts of used-up purges that were reported.
    spaced: Vec<u32>,
    widened: usize,
    refusal: Option<CdnErrorClass>,
}

impl World {
    fn new() -> Self {
        let (purger, now) = (Purger::new(Pace::default()), at(0));
        let (created, open) = (Vec::new(), BTreeMap::new());
        Self { purger, now, created, open, longest: Duration::ZERO, spaced: Vec::new(), widened: 0, refusal: None }
    }

    fn place(&mut self, order: Order) {
        self.open.insert(order.reference.clone(), (order.clone(), self.now));
        self.feed(Event::Ordered(order));
    }

    fn feed(&mut self, event: Event) {
        let effects = self.purger.step_and_catch_up(self.now, event);
        self.take(effects);
        assert!(!self.purger.is_due(self.now), "a deadline stays in the past");
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Create(order) => match self.refusal {
                    Some(class) => self.feed(Event::CreateFailed(order.reference, class, "denied".to_owned())),
                    None => {
                        self.created.push((self.now, order.distribution, order.paths));
                        self.feed(Event::Created(order.reference, "I1".into(), None));
                    }
                },
                Effect::Poll(reference, ..) => self.feed(Event::Completed(reference)),
                Effect::Report(_, reference, Progress::OverBudget) => {
                    self.widened += 1;
                    let (order, _) = self.open[&reference].clone();
                    self.feed(Event::Ordered(Order { paths: PathSet::default(), ..order }));
                }
                Effect::Report(_, reference, Progress::Created(_) | Progress::Covered { .. }) => {
                    let waited = self.open.remove(&reference).map(|(_, since)| self.now.since(since));
                    self.longest = self.longest.max(waited.unwrap_or_default());
                }
                Effect::Report(_, _, Progress::Spaced(purges)) => self.spaced.push(purges),
                Effect::Report(..) => {}
                Effect::Search(..) => unreachable!("no reference is used twice"),
            }
        }
    }

    fn run(&mut self, until: Timestamp) {
        while let Some(next) = self.purger.next_deadline().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            let effects = self.purger.tick(self.now);
            self.take(effects);
        }
        self.now = self.now.max(until);
    }

    /// One namespace orders this each second for so many seconds.
    fn insist(&mut self, seconds: u64, paths: impl Fn(u64) -> PathSet) {
        for second in 0..seconds {
            self.run(at(second * 1_000));
            let order = order(&format!("r{second:05}"), "E1", &[], self.now);
            self.place(Order { paths: paths(second), purges_per_hour: 60, ..order });
        }
    }

    fn created_since(&self, since: Timestamp) -> usize {
        self.created.iter().filter(|(at, ..)| *at >= since).count()
    }
}

#[test]
fn a_purge_ordered_each_second_is_made_sixty_times_and_then_once_a_minute_and_told_once() {
    let mut world = World::new();
    world.insist(2 * 3_600, |_| PathSet::default());
    world.run(at(3 * 3_600_000));
    let count = world.created.len();
    assert!((170..=181).contains(&count), "sixty, and one each minute: {count}");
    let second_hour = world.created_since(at(3_600_000));
    assert!((59..=61).contains(&second_hour), "{second_hour} in the second hour");
    assert!(world.open.is_empty() && world.longest <= Duration::from_secs(61), "{:?}", world.longest);
    assert_eq!((&world.spaced[..], world.widened), (&[60][..], 0));
}

#[test]
fn paths_that_do_not_cover_each_other_share_one_purge_of_everything_each_minute() {
    let mut world = World::new();
    world.insist(3_600, |second| paths(&[&format!("/{second}")]));
    world.run(at(2 * 3_600_000));
    let count = world.created.len();
    assert!((110..=121).contains(&count), "sixty, and one each minute: {count}");
    assert!(world.widened > 0 && world.widened <= 62, "{}", world.widened);
    assert!(world.open.is_empty() && world.longest <= Duration::from_secs(125), "{:?}", world.longest);
    assert_eq!(world.spaced, [60]);
}

#[test]
fn a_namespace_that_has_used_up_its_purges_holds_up_no_other_one_and_no_other_distribution() {
    let mut world = World::new();
    world.insist(1_800, |_| PathSet::default());
    for (namespace, distribution) in [("victim", "E1"), ("shop", "E2")] {
        let mine = order(&format!("{namespace}-{distribution}"), distribution, &["/a"], world.now);
        let subject = WorkloadId::deployment(namespace, "web").into();
        let since = world.now;
        world.place(Order { subject, purges_per_hour: 60, ..mine });
        world.run(since.after(Duration::from_secs(5)));
        let made = world.created.iter().any(|(at, of, _)| *at >= since && of.as_str() == distribution);
        assert!(made, "{namespace} waits for {distribution}");
    }
}

#[test]
fn a_repetition_is_no_other_purge() {
    let mut world = World::new();
    world.refusal = Some(CdnErrorClass::Denied);
    let one = order("r1", "E1", &["/*"], world.now);
    world.place(Order { purges_per_hour: 1, ..one });
    world.run(at(3_600_000));
    world.refusal = None;
    world.run(at(3_600_000 + 30_000));
    assert_eq!(world.created.len(), 1, "tried a hundred times, made once, and not held up");
    // The one that was made counts.
    let two = order("r2", "E1", &["/*"], world.now);
    world.place(Order { purges_per_hour: 1, ..two });
    world.run(world.now.after(Duration::from_secs(60)));
    assert_eq!(world.created.len(), 1);
}

#[test]
fn a_right_that_comes_back_is_noticed_within_half_a_minute_by_all_distributions() {
    for denied in [1_u64, 7, 90, 600, 3_000] {
        let mut world = World::new();
        world.refusal = Some(CdnErrorClass::Denied);
        for number in 0..5 {
            let one = order(&format!("r{number}"), &format!("E{number}"), &["/*"], world.now);
            world.place(one);
            world.run(world.now.after(Duration::from_millis(300)));
        }
        world.run(at(denied * 1_000));
        world.refusal = None;
        let back = world.now;
        world.run(back.after(Duration::from_secs(40)));
        let noticed = world.created.first().map(|(at, ..)| at.since(back)).expect("noticed");
        assert!(noticed <= Duration::from_secs(30), "{denied} s: {noticed:?}");
        let last = world.created.last().map(|(at, ..)| at.since(back)).unwrap();
        assert!(world.open.is_empty() && last <= Duration::from_secs(35), "{denied} s: {last:?}");
    }
}

#[test]
fn an_owner_who_has_mended_the_cause_has_it_tried_now() {
    let mut world = World::new();
    world.refusal = Some(CdnErrorClass::Denied);
    let mine = order("r1", "E1", &["/*"], world.now);
    let subject = mine.subject.clone();
    world.place(mine);
    world.run(at(600_000));
    let waits = world.purger.describe(world.now);
    assert!(waits[0].2.starts_with("is refused; tried again in ") && waits[0].2.ends_with(" s: denied"), "{waits:?}");
    world.refusal = None;
    world.feed(Event::Retried(WorkloadId::deployment("other", "web").into()));
    assert_eq!(world.created.len(), 0, "it is not about that one");
    world.feed(Event::Retried(subject));
    assert_eq!(world.created.len(), 1);
}

#[test]
fn of_three_hundred_orders_on_five_distributions_each_is_purged_a_few_times() {
    let mut world = World::new();
    for number in 0..300_u64 {
        world.run(at(number * 30));
        let one = order(&format!("r{number:03}"), &format!("E{}", number % 5), &["/*"], world.now);
        world.place(one);
    }
    world.run(at(120_000));
    let last = world.created.last().unwrap().0;
    assert!(world.created.len() <= 20 && world.open.is_empty(), "{} creations", world.created.len());
    assert!(last <= at(9_000 + 12_000), "the last at {last:?}");
    for of in 0..5 {
        let id: DistributionId = format!("E{of}").parse().unwrap();
        let times: Vec<Timestamp> =
            world.created.iter().filter(|(_, other, _)| *other == id).map(|(at, ..)| *at).collect();
        let gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        assert!(gaps.iter().all(|gap| *gap >= Duration::from_secs(2)), "E{of}: {gaps:?}");
        let longest = gaps.iter().max().copied().unwrap_or_default();
        assert!(longest >= Duration::from_secs(6), "E{of}: several are waited for: {gaps:?}");
    }
    // A distribution alone is as quick as ever.
    let begun = world.now;
    for number in 0..2_u64 {
        let one = order(&format!("alone{number}"), "E9", &["/*"], world.now);
        world.place(one);
        world.run(world.now.after(Duration::from_secs(1)));
    }
    world.run(begun.after(Duration::from_secs(10)));
    assert_eq!(world.created_since(begun), 2);
    assert_eq!(world.created.last().unwrap().0.since(begun), Duration::from_secs(2));
}

#[test]
fn an_order_that_another_member_has_carried_out_is_followed_wherever_it_waits() {
    let mut purger = busy();
    drop(purger.step(at(20), Event::Ordered(order("r1", "E1", &["/a"], at(20)))));
    let made = Order { invalidation: Some("I9".into()), ..order("r1", "E1", &["/a"], at(20)) };
    assert_eq!(created(&purger.step(at(30), Event::Ordered(made))), []);
    assert_eq!(created(&purger.tick(at(10_000))), [], "it exists");
    assert_eq!(
        told(&purger.step(at(10_001), Event::Completed("r1".into()))),
        [("r1".to_owned(), Progress::Completed(None))]
    );
}

#[test]
fn when_it_was_ordered_is_only_said_where_cloudfront_made_it_by_the_one_call() {
    let wall_ms = 1_700_000_000_000;
    // Ordered at 5 s, sent at 5 s, answered at 7 s: when CloudFront says that it was made, in seconds after the order; and whether an
    // answer was lost before.
    let called = |made_s: Option<i64>, lost: bool| {
        let mut purger = Purger::new(Pace::default());
        let mut placed = order("r1", "E1", &["/*"], at(5_000));
        placed.ordered_ms = wall_ms;
        assert_eq!(created(&purger.step(at(5_000), Event::Ordered(placed))).len(), 1);
        if lost {
            drop(purger.step(at(6_000), Event::CreateFailed("r1".into(), CdnErrorClass::Ambiguous, "lost".to_owned())));
            assert_eq!(created(&purger.tick(at(60_000))).len(), 1);
        }
        let now = if lost { at(62_000) } else { at(7_000) };
        drop(purger.step(now, Event::Created("r1".into(), "I1".into(), made_s.map(|made_s| wall_ms + made_s * 1_000))));
        told(&purger.step(at(90_000), Event::Completed("r1".into())))
    };
    let is = |called: Option<Timestamp>| [("r1".to_owned(), Progress::Completed(called))];
    assert_eq!(called(Some(1), false), is(Some(at(5_000))));
    assert_eq!(called(Some(-1), false), is(Some(at(5_000))), "clocks are a little apart");
    assert_eq!(called(Some(-5), false), is(None), "another member has made it before");
    assert_eq!(called(Some(9), false), is(None), "no clock is so far off");
    assert_eq!(called(None, false), is(None), "CloudFront does not say when");
    assert_eq!(called(Some(56), true), is(None), "the call whose answer was lost may have made it");
}

#[test]
fn a_covered_order_that_is_placed_again_hears_of_what_covers_it() {
    let mut purger = busy();
    drop(purger.step(at(20), Event::Ordered(order("older", "E1", &["/a"], at(20)))));
    drop(purger.step(at(30), Event::Ordered(order("newer", "E1", &["/*"], at(30)))));
    assert_eq!(created(&purger.tick(at(2_000))).len(), 1);
    drop(purger.step(at(2_010), Event::Created("newer".into(), "I1".into(), None)));
    let again = told(&purger.step(at(2_020), Event::Ordered(order("older", "E1", &["/a"], at(20)))));
    let covered = Progress::Covered { by: "newer".into(), invalidation: "I1".into() };
    assert_eq!(again, [("older".to_owned(), covered)]);
    let ends = told(&purger.step(at(2_030), Event::Completed("newer".into())));
    assert_eq!(ends.len(), 2, "{ends:?}");
    // Both are forgotten, so this is another one.
    assert_eq!(told(&purger.step(at(2_040), Event::Ordered(order("older", "E1", &["/a"], at(20))))), []);
}

#[test]
fn cloudfront_refuses_the_caller_or_the_call() {
    let right = Cause::CreateInvalidation;
    let denied = |message: &str| CdnErrorClass::Denied.cause(right, message);
    let failed = |cause: &str| format!("failed to create an invalidation on EWEB: {cause}");
    assert_eq!(denied(&failed("AccessDenied (HTTP 403): User is not authorized")), Some(right));
    for cause in [
        "ExpiredToken (HTTP 403)",
        "InvalidClientTokenId (HTTP 403)",
        "SignatureDoesNotMatch (HTTP 403)",
        "an error occurred while loading credentials: AccessDenied: not authorized to perform: sts:AssumeRole",
        "the credential provider was not enabled: no providers in chain provided credentials",
    ] {
        assert_eq!(denied(&failed(cause)), Some(Cause::Credentials), "{cause}");
    }
    assert_eq!(CdnErrorClass::Throttled.cause(right, "AccessDenied"), None);
    assert_eq!(CdnErrorClass::Ambiguous.cause(right, &failed("no answer")), None);
}

//! The production `Purger` under random orders, answers, lost answers and time: what it may never do, and that it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::id::{InvalidationId, Reference, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;
use proptest::prelude::*;
use purge::purges::purge::{CREATIONS_BURST, CdnErrorClass, Effect, Event, Order, Pace, Progress, Purger};

mod denied;

/// CloudFront and the rollouts, as far as a purge meets them.
struct World {
    purger: Purger,
    now: Timestamp,
    calls: Vec<Effect>,
    /// Whoever orders again after a crash says that it has voted just now.
    forgets: bool,
    /// What exists: the paths of each reference, and when it was created.
    cdn: BTreeMap<Reference, (PathSet, Timestamp)>,
    orders: BTreeMap<Reference, (Order, Timestamp)>,
    ended: BTreeSet<Reference>,
    stalled: BTreeSet<Reference>,
    creations: Vec<Timestamp>,
    /// Until then, no report finds room.
    deaf_until: Timestamp,
}

#[derive(Clone, Debug)]
enum Step {
    Order(u8),
    Answer(u8, Reply),
    Tick,
    /// The mailboxes of the rollouts are full for so many seconds.
    Deafen(u8),
    /// The process starts again, and every order that has not ended is placed once more, oldest last.
    Crash,
}

#[derive(Clone, Copy, Debug)]
enum Reply {
    Works,
    Fails(CdnErrorClass),
    /// It was done, and the answer says that this is not known.
    Lost,
}

/// The wall clock of these worlds, an hour after its epoch at first.
pub fn wall_ms(now: Timestamp) -> i64 {
    3_600_000 + i64::try_from(now.as_millis()).unwrap()
}

pub fn order(n: u8, now: Timestamp) -> Order {
    let distribution: DistributionId = ["E1EXAMPLE", "E2EXAMPLE"][usize::from(n % 2)].parse().unwrap();
    let paths = if n.is_multiple_of(3) {
        PathSet::default()
    } else {
        [format!("/{}/*", n % 3).parse().unwrap()].into_iter().collect()
    };
    let workload = WorkloadId::deployment("shop", format!("web-{n}"));
    Order {
        reference: Reference(format!("r{n}")),
        distribution,
        paths,
        subject: workload.into(),
        invalidation: None,
        paths_per_hour: 1_000,
        purges_per_hour: u32::MAX,
        voted_at: Some(now),
        voted_ms: wall_ms(now),
        ordered_ms: wall_ms(now),
    }
}

impl World {
    fn new() -> Self {
        let now = Timestamp::from_millis(0);
        Self {
            purger: Purger::new(Pace::default()),
            now,
            calls: Vec::new(),
            forgets: false,
            cdn: BTreeMap::new(),
            orders: BTreeMap::new(),
            ended: BTreeSet::new(),
            stalled: BTreeSet::new(),
            creations: Vec::new(),
            deaf_until: now,
        }
    }

    fn step(&mut self, event: Event) {
        let effects = self.purger.step_and_catch_up(self.now, event);
        self.take(effects);
        assert!(!self.purger.is_due(self.now), "a deadline stays in the past");
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Report(subject, reference, progress) if self.now < self.deaf_until => {
                    let effects = self.purger.step_and_catch_up(self.now, Event::Unheard(subject, reference, progress));
                    self.take(effects);
                }
                Effect::Report(_, reference, progress) => self.told(&reference, &progress),
                Effect::Create(ref order) => {
                    let under_way = |call: &Effect| matches!(call, Effect::Create(o) if o.reference == order.reference);
                    assert!(!self.calls.iter().any(under_way), "two creations of {} at once", order.reference);
                    assert_eq!(order.paths, self.orders[&order.reference].0.paths, "changed paths");
                    self.creations.push(self.now);
                    self.calls.push(effect);
                }
                Effect::Poll(..) | Effect::Search(..) => self.calls.push(effect),
            }
        }
        let fastest = Pace::default().creations_per_second_max.thousandths() / 1_000;
        let most = usize::try_from(CREATIONS_BURST + fastest).unwrap();
        let recent = self.creations.iter().filter(|at| self.now.since(**at) < Duration::from_secs(1)).count();
        assert!(recent <= most, "{recent} creations within a second");
    }

    fn told(&mut self, reference: &Reference, progress: &Progress) {
        assert!(!self.ended.contains(reference), "{reference} was told of after its end: {progress:?}");
        match progress {
            Progress::Covered { by, .. } => {
                let (covered, _) = &self.orders[reference];
                let (paths, created) = &self.cdn[by];
                assert!(paths.covers(&covered.paths), "{by} does not contain {reference}");
                assert!(Some(*created) >= covered.voted_at, "{by} is older than {reference}, which it covers");
            }
            Progress::Stalled(_) => assert!(self.stalled.insert(reference.clone()), "{reference} stalled twice"),
            Progress::Completed(_) | Progress::DoneByOther | Progress::Impossible(_) => {
                self.ended.insert(reference.clone());
            }
            Progress::Created(_) | Progress::Failing(_) | Progress::Overdue(_) | Progress::SentBefore(_) => {}
            Progress::Spent(id) => unreachable!("{id} was created after the vote for {reference}"),
            Progress::OverBudget => unreachable!("all orders together are a few hundred paths"),
            Progress::Spaced(_) => unreachable!("they may have any number of purges"),
        }
    }

    fn answer(&mut self, which: usize, reply: Reply) {
        if self.calls.is_empty() {
            return;
        }
        let call = self.calls.remove(which % self.calls.len());
        let why = "no".to_owned();
        match (call, reply) {
            (Effect::Create(order), Reply::Works) => {
                self.create(&order);
                let id = InvalidationId(format!("I-{}", order.reference));
                let created_ms = wall_ms(self.cdn[&order.reference].1);
                self.step(Event::Created(order.reference.clone(), id, Some(created_ms)));
            }
            (Effect::Create(order), Reply::Lost) => {
                self.create(&order);
                self.step(Event::CreateFailed(order.reference, CdnErrorClass::Ambiguous, why));
            }
            (Effect::Create(order), Reply::Fails(class)) => self.step(Event::CreateFailed(order.reference, class, why)),
            (Effect::Poll(reference, ..), Reply::Works) => self.step(Event::Completed(reference)),
            (Effect::Poll(reference, ..), Reply::Lost) => self.step(Event::StillInProgress(reference)),
            (Effect::Poll(reference, ..), Reply::Fails(class)) => self.step(Event::PollFailed(reference, class, why)),
            (Effect::Search(reference, _), Reply::Fails(_)) => self.step(Event::SearchFailed(reference, why)),
            (Effect::Search(reference, _), Reply::Works | Reply::Lost) => self.step(Event::Searched(reference, None)),
            (Effect::Report(..), _) => {}
        }
    }

    fn create(&mut self, order: &Order) {
        self.cdn.entry(order.reference.clone()).or_insert((order.paths.clone(), self.now));
    }

    fn tick(&mut self) {
        let Some(deadline) = self.purger.next_deadline() else { return };
        self.now = self.now.max(deadline);
        let effects = self.purger.tick(self.now);
        self.take(effects);
        assert!(self.purger.next_deadline().is_none_or(|next| next > self.now), "a deadline stays in the past");
    }

    fn crash(&mut self) {
        self.purger = Purger::new(Pace::default());
        self.calls.clear();
        self.creations.clear();
        self.stalled.clear();
        self.now = self.now.after(Duration::from_secs(1));
        let open: Vec<Order> =
            self.orders.values().filter(|(o, _)| !self.ended.contains(&o.reference)).map(|(o, _)| o.clone()).collect();
        for mut order in open.into_iter().rev() {
            // Nothing is known of the earlier life's votes but that they are there.
            order.voted_at = self.forgets.then_some(self.now);
            self.step(Event::Ordered(order));
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Order(n) => {
                let order = order(*n, self.now);
                if !self.orders.contains_key(&order.reference) {
                    self.orders.insert(order.reference.clone(), (order.clone(), self.now));
                    self.step(Event::Ordered(order));
                }
            }
            Step::Answer(which, reply) => self.answer(usize::from(*which), *reply),
            Step::Tick => self.tick(),
            Step::Deafen(seconds) => self.deaf_until = self.now.after(Duration::from_secs((*seconds).into())),
            Step::Crash => self.crash(),
        }
    }

    /// Without faults, everything ends.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            match (self.calls.is_empty(), self.purger.next_deadline()) {
                (false, _) => self.answer(0, Reply::Works),
                (true, Some(_)) => self.tick(),
                (true, None) => break,
            }
        }
        let open: Vec<&Reference> = self.orders.keys().filter(|reference| !self.ended.contains(*reference)).collect();
        assert!(open.is_empty(), "never end: {open:?}");
    }
}

fn step() -> impl Strategy<Value = Step> {
    use CdnErrorClass::*;
    let class = prop::sample::select(vec![
        Throttled,
        TooManyInProgress,
        Ambiguous,
        Denied,
        Gone,
        NoSuchInvalidation,
        ReferenceReused,
        Refused,
        Unexpected,
    ]);
    let reply = prop_oneof![3 => Just(Reply::Works), 1 => Just(Reply::Lost), 3 => class.prop_map(Reply::Fails)];
    prop_oneof![
        4 => (0..6_u8).prop_map(Step::Order),
        8 => (any::<u8>(), reply).prop_map(|(which, reply)| Step::Answer(which, reply)),
        6 => Just(Step::Tick),
        2 => (1..4_u8).prop_map(Step::Deafen),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    // Faults: F7
    #[test]
    fn every_order_ends_and_nothing_is_done_twice(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.apply(step));
        world.settle();
    }
}

/// Places `n` orders of everything for one distribution within the debounce window.
fn release(world: &mut World, n: u8) {
    for i in 0..n {
        world.now = world.now.after(Duration::from_millis(50));
        let order = Order { reference: Reference(format!("r{i}")), ..order(0, world.now) };
        world.orders.insert(order.reference.clone(), (order.clone(), world.now));
        world.step(Event::Ordered(order));
    }
}

#[test]
fn twenty_orders_of_one_release_cost_two_creations() {
    let mut world = World::new();
    release(&mut world, 20);
    world.settle();
    assert_eq!(world.cdn.len(), 2);
}

#[test]
fn an_order_of_an_earlier_life_covers_nothing_newer_than_itself() {
    let mut world = World::new();
    let place = |world: &mut World, name: &str, voted_at| {
        let order = Order { reference: name.into(), voted_at, ..order(0, world.now) };
        world.orders.insert(order.reference.clone(), (order.clone(), world.now));
        world.step(Event::Ordered(order));
    };
    // Created before the crash, and its answer lost: CloudFront will return that invalidation.
    place(&mut world, "earlier", None);
    world.cdn.insert("earlier".into(), (PathSet::default(), world.now));
    world.purger = Purger::new(Pace::default());
    world.calls.clear();
    world.now = world.now.after(Duration::from_secs(60));
    let (now, later) = (Some(world.now), Some(world.now.after(Duration::from_millis(1))));
    place(&mut world, "opens the window", now);
    place(&mut world, "newer", later);
    place(&mut world, "earlier", None);
    world.settle();
    assert!(world.cdn.contains_key(&Reference::from("newer")), "it was created by itself");
}

#[test]
fn a_report_that_found_no_room_is_repeated_and_none_overtakes_it() {
    let mut purger = Purger::new(Pace::default());
    let now = Timestamp::from_millis(0);
    let told = |effects: Vec<Effect>| {
        let progress = effects.into_iter().filter_map(|effect| match effect {
            Effect::Report(_, _, progress) => Some(progress),
            Effect::Create(_) | Effect::Poll(..) | Effect::Search(..) => None,
        });
        progress.collect::<Vec<_>>()
    };
    drop(purger.step(now, Event::Ordered(order(0, now))));
    let created = Progress::Created("I1".into());
    assert_eq!(told(purger.step(now, Event::Created("r0".into(), "I1".into(), None))), vec![created.clone()]);
    let unheard = Event::Unheard(order(0, now).subject, "r0".into(), created.clone());
    assert_eq!(told(purger.step(now, unheard)), []);
    assert_eq!(told(purger.step(now, Event::Completed("r0".into()))), [], "it would come before its creation");
    let again = purger.next_deadline().unwrap();
    assert_eq!(again, Timestamp::from_millis(1_000));
    assert_eq!(told(purger.tick(again)), [created, Progress::Completed(None)]);
    assert_eq!(purger.next_deadline(), None);
}

#[test]
fn a_denied_creation_is_told_once_even_after_other_failures() {
    let mut purger = Purger::new(Pace::default());
    let now = Timestamp::from_millis(0);
    drop(purger.step(now, Event::Ordered(order(0, now))));
    let failed = |class| Event::CreateFailed("r0".into(), class, "denied".into());
    assert_eq!(purger.step(now, failed(CdnErrorClass::Ambiguous)), vec![]);
    let mut told = 0;
    for _ in 0..3 {
        let now = purger.next_deadline().expect("a retry");
        drop(purger.tick(now));
        told += purger.step(now, failed(CdnErrorClass::Denied)).len();
    }
    assert_eq!(told, 1);
}

/// A mutant: what an earlier life may have sent counts as never sent, so that a repetition covers what completed after it.
#[test]
fn a_repetition_that_covers_a_later_completion_is_caught() {
    let caught = |forgets| {
        std::panic::catch_unwind(|| {
            let mut world = World { forgets, ..World::new() };
            let place = |world: &mut World, name: &str| {
                let order = Order { reference: name.into(), ..order(0, world.now) };
                world.orders.insert(order.reference.clone(), (order.clone(), world.now));
                world.step(Event::Ordered(order));
            };
            place(&mut world, "sent earlier");
            world.answer(0, Reply::Lost);
            world.now = world.now.after(Duration::from_secs(60));
            place(&mut world, "complete later");
            // Ordered again in the other order of their names: what was sent earlier goes first.
            world.crash();
            world.settle();
        })
        .is_err()
    };
    assert_eq!((caught(false), caught(true)), (false, true));
}

#[test]
fn a_purge_is_told_to_be_late_once_when_it_is_not_made_in_time() {
    let mut purger = Purger::new(Pace::default());
    drop(purger.step(Timestamp::from_millis(0), Event::Ordered(order(0, Timestamp::from_millis(0)))));
    let mut told = Vec::new();
    let mut now = Timestamp::from_millis(0);
    while now < Timestamp::from_millis(3_600_000) {
        let failed = Event::CreateFailed("r0".into(), CdnErrorClass::Throttled, "Throttling".into());
        let effects = [purger.step(now, failed), purger.tick(now)].concat();
        let overdue = |effect: &Effect| matches!(effect, Effect::Report(_, _, Progress::Overdue(_)));
        told.extend(effects.iter().filter(|effect| overdue(effect)).map(|_| now));
        now = purger.next_deadline().expect("it is tried again").max(now);
        drop(purger.tick(now).into_iter().filter(overdue).map(|_| told.push(now)).collect::<Vec<_>>());
    }
    assert_eq!(told, [Timestamp::from_millis(900_000)]);
}

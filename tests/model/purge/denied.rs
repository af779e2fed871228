//! Distributions that refuse, or do not answer, beside others that work: what that costs the others, and how it ends.

use std::time::Duration;

use kernel::id::Reference;
use kernel::machine::{Machine, Timestamp};
use purge::purges::purge::{CdnErrorClass, Effect, Event, Order};

use super::{Reply, World, order};

/// Two distributions, one of which answers so; `others` fresh orders of it, each of paths of its own, and none covers another.
struct Account {
    world: World,
    refusal: Option<CdnErrorClass>,
    number: u32,
}

impl Account {
    fn new(refusal: CdnErrorClass) -> Self {
        Self { world: World::new(), refusal: Some(refusal), number: 0 }
    }

    fn order(&mut self, distribution: &str) -> Reference {
        self.number += 1;
        let paths = [format!("/{}", self.number).parse().unwrap()].into_iter().collect();
        let reference = Reference(format!("n{}", self.number));
        let distribution = distribution.parse().unwrap();
        let order = Order { reference: reference.clone(), distribution, paths, ..order(0, self.world.now) };
        self.world.orders.insert(reference.clone(), (order.clone(), self.world.now));
        self.world.step(Event::Ordered(order));
        self.answer();
        reference
    }

    /// All answers come at once.
    fn answer(&mut self) {
        while let Some(call) = self.world.calls.first() {
            let refused = matches!(call, Effect::Create(order) if order.distribution.as_str() == "E1EXAMPLE");
            let reply = self.refusal.filter(|_| refused).map_or(Reply::Works, Reply::Fails);
            self.world.answer(0, reply);
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.world.now.after(time);
        while self.world.purger.next_deadline().is_some_and(|next| next <= end) {
            self.world.tick();
            self.answer();
        }
        self.world.now = end;
    }

    /// How long it takes until this one is created.
    fn delay(&mut self, reference: &Reference) -> Duration {
        let from = self.world.now;
        while !self.world.cdn.contains_key(reference) {
            self.pass(Duration::from_millis(100));
            assert!(self.world.now.since(from) < Duration::from_secs(86_400), "{reference} waits for a day");
        }
        self.world.now.since(from)
    }
}

// Faults: F6
#[test]
fn purges_that_are_denied_delay_no_other_distribution_however_many_there_are() {
    for owed in [100, 150, 300] {
        let mut account = Account::new(CdnErrorClass::Denied);
        for _ in 0..owed {
            account.order("E1EXAMPLE");
            account.pass(Duration::from_millis(10));
        }
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            account.pass(Duration::from_millis(33_331));
            let fresh = account.order("E2EXAMPLE");
            longest = longest.max(account.delay(&fresh));
        }
        let probes = account.world.creations.len() - 200;
        eprintln!("{owed} denied: a fresh purge waits for {longest:?} at most, {probes} probes in 111 minutes");
        assert!(longest <= Duration::from_millis(100), "{owed} denied purges delay another by {longest:?}");
        // One in 12.5 to 25 s, so that a right that comes back is noticed within half a minute.
        assert!((266..=540).contains(&probes), "{probes} probes of a distribution that refuses, in 111 minutes");
    }
}

// Faults: F1
#[test]
fn when_a_distribution_lets_us_again_all_that_wait_for_it_go_on() {
    let mut account = Account::new(CdnErrorClass::Denied);
    let owed: Vec<Reference> = (0..20).map(|_| account.order("E1EXAMPLE")).collect();
    account.pass(Duration::from_secs(3_600));
    account.refusal = None;
    account.pass(Duration::from_secs(5 * 60 + 20 * 2 + 30));
    assert!(owed.iter().all(|reference| account.world.cdn.contains_key(reference)));
}

// Faults: F1
#[test]
fn after_an_outage_the_newest_goes_first_and_covers_all_that_waited() {
    for failure in [CdnErrorClass::Ambiguous, CdnErrorClass::Throttled, CdnErrorClass::Denied] {
        let mut account = Account::new(failure);
        for n in 0..12 {
            let world = &mut account.world;
            let now = world.now;
            let order = Order { reference: Reference(format!("n{n}")), ..order(0, now) };
            world.orders.insert(order.reference.clone(), (order.clone(), now));
            world.step(Event::Ordered(order));
            account.answer();
            account.pass(Duration::from_secs(20));
        }
        account.refusal = None;
        account.pass(Duration::from_secs(6 * 60));
        let created: Vec<&str> = account.world.cdn.keys().map(|reference| reference.0.as_str()).collect();
        assert_eq!((created, account.world.ended.len()), (vec!["n11"], 12), "{failure:?}");
    }
}

// Faults: F6
#[test]
fn however_much_is_rolled_out_what_is_owed_gets_its_turn() {
    let mut account = Account::new(CdnErrorClass::Denied);
    account.order("E1EXAMPLE");
    account.refusal = None;
    let mut others = 0;
    while !account.world.cdn.contains_key(&Reference::from("n1")) {
        others += 1;
        assert!(others < 2_000, "starved by what is rolled out");
        account.order(&format!("EBUSY{others}"));
        account.pass(Duration::from_millis(500));
    }
    // It was tried again after 15 s to 30 s, when there were more others than the pace allows.
    assert!(account.world.now <= Timestamp::from_millis(50_000), "it went at {:?}", account.world.now);
}

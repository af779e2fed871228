//! The governor: how many creations a second the account has from us, found out by what CloudFront grants.
//!
//! ```text
//!            granted, and something waits          throttled: half of it,
//!          ┌─ never throttled: faster by the          nothing saved, a pause
//!          │  starting pace each time         ┌──────────────────────────┐
//!  start ──┴─ throttled before: faster by a ──┴▶ pace ◀──────────────────┘
//!             quarter a second each second       │ a minute without a creation: half the way back to the start
//! ```
//!
//! A call throttled after the pause, before any was granted, makes the next pause twice as long and the pace no slower:
//! it proves that others take all there is, not that half of what we had was too fast.
//!
//! What AWS is said to allow differs by source (`quota`), and its API names no header for what is left. All clients of an
//! account share it, members of a group too. So everyone raises by the same amount in the same time and halves when throttled,
//! which leads to equal shares (Chiu and Jain 1989, as in TCP). Where what is granted comes down to a rate that is told, `account`
//! keeps to that one instead: a search would be throttled again and again where the answer is known.
//!
//! Not for whose turn it is, nor for a distribution that refuses.

use std::time::Duration;

use crate::purges::purge::rate::{CREATION, Rate, SLOWEST, pause};
use kernel::machine::{Timestamp, millis};

/// Creations that may follow each other at once when none went for a while. People were throttled by AWS after ten to fifteen at
/// once (aws/aws-sdk-js#3983); this leaves room for others of the account, and keeps a release over a handful of distributions quick.
pub const CREATIONS_BURST: u32 = 4;

/// Faster by so much a second, each second in which something waits and all is granted: from half of what is granted back to it
/// takes ten seconds at five a second. In thousandths.
const RAISE: u32 = 250;

/// No creation granted makes us faster by more than this part of the pace: below one a second, few answers say little.
const RAISE_PART: u32 = 4;

/// After each such time without a creation, half of what was learned is forgotten: others come and go in the account.
const REST: Duration = Duration::from_secs(60);

/// After so many of them all of it is.
const RESTS_MAX: u32 = 10;

/// Two throttlings at least so far apart measure a rate; closer ones are about a burst.
const MEASURED_OVER: Duration = Duration::from_secs(1);

/// The governor. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Governor {
    start: Rate,
    fastest: Rate,
    rate: Rate,
    /// The allowance at `at`; from then on it grows by the rate, up to the burst.
    saved: u64,
    at: Timestamp,
    /// Granted creations that have not made it faster, because nothing waited.
    granted: u32,
    /// When it was halved. What was sent by then and throttled belongs to the same congestion, and what was granted says nothing
    /// of the pace since.
    halved: Option<Timestamp>,
    /// Pauses since a creation was granted.
    pauses: u32,
    /// When a creation was sent last.
    sent: Timestamp,
    /// Rests that it has had since then.
    rests: u32,
    /// Since when grants are counted: a throttling. Since the beginning, if there was none.
    counted: Option<Timestamp>,
    /// Creations granted since then.
    count: u32,
}

impl Governor {
    /// One that has learned nothing, and begins at this pace. It never goes faster than `fastest`, nor than `start` if that is more.
    pub(super) fn new(start: Rate, fastest: Rate) -> Self {
        Self {
            start,
            fastest: fastest.max(start),
            rate: start,
            saved: burst(),
            at: Timestamp::default(),
            granted: 0,
            halved: None,
            pauses: 0,
            sent: Timestamp::default(),
            rests: 0,
            counted: None,
            count: 0,
        }
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// From when on a creation may be sent that leaves so many of those saved.
    pub(super) fn allows(&self, leaving: u32) -> Timestamp {
        let wanted = CREATION.saturating_mul(u64::from(leaving.saturating_add(1)));
        let wait = wanted.saturating_sub(self.saved).div_ceil(u64::from(self.rate.0));
        self.at.after(Duration::from_millis(wait))
    }

    pub(super) fn pass(&mut self, now: Timestamp) {
        self.settle(now);
        let rests = millis(now.since(self.sent)) / millis(REST);
        let rests = u32::try_from(rests).unwrap_or(u32::MAX).min(RESTS_MAX);
        for _ in self.rests..rests {
            self.rate = Rate(self.rate.0.midpoint(self.start.0));
            self.granted = 0;
        }
        self.rests = self.rests.max(rests);
        if self.rests == RESTS_MAX {
            (self.rate, self.halved, self.pauses) = (self.start, None, 0);
            (self.counted, self.count) = (None, 0);
        }
    }

    /// Nothing is known any more.
    pub(super) const fn is_rested(&self) -> bool {
        self.rests == RESTS_MAX
    }

    /// A creation is sent.
    pub(super) fn spend(&mut self, now: Timestamp) {
        self.settle(now);
        self.saved = self.saved.saturating_sub(CREATION);
        (self.sent, self.rests) = (now, 0);
    }

    /// A creation that was sent then was granted.
    pub(super) fn granted(&mut self, sent: Timestamp) {
        self.count = self.count.saturating_add(1);
        if !self.knows(sent) {
            self.granted = self.granted.saturating_add(1).min(CREATIONS_BURST);
            self.pauses = 0;
        }
    }

    /// Something waits for nothing but the pace.
    pub(super) fn wanted(&mut self, now: Timestamp) {
        self.settle(now);
        for _ in 0..std::mem::take(&mut self.granted) {
            let Rate(rate) = self.rate;
            // Each creation stands for the time that it took at this pace.
            let steady = (RAISE.saturating_mul(1_000) / rate).min(rate / RAISE_PART).max(1);
            let raise = if self.halved.is_some() { steady } else { self.start.0 };
            self.rate = Rate(rate.saturating_add(raise)).min(self.fastest);
        }
    }

    /// A creation that was sent then was throttled.
    pub(super) fn throttled(&mut self, now: Timestamp, sent: Timestamp) {
        if self.knows(sent) {
            return;
        }
        if self.pauses == 0 {
            // An operator who names a pace knows the account: slower than that only if about that is throttled, too.
            let is_far_above = self.rate.0 / 3 >= self.start.0 / 2;
            let slowest = if is_far_above { self.start } else { SLOWEST.min(self.start) };
            self.rate = Rate::from_thousandths(self.rate.0 / 2).max(slowest);
        }
        let pause = pause(self.rate, self.pauses);
        // After it there is one, and no more.
        (self.saved, self.at) = (CREATION, now.after(pause));
        (self.halved, self.granted) = (Some(now), 0);
        self.pauses = self.pauses.saturating_add(1);
    }

    /// Whether what is granted has come down to about this rate, now that a creation is throttled that was sent then: not even the
    /// first burst was granted, or no more than half as much again since the throttling before.
    pub(super) fn comes_down_to(&mut self, now: Timestamp, sent: Timestamp, rate: Rate) -> bool {
        if self.knows(sent) {
            return false;
        }
        let Some(since) = self.counted else {
            let little = self.count < CREATIONS_BURST;
            (self.counted, self.count) = (Some(now), 0);
            return little;
        };
        let over = now.since(since);
        let granted = CREATION.saturating_mul(u64::from(self.count)).saturating_mul(2);
        let little = granted <= millis(over).saturating_mul(u64::from(rate.0)).saturating_mul(3);
        if self.count > 0 {
            (self.counted, self.count) = (Some(now), 0);
        }
        little && over >= MEASURED_OVER
    }

    /// Whether a call that was sent then was under way when it was halved.
    fn knows(&self, sent: Timestamp) -> bool {
        self.halved.is_some_and(|halved| sent <= halved)
    }

    /// Saves what has come in at the present pace.
    fn settle(&mut self, now: Timestamp) {
        let come = u64::from(self.rate.0).saturating_mul(millis(now.since(self.at)));
        self.saved = self.saved.saturating_add(come).min(burst());
        self.at = self.at.max(now);
    }
}

fn burst() -> u64 {
    CREATION.saturating_mul(u64::from(CREATIONS_BURST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Sends whenever it is allowed to, for this long; each is answered at once.
    fn run(governor: &mut Governor, from: u64, until: u64, grants: impl Fn(usize) -> bool) -> usize {
        let mut count = 0;
        for now in (from..until).map(at) {
            governor.pass(now);
            while governor.allows(0) <= now {
                governor.spend(now);
                if grants(count) {
                    governor.granted(now);
                } else {
                    governor.throttled(now, now);
                }
                count += 1;
            }
            governor.wanted(now);
        }
        count
    }

    fn governor() -> Governor {
        Governor::new(Rate(500), Rate(10_000))
    }

    #[test]
    fn it_raises_while_all_is_granted_up_to_the_fastest_and_no_further() {
        let mut governor = governor();
        let first = run(&mut governor, 0, 2_000, |_| true);
        assert!((8..=14).contains(&first), "{first} in two seconds, four of them at once");
        run(&mut governor, 2_000, 20_000, |_| true);
        assert_eq!(governor.rate(), Rate(10_000));
        let steady = run(&mut governor, 20_000, 30_000, |_| true);
        assert!((99..=101).contains(&steady), "{steady} in ten seconds");
    }

    #[test]
    fn without_anything_that_waits_it_stays_as_it_is() {
        let mut governor = governor();
        for minute in 0..100 {
            governor.pass(at(minute * 30_000));
            governor.spend(at(minute * 30_000));
            governor.granted(at(minute * 30_000));
        }
        assert_eq!(governor.rate(), Rate(500));
    }

    #[test]
    fn calls_under_way_that_are_throttled_together_halve_it_once() {
        let mut governor = governor();
        governor.rate = Rate(4_000);
        for _ in 0..4 {
            governor.spend(at(1_000));
        }
        for answer in 0..4 {
            governor.throttled(at(1_100 + answer), at(1_000));
        }
        assert_eq!(governor.rate(), Rate(2_000));
        assert_eq!(governor.allows(0), at(1_100 + 500), "and it pauses");
        governor.granted(at(1_000));
        governor.wanted(at(1_200));
        assert_eq!(governor.rate(), Rate(2_000), "what was granted before says nothing of now");
        governor.throttled(at(1_700), at(1_600));
        assert_eq!(
            (governor.rate(), governor.allows(0)),
            (Rate(2_000), at(1_700 + 1_000)),
            "nothing was granted since"
        );
        governor.granted(at(2_700));
        governor.throttled(at(2_900), at(2_800));
        assert_eq!((governor.rate(), governor.allows(0)), (Rate(1_000), at(2_900 + 1_000)), "another congestion");
    }

    #[test]
    fn throttling_without_end_leaves_three_questions_a_minute() {
        let mut governor = governor();
        run(&mut governor, 0, 60_000, |_| false);
        let asked = run(&mut governor, 60_000, 660_000, |_| false);
        assert!((29..=31).contains(&asked), "{asked} in ten minutes");
        let mut slow = Governor::new(Rate(10), Rate(10));
        slow.throttled(at(1), at(1));
        assert_eq!(slow.rate(), Rate(10), "never slower than a start that is slower");
    }

    #[test]
    fn what_was_learned_is_forgotten_by_and_by() {
        for learned in [Rate(50), Rate(8_000)] {
            let mut governor = governor();
            governor.throttled(at(1), at(1));
            governor.rate = learned;
            governor.spend(at(1_000));
            let mut last = learned.0.abs_diff(500);
            for minute in 1..10 {
                governor.pass(at(1_000 + minute * 60_000));
                let far = governor.rate().0.abs_diff(500);
                assert!(far < last, "{learned:?} after {minute} minutes: {far}");
                last = far;
            }
            assert!(governor.halved.is_some());
            governor.pass(at(1_000 + 600_000));
            assert_eq!((governor.rate(), governor.halved), (Rate(500), None));
        }
    }

    #[test]
    fn equal_bounds_are_a_pace_that_is_never_exceeded() {
        let mut governor = Governor::new(Rate(500), Rate(500));
        assert_eq!(run(&mut governor, 0, 100_000, |_| true), 4 + 49);
        assert_eq!(Governor::new(Rate(500), Rate(100)).fastest, Rate(500));
    }

    #[test]
    fn what_is_granted_comes_down_to_a_rate_by_a_small_burst_or_by_what_came_since() {
        let mut small = governor();
        small.granted(at(10));
        assert!(small.comes_down_to(at(20), at(15), Rate(500)));
        let mut governor = governor();
        (0..CREATIONS_BURST).for_each(|_| governor.granted(at(10)));
        assert!(!governor.comes_down_to(at(20), at(15), Rate(500)), "a whole burst says nothing");
        governor.throttled(at(20), at(15));
        assert!(!governor.comes_down_to(at(30), at(16), Rate(500)), "it was under way");
        assert!(!governor.comes_down_to(at(500), at(450), Rate(500)), "too early to say");
        governor.granted(at(2_000));
        assert!(governor.comes_down_to(at(2_600), at(2_550), Rate(500)), "one in 2.6 s");
        (0..10).for_each(|_| governor.granted(at(4_000)));
        assert!(!governor.comes_down_to(at(4_600), at(4_550), Rate(500)), "ten in two seconds");
    }
}

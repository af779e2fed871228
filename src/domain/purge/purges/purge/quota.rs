//! What is published of CloudFront's quotas, each believed once CloudFront refuses something that may be about it.
//!
//! ```text
//!             refused                      all granted for a while: twice as fast
//!  unlimited ────────▶ the published rate ◀──────────────────────────────────────▶ faster … unlimited again
//!                            ▲  │ refused                         refused: half
//!                            └──▼
//!                        slower: others use the account
//! ```
//!
//! Three rules are told, by sources of different age, and nobody outside AWS knows which hold ([`Rule`]). A wrong guess costs
//! refused calls or time. So nothing is believed before a refusal; the rate that is published is the first guess after it; and it
//! is doubted only after so many grants that the refused calls of a doubt are one in a hundred.
//!
//! A distribution may be refused for itself: the older rule is about each. It is taken for that when another one was granted the
//! same since, and what was believed because of it alone is dropped.
//!
//! Not for finding a rate that is not published: that is `governor`.

use crate::purges::purge::CdnErrorClass;
use crate::purges::purge::rate::{Rate, pause};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// A rate is doubted after so many grants: one refused call in a hundred, if it was right. Twice as many after each doubt that
/// was wrong.
const PATIENCE: u32 = 100;

/// No more patience than this: half an hour at one a second.
const PATIENCE_LONGEST: u32 = 1_600;

/// The same below the rate that is published: others of the account come and go.
const PATIENCE_BELOW: u32 = 5;

/// No slower than this part of the published rate. Beside others a call comes often at a bad time, and is granted at the next try; where
/// they take all there is, pauses grow.
const SLOWEST_PART: u32 = 4;

/// What is granted at so many times the published rate is not bound by it.
const BOUND_UP_TO: u32 = 8;

/// What CloudFront counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    /// Calls of CreateInvalidation, refused as `Throttling`: 0.5 a second for an account, as AWS staff say (aws/aws-sdk-js#3983).
    Calls,
    /// Paths with a `*`: 1 a second for an account, refused as `TooManyInvalidationsInProgress`. Sources of 2026 quote so from
    /// AWS's page of quotas; whether a call with two counts once is not said, so each counts.
    Wildcards,
    /// Paths and tags: 150 a second for an account, refused as the same; from the same sources.
    Items,
}

/// One rule, as far as it is known to hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quota {
    rule: Rule,
    /// What is believed; nothing is refused, as far as we know, if there is none.
    belief: Option<Belief>,
    /// What this rule counted last.
    served: Option<Served>,
    /// Grants until a rate is doubted.
    patience: u32,
}

/// Something was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Served {
    sent: Timestamp,
    answered: Timestamp,
    cost: u32,
}

/// A rate that is kept to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Belief {
    rate: Rate,
    /// What was sent is paid for until then.
    paid_until: Timestamp,
    /// When it was made slower last. What was sent by then belongs to the same congestion.
    slowed: Timestamp,
    /// Pauses since something was granted.
    pauses: u32,
    /// Creations granted at this rate.
    granted: u32,
    /// The only distribution that was refused, if it is one.
    suspect: Option<DistributionId>,
}

impl Rule {
    /// What a refusal is about: CloudFront has one code for wildcards and items, and wildcards are the scarcer by far.
    pub(super) fn of(class: CdnErrorClass, paths: &PathSet) -> Self {
        match class {
            CdnErrorClass::TooManyInProgress if paths.wildcards() == 0 => Self::Items,
            CdnErrorClass::TooManyInProgress => Self::Wildcards,
            CdnErrorClass::Throttled
            | CdnErrorClass::Ambiguous
            | CdnErrorClass::Denied
            | CdnErrorClass::Gone
            | CdnErrorClass::NoSuchInvalidation
            | CdnErrorClass::ReferenceReused
            | CdnErrorClass::Refused
            | CdnErrorClass::Unexpected => Self::Calls,
        }
    }

    pub(super) const fn published(self) -> Rate {
        Rate::from_thousandths(match self {
            Self::Calls => 500,
            Self::Wildcards => 1_000,
            Self::Items => 150_000,
        })
    }

    const fn slowest(self) -> Rate {
        Rate::from_thousandths(self.published().thousandths() / SLOWEST_PART)
    }

    /// How much of it a creation takes.
    pub(super) fn cost(self, paths: &PathSet) -> u32 {
        let count = match self {
            Self::Calls => 1,
            Self::Wildcards => paths.wildcards(),
            Self::Items => paths.len(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

impl Quota {
    pub(super) const fn new(rule: Rule) -> Self {
        Self { rule, belief: None, served: None, patience: PATIENCE }
    }

    /// The rate that is kept to, if one is.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.belief.as_ref().map(|belief| belief.rate)
    }

    /// From when on something may be sent that leaves so much of it. What costs more than one puts off what comes after it.
    pub(super) fn allows(&self, leaving: u32) -> Timestamp {
        let until = |belief: &Belief| belief.paid_until.after(belief.rate.time_of(leaving));
        self.belief.as_ref().map(until).unwrap_or_default()
    }

    pub(super) fn spend(&mut self, now: Timestamp, paths: &PathSet) {
        let cost = self.rule.cost(paths);
        if let Some(belief) = &mut self.belief {
            belief.paid_until = belief.paid_until.max(now).after(belief.rate.time_of(cost));
        }
    }

    /// What was sent then was granted. When CloudFront counted it is not known, but by now it has: paid for from now on, the next
    /// one cannot arrive too early, however long either is on its way.
    pub(super) fn granted(&mut self, now: Timestamp, sent: Timestamp, paths: &PathSet) {
        let (cost, published) = (self.rule.cost(paths), self.rule.published());
        if cost == 0 {
            return;
        }
        let served = Served { sent, answered: now, cost };
        self.served = Some(served);
        let Some(belief) = &mut self.belief else { return };
        belief.paid_until = belief.paid_until.max(served.paid_until(belief.rate));
        if sent <= belief.slowed {
            return;
        }
        belief.pauses = 0;
        belief.granted = belief.granted.saturating_add(1);
        let patience = if belief.rate < published { PATIENCE_BELOW } else { self.patience };
        if belief.granted >= patience {
            let faster = belief.rate.doubled();
            // The published rate is a guess on the way up as well.
            belief.rate = if belief.rate < published { faster.min(published) } else { faster };
            belief.granted = 0;
        }
        if belief.rate.thousandths() / BOUND_UP_TO > published.thousandths() {
            self.belief = None;
        }
    }

    /// Whether a refusal of a distribution that was refused then as well is about it alone: another one was granted the same since.
    pub(super) fn serves_others(&self, refused: Timestamp) -> bool {
        self.served.is_some_and(|served| served.sent > refused)
    }

    /// This distribution is refused for itself.
    pub(super) fn acquit(&mut self, of: &DistributionId) {
        self.belief.take_if(|belief| belief.suspect.as_ref() == Some(of));
    }

    /// All is forgotten.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.rule);
    }

    /// What was sent then was refused, while we went at this pace.
    pub(super) fn refused(&mut self, now: Timestamp, sent: Timestamp, of: &DistributionId, pace: Rate) {
        let published = self.rule.published();
        let Some(belief) = &mut self.belief else {
            let rate = if pace >= published { published } else { pace.halved(self.rule.slowest().min(pace)) };
            let suspect = Some(of.clone());
            let mut belief = Belief { rate, paid_until: now, slowed: now, pauses: 0, granted: 0, suspect };
            belief.pause(now, self.served);
            self.belief = Some(belief);
            return;
        };
        if belief.suspect.as_ref() != Some(of) {
            belief.suspect = None;
        }
        if sent <= belief.slowed {
            return;
        }
        if belief.pauses == 0 {
            if belief.rate > published {
                self.patience = self.patience.saturating_mul(2).min(PATIENCE_LONGEST);
            }
            belief.rate = belief.rate.halved(self.rule.slowest().min(belief.rate));
        }
        (belief.slowed, belief.granted) = (now, 0);
        belief.pause(now, self.served);
    }
}

impl Served {
    fn paid_until(self, rate: Rate) -> Timestamp {
        self.answered.after(rate.time_of(self.cost))
    }
}

impl Belief {
    /// One that is refused right after a pause proves that others take all there is, not that the rate is wrong: it is not slower
    /// then, but asked for less often.
    fn pause(&mut self, now: Timestamp, served: Option<Served>) {
        // What was granted last was paid for at a rate that was too fast.
        let paid_until = served.map_or(now, |served| served.paid_until(self.rate));
        self.paid_until = paid_until.max(now.after(pause(self.rate, self.pauses)));
        self.pauses = self.pauses.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn of(id: &str) -> DistributionId {
        id.parse().unwrap()
    }

    fn all() -> PathSet {
        PathSet::default()
    }

    /// Refused at one second, when nothing was known.
    fn refused() -> Quota {
        let mut quota = Quota::new(Rule::Wildcards);
        quota.refused(at(1_000), at(950), &of("E1"), Rate(1_000));
        quota
    }

    /// Grants so many, each when it is allowed and answered after 50 ms; returns when the last was answered.
    fn grant(quota: &mut Quota, from: Timestamp, count: u32) -> Timestamp {
        (0..count).fold(from, |now, _| {
            let sent = quota.allows(0).max(now);
            quota.spend(sent, &all());
            let answered = sent.after(std::time::Duration::from_millis(50));
            quota.granted(answered, sent, &all());
            answered
        })
    }

    #[test]
    fn nothing_is_believed_before_a_refusal_and_the_published_rate_after_it() {
        let mut quota = Quota::new(Rule::Wildcards);
        for _ in 0..100 {
            quota.spend(at(0), &all());
        }
        assert_eq!((quota.rate(), quota.allows(0)), (None, at(0)));
        let mut quota = refused();
        assert_eq!((quota.rate(), quota.allows(0)), (Some(Rate(1_000)), at(2_000)));
        // Paid for from the answer on.
        quota.spend(at(2_000), &all());
        quota.granted(at(2_300), at(2_000), &all());
        assert_eq!(quota.allows(0), at(3_300));
        quota.spend(at(3_300), &["/a/*", "/b/*", "/c"].iter().map(|path| path.parse().unwrap()).collect());
        assert_eq!(quota.allows(0), at(5_300), "two wildcards");
    }

    #[test]
    fn what_was_under_way_together_is_one_refusal_and_a_pause_grows_until_one_is_granted() {
        let mut quota = refused();
        quota.refused(at(1_050), at(990), &of("E2"), Rate(1_000));
        assert_eq!((quota.rate(), quota.allows(0)), (Some(Rate(1_000)), at(2_000)));
        quota.refused(at(2_100), at(2_000), &of("E2"), Rate(1_000));
        assert_eq!((quota.rate(), quota.allows(0)), (Some(Rate(1_000)), at(2_100 + 2_000)), "others take all there is");
        quota.refused(at(4_200), at(4_100), &of("E2"), Rate(1_000));
        assert_eq!(quota.allows(0), at(4_200 + 4_000));
        quota.granted(at(8_300), at(8_200), &all());
        quota.refused(at(9_400), at(9_300), &of("E2"), Rate(1_000));
        assert_eq!(
            (quota.rate(), quota.allows(0)),
            (Some(Rate(500)), at(9_400 + 2_000)),
            "a rate that is refused is halved"
        );
    }

    #[test]
    fn a_rate_is_doubted_after_a_hundred_grants_and_later_each_time_it_was_right() {
        let mut quota = refused();
        let mut now = grant(&mut quota, at(2_000), 99);
        assert_eq!(quota.rate(), Some(Rate(1_000)));
        for patience in [1, 200, 400] {
            grant(&mut quota, now, patience);
            assert_eq!(quota.rate(), Some(Rate(2_000)), "after {patience} more");
            let sent = quota.allows(0);
            now = sent.after(std::time::Duration::from_millis(50));
            quota.refused(now, sent, &of("E1"), Rate(1_000));
            assert_eq!(quota.rate(), Some(Rate(1_000)));
        }
        let mut free = refused();
        grant(&mut free, at(2_000), 399);
        assert_eq!(free.rate(), Some(Rate(8_000)));
        grant(&mut free, at(500_000), 1);
        assert_eq!(free.rate(), None, "it does not hold");
    }

    #[test]
    fn what_is_believed_of_one_distribution_alone_is_dropped_and_what_two_showed_is_not() {
        let mut alone = refused();
        assert!(!alone.serves_others(at(1_000)));
        alone.granted(at(2_100), at(2_000), &all());
        assert!(alone.serves_others(at(1_000)));
        alone.acquit(&of("E2"));
        assert!(alone.rate().is_some());
        alone.acquit(&of("E1"));
        assert_eq!(alone.rate(), None);
        let mut two = refused();
        two.refused(at(1_010), at(960), &of("E2"), Rate(1_000));
        two.acquit(&of("E1"));
        assert!(two.rate().is_some());
        let mut plain = refused();
        plain.granted(at(2_100), at(2_000), &["/a".parse().unwrap()].into_iter().collect());
        assert!(!plain.serves_others(at(1_000)), "it had no wildcard");
    }
}

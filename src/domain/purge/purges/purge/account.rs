//! What the account grants: a pace that is searched for, and three rules that are told of CloudFront.
//!
//! Each creation is counted by all, and waits for the slowest. Of `Throttling` the governor learns, until what is granted comes
//! down to the rate that AWS staff name; then that rate is kept to. `TooManyInvalidationsInProgress` is about wildcards or items, of
//! the account by what is told in 2026, of one distribution by what was told before.
//!
//! What has no wildcard waits with what has one: its namespace has its turn soon, and two lines would be two orders of turns.
//!
//! Not for whose turn it is, nor for a distribution that refuses.

use crate::purges::purge::CdnErrorClass;
use crate::purges::purge::governor::Governor;
use crate::purges::purge::quota::{Quota, Rule};
use crate::purges::purge::rate::Rate;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Account {
    governor: Governor,
    calls: Quota,
    wildcards: Quota,
    items: Quota,
    /// Never more creations a second.
    fastest: Rate,
}

/// A creation that was refused by a quota.
pub(super) struct Refused<'a> {
    pub(super) sent: Timestamp,
    pub(super) of: &'a DistributionId,
    pub(super) paths: &'a PathSet,
    pub(super) class: CdnErrorClass,
    /// When its distribution was refused before, if nothing was created for it since.
    pub(super) before: Option<Timestamp>,
}

impl Account {
    /// One of which nothing is known. See [`Governor::new`].
    pub(super) fn new(start: Rate, fastest: Rate) -> Self {
        Self {
            governor: Governor::new(start, fastest),
            calls: Quota::new(Rule::Calls),
            wildcards: Quota::new(Rule::Wildcards),
            items: Quota::new(Rule::Items),
            fastest: fastest.max(start),
        }
    }

    /// Creations a second, of one wildcard each.
    pub(super) fn rate(&self) -> Rate {
        let calls = self.calls.rate().unwrap_or_else(|| self.governor.rate());
        self.wildcards.rate().map_or(calls, |wildcards| wildcards.min(calls))
    }

    /// From when on a creation may be sent that leaves so many.
    pub(super) fn allows(&self, leaving: u32) -> Timestamp {
        let calls =
            if self.calls.rate().is_some() { self.calls.allows(leaving) } else { self.governor.allows(leaving) };
        calls.max(self.wildcards.allows(leaving)).max(self.items.allows(leaving))
    }

    pub(super) fn pass(&mut self, now: Timestamp) {
        self.governor.pass(now);
        if self.governor.is_rested() {
            self.quotas().into_iter().for_each(Quota::forget);
        }
    }

    /// A creation of these is sent.
    pub(super) fn spend(&mut self, now: Timestamp, paths: &PathSet) {
        self.governor.spend(now);
        self.quotas().into_iter().for_each(|quota| quota.spend(now, paths));
    }

    /// A creation of these that was sent then was granted.
    pub(super) fn granted(&mut self, now: Timestamp, sent: Timestamp, paths: &PathSet) {
        self.governor.granted(sent);
        self.quotas().into_iter().for_each(|quota| quota.granted(now, sent, paths));
        if self.calls.rate() > Some(self.fastest) {
            self.calls.forget();
        }
    }

    /// Something waits for nothing but the pace. The search goes on only where it is what holds us back.
    pub(super) fn wanted(&mut self, now: Timestamp) {
        let others = self.calls.allows(0).max(self.wildcards.allows(0)).max(self.items.allows(0));
        if self.calls.rate().is_none() && others <= now {
            self.governor.wanted(now);
        }
    }

    /// A creation was refused. Returns whether that is about its distribution alone.
    pub(super) fn refused(&mut self, now: Timestamp, refused: &Refused<'_>) -> bool {
        let Refused { sent, of, paths, class, before } = *refused;
        let rule = Rule::of(class, paths);
        let quota = match rule {
            Rule::Calls => &mut self.calls,
            Rule::Wildcards => &mut self.wildcards,
            Rule::Items => &mut self.items,
        };
        let is_its_own = before.is_some_and(|before| quota.serves_others(before));
        if is_its_own {
            quota.acquit(of);
        }
        let is_searched = rule == Rule::Calls && quota.rate().is_none();
        let pace = if rule == Rule::Calls { self.governor.rate() } else { rule.published() };
        let holds = !is_searched || self.governor.comes_down_to(now, sent, rule.published());
        if holds && !is_its_own {
            quota.refused(now, sent, of, pace);
        }
        if is_searched {
            self.governor.throttled(now, sent);
        }
        is_its_own
    }

    const fn quotas(&mut self) -> [&mut Quota; 3] {
        [&mut self.calls, &mut self.wildcards, &mut self.items]
    }
}

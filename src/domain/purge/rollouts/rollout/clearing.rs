//! The caches that are asked before a vote or a further purge, and how far each is.
//!
//! Not for when they are asked, nor for what follows; that is `between`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::caches::asking::{Answers, Asking};
use crate::caches::demand::Demand;
use crate::rollouts::rollout::Effect;
use kernel::id::{Reference, Vector};
use kernel::machine::Timestamp;
use kernel::text;

/// What caches are asked before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Before {
    /// A vote for this vector, and what its owner asked for last.
    Vote(Vector, Option<String>),
    /// The further purge of this reference.
    Again(Reference),
}

/// This life's questions to caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Caches {
    pub(super) vote: Option<Clearing>,
    pub(super) again: BTreeMap<Reference, Clearing>,
    /// How long votes have waited since the last one that was cast, but for the wait under way.
    pub(super) spent: Duration,
    /// When the last of these waits ended.
    spent_until: Option<Timestamp>,
    /// How many questions were asked.
    pub(super) asked: u32,
}

/// All caches that one purge is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Clearing {
    of: Before,
    since: Timestamp,
    /// When the last of them was done or left.
    pub(super) ended: Option<Timestamp>,
    pub(super) asking: Vec<Asking>,
    /// The site was found once more since.
    pub(super) refound: bool,
}

impl Clearing {
    pub(super) fn new(of: Before, now: Timestamp, demands: &[Demand]) -> Self {
        let asking = demands.iter().cloned().map(Asking::new).collect();
        Self { of, since: now, ended: None, asking, refound: false }
    }

    pub(super) fn is_of(&self, of: &Before, demands: &[Demand]) -> bool {
        self.of == *of && self.asking.iter().map(Asking::demand).eq(demands)
    }

    /// Asks what is due. The bound of each cache counts what was `spent` before.
    pub(super) fn go_on(&mut self, now: Timestamp, spent: Duration, numbers: &mut u32) -> Vec<Effect> {
        let mut effects = Vec::new();
        for asking in &mut self.asking {
            let ends = self.since.after(asking.demand().cache.timeout.saturating_sub(spent));
            let question = asking.next(now, ends, numbers);
            effects.extend(question.map(|question| Effect::AskCache(self.of.clone(), Box::new(question))));
        }
        if !self.asking.iter().any(Asking::is_open) {
            self.ended.get_or_insert(now);
        }
        effects
    }

    pub(super) fn took(&self, now: Timestamp) -> Duration {
        self.ended.unwrap_or(now).since(self.since)
    }

    /// What may still have the old version, in words.
    pub(super) fn left(&self) -> Vec<String> {
        let left = self.asking.iter().filter_map(Asking::left);
        let unasked = self.asking.iter().filter_map(|asking| {
            let Demand { cache, unasked, .. } = asking.demand();
            unasked.as_ref().map(|what| format!("{cache}: it was not asked for {what}"))
        });
        left.chain(unasked).collect()
    }
}

impl Caches {
    /// The question under way, or the first that follows, is no longer wanted.
    pub(super) fn put_off(&mut self, now: Timestamp) {
        if let Some(left) = self.vote.take() {
            self.spent = self.spent.saturating_add(left.took(now));
            self.spent_until = (!self.spent.is_zero()).then(|| left.ended.unwrap_or(now));
        }
    }

    /// Waits that ended longer ago than this bound were for something else, and take no time from the next one.
    pub(super) fn forget_spent(&mut self, now: Timestamp, bound: Duration) {
        let is_old = self.spent_until.is_some_and(|until| until.after(bound) < now);
        if self.vote.is_none() && is_old {
            (self.spent, self.spent_until) = (Duration::ZERO, None);
        }
    }

    /// The vote was cast.
    pub(super) fn voted(&mut self) {
        (self.vote, self.spent, self.spent_until) = (None, Duration::ZERO, None);
    }

    /// Whether an answer before a vote is outstanding.
    pub(super) fn is_asked(&self) -> bool {
        self.vote.as_ref().is_some_and(|clearing| clearing.ended.is_none())
    }

    /// See [`Event::CacheAnswered`](crate::rollouts::rollout::Event::CacheAnswered).
    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        of: &Before,
        cache: &str,
        (number, answers): (u32, Result<Answers, String>),
    ) {
        let clearing = match of {
            Before::Vote(..) => self.vote.as_mut(),
            Before::Again(reference) => self.again.get_mut(reference),
        };
        let mut asking = clearing.into_iter().flat_map(|clearing| &mut clearing.asking);
        if let Some(asking) = asking.find(|asking| asking.demand().cache.name == cache) {
            asking.answered(now, number, answers);
        }
    }

    fn asking(&self) -> impl Iterator<Item = &Asking> {
        self.vote.iter().chain(self.again.values()).flat_map(|clearing| &clearing.asking)
    }

    /// Ends every pause that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let all = self.vote.iter_mut().chain(self.again.values_mut());
        all.flat_map(|clearing| &mut clearing.asking).for_each(|asking| asking.wake(now));
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.asking().filter_map(Asking::deadline).min()
    }

    /// What a vote waits for, in words.
    pub(super) fn words(&self, now: Timestamp) -> Option<String> {
        let clearing = self.vote.as_ref()?;
        let waits: Vec<String> = clearing.asking.iter().filter_map(Asking::waits).collect();
        let most = clearing.asking.iter().filter(|asking| asking.is_open());
        let most = most.map(|asking| asking.demand().cache.timeout).max()?;
        let waited = text::duration(clearing.took(now).saturating_add(self.spent));
        Some(format!("purges caches first: {}; {waited} of {} at most", waits.join("; "), text::duration(most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_long_ago_takes_no_time_from_the_next_one() {
        let bound = Duration::from_secs(60);
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        let mut caches = Caches { spent: Duration::from_secs(50), spent_until: Some(at(50)), ..Caches::default() };
        caches.forget_spent(at(110), bound);
        assert_eq!(caches.spent, Duration::from_secs(50));
        caches.forget_spent(at(111), bound);
        assert_eq!(caches.spent, Duration::ZERO);
    }
}

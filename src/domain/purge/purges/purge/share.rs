//! Each namespace's use of the shared account: creations, in turn, and purges and paths of one distribution in an hour.
//!
//! Not kept across restarts: a new life begins with every budget unspent, and each member of a group has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::purges::purge::Order;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;

/// The time over which purges and paths are counted.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How often budgets that are full again are dropped: all are walked through then.
const SWEPT_EVERY: Duration = Duration::from_secs(60);

/// When a namespace had its last creation, as a count of creations: one that had none comes first.
type Turn = u64;

/// Where something stands among what its namespace waits for: the smallest is first.
pub(super) type Rank = (Timestamp, u64, DistributionId);

/// Which namespaces have had creations since nothing waited, and what waits for nothing but the pace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Turns {
    last: BTreeMap<String, Turn>,
    count: Turn,
    fresh: Line,
    repeated: Line,
}

/// The waiting orders, by namespace, and the first of each namespace in the order of turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Line {
    waiting: BTreeMap<String, BTreeSet<Rank>>,
    firsts: BTreeSet<(Turn, Rank, String)>,
}

impl Turns {
    /// This waits: for the first time, or to be repeated.
    pub(super) fn enter(&mut self, repeated: bool, namespace: &str, rank: Rank) {
        self.change(namespace, |turns| {
            turns.line_mut(repeated).waiting.entry(namespace.to_owned()).or_default().insert(rank);
        });
    }

    /// It does no more.
    pub(super) fn leave(&mut self, repeated: bool, namespace: &str, rank: &Rank) {
        self.change(namespace, |turns| {
            let line = turns.line_mut(repeated);
            let Some(waiting) = line.waiting.get_mut(namespace) else { return };
            waiting.remove(rank);
            if waiting.is_empty() {
                line.waiting.remove(namespace);
            }
        });
    }

    pub(super) fn are_waiting(&self, repeated: bool) -> bool {
        !self.line(repeated).firsts.is_empty()
    }

    /// The distribution and the namespace whose turn it is.
    pub(super) fn first(&self, repeated: bool) -> Option<(DistributionId, String)> {
        self.line(repeated)
            .firsts
            .first()
            .map(|(_, (_, _, distribution), namespace)| (distribution.clone(), namespace.clone()))
    }

    /// A namespace has a creation now.
    pub(super) fn taken(&mut self, namespace: &str) {
        self.change(namespace, |turns| {
            turns.count = turns.count.saturating_add(1);
            turns.last.insert(namespace.to_owned(), turns.count);
        });
    }

    /// It has come to nothing: the namespace, whose turn it was, is the first again.
    pub(super) fn returned(&mut self, namespace: &str) {
        self.change(namespace, |turns| {
            turns.last.remove(namespace);
        });
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Changes what concerns this namespace, and puts it where it belongs then.
    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Self)) {
        let turn = self.turn(namespace);
        for line in self.lines_mut() {
            if let Some(first) = line.first_of(namespace, turn) {
                line.firsts.remove(&first);
            }
        }
        change(self);
        let turn = self.turn(namespace);
        self.lines_mut().into_iter().for_each(|line| line.firsts.extend(line.first_of(namespace, turn)));
    }

    fn turn(&self, namespace: &str) -> Turn {
        self.last.get(namespace).copied().unwrap_or_default()
    }

    const fn line(&self, repeated: bool) -> &Line {
        if repeated { &self.repeated } else { &self.fresh }
    }

    const fn line_mut(&mut self, repeated: bool) -> &mut Line {
        if repeated { &mut self.repeated } else { &mut self.fresh }
    }

    const fn lines_mut(&mut self) -> [&mut Line; 2] {
        [&mut self.fresh, &mut self.repeated]
    }
}

impl Line {
    fn first_of(&self, namespace: &str, turn: Turn) -> Option<(Turn, Rank, String)> {
        let first = self.waiting.get(namespace)?.first()?.clone();
        Some((turn, first, namespace.to_owned()))
    }
}

type Key = (String, DistributionId);

/// The use of distributions by namespaces in the last hour: each a token bucket in its "virtual scheduling" form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budgets {
    /// Until when the paths of each are spent.
    paths: BTreeMap<Key, Timestamp>,
    purges: BTreeMap<Key, Purges>,
    /// When those that were full again were dropped.
    swept: Timestamp,
}

/// Purges that were made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Purges {
    /// Until when they are spent.
    spent_until: Timestamp,
    /// From when on there may be another one.
    next: Timestamp,
    /// It was reported that they are spent.
    told: bool,
}

impl Budgets {
    /// Whether the namespace of an order has enough paths left.
    pub(super) fn affords(&self, now: Timestamp, order: &Order) -> bool {
        self.after(now, order) <= now.after(HOUR)
    }

    /// An order is sent. One path is sent however much was spent, and never puts off the next hour's.
    pub(super) fn spend(&mut self, now: Timestamp, order: &Order) {
        let after = self.after(now, order).min(now.after(HOUR));
        self.paths.insert(key(order), after);
    }

    /// A purge was made, of however many paths.
    pub(super) fn made(&mut self, now: Timestamp, order: &Order) {
        let each = HOUR.checked_div(order.purges_per_hour).unwrap_or(HOUR);
        let before = self.purges.get(&key(order));
        let (spent, told) = before.map_or((now, false), |before| (before.spent_until.max(now), before.told));
        let spent_until = spent.after(each);
        // The one after this would be spent until `each` later: that must be within the hour.
        let next = Timestamp::default().after(spent_until.after(each).since(Timestamp::default().after(HOUR)));
        self.purges.insert(key(order), Purges { spent_until, next, told });
    }

    /// From when on a namespace may have another purge of a distribution.
    pub(super) fn next(&self, namespace: &str, distribution: &DistributionId) -> Timestamp {
        let made = self.purges.get(&(namespace.to_owned(), distribution.clone()));
        made.map_or(Timestamp::default(), |made| made.next)
    }

    /// Whether there may be one now, and no other at once after it.
    pub(super) fn is_last(&self, now: Timestamp, order: &Order) -> bool {
        let mut after = self.clone_of(order);
        after.made(now, order);
        after.next(order.subject.namespace(), &order.distribution) > now
    }

    /// A copy of the counts of one namespace and distribution.
    fn clone_of(&self, order: &Order) -> Self {
        let made = self.purges.get(&key(order)).cloned().map(|made| (key(order), made));
        Self { purges: made.into_iter().collect(), ..Self::default() }
    }

    /// Another one is not wanted before then.
    pub(super) fn hold(&mut self, order: &Order, until: Timestamp) {
        self.purges.get_mut(&key(order)).into_iter().for_each(|made| made.next = made.next.max(until));
    }

    /// Whether it is to be reported that the purges of a namespace are spent: once, until all have come back.
    pub(super) fn tells(&mut self, now: Timestamp, order: &Order) -> bool {
        let made = self.purges.get_mut(&key(order)).filter(|made| made.next > now);
        made.is_some_and(|made| !std::mem::replace(&mut made.told, true))
    }

    /// Drops what is full again, from time to time.
    pub(super) fn forget(&mut self, now: Timestamp) {
        if now.since(self.swept) >= SWEPT_EVERY {
            self.paths.retain(|_, until| *until > now);
            self.purges.retain(|_, made| made.spent_until > now);
            self.swept = now;
        }
    }

    /// Until when the paths would be spent with this order.
    fn after(&self, now: Timestamp, order: &Order) -> Timestamp {
        let each = HOUR.checked_div(order.paths_per_hour).unwrap_or(HOUR);
        let paths = u32::try_from(order.paths.len()).unwrap_or(u32::MAX);
        let spent = self.paths.get(&key(order)).copied().unwrap_or(now);
        spent.max(now).after(each.saturating_mul(paths))
    }
}

fn key(order: &Order) -> Key {
    (order.subject.namespace().to_owned(), order.distribution.clone())
}

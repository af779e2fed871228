//! What each namespace has had of what all share: creations, in turn, and paths of one distribution in an hour.
//!
//! Not kept across restarts: a new life begins with every budget unspent, and each member of a group has its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::distribution::DistributionId;
use crate::id::Subject;
use crate::machine::Timestamp;
use crate::purge::Order;

/// What paths are counted over.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// When a namespace had its last creation, as a count of creations: one that had none comes first.
pub(super) type Turn = u64;

/// Which namespaces have had creations since nothing waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Turns {
    last: BTreeMap<String, Turn>,
    count: Turn,
}

impl Turns {
    /// The turn that the namespace of this one had last.
    pub(super) fn of(&self, subject: &Subject) -> Turn {
        self.last.get(subject.namespace()).copied().unwrap_or_default()
    }

    /// It has one now.
    pub(super) fn taken(&mut self, subject: &Subject) {
        self.count = self.count.saturating_add(1);
        self.last.insert(subject.namespace().to_owned(), self.count);
    }

    /// It has come to nothing: the namespace, whose turn it was, is the first again.
    pub(super) fn returned(&mut self, subject: &Subject) {
        self.last.remove(subject.namespace());
    }
}

/// Paths that namespaces have sent to distributions: each a token bucket in its "virtual scheduling" form, until when it is spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budgets {
    spent_until: BTreeMap<(String, DistributionId), Timestamp>,
}

impl Budgets {
    /// Whether the namespace of an order has enough paths left.
    pub(super) fn affords(&self, now: Timestamp, order: &Order) -> bool {
        self.after(now, order) <= now.after(HOUR)
    }

    /// An order is sent. One path is sent however much was spent, and never puts off the next hour's.
    pub(super) fn spend(&mut self, now: Timestamp, order: &Order) {
        let after = self.after(now, order).min(now.after(HOUR));
        self.spent_until.insert(key(order), after);
    }

    /// Drops what is full again.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.spent_until.retain(|_, until| *until > now);
    }

    /// Until when it would be spent with this order.
    fn after(&self, now: Timestamp, order: &Order) -> Timestamp {
        let each = HOUR.checked_div(order.paths_per_hour).unwrap_or(HOUR);
        let paths = u32::try_from(order.paths.len()).unwrap_or(u32::MAX);
        let spent = self.spent_until.get(&key(order)).copied().unwrap_or(now);
        spent.max(now).after(each.saturating_mul(paths))
    }
}

fn key(order: &Order) -> (String, DistributionId) {
    (order.subject.namespace().to_owned(), order.distribution.clone())
}

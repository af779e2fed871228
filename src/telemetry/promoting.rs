//! The metrics of Pipelines.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Label, Labels};
use objects::pipeline::proposal::ForgeKind;
use objects::pipeline::status::Phase;

/// What is known of a target.
const STANDINGS: [&str; 4] = ["ready", "not_ready", "absent", "unknown"];

/// How a cluster with targets can be reached.
const LINKS: [&str; 4] = ["up", "troubled", "down", "connecting"];

/// What comes of a call of a forge.
const FORGE_OUTCOMES: [&str; 8] =
    ["open", "nothing_to_change", "closed", "merged", "outdated", "foreign", "withdrawn", "failed"];

/// What Pipelines do, and where they stand.
#[derive(Default)]
pub struct Promotions {
    pipelines: Gauge<i64, AtomicI64>,
    ended: Family<Label, Counter>,
    open: Family<Label, Gauge>,
    targets: Family<Label, Gauge>,
    leaves: Family<Label, Gauge>,
    forge_calls: Family<Labels, Counter>,
}

impl Promotions {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("pipelines", "Pipelines that are attended to", self.pipelines.clone());
        registry.register("promotions", "Promotions that have ended, by outcome", self.ended.clone());
        registry.register("promotions_open", "Promotions that have not ended, by phase", self.open.clone());
        registry.register("targets", "Targets of Pipelines, by what is known of them", self.targets.clone());
        registry.register("leaves", "Clusters with targets of Pipelines, by state", self.leaves.clone());
        registry.register("forge_calls", "Orders to and looks at a forge, by outcome", self.forge_calls.clone());
        for phase in Phase::ALL {
            if phase.is_open() {
                drop(self.open.get_or_create(&[("phase", phase.name())]));
            } else {
                drop(self.ended.get_or_create(&[("outcome", phase.name())]));
            }
        }
        STANDINGS.into_iter().for_each(|name| drop(self.targets.get_or_create(&[("standing", name)])));
        LINKS.into_iter().for_each(|name| drop(self.leaves.get_or_create(&[("state", name)])));
        for forge in ForgeKind::ALL {
            for outcome in FORGE_OUTCOMES {
                drop(self.forge_calls.get_or_create(&[("forge", forge.name()), ("outcome", outcome)]));
            }
        }
    }

    /// How many Pipelines are attended to.
    pub fn pipelines(&self, count: usize) {
        self.pipelines.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A promotion has ended.
    pub fn ended(&self, outcome: Phase) {
        self.ended.get_or_create(&[("outcome", outcome.name())]).inc();
    }

    /// A forge was called, and this came of it.
    pub fn forge_call(&self, forge: ForgeKind, outcome: &'static str) {
        self.forge_calls.get_or_create(&[("forge", forge.name()), ("outcome", outcome)]).inc();
    }

    /// What one Pipeline adds to the open promotions.
    pub fn open(&self) -> Share {
        Share::of(&self.open, "phase")
    }

    /// What one Pipeline adds to the targets.
    pub fn targets(&self) -> Share {
        Share::of(&self.targets, "standing")
    }

    /// What one reader adds to the clusters.
    pub fn leaves(&self) -> Share {
        Share::of(&self.leaves, "state")
    }
}

/// What one actor adds to a metric that many fill. Dropping it takes that back, so a crash leaves nothing behind.
pub struct Share {
    family: Family<Label, Gauge>,
    label: &'static str,
    added: BTreeMap<&'static str, i64>,
}

impl Share {
    pub(super) fn of(family: &Family<Label, Gauge>, label: &'static str) -> Self {
        Self { family: family.clone(), label, added: BTreeMap::new() }
    }

    /// It has these now, each named by its value of the label.
    pub fn set(&mut self, values: impl Iterator<Item = &'static str>) {
        let mut counts: BTreeMap<&'static str, i64> = self.added.keys().map(|value| (*value, 0)).collect();
        for value in values {
            *counts.entry(value).or_default() += 1;
        }
        for (value, count) in &counts {
            let before = self.added.get(value).copied().unwrap_or_default();
            if *count != before {
                self.family.get_or_create(&[(self.label, *value)]).inc_by(count - before);
            }
        }
        counts.retain(|_, count| *count != 0);
        self.added = counts;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(std::iter::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_leave_nothing_behind() {
        let promotions = Promotions::default();
        let seen = |value| promotions.targets.get_or_create(&[("standing", value)]).get();
        let (mut one, mut other) = (promotions.targets(), promotions.targets());
        one.set(["ready", "ready", "absent"].into_iter());
        other.set(["ready", "unknown"].into_iter());
        assert_eq!(["ready", "absent", "unknown"].map(seen), [3, 1, 1]);
        one.set(["ready", "unknown", "unknown"].into_iter());
        assert_eq!(["ready", "absent", "unknown"].map(seen), [2, 0, 3]);
        drop(one);
        assert_eq!(["ready", "absent", "unknown"].map(seen), [1, 0, 1]);
        drop(other);
        assert_eq!(["ready", "absent", "unknown"].map(seen), [0, 0, 0]);
    }
}

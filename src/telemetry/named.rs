//! The names of the workloads that need a look, for whoever an alert wakes. Counts are in `standing`; these are shown beside them, for as
//! many as a person reads, and they end with what has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use kernel::id::WorkloadId;

/// Workloads that are named at once. Those of all namespaces have their turns, so one with many hides no other.
const NAMED_MAX: usize = 100;

/// A workload, and what is the matter with it.
type Trouble = (WorkloadId, &'static str);

/// All of them, each with how many say so.
#[derive(Clone, Debug, Default)]
pub struct Named(Arc<Mutex<BTreeMap<Trouble, usize>>>);

/// What one actor says. Dropping it takes that back.
pub struct Names {
    all: Named,
    own: BTreeSet<Trouble>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    workload: String,
    reason: &'static str,
}

impl Named {
    pub(super) fn names(&self) -> Names {
        Names { all: self.clone(), own: BTreeSet::new() }
    }

    /// Those that are shown: the first of each namespace, then the second of each, and so on.
    fn shown(&self) -> Vec<Labels> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
        let mut in_turn: Vec<(usize, &Trouble)> = Vec::with_capacity(all.len());
        for trouble in all.keys() {
            let turn = turns.entry(trouble.0.namespace.as_str()).or_default();
            in_turn.push((*turn, trouble));
            *turn += 1;
        }
        in_turn.sort();
        let labels = |(_, (workload, reason)): (usize, &Trouble)| Labels { workload: workload.display_name(), reason };
        in_turn.into_iter().take(NAMED_MAX).map(labels).collect()
    }
}

impl Collector for Named {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let words = "1 for each workload that workloads_unwell or workloads_late counts, by name: 100 at most";
        let mut family = encoder.encode_descriptor("workload_trouble", words, None, MetricType::Gauge)?;
        for labels in self.shown() {
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Names {
    /// These are its troubles now.
    pub fn set(&mut self, troubles: impl Iterator<Item = Trouble>) {
        let now: BTreeSet<Trouble> = troubles.collect();
        if now == self.own {
            return;
        }
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        for trouble in &now {
            *all.entry(trouble.clone()).or_default() += 1;
        }
        for trouble in &self.own {
            if let Some(count) = all.get_mut(trouble) {
                *count -= 1;
            }
        }
        all.retain(|_, count| *count > 0);
        drop(all);
        self.own = now;
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.set(std::iter::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(namespace: &str, name: &str) -> WorkloadId {
        WorkloadId::deployment(namespace, name)
    }

    fn shown(named: &Named) -> Vec<String> {
        named.shown().into_iter().map(|labels| format!("{} {}", labels.workload, labels.reason)).collect()
    }

    #[test]
    fn a_workload_is_named_as_long_as_anyone_says_so() {
        let named = Named::default();
        let (mut one, mut other) = (named.names(), named.names());
        one.set([(web("shop", "web"), "owed"), (web("shop", "api"), "failed")].into_iter());
        other.set([(web("shop", "web"), "owed")].into_iter());
        assert_eq!(shown(&named), ["shop/api failed", "shop/web owed"]);
        one.set([(web("shop", "web"), "group")].into_iter());
        assert_eq!(shown(&named), ["shop/web group", "shop/web owed"]);
        drop(other);
        assert_eq!(shown(&named), ["shop/web group"]);
        drop(one);
        assert!(shown(&named).is_empty());
    }

    #[test]
    fn a_namespace_with_many_hides_no_other() {
        let named = Named::default();
        let (mut many, mut one) = (named.names(), named.names());
        many.set((0..1_000).map(|n| (web("a", &format!("web-{n}")), "failed")));
        one.set([(web("z", "web"), "owed")].into_iter());
        let shown = shown(&named);
        assert_eq!((shown.len(), shown[1].as_str()), (100, "z/web owed"));
    }
}

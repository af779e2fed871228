//! How things stand in this replica: whether it works, what it works on, and what needs a look.
//!
//! Only the replica that works says any of it. One that stands by shows 0, so that nothing it knew before keeps an alert alive.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::Label;
use domain::late::Late;
use domain::unwell::Reason;

/// See the module's text.
#[derive(Default)]
pub struct Standing {
    leader: Gauge<i64, AtomicI64>,
    blind: Gauge<i64, AtomicI64>,
    relists: Counter,
    set_backs: Counter,
    workloads: Gauge<i64, AtomicI64>,
    rollouts: Gauge<i64, AtomicI64>,
    quarantined: Gauge<i64, AtomicI64>,
    unwell: Family<Label, Gauge>,
    late: Family<Label, Gauge>,
    deliveries: Gauge<i64, AtomicI64>,
    given_up: Gauge<i64, AtomicI64>,
}

impl Standing {
    pub(super) fn register(&self, registry: &mut Registry) {
        let Self { leader, blind, relists, set_backs, workloads, rollouts, .. } = self;
        let Self { quarantined, unwell, late, deliveries, given_up, .. } = self;
        registry.register("leader", "1 while this replica works: it leads, and its ledger is open", leader.clone());
        registry.register("watch_blind", "1 while changes of workloads are not noticed", blind.clone());
        registry.register("relists", "Times the cluster was listed afresh", relists.clone());
        registry.register("set_backs", "Times the cluster went back, as after a restore", set_backs.clone());
        registry.register("workloads", "Workloads with a record", workloads.clone());
        registry.register("rollouts_in_flight", "Workloads with a rollout machine", rollouts.clone());
        let words = "Workloads that are left alone for a while, because of a crash or of endless writes";
        registry.register("workloads_quarantined", words, quarantined.clone());
        let words = "Workloads whose newest rollout did not end well, by reason";
        registry.register("workloads_unwell", words, unwell.clone());
        let words = "Workloads whose rollout has waited longer than its timeout, by what it waits for";
        registry.register("workloads_late", words, late.clone());
        registry.register("deliveries_pending", "Deliveries on their way, without dead letters", deliveries.clone());
        registry.register("deliveries_given_up", "Deliveries that are kept as dead letters", given_up.clone());
        self.rest();
    }

    /// Whether this replica works. One that does not has nothing to say about the cluster.
    pub fn leads(&self, leads: bool) {
        if !leads {
            self.rest();
        }
        self.leader.set(i64::from(leads));
    }

    /// Whether changes of workloads are not noticed.
    pub fn blind(&self, blind: bool) {
        self.blind.set(i64::from(blind));
    }

    /// The cluster was listed afresh.
    pub fn relist(&self) {
        self.relists.inc();
    }

    /// The cluster was set back.
    pub fn set_back(&self) {
        self.set_backs.inc();
    }

    /// How many workloads have a record, a rollout machine, and a quarantine.
    pub fn workloads(&self, records: usize, rollouts: usize, quarantined: usize) {
        self.workloads.set(many(records));
        self.rollouts.set(many(rollouts));
        self.quarantined.set(many(quarantined));
    }

    /// In what ways the newest rollouts of workloads did not end well.
    pub fn unwell(&self, reasons: impl Iterator<Item = Reason>) {
        count(&self.unwell, Reason::ALL.map(Reason::name), reasons.map(Reason::name));
    }

    /// What rollouts have waited for too long.
    pub fn late(&self, late: impl Iterator<Item = Late>) {
        count(&self.late, Late::ALL.map(Late::name), late.map(Late::name));
    }

    /// How many deliveries are on their way, and how many were given up.
    pub fn deliveries(&self, pending: usize, given_up: usize) {
        self.deliveries.set(many(pending));
        self.given_up.set(many(given_up));
    }

    fn rest(&self) {
        self.blind(false);
        self.workloads(0, 0, 0);
        self.unwell(std::iter::empty());
        self.late(std::iter::empty());
        self.deliveries(0, 0);
    }
}

fn many(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Sets each of the reasons to how often it was found.
fn count<const N: usize>(
    family: &Family<Label, Gauge>,
    all: [&'static str; N],
    found: impl Iterator<Item = &'static str>,
) {
    let mut counts = all.map(|reason| (reason, 0));
    for name in found {
        counts.iter_mut().filter(|(reason, _)| *reason == name).for_each(|(_, count)| *count += 1);
    }
    for (reason, count) in counts {
        family.get_or_create(&[("reason", reason)]).set(count);
    }
}

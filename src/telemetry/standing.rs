//! How things stand in this replica: whether it works, what it works on, and what needs a look.
//!
//! Only the replica that works says any of it. One that stands by shows 0, so that nothing it knew before keeps an alert alive.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::Label;
use super::named::{Named, Names};
use super::promoting::Share;
use kernel::id::WorkloadId;
use purge::records::late::{Late, late};
use purge::records::record::Record;
use purge::rollouts::unwell::{self, Reason, Unwell};

/// See the module's text.
#[derive(Default)]
pub struct Standing {
    leader: Gauge<i64, AtomicI64>,
    blind: Gauge<i64, AtomicI64>,
    unlisted: Gauge<i64, AtomicI64>,
    relists: Counter,
    set_backs: Counter,
    workloads: Gauge<i64, AtomicI64>,
    rollouts: Gauge<i64, AtomicI64>,
    quarantined: Gauge<i64, AtomicI64>,
    unwell: Family<Label, Gauge>,
    late: Family<Label, Gauge>,
    named: Named,
    deliveries: Gauge<i64, AtomicI64>,
    given_up: Gauge<i64, AtomicI64>,
}

impl Standing {
    pub(super) fn register(&self, registry: &mut Registry) {
        let Self { leader, blind, relists, set_backs, workloads, rollouts, .. } = self;
        let Self { quarantined, unwell, late, deliveries, given_up, .. } = self;
        registry.register("leader", "1 while this replica works: it leads, and its ledger is open", leader.clone());
        registry.register("watch_blind", "1 while changes of workloads are not noticed", blind.clone());
        let words = "1 while the newest listing of distributions has failed";
        registry.register("distributions_unlisted", words, self.unlisted.clone());
        registry.register_collector(Box::new(self.named.clone()));
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
        Reason::ALL.into_iter().for_each(|reason| drop(unwell.get_or_create(&[("reason", reason.name())])));
        Late::ALL.into_iter().for_each(|reason| drop(late.get_or_create(&[("reason", reason.name())])));
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

    /// Whether the newest listing of distributions has failed.
    pub fn unlisted(&self, unlisted: bool) {
        self.unlisted.set(i64::from(unlisted));
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

    /// What the workloads at rest add to those whose newest rollout did not end well.
    pub fn unwell(&self) -> AtRest {
        AtRest { share: Share::of(&self.unwell, "reason"), names: self.named.names() }
    }

    /// What one workload in flight adds.
    pub fn in_flight(&self) -> InFlight {
        let shares = (Share::of(&self.unwell, "reason"), Share::of(&self.late, "reason"));
        InFlight { unwell: None, shares, names: self.named.names() }
    }

    /// How many deliveries are on their way, and how many were given up.
    pub fn deliveries(&self, pending: usize, given_up: usize) {
        self.deliveries.set(many(pending));
        self.given_up.set(many(given_up));
    }

    /// Those that are counted by shares end with the actors that have them.
    fn rest(&self) {
        self.blind(false);
        self.unlisted(false);
        self.workloads(0, 0, 0);
        self.deliveries(0, 0);
    }
}

/// The workloads at rest whose newest rollout did not end well. Dropping it takes them out of the metrics.
pub struct AtRest {
    share: Share,
    names: Names,
}

impl AtRest {
    /// It is these now, each for its reason.
    pub fn set(&mut self, unwell: impl Iterator<Item = (WorkloadId, Reason)> + Clone) {
        self.share.set(unwell.clone().map(|(_, reason)| reason.name()));
        self.names.set(unwell.map(|(workload, reason)| (workload, reason.name())));
    }
}

/// How the newest rollout of a workload in flight stands. Dropping it takes that out of the metrics.
pub struct InFlight {
    unwell: Option<Unwell>,
    shares: (Share, Share),
    names: Names,
}

impl InFlight {
    /// The record is this now. How the rollout before ended counts until the newest one has ended.
    pub fn set(&mut self, workload: &WorkloadId, record: &Record) {
        self.unwell = unwell::unwell(workload, record).or(self.unwell.take().filter(|_| record.is_open()));
        let (unwell, waits) = &mut self.shares;
        unwell.set(self.unwell.iter().map(|unwell| unwell.reason.name()));
        let late = late(record).map(Late::name);
        waits.set(late.into_iter());
        let reasons = self.unwell.iter().map(|unwell| unwell.reason.name()).chain(late);
        self.names.set(reasons.map(|reason| (workload.clone(), reason)));
    }

    /// How it stands, in words; `None` where it is well.
    pub const fn unwell(&self) -> Option<&Unwell> {
        self.unwell.as_ref()
    }
}

fn many(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::Seq;
    use purge::records::record::{Change, Failure, Phase};

    #[test]
    fn a_failure_counts_until_the_next_rollout_has_ended_and_a_wait_until_it_is_over() {
        let standing = Standing::default();
        let unwell = || standing.unwell.get_or_create(&[("reason", "failed")]).get();
        let waits = || standing.late.get_or_create(&[("reason", "group")]).get();
        let failed = Record { phase: Phase::Failed(Failure::TimedOut), ..Record::first(Seq(4)) };
        let rolling =
            Record { phase: Phase::Rolling, change: Change::Changed, closed: Seq(4), ..Record::first(Seq(5)) };
        let stalled = Record { phase: Phase::Complete, stalled: true, ..rolling.clone() };
        let mut counted = standing.in_flight();
        let mut seen = |record: &Record| {
            counted.set(&WorkloadId::deployment("shop", "web"), record);
            (unwell(), waits())
        };
        assert_eq!(seen(&failed), (1, 0));
        assert_eq!(seen(&rolling), (1, 0), "the next one has not ended");
        assert_eq!(seen(&stalled), (1, 1), "it waits for others");
        let text = |metrics: &Standing| {
            let mut registry = Registry::default();
            metrics.register(&mut registry);
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
            text.lines().filter(|line| line.starts_with("workload_trouble{")).map(str::to_owned).collect::<Vec<_>>()
        };
        let named =
            ["failed", "group"].map(|why| format!("workload_trouble{{workload=\"shop/web\",reason=\"{why}\"}} 1"));
        assert_eq!(text(&standing), named);
        assert_eq!(seen(&Record::first(Seq(5))), (0, 0), "it is at rest");
        assert_eq!(seen(&failed), (1, 0));
        drop(counted);
        assert_eq!((unwell(), waits()), (0, 0));
        assert!(text(&standing).is_empty());
    }
}

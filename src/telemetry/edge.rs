//! The metrics of purges: what was sent, how fast, when an edge was last purged and how long that took; and of looks at the edge.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::caches::Caches;
use super::labels::{ByAccount, ByDistribution, ByNamespace, Label};
use kernel::id::Seq;
use kernel::names::account::AccountName;
use kernel::names::distribution::DistributionId;
use notices::notice::{Kind, Notice};
use purge::purges::bill::Book;

/// From one second to four hours. An invalidation takes seconds to minutes; in a group the other clusters come first.
const FRESH_BUCKETS: [f64; 12] = [1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1_800.0, 3_600.0, 14_400.0];

/// The outcomes of a question to the edge.
const ANSWERED: &str = "answered";
const FAILED: &str = "failed";

/// What is asked of CloudFront, and what comes of it.
pub struct Edge {
    paths: Family<ByNamespace, Counter>,
    month: Family<ByAccount, Gauge>,
    saved: Family<ByAccount, Gauge>,
    budget: Gauge,
    pace: Gauge<f64, AtomicU64>,
    purged: Family<ByDistribution, Gauge>,
    fresh: Histogram,
    waiting: Gauge,
    questions: Family<Label, Counter>,
    pub caches: Caches,
}

impl Default for Edge {
    fn default() -> Self {
        Self {
            paths: Family::default(),
            month: Family::default(),
            saved: Family::default(),
            budget: Gauge::default(),
            pace: Gauge::default(),
            purged: Family::default(),
            fresh: Histogram::new(FRESH_BUCKETS),
            waiting: Gauge::default(),
            questions: Family::default(),
            caches: Caches::default(),
        }
    }
}

impl Edge {
    pub(super) fn register(&self, registry: &mut Registry) {
        let words = "Paths sent to CloudFront, which bills each, by the namespace they were sent for";
        registry.register("purged_paths", words, self.paths.clone());
        let words = "Paths that CloudFront accepted from us in this calendar month (UTC), by AWS account; the first 1000 of an account are free";
        registry.register("month_paths", words, self.month.clone());
        let words =
            "Paths that were not sent in this calendar month, because another purge covered them, by AWS account";
        registry.register("month_saved_paths", words, self.saved.clone());
        registry.register(
            "month_paths_budget",
            "Paths of a month that purge.budget allows in each AWS account; 0: no budget",
            self.budget.clone(),
        );
        let words = "Purges a second that CloudFront grants us, as far as we know: what we create when more wait";
        registry.register("creations_per_second", words, self.pace.clone());
        let words = "When an invalidation of a distribution was last seen completed, in seconds since the Unix epoch; 0 before that";
        registry.register("last_purge_timestamp_seconds", words, self.purged.clone());
        let words = "From the completion of a rollout in this cluster to its last purge";
        registry.register("rollout_fresh_seconds", words, self.fresh.clone());
        registry.register(
            "edge_questions_waiting",
            "Questions to the edge that wait for their turn",
            self.waiting.clone(),
        );
        registry.register("edge_questions", "Questions to the edge, by outcome", self.questions.clone());
        self.caches.register(registry);
        for outcome in [ANSWERED, FAILED] {
            drop(self.questions.get_or_create(&[("outcome", outcome)]));
        }
    }

    /// Paths are sent for a workload of this namespace.
    pub fn sent(&self, namespace: &str, distribution: &DistributionId, paths: usize) {
        let paths = u64::try_from(paths).unwrap_or(u64::MAX);
        self.paths.get_or_create(&ByNamespace { namespace: namespace.to_owned() }).inc_by(paths);
        drop(self.purged.get_or_create(&ByDistribution { distribution: distribution.to_string() }));
    }

    /// What was purged this month in these accounts.
    pub fn billed<'a>(&self, book: &'a Book, accounts: impl Iterator<Item = &'a AccountName>, budget: u64) {
        let shown = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.budget.set(shown(budget));
        for name in accounts.chain(book.accounts.keys()) {
            let sum = book.accounts.get(name).copied().unwrap_or_default();
            let account = ByAccount { account: name.to_string() };
            self.month.get_or_create(&account).set(shown(sum.paths));
            self.saved.get_or_create(&account).set(shown(sum.saved));
        }
    }

    /// An invalidation of this distribution is complete, at this time of the wall's clock.
    pub fn purged(&self, distribution: &DistributionId, wall_ms: i64) {
        self.purged.get_or_create(&ByDistribution { distribution: distribution.to_string() }).set(wall_ms / 1_000);
    }

    /// How many purges are created a second when more wait, in thousandths.
    pub fn pace(&self, thousandths: u32) {
        self.pace.set(f64::from(thousandths) / 1_000.0);
    }

    /// So many questions wait for their turn.
    pub fn waiting(&self, questions: usize) {
        self.waiting.set(i64::try_from(questions).unwrap_or(i64::MAX));
    }

    /// The edge was asked a question. It failed where the last answer is missing, or leads to elsewhere.
    pub fn asked(&self, failed: bool) {
        self.questions.get_or_create(&[("outcome", if failed { FAILED } else { ANSWERED })]).inc();
    }

    /// The edge was purged, so long after the rollout was complete in this cluster.
    pub fn fresh(&self, after: Duration) {
        self.fresh.observe(after.as_secs_f64());
    }
}

/// When the rollouts of one workload became complete, by the clock of their notices, until their edges are purged. What an earlier life began is not in it, so a
/// restart makes a measurement missing and never wrong.
#[derive(Default)]
pub struct Stopwatch {
    completed: BTreeMap<Seq, i64>,
}

impl Stopwatch {
    /// Takes in a notice when it is first sent. Returns how long the edge was old, if it is purged now.
    pub fn hear(&mut self, notice: &Notice) -> Option<Duration> {
        match notice.kind {
            Kind::RolloutCompleted => {
                self.completed.insert(notice.seq, notice.at_ms);
                None
            }
            Kind::PurgeCompleted if !notice.is_of_dry_run() => {
                let completed = self.completed.remove(&notice.seq)?;
                // What came before it was overtaken, and is never measured.
                self.completed.retain(|seq, _| *seq > notice.seq);
                Some(Duration::from_millis(u64::try_from(notice.at_ms.saturating_sub(completed)).unwrap_or_default()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(at_ms: i64, kind: Kind, seq: u64) -> Notice {
        let about = kernel::id::WorkloadId::deployment("shop", "web").into();
        let (rollout, change, message) = (String::new(), String::new(), String::new());
        Notice { id: Notice::id_of("r", kind, ""), kind, at_ms, about, seq: Seq(seq), rollout, change, message }
    }

    #[test]
    fn each_rollout_is_measured_from_its_own_completion_and_never_from_another_one() {
        let mut watch = Stopwatch::default();
        let mut hear = |ms, kind, seq| watch.hear(&notice(ms, kind, seq));
        assert_eq!(hear(1_000, Kind::RolloutCompleted, 2), None);
        assert_eq!(hear(2_000, Kind::PurgeStarted, 2), None);
        assert_eq!(hear(3_000, Kind::RolloutCompleted, 3), None, "the next one, before the purge of this one");
        assert_eq!(hear(9_000, Kind::PurgeCompleted, 2), Some(Duration::from_secs(8)));
        assert_eq!(hear(10_000, Kind::PurgeCompleted, 3), Some(Duration::from_secs(7)));
        assert_eq!(hear(11_000, Kind::PurgeCompleted, 4), None, "it was complete before this life");
    }
}

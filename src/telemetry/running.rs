//! The metrics of Repos.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::{Label, Labels};
use super::promoting::Share;
use objects::repo::remark::EndedAttempt;
use objects::repo::status::{Action, Phase};

/// From ten seconds to four hours: a plan takes a minute, and an apply as long as it takes to make a database.
const SECONDS_BUCKETS: [f64; 8] = [10.0, 30.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0, 14_400.0];

/// From what a timer is late by to ten minutes; the aim is five seconds.
const LATENESS_BUCKETS: [f64; 10] = [0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 600.0];

/// What a run can become by the end of a Job.
const OUTCOMES: [Phase; 5] = [Phase::Succeeded, Phase::Planned, Phase::Waiting, Phase::Failed, Phase::Lost];

/// What looks at drift may have found.
const DRIFT: [&str; 3] = ["drifted", "in_sync", "unknown"];

/// What Repos do, and where they stand.
pub struct Runs {
    repos: Gauge<i64, AtomicI64>,
    ended: Family<Labels, Counter>,
    open: Family<Label, Gauge>,
    drift: Family<Label, Gauge>,
    seconds: Family<Label, Histogram, fn() -> Histogram>,
    looks: Family<Label, Counter>,
    lateness: Histogram,
    comparisons: Family<Label, Counter>,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            repos: Gauge::default(),
            ended: Family::default(),
            open: Family::default(),
            drift: Family::default(),
            seconds: Family::new_with_constructor((|| Histogram::new(SECONDS_BUCKETS)) as fn() -> Histogram),
            looks: Family::default(),
            lateness: Histogram::new(LATENESS_BUCKETS),
            comparisons: Family::default(),
        }
    }
}

impl Runs {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("repos", "Repos that are attended to", self.repos.clone());
        registry.register("runs", "Jobs of runs that have ended, by what became of their run", self.ended.clone());
        registry.register("runs_open", "Runs that have not ended, by phase", self.open.clone());
        let words = "Repos that look for drift, by what the looks at what is applied have found";
        registry.register("repos_drift", words, self.drift.clone());
        DRIFT.into_iter().for_each(|state| drop(self.drift.get_or_create(&[("state", state)])));
        registry.register("run_seconds", "From the order of a Job to its end", self.seconds.clone());
        registry.register("git_looks", "Looks for the wanted commit of a Repo, by outcome", self.looks.clone());
        let words = "How late a look for the wanted commit began after it was due";
        registry.register("git_look_lateness_seconds", words, self.lateness.clone());
        let words = "Comparisons of a wanted commit with the applied one, by outcome";
        registry.register("git_comparisons", words, self.comparisons.clone());
        let outcomes = ["unchanged", "changed", "failed"].into_iter();
        outcomes.for_each(|name| drop(self.comparisons.get_or_create(&[("outcome", name)])));
        for action in Action::ALL {
            drop(self.seconds.get_or_create(&[("action", action.name())]));
            for outcome in OUTCOMES {
                drop(self.ended.get_or_create(&[("action", action.name()), ("outcome", outcome.name())]));
            }
        }
        let open = Phase::ALL.into_iter().filter(|phase| phase.is_open());
        open.for_each(|phase| drop(self.open.get_or_create(&[("phase", phase.name())])));
        ["found", "failed"].into_iter().for_each(|name| drop(self.looks.get_or_create(&[("outcome", name)])));
    }

    /// How many Repos are attended to.
    pub fn repos(&self, count: usize) {
        self.repos.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A Job has ended, and this became of its run.
    pub fn ended(&self, ended: &EndedAttempt) {
        let action = ended.action.name();
        self.ended.get_or_create(&[("action", action), ("outcome", ended.outcome.name())]).inc();
        if let Some(took_ms) = ended.took_ms {
            let took = std::time::Duration::from_millis(took_ms);
            self.seconds.get_or_create(&[("action", action)]).observe(took.as_secs_f64());
        }
    }

    /// Git was asked, and this came of it.
    pub fn looked(&self, outcome: &'static str) {
        self.looks.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Two commits were compared, and this came of it.
    pub fn compared(&self, outcome: &'static str) {
        self.comparisons.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A look at git has begun so late.
    pub fn began_looking(&self, late: std::time::Duration) {
        self.lateness.observe(late.as_secs_f64());
    }

    /// What one Repo adds to those that look for drift.
    pub fn drift(&self) -> Share {
        Share::of(&self.drift, "state")
    }

    /// What one Repo adds to the open runs.
    pub fn open(&self) -> Share {
        Share::of(&self.open, "phase")
    }
}

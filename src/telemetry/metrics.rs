//! Every metric: its name, unit, labels and help, in one place. Labels come from closed sets only.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::chronicle::Chronicle;
use super::promoting::Promotions;
use super::running::Runs;
use domain::notice::{Notice, Severity};
use domain::promise::Promise;
use domain::roster;
use domain::unwell::Reason;

/// A label set of one static word.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByKind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByEnd {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByPromise {
    promise: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByEffect {
    machine: &'static str,
    effect: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByActor {
    actor: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByOperation {
    operation: &'static str,
}

/// The address of a Redis. There are as many as are configured, 33 at most.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByBoard {
    board: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByCall {
    board: String,
    call: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByReason {
    board: String,
    call: &'static str,
    reason: &'static str,
}

/// The namespace of a workload. There are as many as are watched and purge.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByNamespace {
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByHold {
    reason: &'static str,
}

/// A connection to one of our doors that was closed for want of places.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByDoor {
    door: &'static str,
    bound: &'static str,
    closed: &'static str,
}

/// A request at one of the endpoints for other programs. A code is one of a dozen.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByAnswer {
    door: &'static str,
    code: u16,
}

/// Upper bounds in seconds: a loopback write to half a minute, doubling.
const SECONDS_BUCKETS: [f64; 14] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0];

/// All metrics of the process.
pub struct Metrics {
    registry: Mutex<Registry>,
    notices: Family<ByKind, Counter>,
    effects: Family<ByEffect, Counter>,
    failures: Family<ByOperation, Counter>,
    broken_promises: Family<ByPromise, Counter>,
    restarts: Family<ByActor, Counter>,
    overflows: Family<ByActor, Counter>,
    seconds: Family<ByOperation, Histogram, fn() -> Histogram>,
    workloads: Gauge<i64, AtomicI64>,
    rollouts: Gauge<i64, AtomicI64>,
    deliveries: Gauge<i64, AtomicI64>,
    quarantined: Gauge<i64, AtomicI64>,
    unwell: Family<ByEnd, Gauge>,
    watching: Watching,
    /// Those of Pipelines.
    pub promotions: Promotions,
    /// Those of Repos.
    pub runs: Runs,
    board_calls: Family<ByCall, Counter>,
    board_failures: Family<ByReason, Counter>,
    board_rejections: Family<ByBoard, Counter>,
    board_answered: Family<ByBoard, Gauge>,
    held: Family<ByHold, Gauge>,
    purging: Purging,
    doors: Doors,
    /// What was told of workloads lately, with times.
    pub chronicle: Chronicle,
}

/// What happens at our own doors.
#[derive(Default)]
struct Doors {
    connections: Family<ByDoor, Counter>,
    requests: Family<ByAnswer, Counter>,
}

impl Doors {
    fn register(&self, registry: &mut Registry) {
        let Self { connections, requests } = self;
        registry.register("http_connections_closed", "Connections closed for want of places", connections.clone());
        registry.register("hook_requests", "Requests of other programs, by endpoint and answer", requests.clone());
    }
}

/// How the watches of workloads go.
#[derive(Default)]
struct Watching {
    relists: Counter<u64, AtomicU64>,
    set_backs: Counter<u64, AtomicU64>,
    blind: Gauge<i64, AtomicI64>,
}

impl Watching {
    fn register(&self, registry: &mut Registry) {
        registry.register("relists", "Times the cluster was listed afresh", self.relists.clone());
        registry.register("set_backs", "Times the cluster went back, as after a restore", self.set_backs.clone());
        registry.register("watch_blind", "1 while changes of workloads are not noticed", self.blind.clone());
    }
}

/// What is asked of CloudFront.
#[derive(Default)]
struct Purging {
    paths: Family<ByNamespace, Counter>,
    pace: Gauge<f64, AtomicU64>,
}

impl Purging {
    fn register(&self, registry: &mut Registry) {
        let words = "Paths sent to CloudFront, which bills each, by the namespace they were sent for";
        registry.register("purged_paths", words, self.paths.clone());
        let words = "Purges a second that CloudFront grants us, as far as we know: what we create when more wait";
        registry.register("creations_per_second", words, self.pace.clone());
    }
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS_BUCKETS)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("allclear");
        let metrics = Self {
            notices: Family::default(),
            effects: Family::default(),
            failures: Family::default(),
            broken_promises: Family::default(),
            restarts: Family::default(),
            overflows: Family::default(),
            seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            workloads: Gauge::default(),
            rollouts: Gauge::default(),
            deliveries: Gauge::default(),
            quarantined: Gauge::default(),
            unwell: Family::default(),
            watching: Watching::default(),
            promotions: Promotions::default(),
            runs: Runs::default(),
            board_calls: Family::default(),
            board_failures: Family::default(),
            board_rejections: Family::default(),
            board_answered: Family::default(),
            held: Family::default(),
            purging: Purging::default(),
            doors: Doors::default(),
            chronicle: Chronicle::default(),
            registry: Mutex::new(Registry::default()),
        };
        let Self {
            registry: _,
            notices,
            effects,
            failures,
            broken_promises,
            restarts,
            overflows,
            seconds,
            workloads,
            rollouts,
            deliveries,
            // These are registered together.
            quarantined: _,
            unwell: _,
            watching: _,
            promotions: _,
            runs: _,
            board_calls: _,
            board_failures: _,
            board_rejections: _,
            board_answered: _,
            held: _,
            purging: _,
            doors: _,
            // Of workloads by name, which are no labels.
            chronicle: _,
        } = &metrics;
        registry.register("notices", "Transitions told, by kind", notices.clone());
        registry.register("effects", "Effects performed, by machine and effect", effects.clone());
        registry.register("failures", "Failed calls to the outside, by operation", failures.clone());
        let words = "Promises of ARCHITECTURE.md that were broken: each is a defect of allclear";
        registry.register("broken_promises", words, broken_promises.clone());
        registry.register("restarts", "Actors rebuilt after a crash", restarts.clone());
        registry.register("mailbox_overflows", "Messages refused by a full mailbox", overflows.clone());
        registry.register("operation_seconds", "Time of calls to the outside", seconds.clone());
        registry.register("workloads", "Workloads with a record", workloads.clone());
        registry.register("rollouts_in_flight", "Workloads with a rollout machine", rollouts.clone());
        registry.register("deliveries_pending", "Deliveries on their way, without dead letters", deliveries.clone());
        metrics.register_parts(&mut registry);
        Self { registry: Mutex::new(registry), ..metrics }
    }
}

impl Metrics {
    /// Those of workloads that are not well, of the doors, of the watches, of Pipelines, and of the group and its boards.
    fn register_parts(&self, registry: &mut Registry) {
        let words = "Workloads that are left alone for a while, because of a crash or of endless writes";
        registry.register("workloads_quarantined", words, self.quarantined.clone());
        registry.register(
            "workloads_unwell",
            "Workloads whose newest rollout did not end well, by reason",
            self.unwell.clone(),
        );
        self.doors.register(registry);
        self.watching.register(registry);
        self.purging.register(registry);
        self.promotions.register(registry);
        self.runs.register(registry);
        let Self { board_calls, board_failures, board_rejections, board_answered, held, .. } = self;
        registry.register("board_calls", "Calls to a Redis of the group that were answered", board_calls.clone());
        registry.register("board_failures", "Calls to a Redis of the group that failed", board_failures.clone());
        registry.register("board_rejections", "Copies of records that were not believed", board_rejections.clone());
        registry.register(
            "board_answered_timestamp_seconds",
            "When a Redis of the group last answered, in seconds since the Unix epoch",
            board_answered.clone(),
        );
        registry.register("group_held", "Whether the group is held up, 1 or 0, by reason", held.clone());
    }

    /// A transition: one line, as severe as it is, and one count. Told again after a restart, it is logged again.
    pub fn notice(&self, notice: &Notice) {
        self.notices.get_or_create(&ByKind { kind: notice.kind.name() }).inc();
        let purges: Vec<String> = notice.purges.iter().map(|purge| purge.distribution.to_string()).collect();
        // A level is part of what the macro makes at compile time.
        macro_rules! line {
            ($level:ident) => {
                tracing::event!(
                    tracing::Level::$level,
                    kind = notice.kind.name(),
                    workload = %notice.subject.display_name(),
                    seq = notice.seq.0,
                    rollout = %notice.rollout,
                    change = %notice.change,
                    message = %notice.message,
                    distributions = %purges.join(","),
                )
            };
        }
        match notice.kind.severity() {
            Severity::Info => line!(INFO),
            Severity::Warn => line!(WARN),
            Severity::Error => line!(ERROR),
        }
    }

    /// An effect handed to the outside.
    pub fn effect(&self, machine: &'static str, effect: &'static str) {
        self.effects.get_or_create(&ByEffect { machine, effect }).inc();
    }

    /// A call to the outside that failed.
    pub fn failure(&self, operation: &'static str) {
        self.failures.get_or_create(&ByOperation { operation }).inc();
    }

    /// A promise was broken. One that is broken again and again is logged the first time, the second, the fourth, the eighth and so on.
    pub fn broken_promise(&self, promise: Promise) {
        let times = self.broken_promises.get_or_create(&ByPromise { promise: promise.id() }).inc() + 1;
        if times.is_power_of_two() {
            tracing::error!(
                promise = promise.words(),
                times,
                "allclear has broken a promise. This is a defect of allclear: please report it, with the log up to this line"
            );
        }
    }

    /// A call to the outside that took this long, however it ended.
    pub fn took(&self, operation: &'static str, time: Duration) {
        self.seconds.get_or_create(&ByOperation { operation }).observe(time.as_secs_f64());
    }

    /// An actor was rebuilt.
    pub fn restart(&self, actor: &'static str) {
        self.restarts.get_or_create(&ByActor { actor }).inc();
    }

    /// A connection to a door was closed, because its peer (`peer`) or all (`all`) had as many as they may: one that was `idle`,
    /// or, where none was, the `new` one.
    pub fn connection_closed(&self, door: &'static str, bound: &'static str, closed: &'static str) {
        self.doors.connections.get_or_create(&ByDoor { door, bound, closed }).inc();
    }

    /// A request of another program was answered.
    pub fn hook_request(&self, door: &'static str, code: u16) {
        self.doors.requests.get_or_create(&ByAnswer { door, code }).inc();
    }

    /// A mailbox was full.
    pub fn overflow(&self, actor: &'static str) {
        self.overflows.get_or_create(&ByActor { actor }).inc();
    }

    /// The cluster was listed afresh.
    pub fn relist(&self) {
        self.watching.relists.inc();
    }

    /// The cluster was set back.
    pub fn set_back(&self) {
        self.watching.set_backs.inc();
    }

    /// Whether changes of workloads are not noticed.
    pub fn blind(&self, blind: bool) {
        self.watching.blind.set(i64::from(blind));
    }

    /// A call to a Redis of the group that ended now: it failed for this reason, or was answered, at this
    /// time of the wall's clock.
    pub fn board(&self, board: &str, call: &'static str, failed: Option<&'static str>, wall_ms: i64) {
        let board = board.to_owned();
        match failed {
            Some(reason) => drop(self.board_failures.get_or_create(&ByReason { board, call, reason }).inc()),
            None => {
                self.board_calls.get_or_create(&ByCall { board: board.clone(), call }).inc();
                self.board_answered.get_or_create(&ByBoard { board }).set(wall_ms / 1_000);
            }
        }
    }

    /// Paths were sent for a workload of this namespace.
    pub fn sent_paths(&self, namespace: &str, paths: usize) {
        let paths = u64::try_from(paths).unwrap_or(u64::MAX);
        self.purging.paths.get_or_create(&ByNamespace { namespace: namespace.to_owned() }).inc_by(paths);
    }

    /// How many purges are created a second when more wait, in thousandths.
    pub fn pace(&self, thousandths: u32) {
        self.purging.pace.set(f64::from(thousandths) / 1_000.0);
    }

    /// Whether the group is held up for this reason.
    pub fn held(&self, reason: roster::Reason, held: bool) {
        self.held.get_or_create(&ByHold { reason: reason.name() }).set(i64::from(held));
    }

    /// Copies on a Redis of the group that were not believed.
    pub fn board_rejected(&self, board: &str, copies: usize) {
        let rejections = self.board_rejections.get_or_create(&ByBoard { board: board.to_owned() });
        rejections.inc_by(u64::try_from(copies).unwrap_or(u64::MAX));
    }

    /// How many workloads have a record, a rollout machine, and a quarantine.
    pub fn workloads(&self, records: usize, rollouts: usize, quarantined: usize) {
        self.workloads.set(i64::try_from(records).unwrap_or(i64::MAX));
        self.rollouts.set(i64::try_from(rollouts).unwrap_or(i64::MAX));
        self.quarantined.set(i64::try_from(quarantined).unwrap_or(i64::MAX));
    }

    /// In what ways the newest rollouts of workloads did not end well.
    pub fn unwell(&self, reasons: impl Iterator<Item = Reason>) {
        let mut counts = Reason::ALL.map(|reason| (reason, 0));
        for found in reasons {
            counts.iter_mut().filter(|(reason, _)| *reason == found).for_each(|(_, count)| *count += 1);
        }
        for (reason, count) in counts {
            self.unwell.get_or_create(&ByEnd { reason: reason.name() }).set(count);
        }
    }

    /// How many deliveries are on their way.
    pub fn deliveries(&self, pending: usize) {
        self.deliveries.set(i64::try_from(pending).unwrap_or(i64::MAX));
    }

    /// Everything, in the OpenMetrics text form.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Ok(registry) = self.registry.lock() {
            // Writing to a string cannot fail.
            let _ = encode(&mut text, &registry);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_of_metrics_has_every_one_that_is_shown_from_the_start() {
        let text = Metrics::default().text();
        let names = text.lines().filter_map(|line| {
            let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
            Some(if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
        });
        let rows = include_str!("../../docs/metrics.md").lines().filter(|line| line.starts_with("| `allclear_"));
        let cells = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split('`'));
        let documented: BTreeSet<String> =
            cells.filter(|word| word.starts_with("allclear_")).map(str::to_owned).collect();
        let names: BTreeSet<String> = names.collect();
        assert!(names.contains("allclear_git_look_lateness_seconds"), "{names:?}");
        assert_eq!(names.difference(&documented).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    #[test]
    fn the_lateness_of_looks_is_shown_from_the_start() {
        let metrics = Metrics::default();
        assert!(metrics.text().contains("\nallclear_git_look_lateness_seconds_count 0\n"), "{}", metrics.text());
        metrics.runs.began_looking(Duration::from_millis(700));
        for line in ["_sum 0.7", "_bucket{le=\"0.5\"} 0", "_bucket{le=\"1.0\"} 1"] {
            let line = format!("\nallclear_git_look_lateness_seconds{line}\n");
            assert!(metrics.text().contains(&line), "{line} is not in {}", metrics.text());
        }
    }
}

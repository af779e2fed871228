//! Every metric of this program, together. Each has its name, unit, labels and help in one place, here or in a file beside. Labels
//! come from closed sets (`labels`), and what can be shown from the start is.

use std::time::Duration;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::boards::Boards;
use super::chronicle::Chronicle;
use super::doors::Doors;
use super::edge::Edge;
use super::exposition::Form;
use super::figures::Figures;
use super::labels::{BOARD_CALLS, EFFECTS, FAILURES, JUDGED, Label, Labels, MAILBOXES, REBUILT, TIMED};
use super::process;
use super::promoting::Promotions;
use super::running::Runs;
use super::standing::Standing;
use super::traces::Traces;
use kernel::promise::Promise;
use notices::delivery::Outcome;
use notices::notice::{Kind, Notice, Severity};

/// Upper bounds in seconds: a loopback write to half a minute, doubling.
const SECONDS_BUCKETS: [f64; 14] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0];

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    notices: Family<Label, Counter>,
    effects: Family<Labels, Counter>,
    failures: Family<Label, Counter>,
    broken_promises: Family<Label, Counter>,
    restarts: Family<Label, Counter>,
    overflows: Family<Label, Counter>,
    seconds: Family<Label, Histogram, fn() -> Histogram>,
    webhooks: Family<Label, Counter>,
    /// How things stand in this replica.
    pub standing: Standing,
    pub edge: Edge,
    /// Those of the group.
    pub boards: Boards,
    /// Those of our own doors.
    pub doors: Doors,
    pub promotions: Promotions,
    pub runs: Runs,
    pub figures: Figures,
    /// Recent notices of workloads, with times.
    pub chronicle: Chronicle,
    /// The spans that wait to be exported.
    pub traces: Traces,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS_BUCKETS)
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            notices: Family::default(),
            effects: Family::default(),
            failures: Family::default(),
            broken_promises: Family::default(),
            restarts: Family::default(),
            overflows: Family::default(),
            seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            webhooks: Family::default(),
            standing: Standing::default(),
            edge: Edge::default(),
            boards: Boards::default(),
            doors: Doors::default(),
            promotions: Promotions::default(),
            runs: Runs::default(),
            figures: Figures::default(),
            chronicle: Chronicle::default(),
            traces: Traces::default(),
        };
        let mut registry = Registry::with_prefix("allclear");
        metrics.register(&mut registry);
        metrics.begin();
        Self { registry, ..metrics }
    }
}

impl Metrics {
    fn register(&self, registry: &mut Registry) {
        let Self { notices, effects, failures, broken_promises, restarts, overflows, seconds, webhooks, .. } = self;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The version of allclear that runs", Info::new(version));
        registry.register("notices", "Transitions told, by kind", notices.clone());
        registry.register("effects", "Effects performed, by machine and effect", effects.clone());
        registry.register("failures", "Failed calls to the outside, by operation", failures.clone());
        let words = "Promises of docs/internals/promises.md that were broken: each is a defect of allclear";
        registry.register("broken_promises", words, broken_promises.clone());
        registry.register("restarts", "Actors rebuilt after a crash", restarts.clone());
        registry.register("mailbox_overflows", "Messages refused by a full mailbox", overflows.clone());
        registry.register("operation_seconds", "Time of calls to the outside", seconds.clone());
        registry.register("webhook_results", "What came of attempts to deliver webhooks", webhooks.clone());
        self.standing.register(registry);
        self.edge.register(registry);
        self.boards.register(registry);
        self.doors.register(registry);
        self.promotions.register(registry);
        self.runs.register(registry);
        self.figures.register(registry);
        self.traces.register(registry);
    }

    /// Shows every series of a closed set of labels, at 0.
    fn begin(&self) {
        Kind::ALL.into_iter().for_each(|kind| drop(self.notices.get_or_create(&[("kind", kind.name())])));
        FAILURES.into_iter().for_each(|name| drop(self.failures.get_or_create(&[("operation", name)])));
        JUDGED.into_iter().for_each(|id| drop(self.broken_promises.get_or_create(&[("promise", id)])));
        REBUILT.into_iter().for_each(|actor| drop(self.restarts.get_or_create(&[("actor", actor)])));
        MAILBOXES.into_iter().for_each(|actor| drop(self.overflows.get_or_create(&[("actor", actor)])));
        let timed = TIMED.into_iter().chain(BOARD_CALLS);
        timed.for_each(|name| drop(self.seconds.get_or_create(&[("operation", name)])));
        Outcome::NAMES.into_iter().for_each(|result| drop(self.webhooks.get_or_create(&[("result", result)])));
        for (machine, effects) in EFFECTS {
            effects
                .iter()
                .for_each(|effect| drop(self.effects.get_or_create(&[("machine", machine), ("effect", effect)])));
        }
    }

    /// Whether this replica works. One that does not has nothing to say about the cluster.
    pub fn leads(&self, leads: bool) {
        if !leads {
            self.boards.rest();
            self.edge.waiting(0);
            self.promotions.pipelines(0);
            self.runs.repos(0);
        }
        self.standing.leads(leads);
    }

    /// A transition: one line, as severe as it is, and one count. Sent again after a restart, it is logged again.
    pub fn notice(&self, notice: &Notice) {
        self.notices.get_or_create(&[("kind", notice.kind.name())]).inc();
        let mentioned = || notice.about.mentions().into_iter().flat_map(|mentions| &mentions.purges);
        let purges: Vec<String> = mentioned().map(|purge| purge.distribution.to_string()).collect();
        let made: Vec<String> = mentioned()
            .filter_map(|purge| Some(format!("{}={}", purge.distribution, purge.invalidation.as_ref()?)))
            .collect();
        let subject = notice.about.subject();
        // A level is part of what the macro makes at compile time.
        macro_rules! line {
            ($level:ident) => {
                tracing::event!(
                    tracing::Level::$level,
                    kind = notice.kind.name(),
                    workload = %subject.display_name(),
                    seq = notice.seq.0,
                    rollout = %notice.rollout,
                    change = %notice.change,
                    message = %notice.message,
                    distributions = %purges.join(","),
                    invalidations = %made.join(","),
                    notice = %notice.id,
                    at_ms = notice.at_ms,
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
        self.effects.get_or_create(&[("machine", machine), ("effect", effect)]).inc();
    }

    /// A call to the outside that failed.
    pub fn failure(&self, operation: &'static str) {
        self.failures.get_or_create(&[("operation", operation)]).inc();
    }

    /// A promise was broken. One that is broken again and again is logged the first time, the second, the fourth, the eighth and so on.
    pub fn broken_promise(&self, promise: Promise) {
        let times = self.broken_promises.get_or_create(&[("promise", promise.id())]).inc() + 1;
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
        self.seconds.get_or_create(&[("operation", operation)]).observe(time.as_secs_f64());
    }

    /// An actor was rebuilt.
    pub fn restart(&self, actor: &'static str) {
        self.restarts.get_or_create(&[("actor", actor)]).inc();
    }

    /// A mailbox was full.
    pub fn overflow(&self, actor: &'static str) {
        self.overflows.get_or_create(&[("actor", actor)]).inc();
    }

    /// An attempt to deliver a webhook had this result.
    pub fn webhook(&self, outcome: &Outcome) {
        self.webhooks.get_or_create(&[("result", outcome.name())]).inc();
    }

    /// Everything, in the form that was asked for.
    pub fn text(&self, form: Form) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        text.push_str(&process::text());
        form.of(&text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_of_metrics_has_every_one_that_is_shown_from_the_start() {
        let text = Metrics::default().text(Form::Prometheus);
        let names = text.lines().filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split_once(' ')?.0.to_owned()));
        let is_row = |line: &&str| line.starts_with("| `allclear_") || line.starts_with("| `process_");
        let rows = include_str!("../../docs/metrics.md").lines().filter(is_row);
        let cells = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split('`'));
        let documented: BTreeSet<String> = cells.map(str::to_owned).collect();
        let names: BTreeSet<String> = names.collect();
        assert!(
            names.contains("allclear_git_look_lateness_seconds") && names.contains("process_open_fds"),
            "{names:?}"
        );
        assert_eq!(names.difference(&documented).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    #[test]
    fn both_forms_end_and_say_the_same() {
        let metrics = Metrics::default();
        let samples = |form| {
            let text = metrics.text(form);
            let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("process_"));
            (lines.map(str::to_owned).collect::<Vec<_>>(), text)
        };
        let ((open, whole), (plain, old)) = (samples(Form::OpenMetrics), samples(Form::Prometheus));
        assert!(open.len() > 300 && open == plain, "{} {}", open.len(), plain.len());
        assert!(whole.ends_with("\n# EOF\n") && !old.contains("# EOF"));
        assert!(open.contains(&format!("allclear_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))));
    }

    #[test]
    fn a_replica_that_does_not_work_says_nothing_of_the_cluster() {
        let metrics = Metrics::default();
        let shown = |line: &str| metrics.text(Form::Prometheus).contains(&format!("\n{line}\n"));
        metrics.leads(true);
        metrics.standing.workloads(3, 2, 1);
        metrics.standing.blind(true);
        metrics.standing.deliveries(4, 5);
        metrics.edge.waiting(6);
        metrics.boards.held(purge::agreement::roster::Reason::Servers, true);
        let lines = [
            ("allclear_edge_questions_waiting", 6),
            ("allclear_leader", 1),
            ("allclear_workloads", 3),
            ("allclear_rollouts_in_flight", 2),
            ("allclear_workloads_quarantined", 1),
            ("allclear_watch_blind", 1),
            ("allclear_deliveries_pending", 4),
            ("allclear_deliveries_given_up", 5),
            ("allclear_group_held{reason=\"servers\"}", 1),
        ];
        for (series, value) in lines {
            assert!(shown(&format!("{series} {value}")), "{series}");
        }
        metrics.leads(false);
        for (series, _) in lines {
            assert!(shown(&format!("{series} 0")), "{series}");
        }
    }

    #[test]
    fn the_lateness_of_looks_is_shown_from_the_start() {
        let metrics = Metrics::default();
        assert!(
            metrics.text(Form::OpenMetrics).contains("\nallclear_git_look_lateness_seconds_count 0\n"),
            "{}",
            metrics.text(Form::OpenMetrics)
        );
        metrics.runs.began_looking(Duration::from_millis(700));
        for line in ["_sum 0.7", "_bucket{le=\"0.5\"} 0", "_bucket{le=\"1.0\"} 1"] {
            let line = format!("\nallclear_git_look_lateness_seconds{line}\n");
            assert!(
                metrics.text(Form::OpenMetrics).contains(&line),
                "{line} is not in {}",
                metrics.text(Form::OpenMetrics)
            );
        }
    }
}

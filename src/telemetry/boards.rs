//! The metrics of a group: its Redis servers, and what holds it up.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{BOARD_CALLS, ByBoard, ByCall, ByReason, Label};
use purge::agreement::roster;
use purge::ports;

/// What happens between this member and the others.
#[derive(Default)]
pub struct Boards {
    calls: Family<ByCall, Counter>,
    failures: Family<ByReason, Counter>,
    rejections: Family<ByBoard, Counter>,
    answered: Family<ByBoard, Gauge>,
    held: Family<Label, Gauge>,
}

impl Boards {
    pub(super) fn register(&self, registry: &mut Registry) {
        let Self { calls, failures, rejections, answered, held } = self;
        registry.register("board_calls", "Calls to a Redis of the group that were answered", calls.clone());
        registry.register("board_failures", "Calls to a Redis of the group that failed", failures.clone());
        registry.register("board_rejections", "Copies of records that were not believed", rejections.clone());
        registry.register(
            "board_answered_timestamp_seconds",
            "When a Redis of the group last answered, in seconds since the Unix epoch; 0 before the first time",
            answered.clone(),
        );
        registry.register("group_held", "Whether the group is held up, 1 or 0, by reason", held.clone());
        self.rest();
    }

    /// Shows every series of the group's servers, which are known by these names.
    pub fn begin<'a>(&self, boards: impl Iterator<Item = &'a str>) {
        for board in boards {
            let board = board.to_owned();
            for call in BOARD_CALLS {
                drop(self.calls.get_or_create(&ByCall { board: board.clone(), call }));
                for reason in ports::Reason::names() {
                    drop(self.failures.get_or_create(&ByReason { board: board.clone(), call, reason }));
                }
            }
            drop(self.rejections.get_or_create(&ByBoard { board: board.clone() }));
            drop(self.answered.get_or_create(&ByBoard { board }));
        }
    }

    /// A call to a Redis of the group that ended now: it failed for this reason, or was answered, at this
    /// time of the wall's clock.
    pub fn called(&self, board: &str, call: &'static str, failed: Option<&'static str>, wall_ms: i64) {
        let board = board.to_owned();
        match failed {
            Some(reason) => drop(self.failures.get_or_create(&ByReason { board, call, reason }).inc()),
            None => {
                self.calls.get_or_create(&ByCall { board: board.clone(), call }).inc();
                self.answered.get_or_create(&ByBoard { board }).set(wall_ms / 1_000);
            }
        }
    }

    /// Copies on a Redis of the group that were not believed.
    pub fn rejected(&self, board: &str, copies: usize) {
        let rejections = self.rejections.get_or_create(&ByBoard { board: board.to_owned() });
        rejections.inc_by(u64::try_from(copies).unwrap_or(u64::MAX));
    }

    /// Whether the group is held up for this reason.
    pub fn held(&self, reason: roster::Reason, held: bool) {
        self.held.get_or_create(&[("reason", reason.name())]).set(i64::from(held));
    }

    /// Nothing is held up by a replica that does not work. A dry run takes no part in a group, so it is never held up.
    pub(super) fn rest(&self) {
        let reasons = roster::Reason::ALL.into_iter().filter(|reason| *reason != roster::Reason::DryRun);
        reasons.for_each(|reason| self.held(reason, false));
    }
}

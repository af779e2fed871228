//! Which rollouts we wake because other members wait for our part: all in turn, and more and more rarely those that turn out
//! to have no part.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use kernel::id::WorkloadId;
use kernel::machine::Timestamp;

/// Workloads that we wake at the same time. Each becomes an actor that reads its record; the others follow 5 s later.
pub(super) const WANTED_MAX: usize = 100;

/// A rollout that we woke twice for other members and that twice ended without a part (because the workload is disabled
/// here, for example) is not woken again for this long, unless there is news of it.
const RESTS_FOR: Duration = Duration::from_secs(60);

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waking {
    /// Rollouts that ended although others wait for them: how often without news in between, and when the last time.
    idled: BTreeMap<WorkloadId, (u32, Timestamp)>,
    /// The last one that was woken. With more than [`WANTED_MAX`], all have their turn.
    last: Option<WorkloadId>,
}

impl Waking {
    /// The next ones to wake, among those that other members want.
    pub(super) fn next(&mut self, now: Timestamp, wanted: &BTreeSet<WorkloadId>) -> Vec<WorkloadId> {
        let rests = |workload: &WorkloadId| {
            self.idled.get(workload).is_some_and(|(times, at)| *times > 1 && now.since(*at) < RESTS_FOR)
        };
        let from = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let after = wanted.range::<WorkloadId, _>((from, Bound::Unbounded));
        let before = self.last.iter().flat_map(|last| wanted.range(..=last));
        let next: Vec<WorkloadId> =
            after.chain(before).filter(|workload| !rests(workload)).take(WANTED_MAX).cloned().collect();
        self.last = next.last().cloned().or_else(|| self.last.take());
        next
    }

    /// A rollout has ended, and another member still waits for it.
    pub(super) fn idled(&mut self, now: Timestamp, workload: WorkloadId) {
        let (times, at) = self.idled.entry(workload).or_default();
        (*times, *at) = (times.saturating_add(1), now);
    }

    /// There is news of this workload, or no member waits for it any more.
    pub(super) fn forget(&mut self, workload: &WorkloadId) {
        self.idled.remove(workload);
    }
}

//! When our own beat is due, and how far the beats are counted.

use std::time::Duration;

use kernel::machine::Timestamp;

/// How often we leave a beat, and ask again for workloads that others wait for.
const EVERY: Duration = Duration::from_secs(5);

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pulse {
    due: Timestamp,
    /// Beats made so far.
    count: u64,
    /// The last one's timestamp.
    at_ms: i64,
}

impl Pulse {
    /// The first is due at once.
    pub(super) fn new() -> Self {
        Self { due: Timestamp::default(), count: 0, at_ms: i64::MIN }
    }

    /// Whether one is due; then the next one is later.
    pub(super) fn beats(&mut self, now: Timestamp) -> bool {
        let due = self.due <= now;
        if due {
            self.due = now.after(EVERY);
        }
        due
    }

    /// One is due now.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.due = self.due.min(now);
    }

    /// When the next one is due.
    pub(super) fn deadline(&self) -> Timestamp {
        self.due
    }

    /// The number of the next one, and its timestamp. It always rises, because older programs ignore a beat with no later
    /// time; two beats may fall into one millisecond, and the wall clock may be set back.
    pub(super) fn next(&mut self, wall_ms: i64) -> (u64, i64) {
        self.count = self.count.saturating_add(1);
        self.at_ms = wall_ms.max(self.at_ms.saturating_add(1));
        (self.count, self.at_ms)
    }
}

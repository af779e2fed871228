//! One kind of call to one place, made again and again and never twice at once.

use std::time::Duration;

use crate::domain::machine::Timestamp;
use crate::domain::retry::Backoff;

/// A board that fails is asked no more often than one that works: its next answer is worth one call in five seconds.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(5) };

/// Where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    busy: bool,
    due: Timestamp,
    failures: u32,
    trouble: Option<String>,
    succeeded: Option<Timestamp>,
}

impl Lane {
    /// Whether the next call may be made.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        !self.busy && self.due <= now
    }

    /// Whether a call is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// A call is made.
    pub(super) fn begin(&mut self) {
        self.busy = true;
    }

    /// It succeeded; the next one is due then.
    pub(super) fn succeeded(&mut self, now: Timestamp, due: Timestamp) {
        *self = Self { busy: false, due, failures: 0, trouble: None, succeeded: Some(now) };
    }

    /// It failed; the next one is due after a back-off. `key` says whose lane it is.
    pub(super) fn failed(&mut self, now: Timestamp, key: &str, why: String) {
        self.busy = false;
        self.failures = self.failures.saturating_add(1);
        self.due = now.after(BACKOFF.delay(self.failures, key));
        self.trouble = Some(why);
    }

    /// The next call is due at once.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.due = self.due.min(now);
    }

    /// Whether a call was ever answered, or failed.
    pub(super) fn was_tried(&self) -> bool {
        self.failures > 0 || self.succeeded.is_some()
    }

    /// Whether the last call failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Why the last call failed, if it did.
    pub(super) fn trouble(&self) -> Option<&String> {
        self.trouble.as_ref()
    }

    /// When a call last succeeded.
    pub(super) fn last_success(&self) -> Option<Timestamp> {
        self.succeeded
    }

    /// When the next call may be made; `None` while one is under way.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (!self.busy).then_some(self.due)
    }
}

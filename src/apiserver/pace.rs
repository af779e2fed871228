//! When a watch may make its next request: later after each failure, and later after each listing that led to nothing.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use kernel::retry::Backoff;

/// After so many failures in a row to resume from a version, the version itself is suspected (an API server that was
/// restored from a backup never reaches it) and everything is listed again. With back-off this is about a minute.
const RESUMES_MAX: u32 = 6;

/// See the module's text.
pub(crate) struct Pace {
    backoff: Backoff,
    /// What jitter is derived from.
    key: String,
    /// Listings begun since a watch last lived long.
    listings: u32,
    /// Attempts in a row that led to nothing.
    failures: u32,
    /// No request before this.
    not_before: Instant,
    /// No listing before this.
    no_list_before: Instant,
}

impl Pace {
    pub(crate) fn new(backoff: Backoff, key: String) -> Self {
        let now = Instant::now();
        Self { backoff, key, listings: 0, failures: 0, not_before: now, no_list_before: now }
    }

    /// Waits until everything may be listed. The next listing waits longer, unless a watch lives long enough in between to prove
    /// that listing helps.
    pub(crate) async fn list(&mut self) {
        sleep_until(self.not_before.max(self.no_list_before)).await;
        self.listings = self.listings.saturating_add(1);
        self.no_list_before = Instant::now() + self.backoff.delay(self.listings, &self.key);
    }

    /// Waits until a watch may be opened.
    pub(crate) async fn resume(&self) {
        sleep_until(self.not_before).await;
    }

    /// An attempt led to nothing, and the server asked to be left alone for this long.
    pub(crate) fn failed(&mut self, retry_after: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let wait = self.backoff.delay(self.failures, &self.key).max(retry_after.unwrap_or_default());
        self.not_before = self.not_before.max(Instant::now() + wait);
    }

    /// An attempt led to something.
    pub(crate) fn worked(&mut self) {
        self.failures = 0;
    }

    /// A watch ended that was asked for at this time: the next one is not asked for at once, if that one was short.
    pub(crate) fn ended(&mut self, since: Instant) {
        self.not_before = self.not_before.max(since + self.backoff.delay(1, &self.key));
    }

    /// A watch lived long.
    pub(crate) fn lived(&mut self) {
        self.listings = 0;
    }

    /// Whether it may still help to resume from the version that is known.
    pub(crate) fn may_resume(&self) -> bool {
        self.failures < RESUMES_MAX
    }
}

//! What of an object's history is not written down yet, and when that is tried again.
//!
//! ```text
//! Idle ── something happened ──▶ asked ── kept ──▶ Idle
//!                                  ▲  └── not kept ──▶ waits: minutes at most where that may pass, an hour where a person must act
//!                                  └────────────────────┘
//! ```
//!
//! It is not durable, so that nothing is written for it: what a crash forgets, the status still has.

use std::time::Duration;

use super::{Entry, joined};
use kernel::call::Call;
use kernel::machine::Timestamp;
use kernel::retry;

/// How long nothing is tried where the cluster does not have the kind, or we not the right to it: only a person changes that.
pub const RARELY: Duration = Duration::from_hours(1);

/// What is owed to the history of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keeping {
    /// The UID of the object: another one has another history.
    of: String,
    owed: Vec<Entry>,
    call: Call,
}

impl Keeping {
    /// These have happened to the object of this UID. No more is owed than a history holds.
    pub fn owe(&mut self, of: &str, news: &[Entry]) {
        if self.of != of {
            *self = Self { of: of.to_owned(), ..Self::default() };
        }
        self.owed = joined(&self.owed, news);
    }

    /// What is to be written now to the history of the object of this UID; then that is under way. What is owed to an earlier
    /// object of its name went with that one.
    pub fn begin(&mut self, of: &str, now: Timestamp) -> Option<Vec<Entry>> {
        let is_due = self.of == of && !self.owed.is_empty() && self.call.is_due(now);
        is_due.then(|| {
            self.call.asked();
            self.owed.clone()
        })
    }

    /// These are in the history of the object of this UID.
    pub fn kept(&mut self, of: &str, entries: &[Entry]) {
        if self.of != of {
            return;
        }
        self.owed.retain(|owed| !entries.iter().any(|entry| entry.is(owed)));
        self.call.answered();
    }

    /// They are not, or it is not known, for this reason; `lasting` if only a person can mend it. Returns true the first time in a row.
    pub fn failed(&mut self, of: &str, now: Timestamp, lasting: bool, why: &str) -> bool {
        if self.of != of {
            return false;
        }
        let is_first = !self.call.is_failing();
        let again = retry::SERVICE.from(now, &self.of);
        // Not all of a cluster in one second.
        let rarely = RARELY + retry::SERVICE.delay(32, &self.of);
        self.call.failed(|failures| if lasting { now.after(rarely) } else { again(failures) }, why);
        is_first
    }

    /// When it is tried again.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline().filter(|_| !self.owed.is_empty())
    }
}

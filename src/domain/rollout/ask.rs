//! A question to the outside, asked at most once at a time, and again after a back-off when it failed; the last reason is
//! kept, so that whoever waits can be told for what.

use crate::domain::machine::Timestamp;
use crate::domain::retry;

/// How much of a reason is kept: two lines of a terminal. The log has all of it.
const REASON_CHARS_MAX: usize = 200;

/// Where a question stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ask {
    state: State,
    failures: u32,
    /// Why it was not answered the last time. Only words depend on it.
    reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Idle,
    Asked,
    /// Asked before what it asks about became another thing.
    Outdated,
    Resting(Timestamp),
}

impl Ask {
    /// Whether it may be asked now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        match self.state {
            State::Idle => true,
            State::Asked | State::Outdated => false,
            State::Resting(until) => until <= now,
        }
    }

    /// Whether an answer is outstanding.
    pub fn is_asked(&self) -> bool {
        matches!(self.state, State::Asked | State::Outdated)
    }

    /// Whether neither an answer nor a back-off is outstanding.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// How often it failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Remembers that it was asked.
    pub fn asked(&mut self) {
        self.state = State::Asked;
    }

    /// What it asks about became another thing: an answer still outstanding says nothing any more.
    pub fn outdate(&mut self) {
        if self.state == State::Asked {
            self.state = State::Outdated;
        }
    }

    /// Whether the outstanding answer says nothing any more.
    pub fn is_outdated(&self) -> bool {
        self.state == State::Outdated
    }

    /// Remembers that it was answered.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// Remembers that it was not answered, and why; `key` spreads the back-off.
    pub fn failed(&mut self, now: Timestamp, key: &str, why: &str) {
        self.repeat(now, key);
        self.reason = Some(why.chars().take(REASON_CHARS_MAX).collect());
    }

    /// Remembers that it was answered, but not as hoped: it is asked again.
    pub fn repeat(&mut self, now: Timestamp, key: &str) {
        self.reason = None;
        self.failures = self.failures.saturating_add(1);
        self.state = State::Resting(now.after(retry::SERVICE.delay(self.failures, key)));
    }

    /// Why it was not answered the last time, while it still has to be.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref().filter(|_| self.state != State::Idle)
    }

    /// The same, also between a rest and the next time it is asked.
    pub fn last_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Ends a rest that is over. Failures stay counted.
    pub fn wake(&mut self, now: Timestamp) {
        if self.deadline().is_some_and(|until| until <= now) {
            self.state = State::Idle;
        }
    }

    /// When it may be asked again, if it is resting.
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.state {
            State::Idle | State::Asked | State::Outdated => None,
            State::Resting(until) => Some(until),
        }
    }
}

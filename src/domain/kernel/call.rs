//! A call to the outside that is made again until it is answered: at most one at a time, later after each failure, and with
//! the last reason kept for people.
//!
//! ```text
//!  Idle ──────────┐ wanted            answered
//!   ▲             ├──────────▶ Asked ──────────▶ Idle, or Waiting for the next time
//!   │ wake        │              │ failed
//!  Waiting ───────┘ due          └─────────────▶ Waiting
//! ```
//!
//! Not for what is asked, nor for when it is wanted: its owner makes the call, and says how long it waits after a failure.

use std::fmt;

use crate::machine::Timestamp;

/// Where a call stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Call {
    state: State,
    failures: u32,
    /// Why it failed the last time. Only words depend on it.
    reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    /// Made as soon as its owner wants it.
    #[default]
    Idle,
    Asked,
    /// Asked before its subject became another one.
    Outdated,
    /// Not made before this time.
    Waiting(Timestamp),
}

impl Call {
    /// One that is made at this time for the first time.
    pub fn due(at: Timestamp) -> Self {
        Self { state: State::Waiting(at), ..Self::default() }
    }

    /// Whether it may be made now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        match self.state {
            State::Idle => true,
            State::Asked | State::Outdated => false,
            State::Waiting(until) => until <= now,
        }
    }

    /// Whether an answer is outstanding.
    pub fn is_asked(&self) -> bool {
        matches!(self.state, State::Asked | State::Outdated)
    }

    /// Whether the outstanding answer says nothing any more.
    pub fn is_outdated(&self) -> bool {
        self.state == State::Outdated
    }

    /// Whether there is neither an answer nor a time to wait for.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// How often it failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether it failed the last time.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Why it failed the last time, while it is being made again.
    pub fn reason(&self) -> Option<&str> {
        self.last_reason().filter(|_| !self.is_idle())
    }

    /// Why it failed the last time, also while its owner does not want it again.
    pub fn last_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// When it may be made again, if it waits for that.
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.state {
            State::Idle | State::Asked | State::Outdated => None,
            State::Waiting(until) => Some(until),
        }
    }

    pub fn asked(&mut self) {
        self.state = State::Asked;
    }

    /// Its subject became another one: an answer still outstanding says nothing any more.
    pub fn outdate(&mut self) {
        if self.state == State::Asked {
            self.state = State::Outdated;
        }
    }

    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// It was answered, and is made again at this time.
    pub fn answered_until(&mut self, next: Timestamp) {
        *self = Self::due(next);
    }

    /// It failed, for this reason; `again` says when it is made again, from how often it failed.
    pub fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: impl fmt::Display) {
        self.repeat(again);
        self.reason = Some(why.to_string());
    }

    /// It was answered, but not as hoped: `again` says when it is made again, from how often that happened.
    pub fn repeat(&mut self, again: impl FnOnce(u32) -> Timestamp) {
        self.reason = None;
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting(again(self.failures));
    }

    /// Its answer is late: that is the reason, unless a failure gave one.
    pub fn overdue(&mut self, why: &str) {
        self.reason.get_or_insert_with(|| why.to_owned());
    }

    /// It waits no longer than this.
    pub fn hurry(&mut self, until: Timestamp) {
        if let State::Waiting(at) = &mut self.state {
            *at = until.min(*at);
        }
    }

    /// Ends a wait that is over. Failures stay counted.
    pub fn wake(&mut self, now: Timestamp) {
        if self.deadline().is_some_and(|until| until <= now) {
            self.state = State::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// The wait grows by ten seconds with each failure.
    fn from(now: u64) -> impl Fn(u32) -> Timestamp {
        move |failures| at(now + 10 * u64::from(failures))
    }

    #[test]
    fn nothing_is_asked_twice_at_once() {
        let mut call = Call::default();
        assert!(call.is_due(at(0)) && call.is_idle());
        call.asked();
        assert!(call.is_asked() && !call.is_due(at(1_000_000)));
        assert_eq!(call.deadline(), None);
        call.answered();
        assert_eq!(call, Call::default());
    }

    #[test]
    fn each_failure_waits_longer_until_an_answer() {
        let mut call = Call::default();
        for (failures, due) in [(1, 10), (2, 20), (3, 30)] {
            call.asked();
            call.failed(from(0), "no route");
            assert_eq!((call.failures(), call.deadline(), call.reason()), (failures, Some(at(due)), Some("no route")));
            assert!(!call.is_due(at(due - 1)) && call.is_due(at(due)));
        }
        call.asked();
        assert_eq!(call.reason(), Some("no route"), "it is still being made again");
        call.answered();
        assert!(!call.is_failing());
        call.failed(from(40), "no route");
        assert_eq!(call.deadline(), Some(at(50)), "the first failure after an answer");
    }

    #[test]
    fn an_answer_that_was_not_hoped_for_has_no_reason() {
        let mut call = Call::default();
        call.failed(from(0), "no route");
        call.repeat(from(20));
        assert_eq!((call.failures(), call.deadline(), call.last_reason()), (2, Some(at(40)), None));
    }

    #[test]
    fn a_wait_that_is_over_leaves_no_deadline_and_keeps_what_it_waited_for() {
        let mut call = Call::default();
        call.failed(from(0), "no route");
        call.wake(at(9));
        assert_eq!(call.deadline(), Some(at(10)));
        call.wake(at(10));
        assert!(call.is_idle() && call.is_due(at(10)));
        assert_eq!((call.failures(), call.reason(), call.last_reason()), (1, None, Some("no route")));
    }

    #[test]
    fn only_an_outstanding_answer_can_be_outdated() {
        let mut call = Call::default();
        call.outdate();
        assert!(call.is_idle());
        call.asked();
        call.outdate();
        assert!(call.is_outdated() && call.is_asked());
        call.asked();
        assert!(!call.is_outdated(), "asked anew");
        call.failed(from(0), "no route");
        call.outdate();
        assert_eq!(call.deadline(), Some(at(10)));
    }

    #[test]
    fn a_call_of_every_minute_is_hurried_but_neither_delayed_nor_made_twice() {
        let mut call = Call::due(at(0));
        assert_eq!(call.deadline(), Some(at(0)));
        call.asked();
        call.hurry(at(1));
        assert!(!call.is_due(at(1)), "its answer is outstanding");
        call.answered_until(at(60));
        call.hurry(at(90));
        assert_eq!(call.deadline(), Some(at(60)));
        call.hurry(at(5));
        assert_eq!(call.deadline(), Some(at(5)));
    }
}

//! The contract of every decision: facts in, decisions out.
//!
//! A machine is driven by a shell (`actors::shell` in production, the model checker, a property test or a simulation
//! elsewhere); all of them call the same `step`. Not for doing anything: effects are values, and the driver's work.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use crate::promise::Promise;

use serde::{Deserialize, Serialize};

/// Milliseconds on this process's own monotonic clock. It means nothing to another process: no decision compares the
/// clocks of two machines (GA-8), and what must survive a restart is stored as an elapsed duration instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The instant `millis` after the clock's own beginning.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the clock's own beginning.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The instant `duration` later; the end of time rather than an overflow.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// The time from `earlier` to this instant; zero when `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Whole milliseconds of a duration, for what is stored or hashed.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A pure state machine. `Eq + Hash` rule out floats, handles and unordered maps, so that a model checker can explore it.
pub trait Machine: Clone + Debug + Eq + Hash {
    /// Its events, in the past tense.
    type Event;
    /// Its effects, in the imperative. Each is performed zero, one or two times, late, and its answer may come
    /// to a different life of the shell; the answer returns as an event.
    type Effect;

    /// Takes one step. Total: every event is legal in every state; one that does not apply yields no effect.
    fn step(&mut self, now: Timestamp, event: Self::Event) -> Vec<Self::Effect>;

    /// Lets time pass. Harmless when early, late or repeated.
    fn tick(&mut self, now: Timestamp) -> Vec<Self::Effect>;

    /// When [`Machine::tick`] next has work; the shell arms exactly one timer for it. Right after a tick it is in the future, or
    /// there is none: a machine with a deadline that no tick moves would keep its thread from everything else.
    fn next_deadline(&self) -> Option<Timestamp>;

    /// Whether something is due.
    fn is_due(&self, now: Timestamp) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// The promises that one of its effects, just returned, would break, as far as the machine itself can tell. Total and cheap:
    /// the shell asks it of every effect.
    fn breaks(&self, _effect: &Self::Effect) -> Vec<Promise> {
        Vec::new()
    }

    /// Takes a step, and ticks at once if something is due after it.
    fn step_and_catch_up(&mut self, now: Timestamp, event: Self::Event) -> Vec<Self::Effect> {
        let mut effects = self.step(now, event);
        if self.is_due(now) {
            effects.extend(self.tick(now));
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Faults: C1
    #[test]
    fn time_never_runs_backwards_or_overflows() {
        let late = Timestamp::from_millis(u64::MAX);
        assert_eq!(late.after(Duration::from_secs(1)), late);
        assert_eq!(Timestamp::from_millis(5).since(late), Duration::ZERO);
    }
}

//! How often a crashed actor is rebuilt, and how often a record is written while nothing happens, before a person has to look
//! at it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::machine::Timestamp;

/// Restarts allowed within [`RESTART_WINDOW`] (decision 16). A bug that strikes five times a minute is not passing.
pub const RESTARTS_MAX: usize = 5;

/// The window restarts are counted in.
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// The restarts of one actor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    restarts: VecDeque<Timestamp>,
}

impl Budget {
    /// Asks for one more restart; `false` when there have been too many of late.
    pub fn spend(&mut self, now: Timestamp) -> bool {
        self.restarts.retain(|at| now.since(*at) < RESTART_WINDOW);
        let allowed = self.restarts.len() < RESTARTS_MAX;
        if allowed {
            self.restarts.push_back(now);
        }
        allowed
    }
}

/// Writes of one record within [`WRITES_WINDOW`] without anything that happened outside. A rollout writes some ten times, each
/// time after something happened; waits for time alone are written once a minute, notices once a second at most. So
/// many are a mistake of ours, and a ledger has other records to write.
pub const WRITES_MAX: u32 = 300;

/// The window writes are counted in.
pub const WRITES_WINDOW: Duration = Duration::from_secs(60);

/// The writes of one record since something happened outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Writes {
    since: Timestamp,
    count: u32,
}

impl Writes {
    /// Something happened outside: what is written now has a reason.
    pub fn renew(&mut self) {
        self.count = 0;
    }

    /// Asks for one more write; `false` when there have been too many for no reason.
    pub fn spend(&mut self, now: Timestamp) -> bool {
        if self.count == 0 || now.since(self.since) >= WRITES_WINDOW {
            (self.since, self.count) = (now, 0);
        }
        self.count += 1;
        self.count <= WRITES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Faults: T1
    #[test]
    fn writes_for_no_reason_are_refused_beyond_a_number_and_those_with_one_are_not() {
        let at = |millis: u64| Timestamp::from_millis(millis);
        // As fast as the ledger writes: every 50 ms.
        let refused_at = |renewed_every: u64| {
            let mut writes = Writes::default();
            (0..10_000).find(|turn| {
                if turn % renewed_every == 0 {
                    writes.renew();
                }
                !writes.spend(at(turn * 50))
            })
        };
        assert_eq!(refused_at(u64::MAX), Some(300), "within 15 s");
        assert_eq!(refused_at(200), None);
        let mut slow = Writes::default();
        assert!((0..10_000).all(|turn| slow.spend(at(turn * 1_000))), "what is told may travel once a second");
    }

    #[test]
    fn the_sixth_restart_within_a_minute_is_refused_and_a_later_one_is_not() {
        let mut budget = Budget::default();
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        assert!((0..5).all(|second| budget.spend(at(second))));
        assert!(!budget.spend(at(5)));
        assert!(budget.spend(at(61)));
    }
}

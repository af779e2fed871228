//! How often a crashed actor is rebuilt before somebody has to look at it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::machine::Timestamp;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_restart_within_a_minute_is_refused_and_a_later_one_is_not() {
        let mut budget = Budget::default();
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        assert!((0..5).all(|second| budget.spend(at(second))));
        assert!(!budget.spend(at(5)));
        assert!(budget.spend(at(61)));
    }
}

//! How often a wake-up makes us read a board: anyone who reaches the board can send wake-ups in a loop.

use std::time::Duration;

use kernel::machine::Timestamp;

/// Reads without a pause after a quiet time. An agreement takes about four of each board: the last completion, the votes, the
/// purge and its end (`make latency`).
const AT_ONCE: u32 = 8;

/// Then one in this time: eight a second, of an answer of half a megabyte at most each.
const EVERY: Duration = Duration::from_millis(125);

/// The reads that were made lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pace {
    made: u32,
    since: Timestamp,
}

impl Pace {
    /// A read is begun.
    pub(super) fn made(&mut self, now: Timestamp) {
        let passed = u32::try_from(now.since(self.since).as_millis() / EVERY.as_millis()).unwrap_or(u32::MAX);
        if passed >= self.made {
            (self.made, self.since) = (1, now);
        } else {
            self.made = self.made - passed + 1;
            self.since = self.since.after(EVERY * passed);
        }
    }

    /// When the next wake-up may begin a read.
    pub(super) fn next(&self, now: Timestamp) -> Timestamp {
        let excess = (self.made + 1).saturating_sub(AT_ONCE);
        self.since.after(EVERY * excess).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_go_at_once_and_then_eight_a_second() {
        let (mut pace, mut now) = (Pace::default(), Timestamp::from_millis(1_000_000));
        let mut begun = Vec::new();
        for _ in 0..100 {
            now = pace.next(now);
            pace.made(now);
            begun.push(now.since(Timestamp::from_millis(1_000_000)).as_millis());
        }
        assert_eq!(begun.iter().filter(|at| **at == 0).count(), 8);
        assert!(begun.windows(2).skip(7).all(|pair| pair[1] - pair[0] == 125), "{begun:?}");
        let later = now.after(Duration::from_secs(1));
        assert_eq!(pace.next(later), later, "after a quiet time at once again");
    }
}

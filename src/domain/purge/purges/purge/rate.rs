//! How many a second, and how long to pause after a refusal.
//!
//! Not for what the rate is: `governor` finds it, and `quota` believes what is published.

use std::fmt;
use std::time::Duration;

/// The slowest that refusals make us: three creations a minute.
pub(super) const SLOWEST: Rate = Rate(50);

/// The longest first pause after a refusal. An account of 0.5 creations a second has one again after it.
const PAUSE_FIRST_MAX: Duration = Duration::from_secs(2);

/// The longest pause, each twice as long as the one before: three questions a minute. An order is overdue after 15 minutes only.
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// One creation, in the unit of what is saved: a thousandth a second, for a millisecond.
pub(super) const CREATION: u64 = 1_000_000;

/// Creations a second, in thousandths; at least one thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub(super) u32);

impl Rate {
    /// So many thousandths of a creation a second.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Self(if thousandths == 0 { 1 } else { thousandths })
    }

    /// The thousandths of a creation a second.
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// How long so many take.
    pub(super) fn time_of(self, count: u32) -> Duration {
        Duration::from_millis(CREATION.saturating_mul(u64::from(count)).div_ceil(u64::from(self.0)))
    }

    /// Half of it, but no less than this.
    pub(super) fn halved(self, slowest: Self) -> Self {
        Self::from_thousandths(self.0 / 2).max(slowest)
    }

    /// Twice as much.
    pub(super) const fn doubled(self) -> Self {
        Self(self.0.saturating_mul(2))
    }

    /// In words: `2.5 creations a second`.
    pub fn words(self) -> String {
        let shown = self.to_string();
        let plural = if shown == "1" { "" } else { "s" };
        format!("{shown} creation{plural} a second")
    }
}

/// As people say it: two digits.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, digits) = match self.0 {
            10_000.. => (self.0.saturating_add(500) / 1_000, String::new()),
            995.. => {
                let tenths = self.0.saturating_add(50) / 100;
                (tenths / 10, (tenths % 10).to_string())
            }
            _ => (0, format!("{:02}", self.0.saturating_add(5) / 10)),
        };
        match digits.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            digits => write!(f, "{whole}.{digits}"),
        }
    }
}

/// How long nothing is sent after a refusal, where there were so many since something was granted.
pub(super) fn pause(rate: Rate, before: u32) -> Duration {
    let longer = 1_u32.checked_shl(before).unwrap_or(u32::MAX);
    rate.time_of(1).min(PAUSE_FIRST_MAX).saturating_mul(longer).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_said_with_two_digits() {
        let words = [(10, "0.01"), (50, "0.05"), (500, "0.5"), (994, "0.99"), (995, "1"), (1_000, "1"), (2_537, "2.5")];
        for (thousandths, shown) in words.into_iter().chain([(9_960, "10"), (12_400, "12"), (100_000, "100")]) {
            assert_eq!(Rate(thousandths).to_string(), shown);
        }
        assert_eq!(Rate(1_000).words(), "1 creation a second");
        assert_eq!(Rate(500).words(), "0.5 creations a second");
    }
}

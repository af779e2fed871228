//! Time, as the operating system tells it. The only file that asks.

use std::time::SystemTime;

use tokio::time::Instant;

use kernel::machine::{Timestamp, millis};
use purge::ports::Clock;

/// The clock of production. Monotonic time is tokio's, so that a paused runtime pauses it too.
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(millis(self.started.elapsed()))
    }

    #[expect(clippy::disallowed_methods, reason = "the clock port is made here")]
    fn wall_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

//! When to try again: exponential back-off with full jitter, without randomness.
//!
//! Jitter is a hash of what is retried and how often (decision 22), so a run can be repeated exactly and two members
//! still do not march in step.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::machine::{Timestamp, millis};

/// How often, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The ceiling of the first wait.
    pub base: Duration,
    /// The ceiling of every wait.
    pub cap: Duration,
}

/// Calls to a service of ours or of AWS: from half a second to a minute, so an hour's outage costs about sixty calls.
pub const SERVICE: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(60) };

/// The same, where a person may just have given the right that was missing: two such waits one after the other are noticed within
/// half a minute.
pub const MENDED: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(12) };

impl Backoff {
    /// The wait before attempt `attempt` (the first retry is 1) of whatever `key` names: uniformly spread over the upper
    /// half of `[0, min(cap, base · 2^attempt)]`, so it is never a hot loop and never a stampede.
    pub fn delay(&self, attempt: u32, key: &str) -> Duration {
        let doubled = millis(self.base).saturating_mul(1_u64.checked_shl(attempt.min(32)).unwrap_or(u64::MAX));
        let ceiling = doubled.min(millis(self.cap)).max(1);
        let floor = ceiling / 2;
        Duration::from_millis(floor + jitter(key, attempt) % (ceiling - floor + 1))
    }

    /// When what failed now is tried again, from how often it has failed; as a [`Call`](crate::call::Call) wants it.
    pub fn from(self, now: Timestamp, key: &str) -> impl Fn(u32) -> Timestamp + use<> {
        let key = key.to_owned();
        move |failures| now.after(self.delay(failures, &key))
    }
}

/// A number that looks random and is not.
pub fn jitter(key: &str, attempt: u32) -> u64 {
    let hash = Sha256::new().chain_update(key.as_bytes()).chain_update(attempt.to_be_bytes()).finalize();
    hash.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_never_vanish() {
        for attempt in 0..64 {
            let delay = SERVICE.delay(attempt, "purge");
            assert!(delay >= Duration::from_millis(250) && delay <= SERVICE.cap, "{attempt}: {delay:?}");
        }
        assert!(SERVICE.delay(20, "purge") >= SERVICE.cap / 2);
    }

    #[test]
    fn two_keys_do_not_march_in_step() {
        assert_ne!(SERVICE.delay(6, "eu-1"), SERVICE.delay(6, "eu-2"));
    }
}

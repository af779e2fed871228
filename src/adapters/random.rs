//! Randomness, as the operating system gives it.

use std::sync::Mutex;

use kernel::id::Nonces;
use purge::ports::{PortError, Random};

/// Random bits of production. The operating system is asked once, at the start, where it may refuse; no number waits for it later.
pub struct SystemRandom(Mutex<Nonces>);

impl SystemRandom {
    /// Begins with 64 bits of the operating system.
    ///
    /// # Errors
    /// When it has none.
    pub fn new() -> Result<Self, PortError> {
        let bits = getrandom::u64()
            .map_err(|error| PortError::passing("failed to draw random bits", format!("no randomness: {error}")))?;
        Ok(Self(Mutex::new(Nonces::seeded(bits))))
    }
}

impl Random for SystemRandom {
    fn bits(&self) -> u64 {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).draw().0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn two_lives_draw_other_bits_and_none_twice() {
        let drawn = |random: &SystemRandom| (0..100).map(|_| random.bits()).collect::<Vec<_>>();
        let (one, other) = (SystemRandom::new().unwrap(), SystemRandom::new().unwrap());
        let all: BTreeSet<u64> = drawn(&one).into_iter().chain(drawn(&other)).collect();
        assert_eq!(all.len(), 200);
    }
}

//! How many creations the account is granted: a token bucket, as AWS throttles its APIs.
//!
//! No size is told for CreateInvalidation; AWS staff have named a rate of 0.5 a second for an account (aws/aws-sdk-js#3983), and people
//! there were throttled after about fifteen at once.

use std::time::{Duration, Instant};

/// A bucket of creations. It is full when it is made.
#[derive(Clone, Debug)]
pub struct Bucket {
    every: Duration,
    size: u32,
    /// What was granted is paid for until then.
    paid_until: Option<Instant>,
}

impl Bucket {
    /// Grants one creation `every` so long, and `size` of them at once.
    pub const fn new(every: Duration, size: u32) -> Bucket {
        Bucket { every, size, paid_until: None }
    }

    /// Takes one, if there is one. What is not granted costs nothing.
    pub fn take(&mut self, now: Instant) -> bool {
        let paid_until = self.paid_until.unwrap_or(now).max(now) + self.every;
        let granted = paid_until.saturating_duration_since(now) <= self.every * self.size;
        if granted {
            self.paid_until = Some(paid_until);
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_grants_its_size_and_then_its_rate() {
        let mut bucket = Bucket::new(Duration::from_millis(200), 10);
        let now = Instant::now();
        assert_eq!((0..30).filter(|_| bucket.take(now)).count(), 10);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..30).filter(|_| bucket.take(later)).count(), 5);
        let rested = later + Duration::from_secs(60);
        assert_eq!((0..30).filter(|_| bucket.take(rested)).count(), 10);
    }
}

//! How much the account is granted: a token bucket, as AWS throttles its APIs. No size is published for CreateInvalidation; people were throttled
//! after about fifteen at once.

use std::time::{Duration, Instant};

/// A bucket. It is full when it is made.
#[derive(Clone, Debug)]
pub struct Bucket {
    every: Duration,
    size: u32,
    /// What was granted is paid for until then.
    paid_until: Option<Instant>,
}

impl Bucket {
    /// Grants one `every` so long, and `size` of them at once.
    pub const fn new(every: Duration, size: u32) -> Bucket {
        Bucket { every, size, paid_until: None }
    }

    /// Takes so many, if there are as many, or as it is full: more than it holds could never be had otherwise. What is not granted costs
    /// nothing.
    pub fn take(&mut self, now: Instant, cost: u32) -> bool {
        let is_full = self.paid_until.is_none_or(|until| until <= now);
        let paid_until = self.paid_until.unwrap_or(now).max(now) + self.every * cost;
        let granted = is_full || paid_until.saturating_duration_since(now) <= self.every * self.size;
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
        assert_eq!((0..30).filter(|_| bucket.take(now, 1)).count(), 10);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..30).filter(|_| bucket.take(later, 1)).count(), 5);
        let rested = later + Duration::from_secs(60);
        assert_eq!((0..30).filter(|_| bucket.take(rested, 1)).count(), 10);
    }

    #[test]
    fn more_than_it_holds_is_granted_when_it_is_full_and_paid_for() {
        let mut bucket = Bucket::new(Duration::from_secs(1), 1);
        let now = Instant::now();
        assert!(bucket.take(now, 3), "three at once");
        assert!(!bucket.take(now + Duration::from_millis(2_500), 1));
        assert!(bucket.take(now + Duration::from_secs(3), 1));
    }
}

//! The deliveries that ended in this life, so that a repeated notice is not sent again.
//!
//! After a crash a rollout repeats its notice, because its record may not say yet that the notice is out. By then this
//! life may have read and emptied the earlier life's outbox. This list is not durable: if we crash between a delivery and
//! the write that drops the notice from the record, it is sent twice, with the same id and bytes.

use std::collections::VecDeque;

/// How many are remembered; the oldest is forgotten first. Rollouts repeat notices within seconds of a start, and no
/// more than this is delivered in that time. At 70 bytes each this is 300 KB.
pub const DELIVERED_MAX: usize = 4096;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Delivered(VecDeque<String>);

impl Delivered {
    pub fn remember(&mut self, id: &str) {
        if self.0.len() >= DELIVERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(id.to_owned());
    }

    /// Whether it is one of them. Asked once for each delivery of a notice, so a scan is cheap enough.
    pub fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|known| known == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_for_the_newest() {
        let mut delivered = Delivered::default();
        (0..=DELIVERED_MAX).for_each(|number| delivered.remember(&number.to_string()));
        assert!(!delivered.contains("0") && delivered.contains("1") && delivered.contains(&DELIVERED_MAX.to_string()));
    }
}

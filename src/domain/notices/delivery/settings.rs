//! The settings of the outbox, for an operator or a test. Not for how often a delivery is tried; that is
//! [`super::SCHEDULE`].

use std::collections::BTreeMap;
use std::time::Duration;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Deliveries on their way.
    pub live: usize,
    /// Bytes of them, as [`super::Delivery::size_bytes`] counts.
    pub live_bytes: usize,
    /// Dead letters; the oldest is dropped for a newer one.
    pub dead: usize,
    /// Bytes of dead letters.
    pub dead_bytes: usize,
    /// Notices not accepted yet.
    pub notices: usize,
}

impl Default for Limits {
    /// One hook may fill half of what is free, so with one dead receiver 10,000 deliveries wait (fault row H7), at 1.2 KB
    /// each in 12 MB.
    fn default() -> Self {
        let mib = 1024 * 1024;
        Self { live: 20_000, live_bytes: 24 * mib, dead: 2_000, dead_bytes: 4 * mib, notices: 20_000 }
    }
}

/// The fate of a delivery without room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// It is postponed: the rollout's record keeps the notice. Nothing is lost.
    #[default]
    Postpone,
    /// The oldest of the same hook is dropped for it.
    DropOldest,
}

/// The constant inputs of the outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Schedules by hook; [`super::SCHEDULE`] for all others.
    pub schedules: BTreeMap<String, Vec<Duration>>,
    /// The reaction when there is no room.
    pub overflow: Overflow,
    /// How much is kept.
    pub limits: Limits,
}

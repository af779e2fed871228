//! What an object of ours may wait for before it starts anything: a time of the week, the end of a freeze, the word of another system.

use std::time::Duration;

/// A part of the week.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// On these days: 0 is Monday, 6 Sunday. It belongs to the day on which it begins.
    pub days: Vec<u8>,
    /// Minutes after midnight.
    pub from: u16,
    /// Minutes after midnight; not later than `from` means on the next day.
    pub to: u16,
    /// The IANA time zone.
    pub zone: String,
}

/// A time in which nothing starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Freeze {
    /// From, in seconds since the Unix epoch.
    pub from: i64,
    /// To, in seconds since the Unix epoch; not included.
    pub to: i64,
    /// Why, for people.
    pub reason: String,
}

/// Where another system is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerdictSource {
    /// Its address.
    pub url: String,
    /// The Secret whose key signs the question, in the Pipeline's namespace.
    pub secret: Option<String>,
    /// How long it may take to answer.
    pub timeout: Duration,
}

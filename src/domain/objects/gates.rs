//! The waits of an object of ours before it starts anything: a time of the week, the end of a freeze, another system's
//! verdict.

use std::time::Duration;

/// A part of the week.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// On these days: 0 is Monday, 6 Sunday. It belongs to the day on which it begins.
    pub days: Vec<u8>,
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
    pub reason: String,
}

/// Where another system is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerdictSource {
    pub url: String,
    /// The Secret whose key signs the question, in the Pipeline's namespace.
    pub secret: Option<String>,
    /// How long it may take to answer.
    pub timeout: Duration,
}

/// Of an address: its path may hold a token.
pub fn host(url: &str) -> &str {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// `window Mon Fri 09:00 to 17:00 UTC`.
pub fn window(window: &Window) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let days: Vec<&str> = window.days.iter().filter_map(|day| DAYS.get(usize::from(*day)).copied()).collect();
    let days = if days.len() == DAYS.len() { "every day".to_owned() } else { days.join(" ") };
    let at = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
    format!("window {days} {} to {} {}", at(window.from), at(window.to), window.zone)
}

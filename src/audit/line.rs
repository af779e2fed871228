//! One line of a log, as far as it is evidence.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;

/// The fields that are read, by the names that `docs/audit.md` has. Others are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub workload: Cow<'a, str>,
    pub seq: u64,
    #[serde(borrow)]
    pub rollout: Cow<'a, str>,
    #[serde(borrow)]
    pub change: Cow<'a, str>,
    #[serde(borrow)]
    pub distributions: Cow<'a, str>,
    /// `E1=I1,E2=I2`. Not there in logs of releases that did not say it.
    #[serde(borrow)]
    pub invalidations: Cow<'a, str>,
    #[serde(borrow)]
    pub notice: Cow<'a, str>,
    /// When it happened, in milliseconds since the Unix epoch, which may be before its line was written.
    pub at_ms: i64,
    #[serde(borrow)]
    pub member: Cow<'a, str>,
    /// `eu-1=7,us-1=9`.
    #[serde(borrow)]
    pub members: Cow<'a, str>,
    #[serde(borrow)]
    pub hook: Cow<'a, str>,
    #[serde(borrow)]
    pub delivery: Cow<'a, str>,
    /// How a rollout of this member ended, in a word.
    #[serde(borrow)]
    pub outcome: Cow<'a, str>,
    /// One that CloudFront has accepted.
    #[serde(borrow)]
    pub invalidation: Cow<'a, str>,
    #[serde(borrow)]
    pub promise: Cow<'a, str>,
    pub dry_run: bool,
}

impl<'a> Line<'a> {
    /// Reads a line; what a runtime or a collector wrote before the object is passed over. `None`: it is none of ours.
    pub fn read(text: &'a str) -> Option<Self> {
        let (_, rest) = text.split_at_checked(text.find('{')?)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Self>();
        values.next()?.ok().filter(|line| !line.timestamp.is_empty())
    }

    /// When it was written, in microseconds since the Unix epoch.
    pub fn at_us(&self) -> Option<i64> {
        self.timestamp.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
    }
}

/// The pairs of `a=1,b=2`.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').filter_map(|pair| pair.split_once('='))
}

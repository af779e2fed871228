//! Judges by the logs of all members of a group, and by what other witnesses say, whether allclear has kept its promises.
//!
//! An oracle of its own: this crate has no line of what it judges. It knows the fields of log lines that `docs/audit.md` names, and
//! objects as the API servers of Kubernetes and CloudFront give them. What it cannot see, it says; *cannot be told* is an answer.
//!
//! [`Logs`] takes in lines, one at a time and in bounded memory for each; [`judge`] says what follows from all of them.

mod facts;
mod judge;
mod line;
mod names;
mod report;
mod secret;
mod story;
#[cfg(test)]
mod tests;
mod witness;

pub use facts::{Logs, MemberLog};
pub use judge::judge;
pub use report::{Evidence, Judgement, Promise, Report, Verdict};
pub use story::{Change, End};
pub use witness::{Invalidations, Objects, Unreadable};

/// How far the clocks of two members may be apart, in microseconds. Nodes of a cloud are kept within milliseconds.
pub const SKEW_US: i64 = 2_000_000;

/// How long a change that is complete may wait without a word, in microseconds. What waits is repeated daily (`docs/notices.md`), and
/// an hour is left for one that is late.
pub const SILENCE_US: i64 = 25 * 3_600 * 1_000_000;

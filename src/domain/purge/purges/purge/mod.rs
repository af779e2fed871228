//! All purges of one AWS account, on their way: paced, coalesced, retried and waited for.
//!
//! ```text
//!            quiet: at once                    accepted               Completed
//! ordered ──┬──────────────▶ creating ──┬────────────────▶ polling ────────────▶ reported, forgotten
//!           └─ within the   ▲ ▲ │       │ lost answer,        │ slow: Stalled, polled on
//!              debounce ────┘ │ │       │ denied, quota:      │ lost: created again, same reference
//!              window: the    │ │       │ the lane            ▼
//!              newest goes    │ ▼       ▼ refuses
//!                             │ impossible
//!                             └─ throttled: all go slower, this one keeps its place
//! ```
//!
//! A distribution that refuses is a *lane* that is closed: one probe of it is sent from time to time, the newest that waits, and
//! all others wait for what becomes of it. So purges that cannot be made cost what one costs, however many there are, and what
//! was never sent goes before what was (decision 29).
//!
//! One creation per (vector, distribution) rests on the reference alone, which is never changed between attempts; whatever is
//! forgotten here by a crash is ordered again and returns the same invalidation. Purges are never merged into a new identity:
//! one that waits and that another contains is *covered* by it, once that exists (docs/internals/purges.md, *Coalescing*).
//!
//! How many creations there are a second follows from what CloudFront grants (`governor`, decision 44).
//!
//! The account is shared among namespaces: they have creations in turn, and each has a number of purges and of paths an
//! hour for one distribution (decisions 39 and 61).
//!
//! Not for deciding whether to purge, nor for remembering: the record does both.

mod account;
mod governor;
mod job;
mod jobs;
mod lane;
mod lanes;
mod purger;
mod quota;
mod rate;
mod share;
mod unheard;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use kernel::id::{InvalidationId, Reference, Subject};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;
use kernel::refusal::Cause;

pub use governor::CREATIONS_BURST;
pub use lane::TRIED_EVERY;
pub use purger::{Purger, REPEAT_EVERY};
pub use rate::Rate;

/// A purge to be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    pub reference: Reference,
    pub distribution: DistributionId,
    /// The paths that are sent.
    pub paths: PathSet,
    /// The rollout that ordered it, and gets the reports.
    pub subject: Subject,
    /// The invalidation, if an earlier life has already created it: only its completion is awaited.
    pub invalidation: Option<InvalidationId>,
    /// Paths that its namespace may send to one distribution in an hour.
    pub paths_per_hour: u32,
    /// Purges of one distribution that its namespace may have in an hour; further ones are so far apart that no more come to it.
    pub purges_per_hour: u32,
    /// When this process drafted its vote for it. The rollout was complete by then, and cannot have been decided or
    /// purged earlier. `None` if an earlier life or another worker voted: then neither is known.
    pub voted_at: Option<Timestamp>,
    /// When the last vote for it was cast, by its voter's clock, in milliseconds since the Unix epoch; 0 if that was not recorded.
    /// CloudFront made nothing for it before.
    pub voted_ms: i64,
    /// When it was placed, by our clock, in milliseconds since the Unix epoch: what CloudFront says of its own time is compared with it. 0 in
    /// a rollout, which knows no clock: whoever takes the order fills it in.
    pub ordered_ms: i64,
}

/// How a purge goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// CloudFront has accepted it under this id.
    Created(InvalidationId),
    /// A later one that contains its paths was created instead.
    Covered {
        /// The covering purge's reference.
        by: Reference,
        /// The covering purge's id.
        invalidation: InvalidationId,
    },
    /// CloudFront reports it completed. It made the invalidation by a call that this life began at that instant, and by no other;
    /// `None` where that is not known.
    Completed(Option<Timestamp>),
    /// The reference had been used before, with these paths: they are what was purged, whatever would have been sent now.
    SentBefore(PathSet),
    /// The reference belongs to this invalidation, which is older than the vote: the number was used before the ledger was set back.
    /// The purge needs another reference.
    Spent(InvalidationId),
    /// The reference was used with other paths and that invalidation could not be found: done, completion unknown.
    DoneByOther,
    /// It takes longer than the completion timeout; the time waited so far. It is still waited for.
    Stalled(Duration),
    /// It cannot be made, or followed, until an operator acts, for this reason; we keep trying, slowly.
    Failing(String),
    /// It could not be made within the completion timeout, for this reason; it is tried again.
    Overdue(String),
    /// Its namespace has used up its paths or purges of this hour for the distribution. Everything is to be sent instead, which is one
    /// path and covers all that waits: it is ordered again when that is on record.
    OverBudget,
    /// Its namespace has used up its purges of this hour for the distribution: so many. Those that wait share one from time to time.
    /// Reported once, until all have come back.
    Spaced(u32),
    /// It can never be made.
    Impossible(String),
}

/// The reaction to a failed call to the CDN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CdnErrorClass {
    /// Too many calls: HTTP 400 `Throttling`, 429 or 503 in one of their forms.
    Throttled,
    /// The quota of invalidations in progress is used up; it drains by itself.
    TooManyInProgress,
    /// No answer, or one that leaves open whether it happened: a timeout, a lost connection, a 5xx.
    Ambiguous,
    /// Not allowed, or credentials that are missing, expired or wrong.
    Denied,
    /// The distribution does not exist.
    Gone,
    /// The invalidation does not exist.
    NoSuchInvalidation,
    /// The reference was used before with other paths.
    ReferenceReused,
    /// Our request itself is wrong: CloudFront documents so for this code. Final.
    Refused,
    /// A refusal that nothing documents as final: a proxy's page, an unknown code. It may pass, or an operator has to
    /// act.
    Unexpected,
}

impl CdnErrorClass {
    /// Why CloudFront refused a call that would need `right`; `None` where no person has to do anything. The adapter repeats the
    /// code and the status of CloudFront's own answer: `AccessDenied` is its word for a caller who is known and may not. All
    /// other refusals are about who calls (*Common errors* of AWS's API references), and so is what the services say that
    /// hand out credentials, in which there is no such status.
    pub fn cause(self, right: Cause, message: &str) -> Option<Cause> {
        let codes = ["AccessDenied (HTTP ", "AccessDeniedException (HTTP ", "NotAuthorized (HTTP "];
        let known = codes.iter().any(|code| message.contains(code));
        (self == Self::Denied).then_some(if known { right } else { Cause::Credentials })
    }
}

/// How purges are paced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    /// After a creation for a distribution, others for it wait this long and go as one (decision 19).
    pub debounce: Duration,
    /// The creations a second that it begins with, once [`CREATIONS_BURST`] are used up. What CloudFront grants decides the rest.
    pub creations_per_second: Rate,
    /// Never more than these, whatever is granted; the start, if that is more.
    pub creations_per_second_max: Rate,
    /// The first look at whether an invalidation is complete.
    pub poll_first: Duration,
    /// When an invalidation counts as stalled.
    pub completion_timeout: Duration,
}

impl Default for Pace {
    /// Debounce 2 s, half a creation per second and ten at most, first poll after 5 s, stalled after 15 min (decision 24; AWS
    /// staff quote 0.5 creations per second, people report that about ten in one second are throttled, and the 95th percentile
    /// of completion is under 25 s).
    fn default() -> Self {
        Self {
            debounce: Duration::from_secs(2),
            creations_per_second: Rate::from_thousandths(500),
            creations_per_second_max: Rate::from_thousandths(10_000),
            poll_first: Duration::from_secs(5),
            completion_timeout: Duration::from_secs(15 * 60),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A rollout wants a purge. Ordering one that is known only asks for its progress again.
    Ordered(Order),
    /// CloudFront accepted the creation. Last comes when the invalidation was created, where CloudFront says so: by its clock, in
    /// milliseconds since the Unix epoch.
    Created(Reference, InvalidationId, Option<i64>),
    CreateFailed(Reference, CdnErrorClass, String),
    /// An invalidation is still in progress.
    StillInProgress(Reference),
    /// An invalidation is complete.
    Completed(Reference),
    PollFailed(Reference, CdnErrorClass, String),
    /// The owner of a workload wants what was refused to be tried now.
    Retried(Subject),
    /// A reference was looked for among the recent invalidations.
    Searched(Reference, Option<Found>),
    /// It could not be.
    SearchFailed(Reference, String),
    /// An [`Effect::Report`] found no room.
    Unheard(Subject, Reference, Progress),
}

/// An invalidation that was created before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    pub invalidation: InvalidationId,
    pub sent: PathSet,
    /// When it was created, by CloudFront's clock, in milliseconds since the Unix epoch, where that is said.
    pub created_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Create(Order),
    /// Ask how far one is.
    Poll(Reference, DistributionId, InvalidationId),
    /// Look for the reference among the distribution's recent invalidations.
    Search(Reference, DistributionId),
    /// Tell the one that ordered it. Answered by [`Event::Unheard`] if there is no room for it, and not at all otherwise.
    Report(Subject, Reference, Progress),
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Poll(..) => "poll",
            Self::Search(..) => "search",
            Self::Report(..) => "report",
        }
    }
}

#[cfg(test)]
mod tests;

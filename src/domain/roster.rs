//! Who the members of the group are, and what they tell of themselves.
//!
//! A beat is a report: it names members and explains waiting. That a member is alive is never a reason to purge, and that it
//! is silent never one to go on without it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::id::{Member, Origin, WorkloadId};

/// What a member tells of itself every few seconds, on every board it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Its name.
    pub member: Member,
    /// Its ledger: two clusters that took one name are told apart by it.
    pub origin: Origin,
    /// One life of its process, for people.
    pub boot: String,
    /// The program's version.
    pub version: String,
    /// The hash of its configuration, as in its records.
    pub config: String,
    /// The members it agrees with; empty while it does not know them.
    pub members: BTreeSet<Member>,
    /// The settings its configuration hash covers, in words, so that a difference can be named.
    pub settings: BTreeMap<String, String>,
    /// How its rollouts in flight stand, in words.
    pub words: BTreeMap<WorkloadId, String>,
    /// Milliseconds since the Unix epoch by its own clock. Only compared with other beats of the same member.
    pub at_ms: i64,
}

//! A member's vote for a vector. What a purge of the vector depends on is in it, because the votes are all that the members share
//! (GA-7).

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::records::record::{Change, Outcome, Plan, Times, VotePurges};
use crate::records::rules::Rules;
use kernel::id::{Seq, Vector, WorkloadId};
use kernel::names::image::Version;

/// One member's vote for a vector, and what became of it. Never withdrawn once stored (GA-5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vote {
    /// The vector that was voted for.
    #[serde(rename = "v")]
    pub vector: Vector,
    /// The name under which it was cast, where that is not the workload's own (decision 55): part of the rollout's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<WorkloadId>,
    /// The voter's own component.
    #[serde(rename = "s")]
    pub seq: Seq,
    /// The images, for settling the edge and for words.
    #[serde(rename = "i")]
    pub version: Version,
    /// Why and how it was cast.
    #[serde(flatten)]
    pub cast: Cast,
    /// What this member wants purged.
    #[serde(flatten)]
    pub plan: Plan,
    /// The purges of the decided vector, and what this member has said of them.
    #[serde(flatten)]
    pub purges: VotePurges,
    /// Its change in words, once a newer rollout has taken its place: the record then has the change of that one.
    #[serde(rename = "f", default, skip_serializing_if = "String::is_empty")]
    pub change_words: String,
    /// When the stations of this member's rollout began, where traces are exported and the component is news.
    #[serde(rename = "b", default, skip_serializing_if = "Times::is_blank")]
    pub times: Times,
    /// The fate of the vector. The vote stays until every member has recorded that (decision 2).
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Outcome>,
    /// Why, where the outcome does not say it all: the member and its reason.
    #[serde(rename = "y", default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Why a vote was cast, by which rules, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cast {
    /// Why this member's component is news; `Baseline` means it is not, or not any more.
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub change: Change,
    /// This member returned to the version the edge already has, which `purge.on_rollback` takes for no reason of its own to
    /// purge (decision 31).
    #[serde(rename = "x", default, skip_serializing_if = "is_default")]
    pub returned: bool,
    /// It completed after it was recorded as failed, and `purge.on_recovered` says to skip the purge of all then.
    #[serde(rename = "l", default, skip_serializing_if = "is_default")]
    pub late: bool,
    /// The rules it was cast under, by which its vector is judged, planned and named (decision 41).
    #[serde(rename = "j", default, skip_serializing_if = "is_default")]
    pub rules: Rules,
    /// The configuration of the group it was cast under. All votes of a decided vector have the same.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub config: String,
    /// When it was cast, in milliseconds since the Unix epoch by the voter's clock; 0 in votes of rules 1 and 2 while alone. The newest
    /// of a vector is the time in the notices of it in a group, so that they have the same bytes from every member; and what
    /// CloudFront created long before it is no purge of it (decision 48).
    #[serde(rename = "a", default, skip_serializing_if = "is_default")]
    pub at_ms: i64,
}

impl Vote {
    /// Whether its rollout has ended, and purges of it have not. One that was set back owes nothing: its workload is purged anew.
    pub fn owes(&self) -> bool {
        self.closed.as_ref().is_some_and(|outcome| *outcome != Outcome::SetBack) && self.purges.are_left()
    }
}

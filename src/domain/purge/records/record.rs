//! A member's durable state of one workload. All safety depends on it: every step of a rollout is a compare-and-set of
//! its record, and nothing is done that the stored record does not already say.
//!
//! Idle records are most of them, so they are compact: short keys, nothing that is at its default. Not for the webhooks
//! waiting to be delivered; those have objects of their own in the ledger.

mod brief;
mod called;
mod distribution_tenants;
mod ending;
mod last_site;
mod leads;
mod number;
mod open;
mod passed;
mod plan;
mod proving;
mod published;
mod purge;
mod routes;
mod times;
mod vote;
mod vote_purges;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use kernel::floor::Floor;
use kernel::id::{Kind, Nonce, Seq, Vector, WorkloadId};
use kernel::names::group_name::Alias;
use kernel::names::image::{Code, Version};
use kernel::names::paths::PathSet;
use notices::notice::Notice;

pub use brief::Brief;
pub use ending::{Closed, Outcome};
pub use last_site::{LAST_HOSTS_MAX, LAST_SITE_BYTES_MAX, LastSite};
pub use leads::{LEADS_MAX, Lead, Leads, Moved};
pub use passed::{PASSED_MAX, Passed, passed};
pub use plan::{Plan, VOTE_PATH_BYTES_MAX, fitting};
pub use proving::{Looks, PAGES_LOOKED_AT_MAX, Proving, Seen};
pub(crate) use published::ABSENT_REVISION;
pub use published::Published;
pub use purge::{Purge, PurgeState};
pub use routes::{ByHost, Routes};
pub use times::Times;
pub use vote::{Cast, Vote};
pub use vote_purges::{Count, FAILURES_LISTED_MAX, PURGES_NAMED_MAX, PURGES_OPEN_MAX, Unlisted, VotePurges};

/// The newest form of a record this program writes. It reads this one and those before. A record is written in the oldest
/// form that can say all of it; see `record_codec::form`.
pub const SCHEMA: u32 = 6;

/// Closed rollouts kept for `explain` and the status page. Three at about 150 bytes keep 10,000 records of a busy cluster
/// below 100 KB a shard; older ones are in the log.
pub const HISTORY_MAX: usize = 3;

/// Votes that wait for other members at once; a workload that has eight of them waits with its next vote, and says so. What is
/// decided does not count, however long its purges take (decision 29).
pub const VOTES_MAX: usize = 8;

/// Longest record that is written, in bytes of JSON. A ConfigMap has 1 MiB for 156 records (at 10,000 workloads), and only
/// records with a purge on its way are larger than a few hundred bytes.
pub const RECORD_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a version as it is written: forty containers of 100 bytes each, or 27 with digests. At rest a record has it twice, so
/// that 64 of the largest records at rest fill a shard. A workload with a larger one is not followed, and its owner learns what to do.
pub const VERSION_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the words in which a rollout is remembered: what changed, and why it ended so.
pub const WORDS_BYTES_MAX: usize = 1024;

/// Bytes of the words in which a vote remembers what it changes: some five containers with their tags.
pub const CHANGE_WORDS_BYTES_MAX: usize = 256;

/// Bytes that are left free when a vote joins others in a record, and when purges are listed: votes grow by their purges,
/// about 150 bytes each, and by the words about their ends.
pub const VOTE_GROWTH_BYTES: usize = 8 * 1024;

/// Bytes of hosts, and of paths, that a notice mentions: enough for a person; who wants all asks `explain`.
pub const NOTICE_LIST_BYTES_MAX: usize = 1024;

/// Records by workload. There may be tens of thousands of them, so they are shared and not copied by those that write and show them.
pub type Records = BTreeMap<WorkloadId, Arc<Record>>;

/// One member's knowledge of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Raised by one with every write; the ledger's compare-and-set is on it. (*Version* always means what the workload runs.)
    #[serde(rename = "r")]
    pub revision: u64,
    /// The workload's Kubernetes UID.
    #[serde(rename = "u")]
    pub uid: String,
    /// The kind of that object, where it stands in for the one in the workload's name: a Rollout for a Deployment. Where an older program
    /// dropped this, the next sight is one change too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<Kind>,
    /// The version of its template, while that is of an update that was aborted: `version` is what runs. Where an older program dropped
    /// this, the next sight is one change too many, which fails again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Version>,
    /// Raised by one with every change of version or UID (GA-2).
    #[serde(rename = "s")]
    pub seq: Seq,
    /// Drawn anew whenever `seq` is raised; none in records of rules 1 and 2 (decision 48).
    #[serde(rename = "i", default, skip_serializing_if = "Nonce::is_none")]
    pub nonce: Nonce,
    /// The images of the rollout `seq`.
    #[serde(rename = "v")]
    pub version: Version,
    /// `metadata.generation` at the last write: a witness for people, never identity.
    #[serde(rename = "g", default, skip_serializing_if = "is_default")]
    pub generation: i64,
    /// Why `seq` was raised.
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub change: Change,
    /// Their owner's name for these images in the whole group (decision 51); read with them, and no change by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_version: Option<String>,
    /// Its name in its group, where that is not its own (decision 55). No vote of it is open under another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_name: Option<Box<Alias>>,
    /// How far the rollout `seq` is.
    #[serde(rename = "p", default, skip_serializing_if = "is_default")]
    pub phase: Phase,
    /// How long the rollout has been waited for, in milliseconds, not counting pauses. Survives restarts.
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    pub elapsed_ms: u64,
    /// The version the edge was last made to agree with, unless that is `version` itself.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Version>,
    /// How the settled version relates to what has completed since.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub edge: Edge,
    /// The highest seq whose vote is closed (or that closed without one); a later one that completes still awaits its vote.
    #[serde(rename = "k", default, skip_serializing_if = "is_default")]
    pub closed: Seq,
    /// The last value of the annotation `requested-at` that was acted on.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<String>,
    /// The rollouts that it completed before its newest and has not closed, oldest first; only in a group
    /// (decision 52).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Passed>,
    /// Votes whose vectors are not closed, oldest first.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// Votes that all members have closed while purges of them were owed, in brief, oldest first (decision 29).
    #[serde(rename = "y", default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<Vote>,
    /// What is looked for at the edge after purges of this member, by their references. Shared by the copies of this record, of which a
    /// rollout has three.
    #[serde(default, skip_serializing_if = "proving::is_empty", with = "proving::shared")]
    pub looks: Arc<Looks>,
    /// How the last rollouts ended, by their numbers, oldest first.
    #[serde(rename = "h", default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Closed>,
    /// Notices of transitions already in this record that may not have been announced yet.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<Notice>,
    /// The group's configuration it was last brought up to (decision 11); empty while alone.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub config: String,
    /// The newest vector this member voted for; `None` while alone. Its votes are a chain: one at or below this is an old one.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Brief>,
    /// Where members were in votes before that one, under ledgers that it does not name. Where an older program dropped this, a member whose
    /// ledger was lost may be voted with once more by an old copy of it.
    #[serde(default, skip_serializing_if = "Brief::is_empty")]
    pub lives: Brief,
    /// We reported that the present rollout holds up the group, or is held up by it.
    #[serde(rename = "o", default, skip_serializing_if = "is_default")]
    pub stalled: bool,
    /// A newer state of this record (`seq` and revision) that the group had seen when the ledger did not have it any more. Until
    /// it is adopted nothing is agreed on.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub set_back: Option<(Seq, u64)>,
    /// Its owner had taken it out by `enabled: "false"`: what ran meanwhile was not followed, so being switched on again is a
    /// change (decision 28).
    #[serde(default, skip_serializing_if = "is_default")]
    pub off: bool,
    /// The version is that of chosen containers, by annotation. Where an old program dropped this, removing the annotation is one
    /// change too many.
    #[serde(default, skip_serializing_if = "is_default")]
    pub chosen: bool,
    /// The images of volumes count in its versions. Releases up to 2026-11-27 did not read them, and drop this.
    #[serde(rename = "a", default, skip_serializing_if = "is_default")]
    pub volumes: bool,
    /// The first rollout that a purge was asked for with, by `requested-at`, until one of it or of a later rollout is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Seq>,
    /// The paths of that purge, by `requested-paths`; `None` for the usual ones. Where an older program dropped this,
    /// that is purged, which is no less unless the owner has narrowed `paths`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<PathSet>,
    /// The version before, while the rollout is open and the edge does not show it. Only for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Version>,
    /// Its last known site. Where an older program dropped this, a failed rollout of a workload without a
    /// site counts as one that did not end well, until the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<LastSite>,
    /// What led to it when it was last looked at. Where an older program dropped this, the next look begins anew.
    #[serde(rename = "j", default, skip_serializing_if = "Leads::is_empty")]
    pub leads: Leads,
    /// By which paths of its hosts it was reached, where those are what is purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Box<Routes>>,
    /// The last move of traffic to it that a purge was asked for with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// The last words about its pods: why it failed, or what it did not wait for any longer. Shown until the next rollout; an older
    /// program drops them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// When its stations began, while it is open and where traces are exported.
    #[serde(rename = "t", default, skip_serializing_if = "Times::is_blank")]
    pub times: Times,
    /// The unusable parts of the workload, in words; `explain` shows them.
    #[serde(rename = "f", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub conditions: BTreeSet<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Why a rollout began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The first sight of the workload: nothing has changed (decision 1).
    #[default]
    Baseline,
    /// Another version, or another object of the same name.
    Changed,
    /// It was recorded as failed and completed after all.
    Recovered,
    /// Its owner asked, by `requested-at`.
    Requested,
}

/// How far a rollout is. For one seq it moves only Rolling → Complete | Failed | Withdrawn and Complete → Withdrawn (GA-3).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Seen, and not complete.
    Rolling,
    /// The predicate of `readiness` held.
    #[default]
    Complete,
    /// It will not complete, as far as we can tell.
    Failed(Failure),
    /// Given up by policy before any vote was cast (GA-5).
    Withdrawn,
}

impl Phase {
    /// One word for tables and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rolling => "rolling",
            Self::Complete => "complete",
            Self::Failed(_) => "failed",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Why a rollout failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// Kubernetes' own progress deadline, confirmed by a second look.
    ProgressDeadlineExceeded,
    TimedOut,
    /// A person or an analysis aborted it: Argo Rollouts goes back to the pods before.
    Aborted,
    /// Argo Rollouts says so, confirmed by a second look.
    Degraded,
    /// What the operator declares failed held, at two looks.
    Declared,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProgressDeadlineExceeded => "the Deployment missed its progress deadline",
            Self::TimedOut => "the rollout timeout passed",
            Self::Aborted => "the rollout was aborted",
            Self::Degraded => "Argo Rollouts calls it degraded",
            Self::Declared => "workloads.custom calls it failed",
        })
    }
}

/// Whether the edge may hold something else than the settled version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// Nothing but the settled version has completed since it was settled.
    #[default]
    Settled,
    /// Another version has completed or may have been served (decision 31), so the edge may hold it until the next purge.
    Moved,
    /// Never purged, and the first sight was in the middle of a rollout: the edge may hold anything.
    Unknown,
}

impl Record {
    /// Remembers this as the vector that it voted for last; `None`: nothing, as while it is alone, or under a new name.
    pub fn remember_last(&mut self, last: Option<Brief>) {
        match (&self.last, &last) {
            (Some(before), Some(last)) => self.lives.add_lives(before, last),
            (None, Some(_)) => {}
            (_, None) => self.lives = Brief::default(),
        }
        self.last = last;
    }

    /// The number and revision of a record; none is below the first.
    pub fn state_of(record: Option<&Self>) -> (Seq, u64) {
        record.map_or((Seq::default(), 0), |record| (record.seq, record.revision))
    }

    /// The first record of a workload with this number, at rest. Nothing else is known yet.
    pub fn first(seq: Seq) -> Self {
        Self {
            revision: 1,
            uid: String::new(),
            stand_in: None,
            withdrawn: None,
            seq,
            nonce: Nonce::default(),
            version: Version::default(),
            group_version: None,
            group_name: None,
            generation: 0,
            change: Change::Baseline,
            phase: Phase::Complete,
            elapsed_ms: 0,
            settled: None,
            edge: Edge::Settled,
            closed: seq,
            requested_at: None,
            passed: Vec::new(),
            votes: Vec::new(),
            owed: Vec::new(),
            looks: Arc::default(),
            history: Vec::new(),
            untold: Vec::new(),
            config: String::new(),
            last: None,
            lives: Brief::default(),
            stalled: false,
            set_back: None,
            off: false,
            chosen: false,
            volumes: false,
            request: None,
            asked: None,
            from: None,
            site: None,
            leads: Leads::default(),
            routes: None,
            moved: None,
            remark: String::new(),
            times: Times::default(),
            conditions: BTreeSet::new(),
        }
    }

    /// The time the rollout has been waited for, as of the last write.
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms)
    }

    /// The numbers above a floor: that of being absent, and that of the first record after. They differ, so that a vector with
    /// the one is never taken for one with the other. Where nothing was ever removed, being absent needs no number.
    pub fn above(floor: Seq) -> (Seq, Seq) {
        let absent = if floor == Seq::default() { floor } else { floor.next() };
        (absent, absent.next())
    }

    /// Counts a baseline that is not stored yet from another floor.
    pub fn start_above(&mut self, floor: Floor) {
        (_, self.seq) = Self::above(floor.seq);
        self.revision = floor.follows(Self::state_of(None), self.seq).saturating_add(1);
        self.closed = self.seq;
    }

    /// The running version, in the form that other members compare.
    pub fn code(&self) -> Code<'_> {
        Code { version: &self.version, group_version: self.group_version.as_deref() }
    }

    /// The version the edge was last made to agree with, if that is known.
    pub fn settled(&self) -> Option<&Version> {
        match self.edge {
            Edge::Unknown => None,
            Edge::Settled | Edge::Moved => Some(self.settled.as_ref().unwrap_or(&self.version)),
        }
    }

    /// The replaced version: the one that ran before, or the one that the edge has.
    pub fn before(&self) -> Option<&Version> {
        self.from.as_ref().or_else(|| self.settled())
    }

    /// The vote for this vector, closed or not.
    pub fn vote(&self, vector: &Vector) -> Option<&Vote> {
        self.votes.iter().find(|vote| vote.vector == *vector)
    }

    /// The vote for this vector, among those kept for what they owe too.
    pub fn kept(&self, vector: &Vector) -> Option<&Vote> {
        self.all_kept().find(|vote| vote.vector == *vector)
    }

    /// All votes, those kept for what they owe first: in the order in which they were cast, as far as they overlap.
    pub fn all_kept(&self) -> impl DoubleEndedIterator<Item = &Vote> {
        self.owed.iter().chain(&self.votes)
    }

    /// The same, to be changed.
    pub fn all_kept_mut(&mut self) -> impl Iterator<Item = &mut Vote> {
        self.owed.iter_mut().chain(&mut self.votes)
    }

    /// The open vote whose own component is the rollout `seq`.
    pub fn vote_for(&self, seq: Seq) -> Option<&Vote> {
        self.votes.iter().find(|vote| vote.seq == seq && vote.closed.is_none())
    }
}

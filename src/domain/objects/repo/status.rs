//! The status of a `Repo`. All inputs of later decisions are in it, and are durable before anything follows
//! from it (RP-1).
//!
//! It stands in the object in the form that serde gives it, and the CRD is made from it too, so that comments of its fields are what
//! `kubectl explain` says. Times are milliseconds since the Unix epoch.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::form::{At, Count, Form, In, named};
use crate::repo::reported::Report;
use crate::status::{Approval, Conditions, Late, before_the_first};
use kernel::id::{CommitId, RunSeq};
use notices::notice::Notice;

#[cfg(feature = "schema")]
use schemars::JsonSchema;

/// Commits that one run names as skipped. Those before them are in the repository's own log.
pub const SKIPPED_MAX: usize = 20;

/// What allclear remembers and shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Status {
    /// How often this status was written.
    #[serde(default, with = "In::<Count<u64>>")]
    pub serial: u64,
    /// The generation that was judged last; -1 before the first.
    #[serde(default = "before_the_first")]
    pub observed_generation: i64,
    /// The commit that is wanted, as it was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// The commit that waits for the present run to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// The newest run, open or over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The newest commit that changes nothing of what concerns it, and is not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Unchanged>,
    /// What is known of changes outside of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// What was reported to the forge of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// The run that destroys what was applied, for the Repo is being deleted: its plan, its question and its Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroy: Option<Run>,
    /// How many runs there were.
    #[serde(default, with = "In::<Count<RunSeq>>")]
    pub seq: RunSeq,
    /// What waits for a person.
    #[serde(rename = "waitingApproval", skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// A lock in the way of the run, about which a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<crate::repo::held::HeldLock>,
    /// It takes longer than it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Late>,
    /// Ended runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = crate::status::HISTORY_MAX)))]
    pub history: Vec<Ended>,
    /// Notices that are not on their way yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Value>", length(max = crate::status::UNTOLD_MAX)))]
    pub untold: Vec<Notice>,
    /// Ready: the wanted commit is applied, or planned where nothing is ever applied. Stalled: a person must act. Drifted: what was applied is not what is there any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "Conditions")]
    #[cfg_attr(feature = "schema", schemars(length(max = 8)))]
    pub conditions: Vec<Condition>,
}

/// The commit that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Head {
    /// The commit that it is about.
    pub revision: CommitId,
    /// The ref that points to it.
    #[serde(rename = "ref", default)]
    pub name: String,
    /// When it was seen there first.
    #[serde(rename = "seenAt", with = "In::<At>")]
    pub seen_ms: i64,
}

/// The commit that waits for the present run to end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Next {
    /// The commit that it is about.
    pub revision: CommitId,
    /// Since when it waits.
    #[serde(rename = "since", with = "In::<At>")]
    pub since_ms: i64,
    /// Commits that are not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = SKIPPED_MAX)))]
    pub skipped: Vec<CommitId>,
}

/// A commit that is not run, because it changes nothing under path and watchPaths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Unchanged {
    /// The commit that it is about.
    pub revision: CommitId,
    /// The commit that was applied, with which it was compared.
    pub since: CommitId,
    /// The number of the run that applied it.
    #[serde(with = "In::<Count<RunSeq>>")]
    pub seq: RunSeq,
    /// The hash of the paths that were compared.
    // `Source::paths_hash`.
    pub paths: String,
    /// When that was found.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
}

impl Status {
    /// The look at drift that is under way.
    pub fn look(&self) -> Option<&Run> {
        self.drift.as_ref()?.look.as_ref()
    }
}

/// What is known of changes outside of git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Drift {
    /// The look under way: a run of a plan alone, beside the run that has applied the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Run>,
    /// The number of the newest look.
    #[serde(default, with = "In::<Count<u32>>")]
    pub looks: u32,
    /// What the last look found that could be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// The looks since then that could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// Since when none can be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Late>,
    /// When a run was begun for drift last.
    #[serde(rename = "appliedAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub applied_ms: Option<i64>,
}

/// What a look at drift found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Seen {
    /// The number of the run that had applied the commit.
    #[serde(with = "In::<Count<RunSeq>>")]
    pub seq: RunSeq,
    /// The hash of the settings that it was made with.
    // `Spec::settings`.
    pub settings: String,
    /// What an apply would change. Nothing, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Since when each look has found that.
    #[serde(rename = "since", with = "In::<At>")]
    pub since_ms: i64,
    /// When it was found last.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
}

/// Looks at drift that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Missed {
    /// So many in a row.
    #[serde(with = "In::<Count<u32>>")]
    pub count: u32,
    /// When the last one ended.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
    /// The hash of the settings that it was to be made with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// Its Job, whose log may say why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What is done for one change of the wanted commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Run {
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The commit that is run.
    pub revision: CommitId,
    #[serde(flatten)]
    pub terms: Terms,
    /// Waiting, Starting, Started, Planned; then Succeeded, Failed, Lost or Superseded.
    pub phase: Phase,
    /// The Job of the newest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRef>,
    /// What its plan would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Who said yes, by their own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What failed attempts come to.
    #[serde(default, skip_serializing_if = "Failing::is_none", deserialize_with = "failing")]
    pub failing: Failing,
    /// When the Job was ordered.
    #[serde(rename = "startedAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub started_ms: Option<i64>,
    /// When the run ended.
    #[serde(rename = "endedAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub ended_ms: Option<i64>,
    /// Commits that are not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = SKIPPED_MAX)))]
    pub skipped: Vec<CommitId>,
    /// What it waits for, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Names a Job of a Repo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Attempt {
    /// The number of the run.
    #[serde(serialize_with = "In::<Count<RunSeq>>::serialize", deserialize_with = "seq")]
    #[cfg_attr(feature = "schema", schemars(with = "Count<RunSeq>"))]
    pub seq: RunSeq,
    /// The number of that Job among those of the run; 0 before there is one.
    #[serde(rename = "attempt", deserialize_with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "Count<u32>"))]
    pub number: u32,
    /// What its newest Job does, or its next: plan, apply, drift, destroy-plan or destroy.
    pub action: Action,
}

/// The parts of a run that are flat in it lose their place before they are read, so that their errors say which they are.
fn seq<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunSeq, D::Error> {
    In::<Count<RunSeq>>::deserialize(deserializer).map_err(|why| D::Error::custom(format!("seq: {why}")))
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    In::<Count<u32>>::deserialize(deserializer).map_err(|why| D::Error::custom(format!("attempt: {why}")))
}

/// The terms of a run, beside the commit. Empty for a run of the program before ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Terms {
    /// The hash of the folder and the workspace that it was begun for.
    // `Spec::work`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// The hash of all settings of its newest Job.
    // `Spec::settings`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
}

/// What failed attempts come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Failing {
    /// Those in a row that failed before an apply had begun.
    #[serde(default, with = "In::<Count<u32>>")]
    pub before: u32,
    /// Applies that had begun and failed.
    #[serde(default, with = "In::<Count<u32>>")]
    pub applies: u32,
    /// The next attempt is not made before.
    #[serde(rename = "notBefore", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub not_before_ms: Option<i64>,
}

impl Failing {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

fn failing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Failing, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

named! {
    /// The action of a Job.
    pub enum Action("action") {
        /// Says what an apply would change.
        Plan = "plan",
        Apply = "apply",
        /// Says what an apply of what was applied would change: a look at drift.
        Drift = "drift",
        /// Says what a destroy of what was applied would take away.
        DestroyPlan = "destroy-plan",
        Destroy = "destroy",
    }
}

named! {
    /// How far a run has got.
    pub enum Phase("phase of a run") {
        /// Gates are closed, a person must approve, or a failed attempt is paused.
        Waiting = "Waiting",
        /// A Job is ordered: it may have been made, and nothing of it runs.
        Starting = "Starting",
        /// The Job's UID is known: it may have been started.
        Started = "Started",
        /// A plan waits for a yes; or nothing follows on it, if it has an end.
        Planned = "Planned",
        /// It was applied, or there was nothing to apply.
        Succeeded = "Succeeded",
        Failed = "Failed",
        /// A Job that may have been started is gone.
        Lost = "Lost",
        /// Another commit took its place before anything was applied.
        Superseded = "Superseded",
    }
}

impl Phase {
    /// Whether the run goes on.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Starting | Self::Started | Self::Planned)
    }
}

/// A Job, by its name and UID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct JobRef {
    /// The name of the Job.
    pub name: String,
    /// Its UID, once it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What a plan would change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Plan {
    /// The hash of what it would change. A yes is a yes to this.
    pub fingerprint: String,
    // `None` where the plan is any text.
    #[serde(flatten, deserialize_with = "counts")]
    pub counts: Option<Counts>,
    /// The Job whose log shows it.
    #[serde(default)]
    pub job: String,
}

/// How much a plan would change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Counts {
    /// Resources to be created.
    #[cfg_attr(feature = "schema", schemars(with = "Count<u32>"))]
    pub add: u32,
    /// Resources to be changed.
    #[cfg_attr(feature = "schema", schemars(with = "Count<u32>"))]
    pub change: u32,
    /// Resources to be destroyed.
    #[cfg_attr(feature = "schema", schemars(with = "Count<u32>"))]
    pub destroy: u32,
}

/// None of them is there where the plan is any text.
fn counts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Counts>, D::Error> {
    #[derive(Deserialize)]
    struct Given {
        #[serde(default)]
        add: Option<Count<u32>>,
        #[serde(default)]
        change: Option<Count<u32>>,
        #[serde(default)]
        destroy: Option<Count<u32>>,
    }

    let Given { add, change, destroy } = Given::deserialize(deserializer)?;
    let is_given = add.is_some() || change.is_some() || destroy.is_some();
    let count = |given: Option<Count<u32>>| given.map(Count::value).unwrap_or_default();
    Ok(is_given.then(|| Counts { add: count(add), change: count(change), destroy: count(destroy) }))
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { add, change, destroy } = self;
        write!(f, "{add} to add, {change} to change, {destroy} to destroy")
    }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Waiting {
    /// What the annotation allclear.dev/approve has to say.
    pub ticket: String,
    /// Revision: may this commit be applied? Plan: may what the plan says be changed? Again: it failed, or its Job is gone; once
    /// more? Destroy: may what the plan says be destroyed? DestroyAgain: that failed, or its Job is gone; once more?
    #[serde(rename = "for")]
    pub question: Question,
    /// Since when that is so.
    #[serde(rename = "since", with = "In::<At>")]
    pub since_ms: i64,
}

named! {
    /// The kinds of questions to a person.
    pub enum Question("question") {
        /// May this commit be applied?
        Revision = "Revision",
        /// May what this plan says be changed?
        Plan = "Plan",
        /// It failed, or its Job is gone. Once more?
        Again = "Again",
        /// May what this plan says be destroyed, for the Repo is being deleted?
        Destroy = "Destroy",
        /// The destroy failed, or its Job is gone. Is it planned again?
        DestroyAgain = "DestroyAgain",
    }
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ended {
    /// The number of the run.
    #[serde(with = "In::<Count<RunSeq>>")]
    pub seq: RunSeq,
    /// The commit that was run.
    pub revision: CommitId,
    /// Succeeded, Failed, Lost, Superseded, or Planned where nothing is ever applied.
    pub outcome: Phase,
    /// Who said yes, by their own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Commits that were not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = SKIPPED_MAX)))]
    pub skipped: Vec<CommitId>,
    /// The hash of the folder and the workspace that it was for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// When the run ended.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
}

/// A condition of a Repo.
pub type Condition = crate::status::Condition<ConditionKind>;

named! {
    /// The conditions of a Repo.
    pub enum ConditionKind("condition of a Repo") {
        /// The wanted commit is applied, or planned where none ever is. Unknown while something runs.
        Ready = "Ready",
        /// A person must act. Absent otherwise.
        Stalled = "Stalled",
        /// A plan of what was applied would change something. Unknown before such a plan was made; absent where none is.
        Drifted = "Drifted",
        /// The forge of the repository has the report of the newest run. Absent without a report.
        Reported = "Reported",
    }
}

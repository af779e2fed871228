//! What is remembered of a Repo, as it stands in the object. The CRD is made from these types, so their comments are what
//! `kubectl explain` says. `runJobName`, `gitSHA` and `runStatus` are those of the program before this one, for those who read them.
//!
//! Not for what they mean; that is `remembered`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
use schemars::JsonSchema;

/// What allclear remembers and shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RepoStatus {
    /// The generation that was judged last; -1 before the first.
    #[serde(default = "before_the_first")]
    pub observed_generation: i64,
    /// Ready: the wanted commit is applied. Stalled: a person must act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 8)))]
    pub conditions: Vec<Condition>,
    /// How often this status was written.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub serial: i64,
    /// The newest run's Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_job_name: Option<String>,
    /// The newest run's commit.
    #[serde(rename = "gitSHA", skip_serializing_if = "Option::is_none")]
    pub git_sha: Option<String>,
    /// The newest run: New, Pending, Running, Completed or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_status: Option<String>,
    /// The beginning of gitSHA, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_revision: Option<String>,
    /// The commit that is wanted, as it was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// The commit that waits for the present run to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// The newest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStatus>,
    /// How many runs there were.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// What waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<Waiting>,
    /// It takes longer than it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Late>,
    /// Ended runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 10)))]
    pub history: Vec<Ended>,
    /// Notices that are not on their way yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 16)))]
    pub untold: Vec<Value>,
}

/// What a status says before its first write.
const fn before_the_first() -> i64 {
    -1
}

/// A condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Condition {
    /// Ready or Stalled.
    #[serde(rename = "type")]
    #[cfg_attr(test, schemars(length(max = 316)))]
    pub kind: String,
    /// True, False or Unknown.
    #[cfg_attr(test, schemars(regex(pattern = "^(True|False|Unknown)$")))]
    pub status: String,
    /// One word.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub reason: String,
    /// One sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 32768)))]
    pub message: String,
    /// Since when it is so.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// The generation that this condition describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The commit that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Head {
    /// The commit.
    pub revision: String,
    /// The ref that points to it.
    #[serde(rename = "ref", default)]
    pub name: String,
    /// When it was seen there first.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub seen_at: String,
}

/// The commit that waits for the present run to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Next {
    /// The commit.
    pub revision: String,
    /// Since when it waits.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub since: String,
    /// Commits that are not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub skipped: Vec<String>,
}

/// What is done for one change of the wanted commit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunStatus {
    /// Its number.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// The commit.
    pub revision: String,
    /// What its newest Job does, or its next: plan or apply.
    pub action: String,
    /// The number of that Job among those of the run; 0 before there is one.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub attempt: i64,
    /// Waiting, Starting, Started, Planned; then Succeeded, Failed, Lost or Superseded.
    pub phase: String,
    /// The Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRef>,
    /// When the Job was ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started_at: Option<String>,
    /// When the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub ended_at: Option<String>,
    /// What its plan would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Who said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What failed attempts come to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
    /// Commits that are not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub skipped: Vec<String>,
    /// The hash of the folder and the workspace that it was begun for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// The hash of all settings of its newest Job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// What it waits for, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct JobRef {
    /// Its name.
    pub name: String,
    /// Its UID, once it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What a plan would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Plan {
    /// The hash of what it would change. A yes is a yes to this.
    pub fingerprint: String,
    /// Resources to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub add: Option<i64>,
    /// Resources to be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub change: Option<i64>,
    /// Resources to be destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub destroy: Option<i64>,
    /// The Job whose log shows it.
    #[serde(default)]
    pub job: String,
}

/// A person's yes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Approval {
    /// Who, as they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// To which question.
    pub ticket: String,
    /// When it was seen.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub at: String,
    /// Time and verdict gates are open for this run.
    #[serde(rename = "override", default, skip_serializing_if = "std::ops::Not::not")]
    pub overrides: bool,
}

/// What failed attempts come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Failing {
    /// Those in a row that failed before an apply had begun.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub before: i64,
    /// Applies that had begun and failed.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub applies: i64,
    /// The next attempt is not made before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub not_before: Option<String>,
}

/// A question to a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Waiting {
    /// What the annotation allclear.dev/approve has to say.
    pub ticket: String,
    /// Revision: may this commit be applied? Plan: may what the plan says be changed? Again: it failed, or its Job is gone; once
    /// more?
    #[serde(rename = "for")]
    pub question: String,
    /// Since when.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub since: String,
}

/// It takes longer than it should.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Late {
    /// Since when.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub since: String,
    /// It was told that this takes long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// A run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Ended {
    /// Its number.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// The commit.
    pub revision: String,
    /// Succeeded, Failed, Lost or Superseded.
    pub outcome: String,
    /// Who said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Commits that were not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub skipped: Vec<String>,
    /// When.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub at: String,
}

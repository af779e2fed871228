//! What is remembered of a Pipeline, as it stands in the object. The CRD is made from these types, so their comments are what
//! `kubectl explain` says. Fields of `pipelines.weave.works` keep their names and places.
//!
//! Not for what they mean; that is `remembered`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::raw_spec::ClusterRef;

#[cfg(test)]
use schemars::JsonSchema;

/// What allclear remembers and shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PipelineStatus {
    /// The generation that was judged last; -1 before the first.
    #[serde(default = "before_the_first")]
    pub observed_generation: i64,
    /// Ready: every target could be read. PromotionPending: a promotion waits. Stalled: a person must act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 8)))]
    pub conditions: Vec<Condition>,
    /// How often this status was written.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub serial: i64,
    /// The revision of the first environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<String>,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environments: BTreeMap<String, EnvironmentStatus>,
    /// Ended promotions, oldest first.
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
    /// Ready, PromotionPending or Stalled.
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

/// What is known of one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct EnvironmentStatus {
    /// In the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 50)))]
    pub targets: Vec<TargetStatus>,
    /// What waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<Waiting>,
    /// The newest promotion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionStatus>,
    /// How many promotions it has had.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// The revision at which it was last done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
    /// The pull request that is open for it, or may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<RequestStatus>,
    /// Pull requests that nothing follows, oldest first: they are closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub closing: Vec<RequestStatus>,
    /// It is not where the environment before it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// What the environments before it have been done at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trail: Option<Trail>,
}

/// What the environments before one have been done at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Trail {
    /// Names the targets that were looked at.
    pub of: String,
    /// Oldest first; the last one is the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub revisions: Vec<String>,
    /// Since when the newest is good without a break: its soak.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub since: Option<String>,
    /// Since when it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub unready_since: Option<String>,
    /// The verdict was open since then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agreed: bool,
    /// The newest that may move on, under advance: Stepwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<String>,
}

/// One target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TargetStatus {
    /// The object.
    #[serde(default)]
    pub cluster_app_ref: ClusterAppRef,
    /// The object's UID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Whether it is ready.
    #[serde(default)]
    pub ready: bool,
    /// What it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Why it cannot be read, or says no revision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Why it is not ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A target's object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ClusterAppRef {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its cluster. Without one, this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterRef>,
}

/// A question to a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Waiting {
    /// About this revision. Empty: nothing waits.
    #[serde(default)]
    pub revision: String,
    /// What the annotation allclear.dev/approve has to say.
    #[serde(default)]
    pub ticket: String,
    /// Approval: may it be promoted? Again: its request was closed; once more? Left: the environment was there and left; again?
    /// Overwrite: the branch holds other commits; replace them?
    #[serde(rename = "for", default)]
    pub question: String,
    /// Since when.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub since: String,
}

/// One change of revision of one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PromotionStatus {
    /// Its number in the environment.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// What is promoted.
    pub revision: String,
    /// What was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Waiting, Started, Proposed, Landed; then Completed, Superseded, Withdrawn or Abandoned.
    pub phase: String,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started_at: Option<String>,
    /// What it waits for, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Who said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
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
    /// Time and verdict gates are open for this promotion.
    #[serde(rename = "override", default, skip_serializing_if = "std::ops::Not::not")]
    pub overrides: bool,
}

/// A pull request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RequestStatus {
    /// The promotion that it was made for.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// The forge's number. Without one, it may exist, and is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub number: Option<i64>,
    /// Its address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The commit at its head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryStatus>,
    /// Why it is closed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Where a pull request is, as the spec said when it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RepositoryStatus {
    /// The forge.
    #[serde(rename = "type")]
    pub forge: String,
    /// The repository's address.
    pub url: String,
    /// The branch that the request goes to.
    pub base_branch: String,
    /// The folder with the markers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// An environment is not where the one before it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Behind {
    /// Since when.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub since: String,
    /// It was told that this takes long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// A promotion that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Ended {
    /// Into which environment.
    pub environment: String,
    /// Its number.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seq: i64,
    /// What was promoted.
    pub revision: String,
    /// Completed, Superseded, Withdrawn or Abandoned.
    pub outcome: String,
    /// Who said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub at: String,
}

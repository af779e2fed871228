//! The status of a `Pipeline`. All inputs of later decisions are in it, and are durable before anything
//! follows from it (PL-1).
//!
//! It stands in the object in the form that serde gives it, and the CRD is made from it too, so that comments of its fields are what
//! `kubectl explain` says. Fields of `pipelines.weave.works` keep their names and places. Times are milliseconds since the Unix epoch.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::apps::app::{ClusterRef, TargetKey};
use crate::form::{At, Count, Filled, Form, In, named};
use crate::pipeline::options::Lacks;
use crate::pipeline::proposal::Repository;
use crate::pipeline::trail::Trail;
use crate::status::{Approval, Conditions, Late, before_the_first};
use kernel::id::{Environment, PromotionSeq, Revision};
use notices::notice::Notice;

#[cfg(feature = "schema")]
use schemars::JsonSchema;

/// Requests of an environment that wait to be closed: one for each change of repository, rarely many in an hour.
pub const CLOSING_MAX: usize = 4;

/// Revisions that one choice was made over: as many as a trail has. Beyond it the oldest are forgotten.
pub(super) const OVER_MAX: usize = 20;

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
    /// The revision of the first environment.
    #[serde(rename = "latestRevision", default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub latest: Option<Revision>,
    /// What is known of each environment, by its name.
    // Those that the spec no longer has are kept while they have a promotion or a request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environments: BTreeMap<Environment, EnvironmentStatus>,
    /// Notices that are not on their way yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Value>", length(max = crate::status::UNTOLD_MAX)))]
    pub untold: Vec<Notice>,
    /// Ended promotions, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = crate::status::HISTORY_MAX)))]
    pub history: Vec<Ended>,
    /// Ready: every target could be read. PromotionPending: a promotion waits. Stalled: a person must act.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "Conditions")]
    #[cfg_attr(feature = "schema", schemars(length(max = 8)))]
    pub conditions: Vec<Condition>,
}

/// What is known of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct EnvironmentStatus {
    /// In the order of the spec.
    // For people: no decision reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 50)))]
    pub targets: Vec<TargetStatus>,
    /// What waits for a person.
    #[serde(rename = "waitingApproval", skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "waiting")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Asked>"))]
    pub waiting: Option<Waiting>,
    /// The newest promotion into it, open or over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
    /// How many promotions it has had.
    #[serde(default, with = "In::<Count<PromotionSeq>>")]
    pub seq: PromotionSeq,
    /// What the environments before it have been done at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trail: Option<Trail>,
    /// The same of each further environment just before it, under advance: Stepwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 20)))]
    pub further_trails: Vec<Trail>,
    /// The revision at which it was last done.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub reached: Option<Revision>,
    /// The pull request that is open for it, or may be.
    #[serde(rename = "pullRequest", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Closing>"))]
    pub request: Option<OpenRequest>,
    /// Pull requests that nothing follows, oldest first: they are closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "In::<Vec<Closing>>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 20)))]
    pub closing: Vec<(OpenRequest, String)>,
    /// It is not where the environment before it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Late>,
    /// The revision that a person chose for it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Choice>,
    /// What it was promoted to, while it may go back from that by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
}

/// What an environment was promoted to, while it may go back from that by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Watch {
    /// The number of the promotion.
    #[serde(with = "In::<Count<PromotionSeq>>")]
    pub seq: PromotionSeq,
    /// The revision that was promoted with it.
    pub revision: Revision,
    /// What it goes back to.
    // It was ready at it when the promotion started.
    pub had: Revision,
    /// When a target was first at it.
    #[serde(rename = "arrivedAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub arrived_ms: Option<i64>,
    /// stalled and verdict, as long as each counts.
    // It counts once; a stall until it is ready, a verdict unless a person opened it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 2)))]
    pub on: Vec<Cause>,
}

/// A revision that a person chose for an environment, whatever those before it are at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Choice {
    /// The number of its promotion.
    #[serde(with = "In::<Count<PromotionSeq>>")]
    pub seq: PromotionSeq,
    /// The revision that a person chose.
    pub revision: Revision,
    /// Who chose it, by their own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What is promoted only after a yes: the environment had it, or was to have it.
    // Empty once it was done at something else than these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = OVER_MAX)))]
    pub over: Vec<Revision>,
}

/// One target, as it was seen last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TargetStatus {
    /// The object that is looked at.
    #[serde(default)]
    pub cluster_app_ref: ClusterAppRef,
    /// The UID of that object: another one is another app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Whether it is ready.
    #[serde(default)]
    pub ready: bool,
    /// The revision that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub revision: Option<Revision>,
    /// Why it cannot be read, or says no revision.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub error: Option<String>,
    /// Why it is not ready.
    // In a field of our own: pipelines.weave.works says nothing of that, and people alert on `error`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub message: Option<String>,
}

/// The object of a target, and its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClusterAppRef {
    /// Its group and version.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// Its cluster. Without one, this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterRef>,
}

impl ClusterAppRef {
    /// That of a target.
    pub fn of(target: &TargetKey) -> Self {
        Self {
            api_version: target.app.api_version.clone(),
            kind: target.app.kind.clone(),
            name: target.name.clone(),
            cluster_ref: target.cluster.reference(),
        }
    }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Waiting {
    pub revision: Revision,
    /// The ticket that an answer has to name.
    pub ticket: String,
    #[serde(rename = "for")]
    pub question: Question,
    #[serde(rename = "since", with = "In::<At>")]
    pub since_ms: i64,
}

/// A question to a person.
// As it stands in the object: upstream writes one without a ticket where nothing waits.
#[derive(Default, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
struct Asked {
    /// About this revision. Empty: nothing waits.
    revision: String,
    /// What the annotation allclear.dev/approve has to say.
    ticket: String,
    /// Approval: may it be promoted? Again: its request was closed; once more? Left: the environment was there and left; again?
    /// Overwrite: the branch holds other commits; replace them?
    #[serde(rename = "for")]
    question: String,
    /// Since when that is so.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    since: String,
}

fn waiting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Waiting>, D::Error> {
    let is_one = |asked: &Asked| !asked.revision.is_empty() && !asked.ticket.is_empty();
    let Some(asked) = Option::<Asked>::deserialize(deserializer)?.filter(is_one) else { return Ok(None) };
    let Asked { revision, ticket, question, since } = asked;
    let wrong = |why: &str| D::Error::custom(format!("waitingApproval.{why}"));
    Ok(Some(Waiting {
        revision: Revision(revision),
        ticket,
        question: Question::named(&question).ok_or_else(|| wrong(&format!("for: {question:?} is no question")))?,
        since_ms: At::parse(&since).map_err(|why| wrong(&format!("since: {why}")))?.value(),
    }))
}

named! {
    /// The kinds of questions to a person.
    pub enum Question("question") {
        /// May it be promoted?
        Approval = "Approval",
        /// Its pull request was closed. Once more?
        Again = "Again",
        /// The environment was there and left. Promote it again?
        Left = "Left",
        /// The branch holds commits that are not ours. Replace them?
        Overwrite = "Overwrite",
    }
}

/// One change of revision of one environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Promotion {
    /// Its number in the environment.
    #[serde(default, with = "In::<Count<PromotionSeq>>")]
    pub seq: PromotionSeq,
    /// The revision that is promoted.
    pub revision: Revision,
    /// The revision that was there before.
    // If all targets had the same when it began.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub from: Option<Revision>,
    /// Waiting, Started, Proposed, Landed; then Completed, Superseded, Withdrawn or Abandoned.
    pub phase: Phase,
    /// When it was started.
    #[serde(rename = "startedAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub started_ms: Option<i64>,
    /// Who said yes, by their own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// It goes back to what the environment had, since those before it did.
    // Noted where it may go back by itself: that would be forward.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returns: bool,
    /// It was chosen, or goes back by itself: how it relates to what was there.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub chosen: Option<String>,
    /// stalled or verdict: the environment goes back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Cause>,
    /// What it waits for, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

named! {
    /// Why an environment goes back by itself.
    pub enum Cause("cause to go back") {
        /// The other system says no to what it has.
        Verdict = "verdict",
        /// It is not ready after as long as that may take.
        Stalled = "stalled",
    }
}

named! {
    /// How far a promotion has got. It only moves down this list.
    pub enum Phase("phase of a promotion") {
        /// Gates are closed, or a person must approve.
        Waiting = "Waiting",
        /// It is decided: what follows may have happened.
        Started = "Started",
        /// Its pull request is open.
        Proposed = "Proposed",
        /// Its notice was sent or its request merged, or the environment is on its way: it waits for the targets.
        Landed = "Landed",
        /// The environment is done at its revision.
        Completed = "Completed",
        /// Another revision took its place.
        Superseded = "Superseded",
        /// The environment before it went to another revision.
        Withdrawn = "Withdrawn",
        /// A person closed its pull request.
        Abandoned = "Abandoned",
    }
}

impl Phase {
    /// Whether the promotion goes on.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Started | Self::Proposed | Self::Landed)
    }

    /// Whether it may follow on `before` in one promotion (PL-3).
    pub fn may_follow(self, before: Self) -> bool {
        let leaves = match before {
            Self::Waiting | Self::Started | Self::Proposed => true,
            Self::Landed => matches!(self, Self::Completed | Self::Superseded | Self::Withdrawn),
            Self::Completed | Self::Superseded | Self::Withdrawn | Self::Abandoned => false,
        };
        self == before
            || leaves
                && match self {
                    Self::Waiting => false,
                    Self::Started => before == Self::Waiting,
                    Self::Proposed | Self::Abandoned => matches!(before, Self::Started | Self::Proposed),
                    Self::Landed | Self::Completed | Self::Superseded | Self::Withdrawn => true,
                }
    }
}

/// A pull request that is open, as far as we know, or may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OpenRequest {
    /// The promotion that it was made for.
    // The newest one, or the newest that it may have been rewritten for.
    #[serde(default, with = "In::<Count<PromotionSeq>>")]
    pub seq: PromotionSeq,
    /// The forge's number. Without one, it may exist, and is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Option<Count<u64>>>")]
    pub number: Option<u64>,
    /// The address of the request, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The commit at its head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The options that it lacks, and why.
    // Tried again at each look.
    #[serde(default, skip_serializing_if = "Lacks::is_empty")]
    pub lacks: Lacks,
    /// The repository and the branch that it is for.
    // `None`: an earlier version made it, where the spec said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<Repository>,
}

/// A pull request that is to be closed.
// With the reason for which it is closed.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Closing {
    #[serde(flatten)]
    request: OpenRequest,
    /// Why it is closed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
}

impl Form<(OpenRequest, String)> for Closing {
    fn of((request, reason): (OpenRequest, String)) -> Self {
        Self { request, reason }
    }

    fn value(self) -> (OpenRequest, String) {
        (self.request, self.reason)
    }
}

impl OpenRequest {
    /// Whether requests of this repository are those among which it is.
    pub fn is_in(&self, repository: &Repository) -> bool {
        self.repository.as_ref().is_none_or(|own| own.is_place_of(repository))
    }
}

/// A promotion that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ended {
    /// The environment that it was for.
    pub environment: Environment,
    /// The number of the promotion in its environment.
    #[serde(with = "In::<Count<PromotionSeq>>")]
    pub seq: PromotionSeq,
    /// The revision that was promoted.
    pub revision: Revision,
    /// Completed, Superseded, Withdrawn or Abandoned.
    pub outcome: Phase,
    /// Who said yes, by their own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// It was chosen, or went back by itself: how it related to what was there.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub chosen: Option<String>,
    /// stalled or verdict: the environment went back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Cause>,
    /// When the promotion ended.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
}

/// A condition of a Pipeline.
pub type Condition = crate::status::Condition<ConditionKind>;

named! {
    /// The conditions of a Pipeline.
    pub enum ConditionKind("condition of a Pipeline") {
        /// Every target could be read.
        Ready = "Ready",
        /// A promotion waits. Absent when none does.
        PromotionPending = "PromotionPending",
        /// A person must act.
        Stalled = "Stalled",
        /// No webhook takes its promotions by notification. Absent when one does.
        Unheard = "Unheard",
    }
}

impl Status {
    /// Whether a condition holds.
    pub fn holds(&self, kind: ConditionKind) -> bool {
        self.conditions.iter().any(|condition| condition.kind == kind && condition.holds == Some(true))
    }

    /// The status of an environment.
    pub fn environment(&self, name: &Environment) -> Option<&EnvironmentStatus> {
        self.environments.get(name)
    }
}

impl EnvironmentStatus {
    /// Its promotion, while it goes on.
    pub fn open(&self) -> Option<&Promotion> {
        self.promotion.as_ref().filter(|promotion| promotion.phase.is_open())
    }
}

//! The status of a `Pipeline`. All inputs of later decisions are in it, and are durable before anything
//! follows from it (PL-1).

use std::collections::BTreeMap;

use crate::kernel::id::{Environment, PromotionSeq, Revision};
use crate::notices::notice::Notice;
use crate::pipeline::proposal::Repository;
use crate::pipeline::trail::Trail;

/// Ended promotions that are kept for people.
pub const HISTORY_MAX: usize = 10;

/// Requests of an environment that wait to be closed: one for each change of repository, rarely many in an hour.
pub const CLOSING_MAX: usize = 4;

/// Notices that wait for the outbox. It takes one in milliseconds; sixteen are twenty environments' worth of a bad minute.
pub const UNTOLD_MAX: usize = 16;

/// The status of a Pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// How often it was written. It never decreases, but for a restore from a backup.
    pub serial: u64,
    /// The generation that was judged; -1 before the first.
    pub observed_generation: i64,
    /// The revision of the first environment, once it is settled.
    pub latest: Option<Revision>,
    /// By name. Those that the spec no longer has are kept while they have a promotion or a request.
    pub environments: BTreeMap<Environment, EnvironmentStatus>,
    /// Notices that the outbox does not have yet.
    pub untold: Vec<Notice>,
    /// Ended promotions, oldest first.
    pub history: Vec<Ended>,
    /// For people and their tools.
    pub conditions: Vec<Condition>,
}

/// The status of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvironmentStatus {
    /// The states of its targets, in the order of the spec. For people: no decision reads them.
    pub targets: Vec<TargetStatus>,
    /// The question that waits for a person.
    pub waiting: Option<Waiting>,
    /// Its newest promotion.
    pub promotion: Option<Promotion>,
    /// The highest number that a promotion had.
    pub seq: PromotionSeq,
    /// The revisions at which the environments before it were done, where the spec asks for them.
    pub trail: Option<Trail>,
    /// The revision at which it was last done, as the environment before it was.
    pub reached: Option<Revision>,
    /// The pull request that is open for its newest promotion, or becomes that one's.
    pub request: Option<OpenRequest>,
    /// Pull requests that nothing follows, each with the reason for which it is closed. Oldest first.
    pub closing: Vec<(OpenRequest, String)>,
    /// Since when it is not where the environment before it is.
    pub behind: Option<Behind>,
}

/// One target, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetStatus {
    /// The cluster's reference: kind, namespace, name; `None`: this cluster.
    pub cluster: Option<crate::apps::app::LeafId>,
    pub uid: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    pub revision: Option<Revision>,
    /// Why it cannot be read, or says no revision.
    pub error: Option<String>,
    /// Why it is not ready. In a field of our own: pipelines.weave.works says nothing of that, and people alert on `error`.
    pub message: Option<String>,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    pub revision: Revision,
    /// The ticket that an answer has to name.
    pub ticket: String,
    pub question: Question,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

/// The kinds of questions to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// May it be promoted?
    Approval,
    /// Its pull request was closed. Once more?
    Again,
    /// The environment was there and left. Promote it again?
    Left,
    /// The branch holds commits that are not ours. Replace them?
    Overwrite,
}

impl Question {
    pub const ALL: [Self; 4] = [Self::Approval, Self::Again, Self::Left, Self::Overwrite];

    /// Its name in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approval => "Approval",
            Self::Again => "Again",
            Self::Left => "Left",
            Self::Overwrite => "Overwrite",
        }
    }
}

/// One change of revision of one environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Promotion {
    /// Its number in the environment.
    pub seq: PromotionSeq,
    pub revision: Revision,
    /// The environment's revision when it began, if all targets had the same.
    pub from: Option<Revision>,
    /// How far it has got.
    pub phase: Phase,
    /// When it was started, in milliseconds since the Unix epoch.
    pub started_ms: Option<i64>,
    pub approval: Option<Approval>,
    /// Its wait or its end, in one sentence.
    pub message: String,
}

/// How far a promotion has got. It only moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Gates are closed, or a person must approve.
    Waiting,
    /// It is decided: what follows may have happened.
    Started,
    /// Its pull request is open.
    Proposed,
    /// Its notice was sent or its request merged, or the environment is on its way: it waits for the targets.
    Landed,
    /// The environment is done at its revision.
    Completed,
    /// Another revision took its place.
    Superseded,
    /// The environment before it went to another revision.
    Withdrawn,
    /// A person closed its pull request.
    Abandoned,
}

impl Phase {
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Started,
        Self::Proposed,
        Self::Landed,
        Self::Completed,
        Self::Superseded,
        Self::Withdrawn,
        Self::Abandoned,
    ];

    /// Its name in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Started => "Started",
            Self::Proposed => "Proposed",
            Self::Landed => "Landed",
            Self::Completed => "Completed",
            Self::Superseded => "Superseded",
            Self::Withdrawn => "Withdrawn",
            Self::Abandoned => "Abandoned",
        }
    }

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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Approval {
    /// Who, as they said; the admission policy makes it true.
    pub by: Option<String>,
    /// Which ticket they answered.
    pub ticket: String,
    /// When we saw it, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Time and verdict gates are open for this promotion.
    pub overrides: bool,
}

/// A pull request that is open, as far as we know, or may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenRequest {
    /// The newest promotion that it was made for, or may have been rewritten for.
    pub seq: PromotionSeq,
    /// The forge's number. `None`: not known yet; the request may exist.
    pub number: Option<u64>,
    /// Its address, for people; empty with the number.
    pub url: String,
    /// The commit at its head.
    pub commit: Option<String>,
    /// Where it is. `None`: an earlier version made it, where the spec said.
    pub repository: Option<Repository>,
}

impl OpenRequest {
    /// Whether requests of this repository are those among which it is.
    pub fn is_in(&self, repository: &Repository) -> bool {
        self.repository.as_ref().is_none_or(|own| own.is_place_of(repository))
    }
}

/// An environment is not where the one before it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behind {
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The long wait was announced.
    pub told: bool,
}

/// A promotion that has ended, for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ended {
    pub environment: Environment,
    pub seq: PromotionSeq,
    pub revision: Revision,
    pub outcome: Phase,
    pub by: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// A condition, as Kubernetes has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub kind: ConditionKind,
    pub holds: bool,
    pub reason: String,
    pub message: String,
    /// Since when it holds, or does not, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

/// The conditions of a Pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// Every target could be read.
    Ready,
    /// A promotion waits. Absent when none does.
    PromotionPending,
    /// A person must act.
    Stalled,
    /// No webhook takes its promotions by notification. Absent when one does.
    Unheard,
}

impl ConditionKind {
    pub const ALL: [Self; 4] = [Self::Ready, Self::PromotionPending, Self::Stalled, Self::Unheard];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::PromotionPending => "PromotionPending",
            Self::Stalled => "Stalled",
            Self::Unheard => "Unheard",
        }
    }
}

impl Status {
    /// Whether a condition holds.
    pub fn holds(&self, kind: ConditionKind) -> bool {
        self.conditions.iter().any(|condition| condition.kind == kind && condition.holds)
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

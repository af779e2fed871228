//! The status of a `Repo`. All inputs of later decisions are in it, and are durable before anything follows
//! from it (RP-1).

use std::fmt;

use crate::kernel::id::{Revision, RunSeq};
use crate::notices::notice::Notice;

/// Ended runs that are kept for people.
pub const HISTORY_MAX: usize = 10;

/// Notices that wait for the outbox, which takes one in milliseconds.
pub const UNTOLD_MAX: usize = 16;

/// Commits that one run names as skipped. Those before them are in the repository's own log.
pub const SKIPPED_MAX: usize = 20;

/// The status of a Repo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// How often it was written. It never decreases, but for a restore from a backup.
    pub serial: u64,
    /// The generation that was judged; -1 before the first.
    pub observed_generation: i64,
    /// The commit that is wanted, as it was seen last.
    pub head: Option<Head>,
    /// The commit that waits for the present run to end.
    pub next: Option<Next>,
    /// The newest run.
    pub run: Option<Run>,
    /// The highest number that a run had.
    pub seq: RunSeq,
    /// The question that waits for a person.
    pub waiting: Option<Waiting>,
    /// Since when something is waited for, and whether the long wait was announced.
    pub late: Option<Late>,
    /// Ended runs, oldest first.
    pub history: Vec<Ended>,
    /// Notices that the outbox does not have yet.
    pub untold: Vec<Notice>,
    /// For people and their tools.
    pub conditions: Vec<Condition>,
}

/// The commit that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    pub revision: Revision,
    /// The name of the ref that points to it, for people.
    pub name: String,
    /// When it was seen there first, in milliseconds since the Unix epoch.
    pub seen_ms: i64,
}

/// A commit that waits for the present run to end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Next {
    pub revision: Revision,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// Commits whose place it took.
    pub skipped: Vec<Revision>,
}

/// The run for one change of the wanted commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Its number, and which Job is its newest, or its next.
    pub attempt: Attempt,
    pub revision: Revision,
    /// Its terms, beside the commit.
    pub terms: Terms,
    /// How far it has got.
    pub phase: Phase,
    /// Its newest Job.
    pub job: Option<JobRef>,
    /// The changes of its plan, once there is one.
    pub plan: Option<Plan>,
    pub approval: Option<Approval>,
    /// The state of its failed attempts.
    pub failing: Failing,
    /// When its newest Job was ordered, in milliseconds since the Unix epoch.
    pub started_ms: Option<i64>,
    /// When it ended, in milliseconds since the Unix epoch.
    pub ended_ms: Option<i64>,
    /// Commits whose place it took.
    pub skipped: Vec<Revision>,
    /// Its wait or its end, in one sentence.
    pub message: String,
}

impl Run {
    /// Its newest Job, and what that does or did. While it waits for the next one to be ordered, the attempt is already that of the next
    /// one: then only a Job that planned is known for what it did.
    pub fn newest_job(&self) -> Option<(&JobRef, Action)> {
        let job = self.job.as_ref()?;
        if self.plan.as_ref().is_some_and(|plan| plan.job == job.name) {
            return Some((job, Action::Plan));
        }
        (self.phase != Phase::Waiting).then_some((job, self.attempt.action))
    }
}

/// Names a Job of a Repo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The number of the run.
    pub seq: RunSeq,
    /// The Job's number among those of this run: 1 for the first, 0 before there is one.
    pub number: u32,
    /// The action of the Job.
    pub action: Action,
}

/// The terms of a run, beside the commit. Empty for a run of the program before ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// [`Spec::work`](super::spec::Spec::work).
    pub work: String,
    /// [`Spec::settings`](super::spec::Spec::settings), also of its newest Job.
    pub settings: String,
}

/// The state of a run's failed attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Failing {
    /// Attempts in a row that failed before an apply had begun.
    pub before: u32,
    /// Applies that had begun and failed.
    pub applies: u32,
    /// The next attempt is not made before this time, in milliseconds since the Unix epoch.
    pub not_before_ms: Option<i64>,
}

/// The action of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Says what an apply would change.
    Plan,
    Apply,
}

impl Action {
    pub const ALL: [Self; 2] = [Self::Plan, Self::Apply];

    /// Its name in the status, on Jobs and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
        }
    }

    /// The action of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// How far a run has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Gates are closed, a person must approve, or a failed attempt is paused.
    Waiting,
    /// A Job is ordered: it may have been made, and nothing of it runs.
    Starting,
    /// The Job's UID is known: it may have been started.
    Started,
    /// A plan waits for a yes.
    Planned,
    /// It was applied, or there was nothing to apply.
    Succeeded,
    Failed,
    /// A Job that may have been started is gone.
    Lost,
    /// Another commit took its place before anything was applied.
    Superseded,
}

impl Phase {
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Starting,
        Self::Started,
        Self::Planned,
        Self::Succeeded,
        Self::Failed,
        Self::Lost,
        Self::Superseded,
    ];

    /// Its name in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Starting => "Starting",
            Self::Started => "Started",
            Self::Planned => "Planned",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Lost => "Lost",
            Self::Superseded => "Superseded",
        }
    }

    /// Whether the run goes on.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Starting | Self::Started | Self::Planned)
    }
}

/// A Job of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobRef {
    pub name: String,
    /// Its UID, once it is known to be made.
    pub uid: Option<String>,
}

/// The changes of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The hash of what it would change: what a yes is a yes to.
    pub fingerprint: String,
    /// Its counts; `None` where the plan is any text.
    pub counts: Option<Counts>,
    /// The Job that made it, whose log shows it.
    pub job: String,
}

/// How much a plan would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Resources to be created.
    pub add: u32,
    /// Resources to be changed.
    pub change: u32,
    /// Resources to be destroyed.
    pub destroy: u32,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { add, change, destroy } = self;
        write!(f, "{add} to add, {change} to change, {destroy} to destroy")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Approval {
    /// Who, as they said.
    pub by: Option<String>,
    /// Which ticket they answered.
    pub ticket: String,
    /// When we saw it, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Time and verdict gates are open for this run.
    pub overrides: bool,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    pub question: Question,
    /// The ticket that an answer has to name.
    pub ticket: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

/// The kinds of questions to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// May this commit be applied?
    Revision,
    /// May what this plan says be changed?
    Plan,
    /// It failed, or its Job is gone. Once more?
    Again,
}

impl Question {
    pub const ALL: [Self; 3] = [Self::Revision, Self::Plan, Self::Again];

    /// Its name in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Revision => "Revision",
            Self::Plan => "Plan",
            Self::Again => "Again",
        }
    }
}

/// Something is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Late {
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The long wait was announced.
    pub told: bool,
}

/// A run that has ended, for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ended {
    pub seq: RunSeq,
    pub revision: Revision,
    pub outcome: Phase,
    pub by: Option<String>,
    /// Commits whose place it took.
    pub skipped: Vec<Revision>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// A condition, as Kubernetes has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub kind: ConditionKind,
    /// Whether it holds; `None` for `Unknown`.
    pub holds: Option<bool>,
    pub reason: String,
    pub message: String,
    /// Since when that is so, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

/// The conditions of a Repo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// The wanted commit is applied. Unknown while something runs.
    Ready,
    /// A person must act. Absent otherwise.
    Stalled,
}

impl ConditionKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Stalled => "Stalled",
        }
    }
}

//! One Repo for people: which commit is wanted, how far its run has got, what it waits for, and what comes next. The page, the API and
//! the commands show the same thing.
//!
//! Nothing is decided here: reasons are the machine's own, from its status.

mod words;

use serde::{Deserialize, Serialize};

use crate::kept::unjudged;
use crate::repo::ask::again;
use crate::repo::concern::unchanged_words;
use crate::repo::held::HeldLock;
use crate::repo::job::{StepKind, logs};
use crate::repo::spec::Object;
use crate::repo::status::{Action, ConditionKind, Ended, Head, Phase, Plan, Run, Status, Waiting};
use crate::status::ConditionView;
use kernel::id::{CommitId, RepoId, RunSeq};

/// A Repo's state for a person. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub id: RepoId,
    /// Where commits come from, in words; empty without a usable spec.
    pub source: String,
    /// The obstacles to judging it by its present spec.
    pub held: Held,
    /// The commit that is wanted, as it was seen last.
    pub head: Option<HeadView>,
    pub run: Option<RunView>,
    /// The commit that follows the present run.
    pub queued: Option<QueuedView>,
    /// The obstacle to applying the wanted commit, in one sentence; `None` if it is applied, or there is none.
    pub waits: Option<String>,
    /// The next step, or the remedy, in one sentence.
    pub next: String,
    /// The question to a person.
    pub question: Option<QuestionView>,
    /// The conditions of an apply, in words.
    pub gates: Vec<String>,
    /// As in its status.
    pub conditions: Vec<ConditionView>,
    /// Ended runs, newest first.
    pub history: Vec<EndedView>,
}

/// The obstacles to judging a Repo by its present spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// A person stopped it, for this reason.
    pub suspended: Option<String>,
    /// The fault of its spec: nothing new is run then.
    pub faulty: Option<String>,
    /// Why this view is older than the spec, if it is.
    pub unjudged: Option<String>,
}

/// The commit that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadView {
    pub revision: CommitId,
    /// The ref that points to it.
    pub name: String,
    /// When it was seen there first.
    pub seen_ms: i64,
    /// That it changes nothing that concerns the Repo, in one sentence; it is not run then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<String>,
}

/// A commit that waits for a run to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedView {
    pub revision: CommitId,
    pub since_ms: i64,
    /// Commits whose place it took: they are not run.
    pub skipped: Vec<CommitId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// Its number; 0 for one of the program before ours.
    pub seq: RunSeq,
    pub revision: CommitId,
    /// How far it has got.
    pub phase: String,
    pub open: bool,
    /// Its wait or its end; empty before it was judged.
    pub message: String,
    pub job: Option<JobView>,
    /// The changes of its plan.
    pub plan: Option<PlanView>,
    /// The approver, as stated, and the time. Empty if no name was given.
    pub approved: Option<(String, i64)>,
    /// When its newest Job was ordered.
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    /// Commits whose place it took: they are not run.
    pub skipped: Vec<CommitId>,
    /// Of one that succeeded: the ticket of a yes by which its commit is run once more, or the wanted one, which changes nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    pub name: String,
    /// `plan` or `apply`.
    pub action: String,
    /// Its number among those of the run.
    pub number: u32,
    /// The command that shows the log of its own step; `None` where that has not begun, or is gone.
    pub logs: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanView {
    /// How much it would change; `None` where the plan is any text.
    pub counts: Option<String>,
    /// The fingerprint that an approval approves.
    pub fingerprint: String,
    /// The Job that made it.
    pub job: String,
    /// The command that shows it.
    pub logs: String,
}

/// The kind of a question about a lock that is in the way of a run.
pub const UNLOCK: &str = "Unlock";

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// `Revision`, `Plan`, `Again` or [`UNLOCK`].
    pub kind: String,
    /// The question in words.
    pub words: String,
    /// The ticket that an answer has to name.
    pub ticket: String,
    pub since_ms: i64,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedView {
    pub seq: RunSeq,
    pub revision: CommitId,
    pub outcome: String,
    pub by: Option<String>,
    /// Commits whose place it took.
    pub skipped: Vec<CommitId>,
    pub at_ms: i64,
}

impl View {
    /// A person must act.
    pub fn is_stalled(&self) -> bool {
        self.conditions.iter().any(|one| one.kind == ConditionKind::Stalled.name() && one.holds == Some(true))
    }

    /// That the wanted commit changes nothing that concerns it, in one sentence.
    pub fn unchanged(&self) -> Option<&str> {
        self.head.as_ref()?.unchanged.as_deref()
    }

    /// An apply of what was applied would change something by now.
    pub fn has_drifted(&self) -> bool {
        self.conditions.iter().any(|one| one.kind == ConditionKind::Drifted.name() && one.holds == Some(true))
    }

    /// The forge of its repository has no report, and gets it again.
    pub fn is_unreported(&self) -> bool {
        self.conditions.iter().any(|one| one.kind == ConditionKind::Reported.name() && one.holds == Some(false))
    }

    /// Of its conditions, whether the wanted commit is applied.
    pub fn ready(&self) -> Option<&ConditionView> {
        self.conditions.iter().find(|one| one.kind == ConditionKind::Ready.name())
    }
}

/// Puts a Repo into words: the object, and what it is known to remember.
pub fn view(object: &Object, status: &Status) -> View {
    let spec = object.spec.as_ref();
    let scene = words::Scene { object, status };
    View {
        id: object.id.clone(),
        source: spec.map(|spec| words::source(&spec.source)).unwrap_or_default(),
        held: Held {
            suspended: spec.ok().and_then(|spec| spec.suspended.clone()),
            faulty: spec.err().cloned(),
            unjudged: unjudged(status.serial, status.observed_generation, object.generation),
        },
        head: status.head.as_ref().map(|head| HeadView {
            revision: head.revision.clone(),
            name: head.name.clone(),
            seen_ms: head.seen_ms,
            unchanged: spec.ok().and_then(|spec| {
                let record = status.unchanged_head(&spec.source)?;
                Some(unchanged_words(&spec.source, record))
            }),
        }),
        run: status.newest().map(|one| run(object, one, status.head.as_ref())),
        queued: status.next.as_ref().map(|next| QueuedView {
            revision: next.revision.clone(),
            since_ms: next.since_ms,
            skipped: next.skipped.clone(),
        }),
        waits: scene.waits(),
        next: scene.next(),
        question: status.waiting.as_ref().map(question).or_else(|| status.lock.as_ref().and_then(of_lock)),
        gates: spec.map(words::gates).unwrap_or_default(),
        conditions: status.conditions.iter().map(ConditionView::from).collect(),
        history: status.history.iter().rev().map(ended).collect(),
    }
}

/// The step of a Job that people ask about.
pub const fn own_step(action: Action) -> StepKind {
    match action {
        Action::Plan | Action::Drift | Action::DestroyPlan => StepKind::Plan,
        Action::Apply | Action::Destroy => StepKind::Apply,
    }
}

/// Whether the own step of a run's newest Job has a log: where it did not come to that, the run's message names the log that says why.
const fn has_log(phase: Phase) -> bool {
    match phase {
        Phase::Started | Phase::Planned | Phase::Succeeded | Phase::Failed => true,
        Phase::Waiting | Phase::Starting | Phase::Lost | Phase::Superseded => false,
    }
}

fn run(object: &Object, run: &Run, head: Option<&Head>) -> RunView {
    let id = &object.id;
    RunView {
        seq: run.attempt.seq,
        revision: run.revision.clone(),
        phase: run.phase.name().to_owned(),
        open: run.is_open(),
        message: run.message.clone(),
        job: run.newest_job().map(|(job, action)| JobView {
            name: job.name.clone(),
            action: action.name().to_owned(),
            number: run.attempt.number,
            logs: has_log(run.phase).then(|| logs(&id.namespace, &job.name, own_step(action))),
        }),
        plan: run.plan.as_ref().map(|one| plan(id, one)),
        approved: run.approval.as_ref().map(|yes| (yes.by.clone().unwrap_or_default(), yes.at_ms)),
        started_ms: run.started_ms,
        ended_ms: run.ended_ms,
        skipped: run.skipped.clone(),
        again: again(&object.uid, run, head).filter(|_| !object.is_leaving()),
    }
}

fn plan(id: &RepoId, plan: &Plan) -> PlanView {
    PlanView {
        counts: plan.counts.map(|counts| counts.to_string()),
        fingerprint: plan.fingerprint.clone(),
        job: plan.job.clone(),
        logs: logs(&id.namespace, &plan.job, StepKind::Plan),
    }
}

fn question(waiting: &Waiting) -> QuestionView {
    QuestionView {
        kind: waiting.question.name().to_owned(),
        words: waiting.question.words().to_owned(),
        ticket: waiting.ticket.clone(),
        since_ms: waiting.since_ms,
    }
}

/// The question about a lock, until it is answered.
fn of_lock(held: &HeldLock) -> Option<QuestionView> {
    held.approval.is_none().then(|| QuestionView {
        kind: UNLOCK.to_owned(),
        words: format!("may a lock be taken away? {}", held.words()),
        ticket: held.ticket.clone(),
        since_ms: held.asked_ms,
    })
}

fn ended(ended: &Ended) -> EndedView {
    EndedView {
        seq: ended.seq,
        revision: ended.revision.clone(),
        outcome: ended.outcome.name().to_owned(),
        by: ended.by.clone(),
        skipped: ended.skipped.clone(),
        at_ms: ended.at_ms,
    }
}

#[cfg(test)]
mod tests;

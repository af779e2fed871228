//! The status of a Repo, between the object and the domain, both ways. What was read and written again is the same. A status of the
//! program before this one is taken over: its commit counts as run.
//!
//! Not for deciding what is in it.

use domain::kernel::id::{Revision, RunSeq};
use domain::notices::notice::Notice;
use domain::repo::spec::Object;
use domain::repo::status::{
    Action, Approval, Attempt, Condition, ConditionKind, Counts, Ended, Failing, Head, JobRef, Late, Next, Phase, Plan,
    Question, Run, Status, Terms, Waiting,
};
use serde_json::Value;

use super::super::values::{at, count, ms, number};
use super::git::is_commit;
use super::raw_status as raw;

/// Characters of a commit that people are shown.
const SHORT_CHARS: usize = 12;

/// Reads the status of an object; without one it is that of a Repo that was never judged.
///
/// # Errors
/// When something in it is not what we write, in words.
pub fn read(json: Option<&str>) -> Result<Status, String> {
    let Some(json) = json.filter(|json| *json != "null") else {
        return Ok(Status { observed_generation: -1, ..Status::default() });
    };
    let raw: raw::RepoStatus = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let earlier = earlier(&raw)?;
    let conditions = raw.conditions.into_iter().filter_map(|one| condition(one).transpose());
    let notice = |one: Value| serde_json::from_value::<Notice>(one).map_err(|error| format!("untold: {error}"));
    let late = |one: raw::Late| Ok::<_, String>(Late { since_ms: ms(&one.since)?, told: one.told });
    Ok(Status {
        serial: count(raw.serial, "serial")?,
        observed_generation: raw.observed_generation,
        head: raw.head.map(head).transpose()?,
        next: raw.next.map(next).transpose()?,
        run: raw.run.map(run).transpose()?.or(earlier),
        seq: RunSeq(count(raw.seq, "seq")?),
        waiting: raw.waiting_approval.map(waiting).transpose()?,
        late: raw.late.map(late).transpose()?,
        history: raw.history.into_iter().map(ended).collect::<Result<_, _>>()?,
        untold: raw.untold.into_iter().map(notice).collect::<Result<_, _>>()?,
        conditions: conditions.collect::<Result<_, _>>()?,
    })
}

/// The run of the program before this one, if that is what the status remembers: we write `run` beside its fields.
fn earlier(raw: &raw::RepoStatus) -> Result<Option<Run>, String> {
    if raw.run.is_some() {
        return Ok(None);
    }
    let (phase, how) = match raw.run_status.as_deref() {
        None | Some("" | "New" | "Pending") => return Ok(None),
        Some("Completed") => (Phase::Succeeded, "the program before allclear ran it"),
        Some("Running") => (Phase::Succeeded, "the program before allclear was running it, and it counts as run"),
        Some("Failed") => (Phase::Failed, "the program before allclear ran it, and it failed"),
        Some(other) => return Err(format!("runStatus: {other:?} is no status of a run")),
    };
    let job = raw.run_job_name.as_deref().filter(|name| !name.is_empty());
    Ok(Some(Run {
        attempt: Attempt { seq: RunSeq(0), number: 0, action: Action::Apply },
        revision: commit(raw.git_sha.clone().unwrap_or_default(), "gitSHA")?,
        terms: Terms::default(),
        phase,
        job: None,
        plan: None,
        approval: None,
        failing: Failing::default(),
        started_ms: None,
        ended_ms: None,
        skipped: Vec::new(),
        message: job.map_or_else(|| how.to_owned(), |job| format!("{how} (Job {job})")),
    }))
}

/// The status of an object as it stands in it.
pub fn written(object: &Object) -> raw::RepoStatus {
    let Status { serial, observed_generation, head, next, run, seq, waiting, late, history, untold, conditions } =
        &object.status;
    let newest = run.as_ref().map(|run| &run.revision).or(head.as_ref().map(|head| &head.revision)).map(text);
    let condition = |one: &Condition| raw::Condition {
        kind: one.kind.name().to_owned(),
        status: one.holds.map_or("Unknown", |holds| if holds { "True" } else { "False" }).to_owned(),
        reason: one.reason.clone(),
        message: one.message.clone(),
        last_transition_time: at(one.since_ms),
        observed_generation: Some(*observed_generation),
    };
    let ended = |one: &Ended| raw::Ended {
        seq: number(one.seq.0),
        revision: text(&one.revision),
        outcome: one.outcome.name().to_owned(),
        by: one.by.clone(),
        skipped: texts(&one.skipped),
        at: at(one.at_ms),
    };
    raw::RepoStatus {
        observed_generation: *observed_generation,
        conditions: conditions.iter().map(condition).collect(),
        serial: number(*serial),
        run_job_name: run.as_ref().and_then(|run| run.job.as_ref()).map(|job| job.name.clone()),
        run_status: newest.is_some().then(|| earlier_name(run.as_ref()).to_owned()),
        short_revision: newest.as_ref().map(|revision| revision.chars().take(SHORT_CHARS).collect()),
        git_sha: newest,
        head: head.as_ref().map(|one| raw::Head {
            revision: text(&one.revision),
            name: one.name.clone(),
            seen_at: at(one.seen_ms),
        }),
        next: next.as_ref().map(|one| raw::Next {
            revision: text(&one.revision),
            since: at(one.since_ms),
            skipped: texts(&one.skipped),
        }),
        run: run.as_ref().map(write_run),
        seq: number(seq.0),
        waiting_approval: waiting.as_ref().map(|one| raw::Waiting {
            ticket: one.ticket.clone(),
            question: one.question.name().to_owned(),
            since: at(one.since_ms),
        }),
        late: late.map(|one| raw::Late { since: at(one.since_ms), told: one.told }),
        history: history.iter().map(ended).collect(),
        // A notice is plain data: it has no form that JSON has not.
        untold: untold.iter().filter_map(|notice| serde_json::to_value(notice).ok()).collect(),
    }
}

/// What the program before this one would call it.
fn earlier_name(run: Option<&Run>) -> &'static str {
    match run.map(|run| run.phase) {
        None | Some(Phase::Waiting | Phase::Superseded) => "New",
        Some(Phase::Starting | Phase::Planned) => "Pending",
        Some(Phase::Started) => "Running",
        Some(Phase::Succeeded) => "Completed",
        Some(Phase::Failed | Phase::Lost) => "Failed",
    }
}

fn head(raw: raw::Head) -> Result<Head, String> {
    Ok(Head { revision: commit(raw.revision, "head.revision")?, name: raw.name, seen_ms: ms(&raw.seen_at)? })
}

fn next(raw: raw::Next) -> Result<Next, String> {
    Ok(Next {
        revision: commit(raw.revision, "next.revision")?,
        since_ms: ms(&raw.since)?,
        skipped: commits(raw.skipped, "next.skipped")?,
    })
}

fn run(raw: raw::RunStatus) -> Result<Run, String> {
    let approval = |one: raw::Approval| {
        Ok::<_, String>(Approval { by: one.by, ticket: one.ticket, at_ms: ms(&one.at)?, overrides: one.overrides })
    };
    let failing = |one: raw::Failing| {
        Ok::<_, String>(Failing {
            before: small(one.before, "run.failing.before")?,
            applies: small(one.applies, "run.failing.applies")?,
            not_before_ms: one.not_before.as_deref().map(ms).transpose()?,
        })
    };
    let action = Action::named(&raw.action);
    Ok(Run {
        attempt: Attempt {
            seq: RunSeq(count(raw.seq, "run.seq")?),
            action: action.ok_or_else(|| format!("run.action: {:?} is no action", raw.action))?,
            number: small(raw.attempt, "run.attempt")?,
        },
        revision: commit(raw.revision, "run.revision")?,
        terms: Terms { work: raw.work, settings: raw.settings },
        phase: phase(&raw.phase)?,
        job: raw.job.map(|one| JobRef { name: one.name, uid: one.uid }),
        plan: raw.plan.map(plan).transpose()?,
        approval: raw.approval.map(approval).transpose()?,
        failing: raw.failing.map(failing).transpose()?.unwrap_or_default(),
        started_ms: raw.started_at.as_deref().map(ms).transpose()?,
        ended_ms: raw.ended_at.as_deref().map(ms).transpose()?,
        skipped: commits(raw.skipped, "run.skipped")?,
        message: raw.message,
    })
}

fn write_run(run: &Run) -> raw::RunStatus {
    let Run { attempt, revision, terms, phase, job, plan, approval, failing, .. } = run;
    let Run { started_ms, ended_ms, skipped, message, .. } = run;
    let counted = |of: fn(&Counts) -> u32| plan.as_ref()?.counts.as_ref().map(of).map(i64::from);
    raw::RunStatus {
        seq: number(attempt.seq.0),
        revision: text(revision),
        action: attempt.action.name().to_owned(),
        attempt: i64::from(attempt.number),
        phase: phase.name().to_owned(),
        job: job.as_ref().map(|one| raw::JobRef { name: one.name.clone(), uid: one.uid.clone() }),
        started_at: started_ms.map(at),
        ended_at: ended_ms.map(at),
        plan: plan.as_ref().map(|one| raw::Plan {
            fingerprint: one.fingerprint.clone(),
            add: counted(|counts| counts.add),
            change: counted(|counts| counts.change),
            destroy: counted(|counts| counts.destroy),
            job: one.job.clone(),
        }),
        approval: approval.as_ref().map(|one| raw::Approval {
            by: one.by.clone(),
            ticket: one.ticket.clone(),
            at: at(one.at_ms),
            overrides: one.overrides,
        }),
        failing: (*failing != Failing::default()).then(|| raw::Failing {
            before: i64::from(failing.before),
            applies: i64::from(failing.applies),
            not_before: failing.not_before_ms.map(at),
        }),
        skipped: texts(skipped),
        work: terms.work.clone(),
        settings: terms.settings.clone(),
        message: message.clone(),
    }
}

fn plan(raw: raw::Plan) -> Result<Plan, String> {
    let counts = match (raw.add, raw.change, raw.destroy) {
        (None, None, None) => None,
        (add, change, destroy) => Some(Counts {
            add: small(add.unwrap_or_default(), "run.plan.add")?,
            change: small(change.unwrap_or_default(), "run.plan.change")?,
            destroy: small(destroy.unwrap_or_default(), "run.plan.destroy")?,
        }),
    };
    Ok(Plan { fingerprint: raw.fingerprint, counts, job: raw.job })
}

fn waiting(raw: raw::Waiting) -> Result<Waiting, String> {
    let question = Question::ALL.into_iter().find(|one| one.name() == raw.question);
    Ok(Waiting {
        question: question.ok_or_else(|| format!("waitingApproval.for: {:?} is no question", raw.question))?,
        ticket: raw.ticket,
        since_ms: ms(&raw.since)?,
    })
}

fn ended(raw: raw::Ended) -> Result<Ended, String> {
    Ok(Ended {
        seq: RunSeq(count(raw.seq, "history.seq")?),
        revision: commit(raw.revision, "history.revision")?,
        outcome: phase(&raw.outcome)?,
        by: raw.by,
        skipped: commits(raw.skipped, "history.skipped")?,
        at_ms: ms(&raw.at)?,
    })
}

/// A condition of ours; others' are theirs to write.
fn condition(raw: raw::Condition) -> Result<Option<Condition>, String> {
    let kinds = [ConditionKind::Ready, ConditionKind::Stalled];
    let Some(kind) = kinds.into_iter().find(|kind| kind.name() == raw.kind) else { return Ok(None) };
    Ok(Some(Condition {
        kind,
        holds: match raw.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        },
        reason: raw.reason,
        message: raw.message,
        since_ms: ms(&raw.last_transition_time)?,
    }))
}

fn phase(name: &str) -> Result<Phase, String> {
    Phase::ALL.into_iter().find(|phase| phase.name() == name).ok_or_else(|| format!("{name:?} is no phase of a run"))
}

/// A commit that a Job may fetch: nothing else gets from a status into one.
fn commit(text: String, what: &str) -> Result<Revision, String> {
    if is_commit(&text) { Ok(Revision(text)) } else { Err(format!("{what}: {text:?} is no commit's id")) }
}

fn commits(texts: Vec<String>, what: &str) -> Result<Vec<Revision>, String> {
    texts.into_iter().map(|text| commit(text, what)).collect()
}

fn text(revision: &Revision) -> String {
    revision.0.clone()
}

fn texts(revisions: &[Revision]) -> Vec<String> {
    revisions.iter().map(text).collect()
}

/// A count that fits.
fn small(number: i64, what: &str) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{what} is {number}, and nothing was counted so far"))
}

#[cfg(test)]
mod tests;

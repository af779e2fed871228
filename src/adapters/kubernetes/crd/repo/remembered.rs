//! The status of a Repo, with the fields of the program before this one. A status of that one is taken over: its commit counts as run.
//!
//! Not for deciding what is in it.

use kernel::id::{NotACommitId, RunSeq};
use objects::repo::spec::Object;
use objects::repo::status::{Action, Attempt, Failing, Phase, Run, Status, Terms};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::status::{self, Fault};

/// The fields of the program before this one, for those who read them.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Earlier {
    /// The newest run's Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_job_name: Option<String>,
    /// The newest run's commit.
    #[serde(rename = "gitSHA", skip_serializing_if = "Option::is_none")]
    git_sha: Option<String>,
    /// The newest run: New, Pending, Running, Completed or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_status: Option<String>,
    /// The beginning of gitSHA, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    short_revision: Option<String>,
}

/// What allclear remembers and shows.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Written<'a> {
    #[serde(flatten)]
    earlier: Earlier,
    #[serde(flatten)]
    status: &'a Status,
}

/// Reads the status of an object; without one it is that of a Repo that was never judged.
///
/// # Errors
/// When something in it is not what we write.
pub fn read(json: Option<&str>) -> Result<Status, Fault> {
    let earlier: Earlier = status::read(json)?;
    let mut status: Status = status::read(json)?;
    // We write `run` beside the earlier fields.
    if status.run.is_none() {
        status.run = earlier.run()?;
    }
    Ok(status)
}

/// The status of an object as it stands in it.
///
/// # Errors
/// None: a status has no form that JSON has not.
pub fn written(object: &Object) -> serde_json::Result<Value> {
    let status = &object.status;
    status::written(&Written { earlier: Earlier::of(status), status })
}

impl Earlier {
    /// The run of the program before this one, if that is what the status remembers.
    fn run(self) -> Result<Option<Run>, Fault> {
        let fault = |at: &str, what: String| Fault { at: at.to_owned(), what };
        let (phase, how) = match self.run_status.as_deref() {
            None | Some("" | "New" | "Pending") => return Ok(None),
            Some("Completed") => (Phase::Succeeded, "the program before allclear ran it"),
            Some("Running") => (Phase::Succeeded, "the program before allclear was running it, and it counts as run"),
            Some("Failed") => (Phase::Failed, "the program before allclear ran it, and it failed"),
            Some(other) => return Err(fault("runStatus", format!("{other:?} is no status of a run"))),
        };
        let commit = self.git_sha.unwrap_or_default();
        let revision = commit.parse().map_err(|why: NotACommitId| fault("gitSHA", why.to_string()))?;
        let job = self.run_job_name.filter(|name| !name.is_empty());
        Ok(Some(Run {
            attempt: Attempt { seq: RunSeq(0), number: 0, action: Action::Apply },
            revision,
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

    /// What that program would say of it.
    fn of(status: &Status) -> Self {
        let run = status.run.as_ref();
        let newest = run.map(|run| &run.revision).or(status.head.as_ref().map(|head| &head.revision));
        let name = match run.map(|run| run.phase) {
            None | Some(Phase::Waiting | Phase::Superseded) => "New",
            Some(Phase::Starting | Phase::Planned) => "Pending",
            Some(Phase::Started) => "Running",
            Some(Phase::Succeeded) => "Completed",
            Some(Phase::Failed | Phase::Lost) => "Failed",
        };
        Self {
            run_job_name: run.and_then(|run| run.job.as_ref()).map(|job| job.name.clone()),
            git_sha: newest.map(|revision| revision.to_string()),
            run_status: newest.map(|_| name.to_owned()),
            short_revision: newest.map(|revision| revision.short().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;

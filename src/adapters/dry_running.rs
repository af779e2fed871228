//! Repos in a dry run (decision 23): commits are looked for, runs are judged, and no Job is made.

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{iter, pending};

use kernel::id::RepoId;
use objects::ports::repo::{Holds, JobSight, Jobs, Made, Reports, Saying, Start, Unresolved};
use objects::repo::job::{Job, Order, Pod};
use purge::ports::{Flow, PortError};

/// Says which Jobs would be made, and makes none.
pub struct DryJobs;

#[async_trait]
impl Jobs for DryJobs {
    fn watch(&self, _: &RepoId, _: &str) -> Flow<JobSight> {
        Box::pin(iter([JobSight::All(Vec::new()), JobSight::Pods(Vec::new())]).chain(pending()))
    }

    async fn make(&self, order: &Order) -> Result<Made, PortError> {
        let Order { repo, name, revision, attempt, .. } = order;
        let action = attempt.action.name();
        tracing::info!(%repo, job = name, %revision, action, "dry run: would run this Job");
        Err(PortError::lasting(format!("failed to make Job {name}"), "this is a dry run: nothing is made"))
    }

    async fn start(&self, _: &RepoId, _: &Job) -> Result<Start, PortError> {
        Ok(Start::Refused)
    }

    async fn withdraw(&self, _: &RepoId, _: &Job) -> Result<Start, PortError> {
        Ok(Start::Refused)
    }

    async fn look(&self, _: &RepoId, _: &str) -> Result<Option<Job>, PortError> {
        Ok(None)
    }

    async fn pods(&self, _: &RepoId, _: &str, _: &str) -> Result<Vec<Pod>, PortError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: &RepoId, _: &str, _: &str) -> Result<(), PortError> {
        Ok(())
    }
}

/// Says what would be reported, and reports nothing.
pub struct DryReports;

#[async_trait]
impl Reports for DryReports {
    async fn say(&self, saying: &Saying) -> Result<u32, Unresolved> {
        let Saying { repo, revision, summary, .. } = saying;
        tracing::info!(%repo, %revision, summary, "dry run: would report this run");
        Ok(0)
    }
}

/// Says which Repos would be held, and holds none.
pub struct DryHolds;

#[async_trait]
impl Holds for DryHolds {
    async fn hold(&self, repo: &RepoId, _: &str, held: bool) -> Result<(), PortError> {
        tracing::info!(%repo, held, "dry run: would write the finalizer of this Repo");
        Err(PortError::lasting(
            format!("failed to write the finalizer of Repo {repo}"),
            "this is a dry run: nothing is written",
        ))
    }
}

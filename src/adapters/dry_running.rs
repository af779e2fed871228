//! Repos in a dry run (decision 23): commits are looked for, runs are judged, the Jobs there are are followed, and none is made.

use std::sync::Arc;

use async_trait::async_trait;

use domain::id::RepoId;
use domain::ports::repo::{JobSight, Jobs, Made, Start};
use domain::ports::{Flow, PortError};
use domain::repo::job::{Job, Order, Pod};

/// Says which Jobs would be made, and neither makes, starts nor removes one. Those that a run before this one has left are seen: a
/// Job that is missing counts as deleted by a person.
pub struct DryJobs(Arc<dyn Jobs>);

impl DryJobs {
    /// In front of the real ones.
    pub fn new(real: Arc<dyn Jobs>) -> Self {
        Self(real)
    }
}

fn refused(attempted: &str, name: &str) -> PortError {
    PortError::lasting(format!("failed to {attempted} Job {name}"), "this is a dry run: no Job is changed")
}

#[async_trait]
impl Jobs for DryJobs {
    fn watch(&self, repo: &RepoId, uid: &str) -> Flow<JobSight> {
        self.0.watch(repo, uid)
    }

    async fn make(&self, order: &Order) -> Result<Made, PortError> {
        let Order { repo, name, revision, attempt, .. } = order;
        let action = attempt.action.name();
        tracing::info!(%repo, job = name, %revision, action, "dry run: would run this Job");
        Err(refused("make", name))
    }

    async fn start(&self, repo: &RepoId, job: &Job) -> Result<Start, PortError> {
        tracing::info!(%repo, job = job.name, "dry run: would start this Job");
        Err(refused("start", &job.name))
    }

    async fn look(&self, repo: &RepoId, name: &str) -> Result<Option<Job>, PortError> {
        self.0.look(repo, name).await
    }

    async fn pods(&self, repo: &RepoId, name: &str, uid: &str) -> Result<Vec<Pod>, PortError> {
        self.0.pods(repo, name, uid).await
    }

    async fn remove(&self, _: &RepoId, _: &str, _: &str) -> Result<(), PortError> {
        Ok(())
    }
}

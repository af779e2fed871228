//! What Repos need from the outside.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::id::{RepoId, Revision};
use crate::ports::answer::{Flow, PortError};
use crate::ports::pipeline::{Calendar, Objects, Verdicts};
use crate::repo::job::{Job, Order, Pod};
use crate::repo::spec::{Object, Spec};

/// Where a wanted ref points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    /// The commit.
    pub revision: Revision,
    /// The name of the ref, for people: `refs/heads/main`.
    pub name: String,
}

/// A look that brought no commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Why, in words.
    pub why: String,
    /// Only a person can mend it: no such ref, a wrong password.
    pub lasting: bool,
    /// Not to be asked again before this time has passed: what the host demands, or how long it rests as a whole.
    pub rest: Duration,
}

/// Git hosts, of which only refs are read.
#[async_trait]
pub trait Heads: Send + Sync {
    /// The commit that a Repo wants, read afresh. Bounded in time, bytes and connections; a host that fails rests as a whole, and
    /// takes no places from others.
    ///
    /// # Errors
    /// In words.
    async fn resolve(&self, repo: &RepoId, spec: &Spec) -> Result<Found, Unresolved>;

    /// The hosts that rest at present, and why, in words.
    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a watch of a Repo's Jobs says.
#[derive(Clone, Debug)]
pub enum JobSight {
    /// These are all of them, as they are now.
    All(Vec<Job>),
    /// One as it is now.
    Seen(Box<Job>),
    /// The one of this name was deleted.
    Gone(String),
    /// The watch failed and is being started again.
    Trouble(PortError),
}

/// What became of a Job that was to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is there, suspended unless it was started before, and ours.
    Ours(Box<Job>),
    /// Another's Job has its name.
    Taken,
}

/// What became of a Job that was to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It is marked, and not suspended any more.
    Done(Box<Job>),
    /// It changed since it was seen, is another one, or is gone: nothing was written.
    Refused,
}

/// The Jobs of Repos.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Watches the Jobs of the Repo of this name and UID, for ever.
    fn watch(&self, repo: &RepoId, uid: &str) -> Flow<JobSight>;

    /// Makes a Job, suspended, or finds the one that was made before.
    ///
    /// # Errors
    /// In words; lasting where the API server refuses it as it is.
    async fn make(&self, order: &Order) -> Result<Made, PortError>;

    /// Starts a Job and marks it, if it still is of the version that was seen (RP-3).
    ///
    /// # Errors
    /// In words. It may have been started nevertheless.
    async fn start(&self, repo: &RepoId, job: &Job) -> Result<Start, PortError>;

    /// Reads the Job of this name afresh, not from any cache; `None` if there is none.
    ///
    /// # Errors
    /// In words.
    async fn look(&self, repo: &RepoId, name: &str) -> Result<Option<Job>, PortError>;

    /// Reads the pods of the Job of this name and UID afresh.
    ///
    /// # Errors
    /// In words.
    async fn pods(&self, repo: &RepoId, name: &str, uid: &str) -> Result<Vec<Pod>, PortError>;

    /// Removes the Job of this name with its pods, if it still has this UID. One that is gone is removed.
    ///
    /// # Errors
    /// In words.
    async fn remove(&self, repo: &RepoId, name: &str, uid: &str) -> Result<(), PortError>;
}

/// Everything outside that Repos need, in one hand.
#[derive(Clone)]
pub struct Running {
    /// The objects, one for each namespace that is watched, or one for all.
    pub objects: Vec<Arc<dyn Objects<Object>>>,
    /// Git hosts.
    pub heads: Arc<dyn Heads>,
    /// Jobs and their pods.
    pub jobs: Arc<dyn Jobs>,
    /// Time zones.
    pub calendar: Arc<dyn Calendar>,
    /// Other systems.
    pub verdicts: Arc<dyn Verdicts>,
    /// The kind must be there: that it is not is a trouble, not a cluster without Repos.
    pub required: bool,
}

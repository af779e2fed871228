//! The ports of Repos to the outside.

use std::sync::Arc;

use async_trait::async_trait;

use super::KindPorts;
use crate::apps::app::{Look, TargetKey};
use crate::repo::Repo;
use crate::repo::job::{Job, Order, Pod};
use crate::repo::spec::Spec;
use kernel::answer::{Flow, PortError};
use kernel::id::RepoId;

pub use crate::repo::job::{Made, Start};
pub use crate::repo::report::Saying;
pub use crate::repo::{Comparison, Found, Unresolved};

/// The callback at the beginning of a look at git.
pub type Begins<'a> = dyn Fn() + Send + Sync + 'a;

/// Git hosts, of which refs and folders are read.
#[async_trait]
pub trait Heads: Send + Sync {
    /// The commit that a Repo wants, read afresh. Bounded in time, bytes and connections; after a failure it is paused,
    /// taking no places from others. `begins` is called when the look has its place and is about to ask; never where
    /// nothing is asked.
    ///
    /// # Errors
    /// In words.
    async fn resolve(&self, repo: &RepoId, spec: &Spec, begins: &Begins<'_>) -> Result<Found, Unresolved>;

    /// Whether what concerns a Repo has the same content in two commits, by their folders alone. Bounded and paused like a look.
    ///
    /// # Errors
    /// In words; lasting where there can be no answer.
    async fn compare(&self, repo: &RepoId, question: &Comparison) -> Result<bool, Unresolved>;

    /// The hosts that are paused at present, and why, in words.
    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Forges, to which runs are reported.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Says this at the forge of its repository, and on how many open requests it stands now. Saying it once more changes nothing there.
    /// Bounded and paused like a look at git.
    ///
    /// # Errors
    /// In words, which do not change from try to try; a part may have been said.
    async fn say(&self, saying: &Saying) -> Result<u32, Unresolved>;
}

/// The news of a watch of a Repo's Jobs, and of their pods.
#[derive(Clone, Debug)]
pub enum JobSight {
    /// These are all of them, as they are now.
    All(Vec<Job>),
    /// One as it is now.
    Seen(Box<Job>),
    /// The one of this name was deleted.
    Gone(String),
    /// These are all pods of every Repo of this name, as they are now.
    Pods(Vec<Pod>),
    /// One of them as it is now. Between two of these nothing is left out.
    Pod(Box<Pod>),
    /// The pod of this name is gone.
    PodGone(String),
    /// The watch failed and is being started again.
    Trouble(PortError),
}

/// The Jobs of Repos.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Watches the Jobs of the Repo of this name and UID, and the pods of every Repo of this name, for ever.
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

    /// Suspends a Job of which nothing has run and marks it as taken back, if it still is of the version that was seen.
    ///
    /// # Errors
    /// In words. It may have been suspended nevertheless.
    async fn withdraw(&self, repo: &RepoId, job: &Job) -> Result<Start, PortError>;

    /// Reads the Job of this name afresh, not from any cache; `None` if there is none.
    ///
    /// # Errors
    /// In words.
    async fn look(&self, repo: &RepoId, name: &str) -> Result<Option<Job>, PortError>;

    /// Reads the pods of the Job of this name and UID afresh, also those that it does not own any more.
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

/// What keeps a Repo that is deleted.
#[async_trait]
pub trait Holds: Send + Sync {
    /// Puts our finalizer on the Repo of this name and UID, or takes it away. It touches no other finalizer, and no other Repo. One that
    /// is as wanted, or gone, is left alone.
    ///
    /// # Errors
    /// In words. It may have been done nevertheless.
    async fn hold(&self, repo: &RepoId, uid: &str, held: bool) -> Result<(), PortError>;
}

/// Repos, for those who ask by a request.
#[async_trait]
pub trait Pokes: Send + Sync {
    /// Asks for a look at this Repo, at this time in milliseconds since the Unix epoch; `false` if there is none of this name.
    ///
    /// # Errors
    /// In words, also where the cluster does not have the kind.
    async fn poke(&self, repo: &RepoId, at_ms: i64) -> Result<bool, PortError>;
}

/// Objects that runs need to be there and ready.
#[async_trait]
pub trait Needs: Send + Sync {
    /// Reads each of them afresh, not from any cache, and says of each what that came to; `None` of one that does not exist. It ends
    /// in bounded time, whatever does not answer.
    async fn see(&self, needs: &[TargetKey]) -> Vec<(TargetKey, Result<Option<Look>, PortError>)>;
}

/// Everything outside that Repos need, in one hand.
#[derive(Clone)]
pub struct Running {
    /// What every kind needs.
    pub kind: KindPorts<Repo>,
    pub heads: Arc<dyn Heads>,
    /// Where runs are reported.
    pub reports: Arc<dyn Reports>,
    /// Jobs and their pods.
    pub jobs: Arc<dyn Jobs>,
    /// What keeps Repos that are deleted.
    pub holds: Arc<dyn Holds>,
    /// Objects that runs need.
    pub needs: Arc<dyn Needs>,
}

//! The ports of Pipelines to the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::apps::app::{ClusterKey, Look, TargetKey};
use crate::apps::leaf::{Collection, News};
use crate::kernel::answer::{Flow, PortError};
use crate::kernel::id::{Environment, PipelineId, Revision, Subject};
use crate::names::destination::Purpose;
use crate::objects::asked::Opening;
use crate::objects::gates::{Freeze, VerdictSource, Window};
use crate::objects::kept::{Kept, ObjectSight, Written};
use crate::pipeline::callers::{Called, Mark};
use crate::pipeline::judge::Stale;
use crate::pipeline::proposal::{Order, Proposed, RequestState};
use crate::pipeline::spec::{Object, Purged};

/// The objects of one of our kinds in this cluster, each with a status that is ours alone to write.
#[async_trait]
pub trait Objects<T: Kept>: Send + Sync {
    /// The API group that they are in.
    fn group(&self) -> &str;

    /// Whether the API server knows the kind.
    ///
    /// # Errors
    /// When it cannot be asked.
    async fn are_served(&self) -> Result<bool, PortError>;

    /// Why we may not list them, in words, where that is because a right is missing.
    async fn refused(&self) -> Option<String>;

    /// Watches all of them in scope, for ever.
    fn watch(&self) -> Flow<ObjectSight<T>>;

    /// Reads one afresh, not from any cache; `None` if there is none.
    ///
    /// # Errors
    /// In words.
    async fn read(&self, id: &T::Id) -> Result<Option<T>, PortError>;

    /// Writes the object's status, if the object is still of the version that it says. Everything else of it is left alone.
    ///
    /// # Errors
    /// In words. The status may have been written nevertheless.
    async fn write(&self, object: &T) -> Result<Written<T>, PortError>;
}

/// Pipelines, for those who ask by a request: read afresh, and marked. What a mark means is the machine's to say.
#[async_trait]
pub trait Marks: Send + Sync {
    /// Reads one afresh, not from any cache; `None` if there is none of this name.
    ///
    /// # Errors
    /// In words, also where the cluster does not have the kind, or the object cannot be read.
    async fn read(&self, id: &PipelineId) -> Result<Option<Called>, PortError>;

    /// Puts a mark on the object that was read; `false` if that one is not there any more.
    ///
    /// # Errors
    /// In words.
    async fn mark(&self, called: &Called, mark: &Mark) -> Result<bool, PortError>;
}

/// The way to a leaf.
pub enum Link {
    /// Its kubeconfig can be used. What an earlier one led to is not asked any more.
    Up(Arc<dyn Leaf>),
    /// Nothing leads to it, and why: no such Secret, a kubeconfig that is refused, no right to read it.
    Down(PortError),
}

/// All clusters in which apps are looked at.
pub trait Leaves: Send + Sync {
    /// The way to one of them: said at once, and again whenever its kubeconfig changes. Dropping the flow ends the
    /// connection.
    fn link(&self, cluster: &ClusterKey) -> Flow<Link>;
}

/// One cluster, of which only objects of apps are read.
#[async_trait]
pub trait Leaf: Send + Sync {
    /// From now on watches say only what concerns these. Others are dropped while they are decoded.
    fn want(&self, targets: &BTreeSet<TargetKey>);

    /// Watches a collection, for ever.
    fn watch(&self, of: &Collection) -> Flow<News>;

    /// Reads one object afresh, not from any cache; `None` if there is none. An object that cannot be read is an error.
    ///
    /// # Errors
    /// In words.
    async fn read(&self, target: &TargetKey) -> Result<Option<Look>, PortError>;
}

/// Where pull requests live: a git host and its forge.
#[async_trait]
pub trait Forge: Send + Sync {
    /// Makes the promotion's pull request, or finds it. Repeating an order, whole or broken off, makes no second one.
    ///
    /// # Errors
    /// In words; lasting only where a person must change something.
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError>;

    /// How the promotion's request stands.
    ///
    /// # Errors
    /// In words.
    async fn look(&self, order: &Order, number: u64) -> Result<RequestState, PortError>;

    /// Closes the promotion's request, saying why, and removes its branch where it is still ours. Closing what is closed is
    /// nothing. Without a number, the request may exist: it is looked for.
    ///
    /// # Errors
    /// In words.
    async fn withdraw(&self, order: &Order, number: Option<u64>, why: &str) -> Result<(), PortError>;
}

/// Secrets of this cluster, read by name on each use, never cached.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The content of a Secret, for this purpose and no other.
    ///
    /// # Errors
    /// In words; lasting where it is not there or may not be sent there, denied where we have no right to it.
    async fn read(&self, namespace: &str, name: &str, purpose: Purpose)
    -> Result<BTreeMap<String, Vec<u8>>, PortError>;
}

/// Secrets of this cluster, followed by their names.
pub trait Renewals: Send + Sync {
    /// Says once that a Secret was looked at, and then each time it holds something else, or is gone; for ever. Where it cannot be
    /// followed, it says nothing more.
    fn changes(&self, namespace: &str, name: &str) -> Flow<()>;
}

/// The wall clock and the time zones of the world. The only way by which a decision learns what time it is.
pub trait Calendar: Send + Sync {
    /// Whether now is in one of the windows (with none: always) and in no freeze, until when that stays so, and why, in words.
    ///
    /// # Errors
    /// In words: an unknown time zone.
    fn read(&self, windows: &[Window], freezes: &[Freeze]) -> Result<Opening, PortError>;
}

/// A verdict that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    pub why: String,
    /// Not to be asked again before this time has passed: what the other system demands.
    pub rest: Duration,
}

/// A question to another system: may this promotion, or this run, start?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    pub source: VerdictSource,
    /// Of which Pipeline or Repo.
    pub subject: Subject,
    /// Into which environment, of a Pipeline.
    pub environment: Option<Environment>,
    /// The promoted revision, or the applied commit.
    pub revision: Revision,
    /// The present revision there, if known.
    pub from: Option<Revision>,
    /// The number of the promotion or run.
    pub seq: u64,
}

/// Other systems that are asked before something starts.
#[async_trait]
pub trait Verdicts: Send + Sync {
    /// Asks whether it may start.
    ///
    /// # Errors
    /// When no clear answer came: then the gate is neither open nor closed.
    async fn ask(&self, asking: &Asking) -> Result<Opening, Unanswered>;
}

/// Whether the edge serves what the cluster runs.
#[async_trait]
pub trait Edges: Send + Sync {
    /// Looks afresh at these workloads in these namespaces, here or by another allclear. `Ok(Err(why))`: one of them is not fresh.
    ///
    /// # Errors
    /// When that could not be found out.
    async fn are_fresh(&self, purged: &Purged, namespaces: &BTreeSet<String>) -> Result<Result<(), Stale>, PortError>;
}

/// Everything outside that Pipelines need, in one hand.
#[derive(Clone)]
pub struct Promoting {
    /// The objects, one for each API group that is served. Of two objects of one name the one of the earlier group counts.
    pub objects: Vec<Arc<dyn Objects<Object>>>,
    /// The clusters of their targets.
    pub leaves: Arc<dyn Leaves>,
    /// Git hosts and forges.
    pub forge: Arc<dyn Forge>,
    pub calendar: Arc<dyn Calendar>,
    pub verdicts: Arc<dyn Verdicts>,
    pub edges: Arc<dyn Edges>,
    /// The changes of the Secrets for forges.
    pub renewals: Arc<dyn Renewals>,
    /// The kind must be there: that it is not is a trouble, not a cluster without Pipelines.
    pub required: bool,
}

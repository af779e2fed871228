//! The ports of Pipelines to the outside.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::KindPorts;
use crate::apps::app::{ClusterKey, Look, TargetKey};
use crate::apps::leaf::{Collection, News};
use crate::pipeline::Pipeline;
use crate::pipeline::callers::{Called, Mark};
use crate::pipeline::freezes::PromotionFreeze;
use crate::pipeline::judge::Stale;
use crate::pipeline::proposal::{Order, Proposed, RequestState};
use crate::pipeline::spec::Purged;
use kernel::answer::{Flow, PortError};
use kernel::id::PipelineId;

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

/// Secrets of this cluster, followed by their names.
pub trait Renewals: Send + Sync {
    /// Says once that a Secret was looked at, and then each time it holds something else, or is gone; for ever. Where it cannot be
    /// followed, it says nothing more.
    fn changes(&self, namespace: &str, name: &str) -> Flow<()>;
}

/// Whether the edge serves what the cluster runs.
#[async_trait]
pub trait Edges: Send + Sync {
    /// Looks afresh at these workloads in these namespaces, here or by another allclear. `Ok(Err(why))`: one of them may serve an older version.
    ///
    /// # Errors
    /// When that could not be found out.
    async fn are_fresh(&self, purged: &Purged, namespaces: &BTreeSet<String>) -> Result<Result<(), Stale>, PortError>;
}

/// The PromotionFreezes of this cluster.
pub trait FreezeBook: Send + Sync {
    /// Says all of them as soon as they are listed, none where the cluster does not have the kind, and again after each change; `None`
    /// where the cluster has got the kind, and they are not listed yet; or why they cannot be read, in words. For ever.
    fn watch(&self) -> Flow<Result<Option<Arc<[PromotionFreeze]>>, PortError>>;
}

/// Everything outside that Pipelines need, in one hand.
#[derive(Clone)]
pub struct Promoting {
    /// What every kind needs.
    pub kind: KindPorts<Pipeline>,
    /// The clusters of their targets.
    pub leaves: Arc<dyn Leaves>,
    /// Git hosts and forges.
    pub forge: Arc<dyn Forge>,
    pub edges: Arc<dyn Edges>,
    pub freezes: Arc<dyn FreezeBook>,
    /// The changes of the Secrets for forges.
    pub renewals: Arc<dyn Renewals>,
}

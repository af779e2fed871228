//! Everything outside that the actors need, of both products.

use std::sync::Arc;

use objects::ports::{pipeline, repo};
use purge::ports::{Board, Caches, Cdn, Clock, ClusterView, EdgeSight, EventSink, Lease, Ledger, Notifier, Random};

/// The ports, in one hand.
#[derive(Clone)]
pub struct Ports {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub cluster: Arc<dyn ClusterView>,
    pub events: Arc<dyn EventSink>,
    pub ledger: Arc<dyn Ledger>,
    pub cdn: Arc<dyn Cdn>,
    pub edge: Arc<dyn EdgeSight>,
    pub caches: Arc<dyn Caches>,
    pub notifier: Arc<dyn Notifier>,
    /// By which one of several replicas is chosen to work; `None`: this one always works.
    pub lease: Option<Arc<dyn Lease>>,
    /// Where records travel: our own Redis first, where one is configured, then those of the other members.
    pub boards: Vec<Arc<dyn Board>>,
    /// The ports of Pipelines; `None`: they are switched off.
    pub promoting: Option<pipeline::Promoting>,
    /// The ports of Repos; `None`: they are switched off.
    pub running: Option<repo::Running>,
}

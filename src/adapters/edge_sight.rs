//! The edge as [`EdgeSight`], with what new pods of a workload say beside it.
//!
//! A pod is asked at its address, never by a name: the name of a Service may lead to any pod, and to one of yesterday.
//!
//! Not for requests, which are [`super::edge_look`]'s, nor for finding the pods, which is the cluster's.

use std::sync::Arc;

use async_trait::async_trait;

use super::edge_look::EdgeLook;
use super::kubernetes::Cluster;
use kernel::id::WorkloadId;
use proof::asked::{Answers, Question};
use purge::ports::EdgeSight;

/// The way to the edge, and the cluster whose pods are asked.
pub struct EdgeAndPods {
    look: EdgeLook,
    cluster: Arc<Cluster>,
}

impl EdgeAndPods {
    pub const fn new(look: EdgeLook, cluster: Arc<Cluster>) -> Self {
        Self { look, cluster }
    }
}

#[async_trait]
impl EdgeSight for EdgeAndPods {
    async fn ask(&self, workload: &WorkloadId, question: &Question) -> Answers {
        self.look.ask(question, self.cluster.new_pods(workload)).await
    }
}

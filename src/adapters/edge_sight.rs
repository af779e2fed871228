//! The edge as [`EdgeSight`], with what new pods of a workload say beside it.
//!
//! A pod is asked at its address, never by a name: the name of a Service may lead to any pod, and to one of yesterday.
//!
//! Not for requests, which are [`super::edge_look`]'s, nor for finding the pods, which is the cluster's.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;

use super::edge_look::EdgeLook;
use super::http::refusal_of_cluster;
use super::kubernetes::{Cluster, NoNewPods};
use kernel::id::WorkloadId;
use proof::asked::{Answers, Question};
use purge::ports::EdgeSight;

/// Why no pods are asked.
#[derive(Debug, thiserror::Error)]
enum NoPods {
    #[error(transparent)]
    Unfound(#[from] NoNewPods),
    #[error("the address of a new pod, {0}, is {1}")]
    Hidden(IpAddr, &'static str),
}

/// The way to the edge, and the cluster whose pods are asked.
pub struct EdgeAndPods {
    look: EdgeLook,
    cluster: Arc<Cluster>,
    /// Why a pod may not be at an address.
    refusal: fn(IpAddr) -> Option<&'static str>,
}

impl EdgeAndPods {
    pub const fn new(look: EdgeLook, cluster: Arc<Cluster>) -> Self {
        Self { look, cluster, refusal: refusal_of_cluster }
    }

    /// The same among stand-ins, whose pods are on this machine.
    #[must_use]
    pub fn among_stand_ins(self) -> Self {
        Self { refusal: |_| None, ..self }
    }

    /// The new pods of a workload. Who may write a pod's status chooses its address: none of this machine, nor of what hands out credentials.
    async fn pods(&self, workload: Option<&WorkloadId>) -> Result<Vec<SocketAddr>, NoPods> {
        let Some(workload) = workload else { return Ok(Vec::new()) };
        let pods = self.cluster.new_pods(workload).await?;
        match pods.iter().find_map(|pod| Some((pod.ip(), (self.refusal)(pod.ip())?))) {
            Some((address, why)) => Err(NoPods::Hidden(address, why)),
            None => Ok(pods),
        }
    }
}

#[async_trait]
impl EdgeSight for EdgeAndPods {
    async fn ask(&self, workload: Option<&WorkloadId>, question: &Question) -> Answers {
        self.look.ask(question, self.pods(workload)).await
    }
}

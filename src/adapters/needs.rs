//! Objects that runs of Repos need, as [`Needs`]: read in this cluster, and in others by their kubeconfigs.
//!
//! The way to another cluster is made anew for each answer: a run waits for minutes, and nothing of it is left open after that.
//!
//! Not for what makes an object ready, nor for how often it is read; that is the machine's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use objects::apps::app::{ClusterKey, Look, TargetKey};
use objects::ports::pipeline::{Leaf, Leaves, Link};
use objects::ports::repo::Needs;
use purge::ports::{Flow, PortError};

/// Longest wait for the kubeconfig of another cluster.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// Longest wait for one object. The API server has 15 s to answer, and some objects wait for others.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Objects of this cluster and of others.
pub struct Needed {
    leaves: Arc<dyn Leaves>,
    /// This cluster, which knows its kinds from the first read on.
    here: OnceCell<Arc<dyn Leaf>>,
}

/// The way to a cluster. It ends when this is dropped.
struct Way {
    leaf: Arc<dyn Leaf>,
    _link: Option<Flow<Link>>,
}

impl Needed {
    /// In these clusters. Nothing is asked for yet.
    pub fn new(leaves: Arc<dyn Leaves>) -> Self {
        Self { leaves, here: OnceCell::new() }
    }

    async fn reach(&self, cluster: &ClusterKey) -> Result<Way, PortError> {
        if *cluster == ClusterKey::Here {
            let here = self.here.get_or_try_init(|| async { Ok::<_, PortError>(self.link(cluster).await?.leaf) });
            return Ok(Way { leaf: Arc::clone(here.await?), _link: None });
        }
        self.link(cluster).await
    }

    async fn link(&self, cluster: &ClusterKey) -> Result<Way, PortError> {
        let mut link = self.leaves.link(cluster);
        match timeout(REACHED_WITHIN, link.next()).await {
            Ok(Some(Link::Up(leaf))) => Ok(Way { leaf, _link: Some(link) }),
            Ok(Some(Link::Down(error))) => Err(error),
            Ok(None) | Err(_) => Err(PortError::passing(
                format!("failed to reach {}", cluster.display_name()),
                "its kubeconfig was not read in time",
            )),
        }
    }

    async fn of(&self, cluster: &ClusterKey, needs: Vec<TargetKey>) -> Vec<(TargetKey, Read)> {
        let way = match self.reach(cluster).await {
            Ok(way) => way,
            Err(error) => return needs.into_iter().map(|need| (need, Err(error.clone()))).collect(),
        };
        let leaf = &way.leaf;
        let reads = needs.into_iter().map(|need| async move {
            let read = timeout(READ_WITHIN, leaf.read(&need)).await.unwrap_or_else(|_| {
                let attempted = format!("failed to read {} {}", need.app.kind, need.display_name());
                Err(PortError::passing(attempted, "no answer in time"))
            });
            (need, read)
        });
        join_all(reads).await
    }
}

/// What a read of one object came to.
type Read = Result<Option<Look>, PortError>;

#[async_trait]
impl Needs for Needed {
    async fn see(&self, needs: &[TargetKey]) -> Vec<(TargetKey, Read)> {
        let mut clusters: BTreeMap<&ClusterKey, Vec<TargetKey>> = BTreeMap::new();
        for need in needs {
            clusters.entry(&need.cluster).or_default().push(need.clone());
        }
        let reads = clusters.into_iter().map(|(cluster, needs)| self.of(cluster, needs));
        join_all(reads).await.into_iter().flatten().collect()
    }
}

//! Annotations on workloads, as a person or a CI job writes them with rights of their own (decision 21).
//!
//! Not for what they mean; that is `purge::workloads::workload`'s. The controller never writes one.

use serde_json::json;

use super::desk::Mark;
use super::{look, resource_of};
use apiserver::{Api, Clients, Collection};
use kernel::id::{Kind, WorkloadId};
use kernel::names::image::VersionOf;
use kernel::refusal::Refused;
use purge::ports::PortError;
use purge::workloads::joining::one_of;

/// Where workloads are marked.
pub struct Hand {
    api: Api,
}

/// What became of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// They are on the object.
    Done,
    /// The object is not there any more.
    Gone,
}

impl Hand {
    /// With the credentials of these clients. Nothing is asked for yet.
    pub fn new(clients: &Clients) -> Self {
        Self { api: Api::new(clients.request.clone()) }
    }

    /// Writes annotations of a workload in one change; those without a value are removed.
    ///
    /// # Errors
    /// In words.
    pub async fn annotate(&self, id: &WorkloadId, marks: &[Mark<'_>]) -> Result<Marked, PortError> {
        let annotations: serde_json::Map<String, serde_json::Value> =
            marks.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let Some(kind) = self.object_of(id).await? else { return Ok(Marked::Gone) };
        let of = Collection::of(resource_of(kind), &id.namespace);
        match self.api.merge(&of, &id.name, &json!({"metadata": {"annotations": annotations}})).await {
            Ok(_) => Ok(Marked::Done),
            Err(failed) if failed.status() == Some(404) => Ok(Marked::Gone),
            Err(failed) => Err(failed.error),
        }
    }

    /// The kind of the object that counts under a name; `None` where there is none. Who may not read Rollouts knows of none.
    async fn object_of(&self, id: &WorkloadId) -> Result<Option<Kind>, PortError> {
        if id.kind != Kind::Deployment {
            return Ok(Some(id.kind));
        }
        let seen = |kind| look(&self.api, kind, &VersionOf::Images, id);
        let (deployment, rollout) = tokio::join!(seen(Kind::Deployment), seen(Kind::Rollout));
        let rollout = match rollout {
            Err(error) if error.refused() == Some(Refused::Right) => None,
            found => found?,
        };
        Ok(one_of(deployment?, rollout).map(|workload| workload.object))
    }
}

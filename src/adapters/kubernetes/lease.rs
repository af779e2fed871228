//! The lease by which replicas of one cluster agree who works: one `coordination.k8s.io/v1` Lease beside the ledger.
//! <https://kubernetes.io/docs/concepts/architecture/leases/>
//!
//! Each write is a compare-and-set on `resourceVersion`. Its timestamps are informational; they only need to change.
//!
//! Not for deciding whose it is; that is `kernel::replica::lease`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::events::micro_time;
use super::no_namespace;
use apiserver::{Api, Collection, Resource};
use kernel::replica::lease::{Claim, LEASE_FOR, Replica};
use purge::ports::{Clock, Lease, PortError};

const LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases");

const NAME: &str = "allclear-leader";

/// Longest wait for an answer: well below the 15 s after which another takes over.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Most bytes of an answer: the Lease itself, with the fields the server adds.
const BYTES_MAX: usize = 64 * 1024;

/// The lease in one namespace.
pub struct KubernetesLease {
    api: Api,
    leases: Collection,
    us: Replica,
    clock: Arc<dyn Clock>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Object {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: Option<String>,
    renew_time: Option<String>,
    acquire_time: Option<String>,
    lease_transitions: Option<u64>,
}

impl KubernetesLease {
    /// The lease of this namespace, as `us`. Nothing is asked yet.
    pub fn new(client: Client, namespace: &str, us: Replica, clock: Arc<dyn Clock>) -> Self {
        Self {
            api: Api::new(client).within(ANSWER_MAX).up_to(BYTES_MAX),
            leases: Collection::of(LEASES, namespace),
            us,
            clock,
        }
    }

    /// The lease held by `holder`, in place of `over`.
    fn object(&self, holder: &str, over: Option<&Claim>) -> Value {
        let now = micro_time(self.clock.wall_ms());
        let renewed = over.filter(|over| over.holder == holder && !over.acquired.is_empty());
        // As client-go counts: a lease that was given back and is taken changes hands once.
        let transitions =
            over.map_or(0, |over| over.transitions + u64::from(over.holder != holder && !holder.is_empty()));
        let mut object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "namespace": self.leases.namespace, "name": NAME,
                "labels": {"app.kubernetes.io/managed-by": "allclear"},
                "annotations": {"kubernetes.io/description":
                    "Which replica of allclear works; the others stand by. Deleting it makes them choose again."},
            },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": LEASE_FOR.as_secs(),
                "acquireTime": renewed.map_or_else(|| now.clone(), |over| over.acquired.clone()),
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        });
        if let (Some(over), Some(metadata)) = (over, object.get_mut("metadata").and_then(Value::as_object_mut)) {
            metadata.insert("resourceVersion".to_owned(), Value::String(over.version.clone()));
        }
        object
    }

    /// Puts `holder` in place of `over`; `None` if it is not `over` any more.
    async fn write(&self, holder: &str, over: Option<&Claim>) -> Result<Option<Claim>, PortError> {
        let object = self.object(holder, over);
        let written = match over {
            None => self.api.create(&self.leases, Some(NAME), &object).await,
            Some(_) => self.api.replace(&self.leases, NAME, &object).await,
        };
        match written {
            Err(failed) if failed.status() == Some(409) => Ok(None),
            // Deleted meanwhile. A creation is answered so where the namespace is missing.
            Err(failed) if failed.status() == Some(404) && over.is_some() => Ok(None),
            Err(failed) if failed.status() == Some(404) => {
                Err(no_namespace(failed.error, self.leases.namespace.as_deref().unwrap_or_default()))
            }
            written => Ok(Some(claim(written?.json()?))),
        }
    }
}

#[async_trait]
impl Lease for KubernetesLease {
    fn replica(&self) -> &Replica {
        &self.us
    }

    async fn look(&self) -> Result<Option<Claim>, PortError> {
        let found = self.api.get(&self.leases, NAME).await?;
        Ok(found.map(|lease| lease.json()).transpose()?.map(claim))
    }

    async fn take(&self, over: Option<&Claim>) -> Result<Option<Claim>, PortError> {
        self.write(&self.us.to_string(), over).await
    }

    async fn release(&self, over: Option<&Claim>) -> Result<(), PortError> {
        if let Some(over) = over
            && self.write("", Some(over)).await?.is_some()
        {
            return Ok(());
        }
        // A renewal whose answer was lost has made it another one.
        match self.look().await?.filter(|found| found.holder == self.us.to_string()) {
            Some(ours) => self.write("", Some(&ours)).await.map(drop),
            None => Ok(()),
        }
    }
}

fn claim(Object { metadata, spec }: Object) -> Claim {
    Claim {
        holder: spec.holder_identity.unwrap_or_default(),
        renewed: spec.renew_time.unwrap_or_default(),
        acquired: spec.acquire_time.unwrap_or_default(),
        transitions: spec.lease_transitions.unwrap_or_default(),
        version: metadata.resource_version,
    }
}

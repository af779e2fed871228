//! Services whose endpoints are still those of pods that they do not select any more: for a moment after a selector was changed.
//! Requests go to the endpoints.
//!
//! Not for what that means: traffic that moved is waited for until there is none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::routing::{SERVICES, service};
use super::serving::{ENDPOINT_SLICES, endpoints};
use super::{PODS, pods};
use apiserver::{Api, Collection};
use kernel::names::selector::{Labels, is_subset};
use kernel::unreadable::Unreadable;
use purge::ports::PortError;
use purge::workloads::serving::Endpoint;

/// Who keeps EndpointSlices by selectors. Others have rules of their own.
/// <https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#ownership>
const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// The names of such Services of a namespace.
pub(super) async fn lagging(api: &Api, namespace: &str) -> Result<BTreeSet<String>, PortError> {
    let services = api.all(&Collection::of(SERVICES, namespace), None, service).await?;
    let slices = api.all(&Collection::of(ENDPOINT_SLICES, namespace), None, slice).await?;
    let pods = api.all(&Collection::of(PODS, namespace), None, pods::pod).await?;
    let selectors: BTreeMap<String, Labels> =
        services.into_iter().map(|(service, _)| (service.name, service.selector)).collect();
    let pods: BTreeMap<String, Labels> = pods.into_iter().map(|(labels, pod)| (pod.name, labels)).collect();
    let is_left = |selector: &Labels, endpoint: &Endpoint| {
        endpoint.serves && pods.get(&endpoint.pod).is_none_or(|labels| !is_subset(selector, labels))
    };
    let lagging = slices.into_iter().flatten().filter(|(service, endpoints)| {
        let selector = selectors.get(service).filter(|selector| !selector.is_empty());
        selector.is_some_and(|selector| endpoints.iter().any(|endpoint| is_left(selector, endpoint)))
    });
    Ok(lagging.map(|(service, _)| service).collect())
}

/// The Service of an EndpointSlice that the controller keeps, and its endpoints that are pods.
fn slice(json: &str) -> Result<Option<(String, Vec<Endpoint>)>, Unreadable> {
    #[derive(Deserialize)]
    struct Slice {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        labels: Option<Labels>,
    }
    let Slice { metadata } = serde_json::from_str(json)?;
    let labels = metadata.labels.unwrap_or_default();
    let is_kept = labels.get("endpointslice.kubernetes.io/managed-by").is_some_and(|by| by == CONTROLLER);
    let Some(service) = labels.get("kubernetes.io/service-name").filter(|_| is_kept) else { return Ok(None) };
    Ok(Some((service.clone(), endpoints(json)?.into_iter().map(|endpoint| endpoint.of).collect())))
}

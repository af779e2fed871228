//! The pods of one workload and the EndpointSlices that name them, read afresh while a rollout is at the barrier.
//!
//! Not watched: a rollout at the barrier asks once or a few times, for its own pods alone, and most find no pod on its way out
//! and then cost no second request. The watch of pods, which is there anyway, says when asking again is worth it. A watch of
//! EndpointSlices would list those of all workloads of the namespace for each release, and could still be late.
//!
//! Not for what the answer means; see [`purge::workloads::serving`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::Semaphore;

use super::pods::Uids;
use super::routing::{SERVICES, of_workload};
use super::{PODS, new_pods, pods};
use apiserver::{Api, Collection, Decoder, Resource};
use kernel::id::Kind;
use kernel::names::selector::{Labels, is_subset};
use kernel::unreadable::Unreadable;
use purge::ports::PortError;
use purge::site::ServiceFact;
use purge::workloads::beside::Beside;
use purge::workloads::new_pods::Around;
use purge::workloads::readiness::Pod;
use purge::workloads::serving::{Endpoint, Serving, has_old};
use purge::workloads::workload::Workload;

/// <https://kubernetes.io/docs/reference/kubernetes-api/service-resources/endpoint-slice-v1/>
pub(super) const ENDPOINT_SLICES: Resource = Resource::new("discovery.k8s.io", "v1", "endpointslices");

/// Readings at the same time. A reading takes some ten milliseconds, so a release of hundreds of workloads is still read
/// every second or two, and an API server, which serves 400 requests at once by default, hardly notices.
const READINGS_MAX: usize = 8;

/// Reads who serves, a few workloads at a time.
pub(super) struct ServingReader {
    api: Api,
    places: Arc<Semaphore>,
}

impl ServingReader {
    pub fn new(api: Api) -> Self {
        Self { api, places: Arc::new(Semaphore::new(READINGS_MAX)) }
    }

    /// The pods of a workload, and, if one of them is old, what EndpointSlices of the namespace say.
    pub async fn read(&self, workload: &Workload) -> Result<Serving, PortError> {
        let _place = self.places.acquire().await;
        let selector = workload.selector.to_string();
        let pods = self.list(PODS, workload, Some(&selector), pods::identified).await?;
        let own = pods.into_iter().filter(|(uids, _)| is_own(uids, workload));
        let (uids, pods): (BTreeMap<String, String>, Vec<_>) =
            own.map(|(uids, (labels, pod))| ((pod.name.clone(), uids.own), (labels, pod))).unzip();
        if !has_old(&pods, workload) {
            return Ok(Serving { pods, endpoints: Vec::new() });
        }
        // A name may be that of another pod by now.
        let is_of_now = |endpoint: &Named| {
            let of_now = uids.get(&endpoint.of.pod).filter(|uid| !uid.is_empty());
            endpoint.uid.is_none() || of_now.is_none() || endpoint.uid.as_ref() == of_now
        };
        let endpoints = self.list(ENDPOINT_SLICES, workload, None, endpoints).await?.into_iter().flatten();
        Ok(Serving { pods, endpoints: endpoints.filter(is_of_now).map(|endpoint| endpoint.of).collect() })
    }

    /// The pods of other workloads that these Services have as endpoints which serve. Of EndpointSlices only where there is such a pod.
    pub async fn beside(&self, workload: &Workload, fronts: &[&ServiceFact]) -> Result<Vec<Beside>, PortError> {
        let _place = self.places.acquire().await;
        let selected = |labels: &Labels| fronts.iter().any(|front| is_subset(&front.selector, labels));
        // Of one Service, as most sites have, its pods alone.
        let selector = match fronts {
            [] => return Ok(Vec::new()),
            [front] => {
                Some(front.selector.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","))
            }
            _ => None,
        };
        let pods = self.list(PODS, workload, selector.as_deref(), pods::identified).await?;
        let others = pods.into_iter().filter_map(|(uids, (labels, pod))| {
            let owner = uids.workload(&labels).map(str::to_owned);
            let is_named_so = owner.as_ref() == Some(&workload.id.name) && uids.fits(workload.id.kind);
            let is_other = !is_named_so && uids.controller != workload.uid;
            (is_other && selected(&labels) && !pod.finished).then(|| (pod.name.clone(), (uids.own, owner, pod)))
        });
        let others: BTreeMap<String, (String, Option<String>, Pod)> = others.collect();
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let slices = self.list(ENDPOINT_SLICES, workload, None, of_service).await?.into_iter().flatten();
        let leading = slices.filter(|(service, _)| fronts.iter().any(|front| front.name == *service));
        let serving = leading.flat_map(|(service, endpoints)| {
            let serving = endpoints.into_iter().filter(|endpoint| endpoint.of.serves);
            serving.map(move |endpoint| (service.clone(), endpoint))
        });
        let beside = serving.filter_map(|(service, Named { of, uid })| {
            let (own, owner, pod) = others.get(&of.pod)?;
            let is_it = own.is_empty() || uid.is_none_or(|uid| uid == *own);
            is_it.then(|| Beside { pod: pod.clone(), owner: owner.clone(), service })
        });
        Ok(beside.collect())
    }

    /// Whether a Service that selects the workload's pods publishes their addresses before they are ready.
    pub async fn publishes_unready(&self, workload: &Workload) -> Result<bool, PortError> {
        let _place = self.places.acquire().await;
        let services = self.list(SERVICES, workload, None, publishing).await?;
        Ok(services.into_iter().flatten().any(|selector| workload.pods().may_match(&selector)))
    }

    /// What says where the new pods of a workload can be asked.
    pub async fn around(&self, workload: &Workload) -> Result<Around, PortError> {
        let _place = self.places.acquire().await;
        let selector = workload.selector.to_string();
        let pods = self.list(PODS, workload, Some(&selector), new_pods::placed).await?;
        let own = pods.into_iter().filter(|(uids, ..)| is_own(uids, workload));
        let (pods, places) = own.map(|(_, (labels, pod), place)| ((labels, pod.clone()), (pod.name, place))).unzip();
        Ok(Around { pods, places, services: self.list(SERVICES, workload, None, new_pods::service).await? })
    }

    async fn list<T>(
        &self,
        resource: Resource,
        workload: &Workload,
        labels: Option<&str>,
        decode: Decoder<T>,
    ) -> Result<Vec<T>, PortError> {
        Ok(self.api.all(&Collection::of(resource, &workload.id.namespace), labels, decode).await?)
    }
}

/// Controllers tell their pods by owner: those of others may have labels that its selector takes. A Deployment's are owned by its
/// ReplicaSets, and those of a kind that is declared by whatever its controller makes.
fn is_own(uids: &Uids, workload: &Workload) -> bool {
    matches!(workload.id.kind, Kind::Deployment | Kind::Custom(_))
        || uids.controller.is_empty()
        || uids.controller == workload.uid
}

/// The selector of a Service that publishes addresses of pods that are not ready; `None` for all others.
fn publishing(json: &str) -> Result<Option<Labels>, Unreadable> {
    let service: Service = serde_json::from_str(json)?;
    let spec = service.spec.filter(|spec| spec.publish_not_ready_addresses == Some(true));
    Ok(spec.and_then(|spec| spec.selector).map(of_workload))
}

#[derive(Deserialize)]
struct Service {
    spec: Option<ServiceSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceSpec {
    publish_not_ready_addresses: Option<bool>,
    selector: Option<Labels>,
}

/// The Service of an EndpointSlice, and its endpoints that are pods; `None` where it is of none.
fn of_service(json: &str) -> Result<Option<(String, Vec<Named>)>, Unreadable> {
    #[derive(Deserialize)]
    struct Labelled {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        labels: Option<Labels>,
    }
    let Labelled { metadata } = serde_json::from_str(json)?;
    let service = metadata.labels.unwrap_or_default().remove("kubernetes.io/service-name");
    service.map(|service| Ok((service, endpoints(json)?))).transpose()
}

/// The endpoints of an EndpointSlice that are pods.
pub(super) fn endpoints(json: &str) -> Result<Vec<Named>, Unreadable> {
    let slice: Slice = serde_json::from_str(json)?;
    let endpoint = |raw: RawEndpoint| {
        let target = raw.target_ref.filter(Target::is_pod)?;
        let of = Endpoint { pod: target.name?, serves: raw.conditions.unwrap_or_default().serves() };
        Some(Named { of, uid: target.uid })
    };
    Ok(slice.endpoints.into_iter().flatten().filter_map(endpoint).collect())
}

/// An endpoint, and the UID of its pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub of: Endpoint,
    uid: Option<String>,
}

#[derive(Deserialize)]
struct Slice {
    endpoints: Option<Vec<RawEndpoint>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndpoint {
    conditions: Option<Conditions>,
    target_ref: Option<Target>,
}

#[derive(Default, Deserialize)]
pub(super) struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Target {
    kind: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
}

impl Target {
    pub(super) fn is_pod(&self) -> bool {
        self.kind.as_deref() == Some("Pod")
    }
}

impl Conditions {
    /// `serving` is what `ready` would be if the pod were not terminating; where it is not said, `ready` holds, and where that
    /// is not said either, it is true. A Service that publishes addresses that are not ready has `ready` in any case.
    pub(super) fn serves(&self) -> bool {
        self.serving.or(self.ready).unwrap_or(true) || self.ready == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn serves(conditions: Value) -> Vec<Endpoint> {
        let pod = json!({"kind": "Pod", "namespace": "shop", "name": "web-1"});
        let slice = json!({
            "metadata": {"name": "web-x", "labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": pod},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.3"], "targetRef": {"kind": "VM", "name": "old"}},
            ],
        });
        endpoints(&slice.to_string()).unwrap().into_iter().map(|endpoint| endpoint.of).collect()
    }

    #[test]
    fn an_endpoint_serves_unless_its_conditions_say_that_it_does_not() {
        let web = |serves| vec![Endpoint { pod: "web-1".into(), serves }];
        assert_eq!(serves(json!({"ready": true, "serving": true, "terminating": false})), web(true));
        assert_eq!(serves(json!({"ready": false, "serving": true, "terminating": true})), web(true));
        assert_eq!(serves(json!({"ready": false, "serving": false, "terminating": true})), web(false));
        assert_eq!(serves(json!({"ready": false, "serving": null})), web(false));
        assert_eq!(
            serves(json!({"ready": true, "serving": false, "terminating": true})),
            web(true),
            "published unready"
        );
        assert_eq!(serves(json!(null)), web(true));
        assert_eq!(endpoints(&json!({"endpoints": null}).to_string()), Ok(Vec::new()));
    }
}

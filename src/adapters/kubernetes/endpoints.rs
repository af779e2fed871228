//! The endpoints of a Service that a cache has, read afresh: by its EndpointSlices, as what routes to it finds them.
//!
//! What is missing is never empty: a Service without slices, and one without the port, have no endpoints that could be asked, and that is an
//! error. One whose slices name none has none.
//!
//! Not for what is asked there; that is [`super::super::caches`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use tokio::sync::Semaphore;

use super::routing::SERVICES;
use super::serving::{Conditions, ENDPOINT_SLICES, Target};
use super::{Cluster, new_pods};
use apiserver::Collection;
use kernel::unreadable::Unreadable;
use purge::caches::asking::Endpoint;
use purge::caches::{Port, Service};
use purge::ports::PortError;

/// Endpoints of one cache at most: each is asked by itself.
const ENDPOINTS_MAX: usize = 256;

/// Readings of endpoints at the same time: a release of many workloads asks for as many at once, and each is two listings.
const READINGS_MAX: usize = 8;

/// A reading takes some ten milliseconds, so nobody waits here for long.
static READINGS: Semaphore = Semaphore::const_new(READINGS_MAX);

/// What leads to a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Those that serve.
    pub serving: BTreeMap<Endpoint, SocketAddr>,
    /// How many do not.
    pub unready: usize,
}

/// Why it is not known which endpoints a Service has.
#[derive(Debug, thiserror::Error)]
pub enum NoEndpoints {
    #[error(transparent)]
    Unread(#[from] PortError),
    #[error("the Service {0} does not exist")]
    Missing(String),
    #[error("the Service {0} has no TCP port of this number or name")]
    NoPort(Service),
    #[error("the Service {0} has no EndpointSlices: it selects no pods, and nothing else names endpoints for it")]
    NoSlices(String),
    #[error("it has {0} endpoints; the most is {ENDPOINTS_MAX}")]
    TooMany(usize),
}

impl Cluster {
    /// The endpoints of a Service.
    ///
    /// # Errors
    /// Where it is not known which it has.
    pub async fn endpoints(&self, service: &Service) -> Result<Endpoints, NoEndpoints> {
        // It is never closed, and so lets everybody in after a while.
        let _reading = READINGS.acquire().await.ok();
        let Service { namespace, name, port } = service;
        let display = || format!("{namespace}/{name}");
        let of = Collection::of(SERVICES, namespace);
        let services = self.looks.all(&of, None, new_pods::service).await.map_err(PortError::from)?;
        let found =
            services.into_iter().find(|one| one.name == *name).ok_or_else(|| NoEndpoints::Missing(display()))?;
        let port = found.ports.iter().find(|one| match port {
            Port::Number(number) => one.number == *number,
            Port::Name(name) => one.name.as_ref() == Some(name),
        });
        // Slices name a port as its Service does, and not at all where that has one only.
        let port = port.ok_or_else(|| NoEndpoints::NoPort(service.clone()))?.name.clone().unwrap_or_default();
        let of = Collection::of(ENDPOINT_SLICES, namespace);
        let label = format!("kubernetes.io/service-name={name}");
        let slices = self.looks.all(&of, Some(&label), slice).await.map_err(PortError::from)?;
        if slices.is_empty() {
            return Err(NoEndpoints::NoSlices(display()));
        }
        let all = gathered(slices, &port);
        let count = all.serving.len();
        if count > ENDPOINTS_MAX { Err(NoEndpoints::TooMany(count)) } else { Ok(all) }
    }
}

/// The endpoints of all slices at a port. A pod is one endpoint, however many addresses it has.
fn gathered(slices: Vec<Slice>, port: &str) -> Endpoints {
    let mut all = Endpoints::default();
    for slice in slices {
        let is_it = |one: &&SlicePort| one.name.as_deref().unwrap_or_default() == port && one.is_tcp();
        let number = slice.ports.iter().flatten().find(is_it).and_then(|port| port.port);
        for raw in slice.endpoints.into_iter().flatten() {
            let address = raw.addresses.iter().flatten().find_map(|text| text.parse::<IpAddr>().ok());
            // Without the port, or at a name instead of an address, it cannot be asked.
            let (Some(address), Some(number), true) = (address, number, raw.conditions.unwrap_or_default().serves())
            else {
                all.unready += 1;
                continue;
            };
            let to = SocketAddr::new(address, number);
            let pod = raw.target_ref.filter(Target::is_pod);
            let (name, uid) = pod.map_or_else(Default::default, |pod| (pod.name, pod.uid));
            let (name, uid) = (name.unwrap_or_else(|| to.to_string()), uid.unwrap_or_default());
            let is_known = !uid.is_empty() && all.serving.keys().any(|known| known.uid == uid);
            if !is_known {
                all.serving.insert(Endpoint { name, address: to.to_string(), uid }, to);
            }
        }
    }
    all
}

fn slice(json: &str) -> Result<Slice, Unreadable> {
    Ok(serde_json::from_str(json)?)
}

#[derive(Deserialize)]
struct Slice {
    endpoints: Option<Vec<RawEndpoint>>,
    ports: Option<Vec<SlicePort>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndpoint {
    addresses: Option<Vec<String>>,
    conditions: Option<Conditions>,
    target_ref: Option<Target>,
}

#[derive(Deserialize)]
struct SlicePort {
    name: Option<String>,
    port: Option<u16>,
    protocol: Option<String>,
}

impl SlicePort {
    fn is_tcp(&self) -> bool {
        self.protocol.as_deref().is_none_or(|protocol| protocol == "TCP")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str) -> Value {
        json!({"kind": "Pod", "name": name, "uid": format!("uid-{name}")})
    }

    fn read(slices: &[Value], port: &str) -> Endpoints {
        gathered(slices.iter().map(|one| slice(&one.to_string()).unwrap()).collect(), port)
    }

    fn named(endpoints: &Endpoints) -> Vec<(&str, String)> {
        endpoints.serving.iter().map(|(one, to)| (one.name.as_str(), to.to_string())).collect()
    }

    #[test]
    fn an_endpoint_that_serves_is_asked_at_the_port_of_its_slice() {
        let slices = [
            json!({
                "ports": [{"name": "admin", "port": 6082}, {"name": "http", "port": 8080, "protocol": "TCP"}],
                "endpoints": [
                    {"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "targetRef": pod("varnish-1")},
                    {"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": true, "terminating": true}, "targetRef": pod("varnish-2")},
                    {"addresses": ["10.0.0.3"], "conditions": {"ready": false}, "targetRef": pod("varnish-3")},
                    {"addresses": ["10.0.0.4"]},
                ],
            }),
            json!({"ports": [{"name": "http", "port": 8081}], "endpoints": [{"addresses": ["10.0.0.5"], "targetRef": pod("varnish-5")}]}),
        ];
        let seen = read(&slices, "http");
        let wanted = [
            ("10.0.0.4:8080", "10.0.0.4:8080"),
            ("varnish-1", "10.0.0.1:8080"),
            ("varnish-2", "10.0.0.2:8080"),
            ("varnish-5", "10.0.0.5:8081"),
        ];
        assert_eq!(named(&seen), wanted.map(|(name, to)| (name, to.to_owned())));
        assert_eq!(seen.unready, 1);
        assert_eq!(read(&slices, ""), Endpoints { unready: 5, ..Endpoints::default() }, "no slice has that port");
    }

    #[test]
    fn a_pod_of_two_families_is_one_endpoint_and_a_name_is_none() {
        let slice = |address: &str| json!({"ports": [{"port": 80}], "endpoints": [{"addresses": [address], "targetRef": pod("a")}]});
        assert_eq!(named(&read(&[slice("10.0.0.1"), slice("fd00::1")], "")), [("a", "10.0.0.1:80".to_owned())]);
        assert_eq!(read(&[slice("example.com")], "").unready, 1);
        assert_eq!(read(&[json!({"endpoints": null, "ports": null})], ""), Endpoints::default());
    }
}

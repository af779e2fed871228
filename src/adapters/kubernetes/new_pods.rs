//! What says where new pods of a workload can be asked: its pods with their addresses, and the Services of its namespace.
//!
//! Not for choosing among them; see [`purge::workloads::new_pods`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use super::parts::Few;
use super::pods::{self, LabelledPod, Uids};
use kernel::names::selector::Labels;
use kernel::unreadable::Unreadable;
use purge::workloads::new_pods::{Family, Place, Port, Service, Target};

/// A pod, whose it is, and where it is.
pub(super) fn placed(json: &str) -> Result<(Uids, LabelledPod, Place), Unreadable> {
    let (uids, labelled) = pods::identified(json)?;
    let RawPod { spec, status } = serde_json::from_str(json)?;
    let status = status.unwrap_or_default();
    let all = status.pod_ips.items.into_iter().filter_map(|address| address.ip).chain(status.pod_ip);
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in all.filter_map(|address| address.parse::<IpAddr>().ok()) {
        if !addresses.iter().any(|known| known.is_ipv4() == address.is_ipv4()) {
            addresses.push(address);
        }
    }
    // As Kubernetes finds a port by its name: among containers first, then those that are started before them and stay
    // (https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/api/v1/pod/util.go, FindPort).
    let sidecars = spec.init_containers.items.into_iter().filter(|one| one.restart_policy.as_deref() == Some("Always"));
    let mut ports = BTreeMap::new();
    for port in spec.containers.items.into_iter().chain(sidecars).flat_map(|container| container.ports.items) {
        if let Some(name) = port.name.filter(|_| is_tcp(port.protocol.as_deref())) {
            ports.entry(name).or_insert(port.container_port);
        }
    }
    Ok((uids, labelled, Place { addresses, ports }))
}

/// A Service, as far as it leads to pods.
pub(super) fn service(json: &str) -> Result<Service, Unreadable> {
    let RawService { metadata, spec } = serde_json::from_str(json)?;
    let spec = spec.unwrap_or_default();
    // Of that type, Kubernetes selects no pods, whatever the selector says.
    let external = spec.kind.as_deref() == Some("ExternalName");
    let families = spec.ip_families.items.iter().filter_map(|family| match family.as_str() {
        "IPv4" => Some(Family::V4),
        "IPv6" => Some(Family::V6),
        _ => None,
    });
    let ports = spec.ports.items.into_iter().filter(|port| is_tcp(port.protocol.as_deref())).map(|raw| Port {
        name: raw.name.filter(|name| !name.is_empty()),
        speaks: raw.app_protocol.filter(|protocol| !protocol.is_empty()),
        number: raw.port,
        target: raw.target_port.unwrap_or(RawTarget::Number(raw.port)).into(),
    });
    Ok(Service {
        name: metadata.name,
        selector: spec.selector.filter(|_| !external).unwrap_or_default(),
        families: families.collect(),
        ports: ports.collect(),
    })
}

/// Where no protocol is given, it is TCP.
fn is_tcp(protocol: Option<&str>) -> bool {
    protocol.is_none_or(|protocol| protocol == "TCP")
}

#[derive(Deserialize)]
struct RawPod {
    spec: PodSpec,
    status: Option<PodStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    containers: Few<Container>,
    #[serde(default)]
    init_containers: Few<Container>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    restart_policy: Option<String>,
    #[serde(default)]
    ports: Few<ContainerPort>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerPort {
    name: Option<String>,
    container_port: u16,
    protocol: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(rename = "podIPs")]
    pod_ips: Few<Address>,
}

#[derive(Deserialize)]
struct Address {
    ip: Option<String>,
}

#[derive(Deserialize)]
struct RawService {
    metadata: Metadata,
    spec: Option<ServiceSpec>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceSpec {
    #[serde(rename = "type")]
    kind: Option<String>,
    selector: Option<Labels>,
    ip_families: Few<String>,
    ports: Few<ServicePort>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServicePort {
    name: Option<String>,
    port: u16,
    protocol: Option<String>,
    app_protocol: Option<String>,
    target_port: Option<RawTarget>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawTarget {
    Number(u16),
    Named(String),
}

impl From<RawTarget> for Target {
    fn from(raw: RawTarget) -> Self {
        match raw {
            RawTarget::Number(number) => Self::Number(number),
            RawTarget::Named(name) => Self::Named(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(spec: Value) -> Service {
        service(&json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": spec}).to_string()).unwrap()
    }

    #[test]
    fn a_service_leads_to_pods_by_its_tcp_ports() {
        let selector = json!({"app": "web"});
        let ports = json!([
            {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web"},
            {"name": "", "port": 8080, "targetPort": 3000},
            {"port": 9000, "appProtocol": "https"},
            {"name": "quic", "port": 443, "protocol": "UDP", "targetPort": 443},
        ]);
        let families = json!(["IPv6", "IPv4", "IPvFuture"]);
        let port = |name: Option<&str>, number, target| {
            let speaks = (number == 9000).then(|| "https".to_owned());
            Port { name: name.map(str::to_owned), speaks, number, target }
        };
        let expected = Service {
            name: "web".to_owned(),
            selector: Labels::from([("app".to_owned(), "web".to_owned())]),
            families: vec![Family::V6, Family::V4],
            ports: vec![
                port(Some("http"), 80, Target::Named("web".to_owned())),
                port(None, 8080, Target::Number(3000)),
                port(None, 9000, Target::Number(9000)),
            ],
        };
        let headless = json!({"clusterIP": "None", "selector": selector, "ports": ports, "ipFamilies": families});
        assert_eq!(read(headless), expected);
        let balanced = json!({"type": "LoadBalancer", "selector": selector, "ports": ports, "ipFamilies": families});
        assert_eq!(read(balanced), expected);
        assert_eq!(read(json!({"clusterIP": "None", "selector": selector, "ports": null})).ports, []);
    }

    #[test]
    fn an_external_name_and_one_without_a_selector_select_no_pods() {
        let external = json!({"type": "ExternalName", "externalName": "example.com", "selector": {"app": "web"}});
        assert_eq!(read(external).selector, Labels::new());
        assert_eq!(read(json!({"ports": [{"port": 80}]})).selector, Labels::new());
        assert_eq!(read(json!(null)).selector, Labels::new());
    }

    fn place(spec: Value, status: Value) -> Place {
        let object = json!({"metadata": {"name": "web-1"}, "spec": spec, "status": status});
        placed(&object.to_string()).unwrap().2
    }

    #[test]
    fn a_pod_has_an_address_of_each_family_and_the_first_is_its_own() {
        let addresses = |status| {
            let place = place(json!({"containers": []}), status);
            place.addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let both = json!({"podIP": "fd00::1", "podIPs": [{"ip": "fd00::1"}, {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]});
        assert_eq!(addresses(both), ["fd00::1", "10.0.0.1"]);
        assert_eq!(addresses(json!({"podIP": "10.0.0.1"})), ["10.0.0.1"]);
        assert_eq!(addresses(json!({"podIP": "", "podIPs": [{}, {"ip": "example.com"}]})), [""; 0], "no name is asked");
        assert_eq!(addresses(json!(null)), [""; 0]);
    }

    #[test]
    fn a_port_has_its_name_by_the_first_container_that_stays() {
        let port = |name: &str, number: u16, protocol: &str| json!({"name": name, "containerPort": number, "protocol": protocol});
        let spec = json!({
            "containers": [
                {"name": "web", "image": "web:1", "ports": [port("web", 53, "UDP"), port("web", 3000, "TCP"), {"containerPort": 9}]},
                {"name": "metrics", "image": "metrics:1", "ports": [port("web", 3001, "TCP")]},
            ],
            "initContainers": [
                {"name": "setup", "image": "setup:1", "ports": [port("setup", 1, "TCP")]},
                {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always", "ports": [port("mesh", 15006, "TCP")]},
            ],
        });
        let expected = [("mesh", 15006), ("web", 3000)].map(|(name, number)| (name.to_owned(), number));
        assert_eq!(place(spec, json!(null)).ports, BTreeMap::from(expected));
    }
}

//! Services, Ingresses, Gateway API routes and Gateways, reduced to the facts a site is found from.
//!
//! The Gateway API types are our own: a published crate for kube 5 does not exist, and a few fields are all that is used.
//! <https://gateway-api.sigs.k8s.io/reference/spec/>
//!
//! Not for finding the site; that is [`crate::domain::site`].

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::call::Resource;
use super::decode::annotations;
use crate::domain::selector::Labels;
use crate::domain::site::{
    GatewayFact, IngressFact, IngressRule, ListenerFact, ParentFact, RouteFact, RouteKind, ServiceFact,
};

/// `v1` Services.
pub(super) const SERVICES: Resource = Resource { group: "", version: "v1", plural: "services" };

/// Ingresses; `networking.k8s.io/v1` is served since Kubernetes 1.19.
pub(super) const INGRESSES: Resource = Resource { group: "networking.k8s.io", version: "v1", plural: "ingresses" };

/// The group of the Gateway API, in which everything used is `v1` since its release 1.1.
const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// `HTTPRoute`s.
pub(super) const HTTP_ROUTES: Resource = Resource { group: GATEWAY_GROUP, version: "v1", plural: "httproutes" };

/// `GRPCRoute`s.
pub(super) const GRPC_ROUTES: Resource = Resource { group: GATEWAY_GROUP, version: "v1", plural: "grpcroutes" };

/// Gateways.
pub(super) const GATEWAYS: Resource = Resource { group: GATEWAY_GROUP, version: "v1", plural: "gateways" };

/// The old form of `spec.ingressClassName`.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Reads a Service.
pub(super) fn service(json: &str) -> Result<ServiceFact, String> {
    #[derive(Deserialize)]
    struct Spec {
        selector: Option<Labels>,
    }
    let Object { metadata, spec, .. } = read::<Spec, IgnoredAny>(json)?;
    Ok(ServiceFact {
        namespace: metadata.namespace,
        name: metadata.name,
        selector: spec.and_then(|spec| spec.selector).unwrap_or_default(),
        annotations: metadata.annotations,
    })
}

/// Reads an Ingress.
pub(super) fn ingress(json: &str) -> Result<IngressFact, String> {
    let Object { mut metadata, spec, status } = read::<IngressSpec, IngressStatus>(json)?;
    let spec = spec.unwrap_or_default();
    let balancers = status.and_then(|status| status.load_balancer).and_then(|balancer| balancer.ingress);
    let old_class = metadata.annotations.remove(INGRESS_CLASS);
    Ok(IngressFact {
        namespace: metadata.namespace,
        name: metadata.name,
        class: spec.ingress_class_name.or(old_class),
        rules: spec.rules.unwrap_or_default().into_iter().map(IngressRule::from).collect(),
        default_backend: spec.default_backend.and_then(Backend::service),
        tls_hosts: spec.tls.into_iter().flatten().flat_map(|tls| tls.hosts.unwrap_or_default()).collect(),
        load_balancers: balancers.into_iter().flatten().filter_map(|balancer| balancer.hostname).collect(),
        annotations: metadata.annotations,
    })
}

/// Reads an `HTTPRoute`.
pub(super) fn http_route(json: &str) -> Result<RouteFact, String> {
    route(json, RouteKind::Http)
}

/// Reads a `GRPCRoute`.
pub(super) fn grpc_route(json: &str) -> Result<RouteFact, String> {
    route(json, RouteKind::Grpc)
}

fn route(json: &str, kind: RouteKind) -> Result<RouteFact, String> {
    let Object { metadata, spec, .. } = read::<RouteSpec, IgnoredAny>(json)?;
    let spec = spec.unwrap_or_default();
    let home = metadata.namespace.as_str();
    let backends = spec.rules.into_iter().flatten().flat_map(|rule| rule.backend_refs.unwrap_or_default());
    let backends = backends.filter(|to| to.is("", "Service")).map(|to| (to.namespace_or(home), to.name));
    let parents = spec.parent_refs.into_iter().flatten().filter(|to| to.is(GATEWAY_GROUP, "Gateway"));
    let parents = parents.map(|to| ParentFact {
        namespace: to.namespace_or(home),
        name: to.name,
        listener: to.section_name,
        port: to.port,
    });
    Ok(RouteFact {
        kind,
        hostnames: spec.hostnames.unwrap_or_default(),
        backends: backends.collect(),
        parents: parents.collect(),
        namespace: metadata.namespace,
        name: metadata.name,
        annotations: metadata.annotations,
    })
}

/// Reads a Gateway.
pub(super) fn gateway(json: &str) -> Result<GatewayFact, String> {
    let Object { metadata, spec, status } = read::<GatewaySpec, GatewayStatus>(json)?;
    let listeners = spec.and_then(|spec| spec.listeners).unwrap_or_default();
    let addresses = status.and_then(|status| status.addresses).unwrap_or_default();
    Ok(GatewayFact {
        namespace: metadata.namespace,
        name: metadata.name,
        listeners: listeners
            .into_iter()
            .map(|Listener { name, port, hostname }| ListenerFact { name, port, hostname })
            .collect(),
        addresses: addresses
            .into_iter()
            .filter(|address| address.kind.as_deref() == Some("Hostname"))
            .filter_map(|address| address.value)
            .collect(),
    })
}

fn read<'a, Spec: Deserialize<'a>, Status: Deserialize<'a>>(json: &'a str) -> Result<Object<Spec, Status>, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

#[derive(Deserialize)]
struct Object<Spec, Status> {
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    namespace: String,
    name: String,
    #[serde(default, deserialize_with = "routing_annotations")]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IngressSpec {
    ingress_class_name: Option<String>,
    rules: Option<Vec<Rule>>,
    default_backend: Option<Backend>,
    tls: Option<Vec<Tls>>,
}

#[derive(Deserialize)]
struct Rule {
    host: Option<String>,
    http: Option<HttpRule>,
}

#[derive(Deserialize)]
struct HttpRule {
    paths: Option<Vec<HttpPath>>,
}

#[derive(Deserialize)]
struct HttpPath {
    backend: Option<Backend>,
}

/// Where requests go; anything but a Service is of no interest.
#[derive(Deserialize)]
struct Backend {
    service: Option<ServiceBackend>,
}

#[derive(Deserialize)]
struct ServiceBackend {
    name: String,
}

#[derive(Deserialize)]
struct Tls {
    hosts: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IngressStatus {
    load_balancer: Option<LoadBalancer>,
}

#[derive(Deserialize)]
struct LoadBalancer {
    ingress: Option<Vec<Balancer>>,
}

#[derive(Deserialize)]
struct Balancer {
    hostname: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RouteSpec {
    hostnames: Option<Vec<String>>,
    parent_refs: Option<Vec<Reference>>,
    rules: Option<Vec<RouteRule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RouteRule {
    backend_refs: Option<Vec<Reference>>,
}

/// A reference of the Gateway API; what an absent group or kind means depends on where it stands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
    section_name: Option<String>,
    port: Option<u16>,
}

#[derive(Deserialize)]
struct GatewaySpec {
    listeners: Option<Vec<Listener>>,
}

#[derive(Deserialize)]
struct Listener {
    name: String,
    port: u16,
    hostname: Option<String>,
}

#[derive(Deserialize)]
struct GatewayStatus {
    addresses: Option<Vec<Address>>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: Option<String>,
    value: Option<String>,
}

impl From<Rule> for IngressRule {
    fn from(rule: Rule) -> Self {
        let paths = rule.http.and_then(|http| http.paths).unwrap_or_default();
        let backends = paths.into_iter().filter_map(|path| path.backend?.service()).collect();
        Self { host: rule.host, backends }
    }
}

impl Backend {
    fn service(self) -> Option<String> {
        self.service.map(|service| service.name)
    }
}

impl Reference {
    /// Whether it refers to this kind, which is what it does when it names none.
    fn is(&self, group: &str, kind: &str) -> bool {
        self.group.as_deref().unwrap_or(group) == group && self.kind.as_deref().unwrap_or(kind) == kind
    }

    fn namespace_or(&self, home: &str) -> String {
        self.namespace.as_deref().unwrap_or(home).to_owned()
    }
}

fn routing_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    annotations(deserializer, |key| key.starts_with("external-dns.") || key == INGRESS_CLASS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_ingress_is_reduced_to_hosts_and_services() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web", "annotations": {
                "external-dns.alpha.kubernetes.io/hostname": "a.example.com", "other": "x",
                "kubernetes.io/ingress.class": "nginx",
            }},
            "spec": {
                "defaultBackend": {"service": {"name": "fallback", "port": {"number": 80}}},
                "tls": [{"hosts": ["www.example.com"], "secretName": "s"}, {}],
                "rules": [
                    {"host": "www.example.com", "http": {"paths": [
                        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web"}}},
                        {"path": "/s3", "pathType": "Prefix", "backend": {"resource": {"kind": "Bucket"}}},
                    ]}},
                    {"http": null},
                ],
            },
            "status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.net"}, {"ip": "192.0.2.1"}]}},
        });
        let fact = ingress(&object.to_string()).unwrap();
        assert_eq!(fact.class.as_deref(), Some("nginx"));
        assert_eq!(fact.default_backend.as_deref(), Some("fallback"));
        assert_eq!(fact.tls_hosts, ["www.example.com"]);
        assert_eq!(fact.load_balancers, ["lb.example.net"]);
        assert_eq!(fact.annotations.len(), 1);
        let web = IngressRule { host: Some("www.example.com".into()), backends: vec!["web".into()] };
        assert_eq!(fact.rules, [web, IngressRule::default()]);
    }

    #[test]
    fn a_service_without_selector_selects_nothing() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "db", "annotations": null},
            "spec": {"type": "ExternalName", "selector": null}, "status": {"loadBalancer": {}},
        });
        assert_eq!(service(&object.to_string()).unwrap().selector, Labels::new());
    }

    #[test]
    fn a_route_keeps_only_services_and_gateways_and_completes_their_namespaces() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {
                "hostnames": ["www.example.com"],
                "parentRefs": [
                    {"name": "edge", "namespace": "infra", "sectionName": "https", "port": 443},
                    {"name": "mesh", "kind": "Service", "group": ""},
                ],
                "rules": [
                    {"backendRefs": [{"name": "web", "port": 80}, {"name": "api", "namespace": "back"}]},
                    {"backendRefs": [{"name": "bucket", "kind": "Bucket", "group": "example.com"}]},
                    {},
                ],
            },
            "status": {"parents": []},
        });
        let fact = http_route(&object.to_string()).unwrap();
        assert_eq!(fact.backends, [("shop".into(), "web".into()), ("back".into(), "api".into())]);
        let listener = Some("https".to_owned());
        let edge = ParentFact { namespace: "infra".into(), name: "edge".into(), listener, port: Some(443) };
        assert_eq!(fact.parents, [edge]);
    }

    #[test]
    fn a_gateway_tells_its_listeners_and_the_host_names_among_its_addresses() {
        let object = json!({
            "metadata": {"namespace": "infra", "name": "edge"},
            "spec": {"listeners": [{"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "*.example.com"}]},
            "status": {"addresses": [
                {"type": "Hostname", "value": "lb.example.net"}, {"type": "IPAddress", "value": "192.0.2.1"},
            ]},
        });
        let fact = gateway(&object.to_string()).unwrap();
        assert_eq!(fact.addresses, ["lb.example.net"]);
        assert_eq!(fact.listeners[0].hostname.as_deref(), Some("*.example.com"));
    }
}

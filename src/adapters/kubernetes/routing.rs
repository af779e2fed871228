//! Services and Ingresses, reduced to the facts a site is found from.
//!
//! Not for the Gateway API (`gateway`), nor for finding the site; that is [`crate::domain::site`].

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::call::Resource;
use super::decode::annotations;
use crate::domain::selector::Labels;
use crate::domain::site::{IngressFact, IngressRule, Reach, ServiceFact};

/// `v1` Services.
pub(super) const SERVICES: Resource = Resource { group: "", version: "v1", plural: "services" };

/// Ingresses; `networking.k8s.io/v1` is served since Kubernetes 1.19.
pub(super) const INGRESSES: Resource = Resource { group: "networking.k8s.io", version: "v1", plural: "ingresses" };

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

/// Reads an object.
pub(super) fn read<'a, Spec: Deserialize<'a>, Status: Deserialize<'a>>(
    json: &'a str,
) -> Result<Object<Spec, Status>, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// An object, as far as anything is read of it.
#[derive(Deserialize)]
pub(super) struct Object<Spec, Status> {
    pub metadata: Metadata,
    pub spec: Option<Spec>,
    pub status: Option<Status>,
}

/// Its metadata.
#[derive(Deserialize)]
pub(super) struct Metadata {
    pub namespace: String,
    pub name: String,
    /// Those that say something about routing.
    #[serde(default, deserialize_with = "routing_annotations")]
    pub annotations: BTreeMap<String, String>,
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
#[serde(rename_all = "camelCase")]
struct HttpPath {
    path: Option<String>,
    path_type: Option<String>,
    backend: Option<Backend>,
}

/// How controllers that read regular expressions or globs in a path write "every path".
const EVERY_PATH: [&str; 6] = ["", "/", "/*", "/.*", "/(.*)", "/?(.*)"];

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

impl From<Rule> for IngressRule {
    fn from(rule: Rule) -> Self {
        let Some(http) = rule.http else {
            return Self { host: rule.host, backends: Vec::new(), reach: Reach::Default };
        };
        let paths = http.paths.unwrap_or_default();
        let reach = if paths.iter().any(HttpPath::is_every) { Reach::Whole } else { Reach::Part };
        let backends = paths.into_iter().filter_map(|path| path.backend?.service()).collect();
        Self { host: rule.host, backends, reach }
    }
}

impl HttpPath {
    fn is_every(&self) -> bool {
        let path = self.path.as_deref().unwrap_or_default();
        self.path_type.as_deref() != Some("Exact") && EVERY_PATH.contains(&path)
    }
}

impl Backend {
    fn service(self) -> Option<String> {
        self.service.map(|service| service.name)
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
        let web = |reach| IngressRule { host: Some("www.example.com".into()), backends: vec!["web".into()], reach };
        assert_eq!(fact.rules, [web(Reach::Whole), IngressRule { reach: Reach::Default, ..IngressRule::default() }]);
        let mut part = object;
        part["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = json!("Exact");
        assert_eq!(ingress(&part.to_string()).unwrap().rules[0], web(Reach::Part));
    }

    #[test]
    fn a_service_without_selector_selects_nothing() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "db", "annotations": null},
            "spec": {"type": "ExternalName", "selector": null}, "status": {"loadBalancer": {}},
        });
        assert_eq!(service(&object.to_string()).unwrap().selector, Labels::new());
    }
}

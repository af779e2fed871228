//! Services and Ingresses, reduced to the facts a site is found from.
//!
//! Not for the Gateway API (`gateway`), nor for finding the site; that is [`purge::site`].

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::parts::{Annotations, Few, annotations};
use apiserver::Resource;
use kernel::id::Kind;
use kernel::names::selector::Labels;
use kernel::unreadable::Unreadable;
use kinds::template_label;
use purge::site::{IngressFact, IngressRule, Reach, ServiceFact, Way};

pub(super) const SERVICES: Resource = Resource::new("", "v1", "services");

/// Ingresses; `networking.k8s.io/v1` is served since Kubernetes 1.19.
pub(super) const INGRESSES: Resource = Resource::new("networking.k8s.io", "v1", "ingresses");

/// The old form of `spec.ingressClassName`.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// What annotations of Ingresses are called, behind the name of their controller, that may change which requests a path takes: they make
/// regular expressions of paths, send other requests to a Service, or are free text of the controller's configuration.
/// <https://kubernetes.github.io/ingress-nginx/user-guide/ingress-path-matching/>,
/// <https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/>,
/// <https://docs.nginx.com/nginx-ingress-controller/configuration/ingress-resources/advanced-configuration-with-annotations/>,
/// <https://haproxy-ingress.github.io/docs/configuration/keys/#path-type>
const EXPRESSIONS: [&str; 14] = [
    USE_REGEX,
    "rewrite-target",
    "path-regex",
    "path-type",
    "app-root",
    "default-backend",
    "server-snippet",
    "server-snippets",
    "configuration-snippet",
    "location-snippets",
    "config-backend",
    "config-frontend",
    "backend-config-snippet",
    "frontend-config-snippet",
];

/// The one of them that can be off.
const USE_REGEX: &str = "use-regex";

/// With these, followed by the name of a backend, the AWS Load Balancer Controller takes more conditions and leads elsewhere than rules say.
/// <https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/ingress/annotations/>
const OF_BACKENDS: [&str; 2] = ["alb.ingress.kubernetes.io/conditions.", "alb.ingress.kubernetes.io/actions."];

/// What is kept of an object, and how many of its names were not even read.
pub(super) type Counted<T> = (T, usize);

pub(super) fn service(json: &str) -> Result<Counted<ServiceFact>, Unreadable> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(rename = "type")]
        kind: Option<String>,
        selector: Option<Labels>,
        external_name: Option<String>,
    }
    let Object { metadata, spec, .. } = read::<Spec, IgnoredAny>(json)?;
    let spec = spec.unwrap_or_default();
    // Of that type, Kubernetes selects no pods, whatever the selector says.
    let external = spec.kind.as_deref() == Some("ExternalName");
    let fact = ServiceFact {
        namespace: metadata.namespace,
        name: metadata.name,
        selector: spec.selector.filter(|_| !external).map(of_workload).unwrap_or_default(),
        external_name: spec.external_name.filter(|_| external),
        annotations: metadata.annotations,
    };
    Ok((fact, 0))
}

/// A selector without the hash of a template that Argo Rollouts writes into it: whichever pods of a Rollout a Service leads to now, it leads
/// to the Rollout.
pub(super) fn of_workload(mut selector: Labels) -> Labels {
    if selector.len() > 1 {
        selector.remove(template_label(Kind::Rollout));
    }
    selector
}

pub(super) fn ingress(json: &str) -> Result<Counted<IngressFact>, Unreadable> {
    let Object { mut metadata, spec, status } = read::<IngressSpec, IngressStatus>(json)?;
    let spec = spec.unwrap_or_default();
    let balancers = status.and_then(|status| status.load_balancer).unwrap_or_default().ingress;
    let old_class = metadata.annotations.remove(INGRESS_CLASS);
    let expressions = may_make_expressions(&metadata.annotations);
    metadata.annotations.retain(|key, _| !is_about_expressions(key));
    let mut unread = spec.rules.unread + spec.tls.unread + balancers.unread;
    let mut tls_hosts = Vec::new();
    for hosts in spec.tls.items.into_iter().map(|tls| tls.hosts) {
        unread += hosts.unread;
        tls_hosts.extend(hosts.items);
    }
    let rules = spec.rules.items.into_iter().map(|rule| {
        let (rule, more) = rule.reduce();
        unread += more;
        rule
    });
    let fact = IngressFact {
        rules: rules.collect(),
        namespace: metadata.namespace,
        name: metadata.name,
        class: spec.ingress_class_name.or(old_class),
        default_backend: spec.default_backend.and_then(Backend::service),
        tls_hosts,
        expressions,
        load_balancers: balancers.items.into_iter().filter_map(|balancer| balancer.hostname).collect(),
        annotations: metadata.annotations,
    };
    Ok((fact, unread))
}

pub(super) fn read<'a, Spec: Deserialize<'a>, Status: Deserialize<'a>>(
    json: &'a str,
) -> Result<Object<Spec, Status>, Unreadable> {
    Ok(serde_json::from_str(json)?)
}

/// An object, as far as anything is read of it.
#[derive(Deserialize)]
pub(super) struct Object<Spec, Status> {
    pub metadata: Metadata,
    pub spec: Option<Spec>,
    pub status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub namespace: String,
    pub name: String,
    /// When it was made, as RFC 3339 writes it in UTC.
    pub creation_timestamp: Option<String>,
    /// Those that say something about routing.
    #[serde(default, deserialize_with = "routing_annotations")]
    pub annotations: Annotations,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct IngressSpec {
    ingress_class_name: Option<String>,
    pub rules: Few<Rule>,
    default_backend: Option<Backend>,
    tls: Few<Tls>,
}

#[derive(Deserialize)]
pub(super) struct Rule {
    pub host: Option<String>,
    pub http: Option<HttpRule>,
}

#[derive(Deserialize)]
pub(super) struct HttpRule {
    #[serde(default)]
    pub paths: Few<HttpPath>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HttpPath {
    pub path: Option<String>,
    pub path_type: Option<String>,
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
    #[serde(default)]
    hosts: Few<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngressStatus {
    pub load_balancer: Option<LoadBalancer>,
}

#[derive(Default, Deserialize)]
pub(super) struct LoadBalancer {
    #[serde(default)]
    pub ingress: Few<Balancer>,
}

#[derive(Deserialize)]
pub(super) struct Balancer {
    hostname: Option<String>,
}

impl Rule {
    /// The rule, and how many of its paths were not read. A Service that several of its paths lead to is named once.
    fn reduce(self) -> Counted<IngressRule> {
        let Some(http) = self.http else {
            return (IngressRule { host: self.host, reach: Reach::Default, ..IngressRule::default() }, 0);
        };
        let Few { items: paths, unread } = http.paths;
        let reach = if paths.iter().any(HttpPath::is_every) { Reach::Whole } else { Reach::Part };
        let ways: Vec<(String, Way)> = paths.into_iter().filter_map(HttpPath::way).collect();
        let backends: BTreeSet<String> = ways.iter().map(|(service, _)| service.clone()).collect();
        (IngressRule { host: self.host, backends: backends.into_iter().collect(), ways, reach }, unread)
    }
}

impl HttpPath {
    fn is_every(&self) -> bool {
        let path = self.path.as_deref().unwrap_or_default();
        self.path_type.as_deref() != Some("Exact") && EVERY_PATH.contains(&path)
    }
}

impl HttpPath {
    /// The Service it leads to, and the requests that it takes.
    fn way(self) -> Option<(String, Way)> {
        let service = self.backend?.service()?;
        let way = match (self.path_type.as_deref(), self.path) {
            (Some("Exact"), Some(path)) => Way::Exact(path),
            (Some("Prefix"), Some(path)) => Way::Prefix(path),
            (_, path) if EVERY_PATH.contains(&path.as_deref().unwrap_or_default()) => Way::Prefix("/".to_owned()),
            (_, _) => Way::OfController,
        };
        Some((service, way))
    }
}

impl Backend {
    fn service(self) -> Option<String> {
        self.service.map(|service| service.name)
    }
}

fn routing_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Annotations, D::Error> {
    annotations(deserializer, |key| {
        key.starts_with("external-dns.") || key == INGRESS_CLASS || is_about_expressions(key)
    })
}

fn is_about_expressions(key: &str) -> bool {
    let is_named = key.rsplit_once('/').is_some_and(|(_, name)| EXPRESSIONS.contains(&name));
    is_named || OF_BACKENDS.iter().any(|start| key.starts_with(start))
}

/// Whether annotations may make regular expressions of the paths of an Ingress, or change in another way what they take.
pub(super) fn may_make_expressions(annotations: &Annotations) -> bool {
    let is_off = |key: &str, value: &str| {
        key.rsplit_once('/').is_some_and(|(_, name)| name == USE_REGEX) && value.trim() == "false"
    };
    annotations.iter().any(|(key, value)| is_about_expressions(key) && !is_off(key, value))
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
        let (fact, _) = ingress(&object.to_string()).unwrap();
        assert_eq!(fact.class.as_deref(), Some("nginx"));
        assert_eq!(fact.default_backend.as_deref(), Some("fallback"));
        assert_eq!(fact.tls_hosts, ["www.example.com"]);
        assert_eq!(fact.load_balancers, ["lb.example.net"]);
        assert_eq!(fact.annotations.len(), 1);
        let web = |reach| {
            let path = "/".to_owned();
            let way = if reach == Reach::Whole { Way::Prefix(path) } else { Way::Exact(path) };
            let ways = vec![("web".to_owned(), way)];
            IngressRule { host: Some("www.example.com".into()), backends: vec!["web".into()], ways, reach }
        };
        assert_eq!(fact.rules, [web(Reach::Whole), IngressRule { reach: Reach::Default, ..IngressRule::default() }]);
        let mut part = object;
        part["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = json!("Exact");
        assert_eq!(ingress(&part.to_string()).unwrap().0.rules[0], web(Reach::Part));
    }

    #[test]
    fn a_path_is_read_by_its_type_and_what_only_its_controller_knows_is_not_guessed() {
        let way = |kind: Option<&str>, path: Option<&str>| {
            let one = json!({"path": path, "pathType": kind, "backend": {"service": {"name": "web"}}});
            serde_json::from_value::<HttpPath>(one).unwrap().way().unwrap().1
        };
        let shop = || "/shop".to_owned();
        assert_eq!(way(Some("Exact"), Some("/shop")), Way::Exact(shop()));
        assert_eq!(way(Some("Prefix"), Some("/shop")), Way::Prefix(shop()));
        assert_eq!(way(Some("ImplementationSpecific"), Some("/shop")), Way::OfController);
        assert_eq!(way(Some("OfTomorrow"), Some("/shop")), Way::OfController);
        assert_eq!(way(None, Some("/shop")), Way::OfController);
        for every in [None, Some("/"), Some("/*")] {
            assert_eq!(way(Some("ImplementationSpecific"), every), Way::Prefix("/".to_owned()), "{every:?}");
        }
    }

    #[test]
    fn annotations_that_change_what_a_path_takes_are_seen() {
        let may = |key: &str, value: &str| {
            let object = json!({"metadata": {"namespace": "shop", "name": "web", "annotations": {key: value}}});
            let read = read::<IngressSpec, IgnoredAny>(&object.to_string()).unwrap();
            may_make_expressions(&read.metadata.annotations)
        };
        assert!(may("nginx.ingress.kubernetes.io/use-regex", "true"));
        assert!(may("nginx.ingress.kubernetes.io/rewrite-target", "/$2"));
        assert!(may("nginx.org/path-regex", "case_insensitive"));
        assert!(may("haproxy-ingress.github.io/path-type", "regex"));
        assert!(may("nginx.ingress.kubernetes.io/rewrite-target", "false"), "a target of that name");
        assert!(may("nginx.ingress.kubernetes.io/default-backend", "web"));
        assert!(may("haproxy.org/backend-config-snippet", "http-request set-path /x"));
        assert!(may("alb.ingress.kubernetes.io/conditions.web", "[]"));
        assert!(may("alb.ingress.kubernetes.io/actions.web", "{}"));
        assert!(!may("alb.ingress.kubernetes.io/scheme", "internal"));
        assert!(!may("nginx.ingress.kubernetes.io/use-regex", "false"));
        assert!(!may("nginx.ingress.kubernetes.io/proxy-body-size", "8m"));
    }

    #[test]
    fn a_service_without_selector_selects_nothing() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "db", "annotations": null},
            "spec": {"type": "ExternalName", "selector": null}, "status": {"loadBalancer": {}},
        });
        assert_eq!(service(&object.to_string()).unwrap().0.selector, Labels::new());
        let mut other = object;
        other["spec"] = json!({"type": "ExternalName", "selector": {"app": "web"}, "externalName": "web.shop.svc"});
        let fact = service(&other.to_string()).unwrap().0;
        assert_eq!((fact.selector, fact.external_name.as_deref()), (Labels::new(), Some("web.shop.svc")));
        other["spec"]["type"] = json!("ClusterIP");
        let fact = service(&other.to_string()).unwrap().0;
        assert_eq!((fact.selector.len(), fact.external_name), (1, None));
        other["spec"]["selector"]["rollouts-pod-template-hash"] = json!("6cbccd9f99");
        let fact = service(&other.to_string()).unwrap().0;
        assert_eq!(fact.selector, Labels::from([("app".to_owned(), "web".to_owned())]), "a Service of a Rollout");
    }
}

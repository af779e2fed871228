//! The site of a workload: the hosts people reach it by, and where each host came from.
//!
//! Deployment → Services that select its pods → Ingresses and routes that lead to those Services → hosts. Failing
//! that, the Ingress of the workload's own name, as the program before this one had it. An annotation on the workload
//! overrides everything found. A workload without hosts is simply not a site.
//!
//! What one object gets wrong lands in [`Site::rejected`] and disturbs no other object. The result does not depend on
//! the order of the facts.
//!
//! Not for: which distribution serves a host ([`super::distribution`]), or how the facts were read.

mod annotation;
mod facts;
mod ingress;
mod route;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::facts::{GatewayFact, IngressFact, IngressRule, ListenerFact, ParentFact, RouteFact, RouteKind};
pub use self::facts::{ServiceFact, SiteFacts};
use crate::domain::host::Host;
use crate::domain::selector::{Labels, is_subset};

/// Most hosts of one site. CloudFront's default quota is 100 aliases a distribution, so this is ten full distributions
/// behind one workload; beyond it a vote would outgrow its record.
pub const HOSTS_MAX: usize = 1_000;

/// Most rejections that are kept: enough to see what is wrong, and to fit in an answer.
pub const REJECTED_MAX: usize = 100;

/// The hosts a workload is reached by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site {
    /// Every host, with all the places it came from.
    pub hosts: BTreeMap<Host, BTreeSet<Source>>,
    /// Host names of load balancers that lead here by a rule that names no host: a distribution may have one as its
    /// origin. Lower case.
    pub origins: BTreeSet<String>,
    /// Names that lead elsewhere, though a wildcard among the hosts covers them or the load balancers are asked for them.
    pub except: BTreeSet<Host>,
    /// What looked like a host and is not one: where it was found, and why it was left out. Sorted.
    pub rejected: Vec<(String, String)>,
}

impl Site {
    /// Whether nothing leads to the workload: it is not a site, and there is nothing to purge for it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.origins.is_empty()
    }
}

/// Finds the site of a workload.
///
/// `template_labels` are those of its pods, by which Services select them. `tuning_hosts` are the hosts its owner wrote
/// down, if any; a wildcard among them means what it means to CloudFront, any depth.
#[must_use]
pub fn site(
    workload_name: &str,
    namespace: &str,
    template_labels: &Labels,
    tuning_hosts: Option<&[Host]>,
    facts: &SiteFacts,
) -> Site {
    let mut findings = Findings::default();
    if let Some(hosts) = tuning_hosts {
        for host in hosts {
            findings.add(host.clone().at_any_depth(), Source::Annotation);
        }
        return findings.finish();
    }
    let services: BTreeSet<&str> = facts
        .services
        .iter()
        .filter(|service| service.namespace == namespace)
        .filter(|service| !service.selector.is_empty() && is_subset(&service.selector, template_labels))
        .map(|service| {
            let place = format!("Service {namespace}/{}", service.name);
            for host in annotation::hosts(&service.annotations, &place, &mut findings) {
                findings.add(host, Source::ExternalDns(place.clone()));
            }
            service.name.as_str()
        })
        .collect();
    for ingress in facts.ingresses.iter().filter(|ingress| ingress.namespace == namespace) {
        ingress::find(ingress, workload_name, &services, &mut findings);
    }
    for route in &facts.routes {
        route::find(route, namespace, &services, &facts.gateways, &mut findings);
    }
    findings.finish()
}

/// What has been found so far.
#[derive(Default)]
struct Findings {
    hosts: BTreeMap<Host, BTreeSet<Source>>,
    origins: BTreeSet<String>,
    rejected: BTreeSet<(String, String)>,
}

impl Findings {
    fn add(&mut self, host: Host, source: Source) {
        self.hosts.entry(host).or_default().insert(source);
    }

    fn add_origin(&mut self, text: &str, place: &str) {
        if let Some(host) = self.read(text, place).filter(|host| !host.is_wildcard()) {
            self.origins.insert(host.to_string());
        }
    }

    /// Reads a host; what is none is rejected, naming the place.
    fn read(&mut self, text: &str, place: &str) -> Option<Host> {
        Host::parse(text).map_err(|error| self.reject(place, error.to_string())).ok()
    }

    fn reject(&mut self, place: &str, why: String) {
        self.rejected.insert((place.to_owned(), why));
    }

    fn finish(mut self) -> Site {
        // Cut after sorting, so that the same facts in another order give the same site.
        let total = self.hosts.len().max(self.origins.len());
        if total > HOSTS_MAX {
            self.reject("workload", format!("{total} hosts lead to it; only the first {HOSTS_MAX} are used"));
        }
        Site {
            hosts: self.hosts.into_iter().take(HOSTS_MAX).collect(),
            origins: self.origins.into_iter().take(HOSTS_MAX).collect(),
            except: BTreeSet::new(),
            rejected: self.rejected.into_iter().take(REJECTED_MAX).collect(),
        }
    }
}

/// Where a host came from; [`fmt::Display`] says it in words. Objects are named `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The annotation `hosts` on the workload.
    Annotation,
    /// A rule of an Ingress.
    IngressRule(String),
    /// The TLS section of an Ingress.
    IngressTls(String),
    /// An Ingress that has the workload's own name, though it leads to none of its Services.
    OwnIngress(String),
    /// The host names of a route.
    Route(RouteKind, String),
    /// A listener of the Gateway a route is attached to.
    Listener {
        /// The Gateway.
        gateway: String,
        /// The route's kind.
        kind: RouteKind,
        /// The route.
        route: String,
    },
    /// An annotation for external-dns on an object, which is named with its kind: `Ingress shop/web`.
    ExternalDns(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Annotation => f.write_str("annotation on the workload"),
            Self::IngressRule(ingress) => write!(f, "Ingress {ingress} rule"),
            Self::IngressTls(ingress) => write!(f, "Ingress {ingress} TLS"),
            Self::OwnIngress(ingress) => write!(f, "Ingress {ingress} of the workload's own name"),
            Self::Route(kind, route) => write!(f, "{kind} {route}"),
            Self::Listener { gateway, kind, route } => write!(f, "listener of Gateway {gateway} for {kind} {route}"),
            Self::ExternalDns(object) => write!(f, "external-dns annotation on {object}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// A Service of namespace `shop` that selects `app=<app>`.
    fn service(name: &str, app: &str) -> ServiceFact {
        let selector = labels(&[("app", app)]);
        ServiceFact { namespace: "shop".into(), name: name.into(), selector, ..Default::default() }
    }

    /// An Ingress of namespace `shop`; each rule leads a host to one Service.
    fn ingress(name: &str, rules: &[(&str, &str)]) -> IngressFact {
        let rule =
            |(host, backend): &(&str, &str)| IngressRule { host: Some((*host).into()), backends: owned(&[backend]) };
        let rules = rules.iter().map(rule).collect();
        IngressFact { namespace: "shop".into(), name: name.into(), rules, ..Default::default() }
    }

    fn route(name: &str, hostnames: &[&str]) -> RouteFact {
        RouteFact {
            namespace: "shop".into(),
            name: name.into(),
            hostnames: owned(hostnames),
            backends: vec![("shop".into(), "web-svc".into())],
            parents: vec![ParentFact { namespace: "infra".into(), name: "edge".into(), ..Default::default() }],
            ..Default::default()
        }
    }

    /// The site of Deployment `shop/web`, whose pods are `app=web` and which Service `web-svc` selects.
    fn of(mut facts: SiteFacts) -> Site {
        facts.services.extend([service("web-svc", "web"), service("api-svc", "api")]);
        site("web", "shop", &labels(&[("app", "web"), ("pod-template-hash", "1")]), None, &facts)
    }

    fn of_ingress(ingress: IngressFact) -> Site {
        of(SiteFacts { ingresses: vec![ingress], ..Default::default() })
    }

    fn of_route(route: RouteFact, gateway: GatewayFact) -> Site {
        of(SiteFacts { routes: vec![route], gateways: vec![gateway], ..Default::default() })
    }

    fn hosts(site: &Site) -> Vec<&str> {
        site.hosts.keys().map(Host::as_str).collect()
    }

    fn words(site: &Site) -> Vec<String> {
        let lines = site.hosts.iter().flat_map(|(host, why)| why.iter().map(move |source| format!("{host}: {source}")));
        lines.collect()
    }

    #[test]
    fn an_ingress_of_another_name_is_found_through_the_service() {
        let site = of_ingress(ingress("public", &[("www.example.com", "web-svc")]));
        assert_eq!(words(&site), ["www.example.com: Ingress shop/public rule"]);
    }

    #[test]
    fn all_hosts_of_a_workload_are_found_and_none_of_its_neighbours() {
        let rules = [("b.example.com", "web-svc"), ("a.example.com", "web-svc"), ("api.example.com", "api-svc")];
        assert_eq!(hosts(&of_ingress(ingress("shared", &rules))), ["a.example.com", "b.example.com"]);
        // The name of an Ingress that can be traced says nothing more.
        assert_eq!(hosts(&of_ingress(ingress("web", &rules))), ["a.example.com", "b.example.com"]);
    }

    #[test]
    fn the_ingress_of_the_workloads_own_name_counts_when_nothing_leads_to_its_services() {
        let site = of_ingress(ingress("web", &[("www.example.com", "external")]));
        assert_eq!(words(&site), ["www.example.com: Ingress shop/web of the workload's own name"]);
        assert!(of_ingress(ingress("other", &[("www.example.com", "external")])).is_empty());
        let elsewhere = IngressFact { namespace: "blog".into(), ..ingress("web", &[("www.example.com", "web-svc")]) };
        assert!(of_ingress(elsewhere).is_empty());
    }

    #[test]
    fn an_ingress_with_only_a_default_backend_gives_its_load_balancer_as_origin() {
        let only_default = IngressFact {
            default_backend: Some("web-svc".into()),
            load_balancers: owned(&["K8S-1.elb.amazonaws.com"]),
            ..ingress("public", &[])
        };
        let site = of_ingress(only_default.clone());
        assert!(site.hosts.is_empty());
        assert_eq!(site.origins, BTreeSet::from(["k8s-1.elb.amazonaws.com".to_owned()]));
        let rule = IngressRule { host: Some(String::new()), backends: owned(&["web-svc"]) };
        let hostless = IngressFact { default_backend: None, rules: vec![rule], ..only_default.clone() };
        assert_eq!(of_ingress(hostless), site);
        let with_host = IngressFact { tls_hosts: owned(&["www.example.com"]), ..only_default };
        let site = of_ingress(with_host);
        assert_eq!(words(&site), ["www.example.com: Ingress shop/public TLS"]);
        assert!(site.origins.is_empty());
    }

    #[test]
    fn a_certificate_gives_hosts_only_where_they_lead_here() {
        let tls_hosts = owned(&["www.example.com", "shop.example.com", "*.example.com"]);
        let rules = [("www.example.com", "web-svc")];
        let exclusive = IngressFact { tls_hosts: tls_hosts.clone(), ..ingress("public", &rules) };
        assert_eq!(
            words(&of_ingress(exclusive)),
            [
                "shop.example.com: Ingress shop/public TLS",
                "www.example.com: Ingress shop/public rule",
                "www.example.com: Ingress shop/public TLS",
            ]
        );
        let shared = IngressFact { tls_hosts, ..ingress("public", &[rules[0], ("api.example.com", "api-svc")]) };
        assert_eq!(hosts(&of_ingress(shared)), ["www.example.com"]);
    }

    #[test]
    fn a_workload_without_ingress_is_simply_not_a_site() {
        let site = of(SiteFacts::default());
        assert!(site.is_empty() && site.rejected.is_empty());
    }

    #[test]
    fn a_service_without_selector_leads_nowhere() {
        let manual = ServiceFact { selector: Labels::new(), ..service("manual", "web") };
        let facts = SiteFacts {
            services: vec![manual],
            ingresses: vec![ingress("public", &[("www.example.com", "manual")])],
            ..Default::default()
        };
        assert!(of(facts).is_empty());
    }

    #[test]
    fn a_route_gives_its_host_names_at_any_depth() {
        let site = of_route(route("web", &["www.example.com", "*.shop.example.com"]), GatewayFact::default());
        assert_eq!(words(&site), ["**.shop.example.com: HTTPRoute shop/web", "www.example.com: HTTPRoute shop/web"]);
        let elsewhere = RouteFact { backends: vec![("blog".into(), "web-svc".into())], ..route("web", &["a.io"]) };
        assert!(of_route(elsewhere, GatewayFact::default()).is_empty());
        let from_elsewhere = RouteFact { namespace: "infra".into(), ..route("web", &["a.io"]) };
        assert_eq!(hosts(&of_route(from_elsewhere, GatewayFact::default())), ["a.io"]);
    }

    #[test]
    fn a_route_without_host_names_has_those_of_its_listeners() {
        let listener = |name: &str, port, host: Option<&str>| ListenerFact {
            name: name.into(),
            port,
            hostname: host.map(str::to_owned),
        };
        let gateway = GatewayFact {
            namespace: "infra".into(),
            name: "edge".into(),
            listeners: vec![listener("http", 80, None), listener("https", 443, Some("*.example.com"))],
            addresses: owned(&["lb.example.net"]),
        };
        let open = RouteFact { kind: RouteKind::Grpc, ..route("web", &[]) };
        let site = of_route(open.clone(), gateway.clone());
        assert_eq!(words(&site), ["**.example.com: listener of Gateway infra/edge for GRPCRoute shop/web"]);
        assert!(site.origins.is_empty());
        let mut to_http = open.clone();
        to_http.parents[0].listener = Some("http".into());
        let site = of_route(to_http, gateway);
        assert!(site.hosts.is_empty());
        assert_eq!(site.origins, BTreeSet::from(["lb.example.net".to_owned()]));
        let site = of_route(open, GatewayFact::default());
        assert!(site.is_empty() && site.rejected[0].1.contains("infra/edge, which was not found"));
    }

    #[test]
    fn external_dns_names_are_hosts_of_the_service_ingress_or_route_they_are_on() {
        let annotation = |host: &str| labels(&[("external-dns.alpha.kubernetes.io/hostname", host)]);
        let facts = SiteFacts {
            services: vec![ServiceFact { annotations: annotation("s.io, t.io."), ..service("web-lb", "web") }],
            ingresses: vec![IngressFact {
                annotations: labels(&[("external-dns.kubernetes.io/hostname", "*.i.io")]),
                ..ingress("public", &[("www.i.io", "web-svc")])
            }],
            routes: vec![RouteFact { annotations: annotation("r.io"), ..route("web", &["www.r.io"]) }],
            ..Default::default()
        };
        let site = of(facts);
        assert_eq!(hosts(&site), ["**.i.io", "r.io", "s.io", "t.io", "www.i.io", "www.r.io"]);
        assert!(words(&site).contains(&"s.io: external-dns annotation on Service shop/web-lb".to_owned()));
    }

    #[test]
    fn an_annotation_on_the_workload_overrides_all() {
        let facts = SiteFacts { ingresses: vec![ingress("web", &[("www.example.com", "x")])], ..Default::default() };
        let tuned: Vec<Host> = vec!["shop.example.com".parse().unwrap(), "*.example.net".parse().unwrap()];
        let site = site("web", "shop", &Labels::new(), Some(&tuned), &facts);
        assert_eq!(
            words(&site),
            ["**.example.net: annotation on the workload", "shop.example.com: annotation on the workload"]
        );
    }

    #[test]
    fn a_bad_host_is_rejected_with_its_place_and_costs_nothing_else() {
        let rules = [("10.0.0.1", "web-svc"), ("www.example.com", "web-svc"), ("bad host", "api-svc")];
        let site = of_ingress(ingress("public", &rules));
        assert_eq!(hosts(&site), ["www.example.com"]);
        assert_eq!(site.rejected.len(), 1);
        assert_eq!(site.rejected[0].0, "Ingress shop/public rule");
        assert!(site.rejected[0].1.contains("IP address"));
    }

    #[test]
    fn a_site_is_bounded_and_says_so() {
        let many: Vec<String> = (0..HOSTS_MAX + 5).map(|number| format!("h{number}.example.com")).collect();
        let rules: Vec<(&str, &str)> = many.iter().map(|host| (host.as_str(), "web-svc")).collect();
        let site = of_ingress(ingress("public", &rules));
        assert_eq!(site.hosts.len(), HOSTS_MAX);
        assert!(site.rejected[0].1.contains("1005 hosts"));
    }
}

//! The facts from a cluster that a site is found by: small owned structs with the few fields decisions use. Hosts are
//! kept as written; one that cannot be read must not cost the object it is in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::way::Way;
use kernel::names::selector::Labels;

/// Everything known about how requests reach Services. Order and duplicates do not matter. Objects of other namespaces are
/// welcome: a route may lead from one namespace to another, and what others take is not a workload's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteFacts {
    pub services: Vec<ServiceFact>,
    /// Ingresses (`networking.k8s.io/v1`).
    pub ingresses: Vec<IngressFact>,
    /// `HTTPRoute`s and `GRPCRoute`s.
    pub routes: Vec<RouteFact>,
    pub gateways: Vec<GatewayFact>,
    /// The grants that allow leading from one namespace to another.
    pub grants: Vec<GrantFact>,
}

impl SiteFacts {
    /// Whether more has to be known of other namespaces than a reading of one tells: what they take of a wildcard's names, or
    /// of a load balancer, is not this one's.
    #[must_use]
    pub fn depends_on_others(&self) -> bool {
        let wide = |host: Option<&str>| host.is_none_or(|host| host.trim().is_empty() || host.trim().starts_with('*'));
        let ingress = |ingress: &IngressFact| {
            ingress.default_backend.is_some() || ingress.rules.iter().any(|rule| wide(rule.host.as_deref()))
        };
        let route = |route: &RouteFact| {
            route.hostnames.is_empty() || route.hostnames.iter().any(|host| wide(Some(host.as_str())))
        };
        self.ingresses.iter().any(ingress) || self.routes.iter().any(route)
    }
}

/// How old facts may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Age {
    /// Some seconds, and kinds that a cluster lacked minutes ago are taken to be missing.
    #[default]
    Recent,
    /// Read after the question, whatever was known before it.
    Fresh,
}

/// The relevant fields of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceFact {
    pub namespace: String,
    pub name: String,
    /// The labels its pods have. Empty means that Kubernetes selects no pods for it, so it leads to no workload.
    pub selector: Labels,
    /// The name that it stands for instead, of type `ExternalName`.
    #[serde(default)]
    pub external_name: Option<String>,
    /// Its annotations; only external-dns' host names are read.
    pub annotations: BTreeMap<String, String>,
}

/// The relevant fields of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IngressFact {
    /// Its namespace; its Services are in the same one.
    pub namespace: String,
    pub name: String,
    /// `spec.ingressClassName`, or the annotation of old. Ingresses of one class are served together: of two rules the one
    /// with the more specific host takes a request.
    pub class: Option<String>,
    pub rules: Vec<IngressRule>,
    /// The Service that gets what no rule takes.
    pub default_backend: Option<String>,
    /// Hosts of `spec.tls`.
    pub tls_hosts: Vec<String>,
    /// Host names (not addresses) of `status.loadBalancer.ingress`.
    pub load_balancers: Vec<String>,
    /// Whether an annotation of it may make its controller read paths as regular expressions, those of its hosts in other objects too, or
    /// may change in another way which requests they take.
    #[serde(default)]
    pub expressions: bool,
    /// Its annotations; only external-dns' host names are read.
    pub annotations: BTreeMap<String, String>,
}

impl IngressFact {
    /// The part of it that can take requests from workloads of other namespaces: rules that take all of a host, and
    /// rules without one. Where its requests go does not matter to those, only that they go somewhere.
    #[must_use]
    pub fn as_taker(mut self) -> Self {
        self.tls_hosts = Vec::new();
        self.annotations = BTreeMap::new();
        let is_wide = |rule: &IngressRule| rule.host.as_deref().is_none_or(|host| host.trim().is_empty());
        self.rules.retain(|rule| is_wide(rule) || rule.reach != Reach::Part);
        for rule in &mut self.rules {
            rule.backends.truncate(if is_wide(rule) { 1 } else { 0 });
            rule.backends.shrink_to_fit();
            rule.ways = Vec::new();
        }
        self.rules.shrink_to_fit();
        self
    }
}

/// One rule of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IngressRule {
    /// The host, as written; `None` or empty is every host.
    pub host: Option<String>,
    /// Names of the Services its paths lead to.
    pub backends: Vec<String>,
    /// The requests that each of them gets.
    #[serde(default)]
    pub ways: Vec<(String, Way)>,
    /// How much of its host it takes.
    pub reach: Reach,
}

/// How much of its host a rule takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Every request: one of its paths is `/`.
    #[default]
    Whole,
    /// Requests for some paths; the others go on to rules that name no host, and to the default backend.
    Part,
    /// The rule has no `http` at all: the default backend gets every request for the host.
    Default,
}

/// Which kind of route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RouteKind {
    /// `HTTPRoute`.
    #[default]
    #[serde(rename = "HTTPRoute")]
    Http,
    /// `GRPCRoute`.
    #[serde(rename = "GRPCRoute")]
    Grpc,
}

/// The relevant fields of an `HTTPRoute` or `GRPCRoute`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteFact {
    /// Which of the two.
    pub kind: RouteKind,
    pub namespace: String,
    pub name: String,
    /// `spec.hostnames`; empty means those of the parents' listeners.
    pub hostnames: Vec<String>,
    /// The Services its rules lead to: namespace (the route's own unless the reference names one) and name.
    pub backends: Vec<(String, String)>,
    /// The requests that each of them gets.
    #[serde(default)]
    pub ways: Vec<((String, String), Way)>,
    /// Whether one of its rules takes every request for its hosts.
    pub whole: bool,
    /// Its parents: Gateways and sets of listeners. Parents of other kinds are left out: a mesh serves no
    /// clients outside.
    pub parents: Vec<ParentFact>,
    /// Its annotations; only external-dns' host names are read.
    pub annotations: BTreeMap<String, String>,
}

/// Which kind of parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ParentKind {
    #[default]
    Gateway,
    /// A set of listeners that adds to a Gateway. It is not read, so what it accepts is taken as the route has it.
    ListenerSet,
}

impl fmt::Display for ParentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gateway => "Gateway",
            Self::ListenerSet => "ListenerSet",
        })
    }
}

/// A route's reference to a parent, and what the parent's controller says to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ParentFact {
    pub kind: ParentKind,
    /// Its namespace (the route's own unless the reference names one).
    pub namespace: String,
    pub name: String,
    /// `sectionName`: the one listener meant; `None` is all of them.
    pub listener: Option<String>,
    /// `port`: the one port meant; `None` is all of them.
    pub port: Option<u16>,
    /// Whether a controller has written the condition `Accepted` for exactly this reference. A controller must write it when it
    /// first sees the route, and a route without one is attached to nothing.
    /// <https://gateway-api.sigs.k8s.io/reference/spec/#routeparentstatus>
    pub accepted: bool,
}

/// The relevant fields of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GatewayFact {
    pub namespace: String,
    pub name: String,
    pub listeners: Vec<ListenerFact>,
    /// Host names (not addresses) of `status.addresses`.
    pub addresses: Vec<String>,
}

/// One listener of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ListenerFact {
    /// Its name, unique in its Gateway.
    pub name: String,
    pub port: u16,
    /// Its host, as written; `None` or empty is every host.
    pub hostname: Option<String>,
    /// The kinds of routes it takes; `None` is both.
    pub kinds: Option<BTreeSet<RouteKind>>,
    /// Whether routes of its own namespace alone may attach. Where labels of namespaces decide it, which we do not read, the
    /// acceptance of the whole reference has to do.
    pub same_namespace: bool,
}

/// A `ReferenceGrant`: in its namespace, routes of others may lead to Services.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GrantFact {
    /// Its namespace, which is that of the Services.
    pub namespace: String,
    /// The kinds of routes and the namespaces they may lead from.
    pub from: Vec<(RouteKind, String)>,
    /// The Services they may lead to; `None` is all of the namespace.
    pub services: Option<BTreeSet<String>>,
}

impl fmt::Display for RouteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTPRoute",
            Self::Grpc => "GRPCRoute",
        })
    }
}

/// The Services that get requests for a host that no rule names.
pub(super) fn rest(ingress: &IngressFact) -> BTreeSet<&str> {
    let hostless = || ingress.rules.iter().filter(|rule| host_of(rule).is_none());
    let mut rest: BTreeSet<&str> = hostless().flat_map(|rule| targets(ingress, rule)).collect();
    if !hostless().any(|rule| rule.reach == Reach::Whole) {
        rest.extend(ingress.default_backend.as_deref());
    }
    rest
}

/// The Services a rule leads to.
pub(super) fn targets<'a>(ingress: &'a IngressFact, rule: &'a IngressRule) -> impl Iterator<Item = &'a str> {
    let default = ingress.default_backend.as_deref().filter(|_| rule.reach == Reach::Default);
    rule.backends.iter().map(String::as_str).chain(default)
}

/// The host of a rule; an empty one means every host, like none.
pub(super) fn host_of(rule: &IngressRule) -> Option<&str> {
    rule.host.as_deref().map(str::trim).filter(|host| !host.is_empty())
}

//! What is read from a cluster to find a site: small owned structs with the few fields decisions use. Hosts are kept as
//! written; one that cannot be read must not cost the object it is in.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::selector::Labels;

/// Everything known about how requests reach Services. Order and duplicates do not matter; objects of other namespaces
/// are welcome (a route may lead from one namespace to another).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteFacts {
    /// Services.
    pub services: Vec<ServiceFact>,
    /// Ingresses (`networking.k8s.io/v1`).
    pub ingresses: Vec<IngressFact>,
    /// `HTTPRoute`s and `GRPCRoute`s.
    pub routes: Vec<RouteFact>,
    /// Gateways.
    pub gateways: Vec<GatewayFact>,
}

/// What matters of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceFact {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The labels its pods have. Empty means that Kubernetes selects no pods for it, so it leads to no workload.
    pub selector: Labels,
    /// Its annotations; only external-dns' host names are read.
    pub annotations: BTreeMap<String, String>,
}

/// What matters of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IngressFact {
    /// Its namespace; its Services are in the same one.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `spec.ingressClassName`, for people to read; nothing is decided from it.
    pub class: Option<String>,
    /// Its rules.
    pub rules: Vec<IngressRule>,
    /// The Service that gets what no rule takes.
    pub default_backend: Option<String>,
    /// Hosts of `spec.tls`.
    pub tls_hosts: Vec<String>,
    /// Host names (not addresses) of `status.loadBalancer.ingress`.
    pub load_balancers: Vec<String>,
    /// Its annotations; only external-dns' host names are read.
    pub annotations: BTreeMap<String, String>,
}

/// One rule of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IngressRule {
    /// The host, as written; `None` or empty is every host.
    pub host: Option<String>,
    /// Names of the Services its paths lead to.
    pub backends: Vec<String>,
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

/// What matters of an `HTTPRoute` or `GRPCRoute`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteFact {
    /// Which of the two.
    pub kind: RouteKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `spec.hostnames`; empty means those of the parents' listeners.
    pub hostnames: Vec<String>,
    /// The Services its rules lead to: namespace (the route's own unless the reference names one) and name.
    pub backends: Vec<(String, String)>,
    /// The Gateways it is attached to. Parents of other kinds are left out.
    pub parents: Vec<ParentFact>,
    /// Its annotations; only external-dns' host names are read.
    pub annotations: BTreeMap<String, String>,
}

/// A route's reference to a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ParentFact {
    /// The Gateway's namespace (the route's own unless the reference names one).
    pub namespace: String,
    /// The Gateway's name.
    pub name: String,
    /// `sectionName`: the one listener meant; `None` is all of them.
    pub listener: Option<String>,
    /// `port`: the one port meant; `None` is all of them.
    pub port: Option<u16>,
}

/// What matters of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GatewayFact {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its listeners.
    pub listeners: Vec<ListenerFact>,
    /// Host names (not addresses) of `status.addresses`.
    pub addresses: Vec<String>,
}

/// One listener of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ListenerFact {
    /// Its name, unique in its Gateway.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Its host, as written; `None` or empty is every host.
    pub hostname: Option<String>,
}

impl fmt::Display for RouteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTPRoute",
            Self::Grpc => "GRPCRoute",
        })
    }
}

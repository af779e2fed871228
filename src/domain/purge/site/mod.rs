//! The site of a workload: the hosts people reach it by, and where each host came from.
//!
//! Workload → Services that may select its pods → Ingresses and routes that lead to those Services → hosts. Failing
//! that, the Ingress of the workload's own name, as the program before this one had it. An annotation on the workload
//! overrides everything found. A workload without hosts is simply not a site.
//!
//! A host is the workload's only if some request for it reaches the workload (decision 32): we leave out what other
//! objects take ([`Site::except`]), and what no Gateway accepted or allowed.
//!
//! An object's mistakes land in [`Site::rejected`] and disturb no other object. The result does not depend on
//! the order of the facts.
//!
//! Not for: which distribution serves a host ([`kernel::names::distribution`]), or how the facts were read.

mod annotation;
mod attachment;
mod bounds;
mod facts;
mod gathered;
mod ingress;
mod leads;
mod lost;
mod names;
mod others;
mod own;
mod route;
mod routed;
mod way;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::bounds::{Bulky, OBJECT_NAMES_MAX, Room};
pub use self::facts::{Age, GatewayFact, GrantFact, IngressFact, IngressRule, ListenerFact, ParentFact, ParentKind};
pub use self::facts::{Reach, RouteFact, RouteKind, ServiceFact, SiteFacts};
pub use self::gathered::{Gathered, beside};
pub use self::leads::{Behind, Lead};
pub use self::lost::{Lost, lost, missing};
use self::others::{Claim, Known, Others};
pub use self::own::{Owned, PathMatch, RouteClaim, own, taken};
pub use self::routed::Routed;
pub use self::way::Way;
use kernel::id::WorkloadId;
use kernel::names::host::Host;
use kinds::pods::PodLabels;

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
    /// Names that lead elsewhere, although a wildcard among the hosts covers them or the load balancers get requests
    /// for them.
    pub except: BTreeSet<Host>,
    /// Invalid hosts: where each was found, and why it was left out. Sorted.
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
/// Services select its pods by their labels. `tuning_hosts` are the hosts its owner wrote down, if any; a wildcard among
/// them means what it means to CloudFront, any depth.
#[must_use]
pub fn site(pods: PodLabels<'_>, tuning_hosts: Option<&[Host]>, facts: &SiteFacts) -> Site {
    let Some(hosts) = tuning_hosts else {
        let WorkloadId { name, namespace, .. } = pods.of;
        return found_by(name, namespace, &leading(pods, facts), facts);
    };
    let nothing = SiteFacts::default();
    let known = Known::new(&nothing);
    let mut findings = Findings::default();
    for host in hosts {
        findings.add(host.clone().at_any_depth(), Source::Annotation, Claim::All);
    }
    findings.finish(&Others::new(&known))
}

/// The Services of the namespace that may lead to these pods: they select them, or are another name, of type `ExternalName`, for one
/// that does. One step is followed, and no further.
fn leading<'a>(pods: PodLabels<'_>, facts: &'a SiteFacts) -> BTreeSet<&'a str> {
    let namespace = pods.of.namespace.as_str();
    let of_namespace = || facts.services.iter().filter(|service| service.namespace == namespace);
    let selects = |service: &&ServiceFact| pods.may_match(&service.selector);
    let mut services: BTreeSet<&str> = of_namespace().filter(selects).map(|service| service.name.as_str()).collect();
    let leads_on = |service: &&ServiceFact| {
        let target = service.external_name.as_deref().and_then(|name| cluster_name(name, namespace));
        target.is_some_and(|target| services.contains(target.as_str()))
    };
    let aliases: Vec<&str> = of_namespace().filter(leads_on).map(|service| service.name.as_str()).collect();
    services.extend(aliases);
    services
}

/// The Service of this namespace that a name of the cluster's DNS stands for: `web.shop.svc`, with the cluster's domain or without.
/// <https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#services>
fn cluster_name(name: &str, namespace: &str) -> Option<String> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let mut labels = name.split('.');
    let (service, space, svc) = (labels.next()?, labels.next()?, labels.next()?);
    (space == namespace && svc == "svc").then(|| service.to_owned())
}

/// The site of what is reached by these Services of a namespace, and by the Ingress of this name.
fn found_by(workload_name: &str, namespace: &str, services: &BTreeSet<&str>, facts: &SiteFacts) -> Site {
    let known = Known::new(facts);
    let mut findings = Findings::default();
    let here = |service: &&ServiceFact| service.namespace == namespace && services.contains(service.name.as_str());
    for service in facts.services.iter().filter(here) {
        let place = format!("Service {namespace}/{}", service.name);
        for host in annotation::hosts(&service.annotations, &place, &mut findings) {
            findings.add(host, Source::ExternalDns(place.clone()), Claim::All);
        }
    }
    let others = Others::new(&known);
    let of_others = facts.services.iter().filter(|service| {
        service.namespace == namespace && !service.selector.is_empty() && !services.contains(service.name.as_str())
    });
    let of_others: BTreeSet<&str> = of_others.map(|service| service.name.as_str()).collect();
    for ingress in known.ingresses.iter().filter(|(ingress, _)| ingress.namespace == namespace) {
        ingress::find(ingress, workload_name, (services, &of_others), &others, &mut findings);
    }
    for route in &known.routes {
        route::find(route, namespace, services, facts, &others, &mut findings);
    }
    findings.finish(&others)
}

/// The findings so far.
#[derive(Default)]
struct Findings<'a> {
    all: BTreeSet<Host>,
    /// The first of them, with where they came from: no more than are kept in the end.
    hosts: BTreeMap<Host, BTreeSet<Source>>,
    origins: BTreeSet<String>,
    /// The load balancers among the origins, as they are written but for the case.
    balancers: BTreeSet<String>,
    rejected: BTreeSet<(String, String)>,
    /// The wildcards, and what others take of them.
    claims: BTreeSet<(Host, Claim<'a>)>,
}

impl<'a> Findings<'a> {
    /// Adds a host; if it is a wildcard, `claim` says what others take of it.
    fn add(&mut self, host: Host, source: Source, claim: Claim<'a>) {
        if host.is_of_many_owners() {
            let why =
                format!("{} is wider than any one owner's names; the widest is like *.example.com", host.as_str());
            return self.reject(&source.to_string(), why);
        }
        if host.is_wildcard() {
            self.claims.insert((host.clone(), claim));
        }
        if !self.all.contains(&host) {
            self.all.insert(host.clone());
        }
        let full = self.hosts.len() >= HOSTS_MAX;
        if !full || self.hosts.last_key_value().is_some_and(|(last, _)| host <= *last) {
            self.hosts.entry(host).or_default().insert(source);
        }
        if self.hosts.len() > HOSTS_MAX {
            self.hosts.pop_last();
        }
    }

    /// Adds a load balancer, whose name is `balancer` in lower case.
    fn add_origin(&mut self, text: &str, place: &str, balancer: String) {
        if let Some(host) = self.read(text, place).filter(|host| !host.is_wildcard()) {
            self.origins.insert(host.to_string());
            self.balancers.insert(balancer);
        }
    }

    /// Reads a host; what is none is rejected, naming the place.
    fn read(&mut self, text: &str, place: &str) -> Option<Host> {
        Host::parse(text).map_err(|error| self.reject(place, error.to_string())).ok()
    }

    /// Keeps the first rejections only, so that a tenant cannot fill the memory with bad names.
    fn reject(&mut self, place: &str, why: String) {
        self.rejected.insert((place.to_owned(), why));
        if self.rejected.len() > REJECTED_MAX {
            self.rejected.pop_last();
        }
    }

    fn finish(mut self, others: &Others<'a>) -> Site {
        let except = others.elsewhere(&self.all, &self.claims, &self.balancers);
        // Cut after sorting, so that the same facts in another order give the same site.
        let total = self.all.len().max(self.origins.len());
        if total > HOSTS_MAX {
            self.reject("workload", format!("{total} hosts lead to it; only the first {HOSTS_MAX} are used"));
        }
        Site {
            hosts: self.hosts,
            origins: self.origins.into_iter().take(HOSTS_MAX).collect(),
            except: except.into_iter().take(HOSTS_MAX).collect(),
            rejected: self.rejected.into_iter().collect(),
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
    Listener { gateway: String, kind: RouteKind, route: String },
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
mod tests;

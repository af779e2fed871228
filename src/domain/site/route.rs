//! Hosts from `HTTPRoute`s and `GRPCRoute`s of the Gateway API. A wildcard there covers any depth.
//!
//! A route serves the names that are both its own and those of a listener it is attached to; a listener or a route
//! without names has all of them (<https://gateway-api.sigs.k8s.io/concepts/hostnames>). It is attached where the
//! parent's controller has accepted it, and it leads to Services of another namespace only where a `ReferenceGrant`
//! there allows it. Whether all of its references are resolved (`ResolvedRefs`) says nothing about the others, so it is
//! not asked.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{ListenerFact, ParentFact, ParentKind};
use super::others::{Claim, Others};
use super::{Findings, GatewayFact, RouteFact, SiteFacts, Source, annotation};
use crate::names::host::Host;

/// The hosts that a route serves by one of its parents.
pub(super) struct Attachment<'a> {
    pub parent: &'a ParentFact,
    /// The Gateway, if it was read.
    pub gateway: Option<&'a GatewayFact>,
    pub served: Vec<Served<'a>>,
    /// Neither the route nor one of the listeners names a host.
    pub hostless: bool,
}

/// Names that a route serves by one listener.
pub(super) struct Served<'a> {
    pub host: Host,
    /// The host as the route has it; `None` if it names none. Of several routes, the one with the more specific takes a request.
    pub written: Option<Host>,
    /// The listener; `None` if it was not read.
    pub listener: Option<&'a str>,
}

/// How specific a host is that a route has: of what two serve, the higher takes the requests. One without star is higher than
/// any with, then the longer.
pub(super) type Rank = (bool, usize);

impl Served<'_> {
    /// How specific its host is; `None`, which is lower than any, if the route names none.
    pub fn rank(&self) -> Option<Rank> {
        self.written.as_ref().map(|host| (!host.is_wildcard(), host.domain().len()))
    }
}

/// Gateways by namespace and name.
pub(super) type Gateways<'a> = BTreeMap<(&'a str, &'a str), &'a GatewayFact>;

/// The Gateways by name; of two of one name, which a cluster has not, the first.
pub(super) fn by_name(gateways: &[GatewayFact]) -> Gateways<'_> {
    let mut named = Gateways::new();
    for gateway in gateways {
        named.entry((gateway.namespace.as_str(), gateway.name.as_str())).or_insert(gateway);
    }
    named
}

/// The hosts that a route serves by each parent that has accepted it.
pub(super) fn attachments<'a>(route: &'a RouteFact, gateways: &Gateways<'a>) -> Vec<Attachment<'a>> {
    let own: Vec<Host> = route.hostnames.iter().filter_map(|text| read(text)).collect();
    let attached = |parent: &'a ParentFact| {
        let mut attachment = Attachment { parent, gateway: None, served: Vec::new(), hostless: false };
        let Some(gateway) = gateway_of(parent, gateways) else {
            // It was accepted, so at least one of its names is served. Which ones, the listeners would say.
            let served = |host: &Host| Served { host: host.clone(), written: Some(host.clone()), listener: None };
            attachment.served = own.iter().map(served).collect();
            return attachment;
        };
        attachment.gateway = Some(gateway);
        for listener in gateway.listeners.iter().filter(|listener| attaches(route, parent, gateway, listener)) {
            let listened = match host_of(listener).map(read) {
                // A listener with an unreadable host serves no route.
                Some(None) => continue,
                Some(Some(host)) => Some(host),
                None => None,
            };
            let name = Some(listener.name.as_str());
            match (listened, route.hostnames.is_empty()) {
                (None, true) => attachment.hostless = true,
                (Some(host), true) => attachment.served.push(Served { host, written: None, listener: name }),
                (listened, false) => attachment.served.extend(own.iter().filter_map(|own| {
                    let host = listened.as_ref().map_or(Some(own.clone()), |host| own.intersection(host))?;
                    Some(Served { host, written: Some(own.clone()), listener: name })
                })),
            }
        }
        attachment
    };
    route.parents.iter().filter(|parent| parent.accepted).map(attached).collect()
}

fn gateway_of<'a>(parent: &ParentFact, gateways: &Gateways<'a>) -> Option<&'a GatewayFact> {
    let name = (parent.namespace.as_str(), parent.name.as_str());
    gateways.get(&name).copied().filter(|_| parent.kind == ParentKind::Gateway)
}

/// How many names the search compares for a route: each of its own once, and once more for each listener it is attached to.
pub(super) fn compared(route: &RouteFact, gateways: &Gateways<'_>) -> usize {
    let listeners = |parent: &ParentFact| {
        gateway_of(parent, gateways).map_or(1, |gateway| {
            gateway.listeners.iter().filter(|listener| attaches(route, parent, gateway, listener)).count()
        })
    };
    let accepted = route.parents.iter().filter(|parent| parent.accepted);
    let names = route.hostnames.len() + annotation::count(&route.annotations);
    names.max(1).saturating_mul(accepted.map(listeners).sum::<usize>().saturating_add(1))
}

/// Adds what `route` says about the workload whose Services are `services`, in `namespace`. The route and its Gateways
/// may be in other namespaces.
pub(super) fn find<'a>(
    (route, attached): &'a (&'a RouteFact, Vec<Attachment<'a>>),
    namespace: &str,
    services: &BTreeSet<&str>,
    facts: &SiteFacts,
    others: &Others<'a>,
    findings: &mut Findings<'a>,
) {
    let leads_here = |(space, service): &&(String, String)| space == namespace && services.contains(service.as_str());
    let mut leading = route.backends.iter().filter(leads_here).peekable();
    if leading.peek().is_none() {
        return;
    }
    let name = format!("{}/{}", route.namespace, route.name);
    let place = format!("{} {name}", route.kind);
    if !leading.any(|(space, service)| is_granted(route, space, service, facts)) {
        findings.reject(&place, format!("no ReferenceGrant in {namespace} allows it to lead there"));
        return;
    }
    for text in &route.hostnames {
        findings.read(text, &place);
    }
    if route.parents.is_empty() {
        findings.reject(&place, "it is attached to no Gateway".to_owned());
    }
    for parent in route.parents.iter().filter(|parent| !parent.accepted) {
        let ParentFact { kind, namespace, name, .. } = parent;
        findings.reject(&place, format!("{kind} {namespace}/{name} has not accepted it (condition Accepted)"));
    }
    for attachment in attached {
        add(route, attachment, namespace, others, findings);
    }
}

/// Adds what a route serves by one parent.
fn add<'a>(
    route: &RouteFact,
    attachment: &'a Attachment<'a>,
    namespace: &str,
    others: &Others<'a>,
    findings: &mut Findings<'a>,
) {
    let Attachment { parent, gateway, served, hostless } = attachment;
    let name = format!("{}/{}", route.namespace, route.name);
    let place = format!("{} {name}", route.kind);
    let gateway_name = format!("{}/{}", parent.namespace, parent.name);
    for one in served {
        let Some(claim) = others.left_to(*gateway, one) else {
            findings.reject(&place, format!("a route with a more specific host takes all of {}", one.host));
            continue;
        };
        let source = match one.written {
            None => Source::Listener { gateway: gateway_name.clone(), kind: route.kind, route: name.clone() },
            Some(_) => Source::Route(route.kind, name.clone()),
        };
        findings.add(one.host.clone(), source, claim);
    }
    let written: BTreeSet<&Host> = served.iter().filter_map(|one| one.written.as_ref()).collect();
    for host in route.hostnames.iter().filter_map(|text| read(text)).filter(|_| gateway.is_some()) {
        if !written.contains(&host) {
            findings.reject(&place, format!("no listener of {} {gateway_name} takes {host}", parent.kind));
        }
    }
    // A record in DNS leads to the Gateway; only a listener for the name leads on.
    let listened = gateway.map(|gateway| {
        let attached = gateway.listeners.iter().filter(|listener| attaches(route, parent, gateway, listener));
        attached.map(|listener| host_of(listener).map(read)).collect::<Vec<_>>()
    });
    for host in annotation::hosts(&route.annotations, &place, findings) {
        let serves = |listened: &Option<Option<Host>>| {
            listened.as_ref().is_none_or(|listened| listened.as_ref().is_some_and(|one| one.overlaps(&host)))
        };
        if listened.as_ref().is_none_or(|listened| listened.iter().any(serves)) {
            findings.add(host, Source::ExternalDns(place.clone()), Claim::All);
        }
    }
    match gateway {
        None if route.hostnames.is_empty() => {
            let why = format!("its hosts are those of {} {gateway_name}, which could not be read", parent.kind);
            findings.reject(&place, why);
        }
        None => {}
        Some(gateway) => {
            for listener in gateway.listeners.iter().filter(|listener| attaches(route, parent, gateway, listener)) {
                if let Some(text) = host_of(listener) {
                    findings.read(text, &format!("listener of Gateway {gateway_name}"));
                }
            }
            for text in gateway.addresses.iter().filter(|_| *hostless) {
                others.take_balancer(text, &format!("Gateway {gateway_name}"), namespace, findings);
            }
        }
    }
}

/// Whether a route may lead to a Service of this namespace.
fn is_granted(route: &RouteFact, namespace: &str, service: &str, facts: &SiteFacts) -> bool {
    let from = (route.kind, route.namespace.clone());
    let mut grants = facts.grants.iter().filter(|grant| grant.namespace == namespace && grant.from.contains(&from));
    route.namespace == namespace
        || grants.any(|grant| grant.services.as_ref().is_none_or(|services| services.contains(service)))
}

/// Whether a reference means this listener, and the listener takes such routes.
fn attaches(route: &RouteFact, parent: &ParentFact, gateway: &GatewayFact, listener: &ListenerFact) -> bool {
    parent.listener.as_ref().is_none_or(|name| *name == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
        && listener.kinds.as_ref().is_none_or(|kinds| kinds.contains(&route.kind))
        && (!listener.same_namespace || route.namespace == gateway.namespace)
}

fn host_of(listener: &ListenerFact) -> Option<&str> {
    listener.hostname.as_deref().map(str::trim).filter(|host| !host.is_empty())
}

fn read(text: &str) -> Option<Host> {
    Host::parse(text).ok().map(Host::at_any_depth)
}

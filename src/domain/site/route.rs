//! Hosts from `HTTPRoute`s and `GRPCRoute`s of the Gateway API. A wildcard there covers any depth.
//!
//! A route serves the names that are both its own and those of a listener it is attached to; a listener or a route
//! without names has all of them (<https://gateway-api.sigs.k8s.io/concepts/hostnames>). It is attached where the
//! parent's controller has accepted it, and it leads to Services of another namespace only where a `ReferenceGrant`
//! there allows it. Whether all of its references are resolved (`ResolvedRefs`) says nothing about the others, so it is
//! not asked.

use std::collections::BTreeSet;

use super::facts::{ListenerFact, ParentFact, ParentKind};
use super::others::Others;
use super::{Findings, GatewayFact, RouteFact, SiteFacts, Source, annotation};
use crate::domain::host::Host;

/// What a route serves by one of its parents.
pub(super) struct Attachment<'a> {
    pub parent: &'a ParentFact,
    /// The Gateway, if it was read.
    pub gateway: Option<&'a GatewayFact>,
    /// The names.
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

impl Served<'_> {
    /// Whether requests for what both serve go to `other`: it has the longer host, and one without star before any with.
    pub fn yields_to(&self, other: Option<&Host>) -> bool {
        let rank = |host: Option<&Host>| host.map(|host| (!host.is_wildcard(), host.domain().len()));
        rank(self.written.as_ref()) < rank(other)
    }
}

/// What a route serves by each parent that has accepted it.
pub(super) fn attachments<'a>(
    route: &'a RouteFact,
    gateways: &'a [GatewayFact],
) -> impl Iterator<Item = Attachment<'a>> {
    let own: Vec<Host> = route.hostnames.iter().filter_map(|text| read(text)).collect();
    route.parents.iter().filter(|parent| parent.accepted).map(move |parent| {
        let of_parent = |gateway: &&GatewayFact| {
            parent.kind == ParentKind::Gateway && gateway.namespace == parent.namespace && gateway.name == parent.name
        };
        let mut attachment = Attachment { parent, gateway: None, served: Vec::new(), hostless: false };
        let Some(gateway) = gateways.iter().find(of_parent) else {
            // It was accepted, so at least one of its names is served. Which ones, the listeners would say.
            let served = |host: &Host| Served { host: host.clone(), written: Some(host.clone()), listener: None };
            attachment.served = own.iter().map(served).collect();
            return attachment;
        };
        attachment.gateway = Some(gateway);
        for listener in gateway.listeners.iter().filter(|listener| attaches(route, parent, gateway, listener)) {
            let listened = match host_of(listener).map(read) {
                // A listener whose host cannot be read serves nobody.
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
    })
}

/// Adds what `route` says about the workload whose Services are `services`, in `namespace`. The route and its Gateways
/// may be in other namespaces.
pub(super) fn find(
    route: &RouteFact,
    namespace: &str,
    services: &BTreeSet<&str>,
    facts: &SiteFacts,
    others: &Others<'_>,
    findings: &mut Findings,
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
    for attachment in attachments(route, &facts.gateways) {
        add(route, &attachment, namespace, others, findings);
    }
}

/// Adds what a route serves by one parent.
fn add(route: &RouteFact, attachment: &Attachment<'_>, namespace: &str, others: &Others<'_>, findings: &mut Findings) {
    let Attachment { parent, gateway, served, hostless } = attachment;
    let name = format!("{}/{}", route.namespace, route.name);
    let place = format!("{} {name}", route.kind);
    let gateway_name = format!("{}/{}", parent.namespace, parent.name);
    for one in served {
        let Some(except) = others.left_to(*gateway, one) else {
            findings.reject(&place, format!("a route with a more specific host takes all of {}", one.host));
            continue;
        };
        let source = match one.written {
            None => Source::Listener { gateway: gateway_name.clone(), kind: route.kind, route: name.clone() },
            Some(_) => Source::Route(route.kind, name.clone()),
        };
        findings.add_except(one.host.clone(), source, except);
    }
    for host in route.hostnames.iter().filter_map(|text| read(text)).filter(|_| gateway.is_some()) {
        if !served.iter().any(|one| one.written.as_ref() == Some(&host)) {
            findings.reject(&place, format!("no listener of {} {gateway_name} takes {host}", parent.kind));
        }
    }
    // A record in DNS leads to the Gateway; only a listener for the name leads on.
    for host in annotation::hosts(&route.annotations, &place, findings) {
        let served = |gateway: &GatewayFact| {
            let attached = gateway.listeners.iter().filter(|listener| attaches(route, parent, gateway, listener));
            let mut listened = attached.map(|listener| host_of(listener).map(read));
            listened.any(|listened| listened.is_none_or(|listened| listened.is_some_and(|one| one.overlaps(&host))))
        };
        if gateway.is_none_or(served) {
            findings.add(host, Source::ExternalDns(place.clone()));
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

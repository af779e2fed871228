//! Hosts from `HTTPRoute`s and `GRPCRoute`s of the Gateway API. A wildcard there covers any depth.
//!
//! A route serves the names that are both its own and those of a listener it is attached to; a listener or a route
//! without names has all of them (<https://gateway-api.sigs.k8s.io/concepts/hostnames>). It is attached where the
//! parent's controller has accepted it, and it leads to Services of another namespace only where a `ReferenceGrant`
//! there allows it. Whether all of its references are resolved (`ResolvedRefs`) says nothing about the others, so it is
//! not asked.

use std::collections::BTreeSet;

use super::attachment::{Attachment, attaches, host_of, read};
use super::facts::ParentFact;
use super::others::{Claim, Others};
use super::{Findings, RouteFact, SiteFacts, Source, annotation};
use kernel::names::host::Host;

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

//! Hosts from `HTTPRoute`s and `GRPCRoute`s of the Gateway API. A wildcard there covers any depth
//! (<https://gateway-api.sigs.k8s.io/reference/spec/#hostname>).

use std::collections::BTreeSet;

use super::facts::{ListenerFact, ParentFact};
use super::{Findings, GatewayFact, RouteFact, Source, annotation};
use crate::domain::host::Host;

/// Adds what `route` says about the workload whose Services are `services`, in `namespace`. The route and its Gateways
/// may be in other namespaces.
pub(super) fn find(
    route: &RouteFact,
    namespace: &str,
    services: &BTreeSet<&str>,
    gateways: &[GatewayFact],
    findings: &mut Findings,
) {
    if !route.backends.iter().any(|(space, service)| space == namespace && services.contains(service.as_str())) {
        return;
    }
    let name = format!("{}/{}", route.namespace, route.name);
    let place = format!("{} {name}", route.kind);
    for host in annotation::hosts(&route.annotations, &place, findings) {
        findings.add(host, Source::ExternalDns(place.clone()));
    }
    for text in &route.hostnames {
        if let Some(host) = findings.read(text, &place) {
            findings.add(host.at_any_depth(), Source::Route(route.kind, name.clone()));
        }
    }
    if !route.hostnames.is_empty() {
        return;
    }
    for parent in &route.parents {
        let found =
            gateways.iter().find(|gateway| gateway.namespace == parent.namespace && gateway.name == parent.name);
        match found {
            Some(gateway) => inherit(route, &name, parent, gateway, findings),
            None => {
                let why =
                    format!("its hosts are those of Gateway {}/{}, which was not found", parent.namespace, parent.name);
                findings.reject(&place, why);
            }
        }
    }
}

/// Adds the hosts of the listeners a route without host names is attached to. If they name none either, only the
/// Gateway's own addresses are known.
fn inherit(route: &RouteFact, name: &str, parent: &ParentFact, gateway: &GatewayFact, findings: &mut Findings) {
    let gateway_name = format!("{}/{}", gateway.namespace, gateway.name);
    let place = format!("listener of Gateway {gateway_name}");
    let hosts: Vec<&str> = gateway
        .listeners
        .iter()
        .filter(|listener| attaches(parent, listener))
        .filter_map(|listener| listener.hostname.as_deref().map(str::trim).filter(|host| !host.is_empty()))
        .collect();
    for text in &hosts {
        if let Some(host) = findings.read(text, &place).map(Host::at_any_depth) {
            let source = Source::Listener { gateway: gateway_name.clone(), kind: route.kind, route: name.to_owned() };
            findings.add(host, source);
        }
    }
    if hosts.is_empty() {
        for text in &gateway.addresses {
            findings.add_origin(text, &format!("address of Gateway {gateway_name}"));
        }
    }
}

fn attaches(parent: &ParentFact, listener: &ListenerFact) -> bool {
    parent.listener.as_ref().is_none_or(|name| *name == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
}

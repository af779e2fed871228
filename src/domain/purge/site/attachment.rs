//! What a route serves, by the listeners that it is attached to.
//!
//! Not for whose workload it leads to; that is `route`.

use std::collections::BTreeMap;

use super::facts::{ListenerFact, ParentFact, ParentKind};
use super::{GatewayFact, RouteFact, annotation};
use kernel::names::host::Host;

/// What a route serves by one of its parents.
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

/// What a route serves by each parent that has accepted it.
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

/// Whether a reference means this listener, and the listener takes such routes.
pub(super) fn attaches(route: &RouteFact, parent: &ParentFact, gateway: &GatewayFact, listener: &ListenerFact) -> bool {
    parent.listener.as_ref().is_none_or(|name| *name == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
        && listener.kinds.as_ref().is_none_or(|kinds| kinds.contains(&route.kind))
        && (!listener.same_namespace || route.namespace == gateway.namespace)
}

pub(super) fn host_of(listener: &ListenerFact) -> Option<&str> {
    listener.hostname.as_deref().map(str::trim).filter(|host| !host.is_empty())
}

pub(super) fn read(text: &str) -> Option<Host> {
    Host::parse(text).ok().map(Host::at_any_depth)
}

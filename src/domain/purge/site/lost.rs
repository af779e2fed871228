//! Hosts that a workload had and that do not lead to it any more: which of them lead nowhere, and which to something else.
//!
//! An Ingress that is replaced is gone for seconds, and a host without a backend may come back; one that leads
//! elsewhere has another owner now. Not for the consequence; the rollout decides.

use std::collections::{BTreeMap, BTreeSet};

use super::{RouteClaim, Site, SiteFacts, found_by, leading};
use kernel::names::host::Host;
use kinds::pods::PodLabels;

/// The fate of hosts that a workload had, and that are not of its site now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lost {
    /// Those that lead nowhere.
    pub hosts: BTreeSet<Host>,
    /// Names beneath wildcards among them that lead elsewhere.
    pub except: BTreeSet<Host>,
    /// Those that lead elsewhere, and by what.
    pub elsewhere: BTreeMap<Host, String>,
}

/// Which of the hosts that a workload had are not in its site `found`.
pub fn missing<'a>(had: &'a BTreeSet<Host>, found: &BTreeSet<Host>) -> impl Iterator<Item = &'a Host> {
    had.iter().filter(|host| !found.iter().any(|ours| covers(ours, host)))
}

/// The fate of these hosts of a workload with such pods. `claims` are those of all
/// namespaces: a host that another namespace routes is no longer this one's, whoever accepts it.
#[must_use]
pub fn lost<'a>(
    missing: impl Iterator<Item = &'a Host>,
    pods: PodLabels<'_>,
    facts: &SiteFacts,
    claims: &[RouteClaim],
) -> Lost {
    let others = of_others(pods, facts);
    let here = others.hosts.iter().map(|(host, sources)| (host, sources.first().map(ToString::to_string)));
    let there = claims.iter().filter(|claim| claim.namespace != pods.of.namespace);
    let there = there.flat_map(|claim| claim.hosts.iter().map(|(host, _)| (host, Some(claim.object.clone()))));
    let taken: Vec<(&Host, Option<String>)> = here.chain(there).collect();
    let mut lost = Lost::default();
    for host in missing {
        if let Some((_, by)) = taken.iter().find(|(other, _)| covers(other, host)) {
            lost.elsewhere.insert(host.clone(), by.clone().unwrap_or_default());
            continue;
        }
        let beneath = taken.iter().filter(|(other, _)| covers(host, other));
        lost.except.extend(beneath.map(|(other, _)| (*other).clone().at_any_depth()));
        lost.hosts.insert(host.clone());
    }
    lost
}

/// The hosts that lead to Services of its namespace that exist and lead to something else. A missing backend serves
/// no one.
fn of_others(pods: PodLabels<'_>, facts: &SiteFacts) -> Site {
    let (ours, namespace) = (leading(pods, facts), pods.of.namespace.as_str());
    let services = facts.services.iter().filter(|service| service.namespace == namespace);
    let others = services.map(|service| service.name.as_str()).filter(|name| !ours.contains(name)).collect();
    found_by("", namespace, &others, facts)
}

/// A wildcard of one label and one of any depth over the same domain are the same here: routes write the same star.
fn covers(one: &Host, other: &Host) -> bool {
    one.clone().at_any_depth().covers(&other.clone().at_any_depth())
}

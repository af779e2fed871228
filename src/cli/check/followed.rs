//! Hosts behind a distribution whose pods belong to nothing that is followed: what they serve changes, and nothing is purged for it.
//!
//! Not for how one host is served; that is `looking::host`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::catalog::HOST_FOLLOWED;
use super::report::Finding;
use crate::adapters::kubernetes::Scope;
use crate::looking::page::count;
use crate::looking::workloads::Listed;
use kernel::names::distribution::Index;
use kernel::names::host::Host;
use purge::ports::{ClusterView, PortError};
use purge::site::{Age, Behind, Gathered, RouteClaim};

/// Namespaces that are looked into: a listing or two in each.
const NAMESPACES_MAX: usize = 100;

/// Hosts that are named in the report.
const NAMED_MAX: usize = 20;

/// What routes in each namespace that was looked into, or why that is not known.
pub type Facts = BTreeMap<String, Result<Arc<Gathered>, PortError>>;

/// Looks for them by the hosts that Ingresses and routes claim. `facts`: what was read of some namespaces already.
pub async fn followed(
    (cluster, watched): (&dyn ClusterView, &Scope),
    claims: &Result<Arc<Vec<RouteClaim>>, PortError>,
    listed: &Listed,
    index: &Index,
    facts: &mut Facts,
) -> Vec<Finding> {
    let claims = match claims {
        Ok(claims) => claims,
        Err(error) => return vec![HOST_FOLLOWED.untried(format!("not all hosts are known: {error}"))],
    };
    let mut claimed: BTreeMap<&str, BTreeSet<&Host>> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| watched.contains(&claim.namespace)) {
        let served = |host: &&Host| !index.matches([*host], [""; 0]).by_distribution.is_empty();
        let hosts: BTreeSet<&Host> = claim.hosts.iter().map(|(host, _)| host).filter(served).collect();
        if !hosts.is_empty() {
            claimed.entry(&claim.namespace).or_default().extend(hosts);
        }
    }
    let (mut alone, mut troubles) = (BTreeMap::new(), BTreeSet::new());
    for (namespace, hosts) in claimed.iter().take(NAMESPACES_MAX) {
        if !facts.contains_key(*namespace) {
            facts.insert((*namespace).to_owned(), cluster.site_facts_in_part(namespace, Age::Recent).await);
        }
        match facts.get(*namespace) {
            Some(Ok(facts)) => {
                troubles.extend(facts.unread().iter().map(ToString::to_string));
                let unfollowed = |host: &&Host| Some((host.to_string(), unfollowed(namespace, host, facts, listed)?));
                alone.extend(hosts.iter().filter_map(unfollowed));
            }
            Some(Err(error)) => {
                troubles.insert(error.to_string());
            }
            None => {}
        }
    }
    let unread = claimed.len().saturating_sub(NAMESPACES_MAX);
    if unread > 0 {
        troubles.insert(format!("{} of {} namespaces with such hosts", unread, claimed.len()));
    }
    findings(&alone, &troubles, claimed.values().map(BTreeSet::len).sum())
}

fn findings(alone: &BTreeMap<String, String>, troubles: &BTreeSet<String>, hosts: usize) -> Vec<Finding> {
    let line = |(host, why): (&String, &String)| {
        let hint = "its content may change without a purge: ask for one by `allclear purge` or your pipeline; see allclear explain HOST";
        HOST_FOLLOWED.warning(why.clone()).hint(hint).of(host)
    };
    let mut findings: Vec<Finding> =
        troubles.iter().map(|trouble| HOST_FOLLOWED.warning(format!("not all was looked at: {trouble}"))).collect();
    findings.extend(alone.iter().take(NAMED_MAX).map(line));
    let more = alone.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        findings.push(HOST_FOLLOWED.warning(format!("and {}", count(more, "further host", "further hosts"))));
    }
    if findings.is_empty() {
        let all = count(hosts, "host", "hosts");
        findings.push(HOST_FOLLOWED.good(format!("a followed workload is behind each of {all} with a distribution")));
    }
    findings
}

/// Why no followed workload is behind a host of a namespace, if none is.
fn unfollowed(namespace: &str, host: &Host, facts: &Gathered, listed: &Listed) -> Option<String> {
    let here = || listed.workloads.values().filter(|workload| workload.id.namespace == namespace);
    let leads = facts.leads(namespace, &BTreeSet::from([host.clone()]));
    let services: BTreeSet<&(String, String)> = leads.iter().flat_map(|lead| &lead.services).collect();
    let mut why = BTreeSet::new();
    for (space, name) in services {
        let words = match facts.behind(space, name) {
            // What is in another namespace is not looked at here.
            _ if space != namespace => return None,
            Behind::Pods(selector) if here().any(|one| one.pods().may_match(selector)) => return None,
            Behind::Pods(_) => "selects pods of no workload that is followed".to_owned(),
            Behind::Nothing => "does not exist".to_owned(),
            Behind::Endpoints => "has no selector".to_owned(),
            Behind::Name(other) => format!("stands for {other} (ExternalName)"),
        };
        why.insert(format!("Service {space}/{name} {words}"));
    }
    (!why.is_empty()).then(|| why.into_iter().collect::<Vec<_>>().join("; "))
}

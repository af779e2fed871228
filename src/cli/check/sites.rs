//! The hosts of what is watched, and the distributions that serve them: found by the same functions as for a purge.
//!
//! Not for one workload in depth; that is `allclear explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::aws::Accounts;
use super::catalog::{
    ANNOTATIONS, AWS_LIST_DISTRIBUTIONS, CACHE_TAGS, Check, DISTRIBUTION_USABLE, HOST_FOLLOWED, HOST_SERVED, PROOF,
    RIGHT_DEPLOYMENTS,
};
use super::followed::{Facts, followed};
use super::report::Finding;
use crate::adapters::kubernetes::Scope;
use crate::looking::page::count;
use crate::looking::workloads::Listed;
use kernel::names::distribution::{DistributionId, Index, Reason};
use kernel::names::host::Host;
use kernel::refusal::Cause;
use purge::bounds::policy::Policy;
use purge::bounds::tenants::Tenancy;
use purge::ports::{Cdn, ClusterView};
use purge::rollouts::rollout::faults;
use purge::site::{Age, Gathered, own};
use purge::workloads::workload::Workload;

/// Hosts that are named in the report.
const NAMED_MAX: usize = 20;

const ALL: [Check; 6] = [HOST_SERVED, HOST_FOLLOWED, DISTRIBUTION_USABLE, CACHE_TAGS, ANNOTATIONS, PROOF];

pub struct Sites {
    /// The distributions that serve something.
    pub matched: Vec<DistributionId>,
    /// The hosts of all that is watched; `None` where not all are known.
    pub watched: Option<BTreeSet<Host>>,
    /// The hosts that people ask for and that distributions serve; with the one that is purged by cache tags, if one is.
    pub served: BTreeMap<Host, Option<DistributionId>>,
    pub findings: Vec<Finding>,
}

/// What is known of all workloads together.
#[derive(Default)]
struct Found {
    hosts: usize,
    watched: BTreeSet<Host>,
    hostless: usize,
    /// Without a host, where not all that may name one could be read.
    blind: usize,
    workloads: usize,
    matched: BTreeSet<DistributionId>,
    served: BTreeMap<Host, Option<DistributionId>>,
    unmatched: BTreeMap<String, String>,
    skipped: BTreeMap<DistributionId, String>,
    tagged: BTreeMap<DistributionId, String>,
    troubles: BTreeSet<String>,
    /// The accounts that could not be listed.
    unlisted: Vec<String>,
}

/// All of it was not tried, because of this.
pub fn untried(after: Check) -> Sites {
    let findings = ALL.map(|check| check.after(after)).into();
    Sites { matched: Vec::new(), watched: None, served: BTreeMap::new(), findings }
}

/// Looks at all watched workloads.
pub async fn sites(
    (cluster, watched): (&dyn ClusterView, &Scope),
    listed: Listed,
    policy: &Policy,
    accounts: &Accounts<'_>,
) -> Sites {
    if listed.workloads.is_empty() && !listed.troubles.is_empty() {
        return untried(RIGHT_DEPLOYMENTS);
    }
    let mut said = annotations(listed.workloads.values(), policy);
    said.push(proof(listed.workloads.values(), policy));
    let Some(distributions) = accounts.distributions() else {
        let mut sites = untried(AWS_LIST_DISTRIBUTIONS);
        sites.findings.retain(|finding| said.iter().all(|other| other.check != finding.check));
        sites.findings.extend(said);
        return sites;
    };
    let tenants = distributions.iter().filter(|one| one.id.is_of_distribution_tenant()).count();
    let in_account = (distributions.len() - tenants, tenants);
    let index = Index::new(distributions);
    let mut found = Found { troubles: listed.troubles.clone(), ..Found::default() };
    found.unlisted = accounts.unlisted();
    found.troubles.extend(found.unlisted.iter().cloned());
    let judged = policy.tenants.default == Tenancy::Own;
    let claimed = cluster.route_claims().await;
    found.troubles.extend(claimed.as_ref().err().filter(|_| judged).map(ToString::to_string));
    let claims = claimed.as_ref().ok().filter(|_| judged);
    let mut facts = Facts::new();
    for workload in listed.workloads.values().filter(|workload| !workload.tuning.disabled) {
        found.workloads += 1;
        let namespace = &workload.id.namespace;
        if !facts.contains_key(namespace) {
            facts.insert(namespace.clone(), cluster.site_facts_in_part(namespace, Age::Recent).await);
        }
        let (none, read) = (Gathered::default(), facts.get(namespace));
        let unread: Vec<String> = match read {
            Some(Ok(facts)) => facts.unread().iter().map(ToString::to_string).collect(),
            Some(Err(error)) => vec![error.to_string()],
            None => Vec::new(),
        };
        // Its owner may name its hosts, and then these are known whatever else could be read.
        let facts = read.and_then(|read| read.as_ref().ok()).map_or(&none, Arc::as_ref);
        let site = facts.site(workload.pods(), workload.tuning.hosts.as_deref());
        let owned = claims.map(|claims| own(&site, namespace, claims, &policy.tenants));
        let mut hosts: Vec<_> = site.hosts.keys().collect();
        hosts.retain(|host| owned.as_ref().is_none_or(|owned| owned.hosts.contains(*host)));
        found.hosts += hosts.len();
        found.watched.extend(hosts.iter().copied().cloned());
        let matches = index.matches_except(hosts.iter().copied(), &site.origins, &site.except);
        found.blind += usize::from(hosts.is_empty() && !unread.is_empty());
        found.troubles.extend(unread);
        found.take(workload, policy, &matches, hosts.is_empty());
    }
    let mut findings = served(&found, in_account, &accounts.name());
    findings.extend(followed((cluster, watched), &claimed, &listed, &index, &mut facts).await);
    findings.extend(usable(&found));
    findings.push(tags(&found, accounts).await);
    findings.extend(said);
    let watched = found.troubles.is_empty().then_some(found.watched);
    Sites { matched: found.matched.into_iter().collect(), watched, served: found.served, findings }
}

impl Found {
    fn take(
        &mut self,
        workload: &Workload,
        policy: &Policy,
        matches: &kernel::names::distribution::Matches,
        no_hosts: bool,
    ) {
        let name = workload.id.display_name();
        let named = workload.tuning.distributions.as_ref().filter(|_| policy.tenants.allows_named(workload));
        let matched: Vec<DistributionId> = match named {
            Some(named) => named.iter().cloned().collect(),
            None => matches.by_distribution.keys().cloned().collect(),
        };
        if named.is_none() {
            self.hostless += usize::from(no_hosts && matched.is_empty());
            self.unmatched.extend(matches.unmatched.iter().map(|host| (host.to_string(), name.clone())));
            if matched.is_empty() {
                self.skipped.extend(matches.skipped.iter().cloned());
            }
        }
        let tagged = policy.extent_of(workload).at_most().has_tags();
        for (id, reason) in matches.by_distribution.iter().flat_map(|(id, all)| all.iter().map(move |one| (id, one))) {
            let (Reason::Alias(host) | Reason::WildcardAlias { host, .. } | Reason::OwnName(host)) = reason else {
                continue;
            };
            if !host.is_wildcard() {
                let by_tags = self.served.entry(host.clone()).or_default();
                *by_tags = by_tags.take().or_else(|| tagged.then(|| id.clone()));
            }
        }
        if tagged {
            self.tagged.extend(matched.iter().map(|id| (id.clone(), name.clone())));
        }
        self.matched.extend(matched);
    }
}

fn served(found: &Found, in_account: (usize, usize), account: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        found.troubles.iter().map(|trouble| HOST_SERVED.warning(format!("not all was looked at: {trouble}"))).collect();
    // A host that could not be read may be one that is served.
    if found.hosts > 0 && found.matched.is_empty() && found.skipped.is_empty() && found.blind == 0 {
        let or_tenants = match in_account.1 {
            0 => String::new(),
            tenants => format!(", nor by {}", count(tenants, "distribution tenant", "distribution tenants")),
        };
        let far = if found.troubles.is_empty() { "" } else { ", as far as could be read" };
        let reason = format!(
            "none of {} hosts is served by one of the {} distributions of {account}{or_tenants}: nothing would be purged{far}",
            found.hosts, in_account.0
        );
        let hint = "see whether these are the credentials of the account that the distributions are in (aws-identity)";
        findings.push(HOST_SERVED.failed(reason).hint(hint));
        return findings;
    }
    let unserved = found.unmatched.iter().filter(|_| found.skipped.is_empty());
    for (host, workload) in unserved.clone().take(NAMED_MAX) {
        let (reason, hint) = if found.unlisted.is_empty() {
            let reason = format!("no distribution serves this host of {workload}: its rollouts purge nothing for it");
            (reason, "right, if it is not behind CloudFront; else see allclear explain")
        } else {
            let reason =
                format!("no distribution that could be listed serves this host of {workload}: its rollouts wait");
            (reason, "mend the account that cannot be listed (aws-list-distributions)")
        };
        findings.push(HOST_SERVED.warning(reason).hint(hint).of(host));
    }
    let more = unserved.count().saturating_sub(NAMED_MAX);
    if more > 0 {
        findings.push(
            HOST_SERVED.warning(format!("served by no distribution: {}", count(more, "further host", "further hosts"))),
        );
    }
    if findings.is_empty() {
        findings.push(HOST_SERVED.good(format!(
            "{} of {}, by {}; without a host: {}",
            count(found.hosts, "host", "hosts"),
            count(found.workloads, "workload", "workloads"),
            count(found.matched.len(), "distribution", "distributions"),
            count(found.hostless, "workload", "workloads")
        )));
    }
    findings
}

/// What owners wrote that cannot be used.
fn annotations<'a>(workloads: impl Iterator<Item = &'a Workload> + Clone, policy: &Policy) -> Vec<Finding> {
    let faulty = workloads.filter_map(|workload| {
        let faults: Vec<String> = faults(workload, policy).collect();
        (!faults.is_empty()).then(|| (workload.id.display_name(), faults.join("; ")))
    });
    let line = |(name, faults): (String, String)| {
        ANNOTATIONS.warning(faults).hint("docs/annotations.md says what each takes").of(name)
    };
    let mut findings: Vec<Finding> = faulty.clone().take(NAMED_MAX).map(line).collect();
    match faulty.count().saturating_sub(NAMED_MAX) {
        0 if findings.is_empty() => findings.push(ANNOTATIONS.good("each can be used as it is")),
        0 => {}
        more => {
            findings.push(ANNOTATIONS.warning(format!("and {}", count(more, "further workload", "further workloads"))));
        }
    }
    findings
}

/// Whether anybody looks at the edge. It is off until somebody switches it on, so that this is the place where people hear of it.
fn proof<'a>(workloads: impl Iterator<Item = &'a Workload>, policy: &Policy) -> Finding {
    let followed = workloads.filter(|workload| !workload.tuning.disabled);
    let looked_at = followed.filter(|workload| policy.proof_of(workload).is_some()).count();
    if looked_at > 0 || policy.proof.enabled {
        return PROOF.good(format!("looked at after each purge: {}", count(looked_at, "workload", "workloads")));
    }
    PROOF
        .warning("nobody looks at the edge after a purge: CloudFront's word is taken for it")
        .hint("try it on one workload by allclear.dev/proof: \"true\", then set proof.enabled = true")
}

fn usable(found: &Found) -> Vec<Finding> {
    if found.skipped.is_empty() {
        return vec![DISTRIBUTION_USABLE.good("every distribution with a watched host is one that is purged")];
    }
    let line = |(id, why): (&DistributionId, &String)| {
        let reason = format!("it is not purged, because it is {why}");
        DISTRIBUTION_USABLE.failed(reason).hint("enable it, or take the host away from it").of(id.as_str())
    };
    found.skipped.iter().map(line).collect()
}

/// Whether tags that are asked for can be purged.
async fn tags(found: &Found, accounts: &Accounts<'_>) -> Finding {
    let mut without = Vec::new();
    let (tenants, distributions): (Vec<_>, Vec<_>) =
        found.tagged.iter().partition(|(id, _)| id.is_of_distribution_tenant());
    for (id, workload) in distributions.into_iter().take(NAMED_MAX) {
        let Some(cdn) = accounts.home(id) else { continue };
        if let Ok(None) = cdn.cache_tag_header(id).await {
            without.push(format!("{id} (for {workload})"));
        }
    }
    if let Some((id, workload)) = tenants.first().filter(|_| without.is_empty()) {
        let more = tenants.len() - 1;
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        let reason = format!("asked for, and {} (for {workload}) is purged by paths{more}", id.words());
        return CACHE_TAGS.warning(reason).hint("purge distribution tenants by paths: allclear.dev/paths");
    }
    if without.is_empty() {
        return CACHE_TAGS.good(match found.tagged.len() {
            0 => "no workload asks for them".to_owned(),
            asked => format!("purged by tags: {}", count(asked, "distribution", "distributions")),
        });
    }
    let reason = format!("asked for, and not switched on in {}: {}", without.join(", "), Cause::ReadTags.cost());
    CACHE_TAGS.warning(reason).hint("configure cache tags for the distribution, or ask for paths by allclear.dev/paths")
}

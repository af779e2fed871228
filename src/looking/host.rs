//! From a host to everything: which distributions serve it, what leads to it in the cluster, which workloads are behind it and what a
//! purge of theirs reaches; and what serves it without being followed. A person at night knows the host, not the Deployment.
//!
//! Not for one workload in depth; that is `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::looking::account;
use crate::looking::explain::distributions::{distributions, serving};
use crate::looking::explain::find_site;
use crate::looking::explain::model::DistributionsSeen;
use crate::looking::explain::text::{distribution_lines, named};
use crate::looking::layout::Tone;
use crate::looking::page::{Page, count};
use crate::looking::replicas::Replicas;
use crate::looking::workloads::{Listed, Row, list, row};
use crate::looking::{LabelledPods, Section, Sources, no_replica, peek};
use kernel::names::host::Host;
use kernel::names::selector::{Labels, is_subset};
use purge::bounds::tenants::Tenancy;
use purge::site::{Age, Behind, Gathered, Lead, RouteClaim, Site, own};
use purge::workloads::workload::Workload;

/// Namespaces that are read when it is not known in which ones a host is named: a listing or two in each.
const NAMESPACES_MAX: usize = 100;

/// Pods that are named in one sentence.
const PODS_NAMED_MAX: usize = 2;

/// Everything about one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostSeen {
    pub host: String,
    /// What a rollout does for it, in one sentence.
    pub state: String,
    /// Why nothing happens by itself, or why that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    pub distributions: Section<DistributionsSeen>,
    /// Ingresses and routes that take requests for it, or for an origin of these distributions.
    pub rules: Vec<RuleSeen>,
    /// The followed workloads behind it.
    pub workloads: Vec<WorkloadBehind>,
    /// What serves it, or may, and is not followed, in words.
    pub unfollowed: Vec<String>,
    /// What could not be read; the rest is complete without it.
    pub missing: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RuleSeen {
    pub object: String,
    /// The host as it has it; `None` where it takes what no rule names.
    pub host: Option<String>,
    pub services: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkloadBehind {
    #[serde(flatten)]
    pub row: Row,
    /// How it is behind the host: where its own hosts came from.
    pub why: Vec<String>,
    /// Those of the host's distributions that its purges reach; missing where CloudFront could not be asked.
    pub reaches: Section<Vec<String>>,
}

/// What the sources said, for all namespaces together.
struct Read {
    listed: Listed,
    claims: Vec<RouteClaim>,
    /// Whether hosts belong to namespaces by their routes, and all of these are known.
    judged: bool,
    /// The host, and the origins of the distributions that serve it.
    wanted: BTreeSet<Host>,
}

/// Everything there is to say about `host`; what could not be read is named in the answer.
pub async fn host(sources: &Sources, host: &Host) -> HostSeen {
    let (listed, ledgered, claims, listing, idle) = tokio::join!(
        list(sources.cluster.as_ref()),
        peek(sources),
        sources.cluster.route_claims(),
        account::listing(sources.cdn.as_ref(), &sources.accounts, None),
        no_replica(sources),
    );
    let mut missing: Vec<String> = listed.troubles.iter().cloned().collect();
    missing.extend(claims.as_ref().err().map(ToString::to_string));
    let is_claimed = claims.is_ok();
    let claims = claims.map(Arc::unwrap_or_clone).unwrap_or_default();
    let served = serving(host, &listing);
    let ids: BTreeSet<&str> =
        served.known().into_iter().flat_map(|seen| &seen.matched).map(|seen| seen.id.as_str()).collect();
    let origins = listing.all.iter().flatten().filter(|one| ids.contains(one.id.as_str())).flat_map(|one| &one.origins);
    let wanted = origins.filter_map(|origin| Host::parse(origin).ok()).chain([host.clone()]).collect();
    let judged = sources.policy.tenants.default == Tenancy::Own && is_claimed;
    let read = Read { listed, claims, judged, wanted };
    let records = match ledgered {
        Section::Known(ledgered) => ledgered.records,
        Section::Missing { missing: why } => {
            missing.push(why);
            Default::default()
        }
    };
    let mut facts = BTreeMap::new();
    for namespace in read.namespaces(&mut missing) {
        match sources.cluster.site_facts_in_part(&namespace, Age::Recent).await {
            Ok(found) => {
                note_unread(&found, &mut missing);
                facts.insert(namespace, found);
            }
            Err(error) => missing.push(error.to_string()),
        }
    }
    let mut workloads = Vec::new();
    for (namespace, facts) in &facts {
        for workload in read.of(namespace) {
            let (site, why) = read.site(workload, facts, sources);
            let reached = distributions(workload, &Section::Known(site), &listing, &sources.policy.tenants);
            let reaches = reaching(workload, &reached, &ids);
            if !why.is_empty() || reaches.known().is_some_and(|reached| !reached.is_empty()) {
                let record = records.get(&workload.id).map(Arc::as_ref);
                let row = row(&workload.id, Some(workload), record, &sources.policy);
                workloads.push(WorkloadBehind { row, why, reaches });
            }
        }
    }
    let is_idle = idle.as_ref().is_some_and(Replicas::is_idle);
    let mut seen = HostSeen {
        host: host.to_string(),
        state: String::new(),
        controller: idle.and_then(|replicas| replicas.trouble()),
        distributions: served.clone(),
        rules: Vec::new(),
        workloads,
        unfollowed: Vec::new(),
        missing,
    };
    seen.look_behind(sources, &read, &facts).await;
    seen.state = seen.words();
    if is_idle {
        seen.state = format!("nothing is purged until a replica works. Then: {}", seen.state);
    }
    seen
}

/// Notes what could not be read, once: what is asked for in all namespaces is refused for each of them.
fn note_unread(facts: &Gathered, missing: &mut Vec<String>) {
    for why in facts.unread().iter().map(ToString::to_string) {
        if !missing.contains(&why) {
            missing.push(why);
        }
    }
}

/// Those of `ids` that a workload's rollout purges: none, where its owner has taken it out.
fn reaching(workload: &Workload, purged: &Section<DistributionsSeen>, ids: &BTreeSet<&str>) -> Section<Vec<String>> {
    match purged {
        _ if workload.tuning.disabled => Section::Known(Vec::new()),
        Section::Known(purged) => {
            let reached = purged.matched.iter().filter(|one| ids.contains(one.id.as_str()));
            Section::Known(reached.map(|one| one.id.clone()).collect())
        }
        Section::Missing { missing } => Section::missing(missing),
    }
}

impl Read {
    /// The namespaces to look into: those whose routes or owners name the host; and where there are not too many, all with a
    /// workload, for a name in DNS or a rule without host leads to a workload as well.
    fn namespaces(&self, missing: &mut Vec<String>) -> BTreeSet<String> {
        let is_wanted = |host: &Host| self.wanted.iter().any(|wanted| host.covers(wanted));
        let claiming = self.claims.iter().filter(|claim| claim.hosts.iter().any(|(host, _)| is_wanted(host)));
        let naming = self.listed.workloads.values().filter(|workload| {
            workload.tuning.hosts.iter().flatten().any(is_wanted) || workload.tuning.distributions.is_some()
        });
        let mut namespaces: BTreeSet<String> = claiming.map(|claim| claim.namespace.clone()).collect();
        namespaces.extend(naming.map(|workload| workload.id.namespace.clone()));
        let all: BTreeSet<&String> = self.listed.workloads.keys().map(|id| &id.namespace).collect();
        if all.len() <= NAMESPACES_MAX {
            namespaces.extend(all.into_iter().cloned());
        } else {
            missing.push(format!(
                "only the {} whose Ingresses, routes or annotations name it: there are {} with workloads, and {NAMESPACES_MAX} at \
                 most are searched for rules without a host and for names that external-dns makes",
                count(namespaces.len(), "namespace", "namespaces"),
                all.len()
            ));
        }
        namespaces
    }

    /// The workloads of a namespace.
    fn of(&self, namespace: &str) -> impl Iterator<Item = &Workload> {
        self.listed.workloads.values().filter(move |workload| workload.id.namespace == namespace)
    }

    /// The site of a workload as a purge takes it, and by which of its hosts it is behind what is asked for.
    fn site(&self, workload: &Workload, facts: &Gathered, sources: &Sources) -> (Site, Vec<String>) {
        let mut site = find_site(workload, facts);
        let mut refused = BTreeMap::new();
        if self.judged {
            let owned = own(&site, &workload.id.namespace, &self.claims, &sources.policy.tenants);
            site.hosts.retain(|host, sources| {
                let is_own = owned.hosts.contains(host);
                if !is_own {
                    refused.insert(host.clone(), std::mem::take(sources));
                }
                is_own
            });
            site.origins.clear();
            site.except = owned.except;
        }
        let is_behind = |host: &Host| self.wanted.iter().any(|wanted| host.covers(wanted));
        let is_elsewhere =
            |host: &Host| self.wanted.iter().all(|wanted| *host != *wanted && site.except.contains(wanted));
        let named = site.hosts.iter().filter(|(host, _)| is_behind(host) && !is_elsewhere(host));
        let mut why: Vec<String> =
            named.flat_map(|(host, by)| by.iter().map(move |by| format!("{host}: {by}"))).collect();
        let foreign = refused.iter().filter(|(host, _)| is_behind(host));
        why.extend(
            foreign.map(|(host, _)| format!("{host}, which is not its namespace's own: tenants.default is own")),
        );
        (site, why)
    }
}

impl HostSeen {
    /// Notes what leads to the host, and what is behind that without being followed.
    async fn look_behind(&mut self, sources: &Sources, read: &Read, facts: &BTreeMap<String, Arc<Gathered>>) {
        let leads = facts.iter().map(|(namespace, facts)| (namespace, facts, facts.leads(namespace, &read.wanted)));
        let mut leads: Vec<(&String, &Arc<Gathered>, Vec<Lead>)> = leads.collect();
        // What takes any host gets this one only if nothing names it, in any namespace.
        if leads.iter().flat_map(|(.., leads)| leads).any(|lead| lead.host.is_some()) {
            leads.iter_mut().for_each(|(.., leads)| leads.retain(|lead| lead.host.is_some()));
        }
        for (namespace, facts, leads) in leads.iter().filter(|(.., leads)| !leads.is_empty()) {
            let pods = sources.cluster.pods(namespace).await;
            self.missing.extend(pods.as_ref().err().map(ToString::to_string));
            self.note(read, (namespace, facts), leads, pods.as_ref().ok());
        }
    }

    /// The same for one namespace.
    fn note(
        &mut self,
        read: &Read,
        (namespace, facts): (&str, &Gathered),
        leads: &[Lead],
        pods: Option<&LabelledPods>,
    ) {
        let services: BTreeSet<&(String, String)> = leads.iter().flat_map(|lead| &lead.services).collect();
        self.rules.extend(leads.iter().map(|lead| RuleSeen {
            object: lead.object.clone(),
            host: lead.host.as_ref().map(ToString::to_string),
            services: lead.services.iter().map(|(space, name)| format!("{space}/{name}")).collect(),
        }));
        for (space, name) in services {
            let service = format!("Service {space}/{name}");
            if space != namespace {
                self.unfollowed.push(format!("{service}: of another namespace, and not looked at here"));
                continue;
            }
            match facts.behind(space, name) {
                Behind::Nothing => self.unfollowed.push(format!("{service}: does not exist")),
                Behind::Endpoints => {
                    self.unfollowed
                        .push(format!("{service}: has no selector, so what its endpoints are is not followed"));
                }
                Behind::Name(name) => self.unfollowed.push(format!("{service}: stands for {name} (ExternalName)")),
                Behind::Pods(selector) => {
                    self.unfollowed
                        .extend(strangers(read, namespace, selector, pods).map(|why| format!("{service}: {why}")));
                }
            }
        }
    }

    fn words(&self) -> String {
        let Some(seen) = self.distributions.known() else {
            return "whether a distribution serves it is not known".to_owned();
        };
        let ids: Vec<String> = seen.matched.iter().map(|one| named(&one.id)).collect();
        let purged: Vec<String> = self.workloads.iter().filter_map(WorkloadBehind::purges).collect();
        let far = if self.missing.is_empty() { "" } else { ", as far as could be read" };
        match (ids.as_slice(), purged.as_slice()) {
            ([], _) if !seen.skipped.is_empty() => {
                "no distribution that is purged serves it, so nothing is purged for it".to_owned()
            }
            ([], _) if !seen.unlisted.is_empty() => "whether a distribution serves it is not known".to_owned(),
            ([], _) if seen.lacks.is_some() => "whether a distribution tenant serves it is not known".to_owned(),
            ([], _) => "no distribution of this account serves it, so nothing is purged for it".to_owned(),
            (ids, []) if self.workloads.is_empty() => {
                format!("no followed workload is behind it, so no rollout purges {}{far}", ids.join(", "))
            }
            (ids, []) => format!("no purge of the workloads behind it reaches {}{far}", ids.join(", ")),
            (_, purged) => format!("{}{far}", purged.join("; ")),
        }
    }
}

impl WorkloadBehind {
    /// What a rollout of it does for the host.
    fn purges(&self) -> Option<String> {
        let reached = self.reaches.known().filter(|reached| !reached.is_empty())?;
        let reached: Vec<String> = reached.iter().map(|id| named(id)).collect();
        Some(format!("a rollout of {} purges {}", self.row.workload.display_name(), reached.join(", ")))
    }
}

/// What a Service selects that is no pod of a followed workload, in words.
fn strangers(read: &Read, namespace: &str, selector: &Labels, pods: Option<&LabelledPods>) -> Option<String> {
    let is_followed = read.of(namespace).any(|workload| workload.pods().may_match(selector));
    let Some(pods) = pods else {
        return (!is_followed).then(|| "no workload that is followed has the labels that it selects".to_owned());
    };
    let selected = pods.iter().filter(|(labels, pod)| is_subset(selector, labels) && !pod.finished);
    let strange = selected.filter(|(labels, _)| read.of(namespace).all(|one| !one.selector.matches(labels)));
    let names: BTreeSet<&str> = strange.map(|(_, pod)| pod.name.as_str()).collect();
    let named: Vec<&str> = names.iter().take(PODS_NAMED_MAX).copied().collect();
    match names.len() {
        0 if !is_followed => Some("selects no pod".to_owned()),
        0 => None,
        all => Some(format!(
            "{} of no workload that is followed: {}{}",
            count(all, "pod", "pods"),
            named.join(", "),
            if all > named.len() { ", …" } else { "" }
        )),
    }
}

impl fmt::Display for HostSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, state, controller, distributions, rules, workloads, unfollowed, missing } = self;
        let mut page = Page { f };
        page.title(host)?;
        page.part("State", [state.clone()])?;
        page.toned("Controller", Tone::Look, controller.clone())?;
        writeln!(page.f)?;
        page.section("Distributions", distributions, distribution_lines)?;
        page.part("Rules", rules.iter().map(rule_line))?;
        page.part("Workloads", workloads.iter().flat_map(workload_lines))?;
        page.part("Not followed", unfollowed.iter().cloned())?;
        page.part("Missing", missing.iter().cloned())?;
        let first = workloads.first().map(|one| one.row.workload.display_name());
        page.part("More", first.map(|name| format!("allclear explain {name}")))
    }
}

fn rule_line(RuleSeen { object, host, services }: &RuleSeen) -> String {
    let host = host.as_deref().unwrap_or("what no rule names");
    let services = if services.is_empty() { "no Service".to_owned() } else { services.join(", ") };
    format!("{object}: {host} to {services}")
}

fn workload_lines(WorkloadBehind { row, why, reaches }: &WorkloadBehind) -> Vec<String> {
    let Row { workload, version, phase: _, state, last_purge } = row;
    let purged =
        last_purge.as_ref().map_or("last purge: none on record".to_owned(), |last| format!("last purge: {last}"));
    let mut lines = vec![format!("{} {version}: {state}; {purged}", workload.display_name())];
    lines.extend(why.iter().map(|why| format!("by {why}")));
    match reaches {
        Section::Known(reached) if reached.is_empty() => {
            lines.push("its purges reach no distribution of this host".to_owned());
        }
        Section::Known(reached) => {
            let reached: Vec<String> = reached.iter().map(|id| named(id)).collect();
            lines.push(format!("its purges reach {}", reached.join(", ")));
        }
        Section::Missing { .. } => {}
    }
    lines
}

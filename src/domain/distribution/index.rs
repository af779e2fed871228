//! The index of all distributions, which finds those a site is served by.
//!
//! One name belongs to the first of these that knows it, to all of its distributions if several do:
//!
//! 1. an alias that is the name,
//! 2. the longest wildcard alias over it. CloudFront's `*.example.com` covers any depth and never `example.com`; of
//!    overlapping aliases CloudFront takes the more specific one, whatever DNS says
//!    (<https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/alternate-domain-names-wildcard.html>),
//! 3. a distribution's own domain name,
//! 4. an origin that is the name: the distribution fetches from the site.
//!
//! A wildcard *host* stands for all the names it covers (how deep, the [`Host`] says), so it reaches every
//! distribution that one of these names belongs to by rules 1, 2 and 4. Rule 3 is for names people write down: nobody
//! is served under `*.cloudfront.net` as a whole. Each load balancer name matches origins only.
//!
//! A disabled, staging or tenant-only distribution never matches and never hides another one; that it would have
//! matched is reported.
//!
//! Not for: asking CloudFront anything. Tenants of a tenant-only distribution are not in its listing; see
//! [`Index::has_tenant_only`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::{Distribution, DistributionId, Reason};
use crate::domain::host::{self, Depth, Host};

/// What a site is served by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Matches {
    /// The distributions, each with all reasons, sorted.
    pub by_distribution: BTreeMap<DistributionId, Vec<Reason>>,
    /// Hosts that no distribution serves, sorted.
    pub unmatched: Vec<Host>,
    /// Load balancers that are nobody's origin, sorted.
    pub unmatched_origins: Vec<String>,
    /// Distributions that would match if they were not disabled, staging or for tenants only, and why; sorted.
    pub skipped: Vec<(DistributionId, String)>,
}

/// All distributions of an account, ready to be matched with sites.
///
/// A host costs one map look-up per label; a wildcard host also visits the names beneath it. 200 hosts against 500
/// distributions with 10 aliases each took 0.9 ms in a debug build, building the index 30 ms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Index {
    distributions: BTreeMap<DistributionId, Distribution>,
    matchable: Names,
    unmatchable: Names,
    unreadable: Vec<(DistributionId, host::Error)>,
}

impl Index {
    /// Indexes a whole listing. If an id occurs twice, because the account changed between two pages, the last one
    /// holds.
    #[must_use]
    pub fn new(listing: Vec<Distribution>) -> Self {
        let distributions: BTreeMap<_, _> = listing.into_iter().map(|one| (one.id.clone(), one)).collect();
        let mut index = Self::default();
        for distribution in distributions.values() {
            let names =
                if distribution.unmatchable().is_none() { &mut index.matchable } else { &mut index.unmatchable };
            names.add(distribution, &mut index.unreadable);
        }
        Self { distributions, ..index }
    }

    /// The distribution with this id.
    #[must_use]
    pub fn get(&self, id: &DistributionId) -> Option<&Distribution> {
        self.distributions.get(id)
    }

    /// All distributions, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Distribution> {
        self.distributions.values()
    }

    /// Whether it is worth asking CloudFront for the tenant of an unmatched host (`GetDistributionTenantByDomain`).
    #[must_use]
    pub fn has_tenant_only(&self) -> bool {
        self.iter().any(|distribution| distribution.tenant_only && distribution.enabled)
    }

    /// Names in the listing that could not be read, and so match nothing.
    #[must_use]
    pub fn unreadable(&self) -> &[(DistributionId, host::Error)] {
        &self.unreadable
    }

    /// Finds the distributions that serve these hosts or fetch from these load balancers. The order does not matter.
    #[must_use]
    pub fn matches<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a Host>,
        load_balancers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Matches {
        let mut found: BTreeMap<&DistributionId, BTreeSet<Reason>> = BTreeMap::new();
        let mut skipped = found.clone();
        let mut unmatched = BTreeSet::new();
        let mut unmatched_origins = BTreeSet::new();
        for host in hosts {
            if collect(self.matchable.serving(host), &mut found) == 0 {
                unmatched.insert(host.clone());
            }
            collect(self.unmatchable.serving(host), &mut skipped);
        }
        for name in load_balancers {
            let name = name.as_ref();
            if collect(self.matchable.fetching_from(name), &mut found) == 0 {
                unmatched_origins.insert(name.to_owned());
            }
            collect(self.unmatchable.fetching_from(name), &mut skipped);
        }
        let skipped = skipped.into_iter().filter_map(|(id, reasons)| {
            let state = self.get(id)?.unmatchable()?;
            Some((id.clone(), format!("{state}; otherwise by {}", reasons.first()?)))
        });
        Matches {
            skipped: skipped.collect(),
            by_distribution: found.into_iter().map(|(id, why)| (id.clone(), why.into_iter().collect())).collect(),
            unmatched: unmatched.into_iter().collect(),
            unmatched_origins: unmatched_origins.into_iter().collect(),
        }
    }
}

/// Adds what was found to what is known, and says how much it was.
fn collect<'a>(
    found: Vec<(&'a DistributionId, Reason)>,
    known: &mut BTreeMap<&'a DistributionId, BTreeSet<Reason>>,
) -> usize {
    let count = found.len();
    for (id, reason) in found {
        known.entry(id).or_default().insert(reason);
    }
    count
}

/// Names with their labels reversed (`com.example.www`), so that what is beneath a domain lies side by side.
type Reversed = BTreeMap<String, BTreeSet<DistributionId>>;

/// All names of some distributions, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Names {
    aliases: Reversed,
    /// Without their star.
    wildcard_aliases: Reversed,
    own: Reversed,
    origins: Reversed,
}

impl Names {
    fn add(&mut self, distribution: &Distribution, unreadable: &mut Vec<(DistributionId, host::Error)>) {
        let id = &distribution.id;
        let mut read = |text: &str| match Host::parse(text) {
            Ok(host) => Some(host),
            Err(error) => {
                unreadable.push((id.clone(), error));
                None
            }
        };
        let insert = |map: &mut Reversed, name: &str| {
            map.entry(reverse(name)).or_default().insert(id.clone());
        };
        for alias in distribution.aliases.iter().filter_map(|text| read(text)) {
            let map = if alias.is_wildcard() { &mut self.wildcard_aliases } else { &mut self.aliases };
            insert(map, alias.domain());
        }
        if let Some(own) = read(&distribution.domain_name) {
            insert(&mut self.own, own.domain());
        }
        for origin in distribution.origins.iter().filter_map(|text| read(text)) {
            insert(&mut self.origins, canonical_origin(origin.domain()));
        }
    }

    /// The distributions that serve this host, by the rules at the top of this file.
    fn serving(&self, host: &Host) -> Vec<(&DistributionId, Reason)> {
        let reversed = reverse(host.domain());
        match host.depth() {
            None => self.serving_name(host, &reversed),
            Some(depth) => self.serving_wildcard(host, depth, &reversed),
        }
    }

    fn serving_name(&self, host: &Host, reversed: &str) -> Vec<(&DistributionId, Reason)> {
        if let Some(ids) = self.aliases.get(reversed) {
            return each(ids, || Reason::Alias(host.clone()));
        }
        if let Some((domain, ids)) = parent(reversed).and_then(|beyond| nearest(&self.wildcard_aliases, beyond)) {
            return each(ids, || Reason::WildcardAlias { host: host.clone(), alias: star(domain) });
        }
        if let Some(ids) = self.own.get(reversed) {
            return each(ids, || Reason::OwnName(host.clone()));
        }
        let origins = self.origins.get(&reverse(canonical_origin(host.as_str())));
        origins.map(|ids| each(ids, || Reason::Origin(host.clone()))).unwrap_or_default()
    }

    fn serving_wildcard(&self, host: &Host, depth: Depth, reversed: &str) -> Vec<(&DistributionId, Reason)> {
        let mut found = Vec::new();
        for (name, ids) in beneath(&self.aliases, reversed, depth) {
            found.extend(each(ids, || Reason::AliasBeneath { host: host.clone(), alias: reverse(name) }));
        }
        if depth == Depth::Any {
            for (domain, ids) in beneath(&self.wildcard_aliases, reversed, depth) {
                found.extend(each(ids, || Reason::AliasBeneath { host: host.clone(), alias: star(domain) }));
            }
        }
        // The names that no longer alias takes: there are always some, since labels cannot be exhausted.
        if let Some((domain, ids)) = nearest(&self.wildcard_aliases, reversed) {
            found.extend(each(ids, || Reason::WildcardAlias { host: host.clone(), alias: star(domain) }));
            return found;
        }
        for (name, ids) in beneath(&self.origins, reversed, depth) {
            let taken = self.aliases.contains_key(name)
                || parent(name).is_some_and(|beyond| nearest(&self.wildcard_aliases, beyond).is_some());
            if !taken {
                found.extend(each(ids, || Reason::OriginBeneath { host: host.clone(), origin: reverse(name) }));
            }
        }
        found
    }

    fn fetching_from(&self, load_balancer: &str) -> Vec<(&DistributionId, Reason)> {
        let name = load_balancer.to_ascii_lowercase();
        let origins = self.origins.get(&reverse(canonical_origin(&name)));
        origins.map(|ids| each(ids, || Reason::LoadBalancer(name.clone()))).unwrap_or_default()
    }
}

fn each(ids: &BTreeSet<DistributionId>, reason: impl Fn() -> Reason) -> Vec<(&DistributionId, Reason)> {
    ids.iter().map(|id| (id, reason())).collect()
}

/// The longest of `names` that is `reversed` or a domain above it.
fn nearest<'a>(names: &'a Reversed, reversed: &str) -> Option<(&'a str, &'a BTreeSet<DistributionId>)> {
    let mut candidate = Some(reversed);
    // Bounded by the labels of a host, of which there are at most 127.
    while let Some(name) = candidate {
        if let Some((key, ids)) = names.get_key_value(name) {
            return Some((key, ids));
        }
        candidate = parent(name);
    }
    None
}

/// The domain one label up; `None` for the last label.
fn parent(reversed: &str) -> Option<&str> {
    reversed.rsplit_once('.').map(|(parent, _)| parent)
}

/// All of `names` that are beneath the domain, one label or any number.
fn beneath<'a>(
    names: &'a Reversed,
    reversed: &str,
    depth: Depth,
) -> impl Iterator<Item = (&'a str, &'a BTreeSet<DistributionId>)> {
    let start = format!("{reversed}.");
    let range = names.range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
    let mut found = Vec::new();
    for (name, ids) in range {
        let Some(labels) = name.strip_prefix(start.as_str()) else { break };
        if depth == Depth::Any || !labels.contains('.') {
            found.push((name.as_str(), ids));
        }
    }
    found.into_iter()
}

fn reverse(name: &str) -> String {
    name.rsplit('.').collect::<Vec<_>>().join(".")
}

/// A reversed domain as the wildcard alias CloudFront writes.
fn star(reversed: &str) -> String {
    format!("*.{}", reverse(reversed))
}

/// An Elastic Load Balancer answers to its name with and without `dualstack.` in front; Kubernetes and Route 53 do not
/// agree on which to write.
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/elb-internet-facing-load-balancers.html>
fn canonical_origin(name: &str) -> &str {
    let of_elb = |plain: &&str| {
        plain.contains(".elb.") && (plain.ends_with(".amazonaws.com") || plain.ends_with(".amazonaws.com.cn"))
    };
    name.strip_prefix("dualstack.").filter(of_elb).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(id: &str, aliases: &[&str], origins: &[&str]) -> Distribution {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Distribution {
            id: DistributionId::parse(id).unwrap(),
            domain_name: format!("{}.cloudfront.net", id.to_ascii_lowercase()),
            aliases: owned(aliases),
            origins: owned(origins),
            enabled: true,
            staging: false,
            tenant_only: false,
            cache_tags: false,
        }
    }

    /// The matches of one host, as `id: reason` lines.
    fn of(index: &Index, host: &str) -> Vec<String> {
        let matches = index.matches([&Host::parse(host).unwrap()], [""; 0]);
        let lines =
            matches.by_distribution.iter().flat_map(|(id, why)| why.iter().map(move |one| format!("{id}: {one}")));
        lines.collect()
    }

    #[test]
    fn an_exact_alias_wins_over_a_wildcard_and_the_longest_wildcard_over_others() {
        let index = Index::new(vec![
            distribution("E1", &["WWW.Example.com"], &[]),
            distribution("E2", &["*.example.com"], &[]),
            distribution("E3", &["*.a.example.com"], &[]),
        ]);
        assert_eq!(of(&index, "www.example.com"), ["E1: alias www.example.com"]);
        assert_eq!(of(&index, "x.y.example.com"), ["E2: alias *.example.com covers host x.y.example.com"]);
        assert_eq!(of(&index, "x.a.example.com"), ["E3: alias *.a.example.com covers host x.a.example.com"]);
    }

    #[test]
    fn a_wildcard_alias_does_not_cover_the_apex() {
        let index = Index::new(vec![distribution("E1", &["*.example.com"], &[])]);
        assert_eq!(of(&index, "example.com"), [""; 0]);
        assert_eq!(of(&index, "badexample.com"), [""; 0]);
    }

    #[test]
    fn own_name_comes_before_origin_and_both_after_aliases() {
        let index = Index::new(vec![
            distribution("E1", &["www.example.com"], &["origin.example.com"]),
            distribution("E2", &[], &["www.example.com", "e1.cloudfront.net"]),
        ]);
        assert_eq!(of(&index, "e1.cloudfront.net"), ["E1: own domain name e1.cloudfront.net"]);
        assert_eq!(of(&index, "origin.example.com"), ["E1: origin origin.example.com"]);
        assert_eq!(of(&index, "www.example.com"), ["E1: alias www.example.com"]);
    }

    #[test]
    fn an_ingress_wildcard_reaches_aliases_one_label_beneath_it_and_a_deep_one_all() {
        let index = Index::new(vec![
            distribution("E1", &["a.example.com"], &[]),
            distribution("E2", &["b.a.example.com", "*.c.example.com"], &[]),
            distribution("E3", &["example.com"], &[]),
        ]);
        assert_eq!(of(&index, "*.example.com"), ["E1: host *.example.com covers alias a.example.com"]);
        assert_eq!(
            of(&index, "**.example.com"),
            [
                "E1: host **.example.com covers alias a.example.com",
                "E2: host **.example.com covers alias *.c.example.com",
                "E2: host **.example.com covers alias b.a.example.com",
            ]
        );
    }

    #[test]
    fn several_distributions_of_a_site_are_all_found() {
        let index =
            Index::new(vec![distribution("E1", &["a.io"], &["lb.io"]), distribution("E2", &["b.io"], &["lb.io"])]);
        let hosts = ["a.io", "b.io", "c.io"].map(|text| Host::parse(text).unwrap());
        let matches = index.matches(&hosts, ["LB.io", "other.io"]);
        assert_eq!(matches.by_distribution.len(), 2);
        assert_eq!(matches.unmatched, [Host::parse("c.io").unwrap()]);
        assert_eq!(matches.unmatched_origins, ["other.io"]);
    }

    #[test]
    fn a_load_balancer_is_found_with_and_without_dualstack() {
        let index = Index::new(vec![distribution("E1", &[], &["k8s-1.eu-west-1.elb.amazonaws.com"])]);
        let matches = index.matches([], ["dualstack.k8s-1.eu-west-1.elb.amazonaws.com"]);
        assert_eq!(matches.by_distribution.len(), 1);
        let index = Index::new(vec![distribution("E1", &[], &["dualstack.k8s-1.eu-west-1.elb.amazonaws.com"])]);
        assert_eq!(index.matches([], ["k8s-1.eu-west-1.elb.amazonaws.com"]).by_distribution.len(), 1);
        let index = Index::new(vec![distribution("E1", &[], &["lb.cn-north-1.elb.amazonaws.com.cn"])]);
        assert_eq!(index.matches([], ["dualstack.lb.cn-north-1.elb.amazonaws.com.cn"]).by_distribution.len(), 1);
        let index = Index::new(vec![distribution("E1", &[], &["lb.example.com"])]);
        assert!(index.matches([], ["dualstack.lb.example.com"]).by_distribution.is_empty());
    }

    #[test]
    fn disabled_staging_and_tenant_only_distributions_are_reported_and_hide_nothing() {
        let index = Index::new(vec![
            Distribution { enabled: false, ..distribution("E1", &["www.example.com"], &[]) },
            Distribution { staging: true, ..distribution("E2", &["*.example.com"], &[]) },
            Distribution { tenant_only: true, ..distribution("E3", &[], &["lb.example.com"]) },
            distribution("E4", &["*.example.com"], &[]),
        ]);
        let matches = index.matches([&Host::parse("www.example.com").unwrap()], ["lb.example.com"]);
        assert_eq!(matches.by_distribution.keys().map(DistributionId::as_str).collect::<Vec<_>>(), ["E4"]);
        let skipped: Vec<String> = matches.skipped.iter().map(|(id, why)| format!("{id} is {why}")).collect();
        assert_eq!(
            skipped,
            [
                "E1 is disabled; otherwise by alias www.example.com",
                "E3 is for tenants only; otherwise by origin lb.example.com is the load balancer",
            ]
        );
        assert!(index.has_tenant_only());
    }

    #[test]
    fn a_name_that_cannot_be_read_costs_only_itself() {
        let index = Index::new(vec![distribution("E1", &["not a host", "a.io"], &["10.0.0.1"])]);
        assert_eq!(of(&index, "a.io"), ["E1: alias a.io"]);
        assert_eq!(index.unreadable().len(), 2);
    }
}

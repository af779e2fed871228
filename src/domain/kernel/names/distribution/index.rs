//! The index of all distributions, which finds those a site is served by.
//!
//! A name reaches, each with all of its distributions:
//!
//! 1. an alias that is the name; else the longest wildcard alias over it. CloudFront's `*.example.com` covers any depth
//!    and never `example.com`; of overlapping aliases CloudFront takes the more specific one, whatever DNS says
//!    (<https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/alternate-domain-names-wildcard.html>),
//! 2. whatever the aliases do, a distribution whose own domain name it is,
//! 3. and one that has it as an origin: the distribution fetches from the site.
//!
//! A wildcard *host* stands for all the names it covers (how deep, the [`Host`] says), so it reaches every distribution
//! that one of these names reaches by rules 1 and 3, but for the names that are known to lead elsewhere. Rule 2 is for
//! names people write down: no site is served under `*.cloudfront.net` as a whole.
//!
//! Each load balancer name matches origins only, and no distribution all of whose aliases are known to lead elsewhere:
//! it fetches from the load balancer what is not this site's.
//!
//! A disabled, staging or tenant-only distribution never matches and never hides another one; that it would have
//! matched is reported. The distribution tenants of a tenant-only one match by rule 1, by their active domains, among which and the
//! aliases of all others the more specific one counts. They have no name of their own, and which of them fetches from an origin nobody
//! says. A disabled one never matches.
//!
//! Not for: asking CloudFront anything.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::{Distribution, DistributionId, Reason};
use crate::names::host::{self, Depth, Host};

/// The distributions that serve a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Matches {
    /// The distributions, each with all reasons, sorted.
    pub by_distribution: BTreeMap<DistributionId, Vec<Reason>>,
    /// Hosts that no distribution serves, sorted.
    pub unmatched: Vec<Host>,
    /// Load balancers that are no distribution's origin, sorted.
    pub unmatched_origins: Vec<String>,
    /// Distributions that would match if they were not disabled, staging or for distribution tenants only, or if not all their aliases
    /// led elsewhere, and why; sorted.
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
        distributions.into_values().for_each(|distribution| index.add(distribution));
        index
    }

    /// Adds one that the listing does not have; one that it has stays as it is listed.
    pub fn add(&mut self, distribution: Distribution) {
        if self.distributions.contains_key(&distribution.id) {
            return;
        }
        let names = if distribution.unmatchable().is_none() { &mut self.matchable } else { &mut self.unmatchable };
        names.add(&distribution, &mut self.unreadable);
        self.distributions.insert(distribution.id.clone(), distribution);
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
        self.matches_except(hosts, load_balancers, &BTreeSet::new())
    }

    /// The same, where it is known that the names in `except` lead elsewhere though a wildcard or a load balancer among the
    /// others covers them. A host itself is never one of them.
    #[must_use]
    pub fn matches_except<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a Host>,
        load_balancers: impl IntoIterator<Item = impl AsRef<str>>,
        except: &BTreeSet<Host>,
    ) -> Matches {
        let mut found: BTreeMap<&DistributionId, BTreeSet<Reason>> = BTreeMap::new();
        let mut skipped = found.clone();
        let mut elsewhere = found.clone();
        let mut unmatched = BTreeSet::new();
        let mut unmatched_origins = BTreeSet::new();
        for host in hosts {
            if collect(self.matchable.serving(host, except), &mut found) == 0 {
                unmatched.insert(host.clone());
            }
            collect(self.unmatchable.serving(host, except), &mut skipped);
        }
        for name in load_balancers {
            let name = name.as_ref();
            let fetching = self.matchable.fetching_from(name);
            let (others, ours): (Vec<_>, Vec<_>) =
                fetching.into_iter().partition(|(id, _)| self.get(id).is_some_and(|one| leads_elsewhere(one, except)));
            collect(others, &mut elsewhere);
            if collect(ours, &mut found) == 0 {
                unmatched_origins.insert(name.to_owned());
            }
            collect(self.unmatchable.fetching_from(name), &mut skipped);
        }
        elsewhere.retain(|id, _| !found.contains_key(id));
        let skipped = skipped.into_iter().filter_map(|(id, reasons)| Some((id, self.get(id)?.unmatchable()?, reasons)));
        let elsewhere = elsewhere.into_iter().map(|(id, reasons)| (id, ALIASES_LEAD_ELSEWHERE, reasons));
        let words = |(id, state, reasons): (&DistributionId, &str, BTreeSet<Reason>)| {
            Some((id.clone(), format!("{state}; otherwise by {}", reasons.first()?)))
        };
        let skipped: BTreeSet<_> = skipped.chain(elsewhere).filter_map(words).collect();
        Matches {
            skipped: skipped.into_iter().collect(),
            by_distribution: found.into_iter().map(|(id, why)| (id.clone(), why.into_iter().collect())).collect(),
            unmatched: unmatched.into_iter().collect(),
            unmatched_origins: unmatched_origins.into_iter().collect(),
        }
    }
}

/// Why a distribution that fetches from a load balancer of the site is left out.
const ALIASES_LEAD_ELSEWHERE: &str = "for aliases that all lead to other workloads";

/// Whether people reach other workloads by every alias of a distribution. One without aliases is used by its own name.
fn leads_elsewhere(distribution: &Distribution, except: &BTreeSet<Host>) -> bool {
    let mut aliases = distribution.aliases.iter().map(|text| Host::parse(text).map(Host::at_any_depth));
    !except.is_empty()
        && !distribution.aliases.is_empty()
        && aliases.all(|alias| alias.is_ok_and(|alias| is_excepted(&alias, except)))
}

/// Whether all that `host` stands for is in `except`.
fn is_excepted(host: &Host, except: &BTreeSet<Host>) -> bool {
    // Looked up and never gone through: a tenant may have as many wildcards as a site has room for (T2). They sort first.
    let has_wildcards = except.first().is_some_and(Host::is_wildcard);
    except.contains(host) || (has_wildcards && host.wildcards_above().any(|wildcard| except.contains(&wildcard)))
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
        if let Some(own) = Some(&distribution.domain_name).filter(|name| !name.is_empty()).and_then(|name| read(name)) {
            insert(&mut self.own, own.domain());
        }
        for origin in distribution.origins.iter().filter_map(|text| read(text)) {
            insert(&mut self.origins, canonical_origin(origin.domain()));
        }
    }

    /// The distributions that serve this host, by the rules at the top of this file.
    fn serving(&self, host: &Host, except: &BTreeSet<Host>) -> Vec<(&DistributionId, Reason)> {
        let reversed = reverse(host.domain());
        match host.depth() {
            None => self.serving_name(host, &reversed),
            Some(depth) => self.serving_wildcard(host, depth, &reversed, except),
        }
    }

    fn serving_name(&self, host: &Host, reversed: &str) -> Vec<(&DistributionId, Reason)> {
        let mut found = Vec::new();
        if let Some(ids) = self.aliases.get(reversed) {
            found.extend(each(ids, || Reason::Alias(host.clone())));
        } else if let Some((domain, ids)) = parent(reversed).and_then(|beyond| nearest(&self.wildcard_aliases, beyond))
        {
            found.extend(each(ids, || Reason::WildcardAlias { host: host.clone(), alias: star(domain) }));
        }
        let own = self.own.get(reversed).into_iter();
        found.extend(own.flat_map(|ids| each(ids, || Reason::OwnName(host.clone()))));
        let origins = self.origins.get(&reverse(canonical_origin(host.as_str()))).into_iter();
        found.extend(origins.flat_map(|ids| each(ids, || Reason::Origin(host.clone()))));
        found
    }

    fn serving_wildcard(
        &self,
        host: &Host,
        depth: Depth,
        reversed: &str,
        except: &BTreeSet<Host>,
    ) -> Vec<(&DistributionId, Reason)> {
        let is_ours = |text: &str| {
            except.is_empty() || Host::parse(text).is_ok_and(|name| !is_excepted(&name.at_any_depth(), except))
        };
        let mut found = Vec::new();
        for (name, ids) in beneath(&self.aliases, reversed, depth) {
            let alias = reverse(name);
            if is_ours(&alias) {
                found.extend(each(ids, || Reason::AliasBeneath { host: host.clone(), alias: alias.clone() }));
            }
        }
        if depth == Depth::Any {
            for (domain, ids) in beneath(&self.wildcard_aliases, reversed, depth) {
                let alias = star(domain);
                if is_ours(&alias) {
                    found.extend(each(ids, || Reason::AliasBeneath { host: host.clone(), alias: alias.clone() }));
                }
            }
        }
        // The names that no longer alias takes: there are always some, since labels cannot be exhausted.
        if let Some((domain, ids)) = nearest(&self.wildcard_aliases, reversed) {
            found.extend(each(ids, || Reason::WildcardAlias { host: host.clone(), alias: star(domain) }));
        }
        for (name, ids) in beneath(&self.origins, reversed, depth) {
            let origin = reverse(name);
            if is_ours(&origin) {
                found.extend(each(ids, || Reason::OriginBeneath { host: host.clone(), origin: origin.clone() }));
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
    // Bounded by the labels of a host: at most 127.
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
mod tests;

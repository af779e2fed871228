//! The rights of a namespace's owners to purge (decision 39): all of them may write annotations and routes into their
//! own namespace, and none may use up what all share.
//!
//! Bounds hold always, and the operator can raise them for namespaces by name. Which distributions of a decided plan lie beyond
//! them is a function of the plan, the listing and the settings, so every executor comes to the same ([`beyond`]).
//!
//! Not for how often and with how many paths: that is `purge`.

use std::collections::{BTreeMap, BTreeSet};

use crate::workloads::workload::{ANNOTATION_PREFIX, Workload};
use kernel::id::WorkloadId;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;

/// Distributions that one workload may purge. Most have one; ten is a shop with its country sites.
pub const DISTRIBUTIONS_MAX: u32 = 10;

/// Distributions that one wildcard host may reach. CloudFront takes a wildcard as an alias too, so that one is the rule.
pub const BY_WILDCARD_MAX: u32 = 5;

/// Paths that a namespace may send to one distribution in an hour; beyond it everything is purged, which is one path. CloudFront
/// bills 0.005 USD for each after the first thousand of a month
/// (<https://aws.amazon.com/cloudfront/pricing/>): this is 5 USD an hour, and purges of everything at half a creation a second
/// 9 USD at most.
pub const PATHS_PER_HOUR: u32 = 1_000;

/// Purges of one distribution that a namespace may have in an hour; then they are a minute apart, and each covers what waits. A release
/// each minute is more than people make, and each purge empties the cache of a distribution: at 0.005 USD each that is 7.20 USD a day.
pub const PURGES_PER_HOUR: u32 = 60;

/// Paths of one invalidation; more become the longest beginnings they have in common.
pub const PATHS_SENT_MAX: usize = 10;

/// The operator's word on who may purge what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tenants {
    /// The default rights of namespaces.
    pub default: Tenancy,
    /// The rules that raise the bounds of some namespaces.
    pub allowed: Vec<Allowance>,
}

/// The rights of namespaces over hosts and distributions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tenancy {
    /// Namespaces work together: what their annotations and routes say is taken as it is, within the bounds.
    #[default]
    Trusted,
    /// A namespace purges what its own accepted routes serve, and only the paths they take there.
    Own,
}

/// A rule that raises the bounds of some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// These: names, or beginnings of names that end in a star.
    pub namespaces: BTreeSet<String>,
    /// Hosts they may purge whole, no matter who routes them. Wildcards cover any depth, and the names themselves.
    pub hosts: BTreeSet<Host>,
    /// Distributions they may purge by naming them.
    pub distributions: BTreeSet<DistributionId>,
    /// Distributions that one workload, or one wildcard of it, may purge.
    pub distributions_max: Option<u32>,
    /// Paths to one distribution in an hour.
    pub paths_per_hour: Option<u32>,
    /// Purges of one distribution in an hour.
    pub purges_per_hour: Option<u32>,
    /// Namespaces that `allclear.dev/group-name` of their workloads may name.
    pub group_names: BTreeSet<String>,
}

/// The bounds of one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`DISTRIBUTIONS_MAX`].
    pub distributions: u32,
    /// See [`BY_WILDCARD_MAX`].
    pub by_wildcard: u32,
    /// See [`PATHS_PER_HOUR`].
    pub paths_per_hour: u32,
    /// See [`PURGES_PER_HOUR`].
    pub purges_per_hour: u32,
}

/// A name in the group that is of this other namespace, and not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {ANNOTATION_PREFIX}group-name: {0} is another namespace; the operator can allow it by group_names in tenants.allow"
)]
pub struct ForeignName(pub String);

impl Tenants {
    /// The bounds of a namespace: for each the most generous rule that applies, and at least the default.
    pub fn limits(&self, namespace: &str) -> Limits {
        let allowed = || self.allowed.iter().filter(|allowance| allowance.is_for(namespace));
        let most = allowed().filter_map(|allowance| allowance.distributions_max).max();
        let paths = allowed().filter_map(|allowance| allowance.paths_per_hour).max();
        let purges = allowed().filter_map(|allowance| allowance.purges_per_hour).max();
        Limits {
            distributions: most.map_or(DISTRIBUTIONS_MAX, |most| most.max(DISTRIBUTIONS_MAX)),
            by_wildcard: most.map_or(BY_WILDCARD_MAX, |most| most.max(BY_WILDCARD_MAX)),
            paths_per_hour: paths.map_or(PATHS_PER_HOUR, |paths| paths.max(PATHS_PER_HOUR)),
            purges_per_hour: purges.map_or(PURGES_PER_HOUR, |purges| purges.max(PURGES_PER_HOUR)),
        }
    }

    /// Whether the operator has given these hosts to a namespace.
    pub fn allows_host(&self, namespace: &str, host: &Host) -> bool {
        let mut given = self.allowed.iter().filter(|one| one.is_for(namespace)).flat_map(|one| &one.hosts);
        given.any(|given| given.covers(host))
    }

    /// Whether a namespace may purge this distribution by naming it.
    pub fn allows_distribution(&self, namespace: &str, distribution: &DistributionId) -> bool {
        let mut given = self.allowed.iter().filter(|one| one.is_for(namespace));
        self.default == Tenancy::Trusted || given.any(|one| one.distributions.contains(distribution))
    }

    /// Whether the site of a workload is what it says itself: its hosts, or distributions that it may name.
    pub fn need_no_search(&self, workload: &Workload) -> bool {
        workload.tuning.hosts.is_some() || self.allows_named(workload)
    }

    /// Whether a workload names distributions, and may name each of them.
    pub fn allows_named(&self, workload: &Workload) -> bool {
        let named = workload.tuning.distributions.as_ref();
        named.is_some_and(|named| named.iter().all(|id| self.allows_distribution(&workload.id.namespace, id)))
    }

    /// The name of a workload in its group: its own name, or the one that its annotation asks for.
    ///
    /// # Errors
    /// Where that is of another namespace and the operator has not allowed it.
    pub fn group_name(&self, workload: &Workload) -> Result<WorkloadId, ForeignName> {
        let Workload { id, tuning, .. } = workload;
        let Some(name) = tuning.group_name.as_ref().map(|name| name.of(id)) else { return Ok(id.clone()) };
        let mut allowed = self.allowed.iter().filter(|one| one.is_for(&id.namespace));
        if name.namespace == id.namespace || allowed.any(|one| is_among(&one.group_names, &name.namespace)) {
            return Ok(name);
        }
        Err(ForeignName(name.namespace))
    }

    /// The settings that must be equal in all members, in words: bounds on distributions, which every executor applies
    /// to the same plan. Budgets are each member's own.
    pub fn shared(&self) -> String {
        let one = |allowance: &Allowance| {
            let most = allowance.distributions_max?;
            let names: Vec<&str> = allowance.namespaces.iter().map(String::as_str).collect();
            Some(format!("{}: {most}", names.join(" ")))
        };
        self.allowed.iter().filter_map(one).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    }
}

impl Allowance {
    /// Whether it is about this namespace.
    pub fn is_for(&self, namespace: &str) -> bool {
        is_among(&self.namespaces, namespace)
    }
}

/// Whether a namespace is among these names and beginnings of names.
fn is_among(names: &BTreeSet<String>, namespace: &str) -> bool {
    names.iter().any(|name| match name.strip_suffix('*') {
        Some(beginning) => namespace.starts_with(beginning),
        None => name == namespace,
    })
}

/// By what a plan comes to a distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reached {
    /// By these of its hosts.
    pub hosts: BTreeSet<Host>,
    /// By name, or by a load balancer.
    pub otherwise: bool,
}

impl Reached {
    /// By this host, or else by name or by a load balancer.
    pub fn note(&mut self, host: Option<&Host>) {
        match host {
            Some(host) => drop(self.hosts.insert(host.clone())),
            None => self.otherwise = true,
        }
    }
}

/// The distributions beyond the bounds, with reasons. The first by id are purged: all members leave out the same ones.
pub fn beyond(found: &BTreeMap<DistributionId, Reached>, limits: Limits) -> BTreeMap<DistributionId, String> {
    let most = |bound: u32| usize::try_from(bound).unwrap_or(usize::MAX);
    let mut by_wildcard: BTreeMap<&Host, usize> = BTreeMap::new();
    let mut beyond = BTreeMap::new();
    let mut left = most(limits.distributions);
    for (distribution, reached) in found {
        let mut within = reached.otherwise;
        let mut beyond_wildcard = None;
        for host in &reached.hosts {
            let count = by_wildcard.entry(host).or_default();
            *count += 1;
            if !host.is_wildcard() || *count <= most(limits.by_wildcard) {
                within = true;
            } else {
                beyond_wildcard = Some(host);
            }
        }
        let why = match beyond_wildcard.filter(|_| !within) {
            Some(host) => format!(
                "beyond the {} distributions that the wildcard {host} may reach; the operator can allow more by \
                 distributions_max in tenants.allow",
                limits.by_wildcard
            ),
            None if left == 0 => format!(
                "beyond the {} distributions that one workload may purge; the operator can allow more by \
                 distributions_max in tenants.allow",
                limits.distributions
            ),
            None => {
                left -= 1;
                continue;
            }
        };
        beyond.insert(distribution.clone(), why);
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> DistributionId {
        format!("E{number:03}").parse().unwrap()
    }

    fn by(hosts: &[&str], otherwise: bool) -> Reached {
        Reached { hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(), otherwise }
    }

    /// So many distributions and paths, and a tenth as many purges as paths.
    fn allowing(namespaces: &[&str], most: u32, paths: u32) -> Tenants {
        let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
        let (distributions_max, paths_per_hour, purges_per_hour) = (Some(most), Some(paths), Some(paths / 10));
        let allowance =
            Allowance { namespaces, distributions_max, paths_per_hour, purges_per_hour, ..Allowance::default() };
        Tenants { allowed: vec![allowance], ..Tenants::default() }
    }

    fn left_out(found: &BTreeMap<DistributionId, Reached>, limits: Limits) -> Vec<String> {
        beyond(found, limits).into_keys().map(|id| id.to_string()).collect()
    }

    // Faults: T4
    #[test]
    fn of_a_wildcard_over_forty_four_distributions_the_first_five_are_left() {
        let found: BTreeMap<_, _> = (0..44).map(|n| (id(n), by(&["**.example.com"], false))).collect();
        let out = beyond(&found, Tenants::default().limits("shop"));
        assert_eq!(out.len(), 39);
        assert!(out.keys().next() == Some(&id(5)));
        assert!(out.values().all(|why| why.contains("**.example.com")));
    }

    #[test]
    fn what_a_plain_host_or_a_name_reaches_counts_for_the_workload_and_not_for_the_wildcard() {
        let mut found: BTreeMap<_, _> = (0..6).map(|n| (id(n), by(&["**.example.com"], false))).collect();
        found.insert(id(6), by(&["**.example.com", "www.example.com"], false));
        found.insert(id(7), by(&[], true));
        assert_eq!(left_out(&found, Tenants::default().limits("shop")), ["E005"]);
        let named: BTreeMap<_, _> = (0..12).map(|n| (id(n), by(&[], true))).collect();
        assert_eq!(left_out(&named, Tenants::default().limits("shop")), ["E010", "E011"]);
    }

    #[test]
    fn the_operator_raises_bounds_for_namespaces_by_name_and_never_lowers_them() {
        let tenants = allowing(&["shop", "team-a-*"], 12, 5_000);
        for (namespace, distributions, by_wildcard, paths_per_hour, purges_per_hour) in [
            ("shop", 12, 12, 5_000, 500),
            ("team-a-web", 12, 12, 5_000, 500),
            ("team-b", 10, 5, 1_000, 60),
            ("shopping", 10, 5, 1_000, 60),
        ] {
            let limits = Limits { distributions, by_wildcard, paths_per_hour, purges_per_hour };
            assert_eq!(tenants.limits(namespace), limits, "{namespace}");
        }
        let less = allowing(&["shop"], 1, 1).limits("shop");
        assert_eq!(less, Tenants::default().limits("shop"));
    }

    #[test]
    fn what_members_have_to_agree_on_does_not_depend_on_the_order_of_the_file() {
        let (one, other) = (allowing(&["a", "b"], 12, 2_000).allowed, allowing(&["c"], 20, 3_000).allowed);
        let both = |first: &[Allowance], second: &[Allowance]| {
            Tenants { allowed: [first, second].concat(), ..Tenants::default() }.shared()
        };
        assert_eq!(both(&one, &other), both(&other, &one));
        assert_eq!(allowing(&["a"], 12, 2_000).shared(), allowing(&["a"], 12, 9_000).shared());
        assert_ne!(allowing(&["a"], 12, 2_000).shared(), allowing(&["a"], 13, 2_000).shared());
    }
}

//! What is known of an account, for who puts accounts together, and for people.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Catalog;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;

impl Catalog {
    /// How many distributions are known, and for how long; `None` before the first listing.
    pub fn known(&self, now: Timestamp) -> Option<(usize, Duration)> {
        let count = || self.index.iter().filter(|one| !one.id.is_of_distribution_tenant()).count();
        self.listed_at.map(|at| (count(), now.since(at)))
    }

    /// Whether the present listing has it; empty before the first.
    pub(in crate::purges) fn has(&self, distribution: &DistributionId) -> bool {
        self.index.get(distribution).is_some()
    }

    /// Whether a listing that began since then would have it, were it of this account.
    pub(in crate::purges) fn would_have(&self, distribution: &DistributionId, since: Timestamp) -> bool {
        let of_tenants = &self.distribution_tenants;
        let is_whole =
            !distribution.is_of_distribution_tenant() || (of_tenants.are_listed() && of_tenants.denied.is_none());
        self.listed_at.is_some() && self.known_from >= since && is_whole
    }

    /// Whether the present listing has distributions for these hosts and load balancers, none of which is gone.
    pub(in crate::purges) fn knows<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a Host>,
        origins: impl IntoIterator<Item = &'a str>,
        except: &BTreeSet<Host>,
    ) -> bool {
        let found = self.index.matches_except(hosts, origins, except);
        let is_all = found.unmatched.is_empty() && found.unmatched_origins.is_empty();
        is_all && !found.by_distribution.keys().any(|id| self.gone.contains(id))
    }

    /// Why the last listing failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.list.reason()
    }

    /// What is wrong with the listings and the cache tags, in words.
    pub(in crate::purges) fn troubles(&self, now: Timestamp) -> Vec<String> {
        let unlisted = |why| format!("distribution tenants that are not known are not purged: {why}");
        let untagged = |why| format!("cache tags count as switched off, and paths are purged instead: {why}");
        let failure = self.failure().map(str::to_owned).into_iter();
        let tenants = self.distribution_tenants_denied().map(unlisted);
        failure.chain(tenants).chain(self.tags_denied().map(untagged)).chain(self.tags_missing(now)).collect()
    }

    /// Why we may not read which distributions have cache tags, if that is so.
    pub fn tags_denied(&self) -> Option<&str> {
        self.tags.denied.as_deref()
    }

    /// The distributions whose answers carry no tags, though those are switched on; in words.
    pub fn tags_missing(&self, now: Timestamp) -> impl Iterator<Item = String> {
        self.tags.missing(now, self.freshness.refresh)
    }
}

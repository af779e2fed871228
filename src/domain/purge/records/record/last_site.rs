//! A workload's last known site in brief: enough to state that it serves nothing, and to purge the hosts that
//! it had should all of that be gone.
//!
//! Not for what a vote purges: that lists its hosts itself.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::records::record::{Outcome, Record, Vote};
use kernel::id::Seq;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;

/// Hosts that a record keeps. Nearly all sites have fewer; of a larger one the distributions are kept.
pub const LAST_HOSTS_MAX: usize = 4;

/// Bytes of hosts, or of distributions, that a record keeps: it has them at rest too, and 156 records share a ConfigMap.
pub const LAST_SITE_BYTES_MAX: usize = 256;

/// A workload's last known site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastSite {
    Hosts(BTreeSet<Host>),
    /// By more than a record keeps, or by what it cannot keep. Its last purge went to these distributions, or its owner named them.
    Distributions(BTreeSet<DistributionId>),
    /// By more than a record keeps, and it has not been purged since.
    Many,
    /// By nothing, in this cluster, when this rollout looked for it.
    Nothing(Seq),
}

impl LastSite {
    /// The site in words; `None` where there was none.
    pub fn words(&self) -> Option<String> {
        fn all<T: ToString>(items: &BTreeSet<T>) -> String {
            items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
        }
        match self {
            Self::Hosts(hosts) => Some(all(hosts)),
            Self::Distributions(ids) => {
                let (tenants, distributions) = ids.iter().cloned().partition(DistributionId::is_of_distribution_tenant);
                let kinds = [("distribution", distributions), ("distribution tenant", tenants)];
                let named = kinds.iter().filter(|(_, ids): &&(&str, BTreeSet<DistributionId>)| !ids.is_empty());
                Some(named.map(|(kind, ids)| format!("{kind} {}", all(ids))).collect::<Vec<_>>().join(", "))
            }
            Self::Many => Some("more hosts than a record keeps".to_owned()),
            Self::Nothing(_) => None,
        }
    }

    /// The distributions that are kept of it, where those are.
    pub(super) const fn distributions(&self) -> Option<&BTreeSet<DistributionId>> {
        match self {
            Self::Distributions(ids) => Some(ids),
            Self::Hosts(_) | Self::Many | Self::Nothing(_) => None,
        }
    }

    /// These hosts, if a record can keep them.
    pub fn of_hosts(hosts: &[&Host]) -> Option<Self> {
        let bytes: usize = hosts.iter().map(|host| host.as_str().len()).sum();
        let fits = !hosts.is_empty() && hosts.len() <= LAST_HOSTS_MAX && bytes <= LAST_SITE_BYTES_MAX;
        fits.then(|| Self::Hosts(hosts.iter().map(|host| (*host).clone()).collect()))
    }

    /// These distributions, the first ones if there are many.
    pub fn of_distributions<'a>(ids: impl IntoIterator<Item = &'a DistributionId>) -> Option<Self> {
        let mut left = LAST_SITE_BYTES_MAX;
        let fitting = ids.into_iter().map_while(|id| {
            left = left.checked_sub(id.as_str().len())?;
            Some(id.clone())
        });
        let fitting: BTreeSet<DistributionId> = fitting.collect();
        (!fitting.is_empty()).then_some(Self::Distributions(fitting))
    }
}

impl Record {
    /// Its last known site: as is kept, or, in a record that was last written by an older program, the
    /// distributions of its newest purge.
    pub fn last_site(&self) -> Option<LastSite> {
        let newest =
            || self.history.iter().rev().find(|closed| matches!(closed.outcome, Outcome::Purged | Outcome::NoSite));
        let purged = || LastSite::of_distributions(newest()?.purges.iter().map(|(distribution, _)| distribution));
        self.site.clone().or_else(purged)
    }

    /// The hosts of that, if they are kept.
    pub fn last_hosts(&self) -> BTreeSet<Host> {
        match &self.site {
            Some(LastSite::Hosts(hosts)) => hosts.clone(),
            Some(LastSite::Distributions(_) | LastSite::Many | LastSite::Nothing(_)) | None => BTreeSet::new(),
        }
    }

    /// A vote was carried out: of a site whose hosts are not kept, its distributions are.
    pub fn note_purged(&mut self, vote: &Vote) {
        let made = matches!(vote.closed, Some(Outcome::Purged | Outcome::Partly | Outcome::PartlyOwed));
        if made && matches!(self.site, Some(LastSite::Many | LastSite::Distributions(_))) {
            self.site = LastSite::of_distributions(vote.purges.listed.keys()).or(self.site.take());
        }
    }

    /// Whether its newest rollout has looked for a site, and nothing served the workload.
    pub fn serves_nothing(&self) -> bool {
        self.site == Some(LastSite::Nothing(self.seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_tenants_are_told_apart_from_distributions() {
        for (ids, words) in [
            (&["E1", "E2"][..], "distribution E1, E2"),
            (&["dt_a", "E1", "dt_b"], "distribution E1, distribution tenant dt_a, dt_b"),
            (&["dt_a"], "distribution tenant dt_a"),
        ] {
            let ids: Vec<DistributionId> = ids.iter().map(|id| id.parse().unwrap()).collect();
            assert_eq!(LastSite::of_distributions(&ids).and_then(|site| site.words()).as_deref(), Some(words));
        }
    }
}

//! The distributions of the AWS accounts, and the distribution tenants of those that serve some, asked for when a person asks: one listing
//! of all, which says which account each is in, and what could not be listed.
//!
//! Not for which of them serve a host.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use kernel::names::account::AccountName;
use kernel::names::distribution::{Distribution, DistributionId};
use purge::ports::{Cdn, CdnError};
use purge::purges::accounts::Accounts;

pub(crate) struct Listing {
    /// All that could be listed, unless the distributions of no account could be.
    pub(crate) all: Result<Vec<Distribution>, CdnError>,
    /// Why the distribution tenants of an account are not among them, if that is so.
    pub(crate) lacks: Option<String>,
    /// Why the distributions of an account are not among them, in words, for each of which that is so.
    pub(crate) unlisted: Vec<String>,
    /// Whether accounts are told apart.
    pub(crate) is_of_several: bool,
    /// Accounts were left out that are not asked for the namespace.
    is_narrow: bool,
    homes: BTreeMap<DistributionId, AccountName>,
}

/// All that a workload of this namespace may be served by; `None`: of any.
pub(crate) async fn listing(cdn: &dyn Cdn, accounts: &Accounts, namespace: Option<&str>) -> Listing {
    let names = cdn.accounts();
    if names.is_empty() {
        return of_one(cdn).await;
    }
    let many = names.len();
    let asked = names.into_iter().filter(|name| namespace.is_none_or(|of| accounts.is_for(name, of)));
    let asked = asked.filter_map(|name| Some((cdn.account(&name)?, name)));
    let listings = join_all(asked.map(|(cdn, name)| async move { (name, of_one(cdn.as_ref()).await) })).await;
    let mut together = Listing { is_of_several: true, is_narrow: listings.len() < many, ..Listing::of(Ok(Vec::new())) };
    let (mut all, mut is_listed, mut refused) = (Vec::new(), listings.is_empty(), None);
    let mut lacks = Vec::new();
    for (name, Listing { all: listed, lacks: why, .. }) in listings {
        lacks.extend(why);
        match listed {
            Ok(listed) => {
                is_listed = true;
                let its = listed.into_iter().filter_map(|one| accounts.narrowed(&name, one));
                let its: Vec<Distribution> = its.collect();
                together.homes.extend(its.iter().map(|one| (one.id.clone(), name.clone())));
                all.extend(its);
            }
            Err(error) => {
                together.unlisted.push(format!("there may be more: {error}"));
                refused = refused.or(Some(error));
            }
        }
    }
    together.lacks = (!lacks.is_empty()).then(|| lacks.join("; "));
    together.all = match refused {
        Some(error) if !is_listed => Err(error),
        Some(_) | None => Ok(all),
    };
    together
}

/// All that one account has.
async fn of_one(cdn: &dyn Cdn) -> Listing {
    let mut all = match cdn.distributions().await {
        Ok(all) => all,
        Err(error) => return Listing::of(Err(error)),
    };
    let shared = all.iter().filter(|one| one.serves_distribution_tenants()).map(|one| one.id.clone());
    let shared: BTreeSet<DistributionId> = shared.collect();
    if shared.is_empty() {
        return Listing::of(Ok(all));
    }
    let lacks = match cdn.distribution_tenants(&shared).await {
        Ok(tenants) => {
            all.extend(tenants);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    Listing { lacks, ..Listing::of(Ok(all)) }
}

impl Listing {
    /// These of one account, and all of them.
    pub(crate) fn of(all: Result<Vec<Distribution>, CdnError>) -> Self {
        let (lacks, unlisted, homes) = (None, Vec::new(), BTreeMap::new());
        Self { all, lacks, unlisted, is_of_several: false, is_narrow: false, homes }
    }

    /// The account that a distribution is in, where accounts are told apart.
    pub(crate) fn account_of(&self, id: &DistributionId) -> Option<String> {
        self.homes.get(id).map(ToString::to_string)
    }

    /// Whether it may exist though it is not among them.
    pub(crate) fn may_lack(&self, id: &DistributionId) -> bool {
        let lacks_tenants = id.is_of_distribution_tenant() && self.lacks.is_some();
        lacks_tenants || !self.unlisted.is_empty() || self.is_narrow
    }
}

#[cfg(test)]
mod tests;

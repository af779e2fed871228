//! The account's distributions, and the distribution tenants of those that serve some, asked for when a person asks.
//!
//! Not for which of them serve a host.

use std::collections::BTreeSet;

use kernel::names::distribution::{Distribution, DistributionId};
use purge::ports::{Cdn, CdnError};

pub(crate) struct Listing {
    /// All that could be listed, unless the distributions could not be.
    pub(crate) all: Result<Vec<Distribution>, CdnError>,
    /// Why the distribution tenants are not among them, if that is so.
    pub(crate) lacks: Option<String>,
}

pub(crate) async fn listing(cdn: &dyn Cdn) -> Listing {
    let mut all = match cdn.distributions().await {
        Ok(all) => all,
        Err(error) => return Listing { all: Err(error), lacks: None },
    };
    let shared = all.iter().filter(|one| one.serves_distribution_tenants()).map(|one| one.id.clone());
    let shared: BTreeSet<DistributionId> = shared.collect();
    if shared.is_empty() {
        return Listing { all: Ok(all), lacks: None };
    }
    let lacks = match cdn.distribution_tenants(&shared).await {
        Ok(tenants) => {
            all.extend(tenants);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    Listing { all: Ok(all), lacks }
}

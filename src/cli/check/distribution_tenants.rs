//! The distribution tenants of an account, and the rights to know them: asked for only where a distribution serves some.
//!
//! Not for the rights to purge one; these are tried with those of distributions, on what a watched host reaches.

use std::collections::BTreeSet;

use super::catalog::{AWS_GET_DISTRIBUTION_TENANT, AWS_LIST_DISTRIBUTION_TENANTS, Check};
use super::report::Finding;
use super::tried::judged;
use crate::app::checking::Cloud;
use crate::looking::page::count;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::refusal::Cause;
use purge::ports::Cdn;

const BOTH: [Check; 2] = [AWS_LIST_DISTRIBUTION_TENANTS, AWS_GET_DISTRIBUTION_TENANT];

const NOT_NEEDED: &str = "not needed: no distribution is for distribution tenants only";

pub(super) fn after(other: Check) -> [Finding; 2] {
    BOTH.map(|check| check.after(other))
}

/// The distribution tenants of these distributions, as far as they are known, and what was found.
pub(super) async fn distribution_tenants(cloud: &Cloud, of: &[Distribution]) -> (Vec<Distribution>, Vec<Finding>) {
    let of = of.iter().filter(|one| one.serves_distribution_tenants()).map(|one| one.id.clone());
    let of: BTreeSet<DistributionId> = of.collect();
    if of.is_empty() {
        return (Vec::new(), BOTH.map(|check| check.good(NOT_NEEDED)).into());
    }
    let listed = match cloud.cdn.distribution_tenants(&of).await {
        Ok(listed) => listed,
        Err(error) => {
            let right = (Cause::ListDistributionTenants, None);
            let refused = judged(cloud, AWS_LIST_DISTRIBUTION_TENANTS, right, Some(error), "");
            return (Vec::new(), vec![refused, AWS_GET_DISTRIBUTION_TENANT.after(AWS_LIST_DISTRIBUTION_TENANTS)]);
        }
    };
    let many = AWS_LIST_DISTRIBUTION_TENANTS.good(count(listed.len(), "distribution tenant", "distribution tenants"));
    let domains = listed.iter().flat_map(|one| &one.aliases).filter_map(|domain| Host::parse(domain).ok());
    let asked = match domains.into_iter().find(|domain| !domain.is_wildcard()) {
        None => AWS_GET_DISTRIBUTION_TENANT.good("not tried: no distribution tenant has an active domain to ask for"),
        Some(domain) => {
            let refused = cloud.cdn.distribution_tenant(&domain).await.err();
            judged(cloud, AWS_GET_DISTRIBUTION_TENANT, (Cause::FindDistributionTenant, None), refused, domain.as_str())
        }
    };
    (listed, vec![many, asked])
}

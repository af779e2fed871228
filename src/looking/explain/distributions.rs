//! Which distributions are purged for a workload as things are, which are not, and why.

use std::collections::BTreeSet;

use crate::looking::Section;
use crate::looking::account::Listing;
use crate::looking::explain::model::{DistributionSeen, DistributionsSeen};
use kernel::names::distribution::{Distribution, DistributionId, Index, Reason};
use kernel::names::host::Host;
use purge::bounds::tenants::{Limits, Reached, Tenants, beyond};
use purge::site::Site;
use purge::workloads::workload::Workload;

/// The distributions that serve a site, or that its owner names, as far as the bounds allow.
pub(crate) fn distributions(
    workload: &Workload,
    site: &Section<Site>,
    listing: &Listing,
    tenants: &Tenants,
) -> Section<DistributionsSeen> {
    let index = listing.all.as_ref().map(|all| Index::new(all.clone()));
    if let Some(named) = workload.tuning.distributions.as_ref().filter(|_| tenants.allows_named(workload)) {
        let limits = tenants.limits(&workload.id.namespace);
        return Section::Known(named_by_owner(named, (index.ok().as_ref(), listing), limits));
    }
    let index = match index {
        Ok(index) => index,
        Err(error) => return Section::missing(error),
    };
    let site = match site {
        Section::Known(site) => site,
        Section::Missing { missing } => return Section::missing(missing),
    };
    let matches = index.matches_except(site.hosts.keys(), &site.origins, &site.except);
    let seen = |id: &DistributionId, why: Vec<String>| seen((&index, listing), id, why);
    let hosts = matches.unmatched.iter().map(ToString::to_string);
    let reached = |reasons: &Vec<Reason>| {
        let mut reached = Reached::default();
        reasons.iter().for_each(|reason| reached.note(reason.host()));
        reached
    };
    let found = matches.by_distribution.iter().map(|(id, reasons)| (id.clone(), reached(reasons))).collect();
    let beyond = beyond(&found, tenants.limits(&workload.id.namespace));
    let within = matches.by_distribution.iter().filter(|(id, _)| !beyond.contains_key(*id));
    Section::Known(DistributionsSeen {
        named: false,
        matched: within.map(|(id, why)| seen(id, why.iter().map(ToString::to_string).collect())).collect(),
        beyond: beyond.iter().map(|(id, why)| seen(id, vec![why.clone()])).collect(),
        skipped: matches.skipped.iter().map(|(id, why)| seen(id, vec![why.clone()])).collect(),
        unmatched: hosts.chain(matches.unmatched_origins.iter().cloned()).collect(),
        listed: Some(index.iter().len()),
        in_part: false,
        lacks: listing.lacks.clone(),
        unlisted: listing.unlisted.clone(),
    })
}

/// The same where not all that may name its hosts could be read; hosts do not matter where its owner names distributions.
pub(super) fn in_part(section: Section<DistributionsSeen>, is_so: bool) -> Section<DistributionsSeen> {
    match section {
        Section::Known(seen) => Section::Known(DistributionsSeen { in_part: is_so && !seen.named, ..seen }),
        Section::Missing { missing } => Section::Missing { missing },
    }
}

fn seen((index, listing): (&Index, &Listing), id: &DistributionId, why: Vec<String>) -> DistributionSeen {
    DistributionSeen {
        id: id.to_string(),
        account: listing.account_of(id),
        domain: index.get(id).and_then(own_name),
        why,
    }
}

/// Its own domain name; a distribution tenant has none.
fn own_name(distribution: &Distribution) -> Option<String> {
    Some(distribution.domain_name.clone()).filter(|name| !name.is_empty())
}

/// The distributions that serve one host, whoever is behind it.
pub(crate) fn serving(host: &Host, listing: &Listing) -> Section<DistributionsSeen> {
    let index = match &listing.all {
        Ok(all) => Index::new(all.clone()),
        Err(error) => return Section::missing(error),
    };
    let matches = index.matches([host], [""; 0]);
    let words = |reasons: &Vec<Reason>| reasons.iter().map(ToString::to_string).collect();
    let seen = |id: &DistributionId, why: Vec<String>| seen((&index, listing), id, why);
    Section::Known(DistributionsSeen {
        named: false,
        matched: matches.by_distribution.iter().map(|(id, why)| seen(id, words(why))).collect(),
        beyond: Vec::new(),
        skipped: matches.skipped.iter().map(|(id, why)| seen(id, vec![why.clone()])).collect(),
        unmatched: matches.unmatched.iter().map(ToString::to_string).collect(),
        listed: Some(index.iter().len()),
        in_part: false,
        lacks: listing.lacks.clone(),
        unlisted: listing.unlisted.clone(),
    })
}

/// Owners may name distributions of every account.
fn named_by_owner(
    named: &BTreeSet<DistributionId>,
    (index, listing): (Option<&Index>, &Listing),
    limits: Limits,
) -> DistributionsSeen {
    let seen = |id: &DistributionId| {
        let known = index.map(|index| index.get(id));
        let why = match known {
            Some(None) if listing.may_lack(id) => "annotation distribution-ids",
            Some(None) if listing.is_of_several => {
                "annotation distribution-ids; no AWS account has such a distribution"
            }
            Some(None) => "annotation distribution-ids; this account has no such distribution",
            Some(Some(_)) | None => "annotation distribution-ids",
        };
        let domain = known.flatten().and_then(own_name);
        DistributionSeen { id: id.to_string(), account: listing.account_of(id), domain, why: vec![why.to_owned()] }
    };
    let by_name = Reached { otherwise: true, ..Reached::default() };
    let beyond = beyond(&named.iter().map(|id| (id.clone(), by_name.clone())).collect(), limits);
    let left_out = |(id, why): (&DistributionId, &String)| DistributionSeen { why: vec![why.clone()], ..seen(id) };
    DistributionsSeen {
        named: true,
        matched: named.iter().filter(|id| !beyond.contains_key(*id)).map(seen).collect(),
        beyond: beyond.iter().map(left_out).collect(),
        skipped: Vec::new(),
        unmatched: Vec::new(),
        listed: index.map(|index| index.iter().len()),
        in_part: false,
        lacks: None,
        unlisted: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looking::explain::find_site;
    use crate::looking::explain::text::distribution_lines;
    use crate::looking::tests::web;
    use purge::site::Gathered;

    #[test]
    fn none_is_said_of_the_hosts_that_could_be_read() {
        let site = Section::Known(find_site(&web(), &Gathered::default()));
        let listing = Listing::of(Ok(Vec::new()));
        let none = distributions(&web(), &site, &listing, &Tenants::default());
        for (is_so, words) in [(false, "none"), (true, "none serves the hosts that could be read")] {
            let seen = in_part(none.clone(), is_so);
            assert_eq!(seen.known().map(distribution_lines), Some(vec![words.to_owned()]));
        }
    }
}

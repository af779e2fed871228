//! Which caches between would be asked before a purge of all that may be purged. By routes, or for paths that somebody asks for, a purge may
//! be of less, and then they are asked for no more than that.

use std::collections::BTreeMap;

use super::model::SiteSeen;
use crate::looking::Section;
use crate::looking::page::count;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use purge::bounds::policy::Policy;
use purge::caches::demand::{Demand, demands};
use purge::records::record::ByHost;
use purge::rollouts::rollout::FoundSite;
use purge::site::Site;
use purge::workloads::workload::Workload;

/// A site as it is shown, with the caches that have pages of it.
pub(super) fn beside(
    seen: SiteSeen,
    (site, narrow): (&Site, &BTreeMap<Host, PathSet>),
    workload: &Section<&Workload>,
    policy: &Policy,
) -> Section<SiteSeen> {
    let extent = workload.known().map_or(&policy.paths, |workload| policy.extent_of(workload));
    let found = FoundSite {
        hosts: site.hosts.keys().cloned().collect(),
        origins: site.origins.clone(),
        except: site.except.clone(),
        narrow: narrow.clone(),
        ..FoundSite::default()
    };
    let demands = demands(&policy.caches, &found.scope(&extent.at_most(), &ByHost::new()));
    Section::Known(SiteSeen { caches: demands.iter().map(line).collect(), ..seen })
}

fn line(Demand { cache, requests, unasked }: &Demand) -> String {
    let method = cache.method.name();
    let asked = match requests.len() {
        0 => "not asked".to_owned(),
        all => format!(
            "asked before a purge, by {}",
            count(all, &format!("{method} to each endpoint"), &format!("{method}s to each endpoint"))
        ),
    };
    let not = unasked.as_ref().map_or_else(String::new, |what| format!("; not for {what}"));
    format!("{cache}: {asked}{not}")
}

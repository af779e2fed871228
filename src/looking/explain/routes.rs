//! What is purged of a workload's hosts, and by which paths routes lead there: what is purged where that is asked for, and what would be
//! elsewhere.
//!
//! Not for which paths those are; that is [`purge::site::Routed`].

use std::sync::Arc;

use super::model::{PathsSeen, RoutedSeen};
use super::source;
use crate::looking::Section;
use purge::bounds::policy::Policy;
use purge::ports::PortError;
use purge::site::{Gathered, RouteClaim, Routed, Site};
use purge::workloads::workload::Workload;

/// What was read of the cluster.
type Read<'a> = (&'a Section<Site>, &'a Result<Arc<Gathered>, PortError>, &'a Result<Arc<Vec<RouteClaim>>, PortError>);

pub(super) fn paths(workload: &Workload, policy: &Policy, read: Read<'_>) -> PathsSeen {
    let extent = policy.extent_of(workload);
    let mut routes = routed(workload, read);
    if !extent.wants_routes() {
        // That no less would be purged is no news.
        routes.retain(|seen| seen.whole.is_none());
    }
    PathsSeen {
        items: extent.words(),
        from: source(workload.tuning.paths.is_some()),
        by_routes: extent.wants_routes(),
        routes,
    }
}

fn routed(workload: &Workload, (site, facts, claims): Read<'_>) -> Vec<RoutedSeen> {
    let whole = |host: &str, why: String| RoutedSeen { host: host.to_owned(), paths: Vec::new(), whole: Some(why) };
    if workload.tuning.names_its_site() {
        let why = "its owner names its hosts or distributions, so no routes are looked at";
        return vec![whole("all of it", why.to_owned())];
    }
    // A part that is missing says so in its own place.
    let (Section::Known(site), Ok(facts)) = (site, facts) else { return Vec::new() };
    let why = claims.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let claims = claims.as_ref().map(|claims| claims.as_slice()).map_err(|_| why.as_str());
    let seen = |(host, part): (String, Routed)| match part {
        Routed::All(why) => whole(&host, why),
        Routed::Only(paths) => {
            let paths = paths.iter().map(ToString::to_string).collect();
            RoutedSeen { host, paths, whole: None }
        }
    };
    facts
        .routed(workload.pods(), site, claims)
        .into_iter()
        .map(|(host, part)| (host.to_string(), part))
        .map(seen)
        .collect()
}

/// The lines of the section.
pub(super) fn lines(paths: &PathsSeen) -> Vec<String> {
    let PathsSeen { items, from, by_routes, routes } = paths;
    let line = |seen: &RoutedSeen| match &seen.whole {
        Some(why) => format!("{}: purged whole: {why}", seen.host),
        None => {
            let (host, paths) = (&seen.host, seen.paths.join(" "));
            // The first purge by routes is of everything: nobody knows by which paths pages were kept before.
            let would = if *by_routes {
                ""
            } else {
                "; with allclear.dev/paths: routes, all purges but the first are of these"
            };
            format!("{host}: routes lead here by {paths} alone{would}")
        }
    };
    let first = format!("{} (from the {from})", items.join(", "));
    std::iter::once(first).chain(routes.iter().map(line)).collect()
}

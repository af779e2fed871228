//! Which Gateways a look-up reads. Tenants name them, and what they write becomes part of a request's path: so it is checked
//! first, and not more is read than a few (T15).
//!
//! Not for what a Gateway says; that is `gateway`.

use std::collections::BTreeSet;

use apiserver::is_object_name;
use purge::site::{Bulky, ParentFact, ParentKind, Room, RouteFact};

/// Most Gateways read for one look-up. A cluster has a few; eight at a time, they take a tenth of a second.
const GATEWAYS_MAX: usize = 64;

/// Characters of a wrong name that are repeated.
const SHOWN_CHARS_MAX: usize = 60;

/// Takes the parents out of a route that no object can be, and tells it.
pub(super) fn reject_parents(route: &mut RouteFact, room: &mut Room) {
    let (good, bad): (Vec<ParentFact>, Vec<ParentFact>) = std::mem::take(&mut route.parents)
        .into_iter()
        .partition(|parent| is_object_name(&parent.namespace) && is_object_name(&parent.name));
    route.parents = good;
    if let Some(first) = bad.first() {
        let shown: String = format!("{}/{}", first.namespace, first.name).chars().take(SHOWN_CHARS_MAX).collect();
        let more = bad.len() - 1;
        room.note(route.place(), format!("its parent {shown:?} is no name of an object, nor are {more} more"));
    }
}

/// Namespaces and names of the Gateways that have accepted these routes; those of routes of this namespace first.
pub(super) fn wanted(namespace: &str, routes: &[RouteFact], room: &mut Room) -> Vec<(String, String)> {
    let mut known = BTreeSet::new();
    let mut wanted: Vec<(bool, &str, &str)> = Vec::new();
    for home in [true, false] {
        for parent in
            routes.iter().filter(|route| (route.namespace == namespace) == home).flat_map(|route| &route.parents)
        {
            let name = (parent.namespace.as_str(), parent.name.as_str());
            if parent.accepted && parent.kind == ParentKind::Gateway && known.insert(name) {
                wanted.push((!home, name.0, name.1));
            }
        }
    }
    wanted.sort_unstable();
    if let Some((_, space, name)) = wanted.get(GATEWAYS_MAX) {
        let why = format!(
            "{} Gateways are not looked at, the first is {space}/{name}: {GATEWAYS_MAX} are read; their routes serve their own hosts",
            wanted.len() - GATEWAYS_MAX
        );
        room.note(format!("routes of {namespace}"), why);
    }
    wanted.into_iter().take(GATEWAYS_MAX).map(|(_, space, name)| (space.to_owned(), name.to_owned())).collect()
}

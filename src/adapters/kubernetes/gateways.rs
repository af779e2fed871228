//! Which Gateways a look-up reads. Tenants name them, and what they write becomes part of a request's path: so it is checked
//! first, and not more is read than a few (T15).
//!
//! Not for what a Gateway says; that is `gateway`.

use std::collections::BTreeSet;

use domain::site::{Bulky, ParentFact, ParentKind, Room, RouteFact};

/// Most Gateways read for one look-up. A cluster has a few; eight at a time, they take a tenth of a second.
const GATEWAYS_MAX: usize = 64;

/// Most characters of a name (RFC 1123, as Kubernetes reads it).
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>
const NAME_CHARS_MAX: usize = 253;

/// Characters of a wrong name that are repeated.
const SHOWN_CHARS_MAX: usize = 60;

/// Whether an object, or a namespace, can have this name: labels of lower-case letters, digits and hyphens inside, with dots
/// between them.
pub(super) fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(inside)
    };
    text.len() <= NAME_CHARS_MAX && text.split('.').all(is_label)
}

/// Takes the parents out of a route that no object can be, and tells it.
pub(super) fn reject_parents(route: &mut RouteFact, room: &mut Room) {
    let (good, bad): (Vec<ParentFact>, Vec<ParentFact>) = std::mem::take(&mut route.parents)
        .into_iter()
        .partition(|parent| is_name(&parent.namespace) && is_name(&parent.name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_api_server_takes_for_one() {
        for good in ["edge", "edge-1.infra", "0", &"a".repeat(NAME_CHARS_MAX)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "../x", "A", "a_b", "-a", "a-", "a..b", "a b", "a?watch=1", "%2e", "é", "a\n"]
        {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name(&"a".repeat(NAME_CHARS_MAX + 1)));
    }
}

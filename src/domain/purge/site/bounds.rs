//! How much of what a tenant writes is kept: names are counted as objects are read, and what there is no room for is left out
//! and reported, never silently (T2).
//!
//! A name is a host, a Service, a label, or another text; a long one counts once more for each 256 bytes. What is cut stays
//! good for the names before the cut. Not for what the names mean.

use std::collections::BTreeMap;

use super::facts::{GatewayFact, GrantFact, IngressFact, IngressRule, RouteFact, ServiceFact};
use super::way::Way;

/// Most names of one object: 5,000 hosts with a Service each, five times what a site has room for.
pub const OBJECT_NAMES_MAX: usize = 10_000;

/// Most names of one namespace: about 8 MB of them, which are searched in a fraction of a second.
pub const NAMESPACE_NAMES_MAX: usize = 50_000;

/// Most names of all other namespaces, and of each of them. They are only compared with, and cost 10 MB at most.
pub const OTHERS_NAMES_MAX: usize = 100_000;
/// See [`OTHERS_NAMES_MAX`].
pub const OTHERS_NAMESPACE_NAMES_MAX: usize = 10_000;

/// Most objects that are named for what is left out of them.
const NOTES_MAX: usize = 20;

/// Bytes of a text that count as one name.
const NAME_BYTES: usize = 256;

/// The remedy for an object that is too big.
const CURE: &str = "split it, or name the hosts of a workload in its annotation allclear.dev/hosts";

/// An object with names that can be left out.
pub trait Bulky {
    /// Its kind, namespace and name.
    fn place(&self) -> String;
    fn space(&self) -> &str;
    /// Its own cost, without any name that can be left out.
    fn base(&self) -> usize;
    /// Leaves out the names beyond `room`, which becomes smaller by what is kept. Says how many were left out.
    fn cut(&mut self, room: &mut usize) -> usize;
}

#[derive(Clone, Debug)]
pub struct Room {
    left: usize,
    object_max: usize,
    space_max: usize,
    spaces: BTreeMap<String, usize>,
    notes: Vec<(String, String)>,
    more: usize,
}

impl Room {
    /// For the objects of one namespace.
    #[must_use]
    pub fn of_one() -> Self {
        Self::new(NAMESPACE_NAMES_MAX, NAMESPACE_NAMES_MAX)
    }

    /// For the objects of all other namespaces.
    #[must_use]
    pub fn of_others() -> Self {
        Self::new(OTHERS_NAMES_MAX, OTHERS_NAMESPACE_NAMES_MAX)
    }

    fn new(left: usize, space_max: usize) -> Self {
        let spaces = BTreeMap::new();
        Self { left, object_max: OBJECT_NAMES_MAX.min(space_max), space_max, spaces, notes: Vec::new(), more: 0 }
    }

    /// Cuts an object to the room there is; false if there is none at all. `unread` are names that were not even read.
    pub fn admit(&mut self, object: &mut impl Bulky, unread: usize) -> bool {
        let used = self.spaces.get(object.space()).copied().unwrap_or_default();
        let free = self.left.min(self.space_max.saturating_sub(used));
        let room = free.min(self.object_max);
        let base = object.base();
        if base > room {
            let why = format!("it is left out: {NAMESPACE_NAMES_MAX} names of a namespace are read; {CURE}");
            self.note(object.place(), why);
            return false;
        }
        let mut rest = room - base;
        let out = object.cut(&mut rest) + unread;
        let kept = room - rest;
        self.left = self.left.saturating_sub(kept);
        // No allocation for a namespace that is known.
        match self.spaces.get_mut(object.space()) {
            Some(used) => *used += kept,
            None => drop(self.spaces.insert(object.space().to_owned(), kept)),
        }
        if out > 0 {
            let max = self.object_max;
            let why = format!(
                "{out} of its names are left out: {max} of an object and {} of a namespace are read; {CURE}",
                self.space_max
            );
            self.note(object.place(), why);
        }
        true
    }

    /// Tells that something is left out.
    pub fn note(&mut self, place: String, why: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push((place, why));
        } else {
            self.more += 1;
        }
    }

    /// The omissions, with reasons.
    #[must_use]
    pub fn notes(self) -> Vec<(String, String)> {
        let more = (self.more > 0).then(|| ("others".to_owned(), format!("so it is with {} more", self.more)));
        self.notes.into_iter().chain(more).collect()
    }
}

/// The cost of a text.
fn cost(text: &str) -> usize {
    1 + text.len() / NAME_BYTES
}

fn way_cost(way: &Way) -> usize {
    match way {
        Way::Exact(path) | Way::Prefix(path) => cost(path),
        Way::Expression | Way::OfController => 1,
    }
}

/// Cuts a list where the first does not fit.
fn cut<T>(list: &mut Vec<T>, room: &mut usize, cost: impl Fn(&T) -> usize) -> usize {
    let mut kept = 0;
    for one in list.iter() {
        let Some(rest) = room.checked_sub(cost(one)) else {
            // Smaller ones behind it are not kept either: the kept part is a beginning, which words can describe.
            *room = 0;
            break;
        };
        *room = rest;
        kept += 1;
    }
    let out = list.len() - kept;
    list.truncate(kept);
    list.shrink_to_fit();
    out
}

fn cut_annotations(annotations: &mut BTreeMap<String, String>, room: &mut usize) -> usize {
    let mut out = 0;
    annotations.retain(|_, value| {
        let names = value.bytes().filter(|byte| *byte == b',').count() + cost(value);
        let fits = names <= *room;
        *room -= if fits { names } else { 0 };
        out += if fits { 0 } else { names };
        fits
    });
    out
}

fn texts(list: &mut Vec<String>, room: &mut usize) -> usize {
    cut(list, room, |text| cost(text))
}

impl Bulky for ServiceFact {
    fn place(&self) -> String {
        format!("Service {}/{}", self.namespace, self.name)
    }

    fn space(&self) -> &str {
        &self.namespace
    }

    // A selector without one of its labels would select more.
    fn base(&self) -> usize {
        let name = self.external_name.as_deref().map_or(0, cost);
        1 + name + self.selector.iter().map(|(key, value)| cost(key) + cost(value)).sum::<usize>()
    }

    fn cut(&mut self, room: &mut usize) -> usize {
        cut_annotations(&mut self.annotations, room)
    }
}

impl Bulky for IngressFact {
    fn place(&self) -> String {
        format!("Ingress {}/{}", self.namespace, self.name)
    }

    fn space(&self) -> &str {
        &self.namespace
    }

    fn base(&self) -> usize {
        1 + self.class.as_deref().map_or(0, cost)
    }

    fn cut(&mut self, room: &mut usize) -> usize {
        let rule = |rule: &IngressRule| {
            // The first path of each Service comes with it.
            let ways =
                rule.ways.iter().map(|(_, way)| way_cost(way)).sum::<usize>().saturating_sub(rule.backends.len());
            rule.host.as_deref().map_or(1, cost) + rule.backends.iter().map(|name| cost(name)).sum::<usize>() + ways
        };
        // Each rule counts once for each load balancer, so those come first: there are one or two.
        let out = texts(&mut self.load_balancers, room);
        let scopes = self.load_balancers.len().max(1);
        let out = out + cut(&mut self.rules, room, |one| rule(one).saturating_mul(scopes));
        out + texts(&mut self.tls_hosts, room) + cut_annotations(&mut self.annotations, room)
    }
}

impl Bulky for RouteFact {
    fn place(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    fn space(&self) -> &str {
        &self.namespace
    }

    fn base(&self) -> usize {
        1
    }

    fn cut(&mut self, room: &mut usize) -> usize {
        let out = texts(&mut self.hostnames, room);
        let out = out + cut(&mut self.backends, room, |(space, name)| cost(space) + cost(name));
        let out = out + cut(&mut self.ways, room, |(_, way)| way_cost(way));
        let out = out + cut(&mut self.parents, room, |parent| cost(&parent.namespace) + cost(&parent.name));
        out + cut_annotations(&mut self.annotations, room)
    }
}

impl Bulky for GrantFact {
    fn place(&self) -> String {
        format!("ReferenceGrant in {}", self.namespace)
    }

    fn space(&self) -> &str {
        &self.namespace
    }

    // Of a list of Services nothing can be missing: one that is, is not granted.
    fn base(&self) -> usize {
        1 + self.services.iter().flatten().map(|name| cost(name)).sum::<usize>()
    }

    fn cut(&mut self, room: &mut usize) -> usize {
        cut(&mut self.from, room, |(_, space)| cost(space))
    }
}

impl Bulky for GatewayFact {
    fn place(&self) -> String {
        format!("Gateway {}/{}", self.namespace, self.name)
    }

    fn space(&self) -> &str {
        &self.namespace
    }

    fn base(&self) -> usize {
        1
    }

    fn cut(&mut self, room: &mut usize) -> usize {
        let out = texts(&mut self.addresses, room);
        out + cut(&mut self.listeners, room, |one| 1 + one.hostname.as_deref().map_or(0, cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ingress(namespace: &str, hosts: usize) -> IngressFact {
        let rule = |at: usize| IngressRule { host: Some(format!("h{at}.example.com")), ..IngressRule::default() };
        IngressFact {
            namespace: namespace.into(),
            name: "big".into(),
            rules: (0..hosts).map(rule).collect(),
            ..IngressFact::default()
        }
    }

    // Faults: T2
    #[test]
    fn an_object_is_cut_to_its_beginning_and_named() {
        let mut room = Room::of_one();
        let mut big = ingress("shop", OBJECT_NAMES_MAX + 5);
        assert!(room.admit(&mut big, 3));
        assert_eq!(big.rules.len(), OBJECT_NAMES_MAX - 1, "the object itself counts");
        let notes = room.notes();
        assert_eq!((notes.len(), notes[0].0.as_str()), (1, "Ingress shop/big"));
        assert!(notes[0].1.starts_with("9 of its names are left out"), "{notes:?}");
    }

    #[test]
    fn a_namespace_that_is_full_leaves_room_for_the_others() {
        let mut room = Room::of_others();
        assert!(room.admit(&mut ingress("shop", OTHERS_NAMESPACE_NAMES_MAX), 0));
        assert!(!room.admit(&mut ingress("shop", 1), 0));
        let mut other = ingress("blog", 10);
        assert!(room.admit(&mut other, 0));
        assert_eq!(other.rules.len(), 10);
    }

    #[test]
    fn many_objects_that_are_cut_are_counted_and_not_all_named() {
        let mut room = Room::of_one();
        let kept = (0..1_000).filter(|_| room.admit(&mut ingress("shop", OBJECT_NAMES_MAX), 0)).count();
        assert_eq!(kept, NAMESPACE_NAMES_MAX / OBJECT_NAMES_MAX);
        let notes = room.notes();
        assert_eq!(notes.len(), NOTES_MAX + 1);
        assert!(notes[NOTES_MAX].1.contains("980 more"), "{notes:?}");
    }

    #[test]
    fn one_long_text_counts_as_many_names() {
        let mut service = ServiceFact { namespace: "shop".into(), ..ServiceFact::default() };
        service.annotations.insert("external-dns".into(), " ".repeat(NAME_BYTES * OBJECT_NAMES_MAX));
        let mut room = Room::of_one();
        assert!(room.admit(&mut service, 0));
        assert!(service.annotations.is_empty() && !room.notes().is_empty());
    }
}

//! Hosts with something known of each, found by the names they cover.
//!
//! A tenant writes as many names as an object holds, so nothing here compares all with all: what covers a host is looked up
//! label by label, one look-up for each domain above it (at most 127), and none of those where no wildcard is that deep.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use kernel::names::host::{Depth, Host};

/// Hosts, each with a value.
pub(super) struct Names<'a, V> {
    /// By domain: the plain name and its wildcards of one label and of any.
    known: BTreeMap<&'a str, [Option<(&'a Host, V)>; 3]>,
    /// Whether a wildcard of any depth is among them: most Ingresses have none.
    deep: bool,
    /// The domains of all with their bytes reversed, so that what is beneath a domain lies side by side. Made when asked for.
    reversed: OnceCell<Vec<Vec<u8>>>,
    /// The domains right above the plain names. Made when asked for.
    parents: OnceCell<Vec<&'a str>>,
}

impl<V> Default for Names<'_, V> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), deep: false, reversed: OnceCell::new(), parents: OnceCell::new() }
    }
}

impl<'a, V> Names<'a, V> {
    /// Adds a host, or joins what is known of it with more.
    pub fn add(&mut self, host: &'a Host, value: V, join: impl FnOnce(&mut V, V)) {
        self.deep |= host.depth() == Some(Depth::Any);
        (self.reversed, self.parents) = (OnceCell::new(), OnceCell::new());
        let slots = self.known.entry(host.domain()).or_insert([const { None }; 3]);
        let Some(slot) = slots.get_mut(place(host.depth())) else { return };
        match slot {
            Some((_, known)) => join(known, value),
            None => *slot = Some((host, value)),
        }
    }

    /// All, in no order that means anything.
    pub fn hosts(&self) -> impl Iterator<Item = &'a Host> {
        self.known.values().flatten().flatten().map(|(host, _)| *host)
    }

    /// The value of exactly this host.
    pub fn get(&self, host: &Host) -> Option<&V> {
        self.at(host.domain(), host.depth())
    }

    /// The values of the hosts with this host's text as people write it: external-dns and Ingress write one text for
    /// wildcards of different depths.
    pub fn alike(&self, host: &Host) -> impl Iterator<Item = &V> {
        let depths = if host.is_wildcard() { [Some(Depth::One), Some(Depth::Any)] } else { [None, None] };
        let depths = depths.into_iter().take(if host.is_wildcard() { 2 } else { 1 });
        depths.filter_map(|depth| self.at(host.domain(), depth))
    }

    fn at(&self, domain: &str, depth: Option<Depth>) -> Option<&V> {
        self.known.get(domain)?.get(place(depth))?.as_ref().map(|(_, value)| value)
    }

    /// The values of the hosts that cover `host`, itself first; see [`Host::covers`].
    pub fn covering(&self, host: &Host) -> impl Iterator<Item = &V> {
        let domain = host.domain();
        let (one, any) = match host.depth() {
            None => (parent(domain), None),
            Some(Depth::One) => (None, Some(domain)),
            Some(Depth::Any) => (None, None),
        };
        let above = std::iter::successors(parent(domain).filter(|_| self.deep), |domain| parent(domain));
        let wide = one.map(|domain| (domain, Some(Depth::One))).into_iter();
        let wide = wide.chain(any.into_iter().chain(above).map(|domain| (domain, Some(Depth::Any))));
        self.get(host).into_iter().chain(wide.filter_map(|(domain, depth)| self.at(domain, depth)))
    }

    /// Whether one covers `host`.
    pub fn cover(&self, host: &Host) -> bool {
        self.covering(host).next().is_some()
    }

    /// Whether a wildcard covers one of them that is not the wildcard itself.
    pub fn any_beneath(&self, wildcard: &Host) -> bool {
        let domain = wildcard.domain();
        match wildcard.depth() {
            None => false,
            Some(Depth::One) => {
                let above = || self.hosts().filter(|host| !host.is_wildcard()).filter_map(|host| parent(host.domain()));
                self.parents.get_or_init(|| sorted(above())).binary_search(&domain).is_ok()
            }
            Some(Depth::Any) => {
                let reversed =
                    self.reversed.get_or_init(|| sorted(self.known.keys().map(|domain| reversed_of(domain))));
                let mut start = reversed_of(domain);
                start.push(b'.');
                let at = reversed.partition_point(|name| *name < start);
                self.at(domain, Some(Depth::One)).is_some()
                    || reversed.get(at).is_some_and(|name| name.starts_with(&start))
            }
        }
    }
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn reversed_of(domain: &str) -> Vec<u8> {
    domain.bytes().rev().collect()
}

/// Where a host of this depth stands among those of its domain.
fn place(depth: Option<Depth>) -> usize {
    match depth {
        None => 0,
        Some(Depth::One) => 1,
        Some(Depth::Any) => 2,
    }
}

/// The domain one label up; `None` for the last label.
fn parent(domain: &str) -> Option<&str> {
    domain.split_once('.').map(|(_, parent)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All hosts of three labels at most over two letters, of each depth.
    fn hosts() -> Vec<Host> {
        let labels =
            ["a", "b", "a.a", "b.a", "a.b", "ba", "a.a.a", "b.a.a", "a.b.a", "b.b.a", "a.a.b", "a.ba", "a-a.a"];
        let written =
            labels.iter().flat_map(|name| [format!("{name}.x"), format!("*.{name}.x"), format!("**.{name}.x")]);
        written.map(|text| Host::parse(&text).unwrap()).collect()
    }

    // Faults: T2
    /// Goal: the same as asking each host by itself. Method: all pairs and triples of a small world, against [`Host::covers`].
    #[test]
    fn what_covers_and_what_is_beneath_is_what_each_host_says_by_itself() {
        let all = hosts();
        for (at, first) in all.iter().enumerate() {
            for second in all.iter().skip(at) {
                let mut names = Names::default();
                for host in [first, second] {
                    names.add(host, vec![host], |known, more| known.extend(more));
                }
                for asked in &all {
                    let mut found: Vec<&Host> = names.covering(asked).flatten().copied().collect();
                    let mut expected: Vec<&Host> = vec![first, second];
                    expected.retain(|host| host.covers(asked));
                    found.sort();
                    expected.sort();
                    assert_eq!(found, expected, "{asked} among {first} and {second}");
                    let beneath = [first, second].iter().any(|host| *host != asked && asked.covers(host));
                    assert_eq!(names.any_beneath(asked), beneath, "beneath {asked} among {first} and {second}");
                }
            }
        }
    }
}

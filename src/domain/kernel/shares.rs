//! Shares of a bound that namespaces have in common (decision 59): no namespace waits for one that has more.
//!
//! Not for how often something may be done; that is a matter of rates, and of [`purge`](purge::purges::purge).

use std::collections::{BTreeMap, BTreeSet};

use crate::id::ObjectId;

/// What of all that namespaces claim has a place, if there are `max`: each namespace has one more in turn. What several claim has one
/// place. Within a namespace what `has` one comes first, so that no place is given and taken back while the claims stay.
pub fn in_turn<'a, T: Ord>(
    max: usize,
    claims: impl IntoIterator<Item = (&'a str, T)>,
    has: impl Fn(&T) -> bool,
) -> BTreeSet<T> {
    let mut lines: BTreeMap<&str, BTreeSet<(bool, T)>> = BTreeMap::new();
    for (namespace, claim) in claims {
        lines.entry(namespace).or_default().insert((!has(&claim), claim));
    }
    let mut lines: Vec<_> = lines.into_values().map(|line| line.into_iter().map(|(_, claim)| claim)).collect();
    let mut chosen = BTreeSet::new();
    while !lines.is_empty() {
        lines.retain_mut(|line| {
            let next = line.find(|claim| !chosen.contains(claim)).filter(|_| chosen.len() < max);
            next.is_some_and(|claim| chosen.insert(claim))
        });
    }
    chosen
}

/// The namespace that occurs most often, and how often, in words: `namespace shop has most, 60`.
pub fn most<'a>(namespaces: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    namespaces.into_iter().for_each(|namespace| *counts.entry(namespace).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count);
    most.map_or_else(String::new, |(namespace, count)| format!("namespace {namespace} has most, {count}"))
}

/// The holders of a limited number of places, and the waiters for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places<T> {
    max: usize,
    held: BTreeSet<T>,
    waiting: BTreeSet<T>,
}

impl<T: ObjectId> Places<T> {
    /// So many places, all free.
    pub const fn new(max: usize) -> Self {
        Self { max, held: BTreeSet::new(), waiting: BTreeSet::new() }
    }

    /// Gives this one a place, if it is its turn. Returns those that lose theirs for it; `None`: it waits.
    pub fn enter(&mut self, id: &T) -> Option<Vec<T>> {
        if self.held.contains(id) {
            return Some(Vec::new());
        }
        if self.held.len() >= self.max {
            // Where another of its namespace waits, this one does, too: then nothing has to be reckoned for it.
            let waits = self.waiting.iter().any(|other| other.namespace() == id.namespace() && other != id);
            self.waiting.insert(id.clone());
            if waits || !self.chosen().contains(id) {
                return None;
            }
        }
        self.waiting.remove(id);
        self.held.insert(id.clone());
        let over = self.held.len() > self.max;
        let lost = if over { self.held.difference(&self.chosen()).cloned().collect() } else { Vec::new() };
        for one in &lost {
            self.held.remove(one);
            self.waiting.insert(one.clone());
        }
        Some(lost)
    }

    /// This one wants no place any more.
    pub fn leave(&mut self, id: &T) {
        self.held.remove(id);
        self.waiting.remove(id);
    }

    /// One that waits although there is a place for it.
    pub fn next(&self) -> Option<T> {
        let is_free = !self.waiting.is_empty() && self.held.len() < self.max;
        is_free.then(|| self.chosen().into_iter().find(|id| !self.held.contains(id))).flatten()
    }

    /// How many wait, and who has most, if any do.
    pub fn words(&self) -> Option<String> {
        let most = || most(self.held.iter().map(ObjectId::namespace));
        (!self.waiting.is_empty())
            .then(|| format!("{} wait for one of {} places; {}", self.waiting.len(), self.max, most()))
    }

    fn chosen(&self) -> BTreeSet<T> {
        let all = self.held.iter().chain(&self.waiting);
        in_turn(self.max, all.map(|id| (id.namespace(), id.clone())), |id| self.held.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PipelineId;

    fn places(max: usize, ids: &[(&str, &str)]) -> Places<PipelineId> {
        let mut places = Places::new(max);
        for (namespace, name) in ids {
            assert_eq!(places.enter(&PipelineId::new(*namespace, *name)), Some(Vec::new()));
        }
        places
    }

    fn enters(places: &mut Places<PipelineId>, namespace: &str, name: &str) -> Option<Vec<String>> {
        let lost = places.enter(&PipelineId::new(namespace, name))?;
        Some(lost.iter().map(ObjectId::display_name).collect())
    }

    #[test]
    fn one_namespace_has_all_places_until_another_comes() {
        let mut places = places(4, &[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4")]);
        assert_eq!(places.words(), None);
        assert_eq!(enters(&mut places, "a", "0"), None);
        assert_eq!(places.words().unwrap(), "1 wait for one of 4 places; namespace a has most, 4");
        assert_eq!(enters(&mut places, "b", "1").unwrap(), ["a/4"]);
        assert_eq!(enters(&mut places, "b", "2").unwrap(), ["a/3"]);
        assert_eq!(enters(&mut places, "b", "3"), None, "both have as many");
        assert_eq!(enters(&mut places, "c", "1").unwrap(), ["b/2"]);
        assert_eq!(enters(&mut places, "b", "1").unwrap(), [""; 0], "it has one");
    }

    #[test]
    fn a_place_that_is_left_goes_to_the_one_with_fewest() {
        let mut places = places(3, &[("a", "1"), ("a", "2"), ("b", "1")]);
        assert_eq!(enters(&mut places, "a", "3"), None);
        assert_eq!(enters(&mut places, "b", "2"), None);
        assert_eq!(places.next(), None);
        ["1", "2"].iter().for_each(|name| places.leave(&PipelineId::new("a", *name)));
        let next = places.next().expect("two places are free");
        assert_eq!((next.display_name(), places.enter(&next)), ("a/3".to_owned(), Some(Vec::new())));
        assert_eq!(places.next(), Some(PipelineId::new("b", "2")));
        places.leave(&PipelineId::new("b", "2"));
        assert_eq!((places.next(), places.words()), (None, None));
    }

    #[test]
    fn what_several_claim_has_one_place() {
        let claims = [("a", "x"), ("b", "x"), ("b", "y"), ("b", "z")];
        assert_eq!(in_turn(3, claims, |_| false).into_iter().collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(in_turn(2, claims, |claim| *claim == "z").into_iter().collect::<Vec<_>>(), ["x", "z"]);
    }
}

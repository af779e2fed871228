//! The targets wanted in a cluster, and the watches that they need.

use std::collections::{BTreeMap, BTreeSet};

use super::{GATHER_FOR, Gathering, Leaf, Link, NAMESPACES_MAX, NOT_SYNCED, Purpose, Target, Touched, WATCHES_MAX};
use crate::apps::app::{Sight, TargetKey};
use crate::apps::leaf::watched::Watched;
use crate::apps::leaf::{Collection, Effect};
use kernel::id::PipelineId;
use kernel::machine::Timestamp;
use kernel::shares;

impl Leaf {
    pub(super) fn want(
        &mut self,
        now: Timestamp,
        owner: &PipelineId,
        targets: BTreeSet<TargetKey>,
        effects: &mut Vec<Effect>,
    ) -> Touched {
        let before = self.wanted.remove(owner).unwrap_or_default();
        let (new, gone) = self.exchange(owner, &before, &targets);
        if !gone.is_empty() {
            // An answer from before says nothing to those who want it again.
            self.reads.retain(|_, purpose| match purpose {
                Purpose::Own(_, target) => self.targets.contains_key(target),
                Purpose::Asked(..) => true,
            });
        }
        if targets.is_empty() {
            self.fresh.remove(owner);
        } else {
            self.wanted.insert(owner.clone(), targets);
        }
        self.unused = self.targets.is_empty().then(|| self.unused.unwrap_or(now));
        match self.link {
            Link::Unused if !self.targets.is_empty() => {
                self.link = Link::Connecting;
                effects.push(Effect::Connect);
            }
            Link::Unused | Link::Connecting | Link::Down(_) => {}
            Link::Up if new.is_empty() && gone.is_empty() => {}
            Link::Up => {
                effects.push(Effect::Want(self.targets.keys().cloned().collect()));
                if let Some(Gathering { until, at_most }) = &mut self.gathering {
                    *until = now.after(GATHER_FOR).min(*at_most);
                    return Touched::These(new);
                }
                for (of, watch) in &mut self.watches {
                    watch.concerns_no_more(gone.iter().filter(|target| of.contains(target)));
                    watch.concerns(new.iter().filter(|target| of.contains(target)));
                }
                if self.plan(now, effects) {
                    return Touched::All;
                }
            }
        }
        Touched::These(new)
    }

    /// Replaces a Pipeline's targets. Returns those newly wanted and those that no Pipeline wants any more.
    fn exchange(
        &mut self,
        owner: &PipelineId,
        before: &BTreeSet<TargetKey>,
        targets: &BTreeSet<TargetKey>,
    ) -> (Vec<TargetKey>, Vec<TargetKey>) {
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for target in before.difference(targets) {
            let Some(known) = self.targets.get_mut(target) else { continue };
            known.owners.remove(owner);
            if known.owners.is_empty() {
                self.targets.remove(target);
                gone.push(target.clone());
            }
        }
        for target in targets {
            let known = self.targets.entry(target.clone()).or_insert_with(|| {
                new.push(target.clone());
                Target { owners: BTreeSet::new(), said: Sight::Unknown(NOT_SYNCED.to_owned()) }
            });
            known.owners.insert(owner.clone());
        }
        (new, gone)
    }

    /// Begins the watches that are needed, and notes those that are not. Whether any began or ended.
    pub(super) fn plan(&mut self, now: Timestamp, effects: &mut Vec<Effect>) -> bool {
        let before = effects.len();
        let needed = self.needed();
        for (of, watch) in &mut self.watches {
            watch.used(now, needed.contains(of));
        }
        let chosen = self.chosen(&needed);
        for of in chosen.iter().cloned() {
            if !self.watches.contains_key(&of) && self.has_room(&chosen, effects) {
                let number = self.number();
                effects.push(Effect::Watch(number, of.clone()));
                let targets = self.targets.keys().filter(|target| of.contains(target));
                let watch = Watched::new(number, targets);
                self.watches.insert(of, watch);
            }
        }
        effects.len() != before
    }

    /// The collections that the targets need.
    fn needed(&self) -> BTreeSet<Collection> {
        let mut kinds: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for target in self.targets.keys() {
            kinds.entry((&target.app.api_version, &target.app.kind)).or_default().insert(&target.namespace);
        }
        let mut needed = BTreeSet::new();
        for ((api_version, kind), namespaces) in kinds {
            let of = |namespace: Option<&str>| Collection {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.map(str::to_owned),
            };
            if namespaces.len() > NAMESPACES_MAX && !self.refused.contains(&of(None)) {
                needed.insert(of(None));
            } else {
                needed.extend(namespaces.into_iter().map(|namespace| of(Some(namespace))));
            }
        }
        needed
    }

    /// Those of the needed collections that have room: no namespace of Pipelines waits for one that has more (decision 59).
    fn chosen(&self, needed: &BTreeSet<Collection>) -> BTreeSet<Collection> {
        if needed.len() <= WATCHES_MAX {
            return needed.clone();
        }
        shares::in_turn(WATCHES_MAX, self.claims(needed), |of| self.watches.contains_key(of))
            .into_iter()
            .cloned()
            .collect()
    }

    /// These collections, by the namespaces of the Pipelines that have targets in them.
    pub(super) fn claims<'a>(
        &'a self,
        of: &'a BTreeSet<Collection>,
    ) -> impl Iterator<Item = (&'a str, &'a Collection)> {
        self.targets.iter().flat_map(move |(target, Target { owners, .. })| {
            let of = Collection::both(target).into_iter().find_map(|one| of.get(&one));
            of.into_iter().flat_map(|of| owners.iter().map(move |owner| (&*owner.namespace, of)))
        })
    }

    /// Whether one more watch may be begun; a spare one, or one whose room is another's, makes room for it.
    fn has_room(&mut self, chosen: &BTreeSet<Collection>, effects: &mut Vec<Effect>) -> bool {
        if self.watches.len() < WATCHES_MAX {
            return true;
        }
        let spare = self.watches.iter().find(|(of, watch)| watch.is_spare() || !chosen.contains(of));
        let spare = spare.map(|(of, _)| of.clone());
        spare.is_some_and(|of| self.end(&of, effects))
    }

    pub(super) fn end(&mut self, of: &Collection, effects: &mut Vec<Effect>) -> bool {
        let ended = self.watches.remove(of);
        self.reads.retain(|_, purpose| !matches!(purpose, Purpose::Own(watched, _) if watched == of));
        effects.extend(ended.iter().map(|watch| Effect::Unwatch(watch.number)));
        ended.is_some()
    }

    /// Forgets the states that came by an ended connection to the cluster.
    pub(super) fn forget(&mut self, effects: &mut Vec<Effect>) {
        let watches = std::mem::take(&mut self.watches);
        effects.extend(watches.values().map(|watch| Effect::Unwatch(watch.number)));
        self.refused.clear();
        for (number, purpose) in std::mem::take(&mut self.reads) {
            if let Purpose::Asked(owner, target) = purpose {
                let lost = Sight::Unknown("the way to its cluster changed meanwhile".to_owned());
                self.found(&owner, number, target, lost, effects);
            }
        }
    }
}

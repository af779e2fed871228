//! The clusters that Pipelines watch: each is read by one actor while a Pipeline wants a target in it.
//!
//! ```text
//! nothing ── a target in it is wanted ──▶ read ── crashed too often ──▶ resting ── five minutes ──▶ read
//!    ▲                                     │
//!    └─── nothing was wanted for a while ──┘
//! ```
//!
//! 1. Every wanted target is requested from its cluster's actor, or reported as unknown, with the reason.
//! 2. One cluster's crashes cost the targets in it, and no others.
//! 3. No namespace waits for a cluster while another one has more of them (decision 59). The cluster we run in always has its place.
//!
//! Not for what is known of a target; that is `leaf`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::apps::app::{ClusterKey, Sight, TargetKey};
use crate::apps::leaf::Sights;
use kernel::budget::Budget;
use kernel::id::PipelineId;
use kernel::machine::{Machine, Timestamp};
use kernel::shares;

/// Leaves that are read at a time. Each costs at least a connection, a client and 64 KiB.
pub const LEAVES_MAX: usize = 64;

/// How long a cluster whose actor crashed too often is left alone (decision 16).
pub const REST: Duration = Duration::from_secs(300);

const RESTING: &str =
    "the part of allclear that reads its cluster crashed too often and rests for five minutes; the log says why";

/// The machine. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clusters {
    wanted: BTreeMap<PipelineId, BTreeSet<TargetKey>>,
    leaves: BTreeMap<ClusterKey, Standing>,
    budgets: BTreeMap<ClusterKey, Budget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    Read,
    Resting(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A Pipeline wants to know about these targets from now on, and no others; none: it is gone.
    Wanted(PipelineId, BTreeSet<TargetKey>),
    /// A Pipeline wants a fresh read of these.
    LookedFor(PipelineId, u64, BTreeSet<TargetKey>),
    /// The actor of a cluster crashed.
    Crashed(ClusterKey),
    /// It ended because nothing was wanted of it.
    Ended(ClusterKey),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Start the actor of a cluster.
    Start(ClusterKey),
    /// End it: its place is another's.
    Stop(ClusterKey),
    /// Tell it what a Pipeline wants to know; nothing, too.
    Want(ClusterKey, PipelineId, BTreeSet<TargetKey>),
    /// Have it read these afresh.
    LookFor(ClusterKey, PipelineId, u64, BTreeSet<TargetKey>),
    /// Tell a Pipeline what is known of these.
    Report(PipelineId, Sights),
    /// Answer a wish for a fresh read as far as it concerns these.
    Looked(PipelineId, u64, Sights),
    /// Say that the actor of a cluster crashed and is rebuilt; or, with a time, that it is left alone for so long.
    TellCrashed(ClusterKey, Option<Duration>),
}

impl Clusters {
    /// How many are read.
    pub fn read(&self) -> usize {
        self.leaves.values().filter(|standing| **standing == Standing::Read).count()
    }

    /// Those that are left alone for a while.
    pub fn resting(&self) -> impl Iterator<Item = &ClusterKey> {
        self.leaves.iter().filter(|(_, standing)| **standing != Standing::Read).map(|(cluster, _)| cluster)
    }

    /// The targets that a Pipeline wants in a cluster.
    fn part(&self, cluster: &ClusterKey, owner: &PipelineId) -> BTreeSet<TargetKey> {
        let wanted = self.wanted.get(owner).into_iter().flatten();
        wanted.filter(|target| target.cluster == *cluster).cloned().collect()
    }

    fn want(&mut self, owner: &PipelineId, targets: BTreeSet<TargetKey>, effects: &mut Vec<Effect>) {
        let before = self.wanted.remove(owner).unwrap_or_default();
        let clusters: BTreeSet<_> = before.iter().chain(&targets).map(|target| target.cluster.clone()).collect();
        if !targets.is_empty() {
            self.wanted.insert(owner.clone(), targets);
        }
        for cluster in clusters {
            self.pass(&cluster, owner, effects);
        }
        if self.is_full() {
            self.share(effects);
        }
    }

    /// Has a cluster do what a Pipeline wants of it, or says why that cannot be.
    fn pass(&mut self, cluster: &ClusterKey, owner: &PipelineId, effects: &mut Vec<Effect>) {
        let part = self.part(cluster, owner);
        match self.why_not(cluster) {
            Some(why) => effects.extend(unknown(part, &why).map(|sights| Effect::Report(owner.clone(), sights))),
            None if part.is_empty() && !self.leaves.contains_key(cluster) => {}
            None => {
                if self.leaves.insert(cluster.clone(), Standing::Read).is_none() {
                    effects.push(Effect::Start(cluster.clone()));
                }
                effects.push(Effect::Want(cluster.clone(), owner.clone(), part));
            }
        }
    }

    /// Why a cluster is not read.
    fn why_not(&self, cluster: &ClusterKey) -> Option<String> {
        match self.leaves.get(cluster) {
            Some(Standing::Read) => None,
            Some(Standing::Resting(_)) => Some(RESTING.to_owned()),
            None => (self.is_full() && *cluster != ClusterKey::Here).then(|| {
                let read = self.claims().filter(|(_, cluster)| self.leaves.contains_key(cluster));
                let read: BTreeSet<_> = read.collect();
                let most = shares::most(read.iter().map(|(namespace, _)| *namespace));
                format!("{LEAVES_MAX} other clusters are read already ({most}); use a second allclear for some of them")
            }),
        }
    }

    /// Whether there is no room for another leaf.
    fn is_full(&self) -> bool {
        self.leaves.keys().filter(|cluster| **cluster != ClusterKey::Here).count() >= LEAVES_MAX
    }

    /// The leaves that are wanted, each by the namespaces that want it.
    fn claims(&self) -> impl Iterator<Item = (&str, &ClusterKey)> {
        let wanted = self.wanted.iter().flat_map(|(owner, targets)| targets.iter().map(|one| (&*owner.namespace, one)));
        wanted.map(|(namespace, target)| (namespace, &target.cluster)).filter(|(_, of)| **of != ClusterKey::Here)
    }

    /// Gives the places of leaves to those whose turn it is.
    fn share(&mut self, effects: &mut Vec<Effect>) {
        let chosen = shares::in_turn(LEAVES_MAX, self.claims(), |cluster| self.leaves.contains_key(cluster));
        let chosen: BTreeSet<ClusterKey> = chosen.into_iter().cloned().collect();
        let unread: Vec<_> = chosen.iter().filter(|cluster| !self.leaves.contains_key(cluster)).cloned().collect();
        for cluster in unread {
            let mut others = self.leaves.keys().filter(|other| **other != ClusterKey::Here && !chosen.contains(other));
            if self.is_full()
                && let Some(other) = others.next().cloned()
            {
                self.leaves.remove(&other);
                self.budgets.remove(&other);
                effects.push(Effect::Stop(other.clone()));
                self.begin(&cluster, effects);
                self.begin(&other, effects);
            } else {
                self.begin(&cluster, effects);
            }
        }
    }

    /// Begins with a cluster anew, for everyone who wants something of it.
    fn begin(&mut self, cluster: &ClusterKey, effects: &mut Vec<Effect>) {
        self.leaves.remove(cluster);
        for owner in self.owners(cluster) {
            self.pass(cluster, &owner, effects);
        }
    }

    fn owners(&self, cluster: &ClusterKey) -> Vec<PipelineId> {
        let named = |targets: &BTreeSet<TargetKey>| targets.iter().any(|target| target.cluster == *cluster);
        self.wanted.iter().filter(|(_, targets)| named(targets)).map(|(owner, _)| owner.clone()).collect()
    }

    fn look_for(&self, owner: &PipelineId, ticket: u64, targets: BTreeSet<TargetKey>, effects: &mut Vec<Effect>) {
        let mut parts: BTreeMap<ClusterKey, BTreeSet<TargetKey>> = BTreeMap::new();
        for target in targets {
            parts.entry(target.cluster.clone()).or_default().insert(target);
        }
        for (cluster, part) in parts {
            let why = match self.leaves.get(&cluster) {
                Some(Standing::Read) => {
                    effects.push(Effect::LookFor(cluster, owner.clone(), ticket, part));
                    continue;
                }
                Some(Standing::Resting(_)) | None => {
                    self.why_not(&cluster).unwrap_or_else(|| "its cluster is not read yet".to_owned())
                }
            };
            effects.extend(unknown(part, &why).map(|sights| Effect::Looked(owner.clone(), ticket, sights)));
        }
    }

    fn crashed(&mut self, now: Timestamp, cluster: &ClusterKey, effects: &mut Vec<Effect>) {
        if self.leaves.get(cluster) != Some(&Standing::Read) {
            return;
        }
        if self.budgets.entry(cluster.clone()).or_default().spend(now) {
            effects.push(Effect::TellCrashed(cluster.clone(), None));
            return self.begin(cluster, effects);
        }
        effects.push(Effect::TellCrashed(cluster.clone(), Some(REST)));
        self.leaves.insert(cluster.clone(), Standing::Resting(now.after(REST)));
        for owner in self.owners(cluster) {
            self.pass(cluster, &owner, effects);
        }
    }

    /// A cluster ended, so there is room for others; something may have been wanted of it in its last moment.
    fn ended(&mut self, cluster: &ClusterKey, effects: &mut Vec<Effect>) {
        if self.leaves.get(cluster) != Some(&Standing::Read) {
            return;
        }
        self.leaves.remove(cluster);
        self.budgets.remove(cluster);
        self.begin(cluster, effects);
        self.share(effects);
    }
}

/// The sights of targets of which nothing is known for this reason; `None` for no targets.
fn unknown(targets: BTreeSet<TargetKey>, why: &str) -> Option<Sights> {
    let sights: Sights = targets.into_iter().map(|target| (target, Sight::Unknown(why.to_owned()))).collect();
    Some(sights).filter(|sights| !sights.is_empty())
}

impl Machine for Clusters {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Wanted(owner, targets) => self.want(&owner, targets, &mut effects),
            Event::LookedFor(owner, ticket, targets) => self.look_for(&owner, ticket, targets, &mut effects),
            Event::Crashed(cluster) => self.crashed(now, &cluster, &mut effects),
            Event::Ended(cluster) => self.ended(&cluster, &mut effects),
        }
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        let is_over = |standing: &Standing| matches!(standing, Standing::Resting(until) if *until <= now);
        let over: Vec<_> =
            self.leaves.iter().filter(|(_, standing)| is_over(standing)).map(|(cluster, _)| cluster.clone()).collect();
        for cluster in over {
            self.begin(&cluster, &mut effects);
        }
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let rests = self.leaves.values().filter_map(|standing| match standing {
            Standing::Read => None,
            Standing::Resting(until) => Some(*until),
        });
        rests.min()
    }
}

#[cfg(test)]
mod tests;

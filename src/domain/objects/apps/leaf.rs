//! One cluster that is read: which of its collections are watched, for whose targets, and what is known of each target.
//!
//! ```text
//! Unused ── a target is wanted ──▶ Connecting ──▶ Up ◀──▶ Down         what is known ends with each way to the cluster
//!   ▲                                             │
//!   └───────────── two minutes without a target ──┘
//!
//! a watch:  listing ── synced ──▶ following ── trouble ──▶ troubled ── 30 s ──▶ its targets are unknown ── synced ──▶ following
//!           any ── no target needs it ──▶ spare ── two minutes ──▶ ended
//!
//! a target: nothing known ── shown by its watch, or read by name ──▶ absent, unreadable, or there
//! ```
//!
//! 1. LF-1: a target is there only by a look of the present way to the cluster, after its collection was synced.
//! 2. LF-2: a watch that no target needs ends after two minutes.
//! 3. LF-3: trouble with a collection touches its own targets only.
//! 4. Only a read by name, or the watch's own word, says that a target is absent. Objects that no target named are dropped while
//!    they are decoded, so a listing that does not show a target may be older than the wish for it.
//!    The same holds for what a watch says of a target that was wanted after its first listing had begun: it may be from an earlier time, and
//!    what came between was dropped. So such a target is read by name until an answer is newer than all that was said.
//! 5. What must be seen twice is ready only after a fresh read has said the same as the look before it, ten seconds later.
//!
//! Not for what a sight means, nor for several clusters.

mod event;
mod wants;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::apps::app::{Look, Sight, TargetKey};
use kernel::answer::PortError;
use kernel::id::PipelineId;
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use kernel::shares;
use watched::{Seen, Watched};

pub(crate) use watched::present;

pub use event::{Collection, Effect, Event, News, Number, Sights};

/// More namespaces of one kind than this are watched by one watch of all, where that is allowed: each watch is a connection.
pub const NAMESPACES_MAX: usize = 8;

/// Watches of one cluster. Each holds a connection and about 64 KiB.
pub const WATCHES_MAX: usize = 200;

/// How long a watch, and the way to a cluster, outlives its last use: longer than an actor takes to come back.
pub const SPARE_FOR: Duration = Duration::from_secs(120);

/// How long a watch may be in trouble while its targets keep their sights. A fresh read precedes whatever follows from them.
pub const TROUBLE_MAX: Duration = Duration::from_secs(30);

/// The least time between two looks at what must be seen twice.
pub const TWICE_AFTER: Duration = Duration::from_secs(10);

/// How long nothing more is wanted before the watches of a new way to the cluster begin: at a start each Pipeline says for itself what it
/// wants, and what comes too late for a listing is read by name.
const GATHER_FOR: Duration = Duration::from_millis(250);

/// How long they wait at most while more is wanted.
const GATHER_MAX: Duration = Duration::from_secs(2);

/// The text that users of `pipelines.weave.works` look for while nothing is known.
pub(crate) const NOT_SYNCED: &str = "Target cluster client is not synced";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Link {
    Unused,
    Connecting,
    Up,
    Down(String),
}

/// The purpose of a read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    /// For the watch of this collection.
    Own(Collection, TargetKey),
    /// For a request of this Pipeline.
    Asked(PipelineId, TargetKey),
}

/// Fresh reads that a Pipeline has asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fresh {
    ticket: u64,
    open: BTreeSet<Number>,
    sights: Sights,
}

/// The Pipelines that want a target, and the last report to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    owners: BTreeSet<PipelineId>,
    said: Sight,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    link: Link,
    wanted: BTreeMap<PipelineId, BTreeSet<TargetKey>>,
    targets: BTreeMap<TargetKey, Target>,
    watches: BTreeMap<Collection, Watched>,
    /// Collections of all namespaces that we may not watch, until the way to the cluster changes.
    refused: BTreeSet<Collection>,
    reads: BTreeMap<Number, Purpose>,
    fresh: BTreeMap<PipelineId, Fresh>,
    last: Number,
    /// Since when nothing is wanted.
    unused: Option<Timestamp>,
    /// The watches of a new way to the cluster have not begun yet.
    gathering: Option<Gathering>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gathering {
    until: Timestamp,
    at_most: Timestamp,
}

/// The targets whose sights may have changed.
enum Touched {
    These(Vec<TargetKey>),
    All,
}

impl Default for Leaf {
    fn default() -> Self {
        Self::new()
    }
}

impl Leaf {
    /// A cluster of which nothing is wanted yet.
    pub fn new() -> Self {
        Self {
            link: Link::Unused,
            wanted: BTreeMap::new(),
            targets: BTreeMap::new(),
            watches: BTreeMap::new(),
            refused: BTreeSet::new(),
            reads: BTreeMap::new(),
            fresh: BTreeMap::new(),
            last: Number::default(),
            unused: None,
            gathering: None,
        }
    }

    /// How the cluster is reached, in one word.
    pub fn standing(&self) -> &'static str {
        match &self.link {
            Link::Unused | Link::Connecting => "connecting",
            Link::Down(_) => "down",
            Link::Up if self.watches.values().any(|watched| watched.trouble().is_some()) => "troubled",
            Link::Up => "up",
        }
    }

    /// The troubles of the cluster or its watches, each in words, for people.
    pub fn troubles(&self) -> Vec<String> {
        match &self.link {
            Link::Unused | Link::Connecting => Vec::new(),
            Link::Down(why) => vec![why.clone()],
            Link::Up => self.watches.values().filter_map(Watched::trouble).map(str::to_owned).collect(),
        }
    }

    /// How many watches there are, spare ones too.
    pub fn watches(&self) -> usize {
        self.watches.len()
    }

    /// The Pipelines that want something, and what is known of their targets.
    pub fn owners(&self) -> impl Iterator<Item = (&PipelineId, &BTreeSet<TargetKey>)> {
        self.wanted.iter()
    }

    fn number(&mut self) -> Number {
        self.last = Number(self.last.0.saturating_add(1));
        self.last
    }

    fn look_for(&mut self, owner: PipelineId, ticket: u64, targets: BTreeSet<TargetKey>, effects: &mut Vec<Effect>) {
        let mut fresh = Fresh { ticket, open: BTreeSet::new(), sights: Sights::new() };
        for target in targets {
            if self.link == Link::Up {
                let number = self.number();
                self.reads.insert(number, Purpose::Asked(owner.clone(), target.clone()));
                fresh.open.insert(number);
                effects.push(Effect::Read(number, target));
            } else {
                fresh.sights.insert(target.clone(), self.sight(&target));
            }
        }
        if fresh.open.is_empty() {
            self.fresh.remove(&owner);
            effects.push(Effect::Looked(owner, ticket, fresh.sights));
        } else {
            self.fresh.insert(owner, fresh);
        }
    }

    fn told(&mut self, now: Timestamp, number: Number, news: News, effects: &mut Vec<Effect>) -> Touched {
        let Some((of, watch)) = self.watches.iter_mut().find(|(_, watch)| watch.number == number) else {
            // Said before its end was known.
            return Touched::These(Vec::new());
        };
        match news {
            News::Restarted => watch.restarted(),
            News::Seen(looks) => {
                let targets = looks.iter().map(|(target, _)| target.clone()).collect();
                for (target, look) in looks {
                    watch.see(now, &target, look.map_or_else(Seen::Unreadable, Seen::There));
                }
                return Touched::These(targets);
            }
            News::Gone { namespace, name } => return Touched::These(watch.gone(now, &namespace, &name)),
            News::Synced => watch.synced(),
            News::Trouble(error) => {
                watch.troubled(now, error.to_string());
                if error.denied && of.namespace.is_none() {
                    let of = of.clone();
                    self.end(&of, effects);
                    self.refused.insert(of);
                    self.plan(now, effects);
                }
            }
        }
        Touched::All
    }

    fn read(
        &mut self,
        now: Timestamp,
        number: Number,
        answer: Result<Option<Look>, PortError>,
        effects: &mut Vec<Effect>,
    ) -> Touched {
        match self.reads.remove(&number) {
            // Asked by an earlier way to the cluster, or answered twice.
            None => Touched::These(Vec::new()),
            Some(Purpose::Own(of, target)) => {
                if let Some(watch) = self.watches.get_mut(&of) {
                    watch.read(now, &target, answer);
                }
                Touched::These(vec![target])
            }
            Some(Purpose::Asked(owner, target)) => {
                let sight = match answer {
                    Ok(None) => Sight::Absent,
                    Ok(Some(look)) => present(&look, self.is_confirmed(&target, &look)),
                    Err(error) => Sight::Unknown(error.to_string()),
                };
                self.found(&owner, number, target, sight, effects);
                Touched::These(Vec::new())
            }
        }
    }

    /// One of the fresh reads that a Pipeline has asked for has come to this. The last of them is answered with all.
    fn found(
        &mut self,
        owner: &PipelineId,
        number: Number,
        target: TargetKey,
        sight: Sight,
        effects: &mut Vec<Effect>,
    ) {
        // One of an earlier wish is not open any more.
        let Some(fresh) = self.fresh.get_mut(owner).filter(|fresh| fresh.open.contains(&number)) else { return };
        fresh.open.remove(&number);
        fresh.sights.insert(target, sight);
        if fresh.open.is_empty() {
            effects.push(Effect::Looked(owner.clone(), fresh.ticket, std::mem::take(&mut fresh.sights)));
            self.fresh.remove(owner);
        }
    }

    /// Whether two looks of a watch, far enough apart, have said this.
    fn is_confirmed(&self, target: &TargetKey, look: &Look) -> bool {
        let watches = Collection::both(target).map(|of| self.watches.get(&of));
        watches.into_iter().flatten().any(|watch| watch.is_confirmed(target, look))
    }

    /// The known state of a target.
    fn sight(&self, target: &TargetKey) -> Sight {
        let unknown = |why: &str| Sight::Unknown(why.to_owned());
        match &self.link {
            Link::Unused | Link::Connecting => return unknown(NOT_SYNCED),
            Link::Down(why) => return unknown(why),
            Link::Up if self.gathering.is_some() => return unknown(NOT_SYNCED),
            Link::Up => {}
        }
        // A spare watch of its namespace knows more than one of all that has just begun.
        let watches = Collection::both(target).map(|of| self.watches.get(&of));
        let mut why = None;
        for watch in watches.into_iter().flatten() {
            match watch.sight(target) {
                Ok(sight) => return sight,
                Err(reason) => why = why.or(Some(reason)),
            }
        }
        let crowded = || {
            let watched = self.watches.keys().cloned().collect();
            let most = shares::most(self.claims(&watched).collect::<BTreeSet<_>>().into_iter().map(|(of, _)| of));
            format!("{WATCHES_MAX} other collections of its cluster are watched already ({most})")
        };
        Sight::Unknown(why.map_or_else(crowded, str::to_owned))
    }

    /// Tells the owners of targets whose sight has changed.
    fn report(&mut self, touched: Touched, also: Option<PipelineId>, effects: &mut Vec<Effect>) {
        let touched = match touched {
            Touched::These(targets) => targets,
            Touched::All => self.targets.keys().cloned().collect(),
        };
        let mut owners: BTreeSet<PipelineId> = also.into_iter().collect();
        for key in touched {
            let sight = self.sight(&key);
            if let Some(target) = self.targets.get_mut(&key).filter(|target| target.said != sight) {
                target.said = sight;
                owners.extend(target.owners.iter().cloned());
            }
        }
        for owner in owners {
            let Some(targets) = self.wanted.get(&owner) else { continue };
            let said = |key: &TargetKey| Some((key.clone(), self.targets.get(key)?.said.clone()));
            effects.push(Effect::Report(owner.clone(), targets.iter().filter_map(said).collect()));
        }
    }

    /// Reads by name what its watch has not shown, and what must be seen twice.
    fn ask(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let mut asked = Vec::new();
        for (of, watch) in &mut self.watches {
            asked.extend(watch.ask(now).into_iter().map(|target| (of.clone(), target)));
        }
        for (of, target) in asked {
            let number = self.number();
            effects.push(Effect::Read(number, target.clone()));
            self.reads.insert(number, Purpose::Own(of, target));
        }
    }
}

impl Machine for Leaf {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        let (touched, also) = match event {
            Event::Wanted(owner, targets) => (self.want(now, &owner, targets, &mut effects), Some(owner)),
            Event::LookedFor(owner, ticket, targets) => {
                self.look_for(owner, ticket, targets, &mut effects);
                (Touched::These(Vec::new()), None)
            }
            // Said before our end was known.
            Event::Linked | Event::Unlinked(_) if self.link == Link::Unused => return effects,
            Event::Linked => {
                self.forget(&mut effects);
                self.link = Link::Up;
                effects.push(Effect::Want(self.targets.keys().cloned().collect()));
                self.gathering = Some(Gathering { until: now.after(GATHER_FOR), at_most: now.after(GATHER_MAX) });
                (Touched::All, None)
            }
            Event::Unlinked(why) => {
                self.forget(&mut effects);
                self.gathering = None;
                self.link = Link::Down(why);
                (Touched::All, None)
            }
            Event::Told(number, news) => (self.told(now, number, news, &mut effects), None),
            Event::Read(number, answer) => (self.read(now, number, answer, &mut effects), None),
        };
        self.ask(now, &mut effects);
        self.report(touched, also, &mut effects);
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for watch in self.watches.values_mut() {
            watch.tick(now);
        }
        let gathered = self.gathering.take_if(|gathering| gathering.until <= now).is_some();
        let over: Vec<_> =
            self.watches.iter().filter(|(_, watch)| watch.is_over(now)).map(|(of, _)| of.clone()).collect();
        for of in &over {
            self.end(of, &mut effects);
        }
        if gathered || !over.is_empty() {
            self.plan(now, &mut effects);
        }
        self.ask(now, &mut effects);
        self.report(Touched::All, None, &mut effects);
        if self.unused.is_some_and(|since| since.after(SPARE_FOR) <= now) {
            self.forget(&mut effects);
            *self = Self { last: self.last, ..Self::new() };
            effects.push(Effect::End);
        }
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let watches = self.watches.values().filter_map(Watched::next_deadline);
        let unused = self.unused.map(|since| since.after(SPARE_FOR));
        watches.chain(unused).chain(self.gathering.as_ref().map(|gathering| gathering.until)).min()
    }

    fn breaks(&self, effect: &Effect) -> Vec<Promise> {
        let Effect::Report(_, sights) = effect else { return Vec::new() };
        let is_shown = |target: &TargetKey| {
            let watches = Collection::both(target).map(|of| self.watches.get(&of));
            self.link == Link::Up && watches.into_iter().flatten().any(|watch| watch.has_shown(target))
        };
        let mut there = sights.iter().filter(|(_, sight)| matches!(sight, Sight::Present(_)));
        if there.all(|(target, _)| is_shown(target)) { Vec::new() } else { vec![Promise::SeenThisWay] }
    }
}

#[cfg(test)]
mod tests;

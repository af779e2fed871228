//! The leaf machine between a cluster that changes, watches that lag, list again and break, reads that are answered late or never,
//! and Pipelines that change their minds. Whatever happens, what is said in the end is what is there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kernel::id::{PipelineId, Revision};
use kernel::machine::{Machine, Timestamp};
use objects::apps::app::{AppKind, ClusterKey, Look, Present, Sight, TargetKey};
use objects::apps::leaf::{Collection, Effect, Event, Leaf, News, Number, SPARE_FOR, Sights};
use proptest::prelude::*;
use purge::ports::PortError;

/// Targets: the first two are of one kind, and must be seen twice; the last is of another.
const TARGETS: usize = 3;
const KINDS: [&str; TARGETS] = ["Application", "Application", "Deployment"];

fn target(index: usize) -> TargetKey {
    let app = AppKind::new("example.com/v1", KINDS[index]);
    TargetKey::new(ClusterKey::Here, app, "prod", format!("app-{index}"))
}

/// What an object of this revision says.
fn look(index: usize, revision: u8) -> Look {
    let revision = Ok(Revision(revision.to_string()));
    Look {
        present: Present { uid: format!("u-{index}"), unready: None, revision },
        twice: KINDS[index] == "Application",
    }
}

#[derive(Clone, Debug)]
enum Action {
    Change(usize, Option<u8>),
    /// The server's side of the watch numbered so goes on by one step.
    Pump(usize),
    /// What it has said arrives, one at a time.
    Deliver(usize),
    Relist(usize),
    Trouble(usize),
    /// The server answers a read; the answer is still on its way.
    Serve(usize),
    Answer(usize),
    FailRead(usize),
    Want(u8, BTreeSet<usize>),
    LookFor(u8),
    Relink,
    Unlink,
    Wait(u64),
}

fn action() -> impl Strategy<Value = Action> {
    let targets = || prop::collection::btree_set(0..TARGETS, 0..=TARGETS);
    prop_oneof![
        4 => (0..TARGETS, prop::option::of(1_u8..4)).prop_map(|(index, revision)| Action::Change(index, revision)),
        6 => (0..4_usize).prop_map(Action::Pump),
        8 => (0..4_usize).prop_map(Action::Deliver),
        1 => (0..4_usize).prop_map(Action::Relist),
        1 => (0..4_usize).prop_map(Action::Trouble),
        3 => (0..4_usize).prop_map(Action::Serve),
        3 => (0..4_usize).prop_map(Action::Answer),
        1 => (0..4_usize).prop_map(Action::FailRead),
        2 => (0_u8..2, targets()).prop_map(|(owner, targets)| Action::Want(owner, targets)),
        1 => (0_u8..2).prop_map(Action::LookFor),
        1 => Just(Action::Relink),
        1 => Just(Action::Unlink),
        3 => prop_oneof![1_u64..12, 30_u64..40, 115_u64..125].prop_map(Action::Wait),
    ]
}

/// The server's side of one watch.
struct Watch {
    of: Collection,
    /// Objects of the listing that are still to be said, then `Synced`; `None`: all changes up to `at` were said.
    listing: Option<VecDeque<(usize, u8)>>,
    /// The listing was asked for, and its answer has not begun to come.
    awaited: bool,
    /// How many changes were said, or were in the listing.
    at: usize,
    mail: VecDeque<News>,
    /// Since when no target needs it.
    spare: Option<u64>,
}

struct World {
    leaf: Leaf,
    now: u64,
    is_up: bool,
    objects: [Option<u8>; TARGETS],
    /// Every change, in order.
    log: Vec<(usize, Option<u8>)>,
    filter: BTreeSet<TargetKey>,
    watches: BTreeMap<Number, Watch>,
    reads: BTreeMap<Number, (TargetKey, Option<Option<u8>>)>,
    wanted: BTreeMap<PipelineId, BTreeSet<TargetKey>>,
    said: BTreeMap<PipelineId, Sights>,
    /// Fresh reads that were asked for, and answered.
    asked: u64,
    answered: BTreeSet<u64>,
}

fn index_of(target: &TargetKey) -> usize {
    (0..TARGETS).find(|index| self::target(*index) == *target).expect("one of ours")
}

impl World {
    fn new() -> Self {
        Self {
            leaf: Leaf::new(),
            now: 0,
            is_up: false,
            objects: [None; TARGETS],
            log: Vec::new(),
            filter: BTreeSet::new(),
            watches: BTreeMap::new(),
            reads: BTreeMap::new(),
            wanted: BTreeMap::new(),
            said: BTreeMap::new(),
            asked: 0,
            answered: BTreeSet::new(),
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now * 1000)
    }

    fn step(&mut self, event: Event) {
        let effects = self.leaf.step_and_catch_up(self.at(), event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert_eq!(self.leaf.breaks(&effect), [], "{effect:?}");
            match effect {
                Effect::Want(targets) => self.filter = targets,
                Effect::Watch(number, of) => {
                    let watch = Watch { of, listing: None, awaited: false, at: 0, mail: VecDeque::new(), spare: None };
                    self.watches.insert(number, watch);
                    self.relist(number);
                }
                Effect::Unwatch(number) => drop(self.watches.remove(&number)),
                Effect::Read(number, target) => drop(self.reads.insert(number, (target, None))),
                Effect::Report(owner, sights) => {
                    self.no_trouble_spreads(&sights);
                    self.said.insert(owner, sights);
                }
                Effect::Looked(_, ticket, _) => assert!(self.answered.insert(ticket), "answered twice"),
                Effect::End => assert!(self.wanted.is_empty(), "it is wanted"),
                Effect::Connect => self.is_up = false,
            }
        }
        assert!(self.leaf.next_deadline().is_none_or(|deadline| deadline > self.at()), "a deadline is in the past");
        self.spare_watches_end();
    }

    /// LF-3: words about the other kind's collection say nothing about this target.
    fn no_trouble_spreads(&self, sights: &Sights) {
        for (target, sight) in sights {
            if let Sight::Unknown(why) = sight {
                let other = KINDS.iter().find(|kind| **kind != target.app.kind).expect("there are two kinds");
                assert!(!why.contains(other), "{} is unknown: {why}", target.app.kind);
            }
        }
    }

    /// LF-2.
    fn spare_watches_end(&mut self) {
        let wanted: BTreeSet<&TargetKey> = self.wanted.values().flatten().collect();
        for watch in self.watches.values_mut() {
            let is_needed = wanted.iter().any(|target| target.app.kind == watch.of.kind);
            watch.spare = (!is_needed).then(|| watch.spare.unwrap_or(self.now));
            let since = watch.spare.unwrap_or(self.now);
            assert!(self.now - since < SPARE_FOR.as_secs(), "a watch without a user lives on");
        }
    }

    fn nth<T>(map: &BTreeMap<Number, T>, place: usize) -> Option<Number> {
        map.keys().nth(place % map.len().max(1)).copied()
    }

    fn relist(&mut self, number: Number) {
        let Some(watch) = self.watches.get_mut(&number) else { return };
        let of_kind = (0..TARGETS).filter(|index| KINDS[*index] == watch.of.kind);
        watch.listing = Some(of_kind.filter_map(|index| Some((index, self.objects[index]?))).collect());
        watch.at = self.log.len();
        watch.awaited = true;
    }

    /// The next thing that a server says. What the filter leaves out is never said. That an answer begins is heard before anything of it
    /// is decoded.
    fn pump(&mut self, number: Number) -> bool {
        if self.watches.get_mut(&number).is_some_and(|watch| std::mem::take(&mut watch.awaited)) {
            while self.deliver(number) {}
            self.step(Event::Told(number, News::Restarted));
            return true;
        }
        let Some(watch) = self.watches.get_mut(&number) else { return false };
        let seen = |index: usize, revision: u8, filter: &BTreeSet<TargetKey>| {
            let target = target(index);
            filter.contains(&target).then(|| News::Seen(vec![(target, Ok(look(index, revision)))]))
        };
        if let Some(listing) = &mut watch.listing {
            match listing.pop_front() {
                Some((index, revision)) => watch.mail.extend(seen(index, revision, &self.filter)),
                None => {
                    watch.listing = None;
                    watch.mail.push_back(News::Synced);
                }
            }
            return true;
        }
        let Some((index, object)) = self.log.get(watch.at).copied() else { return false };
        watch.at += 1;
        if KINDS[index] == watch.of.kind {
            match object {
                Some(revision) => watch.mail.extend(seen(index, revision, &self.filter)),
                None => watch.mail.push_back(News::Gone { namespace: "prod".to_owned(), name: format!("app-{index}") }),
            }
        }
        true
    }

    fn deliver(&mut self, number: Number) -> bool {
        let Some(news) = self.watches.get_mut(&number).and_then(|watch| watch.mail.pop_front()) else { return false };
        self.step(Event::Told(number, news));
        true
    }

    fn answer(&mut self, number: Number) -> bool {
        let Some((target, Some(object))) = self.reads.get(&number).cloned() else { return false };
        self.reads.remove(&number);
        let answer = object.map(|revision| look(index_of(&target), revision));
        self.step(Event::Read(number, Ok(answer)));
        true
    }

    fn serve(&mut self, number: Number) {
        let objects = self.objects;
        if let Some((target, answer)) = self.reads.get_mut(&number).filter(|(_, answer)| answer.is_none()) {
            *answer = Some(objects[index_of(target)]);
        }
    }

    fn wait(&mut self, seconds: u64) {
        let end = self.now + seconds;
        while let Some(deadline) = self.leaf.next_deadline().filter(|deadline| deadline.as_millis() <= end * 1000) {
            self.now = self.now.max(deadline.as_millis().div_ceil(1000));
            let effects = self.leaf.tick(self.at());
            self.perform(effects);
        }
        self.now = end;
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Change(index, object) if self.objects[index] != object => {
                self.objects[index] = object;
                self.log.push((index, object));
            }
            Action::Change(..) => {}
            Action::Pump(place) => drop(Self::nth(&self.watches, place).map(|number| self.pump(number))),
            Action::Deliver(place) => drop(Self::nth(&self.watches, place).map(|number| self.deliver(number))),
            Action::Relist(place) => {
                let number = Self::nth(&self.watches, place);
                if let Some(number) = number.filter(|number| self.watches[number].listing.is_none()) {
                    self.relist(number);
                }
            }
            Action::Trouble(place) => {
                if let Some(watch) = Self::nth(&self.watches, place).and_then(|number| self.watches.get_mut(&number)) {
                    let trouble = PortError::passing(format!("failed to watch {}", watch.of.kind), "no route");
                    watch.mail.push_back(News::Trouble(trouble));
                    watch.mail.push_back(News::Synced);
                }
            }
            Action::Serve(place) => drop(Self::nth(&self.reads, place).map(|number| self.serve(number))),
            Action::Answer(place) => drop(Self::nth(&self.reads, place).map(|number| self.answer(number))),
            Action::FailRead(place) => {
                if let Some(number) = Self::nth(&self.reads, place) {
                    let (target, _) = self.reads.remove(&number).expect("it was there");
                    let error = PortError::passing(format!("failed to get {}", target.app.kind), "no answer");
                    self.step(Event::Read(number, Err(error)));
                }
            }
            Action::Want(owner, targets) => {
                let owner = PipelineId::new("shop", format!("p-{owner}"));
                let targets: BTreeSet<TargetKey> = targets.into_iter().map(target).collect();
                if targets.is_empty() {
                    self.wanted.remove(&owner);
                    self.said.remove(&owner);
                } else {
                    self.wanted.insert(owner.clone(), targets.clone());
                }
                self.step(Event::Wanted(owner, targets));
            }
            Action::LookFor(owner) => {
                let owner = PipelineId::new("shop", format!("p-{owner}"));
                if let Some(targets) = self.wanted.get(&owner).cloned() {
                    self.asked += 1;
                    self.step(Event::LookedFor(owner, self.asked, targets));
                }
            }
            Action::Relink => {
                self.is_up = true;
                self.step(Event::Linked);
            }
            Action::Unlink => {
                self.is_up = false;
                self.step(Event::Unlinked("the Secret is gone".to_owned()));
            }
            Action::Wait(seconds) => self.wait(seconds),
        }
    }

    /// Nothing changes any more, and all that was said and asked arrives.
    fn settle(&mut self) {
        if !self.is_up {
            self.take(Action::Relink);
        }
        for _ in 0..20 {
            let numbers: Vec<Number> = self.watches.keys().copied().collect();
            for number in numbers {
                while self.pump(number) || self.deliver(number) {}
            }
            let numbers: Vec<Number> = self.reads.keys().copied().collect();
            for number in numbers {
                self.serve(number);
                self.answer(number);
            }
            self.wait(61);
        }
    }

    fn holds_what_is_there(&self) {
        for (owner, targets) in &self.wanted {
            for target in targets {
                let index = index_of(target);
                let truth = match self.objects[index] {
                    None => Sight::Absent,
                    Some(revision) => Sight::Present(look(index, revision).present),
                };
                assert_eq!(self.said[owner].get(target), Some(&truth), "{}", target.name);
            }
        }
        assert!(self.reads.is_empty(), "asked for ever: {:?}", self.reads);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_said_in_the_end_is_what_is_there(actions in prop::collection::vec(action(), 1..120)) {
        let mut world = World::new();
        world.take(Action::Want(0, BTreeSet::from([0, 2])));
        world.take(Action::Relink);
        for action in actions {
            world.take(action);
        }
        world.settle();
        world.holds_what_is_there();
    }
}

//! The world around a watch: two objects, a stream that shows them, a ledger, and children.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kernel::id::Seq;
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use kernel::watches::listed::{Listed, Scope};
use kernel::watches::lives::{LifeNote, Lives};
use kernel::watches::watch::{self, Baseline, Event, Start, Watch, Written};

use super::action::Answer;
use super::kind::{Arrival, Id, Record, Sight, Toy};

type Effect = watch::Effect<Toy>;

/// Rounds in which everything comes to rest: a rest after three abrupt ends is 160 s, and a round takes a minute.
const ROUNDS: usize = 12;

#[derive(Clone)]
pub struct World {
    /// The versions of each object in the order of time; `None` while it does not exist.
    pub scripts: [&'static [Option<u8>]; 2],
    /// Whether the ledger says at the beginning that everything is on record. It has a record of the first object.
    pub listed: bool,
    /// Whether it says that this life works.
    pub noted: bool,
    pub faults: Faults,
}

/// How many faults of each kind one run may have.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Faults {
    /// The child of the first object crashes.
    pub crashes: u8,
    /// The notice of a death is lost.
    pub lost: u8,
    /// It writes over and over.
    pub overdrawn: u8,
    /// A mailbox is full.
    pub full: u8,
    /// A call fails; what it was to do may have been done.
    pub failed: u8,
    /// The ledger has no room.
    pub no_room: u8,
    /// The stream lists again.
    pub relists: u8,
    /// The process ends abruptly.
    pub abrupt: u8,
    /// Only the watcher is rebuilt.
    pub rebuilt: u8,
    /// The cluster is restored from the backup made at the beginning.
    pub set_back: u8,
    /// Another member waits for an object.
    pub wanted: u8,
    /// The children's peers are rebuilt.
    pub peers: u8,
    pub minutes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ledger {
    records: [Option<Record>; 2],
    floor: Seq,
    listed: Listed,
    note: Option<LifeNote<Id>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Child {
    pub knows: Option<Sight>,
    /// What was said since it was started, if anything was.
    pub said: Option<Option<Sight>>,
    pub known: Option<Record>,
    pub spent: Seq,
    pub full: bool,
    pub peers: u8,
    pub dead: Option<Death>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Death {
    Crashed,
    Overdrawn,
    Finished(Option<Record>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    pub broken: BTreeSet<Promise>,
    /// Where in its script each object was when a listing contained it.
    pub contained: [Option<usize>; 2],
    /// Its child ended because it is gone, and it was neither seen nor asked for since.
    pub buried: [bool; 2],
    /// It may be without a record though it was seen.
    pub excused: [bool; 2],
    pub set_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub watch: Watch<Toy>,
    pub now: Timestamp,
    pub left: Faults,
    /// Where the scripts are.
    pub at: [usize; 2],
    /// What the stream said last of each, and the last sight of each in this life.
    pub said: [Option<Sight>; 2],
    pub seen: [Option<Sight>; 2],
    /// What the listing under way has contained so far.
    pub listing: Option<[bool; 2]>,
    pub listed: bool,
    pub ledger: Ledger,
    pub children: [Option<Child>; 2],
    pub calls: Vec<Effect>,
    /// The highest number of each that this life was told of.
    pub told: [Seq; 2],
    pub peers: u8,
    pub past: Past,
}

fn seq_of(record: Option<&Record>) -> Seq {
    record.map_or(Seq(0), |record| record.seq)
}

impl Ledger {
    fn new(world: &World) -> Self {
        let mut listed = Listed::default();
        if world.listed {
            listed.add(Scope::of(None));
        }
        let known = Record { seq: Seq(1), revision: 1, version: 1 };
        let note = world.noted.then(|| LifeNote { open: true, ..LifeNote::default() });
        Self { records: [Some(known), None], floor: Seq(0), listed, note }
    }

    fn all(&self) -> BTreeMap<Id, Arc<Record>> {
        (0..2).filter_map(|i| Some((Id(i), Arc::new(self.records[i]?)))).collect()
    }
}

impl State {
    pub fn new(world: &World) -> Self {
        let ledger = Ledger::new(world);
        let lives = Lives::go_on(ledger.note.clone(), Timestamp::default());
        Self {
            watch: Watch::new(Toy, ledger.all(), BTreeMap::new(), ledger.listed.clone(), lives),
            now: Timestamp::default(),
            left: world.faults,
            at: [0; 2],
            said: [None; 2],
            seen: [None; 2],
            listing: None,
            listed: false,
            told: [seq_of(ledger.records[0].as_ref()), Seq(0)],
            ledger,
            children: [None, None],
            calls: Vec::new(),
            peers: 0,
            past: Past::default(),
        }
    }

    pub fn truth(&self, world: &World, i: usize) -> Option<Sight> {
        world.scripts[i][self.at[i]].map(|version| Sight { id: Id(i), place: self.at[i], version })
    }

    pub fn promise(&mut self, promise: Promise, kept: bool) {
        if !kept {
            self.past.broken.insert(promise);
        }
    }

    pub fn feed(&mut self, event: Event<Toy>) {
        let effects = self.watch.step_and_catch_up(self.now, event);
        self.perform(effects);
    }

    pub fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start(start) => self.start(*start),
                Effect::Pass(id, sight) => {
                    let sight = sight.map(|sight| *sight);
                    self.promise(Promise::NewestSight, sight == self.said[id.0]);
                    match self.reach(id) {
                        Some(child) => child.knows = sight,
                        None => self.feed(Event::PassedInVain(id)),
                    }
                }
                Effect::Direct(id) => {
                    let peers = self.peers;
                    match self.reach(id) {
                        Some(child) => child.peers = peers,
                        None => self.feed(Event::DirectedInVain(id)),
                    }
                }
                Effect::NoteListed(_) => {
                    let is_kept = |i: usize| {
                        let is_there = self.past.contained[i].is_some() && self.said[i].is_some();
                        !is_there || self.ledger.records[i].is_some() || self.children[i].is_some()
                    };
                    let kept = (0..2).all(|i| is_kept(i) || self.past.excused[i]);
                    self.promise(Promise::NotedWhenKept, kept || self.past.set_back);
                    self.calls.push(effect);
                }
                Effect::WriteBaselines(..) | Effect::NoteLife(_) | Effect::ReadLedger => self.calls.push(effect),
                Effect::TellRebuilt(_) | Effect::TellLeftAlone(..) | Effect::TellTried(_) => {}
            }
        }
    }

    pub fn reach(&mut self, id: Id) -> Option<&mut Child> {
        self.children[id.0].as_mut().filter(|child| !child.full && child.dead.is_none())
    }

    pub fn start(&mut self, start: Start<Toy>) {
        let i = start.id.0;
        let latest = start.case.latest.map(|sight| *sight);
        self.promise(Promise::OneChild, self.children[i].is_none());
        self.promise(Promise::NewestSight, latest.is_none() || latest == self.seen[i]);
        self.promise(Promise::BuriedOnce, !self.past.buried[i] || self.past.set_back);
        let is_new = latest.is_some() && start.known.is_none() && start.case.arrival == Arrival::New;
        self.promise(Promise::FoundIsNotNew, !is_new || self.past.contained[i].is_none() || self.past.excused[i]);
        self.children[i] = Some(Child {
            knows: latest,
            said: None,
            known: start.known.map(|record| *record),
            spent: start.spent,
            full: false,
            peers: self.peers,
            dead: None,
        });
    }

    pub fn say(&mut self, i: usize, sight: Option<Sight>) {
        self.said[i] = sight;
        self.seen[i] = sight.or(self.seen[i]);
        self.past.buried[i] &= sight.is_none();
        if let Some(child) = &mut self.children[i] {
            child.said = Some(sight);
        }
        // Another object under the same name was in no listing yet.
        if sight.is_none() {
            self.past.contained[i] = None;
        }
    }

    pub fn can_show(&self, world: &World, i: usize) -> bool {
        let truth = self.truth(world, i);
        match self.listing {
            Some(contained) => truth.is_some() && !contained[i],
            None => self.listed && truth != self.said[i],
        }
    }

    pub fn show(&mut self, world: &World, i: usize) {
        let truth = self.truth(world, i);
        self.say(i, truth);
        if let Some(contained) = &mut self.listing {
            contained[i] = true;
        }
        self.feed(truth.map_or(Event::Gone(Id(i)), |sight| Event::Seen(Box::new(sight))));
    }

    pub fn can_complete(&self, world: &World) -> bool {
        self.listing.is_some_and(|contained| (0..2).all(|i| contained[i] || self.truth(world, i).is_none()))
    }

    pub fn complete(&mut self) {
        let Some(contained) = self.listing.take() else { return };
        for i in (0..2).filter(|i| !contained[*i]) {
            self.say(i, None);
        }
        for i in (0..2).filter(|i| contained[*i] && !self.ledger.listed.is_whole(&Scope::of(None))) {
            self.past.contained[i] = self.said[i].map(|sight| sight.place);
        }
        self.listed = true;
        self.feed(Event::Listed(Scope::of(None), true));
    }

    pub fn relist(&mut self) {
        self.listing = Some([false; 2]);
        self.feed(Event::Relisting(Scope::of(None)));
    }

    pub fn answer(&mut self, call: usize, answer: Answer) {
        let done = answer == Answer::Works;
        match self.calls.remove(call) {
            Effect::WriteBaselines(found, above) => {
                let all = found.into_iter().map(|(id, record)| self.write(id, *record, above, answer)).collect();
                self.feed(Event::BaselinesWritten(all));
            }
            Effect::NoteListed(scopes) => {
                if answer != Answer::Fails {
                    scopes.iter().for_each(|scope| self.ledger.listed.add(scope.clone()));
                }
                self.feed(Event::ListedNoted(scopes, done));
            }
            Effect::NoteLife(note) => {
                if answer != Answer::Fails {
                    self.ledger.note = Some(note);
                }
                self.feed(Event::LifeNoted(done));
            }
            Effect::ReadLedger => self.feed(Event::Compared(self.ledger.all(), BTreeMap::new())),
            other => unreachable!("no call: {other:?}"),
        }
    }

    pub fn write(&mut self, id: Id, mut record: Record, above: Seq, answer: Answer) -> Baseline<Toy> {
        let i = id.0;
        record.seq = self.ledger.floor.max(above).next();
        let current = self.ledger.records[i];
        let written = match answer {
            Answer::Fails => Written::Failed,
            Answer::NoRoom => {
                self.past.excused[i] = true;
                Written::NoRoom
            }
            Answer::Works | Answer::Lost if current.is_none_or(|current| current == record) => {
                self.promise(Promise::NumbersUsedOnce, current.is_some() || record.seq > self.told[i]);
                self.ledger.records[i] = Some(record);
                if answer == Answer::Lost { Written::Failed } else { Written::Done }
            }
            Answer::Works | Answer::Lost => Written::Conflict(current.map(Box::new)),
        };
        match &written {
            Written::Done => self.told[i] = self.told[i].max(record.seq),
            Written::Conflict(_) => self.told[i] = self.told[i].max(seq_of(current.as_ref())),
            Written::Failed | Written::NoRoom => {}
        }
        Baseline { id, record: Arc::new(record), written }
    }

    /// A child whose sight is old waits for the next one. One without a sight looks for itself.
    pub fn can_work(&self, world: &World, i: usize) -> bool {
        let alive = self.children[i].as_ref().filter(|child| child.dead.is_none());
        alive.is_some_and(|child| child.knows.is_none() || child.knows == self.truth(world, i))
    }

    pub fn work(&mut self, world: &World, i: usize) {
        let (truth, current) = (self.truth(world, i), self.ledger.records[i]);
        let Some(child) = &self.children[i] else { return };
        let known = seq_of(child.known.as_ref()).max(child.spent);
        let after = match (truth, current) {
            (Some(truth), Some(current)) if current.version == truth.version && known <= current.seq => Some(current),
            (Some(truth), _) => {
                let seq = seq_of(current.as_ref()).max(self.ledger.floor).max(known).next();
                self.promise(Promise::NumbersUsedOnce, seq > self.told[i]);
                let revision = current.map_or(1, |current| current.revision + 1);
                Some(Record { seq, revision, version: truth.version })
            }
            (None, _) => {
                self.ledger.floor = self.ledger.floor.max(seq_of(current.as_ref())).max(known);
                None
            }
        };
        self.ledger.records[i] = after;
        self.die(i, Death::Finished(after));
    }

    pub fn die(&mut self, i: usize, death: Death) {
        self.children[i].iter_mut().for_each(|child| child.dead = Some(death.clone()));
    }

    pub fn tell(&mut self, i: usize) {
        let Some(death) = self.children[i].take().and_then(|child| child.dead) else { return };
        let end = match death {
            Death::Crashed => watch::End::Crashed,
            Death::Overdrawn => watch::End::Overdrawn,
            Death::Finished(record) => {
                self.past.buried[i] = record.is_none() && self.said[i].is_none();
                self.told[i] = self.told[i].max(seq_of(record.as_ref()));
                watch::End::Finished(record.map(Box::new))
            }
        };
        self.feed(Event::Died(Id(i), end));
    }

    pub fn is_dead(&self, i: usize) -> bool {
        self.children[i].as_ref().is_some_and(|child| child.dead.is_some())
    }

    /// A death whose notice was lost is taken for a crash.
    pub fn sweep(&mut self, world: &World) {
        for i in 0..2 {
            if self.is_dead(i) {
                self.children[i] = None;
                self.feed(Event::Died(Id(i), watch::End::Crashed));
            }
        }
        self.feed(Event::Swept);
        let is_quiet = self.listed && self.listing.is_none() && self.calls.is_empty();
        self.promise(Promise::NoneLost, !is_quiet || (0..2).all(|i| self.is_seen_to(world, i) || self.past.excused[i]));
        for i in 0..2 {
            let Some(child) = self.children[i].as_ref().filter(|child| !child.full) else { continue };
            let kept = child.said.is_none_or(|said| said == child.knows) && child.peers == self.peers;
            self.promise(Promise::NewsArrives, kept);
        }
    }

    /// What is gone may stay on record until the next listing, if its child ended just before. A child may know more than was said.
    pub fn is_seen_to(&self, world: &World, i: usize) -> bool {
        let recorded = self.ledger.records[i].map(|record| record.version);
        let is_recorded = |sight: Option<Sight>| sight.is_none_or(|sight| recorded == Some(sight.version));
        let is_on_record = is_recorded(self.said[i]) || is_recorded(self.truth(world, i));
        is_on_record || self.children[i].is_some() || self.watch.nursery().left_alone().any(|(id, _)| id.0 == i)
    }

    pub fn wait(&mut self) {
        while let Some(deadline) = self.watch.next_deadline() {
            self.now = self.now.max(deadline);
            let effects = self.watch.tick(self.now);
            self.perform(effects);
        }
    }

    pub fn restart(&mut self, abrupt: bool) {
        let note = self.ledger.note.clone();
        let lives = if abrupt { Lives::begin(note, self.now) } else { Lives::go_on(note, self.now) };
        self.watch = Watch::new(Toy, self.ledger.all(), BTreeMap::new(), self.ledger.listed.clone(), lives);
        (self.said, self.seen) = ([None; 2], [None; 2]);
        (self.listing, self.listed) = (None, false);
        (self.children, self.calls) = ([None, None], Vec::new());
        self.told = [0, 1].map(|i| seq_of(self.ledger.records[i].as_ref()));
    }

    pub fn set_back(&mut self, world: &World) {
        self.ledger = Ledger::new(world);
        self.at = [0; 2];
        (self.listing, self.listed) = (None, false);
        self.past.set_back = true;
        (self.past.excused, self.past.buried) = ([true; 2], [false; 2]);
        self.feed(Event::SetBack);
    }

    /// Whether everything comes to rest where no further fault happens: all that exists is on record as it is, what does not is on
    /// no record, no child is at work, and nothing is left alone.
    pub fn settles(&self, world: &World) -> bool {
        let mut end = self.clone();
        (0..ROUNDS).any(|_| {
            end.calm(world);
            end.is_settled(world)
        })
    }

    pub fn is_settled(&self, world: &World) -> bool {
        let is_right = |i: usize| {
            let wanted = self.truth(world, i).map(|sight| sight.version);
            self.ledger.records[i].map(|record| record.version) == wanted && self.children[i].is_none()
        };
        let is_quiet = self.calls.is_empty() && !self.watch.has_baselines();
        let is_noted = self.past.set_back || self.ledger.listed.is_whole(&Scope::of(None));
        is_quiet && is_noted && (0..2).all(is_right) && self.watch.nursery().left_alone().next().is_none()
    }

    /// One round in which whatever may happen does.
    pub fn calm(&mut self, world: &World) {
        self.children.iter_mut().flatten().for_each(|child| child.full = false);
        self.relist();
        for i in 0..2 {
            if self.can_show(world, i) {
                self.show(world, i);
            }
        }
        self.complete();
        for _ in 0..4 {
            while !self.calls.is_empty() {
                self.answer(0, Answer::Works);
            }
            for i in 0..2 {
                if self.can_work(world, i) {
                    self.work(world, i);
                }
                if self.is_dead(i) {
                    self.tell(i);
                }
            }
        }
        self.sweep(world);
        self.wait();
        self.now = self.now.after(Duration::from_secs(60));
    }
}

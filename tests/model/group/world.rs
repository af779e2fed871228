//! Several members around one CDN, small enough to be searched to the end. What is state is what lasts: each member's
//! ledger, its Deployment, what CloudFront has created, and a write under way. Redis, the network and the memory of workers
//! are not: whoever works begins with what the ledger says, with *any* copies of the others' records that were ever
//! published, and gets as far as its next write. That covers every loss, wipe, delay, partition, restart and pause at once.
//!
//! Every decision is the production machine's; here are only facts and faults.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use kernel::floor::Floor;
use kernel::id::{Member, Nonce, Origin, Seq, Vector};
use purge::agreement::board::Posting;
use purge::bounds::policy::Policy;
use purge::purges::purge::Order;
use purge::records::record::{Edge, Published, Record};
use purge::records::record_codec::form;
use purge::records::rules::Rules;
use purge::rollouts::rollout::adoption::adopt;
use purge::workloads::workload::Workload;

use crate::group::mutants::Mutant;
use crate::group::past::Past;
use crate::group::worker::Worker;
use crate::hashed::Hashed;

#[derive(Clone)]
pub struct World {
    pub members: Vec<Cluster>,
    pub policy: Policy,
    /// Worker processes in each cluster.
    pub workers: usize,
    pub faults: Faults,
    pub mutant: Option<Mutant>,
    /// A decided purge is carried out and closed in one go, instead of in steps with every fault in between. The searches of
    /// one rollout have those steps; with several rollouts they only multiply.
    pub swift: bool,
    /// What a worker does depends on few things, and the same combination returns in most states.
    pub done: Arc<Mutex<HashMap<u64, Choices>>>,
}

/// One member's cluster: what happens in it, and how its member is configured.
#[derive(Clone)]
pub struct Cluster {
    /// The true states of the Deployment in the order of time; `None` while it does not exist.
    pub script: Vec<Option<Workload>>,
    /// Places of the script at which a pod of the version that is rolled out there answers requests.
    pub served: BTreeSet<usize>,
    /// The record at the beginning.
    pub record: Option<Record>,
    /// The configurations it runs with, one after the other: a hash, and the members it lists.
    pub configs: Vec<(&'static str, usize)>,
    /// It does nothing any more after so many writes.
    pub dies_after: Option<u8>,
}

/// The configuration of a member that runs the release before: the number of its rules is among the settings, so it is part of
/// what the hash covers.
pub const BEFORE: &str = "rules 2";

/// The configuration of a member that is on hold: nothing is agreed on there, for ever.
pub const HELD: &str = "on hold";

/// By which rules a member votes that runs with this configuration.
pub fn rules(config: &str) -> Rules {
    if config == BEFORE { Rules::SECOND } else { Rules::CURRENT }
}

/// The newest form of a record that the release with rules 2 knows.
const BEFORE_FORM: u32 = 2;

/// Whether the release that runs with this configuration can read the record, its own or another member's copy.
fn can_read(config: &str, record: &Record) -> bool {
    rules(config) == Rules::CURRENT || form(record) <= BEFORE_FORM
}

/// How many faults of each kind one run may have. Everything else that can go wrong is part of every step.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Faults {
    /// A timeout passes although something else could happen first.
    pub impatience: u8,
    /// A ledger is deleted and begun anew.
    pub ledgers: u8,
    /// A ledger is restored from the backup made at the beginning, and adopted.
    pub restores: u8,
}

/// One member, at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Where the script is.
    pub at: usize,
    /// Which configuration it runs with.
    pub config: usize,
    pub origin: Origin,
    pub record: Option<Hashed<Record>>,
    pub floor: Seq,
    /// Writes so far, if it dies of them.
    pub written: u8,
    /// Every state of the record that others may have a copy of, and the ledger it is from; `None` before the first.
    pub published: BTreeSet<(Origin, Hashed<Published>)>,
    /// The writes its workers are about to make, each with the record it was made from.
    pub pending: Vec<Option<Write>>,
}

/// A compare-and-set under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub from: Option<Hashed<Record>>,
    pub to: Option<Hashed<Record>>,
}

/// Everything, at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub places: Vec<Place>,
    pub left: Faults,
    pub past: Hashed<Past>,
    /// Nothing but faults can happen any more.
    pub quiet: bool,
}

/// What can happen next.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A Deployment moves on.
    Script(usize),
    /// A member is started with its next configuration.
    Configure(usize),
    /// A worker of a member does this, which follows from facts it may have.
    Work(usize, usize, Arc<Done>),
    /// The write is made, or refused.
    Write(usize, usize),
    /// The worker dies before it, or its answer is lost and the next one finds out.
    Crash(usize, usize),
    /// The ledger is deleted; the next one begins with the workload as it is.
    LoseLedger(usize),
    /// The ledger is restored, and its person has it adopted; until then it was on hold.
    Restore(usize),
}

/// What a worker knows when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub member: usize,
    pub origin: Origin,
    pub record: Option<Hashed<Record>>,
    pub floor: Seq,
    pub config: usize,
    /// What its watch shows, and what a fresh look would.
    pub seen: usize,
    pub at: usize,
    /// The others' records, as it has copies of them.
    pub copies: Vec<Copied>,
    /// The others' present ledgers: what their beats say.
    pub ledgers: Vec<Origin>,
    pub patience: Patience,
}

/// How much time passes for a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Patience {
    #[default]
    /// Enough for its turn to come, if there is nothing to do before.
    Turn,
    /// Enough for every timeout.
    Timeout,
}

/// Which facts a worker may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Facts {
    /// The newest, and time enough for its turn.
    Newest,
    /// The newest, and time enough for every timeout.
    Impatient,
    /// Any copies that were ever published, and a sight of now or just before.
    Any,
}

/// A copy of another member's record, and the ledger it is from.
pub type Copied = Option<(Origin, Hashed<Published>)>;

/// The different things that may be done.
type Choices = Arc<Vec<Arc<Done>>>;

/// What a worker does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Done {
    pub patience: Patience,
    pub write: Option<Option<Hashed<Record>>>,
    /// The calls to CloudFront, each for a vector.
    pub created: Vec<(Vector, Order)>,
    pub absent: Option<Seq>,
    /// It has read the workload afresh, or has called CloudFront.
    pub outside: bool,
}

pub fn name(member: usize) -> Member {
    Member(format!("m{}", member + 1))
}

impl World {
    pub fn new(members: Vec<Cluster>, policy: Policy) -> Self {
        Self {
            members,
            policy,
            workers: 1,
            faults: Faults::default(),
            mutant: None,
            swift: false,
            done: Arc::default(),
        }
    }

    pub fn start(&self) -> State {
        let place = |(number, cluster): (usize, &Cluster)| {
            let origin = Origin(format!("ledger-{}", number + 1));
            let record = cluster.record.clone().map(Hashed::new);
            Place {
                at: 0,
                config: 0,
                record: record.clone(),
                floor: Seq(0),
                written: 0,
                published: record.into_iter().map(|record| (origin.clone(), copy(&record))).collect(),
                pending: vec![None; self.workers],
                origin,
            }
        };
        let places: Vec<Place> = self.members.iter().enumerate().map(place).collect();
        let mut state = State { places, left: self.faults, past: Hashed::new(Past::at_first(self)), quiet: false };
        state.note_instant(self);
        state
    }

    /// What happens by itself, sooner or later: everything but old copies, crashes and impatience.
    pub fn steps(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (m, place) in state.places.iter().enumerate() {
            let cluster = &self.members[m];
            if place.at + 1 < cluster.script.len() {
                actions.push(Action::Script(m));
            }
            if place.config + 1 < cluster.configs.len() {
                actions.push(Action::Configure(m));
            }
            for w in 0..self.workers {
                if place.pending[w].is_some() {
                    actions.push(Action::Write(m, w));
                } else {
                    actions.extend(self.choices(state, m, Facts::Newest).map(|done| Action::Work(m, w, done)));
                }
            }
        }
        actions
    }

    /// When nothing but the timeouts can happen any more, they do.
    pub fn timeouts(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (m, place) in state.places.iter().enumerate() {
            for w in (0..self.workers).filter(|w| place.pending[*w].is_none()) {
                actions.extend(self.choices(state, m, Facts::Impatient).map(|done| Action::Work(m, w, done)));
            }
        }
        actions
    }

    pub fn mishaps(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (m, place) in state.places.iter().enumerate() {
            for w in 0..self.workers {
                if place.pending[w].is_some() {
                    actions.push(Action::Crash(m, w));
                } else {
                    actions.extend(self.choices(state, m, Facts::Any).map(|done| Action::Work(m, w, done)));
                }
            }
            if state.left.ledgers > 0 && place.record.is_some() && place.pending.iter().all(Option::is_none) {
                actions.push(Action::LoseLedger(m));
            }
            if state.left.restores > 0 && place.record != self.members[m].record.clone().map(Hashed::new) {
                actions.push(Action::Restore(m));
            }
        }
        if state.left.impatience > 0 {
            actions.extend(self.timeouts(state));
        }
        actions
    }

    fn lives(&self, m: usize, place: &Place) -> bool {
        self.members[m].dies_after.is_none_or(|writes| place.written < writes)
    }

    /// What a worker of a member could do and that changes anything; each once, however many facts lead to it.
    fn choices<'a>(&self, state: &'a State, member: usize, facts: Facts) -> impl Iterator<Item = Arc<Done>> + use<'a> {
        let place = &state.places[member];
        let (config, _) = self.members[member].configs[place.config];
        let reads = place.record.as_deref().is_none_or(|record| can_read(config, record));
        let choices =
            if reads && self.lives(member, place) { self.all_choices(state, member, facts) } else { Arc::default() };
        let acts = move |done: &Arc<Done>| {
            let creates = || done.created.iter().any(|(_, order)| !state.past.creations.contains_key(&order.reference));
            let tells = || done.absent.is_some_and(|floor| !place.published.contains(&place.absent(floor)));
            done.write.is_some() || creates() || tells()
        };
        (0..choices.len()).map(move |number| choices[number].clone()).filter(acts)
    }

    fn all_choices(&self, state: &State, member: usize, facts: Facts) -> Choices {
        let place = &state.places[member];
        let (_, members) = self.members[member].configs[place.config];
        let others = state.places.iter().enumerate().take(members).filter(|(m, _)| *m != member);
        let mut hasher = DefaultHasher::new();
        (member, facts, &place.origin, &place.record, place.floor, place.config, place.at).hash(&mut hasher);
        for (_, other) in others {
            other.origin.hash(&mut hasher);
            match facts {
                Facts::Any => other.published.hash(&mut hasher),
                Facts::Newest | Facts::Impatient => other.newest().hash(&mut hasher),
            }
        }
        let key = hasher.finish();
        if let Some(choices) = self.done.lock().expect("no worker panics").get(&key) {
            return choices.clone();
        }
        let mut seen = HashSet::new();
        let jobs = self.jobs(state, member, facts).into_iter();
        let done = jobs.map(|job| Arc::new(Worker::new(self, &job).run())).filter(|done| seen.insert(done.clone()));
        let choices = Arc::new(done.collect::<Vec<_>>());
        self.done.lock().expect("no worker panics").insert(key, choices.clone());
        choices
    }

    fn jobs(&self, state: &State, member: usize, facts: Facts) -> Vec<Job> {
        let place = &state.places[member];
        let (config, members) = self.members[member].configs[place.config];
        let readable =
            |(_, copy): &(Origin, Hashed<Published>)| copy.record().is_none_or(|record| can_read(config, record));
        let mut choices: Vec<Vec<Copied>> = vec![Vec::new()];
        for (m, other) in state.places.iter().enumerate().take(members) {
            let copies: Vec<Copied> = match facts {
                _ if m == member => vec![None],
                Facts::Newest | Facts::Impatient => vec![other.newest().filter(readable)],
                Facts::Any => {
                    let any = other.published.iter().filter(|copy| readable(copy)).cloned().map(Some);
                    any.chain(self.members[m].record.is_none().then_some(None)).collect()
                }
            };
            let extended = choices
                .iter()
                .flat_map(|choice| copies.iter().map(|copy| [&choice[..], std::slice::from_ref(copy)].concat()));
            choices = extended.collect();
        }
        let ledgers: Vec<Origin> = state.places.iter().map(|place| place.origin.clone()).collect();
        // A deleted workload that a stale watch shows again is recorded, looked at and removed again, without end.
        let gone = self.members[member].script[place.at].is_none();
        let first = if facts == Facts::Any && !gone { place.at.saturating_sub(1) } else { place.at };
        let patience = if facts == Facts::Impatient { Patience::Timeout } else { Patience::Turn };
        let job = |copies: &Vec<Copied>, seen| Job {
            member,
            origin: place.origin.clone(),
            record: place.record.clone(),
            floor: place.floor,
            config: place.config,
            seen,
            at: place.at,
            copies: copies.clone(),
            ledgers: ledgers.clone(),
            patience,
        };
        choices.iter().flat_map(|copies| (first..=place.at).map(|seen| job(copies, seen))).collect()
    }

    pub fn after(&self, state: &State, action: &Action) -> State {
        let mut next = state.clone();
        match action {
            Action::Script(m) => next.places[*m].at += 1,
            Action::Configure(m) => next.places[*m].config += 1,
            Action::Work(m, w, done) => self.apply(&mut next, *m, *w, done),
            Action::Write(m, w) => self.write(&mut next, *m, *w),
            Action::Crash(m, w) => next.places[*m].pending[*w] = None,
            Action::LoseLedger(m) => {
                next.left.ledgers -= 1;
                next.lose_ledger(*m);
            }
            Action::Restore(m) => {
                next.left.restores -= 1;
                self.restore(&mut next, *m);
            }
        }
        if let Action::Work(_, _, done) = action
            && done.patience == Patience::Timeout
            && !self.steps(state).is_empty()
        {
            next.left.impatience -= 1;
        }
        next.note_instant(self);
        next.note_served(self);
        next.quiet = self.steps(&next).is_empty() && self.timeouts(&next).is_empty();
        next
    }

    /// The copies of the others are all there: who has lost them knows nothing of a restore, and is covered by the nonces.
    fn restore(&self, next: &mut State, m: usize) {
        next.remember(|past| past.gave_up = true);
        let place = &mut next.places[m];
        let workload = self.members[m].script[place.at].as_ref();
        let now = workload.and_then(|workload| Some((workload, workload.version.as_ref().ok()?)));
        let shown = place.published.iter().filter(|(origin, _)| *origin == place.origin);
        // No copy is numbered here, so the newest says so.
        let newest = place.record.as_deref().map(|record| Record { revision: 2, ..record.clone() });
        let copies = shown.map(|(_, copy)| Posting::Show((**copy).clone())).chain(newest.map(Posting::from));
        let copies: Vec<Posting> = copies.collect();
        let backup = self.members[m].record.as_ref();
        let adopted = Record { revision: 1, ..adopt(now, backup, Floor::default(), &copies, Nonce::default()) };
        place.pending.iter_mut().for_each(|pending| *pending = None);
        place.published.insert((place.origin.clone(), copy(&adopted)));
        place.record = Some(Hashed::new(adopted));
    }

    fn apply(&self, next: &mut State, m: usize, w: usize, done: &Done) {
        let from = next.places[m].record.clone();
        if let Some(Some(to)) = &done.write {
            next.note_votes(self, m, to);
        }
        for (vector, order) in &done.created {
            let mut order = order.clone();
            if let Some(mutant) = self.mutant {
                let (config, _) = self.members[m].configs[next.places[m].config];
                mutant.references(&mut order, vector, next.past.creations.len(), from.as_deref(), rules(config));
            }
            next.note_creation(vector, &order);
        }
        if let Some(floor) = done.absent {
            let published = next.places[m].absent(floor);
            next.places[m].published.insert(published);
        }
        if let Some(to) = &done.write {
            next.places[m].pending[w] = Some(Write { from, to: to.clone() });
            // Alone with its ledger, a worker that writes later is one that works later: the copies it began with are still
            // there. Only what it has learnt or done outside cannot be had again.
            if self.workers == 1 && !done.outside {
                self.write(next, m, w);
            }
        }
    }

    fn write(&self, next: &mut State, m: usize, w: usize) {
        let Some(write) = next.places[m].pending[w].take() else { return };
        let held = next.places[m].record.clone();
        let below = held.is_none() && write.to.as_ref().is_some_and(|to| to.seq <= next.places[m].floor);
        if (held != write.from || below) && self.mutant != Some(Mutant::NoCompareAndSet) {
            return;
        }
        next.note_write(self, m, held.as_deref(), write.to.as_deref());
        let counts = self.members[m].dies_after.is_some();
        let place = &mut next.places[m];
        place.written += u8::from(counts);
        if let (None, Some(held)) = (&write.to, &held) {
            place.floor = place.floor.max(held.seq);
        }
        place.published.extend(write.to.iter().map(|record| (place.origin.clone(), copy(record))));
        place.record = write.to;
    }
}

/// A record as far as another member's decisions depend on it.
fn copy(record: &Record) -> Hashed<Published> {
    let mut copy = record.clone();
    copy.uid.clear();
    copy.generation = 0;
    copy.settled = None;
    copy.edge = Edge::Settled;
    copy.requested_at = None;
    copy.history.clear();
    copy.conditions.clear();
    copy.stalled = false;
    copy.votes.iter_mut().for_each(|vote| vote.purges.overtaken = false);
    Hashed::new(copy.into())
}

impl Place {
    /// What it publishes when the cluster does not have the workload.
    fn absent(&self, floor: Seq) -> (Origin, Hashed<Published>) {
        (self.origin.clone(), Hashed::new(Published::Absent(floor)))
    }

    fn newest(&self) -> Copied {
        let absent = || {
            let copies =
                self.published.iter().filter(|(origin, copy)| *origin == self.origin && copy.record().is_none());
            copies.max_by_key(|(_, copy)| copy.seq()).cloned()
        };
        self.record.as_ref().map(|record| (self.origin.clone(), copy(record))).or_else(absent)
    }
}

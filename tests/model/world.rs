//! The world around a rollout machine, small enough to be searched to the end: one Deployment whose true states follow a
//! script, a ledger with compare-and-set, CloudFront with idempotent references, and one or two workers that may crash
//! between any two steps. Every decision is the production machine's; here are only facts and faults.

use std::collections::{BTreeMap, BTreeSet};

use kernel::floor::Floor;
use kernel::id::{Reference, Seq, Vector};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use kernel::promise::Promise;
use kinds::reported::Standing;
use purge::bounds::policy::Policy;
use purge::records::record::{Phase, Record};
use purge::rollouts::rollout::{self, Arrival, Attention, Effect, Event, FoundSite, Rollout};
use purge::testing::answers;
use purge::workloads::workload::Workload;

use crate::edge::Second;
use crate::failure::failure;
use crate::hashed::Hashed;
use crate::mutants::Mutant;
use crate::past::{self, Past};
use crate::pods;
use crate::restless::Restless;

/// One search: a script, faults and a policy.
#[derive(Clone)]
pub struct World {
    /// The true states of the Deployment in the order of time; `None` while it does not exist.
    pub script: Vec<Option<Workload>>,
    /// The record in the ledger at the beginning.
    pub record: Option<Record>,
    /// Whether all other workloads are on record: one without a record is new.
    pub listed: bool,
    pub policy: Policy,
    pub workers: usize,
    pub faults: Faults,
    /// Places of the script at which an old pod still serves.
    pub serving: BTreeSet<usize>,
    /// Places of the script at which a pod of the version that is rolled out there is ready, though no count shows it.
    pub served: BTreeSet<usize>,
    /// Whether the workload has a host.
    pub sited: bool,
    pub second: Option<Second>,
    /// Who moves the script on, if not anybody at any time.
    pub restless: Option<Restless>,
    pub mutant: Option<Mutant>,
}

/// How many faults of each kind one run may have.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Faults {
    /// The process dies and starts again.
    pub crashes: u8,
    /// A call fails; a write may or may not have happened.
    pub lost: u8,
    /// An API server that lags shows an older state again.
    pub stale: u8,
    /// Time passes although something else could happen first.
    pub early: u8,
    /// The cluster, its ledger included, is restored from the backup made at the beginning.
    pub restores: u8,
    /// A part of the ledger that has the record is lost while nothing runs.
    pub losses: u8,
}

/// What of the ledger is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What is left of the record is from the beginning.
    Journal,
    /// Nothing is left of it.
    Shard,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Worker {
    pub machine: Option<Hashed<Rollout>>,
    /// How far its watch has got; `None` before its first listing.
    pub cursor: Option<usize>,
    pub calls: Vec<Call>,
    /// Purges that were denied, and are tried again.
    pub refused: Vec<Hashed<Effect>>,
    /// The record as this process knows it while nothing is under way. Kept only where there are restores.
    pub known: Option<Hashed<Record>>,
    /// There was a restore while its machine was at work: what that knew is compared with the ledger when it ends.
    pub compares: bool,
}

/// A call under way: what was asked and, once it was performed, its answer on the way back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub effect: Hashed<Effect>,
    pub answer: Option<Hashed<Event>>,
}

/// Everything, at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub now: Timestamp,
    /// Where the script is.
    pub at: usize,
    pub ledger: Option<Hashed<Record>>,
    pub floor: Floor,
    pub workers: Vec<Worker>,
    pub left: Faults,
    pub cdn: BTreeMap<Reference, Creation>,
    pub past: Hashed<Past>,
}

/// One invalidation that CloudFront has created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Creation {
    pub seq: Seq,
    pub distribution: DistributionId,
}

/// What can happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The Deployment moves on.
    Script,
    /// A worker's watch shows the state at this place of the script.
    Watch(usize, usize),
    /// A call is performed; its answer is on its way.
    Perform(usize, usize),
    Answer(usize, usize),
    /// The call fails without having been performed.
    Fail(usize, usize),
    /// It was performed, and its answer was lost.
    Lose(usize, usize),
    Crash(usize),
    /// The cluster is restored, and every process that lives has found out.
    Restore,
    /// Every process ends, a part of the ledger is lost, and they begin again.
    LosePart(Part),
    /// Time passes to the worker's next deadline.
    Tick(usize),
    /// Time passes until the script moves on.
    Wait(Timestamp),
}

impl World {
    pub fn start(&self) -> State {
        let past = Past {
            edges: self.record.iter().flat_map(|record| past::edges(self.distributions(), record, false)).collect(),
            meaning: self.record.iter().map(|r| (r.seq, (r.uid.clone(), r.version.clone()))).collect(),
            ..Past::default()
        };
        State {
            now: Timestamp::from_millis(0),
            at: 0,
            ledger: self.record.clone().map(Hashed::new),
            floor: Floor::default(),
            workers: vec![self.newborn(self.record.as_ref()); self.workers],
            left: self.faults,
            cdn: BTreeMap::new(),
            past: Hashed::new(past),
        }
    }

    /// What happens by itself, sooner or later.
    pub fn steps(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        actions.extend(self.moves_at(state).filter(|at| *at <= state.now).map(|_| Action::Script));
        for (w, worker) in state.workers.iter().enumerate() {
            let news = worker.cursor.map_or(state.at, |cursor| cursor + 1);
            actions.extend((news..=state.at).map(|place| Action::Watch(w, place)));
            for (c, call) in worker.calls.iter().enumerate() {
                actions.push(if call.answer.is_some() { Action::Answer(w, c) } else { Action::Perform(w, c) });
            }
        }
        if actions.is_empty() {
            actions.extend(self.ticks(state));
        }
        actions
    }

    /// Only the worker whose deadline comes first: time is one.
    fn ticks(&self, state: &State) -> Option<Action> {
        let deadline = |(w, worker): (usize, &Worker)| Some((worker.machine.as_ref()?.next_deadline()?, w));
        let first = state.workers.iter().enumerate().filter_map(deadline).min();
        match self.moves_at(state).filter(|at| *at > state.now) {
            Some(at) if first.is_none_or(|(deadline, _)| at <= deadline) => Some(Action::Wait(at)),
            Some(_) | None => first.map(|(_, w)| Action::Tick(w)),
        }
    }

    /// What goes wrong, as far as there are faults left.
    pub fn mishaps(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        let left = state.left;
        for (w, worker) in state.workers.iter().enumerate() {
            if left.crashes > 0 && worker.cursor.is_some() {
                actions.push(Action::Crash(w));
            }
            if left.stale > 0 {
                actions.extend((0..worker.cursor.map_or(state.at, |cursor| cursor)).map(|at| Action::Watch(w, at)));
            }
            if left.lost > 0 {
                for (c, call) in worker.calls.iter().enumerate().filter(|(_, call)| call.answer.is_none()) {
                    actions.push(Action::Fail(w, c));
                    if matches!(*call.effect, Effect::Store(_) | Effect::Remove(_) | Effect::Tell(_)) {
                        actions.push(Action::Lose(w, c));
                    }
                }
            }
        }
        if left.restores > 0 && state.at > 0 {
            actions.push(Action::Restore);
        }
        if left.losses > 0 && state.at > 0 {
            actions.push(Action::LosePart(Part::Journal));
            // A ledger knows which shards it had once all is listed.
            actions.extend(self.listed.then_some(Action::LosePart(Part::Shard)));
        }
        if left.early > 0 && !self.steps(state).is_empty() {
            actions.extend(self.ticks(state));
        }
        actions
    }

    pub fn after(&self, state: &State, action: &Action) -> State {
        let mut next = state.clone();
        match *action {
            Action::Script => {
                next.at += 1;
                past::note_serving(&mut next, &self.serving);
                let served = self.script[next.at].as_ref().filter(|_| self.served.contains(&next.at));
                past::note_served(&mut next, served);
                self.note_stood(&mut next);
                self.try_again(&mut next);
            }
            Action::Watch(w, place) => self.watch(&mut next, w, place),
            Action::Perform(w, c) => {
                let answer = self.perform(&mut next, w, c);
                // An answer that says nothing which time could change may arrive at once.
                let effect = next.workers[w].calls[c].effect.clone();
                next.workers[w].calls[c].answer = Some(Hashed::new(answer));
                if !matches!(
                    *effect,
                    Effect::Store(_) | Effect::Look | Effect::FindOldPods(_) | Effect::Recheck(_) | Effect::Purge(_)
                ) {
                    self.answer(&mut next, w, c);
                }
            }
            Action::Answer(w, c) => self.answer(&mut next, w, c),
            Action::Fail(w, c) | Action::Lose(w, c) => {
                next.left.lost -= 1;
                if matches!(action, Action::Lose(..)) {
                    drop(self.perform(&mut next, w, c));
                }
                let call = next.workers[w].calls.remove(c);
                if let Some(event) = failure(&call.effect) {
                    self.step(&mut next, w, event);
                }
            }
            Action::Crash(w) => {
                next.left.crashes -= 1;
                self.begin(&mut next, w);
            }
            Action::LosePart(part) => self.lose(&mut next, part),
            Action::Restore => self.restore(&mut next),
            Action::Tick(w) => self.tick(&mut next, w, state),
            Action::Wait(at) => next.now = at,
        }
        next
    }

    fn tick(&self, next: &mut State, w: usize, before: &State) {
        if self.steps(before) != [Action::Tick(w)] {
            next.left.early -= 1;
        }
        let Some(machine) = next.workers[w].machine.as_deref() else { return };
        let Some(deadline) = machine.next_deadline() else { return };
        next.now = next.now.max(deadline);
        let mut machine = machine.clone();
        let effects = machine.tick(next.now);
        self.follow(next, w, machine, effects);
    }

    /// A sight reaches a worker: as in production, a machine is made only if the sight asks for one.
    fn watch(&self, next: &mut State, w: usize, place: usize) {
        let stale = place < next.workers[w].cursor.unwrap_or(next.at);
        let unseen = next.workers[w].cursor.map_or(place, |cursor| cursor + 1);
        if stale {
            next.left.stale -= 1;
        }
        next.workers[w].cursor = Some(place.max(next.workers[w].cursor.unwrap_or(0)));
        let sight = self.script[place].clone().map(|workload| self.seen(workload));
        if next.workers[w].machine.is_none() {
            let record = next.ledger.as_deref();
            let listed = self.listed && self.mutant != Some(Mutant::ListedForgotten);
            let wanted = match &sight {
                Some(workload) => rollout::attention(record, workload, listed, &self.policy) != Attention::Idle,
                None => record.is_some(),
            };
            if !wanted {
                return;
            }
            let arrival = sight.as_ref().map_or(Arrival::New, |workload| Arrival::of(workload, listed));
            next.workers[w].machine = Some(Hashed::new(self.resume(next, w).arriving(arrival)));
        }
        (unseen..=place).for_each(|place| self.show_pods(next, w, place));
        self.restart_clocks(next, w, sight.as_ref());
        let event = sight.map_or(Event::Missed, |workload| Event::Seen(Box::new(workload)));
        self.step(next, w, event);
        self.show_pods(next, w, place);
    }

    fn seen(&self, mut workload: Workload) -> Workload {
        if self.mutant == Some(Mutant::ObservedGenerationIgnored) {
            workload.observed_generation = workload.generation;
        }
        workload
    }

    fn fresh(&self, state: &State, w: usize) -> Option<Box<Workload>> {
        let seen = state.workers[w].machine.as_deref().and_then(Rollout::workload).cloned();
        match self.mutant {
            Some(Mutant::NoSecondLook) => seen.map(Box::new),
            _ => self.script[state.at].clone().map(|workload| Box::new(self.seen(workload))),
        }
    }

    /// Performs a call on the world and returns its answer.
    fn perform(&self, next: &mut State, w: usize, c: usize) -> Event {
        let effect = next.workers[w].calls[c].effect.clone();
        match &*effect {
            Effect::Store(record) => self.store(next, record),
            Effect::Remove(revision) => self.remove(next, *revision),
            Effect::Look => {
                self.doubt(next);
                Event::Looked(self.fresh(next, w))
            }
            Effect::FindOldPods(of) => Event::OldPodsFound(self.old_pods(next.at).running(pods::before(of))),
            Effect::FindSite(..) => {
                let host = self.sited.then(|| "www.example.com".parse().expect("a host"));
                Event::SiteFound(FoundSite { hosts: host.into_iter().collect(), ..FoundSite::default() })
            }
            Effect::Recheck(vector) => {
                let workload = self.fresh(next, w);
                self.prove(next, w, vector);
                let seen = next.workers[w].machine.as_deref().and_then(Rollout::workload).cloned().map(Box::new);
                let skips = self.mutant == Some(Mutant::NoRecheck);
                Event::Rechecked(vector.clone(), if skips { seen } else { workload })
            }
            Effect::Match(vector, plan) | Effect::Compare(vector, plan) => {
                Event::Matched(vector.clone(), plan.clone(), self.distributions().into())
            }
            Effect::Purge(order) => self.purge(next, order),
            Effect::Tell(notice) => {
                let notice = self.mutant.map_or_else(|| (**notice).clone(), |m| m.told(notice, next.now));
                match next.past.notices.get(&notice.id) {
                    Some((recorded, _)) if *recorded == notice => {
                        next.remember(|past| drop(past.notices.insert(notice.id.clone(), (notice.clone(), true))));
                    }
                    Some(_) => next.breaks(Promise::NoticesKeepBytes),
                    None => next.breaks(Promise::DurableFirst),
                }
                Event::Told(notice.id)
            }
            Effect::AskCache(..) => unreachable!("caches have a search of their own"),
            Effect::AskEdge(..) | Effect::LeaveEdge(_) => unreachable!("looks have a search of their own"),
            Effect::Publish(_) | Effect::Absent(_) | Effect::End => unreachable!("handled when it is asked for"),
        }
    }

    /// What the world knows when a fresh look before a vote is made: this rollout is complete, now, and the machine that looks has
    /// found it so before. The ledger may say so only later, with the vote.
    fn prove(&self, next: &mut State, w: usize, vector: &Vector) {
        let (Some(record), Some(workload)) = (next.ledger.clone(), &self.runs(next.at)) else { return };
        let complete = workload.standing(self.policy.zero_is_complete) == Standing::Complete
            || self.restless.is_some() && self.has_stood(next, workload);
        let same =
            workload.version.as_ref().is_ok_and(|version| past::content(version) == past::content(&record.version));
        let same = same && record.uid == workload.uid;
        let is_meant = vector.0.values().all(|component| component.seq == record.seq);
        let found = next.workers[w].machine.as_deref().is_some_and(|machine| machine.rolling().is_none());
        let known = is_meant && found && matches!(record.phase, Phase::Rolling | Phase::Complete);
        if complete && same && known && self.mutant != Some(Mutant::NoRecheck) {
            next.remember(|past| past.proved.extend([record.seq]));
        }
    }

    fn doubt(&self, next: &mut State) {
        let Some(workload) = &self.runs(next.at) else { return };
        if workload.standing(false) != Standing::Complete {
            next.remember(|past| past.doubted.extend(workload.version.clone()));
        }
    }

    fn store(&self, next: &mut State, record: &Record) -> Event {
        let record = self.mutant.map_or_else(|| record.clone(), |mutant| mutant.stored(record));
        let held = next.ledger.as_deref();
        if held == Some(&record) {
            return Event::Stored;
        }
        let expected = next.floor.follows(Record::state_of(held), record.seq) + 1;
        let below = held.is_none() && record.seq <= next.floor.seq;
        if (record.revision != expected || below) && self.mutant != Some(Mutant::NoCompareAndSet) {
            return Event::Conflicted(held.cloned().map(Box::new), next.floor);
        }
        past::note_vote(next, &record, &self.serving, (self.policy.barrier.settle, self.policy.barrier.drain_timeout));
        past::note_write(next, &record, self.listed, self.distributions());
        next.ledger = Some(Hashed::new(record));
        Event::Stored
    }

    fn remove(&self, next: &mut State, revision: u64) -> Event {
        match next.ledger.as_deref() {
            Some(held) if held.revision == revision => {
                next.floor.seq = next.floor.seq.max(held.seq);
                next.ledger = None;
                // What comes back is judged by its own first record.
                next.remember(|past| past.edges.clear());
                Event::Stored
            }
            None => Event::Stored,
            Some(held) => Event::Conflicted(Some(Box::new(held.clone())), next.floor),
        }
    }

    fn answer(&self, next: &mut State, w: usize, c: usize) {
        let call = next.workers[w].calls.remove(c);
        let Some(answer) = call.answer else { return };
        match (&*call.effect, &*answer) {
            (Effect::Purge(order), Event::Purged(_, progress)) => {
                self.report(next, w, (&call.effect, order), progress.clone());
            }
            (_, answer) => self.step(next, w, answer.clone()),
        }
    }

    pub fn step(&self, next: &mut State, w: usize, event: Event) {
        let Some(machine) = next.workers[w].machine.as_deref() else { return };
        let mut machine = machine.clone();
        let effects = machine.step(next.now, event);
        self.follow(next, w, machine, effects);
    }

    /// Goes on from a step of a worker's machine, and judges it as production does.
    fn follow(&self, next: &mut State, w: usize, machine: Rollout, effects: Vec<Effect>) {
        if machine.is_due(next.now) {
            next.breaks(Promise::DeadlinesAhead);
        }
        for promise in effects.iter().flat_map(|effect| machine.breaks(effect)) {
            next.breaks(promise);
        }
        next.workers[w].machine = Some(Hashed::new(machine));
        self.ask(next, w, effects);
    }

    /// Takes what a machine wants: publishing and ending happen at once, everything else is a call.
    fn ask(&self, next: &mut State, w: usize, effects: Vec<Effect>) {
        let mut published = None;
        for effect in effects {
            match effect {
                Effect::Publish(record) => published = Some(record),
                Effect::End => {
                    let ended = next.workers[w].machine.take();
                    let durable = ended.as_deref().and_then(Rollout::durable);
                    next.workers[w].known = self.newborn(durable).known;
                }
                Effect::Store(record) if self.mutant == Some(Mutant::ActsOnDraft) => {
                    let call = Call { effect: Hashed::new(Effect::Store(record)), answer: None };
                    next.workers[w].calls.push(call);
                    self.step(next, w, Event::Stored);
                }
                effect => next.workers[w].calls.push(Call { effect: Hashed::new(effect), answer: None }),
            }
        }
        self.answer_at_once(next, w);
        next.workers[w].calls.sort_by_key(|call| call.effect.name());
        if let Some(record) = published {
            for view in answers(&Effect::Publish(record), None) {
                self.step(next, w, view);
            }
        }
        self.compare(next, w);
    }
}

impl World {
    /// Without failing calls, when these are answered makes no difference to anything but the size of the search.
    fn answer_at_once(&self, next: &mut State, w: usize) {
        let quick = |call: &Call| {
            matches!(*call.effect, Effect::FindSite(..) | Effect::Match(..) | Effect::Compare(..) | Effect::Tell(_))
        };
        while self.faults.lost == 0
            && let Some(c) = next.workers[w].calls.iter().position(quick)
        {
            let answer = self.perform(next, w, c);
            next.workers[w].calls[c].answer = Some(Hashed::new(answer));
            self.answer(next, w, c);
        }
    }
}

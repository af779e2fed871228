//! The decisions of a watch of objects: which of them get a child, what each child has to learn, what is written about
//! those that need none, and what exists no more.
//!
//! ```text
//!            sight ──▶ idle                             the record says the same
//!              │
//!              ├─────▶ baseline ── written ──▶ idle     found at rest by a first listing; sights that come meanwhile wait
//!              │          └── no room ──▶ put off, for a while
//!              ▼
//!           wanted ── it may be why we ended abruptly ──▶ aside: rests
//!              │  └── a note must be stored first ──▶ aside, until it is
//!              ▼
//!            child ── finished ──▶ judged again by its newest sight
//!              ├── crashed ──▶ wanted again, within its budget
//!              └── crashed too often, or wrote too often ──▶ aside: quarantine ──▶ wanted again
//! ```
//!
//! Events only say "look again": nothing is decided from the difference of two sights. So a restart never looks like a change, and
//! a change made while we were down is found.
//!
//! 1. A child learns the newest sight, and never an older one after it.
//! 2. An object has one child at most, and none while it is aside.
//! 3. An object that asks for a child has one, or waits for something that ends.
//! 4. An object is gone if a complete listing of its scope did not contain it, or if the watch says so; never
//!    otherwise.
//! 5. A baseline that was found is written, unless its object got a child. A scope is noted as listed only after that.
//! 6. After the cluster was set back, new numbers start above all that this life has seen.
//!
//! Not for what a sight means; that is the [`Kind`]'s.

mod baselines;
mod event;
mod kind;
mod listings;
mod nursery;
mod setback;
mod troubles;

pub use event::{Baseline, Effect, End, Event, Start, Written};
pub use kind::{Attention, Kind, Latest};
pub use nursery::{Case, Nursery};
pub use troubles::{Loud, Troubles};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baselines::Baselines;
use listings::Listings;
use nursery::{QUARANTINE, Wait};
use setback::Setback;

use crate::id::Seq;
use crate::machine::{Machine, Timestamp};
use crate::watches::listed::{Listed, Scope};
use crate::watches::lives::{Leave, Lives};

/// Why an object is in quarantine.
const CRASHED: &str = "its actor crashed too often; the log says why";

/// See [`CRASHED`].
const OVERDRAWN: &str =
    "its record was written over and over while nothing happened, which is a mistake of allclear: please report it";

/// Sweeps, of a second each, that a listing may hold up what others have found: ten thousand objects are listed in about one. One
/// scope that cannot be listed to its end must not hold up the others.
const PATIENCE: u8 = 5;

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch<K: Kind> {
    kind: K,
    /// The ledger's records. Each is shared with the code that writes and shows it: there are tens of thousands of
    /// them.
    records: BTreeMap<K::Id, Arc<K::Record>>,
    /// Objects whose record cannot be read, and why. We leave them alone: a fresh record would forget what the object
    /// owes.
    barred: BTreeMap<K::Id, String>,
    nursery: Nursery<K>,
    listings: Listings<K::Id>,
    baselines: Baselines<K>,
    setback: Setback<K::Id>,
    lives: Lives<K::Id>,
    /// Sweeps after which what was found is written, though a listing is still under way.
    patience: u8,
    draining: bool,
}

impl<K: Kind> Watch<K> {
    /// A watch that knows the ledger's records, those that cannot be read, the scopes that are fully on record, and how earlier
    /// lives ended.
    pub fn new(
        kind: K,
        records: BTreeMap<K::Id, Arc<K::Record>>,
        barred: BTreeMap<K::Id, String>,
        listed: Listed,
        lives: Lives<K::Id>,
    ) -> Self {
        Self {
            kind,
            records,
            barred,
            nursery: Nursery::default(),
            listings: Listings::new(listed),
            baselines: Baselines::default(),
            setback: Setback::default(),
            lives,
            patience: PATIENCE,
            draining: false,
        }
    }

    /// The ledger has lost a part: the records of these objects may be older than what was done for them.
    #[must_use]
    pub fn set_back(mut self, behind: BTreeSet<K::Id>) -> Self {
        self.setback.was_before(behind);
        self
    }

    /// The records, as this life knows them.
    pub const fn records(&self) -> &BTreeMap<K::Id, Arc<K::Record>> {
        &self.records
    }

    /// The record of one object.
    fn record(&self, id: &K::Id) -> Option<&K::Record> {
        self.records.get(id).map(Arc::as_ref)
    }

    /// Objects whose record cannot be read, and why.
    pub const fn barred(&self) -> &BTreeMap<K::Id, String> {
        &self.barred
    }

    /// The children, and the objects that are left alone.
    pub const fn nursery(&self) -> &Nursery<K> {
        &self.nursery
    }

    /// This life, and those before it.
    pub const fn lives(&self) -> &Lives<K::Id> {
        &self.lives
    }

    /// Whether everything in view was listed at least once in this life.
    pub const fn is_synced(&self) -> bool {
        self.listings.synced
    }

    /// Whether this scope was ever listed to the end, in this life or in one before it.
    pub fn was_listed(&self, scope: &Scope) -> bool {
        self.listings.was_listed(scope)
    }

    /// Whether baselines wait to be written.
    pub fn has_baselines(&self) -> bool {
        self.baselines.waiting().next().is_some()
    }

    /// Why this object gets no record, if its owner has to do something about it. `None` for an object with a child: its
    /// record says what is wrong.
    pub fn unusable(&self, sight: &K::Sight) -> Option<String> {
        let id = K::id(sight);
        self.kind.unusable(self.record(id), sight).filter(|_| !self.nursery.has_child(id))
    }

    /// Passes a sight to the child or the baseline of its object, or starts what it asks for.
    fn attend(&mut self, id: &K::Id, sight: Latest<K>, effects: &mut Vec<Effect<K>>) {
        if self.nursery.sees_to(id) {
            return self.nursery.see(id, sight, effects);
        }
        if self.baselines.hold(&self.kind, id, &sight) {
            return;
        }
        let Some(seen) = &sight else { return self.miss(id, effects) };
        let is_listed = self.listings.cover_as(K::listed_as(seen), id);
        match self.kind.attention(self.record(id), seen, is_listed) {
            Attention::Idle => {}
            Attention::Baseline(record) => {
                self.baselines.find(id.clone(), record.into());
                if !self.listings.are_under_way() {
                    self.write_baselines(effects);
                }
            }
            Attention::Child(arrival) => {
                if self.record(id).is_none() && self.listings.has_forgotten(id) {
                    self.setback.forgot(id.clone());
                }
                self.start(id, Case { latest: sight, arrival }, effects);
            }
        }
    }

    /// An object without a child is gone.
    fn miss(&mut self, id: &K::Id, effects: &mut Vec<Effect<K>>) {
        // A baseline whose write failed may have been written after all.
        if self.baselines.drop(id) || self.records.contains_key(id) {
            let _ = self.baselines.overtaken(id);
            self.look_for(id, K::unseen(true), effects);
        }
    }

    /// Starts a child without a sight: it looks for itself.
    fn look_for(&mut self, id: &K::Id, arrival: K::Arrival, effects: &mut Vec<Effect<K>>) {
        self.start(id, Case { latest: None, arrival }, effects);
    }

    /// Starts a child, at once or when its wait is over.
    fn start(&mut self, id: &K::Id, case: Case<K>, effects: &mut Vec<Effect<K>>) {
        if self.draining {
            return;
        }
        match self.lives.ask(id) {
            Leave::Now => self.start_now(id, case, effects),
            Leave::Noted => {
                self.nursery.put_aside(id.clone(), case, Wait::Note);
                self.note_life(effects);
            }
            Leave::Rests => {
                let why = self.lives.why_rests(id).unwrap_or_default();
                effects.push(Effect::TellLeftAlone(id.clone(), why.clone(), None));
                self.nursery.put_aside(id.clone(), case, Wait::Turn(why));
            }
        }
    }

    fn start_now(&mut self, id: &K::Id, case: Case<K>, effects: &mut Vec<Effect<K>>) {
        if self.draining {
            return;
        }
        let forgotten = self.setback.has_forgotten(id);
        let known = self.records.get(id).filter(|_| !forgotten);
        let known = known.map(|record| Box::new(K::Record::clone(record)));
        let spent = if known.is_some() { Seq::default() } else { self.setback.spent };
        effects.push(Effect::Start(Box::new(Start { id: id.clone(), case: case.clone(), known, spent, forgotten })));
        self.nursery.add(id.clone(), case);
    }

    /// An object that was left alone is tried again.
    fn resume(&mut self, id: &K::Id, effects: &mut Vec<Effect<K>>) {
        if let Some(case) = self.nursery.take_back(id) {
            self.start(id, case, effects);
        }
    }

    /// A child is dead. What it leaves is judged again by the newest sight.
    fn died(&mut self, now: Timestamp, id: &K::Id, end: End<K::Record>, effects: &mut Vec<Effect<K>>) {
        let Some(case) = self.nursery.remove(id) else { return };
        self.lives.ended(id);
        match end {
            End::Finished(record) => {
                self.setback.recovered(id);
                if let Some(record) = record {
                    self.records.insert(id.clone(), record.into());
                } else if let Some(record) = self.records.remove(id) {
                    self.setback.removed(K::state(&record).0);
                }
                self.nursery.forgive(id);
                if case.latest.is_some() {
                    self.attend(id, case.latest, effects);
                }
            }
            End::Drained => {}
            End::Crashed if self.nursery.may_rebuild(now, id) => {
                effects.push(Effect::TellRebuilt(id.clone()));
                self.start(id, case, effects);
            }
            End::Crashed => self.quarantine(now, id, case, CRASHED, effects),
            End::Overdrawn => self.quarantine(now, id, case, OVERDRAWN, effects),
        }
    }

    /// Leaves an object alone for a while, its record unchanged (decision 16).
    fn quarantine(
        &mut self,
        now: Timestamp,
        id: &K::Id,
        case: Case<K>,
        why: &'static str,
        effects: &mut Vec<Effect<K>>,
    ) {
        effects.push(Effect::TellLeftAlone(id.clone(), why.to_owned(), Some(QUARANTINE)));
        self.nursery.put_aside(id.clone(), case, Wait::Quarantine(now.after(QUARANTINE), why));
    }

    /// The listing of a scope is complete: objects of the scope that it did not contain are gone.
    fn listed(&mut self, scope: Scope, all: bool, effects: &mut Vec<Effect<K>>) {
        self.listings.synced |= all;
        for id in self.listings.end(scope, self.records.keys().chain(self.nursery.children())) {
            self.attend(&id, None, effects);
        }
        self.write_once_all_is_listed(effects);
    }

    /// The listings of several scopes end within moments of each other, and what they found goes into the same parts of a ledger: one
    /// write of a part has it all.
    fn write_once_all_is_listed(&mut self, effects: &mut Vec<Effect<K>>) {
        if !self.listings.are_under_way() {
            self.write_baselines(effects);
            self.note_listed(effects);
        }
    }

    fn write_baselines(&mut self, effects: &mut Vec<Effect<K>>) {
        let found = self.baselines.begin();
        if !found.is_empty() {
            effects.push(Effect::WriteBaselines(found, self.setback.spent));
        }
    }

    /// Remembers for later lives which scopes are listed, once all of their objects are on record. Those without an object wait for the
    /// writes under way as well: from the first note on, each part of the ledger that these make would be noted by itself.
    fn note_listed(&mut self, effects: &mut Vec<Effect<K>>) {
        if self.baselines.are_being_written() {
            return;
        }
        let scopes = self.listings.take_unnoted(self.baselines.waiting());
        if !scopes.is_empty() {
            effects.push(Effect::NoteListed(scopes));
        }
    }

    /// Takes in the outcome of a baseline.
    fn baseline_written(&mut self, now: Timestamp, baseline: Baseline<K>, effects: &mut Vec<Effect<K>>) {
        let Baseline { id, record, written } = baseline;
        self.baselines.end(&id);
        let overtaken = self.baselines.overtaken(&id);
        match written {
            Written::Done => drop(self.records.insert(id.clone(), record)),
            // The record is from before the restore; this life knows that the object was removed since.
            Written::Conflict(_) if self.setback.has_happened() => {
                return self.look_for(&id, K::unseen(true), effects);
            }
            Written::Conflict(current) => {
                self.records.extend(current.map(|record| (id.clone(), record.into())));
                if overtaken.is_none() {
                    // Another writer was first, and we did not keep the sight: a child looks afresh.
                    return self.look_for(&id, K::AT_REST, effects);
                }
            }
            Written::NoRoom => return self.baselines.put_off(now, id, record),
            // It is written with the next sweep instead.
            Written::Failed => self.baselines.find(id.clone(), record),
        }
        if let Some(sight) = overtaken {
            self.attend(&id, sight, effects);
        }
    }

    /// Looks into every object whose state in the ledger differs from what this life knows, and into those with a
    /// child.
    fn compare(
        &mut self,
        found: &BTreeMap<K::Id, Arc<K::Record>>,
        barred: BTreeMap<K::Id, String>,
        effects: &mut Vec<Effect<K>>,
    ) {
        let state = |record: Option<&Arc<K::Record>>| record.map(|record| K::state(record));
        let all: BTreeSet<&K::Id> = self.records.keys().chain(found.keys()).collect();
        let other = all.into_iter().filter(|id| state(found.get(id)) != state(self.records.get(id)));
        self.setback.look_into(other.chain(self.nursery.children()).cloned());
        self.barred = barred;
        self.look_into_fallen(effects);
    }

    fn look_into_fallen(&mut self, effects: &mut Vec<Effect<K>>) {
        let (nursery, baselines) = (&self.nursery, &self.baselines);
        for id in self.setback.free(|id| !nursery.sees_to(id) && !baselines.is_writing(id)) {
            if !self.barred.contains_key(&id) {
                self.baselines.drop(&id);
                self.look_for(&id, K::unseen(true), effects);
            }
        }
    }

    fn wanted(&mut self, id: &K::Id, effects: &mut Vec<Effect<K>>) {
        let is_seen_to = self.nursery.sees_to(id) || self.baselines.contain(id);
        // Before everything was listed, an object without a record may be about to get one.
        if self.listings.synced && !is_seen_to && !self.barred.contains_key(id) {
            self.look_for(id, K::unseen(self.listings.cover(id)), effects);
        }
    }

    /// Sends again what was refused, and tries again what failed.
    fn sweep(&mut self, now: Timestamp, effects: &mut Vec<Effect<K>>) {
        self.nursery.send_again(effects);
        if self.draining {
            return;
        }
        let listings = &self.listings;
        let is_held_up = listings.are_under_way() && self.baselines.waiting().any(|id| !listings.are_listing(id));
        self.patience = if is_held_up { self.patience.saturating_sub(1) } else { PATIENCE };
        if !self.listings.are_under_way() || self.patience == 0 {
            self.write_baselines(effects);
            self.note_listed(effects);
            self.look_into_fallen(effects);
        }
        for id in self.lives.tick(now) {
            effects.push(Effect::TellTried(id.clone()));
            self.resume(&id, effects);
        }
        self.note_life(effects);
    }

    fn note_life(&mut self, effects: &mut Vec<Effect<K>>) {
        effects.extend(self.lives.to_store().map(Effect::NoteLife));
    }

    fn life_noted(&mut self, done: bool, effects: &mut Vec<Effect<K>>) {
        for id in self.lives.stored(done) {
            if let Some(case) = self.nursery.take_back(&id) {
                self.start_now(&id, case, effects);
            }
        }
        // One that failed is tried again with the next sweep.
        if done {
            self.note_life(effects);
        }
    }
}

impl<K: Kind> Machine for Watch<K> {
    type Event = Event<K>;
    type Effect = Effect<K>;

    fn step(&mut self, now: Timestamp, event: Event<K>) -> Vec<Effect<K>> {
        let mut effects = Vec::new();
        match event {
            Event::Relisting(scope) => self.listings.begin(scope),
            Event::Listed(scope, all) => self.listed(scope, all, &mut effects),
            Event::LeftOut(scope, all) => {
                self.listings.leave_out(&scope);
                self.listings.synced |= all;
                self.write_once_all_is_listed(&mut effects);
            }
            Event::Seen(sight) => {
                let id = K::id(&sight).clone();
                self.listings.note(&id);
                if !self.barred.contains_key(&id) {
                    self.attend(&id, Some(sight), &mut effects);
                }
            }
            Event::Unreadable(id) => self.listings.note(&id),
            Event::Gone(id) => self.attend(&id, None, &mut effects),
            Event::SetBack => {
                self.setback.begin(self.records.values().map(|record| K::state(record).0));
                effects.push(Effect::ReadLedger);
            }
            Event::Compared(records, barred) => self.compare(&records, barred, &mut effects),
            Event::BaselinesWritten(all) => {
                for baseline in all {
                    self.baseline_written(now, baseline, &mut effects);
                }
                self.note_listed(&mut effects);
            }
            Event::Rewritten(written) => {
                for (id, record) in written {
                    // A child reads it from the ledger, and hands it back at its end.
                    let known = self.records.get_mut(&id).filter(|known| K::state(known) < K::state(&record));
                    known.into_iter().for_each(|known| *known = Arc::clone(&record));
                }
            }
            Event::ListedNoted(_, true) => {}
            // Again with the next sweep.
            Event::ListedNoted(scopes, false) => self.listings.put_back(scopes),
            Event::LifeNoted(done) => self.life_noted(done, &mut effects),
            Event::Wanted(id) => self.wanted(&id, &mut effects),
            Event::PassedInVain(id) => self.nursery.passed_in_vain(&id),
            Event::DirectedInVain(id) => self.nursery.directed_in_vain(&id),
            Event::PeersRebuilt => self.nursery.direct(&mut effects),
            Event::Died(id, end) => self.died(now, &id, end, &mut effects),
            Event::Swept => self.sweep(now, &mut effects),
            Event::Dismissed => self.draining = true,
        }
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect<K>> {
        let mut effects = Vec::new();
        for id in self.nursery.due(now) {
            self.resume(&id, &mut effects);
        }
        while let Some((id, record)) = self.baselines.due(now) {
            // Unless it is on record meanwhile, or has a child, or waits for one: the child writes its record by itself.
            let is_known = self.records.contains_key(&id) || self.nursery.sees_to(&id);
            if !is_known && !self.baselines.is_writing(&id) {
                self.baselines.find_again(id, record);
            }
        }
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.nursery.next_deadline().into_iter().chain(self.baselines.next_deadline()).min()
    }
}

//! Traffic that moves: a Service that selects other pods, an Ingress or a route that leads to another Service. No workload changed, and
//! yet people get another version.
//!
//! ```text
//! something that routes changed ──▶ due ──▶ look ──▶ nothing moved ──▶ what leads to whom is kept in the records
//!                                            ▲  └──▶ moved: the workload that serves now is asked to purge
//!                                            └──────── its record has it
//! ```
//!
//! 1. A look compares what leads to the workloads of a namespace with what their records remember, never with an earlier look. So a
//!    restart forgets nothing, and a first look of a workload finds no move.
//! 2. A host that has left a workload is remembered until somebody serves it. Where that one serves another version than the edge had
//!    of the former, it is asked to purge; until its record has that, the former's record keeps the host.
//! 3. Each namespace is looked at a moment after a change, one at a time, and rests in proportion to what the look took.
//!
//! Not for which changes count (the adapter), nor for how a purge is carried out (`rollouts`).

mod judge;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::records::record::{Lead, Leads, Moved, Record, Records};
use kernel::id::WorkloadId;
use kernel::machine::{Machine, Timestamp};
use kernel::retry;

use judge::{Judged, judge};
pub use judge::{Look, Was};

/// How long after a change we look: the objects of one `kubectl apply` come within a moment of each other.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// The least time between two looks at one namespace, and between two at any while much changes: a look takes a twentieth of the time at
/// most.
const REST_MIN: Duration = Duration::from_secs(5);
const REST_FACTOR: u32 = 20;

/// How long what leads to whom waits to be written: what several looks find goes into the same parts of a ledger.
const KEEP_AFTER: Duration = Duration::from_secs(5);

/// How often a workload is asked again to purge, or a record to keep what leads to it.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(20);

/// Rollouts of a workload that end without taking a move, after which it is not asked for that one any more. The first may have been about
/// to end when it was asked.
const ENDS_MAX: u8 = 3;

/// Workloads of one namespace whose record is gone and whose hosts nobody serves. Of more, hosts are forgotten with their record.
const DEPARTED_MAX: usize = 100;

/// The machine. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// Whether one digest under two tags is one version.
    digests: bool,
    /// The namespaces to look at, and from when on.
    due: BTreeMap<String, Timestamp>,
    /// Until when a namespace is not looked at again.
    rests: BTreeMap<String, Timestamp>,
    looking: Option<Looking>,
    /// Looks that failed since the last that did not.
    failures: u32,
    /// Hosts that have left a workload of another namespace and that nobody serves.
    left: BTreeSet<(WorkloadId, Lead)>,
    unrecorded: Unrecorded,
    /// What records are to remember, and do not yet.
    kept: BTreeMap<WorkloadId, Leads>,
    keep_at: Option<Timestamp>,
    /// Moves that the record of the workload that serves now does not have yet.
    asked: BTreeMap<WorkloadId, Asked>,
    /// The last moves that rollouts in flight have in their records.
    taken: BTreeMap<WorkloadId, String>,
    /// Moves that a workload does not take: its owner has taken it out, or it is gone.
    refused: BTreeMap<WorkloadId, String>,
}

/// Workloads without a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Unrecorded {
    /// What led to those that had none yet when their namespace was last looked at.
    newcomers: BTreeMap<WorkloadId, Leads>,
    /// Those whose record is gone, with hosts that have left them and that nobody serves.
    departed: BTreeMap<WorkloadId, Was>,
}

/// A look under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Looking {
    namespace: String,
    since: Timestamp,
}

/// A workload that is asked to purge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    moved: Moved,
    /// What leads to it now.
    leads: Leads,
    /// Whose look found it.
    namespace: String,
    again: Timestamp,
    /// Rollouts of it that ended without taking the move.
    ended: u8,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// Something that routes, or a workload, is new, other or gone in this namespace.
    Changed(String),
    /// Answers [`Effect::Look`], with what is remembered: see [`Traffic::known`].
    Looked(Box<Look>, BTreeMap<WorkloadId, Was>),
    LookFailed,
    /// The record of a workload has the move of this token.
    Taken(WorkloadId, String),
    /// A rollout of a workload has ended, and its record has the move of this token; it has not taken another.
    Ended(WorkloadId, Option<String>),
    /// The record of a workload was removed.
    Departed(WorkloadId, Box<Was>),
    /// These records remember this now. Answers [`Effect::Keep`] for those that nobody else was writing.
    Kept(BTreeMap<WorkloadId, Leads>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read afresh what leads to the workloads of a namespace.
    Look(String),
    /// Ask the workload to purge, and its record to remember this. Repeated until it is answered.
    Ask(WorkloadId, Moved, Leads),
    /// Write what leads to them into these records, where nobody else is writing.
    Keep(BTreeMap<WorkloadId, Leads>),
}

impl Traffic {
    /// Nothing was looked at. `digests`: one digest under two tags is one version.
    pub fn new(digests: bool) -> Self {
        Self { digests, ..Self::default() }
    }

    /// What is remembered of the workloads that a look is about: those of its namespace, and those elsewhere that share a host with them
    /// or have one that nobody served.
    /// Those `in_flight` have newer records.
    pub fn known(&self, look: &Look, records: &Records, in_flight: &BTreeSet<WorkloadId>) -> BTreeMap<WorkloadId, Was> {
        let leads_of = |id: &WorkloadId, record: &Record| self.kept.get(id).unwrap_or(&record.leads).clone();
        let mut hosts: BTreeSet<Lead> = look.leads().collect();
        let here = |id: &WorkloadId| id.namespace == look.namespace;
        for (id, record) in records.iter().filter(|(id, _)| here(id)) {
            hosts.extend(leads_of(id, record).iter());
        }
        hosts.extend(self.unrecorded.departed.values().flat_map(|was| was.leads.iter()));
        hosts.extend(self.left.iter().map(|(_, lead)| *lead));
        let known = records.iter().filter_map(|(id, record): (_, &Arc<Record>)| {
            let leads = leads_of(id, record);
            let is_about = here(id) || leads.iter().any(|lead| hosts.contains(&lead));
            let taken = self.taken.get(id).cloned();
            let was = || if in_flight.contains(id) { Was::of(record).overtaken(taken) } else { Was::of(record) };
            is_about.then(|| (id.clone(), was().with(leads)))
        });
        known.collect()
    }

    /// Whether a workload is still to be asked for this move.
    pub fn asks(&self, id: &WorkloadId, moved: &Moved) -> bool {
        self.asked.get(id).is_some_and(|asked| asked.moved.is(moved))
    }

    fn changed(&mut self, now: Timestamp, namespace: String) {
        let rest = self.rests.get(&namespace).copied().unwrap_or(now);
        self.due.entry(namespace).or_insert_with(|| now.after(LOOK_AFTER).max(rest));
    }

    fn looked(&mut self, now: Timestamp, look: &Look, mut known: BTreeMap<WorkloadId, Was>, effects: &mut Vec<Effect>) {
        let Some(looking) = self.looking.take_if(|looking| looking.namespace == look.namespace) else { return };
        self.failures = 0;
        self.rest(now, looking);
        self.unrecorded.departed.retain(|id, _| !known.contains_key(id));
        self.unrecorded.newcomers.retain(|id, _| id.namespace != look.namespace);
        let new = look.led.iter().filter(|(id, names)| !known.contains_key(id) && !names.is_empty());
        let new = new.map(|(id, names)| (id.clone(), names.iter().map(|name| Lead::of(name)).collect()));
        self.unrecorded.newcomers.extend(new.take(DEPARTED_MAX));
        let departed: BTreeSet<WorkloadId> = self.unrecorded.departed.keys().cloned().collect();
        known.extend(self.unrecorded.departed.clone());
        let refused = &self.refused;
        let is_done = |id: &WorkloadId, moved: &Moved, was: &Was| {
            was.moved.as_ref() == Some(&moved.token) || refused.get(id) == Some(&moved.token)
        };
        let Judged { moves, left, keep } = judge(look, &known, &departed, &self.left, self.digests, is_done);
        // One that was taken back before anybody could take it is not asked for any more.
        let is_held = |id: &WorkloadId, asked: &Asked| {
            let is_done = known.get(id).is_some_and(|was| was.moved.as_ref() == Some(&asked.moved.token));
            is_done || moves.get(id).is_some_and(|(moved, _)| moved.is(&asked.moved))
        };
        self.asked.retain(|id, asked| asked.namespace != look.namespace || is_held(id, asked));
        for (id, (moved, leads)) in &moves {
            let same = self.asked.get_mut(id).filter(|asked| asked.moved.is(moved));
            same.into_iter().for_each(|asked| asked.leads.clone_from(leads));
        }
        let asked = &self.asked;
        let new = moves.into_iter().filter(|(id, (moved, _))| asked.get(id).is_none_or(|asked| !asked.moved.is(moved)));
        for (id, (moved, leads)) in new.collect::<Vec<_>>() {
            effects.push(Effect::Ask(id.clone(), moved.clone(), leads.clone()));
            let namespace = look.namespace.clone();
            self.asked.insert(id, Asked { moved, leads, namespace, again: now.after(ASK_AGAIN_AFTER), ended: 0 });
        }
        self.left = left;
        for (id, leads) in keep {
            match self.unrecorded.departed.get_mut(&id) {
                Some(_) if leads.is_empty() => drop(self.unrecorded.departed.remove(&id)),
                Some(was) => was.leads = leads,
                None => drop(self.kept.insert(id, leads)),
            }
        }
        if !self.kept.is_empty() {
            self.keep_at.get_or_insert(now.after(KEEP_AFTER));
        }
    }

    /// A look has ended: its namespace rests.
    fn rest(&mut self, now: Timestamp, looking: Looking) {
        let rest = now.since(looking.since).saturating_mul(REST_FACTOR).max(REST_MIN);
        self.rests.retain(|_, until| *until > now);
        if let Some(due) = self.due.get_mut(&looking.namespace) {
            *due = (*due).max(now.after(rest));
        }
        self.rests.insert(looking.namespace, now.after(rest));
    }

    /// The record of a workload has a move. One that is not asked for any more has left it with what led to it before.
    fn taken(&mut self, now: Timestamp, id: WorkloadId, token: &str) {
        let is_it = self.asked.get(&id).is_some_and(|asked| asked.moved.token == token);
        self.taken.insert(id.clone(), token.to_owned());
        match is_it.then(|| self.answered(now, &id)).flatten() {
            Some(asked) => {
                self.kept.insert(id, asked.leads);
                self.keep_at.get_or_insert(now.after(KEEP_AFTER));
            }
            None => self.changed(now, id.namespace),
        }
    }

    /// Its record has what it was asked for, or never will.
    fn answered(&mut self, now: Timestamp, id: &WorkloadId) -> Option<Asked> {
        let asked = self.asked.remove(id)?;
        self.changed(now, asked.namespace.clone());
        Some(asked)
    }
}

impl Machine for Traffic {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Changed(namespace) => self.changed(now, namespace),
            Event::Looked(look, known) => self.looked(now, &look, known, &mut effects),
            Event::LookFailed => {
                if let Some(looking) = self.looking.take() {
                    self.failures = self.failures.saturating_add(1);
                    let again = now.after(retry::SERVICE.delay(self.failures, &looking.namespace));
                    let due = self.due.entry(looking.namespace.clone()).or_insert(again);
                    *due = (*due).max(again);
                    self.rest(now, looking);
                }
            }
            Event::Taken(id, token) => self.taken(now, id, &token),
            Event::Ended(id, token) => {
                token.into_iter().for_each(|token| self.taken(now, id.clone(), &token));
                self.taken.remove(&id);
                self.changed(now, id.namespace.clone());
                let Some(asked) = self.asked.get_mut(&id) else { return effects };
                asked.ended += 1;
                asked.again = now;
                let is_refused = asked.ended >= ENDS_MAX;
                if let Some(asked) = is_refused.then(|| self.answered(now, &id)).flatten() {
                    self.refused.insert(id, asked.moved.token);
                }
            }
            Event::Departed(id, was) => {
                let leads = self.kept.remove(&id).or_else(|| self.unrecorded.newcomers.remove(&id));
                self.refused.remove(&id);
                self.taken.remove(&id);
                self.answered(now, &id);
                self.left.retain(|(left, _)| *left != id);
                let was = match leads {
                    Some(leads) => was.with(leads),
                    None => *was,
                };
                let of_here =
                    self.unrecorded.departed.keys().filter(|departed| departed.namespace == id.namespace).count();
                if !was.leads.is_empty() && of_here < DEPARTED_MAX {
                    self.changed(now, id.namespace.clone());
                    self.unrecorded.departed.insert(id, was);
                }
            }
            Event::Kept(written) => self.kept.retain(|id, leads| written.get(id) != Some(leads)),
        }
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (id, asked) in self.asked.iter_mut().filter(|(_, asked)| asked.again <= now) {
            asked.again = now.after(ASK_AGAIN_AFTER);
            effects.push(Effect::Ask(id.clone(), asked.moved.clone(), asked.leads.clone()));
        }
        if self.keep_at.is_some_and(|at| at <= now) {
            self.keep_at = (!self.kept.is_empty()).then(|| now.after(ASK_AGAIN_AFTER));
            effects.extend((!self.kept.is_empty()).then(|| Effect::Keep(self.kept.clone())));
        }
        if self.looking.is_none() {
            let first = self.due.iter().filter(|(_, at)| **at <= now).min_by_key(|(_, at)| **at);
            if let Some(namespace) = first.map(|(namespace, _)| namespace.clone()) {
                self.due.remove(&namespace);
                self.looking = Some(Looking { namespace: namespace.clone(), since: now });
                effects.push(Effect::Look(namespace));
            }
        }
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let look = self.due.values().copied().filter(|_| self.looking.is_none()).min();
        let again = self.asked.values().map(|asked| asked.again).min();
        look.into_iter().chain(again).chain(self.keep_at).min()
    }
}

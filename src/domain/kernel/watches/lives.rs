//! Lives of the program that end abruptly, killed or out of memory, and the workloads that may be why.
//!
//! A panic ends one actor, and the budget of restarts sees to that. What ends the whole process would end it again in the next
//! life: nothing of it is left to count. So a life that works on something says so in the ledger ([`LifeNote`]), and takes
//! that back when it ends in order. The life after an abrupt end is careful: it notes each workload *before* it begins to work on
//! it. If that life ends abruptly too, the third knows what was under way. It puts these workloads aside while it works
//! on all others, then tries them: one alone, and twice as many each time that went well. An abrupt end names those
//! that were tried; they wait longer, and are tried alone from then on, so one that causes the ends is found and the
//! others are soon free.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{ObjectId, WorkloadId};
use crate::machine::Timestamp;

/// The pause of a workload after the first abrupt end that it may have caused: time for the purges of others, which
/// take a few seconds after `rollout.settle`.
const REST: Duration = Duration::from_secs(10);

/// The growth of the pause with each further one: 40 s, 160 s, 11 min, 43 min.
const REST_GROWS: u32 = 4;

/// The longest pause. By then a notice has stood for more than an hour.
const REST_MAX: Duration = Duration::from_secs(3_600);

/// How long a workload is tried alone. What takes a process down by reading too much does so within seconds.
const TRIAL: Duration = Duration::from_secs(10);

/// How long earlier abrupt ends are a trouble of this life, where no workload waits for them. Where they go on, a new
/// life begins sooner, or Kubernetes waits longer between two and says so at the pod.
const NEWS: Duration = Duration::from_secs(60);

/// A life that lasts so long has not been ended by what it works on.
const CALM: Duration = Duration::from_secs(600);

/// Workloads in the note at most: 60 KB of the ledger's own object. Further ones are worked on without being noted.
const NOTED_MAX: usize = 250;

/// The note of one life of the program for the next, in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, bound(serialize = "I: Ord + Serialize", deserialize = "I: Ord + Deserialize<'de>"))]
pub struct LifeNote<I = WorkloadId> {
    /// The life that wrote this has begun to work and has not ended in order.
    pub open: bool,
    /// How many lives before it ended abruptly, one after the other.
    pub abrupt: u32,
    /// The workloads that it works on. Kept only by a life that follows an abrupt end.
    pub under_way: BTreeSet<I>,
    /// The workload that is tried: if this life ends abruptly, only what is tried is taken for the cause.
    pub tried: Option<I>,
    /// Those that are tried beside it. A program that does not know them goes on with that one.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub beside: BTreeSet<I>,
    /// Workloads that were under way at abrupt ends, and at how many.
    pub suspects: BTreeMap<I, u32>,
}

impl<I> Default for LifeNote<I> {
    fn default() -> Self {
        Self {
            open: false,
            abrupt: 0,
            under_way: BTreeSet::new(),
            tried: None,
            beside: BTreeSet::new(),
            suspects: BTreeMap::new(),
        }
    }
}

impl<I: ObjectId> LifeNote<I> {
    fn tries(&self, workload: &I) -> bool {
        self.tried.as_ref() == Some(workload) || self.beside.contains(workload)
    }

    /// Why this workload waits, if it does, and what helps; a person reads it.
    pub fn why_rests(&self, workload: &I) -> Option<String> {
        let rests = self.open && !self.tries(workload);
        let ends = self.suspects.get(workload).filter(|_| rests)?;
        let times = if *ends == 1 { "while".to_owned() } else { format!("{ends} times while") };
        Some(format!(
            "allclear itself ended abruptly {times} it worked on this workload (killed, out of memory, or with its node). It is tried again {} after \
             the start of allclear, when no other such workload is being tried. Look at the last state of allclear's pod and at \
             its memory limit; to try it at once, restart allclear in order (kubectl rollout restart)",
            humantime::format_duration(rest(*ends))
        ))
    }
}

/// The pause of a workload after so many abrupt ends.
fn rest(ends: u32) -> Duration {
    let factor = REST_GROWS.saturating_pow(ends.saturating_sub(1));
    REST.saturating_mul(factor).min(REST_MAX)
}

/// Whether a workload may be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Now,
    /// As soon as the note that says so is stored: it is in the next [`Lives::to_store`].
    Noted,
    /// Not before [`Lives::tick`] names it.
    Rests,
}

/// The present life, in the light of those before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lives<I = WorkloadId> {
    began: Timestamp,
    /// The note that the ledger should hold.
    note: LifeNote<I>,
    /// The note that it is known to hold.
    stored: LifeNote<I>,
    /// The note that is being stored.
    storing: Option<LifeNote<I>>,
    /// Workloads that wait for the next note, and those that wait for the one that is being stored.
    waiting: BTreeSet<I>,
    free: BTreeSet<I>,
    /// Since when some are tried, if any are.
    trial_since: Timestamp,
    /// How many of those that may have caused one end are tried together.
    together: usize,
}

impl<I: ObjectId> Lives<I> {
    /// A new life, after the one that left `found`.
    pub fn begin(found: Option<LifeNote<I>>, now: Timestamp) -> Self {
        let stored = found.unwrap_or_default();
        let mut note = LifeNote::default();
        if stored.open {
            note.abrupt = stored.abrupt.saturating_add(1);
            note.suspects.clone_from(&stored.suspects);
            let tried: BTreeSet<I> = stored.tried.iter().chain(&stored.beside).cloned().collect();
            for id in if tried.is_empty() { &stored.under_way } else { &tried } {
                *note.suspects.entry(id.clone()).or_default() += 1;
            }
        }
        Self::new(now, note, stored)
    }

    /// The same life goes on: only the watcher was built anew.
    pub fn go_on(found: Option<LifeNote<I>>, now: Timestamp) -> Self {
        let stored = found.unwrap_or_default();
        let none = BTreeSet::new();
        let note = LifeNote { under_way: none.clone(), tried: None, beside: none, ..stored.clone() };
        Self::new(now, note, stored)
    }

    const fn new(began: Timestamp, note: LifeNote<I>, stored: LifeNote<I>) -> Self {
        Self {
            began,
            note,
            stored,
            storing: None,
            waiting: BTreeSet::new(),
            free: BTreeSet::new(),
            trial_since: began,
            together: 1,
        }
    }

    /// How many lives before this one ended abruptly, one after the other.
    pub const fn abrupt(&self) -> u32 {
        self.note.abrupt
    }

    /// The sentence about the lives before this one, if any is due.
    pub fn words(&self) -> Option<String> {
        let how = match self.note.abrupt {
            0 => return None,
            1 => "the life of allclear before this one".to_owned(),
            lives => format!("the last {lives} lives of allclear"),
        };
        let next = match (self.note.suspects.len(), self.note.abrupt) {
            (0, 1) => "each workload is noted before it is worked on".to_owned(),
            (0, _) => "no workload is put aside".to_owned(),
            (1, _) => "one workload that was being worked on rests, and is then tried alone".to_owned(),
            (some, _) => format!(
                "{some} workloads that were being worked on rest, and are then tried, one alone and then more at a time"
            ),
        };
        Some(format!(
            "{how} ended abruptly (killed, out of memory, or with its node): {next}. Look at the last state of allclear's pod and at its memory limit"
        ))
    }

    /// The same as a present trouble: while a workload waits for it, and for a minute after the start. One end may be a
    /// node that was lost: that is worth a line in the log alone.
    pub fn trouble(&self, now: Timestamp) -> Option<String> {
        let matters = !self.note.suspects.is_empty() || now.since(self.began) < NEWS;
        self.words().filter(|_| self.note.abrupt > 1 && matters)
    }

    /// Asks to work on a workload.
    pub fn ask(&mut self, id: &I) -> Leave {
        if self.note.suspects.contains_key(id) && !self.note.tries(id) {
            return Leave::Rests;
        }
        let careful = self.note.abrupt > 0;
        if careful && self.note.under_way.len() < NOTED_MAX {
            self.note.under_way.insert(id.clone());
        }
        self.note.open = true;
        if self.lacks().is_none() {
            return Leave::Now;
        }
        self.waiting.insert(id.clone());
        Leave::Noted
    }

    /// The note, if the ledger lacks something of it. That work has ended is worth no write of its own.
    fn lacks(&self) -> Option<&LifeNote<I>> {
        let differs = |note: &LifeNote<I>| {
            (note.open, note.abrupt, note.tried.clone(), note.beside.clone(), note.suspects.clone())
        };
        let more = !self.note.under_way.is_subset(&self.stored.under_way);
        Some(&self.note).filter(|note| note.open && (more || differs(note) != differs(&self.stored)))
    }

    /// No rollout works on it any more.
    pub fn ended(&mut self, id: &I) {
        self.note.under_way.remove(id);
    }

    /// The note to store now, if there is one. The answer is given to [`Lives::stored`].
    pub fn to_store(&mut self) -> Option<LifeNote<I>> {
        if self.storing.is_some() {
            return None;
        }
        self.storing = self.lacks().cloned();
        if self.storing.is_some() {
            self.free = std::mem::take(&mut self.waiting);
        }
        self.storing.clone()
    }

    /// How storing it ended. Names the workloads that may be worked on now, also where it failed: the note may prevent a loop
    /// of abrupt ends, but a purge must not wait for it.
    pub fn stored(&mut self, done: bool) -> BTreeSet<I> {
        if let Some(note) = self.storing.take().filter(|_| done) {
            self.stored = note;
        }
        let mut free = std::mem::take(&mut self.free);
        if self.lacks().is_none() {
            free.append(&mut self.waiting);
        }
        free
    }

    /// Names the resting workloads whose turn has come: they are tried now.
    pub fn tick(&mut self, now: Timestamp) -> Vec<I> {
        if now.since(self.trial_since) >= TRIAL
            && let Some(tried) = self.note.tried.take()
        {
            let beside = std::mem::take(&mut self.note.beside);
            self.note.suspects.retain(|id, _| *id != tried && !beside.contains(id));
            self.together = self.together.saturating_mul(2);
        }
        let passed = now.since(self.began);
        if passed >= CALM && self.note.suspects.is_empty() && self.note.abrupt > 0 {
            (self.note.abrupt, self.note.under_way) = (0, BTreeSet::new());
        }
        if self.note.tried.is_some() {
            return Vec::new();
        }
        let mut rested: Vec<(u32, &I)> = self
            .note
            .suspects
            .iter()
            .filter(|(_, ends)| passed >= rest(**ends))
            .map(|(id, ends)| (*ends, id))
            .collect();
        rested.sort();
        let turn: Vec<I> = match rested.first() {
            Some((1, _)) => rested
                .into_iter()
                .filter(|(ends, _)| *ends == 1)
                .take(self.together)
                .map(|(_, id)| id.clone())
                .collect(),
            Some((_, id)) => vec![(*id).clone()],
            None => return Vec::new(),
        };
        self.trial_since = now;
        self.note.tried = turn.first().cloned();
        self.note.beside = turn.iter().skip(1).cloned().collect();
        turn
    }

    /// The note of a life that ends in order, and the note it replaces; `None` if the ledger says nothing else already.
    pub fn close(&self) -> Option<(LifeNote<I>, LifeNote<I>)> {
        self.stored.open.then(|| (LifeNote::default(), self.stored.clone()))
    }

    /// Why this workload waits, if it does.
    pub fn why_rests(&self, id: &I) -> Option<String> {
        LifeNote { open: true, ..self.note.clone() }.why_rests(id)
    }
}

#[cfg(test)]
mod tests;

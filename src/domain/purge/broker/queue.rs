//! The pending writes to one board: our records, in batches, and our newest beat.
//!
//! Posted records are not kept: they are read from the ledger again at the start, and whenever the board turns out to
//! have lost them.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Effect, NoAnswer};
use crate::agreement::board::{POSTINGS_MAX, Posted, Posting};
use crate::agreement::roster::Heartbeat;
use kernel::call::Call;
use kernel::id::{Seq, WorkloadId};
use kernel::machine::Timestamp;

/// Records that may wait for a board that does not take them; 1 MiB for each board, at 1 KiB for a record in flight. Beyond
/// that we read them from the ledger again once it does.
const WAITING_MAX: usize = 1_000;

/// Most records listed because a board cannot keep them.
const REFUSED_MAX: usize = 20;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    call: Call,
    waiting: BTreeMap<WorkloadId, Posting>,
    /// The batch under way.
    posting: Vec<(WorkloadId, Posting)>,
    /// The workload that was tried last. The next batch starts after it, so one record that cannot be posted does not
    /// block the others.
    last: Option<WorkloadId>,
    /// How many are posted at once; fewer while it fails.
    batch: usize,
    beat: Option<Box<Heartbeat>>,
    /// We have left a beat there.
    beaten: bool,
    /// Everything is to be posted.
    refill: bool,
    /// Records that cannot be kept there, and why.
    refused: BTreeMap<WorkloadId, String>,
}

impl Queue {
    /// Everything is to be posted.
    pub(super) fn new() -> Self {
        Self {
            call: Call::due(Timestamp::default()),
            waiting: BTreeMap::new(),
            posting: Vec::new(),
            last: None,
            batch: POSTINGS_MAX,
            beat: None,
            beaten: false,
            refill: true,
            refused: BTreeMap::new(),
        }
    }

    /// A record, or its end, is to be posted; only its newest state is.
    pub(super) fn post(&mut self, workload: &WorkloadId, posting: Posting) {
        self.waiting.insert(workload.clone(), posting);
        self.limit();
    }

    /// Everything the ledger holds is to be posted, except where something newer waits already.
    pub(super) fn fill<'a>(&mut self, postings: impl Iterator<Item = (&'a WorkloadId, Posting)>) {
        for (workload, posting) in postings {
            self.waiting.entry(workload.clone()).or_insert(posting);
        }
    }

    /// The next beat to be left; one that was not left yet is out of date.
    pub(super) fn leave(&mut self, beat: Box<Heartbeat>) {
        self.beat = Some(beat);
    }

    /// The next write on the board `index`, if one may be made.
    pub(super) fn write(&mut self, now: Timestamp, index: usize) -> Option<Effect> {
        if !self.call.is_due(now) {
            return None;
        }
        let effect = match self.beat.take() {
            Some(beat) => Effect::Heartbeat(index, beat),
            None if self.waiting.is_empty() => return None,
            None => {
                self.posting = self.next_batch();
                Effect::Post(index, self.posting.clone())
            }
        };
        self.call.asked();
        Some(effect)
    }

    /// When the next write may be made, if there is one.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline().filter(|_| self.beat.is_some() || !self.waiting.is_empty())
    }

    /// The batch was accepted; returns the posts that turned out to be older than the board's copies.
    pub(super) fn posted(&mut self, now: Timestamp, answers: Vec<Posted>) -> Vec<(WorkloadId, Seq, u64)> {
        self.call.answered_until(now);
        self.batch = self.batch.saturating_mul(2).min(POSTINGS_MAX);
        let mut newer = Vec::new();
        let posted = std::mem::take(&mut self.posting);
        for ((workload, _), answer) in posted.into_iter().zip(answers) {
            self.refused.remove(&workload);
            match answer {
                Posted::Current => {}
                Posted::Newer(seq, revision) => newer.push((workload, seq, revision)),
                Posted::Refused(why) if self.refused.len() < REFUSED_MAX => drop(self.refused.insert(workload, why)),
                Posted::Refused(_) => {}
            }
        }
        newer
    }

    /// The outcome of the post is unknown.
    pub(super) fn post_failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: NoAnswer) {
        self.call.failed(again, why);
        // If one record is the cause, smaller batches let the others through sooner.
        self.batch = (self.batch.min(self.posting.len()) / 2).max(1);
        for (workload, posting) in std::mem::take(&mut self.posting) {
            // Something newer may have come meanwhile.
            self.waiting.entry(workload).or_insert(posting);
        }
        self.limit();
    }

    /// Our beat was left there. Returns whether it was not the first.
    pub(super) fn beaten(&mut self, now: Timestamp) -> bool {
        self.call.answered_until(now);
        std::mem::replace(&mut self.beaten, true)
    }

    /// The outcome of leaving our beat is unknown.
    pub(super) fn beat_failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: NoAnswer) {
        self.call.failed(again, why);
    }

    /// Whether we have left a beat there.
    pub(super) fn has_beaten(&self) -> bool {
        self.beaten
    }

    /// The board lacks what we have posted, so everything is to be posted.
    pub(super) fn refill(&mut self) {
        self.refill = true;
    }

    /// Whether the ledger is to be read for it. Not while it fails: what waits is tried first.
    pub(super) fn wants_refill(&self) -> bool {
        self.refill && !self.call.is_failing()
    }

    /// The ledger is being read for it.
    pub(super) fn is_refilled(&mut self) {
        self.refill = false;
    }

    /// How many records wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.posting.len()
    }

    /// Records that cannot be kept there, and why.
    pub(super) fn refused(&self) -> impl Iterator<Item = (&WorkloadId, &String)> {
        self.refused.iter()
    }

    /// Why the last write failed.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }

    /// Drops records beyond the bound; the ledger has them. It keeps postings about removed or absent workloads, which are
    /// small and not in the ledger.
    fn limit(&mut self) {
        if !self.call.is_failing() || self.waiting.len() <= WAITING_MAX {
            return;
        }
        let mut kept = 0;
        self.waiting.retain(|_, posting| {
            kept += usize::from(!posting.passes());
            posting.passes() || kept <= WAITING_MAX
        });
        self.refill = true;
    }

    fn next_batch(&mut self) -> Vec<(WorkloadId, Posting)> {
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.waiting.range::<WorkloadId, _>((after, Bound::Unbounded)).map(|(workload, _)| workload);
        let wanted = self.batch.min(self.waiting.len());
        let batch: Vec<WorkloadId> = later.chain(self.waiting.keys()).take(wanted).cloned().collect();
        self.last = batch.last().cloned();
        batch.into_iter().filter_map(|workload| Some((workload.clone(), self.waiting.remove(&workload)?))).collect()
    }
}

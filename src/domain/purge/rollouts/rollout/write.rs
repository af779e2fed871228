//! Our record in two copies, and making the newer one durable: one write at a time, each a compare-and-set of the one before it.
//!
//! Not for the draft's content; the other parts of a rollout decide that.

use std::time::Duration;

use crate::records::record::{Record, Vote};
use crate::records::record_codec;
use crate::rollouts::rollout::Effect;
use kernel::call::Call;
use kernel::floor::Floor;
use kernel::id::{Nonces, Reference, Seq, Vector};
use kernel::machine::Timestamp;
use notices::notice::Notice;

/// How long a change may wait for another one to travel with: one that only tidies the record, and one that a vote is about to
/// follow.
const TRAVELS_WITHIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnRecord {
    /// The record that the ledger is known to contain. Only this is acted upon (GA-1).
    pub(super) durable: Option<Record>,
    /// The record that it should contain.
    pub(super) draft: Option<Record>,
    /// No `seq` at or below this may be used: an earlier record of the workload may have had them (decision 2).
    pub(super) floor: Floor,
    /// No `seq` at or below this may be given out again: this life has seen it used, and the ledger has forgotten it.
    pub(super) spent: Seq,
    /// A state of the record that the ledger has lost; kept in the record of a group's member.
    pub(super) lost: Option<(Seq, u64)>,
    /// The source of the nonce of each number.
    pub(super) nonces: Nonces,
    /// The ledger lost its record of this workload, and no life knows it: a notice is due, and votes must be closed.
    pub(super) forgotten: bool,
    writing: Option<Write>,
    call: Call,
    /// Notices that the write under way has no room for.
    shed: Vec<Notice>,
    /// Since when a change waits for another one to travel with.
    held_since: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Write {
    Record(Box<Record>),
    Removal,
}

impl OwnRecord {
    /// As the ledger holds it.
    pub(super) fn resumed(floor: Floor, record: Option<Record>) -> Self {
        Self { durable: record.clone(), draft: record, floor, ..Self::default() }
    }

    /// Starts the write that makes the draft durable, if one is needed and none is under way. `more_follows` means that an answer
    /// is outstanding that will change the draft again. A write with an unknown outcome is repeated unchanged, so that its answer
    /// means what it says.
    pub(super) fn flush(&mut self, now: Timestamp, more_follows: bool) -> Option<Effect> {
        if !self.call.is_due(now) {
            return None;
        }
        if self.writing.is_none() {
            if self.draft == self.durable {
                self.held_since = None;
                return None;
            }
            if more_follows || (self.only_tidies() && !self.is_quiet()) {
                let since = *self.held_since.get_or_insert(now);
                if now < since.after(TRAVELS_WITHIN) {
                    return None;
                }
            }
            self.held_since = None;
            let (durable, floor) = (self.durable.as_ref(), self.floor);
            self.writing = Some(self.draft.as_mut().map_or(Write::Removal, |draft| {
                draft.revision = floor.follows(Record::state_of(durable), draft.seq).saturating_add(1);
                self.shed = record_codec::shed(draft);
                Write::Record(Box::new(draft.clone()))
            }));
        }
        self.call.asked();
        match self.writing.as_ref()? {
            Write::Record(record) => Some(Effect::Store(record.clone())),
            Write::Removal => Some(Effect::Remove(self.durable.as_ref()?.revision)),
        }
    }

    /// Whether the draft differs only in what no later life decides by.
    fn only_tidies(&self) -> bool {
        let (Some(draft), Some(durable)) = (&self.draft, &self.durable) else { return false };
        let mut tidied = durable.clone();
        tidied.elapsed_ms = draft.elapsed_ms;
        if draft.untold.iter().all(|notice| durable.untold.contains(notice)) {
            tidied.untold.clone_from(&draft.untold);
        }
        tidied == *draft
    }

    /// Whether nothing but tidying is left, so there is nothing to wait for.
    fn is_quiet(&self) -> bool {
        self.draft.as_ref().is_none_or(|record| !record.is_open())
    }

    /// The write under way happened. Returns the notices that it had no room for.
    pub(super) fn stored(&mut self) -> Vec<Notice> {
        let Some(written) = self.writing.take() else { return Vec::new() };
        self.call.answered();
        self.durable = match written {
            Write::Record(record) => Some(*record),
            Write::Removal => None,
        };
        if let (Some(draft), Some(durable)) = (&mut self.draft, &self.durable) {
            draft.revision = durable.revision;
        }
        std::mem::take(&mut self.shed)
    }

    /// Another writer was first, and its record holds. Returns the record we believed the ledger to hold.
    pub(super) fn conflicted(
        &mut self,
        current: Option<Record>,
        floor: Floor,
        again: impl FnOnce(u32) -> Timestamp,
    ) -> Option<Record> {
        self.writing = None;
        self.shed.clear();
        self.call.repeat(again);
        // A record that another worker removed took its numbers with it (decision 2).
        self.floor = self.floor.max(floor);
        self.draft.clone_from(&current);
        std::mem::replace(&mut self.durable, current)
    }

    /// The write has an unknown outcome, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        self.call.failed(again, why);
    }

    /// The workload came back. Unless its record is being removed, what the record says of the edge still holds.
    pub(super) fn recall(&mut self) {
        if self.draft.is_none() {
            self.draft = match &self.writing {
                Some(Write::Removal) => None,
                Some(Write::Record(record)) => Some(record.as_ref().clone()),
                None => self.durable.clone(),
            };
        }
    }

    /// The vote for this vector in the draft, among those kept for what they owe too.
    pub(super) fn kept_mut(&mut self, vector: &Vector) -> Option<&mut Vote> {
        self.draft.as_mut()?.all_kept_mut().find(|vote| vote.vector == *vector)
    }

    /// The vote in the draft with the purge under this reference, among those kept for what they owe too.
    pub(super) fn vote_under(&mut self, reference: &Reference) -> Option<&mut Vote> {
        let is_its = |vote: &&mut Vote| vote.purges.listed.values().any(|purge| purge.reference == *reference);
        self.draft.as_mut()?.all_kept_mut().find(is_its)
    }

    /// The open vote for this vector in the draft.
    pub(super) fn open_vote(&mut self, vector: &Vector) -> Option<&mut Vote> {
        let open = |vote: &&mut Vote| vote.vector == *vector && vote.closed.is_none();
        self.draft.as_mut()?.votes.iter_mut().find(open)
    }

    /// The newest open vote that is drafted and not stored yet.
    pub(super) fn unstored_vote(&self) -> Option<&Vote> {
        let stored = |vote: &Vote| self.durable.as_ref().is_some_and(|record| record.vote(&vote.vector).is_some());
        self.draft.as_ref()?.votes.iter().rev().find(|vote| vote.closed.is_none() && !stored(vote))
    }

    /// Whether a write is under way, or will be repeated.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Whether the ledger holds what it should.
    pub(super) fn is_settled(&self) -> bool {
        self.writing.is_none() && self.draft == self.durable
    }

    /// The writing of it.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// Ends a pause that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }

    /// When to write again, or to write on its own what waits for another change.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline().into_iter().chain(self.held_since.map(|since| since.after(TRAVELS_WITHIN))).min()
    }
}

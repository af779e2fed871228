//! A ledger that was set back: it holds an older state of the record than this life knows of.
//!
//! A purge's reference follows from the rollout's number, so a number that was given out before must not be given out again:
//! the reference would bring back the old invalidation, and the edge stay as it is. Alone, we write again what the ledger has
//! lost, under the next number. If the backup was made at another version, that version has run since, so a rollout begins
//! whatever runs now, and the edge is purged. In a group others may have seen more than this life has, so the workload is held
//! (`StateRegressed`, see `broker::ahead`), and the finding is written into the record.
//!
//! Without a key, a copy of ours on a Redis that is newer than our ledger proves nothing, because anyone with access may have
//! written it. It does not hold the workload, and our numbers go on above it. If the ledger was set back after all, no lost
//! number is used twice. If the copy was forged, the other members, who keep the highest, accept our records again.
//!
//! An earlier life's memory is lost with it. Not for finding out that a cluster was set back; that is `kernel::watches::horizon`.

use crate::records::record::{Change, Edge, Outcome, Phase, Record};
use crate::rollouts::rollout::Rollout;
use crate::rollouts::rollout::adoption::{self, lacks};
use kernel::floor::Floor;
use kernel::id::{Nonces, Seq, Vector};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// The message for a workload whose record was lost, in part or as a whole.
pub(super) const FORGOTTEN: &str =
    "the ledger was set back, so what was purged for this workload is not known: it is purged once more";

impl Rollout {
    /// Sets where the nonces of new numbers come from.
    #[must_use]
    pub fn drawing(mut self, nonces: Nonces) -> Self {
        self.record.nonces = nonces;
        self
    }

    /// The same machine in a life that knew the ledger to hold `known`. Without `known` and after a set-back, `spent` is the
    /// highest number this life has seen.
    #[must_use]
    pub fn remembering(mut self, known: Option<&Record>, spent: Seq) -> Self {
        self.record.spent = spent;
        match known {
            Some(known) => self.compare(known),
            // Removed by this life, and back with an old record, which may be in the middle of a rollout.
            None if self.identity.is_alone() && spent > Seq::default() => self.count_above(spent, true),
            None => {}
        }
        self.served.resume(&self.policy, self.record.draft.as_ref());
        self
    }

    /// The same machine if the ledger has `forgotten` what it had of this workload, in part or as a whole, and no life knows it.
    #[must_use]
    pub fn bereft(mut self, forgotten: bool) -> Self {
        let Floor { lost, .. } = self.record.floor;
        let counted = self.record.durable.as_ref().map_or(Seq::default(), |record| record.seq);
        if !forgotten || !self.record.floor.is_behind(counted) {
            return self;
        }
        if self.identity.is_alone() {
            self.record.forgotten = true;
            self.count_above(lost, true);
            self.served.resume(&self.policy, self.record.draft.as_ref());
        } else if self.record.draft.is_none() {
            // A new record would overwrite the copies that prove what the group knows. What is left of an old one does not.
            self.record.lost = Some((lost, 0));
        }
        self
    }

    /// Compares the ledger's record with the one this life knew it to hold.
    pub(super) fn compare(&mut self, known: &Record) {
        let there = (known.seq, known.revision);
        if !lacks(self.record.durable.as_ref(), self.record.floor, there) {
            // It was adopted, or nothing was lost at all.
            self.record.lost = None;
            return;
        }
        self.record.spent = self.record.spent.max(known.seq);
        if self.identity.is_alone() {
            let held = self.record.durable.as_ref();
            let ran = held.is_some_and(|held| held.version != known.version || held.uid != known.uid);
            self.record.draft = Some(known.clone());
            self.count_above(known.seq.max(self.record.floor.lost), ran);
        } else {
            self.record.lost = self.record.lost.max(Some(there));
        }
    }

    /// Ends what was open when the ledger lost what it knew of it, and says what happens now.
    pub(super) fn recover(&mut self, now: Timestamp) {
        if !self.record.forgotten || self.record.draft.is_none() {
            return;
        }
        self.record.forgotten = false;
        let votes = self.record.draft.iter().flat_map(|draft| &draft.votes);
        let open: Vec<Vector> = votes.filter(|vote| vote.closed.is_none()).map(|vote| vote.vector.clone()).collect();
        for vector in open {
            self.end_vote(now, &vector, (Outcome::SetBack, String::new()));
        }
        self.announce(now, Kind::RolloutStarted, FORGOTTEN.to_owned());
    }

    /// Keeps for later lives that the ledger was set back: what this one writes may overwrite the copies that prove it.
    pub(super) fn note_set_back(&mut self) {
        // An adopted record ends it, although the group may not know that yet.
        let ended =
            |lost: &(Seq, u64)| self.record.durable.as_ref().is_some_and(|record| adoption::ends(record, lost.0));
        let found = self.ballot.view.set_back.max(self.record.lost).filter(|lost| !ended(lost));
        if let (Some(draft), Some(_)) = (&mut self.record.draft, found) {
            draft.set_back = draft.set_back.max(found);
        }
    }

    /// Goes on above a number of ours that any member has shown.
    pub(super) fn outnumber(&mut self) {
        if let Some(above) = self.ballot.view.above {
            self.record.spent = self.record.spent.max(above);
            self.count_above(above, false);
        }
    }

    /// Gives the draft a number above `spent`. If something else `ran`, it is a rollout whose end has to be purged.
    fn count_above(&mut self, spent: Seq, ran: bool) {
        let Some(draft) = self.record.draft.as_mut().filter(|draft| draft.seq <= spent) else { return };
        if draft.closed >= draft.seq {
            draft.closed = spent;
        }
        draft.seq = spent;
        // The ledger may have dropped them before it was set back.
        draft.passed.clear();
        self.bump_seq(spent);
        if let Some(draft) = self.record.draft.as_mut().filter(|_| ran) {
            draft.closed = draft.closed.min(spent);
            draft.change = Change::Changed;
            draft.phase = Phase::Rolling;
            draft.edge = draft.edge.max(Edge::Moved);
            draft.votes.iter_mut().for_each(|vote| vote.purges.overtaken = true);
        }
    }
}

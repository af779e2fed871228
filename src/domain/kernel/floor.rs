//! A ledger's memory of numbers whose record is gone: new ones start above them.
//!
//! Two things leave a floor. A removal does, and then all that is at or below it is over (decision 2). A loss does too: a part of the
//! ledger was deleted or replaced, so nothing is known of what was at or below it (decision 48).

use crate::id::Seq;

/// The state of a record that decides which one is newer: its `seq`, and its revision.
pub type State = (Seq, u64);

/// The number above which a new record of a part of the ledger starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Floor {
    /// The number that its own is above.
    pub seq: Seq,
    /// No number and no revision above this was in use when a part of the ledger was lost; 0 if none was.
    pub lost: Seq,
}

impl From<Seq> for Floor {
    fn from(seq: Seq) -> Self {
        Self { seq, lost: Seq::default() }
    }
}

impl Floor {
    /// Both of this one and that one.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { seq: self.seq.max(other.seq), lost: self.lost.max(other.lost) }
    }

    /// Whether this number, or 0 where there is no record, may be older than what was done.
    pub fn is_behind(self, seq: Seq) -> bool {
        self.lost > Seq::default() && seq <= self.lost
    }

    /// The revision that a write of this number follows, over a record of that number and revision. The first number above what was lost brings a revision
    /// above it: then whoever knows an older record under some revision does not take the new one for it.
    pub fn follows(self, (counted, revision): State, seq: Seq) -> u64 {
        if self.is_behind(counted) && !self.is_behind(seq) { revision.max(self.lost.0) } else { revision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_above_a_loss_brings_a_revision_above_it_and_no_other_does() {
        let floor = Floor { seq: Seq(12), lost: Seq(10) };
        let none = (Seq::default(), 0);
        assert_eq!(floor.follows(none, Seq(13)), 10);
        assert_eq!(floor.follows((Seq(3), 4), Seq(11)), 10);
        assert_eq!(floor.follows((Seq(3), 4), Seq(3)), 4, "what is left of it is still finished");
        assert_eq!(floor.follows((Seq(11), 11), Seq(12)), 11);
        assert_eq!(Floor::from(Seq(12)).follows(none, Seq(13)), 0, "a removal has no say in revisions");
    }
}

//! How rollouts ended, as a record remembers it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::records::record::{Failure, HISTORY_MAX, Record, Seen, Times};
use kernel::id::{InvalidationId, Seq};
use kernel::names::distribution::DistributionId;

/// How a rollout ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Purged; executed or covered by a later purge (decision 10).
    Purged,
    /// Every component was a baseline or already covered.
    NothingNew,
    /// Back to the version the edge already has, and no other completed in between.
    Returned,
    /// It recovered, and `purge.on_recovered` says to skip.
    RecoveredSkipped,
    /// The workload is not reached by any host.
    NoSite,
    /// No distribution serves its hosts.
    NoDistribution,
    /// Its purge cannot be made.
    Impossible,
    /// Its purge cannot be made yet, and is owed (decision 29).
    Owed,
    /// Some of its distributions are purged; the purges of the others cannot be made.
    Partly,
    /// Some of its distributions are purged; purges of others are owed.
    PartlyOwed,
    Failed(Failure),
    /// Another version took its place before it was purged.
    Superseded,
    /// The previous version took its place before it was complete.
    RolledBack,
    /// The workload was deleted.
    Deleted,
    /// The group did not agree in time, and `group.policy` is `skip`.
    Withdrawn,
    /// A member withdrew, or the vector died in another way.
    Dead,
    /// Its owner took the workload out while members of the group still waited for each other (decision 53).
    SwitchedOff,
    /// The ledger's state of it may be older than the work done for it (decision 48). Another purge takes its place.
    SetBack,
}

impl Outcome {
    /// Whether it is not the last word, though something older was left at the edge: the purge is tried again until it is made.
    pub const fn is_owed(&self) -> bool {
        matches!(self, Self::Owed | Self::PartlyOwed)
    }

    /// A program that knows only the first form of a record cannot read it.
    pub const fn is_new(&self) -> bool {
        matches!(self, Self::Owed | Self::Partly | Self::PartlyOwed) || self.is_third()
    }

    /// A program that knows only the first two forms of a record cannot read it.
    pub const fn is_third(&self) -> bool {
        matches!(self, Self::SwitchedOff | Self::SetBack)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Purged => f.write_str("purged"),
            Self::NothingNew => f.write_str("not purged: nothing had changed"),
            Self::Returned => f.write_str(
                "not purged: back to the version the edge already has, and no other one was served or completed in between \
                 (purge.on_rollback = \"purge\" changes that)",
            ),
            Self::RecoveredSkipped => f.write_str(
                "not purged: it completed after it was recorded as failed, and purge.on_recovered is \"skip\"",
            ),
            Self::NoSite => f.write_str("not purged: no Ingress, route or annotation gives the workload a host"),
            Self::NoDistribution => f.write_str("not purged: no distribution serves its hosts"),
            Self::Impossible => f.write_str("not purged: CloudFront cannot make the invalidation"),
            Self::Partly => f.write_str("partly purged: some of its invalidations cannot be made"),
            Self::PartlyOwed => {
                f.write_str("partly purged: CloudFront does not let us make the rest yet; it is owed and tried again")
            }
            Self::Owed => f.write_str("not purged yet: CloudFront does not let us; the purge is owed and tried again"),
            Self::Failed(failure) => write!(f, "not purged: {failure}"),
            Self::Superseded => f.write_str("not purged: another version took its place first"),
            Self::RolledBack => f.write_str("not purged: it was rolled back before it was complete"),
            Self::Deleted => f.write_str("not purged: the workload was deleted"),
            Self::Withdrawn => f.write_str("not purged: the group did not agree in time, and group.policy is \"skip\""),
            Self::SwitchedOff => f.write_str("not purged: its owner switched it off by allclear.dev/enabled"),
            Self::Dead => f.write_str("not purged: a member of the group could not complete it"),
            Self::SetBack => f.write_str("not known: a part of the ledger was lost, so it is purged once more instead"),
        }
    }
}

/// A closed rollout, in brief.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Closed {
    #[serde(rename = "s")]
    pub seq: Seq,
    /// Its versions in words.
    #[serde(rename = "c")]
    pub change: String,
    #[serde(rename = "o")]
    pub outcome: Outcome,
    /// Why, where the outcome does not say it all.
    #[serde(rename = "w", default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Its purges, the first [`PURGES_NAMED_MAX`](crate::records::record::PURGES_NAMED_MAX) of them.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub purges: Vec<(DistributionId, Option<InvalidationId>)>,
    /// How many more there were.
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// What was seen at the edge after it; `None` while nothing was.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
}

impl Record {
    /// Remembers how a rollout ended, in its place among the others; forgets the oldest beyond [`HISTORY_MAX`]. One whose vector died has not ended: the
    /// others may still come to the same version.
    pub fn close(&mut self, closed: Closed) {
        if closed.outcome != Outcome::Dead {
            self.closed = self.closed.max(closed.seq);
            // The history has it in words now.
            self.from = self.from.take().filter(|_| self.closed < self.seq);
            if self.closed >= self.seq {
                self.times = Times::default();
            }
        }
        // A purge that was owed for long ends after later rollouts: that it did is no word about the newest.
        let after = self.history.iter().rposition(|known| known.seq <= closed.seq).map_or(0, |index| index + 1);
        self.history.insert(after, closed);
        let excess = self.history.len().saturating_sub(HISTORY_MAX);
        self.history.drain(..excess);
    }
}

const fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_late_is_remembered_in_its_place_and_the_newest_stays_last() {
        let mut record = Record::first(Seq(9));
        let mut close = |seq| {
            let closed = Closed {
                seq: Seq(seq),
                change: String::new(),
                outcome: Outcome::Purged,
                why: String::new(),
                purges: Vec::new(),
                more: 0,
                seen: None,
            };
            record.close(closed);
            record.history.iter().map(|closed| closed.seq.0).collect::<Vec<_>>()
        };
        assert_eq!([close(5), close(9), close(7)], [vec![5], vec![5, 9], vec![5, 7, 9]]);
        assert_eq!(close(6), [6, 7, 9], "the oldest is forgotten");
        assert_eq!(close(2), [6, 7, 9], "what would be the oldest is not remembered");
    }
}

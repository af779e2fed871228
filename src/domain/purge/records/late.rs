//! Which workloads wait longer than they should: their rollout still goes on, and has passed one of its timeouts. A metric asks
//! here, so that an alert lasts as long as the wait.
//!
//! Not for rollouts that have ended; those are [`crate::rollouts::unwell`]'s. A slow rollout that is within its timeout is not late.

use crate::records::record::Record;

/// The wait of a rollout that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Late {
    /// Other members of the group, for longer than `group.timeout`.
    Group,
    /// An invalidation that does not complete within `purge.completion_timeout`.
    Purge,
}

impl Late {
    /// All of them, for metrics.
    pub const ALL: [Self; 2] = [Self::Group, Self::Purge];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Purge => "purge",
        }
    }
}

/// The too long wait of a record's rollouts; `None` if nothing is late.
pub fn late(record: &Record) -> Option<Late> {
    if record
        .votes
        .iter()
        .any(|vote| vote.purges.stalled && vote.closed.is_none() && vote.purges.open().next().is_some())
    {
        return Some(Late::Purge);
    }
    // A vote gets its purges as soon as its vector is decided.
    let undecided = record.votes.iter().any(|vote| vote.closed.is_none() && vote.purges.listed.is_empty());
    (record.stalled && (record.awaits_vote() || undecided)).then_some(Late::Group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::{Change, Outcome, Purge, PurgeState, Vote};
    use kernel::id::{Reference, Seq, Vector};

    fn vote() -> Vote {
        let json = serde_json::json!({"v": Vector::default(), "s": 4, "i": {}, "p": ["/*"]});
        serde_json::from_value(json).unwrap()
    }

    fn with(vote: Option<Vote>, stalled: bool) -> Record {
        let closed = if vote.is_none() { Seq(3) } else { Seq(4) };
        let votes = vote.into_iter().collect();
        Record { change: Change::Changed, closed, votes, stalled, ..Record::first(Seq(4)) }
    }

    #[test]
    fn a_rollout_is_late_for_the_group_only_after_it_was_told_and_while_it_waits() {
        assert_eq!(late(&with(None, false)), None, "it waits, within its timeout");
        assert_eq!(late(&with(None, true)), Some(Late::Group), "its vote is not possible");
        assert_eq!(late(&with(Some(vote()), true)), Some(Late::Group), "others have not voted");
        assert_eq!(late(&with(Some(vote()), false)), None);
        let closed = Vote { closed: Some(Outcome::Purged), ..vote() };
        assert_eq!(late(&with(Some(closed), true)), None, "it is decided and done");
        assert_eq!(late(&Record { stalled: true, ..Record::first(Seq(4)) }), None, "nothing waits");
    }

    #[test]
    fn a_rollout_is_late_for_cloudfront_until_its_purge_is_done() {
        let purging = |state, stalled| {
            let mut vote = vote();
            vote.purges.stalled = stalled;
            vote.purges.listed.insert("E1".parse().unwrap(), Purge { state, ..Purge::wanted(Reference::from("r")) });
            late(&with(Some(vote), false))
        };
        assert_eq!(purging(PurgeState::Created, false), None, "within the completion timeout");
        assert_eq!(purging(PurgeState::Created, true), Some(Late::Purge));
        assert_eq!(purging(PurgeState::Completed, true), None);
    }
}

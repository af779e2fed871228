//! Which workloads need a look: those whose newest rollout did not end well (decision 35). The status page, `status` and a
//! metric ask here, so that none of them is green while another is not.
//!
//! Not for what is in flight, nor for crashes; those are shown as such.

use serde::Serialize;

use crate::records::record::{Closed, Outcome, Phase, Record, Seen};
use crate::rollouts::rollout::closed;
use kernel::id::WorkloadId;

/// A workload whose newest rollout did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unwell {
    pub workload: WorkloadId,
    pub reason: Reason,
    /// The same in a sentence.
    pub state: String,
}

/// In what way a rollout did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It did not complete.
    Failed,
    /// The group did not agree in time, and it was given up.
    Withdrawn,
    /// A purge could not be made yet, and is tried again.
    Owed,
    /// A purge can never be made as it was decided.
    Impossible,
    /// Some of its distributions are purged, and the purges of the others can never be made.
    Partly,
    /// It is purged, and a look at the edge has shown what was there before; no member makes a further purge.
    Stale,
}

impl Reason {
    /// All of them, for metrics.
    pub const ALL: [Self; 6] = [Self::Failed, Self::Withdrawn, Self::Owed, Self::Impossible, Self::Partly, Self::Stale];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Withdrawn => "withdrawn",
            Self::Owed => "owed",
            Self::Impossible => "impossible",
            Self::Partly => "partly",
            Self::Stale => "stale",
        }
    }

    /// The remedy, for a person.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Failed => {
                "look at its pods with kubectl describe, then roll out a version that works, or go back with kubectl rollout undo; if it \
                 completes after all, it is purged then"
            }
            Self::Withdrawn => {
                "bring the members of the group to one version; to purge what runs now, set the annotation allclear.dev/requested-at to \
                 the time"
            }
            Self::Owed => {
                "mend what CloudFront refuses, which the reason names: mostly a right of the IAM role, or a quota; the purge is tried again \
                 and then made by itself"
            }
            Self::Impossible | Self::Partly => {
                "mend what the reason names; then set the annotation allclear.dev/requested-at to the time, and it is purged anew"
            }
            Self::Stale => {
                "find out where the edge has it from: mostly a cache that allclear does not purge; then set the annotation \
                 allclear.dev/requested-at to the time, and it is purged anew"
            }
        }
    }
}

/// In what way the newest rollout of a record did not end well; `None` while it has not ended, or if it ended well. Ended well
/// is also what was not purged for want of a site or a distribution, or because nothing new came of it. What serves nothing and
/// fails leaves no edge stale: it is announced on the workload, and needs no one's look here (decision 65).
pub fn reason(record: &Record) -> Option<Reason> {
    if owed(record).next().is_some() {
        return Some(Reason::Owed);
    }
    match &record.phase {
        Phase::Failed(_) => (!record.serves_nothing()).then_some(Reason::Failed),
        Phase::Withdrawn => Some(Reason::Withdrawn),
        Phase::Rolling => None,
        Phase::Complete => match &last(record)?.outcome {
            Outcome::Purged if is_seen_stale(record) => Some(Reason::Stale),
            Outcome::Failed(_) => (!record.serves_nothing()).then_some(Reason::Failed),
            Outcome::Withdrawn => Some(Reason::Withdrawn),
            Outcome::Impossible => Some(Reason::Impossible),
            Outcome::Partly => Some(Reason::Partly),
            // What is owed is said by the purges above; once they are made it is well. A dead vector has not ended.
            Outcome::Owed
            | Outcome::PartlyOwed
            | Outcome::Dead
            | Outcome::SetBack
            | Outcome::Purged
            | Outcome::NothingNew
            | Outcome::Returned
            | Outcome::RecoveredSkipped
            | Outcome::NoSite
            | Outcome::NoDistribution
            | Outcome::Superseded
            | Outcome::RolledBack
            | Outcome::Deleted
            | Outcome::SwitchedOff => None,
        },
    }
}

/// The same with words.
pub fn unwell(workload: &WorkloadId, record: &Record) -> Option<Unwell> {
    let reason = reason(record)?;
    let ended = last(record).map(closed);
    let state = match (reason, &record.phase) {
        (Reason::Owed, _) => {
            format!("a purge is owed, and tried again: {}", owed(record).collect::<Vec<_>>().join("; "))
        }
        (_, Phase::Failed(failure)) => ended.unwrap_or_else(|| format!("failed: {failure}")),
        (Reason::Failed | Reason::Withdrawn | Reason::Impossible | Reason::Partly | Reason::Stale, _) => {
            ended.unwrap_or_else(|| reason.name().to_owned())
        }
    };
    Some(Unwell { workload: workload.clone(), reason, state })
}

/// How the newest rollout ended, if it has.
fn last(record: &Record) -> Option<&Closed> {
    record.history.last().filter(|closed| closed.seq == record.seq)
}

/// Whether a look at the edge, after its last purge, has shown what was there before.
fn is_seen_stale(record: &Record) -> bool {
    last(record).and_then(|closed| closed.seen.as_ref()).is_some_and(Seen::is_stale)
}

/// The purges that are owed: `E1: AccessDenied`.
fn owed(record: &Record) -> impl Iterator<Item = String> {
    let purges = record.votes.iter().chain(&record.owed).flat_map(|vote| &vote.purges.listed);
    purges.filter_map(|(distribution, purge)| Some(format!("{}: {}", distribution.words(), purge.state.owed()?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::record::{Failure, LastSite, Purge, PurgeState, Vote};
    use kernel::id::{Reference, Seq, Vector};
    use proof::tally::Found;

    fn record(phase: Phase, outcome: Option<Outcome>) -> Record {
        let end = |outcome| Closed {
            seq: Seq(4),
            change: "web: 1 → 2".to_owned(),
            outcome,
            why: String::new(),
            purges: Vec::new(),
            more: 0,
            seen: None,
        };
        Record { phase, history: outcome.map(end).into_iter().collect(), ..Record::first(Seq(4)) }
    }

    fn of(phase: Phase, outcome: Option<Outcome>) -> Option<Reason> {
        reason(&record(phase, outcome))
    }

    #[test]
    fn what_did_not_end_well_stays_so_and_what_was_rightly_not_purged_is_well() {
        let failed = Failure::TimedOut;
        assert_eq!(of(Phase::Failed(failed), Some(Outcome::Failed(failed))), Some(Reason::Failed));
        assert_eq!(of(Phase::Failed(failed), None), Some(Reason::Failed), "also before its end is written");
        assert_eq!(of(Phase::Withdrawn, Some(Outcome::Withdrawn)), Some(Reason::Withdrawn));
        assert_eq!(of(Phase::Complete, Some(Outcome::Impossible)), Some(Reason::Impossible));
        assert_eq!(of(Phase::Complete, Some(Outcome::Partly)), Some(Reason::Partly));
        let well = [Outcome::Purged, Outcome::NoSite, Outcome::NoDistribution, Outcome::Superseded, Outcome::Returned];
        for outcome in well {
            assert_eq!(of(Phase::Complete, Some(outcome.clone())), None, "{outcome}");
        }
        assert_eq!(of(Phase::Complete, None), None, "a baseline");
        assert_eq!(of(Phase::Rolling, None), None, "not ended yet");
    }

    #[test]
    fn what_a_look_has_found_stale_needs_a_look_until_the_next_rollout_has_ended() {
        let mut record = record(Phase::Complete, Some(Outcome::Purged));
        let mut of = |found| {
            record.history[0].seen = Some(Seen::new(found, "/ is of before"));
            unwell(&WorkloadId::deployment("shop", "web"), &record).map(|unwell| (unwell.reason, unwell.state))
        };
        assert_eq!(of(Found::Stale), Some((Reason::Stale, "web: 1 → 2: purged; / is of before".to_owned())));
        for found in [Found::Fresh, Found::Unknown] {
            assert_eq!(of(found), None, "{found:?}");
        }
        of(Found::Stale);
        let elsewhere = |seen: Seen| Seen { may_be_over: true, ..seen };
        let mut looked = record.clone();
        looked.history[0].seen = looked.history[0].seen.take().map(elsewhere);
        assert_eq!(reason(&looked), None, "another member may have mended it");
        record.seq = Seq(5);
        assert_eq!(reason(&record), None);
    }

    #[test]
    fn a_failure_of_what_is_known_to_serve_nothing_needs_no_look() {
        let failed = record(Phase::Failed(Failure::TimedOut), Some(Outcome::Failed(Failure::TimedOut)));
        let of = |site| reason(&Record { site, ..failed.clone() });
        let host = BTreeSet::from(["www.example.com".parse().unwrap()]);
        let distribution = BTreeSet::from(["E1".parse().unwrap()]);
        assert_eq!(of(Some(LastSite::Nothing(Seq(4)))), None);
        assert_eq!(of(Some(LastSite::Nothing(Seq(3)))), Some(Reason::Failed), "an earlier rollout found nothing");
        assert_eq!(of(None), Some(Reason::Failed), "nobody has seen it yet");
        for site in [LastSite::Hosts(host), LastSite::Distributions(distribution), LastSite::Many] {
            assert_eq!(of(Some(site.clone())), Some(Reason::Failed), "{site:?}");
        }
    }

    #[test]
    fn a_failure_is_over_with_the_next_rollout_that_ends_well() {
        let mut record = record(Phase::Complete, Some(Outcome::Failed(Failure::TimedOut)));
        let seq = Seq(5);
        record.seq = seq;
        let purged = Closed { seq, outcome: Outcome::Purged, ..record.history[0].clone() };
        record.history.push(purged);
        assert_eq!(reason(&record), None);
    }

    #[test]
    fn what_is_owed_is_named_by_its_distribution_however_the_newest_rollout_ended() {
        let mut record = record(Phase::Complete, Some(Outcome::Purged));
        let json = serde_json::json!({"v": Vector::default(), "s": 3, "i": {}, "p": ["/*"]});
        let mut vote: Vote = serde_json::from_value(json).unwrap();
        let owed = Purge { state: PurgeState::Owed("AccessDenied".to_owned()), ..Purge::wanted(Reference::from("r")) };
        vote.purges.listed.insert("E1".parse().unwrap(), owed);
        record.owed.push(vote);
        let unwell = unwell(&WorkloadId::deployment("shop", "web"), &record).unwrap();
        assert_eq!(unwell.reason, Reason::Owed);
        assert_eq!(unwell.state, "a purge is owed, and tried again: E1: AccessDenied");
        record.owed.clear();
        assert_eq!(reason(&record), None, "once it is made it is well");
    }
}

//! Recent notices of workloads, with the time of each, for people who look at the status page.
//!
//! Records have no times, and notices of a group carry the time of its last vote, so this is by our own clock, at the moment of telling.
//! It begins with the process and is bounded. Not for decisions, and not for history that has to last; that is in the ledger, the log and
//! in Events.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use kernel::id::{NoticeId, Seq, WorkloadId};
use kernel::text;
use notices::notice::{About, Kind, Notice};

/// Moments that are kept, of all workloads: some 400 rollouts. At about 500 bytes each that is a megabyte.
const MOMENTS_MAX: usize = 2048;

/// Bytes of a sentence that are kept.
const MESSAGE_BYTES_MAX: usize = 300;

/// Hosts, and purges, that one moment keeps.
const ITEMS_MAX: usize = 10;

/// Votes whose own number is kept: one for each rollout whose moments are, at about 200 bytes each.
const VOTES_MAX: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub workload: WorkloadId,
    /// The number of the rollout in this cluster; of a notice that follows from votes, once this process has seen our own vote.
    pub seq: u64,
    pub kind: Kind,
    /// When, in milliseconds since the Unix epoch, by this member's clock.
    pub at_ms: i64,
    /// The same in a sentence.
    pub message: String,
    /// The hosts concerned, where known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The distributions concerned, and CloudFront's ids of the invalidations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub purges: Vec<(String, Option<String>)>,
    #[serde(skip)]
    id: NoticeId,
    /// The rollout as the notice names it.
    #[serde(skip)]
    rollout: String,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    moments: VecDeque<Moment>,
    /// The workload and the group's id of each rollout that was voted for here, with its number in this cluster; oldest first.
    votes: VecDeque<(WorkloadId, String, u64)>,
}

impl Kept {
    /// The number of the rollout here. Each member's notice of a vote has the same bytes, so its number may be another member's.
    fn own_seq(&self, workload: &WorkloadId, notice: &Notice) -> u64 {
        let is_it = |(of, rollout, _): &&(WorkloadId, String, u64)| of == workload && *rollout == notice.rollout;
        let vote = self.votes.iter().find(is_it).filter(|_| notice.kind.is_of_group());
        vote.map_or(notice.seq.0, |(.., seq)| *seq)
    }
}

/// What is kept.
#[derive(Debug, Default)]
pub struct Chronicle(Mutex<Kept>);

impl Chronicle {
    /// Takes in a notice. A repeated one keeps its first time.
    pub fn note(&self, notice: &Notice, at_ms: i64) {
        let About::Workload(workload, mentions) = &notice.about else { return };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.moments.iter().any(|moment| moment.id == notice.id) {
            return;
        }
        if kept.moments.len() >= MOMENTS_MAX {
            kept.moments.pop_front();
        }
        let seq = kept.own_seq(workload, notice);
        let purges = mentions.purges.iter().take(ITEMS_MAX);
        kept.moments.push_back(Moment {
            workload: workload.clone(),
            seq,
            kind: notice.kind,
            at_ms,
            message: text::cut(&notice.message, MESSAGE_BYTES_MAX),
            hosts: mentions.hosts.iter().take(ITEMS_MAX).map(ToString::to_string).collect(),
            purges: purges
                .map(|fact| {
                    (
                        fact.distribution.to_string(),
                        fact.invalidation.as_ref().filter(|id| !id.is_of_dry_run()).map(ToString::to_string),
                    )
                })
                .collect(),
            id: notice.id.clone(),
            rollout: notice.rollout.clone(),
        });
    }

    /// This member has voted for the rollout with this id in the group; here it has this number. What was told of it before gets
    /// that number too.
    pub fn voted(&self, workload: &WorkloadId, rollout: &str, seq: Seq) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.votes.iter().any(|(of, known, _)| of == workload && known == rollout) {
            return;
        }
        if kept.votes.len() >= VOTES_MAX {
            kept.votes.pop_front();
        }
        kept.votes.push_back((workload.clone(), rollout.to_owned(), seq.0));
        let is_it = |moment: &&mut Moment| {
            moment.kind.is_of_group() && moment.workload == *workload && moment.rollout == rollout
        };
        kept.moments.iter_mut().filter(is_it).for_each(|moment| moment.seq = seq.0);
    }

    /// Everything that is kept of the workloads that pass, oldest first.
    pub fn of(&self, passes: impl Fn(&WorkloadId) -> bool) -> Vec<Moment> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.moments.iter().filter(|moment| passes(&moment.workload)).cloned().collect()
    }

    /// Makes something of everything that is kept, oldest first, without a copy.
    pub fn read<T>(&self, of: impl FnOnce(&VecDeque<Moment>) -> T) -> T {
        of(&self.0.lock().unwrap_or_else(PoisonError::into_inner).moments)
    }

    /// When the last purge was complete, and how long it took since it was started, in milliseconds, where that is known too.
    pub fn last_purge(&self) -> Option<(i64, Option<i64>)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let moments = &kept.moments;
        let ended = moments.iter().rev().find(|moment| moment.kind == Kind::PurgeCompleted)?;
        let began = moments.iter().rev().find(|moment| {
            moment.kind == Kind::PurgeStarted && moment.workload == ended.workload && moment.seq == ended.seq
        });
        Some((ended.at_ms, began.map(|began| ended.at_ms.saturating_sub(began.at_ms).max(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{PipelineId, Subject};

    fn notice(name: &str, kind: Kind, seq: u64) -> Notice {
        Notice {
            id: Notice::id_of(name, kind, &seq.to_string()),
            kind,
            at_ms: 1,
            about: WorkloadId::deployment("shop", name).into(),
            seq: Seq(seq),
            rollout: String::new(),
            change: String::new(),
            message: "<b>".repeat(1000),
        }
    }

    #[test]
    fn the_last_purge_is_measured_from_its_own_start() {
        let chronicle = Chronicle::default();
        assert_eq!(chronicle.last_purge(), None);
        chronicle.note(&notice("web", Kind::PurgeStarted, 2), 10_000);
        chronicle.note(&notice("api", Kind::PurgeStarted, 2), 14_000);
        chronicle.note(&notice("web", Kind::PurgeCompleted, 2), 17_000);
        assert_eq!(chronicle.last_purge(), Some((17_000, Some(7_000))));
        chronicle.note(&notice("web", Kind::PurgeCompleted, 2), 99_000);
        assert_eq!(chronicle.last_purge(), Some((17_000, Some(7_000))), "told again, it has its first time");
        chronicle.note(&notice("old", Kind::PurgeCompleted, 1), 20_000);
        assert_eq!(chronicle.last_purge(), Some((20_000, None)), "begun by an earlier life");
    }

    #[test]
    fn what_follows_from_votes_is_of_our_own_rollout_whatever_its_number_is_elsewhere() {
        let chronicle = Chronicle::default();
        let web = WorkloadId::deployment("shop", "web");
        let of = |kind, seq, rollout: &str| Notice { rollout: rollout.to_owned(), ..notice("web", kind, seq) };
        chronicle.note(&of(Kind::RolloutStarted, 9, "own"), 1);
        chronicle.note(&of(Kind::PurgeStarted, 5, "group"), 2);
        chronicle.voted(&web, "group", Seq(9));
        chronicle.note(&of(Kind::PurgeCompleted, 5, "group"), 3);
        chronicle.note(&of(Kind::PurgeCompleted, 4, "before"), 4);
        chronicle.note(&of(Kind::PurgeStarted, 6, "another"), 5);
        let of_another = Notice { rollout: "group".to_owned(), ..notice("api", Kind::PurgeCompleted, 5) };
        chronicle.note(&of_another, 6);
        let seqs: Vec<u64> = chronicle.of(|_| true).iter().map(|moment| moment.seq).collect();
        assert_eq!(seqs, [9, 9, 9, 4, 6, 5]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_of_workloads_alone() {
        let chronicle = Chronicle::default();
        let pipeline = Subject::Pipeline(PipelineId { namespace: "shop".into(), name: "web".into() });
        chronicle.note(&Notice { about: pipeline.into(), ..notice("x", Kind::RolloutStarted, 0) }, 0);
        for seq in 0..3000 {
            chronicle.voted(&WorkloadId::deployment("shop", "web"), &format!("group/{seq}"), Seq(seq));
            chronicle.note(&notice("web", Kind::RolloutStarted, seq), 5);
        }
        let kept = chronicle.of(|_| true);
        assert_eq!((kept.len(), kept[0].seq, kept[MOMENTS_MAX - 1].seq), (MOMENTS_MAX, 952, 2999));
        assert_eq!(chronicle.0.lock().unwrap().votes.len(), VOTES_MAX);
        assert!(kept.iter().all(|moment| moment.message.len() <= MESSAGE_BYTES_MAX));
        assert!(chronicle.of(|id| id.name == "api").is_empty());
    }
}

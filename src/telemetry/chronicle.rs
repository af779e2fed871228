//! Recent notices of workloads, with the time of each, for people who look at the status page.
//!
//! Records have no times, and notices of a group carry the time of its last vote, so this is by our own clock, at the moment of telling.
//! It begins with the process and is bounded. Not for decisions, and not for history that has to last; that is in the ledger, the log and
//! in Events.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use kernel::id::{NoticeId, WorkloadId};
use kernel::text;
use notices::notice::{About, Kind, Notice};

/// Moments that are kept, of all workloads: some 400 rollouts. At about 500 bytes each that is a megabyte.
const MOMENTS_MAX: usize = 2048;

/// Bytes of a sentence that are kept.
const MESSAGE_BYTES_MAX: usize = 300;

/// Hosts, and purges, that one moment keeps.
const ITEMS_MAX: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub workload: WorkloadId,
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
}

/// The moments, oldest first.
#[derive(Debug, Default)]
pub struct Chronicle(Mutex<VecDeque<Moment>>);

impl Chronicle {
    /// Takes in a notice. A repeated one keeps its first time.
    pub fn note(&self, notice: &Notice, at_ms: i64) {
        let About::Workload(workload, mentions) = &notice.about else { return };
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if moments.iter().any(|moment| moment.id == notice.id) {
            return;
        }
        if moments.len() >= MOMENTS_MAX {
            moments.pop_front();
        }
        let purges = mentions.purges.iter().take(ITEMS_MAX);
        moments.push_back(Moment {
            workload: workload.clone(),
            seq: notice.seq.0,
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
        });
    }

    /// Everything that is kept of the workloads that pass, oldest first.
    pub fn of(&self, passes: impl Fn(&WorkloadId) -> bool) -> Vec<Moment> {
        let moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moments.iter().filter(|moment| passes(&moment.workload)).cloned().collect()
    }

    /// Makes something of everything that is kept, oldest first, without a copy.
    pub fn read<T>(&self, of: impl FnOnce(&VecDeque<Moment>) -> T) -> T {
        of(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When the last purge was complete, and how long it took since it was started, in milliseconds, where that is known too.
    pub fn last_purge(&self) -> Option<(i64, Option<i64>)> {
        let moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    use kernel::id::{PipelineId, Seq, Subject};

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
    fn what_is_kept_is_bounded_and_of_workloads_alone() {
        let chronicle = Chronicle::default();
        let pipeline = Subject::Pipeline(PipelineId { namespace: "shop".into(), name: "web".into() });
        chronicle.note(&Notice { about: pipeline.into(), ..notice("x", Kind::RolloutStarted, 0) }, 0);
        for seq in 0..3000 {
            chronicle.note(&notice("web", Kind::RolloutStarted, seq), 5);
        }
        let kept = chronicle.of(|_| true);
        assert_eq!((kept.len(), kept[0].seq, kept[MOMENTS_MAX - 1].seq), (MOMENTS_MAX, 952, 2999));
        assert!(kept.iter().all(|moment| moment.message.len() <= MESSAGE_BYTES_MAX));
        assert!(chronicle.of(|id| id.name == "api").is_empty());
    }
}

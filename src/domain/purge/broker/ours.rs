//! Our own workloads: those that rollouts of ours follow, with their newest records, and those that this cluster lacks.

use std::collections::{BTreeMap, BTreeSet};

use crate::agreement::board::PASSING_TTL;
use crate::records::record::Record;
use kernel::id::{Seq, WorkloadId};
use kernel::machine::Timestamp;

/// Workloads that are remembered as absent from this cluster, unless a member waits for them.
pub(super) const ABSENT_MAX: usize = 10_000;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ours {
    /// `None` once the record was removed.
    followed: BTreeMap<WorkloadId, Option<Box<Record>>>,
    /// Only those that a member asked for.
    absent: BTreeMap<WorkloadId, Seq>,
    /// When what is absent is posted again.
    absent_due: Timestamp,
}

impl Ours {
    /// A rollout follows this workload, with this record.
    pub(super) fn follow(&mut self, workload: WorkloadId, record: Box<Record>) {
        self.followed.insert(workload, Some(record));
    }

    /// The record of this workload was removed; the rollout that follows it goes on.
    pub(super) fn remove(&mut self, workload: &WorkloadId) {
        self.followed.get_mut(workload).into_iter().for_each(|record| *record = None);
    }

    /// No rollout follows it any more.
    pub(super) fn leave(&mut self, workload: &WorkloadId) {
        self.followed.remove(workload);
    }

    /// Whether a rollout follows it.
    pub(super) fn follows(&self, workload: &WorkloadId) -> bool {
        self.followed.contains_key(workload)
    }

    /// The newest record of a workload that a rollout follows.
    pub(super) fn record(&self, workload: &WorkloadId) -> Option<&Record> {
        self.followed.get(workload).and_then(Option::as_deref)
    }

    /// The workloads that rollouts follow.
    pub(super) fn followed(&self) -> impl Iterator<Item = &WorkloadId> {
        self.followed.keys()
    }

    /// Those of them that wait for other members.
    pub(super) fn seeking(&self) -> impl Iterator<Item = &WorkloadId> {
        let seeks = |record: &Option<Box<Record>>| record.as_ref().is_some_and(|record| record.seeks());
        self.followed.iter().filter(move |(_, record)| seeks(record)).map(|(workload, _)| workload)
    }

    /// Our cluster does not have the workload, and no longer votes for any `seq` of it up to this one. Every question about a
    /// missing workload gets this answer, but we remember for good only workloads that a member is `seeking`.
    pub(super) fn note_absent(&mut self, workload: WorkloadId, seq: Seq, seeking: &BTreeSet<WorkloadId>) {
        self.absent.insert(workload, seq);
        if self.absent.len() > ABSENT_MAX {
            self.absent.retain(|workload, _| seeking.contains(workload));
        }
    }

    /// Our cluster has it after all.
    pub(super) fn note_present(&mut self, workload: &WorkloadId) {
        self.absent.remove(workload);
    }

    /// The `seq` up to which we do not vote for an absent workload.
    pub(super) fn absent_up_to(&self, workload: &WorkloadId) -> Option<Seq> {
        self.absent.get(workload).copied()
    }

    /// All that is absent.
    pub(super) fn absent(&self) -> impl Iterator<Item = (&WorkloadId, Seq)> {
        self.absent.iter().map(|(workload, seq)| (workload, *seq))
    }

    /// The absent workloads to post again now. Boards forget after a while that we lack a workload, and others may still be
    /// `seeking` it.
    pub(super) fn absent_again(&mut self, now: Timestamp, seeking: &BTreeSet<WorkloadId>) -> Vec<(WorkloadId, Seq)> {
        if now < self.absent_due {
            return Vec::new();
        }
        self.absent_due = now.after(PASSING_TTL / 3);
        let sought = self.absent().filter(|(workload, _)| seeking.contains(*workload));
        sought.map(|(workload, seq)| (workload.clone(), seq)).collect()
    }
}

//! Whether the edge may have the version of a rollout that is not complete (decision 31): it may if one of its pods was
//! ready, if its Services publish pods that are not, or if we could not see its pods.
//!
//! Nothing of this is stored while the rollout is rolling: a later life finds a rolling record, knows that it has not seen all,
//! and takes the version for served. When the rollout ends in another way than by completing, and when the purge of another
//! version completes beside it, what is known goes into the same write.

use crate::bounds::policy::{OnRollback, Policy};
use crate::records::record::{Edge, Phase, Record};
use crate::rollouts::rollout::Rollout;
use crate::workloads::readiness::Pods;
use crate::workloads::workload::Workload;

/// The sights of the pods of the rollout in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Served {
    /// How they are now, while they can be seen.
    pods: Option<Pods>,
    /// A pod of it was ready.
    ready: bool,
    /// For a time we could not see the pods.
    blind: bool,
    /// Whether its Services publish pods that are not ready; `None` while it is not known.
    publishes_unready: Option<bool>,
}

impl Served {
    /// For a rollout that an earlier life or another worker has watched until now.
    pub(super) fn resumed(policy: &Policy, record: Option<&Record>) -> Self {
        let rolling = record.is_some_and(|record| record.phase == Phase::Rolling);
        Self { blind: rolling && policy.on_rollback == OnRollback::IfServed, ..Self::default() }
    }

    /// The same, where its pods are seen now.
    pub(super) fn resume(&mut self, policy: &Policy, record: Option<&Record>) {
        *self = Self { pods: self.pods.take(), ..Self::resumed(policy, record) };
    }

    /// Takes in the state of the pods. We have not seen what they did before the first sight.
    pub(super) fn note_pods(&mut self, pods: Pods) {
        self.ready |= pods.ready > 0;
        self.blind |= self.pods.is_none() && pods.started > 0;
        self.pods = Some(pods);
    }

    /// The pods could not be seen for a time.
    pub(super) fn note_blindness(&mut self) {
        self.blind = true;
    }

    /// Whether Services publish its pods before they are ready.
    pub(super) fn note_services(&mut self, publishes_unready: bool) {
        self.publishes_unready = Some(publishes_unready);
    }

    /// How its pods are now, while they can be seen.
    pub(super) fn pods(&self) -> Option<&Pods> {
        self.pods.as_ref()
    }

    /// Whether one of them may have answered a request.
    fn is_possible(&self) -> bool {
        let published = self.publishes_unready.unwrap_or(true) && self.pods().is_none_or(|pods| pods.updated > 0);
        self.ready || self.blind || self.pods.is_none() || published
    }
}

/// Whether the counts prove that a pod of the newest template is ready: more are than there are old ones. They need not show
/// it.
pub(super) fn is_proved_by_counts(workload: &Workload) -> bool {
    let old = workload.replicas.total.saturating_sub(workload.replicas.updated);
    workload.observed_generation >= workload.generation
        && workload.replicas.updated > 0
        && workload.replicas.ready > old
}

/// Whether we take the edge to have another version than the record's.
pub(super) fn is_edge_elsewhere(record: &Record) -> bool {
    record.settled.is_some() && record.edge == Edge::Settled
}

/// The edge may have the version of the record beside whatever it had.
pub(super) fn move_edge(record: &mut Record, same_digest_is_same: bool) {
    if record.settled.is_some() {
        record.edge = record.edge.max(Edge::Moved);
    }
    let version = record.version.clone();
    for vote in record.all_kept_mut() {
        vote.purges.overtaken |= !vote.version.same_content(&version, same_digest_is_same);
    }
}

impl Rollout {
    /// Takes in what the counts say of the rollout in flight, or of one that has failed: its pods go on.
    pub(super) fn note_counts(&mut self, workload: &Workload) {
        if self.policy.on_rollback != OnRollback::IfServed || !is_proved_by_counts(workload) {
            return;
        }
        self.served.ready = true;
        let failed = |draft: &&mut Record| matches!(draft.phase, Phase::Failed(_)) && is_edge_elsewhere(draft);
        let digests = self.policy.version.same_digest_is_same;
        self.record.draft.as_mut().filter(failed).into_iter().for_each(|draft| move_edge(draft, digests));
    }

    /// Whether a request may have been answered by the rollout in flight, as far as the policy cares.
    pub(super) fn may_be_served(&self) -> bool {
        let rolling = self.record.draft.as_ref().is_some_and(|draft| draft.phase == Phase::Rolling);
        self.policy.on_rollback == OnRollback::IfServed && rolling && self.served.is_possible()
    }

    /// The rollout in flight ends without having completed.
    pub(super) fn leave_to_the_edge(&mut self) {
        if self.may_be_served() {
            let digests = self.policy.version.same_digest_is_same;
            self.record.draft.iter_mut().for_each(|draft| move_edge(draft, digests));
        }
    }
}

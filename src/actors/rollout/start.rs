//! What the actor of a rollout starts with.

use actix::Recipient;

use crate::actors::message::FollowPods;
use crate::actors::traffic::MoveTaken;
use kernel::id::{Origin, Seq, WorkloadId};
use purge::records::record::Record;
use purge::rollouts::rollout::Arrival;
use purge::workloads::workload::Workload;

/// What a rollout is started with.
pub struct Start {
    pub workload: WorkloadId,
    pub origin: Origin,
    /// The newest sight; `None` when the workload is gone.
    pub sight: Option<Box<Workload>>,
    /// What a workload without a record is taken for, by the sight that asked for the rollout.
    pub arrival: Arrival,
    /// The record as this life knows it, and, if it has known none since the ledger was set back, the highest number it has
    /// seen.
    pub known: Option<Box<Record>>,
    pub spent: Seq,
    /// The ledger has lost what it had of it, in part or as a whole, and no life knows it.
    pub forgotten: bool,
}

/// Where a rollout reaches its watcher.
pub struct Parent {
    pub pods: Recipient<FollowPods>,
    pub moves: Recipient<MoveTaken>,
}

//! What the actor of a rollout begins with.

use domain::id::{Origin, Seq, WorkloadId};
use domain::record::Record;
use domain::rollout::Arrival;
use domain::workload::Workload;

/// What a rollout is started with.
pub struct Start {
    /// Which workload.
    pub workload: WorkloadId,
    /// The ledger's identity.
    pub origin: Origin,
    /// The newest sight; `None` when the workload is gone.
    pub sight: Option<Box<Workload>>,
    /// What the workload is taken for if it has no record, by the sight that asked for the rollout.
    pub arrival: Arrival,
    /// The record as this life has known it, and, where it has known none since the ledger was set back, the highest number
    /// it has seen.
    pub known: Option<Box<Record>>,
    /// See `known`.
    pub spent: Seq,
}

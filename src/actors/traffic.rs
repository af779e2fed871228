//! What the watcher of traffic, its parent and rollouts tell each other of traffic that moves. The rest of the protocol is in `message`.

use std::collections::{BTreeMap, BTreeSet};

use actix::Message;

use kernel::id::WorkloadId;
use purge::records::record::{Leads, Moved, Records};
use purge::traffic::Was;

/// Traffic watcher → watcher: which records say what leads to their workloads, and those of this namespace; and which of them are those
/// from before a rollout in flight.
#[derive(Message)]
#[rtype(result = "(Records, BTreeSet<WorkloadId>)")]
pub struct Remembered {
    pub namespace: String,
}

/// Traffic watcher → watcher: write this into the records of workloads at rest. The answer is what was written.
#[derive(Message)]
#[rtype(result = "BTreeMap<WorkloadId, Leads>")]
pub struct KeepLeads(pub BTreeMap<WorkloadId, Leads>);

/// Traffic watcher → watcher: traffic moved to this workload. Repeated until its record has it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AskToPurge {
    pub workload: WorkloadId,
    pub moved: Moved,
    /// What leads to it now.
    pub leads: Leads,
}

/// Watcher → rollout: the same.
#[derive(Message)]
#[rtype(result = "()")]
pub struct TrafficMoved(pub Moved, pub Leads);

/// Rollout → watcher → traffic watcher: its record has the move of this token.
#[derive(Message)]
#[rtype(result = "()")]
pub struct MoveTaken(pub WorkloadId, pub String);

/// Watcher → traffic watcher: a rollout has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub struct RolloutEnded {
    pub workload: WorkloadId,
    /// The token of the last move that its record has.
    pub moved: Option<String>,
    /// What its record said, where that is removed.
    pub departed: Option<Box<Was>>,
}

/// Watcher → traffic watcher: there are new records of workloads in these namespaces.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Rerouted(pub Vec<String>);

//! Deployments, as a watch knows them.

use crate::bounds::policy::Policy;
use crate::records::record::Record;
use crate::rollouts::rollout::{self, Arrival};
use crate::workloads::workload::Workload;
use kernel::floor::State;
use kernel::id::WorkloadId;
use kernel::watches::watch::{Attention, Kind};

/// The kind. A child of it is a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deployments {
    /// How rollouts are judged.
    pub policy: Policy,
}

impl Kind for Deployments {
    type Id = WorkloadId;
    type Sight = Workload;
    type Record = Record;
    type Arrival = Arrival;

    const AT_REST: Arrival = Arrival::Baseline;
    const NEW: Arrival = Arrival::New;
    const OPEN: Arrival = Arrival::Open;

    fn id(workload: &Workload) -> &WorkloadId {
        &workload.id
    }

    fn attention(&self, record: Option<&Record>, workload: &Workload, is_listed: bool) -> Attention<Self> {
        match rollout::attention(record, workload, is_listed, &self.policy) {
            rollout::Attention::Idle => Attention::Idle,
            rollout::Attention::Baseline(record) => Attention::Baseline(record),
            rollout::Attention::Rollout => Attention::Child(Arrival::of(workload, is_listed)),
        }
    }

    fn unusable(&self, record: Option<&Record>, workload: &Workload) -> Option<String> {
        rollout::unusable(record, workload, &self.policy)
    }

    fn state(record: &Record) -> State {
        (record.seq, record.revision)
    }
}

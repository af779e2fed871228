//! A cluster that is restored from a backup, with the ledger in it, as etcd is.

use std::collections::BTreeMap;

use allclear::adapters::ledger::memory::MemoryLedger;
use kernel::id::WorkloadId;
use kernel::watches::horizon::Mark;
use purge::ports::Sight;
use purge::workloads::workload::Workload;

use super::World;

/// What a cluster was.
pub struct Backup {
    cluster: BTreeMap<WorkloadId, Workload>,
    ledger: MemoryLedger,
}

impl World {
    /// What the cluster is now, with its ledger.
    pub fn backup(&self) -> Backup {
        let state = self.state();
        Backup { cluster: state.cluster.clone(), ledger: state.ledger.backup() }
    }

    /// The cluster is restored, and every watch has found out.
    pub fn restore(&self, backup: &Backup) {
        {
            let mut state = self.state();
            state.cluster = backup.cluster.clone();
            state.ledger = backup.ledger.backup();
        }
        let mark = |version| Mark::parse(version).expect("a resource version");
        self.show(|| Sight::SetBack { from: mark("900"), to: mark("40") });
        self.relist();
    }
}

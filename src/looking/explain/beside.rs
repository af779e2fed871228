//! Whether another version serves beside a workload, as far as that can be seen from here.

use crate::looking::Sources;
use purge::workloads::beside::{BESIDE_CURE, another_version};
use purge::workloads::workload::Workload;

/// What serves another version, or why that cannot be seen: nobody may take that for nothing.
pub(super) async fn beside(sources: &Sources, workload: &Workload) -> Option<String> {
    let beside = match sources.cluster.beside(workload).await {
        Ok(beside) => beside,
        Err(error) => return Some(format!("whether another version serves beside it cannot be seen: {error}")),
    };
    let words = another_version(&beside, workload, sources.policy.version.same_digest_is_same)?;
    Some(format!("{words}; {BESIDE_CURE}"))
}

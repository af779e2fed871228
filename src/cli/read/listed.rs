//! All workloads in view, listed once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;

use crate::cli::read::Sources;
use domain::kernel::id::WorkloadId;
use domain::ports::Sight;
use domain::workloads::workload::Workload;

/// How long a listing of all workloads may take: 10,000 of them come in about a second.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

/// How long the other namespaces are waited for once one has failed; the watch behind this would try for ever.
const AFTER_TROUBLE: Duration = Duration::from_secs(2);

/// All workloads in view, as far as they can be listed.
#[derive(Default)]
pub struct Listed {
    /// The workloads, by id.
    pub workloads: BTreeMap<WorkloadId, Workload>,
    /// What failed, in words.
    pub troubles: BTreeSet<String>,
}

/// Lists all workloads in view once.
pub async fn list(sources: &Sources) -> Listed {
    let mut sights = sources.cluster.watch();
    let mut listed = Listed::default();
    let mut deadline = tokio::time::Instant::now() + LISTED_WITHIN;
    loop {
        match tokio::time::timeout_at(deadline, sights.next()).await {
            Ok(Some(Sight::Seen(workload))) => drop(listed.workloads.insert(workload.id.clone(), *workload)),
            Ok(Some(Sight::Gone(id))) => drop(listed.workloads.remove(&id)),
            Ok(Some(Sight::Unreadable(id, why))) => {
                listed.troubles.insert(format!("{} cannot be read: {why}", id.display_name()));
            }
            Ok(Some(Sight::Trouble { error, .. })) => {
                listed.troubles.insert(error.to_string());
                deadline = deadline.min(tokio::time::Instant::now() + AFTER_TROUBLE);
            }
            Ok(Some(Sight::Restarted { .. } | Sight::SetBack { .. } | Sight::Synced { all: false, .. })) => {}
            Ok(Some(Sight::Synced { all: true, .. }) | None) => return listed,
            Err(_) => {
                if listed.troubles.is_empty() {
                    listed.troubles.insert(format!("not all deployments were listed within {LISTED_WITHIN:?}"));
                }
                return listed;
            }
        }
    }
}

//! "Did you mean": the workloads whose names are near the one that does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;

use crate::cli::explain::Sources;
use crate::domain::id::WorkloadId;
use crate::domain::workload::Workload;
use crate::ports::Sight;

/// How long a listing of all workloads may take: 10,000 of them come in about a second.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

/// How long the other namespaces are waited for once one has failed; the watch behind this would try for ever.
const AFTER_TROUBLE: Duration = Duration::from_secs(2);

/// Names suggested.
const SUGGESTED_MAX: usize = 3;

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
                listed.troubles.insert(format!("{} cannot be read: {why}", id.spoken()));
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

/// Says that there is no such workload, and which one may have been meant.
pub async fn not_found(sources: &Sources, id: &WorkloadId) -> String {
    let listed = list(sources).await;
    let mut words = format!("there is no Deployment {} in namespace {}", id.name, id.namespace);
    let near = nearest(id, listed.workloads.keys());
    if near.is_empty() {
        if listed.workloads.is_empty() && listed.troubles.is_empty() {
            words.push_str(", nor any other");
        }
    } else {
        words.push_str(&format!("; did you mean {}?", near.join(" or ")));
    }
    words
}

/// The same name elsewhere first, then names in the same namespace that are a slip away, then those that contain it.
fn nearest<'a>(id: &WorkloadId, known: impl Iterator<Item = &'a WorkloadId>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = known
        .filter_map(|other| {
            let distance = strsim::osa_distance(&id.name, &other.name);
            let slip = distance <= id.name.len().min(other.name.len()) / 3 + 1;
            let part = other.name.contains(&id.name) || id.name.contains(&other.name);
            let here = other.namespace == id.namespace;
            match () {
                () if distance == 0 => Some((0, other.spoken())),
                () if here && slip => Some((distance, other.spoken())),
                () if here && part => Some((distance.saturating_add(100), other.spoken())),
                () => None,
            }
        })
        .collect();
    near.sort();
    near.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name).collect()
}

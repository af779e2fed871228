//! "Did you mean": the workloads whose names are near the one that does not exist.

use crate::cli::read::listed::list;
use crate::cli::read::{Sources, no_namespace};
use domain::kernel::id::WorkloadId;

const SUGGESTED_MAX: usize = 3;

/// Says that there is no such workload, and which one may have been meant.
pub async fn not_found(sources: &Sources, id: &WorkloadId) -> String {
    let (listed, no_namespace) = tokio::join!(list(sources), no_namespace(sources, &id.namespace));
    if let Some(words) = no_namespace {
        return words;
    }
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
                () if distance == 0 => Some((0, other.display_name())),
                () if here && slip => Some((distance, other.display_name())),
                () if here && part => Some((distance.saturating_add(100), other.display_name())),
                () => None,
            }
        })
        .collect();
    near.sort();
    near.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name).collect()
}

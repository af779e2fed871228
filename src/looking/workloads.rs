//! All workloads in view: listed once, in brief beside their records, and by names that are near one that does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;

use crate::looking::{Section, Sources, no_namespace, no_replica, peek};
use kernel::id::WorkloadId;
use kernel::names::image::{Image, Version};
use kernel::watches::view::View;
use kinds::reported::Standing;
use purge::bounds::policy::Policy;
use purge::ports::{ClusterView, Sight};
use purge::records::record::{Outcome, Record};
use purge::rollouts::rollout::{Summary, as_it_runs, preview, timeout};
use purge::workloads::workload::Workload;

/// How long a listing of all workloads may take: 10,000 of them come in about a second.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

/// How long the other namespaces are waited for once one has failed; the watch behind this would try for ever.
const AFTER_TROUBLE: Duration = Duration::from_secs(2);

const SUGGESTED_MAX: usize = 3;

/// All workloads in view, as far as they can be listed.
#[derive(Default)]
pub struct Listed {
    /// The workloads, by id.
    pub workloads: BTreeMap<WorkloadId, Workload>,
    /// What failed, in words.
    pub troubles: BTreeSet<String>,
    /// What was listed. Our rights are not allclear's, so what is refused to us counts as if it were.
    pub view: View,
}

/// Lists all workloads in view once.
pub async fn list(cluster: &dyn ClusterView) -> Listed {
    let mut sights = cluster.watch();
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
            Ok(Some(Sight::Refused { scope, error, all })) => {
                listed.troubles.insert(error.to_string());
                listed.view.listed(&scope, all);
                if all {
                    return listed;
                }
            }
            Ok(Some(Sight::Synced { scope, all })) => {
                listed.view.listed(&scope, all);
                if all {
                    return listed;
                }
            }
            Ok(None) => return listed,
            Ok(Some(Sight::Restarted { .. } | Sight::SetBack { .. })) => {}
            Err(_) => {
                if listed.troubles.is_empty() {
                    listed.troubles.insert(format!("not all workloads were listed within {LISTED_WITHIN:?}"));
                }
                return listed;
            }
        }
    }
}

/// All workloads, in brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The workloads, by namespace and name.
    pub workloads: Vec<Row>,
    /// The ledger that has no record of some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded_in: Option<String>,
    /// Why nothing is done about any of them, or why that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// What could not be read; the rest is complete without it.
    pub missing: Vec<String>,
}

/// One workload, in brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub workload: WorkloadId,
    /// Its tags, in brief.
    pub version: String,
    /// The phase of its record; `–` without one.
    pub phase: &'static str,
    pub state: String,
    /// The last rollout that was purged.
    pub last_purge: Option<String>,
}

/// Every workload of a namespace, or of all, and whether all of it could be read.
pub async fn listing(sources: &Sources, namespace: Option<&str>) -> (Listing, bool) {
    let (listed, ledgered, idle) = tokio::join!(list(sources.cluster.as_ref()), peek(sources), no_replica(sources));
    let mut missing: Vec<String> = listed.troubles.iter().cloned().collect();
    let mut complete = missing.is_empty() && ledgered.known().is_some();
    if let Some(namespace) = namespace
        && !listed.workloads.keys().any(|id| id.namespace == namespace)
        && let Some(words) = no_namespace(sources, namespace).await
    {
        missing.push(words);
        complete = false;
    }
    let (records, unreadable) = match ledgered {
        Section::Known(ledgered) => (ledgered.records, ledgered.unreadable),
        Section::Missing { missing: why } => {
            missing.push(why);
            Default::default()
        }
    };
    let records_of =
        unreadable.iter().map(|(id, why)| format!("the record of {} cannot be read: {why}", id.display_name()));
    missing.extend(records_of);
    let ids: BTreeSet<&WorkloadId> = listed.workloads.keys().chain(records.keys()).collect();
    let wanted = |id: &&WorkloadId| namespace.is_none_or(|namespace| namespace == id.namespace);
    let shown: Vec<&WorkloadId> = ids.into_iter().filter(wanted).collect();
    let unrecorded = complete && shown.iter().any(|id| !records.contains_key(*id));
    let row = |id| {
        let row = row(id, listed.workloads.get(id), records.get(id).map(Arc::as_ref), &sources.policy);
        Row { state: listed.view.why_not(id).unwrap_or(row.state), ..row }
    };
    let workloads = shown.into_iter().map(row).collect();
    let controller = idle.and_then(|replicas| replicas.trouble());
    (
        Listing { workloads, unrecorded_in: unrecorded.then(|| sources.ledger_place.clone()), controller, missing },
        complete,
    )
}

pub(crate) fn row(id: &WorkloadId, workload: Option<&Workload>, record: Option<&Record>, policy: &Policy) -> Row {
    let running = record.zip(workload).map(|(record, workload)| as_it_runs(record, workload, policy));
    let workload = running.as_deref().or(workload);
    let version = workload.and_then(|workload| workload.version.as_ref().ok());
    let version = version.or_else(|| record.map(|record| &record.version)).map_or_else(String::new, tags);
    let clock = |record: &Record| (record.elapsed(), timeout(workload, policy));
    let summary = record.map(|record| Summary::new(id, record, workload, None, clock(record), policy));
    let state = match (workload, &summary) {
        (Some(workload), _) if workload.tuning.disabled => "taken out by its owner".to_owned(),
        (Some(workload), Some(summary)) => match record.and_then(|record| preview(record, workload, policy)) {
            Some(preview) => preview.brief,
            None => summary.state.clone(),
        },
        (None, Some(summary)) => summary.state.clone(),
        (Some(workload), None) => match workload.standing(policy.zero_is_complete) {
            Standing::Complete => "complete; not recorded".to_owned(),
            Standing::Waiting(wait) => format!("{wait}; not recorded"),
            Standing::GivenUp(why) => format!("{why}; not recorded"),
        },
        (None, None) => String::new(),
    };
    let purged = record.and_then(|record| record.history.iter().rev().find(|closed| closed.outcome == Outcome::Purged));
    Row {
        workload: id.clone(),
        version,
        phase: summary.map_or("–", |summary| summary.phase),
        state,
        last_purge: purged.map(|closed| closed.change.clone()),
    }
}

/// The images of a record, tags only, for tables.
fn tags(version: &Version) -> String {
    let tag = |image: &Image| {
        let digest = || image.digest().unwrap_or_default().chars().take("sha256:".len() + 12).collect();
        image.tag().map_or_else(digest, str::to_owned)
    };
    let all: BTreeMap<String, String> = version.iter().map(|(name, image)| (name.to_string(), tag(image))).collect();
    match all.len() {
        1 => all.into_values().collect(),
        _ => all.iter().map(|(name, tag)| format!("{name} {tag}")).collect::<Vec<_>>().join(", "),
    }
}

/// Says that there is no such workload, and which one may have been meant.
pub async fn not_found(sources: &Sources, id: &WorkloadId) -> String {
    let (listed, no_namespace) = tokio::join!(list(sources.cluster.as_ref()), no_namespace(sources, &id.namespace));
    if let Some(words) = no_namespace {
        return words;
    }
    let mut words = format!("there is no {} {} in namespace {}", id.kind.name(), id.name, id.namespace);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looking::state::state;
    use crate::looking::tests::{World, record, web};
    use kernel::id::Kind;
    use purge::records::record::{Failure, Phase};

    #[tokio::test]
    async fn a_record_of_a_kind_that_is_switched_off_is_said_to_be_and_needs_no_look() {
        let id = |kind| WorkloadId::new(kind, "shop", "web");
        let failed = Record { phase: Phase::Failed(Failure::TimedOut), ..record() };
        // Deployments alone are listed.
        let sources = World {
            records: vec![
                (id(Kind::Deployment), failed.clone()),
                (id(Kind::StatefulSet), failed),
                (id(Kind::DaemonSet), record()),
            ],
            ..World::new(web())
        };
        let sources = sources.sources().await;
        let rows = listing(&sources, None).await.0.workloads;
        let off: Vec<(Kind, bool)> =
            rows.iter().map(|row| (row.workload.kind, row.state == "not followed (workloads.kinds)")).collect();
        assert_eq!(off, [(Kind::Deployment, false), (Kind::StatefulSet, true), (Kind::DaemonSet, true)]);
        let seen = state(&sources, None).await.seen;
        let unwell: Vec<&WorkloadId> = seen.unwell.iter().map(|unwell| &unwell.workload).collect();
        let in_flight: Vec<&WorkloadId> = seen.rollouts.iter().map(|summary| &summary.workload).collect();
        assert_eq!((unwell, in_flight), (vec![&id(Kind::Deployment)], vec![&id(Kind::Deployment)]));
    }
}

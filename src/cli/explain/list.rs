//! The list of all workloads.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};

use crate::cli::explain::gather::tags;
use crate::cli::explain::model::{Listing, Row};
use crate::cli::read::listed::list;
use crate::cli::read::{Question, Section, Sources, no_namespace, no_replica, peek};
use domain::bounds::policy::Policy;
use domain::kernel::id::WorkloadId;
use domain::kernel::reported::Standing;
use domain::kernel::text::visible;
use domain::records::record::{Outcome, Record};
use domain::rollouts::rollout::{Summary, preview, timeout};
use domain::workloads::workload::Workload;

/// Columns of the terminal the table is laid out for.
const COLUMNS: u16 = 100;

/// Every workload of the question's namespace, or of all, and whether all of it could be read.
pub async fn all(sources: &Sources, question: &Question) -> (Listing, bool) {
    let (listed, ledgered, idle) = tokio::join!(list(sources), peek(sources, question), no_replica(sources));
    let mut missing: Vec<String> = listed.troubles.iter().cloned().collect();
    let mut complete = missing.is_empty() && ledgered.known().is_some();
    if let Some(namespace) = &question.namespace
        && !listed.workloads.keys().any(|id| id.namespace == *namespace)
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
    let wanted = |id: &&WorkloadId| question.namespace.as_ref().is_none_or(|namespace| *namespace == id.namespace);
    let shown: Vec<&WorkloadId> = ids.into_iter().filter(wanted).collect();
    let unrecorded = complete && shown.iter().any(|id| !records.contains_key(*id));
    let row = |id| row(id, listed.workloads.get(id), records.get(id).map(Arc::as_ref), &question.policy);
    let workloads = shown.into_iter().map(row).collect();
    let controller = idle.and_then(|replicas| replicas.trouble());
    (
        Listing { workloads, unrecorded_in: unrecorded.then(|| question.ledger_place.clone()), controller, missing },
        complete,
    )
}

fn row(id: &WorkloadId, workload: Option<&Workload>, record: Option<&Record>, policy: &Policy) -> Row {
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
            Standing::DeadlineExceeded { .. } => "missed its progress deadline; not recorded".to_owned(),
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

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.workloads.is_empty() {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
            table.set_header(["NAMESPACE", "NAME", "VERSION", "PHASE", "STATE", "LAST PURGE"]);
            for Row { workload, version, phase, state, last_purge } in &self.workloads {
                let last_purge = last_purge.as_deref().unwrap_or("–");
                let row = [&workload.namespace, &workload.name, version, *phase, state, last_purge];
                table.add_row(row.map(visible));
            }
            for line in table.to_string().lines() {
                // Every cell begins with a blank; the first one's is not needed.
                writeln!(f, "{}", line.strip_prefix(' ').unwrap_or(line).trim_end())?;
            }
        } else if self.missing.is_empty() {
            writeln!(f, "there are no Deployments here")?;
        }
        if let Some(place) = &self.unrecorded_in {
            writeln!(f, "not recorded: in the ledger in {place}; --ledger-namespace looks into another")?;
        }
        if let Some(trouble) = &self.controller {
            writeln!(f, "controller: {}", visible(trouble))?;
        }
        for why in &self.missing {
            writeln!(f, "missing: {}", visible(why))?;
        }
        Ok(())
    }
}

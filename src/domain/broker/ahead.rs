//! Records of ours of which a board has a newer state than we thought there is (`StateRegressed`).
//!
//! Another process of ours may have written it; then the ledger has it too. If it does not, the ledger was set back, and what
//! we would vote for was voted for before: the workload is held until somebody has seen to it (fault A5).

use std::collections::BTreeMap;

use crate::domain::id::{Seq, WorkloadId};
use crate::domain::record::Record;

/// Workloads that are compared at a time. A ledger that was set back as a whole has more; each is found when it is posted.
const COMPARED_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lead {
    seq: Seq,
    revision: u64,
    /// The ledger is being asked.
    asked: bool,
    /// What the ledger has, once it turned out to be older; `None` inside if it has nothing.
    behind: Option<Option<(Seq, u64)>>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ahead(BTreeMap<WorkloadId, Lead>);

impl Ahead {
    /// A board has this state of a record of ours. Says whether the ledger is to be asked.
    pub(super) fn found(&mut self, workload: &WorkloadId, seq: Seq, revision: u64) -> bool {
        let lead = Lead { seq, revision, asked: false, behind: None };
        let lead = self.0.entry(workload.clone()).or_insert(lead);
        if (seq, revision) > (lead.seq, lead.revision) {
            (lead.seq, lead.revision) = (seq, revision);
        }
        !std::mem::replace(&mut lead.asked, true)
    }

    /// The ledger was asked and holds this record, or none and this floor. Says whether it knows of the state the board has.
    pub(super) fn compare(&mut self, workload: &WorkloadId, record: Option<&Record>, floor: Seq) -> bool {
        let Some(lead) = self.0.get_mut(workload) else { return true };
        let state = record.map(|record| (record.seq, record.revision));
        lead.asked = false;
        // Where there is none and the floor is as high, it was removed.
        if state >= Some((lead.seq, lead.revision)) || (state.is_none() && floor >= lead.seq) {
            self.0.remove(workload);
            return true;
        }
        lead.behind = Some(state);
        false
    }

    /// The ledger could not be asked.
    pub(super) fn failed(&mut self, workload: &WorkloadId) {
        self.0.get_mut(workload).into_iter().for_each(|lead| lead.asked = false);
    }

    /// The next ones the ledger is to be asked about, which is noted.
    pub(super) fn ask_again(&mut self) -> Vec<WorkloadId> {
        let waiting = self.0.iter_mut().filter(|(_, lead)| !lead.asked).take(COMPARED_MAX);
        waiting
            .map(|(workload, lead)| {
                lead.asked = true;
                workload.clone()
            })
            .collect()
    }

    /// Why a workload is held.
    pub(super) fn hold(&self, workload: &WorkloadId) -> Option<String> {
        let Lead { seq, revision, behind, asked: _ } = self.0.get(workload)?;
        let here = match behind.as_ref()? {
            Some((seq, revision)) => format!("has only rollout {seq} (revision {revision})"),
            None => "has none".to_owned(),
        };
        Some(format!(
            "StateRegressed: the group has seen rollout {seq} (revision {revision}) of this workload's record, and our ledger \
             {here}, so it was set back; if that is right, run allclear ledger adopt"
        ))
    }

    /// The workloads that are held.
    pub(super) fn held(&self) -> impl Iterator<Item = &WorkloadId> {
        self.0.iter().filter(|(_, lead)| lead.behind.is_some()).map(|(workload, _)| workload)
    }
}

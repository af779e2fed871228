//! Answers which workloads are on record, a page of them at a time.

use std::collections::BTreeMap;

use actix::{Handler, MessageResult};

use super::DeploymentWatcher;
use crate::actors::browse::{Browse, Listing, Row};
use kernel::id::WorkloadId;
use kernel::names::image::brief;
use purge::records::record::Record;
use purge::rollouts::browse::find;
use purge::rollouts::rollout::{Summary, timeout};
use purge::rollouts::unwell::unwell;

impl Handler<Browse> for DeploymentWatcher {
    type Result = MessageResult<Browse>;

    fn handle(&mut self, browse: Browse, _ctx: &mut Self::Context) -> Self::Result {
        let records = self.watch().records();
        let aside: BTreeMap<&WorkloadId, &str> = self.watch().nursery().left_alone().collect();
        let row = |(id, record): (&WorkloadId, &Record)| self.row(id, record, aside.get(id).copied());
        MessageResult(match browse {
            Browse::One(id) => {
                let rows: Vec<Row> =
                    records.get_key_value(&id).map(|(id, record)| row((id, record))).into_iter().collect();
                Listing { matched: rows.len(), rows }
            }
            Browse::Search(search) => {
                let is_followed = |id: &WorkloadId| self.why_not_followed(id).is_none();
                let found = find(records, &aside.keys().copied().collect(), is_followed, &search);
                Listing { matched: found.matched, rows: found.rows.into_iter().map(row).collect() }
            }
        })
    }
}

impl DeploymentWatcher {
    fn row(&self, id: &WorkloadId, record: &Record, left_alone: Option<&str>) -> Row {
        let policy = &self.env.settings.policy;
        let latest = self.watch().nursery().newest(id);
        let clock = (record.elapsed(), timeout(latest, policy));
        let summary = Summary::new(id, record, latest, None, clock, policy);
        let (version, left_alone) = (brief(&record.version), left_alone.map(str::to_owned));
        match self.why_not_followed(id) {
            Some(why) => {
                Row { summary: summary.not_followed(why), version, in_flight: false, unwell: None, left_alone }
            }
            None => Row { summary, version, in_flight: record.is_open(), unwell: unwell(id, record), left_alone },
        }
    }
}

//! What people ask of the workloads on record, whether or not anything is in flight for them. Few see all of them: 10,000 would be
//! megabytes, so a question is for one or for a page.

use actix::Message;

use kernel::id::WorkloadId;
use purge::rollouts::browse::Search;
use purge::rollouts::rollout::Summary;
use purge::rollouts::unwell::Unwell;

/// To root, which passes it to the watcher: which workloads are there?
#[derive(Clone, Debug, Message)]
#[rtype(result = "Listing")]
pub enum Browse {
    /// Those that a search finds.
    Search(Search),
    One(WorkloadId),
}

/// A page of workloads.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The page, by namespace and name.
    pub rows: Vec<Row>,
    /// How many match in all.
    pub matched: usize,
}

/// One workload, as its record has it.
#[derive(Clone, Debug)]
pub struct Row {
    /// In words. A rollout in flight knows more; its own summary is in the observation.
    pub summary: Summary,
    /// The version of its newest rollout, in words.
    pub version: String,
    /// Whether a rollout is in flight.
    pub in_flight: bool,
    /// In what way its newest rollout did not end well.
    pub unwell: Option<Unwell>,
    /// Why it is left alone, if it is.
    pub left_alone: Option<String>,
}

//! The paths of a vote, and those that lead to the workload, where these are what is purged.
//!
//! Not for which paths those are; that is [`crate::site::Routed`]. What is remembered of them is [`Routes`].

use crate::agreement::group::View;
use crate::bounds::policy::Policy;
use crate::records::record::{ByHost, Record, Routes};
use crate::rollouts::rollout::{FoundSite, request};
use crate::workloads::extent::Extent;
use crate::workloads::workload::Workload;
use kernel::id::Vector;
use kernel::names::paths::PathSet;

/// The paths that a vote is about, which of each host lead here, and what is remembered of that. The vote is for the rollout `of`. One for
/// something else that was asked for says nothing of routes, and forgets nothing.
pub(in crate::rollouts::rollout) fn to_vote(
    (draft, of): (&Record, &Record),
    found: &FoundSite,
    workload: &Workload,
    (view, vector): (&View, &Vector),
    policy: &Policy,
) -> (PathSet, ByHost, Option<Box<Routes>>) {
    let extent = request::voted(of, workload, view, vector, policy);
    let (routed, routes) = match &extent {
        Extent::Items(_) => {
            let kept = draft.routes.clone().filter(|_| policy.extent_of(workload).wants_routes());
            (ByHost::new(), kept)
        }
        Extent::Routes(beside) => {
            let (mut voted, routes) = Routes::vote(draft, of.seq, &found.routed);
            for paths in voted.values_mut() {
                *paths = beside.iter().fold(paths.clone(), |all, beside| all.union(beside));
            }
            (voted, Some(Box::new(routes)))
        }
    };
    (extent.at_most(), routed, routes)
}

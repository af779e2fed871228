//! Purges that an owner asks for by `requested-at`, and what they are about by `requested-paths`; and those that traffic asks for that
//! moved to the workload, which are about what is usually purged.
//!
//! Such paths take the place of the usual ones only where nothing else waits to be purged; otherwise they are purged beside
//! them. So a request never leaves anything older at the edge that would have gone without it. In a group, members with no news
//! vote for the same paths, and the union of the votes is what was asked for. A member of a release that does not know such paths
//! votes for the usual ones: then more is purged, not less.

use crate::agreement::group::View;
use crate::bounds::policy::Policy;
use crate::records::record::{Change, Edge, Leads, Moved, Published, Record, VOTE_PATH_BYTES_MAX};
use crate::rollouts::rollout::news::is_requested;
use crate::workloads::extent::Extent;
use crate::workloads::workload::{REQUESTED_PATH_BYTES_MAX, Workload};
use kernel::id::{Component, Vector};
use kernel::names::paths::PathSet;

/// Takes what asks for a purge into the record: its owner, and traffic that moved to it.
pub(super) fn take(draft: &mut Record, workload: &Workload, moved: Option<(Moved, Leads)>, policy: &Policy) {
    if is_requested(draft, workload) {
        ask(draft, workload, workload.tuning.asks.requested_paths.clone(), policy);
    }
    draft.requested_at.clone_from(&workload.tuning.asks.requested_at);
    if let Some((moved, leads)) = moved {
        ask(draft, workload, None, policy);
        draft.moved = Some(moved);
        draft.leads = leads;
    }
}

/// Takes a request into the record, beside those that nothing has purged yet.
fn ask(draft: &mut Record, workload: &Workload, wanted: Option<PathSet>, policy: &Policy) {
    // Beside a request, the paths of routes are not remembered.
    let all = || policy.extent_of(workload).at_most();
    draft.asked = match (draft.request, draft.asked.take(), wanted) {
        (None, _, wanted) => wanted,
        (Some(_), None, None) => None,
        (Some(_), before, wanted) => {
            let both = before.unwrap_or_else(all).union(&wanted.unwrap_or_else(all));
            Some(within(both, REQUESTED_PATH_BYTES_MAX))
        }
    };
    draft.request = draft.request.or(Some(draft.seq));
}

/// What this member votes for.
pub(super) fn voted(draft: &Record, workload: &Workload, view: &View, vector: &Vector, policy: &Policy) -> Extent {
    let usual = policy.extent_of(workload);
    let has_news = draft.seq > draft.closed;
    match &draft.asked {
        _ if !has_news => asked_of_others(draft, view, vector).map_or_else(|| usual.clone(), Extent::Items),
        Some(asked) if is_all(draft) => Extent::Items(asked.clone()),
        Some(asked) => {
            let both = usual.with(asked);
            if both.bytes() > VOTE_PATH_BYTES_MAX { Extent::default() } else { both }
        }
        None => usual.clone(),
    }
}

/// Whether the request is all that a record's rollout is about: the edge has the version already, and no earlier rollout is owed
/// a purge.
fn is_all(record: &Record) -> bool {
    record.change == Change::Requested && record.request == Some(record.seq) && edge_has_it(record)
}

/// Whether the edge has what the record says that runs.
fn edge_has_it(record: &Record) -> bool {
    record.edge == Edge::Settled && record.settled.is_none()
}

/// The paths that members with news request, if a request is their only news, and nothing is to be purged for our own
/// sake.
fn asked_of_others(own: &Record, view: &View, vector: &Vector) -> Option<PathSet> {
    let mut asked: Option<PathSet> = None;
    for (member, component) in &vector.0 {
        let known = view.members.get(member).and_then(Option::as_ref)?;
        let Published::Record(record) = &known.published else { return None };
        if let Some(theirs) = news_of(record, vector, component)? {
            asked = Some(asked.map_or(theirs.clone(), |before| before.union(theirs)));
        }
    }
    asked.filter(|_| edge_has_it(own)).map(|asked| within(asked, VOTE_PATH_BYTES_MAX))
}

/// The paths that a member asks for, `Some(None)` where it has no news; `None` where it has news that are not paths alone.
fn news_of<'a>(record: &'a Record, vector: &Vector, component: &Component) -> Option<Option<&'a PathSet>> {
    match record.vote(vector) {
        Some(vote) if vote.cast.change == Change::Baseline => Some(None),
        // Of the paths that routes send there, only that member knows.
        Some(vote) if vote.cast.change == Change::Requested && vote.plan.routed.is_empty() => {
            Some(Some(&vote.plan.paths))
        }
        Some(_) => None,
        None if !record.is(component) => None,
        None if record.seq <= record.closed || record.change == Change::Baseline => Some(None),
        None => record.asked.as_ref().filter(|_| is_all(record)).map(Some),
    }
}

/// These paths, or everything where a record has no room for them.
fn within(paths: PathSet, bytes_max: usize) -> PathSet {
    let bytes: usize = paths.iter().map(|path| path.as_str().len()).sum();
    if bytes > bytes_max { PathSet::default() } else { paths }
}

//! Which purges of a decided vector are listed in its vote: all of them, or, of a site with more distributions than a record
//! has room for, some at a time in the order of their ids.
//!
//! Each member lists for itself. If another member has finished a purge and no longer lists it, we order it again under
//! the same reference, and CloudFront answers with the existing invalidation. Not for what becomes of each; that is
//! `progress`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::records::record::{
    FAILURES_LISTED_MAX, PURGES_NAMED_MAX, PURGES_OPEN_MAX, Purge, PurgeState, Unlisted, VOTE_GROWTH_BYTES, Vote,
};
use crate::records::record_codec;
use crate::rollouts::rollout::Rollout;
use kernel::names::distribution::DistributionId;

/// The bytes of a purge in a record: an id, a reference of 41 characters, a state and CloudFront's id, with the names
/// of the fields about 150, and a short reason where it fails.
const PURGE_BYTES: usize = 200;

impl Rollout {
    /// How many more purges the record has room for.
    pub(super) fn room_for_purges(&self) -> usize {
        let bytes = self.record.draft.as_ref().map_or(0, record_codec::room);
        bytes.saturating_sub(VOTE_GROWTH_BYTES) / PURGE_BYTES
    }
}

/// Lists distributions that are not listed yet, as many as there is room for; at least one, to make progress.
pub(super) fn list(
    vote: &mut Vote,
    distributions: &BTreeSet<DistributionId>,
    room: usize,
    purge: impl Fn(&DistributionId) -> Purge,
) {
    let listed = |distribution: &DistributionId| (distribution.clone(), purge(distribution));
    let fits = distributions.len() <= room.min(PURGES_NAMED_MAX + PURGES_OPEN_MAX);
    if vote.unlisted.is_none() && fits {
        vote.purges.extend(distributions.iter().map(listed));
        return;
    }
    let from = match &vote.unlisted {
        Some(unlisted) => Bound::Excluded(unlisted.through.clone()),
        None => Bound::Unbounded,
    };
    let mut rest = distributions.range((from, Bound::Unbounded));
    let next: Vec<&DistributionId> = rest.by_ref().take(room.min(vote.places()).max(1)).collect();
    let waiting = rest.count();
    vote.purges.extend(next.iter().copied().map(listed));
    match (&mut vote.unlisted, next.last()) {
        (Some(unlisted), last) => {
            unlisted.waiting = waiting;
            unlisted.through = last.copied().unwrap_or(&unlisted.through).clone();
        }
        (None, Some(last)) => {
            let through = (*last).clone();
            vote.unlisted = Some(Unlisted { through, completed: 0, unknown: 0, impossible: 0, waiting });
        }
        (None, None) => {}
    }
}

/// Lists the first of the distributions beyond the bounds, for their reasons, and counts the others: none is purged.
pub(super) fn leave_out(
    vote: &mut Vote,
    beyond: BTreeMap<DistributionId, String>,
    purge: impl Fn(&DistributionId) -> Purge,
) {
    let Some(through) = beyond.keys().chain(vote.purges.keys()).max().cloned() else { return };
    let uncounted = beyond.len().saturating_sub(FAILURES_LISTED_MAX);
    let listed = beyond.into_iter().take(FAILURES_LISTED_MAX);
    vote.purges.extend(listed.map(|(id, why)| (id.clone(), Purge { state: PurgeState::Beyond(why), ..purge(&id) })));
    if uncounted > 0 {
        let none = Unlisted { through, completed: 0, unknown: 0, impossible: 0, waiting: 0 };
        vote.unlisted.get_or_insert(none).impossible += uncounted;
    }
}

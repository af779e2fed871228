//! A decided plan compared with a newer listing (decision 50): aliases move, and a purge does not wait for that news.
//!
//! ```text
//! matched by a listing from before the vote ──▶ ordered at once
//!                        └──▶ compared with one begun after it ──▶ what matches now is ordered too ──▶ the vote may be closed
//!                                                └── none to be had for a while ──▶ the vote may be closed, and says so
//! ```
//!
//! Each member compares for itself, in each life, until one of them has closed the vector: its purges are in its record, which the
//! others take over. Not for a vector that is closed: what is owed has been compared before.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bounds::plan::Plan;
use crate::bounds::tenants::{self, PATHS_SENT_MAX, Reached};
use crate::purges::catalog::{Found, Listing};
use crate::records::record::{Purge, PurgeState, Vote};
use crate::records::rules::Rules;
use crate::rollouts::rollout::{Effect, Rollout, ballot, fates, window};
use kernel::id::{Vector, purge_reference};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// By which listing the purges of a vector were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compared {
    /// One that began after the last vote.
    Newer,
    /// One so old, for no newer one was to be had; `None` if this life never had one.
    Stale(Option<Duration>),
}

impl Rollout {
    /// Asks what a listing begun from now on says of it, unless that is known.
    pub(super) fn ask_newer(&mut self, now: Timestamp, vote: &Vote, plan: &Plan) -> Option<Effect> {
        let asks = self.awaits_comparison(vote, plan) && self.purges.begins_match(now, &vote.vector);
        asks.then(|| Effect::Compare(vote.vector.clone(), Box::new(plan.clone())))
    }

    /// Whether its purges are ordered, and it is not known whether they are all.
    pub(super) fn awaits_comparison(&self, vote: &Vote, plan: &Plan) -> bool {
        let searched = !plan.hosts.is_empty() || !plan.origins.is_empty();
        let done = || self.purges.compared(&vote.vector).is_some() || self.is_compared_elsewhere(&vote.vector);
        searched && vote.rules > Rules::SECOND && !vote.wants_match() && !done()
    }

    /// Whether another member has closed it after its own comparison: who asks again then would only tell the end a second time.
    fn is_compared_elsewhere(&self, vector: &Vector) -> bool {
        let others = self.ballot.view.members.iter().filter(|(member, _)| **member != self.identity.member);
        let mut theirs = others.filter_map(|(_, known)| known.as_ref()?.published.kept(vector));
        theirs.any(|vote| vote.is_carried_out() && vote.closed.is_some() && fates::listed(vote).is_none())
    }

    /// Applies the listing to the plan. Ordered distributions stay; new ones are purged too, within the bounds on both
    /// together.
    pub(super) fn compared(&mut self, vector: &Vector, asked: &Plan, found: &Found) {
        if self.purges.compared(vector).is_some() || !self.view_is_current() {
            return;
        }
        let Some(plan) = ballot::plan(&self.outlook(), vector).filter(|plan| plan == asked) else { return };
        match found.listing {
            Listing::Before(age) => return self.purges.compare(vector, Compared::Stale(Some(age))),
            Listing::Missing => return self.purges.compare(vector, Compared::Stale(None)),
            Listing::After => {}
        }
        let (rollout, room) = (self.group_rollout(vector), self.room_for_purges().max(1));
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        let Some(vote) = self.record.open_vote(vector) else { return };
        let ordered = vote.purges.iter().filter(|(_, purge)| !matches!(purge.state, PurgeState::Beyond(_)));
        let named = ordered.map(|(id, _)| (id.clone(), Reached { otherwise: true, ..Reached::default() }));
        let mut union: BTreeMap<DistributionId, Reached> = named.collect();
        union.extend(found.distributions.iter().map(|(id, reached)| (id.clone(), reached.clone())));
        let beyond = beyond(&plan, &union, limits);
        // Of a site that is purged some at a time, what comes later is found by the newer listing anyway.
        let is_later = |id: &DistributionId| {
            vote.unlisted.as_ref().is_some_and(|unlisted| {
                let folded = unlisted.completed + unlisted.unknown + unlisted.waiting;
                folded > 0 || *id > unlisted.through
            })
        };
        let purge =
            |id: &DistributionId| Purge { sent: sent(&plan, found, id, true), ..wanted(&rollout, id, &plan.paths) };
        let is_new = |id: &&DistributionId| !vote.purges.contains_key(*id) && !is_later(id);
        let new: Vec<DistributionId> = found.distributions.keys().filter(is_new).cloned().collect();
        let (out, within): (Vec<_>, Vec<_>) = new.into_iter().partition(|id| beyond.contains_key(id));
        let all = within.len() <= room;
        vote.purges.extend(within.into_iter().take(room).map(|id| (id.clone(), purge(&id))));
        if !all {
            // Compared again, for the rest.
            return;
        }
        let out = beyond.into_iter().filter(|(id, _)| out.contains(id)).collect();
        window::leave_out(vote, out, |id| wanted(&rollout, id, &plan.paths));
        self.purges.compare(vector, Compared::Newer);
    }
}

/// The distributions that are not purged, and why: those beyond the bounds, and those to which a route of the namespace takes nothing.
pub(super) fn beyond(
    plan: &Plan,
    found: &BTreeMap<DistributionId, Reached>,
    limits: tenants::Limits,
) -> BTreeMap<DistributionId, String> {
    let mut beyond = tenants::beyond(found, limits);
    for (id, reached) in found {
        if plan.paths_of(reached, &plan.paths).is_none() {
            let why = "none of its paths is among those that routes of the workload's namespace take there";
            beyond.insert(id.clone(), why.to_owned());
        }
    }
    beyond
}

/// The paths sent to a distribution, where they differ from the vote's: they follow from what the distribution
/// understands (decision 41), and from what the namespace may purge there.
pub(super) fn sent(plan: &Plan, found: &Found, id: &DistributionId, bounded: bool) -> Option<PathSet> {
    let understood = !plan.paths.has_tags() || found.tagged.contains(id);
    let paths = if understood { plan.paths.clone() } else { plan.paths.without_tags() };
    let reached = found.distributions.get(id).filter(|_| bounded);
    let paths = reached.and_then(|reached| plan.paths_of(reached, &paths)).unwrap_or(paths);
    let paths = paths.at_most(PATHS_SENT_MAX);
    (paths != plan.paths).then_some(paths)
}

pub(super) fn wanted(rollout: &str, distribution: &DistributionId, paths: &PathSet) -> Purge {
    Purge::wanted(purge_reference(rollout, distribution.as_str(), paths.iter().map(|path| path.as_str())))
}

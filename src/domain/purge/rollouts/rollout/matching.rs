//! Which distributions a decided plan purges: matched by the listing that is at hand, and compared with a newer one (decision 50),
//! because aliases move, and a purge does not wait for that news.
//!
//! ```text
//! matched by a listing from before the vote ──▶ ordered at once
//!                        └──▶ compared with one begun after it ──▶ what matches now is ordered too ──▶ the vote may be closed
//!                                                └── none to be had for a while ──▶ the vote may be closed, and says so
//! ```
//!
//! Each member compares for itself, in each life, until one of them has closed the vector: its purges are in its record, which the
//! others take over. A vector that is closed is not compared: what is owed has been compared before. Not for what becomes of each
//! purge; that is `progress`.

use std::collections::BTreeMap;

use crate::bounds::plan::Plan;
use crate::bounds::tenants::{self, PATHS_SENT_MAX, Reached};
use crate::purges::catalog::{Found, Listing};
use crate::records::record::{Outcome, Purge, VOTE_GROWTH_BYTES, Vote};
use crate::records::record_codec;
use crate::records::rules::Rules;
use crate::rollouts::rollout::close::{self, VectorEnd};
use crate::rollouts::rollout::purges::Compared;
use crate::rollouts::rollout::{Effect, Rollout, ballot, words, words::short};
use kernel::id::{Vector, purge_reference};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;
use kernel::retry;

/// The bytes of a purge in a record: an id, a reference of 41 characters, a state and CloudFront's id, with the names
/// of the fields about 150, and a short reason where it fails.
const PURGE_BYTES: usize = 200;

impl Rollout {
    /// The distributions of a decided plan are known.
    pub(super) fn matched(
        &mut self,
        now: Timestamp,
        vector: &Vector,
        asked: &Plan,
        found: &Found,
    ) -> Option<VectorEnd> {
        // What is not known yet is added by the comparison. Where none follows, all of it has to be known.
        let is_compared = |vote: &Vote| vote.closed.is_none() && vote.cast.rules > Rules::SECOND;
        if let Some(why) = &found.in_part
            && !self.record.kept_mut(vector).is_some_and(|vote| is_compared(vote))
        {
            self.match_failed(now, vector, why);
            return None;
        }
        self.purges.matched(vector);
        if self.proven().is_some() {
            self.purges.looks.reach(vector, found);
        }
        let vote = self.record.kept_mut(vector)?;
        if !vote.purges.want_match() {
            // Of the first answer the purges are under way.
            self.compared(vector, asked, found);
            return None;
        }
        let plan = if vote.closed.is_some() {
            Plan::of(&[vote])
        } else {
            ballot::plan(&self.outlook(), vector).filter(|_| self.view_is_current())?
        };
        // The question was about a vote that another worker's vote has replaced since.
        if plan != *asked {
            return None;
        }
        let (rollout, room) = (self.group_rollout(vector), self.room_for_purges());
        let unstored = self.record.unstored_vote().is_some_and(|vote| vote.vector == *vector);
        let vote = self.record.kept_mut(vector)?;
        if found.distributions.is_empty() && vote.purges.listed.is_empty() {
            if unstored {
                // That it was voted for is stored before its end.
                self.purges.found_none(vector);
                return None;
            }
            return Some(no_distribution(&plan));
        }
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        let (agreed_at, _) = self.ballot.agreed(vector);
        let vote = self.record.kept_mut(vector)?;
        // Whoever takes this list over may not see all votes, and tells what follows with the same time.
        vote.cast.at_ms = vote.cast.at_ms.max(agreed_at);
        let (first, bounded) = (vote.purges.listed.is_empty(), vote.cast.rules > Rules::FIRST);
        let beyond = if bounded { beyond(&plan, &found.distributions, limits) } else { BTreeMap::new() };
        let within = found.distributions.keys().filter(|id| !beyond.contains_key(*id)).cloned().collect();
        // An owed purge always records its paths.
        let late = vote.closed.is_some();
        // The reference is of what was voted for.
        let sent = |id: &DistributionId| sent(&plan, found, id, bounded).or_else(|| late.then(|| plan.paths.clone()));
        let purge = |id: &DistributionId| Purge { sent: sent(id), ..wanted(&rollout, id, &plan.paths) };
        vote.purges.list(&within, room, purge);
        if first {
            vote.purges.leave_out(beyond, |id| wanted(&rollout, id, &plan.paths));
        }
        if found.listing == Listing::After {
            self.purges.compare(vector, Compared::Newer);
        }
        None
    }

    /// The distributions could not be found; we ask again.
    pub(super) fn match_failed(&mut self, now: Timestamp, vector: &Vector, why: &str) {
        let again = retry::MENDED.from(now, &self.identity.workload.to_string());
        self.purges.match_failed(vector, again, short(why));
    }

    /// Asks what a listing begun from now on says of it, unless that is known.
    pub(super) fn ask_newer(&mut self, now: Timestamp, vote: &Vote, plan: &Plan) -> Option<Effect> {
        let asks = self.awaits_comparison(vote, plan) && self.purges.begins_match(now, &vote.vector);
        asks.then(|| Effect::Compare(vote.vector.clone(), Box::new(plan.clone())))
    }

    /// Whether its purges are ordered, and it is not known whether they are all.
    pub(super) fn awaits_comparison(&self, vote: &Vote, plan: &Plan) -> bool {
        let searched = !plan.hosts.is_empty() || !plan.origins.is_empty();
        let done = || self.purges.compared(&vote.vector).is_some() || self.is_compared_elsewhere(&vote.vector);
        searched && vote.cast.rules > Rules::SECOND && !vote.purges.want_match() && !done()
    }

    /// Whether another member has closed it after its own comparison: who asks again then would only tell the end a second time.
    fn is_compared_elsewhere(&self, vector: &Vector) -> bool {
        let mut theirs = self.ballot.others(&self.identity.member).filter_map(|(_, theirs)| theirs.kept(vector));
        theirs.any(|vote| vote.purges.are_carried_out() && vote.closed.is_some() && close::listed(vote).is_none())
    }

    /// Applies the listing to the plan. Ordered distributions stay; new ones are purged too, within the bounds on both
    /// together.
    fn compared(&mut self, vector: &Vector, asked: &Plan, found: &Found) {
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
        let ordered = vote.purges.listed.iter().filter(|(_, purge)| !purge.is_left_out());
        let named = ordered.map(|(id, _)| (id.clone(), Reached { otherwise: true, ..Reached::default() }));
        let mut union: BTreeMap<DistributionId, Reached> = named.collect();
        union.extend(found.distributions.iter().map(|(id, reached)| (id.clone(), reached.clone())));
        let beyond = beyond(&plan, &union, limits);
        let purge =
            |id: &DistributionId| Purge { sent: sent(&plan, found, id, true), ..wanted(&rollout, id, &plan.paths) };
        // What comes later is found by the newer listing anyway.
        let is_new = |id: &&DistributionId| !vote.purges.listed.contains_key(*id) && !vote.purges.will_list(id);
        let new: Vec<DistributionId> = found.distributions.keys().filter(is_new).cloned().collect();
        let (out, within): (Vec<_>, Vec<_>) = new.into_iter().partition(|id| beyond.contains_key(id));
        let all = within.len() <= room;
        vote.purges.listed.extend(within.into_iter().take(room).map(|id| (id.clone(), purge(&id))));
        if !all {
            // Compared again, for the rest.
            return;
        }
        let out = beyond.into_iter().filter(|(id, _)| out.contains(id)).collect();
        vote.purges.leave_out(out, |id| wanted(&rollout, id, &plan.paths));
        self.purges.compare(vector, Compared::Newer);
    }

    /// How many more purges the record has room for.
    fn room_for_purges(&self) -> usize {
        let bytes = self.record.draft.as_ref().map_or(0, record_codec::room);
        bytes.saturating_sub(VOTE_GROWTH_BYTES) / PURGE_BYTES
    }
}

/// The distributions that are not purged, and why: those beyond the bounds, and those to which a route of the namespace takes nothing.
fn beyond(
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
fn sent(plan: &Plan, found: &Found, id: &DistributionId, bounded: bool) -> Option<PathSet> {
    let understood = !plan.paths.has_tags() || found.tagged.contains(id);
    let paths = match () {
        () if understood => plan.paths.clone(),
        () if found.untagged.contains(id) => PathSet::default(),
        () => plan.paths.without_tags(),
    };
    let reached = found.distributions.get(id).filter(|_| bounded);
    let paths = reached.and_then(|reached| plan.paths_of(reached, &paths)).unwrap_or(paths);
    // One that changes paths before it asks for them keeps answers under others than its routes have.
    let routed = reached.filter(|_| !found.rewriting.contains(id)).and_then(|reached| plan.routed_of(reached));
    let paths = routed.and_then(|routed| paths.intersection(&routed)).unwrap_or(paths);
    let paths = paths.at_most(PATHS_SENT_MAX);
    (paths != plan.paths).then_some(paths)
}

pub(super) fn wanted(rollout: &str, distribution: &DistributionId, paths: &PathSet) -> Purge {
    Purge::wanted(purge_reference(rollout, distribution.as_str(), paths.iter().map(|path| path.as_str())))
}

pub(super) fn no_distribution(plan: &Plan) -> VectorEnd {
    (Outcome::NoDistribution, words::some(plan.hosts.iter().map(ToString::to_string), plan.hosts.len()))
}

//! Purges that cannot be made yet (decision 29): when they become owed, which newer ones carry them, and how they end after
//! their rollout has.
//!
//! ```text
//! wanted, created ── denied for a minute, or not made in time ──▶ owed ──▶ the vote is closed, and goes to `Record::owed`
//!                                                                  │        once all members have closed theirs
//!                               told daily, tried again by the purger │
//!                                                                  ├── made, and complete ──▶ announced, dropped
//!                                                                  └── a newer one contains it ──▶ carried: not tried, announced with it
//! ```
//!
//! An owed purge does not change whether a vector is decided or dead, and takes back no vote. A member drops its entry after it
//! has announced the end. So another member's missing entry never ends a purge: only an invalidation with paths that contain its
//! own does.

use std::collections::BTreeSet;

use crate::bounds::plan::Plan;
use crate::records::record::{Outcome, Purge, Vote};
use crate::rollouts::rollout::{Effect, Rollout, ballot};
use kernel::id::{Vector, rank};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use notices::notice::Kind;

/// How often the report of an owed purge is repeated.
const TOLD_EVERY_MS: i64 = 24 * 60 * 60 * 1000;

/// Entries with owed purges that are kept. Each newer one carries those before it, unless it is of other distributions; what it
/// carries is only kept so that its end can be announced.
const OWED_MAX: usize = 4;

impl Rollout {
    /// Marks purges as owed that have waited long enough.
    pub(super) fn owe(&mut self, now: Timestamp, vector: &Vector, plan: &Plan) {
        let wall_ms = self.identity.wall_ms(now);
        let due: Vec<(DistributionId, String)> = {
            let Some(vote) = self.record.draft.as_ref().and_then(|draft| draft.vote(vector)) else { return };
            let waits = |(distribution, purge): (&DistributionId, &Purge)| {
                let (due, why) = self.purges.owed_at(&purge.reference).filter(|_| !purge.state.ends_rollout())?;
                due.is_none().then(|| (distribution.clone(), why.clone()))
            };
            vote.purges.listed.iter().filter_map(waits).collect()
        };
        for (distribution, why) in due {
            self.absorb(vector, &distribution, plan, true);
            let Some(vote) = self.record.kept_mut(vector) else { return };
            if vote.purges.owed_ms == 0 {
                vote.purges.owed_ms = wall_ms;
            }
            let Some(purge) = vote.purges.listed.get_mut(&distribution) else { return };
            purge.owe(&why);
            purge.refused.clear();
            // It is ordered anew, with the paths to send from now on.
            let reference = purge.reference.clone();
            self.purges.order_again(&reference);
        }
    }

    /// The vectors with owed purges.
    pub(super) fn owing(&self) -> Vec<Vector> {
        let votes = self.record.durable.iter().flat_map(|record| record.all_kept());
        votes.filter(|vote| vote.owes()).map(|vote| vote.vector.clone()).collect()
    }

    /// Goes on with what is owed by rollouts that have ended.
    pub(super) fn pursue(&mut self, now: Timestamp) -> Vec<Effect> {
        let vectors = self.owing();
        self.purges.remind_only_of(&vectors);
        let mut effects = Vec::new();
        // From the newest on, so that what covers is known before what it covers is tried.
        for vector in vectors.iter().rev() {
            self.adopt_owed(vector);
            self.cover_older(vector, None);
            effects.extend(self.list_owed(now, vector));
            effects.extend(self.order_owed(vector));
        }
        effects
    }

    /// Takes over how far other members have come with it. A missing entry says nothing: see the module's text.
    fn adopt_owed(&mut self, vector: &Vector) {
        let theirs = self.ballot.others(&self.identity.member).filter_map(|(_, theirs)| theirs.kept(vector).cloned());
        let theirs: Vec<Vote> = theirs.collect();
        let Some(vote) = self.record.kept_mut(vector) else { return };
        let (voted, mut made_there) = (vote.plan.paths.clone(), Vec::new());
        for other in theirs {
            made_there.extend(vote.purges.adopt_made(&other.purges, &voted));
        }
        made_there.iter().for_each(|reference| self.purges.order_again(reference));
    }

    /// Orders owed purges that no newer one carries, once their paths to send are durable.
    pub(super) fn order_owed(&mut self, vector: &Vector) -> Vec<Effect> {
        let (Some(draft), Some(durable)) = (&self.record.draft, &self.record.durable) else { return Vec::new() };
        let Some((vote, stored)) = draft.kept(vector).zip(durable.kept(vector)) else { return Vec::new() };
        let is_due = |(distribution, purge): &(&DistributionId, &Purge)| {
            let known = stored.purges.listed.get(*distribution).is_some_and(|stored| stored.is_sent_as(purge));
            known && !self.purges.is_ordered(&purge.reference) && !self.is_carried(draft, vote, distribution, purge)
        };
        let due = vote.purges.open().filter(is_due).map(|(distribution, purge)| (distribution.clone(), purge.clone()));
        let due: Vec<(DistributionId, Purge)> = due.collect();
        let order = |(distribution, purge): &(DistributionId, Purge)| {
            Some(self.order(vector, distribution, purge, purge.sent.as_ref()?))
        };
        due.iter().filter_map(order).collect()
    }

    /// All of it was made, or cannot be: that is the rollout's end, and the edge may have its version now.
    pub(super) fn conclude_owed(&mut self, vector: &Vector) -> Option<Vote> {
        let owed = |vote: &&mut Vote| vote.closed.as_ref().is_some_and(Outcome::is_owed) && !vote.owes();
        let vote = self.record.kept_mut(vector).filter(owed)?;
        vote.closed = Some(vote.purges.outcome());
        let vote = vote.clone();
        self.purges.tell_again(vector);
        Some(vote)
    }

    /// Reminds the operators daily: only one member does so, as long as the members hear from each other.
    pub(super) fn tell_daily(&mut self, now: Timestamp, vector: &Vector) {
        let wall_ms = self.identity.wall_ms(now);
        let own = self.identity.member.clone();
        let hears = |member: &&kernel::id::Member| {
            **member == own
                || self.ballot.view.members.get(*member).and_then(Option::as_ref).is_some_and(|known| known.alive)
        };
        let first = rank(&self.group_rollout(vector), &own, vector.0.keys().filter(hears)) == 0;
        let Some(vote) = self.record.draft.as_ref().and_then(|draft| draft.kept(vector)).filter(|vote| vote.owes())
        else {
            return;
        };
        let since = vote.purges.owed_ms;
        let reasons: BTreeSet<&str> = vote.purges.listed.values().filter_map(|purge| purge.state.owed()).collect();
        let reasons = reasons.into_iter().take(3).collect::<Vec<_>>().join("; ");
        let days = wall_ms.saturating_sub(since).max(0) / TOLD_EVERY_MS;
        let next = since.saturating_add(TOLD_EVERY_MS.saturating_mul(days.saturating_add(1)));
        let next = u64::try_from(next.saturating_sub(self.identity.epoch_ms)).unwrap_or_default();
        self.purges.remind(vector, Timestamp::from_millis(next));
        if days == 0 || !first || reasons.is_empty() {
            return;
        }
        let day = |day: i64| format!("day {day}");
        let before = self.notice_id(vector, Kind::PurgeOwed, &day(days.saturating_sub(1)), &own);
        self.record.kept_mut(vector).into_iter().for_each(|vote| vote.purges.noticed.retain(|id| *id != before));
        let message = format!("still owed after {days} d, and tried again: {reasons}");
        self.announce_vote(now, vector, Kind::PurgeOwed, &day(days), message);
    }

    /// Moves a closed vote with owed purges from the votes to `Record::owed`, in brief: no decision needs it any more. It
    /// keeps the agreed plan to find the distributions that it does not list yet.
    pub(super) fn keep_owed(&mut self, vector: &Vector) {
        let agreed = ballot::plan(&self.ballot.view, vector);
        let Some(draft) = &mut self.record.draft else { return };
        let Some(vote) = draft.vote(vector).cloned() else { return };
        draft.votes.retain(|vote| vote.vector != *vector);
        let plan = match vote.purges.are_begun() {
            true => vote.plan.for_notices(),
            false => agreed.unwrap_or_else(|| Plan::of(&[&vote])).for_a_vote(),
        };
        draft.owed.push(Vote { plan, ..vote });
        draft.owed.sort_by_key(|vote| vote.seq);
    }

    /// Finds more distributions of an owed vote, once some of those it lists are finished.
    fn list_owed(&mut self, now: Timestamp, vector: &Vector) -> Option<Effect> {
        let draft = self.record.draft.as_ref()?;
        let vote = draft.owed.iter().find(|vote| vote.vector == *vector).filter(|vote| !vote.purges.are_begun())?;
        let (seq, plan) = (vote.seq, Plan::of(&[vote]));
        // A newer rollout with purges finds all distributions of the site itself.
        let carries = |newer: &Vote| newer.seq > seq && !newer.purges.listed.is_empty() && newer.plan.covers(&plan);
        if draft.all_kept().any(carries) {
            let vote = self.record.kept_mut(vector)?;
            vote.purges.leave_rest();
            vote.plan = vote.plan.for_notices();
            return None;
        }
        if !vote.purges.want_match() {
            return None;
        }
        self.purges.begins_match(now, vector).then(|| Effect::Match(vector.clone(), Box::new(plan)))
    }

    /// Forgets the oldest of those that newer ones carry, beyond the bound, and says so.
    pub(super) fn keep_few_owed(&mut self, now: Timestamp) {
        let Some(draft) = &self.record.draft else { return };
        if draft.owed.len() <= OWED_MAX {
            return;
        }
        let carried = |vote: &&Vote| {
            vote.purges.open().all(|(distribution, purge)| self.is_carried(draft, vote, distribution, purge))
        };
        let Some(vector) = draft.owed.iter().find(carried).map(|vote| vote.vector.clone()) else { return };
        let message = "taken over by the purge of a later version, which is owed too".to_owned();
        self.announce_vote(now, &vector, Kind::PurgeSkipped, "", message);
        self.record.draft.iter_mut().for_each(|draft| draft.owed.retain(|vote| vote.vector != vector));
    }
}

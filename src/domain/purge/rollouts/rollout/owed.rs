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

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::bounds::plan::{self, Plan};
use crate::purges::purge::{Order, Progress};
use crate::records::record::{
    NOTICE_LIST_BYTES_MAX, Outcome, Purge, PurgeState, VOTE_EXCEPT_BYTES_MAX, VOTE_HOST_BYTES_MAX,
    VOTE_ORIGIN_BYTES_MAX, Vote,
};
use crate::rollouts::rollout::execute::progress;
use crate::rollouts::rollout::turn::FOLLOW_AFTER;
use crate::rollouts::rollout::words::{fitting, short};
use crate::rollouts::rollout::{Effect, Rollout, ballot, fates};
use kernel::id::{Reference, Vector, rank};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::{Path, PathSet};
use notices::notice::Kind;

/// A denied purge is owed after this: rights that are just being given take seconds to reach all of AWS, and a rollout that ends
/// at the first refusal would say so too soon.
const OWED_AFTER: Duration = Duration::from_secs(60);

/// How often the report of an owed purge is repeated.
const TOLD_EVERY_MS: i64 = 24 * 60 * 60 * 1000;

/// Entries with owed purges that are kept. Each newer one carries those before it, unless it is of other distributions; what it
/// carries is only kept so that its end can be announced.
const OWED_MAX: usize = 4;

impl Rollout {
    /// Notes from a report how long the purge may still take, and what was really sent.
    pub(super) fn note_waits(&mut self, now: Timestamp, reference: &Reference, progress: &Progress) {
        let Some(draft) = &mut self.record.draft else { return };
        let found = draft.all_kept_mut().find_map(|vote| {
            let members = vote.vector.0.len();
            Some((members, vote.purges.values_mut().find(|purge| purge.reference == *reference)?))
        });
        let Some((members, purge)) = found else { return };
        match progress {
            Progress::Failing(why) => {
                purge.note_refused(short(why));
                let exists = purge.invalidation.is_some();
                self.note_denied(now, members, reference, exists, why);
            }
            Progress::Overdue(why) => self.purges.owe(reference, None, short(why)),
            Progress::SentBefore(sent) => purge.sent = Some(sent.clone()),
            Progress::OverBudget => {
                purge.sent = Some(PathSet::default());
                // It is ordered again with that, once it is durable.
                self.purges.order_again(reference);
            }
            Progress::Stalled(_) | Progress::Spent(_) | Progress::Spaced(_) => {}
            Progress::Created(_)
            | Progress::Covered { .. }
            | Progress::Completed
            | Progress::DoneByOther
            | Progress::Impossible(_) => {
                purge.refused.clear();
                self.purges.settle(reference);
            }
        }
    }

    /// A purge is denied, so it becomes owed when every rank has had its turn and a minute has passed; the members
    /// report it in their order.
    fn note_denied(&mut self, now: Timestamp, members: usize, reference: &Reference, exists: bool, why: &str) {
        let others = u32::try_from(members.saturating_sub(1)).unwrap_or(u32::MAX);
        let turns = others.saturating_mul(if exists { FOLLOW_AFTER } else { 1 });
        let wait = OWED_AFTER.saturating_add(self.policy.group.takeover.saturating_mul(turns));
        let due = self.purges.owed_at(reference).map_or_else(|| Some(now.after(wait)), |(due, _)| *due);
        self.purges.owe(reference, due, short(why));
    }

    /// Marks purges as owed that have waited long enough.
    pub(super) fn owe(&mut self, now: Timestamp, vector: &Vector, plan: &Plan) {
        let wall_ms = self.identity.wall_ms(now);
        let due: Vec<(DistributionId, String)> = {
            let Some(vote) = self.record.draft.as_ref().and_then(|draft| draft.vote(vector)) else { return };
            let waits = |(distribution, purge): (&DistributionId, &Purge)| {
                let (due, why) = self.purges.owed_at(&purge.reference).filter(|_| !purge.state.ends_rollout())?;
                due.is_none().then(|| (distribution.clone(), why.clone()))
            };
            vote.purges.iter().filter_map(waits).collect()
        };
        for (distribution, why) in due {
            self.absorb(vector, &distribution, plan, true);
            let Some(vote) = self.record.kept_mut(vector) else { return };
            if vote.owed_ms == 0 {
                vote.owed_ms = wall_ms;
            }
            let Some(purge) = vote.purges.get_mut(&distribution) else { return };
            purge.state = PurgeState::Owed(why);
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
        let own = &self.identity.member;
        let others = self.ballot.view.members.iter().filter(|(member, _)| *member != own);
        let theirs = others.filter_map(|(_, known)| known.as_ref()?.published.kept(vector));
        let theirs: Vec<Vote> = theirs.cloned().collect();
        let Some(vote) = self.record.kept_mut(vector) else { return };
        let voted = vote.paths.clone();
        let mut made_there = Vec::new();
        for other in theirs {
            for (distribution, purge) in &mut vote.purges {
                let made = other.purges.get(distribution).filter(|made| made.reference == purge.reference);
                let Some(made) = made.filter(|made| progress(&made.state) > progress(&purge.state)) else { continue };
                // The paths they sent count, not those we would have sent. If they sent those voted for, that is at least
                // what we keep here.
                let sent = made.sent.clone().unwrap_or_else(|| voted.clone());
                *purge = Purge { sent: Some(sent), ..made.clone() };
                made_there.push(purge.reference.clone());
            }
        }
        made_there.iter().for_each(|reference| self.purges.order_again(reference));
    }

    /// Orders owed purges that no newer one carries, once their paths to send are durable.
    pub(super) fn order_owed(&mut self, vector: &Vector) -> Vec<Effect> {
        let (Some(draft), Some(durable)) = (&self.record.draft, &self.record.durable) else { return Vec::new() };
        let Some((vote, stored)) = draft.kept(vector).zip(durable.kept(vector)) else { return Vec::new() };
        let mut orders = Vec::new();
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        for (distribution, purge) in vote.purges.iter().filter(|(_, purge)| !purge.state.is_final()) {
            let known = stored.purges.get(distribution).is_some_and(|stored| stored.is_sent_as(purge));
            if !known || self.purges.is_ordered(&purge.reference) || self.is_carried(draft, vote, distribution, purge) {
                continue;
            }
            let Some(paths) = purge.sent.clone() else { continue };
            orders.push(Order {
                reference: purge.reference.clone(),
                distribution: distribution.clone(),
                paths,
                subject: self.identity.workload.clone().into(),
                invalidation: purge.invalidation.clone(),
                paths_per_hour: limits.paths_per_hour,
                purges_per_hour: limits.purges_per_hour,
                voted_at: self.purges.voted_at(vector, &purge.reference),
                voted_ms: self.voted_ms(vector, &purge.reference),
            });
        }
        orders.iter().for_each(|order| self.purges.ordered(&order.reference));
        orders.into_iter().map(|order| Effect::Purge(Box::new(order))).collect()
    }

    /// All of it was made, or cannot be: that is the rollout's end, and the edge may have its version now.
    pub(super) fn conclude_owed(&mut self, vector: &Vector) -> Option<Vote> {
        let owed = |vote: &&mut Vote| vote.closed.as_ref().is_some_and(Outcome::is_owed) && !vote.owes();
        let vote = self.record.kept_mut(vector).filter(owed)?;
        vote.closed = Some(fates::outcome(&vote.count()));
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
        let since = vote.owed_ms;
        let reasons: BTreeSet<&str> = vote.purges.values().filter_map(|purge| purge.state.owed()).collect();
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
        self.record.kept_mut(vector).into_iter().for_each(|vote| vote.noticed.retain(|id| *id != before));
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
        let kept = if vote.is_begun() { brief(vote) } else { as_planned(vote, agreed) };
        draft.owed.push(kept);
        draft.owed.sort_by_key(|vote| vote.seq);
    }

    /// Finds more distributions of an owed vote, once some of those it lists are finished.
    fn list_owed(&mut self, now: Timestamp, vector: &Vector) -> Option<Effect> {
        let draft = self.record.draft.as_ref()?;
        let vote = draft.owed.iter().find(|vote| vote.vector == *vector).filter(|vote| !vote.is_begun())?;
        let (seq, plan) = (vote.seq, Plan::of(&[vote]));
        // A newer rollout with purges finds all distributions of the site itself.
        let carries = |newer: &Vote| newer.seq > seq && !newer.purges.is_empty() && newer.paths.covers(&plan.paths);
        if draft.all_kept().any(carries) {
            let vote = self.record.kept_mut(vector)?;
            vote.leave_rest();
            *vote = brief(vote.clone());
            return None;
        }
        if !vote.wants_match() {
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
            let mut open = vote.purges.iter().filter(|(_, purge)| !purge.state.is_final());
            open.all(|(distribution, purge)| self.is_carried(draft, vote, distribution, purge))
        };
        let Some(vector) = draft.owed.iter().find(carried).map(|vote| vote.vector.clone()) else { return };
        let message = "taken over by the purge of a later version, which is owed too".to_owned();
        self.announce_vote(now, &vector, Kind::PurgeSkipped, "", message);
        self.record.draft.iter_mut().for_each(|draft| draft.owed.retain(|vote| vote.vector != vector));
    }
}

/// An owed vote whose purges are all listed, reduced to what its notices need.
fn brief(vote: Vote) -> Vote {
    let hosts = fitting(&vote.hosts, NOTICE_LIST_BYTES_MAX, |host: &Host| host.as_str().len()).cloned().collect();
    let paths: Vec<Path> =
        fitting(vote.paths.iter(), NOTICE_LIST_BYTES_MAX, |path: &Path| path.as_str().len()).cloned().collect();
    let paths = PathSet::of(paths).unwrap_or_else(|| vote.paths.clone());
    let (origins, except, distributions) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    Vote { hosts, paths, narrow: BTreeMap::new(), origins, except, distributions, ..vote }
}

/// An owed vote that can find the rest of its distributions: with the agreed plan, as far as a vote has room for it.
fn as_planned(vote: Vote, agreed: Option<Plan>) -> Vote {
    let Plan { mut hosts, narrow: all, origins, except, distributions, paths } =
        agreed.unwrap_or_else(|| Plan::of(&[&vote]));
    let narrow = plan::narrow_that_fits(&all);
    hosts.retain(|host| narrow.contains_key(host) || !all.contains_key(host));
    let fits =
        |hosts: &BTreeSet<Host>, bytes| fitting(hosts, bytes, |host: &Host| host.as_str().len()).cloned().collect();
    Vote {
        hosts: fits(&hosts, VOTE_HOST_BYTES_MAX),
        narrow,
        except: fits(&except, VOTE_EXCEPT_BYTES_MAX),
        origins: fitting(&origins, VOTE_ORIGIN_BYTES_MAX, String::len).cloned().collect(),
        distributions,
        paths,
        ..vote
    }
}

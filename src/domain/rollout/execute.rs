//! From decided to purged: who does what in which order, and what the others have done already.
//!
//! Every member can do everything, and the references make repetition harmless. The order only saves work: for each
//! distribution the members have a rank, the first begins at once, and each later one begins a while after it came to know of
//! the decision, unless it has seen by then that it is done. Nobody is elected, and nobody has to be alive.

use std::collections::BTreeMap;

use crate::catalog::Found;
use crate::distribution::DistributionId;
use crate::id::{Vector, group_rollout_id, purge_reference, rank};
use crate::machine::Timestamp;
use crate::paths::PathSet;
use crate::plan::Plan;
use crate::purge::Order;
use crate::record::{Outcome, Purge, PurgeState, Record, Vote};
use crate::rollout::{Effect, Rollout, fates, owed, window, words};
use crate::rules::Rules;
use crate::tenants::{self, PATHS_SENT_MAX};

/// A purge that another member has created is followed by the next rank after so many takeover times. Most complete within
/// 25 s (95th percentile), and until then its creator follows it anyway.
pub(super) const FOLLOW_AFTER: u32 = 6;

/// What the members do one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Find the distributions.
    Match,
    /// Create the purge of this one.
    Create(DistributionId),
    /// Ask how far it is.
    Follow(DistributionId),
    /// Tell how the vector ended.
    Tell,
}

impl Rollout {
    /// Goes on with a decided vector: match it, order what is not ordered yet in this life, and finish when all is final.
    pub(super) fn execute(&mut self, now: Timestamp, vector: &Vector, plan: Plan) -> Vec<Effect> {
        self.adopt(vector, &plan);
        self.cover_older(vector, Some(&plan.paths));
        self.owe(now, vector, &plan);
        let Some(vote) = self.open_vote(vector).cloned() else { return Vec::new() };
        if vote.is_carried_out() {
            let outcome = fates::outcome(&vote.count());
            self.finish(now, vector, outcome, &fates::missing(&vote));
            return Vec::new();
        }
        let mut effects = Vec::new();
        if vote.wants_match() && self.is_turn(now, vector, Task::Match) && self.purges.begins_match(now, vector) {
            effects.push(Effect::Match(vector.clone(), Box::new(plan.clone())));
        }
        for (distribution, purge) in vote.purges.iter().filter(|(_, purge)| !purge.state.is_final()) {
            let task = match purge.state {
                PurgeState::Wanted => Task::Create(distribution.clone()),
                _ => Task::Follow(distribution.clone()),
            };
            if self.purges.is_ordered(&purge.reference) || !self.is_turn(now, vector, task) {
                continue;
            }
            if let Some(purge) = self.chosen(vector, distribution, &plan) {
                self.purges.ordered(&purge.reference);
                effects.push(Effect::Purge(Box::new(self.order(vector, distribution, &purge, &plan))));
            }
        }
        effects
    }

    /// A purge with what is to be sent of it, once both are durable (GA-1).
    fn chosen(&mut self, vector: &Vector, distribution: &DistributionId, plan: &Plan) -> Option<Purge> {
        self.absorb(vector, distribution, plan, false);
        let of = |record: Option<&Record>| record?.vote(vector)?.purges.get(distribution).cloned();
        let purge = of(self.record.draft.as_ref())?;
        of(self.record.durable.as_ref()).is_some_and(|stored| stored.sent == purge.sent).then_some(purge)
    }

    /// Whether this member may do something that others may do as well: once its turn has come, it stays.
    pub(super) fn is_turn(&mut self, now: Timestamp, vector: &Vector, task: Task) -> bool {
        if self.is_alone() {
            return true;
        }
        let (key, after) = match &task {
            Task::Create(distribution) => (distribution.to_string(), 1),
            Task::Follow(distribution) => (distribution.to_string(), FOLLOW_AFTER),
            Task::Match => (self.group_rollout(vector), 1),
            Task::Tell => (self.teller_key(vector), 1),
        };
        let rank = rank(&key, &self.identity.member, vector.0.keys());
        let wait = self.policy.group.takeover.saturating_mul(rank.saturating_mul(after));
        self.purges.is_turn(now, vector, task, wait)
    }

    /// The member that purges the first distribution tells of it: it is the first to know.
    fn teller_key(&self, vector: &Vector) -> String {
        let vote = self.record.draft.as_ref().and_then(|draft| draft.vote(vector));
        let first = vote.and_then(|vote| vote.purges.keys().next()).map(ToString::to_string);
        first.unwrap_or_else(|| self.group_rollout(vector))
    }

    pub(super) fn group_rollout(&self, vector: &Vector) -> String {
        group_rollout_id(&self.identity.group, &self.identity.workload, vector)
    }

    /// Takes over what other members' votes say of the purges: that they are wanted, created, or done. Not that they are
    /// impossible: another member may have other credentials.
    fn adopt(&mut self, vector: &Vector, plan: &Plan) {
        if self.is_alone() {
            return;
        }
        let rollout = self.group_rollout(vector);
        let own = &self.identity.member;
        let others = self.ballot.view.members.iter().filter(|(member, _)| *member != own);
        let theirs = others.filter_map(|(_, known)| known.as_ref()?.record.vote(vector));
        let theirs: Vec<Vote> = theirs.cloned().collect();
        let Some(vote) = self.open_vote(vector) else { return };
        for other in theirs {
            // A list and what is not on it belong together: it is taken as it is, or not added to.
            let first = vote.purges.is_empty();
            if first {
                vote.unlisted.clone_from(&other.unlisted);
            }
            if first || (vote.unlisted.is_none() && other.unlisted.is_none()) {
                for (distribution, made) in &other.purges {
                    let sent = made.sent.clone();
                    let wanted = || Purge { sent, ..wanted(&rollout, distribution, &plan.paths) };
                    vote.purges.entry(distribution.clone()).or_insert_with(wanted);
                }
            }
            for (distribution, purge) in &mut vote.purges {
                let Some(made) = other.purges.get(distribution) else { continue };
                if made.reference == purge.reference && progress(&made.state) > progress(&purge.state) {
                    *purge = made.clone();
                }
            }
            vote.stalled |= other.stalled;
        }
        vote.fold();
    }

    fn order(&self, vector: &Vector, distribution: &DistributionId, purge: &Purge, plan: &Plan) -> Order {
        // Covered by an invalidation that exists: that one is waited for, not made again.
        let exists = matches!(purge.state, PurgeState::Created | PurgeState::Covered(_) | PurgeState::Owed(_));
        Order {
            reference: purge.reference.clone(),
            distribution: distribution.clone(),
            paths: purge.sent.clone().unwrap_or_else(|| plan.paths.clone()),
            subject: self.identity.workload.clone().into(),
            invalidation: purge.invalidation.clone().filter(|_| exists),
            paths_per_hour: self.policy.tenants.limits(&self.identity.workload.namespace).paths_per_hour,
            voted_at: self.purges.voted_at(vector),
        }
    }

    /// The distributions of a decided plan are known.
    pub(super) fn matched(&mut self, now: Timestamp, vector: &Vector, found: &Found) {
        self.purges.matched(vector);
        // Asked again because a peer was rebuilt, and answered twice: the purges of the first answer are under way.
        let Some(vote) = self.kept_mut(vector).filter(|vote| vote.wants_match()) else { return };
        let plan = if vote.closed.is_some() {
            Some(owed::plan(vote))
        } else {
            self.view_is_current().then(|| self.plan(vector)).flatten()
        };
        let Some(plan) = plan else { return };
        let (rollout, room) = (self.group_rollout(vector), self.room_for_purges());
        let Some(vote) = self.kept_mut(vector) else { return };
        if found.distributions.is_empty() && vote.purges.is_empty() {
            let hosts = words::some(plan.hosts.iter().map(ToString::to_string), plan.hosts.len());
            self.finish(now, vector, Outcome::NoDistribution, &hosts);
            return;
        }
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        let Some(vote) = self.kept_mut(vector) else { return };
        let (first, bounded) = (vote.purges.is_empty(), vote.rules > Rules::FIRST);
        let beyond = if bounded { tenants::beyond(&found.distributions, limits) } else { BTreeMap::new() };
        let mut beyond = beyond;
        for (id, reached) in found.distributions.iter().filter(|_| bounded) {
            if plan.paths_of(reached, &plan.paths).is_none() {
                let why = "none of its paths is among those that routes of the workload's namespace take there";
                beyond.insert(id.clone(), why.to_owned());
            }
        }
        let within = found.distributions.keys().filter(|id| !beyond.contains_key(*id)).cloned().collect();
        // One that is owed always says what is sent of it.
        let late = vote.closed.is_some();
        // The reference is of what was voted for. What is sent follows from what the distribution understands (decision 41).
        let sent = |distribution: &DistributionId| {
            let understood = !plan.paths.has_tags() || found.tagged.contains(distribution);
            let paths = if understood { plan.paths.clone() } else { plan.paths.without_tags() };
            let reached = found.distributions.get(distribution).filter(|_| bounded);
            let paths = reached.and_then(|reached| plan.paths_of(reached, &paths)).unwrap_or(paths);
            let paths = paths.at_most(PATHS_SENT_MAX);
            (late || paths != plan.paths).then_some(paths)
        };
        let purge = |id: &DistributionId| Purge { sent: sent(id), ..wanted(&rollout, id, &plan.paths) };
        window::list(vote, &within, room, purge);
        if first {
            window::leave_out(vote, beyond, |id| wanted(&rollout, id, &plan.paths));
        }
    }

    fn open_vote(&mut self, vector: &Vector) -> Option<&mut Vote> {
        let open = |vote: &&mut Vote| vote.vector == *vector && vote.closed.is_none();
        self.record.draft.as_mut()?.votes.iter_mut().find(open)
    }
}

/// How far a purge is, as far as another member may rely on it.
pub(super) const fn progress(state: &PurgeState) -> u8 {
    match state {
        PurgeState::Wanted | PurgeState::Impossible(_) => 0,
        PurgeState::Owed(_) => 1,
        PurgeState::Created | PurgeState::Covered(_) => 2,
        PurgeState::Completed | PurgeState::DoneByOther | PurgeState::Beyond(_) => 3,
    }
}

fn wanted(rollout: &str, distribution: &DistributionId, paths: &PathSet) -> Purge {
    Purge::wanted(purge_reference(rollout, distribution.as_str(), paths.iter().map(|path| path.as_str())))
}

//! From decided to purged: finds the distributions of the plan, takes over what other members have done, and orders the rest.

use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};

use crate::agreement::group;
use crate::bounds::plan::Plan;
use crate::purges::catalog::{Found, Listing};
use crate::purges::purge::Order;
use crate::records::record::{Outcome, Purge, PurgeState, Record, Vote};
use crate::records::rules::Rules;
use crate::rollouts::rollout::close::VectorEnd;
use crate::rollouts::rollout::compare::{self, Compared, wanted};
use crate::rollouts::rollout::turn::Task;
use crate::rollouts::rollout::{Effect, Rollout, ballot, fates, window, words};
use kernel::id::Vector;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;

impl Rollout {
    /// Goes on with a decided vector: matches it, and orders what this life has not ordered yet. Once all is final, returns how
    /// it ends.
    pub(super) fn execute(
        &mut self,
        now: Timestamp,
        vector: &Vector,
        plan: &Plan,
    ) -> ControlFlow<VectorEnd, Vec<Effect>> {
        let Some(vote) = self.record.open_vote(vector).cloned() else { return Continue(Vec::new()) };
        if vote.is_carried_out() && !self.awaits_comparison(&vote, plan) {
            return Break((fates::outcome(&vote.count()), fates::why(&vote, self.purges.listed(vector).as_deref())));
        }
        if vote.wants_match() && self.purges.takes_none(vector) {
            return Break(no_distribution(plan));
        }
        let mut effects = Vec::new();
        if vote.wants_match() && self.is_turn(now, vector, Task::Match) && self.purges.begins_match(now, vector) {
            effects.push(Effect::Match(vector.clone(), Box::new(plan.clone())));
        }
        effects.extend(self.ask_newer(now, &vote, plan));
        for (distribution, purge) in vote.purges.iter().filter(|(_, purge)| !purge.state.is_final()) {
            let task = match purge.state {
                PurgeState::Wanted => Task::Create(distribution.clone()),
                _ => Task::Follow(distribution.clone()),
            };
            if self.purges.is_ordered(&purge.reference) || !self.is_turn(now, vector, task) {
                continue;
            }
            if let Some(purge) = self.chosen(vector, distribution, plan) {
                self.purges.ordered(&purge.reference);
                effects.push(Effect::Purge(Box::new(self.order(vector, distribution, &purge, plan))));
            }
        }
        Continue(effects)
    }

    /// A purge with the paths to send, once both are durable (GA-1).
    fn chosen(&mut self, vector: &Vector, distribution: &DistributionId, plan: &Plan) -> Option<Purge> {
        self.absorb(vector, distribution, plan, false);
        let of = |record: Option<&Record>| record?.vote(vector)?.purges.get(distribution).cloned();
        let purge = of(self.record.draft.as_ref())?;
        of(self.record.durable.as_ref()).is_some_and(|stored| stored.is_sent_as(&purge)).then_some(purge)
    }

    /// Takes over from other members' votes which purges are wanted, created, or done; but not which are impossible:
    /// another member may have other credentials.
    pub(super) fn adopt(&mut self, vector: &Vector, plan: &Plan) {
        if self.identity.is_alone() {
            return;
        }
        let rollout = self.group_rollout(vector);
        let own = &self.identity.member;
        // A reference is of the paths of all votes; where not all are known any more, it is the one that was given.
        let view = &self.ballot.view;
        let complete = vector.0.keys().all(|member| group::has_voted(view, vector, member));
        let others = self.ballot.view.members.iter().filter(|(member, _)| *member != own);
        let theirs = others.filter_map(|(_, known)| known.as_ref()?.published.vote(vector));
        let theirs: Vec<Vote> = theirs.cloned().collect();
        let Some(vote) = self.record.open_vote(vector) else { return };
        for other in theirs {
            if !other.purges.is_empty() {
                // Whoever made the list had seen all votes: what follows from it has the time that they have together.
                vote.at_ms = vote.at_ms.max(other.at_ms);
            }
            // A list and the count of what is not on it belong together: we take both over, or neither.
            let first = vote.purges.is_empty();
            if first {
                vote.unlisted.clone_from(&other.unlisted);
            }
            if first || (vote.unlisted.is_none() && other.unlisted.is_none()) {
                for (distribution, made) in &other.purges {
                    let sent = made.sent.clone();
                    let own = || wanted(&rollout, distribution, &plan.paths);
                    let given = || if complete { own() } else { Purge::wanted(made.reference.clone()) };
                    vote.purges.entry(distribution.clone()).or_insert_with(|| Purge { sent, ..given() });
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

    /// Goes on with what was made of a vector, while nothing is decided: follows it, and sends again what an earlier life may have
    /// sent. What was not sent waits.
    pub(super) fn follow_made(&mut self, now: Timestamp, vector: &Vector) -> Vec<Effect> {
        let Some(vote) = self.record.open_vote(vector).cloned() else { return Vec::new() };
        let plan = ballot::plan(&self.ballot.view, vector).unwrap_or_else(|| Plan::of(&[&vote]));
        let rollout = self.group_rollout(vector);
        let mut effects = Vec::new();
        for (distribution, purge) in vote.purges.iter().filter(|(_, purge)| !purge.state.is_final()) {
            let same =
                || purge.sent.is_some() || wanted(&rollout, distribution, &plan.paths).reference == purge.reference;
            let task = match purge.state {
                PurgeState::Wanted if self.purges.may_be_sent(&purge.reference) && same() => {
                    Task::Create(distribution.clone())
                }
                PurgeState::Wanted => continue,
                _ => Task::Follow(distribution.clone()),
            };
            if !self.purges.is_ordered(&purge.reference) && self.is_turn(now, vector, task) {
                self.purges.ordered(&purge.reference);
                effects.push(Effect::Purge(Box::new(self.order(vector, distribution, purge, &plan))));
            }
        }
        effects
    }

    fn order(&self, vector: &Vector, distribution: &DistributionId, purge: &Purge, plan: &Plan) -> Order {
        // Covered by an existing invalidation: we wait for that one and create none.
        let exists = matches!(purge.state, PurgeState::Created | PurgeState::Covered(_) | PurgeState::Owed(_));
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        Order {
            reference: purge.reference.clone(),
            distribution: distribution.clone(),
            paths: purge.sent.clone().unwrap_or_else(|| plan.paths.clone()),
            subject: self.identity.workload.clone().into(),
            invalidation: purge.invalidation.clone().filter(|_| exists),
            paths_per_hour: limits.paths_per_hour,
            purges_per_hour: limits.purges_per_hour,
            voted_at: self.purges.voted_at(vector, &purge.reference),
            voted_ms: self.voted_ms(vector, &purge.reference),
        }
    }

    /// The distributions of a decided plan are known.
    pub(super) fn matched(&mut self, vector: &Vector, asked: &Plan, found: &Found) -> Option<VectorEnd> {
        self.purges.matched(vector);
        let vote = self.record.kept_mut(vector)?;
        if !vote.wants_match() {
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
        if found.distributions.is_empty() && vote.purges.is_empty() {
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
        vote.at_ms = vote.at_ms.max(agreed_at);
        let (first, bounded) = (vote.purges.is_empty(), vote.rules > Rules::FIRST);
        let beyond = if bounded { compare::beyond(&plan, &found.distributions, limits) } else { BTreeMap::new() };
        let within = found.distributions.keys().filter(|id| !beyond.contains_key(*id)).cloned().collect();
        // An owed purge always records its paths.
        let late = vote.closed.is_some();
        // The reference is of what was voted for.
        let sent =
            |id: &DistributionId| compare::sent(&plan, found, id, bounded).or_else(|| late.then(|| plan.paths.clone()));
        let purge = |id: &DistributionId| Purge { sent: sent(id), ..wanted(&rollout, id, &plan.paths) };
        window::list(vote, &within, room, purge);
        if first {
            window::leave_out(vote, beyond, |id| wanted(&rollout, id, &plan.paths));
        }
        if found.listing == Listing::After {
            self.purges.compare(vector, Compared::Newer);
        }
        None
    }
}

/// The progress of a purge that another member may rely on.
pub(super) const fn progress(state: &PurgeState) -> u8 {
    match state {
        PurgeState::Wanted | PurgeState::Impossible(_) => 0,
        PurgeState::Owed(_) => 1,
        PurgeState::Created | PurgeState::Covered(_) => 2,
        PurgeState::Completed | PurgeState::DoneByOther | PurgeState::Beyond(_) => 3,
    }
}

fn no_distribution(plan: &Plan) -> VectorEnd {
    (Outcome::NoDistribution, words::some(plan.hosts.iter().map(ToString::to_string), plan.hosts.len()))
}

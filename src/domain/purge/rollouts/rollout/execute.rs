//! From decided to purged: takes over what other members have done, and orders the rest.

use std::ops::ControlFlow::{self, Break, Continue};

use crate::agreement::group;
use crate::bounds::plan::Plan;
use crate::records::record::{Purge, Record, Vote};
use crate::rollouts::rollout::close::{self, VectorEnd};
use crate::rollouts::rollout::matching::{no_distribution, wanted};
use crate::rollouts::rollout::purges::Task;
use crate::rollouts::rollout::{Effect, Rollout, ballot};
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
        let purges = &vote.purges;
        if purges.are_carried_out() && !self.awaits_comparison(&vote, plan) {
            return Break((purges.outcome(), close::why(purges, self.purges.listed(vector).as_deref())));
        }
        if purges.want_match() && self.purges.takes_none(vector) {
            return Break(no_distribution(plan));
        }
        let mut effects = Vec::new();
        if purges.want_match() && self.is_turn(now, vector, Task::Match) && self.purges.begins_match(now, vector) {
            effects.push(Effect::Match(vector.clone(), Box::new(plan.clone())));
        }
        effects.extend(self.ask_newer(now, &vote, plan));
        for (distribution, purge) in purges.open() {
            let is_ordered = self.purges.is_ordered(&purge.reference);
            if is_ordered || !self.is_turn(now, vector, Task::of(distribution, purge)) {
                continue;
            }
            if let Some(purge) = self.chosen(vector, distribution, plan) {
                effects.push(self.order(vector, distribution, &purge, &plan.paths));
            }
        }
        Continue(effects)
    }

    /// A purge with the paths to send, once both are durable (GA-1).
    fn chosen(&mut self, vector: &Vector, distribution: &DistributionId, plan: &Plan) -> Option<Purge> {
        self.absorb(vector, distribution, plan, false);
        let of = |record: Option<&Record>| record?.vote(vector)?.purges.listed.get(distribution).cloned();
        let purge = of(self.record.draft.as_ref())?;
        of(self.record.durable.as_ref()).is_some_and(|stored| stored.is_sent_as(&purge)).then_some(purge)
    }

    /// Takes over from other members' votes which purges there are, and how far they are.
    pub(super) fn adopt(&mut self, now: Timestamp, vector: &Vector, plan: &Plan) {
        if self.identity.is_alone() {
            return;
        }
        let rollout = self.group_rollout(vector);
        // A reference is of the paths of all votes; where not all are known any more, it is the one that was given.
        let view = &self.ballot.view;
        let complete = vector.0.keys().all(|member| group::has_voted(view, vector, member));
        let theirs = self.ballot.others(&self.identity.member).filter_map(|(_, theirs)| theirs.vote(vector).cloned());
        let theirs: Vec<Vote> = theirs.collect();
        let Some(vote) = self.record.open_vote(vector) else { return };
        let ours = |distribution: &DistributionId, made: &Purge| {
            let own = || wanted(&rollout, distribution, &plan.paths);
            let given = || if complete { own() } else { Purge::wanted(made.reference.clone()) };
            Purge { sent: made.sent.clone(), ..given() }
        };
        let before = vote.purges.listed.clone();
        for other in theirs {
            if !other.purges.listed.is_empty() {
                // Whoever made the list had seen all votes: what follows from it has the time that they have together.
                vote.cast.at_ms = vote.cast.at_ms.max(other.cast.at_ms);
            }
            vote.purges.adopt(&other.purges, ours);
        }
        vote.purges.fold();
        self.look_at_others(now, vector, &before);
    }

    /// Goes on with what was made of a vector, while nothing is decided: follows it, and sends again what an earlier life may have
    /// sent. What was not sent waits.
    pub(super) fn follow_made(&mut self, now: Timestamp, vector: &Vector) -> Vec<Effect> {
        let Some(vote) = self.record.open_vote(vector).cloned() else { return Vec::new() };
        let plan = ballot::plan(&self.ballot.view, vector).unwrap_or_else(|| Plan::of(&[&vote]));
        let rollout = self.group_rollout(vector);
        let mut effects = Vec::new();
        for (distribution, purge) in vote.purges.open() {
            let same =
                || purge.sent.is_some() || wanted(&rollout, distribution, &plan.paths).reference == purge.reference;
            let is_unsent = purge.is_wanted() && !(self.purges.may_be_sent(&purge.reference) && same());
            let is_ordered = self.purges.is_ordered(&purge.reference);
            if !is_unsent && !is_ordered && self.is_turn(now, vector, Task::of(distribution, purge)) {
                effects.push(self.order(vector, distribution, purge, &plan.paths));
            }
        }
        effects
    }
}

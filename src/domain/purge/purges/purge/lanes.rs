//! All distributions with purges on their way, and which of those that wait is created next.
//!
//! Waiting orders have a *seat*: one for each namespace and distribution. Each seat is listed at one place: by the time
//! until which it waits or, once that has come, in the order of turns. So an event costs what it touches, however many
//! wait.
//!
//! Not for the jobs themselves; those are `jobs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::purges::purge::job::{Job, Stage};
use crate::purges::purge::lane::{Lane, Place, Seat};
use crate::purges::purge::share::{Budgets, Turns};
use kernel::id::{Reference, Subject};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;

/// All of them. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lanes {
    all: BTreeMap<DistributionId, Lane>,
    /// Seats that wait for a time.
    later: BTreeSet<(Timestamp, DistributionId, String)>,
    /// Which namespaces have had a creation while others wait, and which seats wait for the pace alone.
    turns: Turns,
    pub(super) budgets: Budgets,
    /// How many jobs wait.
    waiting: usize,
    /// How many distributions something waits for that do not refuse.
    wanted: usize,
    /// Lanes without a job: forgotten once nothing is known of them.
    idle: BTreeSet<DistributionId>,
}

impl Lanes {
    pub(super) fn get(&self, distribution: &DistributionId) -> Option<&Lane> {
        self.all.get(distribution)
    }

    /// A job belongs to it from now on.
    pub(super) fn enter(&mut self, now: Timestamp, job: &Job) {
        let distribution = &job.own.order.distribution;
        let lane = self.all.entry(distribution.clone()).or_default();
        lane.jobs = lane.jobs.saturating_add(1);
        self.idle.remove(distribution);
        match job.stage {
            Stage::Waiting => {
                self.waiting = self.waiting.saturating_add(1);
                self.seat(now, distribution, &job.own.order.subject, |seat| {
                    seat.jobs.insert(job.own.number, (job.own.order.reference.clone(), job.repeats));
                });
            }
            Stage::Calling => self.edit(now, distribution, |lane| lane.calling = lane.calling.saturating_add(1)),
            Stage::Searching(_) | Stage::Polling(_) => {}
        }
    }

    /// It does no more.
    pub(super) fn leave(&mut self, now: Timestamp, job: &Job) {
        let distribution = &job.own.order.distribution;
        match job.stage {
            Stage::Waiting => {
                self.waiting = self.waiting.saturating_sub(1);
                self.seat(now, distribution, &job.own.order.subject, |seat| drop(seat.jobs.remove(&job.own.number)));
            }
            Stage::Calling => self.edit(now, distribution, |lane| lane.calling = lane.calling.saturating_sub(1)),
            Stage::Searching(_) | Stage::Polling(_) => {}
        }
        let Some(lane) = self.all.get_mut(distribution) else { return };
        lane.jobs = lane.jobs.saturating_sub(1);
        if lane.jobs == 0 {
            self.idle.insert(distribution.clone());
        }
    }

    /// Something is learnt of a distribution.
    pub(super) fn edit<R>(
        &mut self,
        now: Timestamp,
        distribution: &DistributionId,
        change: impl FnOnce(&mut Lane) -> R,
    ) -> R {
        let seats = |lane: &Lane| lane.seats.keys().cloned().collect();
        let seats: Vec<String> = self.all.get(distribution).map(seats).unwrap_or_default();
        seats.iter().for_each(|namespace| self.unlist(distribution, namespace));
        let result = change(self.all.entry(distribution.clone()).or_default());
        seats.iter().for_each(|namespace| self.list(now, distribution, namespace));
        result
    }

    /// All that refuse until a person acts are tried now: a person has.
    pub(super) fn try_refused(&mut self, now: Timestamp) {
        let refused = self.all.iter().filter(|(_, lane)| lane.why_failing().is_some());
        for distribution in refused.map(|(distribution, _)| distribution.clone()).collect::<Vec<_>>() {
            self.edit(now, &distribution, |lane| lane.try_now(now));
        }
    }

    /// Time has passed: seats whose time has come wait for the pace alone, and obsolete state is dropped.
    pub(super) fn pass(&mut self, now: Timestamp) {
        while let Some((_, distribution, namespace)) = self.later.first().filter(|(at, ..)| *at <= now).cloned() {
            self.unlist(&distribution, &namespace);
            self.list(now, &distribution, &namespace);
        }
        let all = &mut self.all;
        self.idle.retain(|distribution| {
            let known = all.get(distribution).is_some_and(|lane| lane.is_open() && lane.window > now);
            if !known {
                all.remove(distribution);
            }
            known
        });
        if self.waiting == 0 {
            self.turns.forget();
        }
    }

    /// The distribution and the namespace whose turn it is, among those of this kind that wait for the pace alone.
    pub(super) fn first(&self, repeated: bool) -> Option<(DistributionId, String)> {
        self.turns.first(repeated)
    }

    /// Whether some of this kind wait for the pace alone.
    pub(super) fn are_ready(&self, repeated: bool) -> bool {
        self.turns.are_waiting(repeated)
    }

    /// How many distributions something waits for. One that refuses does not count: nothing is created for it.
    pub(super) const fn wanted(&self) -> usize {
        self.wanted
    }

    /// When the next begins to wait for the pace alone.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.later.first().map(|(at, ..)| *at)
    }

    /// The orders of one namespace that wait for a distribution.
    pub(super) fn waiting_of(
        &self,
        distribution: &DistributionId,
        namespace: &str,
    ) -> impl Iterator<Item = &Reference> {
        let seat = self.all.get(distribution).and_then(|lane| lane.seats.get(namespace));
        seat.into_iter().flat_map(|seat| seat.jobs.values()).map(|(reference, _)| reference)
    }

    /// The orders that wait for a distribution.
    pub(super) fn waiting(&self, distribution: &DistributionId) -> impl Iterator<Item = &Reference> {
        let seats = self.all.get(distribution).into_iter().flat_map(|lane| lane.seats.values());
        seats.flat_map(|seat| seat.jobs.values()).map(|(reference, _)| reference)
    }

    /// The first of a seat.
    pub(super) fn first_of(&self, distribution: &DistributionId, namespace: &str) -> Option<&Reference> {
        self.all.get(distribution)?.seats.get(namespace)?.first().map(|(_, reference, _)| reference)
    }

    /// A namespace has its turn.
    pub(super) fn taken(&mut self, subject: &Subject) {
        self.turns.taken(subject.namespace());
    }

    /// It has come to nothing: the namespace, whose turn it was, is the first again.
    pub(super) fn returned(&mut self, subject: &Subject) {
        self.turns.returned(subject.namespace());
    }

    fn seat(&mut self, now: Timestamp, distribution: &DistributionId, of: &Subject, change: impl FnOnce(&mut Seat)) {
        let namespace = of.namespace();
        self.unlist(distribution, namespace);
        let Some(lane) = self.all.get_mut(distribution) else { return };
        let seat = lane.seats.entry(namespace.to_owned()).or_default();
        change(seat);
        if seat.jobs.is_empty() {
            lane.seats.remove(namespace);
        }
        self.list(now, distribution, namespace);
    }

    fn list(&mut self, now: Timestamp, distribution: &DistributionId, namespace: &str) {
        let next = self.budgets.next(namespace, distribution);
        let Some(lane) = self.all.get_mut(distribution) else { return };
        let Some(place) = lane.seats.get(namespace).map(|seat| seat.placed(now, lane, next)) else { return };
        match place {
            Place::Nowhere => {}
            Place::Later(at) => drop(self.later.insert((at, distribution.clone(), namespace.to_owned()))),
            Place::Ready { repeated, since, number } => {
                self.turns.enter(repeated, namespace, (since, number, distribution.clone()));
            }
        }
        let counts = place != Place::Nowhere && lane.refusal.is_none() && next <= now;
        lane.seats.get_mut(namespace).into_iter().for_each(|seat| (seat.place, seat.counts) = (place, counts));
        lane.wanted = lane.wanted.saturating_add(usize::from(counts));
        self.wanted = self.wanted.saturating_add(usize::from(counts && lane.wanted == 1));
    }

    fn unlist(&mut self, distribution: &DistributionId, namespace: &str) {
        let Some(lane) = self.all.get_mut(distribution) else { return };
        let Some(seat) = lane.seats.get_mut(namespace) else { return };
        let counted = std::mem::take(&mut seat.counts);
        let place = std::mem::take(&mut seat.place);
        lane.wanted = lane.wanted.saturating_sub(usize::from(counted));
        self.wanted = self.wanted.saturating_sub(usize::from(counted && lane.wanted == 0));
        match place {
            Place::Nowhere => {}
            Place::Later(at) => drop(self.later.remove(&(at, distribution.clone(), namespace.to_owned()))),
            Place::Ready { repeated, since, number } => {
                self.turns.leave(repeated, namespace, &(since, number, distribution.clone()));
            }
        }
    }
}

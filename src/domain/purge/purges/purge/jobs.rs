//! All purges on their way: found by reference, by what covers them, by distribution, and by when something is due.
//!
//! A job is changed by [`Jobs::change`] alone, so it is listed by what it is. Not for what becomes of one; that is `purger`.

use std::collections::{BTreeMap, BTreeSet};

use crate::purges::purge::job::{Job, Waiter};
use crate::purges::purge::lanes::Lanes;
use crate::purges::purge::{Effect, Pace, Progress};
use kernel::id::Reference;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// All of them. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Jobs {
    pace: Pace,
    all: BTreeMap<Reference, Job>,
    /// Which job covers each that is covered.
    covered: BTreeMap<Reference, Reference>,
    /// When each is to be looked after.
    agenda: BTreeSet<(Timestamp, Reference)>,
    pub(super) lanes: Lanes,
}

impl Jobs {
    pub(super) fn new(pace: Pace) -> Self {
        let (all, covered) = (BTreeMap::new(), BTreeMap::new());
        Self { pace, all, covered, agenda: BTreeSet::new(), lanes: Lanes::default() }
    }

    pub(super) fn get(&self, reference: &Reference) -> Option<&Job> {
        self.all.get(reference)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.all.values()
    }

    /// The job that covers it, and what waits there.
    pub(super) fn covering(&self, reference: &Reference) -> Option<(&Job, &Waiter)> {
        let job = self.all.get(self.covered.get(reference)?)?;
        Some((job, job.covers.iter().find(|covered| covered.order.reference == *reference)?))
    }

    /// The jobs that wait for a distribution.
    pub(super) fn waiting(&self, distribution: &DistributionId) -> impl Iterator<Item = &Job> {
        self.lanes.waiting(distribution).filter_map(|reference| self.all.get(reference))
    }

    /// When the next is to be looked after.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Those that are to be looked after.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Reference> {
        self.agenda.iter().take_while(|(at, _)| *at <= now).map(|(_, reference)| reference.clone()).collect()
    }

    pub(super) fn put(&mut self, now: Timestamp, job: Job) {
        let reference = job.own.order.reference.clone();
        self.agenda.extend(job.deadline(&self.pace).map(|at| (at, reference.clone())));
        self.lanes.enter(now, &job);
        self.all.insert(reference, job);
    }

    /// Changes one, and lists it anew.
    pub(super) fn change<R>(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        change: impl FnOnce(&mut Job) -> R,
    ) -> Option<R> {
        let mut job = self.take(now, reference)?;
        let result = change(&mut job);
        self.put(now, job);
        Some(result)
    }

    /// It is over, for it and for those it covers.
    pub(super) fn remove(&mut self, now: Timestamp, reference: &Reference) -> Option<Job> {
        let job = self.take(now, reference)?;
        job.covers.iter().for_each(|waiter| drop(self.covered.remove(&waiter.order.reference)));
        Some(job)
    }

    /// All that wait and that this one contains travel with it.
    pub(super) fn cover_waiting(&mut self, now: Timestamp, reference: &Reference) {
        let Some(own) = self.all.get(reference).map(|job| &job.own) else { return };
        let travels = |job: &&Job| job.own.order.reference != *reference && own.contains(&job.own);
        let travels = self.waiting(&own.order.distribution).filter(travels);
        let travels: Vec<Reference> = travels.map(|job| job.own.order.reference.clone()).collect();
        if travels.is_empty() {
            return;
        }
        let jobs: Vec<Job> = travels.iter().filter_map(|covered| self.remove(now, covered)).collect();
        let waiters: Vec<Waiter> = jobs.into_iter().flat_map(|job| [job.own].into_iter().chain(job.covers)).collect();
        let by = |waiter: &Waiter| (waiter.order.reference.clone(), reference.clone());
        self.covered.extend(waiters.iter().map(by));
        self.change(now, reference, |job| job.covers.extend(waiters));
    }

    /// Covered orders go on by themselves: what became of the one they travelled with says nothing of them.
    pub(super) fn release(&mut self, now: Timestamp, reference: &Reference) {
        for waiter in self.change(now, reference, |job| std::mem::take(&mut job.covers)).unwrap_or_default() {
            self.covered.remove(&waiter.order.reference);
            self.put(now, Job::new(now, waiter, &self.pace));
        }
    }

    /// Which is sent when this seat has its turn: the newest that contains the first of the seat. It takes along as many as it can,
    /// and however many come after it, the first is never left behind. Where the distribution refuses it is the newest of all, whose
    /// success says most.
    pub(super) fn leader(&self, now: Timestamp, distribution: &DistributionId, namespace: &str) -> Option<Reference> {
        let probes = self.lanes.get(distribution)?.refusal.is_some();
        let first = self.all.get(self.lanes.first_of(distribution, namespace)?)?;
        let affords = |job: &Job| job.repeats || self.lanes.budgets.next(job.namespace(), distribution) <= now;
        let contains = |job: &Job| job.own.contains(&first.own) && affords(job);
        let leads = |job: &&Job| probes || job.own.number == first.own.number || contains(job);
        let leader = self.waiting(distribution).filter(leads).max_by_key(|job| job.own.age());
        leader.map(|job| job.own.order.reference.clone())
    }

    /// The newest of a seat, if its namespace has one purge left, and that one of them all would not contain the others. Everything is
    /// to be sent under it, or they would wait for a purge each.
    pub(super) fn to_widen(&self, now: Timestamp, leader: &Reference) -> Option<Reference> {
        let leader = self.all.get(leader).filter(|job| !job.repeats)?;
        let (distribution, namespace) = (&leader.own.order.distribution, leader.namespace());
        if !self.lanes.budgets.is_last(now, &leader.own.order) {
            return None;
        }
        let waiting = || self.lanes.waiting_of(distribution, namespace).filter_map(|reference| self.all.get(reference));
        let newest = waiting().max_by_key(|job| job.own.age())?;
        // What came after one of everything waits for the next.
        let is_whole = |job: &Job| job.own.order.paths.covers(&PathSet::default());
        let all = |job: &Job| waiting().all(|other| other.own.number == job.own.number || job.own.contains(&other.own));
        let widens = newest.sent.is_none() && !is_whole(leader) && !is_whole(newest) && !all(leader) && !all(newest);
        widens.then(|| newest.own.order.reference.clone())
    }

    /// Reports to all that wait for a distribution, once, that an operator has to act.
    pub(super) fn tell_failing(&mut self, distribution: &DistributionId, why: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        for reference in self.lanes.waiting(distribution) {
            // What is reported of it is not what it is listed by.
            effects.extend(self.all.get_mut(reference).into_iter().flat_map(|job| job.tell_failing(why)));
        }
        effects
    }

    /// Reports the end of a purge and of those it covers, and forgets them.
    pub(super) fn conclude(&mut self, now: Timestamp, reference: &Reference, progress: &Progress) -> Vec<Effect> {
        self.remove(now, reference).map_or_else(Vec::new, |job| job.tell_all(progress))
    }

    fn take(&mut self, now: Timestamp, reference: &Reference) -> Option<Job> {
        let job = self.all.remove(reference)?;
        if let Some(at) = job.deadline(&self.pace) {
            self.agenda.remove(&(at, reference.clone()));
        }
        self.lanes.leave(now, &job);
        Some(job)
    }
}

//! The machine of purges: one job per reference, one window per distribution, one governor.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::distribution::DistributionId;
use crate::domain::id::{InvalidationId, Reference};
use crate::domain::machine::{Machine, Timestamp, millis};
use crate::domain::purge::{CdnErrorClass, Effect, Event, Order, Pace, Progress};
use crate::domain::retry::{self, Backoff};

/// Creations that may follow each other at once before [`Pace::creation_every`] applies. Throttling is answered anyway; this
/// only keeps a release over a handful of distributions quick.
pub const CREATIONS_BURST: u32 = 4;

/// Polling slows down by this and no further: completion is noticed within 30 s, and a stalled purge costs two calls a
/// minute.
const POLL_EVERY_MAX: Duration = Duration::from_secs(30);

/// How often an invalidation just created may be unknown to CloudFront before it is created again (decision 17).
const UNKNOWN_TOLERATED: u32 = 3;

/// Denied and gone-wrong purges: somebody has to act, so there is no hurry.
const SLOWLY: Backoff = Backoff { base: Duration::from_secs(15), cap: Duration::from_secs(5 * 60) };
/// One purge on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Job {
    order: Order,
    /// Counts orders: the newest has the highest number.
    number: u64,
    stage: Stage,
    /// When it was ordered.
    arrived: Timestamp,
    /// Failures in a row.
    failures: u32,
    /// Somebody was told that it fails and has to act; once is enough.
    failing: bool,
    /// It was reported as stalled; once is enough, even if it has to be created again.
    stalled: bool,
    /// Older orders this one covers, told with it.
    covers: Vec<Order>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Not sent yet.
    Queued,
    /// Sent at least once, and to be sent again at this time.
    Resting(Timestamp),
    /// A call is under way.
    Calling,
    /// The reference is being looked for.
    Searching,
    /// Created; its completion is awaited.
    Polling(Poll),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Poll {
    id: InvalidationId,
    since: Timestamp,
    next: Timestamp,
    asked: bool,
    polls: u32,
    unknown: u32,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purger {
    pace: Pace,
    jobs: BTreeMap<Reference, Job>,
    /// Per distribution, when its debounce window ends.
    windows: BTreeMap<DistributionId, Timestamp>,
    /// The governor: creations are allowed while this is not further ahead than the burst (a token bucket in its
    /// "virtual scheduling" form, which needs one number and no timer).
    spent_until: Timestamp,
    orders: u64,
}

impl Purger {
    /// A machine with nothing on its way.
    pub fn new(pace: Pace) -> Self {
        Self { pace, jobs: BTreeMap::new(), windows: BTreeMap::new(), spent_until: Timestamp::default(), orders: 0 }
    }

    /// Purges on their way, each in words: what an operator reads while waiting.
    pub fn describe(&self, now: Timestamp) -> Vec<(Reference, DistributionId, String)> {
        let words = |job: &Job| match &job.stage {
            Stage::Queued => "waits for its turn, so that others can go with it".to_owned(),
            Stage::Resting(until) => format!("is sent again in {} s", until.since(now).as_secs()),
            Stage::Calling => "is being created".to_owned(),
            Stage::Searching => "is being looked for among the recent invalidations".to_owned(),
            Stage::Polling(poll) => {
                format!("invalidation {} in progress for {} s", poll.id, now.since(poll.since).as_secs())
            }
        };
        self.jobs
            .values()
            .map(|job| (job.order.reference.clone(), job.order.distribution.clone(), words(job)))
            .collect()
    }

    fn ordered(&mut self, now: Timestamp, order: Order) -> Vec<Effect> {
        if let Some(job) = self.jobs.get(&order.reference) {
            return job.progress(&order).into_iter().map(|progress| report(&order, progress)).collect();
        }
        let covering = self.jobs.values().find_map(|job| {
            job.covers.iter().any(|covered| covered.reference == order.reference).then(|| job.progress(&order))
        });
        if let Some(progress) = covering {
            return progress.into_iter().map(|progress| report(&order, progress)).collect();
        }
        self.orders = self.orders.saturating_add(1);
        let stage = match &order.invalidation {
            Some(id) => Stage::Polling(self.poll(now, id.clone())),
            None => Stage::Queued,
        };
        let job = Job {
            number: self.orders,
            stage,
            arrived: now,
            failures: 0,
            failing: false,
            stalled: false,
            covers: Vec::new(),
            order,
        };
        self.jobs.insert(job.order.reference.clone(), job);
        Vec::new()
    }

    fn poll(&self, now: Timestamp, id: InvalidationId) -> Poll {
        Poll { id, since: now, next: now.after(self.pace.poll_first), asked: false, polls: 0, unknown: 0 }
    }

    /// Sends what is due: the newest queued order of each distribution whose window is over, with the older ones it
    /// contains, and every retry whose rest is over; as far as the governor allows, oldest first.
    fn send(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut due = self.leaders(now);
        due.extend(self.jobs.values().filter_map(|job| match job.stage {
            Stage::Resting(until) if until <= now => Some((job.number, job.order.reference.clone())),
            Stage::Resting(_) | Stage::Queued | Stage::Calling | Stage::Searching | Stage::Polling(_) => None,
        }));
        due.sort();
        let mut effects = Vec::new();
        for (_, reference) in due {
            if !self.may_create(now) {
                break;
            }
            self.spent_until = self.spent_until.max(now).after(self.pace.creation_every);
            self.cover_older(&reference);
            let Some(job) = self.jobs.get_mut(&reference) else { continue };
            job.stage = Stage::Calling;
            self.windows.insert(job.order.distribution.clone(), now.after(self.pace.debounce));
            effects.push(Effect::Create(job.order.clone()));
        }
        effects
    }

    /// For each distribution whose window is over, the newest queued order among those that contain the oldest one: it takes
    /// along as many as it can, and however many come after it, the oldest is never left behind.
    fn leaders(&self, now: Timestamp) -> Vec<(u64, Reference)> {
        let mut oldest: BTreeMap<&DistributionId, &Job> = BTreeMap::new();
        let open = |job: &&Job| self.windows.get(&job.order.distribution).is_none_or(|until| *until <= now);
        let queued = || self.jobs.values().filter(|job| job.stage == Stage::Queued).filter(open);
        for job in queued() {
            let first = oldest.entry(&job.order.distribution).or_insert(job);
            if job.number < first.number {
                *first = job;
            }
        }
        let leader = |oldest: &&Job| {
            let leads = queued().filter(|job| job.contains(oldest)).max_by_key(|job| job.age());
            let leader = leads.unwrap_or(oldest);
            (leader.number, leader.order.reference.clone())
        };
        oldest.values().map(leader).collect()
    }

    fn may_create(&self, now: Timestamp) -> bool {
        let burst = self.pace.creation_every.saturating_mul(CREATIONS_BURST.saturating_sub(1));
        self.spent_until <= now.after(burst)
    }

    /// Queued orders that this one contains travel with it; only before its first sending.
    fn cover_older(&mut self, reference: &Reference) {
        let Some(leader) = self.jobs.get(reference).filter(|job| job.stage == Stage::Queued).cloned() else { return };
        let travels =
            |job: &&Job| job.stage == Stage::Queued && job.order.reference != *reference && leader.contains(job);
        let covered = self.jobs.values().filter(travels);
        let covered: Vec<Reference> = covered.map(|job| job.order.reference.clone()).collect();
        let mut orders = Vec::new();
        for older in covered {
            if let Some(job) = self.jobs.remove(&older) {
                orders.push(job.order);
                orders.extend(job.covers);
            }
        }
        if let Some(job) = self.jobs.get_mut(reference) {
            job.covers.extend(orders);
        }
    }

    fn created(&mut self, now: Timestamp, reference: &Reference, id: InvalidationId) -> Vec<Effect> {
        let poll = self.poll(now, id);
        let Some(job) = self.jobs.get_mut(reference) else { return Vec::new() };
        if matches!(job.stage, Stage::Polling(_)) {
            return Vec::new();
        }
        job.failures = 0;
        job.stage = Stage::Polling(poll);
        job.report_to_all()
    }

    fn create_failed(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        class: CdnErrorClass,
        why: String,
    ) -> Vec<Effect> {
        let Some(job) = self.jobs.get_mut(reference) else { return Vec::new() };
        if job.stage != Stage::Calling {
            return Vec::new();
        }
        job.failures = job.failures.saturating_add(1);
        let key = job.order.reference.0.clone();
        let failures = job.failures;
        match class {
            CdnErrorClass::Throttled | CdnErrorClass::TooManyInProgress | CdnErrorClass::Ambiguous => {
                job.stage = Stage::Resting(now.after(retry::SERVICE.delay(failures, &key)));
                Vec::new()
            }
            CdnErrorClass::Denied => {
                job.stage = Stage::Resting(now.after(SLOWLY.delay(failures, &key)));
                job.tell_failing(why)
            }
            CdnErrorClass::ReferenceReused => {
                job.stage = Stage::Searching;
                let search = Effect::Search(job.order.reference.clone(), job.order.distribution.clone());
                self.release(now, reference);
                vec![search]
            }
            CdnErrorClass::Gone => self.conclude(reference, &Progress::Impossible(why)),
            CdnErrorClass::NoSuchInvalidation | CdnErrorClass::Refused => {
                self.release(now, reference);
                self.conclude(reference, &Progress::Impossible(why))
            }
        }
    }

    /// Covered orders go on by themselves: what became of the one they travelled with says nothing of them.
    fn release(&mut self, now: Timestamp, reference: &Reference) {
        let covers = self.jobs.get_mut(reference).map(|job| std::mem::take(&mut job.covers)).unwrap_or_default();
        for order in covers {
            drop(self.ordered(now, order));
        }
    }

    fn searched(&mut self, now: Timestamp, reference: &Reference, found: Option<InvalidationId>) -> Vec<Effect> {
        if self.jobs.get(reference).is_none_or(|job| job.stage != Stage::Searching) {
            return Vec::new();
        }
        match found {
            Some(id) => self.created(now, reference, id),
            None => self.conclude(reference, &Progress::DoneByOther),
        }
    }

    /// Asks about every invalidation whose time has come, and reports those that take too long.
    fn look_after(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for job in self.jobs.values_mut() {
            let told = job.order.clone();
            let covers = job.covers.clone();
            let Stage::Polling(poll) = &mut job.stage else { continue };
            let waited = now.since(poll.since);
            if waited >= self.pace.completion_timeout && !job.stalled {
                job.stalled = true;
                let all = [&told].into_iter().chain(&covers);
                effects.extend(all.map(|order| report(order, Progress::Stalled(waited))));
            }
            if poll.next <= now && !poll.asked {
                poll.asked = true;
                effects.push(Effect::Poll(told.reference.clone(), told.distribution.clone(), poll.id.clone()));
            }
        }
        effects
    }

    fn still(&mut self, now: Timestamp, reference: &Reference) {
        let first = self.pace.poll_first;
        if let Some(Stage::Polling(poll)) = self.jobs.get_mut(reference).map(|job| &mut job.stage) {
            poll.asked = false;
            poll.polls = poll.polls.saturating_add(1);
            // Half as long again each time: few calls for a long wait, and never later than a third of the time waited.
            let wait = millis(first).saturating_mul(u64::from(poll.polls) + 2) / 2;
            poll.next = now.after(Duration::from_millis(wait).min(POLL_EVERY_MAX));
        }
    }

    fn poll_failed(&mut self, now: Timestamp, reference: &Reference, class: CdnErrorClass, why: String) -> Vec<Effect> {
        self.still(now, reference);
        let Some(job) = self.jobs.get_mut(reference) else { return Vec::new() };
        let Stage::Polling(poll) = &mut job.stage else { return Vec::new() };
        match class {
            CdnErrorClass::NoSuchInvalidation => {
                poll.unknown = poll.unknown.saturating_add(1);
                if poll.unknown < UNKNOWN_TOLERATED {
                    return Vec::new();
                }
                let why = format!("{why}; it is created again under the same reference");
                job.stage = Stage::Resting(now);
                job.tell_failing(why)
            }
            CdnErrorClass::Gone => self.conclude(reference, &Progress::Impossible(why)),
            CdnErrorClass::Denied => job.tell_failing(why),
            // A passing error of the poll never ends the wait.
            CdnErrorClass::Throttled
            | CdnErrorClass::TooManyInProgress
            | CdnErrorClass::Ambiguous
            | CdnErrorClass::ReferenceReused
            | CdnErrorClass::Refused => Vec::new(),
        }
    }

    /// Reports the end of a purge and of those it covers, and forgets them.
    fn conclude(&mut self, reference: &Reference, progress: &Progress) -> Vec<Effect> {
        self.jobs.remove(reference).map_or_else(Vec::new, |job| job.tell_all(progress))
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        self.windows.retain(|_, until| *until > now);
        let mut effects = self.send(now);
        effects.extend(self.look_after(now));
        effects
    }
}

impl Job {
    /// How far it is, as `order` (its own or a covered one) should see it; nothing before it exists.
    fn progress(&self, order: &Order) -> Option<Progress> {
        let Stage::Polling(poll) = &self.stage else { return None };
        let invalidation = poll.id.clone();
        Some(if order.reference == self.order.reference {
            Progress::Created(invalidation)
        } else {
            Progress::Covered { by: self.order.reference.clone(), invalidation }
        })
    }

    /// Whether a purge of this one is certain to be a purge of `older` too: it has its paths, and `older` was complete before
    /// this one can have been created by anybody. Its reference may have been used in an earlier life or by another worker,
    /// and CloudFront then returns that earlier invalidation, which knows nothing of `older`.
    fn contains(&self, older: &Self) -> bool {
        self.order.distribution == older.order.distribution
            && self.order.paths.covers(&older.order.paths)
            && self.order.voted_at.is_some_and(|uncreated| older.complete_by() <= uncreated)
    }

    /// Orders by how late they can have been decided: those of which that is not known come first.
    fn age(&self) -> (Option<Timestamp>, u64) {
        (self.order.voted_at, self.number)
    }

    /// When its rollout was certainly complete.
    fn complete_by(&self) -> Timestamp {
        self.order.voted_at.unwrap_or(self.arrived)
    }

    fn tell_failing(&mut self, why: String) -> Vec<Effect> {
        if std::mem::replace(&mut self.failing, true) { Vec::new() } else { self.tell_all(&Progress::Failing(why)) }
    }

    fn all(&self) -> impl Iterator<Item = &Order> {
        [&self.order].into_iter().chain(&self.covers)
    }

    fn report_to_all(&self) -> Vec<Effect> {
        self.all().filter_map(|order| Some(report(order, self.progress(order)?))).collect()
    }

    fn tell_all(&self, progress: &Progress) -> Vec<Effect> {
        self.all().map(|order| report(order, progress.clone())).collect()
    }
}

fn report(order: &Order, progress: Progress) -> Effect {
    Effect::Report(order.workload.clone(), order.reference.clone(), progress)
}

impl Machine for Purger {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Ordered(order) => self.ordered(now, order),
            Event::Created(reference, id) => self.created(now, &reference, id),
            Event::CreateFailed(reference, class, why) => self.create_failed(now, &reference, class, why),
            Event::StillInProgress(reference) => {
                self.still(now, &reference);
                Vec::new()
            }
            Event::Completed(reference) => self.conclude(&reference, &Progress::Completed),
            Event::PollFailed(reference, class, why) => self.poll_failed(now, &reference, class, why),
            Event::Searched(reference, found) => self.searched(now, &reference, found),
            Event::SearchFailed(reference, _) => {
                // The same creation fails in the same way and leads back to the search.
                if let Some(job) = self.jobs.get_mut(&reference).filter(|job| job.stage == Stage::Searching) {
                    job.failures = job.failures.saturating_add(1);
                    job.stage = Stage::Resting(now.after(retry::SERVICE.delay(job.failures, &reference.0)));
                }
                Vec::new()
            }
        };
        effects.extend(self.advance(now));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let burst = self.pace.creation_every.saturating_mul(CREATIONS_BURST.saturating_sub(1));
        let governor = Timestamp::from_millis(self.spent_until.as_millis().saturating_sub(millis(burst)));
        let job = |job: &Job| match &job.stage {
            Stage::Queued => {
                let window = self.windows.get(&job.order.distribution).copied().unwrap_or_default();
                Some(window.max(governor))
            }
            Stage::Resting(until) => Some((*until).max(governor)),
            Stage::Calling | Stage::Searching => None,
            Stage::Polling(poll) => {
                let stalls = (!job.stalled).then(|| poll.since.after(self.pace.completion_timeout));
                let polls = (!poll.asked).then_some(poll.next);
                stalls.into_iter().chain(polls).min()
            }
        };
        self.jobs.values().filter_map(job).min()
    }
}

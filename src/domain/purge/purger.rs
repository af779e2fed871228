//! The machine of purges: one job per creation, one lane per distribution, one governor.

use std::collections::BTreeMap;

use crate::call::Call;
use crate::distribution::DistributionId;
use crate::id::{InvalidationId, Reference};
use crate::machine::{Machine, Timestamp};
use crate::purge::governor::{Governor, Rate};
use crate::purge::job::{Job, Poll, Stage, Waiter};
use crate::purge::lane::Lane;
use crate::purge::share::{Budgets, Turn, Turns};
use crate::purge::unheard::Unheard;
use crate::purge::{CdnErrorClass, Effect, Event, Found, Order, Pace, Progress};
use crate::retry;

/// Repetitions leave so many of the burst to what is sent for the first time, so that a purge is not late because others
/// cannot be made.
const BURST_KEPT: u32 = 2;

/// What an order says that waits while others may join it.
const COMPANY: &str = "waits for its turn, so that others can go with it";

/// One creation in so many is a repetition, if one waits: however much is rolled out, what is owed gets its turn.
pub const REPEAT_EVERY: u32 = 8;

/// How often an invalidation just created may be unknown to CloudFront before it is created again (decision 17).
const UNKNOWN_TOLERATED: u32 = 3;

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purger {
    pace: Pace,
    jobs: BTreeMap<Reference, Job>,
    lanes: BTreeMap<DistributionId, Lane>,
    governor: Governor,
    /// First sendings since the last repetition.
    fresh_in_a_row: u32,
    orders: u64,
    /// Which namespaces have had a creation while others wait, and in which order.
    turns: Turns,
    budgets: Budgets,
    unheard: Unheard,
}

/// A creation that could be sent, and from when on, as far as its distribution is concerned.
struct Candidate {
    from: Timestamp,
    /// When its namespace had its turn.
    turn: Turn,
    number: u64,
    reference: Reference,
    repeated: bool,
}

impl Purger {
    /// A machine with nothing on its way.
    pub fn new(pace: Pace) -> Self {
        Self {
            governor: Governor::new(pace.creations_per_second, pace.creations_per_second_max),
            pace,
            jobs: BTreeMap::new(),
            lanes: BTreeMap::new(),
            fresh_in_a_row: 0,
            orders: 0,
            turns: Turns::default(),
            budgets: Budgets::default(),
            unheard: Unheard::default(),
        }
    }

    /// Purges on their way, each in words: what an operator reads while waiting.
    pub fn describe(&self, now: Timestamp) -> Vec<(Reference, DistributionId, String)> {
        let waiting = |job: &Job| {
            let lane = self.lanes.get(&job.own.order.distribution);
            let closed = lane.and_then(|lane| lane.words(now));
            let joins = || lane.is_some_and(|lane| lane.window > now);
            closed.unwrap_or_else(|| if joins() { COMPANY.to_owned() } else { self.waits_for_its_turn() })
        };
        let words = |job: &Job| match &job.stage {
            Stage::Waiting => waiting(job),
            Stage::Calling => "is being created".to_owned(),
            Stage::Searching(_) => "is being looked for among the recent invalidations".to_owned(),
            Stage::Polling(poll) => {
                format!("invalidation {} in progress for {} s", poll.id, now.since(poll.since).as_secs())
            }
        };
        let jobs = self.jobs.values();
        jobs.map(|job| (job.own.order.reference.clone(), job.own.order.distribution.clone(), words(job))).collect()
    }

    /// The creations a second that CloudFront grants us, as far as we know.
    pub fn rate(&self, now: Timestamp) -> Rate {
        let mut governor = self.governor.clone();
        governor.pass(now);
        governor.rate()
    }

    fn waits_for_its_turn(&self) -> String {
        format!("waits for its turn: CloudFront grants us about {}", self.governor.rate().words())
    }

    fn ordered(&mut self, now: Timestamp, order: Order) -> Vec<Effect> {
        if let Some(job) = self.jobs.get_mut(&order.reference) {
            let mut effects = job.progress(&job.own);
            if let (true, Some(id)) = (job.is_waiting(), order.invalidation) {
                // Another member has made it, or one that covers it.
                job.stage = Stage::Polling(Poll::begin(now, id, &self.pace));
            } else if job.is_waiting() {
                // What is to be sent may have grown by what an older one owed.
                job.own.order.paths = order.paths;
            } else if job.own.order.paths != order.paths {
                // Too late: it was sent as it was.
                effects.push(job.tell_own(Progress::SentBefore(job.own.order.paths.clone())));
            }
            return effects;
        }
        let covered = self.jobs.values().find_map(|job| {
            let waiter = job.covers.iter().find(|covered| covered.order.reference == order.reference)?;
            Some(job.progress(waiter))
        });
        if let Some(progress) = covered {
            return progress;
        }
        self.orders = self.orders.saturating_add(1);
        let distribution = order.distribution.clone();
        let mut job = Job::new(now, Waiter::new(now, order, self.orders), &self.pace);
        let mut effects = Vec::new();
        if let Some(lane) = self.lanes.get_mut(&distribution).filter(|_| job.is_waiting()) {
            lane.hurry(now);
            effects = lane.why_failing().map_or_else(Vec::new, |why| job.tell_failing(why));
        }
        self.jobs.insert(job.own.order.reference.clone(), job);
        effects
    }

    /// Sends what is due and what the governor allows, each with those it contains.
    fn send(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(Candidate { reference, repeated, .. }) = self.next_creation(now) {
            if let Some(order) = self.take_unaffordable(now, &reference) {
                effects.push(Effect::Report(order.subject, reference, Progress::OverBudget));
                continue;
            }
            self.governor.spend(now);
            self.fresh_in_a_row = if repeated { 0 } else { self.fresh_in_a_row.saturating_add(1) };
            self.cover_waiting(&reference);
            let Some(job) = self.jobs.get_mut(&reference) else { break };
            job.stage = Stage::Calling;
            let is_paid = job.sent.replace(now).is_some() && !job.repeats;
            let order = job.own.order.clone();
            self.turns.taken(&order.subject);
            if !is_paid {
                self.budgets.spend(now, &order);
            }
            self.lanes.entry(order.distribution.clone()).or_default().window = now.after(self.pace.debounce);
            effects.push(Effect::Create(order));
        }
        effects
    }

    /// Takes back an order of more than one path whose namespace has none left for its distribution in this hour, and says that
    /// everything is to be sent instead, which is one path. What was sent before is what it is.
    fn take_unaffordable(&mut self, now: Timestamp, reference: &Reference) -> Option<Order> {
        let job = self.jobs.get(reference).filter(|job| job.sent.is_none())?;
        if job.own.order.paths.len() == 1 || self.budgets.affords(now, &job.own.order) {
            return None;
        }
        self.release(now, reference);
        Some(self.jobs.remove(reference)?.own.order)
    }

    /// What is sent next, if anything is now: what was never sent before what was; the namespaces in turn; and of one namespace
    /// each in the order in which it came.
    fn next_creation(&self, now: Timestamp) -> Option<Candidate> {
        let due = |candidate: &Candidate| candidate.from <= now && self.allows(candidate.repeated) <= now;
        let candidates = self.candidates();
        let turn = self.fresh_in_a_row.saturating_add(1) >= REPEAT_EVERY;
        let first = |one: &Candidate| {
            (one.repeated != turn, one.turn, if one.repeated { one.from } else { Timestamp::default() }, one.number)
        };
        candidates.into_iter().filter(due).min_by_key(first)
    }

    /// One for each distribution for which something waits and nothing stands in the way.
    fn candidates(&self) -> Vec<Candidate> {
        let mut waiting: BTreeMap<&DistributionId, Vec<&Job>> = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.is_waiting()) {
            waiting.entry(&job.own.order.distribution).or_default().push(job);
        }
        let blank = Lane::default();
        let candidate = |(distribution, waiting): (&DistributionId, Vec<&Job>)| {
            let lane = self.lanes.get(distribution).unwrap_or(&blank);
            let probing = || {
                self.jobs.values().any(|job| job.own.order.distribution == *distribution && job.stage == Stage::Calling)
            };
            let (job, from) = match &lane.refusal {
                Some(_) if probing() => return None,
                Some(refusal) => (newest(&waiting)?, refusal.until.max(lane.window)),
                None => (self.leader(&waiting)?, lane.opens()),
            };
            let repeated = lane.refusal.is_some() || job.repeats;
            let reference = job.own.order.reference.clone();
            let turn = waiting.iter().map(|job| self.turns.of(&job.own.order.subject)).min()?;
            Some(Candidate { from, turn, number: job.own.number, reference, repeated })
        };
        waiting.into_iter().filter_map(candidate).collect()
    }

    /// The newest of those that contain the first in turn: it takes along as many as it can, and however many come after it, the
    /// first in turn is never left behind.
    fn leader<'a>(&self, waiting: &[&'a Job]) -> Option<&'a Job> {
        let turn = |job: &&Job| (self.turns.of(&job.own.order.subject), job.own.number);
        let first = waiting.iter().copied().min_by_key(turn)?;
        let leads = waiting.iter().copied().filter(|job| job.own.contains(&first.own));
        Some(leads.max_by_key(|job| job.own.age()).unwrap_or(first))
    }

    /// From when on the account's pace allows a creation.
    fn allows(&self, repeated: bool) -> Timestamp {
        let turn = self.fresh_in_a_row.saturating_add(1) >= REPEAT_EVERY;
        self.governor.allows(if repeated && !turn { BURST_KEPT } else { 0 })
    }

    /// All that wait and that this one contains travel with it.
    fn cover_waiting(&mut self, reference: &Reference) {
        let Some(own) = self.jobs.get(reference).map(|job| job.own.clone()) else { return };
        let travels =
            |job: &&Job| job.is_waiting() && job.own.order.reference != own.order.reference && own.contains(&job.own);
        let covered: Vec<Reference> =
            self.jobs.values().filter(travels).map(|job| job.own.order.reference.clone()).collect();
        let jobs: Vec<Job> = covered.iter().filter_map(|reference| self.jobs.remove(reference)).collect();
        if let Some(job) = self.jobs.get_mut(reference) {
            job.covers.extend(jobs.into_iter().flat_map(|job| [job.own].into_iter().chain(job.covers)));
        }
    }

    fn created(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        id: InvalidationId,
        created_ms: Option<i64>,
    ) -> Vec<Effect> {
        let poll = Poll::begin(now, id.clone(), &self.pace);
        let Some(job) = self.jobs.get_mut(reference).filter(|job| !matches!(job.stage, Stage::Polling(_))) else {
            return Vec::new();
        };
        if let (Stage::Calling, Some(sent)) = (&job.stage, job.sent) {
            self.governor.granted(sent);
        }
        let is_spent = job.own.is_voted_after(created_ms);
        job.stage = Stage::Polling(poll);
        // The distribution answers: the others go on, and those that this one contains need not.
        if let Some(lane) = self.lanes.get_mut(&job.own.order.distribution) {
            lane.refusal = None;
            lane.throttled = None;
        }
        if is_spent {
            self.release(now, reference);
            return self.conclude(reference, &Progress::Spent(id));
        }
        self.cover_waiting(reference);
        let Some(job) = self.jobs.get_mut(reference) else { return Vec::new() };
        job.forget_failing();
        job.report_to_all()
    }

    fn create_failed(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        class: CdnErrorClass,
        why: String,
    ) -> Vec<Effect> {
        let Some(job) = self.jobs.get_mut(reference).filter(|job| job.stage == Stage::Calling) else {
            return Vec::new();
        };
        match class {
            CdnErrorClass::Throttled => {
                job.stage = Stage::Waiting;
                self.throttled(now, reference, why);
                Vec::new()
            }
            CdnErrorClass::TooManyInProgress | CdnErrorClass::Ambiguous => {
                (job.stage, job.repeats) = (Stage::Waiting, true);
                self.refused(now, reference, why, false)
            }
            CdnErrorClass::Denied | CdnErrorClass::Unexpected | CdnErrorClass::NoSuchInvalidation => {
                (job.stage, job.repeats) = (Stage::Waiting, true);
                self.refused(now, reference, why, true)
            }
            CdnErrorClass::ReferenceReused => {
                job.stage = Stage::Searching(Call::default());
                self.release(now, reference);
                Vec::new()
            }
            CdnErrorClass::Gone => self.conclude(reference, &Progress::Impossible(why)),
            CdnErrorClass::Refused => {
                self.release(now, reference);
                self.conclude(reference, &Progress::Impossible(why))
            }
        }
    }

    /// The account has had too many calls, ours or others': CloudFront has not looked at this one. It keeps its place among those
    /// that wait, and its namespace's turn. Should the cause be its distribution after all, it stands aside longer each time, and at
    /// least until another could be tried, so that it cannot hold up the others.
    fn throttled(&mut self, now: Timestamp, reference: &Reference, why: String) {
        let Some(job) = self.jobs.get(reference) else { return };
        self.governor.throttled(now, job.sent.unwrap_or(now));
        let Order { distribution, subject, .. } = &job.own.order;
        let lane = self.lanes.entry(distribution.clone()).or_default();
        lane.throttled(now, self.governor.allows(0), distribution, why);
        if job.repeats {
            self.fresh_in_a_row = REPEAT_EVERY.saturating_sub(1);
        } else {
            self.fresh_in_a_row = self.fresh_in_a_row.saturating_sub(1);
            self.turns.returned(subject);
        }
    }

    /// A distribution refuses us, or does not answer. If an operator has to act, every rollout that waits for it gets a
    /// report: only one of the purges is tried from now on.
    fn refused(&mut self, now: Timestamp, reference: &Reference, why: String, needs_help: bool) -> Vec<Effect> {
        let Some(job) = self.jobs.get(reference) else { return Vec::new() };
        let distribution = job.own.order.distribution.clone();
        let sent = job.sent.unwrap_or(now);
        let lane = self.lanes.entry(distribution.clone()).or_default();
        lane.refused(now, sent, &distribution, why, needs_help);
        let Some(why) = lane.why_failing() else { return Vec::new() };
        let waiting =
            self.jobs.values_mut().filter(|job| job.is_waiting() && job.own.order.distribution == distribution);
        waiting.flat_map(|job| job.tell_failing(why)).collect()
    }

    /// Covered orders go on by themselves: what became of the one they travelled with says nothing of them.
    fn release(&mut self, now: Timestamp, reference: &Reference) {
        let covers = self.jobs.get_mut(reference).map(|job| std::mem::take(&mut job.covers)).unwrap_or_default();
        for waiter in covers {
            let job = Job::new(now, waiter, &self.pace);
            self.jobs.insert(job.own.order.reference.clone(), job);
        }
    }

    /// It was created before, with what was sent then: that counts, not what would have been sent now.
    fn searched(&mut self, now: Timestamp, reference: &Reference, found: Option<Found>) -> Vec<Effect> {
        let asked = |job: &&mut Job| matches!(&job.stage, Stage::Searching(search) if search.is_asked());
        let Some(job) = self.jobs.get_mut(reference).filter(asked) else { return Vec::new() };
        let Some(Found { invalidation, sent, created_ms }) = found else {
            return self.conclude(reference, &Progress::DoneByOther);
        };
        job.own.order.paths = sent.clone();
        // Its time is unknown, so it covers no other purge.
        job.own.order.voted_at = None;
        let mut effects = self.created(now, reference, invalidation, created_ms);
        if let Some(job) = self.jobs.get(reference) {
            effects.push(job.tell_own(Progress::SentBefore(sent)));
        }
        effects
    }

    fn search_failed(&mut self, now: Timestamp, reference: &Reference) {
        let Some(Stage::Searching(search)) = self.jobs.get_mut(reference).map(|job| &mut job.stage) else { return };
        if search.is_asked() {
            search.repeat(retry::SERVICE.from(now, &reference.0));
        }
    }

    /// Asks about every invalidation whose time has come, looks again for those that were not found out, and reports what
    /// takes too long.
    fn look_after(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        let turn = self.waits_for_its_turn();
        for job in self.jobs.values_mut() {
            let (reference, distribution) = (job.own.order.reference.clone(), job.own.order.distribution.clone());
            let why = self.lanes.get(&distribution).and_then(Lane::why);
            let why = why.unwrap_or_else(|| if job.is_waiting() { &turn } else { "CloudFront does not answer" });
            effects.extend(job.tell_late(now, &self.pace, why));
            match &mut job.stage {
                Stage::Polling(poll) if poll.ask.is_due(now) => {
                    poll.ask.asked();
                    effects.push(Effect::Poll(reference, distribution, poll.id.clone()));
                }
                Stage::Searching(search) if search.is_due(now) => {
                    search.asked();
                    effects.push(Effect::Search(reference, distribution));
                }
                Stage::Waiting | Stage::Calling | Stage::Searching(_) | Stage::Polling(_) => {}
            }
        }
        effects
    }

    fn still(&mut self, now: Timestamp, reference: &Reference) {
        let first = self.pace.poll_first;
        if let Some(Stage::Polling(poll)) = self.jobs.get_mut(reference).map(|job| &mut job.stage) {
            poll.later(now, first);
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
                (job.stage, job.repeats) = (Stage::Waiting, true);
                job.sent = Some(now);
                job.tell_failing(&format!("{why}; it is created again under the same reference"))
            }
            CdnErrorClass::Gone => self.conclude(reference, &Progress::Impossible(why)),
            CdnErrorClass::Denied | CdnErrorClass::Unexpected | CdnErrorClass::Refused => job.tell_failing(&why),
            // A passing error of the poll never ends the wait.
            CdnErrorClass::Throttled
            | CdnErrorClass::TooManyInProgress
            | CdnErrorClass::Ambiguous
            | CdnErrorClass::ReferenceReused => Vec::new(),
        }
    }

    /// Reports the end of a purge and of those it covers, and forgets them.
    fn conclude(&mut self, reference: &Reference, progress: &Progress) -> Vec<Effect> {
        self.jobs.remove(reference).map_or_else(Vec::new, |job| job.tell_all(progress))
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        let waited_for =
            |distribution: &DistributionId| self.jobs.values().any(|job| job.own.order.distribution == *distribution);
        self.lanes.retain(|distribution, lane| !lane.is_blank(now) && (lane.is_open() || waited_for(distribution)));
        self.budgets.forget(now);
        if !self.jobs.values().any(Job::is_waiting) {
            self.turns = Turns::default();
        }
        self.governor.pass(now);
        let mut effects = self.send(now);
        if self.candidates().iter().any(|one| one.from <= now) {
            self.governor.wanted(now);
        }
        effects.extend(self.look_after(now));
        effects
    }
}

/// The newest that waits: the one whose success says most.
fn newest<'a>(waiting: &[&'a Job]) -> Option<&'a Job> {
    waiting.iter().copied().max_by_key(|job| job.own.age())
}

impl Machine for Purger {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Ordered(order) => self.ordered(now, order),
            Event::Created(reference, id, created_ms) => self.created(now, &reference, id, created_ms),
            Event::CreateFailed(reference, class, why) => self.create_failed(now, &reference, class, why),
            Event::StillInProgress(reference) => {
                self.still(now, &reference);
                Vec::new()
            }
            Event::Completed(reference) => self.conclude(&reference, &Progress::Completed),
            Event::PollFailed(reference, class, why) => self.poll_failed(now, &reference, class, why),
            Event::Searched(reference, found) => self.searched(now, &reference, found),
            Event::SearchFailed(reference, _) => {
                self.search_failed(now, &reference);
                Vec::new()
            }
            Event::Unheard(subject, reference, progress) => {
                self.unheard.keep(now, subject, reference, progress);
                Vec::new()
            }
        };
        effects.extend(self.advance(now));
        self.unheard.queue(now, effects)
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let effects = self.advance(now);
        self.unheard.queue(now, effects)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let sends = self.candidates().into_iter().map(|one| one.from.max(self.allows(one.repeated)));
        let looks = self.jobs.values().filter_map(|job| match &job.stage {
            Stage::Waiting | Stage::Calling => None,
            Stage::Searching(search) => search.deadline(),
            Stage::Polling(poll) => poll.ask.deadline(),
        });
        let late = self.jobs.values().filter_map(|job| job.late_at(&self.pace));
        sends.chain(looks).chain(late).chain(self.unheard.deadline()).min()
    }
}

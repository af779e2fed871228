//! The machine of purges: one job per creation, one lane per distribution, one governor.

use std::time::Duration;

use crate::purges::purge::account::{Account, Refused};
use crate::purges::purge::job::{Job, Poll, Stage, Waiter};
use crate::purges::purge::jobs::Jobs;
use crate::purges::purge::lane::Lane;
use crate::purges::purge::rate::Rate;
use crate::purges::purge::unheard::Unheard;
use crate::purges::purge::{CdnErrorClass, Effect, Event, Found, Order, Pace, Progress};
use kernel::call::Call;
use kernel::id::{InvalidationId, Reference, Subject};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use kernel::retry;

/// Repetitions leave so many of the burst to what is sent for the first time, so that a purge is not late because others
/// cannot be made.
const BURST_KEPT: u32 = 2;

/// The longest gap between two creations of one distribution. A release that takes a minute empties a cache six times by it.
const GAP_MAX: Duration = Duration::from_secs(10);

/// How long the others of a namespace wait for an order that is to send everything: its record is written first.
const WIDENED_WITHIN: Duration = Duration::from_secs(1);

/// The state of an order that waits while others may join it.
const COMPANY: &str = "waits briefly so that other purges can join it";

/// One creation in so many is a repetition, if one waits: however much is rolled out, what is owed gets its turn.
pub const REPEAT_EVERY: u32 = 8;

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purger {
    pace: Pace,
    jobs: Jobs,
    account: Account,
    /// First sendings since the last repetition.
    fresh_in_a_row: u32,
    orders: u64,
    unheard: Unheard,
}

impl Purger {
    /// A machine with nothing on its way.
    pub fn new(pace: Pace) -> Self {
        Self {
            account: Account::new(pace.creations_per_second, pace.creations_per_second_max),
            jobs: Jobs::new(pace.clone()),
            pace,
            fresh_in_a_row: 0,
            orders: 0,
            unheard: Unheard::default(),
        }
    }

    /// Purges on their way, each in words: what an operator reads while waiting.
    pub fn describe(&self, now: Timestamp) -> Vec<(Reference, DistributionId, String)> {
        let waiting = |job: &Job| {
            let lane = self.jobs.lanes.get(&job.own.order.distribution);
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
        self.jobs
            .iter()
            .map(|job| (job.own.order.reference.clone(), job.own.order.distribution.clone(), words(job)))
            .collect()
    }

    /// The creations a second that CloudFront grants us, as far as we know.
    pub fn rate(&self, now: Timestamp) -> Rate {
        let mut account = self.account.clone();
        account.pass(now);
        account.rate()
    }

    /// How many paths an order on its way has, of its own.
    pub fn paths_of(&self, reference: &Reference) -> Option<usize> {
        let own = self.jobs.get(reference).map(|job| &job.own);
        let order = own.or_else(|| self.jobs.covering(reference).map(|(_, waiter)| waiter)).map(|waiter| &waiter.order);
        order.map(|order| order.paths.len())
    }

    fn waits_for_its_turn(&self) -> String {
        format!("waits for its turn: CloudFront grants us about {}", self.account.rate().words())
    }

    fn ordered(&mut self, now: Timestamp, order: Order) -> Vec<Effect> {
        if let Some(job) = self.jobs.get(&order.reference) {
            let mut effects = job.progress(&job.own);
            let (is_waiting, reference) = (job.is_waiting(), order.reference);
            if let (true, Some(id)) = (is_waiting, order.invalidation) {
                // Another member has made it, or one that covers it.
                let poll = Poll::begin(now, id, &self.pace);
                self.jobs.change(now, &reference, |job| job.stage = Stage::Polling(poll));
            } else if is_waiting {
                // What is to be sent may have grown by what an older one owed.
                self.jobs.change(now, &reference, |job| job.own.order.paths = order.paths);
            } else if job.own.order.paths != order.paths {
                // Too late: it was sent as it was.
                effects.push(job.tell_own(Progress::SentBefore(job.own.order.paths.clone())));
            }
            return effects;
        }
        if let Some((job, waiter)) = self.jobs.covering(&order.reference) {
            return job.progress(waiter);
        }
        self.orders = self.orders.saturating_add(1);
        let distribution = order.distribution.clone();
        let mut job = Job::new(now, Waiter::new(now, order, self.orders), &self.pace);
        let mut effects = Vec::new();
        if job.is_waiting() && self.jobs.lanes.get(&distribution).is_some_and(|lane| lane.refusal.is_some()) {
            self.jobs.lanes.edit(now, &distribution, |lane| lane.hurry(now));
            let why = self.jobs.lanes.get(&distribution).and_then(Lane::why_failing);
            effects = why.map_or_else(Vec::new, |why| job.tell_failing(why));
        }
        if job.is_waiting() && self.jobs.lanes.budgets.tells(now, &job.own.order) {
            effects.push(job.tell_own(Progress::Spaced(job.own.order.purges_per_hour)));
        }
        self.jobs.put(now, job);
        effects
    }

    /// An owner says that the cause is mended: what refused is tried now, and what is not answered is asked for.
    fn retried(&mut self, now: Timestamp, subject: &Subject) {
        let concerned = self.jobs.iter().filter(|job| job.all().any(|waiter| waiter.order.subject == *subject));
        let concerned: Vec<(Reference, DistributionId)> =
            concerned.map(|job| (job.own.order.reference.clone(), job.own.order.distribution.clone())).collect();
        for (reference, distribution) in concerned {
            self.jobs.lanes.edit(now, &distribution, |lane| lane.try_now(now));
            self.jobs.change(now, &reference, |job| job.ask_now(now));
        }
    }

    /// Sends what is due and what the governor allows, each with those it contains.
    fn send(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some((reference, repeated)) = self.next_creation(now) {
            if let Some(order) = self.take_unaffordable(now, &reference) {
                effects.push(Effect::Report(order.subject, order.reference, Progress::OverBudget));
                continue;
            }
            self.fresh_in_a_row = if repeated { 0 } else { self.fresh_in_a_row.saturating_add(1) };
            let gap = self.gap();
            self.jobs.cover_waiting(now, &reference);
            let call = |job: &mut Job| {
                job.stage = Stage::Calling;
                let is_paid = job.sent.replace(now).is_some() && !job.repeats;
                (job.own.order.clone(), is_paid)
            };
            let Some((order, is_paid)) = self.jobs.change(now, &reference, call) else { break };
            self.account.spend(now, &order.paths);
            self.jobs.lanes.taken(&order.subject);
            if !is_paid {
                self.jobs.lanes.budgets.spend(now, &order);
            }
            self.jobs.lanes.edit(now, &order.distribution, |lane| lane.window = now.after(gap));
            effects.push(Effect::Create(order));
        }
        effects
    }

    /// How long the next creation of a distribution waits for company after one that is sent now: the more distributions are waited
    /// for, the longer. So what CloudFront grants serves different distributions first, and no cache is emptied again and again.
    fn gap(&self) -> Duration {
        let wanted = u32::try_from(self.jobs.lanes.wanted()).unwrap_or(u32::MAX).max(1);
        let longest = GAP_MAX.max(self.pace.debounce);
        self.pace.debounce.saturating_mul(wanted).min(longest)
    }

    /// Takes back an order of more than one path whose namespace has none left for its distribution in this hour, and says that
    /// everything is to be sent instead, which is one path. What was sent before is what it is.
    fn take_unaffordable(&mut self, now: Timestamp, reference: &Reference) -> Option<Order> {
        let widened = self.jobs.to_widen(now, reference);
        let is_too_much = |job: &&Job| {
            let affords = || self.jobs.lanes.budgets.affords(now, &job.own.order);
            job.sent.is_none() && job.own.order.paths.len() > 1 && !affords()
        };
        if widened.is_none() && self.jobs.get(reference).filter(is_too_much).is_none() {
            return None;
        }
        let taken = widened.as_ref().unwrap_or(reference);
        self.jobs.release(now, taken);
        let order = self.jobs.remove(now, taken)?.own.order;
        if widened.is_some() {
            // Until it is back, or for a while.
            let until = now.after(WIDENED_WITHIN);
            self.jobs.lanes.budgets.hold(&order, until);
            self.jobs.lanes.edit(now, &order.distribution, |_| ());
        }
        Some(order)
    }

    /// The order to send now, if any, and whether that is a repetition: new orders before sent ones; the namespaces in
    /// turn; and of one namespace each in the order in which it came.
    fn next_creation(&self, now: Timestamp) -> Option<(Reference, bool)> {
        let kinds = if self.is_turn_of_repetitions() { [true, false] } else { [false, true] };
        let first = |repeated: &bool| self.jobs.lanes.first(*repeated).filter(|_| self.allows(*repeated) <= now);
        let (repeated, (distribution, namespace)) = kinds.into_iter().find_map(|kind| Some((kind, first(&kind)?)))?;
        Some((self.jobs.leader(now, &distribution, &namespace)?, repeated))
    }

    const fn is_turn_of_repetitions(&self) -> bool {
        self.fresh_in_a_row.saturating_add(1) >= REPEAT_EVERY
    }

    /// From when on the account's pace allows a creation.
    fn allows(&self, repeated: bool) -> Timestamp {
        self.account.allows(if repeated && !self.is_turn_of_repetitions() { BURST_KEPT } else { 0 })
    }

    fn created(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        id: InvalidationId,
        created_ms: Option<i64>,
    ) -> Vec<Effect> {
        let Some(job) = self.jobs.get(reference).filter(|job| !matches!(job.stage, Stage::Polling(_))) else {
            return Vec::new();
        };
        if let (Stage::Calling, Some(sent)) = (&job.stage, job.sent) {
            self.account.granted(now, sent, &job.own.order.paths);
        }
        let (is_spent, distribution) = (job.own.is_voted_after(created_ms), job.own.order.distribution.clone());
        if job.stage == Stage::Calling {
            let order = job.own.order.clone();
            self.jobs.lanes.budgets.made(now, &order);
        }
        let poll = Poll::begin(now, id.clone(), &self.pace);
        let begin = |job: &mut Job| (job.called, job.stage) = (job.call_of(now, created_ms), Stage::Polling(poll));
        self.jobs.change(now, reference, begin);
        // The distribution answers: the others go on, and those that this one contains need not.
        let helped = self.jobs.lanes.edit(now, &distribution, |lane| {
            let helped = lane.why_failing().is_some();
            (lane.refusal, lane.throttled) = (None, None);
            helped
        });
        if helped {
            // One right is often that of many, and so is a token.
            self.jobs.lanes.try_refused(now);
        }
        if is_spent {
            self.jobs.release(now, reference);
            return self.jobs.conclude(now, reference, &Progress::Spent(id));
        }
        self.jobs.cover_waiting(now, reference);
        let tell = |job: &mut Job| {
            job.forget_failing();
            job.report_to_all()
        };
        self.jobs.change(now, reference, tell).unwrap_or_default()
    }

    fn create_failed(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        class: CdnErrorClass,
        why: String,
    ) -> Vec<Effect> {
        if self.jobs.get(reference).is_none_or(|job| job.stage != Stage::Calling) {
            return Vec::new();
        }
        let waits_again = |job: &mut Job| (job.stage, job.repeats) = (Stage::Waiting, true);
        match class {
            CdnErrorClass::Throttled | CdnErrorClass::TooManyInProgress => self.throttled(now, reference, class, why),
            CdnErrorClass::Ambiguous => {
                self.jobs.change(now, reference, waits_again);
                self.refused(now, reference, why, false)
            }
            CdnErrorClass::Denied | CdnErrorClass::Unexpected | CdnErrorClass::NoSuchInvalidation => {
                self.jobs.change(now, reference, waits_again);
                self.refused(now, reference, why, true)
            }
            CdnErrorClass::ReferenceReused => {
                self.jobs.change(now, reference, |job| job.stage = Stage::Searching(Call::due(now)));
                self.jobs.release(now, reference);
                Vec::new()
            }
            CdnErrorClass::Gone => self.jobs.conclude(now, reference, &Progress::Impossible(why)),
            CdnErrorClass::Refused => {
                self.jobs.release(now, reference);
                self.jobs.conclude(now, reference, &Progress::Impossible(why))
            }
        }
    }

    /// The account has had too much, of ours or of others: nothing was made of this one. It keeps its place among those that wait, and
    /// of a throttling its namespace's turn. Should the cause be its distribution after all, it stands aside longer each time, and at least
    /// until another could be tried, so that it cannot hold up the others. By a quota its lane is closed once others are granted what it is
    /// not, or it is refused twice in a row: several that are full would be tried in turns, and nothing else.
    fn throttled(&mut self, now: Timestamp, reference: &Reference, class: CdnErrorClass, why: String) -> Vec<Effect> {
        let Some(job) = self.jobs.get(reference) else { return Vec::new() };
        let (order, repeats, sent) = (job.own.order.clone(), job.repeats, job.sent.unwrap_or(now));
        let Order { distribution: of, paths, .. } = &order;
        let lane = self.jobs.lanes.get(of);
        let (before, is_closed) = (lane.and_then(Lane::throttled_at), lane.is_some_and(|lane| lane.refusal.is_some()));
        let of_quota = class == CdnErrorClass::TooManyInProgress;
        let is_its_own =
            of_quota && is_closed || self.account.refused(now, &Refused { sent, of, paths, class, before });
        if of_quota && (is_its_own || before.is_some()) {
            self.jobs.change(now, reference, |job| (job.stage, job.repeats) = (Stage::Waiting, true));
            return self.refused(now, reference, why, false);
        }
        self.jobs.change(now, reference, |job| job.stage = Stage::Waiting);
        let paused = self.account.allows(0);
        self.jobs.lanes.edit(now, of, |lane| lane.throttled(now, paused, of, why));
        if repeats {
            self.fresh_in_a_row = REPEAT_EVERY.saturating_sub(1);
        } else {
            self.fresh_in_a_row = self.fresh_in_a_row.saturating_sub(1);
            if !of_quota {
                self.jobs.lanes.returned(&order.subject);
            }
        }
        Vec::new()
    }

    /// A distribution refuses us, or does not answer. If an operator has to act, every rollout that waits for it gets a
    /// report: only one of the purges is tried from now on.
    fn refused(&mut self, now: Timestamp, reference: &Reference, why: String, needs_help: bool) -> Vec<Effect> {
        let Some(job) = self.jobs.get(reference) else { return Vec::new() };
        let distribution = job.own.order.distribution.clone();
        let sent = job.sent.unwrap_or(now);
        let why = self.jobs.lanes.edit(now, &distribution, |lane| {
            lane.refused(now, sent, &distribution, why, needs_help);
            lane.why_failing().map(str::to_owned)
        });
        why.map_or_else(Vec::new, |why| self.jobs.tell_failing(&distribution, &why))
    }

    /// It was created before, with what was sent then: that counts, not what would have been sent now.
    fn searched(&mut self, now: Timestamp, reference: &Reference, found: Option<Found>) -> Vec<Effect> {
        let asked = |job: &&Job| matches!(&job.stage, Stage::Searching(search) if search.is_asked());
        if self.jobs.get(reference).filter(asked).is_none() {
            return Vec::new();
        }
        let Some(Found { invalidation, sent, created_ms }) = found else {
            return self.jobs.conclude(now, reference, &Progress::DoneByOther);
        };
        self.jobs.change(now, reference, |job| {
            job.own.order.paths = sent.clone();
            // Its time is unknown, so it covers no other purge.
            job.own.order.voted_at = None;
        });
        let mut effects = self.created(now, reference, invalidation, created_ms);
        effects.extend(self.jobs.get(reference).map(|job| job.tell_own(Progress::SentBefore(sent))));
        effects
    }

    fn search_failed(&mut self, now: Timestamp, reference: &Reference) {
        self.jobs.change(now, reference, |job| match &mut job.stage {
            Stage::Searching(search) if search.is_asked() => search.repeat(retry::MENDED.from(now, &reference.0)),
            Stage::Waiting | Stage::Calling | Stage::Searching(_) | Stage::Polling(_) => {}
        });
    }

    /// Asks about every invalidation whose time has come, looks again for those that were not found out, and reports what
    /// takes too long.
    fn look_after(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for reference in self.jobs.due(now) {
            let Some(job) = self.jobs.get(&reference) else { continue };
            let lane = self.jobs.lanes.get(&job.own.order.distribution).and_then(Lane::why);
            let why = match lane {
                Some(why) => why.to_owned(),
                None if job.is_waiting() => self.waits_for_its_turn(),
                None => "CloudFront does not answer".to_owned(),
            };
            let pace = &self.pace;
            let looked = self.jobs.change(now, &reference, |job| {
                let distribution = job.own.order.distribution.clone();
                let mut effects = job.tell_late(now, pace, &why);
                match &mut job.stage {
                    Stage::Polling(poll) if poll.ask.is_due(now) => {
                        poll.ask.asked();
                        effects.push(Effect::Poll(reference.clone(), distribution, poll.id.clone()));
                    }
                    Stage::Searching(search) if search.is_due(now) => {
                        search.asked();
                        effects.push(Effect::Search(reference.clone(), distribution));
                    }
                    Stage::Waiting | Stage::Calling | Stage::Searching(_) | Stage::Polling(_) => {}
                }
                effects
            });
            effects.extend(looked.unwrap_or_default());
        }
        effects
    }

    fn still(&mut self, now: Timestamp, reference: &Reference) {
        let first = self.pace.poll_first;
        self.jobs.change(now, reference, |job| {
            if let Stage::Polling(poll) = &mut job.stage {
                poll.later(now, first);
            }
        });
    }

    fn poll_failed(&mut self, now: Timestamp, reference: &Reference, class: CdnErrorClass, why: String) -> Vec<Effect> {
        self.still(now, reference);
        if self.jobs.get(reference).is_none_or(|job| !matches!(job.stage, Stage::Polling(_))) {
            return Vec::new();
        }
        let told = match class {
            CdnErrorClass::NoSuchInvalidation => self.jobs.change(now, reference, |job| job.lost(now, &why)),
            CdnErrorClass::Gone => Some(self.jobs.conclude(now, reference, &Progress::Impossible(why))),
            CdnErrorClass::Denied | CdnErrorClass::Unexpected | CdnErrorClass::Refused => {
                self.jobs.change(now, reference, |job| job.tell_failing(&why))
            }
            // A passing error of the poll never ends the wait.
            CdnErrorClass::Throttled
            | CdnErrorClass::TooManyInProgress
            | CdnErrorClass::Ambiguous
            | CdnErrorClass::ReferenceReused => None,
        };
        told.unwrap_or_default()
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        self.jobs.lanes.pass(now);
        self.jobs.lanes.budgets.forget(now);
        self.account.pass(now);
        let mut effects = self.send(now);
        if [false, true].into_iter().any(|repeated| self.jobs.lanes.are_ready(repeated)) {
            self.account.wanted(now);
        }
        effects.extend(self.look_after(now));
        effects
    }
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
            Event::Completed(reference) => {
                let called = self.jobs.get(&reference).and_then(|job| job.called);
                self.jobs.conclude(now, &reference, &Progress::Completed(called))
            }
            Event::PollFailed(reference, class, why) => self.poll_failed(now, &reference, class, why),
            Event::Searched(reference, found) => self.searched(now, &reference, found),
            Event::SearchFailed(reference, _) => {
                self.search_failed(now, &reference);
                Vec::new()
            }
            Event::Retried(subject) => {
                self.retried(now, &subject);
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
        let lanes = &self.jobs.lanes;
        let ready = [false, true].into_iter().filter(|repeated| lanes.are_ready(*repeated));
        let ready = ready.map(|repeated| self.allows(repeated));
        let later = lanes.deadline().map(|at| at.max(self.allows(false)));
        ready.chain(later).chain(self.jobs.deadline()).chain(self.unheard.deadline()).min()
    }
}

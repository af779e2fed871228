//! One purge on its way, as the machine of purges keeps it.

use std::time::Duration;

use crate::purges::purge::{Effect, Order, Pace, Progress};
use kernel::call::Call;
use kernel::id::InvalidationId;
use kernel::machine::{Timestamp, millis};

/// Polling slows down by this and no further: completion is noticed within 30 s, and a stalled purge costs two calls a
/// minute.
const POLL_EVERY_MAX: Duration = Duration::from_secs(30);

/// How often an invalidation just created may be unknown to CloudFront before it is created again (decision 17).
const UNKNOWN_TOLERATED: u32 = 3;

/// How far a voter's clock may be from AWS's. AWS refuses requests that are signed five minutes off, fifteen at some services
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html>), so a clock that got an answer is closer.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(15 * 60);

/// How far CloudFront's clock may be from ours, in milliseconds, for a call to be known as the one that made an invalidation: nodes and
/// AWS follow the same time to parts of a second, and another member begins five seconds later (`group.takeover`).
const CALL_APART_MS: i64 = 2_000;

/// One creation on its way, and all that wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) own: Waiter,
    pub(super) stage: Stage,
    /// When its creation was last sent in this life.
    pub(super) sent: Option<Timestamp>,
    /// The one call that CloudFront made it by, where that was one of this life.
    pub(super) called: Option<Timestamp>,
    /// CloudFront may have looked at it already, so sending it is a repetition. One that was throttled was not looked at.
    pub(super) repeats: bool,
    pub(super) covers: Vec<Waiter>,
}

/// A purge that a rollout waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiter {
    pub(super) order: Order,
    /// Counts orders: the newest has the highest number.
    pub(super) number: u64,
    /// When it was ordered.
    pub(super) arrived: Timestamp,
    /// Why an operator has to act, as reported; once is enough.
    pub(super) failing: Option<String>,
    /// It was reported as not created in time; once is enough.
    pub(super) overdue: bool,
    /// It was reported as stalled; once is enough, even if it has to be created again.
    pub(super) stalled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// To be sent, for the first time or again, when its distribution's lane lets it.
    Waiting,
    /// Its creation is under way.
    Calling,
    /// The reference is being looked for among the recent invalidations.
    Searching(Call),
    /// Created; its completion is awaited.
    Polling(Poll),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Poll {
    pub(super) id: InvalidationId,
    pub(super) since: Timestamp,
    pub(super) ask: Call,
    pub(super) unknown: u32,
}

impl Poll {
    pub(super) fn begin(now: Timestamp, id: InvalidationId, pace: &Pace) -> Self {
        Self { id, since: now, ask: Call::due(now.after(pace.poll_first)), unknown: 0 }
    }

    /// It is still in progress, or did not answer: asked again half as long again later, so a long wait costs few calls
    /// and its end is never noticed later than after a third of the time waited.
    pub(super) fn later(&mut self, now: Timestamp, first: Duration) {
        let wait = |polls| Duration::from_millis(millis(first).saturating_mul(u64::from(polls) + 2) / 2);
        self.ask.repeat(|polls| now.after(wait(polls).min(POLL_EVERY_MAX)));
    }
}

impl Waiter {
    /// Whether an invalidation that was created then was there before the vote for this purge. Both are times of the wall: no clock of
    /// ours that stands still while a machine sleeps takes part.
    pub(super) fn is_voted_after(&self, created_ms: Option<i64>) -> bool {
        let apart_ms = i64::try_from(millis(CLOCKS_APART_MAX)).unwrap_or(i64::MAX);
        let is_earlier = |created_ms: i64| self.order.voted_ms.saturating_sub(created_ms) > apart_ms;
        self.order.voted_ms != 0 && created_ms.is_some_and(is_earlier)
    }

    pub(super) const fn new(now: Timestamp, order: Order, number: u64) -> Self {
        Self { order, number, arrived: now, failing: None, overdue: false, stalled: false }
    }

    /// Orders by how late they can have been decided: those with unknown times come first.
    pub(super) fn age(&self) -> (Option<Timestamp>, u64) {
        (self.order.voted_at, self.number)
    }

    /// When its rollout was certainly complete.
    fn complete_by(&self) -> Timestamp {
        self.order.voted_at.unwrap_or(self.arrived)
    }

    /// Whether a purge of this one certainly purges `other` too: it has its paths, and `other` was complete before any member
    /// can have created this one. So an earlier invalidation with this reference, which CloudFront would return to us, cannot
    /// be older than `other`. For a vote of an earlier life this is unknown.
    pub(super) fn contains(&self, other: &Self) -> bool {
        self.order.distribution == other.order.distribution
            && self.order.paths.covers(&other.order.paths)
            && self.order.voted_at.is_some_and(|uncreated| other.complete_by() <= uncreated)
    }

    fn report(&self, progress: Progress) -> Effect {
        Effect::Report(self.order.subject.clone(), self.order.reference.clone(), progress)
    }
}

impl Job {
    pub(super) fn new(now: Timestamp, own: Waiter, pace: &Pace) -> Self {
        let stage = match &own.order.invalidation {
            Some(id) => Stage::Polling(Poll::begin(now, id.clone(), pace)),
            None => Stage::Waiting,
        };
        Self { own, stage, sent: None, called: None, repeats: false, covers: Vec::new() }
    }

    /// The call under way, if that is the one by which CloudFront made it at `created_ms` by its clock. What it made for another member, or
    /// for a call whose answer was lost, it hands out again: that is older than this call.
    pub(super) fn call_of(&self, now: Timestamp, created_ms: Option<i64>) -> Option<Timestamp> {
        let (sent, created_ms) = (self.sent.filter(|_| self.stage == Stage::Calling && !self.repeats)?, created_ms?);
        let wall_ms = |at: Timestamp| {
            let ordered_ms = self.own.order.ordered_ms;
            ordered_ms.saturating_add(i64::try_from(at.since(self.own.arrived).as_millis()).unwrap_or(i64::MAX))
        };
        let (from, to) = (wall_ms(sent).saturating_sub(CALL_APART_MS), wall_ms(now).saturating_add(CALL_APART_MS));
        (from..=to).contains(&created_ms).then_some(sent)
    }

    pub(super) fn namespace(&self) -> &str {
        self.own.order.subject.namespace()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.stage == Stage::Waiting
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Waiter> {
        [&self.own].into_iter().chain(&self.covers)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Waiter> {
        [&mut self.own].into_iter().chain(&mut self.covers)
    }

    /// How far it is, as this one (its own or a covered one) should see it; nothing but troubles before it exists.
    pub(super) fn progress(&self, waiter: &Waiter) -> Vec<Effect> {
        let progress = match &self.stage {
            Stage::Polling(poll) if waiter.order.reference == self.own.order.reference => {
                Some(Progress::Created(poll.id.clone()))
            }
            Stage::Polling(poll) => {
                Some(Progress::Covered { by: self.own.order.reference.clone(), invalidation: poll.id.clone() })
            }
            Stage::Waiting | Stage::Calling | Stage::Searching(_) => None,
        };
        let failing = waiter.failing.clone().map(Progress::Failing);
        progress.into_iter().chain(failing).map(|progress| waiter.report(progress)).collect()
    }

    pub(super) fn report_to_all(&self) -> Vec<Effect> {
        self.all().flat_map(|waiter| self.progress(waiter)).collect()
    }

    pub(super) fn tell_own(&self, progress: Progress) -> Effect {
        self.own.report(progress)
    }

    pub(super) fn tell_all(&self, progress: &Progress) -> Vec<Effect> {
        self.all().map(|waiter| waiter.report(progress.clone())).collect()
    }

    /// Reports to each order, once, that an operator has to act.
    pub(super) fn tell_failing(&mut self, why: &str) -> Vec<Effect> {
        let untold = self.all_mut().filter(|waiter| waiter.failing.is_none());
        let told = untold.map(|waiter| {
            waiter.failing = Some(why.to_owned());
            waiter.report(Progress::Failing(why.to_owned()))
        });
        told.collect()
    }

    /// Repeats its pending question now.
    pub(super) fn ask_now(&mut self, now: Timestamp) {
        match &mut self.stage {
            Stage::Searching(search) => search.hurry(now),
            Stage::Polling(poll) => poll.ask.hurry(now),
            Stage::Waiting | Stage::Calling => {}
        }
    }

    /// CloudFront does not know the invalidation: after some such answers it is created again.
    pub(super) fn lost(&mut self, now: Timestamp, why: &str) -> Vec<Effect> {
        let Stage::Polling(poll) = &mut self.stage else { return Vec::new() };
        poll.unknown = poll.unknown.saturating_add(1);
        if poll.unknown < UNKNOWN_TOLERATED {
            return Vec::new();
        }
        (self.stage, self.called, self.repeats, self.sent) = (Stage::Waiting, None, true, Some(now));
        self.tell_failing(&format!("{why}; it is created again under the same reference"))
    }

    /// No operator has to act any more.
    pub(super) fn forget_failing(&mut self) {
        self.all_mut().for_each(|waiter| waiter.failing = None);
    }

    /// Tells each that its creation, or else its completion, takes too long, once.
    pub(super) fn tell_late(&mut self, now: Timestamp, pace: &Pace, why: &str) -> Vec<Effect> {
        let since = self.polling_since();
        let mut effects = Vec::new();
        for waiter in self.all_mut() {
            let waited = now.since(since.unwrap_or(waiter.arrived));
            let told = if since.is_some() { &mut waiter.stalled } else { &mut waiter.overdue };
            if waited < pace.completion_timeout || std::mem::replace(told, true) {
                continue;
            }
            let late = since.map_or_else(|| Progress::Overdue(why.to_owned()), |_| Progress::Stalled(waited));
            effects.push(waiter.report(late));
        }
        effects
    }

    /// When something is to be done about it beside its creation.
    pub(super) fn deadline(&self, pace: &Pace) -> Option<Timestamp> {
        let look = match &self.stage {
            Stage::Waiting | Stage::Calling => None,
            Stage::Searching(search) => search.deadline(),
            Stage::Polling(poll) => poll.ask.deadline(),
        };
        self.late_at(pace).into_iter().chain(look).min()
    }

    /// When the next waiter is reported as late.
    fn late_at(&self, pace: &Pace) -> Option<Timestamp> {
        let since = self.polling_since();
        let told = |waiter: &&Waiter| if since.is_some() { waiter.stalled } else { waiter.overdue };
        let untold = self.all().filter(|waiter| !told(waiter));
        untold.map(|waiter| since.unwrap_or(waiter.arrived).after(pace.completion_timeout)).min()
    }

    const fn polling_since(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Polling(poll) => Some(poll.since),
            Stage::Waiting | Stage::Calling | Stage::Searching(_) => None,
        }
    }
}

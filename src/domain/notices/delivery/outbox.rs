//! The machine that gets deliveries to their receivers.
//!
//! ```text
//!  Told ─▶ Waiting ──due, and stored──▶ Ready ──room in its queue──▶ Sending ──2xx──▶ Done ─▶ Remove
//!             ▲                                                        │ │
//!             └───────────── failed, schedule goes on ─────────────────┘ └─ given up ─▶ Dead ──Resend──▶ Waiting
//! ```
//!
//! 1. A notice is accepted when every delivery of it is in the ledger, and not before.
//! 2. Nothing is sent that the ledger does not have, and no delivery twice at once.
//! 3. Nothing leaves the ledger but what was delivered, or what a bound dropped and a report names.
//! 4. A queue's troubles stay in it: its places, its room and its pause are its own.
//! 5. Memory, attempts and writes under way are bounded by [`Limits`] and the constants here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::delivered::Delivered;
use super::entry::{Entry, Stage};
use super::index::OutboxIndex;
use super::settings::{Limits, Overflow, Settings};
use super::{Delivery, Effect, Event, Outcome, Reply, Report, Resend, SCHEDULE, State};
use kernel::id::{NoticeId, Subject};
use kernel::machine::{Machine, Timestamp};
use kernel::retry;
use kernel::text;

/// Attempts under way at once for all hooks. With one place for a failing hook, so many hooks may hang before any other
/// waits for them; each costs a socket and at most 64 KiB of answer.
pub const SENDING_MAX: usize = 64;

/// Ledger writes under way at once. The ledger gathers writes of one moment, so this is about one object's worth.
pub const WRITES_MAX: usize = 64;

/// Without an answer for this long, an effect was lost. Twice what the notifier allows an attempt at most, and far more
/// than the ledger's own time-out.
pub const LOST_AFTER: Duration = Duration::from_secs(120);

/// The longest a receiver's Retry-After is believed: a day, like the longest step of [`SCHEDULE`].
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The longest a delivery from an earlier life waits. How long it had waited already is not known (no decision uses the
/// wall clock), and starting over with 24 h would never end for a process that is restarted daily.
pub const RESTORED_WAIT_MAX: Duration = Duration::from_hours(1);

/// Characters of a reason that are kept; enough for a sentence with a host name in it.
const REASON_CHARS_MAX: usize = 300;

/// Entries that only the ledger still has to forget, beyond which none is dropped for a newer one: while the ledger does
/// not answer, dropping would make no room. They are small: their content is gone.
const DONE_MAX: usize = 4096;

/// Deliveries asked for again that are remembered until the ledger was read: all that it can hold by the usual [`Limits`].
const EARLY_MAX: usize = 22_000;

/// All deliveries on their way, and the dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outbox {
    settings: Settings,
    index: OutboxIndex,
    /// Notices not accepted yet, with their deliveries that are not durable.
    notices: BTreeMap<NoticeId, BTreeSet<String>>,
    delivered: Delivered,
    /// The ledger was read. Until then an unknown delivery may be one of an earlier life.
    restored: bool,
    /// Requests to send again before that: subject and delivery, with the time of the request.
    early: BTreeMap<(Subject, String), String>,
}

/// How full the outbox is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Deliveries on their way, those being sent included.
    pub live: usize,
    pub sending: usize,
    pub dead: usize,
    /// Ledger writes under way.
    pub writing: usize,
    /// Bytes of deliveries on their way and dead letters, as [`Delivery::size_bytes`] counts.
    pub bytes: usize,
    /// Notices not accepted yet.
    pub notices: usize,
}

impl Machine for Outbox {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Restored(deliveries) => {
                for delivery in deliveries {
                    self.restore(now, delivery, &mut effects);
                }
                self.restored = true;
                for ((subject, id), at) in std::mem::take(&mut self.early) {
                    self.resend(now, &subject, &id, &at, &mut effects);
                }
            }
            Event::Told { notice, deliveries } => self.tell(now, notice, deliveries, &mut effects),
            Event::Stored { id, write } => self.stored(&id, write, &mut effects),
            Event::StoreFailed { id, write } | Event::RemoveFailed { id, write } => self.write_failed(now, &id, write),
            Event::Answered { id, attempt, reply } => self.answered(now, &id, attempt, &reply, &mut effects),
            Event::Removed { id, write } => self.removed(&id, write),
            Event::Resend { subject, request: Resend { at, deliveries } } => {
                for id in deliveries {
                    self.resend(now, &subject, &id, &at, &mut effects);
                }
            }
        }
        self.settle(now, &mut effects);
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.settle(now, &mut effects);
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.index.deadline()
    }
}

impl Outbox {
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// How full it is.
    pub fn census(&self) -> Census {
        Census {
            live: self.index.live(),
            sending: self.index.sending(),
            dead: self.index.dead(),
            writing: self.index.writing(),
            bytes: self.index.live_bytes() + self.index.dead_bytes(),
            notices: self.notices.len(),
        }
    }

    /// Every delivery that is on its way or a dead letter, with its due time where it waits for that, or for its hook's
    /// pause.
    pub fn deliveries(&self) -> impl Iterator<Item = (&Delivery, Option<Timestamp>)> {
        self.index.entries().filter(|entry| entry.stage != Stage::Done).map(|entry| match entry.stage {
            Stage::Waiting { due } | Stage::Ready { due } => {
                let rest = self.index.queue(&entry.delivery.hook).and_then(|queue| queue.resting_until);
                (&entry.delivery, Some(rest.map_or(due, |rest| rest.max(due))))
            }
            Stage::Sending { .. } | Stage::Dead | Stage::Done => (&entry.delivery, None),
        })
    }

    /// The hooks that want nothing more, and why.
    pub fn disabled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.index.queues().filter_map(|(hook, queue)| Some((hook, queue.disabled.as_deref()?)))
    }

    fn restore(&mut self, now: Timestamp, delivery: Delivery, effects: &mut Vec<Effect>) {
        let id = delivery.id.clone();
        let wait = delivery.wait(self.schedule(&delivery.hook)).unwrap_or(RESTORED_WAIT_MAX);
        let due = now.after(wait.min(RESTORED_WAIT_MAX));
        let stage = if delivery.is_dead() { Stage::Dead } else { Stage::Waiting { due } };
        match self.index.get(&id).map(|entry| entry.stage) {
            None => self.index.insert(Entry::new(delivery, true), stage),
            // The notice arrived before the ledger had been read: the ledger's state counts.
            Some(Stage::Waiting { .. } | Stage::Ready { .. }) => {
                if let Some(told) = self.index.delivery_mut(&id) {
                    *told = delivery;
                }
                self.index.enter(&id, stage);
                self.index.request_write(&id);
            }
            // It is further than the ledger knows.
            Some(Stage::Sending { .. } | Stage::Dead | Stage::Done) => {}
        }
        self.mark_durable(&id, effects);
        self.drop_dead_over_bound(effects);
    }

    fn tell(&mut self, now: Timestamp, notice: NoticeId, deliveries: Vec<Delivery>, effects: &mut Vec<Effect>) {
        let earlier = self.notices.remove(&notice);
        if earlier.is_none() && self.notices.len() >= self.settings.limits.notices {
            effects.push(Effect::Postponed(notice));
            return;
        }
        let told_before = earlier.is_some();
        let mut undurable = earlier.unwrap_or_default();
        let mut postponed = false;
        for delivery in deliveries {
            let id = delivery.id.clone();
            match self.index.get(&id) {
                Some(entry) if entry.durable || entry.stage == Stage::Done => continue,
                Some(_) => {}
                // It was durable when the notice arrived before, and was delivered since.
                None if told_before && !undurable.contains(&id) => continue,
                None if self.delivered.contains(&id) => continue,
                None => postponed |= !self.admit(now, delivery, effects),
            }
            undurable.insert(id);
        }
        // Taking one in may have dropped another of them.
        undurable.retain(|id| self.index.get(id).is_none_or(|entry| !entry.durable && entry.stage != Stage::Done));
        if postponed {
            effects.push(Effect::Postponed(notice.clone()));
        }
        if undurable.is_empty() {
            effects.push(Effect::Accepted(notice));
        } else {
            self.notices.insert(notice, undurable);
        }
    }

    /// Takes a new delivery in if there is room.
    fn admit(&mut self, now: Timestamp, mut delivery: Delivery, effects: &mut Vec<Effect>) -> bool {
        let id = delivery.id.clone();
        let disabled = self.index.queue(&delivery.hook).and_then(|queue| queue.disabled.clone());
        let stage = if let Some(reason) = disabled {
            effects.push(report(&delivery, Outcome::Dead { reason: reason.clone() }));
            delivery.state = State::Dead { reason };
            Stage::Dead
        } else {
            while !self.has_room(&delivery) {
                if !self.drop_oldest(&delivery.hook, effects) {
                    let reason = "the outbox has no room for more deliveries of this hook".to_owned();
                    effects.push(report(&delivery, Outcome::Postponed { reason }));
                    return false;
                }
            }
            let wait = delivery.wait(self.schedule(&delivery.hook)).unwrap_or_default();
            Stage::Waiting { due: now.after(wait) }
        };
        self.index.insert(Entry::new(delivery, false), stage);
        self.index.request_write(&id);
        self.drop_dead_over_bound(effects);
        true
    }

    /// A hook may hold as much as is free, so one dead receiver fills half the outbox, two fill two thirds, and there is
    /// always room for another (dynamic thresholds, <https://doi.org/10.1109/90.664262>).
    fn has_room(&self, delivery: &Delivery) -> bool {
        let Limits { live, live_bytes, dead: _, dead_bytes: _, notices: _ } = self.settings.limits;
        let (held, held_bytes) =
            self.index.queue(&delivery.hook).map_or((0, 0), |queue| (queue.live.len(), queue.bytes));
        held < live.saturating_sub(self.index.live())
            && held_bytes.saturating_add(delivery.size_bytes()) <= live_bytes.saturating_sub(self.index.live_bytes())
    }

    /// Makes room by dropping what has waited longest for the same hook, if policy allows and something waits.
    fn drop_oldest(&mut self, hook: &str, effects: &mut Vec<Effect>) -> bool {
        if self.settings.overflow == Overflow::Postpone || self.index.done() >= DONE_MAX {
            return false;
        }
        let waits = |id: &str| match self.index.get(id).map(|entry| entry.stage) {
            Some(Stage::Waiting { .. } | Stage::Ready { .. }) => true,
            Some(Stage::Sending { .. } | Stage::Dead | Stage::Done) | None => false,
        };
        let oldest = self.index.queue(hook).and_then(|queue| queue.live.iter().find(|(_, id)| waits(id)));
        let Some((_, id)) = oldest.cloned() else { return false };
        self.drop_undelivered(&id, "a newer delivery of the same hook took its place in the full outbox", effects);
        true
    }

    fn drop_dead_over_bound(&mut self, effects: &mut Vec<Effect>) {
        let Limits { dead, dead_bytes, .. } = self.settings.limits;
        while self.index.dead() > dead || self.index.dead_bytes() > dead_bytes {
            let Some(id) = self.index.oldest_dead().map(str::to_owned) else { return };
            self.drop_undelivered(&id, "a newer dead letter took its place", effects);
        }
    }

    fn drop_undelivered(&mut self, id: &str, reason: &str, effects: &mut Vec<Effect>) {
        if let Some(Entry { delivery, .. }) = self.index.get(id) {
            effects.push(report(delivery, Outcome::Dropped { reason: reason.to_owned() }));
            let notice = delivery.notice.clone();
            self.finish(id);
            self.resolve(&notice, id, effects);
        }
    }

    fn stored(&mut self, id: &str, write: u64, effects: &mut Vec<Effect>) {
        // The answer of a write that already counts as lost makes it durable, and ends nothing.
        self.index.end_write(id, write);
        self.mark_durable(id, effects);
    }

    /// The ledger has it.
    fn mark_durable(&mut self, id: &str, effects: &mut Vec<Effect>) {
        self.index.make_durable(id);
        if let Some(notice) = self.index.get(id).map(|entry| entry.delivery.notice.clone()) {
            self.resolve(&notice, id, effects);
        }
    }

    /// A delivery needs no more waiting for: it is durable, or dropped.
    fn resolve(&mut self, notice: &NoticeId, id: &str, effects: &mut Vec<Effect>) {
        let Some(undurable) = self.notices.get_mut(notice) else { return };
        undurable.remove(id);
        if undurable.is_empty() {
            self.notices.remove(notice);
            effects.push(Effect::Accepted(notice.clone()));
        }
    }

    fn removed(&mut self, id: &str, write: u64) {
        if self.index.end_write(id, write) {
            self.index.erase(id);
        }
    }

    fn write_failed(&mut self, now: Timestamp, id: &str, write: u64) {
        self.index.fail_write(id, write, |tries| now.after(retry::SERVICE.delay(tries, id)));
    }

    fn answered(&mut self, now: Timestamp, id: &str, attempt: u32, reply: &Reply, effects: &mut Vec<Effect>) {
        let Some(entry) = self.index.get(id) else { return };
        let is_current = attempt == entry.delivery.attempts.saturating_add(1);
        match entry.stage {
            Stage::Sending { .. } if is_current => self.ended(now, id, reply, effects),
            // An attempt that counts as failed already. If it was delivered after all, that is good news nevertheless.
            Stage::Waiting { .. } | Stage::Ready { .. } | Stage::Dead => match reply {
                Reply::Delivered { .. } => self.ended(now, id, reply, effects),
                Reply::Refused { .. }
                | Reply::Gone
                | Reply::Failed { .. }
                | Reply::Blocked { .. }
                | Reply::UnknownHook => {}
            },
            // The attempt that is under way now will answer itself, or there is nothing left to deliver.
            Stage::Sending { .. } | Stage::Done => {}
        }
    }

    /// An attempt has ended.
    fn ended(&mut self, now: Timestamp, id: &str, reply: &Reply, effects: &mut Vec<Effect>) {
        let Some(delivery) = self.index.delivery_mut(id) else { return };
        delivery.attempts = delivery.attempts.saturating_add(1);
        let delivery = delivery.clone();
        let queue = self.index.queue_mut(&delivery.hook);
        queue.failing = !matches!(reply, Reply::Delivered { .. });
        let reason = shortened(&reply.to_string());
        let retry_after = match reply {
            Reply::Delivered { status } => {
                effects.push(report(&delivery, Outcome::Delivered { status: *status }));
                self.delivered.remember(id);
                return self.finish(id);
            }
            Reply::Gone => return self.disable(&delivery, &reason, effects),
            Reply::Blocked { .. } | Reply::UnknownHook => return self.give_up(id, &reason, effects),
            Reply::Refused { retry_after, .. } => retry_after.unwrap_or_default().min(RETRY_AFTER_MAX),
            Reply::Failed { .. } => Duration::ZERO,
        };
        if let Some(disabled) = queue.disabled.clone() {
            return self.give_up(id, &disabled, effects);
        }
        if !retry_after.is_zero() {
            queue.resting_until = queue.resting_until.max(Some(now.after(retry_after)));
        }
        let Some(wait) = delivery.wait(self.schedule(&delivery.hook)) else {
            let given_up = format!("given up after {} attempts, the last one: {reason}", delivery.attempts);
            return self.give_up(id, &given_up, effects);
        };
        let after = wait.max(retry_after);
        if let Some(delivery) = self.index.delivery_mut(id) {
            delivery.trouble.clone_from(&reason);
        }
        effects.push(report(&delivery, Outcome::Retrying { after, reason }));
        self.index.enter(id, Stage::Waiting { due: now.after(after) });
        self.index.request_write(id);
    }

    /// The receiver wants nothing more: nothing more is sent, and what waits becomes dead letters.
    fn disable(&mut self, gone: &Delivery, reason: &str, effects: &mut Vec<Effect>) {
        let queue = self.index.queue_mut(&gone.hook);
        if queue.disabled.replace(reason.to_owned()).is_none() {
            effects.push(report(gone, Outcome::HookDisabled { reason: reason.to_owned() }));
        }
        let live: Vec<String> = queue.live.iter().map(|(_, id)| id.clone()).collect();
        for id in live {
            let stage = self.index.get(&id).map(|entry| entry.stage);
            // Another attempt that is under way may still be taken; if not, it is buried when it is answered.
            if id == gone.id || !matches!(stage, Some(Stage::Sending { .. })) {
                self.give_up(&id, reason, effects);
            }
        }
    }

    fn give_up(&mut self, id: &str, reason: &str, effects: &mut Vec<Effect>) {
        let Some(delivery) = self.index.delivery_mut(id) else { return };
        delivery.state = State::Dead { reason: reason.to_owned() };
        effects.push(report(delivery, Outcome::Dead { reason: reason.to_owned() }));
        self.index.enter(id, Stage::Dead);
        self.index.request_write(id);
        self.drop_dead_over_bound(effects);
    }

    /// A request sends a delivery once, however often it is seen. It is for what is about its own subject: who may write on one has
    /// no say over another.
    fn resend(&mut self, now: Timestamp, subject: &Subject, id: &str, at: &str, effects: &mut Vec<Effect>) {
        if !self.restored {
            // The ledger's state counts, also for a delivery whose notice arrived again meanwhile.
            if self.early.len() < EARLY_MAX {
                self.early.insert((subject.clone(), id.to_owned()), at.to_owned());
            }
            return;
        }
        let Some(stage) = self.index.get(id).map(|entry| entry.stage) else { return };
        let is_meant = |delivery: &&mut Delivery| stage != Stage::Done && delivery.subject == *subject;
        let Some(delivery) = self.index.delivery_mut(id).filter(is_meant) else { return };
        if delivery.asked.replace(at.to_owned()).as_deref() == Some(at) {
            return;
        }
        match stage {
            Stage::Dead | Stage::Waiting { .. } | Stage::Ready { .. } => {
                delivery.attempts = 0;
                delivery.state = State::Pending;
                let delivery = delivery.clone();
                effects.push(report(&delivery, Outcome::Resent));
                self.index.queue_mut(&delivery.hook).disabled = None;
                self.index.enter(id, Stage::Waiting { due: now });
            }
            // It is being sent: that is what was asked for.
            Stage::Sending { .. } | Stage::Done => {}
        }
        self.index.request_write(id);
    }

    /// Delivered or dropped: only the ledger still has to forget it.
    fn finish(&mut self, id: &str) {
        self.index.enter(id, Stage::Done);
        self.index.request_write(id);
    }

    /// Does what is due and starts what there is room for. Every step ends here and leaves nothing to do at this instant.
    fn settle(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        while let Some(id) = self.index.due(now) {
            self.on_alarm(now, &id, effects);
        }
        self.index.wake_lanes(now);
        while self.index.sending() < SENDING_MAX {
            let Some(id) = self.index.next_send() else { break };
            self.index.enter(&id, Stage::Sending { lost_at: now.after(LOST_AFTER) });
            if let Some(Entry { delivery, .. }) = self.index.get(&id) {
                let attempt = delivery.attempts.saturating_add(1);
                effects.push(Effect::Send { delivery: delivery.clone(), attempt });
            }
        }
        while self.index.writing() < WRITES_MAX {
            let Some((entry, write)) = self.index.begin_write(now.after(LOST_AFTER)) else { break };
            let delivery = entry.delivery.clone();
            effects.push(if entry.stage == Stage::Done {
                Effect::Remove { id: delivery.id, write }
            } else {
                Effect::Store { delivery, write }
            });
        }
        self.index.tidy_queues();
    }

    /// Something about the entry is due by time alone.
    fn on_alarm(&mut self, now: Timestamp, id: &str, effects: &mut Vec<Effect>) {
        self.index.repeat_write(now, id);
        let Some(entry) = self.index.get(id) else { return };
        match entry.stage {
            Stage::Waiting { due } if entry.durable && due <= now => self.index.enter(id, Stage::Ready { due }),
            Stage::Sending { lost_at } if lost_at <= now => {
                let reason = format!("the attempt did not end within {} s", LOST_AFTER.as_secs());
                self.ended(now, id, &Reply::Failed { reason }, effects);
            }
            Stage::Waiting { .. } | Stage::Ready { .. } | Stage::Sending { .. } | Stage::Dead | Stage::Done => {}
        }
    }

    fn schedule(&self, hook: &str) -> &[Duration] {
        self.settings.schedules.get(hook).map_or(SCHEDULE.as_slice(), Vec::as_slice)
    }
}

fn report(delivery: &Delivery, outcome: Outcome) -> Effect {
    let Delivery { id, hook, kind, subject, attempts, .. } = delivery.clone();
    Effect::Report(Report { id, hook, kind, subject, attempts, outcome })
}

fn shortened(reason: &str) -> String {
    text::phrase(reason, REASON_CHARS_MAX).to_owned()
}

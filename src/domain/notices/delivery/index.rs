//! The outbox's bookkeeping: every entry, and the indices and counts over them, changed together or not at all.
//!
//! Decides nothing; that is [`super::outbox`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use super::entry::{Entry, Stage, Write};
use super::hook_queue::HookQueue;
use super::{Content, Delivery};
use kernel::machine::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OutboxIndex {
    entries: BTreeMap<String, Entry>,
    /// By hook. One that remembers nothing is not kept.
    queues: BTreeMap<String, HookQueue>,
    /// [`Entry::deadline`] of every entry that has one.
    alarms: BTreeSet<(Timestamp, String)>,
    /// Entries whose write waits for a place, in order.
    writes: VecDeque<String>,
    writing: usize,
    /// Writes begun so far.
    written: u64,
    sending: usize,
    live: usize,
    live_bytes: usize,
    /// Dead letters, oldest first.
    dead: BTreeSet<(i64, String)>,
    dead_bytes: usize,
    /// The hook that was served last; the next in order is served next.
    served: String,
}

impl OutboxIndex {
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// A delivery, for changing how often it was tried and whether it still is.
    pub fn delivery_mut(&mut self, id: &str) -> Option<&mut Delivery> {
        self.entries.get_mut(id).map(|entry| &mut entry.delivery)
    }

    /// All entries, in the order of their ids.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The queue of a hook, if it remembers anything.
    pub fn queue(&self, hook: &str) -> Option<&HookQueue> {
        self.queues.get(hook)
    }

    /// The queue of a hook.
    pub fn queue_mut(&mut self, hook: &str) -> &mut HookQueue {
        self.queues.entry(hook.to_owned()).or_default()
    }

    /// All queues that remember anything, by hook.
    pub fn queues(&self) -> impl Iterator<Item = (&str, &HookQueue)> {
        self.queues.iter().map(|(hook, queue)| (hook.as_str(), queue))
    }

    /// Deliveries on their way.
    pub fn live(&self) -> usize {
        self.live
    }

    pub fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    pub fn dead_bytes(&self) -> usize {
        self.dead_bytes
    }

    /// The oldest dead letter.
    pub fn oldest_dead(&self) -> Option<&str> {
        self.dead.first().map(|(_, id)| id.as_str())
    }

    /// Entries that only the ledger still has to forget.
    pub fn done(&self) -> usize {
        self.entries.len().saturating_sub(self.live).saturating_sub(self.dead.len())
    }

    pub fn sending(&self) -> usize {
        self.sending
    }

    pub fn writing(&self) -> usize {
        self.writing
    }

    /// When something is next due by time alone.
    pub fn deadline(&self) -> Option<Timestamp> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        self.queues.values().filter_map(HookQueue::deadline).chain(alarm).min()
    }

    /// An entry about which something is due at this instant.
    pub fn due(&self, now: Timestamp) -> Option<String> {
        self.alarms.first().filter(|(at, _)| *at <= now).map(|(_, id)| id.clone())
    }

    /// Ends all pauses that are over.
    pub fn wake_lanes(&mut self, now: Timestamp) {
        self.queues.values_mut().for_each(|queue| queue.wake(now));
    }

    /// Forgets queues that remember nothing.
    pub fn tidy_queues(&mut self) {
        self.queues.retain(|_, queue| !queue.is_idle());
    }

    /// The delivery that is sent next: of the next queue in turn that has room.
    pub fn next_send(&mut self) -> Option<String> {
        let after = (Bound::Excluded(self.served.as_str()), Bound::Unbounded);
        let mut queues = self.queues.range::<str, _>(after).chain(&self.queues);
        let (hook, id) = queues.find_map(|(hook, queue)| Some((hook.clone(), queue.next()?.1.clone())))?;
        self.served = hook;
        Some(id)
    }

    /// Takes an entry in.
    pub fn insert(&mut self, entry: Entry, stage: Stage) {
        let id = entry.delivery.id.clone();
        self.entries.insert(id.clone(), entry);
        self.enter(&id, stage);
    }

    /// Forgets an entry that only the ledger still had to forget.
    pub fn erase(&mut self, id: &str) {
        if let Some(alarm) = self.entries.remove(id).and_then(|entry| entry.alarm) {
            self.alarms.remove(&(alarm, id.to_owned()));
        }
    }

    /// Moves an entry to another stage; the only place where stages are counted.
    pub fn enter(&mut self, id: &str, stage: Stage) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let size = entry.size_bytes;
        let queue = self.queues.entry(entry.delivery.hook.clone()).or_default();
        let aged = (entry.delivery.created_ms, id.to_owned());
        if entry.stage.is_live() {
            queue.live.remove(&aged);
            queue.bytes = queue.bytes.saturating_sub(size);
            self.live = self.live.saturating_sub(1);
            self.live_bytes = self.live_bytes.saturating_sub(size);
        }
        match entry.stage {
            Stage::Ready { due } => _ = queue.ready.remove(&(due, id.to_owned())),
            Stage::Sending { .. } => {
                queue.sending = queue.sending.saturating_sub(1);
                self.sending = self.sending.saturating_sub(1);
            }
            Stage::Dead => {
                self.dead.remove(&aged);
                self.dead_bytes = self.dead_bytes.saturating_sub(size);
            }
            Stage::Waiting { .. } | Stage::Done => {}
        }
        if stage.is_live() {
            queue.live.insert(aged.clone());
            queue.bytes += size;
            self.live += 1;
            self.live_bytes += size;
        }
        match stage {
            Stage::Ready { due } => _ = queue.ready.insert((due, id.to_owned())),
            Stage::Sending { .. } => {
                queue.sending += 1;
                self.sending += 1;
            }
            Stage::Dead => {
                self.dead.insert(aged);
                self.dead_bytes += size;
            }
            // Only its id is needed from here on.
            Stage::Done => entry.delivery.content = Content::Parameters,
            Stage::Waiting { .. } => {}
        }
        entry.stage = stage;
        self.rearm(id);
    }

    /// Notes that the ledger has the entry in some state.
    pub fn make_durable(&mut self, id: &str) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.durable = true;
            self.rearm(id);
        }
    }

    /// Asks for the ledger to be brought up to date, now or after the write that is under way.
    pub fn request_write(&mut self, id: &str) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        entry.dirty = true;
        if entry.write == Write::Idle {
            entry.write = Write::Queued;
            self.writes.push_back(id.to_owned());
        }
    }

    /// The entry whose write has waited longest, noted as under way until `lost_at`, and the number of that write.
    pub fn begin_write(&mut self, lost_at: Timestamp) -> Option<(&Entry, u64)> {
        while let Some(id) = self.writes.pop_front() {
            let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.write == Write::Queued) else { continue };
            entry.dirty = false;
            self.written = self.written.saturating_add(1);
            let number = self.written;
            entry.write = Write::Underway { lost_at, number };
            self.writing += 1;
            self.rearm(&id);
            return self.entries.get(&id).map(|entry| (entry, number));
        }
        None
    }

    /// Notes that a write has ended well. `false`: it was not under way any more, so nothing ended.
    pub fn end_write(&mut self, id: &str, number: u64) -> bool {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.is_writing(number)) else { return false };
        entry.write = Write::Idle;
        entry.tries = 0;
        let dirty = entry.dirty;
        self.writing = self.writing.saturating_sub(1);
        if dirty {
            self.request_write(id);
        }
        self.rearm(id);
        true
    }

    /// Notes that a write has failed; `wait` says when it is repeated, from how often it failed.
    pub fn fail_write(&mut self, id: &str, number: u64, wait: impl FnOnce(u32) -> Timestamp) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.is_writing(number)) else { return };
        entry.tries = entry.tries.saturating_add(1);
        entry.write = Write::Resting { until: wait(entry.tries) };
        self.writing = self.writing.saturating_sub(1);
        self.rearm(id);
    }

    /// Repeats a write whose pause is over, or that counts as lost.
    pub fn repeat_write(&mut self, now: Timestamp, id: &str) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        match entry.write {
            Write::Underway { lost_at, .. } if lost_at <= now => self.writing = self.writing.saturating_sub(1),
            Write::Resting { until } if until <= now => {}
            Write::Underway { .. } | Write::Resting { .. } | Write::Idle | Write::Queued => return,
        }
        entry.write = Write::Idle;
        self.request_write(id);
        self.rearm(id);
    }

    /// Keeps the index of alarms in step with an entry that changed.
    fn rearm(&mut self, id: &str) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let deadline = entry.deadline();
        if entry.alarm == deadline {
            return;
        }
        if let Some(at) = std::mem::replace(&mut entry.alarm, deadline) {
            self.alarms.remove(&(at, id.to_owned()));
        }
        if let Some(at) = deadline {
            self.alarms.insert((at, id.to_owned()));
        }
    }
}

//! Getting changes into one shard: those of one moment travel together, a quiet shard is written at once.
//!
//! ```text
//! store ──▶ queue ──▶ lock ──▶ pause ──▶ apply all that is queued to the copy ──▶ PUT ──▶ answer all ──▶ fold, if due
//!                      │                        ▲                                  │ 409, lost answer
//!             another call answered us          └───────────── read afresh ◀───────┘
//! ```
//!
//! There is no task behind this. The caller that gets the shard's lock leads: it writes for every caller that is queued by then,
//! and they find their answer when their wait ends. A leader that is dropped in the middle leaves no answer; its followers queue
//! again, which is harmless because storing twice is. The copy of the shard is thrown away before every write and put back after
//! it succeeded, so that a write of unknown outcome is always followed by a read. And a refusal is only ever given after a fresh
//! read: the copy may be old. (That there is no room is believed of a copy for a minute.) Once nothing in a large shard is in flight any
//! more, its copy goes: at 10,000 workloads, those of all shards would be a tenth of our memory.
//!
//! If the records of a workload turn out to be elsewhere, its change gets no answer: the waiting caller finds out where they are,
//! and queues it there. If a shard is crowded, the applied changes are dropped, and its largest namespace moves out first
//! ([`ShardStore::relieve`]).

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, oneshot};
use tokio::time::Instant;

use super::maps::Failed;
use super::shard::{Applied, Change, Shard, Unwritten};
use kernel::id::WorkloadId;
use purge::ports::{PortError, Retry, StoreError};

/// Time between two writes of one shard that is written all the time (decision 13): a storm of rollouts costs 20 writes a
/// second and shard.
pub(super) const WRITE_SPACING: Duration = Duration::from_millis(50);

/// Writes of a shard that may follow each other at once before [`WRITE_SPACING`] applies: as many as a rollout makes, so that one that
/// is alone never waits.
const WRITES_BURST: u32 = 8;

/// Writes under way at once, over all shards. At 10 ms each this is 800 a second, and what waits here joins the next
/// write of its shard, so a slower server gets larger writes and not more of them.
pub(super) const WRITES_AT_ONCE_MAX: usize = 8;

/// Attempts after another writer was first. With n other writers one of n + 1 succeeds at each turn; there is one other
/// at most, during an upgrade (D1), so seven failures in a row mean that something is wrong, and the caller gets an
/// error.
const ATTEMPTS_MAX: u32 = 7;

/// Back-off after the first conflict, doubled with every further one, and spread over its upper half.
const BACKOFF: Duration = Duration::from_millis(10);

/// How long we trust a copy that says the shard is full: each reading of a full shard is 1 MiB, and refused callers
/// retry.
const FULL_FOR: Duration = Duration::from_secs(60);

/// How long a shard does without a journal after the API server refused to create one, by a quota for example. Each attempt costs a
/// request; a shard without one costs more bytes, and nothing else.
const PLAIN_FOR: Duration = Duration::from_secs(600);

/// What the API server has of one shard.
#[derive(Debug, Default)]
pub(super) struct ShardCopy {
    pub(super) shard: Shard,
    /// The `resourceVersion` its base had then; `None` while there is no such object.
    pub(super) version: Option<String>,
    /// The same of its journal.
    pub(super) journal: Option<String>,
    /// What of it was found to be lost by this reading, in words.
    pub(super) lost: Vec<String>,
}

/// Reading and writing one shard, each in one call; the calls differ, the order of them is this module's.
pub(super) trait ShardStore {
    fn read(&self) -> impl Future<Output = Result<ShardCopy, PortError>> + Send;
    /// Writes its base if that is still what was read, or creates it if there was none: returns the new `resourceVersion`.
    fn write(&self, copy: &ShardCopy) -> impl Future<Output = Result<String, Failed>> + Send;
    /// The same of its journal.
    fn write_journal(&self, copy: &ShardCopy) -> impl Future<Output = Result<String, Failed>> + Send;
    /// A name for a journal that no object had before; `None`: not now.
    fn name_journal(&self) -> Option<String>;
    /// Whether a namespace can be moved out of it.
    fn is_divisible(&self) -> bool;
    /// Notes which namespaces are elsewhere.
    fn note(&self, shard: &Shard);
    /// Gives a namespace an object of its own, and returns the shard without that namespace, which is to be written. `spare` is what an
    /// attempt that failed has left.
    fn relieve(
        &self,
        copy: ShardCopy,
        namespace: &str,
        spare: &mut Option<Spare>,
    ) -> impl Future<Output = Result<ShardCopy, Failed>> + Send;
}

/// An object that was made for a namespace; the shard may name it or not.
#[derive(Clone, Debug)]
pub(super) struct Spare {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The writes under way over all shards.
#[derive(Debug)]
pub(super) struct Writes(Semaphore);

impl Default for Writes {
    fn default() -> Self {
        Self(Semaphore::new(WRITES_AT_ONCE_MAX))
    }
}

type Answer = Result<(), StoreError>;

/// A change that waits to be written.
#[derive(Debug)]
struct Intent {
    workload: WorkloadId,
    change: Change,
    answer: oneshot::Sender<Answer>,
}

/// Where an answer will come.
pub(super) struct Waiting(oneshot::Receiver<Answer>);

/// One shard: what is queued for it, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct ShardQueue {
    queue: Mutex<Vec<Intent>>,
    held: AsyncMutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    copy: Option<ShardCopy>,
    spacing: Spacing,
    /// When it was last read.
    read: Option<Instant>,
    spare: Option<Spare>,
    /// The name of a journal that may exist, and that the base may not name.
    begun: Option<String>,
    /// No journal is begun before: the last one was refused.
    plain_until: Option<Instant>,
}

/// When a shard may be written: a bucket of [`WRITES_BURST`], in the form that needs one number.
#[derive(Debug, Default)]
struct Spacing {
    spent_until: Option<Instant>,
}

impl Spacing {
    async fn wait(&self) {
        if let Some(until) = self.spent_until {
            tokio::time::sleep_until(until - WRITE_SPACING * (WRITES_BURST - 1)).await;
        }
    }

    fn spend(&mut self) {
        let now = Instant::now();
        self.spent_until = Some(self.spent_until.map_or(now, |until| until.max(now)) + WRITE_SPACING);
    }
}

impl ShardQueue {
    /// Queues a change; the caller must then [`ShardQueue::settle`] it.
    pub(super) fn enqueue(&self, workload: WorkloadId, change: Change) -> Waiting {
        let (answer, waiting) = oneshot::channel();
        self.queue().push(Intent { workload, change, answer });
        Waiting(waiting)
    }

    /// Waits until a queued change was written, or leads the write itself. `None` if the leader was dropped: then the
    /// outcome is unknown, and queueing the change again settles it.
    pub(super) async fn settle(&self, waiting: Waiting, store: &impl ShardStore, writes: &Writes) -> Option<Answer> {
        let Waiting(mut waiting) = waiting;
        let mut held = tokio::select! {
            biased;
            answer = &mut waiting => return answer.ok(),
            held = self.held.lock() => held,
        };
        match waiting.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Closed) => return None,
            Err(TryRecvError::Empty) => held.lead(&self.queue, store, writes).await,
        }
        drop(held);
        waiting.await.ok()
    }

    /// Looks at the shard as the API server has it now, or, if a copy will do, as it was when last read.
    pub(super) async fn look<T>(
        &self,
        fresh: bool,
        store: &impl ShardStore,
        look: impl FnOnce(&Shard) -> T + Send,
    ) -> Result<T, PortError> {
        let mut held = self.held.lock().await;
        let copy = match held.copy.take().filter(|_| !fresh) {
            Some(copy) => copy,
            None => held.read(store).await?,
        };
        let seen = look(&copy.shard);
        held.copy = Some(copy);
        Ok(seen)
    }

    /// Takes over what a listing said of the shard, unless it is large and at rest.
    pub(super) async fn adopt(&self, copy: ShardCopy) {
        self.held.lock().await.copy = Some(copy).filter(|copy| !copy.shard.is_large_and_rests());
    }

    /// Forgets what is known of it: the cluster was set back.
    pub(super) async fn forget(&self) {
        self.held.lock().await.copy = None;
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Intent>> {
        lock(&self.queue)
    }
}

/// A panic elsewhere cannot leave the queue half-changed: it is only pushed to and taken whole.
fn lock(queue: &Mutex<Vec<Intent>>) -> MutexGuard<'_, Vec<Intent>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    /// Writes all that is queued, and answers it.
    async fn lead(&mut self, queue: &Mutex<Vec<Intent>>, store: &impl ShardStore, writes: &Writes) {
        // What is stored in this very turn of the scheduler gets the chance to come along.
        tokio::task::yield_now().await;
        self.spacing.wait().await;
        // A closed semaphore (it never is) would only mean that nothing bounds the writes.
        let _permit = writes.0.acquire().await.ok();
        let mut intents = std::mem::take(&mut *lock(queue));
        // Skip callers that gave up: they may no longer want the change.
        intents.retain(|intent| !intent.answer.is_closed());
        if let Err(error) = self.write(&mut intents, store).await {
            for intent in intents {
                drop(intent.answer.send(Err(error.clone())));
            }
        }
        if let Some(copy) = self.copy.take_if(|copy| copy.shard.is_due_to_fold()) {
            // It changes no record: if it fails, the next write that leaves a record at rest tries again.
            match self.fold(copy, store).await {
                Ok(copy) => self.copy = Some(copy),
                Err(failed) => tracing::debug!(?failed, "a journal of the ledger could not be folded"),
            }
        }
        let is_plain = self.plain_until.is_some_and(|until| Instant::now() < until);
        if lock(queue).is_empty() && !is_plain {
            drop(self.copy.take_if(|copy| copy.shard.is_large_and_rests()));
        }
    }

    /// Answers intents and takes them out until none is left. On an error those that are left have no answer yet.
    async fn write(&mut self, intents: &mut Vec<Intent>, store: &impl ShardStore) -> Result<(), StoreError> {
        let mut conflicts = 0;
        while !intents.is_empty() {
            let known = self.copy.take();
            let fresh = known.is_none();
            let mut copy = match known {
                Some(copy) => copy,
                None => self.read(store).await?,
            };
            let begins =
                intents.iter().any(|intent| intent.change.is_of_flight()) && self.begin(&mut copy.shard, store);
            let applied: Vec<Applied> =
                intents.iter().map(|intent| copy.shard.apply(&intent.workload, &intent.change)).collect();
            if !fresh && applied.iter().any(|applied| self.is_doubtful(applied)) {
                continue; // The copy was taken out above, so this reads.
            }
            let written = if store.is_divisible() && is_crowded(&copy.shard, &applied) {
                self.relieve(copy, store).await
            } else {
                if applied.iter().any(|applied| matches!(applied, Applied::UnreachableLedger)) {
                    store.note(&copy.shard);
                }
                *intents = answer_settled(std::mem::take(intents), applied);
                if intents.is_empty() {
                    self.copy = Some(copy);
                    return Ok(());
                }
                let written = self.put(copy, store).await;
                written.inspect(|_| intents.drain(..).for_each(|intent| drop(intent.answer.send(Ok(())))))
            };
            match written {
                Ok(copy) => self.copy = Some(copy),
                Err(Failed::Conflict(_)) if conflicts < ATTEMPTS_MAX => {
                    conflicts += 1;
                    tokio::time::sleep(spread(BACKOFF * 2_u32.pow(conflicts - 1))).await;
                }
                // The base does not name what was refused, so it counts as it is, and is written as a small one would be.
                Err(Failed::Other(error)) if begins && error.retry == Retry::Never => self.do_without_journal(&error),
                Err(Failed::Lost(error)) => return Err(StoreError::Lost(error)),
                Err(Failed::NoRoom(error)) => return Err(StoreError::NoRoom(error)),
                Err(Failed::Conflict(error) | Failed::Other(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Gives a large shard its journal, if it has none yet and may have one. Returns whether it did.
    fn begin(&mut self, shard: &mut Shard, store: &impl ShardStore) -> bool {
        if !shard.wants_journal() || self.plain_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        self.begun = self.begun.take().or_else(|| store.name_journal());
        self.begun.clone().into_iter().for_each(|name| shard.begin_journal(name));
        self.begun.is_some()
    }

    fn do_without_journal(&mut self, refused: &PortError) {
        self.plain_until = Some(Instant::now() + PLAIN_FOR);
        tracing::warn!(
            error = %refused,
            "a part of the ledger may have no journal beside it; nothing is lost, but each write of it is as large as the part; \
             tried again in {} minutes",
            PLAIN_FOR.as_secs() / 60
        );
    }

    /// Writes what of it is not written yet. The journal first: what a base does not name yet does not count.
    async fn put(&mut self, mut copy: ShardCopy, store: &impl ShardStore) -> Result<ShardCopy, Failed> {
        self.spacing.spend();
        let Unwritten { base, journal } = copy.shard.unwritten;
        if journal {
            copy.journal = Some(store.write_journal(&copy).await?);
        }
        if base {
            copy.version = Some(store.write(&copy).await?);
        }
        self.begun = None;
        copy.shard.unwritten = Unwritten::default();
        Ok(copy)
    }

    /// Moves what is at rest from the journal to the base. The base first: what it does not have yet stays in the journal.
    async fn fold(&mut self, mut copy: ShardCopy, store: &impl ShardStore) -> Result<ShardCopy, Failed> {
        self.spacing.spend();
        copy.shard.fold();
        copy.version = Some(store.write(&copy).await?);
        copy.journal = Some(store.write_journal(&copy).await?);
        copy.shard.unwritten = Unwritten::default();
        Ok(copy)
    }

    async fn read(&mut self, store: &impl ShardStore) -> Result<ShardCopy, PortError> {
        let copy = store.read().await?;
        self.read = Some(Instant::now());
        Ok(copy)
    }

    /// Whether a copy that may be old is no reason for this.
    fn is_doubtful(&self, applied: &Applied) -> bool {
        match applied {
            Applied::Refused(_) => true,
            Applied::Full(_) => self.read.is_none_or(|read| read.elapsed() >= FULL_FOR),
            Applied::Changed | Applied::Unchanged | Applied::UnreachableLedger => false,
        }
    }

    /// Moves the largest namespace out, by what is there and what was to be written. Nothing of the latter is kept: it is applied
    /// again to whatever it belongs to then.
    async fn relieve(&mut self, planned: ShardCopy, store: &impl ShardStore) -> Result<ShardCopy, Failed> {
        let there = self.read(store).await?;
        store.note(&there.shard);
        let Some(namespace) = planned.shard.largest().filter(|namespace| !there.shard.is_moved(namespace)) else {
            // Another writer has moved it.
            return Ok(there);
        };
        let divided = store.relieve(there, &namespace, &mut self.spare).await?;
        let divided = self.put(divided, store).await?;
        self.spare = None;
        store.note(&divided.shard);
        // With a journal, the base still has what was moved.
        if divided.shard.journal.is_some() { self.fold(divided, store).await } else { Ok(divided) }
    }
}

/// Whether a namespace is to be moved out before anything is written.
fn is_crowded(shard: &Shard, applied: &[Applied]) -> bool {
    let crowded = shard.is_crowded() || applied.iter().any(|applied| matches!(applied, Applied::Full(_)));
    crowded && shard.largest().is_some()
}

/// Answers what needs no write, and returns the rest.
fn answer_settled(intents: Vec<Intent>, applied: Vec<Applied>) -> Vec<Intent> {
    let mut rest = Vec::new();
    for (intent, applied) in intents.into_iter().zip(applied) {
        match applied {
            Applied::Changed => rest.push(intent),
            Applied::Unchanged => drop(intent.answer.send(Ok(()))),
            Applied::Refused(error) => drop(intent.answer.send(Err(error))),
            Applied::Full(error) => drop(intent.answer.send(Err(StoreError::NoRoom(error)))),
            // Without an answer it is queued again, where it belongs.
            Applied::UnreachableLedger => drop(intent),
        }
    }
    rest
}

/// Between half of `wait` and all of it. Two writers that collided must not do so again; any randomness will do, and if
/// there is none, none.
fn spread(wait: Duration) -> Duration {
    let share = getrandom::u32().unwrap_or_default() % 512;
    wait / 2 + wait * share / 1024
}

#[cfg(test)]
mod tests;

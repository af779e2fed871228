//! Getting changes into one shard: those of one moment travel together, a quiet shard is written at once.
//!
//! ```text
//! store ──▶ queue ──▶ lock ──▶ pause ──▶ apply all that is queued to the copy ──▶ PUT ──▶ answer all
//!                      │                        ▲                                  │ 409, lost answer
//!             another call answered us          └───────────── read afresh ◀───────┘
//! ```
//!
//! There is no task behind this. The caller that gets the shard's lock leads: it writes for every caller that is queued by then,
//! and they find their answer when their wait ends. A leader that is dropped in the middle leaves no answer; its followers queue
//! again, which is harmless because storing twice is. The copy of the shard is thrown away before every write and put back after
//! it succeeded, so that a write of unknown outcome is always followed by a read. And a refusal is only ever given after a fresh
//! read: the copy may be old. (That there is no room is believed of a copy for a minute.)
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
use super::shard::{Applied, Change, Shard};
use domain::id::WorkloadId;
use domain::ports::{PortError, StoreError};

/// Shortest time between the starts of two writes of one shard (decision 13). One rollout that stores twice in a row
/// waits for it once, which leaves the promised 250 ms room for both writes; a storm of rollouts costs 20 writes a second
/// and shard at most.
pub(super) const WRITE_SPACING: Duration = Duration::from_millis(50);

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

/// What the API server has of one shard.
#[derive(Debug)]
pub(super) struct ShardCopy {
    /// Its content.
    pub(super) shard: Shard,
    /// The `resourceVersion` it had then; `None` while there is no such object.
    pub(super) version: Option<String>,
}

/// Reading and writing one shard, each in one call; the calls differ, the order of them is this module's.
pub(super) trait ShardStore {
    /// Reads it afresh.
    fn read(&self) -> impl Future<Output = Result<ShardCopy, PortError>> + Send;
    /// Writes it if it is still what was read, or creates it if there was none: returns the new `resourceVersion`.
    fn write(&self, copy: &ShardCopy) -> impl Future<Output = Result<String, Failed>> + Send;
    /// Whether a namespace can be moved out of it.
    fn is_divisible(&self) -> bool;
    /// Notes which namespaces are elsewhere.
    fn note(&self, shard: &Shard);
    /// Gives a namespace an object of its own, if the shard is still what was read; returns it without that namespace. `spare` is
    /// what an attempt that failed has left.
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
    /// When the last write began.
    written: Option<Instant>,
    /// When it was last read.
    read: Option<Instant>,
    spare: Option<Spare>,
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

    /// Takes over what a listing said of the shard.
    pub(super) async fn adopt(&self, copy: ShardCopy) {
        self.held.lock().await.copy = Some(copy);
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
        if let Some(written) = self.written {
            tokio::time::sleep_until(written + WRITE_SPACING).await;
        }
        // A closed semaphore (it never is) would only mean that nothing bounds the writes.
        let _permit = writes.0.acquire().await.ok();
        let mut intents = std::mem::take(&mut *lock(queue));
        // A caller that does not wait any more may have thought better of it.
        intents.retain(|intent| !intent.answer.is_closed());
        if let Err(error) = self.write(&mut intents, store).await {
            for intent in intents {
                drop(intent.answer.send(Err(error.clone())));
            }
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
            let applied: Vec<Applied> =
                intents.iter().map(|intent| copy.shard.apply(&intent.workload, &intent.change)).collect();
            if !fresh && applied.iter().any(|applied| self.is_doubtful(applied)) {
                continue; // The copy was taken out above, so this reads.
            }
            let written = if store.is_divisible() && is_crowded(&copy.shard, &applied) {
                self.written = Some(Instant::now());
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
                self.written = Some(Instant::now());
                let written = store.write(&copy).await;
                written.map(|version| {
                    intents.drain(..).for_each(|intent| drop(intent.answer.send(Ok(()))));
                    ShardCopy { version: Some(version), ..copy }
                })
            };
            match written {
                Ok(copy) => self.copy = Some(copy),
                Err(Failed::Conflict(_)) if conflicts < ATTEMPTS_MAX => {
                    conflicts += 1;
                    tokio::time::sleep(spread(BACKOFF * 2_u32.pow(conflicts - 1))).await;
                }
                Err(Failed::Lost(error)) => return Err(StoreError::Lost(error)),
                Err(Failed::NoRoom(error)) => return Err(StoreError::NoRoom(error)),
                Err(Failed::Conflict(error) | Failed::Other(error)) => return Err(error.into()),
            }
        }
        Ok(())
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
        match planned.shard.largest().filter(|namespace| !there.shard.is_moved(namespace)) {
            Some(namespace) => store.relieve(there, &namespace, &mut self.spare).await,
            // Another writer has moved it.
            None => Ok(there),
        }
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
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::future::join_all;

    use super::*;
    use domain::record::Record;
    use domain::record_codec::decode;

    const LATENCY: Duration = Duration::from_millis(10);

    /// An object with optimistic locking, each call to which takes [`LATENCY`].
    #[derive(Default)]
    struct Object {
        content: Mutex<Shard>,
        version: AtomicU64,
        reads: AtomicU64,
    }

    impl ShardStore for Object {
        async fn read(&self) -> Result<ShardCopy, PortError> {
            tokio::time::sleep(LATENCY).await;
            self.reads.fetch_add(1, Ordering::Relaxed);
            let version = Some(self.version.load(Ordering::Relaxed).to_string());
            Ok(ShardCopy { shard: self.content.lock().unwrap().clone(), version })
        }

        async fn write(&self, copy: &ShardCopy) -> Result<String, Failed> {
            tokio::time::sleep(LATENCY / 2).await;
            let version = {
                let mut content = self.content.lock().unwrap();
                if copy.version != Some(self.version.load(Ordering::Relaxed).to_string()) {
                    return Err(Failed::Conflict(PortError::passing("failed to write", "conflict")));
                }
                *content = copy.shard.clone();
                self.version.fetch_add(1, Ordering::Relaxed) + 1
            };
            // The second half: it happened, and no caller knows yet.
            tokio::time::sleep(LATENCY / 2).await;
            Ok(version.to_string())
        }

        fn is_divisible(&self) -> bool {
            false
        }

        fn note(&self, _: &Shard) {}

        async fn relieve(&self, copy: ShardCopy, _: &str, _: &mut Option<Spare>) -> Result<ShardCopy, Failed> {
            Ok(copy)
        }
    }

    #[derive(Default)]
    struct Bench {
        queue: ShardQueue,
        object: Object,
        writes: Writes,
    }

    impl Bench {
        /// One whose copy is there already.
        async fn start() -> Arc<Self> {
            let bench = Arc::new(Self::default());
            bench.queue.look(true, &bench.object, |_| ()).await.unwrap();
            bench
        }

        async fn store(&self, number: u64, revision: u64) -> Answer {
            let text = format!(r#"{{"r":{revision},"u":"","s":1,"v":{{}}}}"#);
            let record: Record = decode(text.as_bytes()).unwrap();
            loop {
                let waiting = self.queue.enqueue(workload(number), Change::Store(Box::new(record.clone())));
                if let Some(answer) = self.queue.settle(waiting, &self.object, &self.writes).await {
                    return answer;
                }
            }
        }

        fn written(&self) -> u64 {
            self.object.version.load(Ordering::Relaxed)
        }
    }

    fn workload(number: u64) -> WorkloadId {
        WorkloadId::deployment("shop", format!("web-{number}"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_shard_is_written_at_once_and_the_next_write_waits_for_the_spacing() {
        let bench = Bench::start().await;
        let start = Instant::now();
        bench.store(1, 1).await.unwrap();
        assert_eq!(start.elapsed(), LATENCY);
        bench.store(1, 2).await.unwrap();
        assert_eq!(start.elapsed(), WRITE_SPACING + LATENCY);
        tokio::time::sleep(WRITE_SPACING).await;
        let start = Instant::now();
        bench.store(1, 3).await.unwrap();
        assert_eq!(start.elapsed(), LATENCY);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_while_a_write_is_under_way_shares_the_next_one() {
        let bench = Bench::start().await;
        let late = |number| {
            let bench = Arc::clone(&bench);
            async move {
                tokio::time::sleep(Duration::from_millis(number % 40)).await;
                bench.store(number, 1).await
            }
        };
        let start = Instant::now();
        let (first, others) = tokio::join!(bench.store(0, 1), join_all((1..200).map(late)));
        assert!(first.is_ok() && others.iter().all(Result::is_ok));
        assert_eq!(bench.written(), 2);
        assert_eq!(start.elapsed(), WRITE_SPACING + LATENCY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_given_only_after_a_fresh_read() {
        let bench = Bench::start().await;
        let other = ShardQueue::default();
        let waiting = other.enqueue(workload(1), Change::Remove(1));
        other.settle(waiting, &bench.object, &bench.writes).await.unwrap().unwrap();
        bench.store(1, 1).await.unwrap();
        let reads = bench.object.reads.load(Ordering::Relaxed);
        assert!(matches!(bench.store(1, 7).await, Err(StoreError::Conflict(Some(_)))));
        assert_eq!(bench.object.reads.load(Ordering::Relaxed), reads + 1);
        bench.store(1, 2).await.unwrap();
        assert_eq!(bench.object.reads.load(Ordering::Relaxed), reads + 1, "the copy is good again");
    }

    // Each writer in turn is dropped at each millisecond of its life; all the others are answered, and all is stored.
    #[tokio::test(start_paused = true)]
    async fn a_writer_dropped_at_any_moment_holds_up_nobody() {
        for victim in 0..6 {
            for moment in 0..140 {
                let bench = Bench::start().await;
                let spawn = |number| {
                    let bench = Arc::clone(&bench);
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(number * 7)).await;
                        bench.store(number, 1).await
                    })
                };
                let mut writers: Vec<_> = (0..6).map(spawn).collect();
                tokio::time::sleep(Duration::from_millis(moment)).await;
                let dropped = writers.remove(victim);
                dropped.abort();
                for writer in writers {
                    writer.await.unwrap().unwrap();
                }
                bench.store(victim as u64, 1).await.unwrap();
                let stored = bench.object.content.lock().unwrap().workloads().count();
                assert_eq!(stored, 6, "writer {victim} dropped after {moment} ms");
            }
        }
    }
}

//! The writer against an object store in memory: when it writes, who is answered, and that two of them never both win.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;

use super::*;
use crate::adapters::ledger::kubernetes::journal::JOURNAL_KEY;
use crate::adapters::ledger::kubernetes::shard::Entries;
use purge::records::record::Record;
use purge::records::record_codec::decode;

const LATENCY: Duration = Duration::from_millis(10);

/// Objects with optimistic locking, each call to which takes [`LATENCY`].
#[derive(Default)]
struct Objects {
    all: Mutex<BTreeMap<String, (Entries, u64)>>,
    writes: AtomicU64,
    reads: AtomicU64,
    names: AtomicU64,
    /// What goes wrong, and how long a call takes.
    fate: Mutex<Option<Fate>>,
}

/// A source of bad luck.
struct Fate(u64);

impl Fate {
    fn next(&mut self, below: u64) -> u64 {
        // Knuth's MMIX generator.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

const BASE: &str = "base";

impl Objects {
    fn luck(&self, below: u64) -> u64 {
        self.fate.lock().unwrap().as_mut().map_or(u64::MAX, |fate| fate.next(below))
    }

    async fn take_time(&self) {
        let pause = match self.luck(10) {
            u64::MAX => LATENCY / 2,
            share => LATENCY * u32::try_from(share).unwrap() / 10,
        };
        tokio::time::sleep(pause).await;
    }

    fn get(&self, name: &str) -> Option<(Entries, u64)> {
        self.all.lock().unwrap().get(name).cloned()
    }

    async fn put(&self, name: &str, entries: &Entries, version: Option<&String>) -> Result<String, Failed> {
        self.take_time().await;
        let unlucky = || Failed::Other(PortError::passing("failed to write", "cut off"));
        if self.luck(12) == 0 {
            return Err(unlucky());
        }
        let written = {
            let mut all = self.all.lock().unwrap();
            let there = all.get(name).map(|(_, version)| version.to_string());
            if version != there.as_ref() {
                return Err(Failed::Conflict(PortError::passing("failed to write", "conflict")));
            }
            let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
            all.insert(name.to_owned(), (entries.clone(), number));
            number.to_string()
        };
        // The second half: it happened, and no caller knows yet.
        self.take_time().await;
        if self.luck(12) == 0 { Err(unlucky()) } else { Ok(written) }
    }

    fn shard(&self) -> Shard {
        let base = self.get(BASE).map(|(base, _)| base).unwrap_or_default();
        let journal = base.get(JOURNAL_KEY).and_then(|name| self.get(name));
        Shard::of(base, journal.map(|(journal, _)| journal))
    }

    /// Makes the base as large as one that gets a journal, by an entry that is no record.
    fn enlarge(&self) {
        let entries = Entries::from([("padding".to_owned(), "x".repeat(5_000))]);
        self.all.lock().unwrap().insert(BASE.to_owned(), (entries, 0));
    }
}

impl ShardStore for Objects {
    async fn read(&self) -> Result<ShardCopy, PortError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        for _ in 0..3 {
            self.take_time().await;
            let Some((base, version)) = self.get(BASE) else { return Ok(ShardCopy::default()) };
            // Something may happen between the two.
            self.take_time().await;
            let journal = base.get(JOURNAL_KEY).and_then(|name| self.get(name));
            let (entries, journal) = journal.map(|(entries, version)| (entries, version.to_string())).unzip();
            let shard = Shard::of(base, entries);
            if !shard.is_torn() {
                return Ok(ShardCopy { shard, version: Some(version.to_string()), journal, lost: Vec::new() });
            }
        }
        Err(PortError::passing("failed to read", "the journal is always newer"))
    }

    async fn write(&self, copy: &ShardCopy) -> Result<String, Failed> {
        self.put(BASE, &copy.shard.base, copy.version.as_ref()).await
    }

    async fn write_journal(&self, copy: &ShardCopy) -> Result<String, Failed> {
        let name = copy.shard.journal_name().unwrap();
        let there = self.get(name).map(|(_, version)| version.to_string());
        let version = copy.journal.as_ref().or(there.as_ref());
        self.put(name, copy.shard.journal.as_ref().unwrap(), version).await
    }

    fn name_journal(&self) -> Option<String> {
        Some(format!("journal-{}", self.names.fetch_add(1, Ordering::Relaxed)))
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
    objects: Objects,
    writes: Writes,
}

impl Bench {
    /// One whose copy is there already.
    async fn start() -> Arc<Self> {
        let bench = Arc::new(Self::default());
        bench.queue.look(true, &bench.objects, |_| ()).await.unwrap();
        bench
    }

    async fn store(&self, number: u64, revision: u64) -> Answer {
        let text = format!(r#"{{"r":{revision},"u":"","s":1,"v":{{}}}}"#);
        self.put(number, decode(text.as_bytes()).unwrap()).await
    }

    async fn put(&self, number: u64, record: Record) -> Answer {
        loop {
            let waiting = self.queue.enqueue(workload(number), Change::Store(Box::new(record.clone())));
            if let Some(answer) = self.queue.settle(waiting, &self.objects, &self.writes).await {
                return answer;
            }
        }
    }

    fn written(&self) -> u64 {
        self.objects.writes.load(Ordering::Relaxed)
    }
}

fn workload(number: u64) -> WorkloadId {
    WorkloadId::deployment("shop", format!("web-{number}"))
}

#[tokio::test(start_paused = true)]
async fn a_few_writes_follow_each_other_at_once_and_a_storm_is_spaced() {
    let bench = Bench::start().await;
    let start = Instant::now();
    for revision in 1..=8 {
        bench.store(1, revision).await.unwrap();
    }
    assert_eq!(start.elapsed(), LATENCY * 8, "as a rollout does");
    for revision in 9..=49 {
        bench.store(1, revision).await.unwrap();
    }
    assert_eq!(start.elapsed(), WRITE_SPACING * 41 + LATENCY);
    tokio::time::sleep(WRITE_SPACING * 4).await;
    let start = Instant::now();
    bench.store(1, 50).await.unwrap();
    bench.store(1, 51).await.unwrap();
    assert_eq!(start.elapsed(), LATENCY * 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_while_a_write_is_under_way_shares_the_next_one() {
    let bench = Bench::start().await;
    let late = |number| {
        let bench = Arc::clone(&bench);
        async move {
            tokio::time::sleep(Duration::from_millis(1 + number % 8)).await;
            bench.store(number, 1).await
        }
    };
    let start = Instant::now();
    let (first, others) = tokio::join!(bench.store(0, 1), join_all((1..200).map(late)));
    assert!(first.is_ok() && others.iter().all(Result::is_ok));
    assert_eq!(bench.written(), 2);
    assert_eq!(start.elapsed(), LATENCY * 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_given_only_after_a_fresh_read() {
    let bench = Bench::start().await;
    let other = ShardQueue::default();
    let waiting = other.enqueue(workload(1), Change::Remove(1));
    other.settle(waiting, &bench.objects, &bench.writes).await.unwrap().unwrap();
    bench.store(1, 1).await.unwrap();
    let reads = bench.objects.reads.load(Ordering::Relaxed);
    assert!(matches!(bench.store(1, 7).await, Err(StoreError::Conflict(Some(_)))));
    assert_eq!(bench.objects.reads.load(Ordering::Relaxed), reads + 1);
    bench.store(1, 2).await.unwrap();
    assert_eq!(bench.objects.reads.load(Ordering::Relaxed), reads + 1, "the copy is good again");
}

/// Goal: a copy of a large shard is kept for as long as a rollout in it writes, and no longer. Method: a rollout of five writes in
/// a large shard, beside one at rest, and the readings it costs.
#[tokio::test(start_paused = true)]
async fn a_large_shard_is_kept_in_memory_while_something_in_it_is_in_flight() {
    let bench = Arc::new(Bench::default());
    bench.objects.enlarge();
    let reads = || bench.objects.reads.load(Ordering::Relaxed);
    let (at_rest, in_flight) = (|revision| tagged("a", 1, revision, false), |revision| tagged("a", 1, revision, true));
    let is_kept = async || bench.queue.held.lock().await.copy.is_some();
    bench.put(0, at_rest(1)).await.unwrap();
    assert_eq!((reads(), is_kept().await), (1, false));
    for revision in 1..=4 {
        bench.put(1, in_flight(revision)).await.unwrap();
        assert_eq!((reads(), is_kept().await), (2, true), "write {revision}");
    }
    bench.put(0, at_rest(2)).await.unwrap();
    assert_eq!((reads(), is_kept().await), (2, true), "the other one still is in flight");
    bench.put(1, at_rest(5)).await.unwrap();
    assert_eq!((reads(), is_kept().await), (2, false));
    bench.put(2, at_rest(1)).await.unwrap();
    assert_eq!((reads(), is_kept().await), (3, false));
    let stored = bench.objects.shard();
    let revision = |number| stored.record(&workload(number)).unwrap().map(|record| record.revision);
    assert_eq!([0, 1, 2].map(revision), [Some(2), Some(5), Some(1)]);
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
            let stored = bench.objects.shard().workloads().count();
            assert_eq!(stored, 6, "writer {victim} dropped after {moment} ms");
        }
    }
}

// Faults: A2
/// Goal: of two workers that store over the same record, one wins, also where a shard has a journal that is begun, folded and written
/// meanwhile. Method: both try the next revision of whatever they read, under their own name, or remove it, while calls take any
/// time, fail, lose their answers, or are given up. A revision of one life of a record that was granted to two would be
/// a purge that one of them forgets.
#[tokio::test(start_paused = true)]
async fn two_workers_never_both_win_whatever_becomes_of_their_calls() {
    let (mut journals, mut folds, mut given_up) = (0, 0, 0);
    for seed in 0..60 {
        let objects = Objects::default();
        objects.enlarge();
        *objects.fate.lock().unwrap() = Some(Fate(seed));
        let wins: Mutex<BTreeMap<(u64, u64, u64), String>> = Mutex::default();
        let lost = Mutex::new(0);
        tokio::join!(
            work("a", &objects, &wins, &lost),
            work("b", &objects, &wins, &lost),
            work("c", &objects, &wins, &lost)
        );
        given_up += *lost.lock().unwrap();
        *objects.fate.lock().unwrap() = None;
        let shard = objects.shard();
        for number in 0..4 {
            let of = |(told, _, _): &&(u64, u64, u64)| *told == number;
            let wins = wins.lock().unwrap();
            let last = wins.keys().filter(of).max().copied().unwrap_or_default();
            let found = shard.record(&workload(number)).unwrap();
            let none = (number, shard.floor().unwrap().seq.0, u64::MAX);
            let found = found.map_or(none, |record| (number, record.seq.0, record.revision));
            assert!(found >= last, "seed {seed}: {found:?} was told to be {last:?}");
        }
        journals += u64::from(shard.journal.is_some());
        folds += shard.base.get("folds").map_or(0, |folds| folds.parse().unwrap());
    }
    println!("{journals} journals, {folds} foldings, {given_up} given up");
    assert!(
        journals == 60 && folds > 60 && given_up > 60,
        "{journals} journals, {folds} foldings, {given_up} given up"
    );
}

/// One worker: its own queue, and so its own copy of the shard. Wins are by workload, seq and revision.
async fn work(name: &str, objects: &Objects, wins: &Mutex<BTreeMap<(u64, u64, u64), String>>, lost: &Mutex<u64>) {
    let (queue, writes) = (ShardQueue::default(), Writes::default());
    for turn in 0..40 {
        let number = objects.luck(4);
        let workload = workload(number);
        let Ok((record, floor)) =
            queue.look(objects.luck(3) == 0, objects, |shard| (shard.record(&workload), shard.floor())).await
        else {
            continue;
        };
        let (record, floor) = (record.unwrap(), floor.unwrap());
        let (seq, revision) =
            record.as_ref().map_or((floor.seq.0 + 1, 1), |record| (record.seq.0, record.revision + 1));
        let me = format!("{name}{turn}");
        let change = match (objects.luck(8), &record) {
            (0, Some(record)) => Change::Remove(record.revision),
            (kind, _) => Change::Store(Box::new(tagged(&me, seq, revision, kind % 2 == 0))),
        };
        let is_store = matches!(change, Change::Store(_));
        let waiting = queue.enqueue(workload, change);
        let patience = LATENCY * u32::try_from(1 + objects.luck(16)).unwrap();
        match tokio::time::timeout(patience, queue.settle(waiting, objects, &writes)).await {
            Ok(Some(Ok(()))) if is_store => {
                let before = wins.lock().unwrap().insert((number, seq, revision), me.clone());
                assert_eq!(before, None, "{me} and another have both won {number}, {seq}, {revision}");
            }
            Ok(_) => {}
            Err(_) => *lost.lock().unwrap() += 1,
        }
    }
}

/// A record that says whose it is, in flight or at rest.
fn tagged(who: &str, seq: u64, revision: u64, flies: bool) -> Record {
    let first = Record { revision, uid: who.to_owned() + &"x".repeat(250), ..Record::first(kernel::id::Seq(seq)) };
    if flies { Record { phase: purge::records::record::Phase::Rolling, ..first } } else { first }
}

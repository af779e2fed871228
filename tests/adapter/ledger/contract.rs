//! What every ledger promises, clause by clause.

use std::collections::{BTreeMap, BTreeSet};

use allclear::adapters::ledger::shard_of;
use kernel::id::{Member, Nonce, NoticeId, Seq, WorkloadId};
use kernel::names::image::Container;
use kernel::watches::listed::Scope;
use kernel::watches::lives::LifeNote;
use notices::delivery::{Content, Delivery, State};
use notices::notice::{Kind, Notice};
use purge::agreement::roster::Pin;
use purge::ports::{Ledger, Retry, StoreError};
use purge::records::record::{Phase, RECORD_BYTES_MAX, Record, Records};
use purge::records::record_codec::decode;

use super::Bench;

pub fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

/// A record as most are: one container, nothing in flight.
pub fn record(seq: u64) -> Record {
    let mut record = decode(br#"{"r":1,"u":"","s":0,"v":{}}"#).unwrap();
    record.uid = "0f6b1c9e-52c4-4d8f-9a57-2f6f1d6b9a10".to_owned();
    record.seq = Seq(seq);
    let container = Container::from("web".to_owned());
    record.version = [(container, "registry.example.com:5000/shop/web:1.2.3".parse().unwrap())].into_iter().collect();
    record
}

/// The record that is stored on top of this one.
pub fn next(record: &Record) -> Record {
    Record { revision: record.revision + 1, ..record.clone() }
}

/// Workloads of one shard, so that whatever goes wrong between neighbours goes wrong.
pub fn neighbours(count: usize) -> Vec<WorkloadId> {
    let shard = shard_of(&web());
    let all = (0..).map(|number| WorkloadId::deployment("shop", format!("web-{number}")));
    all.filter(|workload| shard_of(workload) == shard).take(count).collect()
}

/// That many records, spread over everything there is.
pub fn estate(count: usize) -> Records {
    let id = |number: usize| WorkloadId::deployment(format!("team-{}", number % 50), format!("app-{number}"));
    (0..count).map(|number| (id(number), record(1).into())).collect()
}

fn conflict(result: Result<(), StoreError>) -> Option<Record> {
    match result {
        Err(StoreError::Conflict(current)) => current.map(|record| *record),
        other => panic!("a conflict was expected: {other:?}"),
    }
}

pub async fn what_was_stored_is_there_after_a_restart(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    assert!(ledger.open().await.unwrap().records.is_empty());
    let mut changed = next(&record(1));
    changed.phase = Phase::Rolling;
    changed.conditions.insert("a condition with \"quotes\", 'apostrophes' and é".to_owned());
    ledger.store(&web(), &record(1)).await.unwrap();
    ledger.store(&web(), &changed).await.unwrap();

    let opened = bench.handle().await.open().await.unwrap();
    assert_eq!(opened.records, BTreeMap::from([(web(), changed.into())]));
    assert!(opened.unreadable.is_empty());
}

pub async fn looking_shows_what_is_stored(bench: &dyn Bench) {
    // A ledger in memory is there as soon as it is made; the others have to be opened.
    let before = bench.handle().await.peek().await.unwrap();
    assert!(before.is_none_or(|seen| seen.records.is_empty()));
    let ledger = bench.handle().await;
    let origin = ledger.open().await.unwrap().origin;
    ledger.store(&web(), &record(1)).await.unwrap();

    let seen = bench.handle().await.peek().await.unwrap().unwrap();
    assert_eq!((seen.origin, seen.records), (origin, BTreeMap::from([(web(), record(1).into())])));
}

pub async fn a_first_record_has_revision_one(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    assert_eq!(conflict(ledger.store(&web(), &next(&record(1))).await), None);
    ledger.store(&web(), &record(1)).await.unwrap();
}

pub async fn a_revision_is_stored_only_on_top_of_the_one_before(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    let first = record(1);
    ledger.store(&web(), &first).await.unwrap();
    let gap = next(&next(&first));
    assert_eq!(conflict(ledger.store(&web(), &gap).await), Some(first.clone()));
    ledger.store(&web(), &next(&first)).await.unwrap();
    ledger.store(&web(), &gap).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(gap));
}

pub async fn storing_what_is_there_succeeds_again(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    for _ in 0..2 {
        ledger.store(&web(), &record(1)).await.unwrap();
    }
    // Also for a process that did not see the first answer.
    bench.handle().await.store(&web(), &record(1)).await.unwrap();
}

pub async fn a_conflict_shows_what_is_there(bench: &dyn Bench) {
    let (ledger, other) = (bench.handle().await, bench.handle().await);
    ledger.open().await.unwrap();
    other.open().await.unwrap();
    ledger.store(&web(), &record(1)).await.unwrap();
    let theirs = Record { elapsed_ms: 7, ..next(&record(1)) };
    other.store(&web(), &theirs).await.unwrap();
    let ours = Record { elapsed_ms: 8, ..next(&record(1)) };
    assert_eq!(conflict(ledger.store(&web(), &ours).await), Some(theirs));
}

pub async fn a_record_is_loaded_as_it_is_now(bench: &dyn Bench) {
    let (ledger, other) = (bench.handle().await, bench.handle().await);
    ledger.open().await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), None);
    other.store(&web(), &record(1)).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(record(1)));
    other.store(&web(), &next(&record(1))).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(next(&record(1))));
}

pub async fn a_removed_record_leaves_a_floor_for_the_next_one(bench: &dyn Bench) {
    let (ledger, other) = (bench.handle().await, bench.handle().await);
    ledger.open().await.unwrap();
    other.open().await.unwrap();
    assert_eq!(other.floor(&web()).await.unwrap().seq, Seq(0));
    ledger.store(&web(), &record(5)).await.unwrap();
    ledger.remove(&web(), 1).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), None);
    assert_eq!(ledger.floor(&web()).await.unwrap().seq, Seq(5));

    // A writer that knew the ledger before is told, and knows better from then on.
    assert_eq!(conflict(other.store(&web(), &record(5)).await), None);
    assert_eq!(other.floor(&web()).await.unwrap().seq, Seq(5));
    other.store(&web(), &record(6)).await.unwrap();

    // The floor never falls, and survives restarts.
    let small = neighbours(1).remove(0);
    assert_eq!(conflict(ledger.store(&small, &record(1)).await), None, "the floor is the shard's");
    other.remove(&web(), 1).await.unwrap();
    let reopened = bench.handle().await;
    assert!(reopened.open().await.unwrap().records.is_empty());
    assert_eq!(reopened.floor(&web()).await.unwrap().seq, Seq(6));
}

/// Revisions begin anew when a record comes back, so that a writer of its earlier life may have the next one in hand.
pub async fn a_writer_of_an_earlier_life_is_refused(bench: &dyn Bench) {
    let (ledger, late) = (bench.handle().await, bench.handle().await);
    ledger.open().await.unwrap();
    late.open().await.unwrap();
    ledger.store(&web(), &record(9)).await.unwrap();
    ledger.remove(&web(), 1).await.unwrap();
    ledger.store(&web(), &record(10)).await.unwrap();
    assert_eq!(conflict(late.store(&web(), &next(&record(9))).await), Some(record(10)));
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(record(10)));
    late.store(&web(), &next(&record(10))).await.unwrap();
}

/// A ledger that was set back gives a number out again, and revisions begin anew with it.
pub async fn a_writer_of_another_rollout_of_the_same_number_is_refused(bench: &dyn Bench) {
    let (ledger, late) = (bench.handle().await, bench.handle().await);
    ledger.open().await.unwrap();
    late.open().await.unwrap();
    let with = |nonce, seq| Record { nonce: Nonce(nonce), ..record(seq) };
    ledger.store(&web(), &with(7, 3)).await.unwrap();
    for other in [with(8, 3), with(0, 3)] {
        assert_eq!(conflict(late.store(&web(), &next(&other)).await), Some(with(7, 3)));
    }
    ledger.store(&web(), &next(&with(7, 3))).await.unwrap();
    ledger.store(&web(), &next(&next(&with(8, 4)))).await.unwrap();
}

pub async fn removing_is_by_revision_and_removing_nothing_succeeds(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    ledger.remove(&web(), 3).await.unwrap();
    ledger.store(&web(), &record(1)).await.unwrap();
    ledger.store(&web(), &next(&record(1))).await.unwrap();
    assert_eq!(conflict(ledger.remove(&web(), 1).await), Some(next(&record(1))));
    ledger.remove(&web(), 2).await.unwrap();
    ledger.remove(&web(), 2).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), None);
}

pub async fn many_records_are_stored_together_each_by_its_own_rules(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    let mut records = estate(200);
    assert!(ledger.store_all(&records).await.is_empty());
    let mut names = records.keys().cloned();
    let (wrong, right) = (names.next().unwrap(), names.next().unwrap());
    records.insert(wrong.clone(), Record { revision: 9, ..record(1) }.into());
    records.insert(right.clone(), next(&record(1)).into());
    let failed = ledger.store_all(&records).await;
    assert_eq!(failed.keys().collect::<Vec<_>>(), [&wrong]);
    assert_eq!(conflict(failed.into_values().next().map_or(Ok(()), Err)), Some(record(1)));
    assert_eq!(ledger.load(&right).await.unwrap(), Some(next(&record(1))));
}

pub async fn the_origin_stays_until_the_ledger_is_deleted(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    let origin = ledger.open().await.unwrap().origin;
    assert!(!origin.0.is_empty());
    ledger.store(&web(), &record(3)).await.unwrap();
    assert_eq!(bench.handle().await.open().await.unwrap().origin, origin);

    bench.delete().await;
    let ledger = bench.handle().await;
    let opened = ledger.open().await.unwrap();
    assert_ne!(opened.origin, origin);
    assert!(opened.records.is_empty());
    // Numbers may repeat under a new origin: no vector does.
    ledger.store(&web(), &record(1)).await.unwrap();
    let reopened = bench.handle().await.open().await.unwrap();
    assert_eq!((reopened.origin, reopened.records), (opened.origin, BTreeMap::from([(web(), record(1).into())])));
}

/// A webhook about `web`.
pub fn delivery(kind: Kind, body: &str) -> Delivery {
    let notice = Notice {
        id: NoticeId(format!("msg_{}", kind.name())),
        kind,
        about: web().into(),
        at_ms: 0,
        seq: Seq(1),
        rollout: String::new(),
        change: String::new(),
        message: String::new(),
    };
    Delivery::new(&notice, "release-bot", Content::Json(body.to_owned()))
}

pub async fn what_is_listed_stays_so_as_long_as_the_ledger_lives(bench: &dyn Bench) {
    let other = WorkloadId::deployment("bank", "web");
    let ledger = bench.handle().await;
    assert!(ledger.open().await.unwrap().listed.is_empty());
    ledger.store(&web(), &record(1)).await.unwrap();
    for _ in 0..2 {
        ledger.store_listed(&BTreeSet::from([Scope::of(Some("shop"))])).await.unwrap();
    }
    let opened = bench.handle().await.open().await.unwrap();
    assert_eq!(opened.records.len(), 1, "what is listed is no workload");
    assert!(opened.listed.covers(&web()) && !opened.listed.covers(&other));
    bench.handle().await.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let seen = bench.handle().await.peek().await.unwrap().unwrap();
    assert!(seen.listed.covers(&web()) && seen.listed.covers(&other) && seen.listed.is_whole(&Scope::of(None)));
    bench.delete().await;
    assert!(bench.handle().await.open().await.unwrap().listed.is_empty(), "another ledger");
}

pub async fn what_a_life_leaves_is_found_by_the_next(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    assert_eq!(ledger.open().await.unwrap().life, None);
    ledger.store(&web(), &record(1)).await.unwrap();
    let open = LifeNote { open: true, abrupt: 2, tried: Some(web()), ..LifeNote::default() };
    let (other, closed) = (LifeNote { abrupt: 3, ..open.clone() }, LifeNote::default());
    for _ in 0..2 {
        ledger.store_life(&open, None).await.unwrap();
    }
    let opened = bench.handle().await.open().await.unwrap();
    assert_eq!((opened.life.as_ref(), opened.records.len()), (Some(&open), 1), "it is no workload");
    bench.handle().await.store_life(&closed, Some(&other)).await.unwrap();
    assert_eq!(
        bench.handle().await.peek().await.unwrap().unwrap().life,
        Some(open.clone()),
        "another life's is left alone"
    );
    bench.handle().await.store_life(&closed, Some(&open)).await.unwrap();
    assert_eq!(bench.handle().await.open().await.unwrap().life, Some(closed));
    bench.delete().await;
    assert_eq!(bench.handle().await.open().await.unwrap().life, None, "another ledger");
}

pub async fn settings_in_force_are_left_for_whoever_only_looks(bench: &dyn Bench) {
    let was_missing = bench.handle().await.peek().await.unwrap().is_none();
    assert_eq!(bench.handle().await.in_force().await.unwrap(), None, "there is no ledger");
    assert_eq!(bench.handle().await.peek().await.unwrap().is_none(), was_missing, "none is made");
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    ledger.store(&web(), &record(1)).await.unwrap();
    for text in ["{\"one\":1}", "{\"one\":1}", "two"] {
        ledger.store_in_force(text).await.unwrap();
        assert_eq!(bench.handle().await.in_force().await.unwrap().as_deref(), Some(text), "without opening it");
    }
    let opened = bench.handle().await.open().await.unwrap();
    assert_eq!((opened.records.len(), opened.unreadable.len()), (1, 0), "they are no workload");
    bench.delete().await;
    assert_eq!(bench.handle().await.in_force().await.unwrap(), None, "they were the ledger's");
}

pub async fn deliveries_are_kept_until_they_are_removed(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    let started = delivery(Kind::PurgeStarted, "{\"text\":\"é\"}");
    let mut completed = delivery(Kind::PurgeCompleted, &"x".repeat(60_000));
    for delivery in [&started, &completed] {
        ledger.store_delivery(delivery).await.unwrap();
    }
    completed.attempts = 10;
    completed.state = State::Dead { reason: "answered 500 ten times".to_owned() };
    ledger.store_delivery(&completed).await.unwrap();

    let reopened = bench.handle().await;
    let mut found = reopened.deliveries().await.unwrap();
    let mut expected = vec![started.clone(), completed.clone()];
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    // A process that knows nothing of it replaces one as well.
    completed.attempts = 11;
    bench.handle().await.store_delivery(&completed).await.unwrap();
    for _ in 0..2 {
        reopened.remove_delivery(&started.id).await.unwrap();
    }
    assert_eq!(ledger.deliveries().await.unwrap(), [completed]);
}

pub async fn two_writers_never_lose_a_field(bench: &dyn Bench) {
    const STEPS: usize = 15;
    let workloads = neighbours(4);
    let (left, right) = (bench.handle().await, bench.handle().await);
    left.open().await.unwrap();
    right.open().await.unwrap();
    let write = |ledger: std::sync::Arc<dyn Ledger>, name: &'static str, workload: WorkloadId| async move {
        let mut known: Option<Record> = None;
        for step in 0..STEPS {
            loop {
                let mut ours = known.as_ref().map_or_else(|| record(1), next);
                ours.conditions.insert(format!("{name} {step}"));
                match ledger.store(&workload, &ours).await {
                    Ok(()) => break known = Some(ours),
                    Err(StoreError::Conflict(current)) => known = current.map(|record| *record),
                    // Other writers were faster too often; the caller tries again later.
                    Err(StoreError::Unavailable(error)) => assert_eq!(error.retry, Retry::Later, "{error}"),
                    Err(StoreError::NoRoom(error)) => panic!("a dozen short records: {error}"),
                    Err(StoreError::Lost(error)) => panic!("nobody deleted the ledger: {error}"),
                }
            }
        }
    };
    let mut writers = Vec::new();
    for workload in &workloads {
        for (ledger, name) in [(&left, "left"), (&right, "right")] {
            writers.push(write(std::sync::Arc::clone(ledger), name, workload.clone()));
        }
    }
    futures_util::future::join_all(writers).await;
    let records = bench.handle().await.open().await.unwrap().records;
    for workload in &workloads {
        let record = records.get(workload).expect("stored");
        assert_eq!(record.conditions.len(), 2 * STEPS, "{workload}");
        assert_eq!(record.revision, 2 * STEPS as u64, "{workload}: one revision for each change");
    }
}

pub async fn a_record_too_large_is_refused(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    let large = Record { uid: "u".repeat(RECORD_BYTES_MAX), ..record(1) };
    match ledger.store(&web(), &large).await {
        Err(StoreError::NoRoom(error)) => assert!(error.to_string().contains("deployment/shop/web"), "{error}"),
        other => panic!("{other:?}"),
    }
}

pub async fn the_members_are_stored_over_those_that_are_known_and_no_others(bench: &dyn Bench) {
    let pin = |names: &[&str]| Pin {
        members: names.iter().map(|name| Member::from(*name)).collect(),
        of: names.len(),
        ..Pin::default()
    };
    let (two, three) = (pin(&["eu-1", "eu-2"]), pin(&["eu-1", "eu-2", "us-1"]));
    let ledger = bench.handle().await;
    assert_eq!(ledger.open().await.unwrap().pin, None);
    assert_eq!(ledger.pin().await.unwrap(), None);
    assert!(!ledger.store_pin(&three, Some(&two)).await.unwrap(), "it is not over what is there");
    assert_eq!(ledger.pin().await.unwrap(), None);
    for _ in 0..2 {
        assert!(ledger.store_pin(&two, None).await.unwrap());
    }
    assert!(!ledger.store_pin(&three, None).await.unwrap(), "somebody else was first");
    ledger.store(&web(), &record(1)).await.unwrap();

    let other = bench.handle().await;
    let opened = other.open().await.unwrap();
    assert_eq!((opened.pin.as_ref(), opened.records.len()), (Some(&two), 1));
    assert!(other.store_pin(&three, Some(&two)).await.unwrap());
    assert_eq!(ledger.pin().await.unwrap(), Some(three.clone()), "not from a cache");
    assert_eq!(bench.handle().await.peek().await.unwrap().and_then(|seen| seen.pin), Some(three));

    bench.delete().await;
    assert_eq!(bench.handle().await.open().await.unwrap().pin, None, "another ledger knows nothing of it");
}

pub async fn ten_thousand_records_survive_a_restart(bench: &dyn Bench) {
    let ledger = bench.handle().await;
    ledger.open().await.unwrap();
    let records = estate(10_000);
    assert!(ledger.store_all(&records).await.is_empty());
    assert_eq!(bench.handle().await.open().await.unwrap().records, records);
}

//! Large shards of the Kubernetes ledger: their records in flight are written beside them, in a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allclear::adapters::ledger::kubernetes::{KubernetesLedger, META_NAME};
use allclear::adapters::ledger::shard_of;
use kernel::id::{Seq, WorkloadId};
use kernel::watches::listed::Scope;
use purge::ports::{Ledger, StoreError};
use purge::records::record::{Phase, Record};
use sandbox::http::{Action, Fault, Request, When};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use super::contract::{neighbours, next, record, web};
use super::kubernetes::{ABOVE_ONE, Cluster, NAMESPACE, status};

/// A shard as large as those of a large cluster, by an entry that is no record; the first write of a record in flight gives it a
/// journal.
async fn enlarged(cluster: &Cluster) -> KubernetesLedger {
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    let mut shard = cluster.shards().remove(0);
    shard["data"]["padding"] = json!("x".repeat(40_000));
    cluster.api.put(shard).unwrap();
    cluster.opened().await
}

fn flying(before: &Record) -> Record {
    Record { phase: Phase::Rolling, ..next(before) }
}

fn resting(before: &Record) -> Record {
    Record { phase: Phase::Complete, ..next(before) }
}

/// The base and the journals of the shard of `shop/web`.
fn base_and_journals(cluster: &Cluster) -> (Value, Vec<Value>) {
    let name = format!("{META_NAME}-{:02}", shard_of(&web()));
    let (base, journals): (Vec<_>, Vec<_>) =
        cluster.shards().into_iter().partition(|map| map["metadata"]["name"] == *name);
    (base.into_iter().next().unwrap(), journals)
}

/// Deletes the journal of that shard, and names it.
fn delete_journal(cluster: &Cluster) -> String {
    let (_, journals) = base_and_journals(cluster);
    let name = journals[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &name).unwrap();
    name
}

/// Counts the bytes that are written from now on.
fn count_written(cluster: &Cluster) -> Arc<AtomicUsize> {
    let bytes = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&bytes);
    let never = move |request: &Request| {
        let size = if request.method == http::Method::GET { 0 } else { request.body.len() };
        counts.fetch_add(size, Ordering::Relaxed);
        false
    };
    cluster.server.inject(Fault::once(When::Before, Action::Cut).times(u32::MAX).matching(never));
    bytes
}

/// Rollouts of 156 workloads in one shard, as 10,000 make it: the bytes that a rollout of eight writes costs, with every folding.
#[tokio::test]
async fn a_rollout_in_a_large_shard_writes_little_and_all_of_it_is_found_again() {
    let cluster = Cluster::start().await;
    let ledger = enlarged(&cluster).await;
    let workloads = neighbours(10);
    let mut expected = BTreeMap::from([(web(), Arc::new(record(1)))]);
    let bytes = count_written(&cluster);
    for workload in &workloads {
        // As large as a record at rest is.
        let mut current = Record { phase: Phase::Rolling, uid: "u".repeat(200), ..record(1) };
        ledger.store(workload, &current).await.unwrap();
        for _ in 0..6 {
            current = flying(&current);
            ledger.store(workload, &current).await.unwrap();
        }
        current = resting(&current);
        ledger.store(workload, &current).await.unwrap();
        expected.insert(workload.clone(), current.into());
    }
    let each = bytes.load(Ordering::Relaxed) / workloads.len();
    println!(
        "a rollout of eight writes in a shard of 40 KB: {each} bytes written (aim 30720; without a journal 330000)"
    );
    assert!(each <= 30 * 1024, "{each} bytes");
    let (base, journals) = base_and_journals(&cluster);
    assert_eq!(journals.len(), 1);
    let folds = base["data"]["folds"].as_str().unwrap().parse::<u32>().unwrap();
    assert!((1..=5).contains(&folds), "{folds} foldings");
    let layout = cluster.api.get(Kind::ConfigMap, NAMESPACE, META_NAME).unwrap()["data"]["layout"].clone();
    assert_eq!(layout, "3", "a program that knows no journals must not take it for its own");

    let reopened = cluster.ledger();
    assert_eq!(reopened.open().await.unwrap().records, expected);
    assert_eq!(cluster.ledger().peek().await.unwrap().unwrap().records, expected);
    for workload in &workloads {
        assert_eq!(
            cluster.opened().await.load(workload).await.unwrap().as_ref(),
            expected.get(workload).map(Arc::as_ref)
        );
    }
    // What was removed stays so, with its number, whether the base still has it or not.
    let (first, last) = (&workloads[0], &workloads[9]);
    for gone in [first, last] {
        reopened.remove(gone, expected[gone].revision).await.unwrap();
        assert!(!cluster.ledger().open().await.unwrap().records.contains_key(gone), "{gone}");
        assert_eq!(cluster.opened().await.floor(gone).await.unwrap().seq, Seq(1));
        assert!(matches!(reopened.store(gone, &record(1)).await, Err(StoreError::Conflict(None))), "{gone}");
    }
}

// Faults: K1–K14
/// Each write of a rollout that begins a journal, and of one that folds it, is lost before it happens, and after; the same ledger
/// goes on, and another one finds the same.
#[tokio::test]
async fn a_journal_survives_the_loss_of_any_of_its_writes() {
    for when in [When::Before, When::After] {
        for nth in 0..12 {
            let cluster = Cluster::start().await;
            let ledger = enlarged(&cluster).await;
            let count = AtomicUsize::new(0);
            let is_nth = move |request: &Request| {
                request.method != http::Method::GET && count.fetch_add(1, Ordering::Relaxed) == nth
            };
            cluster.server.inject(Fault::once(when, Action::Cut).matching(is_nth));
            let big = |record: Record| Record { conditions: BTreeSet::from(["x".repeat(900)]), ..record };
            let mut current = record(1);
            for number in 0..4 {
                let wanted = big(if number % 2 == 0 { flying(&current) } else { resting(&current) });
                for _ in 0..3 {
                    match ledger.store(&web(), &wanted).await {
                        Ok(()) => break,
                        Err(error) => assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}"),
                    }
                }
                current = wanted;
                assert_eq!(
                    cluster.opened().await.load(&web()).await.unwrap().as_ref(),
                    Some(&current),
                    "{when:?} {nth}"
                );
            }
            assert_eq!(*cluster.ledger().open().await.unwrap().records[&web()], current, "{when:?} {nth}");
            let (_, journals) = base_and_journals(&cluster);
            assert_eq!(journals.len(), 1, "{when:?} {nth}: one that was begun is used again");
        }
    }
}

/// A quota that leaves no room for one more ConfigMap must not stop the ledger: the shards that exist can be written.
#[tokio::test]
async fn a_shard_whose_journal_is_refused_is_written_itself() {
    let cluster = Cluster::start().await;
    let ledger = enlarged(&cluster).await;
    let quota = status(403, "Forbidden", "exceeded quota: objects, requested: count/configmaps=1", 0);
    let refused = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&refused);
    let creates = move |request: &Request| {
        let is_creation = request.method == http::Method::POST;
        counts.fetch_add(usize::from(is_creation), Ordering::Relaxed);
        is_creation
    };
    cluster.server.inject(Fault::once(When::Before, quota).times(u32::MAX).matching(creates));
    let mut current = record(1);
    for _ in 0..5 {
        current = flying(&current);
        ledger.store(&web(), &current).await.unwrap();
        assert_eq!(cluster.opened().await.load(&web()).await.unwrap().as_ref(), Some(&current));
    }
    assert_eq!(refused.load(Ordering::Relaxed), 1, "it is not asked for again with each write");
    assert_eq!(base_and_journals(&cluster).1.len(), 0);
    // A shard that is not there yet needs the same quota, and has no other way: that is told.
    let other = (0..).map(|number| WorkloadId::deployment("shop", format!("api-{number}")));
    let elsewhere = other.into_iter().find(|id| shard_of(id) != shard_of(&web())).unwrap();
    let error = ledger.store(&elsewhere, &record(1)).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(error) if error.to_string().contains("exceeded quota")),
        "{error:?}"
    );
}

// Faults: A8
#[tokio::test]
async fn a_journal_that_is_lost_while_nothing_runs_sets_its_shard_back_and_one_that_is_lost_under_us_is_healed() {
    let cluster = Cluster::start().await;
    let ledger = enlarged(&cluster).await;
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let first = flying(&record(1));
    ledger.store(&web(), &first).await.unwrap();
    assert!(cluster.ledger().open().await.unwrap().listed.covers(&web()));
    let delete = || delete_journal(&cluster);
    delete();
    ledger.store(&web(), &flying(&first)).await.unwrap();
    let opened = cluster.ledger().open().await.unwrap();
    assert_eq!((opened.set_back.lost.len(), &*opened.records[&web()]), (0, &flying(&first)), "healed from the copy");
    let name = delete();
    let opened = cluster.ledger().open().await.unwrap();
    assert_eq!(opened.set_back.lost, BTreeSet::from([format!("{name} is gone")]));
    assert_eq!(*opened.records[&web()], record(1), "what the base has");
    assert_eq!(opened.set_back.records, BTreeSet::from([web()]));
    let ledger = cluster.opened().await;
    ledger.store(&web(), &flying(&record(1))).await.unwrap();
    assert_eq!(cluster.opened().await.load(&web()).await.unwrap(), Some(flying(&record(1))));
}

// Faults: A8
#[tokio::test]
async fn a_journal_that_is_lost_or_replaced_under_us_without_a_copy_sets_its_shard_back_at_the_next_look() {
    for replaced in [false, true] {
        let cluster = Cluster::start().await;
        let ledger = enlarged(&cluster).await;
        ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
        let first = flying(&record(1));
        ledger.store(&web(), &first).await.unwrap();
        let (_, journals) = base_and_journals(&cluster);
        let ledger = cluster.opened().await;
        delete_journal(&cluster);
        if replaced {
            let mut backup = journals[0].clone();
            for field in ["uid", "resourceVersion", "creationTimestamp"] {
                backup["metadata"].as_object_mut().unwrap().remove(field);
            }
            cluster.api.apply(backup).unwrap();
        }
        assert_eq!(ledger.load(&web()).await.unwrap(), Some(record(1)), "what the base has");
        assert_eq!(ledger.floor(&web()).await.unwrap().seq, ABOVE_ONE);
        let opened = cluster.ledger().open().await.unwrap();
        assert!(opened.set_back.lost.is_empty(), "it is noted: {:?}", opened.set_back.lost);
        assert_eq!(opened.set_back.records, BTreeSet::from([web()]));
        let above = Record { seq: ABOVE_ONE.next(), revision: ABOVE_ONE.0 + 1, ..flying(&record(1)) };
        ledger.store(&web(), &above).await.unwrap();
        let opened = cluster.ledger().open().await.unwrap();
        assert_eq!((&*opened.records[&web()], opened.set_back.records.len()), (&above, 0));
    }
}

/// What is in the journal when a namespace crowds the shard goes with its namespace, or stays.
#[tokio::test]
async fn a_shard_with_a_journal_is_divided_and_everything_is_found_on_its_side() {
    let cluster = Cluster::start().await;
    let ledger = enlarged(&cluster).await;
    let large = |phase| Record { phase, conditions: BTreeSet::from(["x".repeat(14_000)]), ..record(1) };
    let hostile = (0..).map(|number| WorkloadId::deployment("hostile", format!("app-{number}")));
    let hostile: Vec<WorkloadId> = hostile.filter(|id| shard_of(id) == shard_of(&web())).take(60).collect();
    let mut expected = BTreeMap::from([(web(), Arc::new(flying(&record(1))))]);
    ledger.store(&web(), &expected[&web()]).await.unwrap();
    for (number, id) in hostile.iter().enumerate() {
        // Some rest, so the journal is folded on the way, and some do not.
        let record = large(if number % 3 == 0 { Phase::Rolling } else { Phase::Complete });
        ledger.store(id, &record).await.unwrap();
        expected.insert(id.clone(), record.into());
    }
    let (base, beside) = base_and_journals(&cluster);
    let text = base["data"].to_string();
    assert!(base["data"]["moved.hostile"].is_string() && !text.contains("deployment.hostile"), "{} bytes", text.len());
    assert!(beside.len() >= 2, "its journal, and the part of the namespace");
    assert_eq!(cluster.ledger().open().await.unwrap().records, expected);
    for ledger in [ledger, cluster.opened().await] {
        for id in [&web(), &hostile[0], &hostile[59]] {
            assert_eq!(ledger.load(id).await.unwrap().as_ref(), expected.get(id).map(Arc::as_ref), "{id}");
        }
    }
}

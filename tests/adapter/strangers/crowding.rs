//! Row T3: what one namespace stores takes no room from another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use allclear::adapters::ledger::kubernetes::{KubernetesLedger, META_NAME};
use allclear::adapters::ledger::shard_of;
use kernel::id::{Seq, WorkloadId};
use kernel::watches::listed::Scope;
use purge::ports::{Ledger, Retry, StoreError};
use purge::records::record::{Record, Records};
use sandbox::http::{Action, Fault, Reply, Request, When};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use crate::ledger::contract::{next, record, web};
use crate::ledger::kubernetes::{Cluster, NAMESPACE};

/// Most a ConfigMap may hold, by Kubernetes' validation.
const MAP_BYTES: usize = 1024 * 1024;

/// Workloads of a namespace that share the shard of `shop/web`.
fn neighbours(namespace: &str, count: usize) -> Vec<WorkloadId> {
    let all = (0..).map(|number| WorkloadId::deployment(namespace, format!("app-{number}")));
    all.filter(|id| shard_of(id) == shard_of(&web())).take(count).collect()
}

/// A record of about this many bytes.
fn large(bytes: usize) -> Record {
    Record { conditions: BTreeSet::from(["x".repeat(bytes)]), ..record(1) }
}

/// 81 records of 14 KB, more than a ConfigMap holds, one after the other. How many were stored.
async fn crowd(ledger: &KubernetesLedger, namespace: &str) -> usize {
    let mut stored = 0;
    for workload in neighbours(namespace, 81) {
        match ledger.store(&workload, &large(14_000)).await {
            Ok(()) => stored += 1,
            Err(StoreError::NoRoom(error)) => {
                assert!(error.to_string().contains("allclear.dev/containers"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    stored
}

fn shard_name() -> String {
    format!("{META_NAME}-{:02}", shard_of(&web()))
}

/// The objects of the shard of `shop/web`, by name: itself, and those of namespaces.
fn parts(cluster: &Cluster) -> BTreeMap<String, Value> {
    let named = |map: Value| (map["metadata"]["name"].as_str().unwrap().to_owned(), map);
    let all = cluster.shards().into_iter().map(named);
    all.filter(|(name, _)| name.starts_with(&shard_name())).collect()
}

fn bytes(map: &Value) -> usize {
    map["data"].as_object().unwrap().iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum()
}

fn layout(cluster: &Cluster) -> String {
    let maps = cluster.api.list(Kind::ConfigMap, NAMESPACE);
    let meta = maps.iter().find(|map| map["metadata"]["name"] == META_NAME).unwrap();
    meta["data"]["layout"].as_str().unwrap().to_owned()
}

// Faults: T3
#[tokio::test]
async fn a_namespace_that_fills_a_shard_takes_no_room_from_the_others() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    assert_eq!(layout(&cluster), "1");
    let stored = crowd(&ledger, "hostile").await;
    let objects = parts(&cluster);
    let most = objects.values().map(bytes).max().unwrap();
    println!(
        "T3: records of 14 KB that a hostile namespace could store in a victim's shard {stored} of 81 (aim as many as fit into an object of its own)"
    );
    println!(
        "T3: the victim's object has {} bytes (aim below 524288), the largest {most}",
        bytes(&objects[&shard_name()])
    );
    assert!((70..81).contains(&stored) && most <= MAP_BYTES, "{stored} stored, {most} bytes");
    assert!(objects.len() == 2 && bytes(&objects[&shard_name()]) < 1_000, "{:?}", objects.keys());
    assert_eq!(layout(&cluster), "2", "a program that knows only the first layout must not take it for its own");

    let mut current = record(1);
    for _ in 0..20 {
        current = Record { conditions: large(40_000).conditions, ..next(&current) };
        ledger.store(&web(), &current).await.unwrap();
    }
    // All of it is found again, by a later life and by whoever only looks.
    let reopened = cluster.ledger();
    let opened = reopened.open().await.unwrap();
    assert_eq!(opened.records.len(), stored + 1);
    assert_eq!(*opened.records[&web()], current);
    assert_eq!(cluster.ledger().peek().await.unwrap().unwrap().records, opened.records);
    // And what has become smaller has room again.
    let first = neighbours("hostile", 1).remove(0);
    reopened.store(&first, &next(&record(1))).await.unwrap();
    assert_eq!(cluster.ledger().load(&first).await.unwrap(), Some(next(&record(1))));
}

// Faults: T3
#[tokio::test]
async fn records_that_come_together_are_divided_as_well_and_no_number_is_given_out_twice() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let (hostile, gone) = (neighbours("hostile", 60), neighbours("hostile", 61).remove(60));
    ledger.store(&gone, &Record { seq: Seq(7), ..record(1) }).await.unwrap();
    ledger.remove(&gone, 1).await.unwrap();
    let mut all: Records = hostile.iter().map(|id| (id.clone(), large(14_000).into())).collect();
    all.insert(web(), record(1).into());
    all.values_mut().for_each(|record| Arc::make_mut(record).seq = Seq(8));
    let failed = ledger.store_all(&all).await;
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(parts(&cluster).len(), 2);
    assert_eq!(cluster.ledger().open().await.unwrap().records, all);
    for ledger in [ledger, cluster.ledger()] {
        for id in [&gone, &hostile[0], &web()] {
            assert_eq!(ledger.floor(id).await.unwrap().seq, Seq(7), "{id}");
        }
        assert!(matches!(ledger.store(&gone, &record(5)).await, Err(StoreError::Conflict(None))));
    }
}

/// Requests that write an object whose name has this in it.
fn writes_of(part: String) -> impl Fn(&Request) -> bool + Send + Sync + 'static {
    move |request| request.method != http::Method::GET && request.path.ends_with(&part)
}

/// A division that ends at the write of the shard: what came before has happened.
async fn break_off(cluster: &Cluster, when: When, action: impl Fn() -> Action) -> usize {
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    let hostile = neighbours("hostile", 60);
    for id in &hostile[..30] {
        ledger.store(id, &large(14_000)).await.unwrap();
    }
    let mut stored = 30;
    for id in &hostile[30..] {
        // The next one crowds it.
        let is_full = bytes(&parts(cluster)[&shard_name()]) + 14_300 > MAP_BYTES / 2;
        if is_full && parts(cluster).len() == 1 {
            cluster.server.inject(Fault::once(when, action()).matching(writes_of(format!("/{}", shard_name()))));
        }
        match ledger.store(id, &large(14_000)).await {
            Ok(()) => stored += 1,
            Err(StoreError::Unavailable(_) | StoreError::NoRoom(_)) => return stored,
            other => panic!("{other:?}"),
        }
    }
    stored
}

// Faults: T3
#[tokio::test]
async fn a_crash_in_the_middle_of_a_division_loses_nothing() {
    // Before the shard names the new object, and after it without our knowing.
    for when in [When::Before, When::After] {
        let cluster = Cluster::start().await;
        let stored = break_off(&cluster, when, || Action::Cut).await;
        assert_eq!(parts(&cluster).len(), 2, "{when:?}: the new object is there");
        // The next life has only what is stored.
        let ledger = cluster.opened().await;
        let records = ledger.open().await.unwrap().records;
        assert_eq!(records.len(), stored + 1, "{when:?}");
        let stored = crowd(&ledger, "hostile").await;
        assert!(stored > 65, "{when:?}: {stored}");
        ledger.store(&web(), &next(&record(1))).await.unwrap();
        let found = cluster.ledger().open().await.unwrap().records;
        assert_eq!((found.len(), &*found[&web()]), (stored + 1, &next(&record(1))), "{when:?}");
        assert!(parts(&cluster).values().all(|map| bytes(map) <= MAP_BYTES));
    }
}

// Faults: T3
#[tokio::test]
async fn a_conflict_at_the_end_of_a_division_is_answered_by_another_attempt() {
    let cluster = Cluster::start().await;
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "Conflict"});
    let conflict = || Action::Answer(Reply::full(409, "application/json", body.to_string()));
    assert_eq!(break_off(&cluster, When::Before, conflict).await, 60);
    assert_eq!(parts(&cluster).len(), 2, "the same object is used");
    assert_eq!(cluster.ledger().open().await.unwrap().records.len(), 61);
}

/// Stores it as an actor does, which comes again: of two that write without a pause, one may lose a few times in a row.
async fn store_at_last(ledger: &KubernetesLedger, id: &WorkloadId, record: &Record) {
    for _ in 0..20 {
        match ledger.store(id, record).await {
            Ok(()) => return,
            Err(StoreError::Unavailable(error)) if error.retry == Retry::Later => {}
            other => panic!("{id}: {other:?}"),
        }
    }
    panic!("{id} is never stored");
}

// Faults: T3
#[tokio::test]
async fn two_workers_divide_a_shard_once_and_go_on_side_by_side() {
    let cluster = Cluster::start().await;
    let workers = [Arc::new(cluster.opened().await), Arc::new(cluster.opened().await)];
    let hostile = neighbours("hostile", 60);
    let tasks = workers.iter().enumerate().map(|(turn, ledger)| {
        let mine: Vec<WorkloadId> = hostile.iter().skip(turn).step_by(2).cloned().collect();
        let ledger = Arc::clone(ledger);
        async move {
            for id in mine {
                store_at_last(&ledger, &id, &large(14_000)).await;
                store_at_last(&ledger, &id, &next(&large(14_000))).await;
            }
        }
    });
    futures_util::future::join_all(tasks).await;
    let expected: Records = hostile.iter().map(|id| (id.clone(), next(&large(14_000)).into())).collect();
    assert_eq!(cluster.ledger().open().await.unwrap().records, expected);
    for ledger in &workers {
        ledger.store(&web(), &record(1)).await.unwrap();
        for id in &hostile {
            assert_eq!(ledger.load(id).await.unwrap(), Some(next(&large(14_000))), "{id}");
        }
    }
    let named = parts(&cluster)[&shard_name()]["data"]["moved.hostile"].as_str().unwrap().to_owned();
    assert!(parts(&cluster).contains_key(&named));
}

// Faults: T3
#[tokio::test]
async fn a_part_that_is_lost_while_nothing_runs_was_forgotten_and_one_that_is_lost_under_us_is_healed() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    crowd(&ledger, "hostile").await;
    let part = parts(&cluster).into_keys().find(|name| *name != shard_name()).unwrap();
    let first = neighbours("hostile", 1).remove(0);
    assert!(cluster.ledger().open().await.unwrap().listed.covers(&first));

    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &part).unwrap();
    ledger.store(&first, &next(&record(1))).await.unwrap();
    let opened = cluster.ledger().open().await.unwrap();
    assert!(opened.listed.covers(&first) && opened.records.len() > 65, "healed from the copy");

    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &part).unwrap();
    let opened = cluster.opened().await.open().await.unwrap();
    assert_eq!(opened.records.len(), 1);
    assert!(opened.listed.has_forgotten(&first));
}

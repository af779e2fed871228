//! The Kubernetes ledger against our stand-in of the API, over a socket, with faults in between (faults A1 to A4).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::adapters::ledger::kubernetes::{KubernetesLedger, META_NAME};
use allclear::adapters::ledger::shard_of;
use async_trait::async_trait;
use futures_util::future::join_all;
use kernel::id::{Seq, WorkloadId};
use kernel::watches::listed::{Listed, Scope};
use purge::agreement::roster::Pin;
use purge::ports::{Ledger, PinError, Retry, StoreError};
use purge::records::record::Record;
use sandbox::http::{Action, Fault, Reply, Request, Server, When};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options};
use serde_json::json;

use super::contract::{estate, neighbours, next, record, web};
use super::{Bench, holds_the_contract};

pub const NAMESPACE: &str = "allclear";

pub struct Cluster {
    pub api: KubernetesStandIn,
    pub server: Server,
}

impl Cluster {
    pub async fn start() -> Self {
        let api = KubernetesStandIn::new(Options::default());
        api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).unwrap();
        let server = api.start().await.unwrap();
        Self { api, server }
    }

    pub fn ledger(&self) -> KubernetesLedger {
        let mut config = kube::Config::new(self.server.url().parse().unwrap());
        config.default_retry = false;
        KubernetesLedger::new(kube::Client::try_from(config).unwrap(), NAMESPACE)
    }

    pub async fn opened(&self) -> KubernetesLedger {
        let ledger = self.ledger();
        ledger.open().await.unwrap();
        ledger
    }

    /// The next requests that write get this.
    fn fail_writes(&self, when: When, action: Action) {
        self.server.inject(Fault::once(when, action).matching(|request| request.method != http::Method::GET));
    }

    pub fn shards(&self) -> Vec<serde_json::Value> {
        let mut maps = self.api.list(Kind::ConfigMap, NAMESPACE);
        maps.retain(|map| map["metadata"]["labels"]["allclear.dev/part"] == "shard");
        maps
    }
}

#[async_trait]
impl Bench for Cluster {
    async fn handle(&self) -> Arc<dyn Ledger> {
        Arc::new(self.ledger())
    }

    async fn delete(&self) {
        // The garbage collector is late on purpose: the shards are still there when the ledger is opened again.
        self.api.delete(Kind::ConfigMap, NAMESPACE, META_NAME).unwrap();
    }
}

holds_the_contract!(Cluster::start().await);

pub fn status(code: u16, reason: &str, message: &str, retry_after: u32) -> Action {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
        "details": {"retryAfterSeconds": retry_after},
    });
    Action::Answer(Reply::full(code, "application/json", body.to_string()))
}

fn unavailable(result: Result<(), StoreError>) -> purge::ports::PortError {
    match result {
        Err(StoreError::Unavailable(error)) => error,
        other => panic!("a failure was expected: {other:?}"),
    }
}

// Faults: L1
#[tokio::test]
async fn a_first_start_with_ten_thousand_workloads_costs_less_than_a_hundred_writes() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let start = Instant::now();
    assert!(ledger.store_all(&estate(10_000)).await.is_empty());
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let stored = start.elapsed();
    ledger.open().await.unwrap();
    println!(
        "10,000 records: {} writes, stored in {stored:?}, read in {:?}",
        cluster.api.writes(),
        start.elapsed() - stored
    );
    let bytes = cluster.shards().iter().map(|shard| shard["data"].to_string().len()).max();
    println!("largest of {} shards: {bytes:?} bytes", cluster.shards().len());
    assert!(cluster.api.writes() <= 100, "{} writes", cluster.api.writes());
}

#[tokio::test]
async fn writes_of_one_moment_travel_together_and_a_quiet_shard_is_written_at_once() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let workloads = neighbours(30);
    let first = record(1);
    ledger.store(&web(), &first).await.unwrap();
    let before = cluster.api.writes();
    let stores = workloads.iter().map(|workload| ledger.store(workload, &first));
    assert!(join_all(stores).await.iter().all(Result::is_ok));
    let together = cluster.api.writes() - before;
    assert!(together <= 2, "{together} writes for 30 records of one shard");

    let mut times = Vec::new();
    let mut current = first;
    for _ in 0..20 {
        // Longer than the spacing of writes: the shard is quiet.
        tokio::time::sleep(Duration::from_millis(60)).await;
        current = next(&current);
        let start = Instant::now();
        ledger.store(&web(), &current).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    println!(
        "30 records of one shard: {together} writes; one store of a quiet shard: {:?}, at worst {:?}",
        times[10], times[19]
    );
    assert_eq!(cluster.api.writes() - before, together + 20);
}

// Faults: A3
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_found_by_trying_again() {
    let cluster = Cluster::start().await;
    cluster.fail_writes(When::After, Action::Cut);
    let ledger = cluster.ledger();
    let mut opened = ledger.open().await;
    if opened.is_err() {
        opened = ledger.open().await;
    }
    let origin = opened.unwrap().origin;

    // Creating the shard, changing it, and removing from it.
    cluster.fail_writes(When::After, Action::Cut);
    assert_eq!(unavailable(ledger.store(&web(), &record(1)).await).retry, Retry::Later);
    ledger.store(&web(), &record(1)).await.unwrap();
    cluster.fail_writes(When::After, Action::Cut);
    assert_eq!(unavailable(ledger.store(&web(), &next(&record(1))).await).retry, Retry::Later);
    ledger.store(&web(), &next(&record(1))).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(next(&record(1))), "once, not twice");
    cluster.fail_writes(When::After, Action::Cut);
    assert_eq!(unavailable(ledger.remove(&web(), 2).await).retry, Retry::Later);
    ledger.remove(&web(), 2).await.unwrap();
    let reopened = cluster.ledger().open().await.unwrap();
    assert_eq!((reopened.origin, reopened.records.len()), (origin, 0));
}

#[tokio::test]
async fn a_write_that_never_arrived_is_made_by_trying_again() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    cluster.fail_writes(When::Before, Action::Cut);
    assert_eq!(unavailable(ledger.store(&web(), &record(1)).await).retry, Retry::Later);
    ledger.store(&web(), &record(1)).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(record(1)));
}

// Faults: A4
#[tokio::test]
async fn missing_rights_are_reported_with_verb_and_resource_and_end_when_they_are_given() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    cluster.fail_writes(When::Before, status(403, "Forbidden", "no", 0));
    let error = unavailable(ledger.store(&web(), &record(1)).await);
    assert!(error.retry == Retry::Never && error.denied);
    for word in ["create", "configmaps", "allclear-ledger-", NAMESPACE] {
        assert!(error.to_string().contains(word), "{error}");
    }
    cluster.fail_writes(When::Before, status(401, "Unauthorized", "Unauthorized", 0));
    let error = unavailable(ledger.store(&web(), &record(1)).await);
    assert!(error.denied && error.to_string().contains("renew the token"), "{error}");
    ledger.store(&web(), &record(1)).await.unwrap();
}

// Faults: A1
#[tokio::test]
async fn a_server_that_asks_for_patience_gets_it() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    cluster.fail_writes(When::Before, status(429, "TooManyRequests", "slow down", 7));
    assert_eq!(unavailable(ledger.store(&web(), &record(1)).await).retry, Retry::After(Duration::from_secs(7)));
    for code in [500, 503, 504] {
        cluster.fail_writes(When::Before, status(code, "InternalError", "etcdserver: request timed out", 0));
        let before = cluster.api.writes();
        assert_eq!(unavailable(ledger.store(&web(), &record(1)).await).retry, Retry::Later);
        assert_eq!(cluster.api.writes(), before, "the caller decides when to try again");
    }
}

#[tokio::test]
async fn patience_is_also_asked_for_in_a_header_and_never_for_long() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    for (asked, seconds) in [("7", 7), ("999999", 300)] {
        let busy = Reply::full(429, "text/plain", "slow down").header("retry-after", asked);
        cluster.fail_writes(When::Before, Action::Answer(busy));
        let error = unavailable(ledger.store(&web(), &record(1)).await);
        assert_eq!(error.retry, Retry::After(Duration::from_secs(seconds)), "{error}");
    }
}

#[tokio::test]
async fn only_what_the_api_server_takes_for_too_large_has_no_room() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    for (code, reason) in [(413, "RequestEntityTooLarge"), (422, "Invalid")] {
        cluster.fail_writes(When::Before, status(code, reason, "Too long: may not be more than 1048576 bytes", 0));
        let stored = ledger.store(&web(), &record(1)).await;
        assert!(matches!(&stored, Err(StoreError::NoRoom(_))), "{stored:?}");
    }
    cluster.fail_writes(When::Before, status(400, "BadRequest", "an admission webhook says no", 0));
    let error = unavailable(ledger.store(&web(), &record(1)).await);
    assert!(error.retry == Retry::Never && !error.denied, "{error:?}");
}

/// No right would help, and the ledger is not full either.
#[tokio::test]
async fn a_namespace_that_is_ending_is_no_missing_right_and_no_lack_of_room() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let ending = "unable to create new content in namespace allclear because it is being terminated";
    for (code, reason, words) in [(403, "Forbidden", ending), (404, "NotFound", "namespaces \"allclear\" not found")] {
        cluster.fail_writes(When::Before, status(code, reason, words, 0));
        let error = unavailable(ledger.store(&web(), &record(1)).await);
        assert!(!error.denied && error.retry == Retry::Later && error.cause.contains(words), "{error:?}");
    }
}

// Faults: A2
#[tokio::test]
async fn a_storm_of_conflicts_ends() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let storm = |times| {
        let action = status(409, "Conflict", "the object has been modified", 0);
        Fault::once(When::Before, action).times(times).matching(|request: &Request| request.method != http::Method::GET)
    };
    cluster.server.inject(storm(3));
    ledger.store(&web(), &record(1)).await.unwrap();
    cluster.server.inject(storm(u32::MAX));
    let error = unavailable(ledger.store(&web(), &next(&record(1))).await);
    assert_eq!(error.retry, Retry::Later);
    cluster.server.clear_faults();
    ledger.store(&web(), &next(&record(1))).await.unwrap();
}

#[tokio::test]
async fn a_dropped_writer_does_not_take_its_followers_along() {
    let cluster = Cluster::start().await;
    let ledger = Arc::new(cluster.opened().await);
    let [first, second] = <[_; 2]>::try_from(neighbours(2)).unwrap();
    cluster.fail_writes(When::After, Action::Hold);
    let leader = tokio::spawn({
        let (ledger, first) = (Arc::clone(&ledger), first.clone());
        async move { ledger.store(&first, &record(1)).await }
    });
    cluster.server.held().await;
    let follower = tokio::spawn({
        let (ledger, second) = (Arc::clone(&ledger), second.clone());
        async move { ledger.store(&second, &record(1)).await }
    });
    tokio::task::yield_now().await;
    leader.abort();
    follower.await.unwrap().unwrap();
    assert_eq!(cluster.ledger().open().await.unwrap().records.len(), 2);
    ledger.store(&first, &record(1)).await.unwrap();
}

// Faults: A4
#[tokio::test]
async fn a_shard_deleted_under_us_is_written_again_and_a_deleted_ledger_is_not() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let [first, second] = <[_; 2]>::try_from(neighbours(2)).unwrap();
    ledger.store(&first, &record(1)).await.unwrap();
    let shard = cluster.shards()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &shard).unwrap();
    ledger.store(&second, &record(1)).await.unwrap();
    assert_eq!(cluster.opened().await.open().await.unwrap().records.len(), 2);

    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &shard).unwrap();
    cluster.delete().await;
    match ledger.store(&second, &next(&record(1))).await {
        Err(StoreError::Lost(error)) => assert!(error.cause.contains("deleted"), "{error}"),
        other => panic!("a lost ledger was expected: {other:?}"),
    }
    assert!(ledger.open().await.unwrap().records.is_empty());
    ledger.store(&second, &record(1)).await.unwrap();
}

#[tokio::test]
async fn a_deleted_ledger_is_noticed_by_its_members_and_by_a_shard_that_would_be_created() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let [first, _] = <[_; 2]>::try_from(neighbours(2)).unwrap();
    cluster.delete().await;
    let pin = Pin { members: ["eu-1".into()].into(), of: 1, forgotten: ["us-1".into()].into(), ..Pin::default() };
    assert!(matches!(ledger.pin().await, Err(PinError::Lost(_))));
    assert!(matches!(ledger.store_pin(&pin, None).await, Err(PinError::Lost(_))));
    assert_eq!(cluster.ledger().pin().await.unwrap(), None, "whoever never opened one has lost none");
    assert!(matches!(ledger.store(&first, &record(1)).await, Err(StoreError::Lost(_))));
    assert!(cluster.shards().is_empty(), "it does not rise again in part");
    // Somebody else has begun the next one: it is not the one that was opened either.
    cluster.ledger().open().await.unwrap();
    assert!(matches!(ledger.pin().await, Err(PinError::Lost(_))));
    assert_eq!(ledger.open().await.unwrap().pin, None);
    assert!(ledger.store_pin(&pin, None).await.unwrap());
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_told_of_and_left_alone() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let [first, second] = <[_; 2]>::try_from(neighbours(2)).unwrap();
    ledger.store(&first, &record(1)).await.unwrap();
    let mut shard = cluster.shards().remove(0);
    let key = format!("deployment.shop.{}", first.name);
    shard["data"][&key] = json!(r#"{"z":99,"r":7}"#);
    cluster.api.put(shard).unwrap();

    let opened = ledger.open().await.unwrap();
    assert!(opened.records.is_empty());
    let why = &opened.unreadable[&first];
    assert!(why.contains("form 99") && why.contains(&format!("the key {key} in a ConfigMap")), "{why}");
    assert_eq!(unavailable(ledger.store(&first, &next(&record(1))).await).retry, Retry::Never);
    ledger.store(&second, &record(1)).await.unwrap();
    assert_eq!(cluster.shards()[0]["data"][&key], r#"{"z":99,"r":7}"#);
}

// Faults: A5
#[tokio::test]
async fn a_ledger_restored_from_a_backup_shows_in_the_conflict() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    let backup = cluster.shards().remove(0);
    let second = Record { elapsed_ms: 1, ..next(&record(1)) };
    ledger.store(&web(), &second).await.unwrap();
    cluster.api.put(backup).unwrap();
    match ledger.store(&web(), &next(&second)).await {
        Err(StoreError::Conflict(Some(current))) => assert_eq!(*current, record(1)),
        other => panic!("{other:?}"),
    }
}

// Faults: W3
#[tokio::test]
async fn an_expired_listing_is_read_again_in_one_piece() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    assert!(ledger.store_all(&estate(1_000)).await.is_empty());
    let expired = status(410, "Expired", "the provided continue parameter is too old", 0);
    let paging = |request: &Request| request.query.contains_key("continue");
    cluster.server.inject(Fault::once(When::Before, expired).times(u32::MAX).matching(paging));
    assert_eq!(cluster.ledger().open().await.unwrap().records.len(), 1_000);
}

/// What the numbers of a ledger go on above, of which only records of number and revision 1 are left.
pub const ABOVE_ONE: Seq = Seq((1 << 32) + 1);

// Faults: A8
#[tokio::test]
async fn a_shard_that_is_lost_or_was_replaced_while_nothing_ran_is_set_back_and_not_empty() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    // One shard was there when it was listed, one is created later, and one never.
    let (later, never) = (WorkloadId::deployment("shop", "api"), WorkloadId::deployment("shop", "blog"));
    let shards = [&web(), &later, &never].map(shard_of);
    assert_eq!(BTreeSet::from(shards).len(), 3);
    ledger.store(&later, &record(1)).await.unwrap();
    let forgotten = |listed: &Listed| [web(), later.clone(), never.clone()].map(|id| listed.has_forgotten(&id));
    let opened = cluster.ledger().open().await.unwrap();
    assert_eq!((forgotten(&opened.listed), opened.set_back.lost.len()), ([false; 3], 0));

    let name = |workload: &WorkloadId| format!("{META_NAME}-{:02}", shard_of(workload));
    let shard =
        |id: &WorkloadId| cluster.shards().into_iter().find(|map| map["metadata"]["name"] == *name(id)).unwrap();
    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &name(&web())).unwrap();
    let mut backup = shard(&later);
    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &name(&later)).unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        backup["metadata"].as_object_mut().unwrap().remove(field);
    }
    cluster.api.apply(backup).unwrap();
    let seen = cluster.ledger().peek().await.unwrap().unwrap();
    let lost = BTreeSet::from([
        format!("{} is gone", name(&web())),
        format!("{} is another object than it was", name(&later)),
    ]);
    assert_eq!((forgotten(&seen.listed), &seen.set_back.lost), ([true, true, false], &lost));

    let ledger = cluster.ledger();
    let opened = ledger.open().await.unwrap();
    assert_eq!(opened.set_back.lost, lost, "who looks writes nothing");
    assert_eq!(opened.set_back.records, BTreeSet::from([later.clone()]));
    assert_eq!(*opened.records[&later], record(1), "what is left of it");
    for id in [web(), later.clone()] {
        assert_eq!(ledger.floor(&id).await.unwrap().seq, ABOVE_ONE);
    }
    assert_eq!(ledger.floor(&never).await.unwrap().seq, Seq(0));
    let above = |revision| Record { seq: ABOVE_ONE.next(), revision, ..record(1) };
    for below in [record(1), above(1)] {
        assert!(matches!(ledger.store(&web(), &below).await, Err(StoreError::Conflict(None))), "{below:?}");
    }
    ledger.store(&web(), &above(ABOVE_ONE.0 + 1)).await.unwrap();
    assert!(opened.listed.covers(&web()), "it is no first listing");

    // What is found out is noted, until a rollout of the record goes on above the floor.
    let again = cluster.ledger().open().await.unwrap();
    assert_eq!((again.set_back.lost.len(), again.set_back.records.len()), (0, 1));
    assert_eq!(forgotten(&again.listed), [true, true, false], "until all are listed again");
    assert!(matches!(ledger.store(&later, &above(2)).await, Err(StoreError::Conflict(Some(_)))));
    ledger.store(&later, &above(ABOVE_ONE.0 + 1)).await.unwrap();
    assert!(cluster.ledger().open().await.unwrap().set_back.records.is_empty());
}

#[tokio::test]
async fn a_shard_that_only_lost_its_label_is_not_set_back() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let mut shard = cluster.shards().remove(0);
    shard["metadata"]["labels"] = json!({});
    cluster.api.put(shard).unwrap();
    let opened = cluster.ledger().open().await.unwrap();
    assert!(opened.set_back.lost.is_empty(), "{:?}", opened.set_back.lost);
    assert_eq!(*opened.records[&web()], record(1));
}

#[tokio::test]
async fn a_shard_that_is_lost_under_us_without_a_copy_is_set_back_at_the_next_look() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let [first, second] = <[_; 2]>::try_from(neighbours(2)).unwrap();
    ledger.store(&first, &record(1)).await.unwrap();
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let shard = cluster.shards()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &shard).unwrap();
    assert_eq!(ledger.load(&first).await.unwrap(), None);
    assert_eq!(ledger.floor(&second).await.unwrap().seq, Seq(1 << 32), "nothing is left to count from");
    assert!(matches!(ledger.store(&second, &record(1)).await, Err(StoreError::Conflict(None))));
    let opened = cluster.ledger().open().await.unwrap();
    assert!(opened.set_back.lost.is_empty(), "it is noted: {:?}", opened.set_back.lost);
    assert_eq!(cluster.opened().await.floor(&first).await.unwrap().seq, Seq(1 << 32));
}

#[tokio::test]
async fn a_shard_that_was_healed_under_us_is_not_set_back() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store(&web(), &record(1)).await.unwrap();
    ledger.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    let name = format!("{META_NAME}-{:02}", shard_of(&web()));
    cluster.api.delete(Kind::ConfigMap, NAMESPACE, &name).unwrap();
    ledger.store(&web(), &next(&record(1))).await.unwrap();
    let opened = cluster.ledger().open().await.unwrap();
    assert!(opened.set_back.lost.is_empty() && !opened.listed.has_forgotten(&web()));
}

//! The Redis ledger against a real `redis-server`, and what each of its refusals becomes (faults R1 to R5).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::adapters::ledger::redis::RedisLedger;
use allclear::adapters::redis::{RIGHTS, Server};
use async_trait::async_trait;
use domain::notices::notice::Kind;
use domain::ports::{Ledger, PortError, Retry, StoreError};
use domain::watches::listed::Scope;
use support::redis::{Address, Redis};

use super::contract::{delivery, estate, next, record, web};
use super::{Bench, holds_the_contract};

fn ledger_at(url: &str) -> RedisLedger {
    RedisLedger::new(Server::new(url).unwrap(), "default")
}

fn ledger(redis: &Redis) -> RedisLedger {
    ledger_at(&redis.url())
}

#[async_trait]
impl Bench for Redis {
    async fn handle(&self) -> Arc<dyn Ledger> {
        Arc::new(ledger(self))
    }

    async fn delete(&self) {
        self.command::<()>(&["FLUSHALL"]);
    }
}

holds_the_contract!(Redis::start());

fn unavailable(result: Result<(), StoreError>) -> PortError {
    match result {
        Err(StoreError::Unavailable(error)) => error,
        other => panic!("a failure was expected: {other:?}"),
    }
}

fn lost(result: Result<(), StoreError>) -> PortError {
    match result {
        Err(StoreError::Lost(error)) => error,
        other => panic!("a lost ledger was expected: {other:?}"),
    }
}

#[track_caller]
fn assert_refused(result: Result<(), StoreError>, reason: &str, retry: Retry) {
    let error = unavailable(result);
    assert!(error.cause.starts_with(&format!("{reason}: ")), "{error}");
    assert_eq!(error.retry, retry, "{error}");
}

#[tokio::test]
async fn ten_thousand_records_and_one_are_stored_quickly() {
    let redis = Redis::start();
    let ledger = ledger(&redis);
    ledger.open().await.unwrap();
    let start = Instant::now();
    assert!(ledger.store_all(&estate(10_000)).await.is_empty());
    let stored = start.elapsed();
    ledger.open().await.unwrap();
    println!("10,000 records: stored in {stored:?}, read in {:?}", start.elapsed() - stored);
    let mut current = record(1);
    let mut times = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        ledger.store(&web(), &current).await.unwrap();
        times.push(start.elapsed());
        current = next(&current);
    }
    times.sort();
    println!("one store: {:?}, at worst {:?}", times[50], times[99]);
}

// Faults: R2, R3
#[tokio::test]
async fn a_ledger_that_was_emptied_under_us_is_not_taken_for_a_new_one() {
    let mut redis = Redis::start();
    let ledger = ledger(&redis);
    let origin = ledger.open().await.unwrap().origin;
    ledger.store(&web(), &record(1)).await.unwrap();
    redis.start_again();
    let mut answer = ledger.store(&web(), &next(&record(1))).await;
    if matches!(answer, Err(StoreError::Unavailable(_))) {
        // The first call may be what notices that the connection is lost.
        answer = ledger.store(&web(), &next(&record(1))).await;
    }
    let error = lost(answer);
    assert!(error.cause.contains("emptied"), "{error}");
    assert!(lost(ledger.remove(&web(), 1).await).cause.contains("emptied"));
    assert_ne!(ledger.open().await.unwrap().origin, origin);
    ledger.store(&web(), &record(1)).await.unwrap();
}

// Faults: R1
#[tokio::test]
async fn a_write_that_is_carried_out_late_is_carried_out_once() {
    let redis = Redis::start();
    let ledger = ledger(&redis);
    ledger.open().await.unwrap();
    ledger.store(&web(), &record(1)).await.unwrap();
    redis.pause();
    let start = Instant::now();
    assert_refused(ledger.store(&web(), &next(&record(1))).await, "timeout", Retry::Later);
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    redis.resume();
    ledger.store(&web(), &next(&record(1))).await.unwrap();
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(next(&record(1))));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_once_however_many_records_there_are() {
    let redis = Redis::start();
    let ledger = ledger(&redis);
    ledger.open().await.unwrap();
    redis.pause();
    let start = Instant::now();
    let failed = ledger.store_all(&estate(5_000)).await;
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    assert_eq!(failed.len(), 5_000, "none of them is taken for stored");
    assert!(failed.values().all(|error| matches!(error, StoreError::Unavailable(_))));
    redis.resume();
    assert!(ledger.store_all(&estate(5_000)).await.is_empty());
}

// Faults: R1
#[tokio::test]
async fn a_server_that_is_away_is_reported_soon_and_used_again_when_it_is_back() {
    let mut redis = Redis::start();
    let url = redis.url();
    redis.kill();
    let ledger = ledger_at(&url);
    let start = Instant::now();
    let error = ledger.open().await.unwrap_err();
    assert!(error.cause.starts_with("refused: ") && error.retry == Retry::Later, "{error}");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    redis.start_again();
    ledger.open().await.unwrap();
    ledger.store(&web(), &record(1)).await.unwrap();
}

// Faults: R5
#[tokio::test]
async fn a_foreign_key_in_our_place_is_named_and_never_deleted() {
    let redis = Redis::start();
    let ledger = ledger(&redis);
    ledger.open().await.unwrap();
    redis.command::<()>(&["SET", "allclear:{default}:records", "somebody else's"]);
    assert_refused(ledger.store(&web(), &record(1)).await, "WRONGTYPE", Retry::Never);
    assert!(ledger.open().await.unwrap_err().cause.starts_with("WRONGTYPE: "));
    assert_eq!(redis.command::<String>(&["GET", "allclear:{default}:records"]), "somebody else's");
}

// Faults: R5
#[tokio::test]
async fn refusals_of_the_server_are_reported_by_name() {
    let redis = Redis::start();
    let ledger = ledger(&redis);
    ledger.open().await.unwrap();

    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_refused(ledger.store(&web(), &record(1)).await, "OOM", Retry::Later);
    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);

    redis.command::<()>(&["SCRIPT", "FLUSH"]);
    ledger.store(&web(), &record(1)).await.unwrap();

    redis.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_refused(ledger.store(&web(), &next(&record(1))).await, "READONLY", Retry::Later);
    redis.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    ledger.store(&web(), &next(&record(1))).await.unwrap();

    redis.command::<()>(&["ACL", "SETUSER", "poor", "on", ">secret-word", "~other:*", "+@all"]);
    let poor = ledger_at(&format!("redis://poor:secret-word@127.0.0.1:{}", redis.port()));
    assert!(poor.open().await.unwrap_err().cause.starts_with("NOPERM: "));
    let wrong = ledger_at(&format!("redis://poor:other-word@127.0.0.1:{}", redis.port()));
    let error = wrong.open().await.unwrap_err();
    assert!(error.cause.starts_with("WRONGPASS: ") && error.retry == Retry::Never, "{error}");
    for shown in [format!("{wrong:?}"), format!("{error:?}"), error.to_string()] {
        assert!(!shown.contains("word@") && !shown.contains("other-word"), "{shown}");
    }

    redis.command::<()>(&["CONFIG", "SET", "requirepass", "secret-word"]);
    let error = ledger_at(&redis.url()).open().await.unwrap_err();
    assert!(error.cause.starts_with("NOAUTH: "), "{error}");
}

// Faults: R4
#[tokio::test]
async fn after_a_failover_one_store_is_refused_and_the_next_is_on_the_new_primary() {
    let (old, new) = (Redis::start(), Redis::start());
    let address = Address::of(&old).await;
    let ledger = ledger_at(address.url());
    let origin = ledger.open().await.unwrap().origin;
    ledger.store(&web(), &record(1)).await.unwrap();
    address.fail_over(&old, &new).await;

    let held = |redis: &Redis| {
        redis.command::<Option<String>>(&["HGET", "allclear:{default}:records", &web().to_string()]).unwrap_or_default()
    };
    let second = next(&record(1));
    assert_refused(ledger.store(&web(), &second).await, "READONLY", Retry::Later);
    assert!([&old, &new].iter().all(|redis| held(redis).starts_with("1 ")), "what was refused is nowhere");
    ledger.store(&web(), &second).await.unwrap();
    assert!(held(&new).starts_with("2 "), "{}", held(&new));
    assert_eq!(ledger.load(&web()).await.unwrap(), Some(second));
    assert_eq!(ledger.open().await.unwrap().origin, origin, "the same ledger, elsewhere");
}

#[tokio::test]
async fn the_rights_we_ask_for_are_enough() {
    let redis = Redis::start();
    let rights = format!("on >secret-word {RIGHTS}");
    let rule: Vec<&str> = ["ACL", "SETUSER", "modest"].into_iter().chain(rights.split(' ')).collect();
    redis.command::<()>(&rule);
    let ledger = ledger_at(&format!("redis://modest:secret-word@127.0.0.1:{}", redis.port()));
    ledger.open().await.unwrap();
    ledger.store(&web(), &record(1)).await.unwrap();
    let delivery = delivery(Kind::PurgeCompleted, "{}");
    ledger.store_delivery(&delivery).await.unwrap();
    assert_eq!(ledger.deliveries().await.unwrap(), std::slice::from_ref(&delivery));
    ledger.remove_delivery(&delivery.id).await.unwrap();
    ledger.remove(&web(), 1).await.unwrap();
    assert_eq!(ledger.floor(&web()).await.unwrap().seq, record(1).seq);
}

#[tokio::test]
async fn a_redis_that_evicted_the_records_does_not_say_that_all_is_on_record() {
    let redis = Redis::start();
    let first = ledger(&redis);
    first.open().await.unwrap();
    first.store(&web(), &record(1)).await.unwrap();
    first.store_listed(&BTreeSet::from([Scope::of(None)])).await.unwrap();
    redis.command::<()>(&["DEL", "allclear:{default}:records"]);
    let opened = ledger(&redis).open().await.unwrap();
    assert!(opened.records.is_empty() && opened.listed.is_empty());
}

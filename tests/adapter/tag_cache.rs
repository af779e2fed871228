//! The published records against a real `redis-server`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Actor;
use allclear::actors::Surroundings;
use allclear::actors::message::{Drain, Observe};
use allclear::actors::root::Root;
use allclear::adapters::redis::Server;
use allclear::adapters::redis::tag_cache::RedisTagCache;
use allclear::domain::id::{Seq, WorkloadId};
use allclear::domain::record::Record;
use allclear::domain::record_codec::{decode, encode};
use allclear::ports::TagCache;
use allclear::telemetry::Metrics;
use tokio::sync::oneshot;

use crate::fakes::World;
use crate::stage::{Stage, deployment, id, settings};
use crate::support::redis::Redis;

const KEY: &str = "allclear:{default}:rec:eu-1:deployment/shop/web";

/// Everything here is shown within milliseconds, or, where Redis was away, within the 5 s between two looks and the wait
/// after failures; two busy cores take longer.
const WITHIN: Duration = Duration::from_secs(60);

fn record(revision: u64) -> Record {
    record_of(1, revision)
}

fn record_of(seq: u64, revision: u64) -> Record {
    decode(format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#).as_bytes()).unwrap()
}

fn cache(redis: &Redis) -> RedisTagCache {
    RedisTagCache::new(Server::new(&redis.url()).unwrap(), "default", &"eu-1".into())
}

async fn publish(cache: &RedisTagCache, origin: &str, revision: u64) {
    let web = WorkloadId::deployment("shop", "web");
    cache.show(&web, &origin.into(), &record(revision)).await.unwrap();
}

fn published(redis: &Redis) -> (String, Record) {
    let fields: BTreeMap<String, String> = redis.command(&["HGETALL", KEY]);
    assert_eq!(fields["rev"], decode(fields["body"].as_bytes()).unwrap().revision.to_string());
    (fields["org"].clone(), decode(fields["body"].as_bytes()).unwrap())
}

#[tokio::test]
async fn the_newer_revision_wins_in_whatever_order_they_arrive() {
    let redis = Redis::start();
    let cache = cache(&redis);
    // 9 after 10 as text; beyond 2^53, where Lua's own numbers are not exact any more.
    for (arriving, expected) in
        [(9, 9), (10, 10), (9, 10), (u64::MAX - 1, u64::MAX - 1), (u64::MAX, u64::MAX), (11, u64::MAX)]
    {
        publish(&cache, "one", arriving).await;
        assert_eq!(published(&redis), ("one".to_owned(), record(expected)));
    }
    assert_eq!(redis.command::<i64>(&["TTL", KEY]), -1, "keys with a time to live are evicted first");
    assert_eq!(redis.command::<String>(&["HGET", KEY, "body"]), encode(&record(u64::MAX)).unwrap());
}

#[tokio::test]
async fn a_new_ledger_replaces_the_records_of_the_old_one() {
    let redis = Redis::start();
    let cache = cache(&redis);
    publish(&cache, "one", 7).await;
    publish(&cache, "two", 1).await;
    assert_eq!(published(&redis), ("two".to_owned(), record(1)));
}

#[tokio::test]
async fn people_can_read_the_tag() {
    let redis = Redis::start();
    publish(&cache(&redis), "one", 7).await;
    assert_eq!(redis.command::<String>(&["HGET", KEY, "version"]), record(7).version.to_string());
    assert!(redis.command::<String>(&["HGET", KEY, "version"]).ends_with("shop/web:1.2"));
    assert_eq!(redis.command::<String>(&["HGET", KEY, "phase"]), "complete");
}

#[tokio::test]
async fn a_workload_that_was_created_again_is_shown_although_its_revisions_begin_anew() {
    let redis = Redis::start();
    let (cache, web) = (cache(&redis), WorkloadId::deployment("shop", "web"));
    for (arriving, expected) in [((9, 30), (9, 30)), ((10, 1), (10, 1)), ((9, 31), (10, 1))] {
        cache.show(&web, &"one".into(), &record_of(arriving.0, arriving.1)).await.unwrap();
        assert_eq!(published(&redis).1, record_of(expected.0, expected.1), "{arriving:?}");
    }
    // Late: what it was about is gone, and another one is shown.
    cache.forget(&web, &"one".into(), Seq(9), 31).await.unwrap();
    assert_eq!(published(&redis).1, record_of(10, 1));
    cache.forget(&web, &"two".into(), Seq(10), 1).await.unwrap();
    assert_eq!(published(&redis).1, record_of(10, 1), "the ledger of another origin knows nothing of it");
    for _ in 0..2 {
        cache.forget(&web, &"one".into(), Seq(10), 1).await.unwrap();
        assert!(!redis.command::<bool>(&["EXISTS", KEY]));
    }
}

#[tokio::test]
async fn a_loss_is_noticed_once_even_if_something_was_shown_since() {
    let mut redis = Redis::start();
    let cache = cache(&redis);
    assert!(cache.is_intact().await.unwrap(), "nothing was shown, so nothing is lost");
    publish(&cache, "one", 7).await;
    publish(&cache, "one", 8).await;
    assert!(cache.is_intact().await.unwrap());
    redis.command::<()>(&["FLUSHALL"]);
    assert_eq!([cache.is_intact().await.unwrap(), cache.is_intact().await.unwrap()], [false, true]);
    publish(&cache, "one", 9).await;
    redis.start_again();
    // The connection is noticed to be gone by a call at the latest.
    let _ = cache.is_intact().await;
    publish(&cache, "one", 10).await;
    redis.command::<()>(&["FLUSHALL"]);
    publish(&cache, "one", 11).await;
    assert_eq!([cache.is_intact().await.unwrap(), cache.is_intact().await.unwrap()], [false, true]);
}

/// What people see of `web`, or nothing.
fn seen(redis: &Redis) -> Option<String> {
    redis.command(&["HGET", KEY, "version"])
}

async fn until(what: &str, fact: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !fact().await {
        assert!(Instant::now() < deadline, "not within {WITHIN:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The whole program in a faked cluster and with a real Redis: whatever happens to either, Redis soon shows the cluster.
#[test]
fn redis_shows_what_the_cluster_runs_through_changes_removals_and_losses() {
    actix::System::new().block_on(async {
        let mut redis = Redis::start();
        let world = World::new(1);
        world.life_begins();
        world.set(deployment("web", 1, 1, "1", Stage::Complete));
        let mut ports = world.ports();
        ports.tags = Some(Arc::new(cache(&redis)));
        let surroundings =
            Surroundings { ports, metrics: Arc::new(Metrics::default()), settings: Arc::new(settings()) };
        let root = Root::new(surroundings.clone(), oneshot::channel().0).start();
        let shows = |tag: &'static str| {
            let redis = &redis;
            until(tag, async move || seen(redis).is_some_and(|version| version.ends_with(&format!("shop/web:{tag}"))))
        };
        shows("1").await;
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        shows("2").await;
        world.delete(&id("web"));
        until("forgotten", async || !redis.command::<bool>(&["EXISTS", KEY])).await;
        world.set(deployment("web", 2, 1, "3", Stage::Complete));
        shows("3").await;

        redis.command::<()>(&["FLUSHALL"]);
        shows("3").await;

        redis.kill();
        let troubled = async || !root.send(Observe).await.unwrap().troubles.is_empty();
        until("reported", troubled).await;
        redis.start_again();
        let redis = &redis;
        until("3 again", async || seen(redis).is_some_and(|version| version.ends_with("shop/web:3"))).await;
        until("not reported any more", async || !troubled().await).await;

        // Another life, and a Redis that was emptied between the two.
        root.send(Drain).await.unwrap();
        redis.command::<()>(&["FLUSHALL"]);
        let mut ports = surroundings.ports.clone();
        ports.tags = Some(Arc::new(cache(redis)));
        let next = Root::new(Surroundings { ports, ..surroundings }, oneshot::channel().0).start();
        until("3 after a start", async || seen(redis).is_some_and(|version| version.ends_with("shop/web:3"))).await;
        drop(next);
    });
}

#[tokio::test]
async fn what_was_wiped_is_published_again_by_the_next_change() {
    let redis = Redis::start();
    let cache = cache(&redis);
    publish(&cache, "one", 7).await;
    redis.command::<()>(&["FLUSHALL"]);
    publish(&cache, "one", 8).await;
    assert_eq!(published(&redis), ("one".to_owned(), record(8)));
}

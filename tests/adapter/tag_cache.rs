//! The published records against a real `redis-server`.

use std::collections::BTreeMap;

use allclear::adapters::redis::Server;
use allclear::adapters::redis::tag_cache::RedisTagCache;
use allclear::domain::id::WorkloadId;
use allclear::domain::record::Record;
use allclear::domain::record_codec::{decode, encode};
use allclear::ports::TagCache;

use crate::support::redis::Redis;

const KEY: &str = "allclear:{default}:rec:eu-1:deployment/shop/web";

fn record(revision: u64) -> Record {
    decode(format!(r#"{{"r":{revision},"u":"u","s":1,"v":{{}}}}"#).as_bytes()).unwrap()
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
async fn what_was_wiped_is_published_again_by_the_next_change() {
    let redis = Redis::start();
    let cache = cache(&redis);
    publish(&cache, "one", 7).await;
    redis.command::<()>(&["FLUSHALL"]);
    publish(&cache, "one", 8).await;
    assert_eq!(published(&redis), ("one".to_owned(), record(8)));
}

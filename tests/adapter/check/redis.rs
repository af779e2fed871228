//! Real Redis servers, each with one thing wrong.

use sandbox::proxy::{Direction, Mode, Proxy};

use super::*;
use crate::certificates;

impl World {
    /// Alone, with this Redis: it has left its group.
    async fn alone(&mut self, url: &str) {
        self.sections.remove("group");
        self.sections.insert("redis", format!("url = \"{url}\""));
        let clients = connect(&self.kubernetes()).await.unwrap();
        let ledger = KubernetesLedger::new(clients.request, "allclear");
        let before = ledger.open().await.unwrap().pin;
        let left = Pin { members: ["eu-1".into()].into(), of: 1, ..Pin::default() };
        assert!(ledger.store_pin(&left, before.as_ref()).await.unwrap());
    }
}

#[tokio::test]
async fn a_redis_that_is_away_is_named_and_the_other_is_checked() {
    let mut world = World::start().await;
    world.alone("redis://127.0.0.1:9").await;
    let report = world.fails("redis-connect", "Connection refused").await;
    said(&report, "redis-role", "not tried: redis-connect");
}

#[tokio::test]
async fn a_password_that_is_missing_or_wrong_is_named() {
    let mut world = World::start().await;
    let locked = Redis::start_with(&["--requirepass", "hunter2"]);
    world.alone(&locked.url()).await;
    let report = world.fails("redis-auth", "NOAUTH").await;
    said(&report, "redis-connect", "not refused");
    world.alone(&locked.url().replace("redis://", "redis://:wrong-word@")).await;
    let report = world.fails("redis-auth", "WRONGPASS").await;
    assert!(!report.to_string().contains("wrong-word"), "{report}");
}

#[tokio::test]
async fn a_replica_takes_no_writes() {
    let mut world = World::start().await;
    let replica = Redis::start();
    replica.command::<()>(&["REPLICAOF", "127.0.0.1", &world.redis[0].port().to_string()]);
    replica.until(&["INFO", "replication"], "master_link_status:up").await;
    world.alone(&replica.url()).await;
    world.fails("redis-role", "READONLY: this is a replica; point us at the primary").await;
}

#[tokio::test]
async fn a_policy_that_evicts_records_fails_and_one_that_evicts_beats_is_known() {
    let mut world = World::start().await;
    let redis = Redis::start();
    world.alone(&redis.url()).await;
    redis.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    world.fails("redis-eviction", "allkeys-lru").await;
    redis.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    world.warns("redis-eviction", "volatile-ttl").await;
}

#[tokio::test]
async fn a_server_from_before_redis_6_is_named() {
    let mut world = World::start().await;
    // It does not know the greeting by which a connection asks for RESP3.
    let old = Redis::start_with(&["--rename-command", "HELLO", ""]);
    world.alone(&old.url()).await;
    let report = world.fails("redis-version", "the server is older than Redis 6").await;
    said(&report, "redis-connect", "not refused");
    said(&report, "redis-role", "not tried: redis-version");
}

#[tokio::test]
async fn cluster_mode_is_named() {
    let mut world = World::start().await;
    let redis = Redis::start_with(&["--cluster-enabled", "yes"]);
    redis.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    redis.until(&["CLUSTER", "INFO"], "cluster_state:ok").await;
    world.alone(&redis.url()).await;
    world.fails("redis-mode", "cluster mode is on").await;
}

#[tokio::test]
async fn an_acl_that_forbids_a_command_is_named_with_what_is_needed() {
    let mut world = World::start().await;
    let redis = Redis::start();
    redis.command::<()>(&[
        "ACL",
        "SETUSER",
        "us",
        "on",
        ">word",
        "~allclear:*",
        "&allclear:*",
        "+@all",
        "-zadd",
        "-evalsha",
    ]);
    world.alone(&redis.url().replace("redis://", "redis://us:word@")).await;
    let report = world.fails("redis-commands", "the ACL forbids EVALSHA, ZADD").await;
    said(&report, "redis-commands", "our user needs ~allclear:*");
    let keys: Vec<String> = redis.command(&["KEYS", "*"]);
    assert_eq!(keys, [""; 0], "what was made to try it is gone");
}

#[tokio::test]
async fn the_rights_that_are_documented_are_enough() {
    let mut world = World::start().await;
    let redis = Redis::start();
    let rights = allclear::adapters::redis::RIGHTS;
    let words: Vec<&str> = ["ACL", "SETUSER", "us", "on", ">word"].into_iter().chain(rights.split(' ')).collect();
    redis.command::<()>(&words);
    world.alone(&redis.url().replace("redis://", "redis://us:word@")).await;
    let report = world.report().await;
    assert_eq!((report.failed, report.warnings), (0, 0), "{report}");
}

#[tokio::test]
async fn a_server_that_does_not_tell_is_known_and_no_failure() {
    let mut world = World::start().await;
    let redis = Redis::start();
    redis.command::<()>(&["ACL", "SETUSER", "us", "on", ">word", "~allclear:*", "&allclear:*", "+@all", "-info"]);
    world.alone(&redis.url().replace("redis://", "redis://us:word@")).await;
    let report = world.report().await;
    said(&report, "redis-version", "it does not tell: INFO is forbidden");
    said(&report, "redis-eviction", "it does not tell: INFO is forbidden");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_named() {
    let directory = tempfile::tempdir().unwrap();
    certificates::make(directory.path());
    let file = |name: &str| directory.path().join(name).display().to_string();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let (certificate, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let _redis = Redis::start_with(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ]);
    let mut world = World::start().await;
    world.alone(&format!("rediss://localhost:{port}")).await;
    let report =
        world.fails("redis-tls", "put that authority's certificate, PEM, into the file that redis.ca_file names").await;
    said(&report, "redis-auth", "not tried: redis-tls");
    world.sections.entry("redis").and_modify(|keys| keys.push_str(&format!("\nca_file = \"{ca}\"")));
    let report = world.report().await;
    said(&report, "redis-tls", "its certificate is trusted");
    // The same server as a receiver of notices.
    world.hooks = json!([{"name": "web", "url": format!("https://localhost:{port}/x"), "method": "POST"}]);
    let report = world.fails("webhook-tls", "TLS failed").await;
    said(&report, "webhook-answer", "not tried: webhook-tls");
}

#[tokio::test]
async fn a_server_far_away_is_known_by_its_round_trip() {
    let mut world = World::start().await;
    let redis = Redis::start();
    let line = Proxy::start(std::net::SocketAddr::from(([127, 0, 0, 1], redis.port()))).unwrap();
    line.set(Direction::ToClient, Mode::Delay(std::time::Duration::from_millis(510)));
    world.alone(&format!("redis://{}", line.address())).await;
    world.warns("redis-latency", "a round trip takes 5").await;
}

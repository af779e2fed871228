//! The whole program in a faked cluster and with a real `redis-server`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Actor;
use allclear::actors::Env;
use allclear::actors::message::{Drain, Observe};
use allclear::actors::root::Root;
use allclear::adapters::redis::Server;
use allclear::adapters::redis::board::RedisBoard;
use allclear::telemetry::Metrics;
use support::fakes::World;
use support::redis::Redis;
use support::stage::{Stage, deployment, id, settings};
use tokio::sync::oneshot;

const KEY: &str = "allclear:{default}:rec:eu-1:deployment/shop/web";

/// Everything here is shown within milliseconds, or, where Redis was away, within the 5 s between two looks and the wait
/// after failures; two busy cores take longer.
const WITHIN: Duration = Duration::from_secs(60);

fn board(redis: &Redis) -> RedisBoard {
    RedisBoard::new(Server::new(&redis.url()).unwrap(), "default", &"eu-1".into(), None)
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

// Faults: R2, R3
/// Whatever happens to the cluster or to Redis, Redis soon shows the cluster.
#[test]
fn redis_shows_what_the_cluster_runs_through_changes_removals_and_losses() {
    actix::System::new().block_on(async {
        let mut redis = Redis::start();
        let world = World::new(1);
        world.life_begins();
        world.set(deployment("web", 1, 1, "1", Stage::Complete));
        let mut ports = world.ports();
        ports.boards = vec![Arc::new(board(&redis))];
        let env = Env {
            ports,
            metrics: Arc::new(Metrics::default()),
            settings: Arc::new(settings()),
            complaints: Arc::default(),
        };
        let root = Root::new(env.clone(), oneshot::channel().0).start();
        let shows = |tag: &'static str| {
            let redis = &redis;
            until(tag, async move || seen(redis).is_some_and(|version| version.ends_with(&format!("shop/web:{tag}"))))
        };
        shows("1").await;
        world.set(deployment("web", 1, 2, "2", Stage::Half));
        shows("2").await;
        world.delete(&id("web"));
        let gone = async || redis.command::<Option<String>>(&["HGET", KEY, "phase"]).as_deref() == Some("gone");
        until("forgotten", gone).await;
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
        let mut ports = env.ports.clone();
        ports.boards = vec![Arc::new(board(redis))];
        let next = Root::new(Env { ports, ..env }, oneshot::channel().0).start();
        until("3 after a start", async || seen(redis).is_some_and(|version| version.ends_with("shop/web:3"))).await;
        drop(next);
    });
}

//! Two replicas of one member: one works and the other stands by; and where both work, nothing is done twice.

use std::time::{Duration, Instant};

use serde_json::Value;
use support::process::{Process, comes_true};

use crate::scene::{DISTRIBUTION, NAME, Scene};

/// How soon a replica works after the one before it ended in order: well below the 15 s for which a lease is good.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(12);

/// A replica of this pod's name, started.
fn replica(scene: &Scene, pod: &str, lease: bool) -> Process {
    let mut environment = scene.environment.clone();
    environment.insert("POD_NAME".to_owned(), pod.to_owned());
    environment.insert("ALLCLEAR__LEADER__LEASE".to_owned(), lease.to_string());
    Process::start(&["run"], environment)
}

/// Waits for a fact, and shows what the replicas logged if it never comes true.
pub async fn until(what: &str, replicas: &[&Process], mut fact: impl AsyncFnMut() -> bool) {
    let logs = || replicas.iter().map(|replica| replica.tail()).collect::<Vec<_>>().join("\n\n");
    assert!(comes_true(async || fact().await).await, "it never came to this: {what}\n{}", logs());
}

fn stands_by(state: &Value, pod: &str) -> bool {
    state["standing_by"].as_str().is_some_and(|leader| leader.starts_with(&format!("{pod}_")))
}

async fn is_ready(replica: &Process) -> bool {
    replica.get("/readyz").await.is_some_and(|(status, _)| status == 200)
}

#[tokio::test]
async fn a_leader_that_is_killed_is_followed_by_the_other_replica_and_one_purge_comes_out() {
    let scene = Scene::new().await;
    let first = replica(&scene, "first", true);
    until("first works", &[&first], async || first.state().await["synced"] == true && scene.record().is_some()).await;
    let second = replica(&scene, "second", true);
    until("second stands by", &[&first, &second], async || stands_by(&second.state().await, "first")).await;
    assert!(is_ready(&second).await, "who stands by is ready");
    let (_, page) = second.get("/").await.expect("it has a page");
    assert!(page.contains("Standing by: first_"), "{page}");
    for (replica, line) in [(&first, "\nallclear_leader 1\n"), (&second, "\nallclear_leader 0\n")] {
        let (_, metrics) = replica.get("/metrics").await.expect("it has metrics");
        assert!(metrics.contains(line), "{metrics}");
    }

    scene.roll_out("1.1");
    let under_way = async || scene.record().is_some_and(|record| record.seq.0 == 2);
    until("the rollout is recorded", &[&first, &second], under_way).await;
    first.kill();
    until("second works", &[&second], async || second.state().await["synced"] == true).await;
    until("it is over", &[&second], async || scene.is_over(NAME, 2) && scene.outbox() == 0).await;
    assert_eq!(scene.purged(), [DISTRIBUTION]);

    // An orderly end gives the lease back, so nobody waits for 15 s.
    let third = replica(&scene, "third", true);
    until("third stands by", &[&second, &third], async || stands_by(&third.state().await, "second")).await;
    let ended = Instant::now();
    second.signal("TERM");
    until("third works", &[&second, &third], async || third.state().await["synced"] == true).await;
    assert!(ended.elapsed() < HANDED_OVER_WITHIN, "it took {:?}", ended.elapsed());
    assert!(!third.said("does not answer") && third.said("leading: this replica works"), "{}", third.tail());
}

#[tokio::test]
async fn two_replicas_that_both_work_purge_once() {
    let scene = Scene::new().await;
    let both = [replica(&scene, "first", false), replica(&scene, "second", false)];
    for replica in &both {
        until("it works", &[&both[0], &both[1]], async || {
            replica.state().await["synced"] == true && scene.record().is_some()
        })
        .await;
    }
    for (tag, seq) in [("1.1", 2), ("1.2", 3), ("1.0", 4)] {
        scene.roll_out(tag);
        until(tag, &[&both[0], &both[1]], async || scene.is_over(NAME, seq) && scene.outbox() == 0).await;
    }
    until("neither has anything to do", &[&both[0], &both[1]], async || {
        let mut idle = true;
        for replica in &both {
            let state = replica.state().await;
            idle &= ["rollouts", "purges", "deliveries"].iter().all(|list| state[list] == Value::Array(Vec::new()));
        }
        idle
    })
    .await;
    assert_eq!(scene.purged(), [DISTRIBUTION; 3], "one for each rollout");
    assert_eq!(scene.aftermath().told.len(), 3, "the same bytes, however often");
}

//! Pods that no count of a Deployment tells of: old ones that still serve when its rollout is complete, and new ones that have
//! served when it is taken back.

use notices::notice::Kind;
use purge::ports::PortError;
use purge::records::record::Outcome;
use purge::workloads::readiness::Pod;
use purge::workloads::serving::{Endpoint, Serving};
use support::fakes::{Fault, Millis, World};
use support::stage::{Stage, deployment, id, life, roll_out, settled};

/// The time of the settling in these tests, and the bound.
const SETTLE: Millis = 300;
const BOUND: Millis = 60_000;

/// Two pods of the new template, and one of the old that is on its way out and serves, as far as an endpoint says so.
fn serving(old_serves: bool) -> Serving {
    let pod = |name: &str, hash: &str, terminating| {
        let pod = Pod {
            name: name.into(),
            version: None,
            ready: true,
            terminating,
            started: false,
            finished: false,
            trouble: None,
        };
        ([("pod-template-hash".to_owned(), hash.to_owned())].into(), pod)
    };
    let endpoint = |pod: &str, serves| Endpoint { pod: pod.into(), serves };
    Serving {
        pods: vec![pod("web-new-1", "new", false), pod("web-new-2", "new", false), pod("web-old-1", "old", true)],
        endpoints: vec![endpoint("web-new-1", true), endpoint("web-old-1", old_serves)],
    }
}

fn serve(world: &World, name: &str, seen: Option<Serving>) {
    match seen {
        Some(seen) => drop(world.state().serving.insert(id(name), seen)),
        None => drop(world.state().serving.remove(&id(name))),
    }
}

// Faults: P1
#[test]
fn the_purge_waits_for_the_last_old_pod_and_other_workloads_do_not_wait_with_it() {
    let world = settled(1, &["web", "blog"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        serve(&world, "web", Some(serving(true)));
        tokio::join!(roll_out(life, "web", 2, "2", 4_000), roll_out(life, "blog", 2, "2", 4_000));
        let complete = world.now();
        life.pass(20_000).await;
        let stopped = world.now();
        serve(&world, "web", Some(serving(false)));
        life.pass(30_000).await;
        let [blog] = world.creations("EBLOG")[..] else { panic!("one purge") };
        assert!((complete + SETTLE..complete + 1_000).contains(&blog), "{complete} {blog}");
        let [web] = world.creations("EWEB")[..] else { panic!("one purge") };
        assert!((stopped + SETTLE..stopped + 3_500).contains(&web), "{stopped} {web}");
        let looks = world.asked("cluster.serving", "web").len();
        assert!(looks <= 12, "{looks} looks in 20 s");
        assert!(world.told("web", Kind::WorkloadFaulty).is_empty());
    });
}

// Faults: P1
#[test]
fn what_an_old_pod_holds_up_is_told_and_goes_on_after_a_minute() {
    for unreadable in [false, true] {
        let world = settled(1, &["web"]);
        life(&world, async |life| {
            life.pass(2_000).await;
            serve(&world, "web", Some(serving(true)));
            let fail = || world.plan("cluster.serving", "web", 0, Fault::Fail);
            (0..100).filter(|_| unreadable).for_each(|_| fail());
            roll_out(life, "web", 2, "2", 4_000).await;
            let complete = world.now();
            life.pass(5_000).await;
            let state = life.observe().await.rollouts.first().map(|rollout| rollout.state.clone()).unwrap_or_default();
            let why =
                if unreadable { "cannot see whether old pods still serve" } else { "old pod web-old-1 still serves" };
            assert!(state.contains(why), "{state}");
            life.pass(85_000).await;
            let [created] = world.creations("EWEB")[..] else { panic!("one purge") };
            assert!((complete + BOUND..complete + BOUND + 1_000).contains(&created), "{complete} {created}");
            assert_eq!(world.told("web", Kind::WorkloadFaulty).len(), 1);
        });
    }
}

#[test]
fn a_process_killed_at_the_barrier_waits_again_and_purges_once() {
    let world = settled(1, &["web"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        serve(&world, "web", Some(serving(true)));
        roll_out(life, "web", 2, "2", 4_000).await;
        life.pass(30_000).await;
    });
    world.pass(5_000);
    life(&world, async |life| {
        life.pass(10_000).await;
        assert_eq!(world.creations("EWEB").len(), 0);
        serve(&world, "web", None);
        life.pass(30_000).await;
        assert_eq!(world.creations("EWEB").len(), 1);
    });
}

/// How a rollout of version 2, of which the Deployment says nothing but that it was asked for, ends when it is taken back.
fn taken_back(prepare: impl Fn(&World)) -> Option<Outcome> {
    let world = settled(1, &["web"]);
    prepare(&world);
    life(&world, async |life| {
        life.pass(2_000).await;
        world.set(deployment("web", 1, 2, "2", Stage::Unobserved));
        life.pass(10_000).await;
        world.set(deployment("web", 1, 3, "1", Stage::Complete));
        life.pass(60_000).await;
    });
    world.record(&id("web")).and_then(|record| record.history.last().map(|closed| closed.outcome.clone()))
}

// Faults: P3
#[test]
fn a_rollout_that_is_taken_back_is_purged_if_it_may_have_been_served() {
    let pod = |ready| {
        let version = deployment("web", 1, 2, "2", Stage::Unobserved).version.ok();
        Pod {
            name: "web-new-1".into(),
            version,
            ready,
            terminating: false,
            started: false,
            finished: false,
            trouble: None,
        }
    };
    let pods = |ready| {
        let pod = pod(ready);
        move |world: &World| world.state().pods = Ok(vec![pod.clone()])
    };
    assert_eq!(taken_back(pods(false)), Some(Outcome::Returned));
    assert_eq!(taken_back(pods(true)), Some(Outcome::Purged));
    let unreadable = PortError::lasting("failed to watch pods in shop", "forbidden");
    assert_eq!(taken_back(|world| world.state().pods = Err(unreadable.clone())), Some(Outcome::Purged));
    let published = |world: &World| {
        pods(false)(world);
        world.state().publishes_unready = true;
    };
    assert_eq!(taken_back(published), Some(Outcome::Purged));
}

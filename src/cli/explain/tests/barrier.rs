//! A rollout at the barrier: what the status page says of it, without the time that it has waited.

use super::*;
use kinds::reported::{GivenUp, Says};
use purge::records::record::{Closed, Failure, Outcome as Ended};
use purge::workloads::readiness::Pod;
use purge::workloads::serving::{Endpoint, Serving};

/// Where the controller waits for this pod of the version before.
fn world(old_serves: bool) -> World {
    let mut world = World::new(web());
    let pod = |name: &str, hash: &str, terminating| {
        let labels = BTreeMap::from([("pod-template-hash".to_owned(), hash.to_owned())]);
        let (version, trouble) = (None, None);
        (labels, Pod { name: name.into(), version, ready: true, terminating, started: true, finished: false, trouble })
    };
    let endpoint = |pod: &str, serves| Endpoint { pod: pod.into(), serves };
    world.cluster.serving = Ok(Serving {
        pods: vec![pod("web-new", "b", false), pod("web-old", "a", true)],
        endpoints: vec![endpoint("web-new", true), endpoint("web-old", old_serves)],
    });
    world
}

#[tokio::test]
async fn the_pod_that_is_waited_for_and_the_bound_are_named() {
    let names = ["State", "Next"];
    expect![[r#"
        State         every pod is new and available; old pod web-old still serves, 1m at most
        Next          purges when no old pod serves any more
    "#]]
    .assert_eq(&world(true).rows(&names).await);
    expect![[r#"
        State         every pod is new and available; no old pod serves any more; settling for 3s
        Next          purges when that is over, if still no old pod serves
    "#]]
    .assert_eq(&world(false).rows(&names).await);
    let mut blind = world(true);
    blind.cluster.serving = Err(forbidden("failed to list endpointslices in shop"));
    expect![[r#"
        State         every pod is new and available; cannot see whether old pods still serve: failed to list endpointslices in shop: forbidden, 1m at most
        Next          purges when no old pod serves any more
    "#]].assert_eq(&blind.rows(&names).await);
}

#[tokio::test]
async fn what_kept_the_pods_from_being_ready_stays_after_a_missed_deadline() {
    let mut world = World::new(web());
    let words = "1 of 5 pods ready; web-7c9-x4: ImagePullBackOff";
    let (_, record) = &mut world.records[0];
    let failure = Failure::ProgressDeadlineExceeded;
    (record.phase, record.remark) = (Phase::Failed(failure), words.to_owned());
    record.close(Closed {
        seq: Seq(7),
        change: "web: 1.2.3 → 1.2.4".into(),
        outcome: Ended::Failed(failure),
        why: words.into(),
        purges: Vec::new(),
        more: 0,
        seen: None,
    });
    let mut missed = rolling();
    missed.says = Says::GivenUp(GivenUp::DeadlineExceeded { last_update: "t".into() });
    world.cluster.workloads = Ok(vec![missed]);
    expect![[r#"
        State         failed: the Deployment missed its progress deadline; nothing was purged; its pods at that time: 1 of 5 pods ready; web-7c9-x4: ImagePullBackOff
        History       web: 1.2.3 → 1.2.4: not purged: the Deployment missed its progress deadline; its pods at that time: 1 of 5 pods ready; web-7c9-x4: ImagePullBackOff
                      web: 1.2.2 → 1.2.3: purged (E1 by I1)
    "#]].assert_eq(&world.rows(&["State", "History"]).await);
}

/// Nobody may take it for nothing, whatever the reason is.
#[tokio::test]
async fn that_it_cannot_be_seen_whether_another_version_serves_is_said() {
    let mut world = World::new(web());
    world.cluster.beside = Err(PortError::passing("failed to list pods in shop", "timed out"));
    expect![[r#"
        Conditions    whether another version serves beside it cannot be seen: failed to list pods in shop: timed out
    "#]]
    .assert_eq(&world.rows(&["Conditions"]).await);
}

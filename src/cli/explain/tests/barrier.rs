//! A rollout at the barrier: what the status page says of it, without the time that it has waited.

use super::*;
use kernel::reported::Progressing;
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
    let served = "purges when no old pod serves any more";
    let says = async |world: World, words: &str, next: &str| {
        let text = world.text().await;
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("State every pod is new and available; {words} Next")), "{text}");
        assert!(flat.contains(&format!("Next {next}")), "{text}");
    };
    says(world(true), "old pod web-old still serves, 1m at most", served).await;
    says(world(false), "no old pod serves any more; settling for 3s", "purges when that is over").await;
    let mut blind = world(true);
    blind.cluster.serving = Err(forbidden("failed to list endpointslices in shop"));
    let why = "cannot see whether old pods still serve: failed to list endpointslices in shop: forbidden, 1m at most";
    says(blind, why, served).await;
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
    });
    let mut missed = rolling();
    let progressing = Progressing { reason: "ProgressDeadlineExceeded".into(), last_update: "t".into() };
    missed.progressing = Some(progressing);
    world.cluster.workloads = Ok(vec![missed]);
    let text = world.text().await;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let then = format!("its pods at that time: {words}");
    assert!(
        flat.contains(&format!(
            "State failed: the Deployment missed its progress deadline; nothing was purged; {then}"
        )),
        "{text}"
    );
    assert_eq!(flat.matches(&then).count(), 2, "State and History: {text}");
}

//! A site that is gone when its rollout completes: for a moment, for good, or because another workload serves it now.

use purge::records::record::Outcome;
use sandbox::kubernetes::Kind;

use crate::scene::{DISTRIBUTION, HOST, NAME, NAMESPACE, Scene};

/// A site that was purged once, so that the record knows it. Its program has ended, so that the next one has read nothing before the
/// test takes the Ingress away.
async fn purged_once(patience: &str) -> Scene {
    let mut scene = Scene::new().await.with("ALLCLEAR__SITE__MISSING_TIMEOUT", patience);
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!(scene.purged(), [DISTRIBUTION]);
    scene.take_process().kill();
    scene.world.kubernetes.delete(Kind::Ingress, NAMESPACE, NAME).expect("it is there");
    scene
}

/// The same, with another version rolled out.
async fn deprived(patience: &str) -> Scene {
    let mut scene = purged_once(patience).await;
    scene.start().await;
    scene.roll_out("1.2");
    scene
}

fn last(scene: &Scene) -> Option<Outcome> {
    Some(scene.record()?.history.last()?.outcome.clone())
}

#[tokio::test]
async fn an_ingress_that_is_replaced_while_a_rollout_completes_costs_no_purge() {
    let scene = deprived("60s").await;
    let waits = async |scene: &Scene| scene.process().state().await.to_string().contains("nothing leads to it for");
    scene.wait_until("it looks for its hosts", waits).await;
    assert_eq!(scene.calls(), 1);
    scene.world.kubernetes.expose(NAMESPACE, NAME, HOST).expect("the cluster takes it");
    scene.wait_until_over(3).await;
    assert_eq!((scene.calls(), last(&scene)), (2, Some(Outcome::Purged)));
    assert_eq!(scene.note(NAME, "SiteLost"), "");
}

#[tokio::test]
async fn an_ingress_that_is_gone_for_good_is_told_and_purged_by_what_is_last_known() {
    let scene = deprived("1s").await;
    scene.wait_until_over(3).await;
    assert_eq!((scene.purged().len(), last(&scene)), (2, Some(Outcome::Purged)));
    let told = scene.note(NAME, "SiteLost");
    assert!(told.contains(&format!("it had {HOST}; purged by what is last known: {HOST}")), "{told}");
    // The next one is no site.
    scene.roll_out("1.3");
    scene.wait_until_over(4).await;
    assert_eq!((scene.calls(), last(&scene)), (2, Some(Outcome::NoSite)));
    assert_eq!(scene.reasons_of(NAME).iter().filter(|reason| *reason == "SiteLost").count(), 1);
}

#[tokio::test]
async fn a_host_that_another_workload_serves_now_is_not_purged_for_the_one_that_had_it() {
    let mut scene = purged_once("1s").await;
    scene.add_workload("next");
    scene.world.kubernetes.expose(NAMESPACE, "next", HOST).expect("the cluster takes it");
    scene.start().await;
    scene.roll_out("1.2");
    scene.wait_until_over(3).await;
    assert_eq!((scene.calls(), last(&scene)), (1, Some(Outcome::NoSite)));
    assert_eq!(scene.note(NAME, "SiteLost"), "");
}

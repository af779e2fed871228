//! Distribution tenants and the real program: one is purged as a distribution is, by its own operations, and neither waits for the other.

use sandbox::cloudfront::{CloudFrontStandIn, Distribution, DistributionTenant, Status};
use sandbox::http::{Action, Fault, Request, When};

use crate::kinds::purged;
use crate::scene::{DISTRIBUTION, NAME, NAMESPACE, Scene, image};
use purge::records::record::Outcome;

const OTHER: &str = "blog";
const SHARED: &str = "E2SHARED";
const TENANT: &str = "dt_2blog";

/// A second workload with a site of its own.
fn furnish(scene: &Scene) {
    scene.add_workload(OTHER);
    scene.world.kubernetes.expose(NAMESPACE, OTHER, "blog.example.com").expect("the cluster takes it");
}

/// The second site is that of a distribution tenant.
fn share(scene: &Scene) {
    let account = &scene.world.cloudfront;
    account.add_distribution(Distribution { tenant_only: true, ..Distribution::new(SHARED) });
    account.add_distribution_tenant(DistributionTenant::new(TENANT, SHARED).domain("blog.example.com"));
}

fn is_creation(request: &Request) -> bool {
    let path = &request.path;
    request.method == "POST" && path.contains("/distribution-tenant/") && path.ends_with("/invalidation")
}

fn ended(scene: &Scene, name: &str) -> Option<Outcome> {
    let record = scene.record_of(name).filter(|record| !record.is_open())?;
    record.history.last().map(|last| last.outcome.clone())
}

#[tokio::test]
async fn a_distribution_tenant_is_found_purged_and_awaited_and_its_refusal_holds_up_no_distribution() {
    let mut scene = Scene::new().await;
    furnish(&scene);
    share(&scene);
    scene.start().await;
    scene.wait_until("the other one has its baseline", async |scene| scene.record_of(OTHER).is_some()).await;
    let denied = CloudFrontStandIn::error(403, "AccessDenied", "User is not authorized to perform this action");
    scene.world.cdn.inject(Fault::once(When::Before, Action::Answer(denied)).matching(is_creation));
    scene.roll_out("1.1");
    scene.set_image(OTHER, &image("1.1"));
    scene.wait_until_over(2).await;
    scene.wait_until("somebody is told", async |scene| !scene.note(OTHER, "PurgeFailed").is_empty()).await;
    let note = scene.note(OTHER, "PurgeFailed");
    assert!(note.contains("distribution tenant dt_2blog") && note.contains("AccessDenied"), "{note}");
    assert_eq!((purged(&scene, DISTRIBUTION), purged(&scene, TENANT)), (1, 0));
    let remedy = "allow cloudfront:CreateInvalidationForDistributionTenant as deploy/iam-policy.json does";
    assert!(scene.process().said(remedy), "{:#?}", scene.process().complaints());
    scene.wait_until("it is purged when it may be", async |scene| ended(scene, OTHER) == Some(Outcome::Purged)).await;
    assert_eq!((purged(&scene, DISTRIBUTION), purged(&scene, TENANT)), (1, 1));
    assert!(scene.world.cloudfront.invalidations().iter().all(|one| one.status == Status::Completed));
    let note = scene.note(OTHER, "PurgeCompleted");
    assert!(note.contains("distribution tenant dt_2blog"), "{note}");
    let seen = scene.world.cdn.seen();
    assert!(!seen.iter().any(|request| request.path.contains("/distribution/dt_")), "it has operations of its own");
}

// Faults: F2
#[tokio::test]
async fn an_invalidation_of_a_distribution_tenant_whose_answer_was_lost_is_not_made_twice_nor_after_a_kill() {
    let mut scene = Scene::new().await;
    furnish(&scene);
    share(&scene);
    scene.start().await;
    scene.wait_until("the other one has its baseline", async |scene| scene.record_of(OTHER).is_some()).await;
    scene.world.cdn.inject(Fault::once(When::After, Action::Cut).matching(is_creation));
    scene.set_image(OTHER, &image("1.1"));
    scene.wait_until("it was made", async |scene| purged(scene, TENANT) == 1).await;
    scene.take_process().kill();
    scene.start().await;
    scene.wait_until("it is purged", async |scene| ended(scene, OTHER) == Some(Outcome::Purged)).await;
    assert_eq!((purged(&scene, TENANT), purged(&scene, DISTRIBUTION)), (1, 0));
}

/// The requests and the rights of an account without them are what they were.
#[tokio::test]
async fn an_account_without_distribution_tenants_is_not_asked_for_them() {
    let mut scene = Scene::new().await;
    furnish(&scene);
    scene.world.cloudfront.deny_distribution_tenants(true);
    scene.start().await;
    scene.wait_until("the other one has its baseline", async |scene| scene.record_of(OTHER).is_some()).await;
    scene.roll_out("1.1");
    scene.set_image(OTHER, &image("1.1"));
    scene.wait_until_over(2).await;
    scene.wait_until("nothing serves it", async |scene| ended(scene, OTHER) == Some(Outcome::NoDistribution)).await;
    assert_eq!(purged(&scene, DISTRIBUTION), 1);
    assert_eq!(scene.world.cdn.seen().iter().filter(|seen| seen.path.contains("/distribution-tenant")).count(), 0);
    assert!(scene.events_of(NAME).iter().any(|event| event.starts_with("PurgeCompleted")));
}

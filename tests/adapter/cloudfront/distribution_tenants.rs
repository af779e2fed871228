//! The operations of distribution tenants, against the stand-in; and the stand-in as botocore reads it.

use std::collections::BTreeSet;
use std::path::Path as File;

use kernel::names::host::Host;
use sandbox::cloudfront::DistributionTenant;
use tokio::process::Command;

use super::*;

/// The world with a distribution `E2` for distribution tenants only: `dt_a`, which is active at two domains, and `dt_b`, which is disabled.
async fn world(options: stand_in::Options) -> World {
    let world = World::new(options).await;
    let account = &world.account;
    account.add_distribution(stand_in::Distribution { tenant_only: true, ..stand_in::Distribution::new("E2") });
    let a = DistributionTenant::new("dt_a", "E2").domain("a.example.com").domain("*.a.example.com");
    account.add_distribution_tenant(a.inactive_domain("soon.example.com"));
    account.add_distribution_tenant(DistributionTenant {
        enabled: false,
        ..DistributionTenant::new("dt_b", "E2").domain("b.example.com")
    });
    world
}

fn shared() -> BTreeSet<DistributionId> {
    [id("E2")].into()
}

fn host(name: &str) -> Host {
    Host::parse(name).expect("a host")
}

fn paths_seen(world: &World, method: &str) -> Vec<String> {
    let seen = world.server.seen();
    let of_method = seen.iter().filter(|request| request.method.as_str() == method);
    of_method.map(|request| request.path.replace("/2020-05-31/", "")).collect()
}

#[tokio::test]
async fn all_pages_are_read_with_the_active_domains_and_only_of_the_distributions_that_are_meant() {
    let world = world(stand_in::Options { page_items: 2, ..Default::default() }).await;
    for number in 0..3 {
        let tenant = DistributionTenant::new(&format!("dt_c{number}"), "E2").domain(&format!("c{number}.example.com"));
        world.account.add_distribution_tenant(tenant);
    }
    world.account.add_distribution_tenant(DistributionTenant::new("dt_other", "E9").domain("other.example.com"));
    let listed = world.cdn.distribution_tenants(&shared()).await.expect("listing");
    assert_eq!(
        listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(),
        ["dt_a", "dt_b", "dt_c0", "dt_c1", "dt_c2"]
    );
    assert_eq!(paths_seen(&world, "POST"), ["distribution-tenants"; 3], "three pages, each asked for once");
    assert_eq!(
        listed[0],
        Distribution {
            id: id("dt_a"),
            domain_name: String::new(),
            aliases: vec!["a.example.com".into(), "*.a.example.com".into()],
            origins: Vec::new(),
            enabled: true,
            staging: false,
            tenant_only: false,
            rewrites: true,
            cache_tags: false,
        }
    );
    assert_eq!((listed[1].enabled, listed[1].unmatchable()), (false, Some("disabled")));
    let none = World::new(stand_in::Options::default()).await;
    assert_eq!(none.cdn.distribution_tenants(&shared()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_throttled_page_is_asked_for_again_and_a_listing_that_does_not_go_on_ends() {
    let world = world(stand_in::Options { page_items: 1, ..Default::default() }).await;
    world.account.throttle(2);
    assert_eq!(world.cdn.distribution_tenants(&shared()).await.expect("listing").len(), 2);
    let page = "<ListDistributionTenantsResult><NextMarker>dt_a</NextMarker></ListDistributionTenantsResult>";
    let turns = Action::Answer(Reply::full(200, "text/xml", page.to_owned()));
    world.server.inject(Fault::once(When::Before, turns).times(9));
    let error = world.cdn.distribution_tenants(&shared()).await.expect_err("it turns in a circle");
    assert_eq!((error.class, world.server.seen().len()), (CdnErrorClass::Unexpected, 4 + 2), "{error}");
}

#[tokio::test]
async fn one_is_found_by_its_domain_and_none_is_no_failure() {
    let world = world(stand_in::Options::default()).await;
    world.account.leave_out_of_listing("dt_a");
    assert_eq!(world.cdn.distribution_tenants(&shared()).await.expect("listing").len(), 1);
    let found = world.cdn.distribution_tenant(&host("a.example.com")).await.expect("an answer").expect("it is there");
    assert_eq!((found.id, found.aliases.len()), (id("dt_a"), 2));
    assert_eq!(world.cdn.distribution_tenant(&host("none.example.com")).await, Ok(None));
    let seen = world.server.seen();
    assert_eq!(seen[1].query.get("domain").map(String::as_str), Some("a.example.com"));
}

#[tokio::test]
async fn an_invalidation_is_made_once_awaited_and_found_again_by_operations_of_their_own() {
    let world = world(stand_in::Options::default()).await;
    let (tenant, distribution) = (id("dt_a"), id("E1"));
    let batch = || paths(&["/a", "/*"]);
    let made = world.cdn.create(&tenant, &reference("r1"), &batch()).await.expect("created");
    let again = world.cdn.create(&tenant, &reference("r1"), &batch()).await.expect("the same");
    assert_eq!(made.id, again.id);
    let other = world.cdn.create(&distribution, &reference("r1"), &batch()).await.expect("another");
    assert_ne!(made.id, other.id, "a reference is that of its distribution or distribution tenant");
    assert_eq!(world.cdn.status(&tenant, &made.id).await, Ok(InvalidationStatus::InProgress));
    assert_eq!(class(world.cdn.status(&distribution, &made.id).await), CdnErrorClass::NoSuchInvalidation);
    world.account.complete(&made.id.0);
    assert_eq!(world.cdn.status(&tenant, &made.id).await, Ok(InvalidationStatus::Completed));
    assert!(world.cdn.created_ms(&tenant, &made.id).await.expect("an answer").is_some());
    let reused = world.cdn.create(&tenant, &reference("r1"), &paths(&["/b"])).await;
    assert_eq!(class(reused), CdnErrorClass::ReferenceReused);
    let found = world.cdn.find(&tenant, &reference("r1")).await.expect("search").expect("found");
    assert_eq!((&found.invalidation, found.sent), (&made.id, batch()));
    assert_eq!(world.cdn.find(&tenant, &reference("r2")).await, Ok(None));
    assert_eq!(world.cdn.cache_tag_header(&tenant).await, Ok(None));
    let ours = |path: &String| path.starts_with("distribution/dt_") || path.contains("/config");
    let all = [paths_seen(&world, "GET"), paths_seen(&world, "POST")].concat();
    assert!(!all.iter().any(ours), "{all:?}");
    let made: Vec<_> = world.account.invalidations().into_iter().map(|one| (one.distribution, one.repeats)).collect();
    assert_eq!(made, [("dt_a".to_owned(), 1), ("E1".to_owned(), 0)]);
}

// Faults: F2
#[tokio::test]
async fn a_creation_whose_answer_was_lost_is_the_same_one_when_it_is_asked_for_again() {
    let world = world(stand_in::Options::default()).await;
    world.next_post(When::After, Action::Cut);
    let lost = world.cdn.create(&id("dt_a"), &reference("r1"), &paths(&["/*"])).await.expect_err("no answer");
    assert_eq!(lost.class, CdnErrorClass::Ambiguous);
    assert!(lost.message.starts_with("failed to create an invalidation on distribution tenant dt_a: "), "{lost}");
    let found = world.cdn.find(&id("dt_a"), &reference("r1")).await.expect("search").expect("it was made");
    let again = world.cdn.create(&id("dt_a"), &reference("r1"), &paths(&["/*"])).await.expect("the same");
    assert_eq!((again.id, world.account.invalidations().len()), (found.invalidation, 1));
}

#[tokio::test]
async fn what_is_gone_and_what_is_denied_is_told_apart_and_distributions_are_as_before() {
    let world = world(stand_in::Options::default()).await;
    let unknown = InvalidationId::from("I0");
    assert_eq!(class(world.cdn.status(&id("dt_a"), &unknown).await), CdnErrorClass::NoSuchInvalidation);
    for gone in [
        world.cdn.status(&id("dt_z"), &unknown).await.map(drop),
        world.cdn.find(&id("dt_z"), &reference("r1")).await.map(drop),
        world.cdn.create(&id("dt_z"), &reference("r1"), &paths(&["/*"])).await.map(drop),
    ] {
        assert_eq!(class(gone), CdnErrorClass::Gone);
    }
    world.account.deny_distribution_tenants(true);
    let tenant = id("dt_a");
    for (right, denied) in [
        (Cause::ListDistributionTenants, world.cdn.distribution_tenants(&shared()).await.map(drop)),
        (Cause::FindDistributionTenant, world.cdn.distribution_tenant(&host("a.example.com")).await.map(drop)),
        (
            Cause::CreateInvalidation.on(&tenant),
            world.cdn.create(&tenant, &reference("r1"), &paths(&["/*"])).await.map(drop),
        ),
        (Cause::GetInvalidation.on(&tenant), world.cdn.status(&tenant, &unknown).await.map(drop)),
        (Cause::ListInvalidations.on(&tenant), world.cdn.find(&tenant, &reference("r1")).await.map(drop)),
    ] {
        let error = denied.expect_err("denied");
        assert_eq!(error.class.cause(right, &error.message), Some(right), "{error}");
        assert!(right.remedy().contains("DistributionTenant"), "{}", right.remedy());
    }
    assert_eq!(world.cdn.distributions().await.expect("listing").len(), 2);
    world.create("r1", &["/a"]).await.expect("created");
}

/// As the service's model has it, from which botocore makes each request and reads each answer.
#[tokio::test]
async fn botocore_reads_the_stand_in_as_the_service() {
    let world = world(stand_in::Options::default()).await;
    let top = File::new(env!("CARGO_MANIFEST_DIR"));
    let python = top.join(".venv/bin/python3");
    assert!(python.exists(), "{} is missing: run `make test-setup` once", python.display());
    let mut command = Command::new(python);
    command.arg(top.join("tests/adapter/cloudfront/distribution_tenants.py")).arg(world.server.url());
    command.env("AWS_EC2_METADATA_DISABLED", "true").env("NO_PROXY", "*").kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let ended = ended.expect("it ends").expect("python starts");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{errors}");
    let seen: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    let location = seen["location"].as_str().expect("an address");
    let path = "https://cloudfront.amazonaws.com/2020-05-31/distribution-tenant/dt_a/invalidation/I";
    assert!(location.starts_with(path), "{location}");
    let expected = serde_json::json!({
        "listed": ["dt_a", "dt_b"], "ends": true, "of_other": [], "distribution": "E2",
        "found": ["dt_a", true],
        "domains": [
            {"Domain": "a.example.com", "Status": "active"},
            {"Domain": "*.a.example.com", "Status": "active"},
            {"Domain": "soon.example.com", "Status": "inactive"},
        ],
        "location": location, "status": "InProgress", "same": true,
        "sent": {"Paths": {"Quantity": 2, "Items": ["/a", "/*"]}, "CallerReference": "r1"},
        "invalidations": [true],
        "none": [
            "EntityNotFound", "EntityNotFound", "EntityNotFound", "EntityNotFound", "NoSuchInvalidation",
            "NoSuchDistribution",
        ],
    });
    assert_eq!(seen, expected);
}

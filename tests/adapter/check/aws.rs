//! An account in which one thing is not allowed.

use sandbox::cloudfront::DistributionTenant;
use sandbox::http::{Action, Fault, Request, When};

use super::*;
use crate::served;

impl World {
    /// Answers all requests that match with this error.
    fn refuses(&self, code: &str, matches: fn(&Request) -> bool) {
        let answer = Action::Answer(CloudFrontStandIn::error(403, code, "User is not authorized"));
        self.cdn.inject(Fault::once(When::Before, answer).matching(matches).times(99));
    }
}

fn lists(request: &Request) -> bool {
    request.method == "GET" && request.path.ends_with("/distribution")
}

#[tokio::test]
async fn credentials_that_are_refused_are_named_and_the_rest_is_not_tried() {
    let world = World::start().await;
    world.refuses("InvalidClientTokenId", |_| true);
    let report = world.fails("aws-credentials", "InvalidClientTokenId").await;
    said(&report, "aws-list-distributions", "not tried: aws-credentials");
    said(&report, "aws-create-invalidation", "not tried: aws-credentials");
    assert!(!report.to_string().contains("key-of-aws"), "{report}");
}

#[tokio::test]
async fn each_action_that_is_refused_is_named_with_what_follows() {
    for (check, matches, words) in [
        ("aws-list-distributions", lists as fn(&Request) -> bool, "cloudfront:ListDistributions"),
        (
            "aws-get-distribution-config",
            |request| request.path.ends_with("/config"),
            "cloudfront:GetDistributionConfig",
        ),
        (
            "aws-list-invalidations",
            |request| request.method == "GET" && request.path.ends_with("/invalidation"),
            "cloudfront:ListInvalidations",
        ),
        ("aws-get-invalidation", |request| request.path.contains("/invalidation/"), "cloudfront:GetInvalidation"),
        (
            "aws-create-invalidation",
            |request| request.method == "POST" && request.path.ends_with("/invalidation"),
            "nothing is purged",
        ),
    ] {
        let world = World::start().await;
        world.refuses("AccessDenied", matches);
        world.fails(check, words).await;
        assert!(world.cloudfront.invalidations().is_empty());
    }
}

/// The host of shop/web is one of a distribution tenant.
async fn served_by_a_distribution_tenant() -> World {
    let world = World::start().await;
    world.cloudfront.add_distribution(Distribution { tenant_only: true, ..Distribution::new("EWEB") });
    world.cloudfront.add_distribution_tenant(DistributionTenant::new("dt_web", "EWEB").domain("shop.example.com"));
    world
}

#[tokio::test]
async fn the_rights_of_distribution_tenants_are_asked_for_where_there_are_some() {
    let report = World::start().await.report().await;
    for check in ["aws-list-distribution-tenants", "aws-get-distribution-tenant"] {
        said(&report, check, "not needed: no distribution is for distribution tenants only");
    }
    let world = served_by_a_distribution_tenant().await;
    let report = world.report().await;
    said(&report, "aws-list-distributions", "1 distribution");
    said(&report, "aws-list-distribution-tenants", "1 distribution tenant");
    said(&report, "aws-get-distribution-tenant", "allowed on shop.example.com");
    said(&report, "aws-get-distribution-config", "not needed: distribution tenants are purged by paths");
    said(&report, "aws-list-invalidations", "allowed on distribution tenant dt_web");
    said(&report, "aws-create-invalidation", "not refused on distribution tenant dt_web");
    assert!(world.cloudfront.invalidations().is_empty());
}

#[tokio::test]
async fn each_action_on_a_distribution_tenant_that_is_refused_is_named() {
    fn of_one(request: &Request) -> bool {
        request.path.contains("/distribution-tenant/")
    }
    for (check, matches, words) in [
        (
            "aws-list-distribution-tenants",
            (|request| request.path.ends_with("/distribution-tenants")) as fn(&Request) -> bool,
            "cloudfront:ListDistributionTenants",
        ),
        (
            "aws-get-distribution-tenant",
            |request| request.path.ends_with("/distribution-tenant"),
            "cloudfront:GetDistributionTenantByDomain",
        ),
        (
            "aws-list-invalidations",
            |request| of_one(request) && request.method == "GET" && request.path.ends_with("/invalidation"),
            "cloudfront:ListInvalidationsForDistributionTenant",
        ),
        (
            "aws-get-invalidation",
            |request| of_one(request) && request.path.contains("/invalidation/"),
            "cloudfront:GetInvalidationForDistributionTenant",
        ),
        (
            "aws-create-invalidation",
            |request| of_one(request) && request.method == "POST",
            "no distribution tenant is purged",
        ),
    ] {
        let world = served_by_a_distribution_tenant().await;
        world.refuses("AccessDenied", matches);
        let report = world.report().await;
        said(&report, check, words);
        assert!(world.cloudfront.invalidations().is_empty());
    }
}

/// Where accounts are told apart, which need other statements.
#[tokio::test]
async fn what_is_refused_for_distribution_tenants_of_an_account_is_named_with_its_statement() {
    for (check, matches, action, resource) in [
        (
            "aws-list-distribution-tenants",
            (|request| request.path.ends_with("/distribution-tenants")) as fn(&Request) -> bool,
            "ListDistributionTenants",
            "*",
        ),
        (
            "aws-create-invalidation",
            |request| request.method == "POST" && request.path.contains("/distribution-tenant/"),
            "CreateInvalidationForDistributionTenant",
            "arn:aws:cloudfront::*:distribution-tenant/dt_web",
        ),
    ] {
        let mut world = served_by_a_distribution_tenant().await;
        world.sections.insert("[aws.account]", "name = \"default\"".to_owned());
        world.refuses("AccessDenied", matches);
        let report = world.report().await;
        let statement = format!("\"Action\": \"cloudfront:{action}\", \"Resource\": \"{resource}\"");
        said(&report, check, &statement);
        said(&report, check, "default ");
    }
}

#[tokio::test]
async fn sts_that_is_not_reached_is_known_and_no_failure() {
    let world = World::start().await;
    let answer = Action::Answer(CloudFrontStandIn::error(503, "ServiceUnavailable", "no"));
    let matches = |request: &Request| request.method == "POST" && request.path == "/";
    world.cdn.inject(Fault::once(When::Before, answer).matching(matches));
    world.warns("aws-identity", "failed to ask AWS STS for our identity").await;
}

#[tokio::test]
async fn the_account_and_what_is_not_proven_are_said() {
    let world = World::start().await;
    let report = world.report().await;
    said(&report, "aws-identity", "arn:aws:sts::123456789012:assumed-role/allclear/stand-in");
    said(&report, "aws-create-invalidation", "only the first purge proves it");
    said(&report, "aws-region", "us-east-1");
}

#[tokio::test]
async fn the_account_of_others_serves_none_of_our_hosts() {
    let world = World::start().await;
    world.cloudfront.remove_distribution("EWEB");
    world.cloudfront.add_distribution(Distribution::new("EOTHER").alias("other.example.org"));
    let report = world
        .fails("host-served", "none of 1 hosts is served by one of the 1 distributions of account 123456789012")
        .await;
    said(&report, "aws-create-invalidation", "not tried: host-served");
}

/// A person with few rights is told so all the same.
#[tokio::test]
async fn the_account_of_others_is_known_where_not_all_could_be_read() {
    let world = World::start().await;
    world.cloudfront.remove_distribution("EWEB");
    world.cloudfront.add_distribution(Distribution::new("EOTHER").alias("other.example.org"));
    served::forbid(&world.api_server, "not for you", |request| request.path.ends_with("/namespaces/shop/httproutes"));
    let report = world.fails("host-served", "nothing would be purged, as far as could be read").await;
    said(&report, "host-served", "not all was looked at: failed to list httproutes");
}

#[tokio::test]
async fn a_region_whose_partition_has_no_cloudfront_is_known() {
    let mut world = World::start().await;
    world.sections.entry("cloudfront").and_modify(|keys| keys.push_str("\nregion = \"us-gov-west-1\""));
    world.warns("aws-region", "the partition of us-gov-west-1 has no CloudFront").await;
}

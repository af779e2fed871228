//! The CloudFront adapter against our stand-in, and in the modules beneath against moto and with the environment's
//! configuration.

mod accounts;
mod distribution_tenants;
mod environment;
mod moto;
mod strangers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::adapters::cloudfront::{CloudFront, Options, StaticCredentials, Timeouts};
use kernel::id::{InvalidationId, Reference};
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::paths::{Path, PathSet};
use kernel::refusal::Cause;
use purge::ports::{Cdn, CdnError, CdnErrorClass, Invalidation, InvalidationStatus};
use sandbox::cloudfront::{self as stand_in, Bucket, CloudFrontStandIn, Quota, ReuseError, Status};
use sandbox::http::{Action, Fault, Reply, Server, When};

const SECRET: &str = "hunter2-secret-access-key";

/// A stand-in with one distribution, its server, and an adapter that talks to it.
struct World {
    account: Arc<CloudFrontStandIn>,
    server: Server,
    cdn: CloudFront,
}

impl World {
    async fn new(options: stand_in::Options) -> World {
        let account = Arc::new(CloudFrontStandIn::new(options));
        account.add_distribution(stand_in::Distribution::new("E1").alias("www.example.com"));
        let server = Server::start(account.clone()).await.expect("loopback");
        // Long enough for a busy machine; the tests that wait for a time-out set their own.
        let cdn = adapter(&server.url(), "AKIDONE", Timeouts::default()).await;
        World { account, server, cdn }
    }

    async fn create(&self, name: &str, items: &[&str]) -> Result<Invalidation, CdnError> {
        self.cdn.create(&id("E1"), &reference(name), &paths(items)).await
    }

    /// Lets `action` happen once to the next POST.
    fn next_post(&self, when: When, action: Action) {
        self.server.inject(Fault::once(when, action).matching(|request| request.method == "POST"));
    }
}

/// The adapter of a stand-in at `url`, or of nothing, where nothing listens.
pub async fn adapter(url: &str, access_key_id: &str, timeouts: Timeouts) -> CloudFront {
    let credentials =
        StaticCredentials { access_key_id: access_key_id.to_owned(), secret_access_key: SECRET.to_owned() };
    let options = Options {
        endpoint_url: Some(url.to_owned()),
        region: Some("us-east-1".to_owned()),
        credentials: Some(credentials),
        role: None,
        timeouts,
    };
    CloudFront::new(options).await
}

fn id(text: &str) -> DistributionId {
    text.parse().expect("a distribution id")
}

fn reference(text: &str) -> Reference {
    Reference::from(text)
}

fn paths(items: &[&str]) -> PathSet {
    items.iter().map(|item| Path::parse(item).expect("a path")).collect()
}

fn class<T: std::fmt::Debug>(result: Result<T, CdnError>) -> CdnErrorClass {
    let error = result.expect_err("a failure");
    assert!(!error.message.contains(SECRET), "{}", error.message);
    error.class
}

#[tokio::test]
async fn all_pages_of_the_listing_are_read_with_everything_that_matters() {
    let world = World::new(stand_in::Options { page_items: 2, ..Default::default() }).await;
    let full = stand_in::Distribution {
        enabled: false,
        staging: true,
        tenant_only: true,
        ..stand_in::Distribution::new("E2").alias("*.example.com").alias("a&b").origin("lb-1.example.net/v2")
    };
    world.account.add_distribution(full);
    for name in ["E3", "E4", "E5"] {
        world.account.add_distribution(stand_in::Distribution::new(name));
    }
    let listed = world.cdn.distributions().await.expect("listing");
    assert_eq!(listed.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["E1", "E2", "E3", "E4", "E5"]);
    assert_eq!(world.server.seen().len(), 3, "three pages, each asked for once");
    assert_eq!(
        listed[1],
        Distribution {
            id: id("E2"),
            domain_name: "e2.cloudfront.net".into(),
            aliases: vec!["*.example.com".into(), "a&b".into()],
            origins: vec!["lb-1.example.net".into()],
            enabled: false,
            staging: true,
            tenant_only: true,
            rewrites: true,
            cache_tags: false,
        }
    );
    assert!(listed[0].enabled && !listed[0].staging && !listed[0].tenant_only && !listed[0].rewrites);
}

#[tokio::test]
async fn whether_a_distribution_has_cache_tags_is_read_from_its_configuration() {
    let world = World::new(stand_in::Options::default()).await;
    world.account.add_distribution(stand_in::Distribution { cache_tags: true, ..stand_in::Distribution::new("E2") });
    assert_eq!(world.cdn.cache_tag_header(&id("E1")).await, Ok(None));
    assert_eq!(world.cdn.cache_tag_header(&id("E2")).await, Ok(Some("Cache-Tag".to_owned())));
    assert_eq!(class(world.cdn.cache_tag_header(&id("E3")).await), CdnErrorClass::Gone);
    world.account.deny_configurations(true);
    assert_eq!(class(world.cdn.cache_tag_header(&id("E2")).await), CdnErrorClass::Denied);
}

#[tokio::test]
async fn a_throttled_page_does_not_lose_the_listing() {
    let world = World::new(stand_in::Options::default()).await;
    world.account.throttle(1);
    assert_eq!(world.cdn.distributions().await.expect("listing").len(), 1);
}

#[tokio::test]
async fn a_listing_that_is_cut_short_is_no_listing() {
    // Distributions missing from a listing would look like hosts that no distribution serves.
    let world = World::new(stand_in::Options::default()).await;
    let full =
        "<DistributionList><Marker/><MaxItems>100</MaxItems><IsTruncated>false</IsTruncated><Quantity>1</Quantity>";
    let endless = "<DistributionList><IsTruncated>true</IsTruncated><Quantity>0</Quantity></DistributionList>";
    for (body, expected) in [
        (full, CdnErrorClass::Ambiguous),
        ("", CdnErrorClass::Ambiguous),
        ("<html>not CloudFront</html>", CdnErrorClass::Ambiguous),
        (endless, CdnErrorClass::Unexpected),
    ] {
        world.server.inject(Fault::once(When::After, Action::Answer(Reply::full(200, "text/xml", body))).times(3));
        assert_eq!(class(world.cdn.distributions().await), expected, "{body}");
        world.server.clear_faults();
    }
}

// Faults: F3
#[tokio::test]
async fn a_race_inside_the_service_shows_as_two_ids_for_one_reference() {
    // The residual risk of fault row F3: the stand-in can show it, so that what notices it can be tested.
    let blind_for = Duration::from_secs(3_600);
    let world = World::new(stand_in::Options { blind_for, ..Default::default() }).await;
    let first = world.create("r1", &["/a"]).await.expect("created");
    assert_ne!(world.create("r1", &["/a"]).await.expect("created"), first);
}

// Faults: F2
#[tokio::test]
async fn the_same_batch_sent_twice_is_one_invalidation() {
    let world = World::new(stand_in::Options::default()).await;
    let first = world.create("r1", &["/*", "/a%20b?c=d&e"]).await.expect("created");
    assert_eq!(first.status, InvalidationStatus::InProgress);
    let now = jiff::Timestamp::now().as_millisecond();
    assert!(first.created_ms.is_some_and(|at| (now - 60_000..=now + 1_000).contains(&at)), "{first:?} at {now}");
    assert_eq!(world.create("r1", &["/a%20b?c=d&e", "/*"]).await.expect("created"), first);
    let ledger = world.account.invalidations();
    assert_eq!(ledger.len(), 1);
    assert_eq!((ledger[0].reference.as_str(), ledger[0].repeats), ("r1", 1));
    assert_eq!(paths(&ledger[0].paths.iter().map(String::as_str).collect::<Vec<_>>()), paths(&["/*", "/a%20b?c=d&e"]));
}

// Faults: F5
#[tokio::test]
async fn a_reference_used_with_other_paths_is_recognised_in_both_forms_on_the_wire() {
    for reuse_error in [ReuseError::InvalidArgument, ReuseError::InvalidationBatchAlreadyExists] {
        let world = World::new(stand_in::Options { reuse_error, ..Default::default() }).await;
        world.create("r1", &["/a"]).await.expect("created");
        assert_eq!(class(world.create("r1", &["/b"]).await), CdnErrorClass::ReferenceReused, "{reuse_error:?}");
        assert_eq!(world.account.invalidations().len(), 1);
    }
}

#[tokio::test]
async fn a_refused_repeat_of_the_same_batch_can_still_be_found() {
    let world = World::new(stand_in::Options { refuses_same_batch: true, ..Default::default() }).await;
    let first = world.create("r1", &["/a"]).await.expect("created");
    assert_eq!(class(world.create("r1", &["/a"]).await), CdnErrorClass::ReferenceReused);
    let found = world.cdn.find(&id("E1"), &reference("r1")).await.expect("found").expect("it is there");
    assert_eq!((found.invalidation, found.sent), (first.id, paths(&["/a"])), "also what was sent is known");
}

// Faults: F2
#[tokio::test]
async fn after_a_lost_answer_the_same_call_returns_the_same_invalidation() {
    let world = World::new(stand_in::Options::default()).await;
    for (name, action) in [
        ("cut", Action::Cut),
        ("broken", Action::Answer(Reply::full(200, "text/xml", "<Invalidation><Id>"))),
        ("empty", Action::Answer(Reply::empty(200))),
        ("gateway", Action::Answer(Reply::full(502, "text/html", "<html>bad gateway</html>"))),
    ] {
        world.next_post(When::After, action);
        assert_eq!(class(world.create(name, &["/a"]).await), CdnErrorClass::Ambiguous, "{name}");
        let created = world.account.invalidations().pop().expect("applied although nobody was told");
        let again = world.create(name, &["/a"]).await.expect("the second try");
        assert_eq!((again.id.0, created.reference.as_str()), (created.id, name));
    }
    assert_eq!(world.account.invalidations().len(), 4);
}

#[tokio::test]
async fn a_call_that_may_not_have_arrived_is_ambiguous_and_is_sent_only_once() {
    let world = World::new(stand_in::Options::default()).await;
    world.next_post(When::Before, Action::Cut);
    assert_eq!(class(world.create("r1", &["/a"]).await), CdnErrorClass::Ambiguous);
    for status in [500, 503] {
        let reply = CloudFrontStandIn::error(status, "InternalError", "We encountered an internal error.");
        world.next_post(When::Before, Action::Answer(reply));
        assert_eq!(class(world.create("r1", &["/a"]).await), CdnErrorClass::Ambiguous);
    }
    assert_eq!(world.server.seen().len(), 3, "the SDK must not retry what the purge machine counts");
    assert!(world.account.invalidations().is_empty());
}

// Faults: F8
#[tokio::test]
async fn a_peer_that_never_answers_costs_no_more_than_the_time_out() {
    let world = World::new(stand_in::Options::default()).await;
    let quick = Timeouts { attempt: Duration::from_millis(200), ..Timeouts::default() };
    let cdn = adapter(&world.server.url(), "AKIDONE", quick).await;
    world.server.inject(Fault::once(When::After, Action::Hold).times(u32::MAX));
    let started = Instant::now();
    assert_eq!(class(cdn.create(&id("E1"), &reference("r1"), &paths(&["/a"])).await), CdnErrorClass::Ambiguous);
    assert_eq!(class(cdn.status(&id("E1"), &InvalidationId::from("I1")).await), CdnErrorClass::Ambiguous);
    assert_eq!(class(cdn.find(&id("E1"), &reference("r1")).await), CdnErrorClass::Ambiguous);
    assert_eq!(class(cdn.distributions().await), CdnErrorClass::Ambiguous);
    // The listing alone tries three times and backs off in between; 25 s is far below the default bound of 30 s a call.
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    assert_eq!(world.account.invalidations().len(), 1);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_ambiguous() {
    let world = World::new(stand_in::Options::default()).await;
    world.server.stop().await;
    assert_eq!(class(world.cdn.create(&id("E1"), &reference("r1"), &paths(&["/a"])).await), CdnErrorClass::Ambiguous);
}

// Faults: F1
#[tokio::test]
async fn throttling_is_told_from_other_client_errors_though_both_are_status_400() {
    let world = World::new(stand_in::Options::default()).await;
    world.account.throttle(1);
    assert_eq!(class(world.create("r1", &["/a"]).await), CdnErrorClass::Throttled);
    let refusal = CloudFrontStandIn::error(400, "InvalidArgument", "Your request contains one or more invalid paths.");
    world.next_post(When::Before, Action::Answer(refusal));
    assert_eq!(class(world.create("r1", &["/a"]).await), CdnErrorClass::Refused);
    world.create("r1", &["/a"]).await.expect("nothing was spoilt");
}

// Faults: F4
#[tokio::test]
async fn quotas_in_progress_refuse_until_something_completes() {
    let world = World::new(stand_in::Options::default()).await;
    for number in 0..15 {
        world.create(&format!("r{number}"), &[&format!("/{number}/*")]).await.expect("below the quota of wildcards");
    }
    assert_eq!(class(world.create("r15", &["/15/*"]).await), CdnErrorClass::TooManyInProgress);
    world.create("plain", &["/15"]).await.expect("plain paths have a quota of their own");
    let first = world.account.invalidations().swap_remove(0).id;
    assert!(world.account.complete(&first));
    world.create("r15", &["/15/*"]).await.expect("there is room again");

    let narrow = World::new(stand_in::Options { paths_in_progress_max: 2, ..Default::default() }).await;
    narrow.create("r1", &["/a"]).await.expect("created");
    assert_eq!(class(narrow.create("r2", &["/b", "/c"]).await), CdnErrorClass::TooManyInProgress);
    assert_eq!(class(narrow.create("r3", &["/b", "/c", "/d"]).await), CdnErrorClass::Refused, "too large by itself");
}

// What is quoted in 2026 is of the account, in any distribution, and all three rules may hold at once.
#[tokio::test]
async fn quotas_of_the_account_refuse_what_is_beyond_them_in_any_distribution() {
    let world = World::new(stand_in::Options::default()).await;
    world.account.add_distribution(stand_in::Distribution::new("E2"));
    let hour = Duration::from_secs(3_600);
    let of = |size: u32| Some(Bucket::new(hour, size));
    let refused = async |of: &str, name: &str, items: &[&str]| {
        world.cdn.create(&id(of), &reference(name), &paths(items)).await.err().map(|error| error.class)
    };
    world.account.hold_to(Quota { wildcards: of(1), items: of(4), ..Quota::default() });
    assert_eq!(refused("E1", "r1", &["/a/*"]).await, None);
    assert_eq!(refused("E2", "r2", &["/b/*"]).await, Some(CdnErrorClass::TooManyInProgress), "one wildcard");
    assert_eq!(refused("E2", "r3", &["/b", "/c", "/d"]).await, None, "what was refused cost nothing");
    assert_eq!(refused("E1", "r4", &["/e"]).await, Some(CdnErrorClass::TooManyInProgress), "four items");
    world.account.hold_to(Quota { creations: of(1), ..Quota::default() });
    assert_eq!(refused("E1", "r5", &["/e"]).await, None);
    assert_eq!(refused("E2", "r6", &["/f"]).await, Some(CdnErrorClass::Throttled));
    assert_eq!(world.account.beyond_quota(), 3);
}

#[tokio::test]
async fn completion_is_seen_when_it_comes_and_not_before() {
    let world = World::new(stand_in::Options::default()).await;
    let created = world.create("r1", &["/a"]).await.expect("created");
    for _ in 0..3 {
        let status = world.cdn.status(&id("E1"), &created.id).await.expect("status");
        assert_eq!(status, InvalidationStatus::InProgress);
    }
    assert!(world.account.complete(&created.id.0));
    assert_eq!(world.cdn.status(&id("E1"), &created.id).await.expect("status"), InvalidationStatus::Completed);

    let quick = World::new(stand_in::Options { completes_after: Some(Duration::ZERO), ..Default::default() }).await;
    let created = quick.create("r1", &["/a"]).await.expect("created");
    assert_eq!(quick.cdn.status(&id("E1"), &created.id).await.expect("status"), InvalidationStatus::Completed);
    assert_eq!(quick.account.invalidations()[0].status, Status::Completed);
}

#[tokio::test]
async fn what_is_gone_is_told_apart() {
    let world = World::new(stand_in::Options::default()).await;
    let unknown = InvalidationId::from("I0");
    assert_eq!(class(world.cdn.status(&id("E1"), &unknown).await), CdnErrorClass::NoSuchInvalidation);
    assert_eq!(class(world.cdn.status(&id("E9"), &unknown).await), CdnErrorClass::Gone);
    assert_eq!(class(world.cdn.find(&id("E9"), &reference("r1")).await), CdnErrorClass::Gone);
    let created = world.create("r1", &["/a"]).await.expect("created");
    assert!(world.account.forget(&created.id.0));
    assert_eq!(class(world.cdn.status(&id("E1"), &created.id).await), CdnErrorClass::NoSuchInvalidation);
    let again = world.create("r1", &["/a"]).await.expect("a forgotten reference is free again");
    assert_ne!(again.id, created.id);
    world.account.remove_distribution("E1");
    assert_eq!(class(world.create("r2", &["/a"]).await), CdnErrorClass::Gone);
}

#[tokio::test]
async fn denied_is_denied_whatever_the_reason_and_only_for_those_concerned() {
    let world = World::new(stand_in::Options::default()).await;
    world.account.deny(true);
    let denied = world.cdn.distributions().await.expect_err("denied");
    let right = Cause::ListDistributions;
    assert_eq!(denied.class.cause(right, &denied.message), Some(right), "{denied}");
    world.account.deny(false);
    for code in ["ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch"] {
        let message = "The security token included in the request is not acceptable.";
        world.next_post(When::Before, Action::Answer(CloudFrontStandIn::error(403, code, message)));
        let denied = world.create("r1", &["/a"]).await.expect_err("denied");
        assert_eq!(denied.class.cause(right, &denied.message), Some(Cause::Credentials), "{denied}");
    }
    world.account.deny_key("AKIDONE", true);
    assert_eq!(class(world.create("r1", &["/a"]).await), CdnErrorClass::Denied);
    let other = adapter(&world.server.url(), "AKIDTWO", Timeouts::default()).await;
    other.create(&id("E1"), &reference("r1"), &paths(&["/a"])).await.expect("another cluster's credentials are good");
}

#[tokio::test]
async fn no_error_and_no_debug_shows_what_could_be_a_credential() {
    let world = World::new(stand_in::Options::default()).await;
    let echo = format!("The Canonical String should have been 'x-amz-security-token:{SECRET}'");
    world.next_post(When::Before, Action::Answer(CloudFrontStandIn::error(403, "SignatureDoesNotMatch", &echo)));
    let error = world.create("r1", &["/a"]).await.expect_err("refused");
    assert_eq!(error.message, "failed to create an invalidation on E1: SignatureDoesNotMatch (HTTP 403)");
    assert!(!format!("{:?} {:?} {:?}", world.cdn, world.server, world.server.seen()).contains(SECRET));
}

// Faults: F5
#[tokio::test]
async fn a_reference_is_found_among_the_newest_and_the_search_is_bounded() {
    let world = World::new(stand_in::Options::default()).await;
    let mut created = Vec::new();
    for number in 0..25 {
        created.push(world.create(&format!("r{number}"), &["/a"]).await.expect("created"));
    }
    let before = world.server.seen().len();
    for (name, expected) in [("r24", Some(&created[24])), ("r5", Some(&created[5])), ("r4", None), ("r99", None)] {
        let found = world.cdn.find(&id("E1"), &reference(name)).await.expect("search");
        assert_eq!(found.map(|found| found.invalidation).as_ref(), expected.map(|first| &first.id), "{name}");
    }
    // One listing each, and as many looks as it takes: 1, 20, 20 and 20.
    assert_eq!(world.server.seen().len() - before, 4 + 1 + 20 + 20 + 20);
}

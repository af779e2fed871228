//! What becomes of a purge in two tiers of a real cache: the rows of what was seen beforehand, each made anew. They are facts about
//! caches, on which the proof of a fresh edge rests.

mod numbers;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::adapters::clock::SystemClock;
use allclear::adapters::edge_look::EdgeLook;
use allclear::adapters::http::{Egress, Settings};
use proof::age::{Relation, Span, shown, signed};
use proof::asked::{Answers, Page, Question, QuestionId, REQUESTS_MAX};
use proof::marker::{Content, Marker};
use purge::ports::Clock;
use sandbox::cloudfront::{self, CloudFrontStandIn, Distribution, Status};
use sandbox::http::{Request, StandIn};
use support::tiers::{FIRST_VERSION, Lag, Options, Tier, Tiers, Visit, until};

const DISTRIBUTION: &str = "E1";

/// At once, and in the right order where both have it: the shield is asked by the edge, so what the edge forgets first it may take again.
const AT_ONCE: Lag = Lag::Of(Duration::ZERO);

struct Cdn {
    cloudfront: Arc<CloudFrontStandIn>,
    tiers: Tiers,
}

impl Cdn {
    fn start(options: &Options) -> Self {
        let cloudfront = Arc::new(CloudFrontStandIn::new(cloudfront::Options::default()));
        cloudfront.add_distribution(Distribution::new(DISTRIBUTION).alias("www.example.com"));
        let tiers = Tiers::start(&cloudfront, DISTRIBUTION, options);
        Self { cloudfront, tiers }
    }

    /// Creates an invalidation, and returns its id.
    fn purge(&self, path: &str) -> String {
        let reference = self.cloudfront.invalidations().len();
        let body = format!(
            "<InvalidationBatch xmlns=\"http://cloudfront.amazonaws.com/doc/2020-05-31/\"><Paths><Quantity>1</Quantity><Items>\
             <Path>{path}</Path></Items></Paths><CallerReference>{reference}</CallerReference></InvalidationBatch>"
        );
        let signed = ::http::HeaderMap::from_iter([(
            ::http::header::AUTHORIZATION,
            ::http::HeaderValue::from_static("AWS4-HMAC-SHA256 Credential=AKIA/1"),
        )]);
        let uri = format!("/2020-05-31/distribution/{DISTRIBUTION}/invalidation").parse().expect("a URI");
        let request = Request::new(::http::Method::POST, &uri, signed, body.into());
        assert_eq!(self.cloudfront.answer(&request).status, 201);
        self.cloudfront.invalidations().last().expect("one").id.clone()
    }

    /// Waits until CloudFront says `Completed`, and returns when that was.
    async fn until_completed(&self, id: &str) -> Instant {
        let is_completed = || {
            let all = self.cloudfront.invalidations();
            all.iter().any(|made| made.id == id && made.status == Status::Completed)
        };
        until("it is completed", async || is_completed()).await;
        Instant::now()
    }

    /// Waits until both tiers have a copy of `path` that is this many seconds old, and returns what the edge answers then.
    async fn until_aged(&self, path: &str, age: u64) -> Visit {
        let is_aged = async || self.tiers.visit(path).await.age.is_some_and(|found| found >= age);
        until("a copy has an age", is_aged).await;
        self.tiers.visit(path).await
    }

    /// The edge alone forgets everything, as one that was restarted, or a second one elsewhere.
    fn empty_edge(&self) {
        self.tiers.tier(Tier::Edge).forget("/*");
    }
}

#[tokio::test]
async fn an_edge_that_misses_tells_the_age_of_the_shields_copy() {
    let cdn = Cdn::start(&Options::default());
    let first = cdn.tiers.visit("/").await;
    assert_eq!((first.version.as_str(), first.cached.as_str()), (FIRST_VERSION, "Miss from cloudfront"));
    assert!(first.headers["via"].to_str().expect("text").ends_with(".cloudfront.net (CloudFront)"));
    assert_eq!(first.headers["x-amz-cf-pop"], "FRA56-P1");
    assert!(first.headers.contains_key("x-amz-cf-id"));
    let aged = cdn.until_aged("/", 2).await;
    assert_eq!(aged.cached, "Hit from cloudfront");
    cdn.empty_edge();
    let refilled = cdn.tiers.visit("/").await;
    assert_eq!(refilled.cached, "Miss from cloudfront", "what the edge says of itself");
    assert!(refilled.age >= Some(2), "{refilled:?}");
    assert_eq!(cdn.tiers.site.asked(), 1);
}

#[tokio::test]
async fn a_purge_of_both_tiers_leaves_nothing_that_was_stored_before_it() {
    let cdn = Cdn::start(&Options::default());
    for path in ["/", "/x", "/xy", "/y.css"] {
        cdn.tiers.visit(path).await;
    }
    cdn.tiers.site.deploy("2");
    cdn.until_completed(&cdn.purge("/x*")).await;
    for (path, version) in [("/", FIRST_VERSION), ("/x", "2"), ("/xy", "2"), ("/y.css", FIRST_VERSION)] {
        assert_eq!(cdn.tiers.visit(path).await.version, version, "{path}");
    }
    cdn.until_completed(&cdn.purge("/y.css")).await;
    assert_eq!(cdn.tiers.visit("/y.css").await.version, "2");
    assert_eq!(cdn.tiers.visit("/").await.version, FIRST_VERSION);
    let completed = cdn.until_completed(&cdn.purge("/*")).await;
    let visit = cdn.tiers.visit("/").await;
    assert!(visit.version == "2" && !visit.was_stored_before(completed), "{visit:?}");
}

/// The edge is purged first, a visitor comes, then the shield is purged: the edge took the old copy again and keeps it. Its age tells,
/// also after `Completed`, and a second purge mends it.
#[tokio::test]
async fn purged_in_the_wrong_order_the_edge_keeps_an_old_copy_that_its_age_betrays() {
    let cdn = Cdn::start(&Options { edge_lag: AT_ONCE, shield_lag: Lag::Held, ..Options::default() });
    cdn.until_aged("/", 2).await;
    cdn.tiers.site.deploy("2");
    let begun = Instant::now();
    let id = cdn.purge("/*");
    cdn.tiers.until_purged(Tier::Edge, &id).await;
    let between = cdn.tiers.visit("/").await;
    assert_eq!((between.version.as_str(), between.cached.as_str()), (FIRST_VERSION, "Miss from cloudfront"));
    assert!(between.age >= Some(2), "{between:?}");
    cdn.tiers.set_lag(Tier::Shield, AT_ONCE);
    cdn.until_completed(&id).await;
    let after = cdn.tiers.visit("/").await;
    assert_eq!((after.version.as_str(), after.cached.as_str()), (FIRST_VERSION, "Hit from cloudfront"));
    assert!(after.was_stored_before(begun), "{after:?}");
    let completed = cdn.until_completed(&cdn.purge("/*")).await;
    let mended = cdn.tiers.visit("/").await;
    assert!(mended.version == "2" && !mended.was_stored_before(completed), "{mended:?}");
}

/// A pod of the old version has answered, but the answer is still on its way when both tiers are purged: it is stored after the
/// purge. No age tells that, only what it says.
#[tokio::test]
async fn a_slow_answer_in_flight_over_a_purge_is_stored_after_it_with_a_small_age() {
    let cdn = Cdn::start(&Options::default());
    cdn.tiers.site.hold_next();
    let (visit, completed) = tokio::join!(cdn.tiers.visit("/"), async {
        cdn.tiers.site.until_held(1).await;
        cdn.tiers.site.deploy("2");
        let completed = cdn.until_completed(&cdn.purge("/*")).await;
        cdn.tiers.site.release();
        completed
    });
    assert!(visit.version == FIRST_VERSION && !visit.was_stored_before(completed), "{visit:?}");
    let later = cdn.tiers.visit("/").await;
    assert_eq!((later.version.as_str(), later.cached.as_str()), (FIRST_VERSION, "Hit from cloudfront"));
    assert!(!later.was_stored_before(completed), "{later:?}");
    assert_eq!(cdn.tiers.site.asked(), 1, "nobody asks the new pods: it is there to stay");
}

#[tokio::test]
async fn a_shield_that_is_left_out_refills_the_edge_with_its_old_copy() {
    let cdn = Cdn::start(&Options { shield_lag: Lag::LeftOut, ..Options::default() });
    cdn.until_aged("/", 2).await;
    cdn.tiers.site.deploy("2");
    let begun = Instant::now();
    for _ in 0..2 {
        cdn.until_completed(&cdn.purge("/*")).await;
        let visit = cdn.tiers.visit("/").await;
        assert_eq!((visit.version.as_str(), visit.cached.as_str()), (FIRST_VERSION, "Miss from cloudfront"));
        assert!(visit.age >= Some(2) && visit.was_stored_before(begun), "{visit:?}");
    }
}

/// A copy whose time is over is given once more while a new one is fetched, unless it was purged.
#[tokio::test]
async fn a_stale_copy_is_given_while_it_is_fetched_anew_but_not_after_a_purge() {
    let cdn = Cdn::start(&Options { ttl_secs: 1, grace_secs: 3_600, ..Options::default() });
    cdn.tiers.visit("/").await;
    cdn.tiers.site.deploy("2");
    until("a new one was fetched", async || cdn.tiers.visit("/").await.version == "2").await;
    cdn.tiers.site.deploy("3");
    cdn.until_completed(&cdn.purge("/*")).await;
    assert_eq!(cdn.tiers.visit("/").await.version, "3");
}

/// The adapter's own looks: while the shield keeps its copy, by age and by content; and once it is purged.
#[tokio::test]
async fn the_look_sees_an_old_copy_by_its_age_and_by_its_content_and_a_new_one_too() {
    let cdn = Cdn::start(&Options { shield_lag: Lag::LeftOut, ..Options::default() });
    let clock = Arc::new(SystemClock::default());
    let settings = Settings::new(Egress { allow_private: false });
    let look = EdgeLook::new(&settings, [], Arc::clone(&clock) as Arc<dyn Clock>).expect("clients");
    let host = "www.example.com".to_owned();
    let look = look.with_stand_ins(BTreeMap::from([(host, cdn.tiers.address())]));
    let marker = Marker::parse("header:x-version").expect("a marker");
    let question = Question {
        id: QuestionId { round: 0, page: 0, look: 1 },
        page: Page::try_from("www.example.com/".to_owned()).expect("a page"),
        requests_max: REQUESTS_MAX,
        wants_body: marker.wants_body(),
        marker_header: marker.header().map(str::to_owned),
        asks_pods: marker.asks_pods(),
    };
    let pods = async || Ok::<_, Infallible>(vec![cdn.tiers.site.address()]);
    let ask = async || look.ask(&question, pods()).await;
    let by_age = |span: &Span, answers: &Answers| span.relate(&shown(&answers.edge.hops[0]));

    // Four seconds: an age is believed to two.
    until("an old copy", async || {
        ask().await.edge.hops[0].headers.only("age").and_then(|age| age.parse().ok()) >= Some(4)
    })
    .await;
    cdn.tiers.site.deploy("2");
    let ordered = Some(signed(clock.now()));
    let mut span = Span { before: ordered, ordered, after: 0 };
    cdn.until_completed(&cdn.purge("/*")).await;
    span.after = signed(clock.now());
    let answers = ask().await;
    assert!(matches!(by_age(&span, &answers), Relation::Before { .. }), "{answers:?}");
    assert!(matches!(marker.compare(&answers), Content::Other(_)), "{answers:?}");

    cdn.tiers.set_lag(Tier::Shield, AT_ONCE);
    cdn.tiers.set_lag(Tier::Edge, Lag::Held);
    let id = cdn.purge("/*");
    cdn.tiers.until_purged(Tier::Shield, &id).await;
    cdn.tiers.set_lag(Tier::Edge, AT_ONCE);
    cdn.until_completed(&id).await;
    assert_eq!(marker.compare(&ask().await), Content::New);
    // It was stored at once. That this was after the purge shows once the clock is beyond what ages may be off by: in what is fetched anew.
    until("it is renewed", async || {
        cdn.tiers.tier(Tier::Shield).forget("/*");
        cdn.empty_edge();
        by_age(&span, &ask().await) == Relation::After
    })
    .await;
}

#[tokio::test]
async fn tiers_that_are_dropped_leave_no_process_behind() {
    let cdn = Cdn::start(&Options::default());
    cdn.tiers.visit("/").await;
    let both = [Tier::Edge, Tier::Shield].map(|tier| (cdn.tiers.tier(tier).id(), cdn.tiers.tier(tier).address()));
    // As a test that fails does.
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _cdn = cdn;
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(failed.is_err());
    for (id, address) in both {
        assert!(!Path::new(&format!("/proc/{id}")).exists(), "{id}");
        assert!(TcpStream::connect(address).is_err(), "its worker has ended too");
    }
}

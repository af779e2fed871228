//! Over a real loopback socket, against a root actor with a scripted observation.

mod gallery;
mod live;
mod promoting;
mod shown;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, Context, Handler, MessageResult, ResponseFuture};
use expect_test::{ExpectFile, expect_file};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::actors::browse::{Browse, Row};
use crate::actors::message::Observe;
use crate::actors::observation::{DeliverySeen, PurgeSeen};
use kernel::id::WorkloadId;
use objects::pipeline::judge::Stale;
use objects::pipeline::spec::{Purged, Until};
use objects::ports::pipeline::Edges;
use purge::agreement::tally::{Ballot, Tally};
use purge::broker::{BoardSeen, MemberSeen, Seen};
use purge::ports::{Clock, PortError};
use purge::rollouts::rollout::{MemberSummary, Past, PurgeSummary, Stage, Summary};
use purge::rollouts::unwell::{Reason, Unwell};

struct Showing(Observation);

impl Actor for Showing {
    type Context = Context<Self>;
}

impl Handler<Observe> for Showing {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.0.clone())
    }
}

/// Takes the question and never answers, like an actor that waits for its ledger.
struct Mute;

impl Actor for Mute {
    type Context = Context<Self>;
}

impl Handler<Observe> for Mute {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, _: Observe, _: &mut Self::Context) -> Self::Result {
        Box::pin(std::future::pending())
    }
}

impl Handler<Browse> for Showing {
    type Result = MessageResult<Browse>;

    /// A record for each rollout it shows.
    fn handle(&mut self, browse: Browse, _: &mut Self::Context) -> Self::Result {
        let wanted = |id: &WorkloadId| match &browse {
            Browse::One(one) => one == id,
            Browse::Search(search) => id.display_name().contains(&search.text),
        };
        let shown = self.0.rollouts.iter().filter(|summary| wanted(&summary.workload));
        let rows: Vec<Row> = shown.map(row).collect();
        MessageResult(Listing { matched: rows.len(), rows })
    }
}

fn row(summary: &Summary) -> Row {
    let version = summary.change.clone();
    Row { summary: summary.clone(), version, in_flight: true, unwell: None, left_alone: None }
}

/// A minute after which nothing has happened: times on a page are of one moment.
const NOW_MS: i64 = 1_700_049_600_000;

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> kernel::machine::Timestamp {
        kernel::machine::Timestamp::default()
    }

    fn wall_ms(&self) -> i64 {
        NOW_MS
    }
}

fn front<A>(root: actix::Addr<A>) -> Front
where
    A: Actor<Context = Context<A>> + Handler<Observe> + Handler<Browse>,
{
    let about = About { member: "eu-1".into(), group: "default".into(), dry_run: false };
    Front {
        root: root.clone().recipient(),
        browse: root.recipient(),
        explained: None,
        clock: Arc::new(Stopped),
        metrics: Arc::default(),
        about,
        fresh: None,
        hooks: None,
        draining: Arc::default(),
    }
}

impl Handler<Browse> for Mute {
    type Result = ResponseFuture<Listing>;

    fn handle(&mut self, _: Browse, _: &mut Self::Context) -> Self::Result {
        Box::pin(std::future::pending())
    }
}

pub(super) fn showing(observation: Observation) -> Front {
    front(Showing(observation).start())
}

pub(super) fn synced() -> Observation {
    Observation { synced: true, workloads: 3, ..Observation::default() }
}

fn anywhere() -> Addresses {
    let address = "127.0.0.1:0".parse().unwrap();
    Addresses { probes: address, page: address, hooks: None }
}

pub(super) async fn start(front: Front) -> Serving {
    serve(anywhere(), front).await.unwrap()
}

/// The whole answer to one request, head and body.
async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    ask_as(address, method, path, "").await
}

/// The same, with one more line in the head.
pub(super) async fn ask_as(address: SocketAddr, method: &str, path: &str, line: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("{method} {path} HTTP/1.1\r\n{line}host: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_string(&mut answer));
    read.await.expect("an answer in time").unwrap();
    answer
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// The main part of a page is in this file, or these sections of it: a line for each part.
async fn page_is(serving: &Serving, path: &str, sections: &[&str], expected: ExpectFile) {
    let answer = ask(serving.addresses().page, "GET", path).await;
    let main = body(&answer).split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
    let is_wanted =
        |section: &&str| sections.is_empty() || sections.iter().any(|id| section.starts_with(&format!(" id=\"{id}\"")));
    let shown = main.split("<section").skip(1).filter(is_wanted);
    let mut shown: String = shown.map(|section| format!("<section{section}")).collect();
    for part in
        ["section", "h2", "h3", "p", "ul", "ol", "li", "article", "div", "dl", "dt", "table", "tr", "form", "pre"]
    {
        for end in [" ", ">"] {
            shown = shown.replace(&format!("<{part}{end}"), &format!("\n<{part}{end}"));
        }
    }
    expected.assert_eq(&format!("{}\n", shown.trim_start()));
}

#[actix::test]
async fn every_path_answers_and_the_guards_are_on_all_of_them() {
    let serving = start(showing(synced())).await;
    let paths = [
        ("/", "200 OK", "text/html; charset=utf-8"),
        ("/livez", "200 OK", "text/plain; charset=utf-8"),
        ("/readyz", "200 OK", "text/plain; charset=utf-8"),
        ("/metrics", "200 OK", "text/plain; version=0.0.4; charset=utf-8"),
        ("/api/v1/state", "200 OK", "application/json"),
        ("/favicon.ico", "404 Not Found", "text/plain; charset=utf-8"),
    ];
    for (path, status, content_type) in paths {
        let answer = ask(serving.addresses().page, "GET", path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{path}: {answer}");
        for header in [
            &format!("content-type: {content_type}\r\n"),
            "content-security-policy: default-src 'none'; style-src 'sha256-",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cache-control: no-store\r\n",
        ] {
            assert!(answer.contains(header), "{path} without {header}: {answer}");
        }
    }
    serving.stop().await;
}

#[actix::test]
async fn the_door_of_the_probes_shows_nothing_that_names_a_workload() {
    let serving = start(showing(busy("web"))).await;
    let probes = serving.addresses().probes;
    for path in ["/livez", "/readyz", "/metrics"] {
        assert!(ask(probes, "GET", path).await.starts_with("HTTP/1.1 200 OK\r\n"), "{path}");
    }
    for path in ["/", "/api/v1/state", "/api/v1/state/", "//", "/livez/../api/v1/state"] {
        let answer = ask(probes, "GET", path).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {answer}");
        assert!(answer.contains("http.page") && !answer.contains("shop"), "{path}: {answer}");
    }
    serving.stop().await;
}

#[actix::test]
async fn an_address_that_is_taken_is_named_with_its_setting_and_the_other_door_stays_shut() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (addresses, setting) in [
        (Addresses { probes: address, ..anywhere() }, "http.listen (ALLCLEAR__HTTP__LISTEN)"),
        (Addresses { page: address, ..anywhere() }, "http.page (ALLCLEAR__HTTP__PAGE)"),
    ] {
        let Err(error) = serve(addresses, showing(synced())).await else { panic!("{address} was free") };
        let words = error.to_string();
        assert!(words.contains(&address.to_string()) && words.contains(setting), "{words}");
    }
}

#[actix::test]
async fn a_head_request_gets_the_head_of_the_answer_only() {
    let serving = start(showing(synced())).await;
    let answer = ask(serving.addresses().page, "HEAD", "/").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(body(&answer), "");
    serving.stop().await;
}

#[actix::test]
async fn nothing_can_be_changed() {
    let serving = start(showing(synced())).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = ask(serving.addresses().page, method, "/").await;
        assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{answer}");
        assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
        assert!(body(&answer).contains("only GET and HEAD"), "{answer}");
    }
    serving.stop().await;
}

#[actix::test]
async fn it_is_not_ready_before_the_workloads_are_listed_and_says_what_is_in_the_way() {
    let troubles = vec!["failed to list deployments: forbidden".to_owned()];
    let serving = start(showing(Observation { troubles, ..Observation::default() })).await;
    let answer = ask(serving.addresses().probes, "GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let words = "the workloads of the cluster have not been listed yet\nfailed to list deployments: forbidden\n";
    assert_eq!(body(&answer), words);
    assert!(
        ask(serving.addresses().probes, "GET", "/livez").await.starts_with("HTTP/1.1 200 "),
        "it is alive all the same"
    );
    serving.stop().await;
}

// Faults: A7
#[actix::test]
async fn a_watch_that_is_blind_is_not_ready_and_still_alive() {
    let blind = Some("changes of workloads are not noticed for 80 s: forbidden".to_owned());
    let serving = start(showing(Observation { blind, ..synced() })).await;
    let answer = ask(serving.addresses().probes, "GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(body(&answer), "changes of workloads are not noticed for 80 s: forbidden\n");
    assert!(ask(serving.addresses().probes, "GET", "/livez").await.starts_with("HTTP/1.1 200 "));
    serving.stop().await;
}

#[actix::test]
async fn it_is_not_ready_any_more_the_moment_it_drains() {
    let front = showing(synced());
    let draining = front.draining.clone();
    let serving = start(front).await;
    assert_eq!(body(&ask(serving.addresses().probes, "GET", "/readyz").await), "ready\n");
    draining.store(true, Ordering::Relaxed);
    let answer = ask(serving.addresses().probes, "GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(body(&answer), "shutting down\n");
    serving.stop().await;
}

#[actix::test]
async fn an_actor_that_does_not_answer_is_alive_but_not_ready() {
    let (_end, ending) = watch::channel(false);
    let window = Window::new(front(Mute.start()), TURN_WITHIN, ending);
    tokio::time::pause();
    assert_eq!(window.ready().await, Err(vec!["the root actor has not answered for 3s".to_owned()]));
    let page = shown(&window, asked("/", ""), "/").await;
    assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::resume();
    assert_eq!(window.alive().await, Ok("alive"));
}

#[actix::test]
async fn a_blocked_event_loop_is_noticed_by_the_worker_on_its_own_thread() {
    let front = showing(synced());
    let serving = listen(anywhere(), front, Duration::from_millis(50)).unwrap();
    let address = serving.addresses().probes;
    assert_eq!(body(&ask(address, "GET", "/livez").await), "alive\n");
    let asking = std::thread::spawn(move || actix_rt::System::new().block_on(ask(address, "GET", "/livez")));
    // Blocks this thread, and with it the event loop of the actors, until the answer is there.
    let answer = asking.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(body(&answer), "the event loop of the actors has not turned for 50ms\n");
    serving.stop().await;
}

#[actix::test]
async fn the_state_has_everything_the_actors_show_and_who_shows_it() {
    let serving = start(showing(busy("web"))).await;
    let answer = ask(serving.addresses().page, "GET", "/api/v1/state").await;
    let state: serde_json::Value = serde_json::from_str(body(&answer)).unwrap();
    let shown = format!("{state:#}\n").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect_file!["tests/busy.json"].assert_eq(&shown);
    serving.stop().await;
}

#[actix::test]
async fn hostile_names_stay_text() {
    let hostile = "<script>alert(1)</script>\"'&";
    let mut observation = busy(hostile);
    observation.troubles.push(hostile.to_owned());
    let mut front = showing(observation);
    front.about = About { member: hostile.into(), group: hostile.into(), dry_run: true };
    let serving = start(front).await;
    let answer = ask(serving.addresses().page, "GET", "/").await;
    assert_eq!(answer.matches("<script").count(), 1, "but for our own: {answer}");
    assert!(answer.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"), "{answer}");
    let missing = ask(serving.addresses().page, "GET", "/%3Cscript%3E").await;
    assert!(missing.contains("content-type: text/plain"), "{missing}");
    serving.stop().await;
}

#[actix::test]
async fn the_page_shows_the_purge_as_the_invalidator_sees_it_and_the_id_of_a_dead_letter() {
    let serving = start(showing(busy("web"))).await;
    page_is(&serving, "/", &[], expect_file!["tests/busy.html"]).await;
    serving.stop().await;
}

/// A rollout that is being purged, with a dead letter; `name` wherever a name can be.
fn busy(name: &str) -> Observation {
    let workload = WorkloadId::deployment("shop", name);
    let summary = Summary {
        seq: 7,
        phase: "complete",
        change: format!("{name}: 1.2.3 → 1.2.4"),
        next: "tells the webhooks when all are completed".to_owned(),
        stage: Stage::Purge,
        members: vec![MemberSummary { member: name.to_owned(), phase: "complete", version: name.to_owned() }],
        purges: vec![PurgeSummary {
            reference: "ref".to_owned(),
            distribution: name.to_owned(),
            invalidation: Some(name.to_owned()),
            state: "in progress".to_owned(),
        }],
        past: Past { history: vec![name.to_owned()], ..Past::default() },
        conditions: vec![name.to_owned()],
        ..Summary::unknown(&workload, name.to_owned())
    };
    Observation {
        recent: vec![summary.clone()],
        rollouts: vec![summary],
        quarantined: vec![workload.clone()],
        purges: vec![PurgeSeen {
            reference: "ref".into(),
            distribution: name.parse().unwrap_or_else(|_| "E1".parse().unwrap()),
            state: "invalidation I2X in progress for 12 s".to_owned(),
        }],
        deliveries: vec![DeliverySeen {
            id: "d1".to_owned(),
            hook: name.to_owned(),
            subject: workload.into(),
            kind: "purge.completed",
            attempts: 10,
            given_up: true,
            state: name.to_owned(),
        }],
        ..synced()
    }
}

#[actix::test]
async fn the_page_is_not_green_while_a_rollout_has_ended_badly_or_a_cluster_is_waited_for() {
    let workload = WorkloadId::deployment("shop", "web");
    let state = "web: 1 → <2>: not purged: the rollout timeout passed".to_owned();
    let unwell = vec![Unwell { workload: workload.clone(), reason: Reason::Failed, state }];
    let serving = start(showing(Observation { unwell, ..synced() })).await;
    page_is(&serving, "/", &["health", "board"], expect_file!["tests/failed.html"]).await;
    serving.stop().await;

    let ballot = |member: &str, awaited: Option<&str>| Ballot {
        member: member.to_owned(),
        phase: "complete".to_owned(),
        awaited: awaited.map(str::to_owned),
        ..Ballot::default()
    };
    let blocks = "eu-2 waits for this cluster, since it is at web: 1, complete";
    let members = vec![ballot("eu-1", Some("is at web: 1, complete")), ballot("eu-2", None)];
    let tally = Tally {
        workload,
        known_as: None,
        state: String::new(),
        older: Vec::new(),
        next: None,
        blocks: Some(blocks.to_owned()),
        members,
        purges: Vec::new(),
    };
    let mut seen = busy("web");
    seen.tallies.push(tally);
    let serving = start(showing(seen)).await;
    page_is(&serving, "/", &["health", "board"], expect_file!["tests/awaited.html"]).await;
    serving.stop().await;
}

#[actix::test]
async fn the_page_shows_who_is_in_the_group_and_what_holds_it() {
    let heard = Some("heard from in the last 20 s".to_owned());
    let seen = MemberSeen { agreed: true, heard, ..MemberSeen::default() };
    let member = |name: &str, heard_s| MemberSeen { name: name.into(), heard_s, ..seen.clone() };
    let members = vec![member("eu-1", None), member("eu-2", Some(3))];
    let board = BoardSeen { name: "redis-b:6379".into(), trouble: Some("<timeout>".into()), ..BoardSeen::default() };
    let group = Seen { members, boards: vec![board], ..Seen::default() };
    let serving = start(showing(Observation { group: Some(group), ..synced() })).await;
    page_is(&serving, "/group", &[], expect_file!["tests/group.html"]).await;
    let json: serde_json::Value =
        serde_json::from_str(body(&ask(serving.addresses().page, "GET", "/api/v1/state").await)).unwrap();
    assert_eq!(json["group"], "default");
    assert_eq!(json["agreement"]["members"][1]["heard_s"], 3);
    serving.stop().await;
}

/// The edge of `shop/web` is purged, `shop/statefulset/late` is not, `shop/lost` cannot be read; whatever else is asked about fails the test.
pub(super) struct ThreeEdges;

#[async_trait::async_trait]
impl Edges for ThreeEdges {
    async fn are_fresh(&self, purged: &Purged, namespaces: &BTreeSet<String>) -> Result<Result<(), Stale>, PortError> {
        assert_eq!((namespaces.len(), &purged.by), (1, &None));
        match (namespaces.first().unwrap().as_str(), purged.workloads[0].to_string().as_str()) {
            ("shop", "web") if purged.until == Until::Fresh => Ok(Err(Stale("nobody looks".to_owned()))),
            ("shop", "web") => Ok(Ok(())),
            ("shop", "statefulset/late") => Ok(Err(Stale("its purge is under way".to_owned()))),
            ("shop", "lost") => Err(PortError::passing("failed to read the record", "no answer")),
            other => panic!("{other:?} was asked about"),
        }
    }
}

#[actix::test]
async fn whether_an_edge_is_fresh_is_answered_to_who_has_the_token() {
    let path = |name: &str| format!("/api/v1/fresh/{name}");
    let closed = start(showing(synced())).await;
    assert!(ask(closed.addresses().probes, "GET", &path("shop/web")).await.starts_with("HTTP/1.1 404"), "it is off");
    let fresh = Some(Fresh::new("hunter2-hunter2", Arc::new(ThreeEdges)));
    let serving = start(Front { fresh, ..showing(synced()) }).await;
    let token = "authorization: Bearer hunter2-hunter2\r\n";
    let said = |answer: &str| serde_json::from_str::<serde_json::Value>(body(answer)).unwrap().to_string();
    for door in [serving.addresses().probes, serving.addresses().page] {
        let open = ask_as(door, "GET", &path("shop/web"), token).await;
        assert!(open.starts_with("HTTP/1.1 200") && open.contains("content-type: application/json"), "{open}");
        assert_eq!(said(&open), r#"{"open":true}"#);
        let late = ask_as(door, "GET", &path("shop/statefulset/late"), token).await;
        assert_eq!(said(&late), r#"{"open":false,"reason":"its purge is under way","retryAfter":2}"#);
        let fresh = ask_as(door, "GET", &path("shop/web?until=fresh"), token).await;
        assert_eq!(said(&fresh), r#"{"open":false,"reason":"nobody looks","retryAfter":2,"until":"fresh"}"#);
        assert!(ask_as(door, "GET", &path("shop/web?until=proved"), token).await.starts_with("HTTP/1.1 400"));
        let lost = ask_as(door, "GET", &path("shop/lost"), token).await;
        assert!(["HTTP/1.1 503", "retry-after: 2", "no answer"].iter().all(|part| lost.contains(part)), "{lost}");
    }
    let probes = serving.addresses().probes;
    for wrong in
        ["", "authorization: Bearer hunter2\r\n", "authorization: hunter2-hunter2\r\n", "x-token: hunter2-hunter2\r\n"]
    {
        let refused = ask_as(probes, "GET", &path("shop/web"), wrong).await;
        assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("www-authenticate: Bearer"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
    for bad in ["", "shop", "shop/", "shop/web/x", "shop/job/web", "shop/..", "../web", "shop/we%62", "Shop/web"] {
        assert!(ask_as(probes, "GET", &path(bad), token).await.starts_with("HTTP/1.1 404"), "{bad}");
    }
}

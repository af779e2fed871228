//! The look at the edge on the wire: what is asked and how, what comes back as it was, and every way a site can misbehave.

use std::collections::BTreeMap;
use std::future::{Ready, pending, ready};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::edge_look::EdgeLook;
use allclear::adapters::http::{Egress, Settings};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proof::asked::{Answer, BODY_BYTES_MAX, Body, Page, Question, QuestionId, REQUESTS_MAX, Reply};
use purge::ports::Clock;
use support::tiers::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::webhook::Knows;

const HOST: &str = "www.example.com";

/// More than any of these takes on busy cores; where the bound itself is looked at, it is [`SOON`].
const WAIT: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(300);

/// What a peer sends, and what it does then.
#[derive(Clone)]
pub struct Script {
    said: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    Close,
    /// Says nothing more and stays.
    Stay,
    /// Says this again and again, as long as somebody listens.
    Repeat(&'static [u8]),
}

/// A server that says what it was told to, whatever HTTP says. One request for each connection.
pub struct Peer {
    pub address: SocketAddr,
    /// The head of each request.
    heads: Arc<Mutex<Vec<String>>>,
    /// Connections that were closed by the client while it still had something to say.
    left: Arc<Mutex<u32>>,
}

impl Peer {
    pub async fn start(script: impl Fn(&str) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (heads, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (seen, gone, script) = (Arc::clone(&heads), Arc::clone(&left), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, gone, script) = (Arc::clone(&seen), Arc::clone(&gone), Arc::clone(&script));
                tokio::spawn(async move {
                    let Some(head) = head(&mut stream).await else { return };
                    seen.lock().expect("a list").push(head.clone());
                    let path = head.split(' ').nth(1).expect("a request line").to_owned();
                    let Script { said, then } = script(&path);
                    // A client that reads no more is one of the things that are looked at.
                    let mut is_there = stream.write_all(&said).await.is_ok();
                    match then {
                        Then::Close => return,
                        Then::Stay => _ = stream.read(&mut [0]).await,
                        Then::Repeat(more) => {
                            while is_there {
                                is_there = stream.write_all(more).await.is_ok();
                            }
                        }
                    }
                    *gone.lock().expect("a number") += 1;
                });
            }
        });
        Self { address, heads, left }
    }

    /// One that answers everything so.
    async fn saying(said: &str, then: Then) -> Self {
        let script = Script { said: said.as_bytes().to_vec(), then };
        Self::start(move |_| script.clone()).await
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("a list").clone()
    }

    /// Waits until clients have left so many answers that had not ended.
    async fn until_left(&self, answers: u32) {
        until("clients have left", async || *self.left.lock().expect("a number") >= answers).await;
    }
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.ok()?));
    }
    Some(head)
}

pub fn ok(headers: &str, body: &str) -> Script {
    let said = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len());
    Script { said: said.into_bytes(), then: Then::Close }
}

pub fn redirect(to: &str) -> Script {
    let said = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    Script { said: said.into_bytes(), then: Then::Close }
}

fn question(path: &str) -> Question {
    Question {
        id: QuestionId { round: 0, page: 0, look: 1 },
        page: Page::try_from(format!("{HOST}{path}")).expect("a page"),
        requests_max: REQUESTS_MAX,
        wants_body: true,
        marker_header: None,
        asks_pods: false,
    }
}

fn look_from(address: &str) -> EdgeLook {
    let mut settings = Settings::new(Egress { allow_private: true });
    settings.lookup = Arc::new(Knows(address.parse().expect("an address")));
    let look = EdgeLook::new(&settings, [], Arc::new(SystemClock::default())).expect("clients");
    look.with_wait_max(WAIT)
}

fn look_at(peer: &Peer) -> EdgeLook {
    look_from("127.0.0.1").with_stand_ins(BTreeMap::from([(HOST.to_owned(), peer.address)]))
}

/// These pods, at once.
fn found(pods: &[SocketAddr]) -> Ready<Result<Vec<SocketAddr>, String>> {
    ready(Ok(pods.to_vec()))
}

async fn edge(look: &EdgeLook, question: &Question) -> Reply {
    look.ask(question, found(&[])).await.edge
}

fn only(reply: Reply) -> Answer {
    assert_eq!((reply.hops.len(), &reply.failure), (1, &None), "{reply:?}");
    reply.hops.into_iter().next().expect("one")
}

#[tokio::test]
async fn a_page_is_asked_for_as_a_browser_does_and_comes_back_as_it_was() {
    let peer = Peer::start(|_| {
        let headers = "Age: 3\r\nAge: 3412\r\nX-Cache: Hit from cloudfront\r\nVia: 1.1 a, 1.1 b\r\nVIA: 1.0 \u{e4}\r\n\
                       X-Version: 7\r\nSet-Cookie: id=secret\r\n";
        ok(headers, "whole")
    })
    .await;
    let look = look_at(&peer);
    let clock = SystemClock::default();
    let before = clock.now();
    let asked = Question { marker_header: Some("x-version".to_owned()), ..question("/shop?q=1") };
    let answer = only(edge(&look, &asked).await);
    assert_eq!((answer.path.as_str(), answer.status), ("/shop?q=1", 200));
    assert!(before <= answer.started && answer.started <= answer.ended);
    assert_eq!(answer.headers.all("age"), ["3", "3412"]);
    assert_eq!(answer.headers.all("via"), ["1.1 a, 1.1 b", "1.0 \u{e4}"]);
    assert_eq!(answer.headers.only("x-version"), Some("7"));
    assert_eq!(answer.headers.only("set-cookie"), Some(""), "that there is one, and not what it is");
    assert_eq!(answer.body, Body::Whole(b"whole".to_vec()));
    let heads = peer.heads();
    let lines: Vec<&str> = heads[0].trim_end().split("\r\n").collect();
    assert_eq!(lines[0], "GET /shop?q=1 HTTP/1.1");
    let mut lines: Vec<&str> = lines[1..].to_vec();
    lines.sort_unstable();
    let agent = concat!("user-agent: allclear/", env!("CARGO_PKG_VERSION"), " (looks at pages after a purge)");
    assert_eq!(lines, ["accept-encoding: gzip, br", "accept: */*", "host: www.example.com", agent]);
}

#[tokio::test]
async fn every_question_has_a_connection_of_its_own_and_no_cookies_of_the_last() {
    let peer = Peer::start(|_| {
        let mut script = ok("Set-Cookie: id=1\r\nConnection: keep-alive\r\n", "x");
        script.then = Then::Stay;
        script
    })
    .await;
    let look = look_at(&peer);
    for _ in 0..3 {
        only(edge(&look, &question("/")).await);
    }
    // One request is read of each connection.
    assert_eq!(peer.heads().len(), 3);
    assert!(peer.heads().iter().all(|head| !head.contains("cookie")));
    peer.until_left(3).await;
}

#[tokio::test]
async fn redirects_are_followed_within_the_host_and_each_is_an_answer() {
    let peer = Peer::start(|path| match path {
        "/" => redirect("/en"),
        "/en" => redirect("https://www.example.com:443/en/?a=1#part"),
        _ => ok("", "here"),
    })
    .await;
    let reply = edge(&look_at(&peer), &question("/")).await;
    let seen: Vec<(&str, u16, &Body)> =
        reply.hops.iter().map(|hop| (hop.path.as_str(), hop.status, &hop.body)).collect();
    let here = Body::Whole(b"here".to_vec());
    assert_eq!(seen, [("/", 302, &Body::Unread), ("/en", 302, &Body::Unread), ("/en/?a=1", 200, &here)]);
    assert_eq!(reply.failure, None);
    let fewer = edge(&look_at(&peer), &Question { requests_max: 2, ..question("/") }).await;
    assert_eq!(fewer.hops.len(), 2);
    assert_eq!(fewer.failure.as_deref(), Some("it redirects on and on: 2 requests are the most"));
}

#[tokio::test]
async fn a_redirect_astray_is_not_followed_and_its_target_not_repeated() {
    let long = format!("/{}", "x".repeat(3_000));
    for (to, failure) in [
        ("https://elsewhere.example.com/?token=hunter2", "it redirects to elsewhere.example.com"),
        ("//elsewhere.example.com/", "it redirects to elsewhere.example.com"),
        ("http://169.254.169.254/latest/meta-data/", "it redirects to 169.254.169.254"),
        ("https://10.0.0.1/", "it redirects to 10.0.0.1"),
        ("http://www.example.com/", "it redirects to plain http"),
        ("https://www.example.com:8443/", "it redirects to another port, or with a name and a password"),
        ("https://me:hunter2@www.example.com/", "it redirects to another port, or with a name and a password"),
        ("file:///etc/passwd", "it redirects to something that is no address"),
        ("https://[", "it redirects to something that is no address"),
        (long.as_str(), "it redirects to a path of 3001 bytes, the most is 2048"),
        ("/", "it redirects on and on: 3 requests are the most"),
    ] {
        let target = to.to_owned();
        let peer = Peer::start(move |_| redirect(&target)).await;
        let reply = edge(&look_at(&peer), &question("/")).await;
        assert_eq!(reply.failure.as_deref(), Some(failure), "{to}");
        let hops = if to == "/" { 3 } else { 1 };
        assert_eq!((reply.hops.len(), peer.heads().len()), (hops, hops), "{to}");
    }
    // Without a place to go to, or with two, it is an answer as others are.
    for headers in ["", "Location: /a\r\nLocation: /b\r\n"] {
        let peer = Peer::saying(&format!("HTTP/1.1 301 X\r\n{headers}Content-Length: 0\r\n\r\n"), Then::Close).await;
        assert_eq!(only(edge(&look_at(&peer), &question("/")).await).status, 301);
    }
}

#[tokio::test]
async fn refusals_of_a_site_are_answers() {
    for status in [403, 404, 500, 503] {
        let peer = Peer::saying(&format!("HTTP/1.1 {status} X\r\nContent-Length: 1\r\n\r\nx"), Then::Close).await;
        assert_eq!(only(edge(&look_at(&peer), &question("/")).await).status, status);
    }
}

#[tokio::test]
async fn a_body_is_read_only_if_it_is_wanted_and_within_its_bound() {
    let endless = "HTTP/1.1 200 OK\r\nAge: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = Then::Repeat(b"10\r\n0123456789abcdef\r\n");
    let peer = Peer::saying(endless, chunk).await;
    let look = look_at(&peer);
    let unwanted = only(edge(&look, &Question { wants_body: false, ..question("/") }).await);
    assert_eq!((unwanted.headers.only("age"), unwanted.body), (Some("1"), Body::Unread));
    peer.until_left(1).await;
    assert_eq!(only(edge(&look, &question("/")).await).body, Body::TooLong);
    peer.until_left(2).await;
    let longest = "x".repeat(BODY_BYTES_MAX);
    for (body, is_whole) in [(longest.clone(), true), (longest + "x", false)] {
        let peer = Peer::start(move |_| ok("", &body)).await;
        let found = only(edge(&look_at(&peer), &question("/")).await).body;
        assert_eq!(matches!(found, Body::Whole(_)), is_whole);
    }
}

#[tokio::test]
async fn coded_bodies_are_decoded_and_bombs_are_not() {
    // "the version is 2\n" by gzip 1.12, and 10,000,000 zeros by brotli 1.0.9.
    let gzip = "1f8b08000000000002032bc94855284b2d2acecccf53c82c5630e2020036b262c411000000";
    let bomb = "9f7f9698002400e2b140721c3101";
    let line = Body::Whole(b"the version is 2\n".to_vec());
    for (coding, coded, expected) in [("gzip", gzip, line), ("br", bomb, Body::TooLong), ("br", gzip, Body::Unread)] {
        let coded: Vec<u8> =
            (0..coded.len()).step_by(2).map(|at| u8::from_str_radix(&coded[at..at + 2], 16).expect("hex")).collect();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", coded.len());
        let script = Script { said: [head.into_bytes(), coded].concat(), then: Then::Close };
        let peer = Peer::start(move |_| script.clone()).await;
        assert_eq!(only(edge(&look_at(&peer), &question("/")).await).body, expected, "{coding}");
    }
}

#[tokio::test]
async fn one_that_never_ends_its_answer_costs_the_time_of_one_question() {
    for (said, then) in [
        ("", Then::Stay),
        ("HTTP/1.1 200 OK\r\nX-Slow: ", Then::Stay),
        ("HTTP/1.1 102 Processing\r\n\r\n", Then::Repeat(b"HTTP/1.1 102 Processing\r\n\r\n")),
    ] {
        let peer = Peer::saying(said, then).await;
        let reply = edge(&look_at(&peer).with_wait_max(SOON), &question("/")).await;
        assert_eq!((reply.hops.len(), reply.failure.as_deref()), (0, Some("no answer within 300ms")), "{said}");
        peer.until_left(1).await;
    }
    // The head has come: that is an answer, and its body is unread.
    let peer = Peer::saying("HTTP/1.1 200 OK\r\nAge: 7\r\nContent-Length: 9\r\n\r\nhalf", Then::Stay).await;
    let answer = only(edge(&look_at(&peer).with_wait_max(SOON), &question("/")).await);
    assert_eq!((answer.headers.only("age"), answer.body), (Some("7"), Body::Unread));
    // Redirects share the time.
    let peer = Peer::start(|path| match path {
        "/" => redirect("/next"),
        _ => Script { said: Vec::new(), then: Then::Stay },
    })
    .await;
    let reply = edge(&look_at(&peer).with_wait_max(SOON), &question("/")).await;
    assert_eq!((reply.hops.len(), reply.failure.as_deref()), (1, Some("no answer within 300ms")));
}

#[tokio::test]
async fn heads_without_an_end_and_lies_about_bodies_are_failures_in_words() {
    let peer = Peer::saying("HTTP/1.1 200 OK\r\n", Then::Repeat(b"X-Filler: 0123456789abcdef\r\n")).await;
    let reply = edge(&look_at(&peer), &question("/?token=hunter2")).await;
    let failure = reply.failure.expect("a failure");
    assert!(failure.starts_with("the connection broke before there was an answer: "), "{failure}");
    assert!(!failure.contains("hunter2") && reply.hops.is_empty(), "{failure}");
    for said in ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\nAge"] {
        let peer = Peer::saying(said, Then::Close).await;
        let failure = edge(&look_at(&peer), &question("/")).await.failure.expect("a failure");
        assert!(failure.starts_with("the connection broke before there was an answer: "), "{failure}");
    }
    let peer = Peer::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Then::Close).await;
    assert_eq!(only(edge(&look_at(&peer), &question("/")).await).body, Body::Unread);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_asked_unless_the_operator_allows_it() {
    for (address, refusal) in [
        ("127.0.0.1", "not sent: www.example.com is 127.0.0.1"),
        ("10.0.0.1", "not sent: www.example.com is 10.0.0.1"),
        ("169.254.169.254", "not sent: www.example.com is 169.254.169.254"),
    ] {
        let reply = edge(&look_from(address), &question("/")).await;
        let failure = reply.failure.expect("a failure");
        assert!(failure.starts_with(refusal) && reply.hops.is_empty(), "{failure}");
    }
    let allowed = |address: &str| {
        let mut settings = Settings::new(Egress { allow_private: false });
        settings.lookup = Arc::new(Knows(address.parse().expect("an address")));
        EdgeLook::new(&settings, [HOST.to_owned()], Arc::new(SystemClock::default())).expect("clients")
    };
    let metadata = edge(&allowed("169.254.169.254"), &question("/")).await.failure.expect("a failure");
    assert!(metadata.starts_with("not sent: www.example.com is 169.254.169.254"), "{metadata}");
    // Nothing listens there, or something that has no certificate for it: it was asked all the same.
    let inside = edge(&allowed("127.0.0.1"), &question("/")).await.failure.expect("a failure");
    assert!(!inside.starts_with("not sent"), "{inside}");
}

#[tokio::test]
async fn pods_that_cannot_be_found_are_two_failures_that_say_why_and_hold_no_answer_of_the_edge_up() {
    let peer = Peer::start(|_| ok("", "page")).await;
    let look = look_at(&peer);
    let asked = Question { asks_pods: true, ..question("/") };
    let failures = async |look: &EdgeLook, find: &dyn Fn() -> BoxFuture<'static, Result<Vec<SocketAddr>, String>>| {
        let answers = look.ask(&asked, find()).await;
        assert_eq!(only(answers.edge).body, Body::Whole(b"page".to_vec()));
        let failures: Vec<Option<String>> = answers.pods.into_iter().map(|reply| reply.failure).collect();
        let [Some(one), Some(other)] = failures.as_slice() else { panic!("{failures:?}") };
        assert_eq!(one, other);
        one.clone()
    };
    let why = || ready(Err("no Service selects them\n".to_owned())).boxed();
    assert_eq!(failures(&look, &why).await, "no Service selects them\\n");
    assert_eq!(failures(&look, &|| ready(Ok(Vec::new())).boxed()).await, "there are none");
    let never = || pending::<Result<Vec<SocketAddr>, String>>().boxed();
    let hurried = look_at(&peer).with_wait_max(SOON);
    let late = hurried.ask(&asked, never()).await;
    assert_eq!(late.pods[1].failure.as_deref(), Some("they were not found within 300ms"));
    // Where they are not to be asked, nobody looks for them.
    assert!(look.ask(&question("/"), never()).await.pods.is_empty());
}

#[tokio::test]
async fn two_pods_are_asked_after_the_edge_by_the_pages_host_as_behind_tls() {
    let peer = Peer::start(|_| ok("Age: 3412\r\n", "old")).await;
    let pod = Peer::start(|path| match path {
        "/" => redirect("http://www.example.com/en"),
        _ => ok("X-Version: 2\r\n", "new"),
    })
    .await;
    let look = look_at(&peer);
    let pods = [pod.address; 3];
    let unasked = look.ask(&question("/"), found(&pods)).await;
    assert_eq!((unasked.pods.len(), pod.heads().len()), (0, 0));
    let asked = Question { asks_pods: true, marker_header: Some("x-version".to_owned()), ..question("/") };
    let answers = look.ask(&asked, found(&pods)).await;
    assert_eq!(only(answers.edge.clone()).body, Body::Whole(b"old".to_vec()));
    assert_eq!(answers.pods.len(), 2);
    for reply in &answers.pods {
        let paths: Vec<&str> = reply.hops.iter().map(|hop| hop.path.as_str()).collect();
        assert_eq!((paths.as_slice(), &reply.failure), (["/", "/en"].as_slice(), &None));
        assert_eq!(reply.hops[1].headers.only("x-version"), Some("2"));
        assert!(reply.hops[0].started >= answers.edge.hops[0].ended);
    }
    for head in pod.heads() {
        assert!(head.contains("\r\nx-forwarded-proto: https\r\n") && head.contains("\r\nhost: www.example.com\r\n"));
    }
    let alone = look.ask(&asked, found(&[pod.address])).await;
    assert_eq!(alone.pods.len(), 2, "one that is there alone is asked twice");
    assert!(alone.pods.iter().all(|reply| reply.failure.is_none()), "{alone:?}");
    let metadata = "169.254.169.254:80".parse().expect("an address");
    let failure = look.pod(&asked, metadata, Instant::now() + WAIT).await.failure.expect("a failure");
    assert!(failure.starts_with("not sent: 169.254.169.254 is "), "{failure}");
}

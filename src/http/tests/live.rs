//! Server-sent events, over the wire.

use std::sync::Mutex;

use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;

use super::*;
use crate::http::streams::STREAMS_MAX;

/// Shows the observation that was set last, and counts the requests for it.
#[derive(Clone, Default)]
struct Changing {
    seen: Arc<Mutex<Observation>>,
    asked: Arc<std::sync::atomic::AtomicUsize>,
}

impl Actor for Changing {
    type Context = Context<Self>;
}

impl Handler<Observe> for Changing {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _: &mut Self::Context) -> Self::Result {
        self.asked.fetch_add(1, Ordering::SeqCst);
        MessageResult(self.seen.lock().unwrap().clone())
    }
}

impl Handler<Browse> for Changing {
    type Result = MessageResult<Browse>;

    fn handle(&mut self, _: Browse, _: &mut Self::Context) -> Self::Result {
        MessageResult(Listing::default())
    }
}

impl Changing {
    fn set(&self, seen: Observation) {
        *self.seen.lock().unwrap() = seen;
    }
}

/// A browser that keeps a page fresh.
struct Browser {
    head: String,
    stream: BufReader<TcpStream>,
}

impl Browser {
    async fn open(address: SocketAddr, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut browser = Self { head: String::new(), stream: BufReader::new(stream) };
        while !browser.head.ends_with("\r\n\r\n") {
            assert!(browser.stream.read_line(&mut browser.head).await.unwrap() > 0, "{}", browser.head);
        }
        browser
    }

    /// The next event; `None` at the end of the stream. Lengths of chunks and beats are skipped.
    async fn event(&mut self) -> Option<serde_json::Value> {
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read_line(&mut line));
            if read.await.expect("something in time").unwrap_or(0) == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

fn ids(event: &serde_json::Value) -> Vec<&str> {
    event["sections"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[actix::test]
async fn an_event_has_what_changed_and_nothing_else_and_many_browsers_share_one_look() {
    let changing = Changing::default();
    changing.set(synced());
    let serving = start(front(changing.clone().start())).await;
    let address = serving.addresses().page;
    let mut browser = Browser::open(address, "/live").await;
    assert!(browser.head.contains("content-type: text/event-stream\r\n"), "{}", browser.head);
    assert!(browser.head.contains("content-security-policy: default-src 'none'"), "{}", browser.head);
    let first = browser.event().await.unwrap();
    let page = body(&ask(address, "GET", "/").await).to_owned();
    for (id, html) in first["sections"].as_object().unwrap() {
        let html = html.as_str().unwrap();
        let is_whole = |tag: &str, more: &str| page.contains(&format!("<{tag} id=\"{id}\"{more}>{html}</{tag}>"));
        assert!(is_whole("section", "") || is_whole("nav", " aria-label=\"Pages\""), "{id}: {page}");
    }
    assert!(first["title"].as_str().unwrap().starts_with("All clear · allclear"), "{first}");

    let mut others = Vec::new();
    for _ in 0..9 {
        let mut other = Browser::open(address, "/live").await;
        assert_eq!(ids(&other.event().await.unwrap()).len(), ids(&first).len());
        others.push(other);
    }
    let before = changing.asked.load(Ordering::SeqCst);
    let began = tokio::time::Instant::now();
    changing.set(Observation { distributions: Some((7, 0)), ..synced() });
    assert_eq!(ids(&browser.event().await.unwrap()), ["numbers"]);
    changing.set(busy("<script>"));
    let event = browser.event().await.unwrap();
    assert!(ids(&event).contains(&"board") && ids(&event).contains(&"health"), "{event}");
    assert!(!ids(&event).contains(&"tabs"), "{event}");
    // Title and headline are set as texts.
    let html = event["sections"].to_string();
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{event}");
    let looks = changing.asked.load(Ordering::SeqCst) - before;
    let bound = 2 * usize::try_from(began.elapsed().as_secs()).unwrap() + 5;
    assert!(looks < bound, "ten browsers asked {looks} times, and {bound} are too many");
    drop(others);
    serving.stop().await;
}

#[actix::test]
async fn the_stream_of_a_workload_is_about_that_and_what_is_no_page_has_none() {
    let serving = start(showing(busy("web"))).await;
    let address = serving.addresses().page;
    let mut browser = Browser::open(address, "/live/workloads/shop/web").await;
    assert_eq!(ids(&browser.event().await.unwrap()), ["health", "history", "rollout", "tabs", "told"]);
    for (method, path, status) in
        [("GET", "/live/x", 404), ("GET", "/livex", 404), ("HEAD", "/live", 200), ("POST", "/live", 405)]
    {
        let answer = ask(address, method, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
    let probes = ask(serving.addresses().probes, "GET", "/live").await;
    assert!(probes.starts_with("HTTP/1.1 404 ") && !probes.contains("shop"), "{probes}");
    serving.stop().await;
}

#[actix::test]
async fn streams_are_bounded_and_one_that_ends_makes_room() {
    let changing = Changing::default();
    changing.set(synced());
    let serving = start(front(changing.clone().start())).await;
    let address = serving.addresses().page;
    let mut browsers = Vec::new();
    for _ in 0..STREAMS_MAX {
        browsers.push(Browser::open(address, "/live").await);
    }
    let refused = ask(address, "GET", "/live").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(ask(address, "GET", "/").await.starts_with("HTTP/1.1 200 "), "the page is still served");
    drop(browsers.pop());
    // The server notices at the second event at the latest, which meets a closed connection.
    for workloads in 10..15 {
        changing.set(Observation { workloads, ..synced() });
        browsers[0].event().await.unwrap();
    }
    let newcomer = Browser::open(address, "/live").await;
    assert!(newcomer.head.starts_with("HTTP/1.1 200 "), "{}", newcomer.head);
    serving.stop().await;
}

#[actix::test]
async fn a_browser_that_does_not_read_costs_no_more_than_what_the_system_buffers() {
    let changing = Changing::default();
    changing.set(synced());
    let serving = start(front(changing.clone().start())).await;
    let address = serving.addresses().page;
    let mut stuck = TcpStream::connect(address).await.unwrap();
    stuck.write_all(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut reading = Browser::open(address, "/live").await;
    let mut seen = busy("web");
    let summary = Summary { state: "x".repeat(2_000), ..seen.rollouts[0].clone() };
    seen.rollouts = (0..100).map(|_| summary.clone()).collect();
    for number in 0..3 {
        seen.workloads = 100 + number;
        seen.rollouts[0].next = number.to_string();
        changing.set(seen.clone());
        // The one that reads gets every change, whatever the other does.
        while !reading.event().await.unwrap().to_string().contains(&format!("{} workloads</a>", 100 + number)) {}
    }
    serving.stop().await;
}

#[actix::test]
async fn a_stream_says_that_the_process_ends_and_is_over_within_the_grace() {
    let front = showing(synced());
    let draining = front.draining.clone();
    let serving = start(front).await;
    let mut browser = Browser::open(serving.addresses().page, "/live").await;
    browser.event().await.unwrap();
    draining.store(true, Ordering::Relaxed);
    let last = browser.event().await.unwrap();
    assert!(last["headline"].as_str().unwrap().starts_with("Shutting down"), "{last}");
    assert_eq!(last["sections"]["board"], "", "what is not shown any more is emptied");
    let began = tokio::time::Instant::now();
    serving.stop().await;
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}: no stream is waited for", began.elapsed());
    assert_eq!(browser.event().await, None);
}

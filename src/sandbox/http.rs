//! One tiny HTTP/1.1 server on loopback for every stand-in, with faults that happen before or after the stand-in acts.
//!
//! A stand-in is a plain function from request to reply ([`StandIn`]); this module gives it a socket, records what came
//! in, and misbehaves on demand. *Before* and *after* are different faults: a request cut before it is seen never
//! happened; one cut after it was applied happened, but its client does not know. Every client must survive both.
//!
//! The server has a thread and a runtime of its own, so it can be started from any runtime, also one with paused time,
//! and none of its work ends up on the runtime under test.
//!
//! Not for production: no TLS, no authentication, one worker, loopback only.

mod fault;
mod message;

pub use fault::{Action, Fault, When};
pub use message::{Body, Reply, Request};

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};

/// Requests kept in [`Server::seen`]; older ones are forgotten. At about 300 bytes each this is 3 MiB, and more than
/// any test or demo sends.
pub const SEEN_MAX: usize = 10_000;

/// Largest request body read, in bytes. Kubernetes refuses objects above 3 MiB, CloudFront batches above 3,000 paths of
/// 4,000 characters (12 MB); anything larger is a fault of the client and answered with 413.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A scripted peer: answers each request from its own state, at once. It runs on the server's only worker, so it must
/// not block; something that takes time belongs into a [`Body::Stream`] or an [`Action::Delay`].
pub trait StandIn: Send + Sync + 'static {
    /// Applies the request and says what to answer.
    fn answer(&self, request: &Request) -> Reply;
}

/// One line of the log of requests. Bodies and headers are not kept: they may be large or secret.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: http::Method,
    /// The path as it was sent.
    pub path: String,
    pub query: BTreeMap<String, String>,
    /// Bytes of its body.
    pub body_bytes: usize,
    /// The status answered; `None` while there is no answer yet, and for ever where a fault took it away.
    pub status: Option<u16>,
    /// When the request had arrived, body included.
    pub at: Instant,
}

/// A running stand-in. Stops when dropped; [`Server::stop`] also waits for the end.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
    ended: oneshot::Receiver<()>,
}

impl Server {
    /// Binds a free port on 127.0.0.1 and serves `stand_in` there.
    ///
    /// # Errors
    /// When no port can be bound, no thread started, or the server does not come up.
    pub async fn start(stand_in: Arc<dyn StandIn>) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            stand_in,
            state: Mutex::new(State { faults: Vec::new(), seen: VecDeque::new(), seen_total: 0 }),
            held: Semaphore::new(0),
        });
        let (started, start) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || {
            serve(listener, served, started);
            // There may be no receiver for the end.
            let _ = ending.send(());
        })?;
        let handle = start.await.map_err(|_| io::Error::other("stand-in server ended while starting"))??;
        Ok(Server { address, shared, handle, thread: Some(thread), ended })
    }

    /// The base URL, for example `http://127.0.0.1:41234`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets `fault` happen to the next requests it matches.
    pub fn inject(&self, fault: Fault) {
        self.shared.lock().faults.push(fault);
    }

    /// Forgets all faults. Requests already caught stay caught.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// The last [`SEEN_MAX`] requests, oldest first, those hit by a fault included.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.iter().cloned().collect()
    }

    /// Waits until an [`Action::Hold`] has caught a request. Each caught request ends one call of this.
    pub async fn held(&self) {
        // The semaphore is never closed; if it were, nothing could be held any more and there is nothing to wait for.
        if let Ok(permit) = self.shared.held.acquire().await {
            permit.forget();
        }
    }

    /// Closes every connection, held ones included, and waits until the server's thread has ended.
    pub async fn stop(mut self) {
        self.handle.stop(false).await;
        // An error means the thread is already gone, which is what we wait for.
        let _ = (&mut self.ended).await;
        if let Some(thread) = self.thread.take() {
            // The thread's last act was the message above: this does not block. A panic in it was printed by then.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The command is sent by the call itself; only waiting for its end needs the future.
        drop(self.handle.stop(false));
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// What the server's thread and its owner share.
struct Shared {
    stand_in: Arc<dyn StandIn>,
    state: Mutex<State>,
    /// One permit per request that an [`Action::Hold`] has caught and no test has waited for yet.
    held: Semaphore,
}

struct State {
    faults: Vec<Fault>,
    seen: VecDeque<Seen>,
    /// Requests ever seen; a line's number, by which its status is filled in later, is counted from here.
    seen_total: u64,
}

/// A fault's action, taken out for one request.
enum Strike {
    Answer(Reply),
    Delay(Duration),
    Cut,
    Hold,
}

/// How a request ended.
enum Outcome {
    Answered(Reply),
    Cut,
}

impl Shared {
    /// A panic while the lock was held cannot leave this state half-changed in a way that matters: go on with it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request, faults included.
    async fn handle(&self, request: &Request) -> Outcome {
        let (number, strike) = {
            let mut state = self.lock();
            (state.record(request), state.strike(request))
        };
        let outcome = self.outcome(request, strike).await;
        if let Outcome::Answered(reply) = &outcome {
            self.lock().record_status(number, reply.status);
        }
        outcome
    }

    async fn outcome(&self, request: &Request, strike: Option<(When, Strike)>) -> Outcome {
        let Some((when, strike)) = strike else {
            return Outcome::Answered(self.stand_in.answer(request));
        };
        let applied = match when {
            When::Before => None,
            When::After => Some(self.stand_in.answer(request)),
        };
        match strike {
            Strike::Answer(reply) => Outcome::Answered(reply),
            Strike::Delay(delay) => {
                tokio::time::sleep(delay).await;
                Outcome::Answered(applied.unwrap_or_else(|| self.stand_in.answer(request)))
            }
            Strike::Cut => Outcome::Cut,
            Strike::Hold => {
                self.held.add_permits(1);
                std::future::pending().await
            }
        }
    }
}

impl State {
    /// Adds a line to the log and returns its number.
    fn record(&mut self, request: &Request) -> u64 {
        if self.seen.len() >= SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            body_bytes: request.body.len(),
            status: None,
            at: Instant::now(),
        });
        self.seen_total += 1;
        self.seen_total - 1
    }

    /// Fills in the status of line `number`, unless it is forgotten already.
    fn record_status(&mut self, number: u64, status: u16) {
        let first = self.seen_total - self.seen.len() as u64;
        let line = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(seen) = line.and_then(|index| self.seen.get_mut(index)) {
            seen.status = Some(status);
        }
    }

    /// Uses the first fault that matches, and removes it when it is used up.
    fn strike(&mut self, request: &Request) -> Option<(When, Strike)> {
        let index = self.faults.iter().position(|fault| fault.times > 0 && (fault.matches)(request))?;
        let fault = self.faults.get_mut(index)?;
        fault.times -= 1;
        let strike = match &mut fault.action {
            Action::Answer(reply) => Strike::Answer(reply.take_copy()),
            Action::Delay(delay) => Strike::Delay(*delay),
            Action::Cut => Strike::Cut,
            Action::Hold => Strike::Hold,
        };
        let when = fault.when;
        if fault.times == 0 {
            self.faults.remove(index);
        }
        Some((when, strike))
    }
}

/// Runs the server on this thread until it is stopped.
fn serve(listener: TcpListener, shared: Arc<Shared>, started: oneshot::Sender<io::Result<ServerHandle>>) {
    let running = actix_rt::System::new().block_on(async move {
        let server = HttpServer::new(move || {
            App::new()
                .app_data(web::Data::from(Arc::clone(&shared)))
                .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
                .default_service(web::to(entry))
        })
        .workers(1)
        .disable_signals()
        // A client that closes its side is gone: without this, a stream with nothing to send never notices.
        .h1_allow_half_closed(false)
        .listen(listener);
        match server.map(HttpServer::run) {
            Ok(running) => {
                // Without a receiver the start was given up; the handle is then lost and so must be the server.
                if started.send(Ok(running.handle())).is_err() {
                    drop(running.handle().stop(false));
                }
                running.await
            }
            Err(error) => {
                let _ = started.send(Err(error));
                Ok(())
            }
        }
    });
    if let Err(error) = running {
        tracing::warn!(%error, "stand-in server ended");
    }
}

/// The only handler: from actix's types to ours and back.
async fn entry(shared: web::Data<Shared>, received: HttpRequest, body: Bytes) -> HttpResponse {
    let Ok(method) = http::Method::from_bytes(received.method().as_str().as_bytes()) else {
        return HttpResponse::MethodNotAllowed().finish();
    };
    // actix-web still speaks `http` 0.2, everything else here 1.x: names and values go over as bytes.
    let headers = received
        .headers()
        .iter()
        .filter_map(|(name, value)| {
            let name = http::HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
            Some((name, http::HeaderValue::from_bytes(value.as_bytes()).ok()?))
        })
        .collect();
    let request = Request::from_parts(method, received.uri().path(), received.query_string(), headers, body);
    match shared.handle(&request).await {
        Outcome::Answered(reply) => response(reply),
        Outcome::Cut => cut(),
    }
}

fn response(reply: Reply) -> HttpResponse {
    let Ok(status) = actix_web::http::StatusCode::from_u16(reply.status) else {
        return HttpResponse::InternalServerError().finish();
    };
    let mut builder = HttpResponse::build(status);
    for (name, value) in reply.headers {
        let name = actix_web::http::header::HeaderName::from_bytes(name.as_bytes());
        let value = actix_web::http::header::HeaderValue::from_str(&value);
        if let (Ok(name), Ok(value)) = (name, value) {
            builder.append_header((name, value));
        }
    }
    match reply.body {
        Body::Full(bytes) => builder.body(bytes),
        Body::Stream(chunks) => builder.streaming(futures_util::stream::unfold(chunks, |mut chunks| async {
            chunks.recv().await.map(|chunk| (Ok::<_, io::Error>(chunk), chunks))
        })),
    }
}

/// A response whose body fails before its first byte: actix then drops the connection with the head still unsent.
fn cut() -> HttpResponse {
    let broken = futures_util::stream::once(async { Err::<Bytes, _>(io::Error::other("cut by a fault")) });
    HttpResponse::Ok().streaming(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::mpsc;

    /// Counts what it was shown and echoes the query's `say`.
    #[derive(Default)]
    struct Echo {
        shown: AtomicUsize,
    }

    impl StandIn for Echo {
        fn answer(&self, request: &Request) -> Reply {
            self.shown.fetch_add(1, Ordering::SeqCst);
            let say = request.query.get("say").cloned().unwrap_or_default();
            Reply::full(200, "text/plain", format!("{say}|{}", request.body.len()))
        }
    }

    async fn start() -> (Server, Arc<Echo>) {
        let echo = Arc::new(Echo::default());
        let server = Server::start(Arc::clone(&echo) as Arc<dyn StandIn>).await.expect("loopback is there");
        (server, echo)
    }

    fn client() -> reqwest::Client {
        reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().expect("client")
    }

    #[tokio::test]
    async fn a_request_reaches_the_stand_in_whole_and_is_on_record() {
        let (server, echo) = start().await;
        let url = format!("{}/a%20b?say=h%C3%A9+llo", server.url());
        let answer = client().post(url).body("12345").send().await.expect("answer");
        assert_eq!(answer.headers()["content-type"], "text/plain");
        assert_eq!(answer.text().await.expect("text"), "hé llo|5");
        assert_eq!(echo.shown.load(Ordering::SeqCst), 1);
        let seen = server.seen();
        assert_eq!(
            (seen[0].path.as_str(), seen[0].query["say"].as_str(), seen[0].status),
            ("/a%20b", "hé llo", Some(200))
        );
        server.stop().await;
    }

    #[tokio::test]
    async fn a_cut_gives_no_answer_and_its_side_says_whether_it_was_applied() {
        let (server, echo) = start().await;
        for (when, applied) in [(When::Before, 0), (When::After, 1)] {
            server.inject(Fault::once(when, Action::Cut));
            let error = client().post(server.url()).send().await.expect_err("cut");
            assert!(error.is_request(), "{error:?}");
            assert_eq!(echo.shown.load(Ordering::SeqCst), applied, "{when:?}");
        }
        assert_eq!(client().post(server.url()).send().await.expect("healed").status(), 200);
        assert_eq!(server.seen().iter().map(|seen| seen.status).collect::<Vec<_>>(), [None, None, Some(200)]);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_fault_is_used_up_after_its_times_and_only_by_requests_it_matches() {
        let (server, echo) = start().await;
        let busy = Action::Answer(Reply::full(503, "text/plain", "busy"));
        server.inject(Fault::once(When::Before, busy).matching(|request| request.path == "/hit").times(2));
        let mut statuses = Vec::new();
        for path in ["/miss", "/hit", "/hit", "/hit"] {
            let answer = client().get(format!("{}{path}", server.url())).send().await.expect("answer");
            statuses.push(answer.status().as_u16());
        }
        assert_eq!(statuses, [200, 503, 503, 200]);
        assert_eq!(echo.shown.load(Ordering::SeqCst), 2);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_held_request_can_be_waited_for_and_does_not_hold_up_the_stop() {
        let (server, echo) = start().await;
        server.inject(Fault::once(When::After, Action::Hold));
        let url = server.url();
        let asking = tokio::spawn(async move { client().get(url).send().await });
        server.held().await;
        assert_eq!(echo.shown.load(Ordering::SeqCst), 1);
        server.stop().await;
        assert!(asking.await.expect("task").is_err());
    }

    #[tokio::test]
    async fn a_stream_arrives_in_pieces_and_its_sender_notices_when_the_client_goes() {
        struct Source(Mutex<Option<mpsc::Receiver<Bytes>>>);
        impl StandIn for Source {
            fn answer(&self, _: &Request) -> Reply {
                let chunks = self.0.lock().expect("lock").take().expect("asked once");
                Reply::stream(200, "text/plain", chunks)
            }
        }
        let (sender, chunks) = mpsc::channel(1);
        let server = Server::start(Arc::new(Source(Mutex::new(Some(chunks))))).await.expect("server");
        let mut answer = client().get(server.url()).send().await.expect("head before any chunk");
        sender.send(Bytes::from_static(b"one")).await.expect("open");
        assert_eq!(answer.chunk().await.expect("chunk").expect("some"), "one");
        drop(answer);
        tokio::time::timeout(Duration::from_secs(10), sender.closed()).await.expect("the sender notices");
        server.stop().await;
    }

    #[test]
    fn it_serves_under_any_runtime_and_ends_with_its_owner() {
        let address = actix_rt::System::new().block_on(async {
            let (server, _) = start().await;
            assert_eq!(client().get(server.url()).send().await.expect("answer").status(), 200);
            server.address()
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(address).is_ok() {
            assert!(Instant::now() < deadline, "the port is still open");
            std::thread::yield_now();
        }
    }
}

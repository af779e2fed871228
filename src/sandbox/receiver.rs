//! A stand-in for a webhook receiver: keeps every request whole and gives the answers that are set.
//!
//! It verifies nothing. Signatures, ids and the equality of bytes are for the test that looks at [`Receiver::received`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::http::{Reply, Request, StandIn};

/// Requests kept; older ones are forgotten. Enough for the 10,000 events of fault row H7.
pub const RECEIVED_MAX: usize = 20_000;

/// One delivery, whole. Its Debug shows neither header values nor the body: both may carry secrets.
#[derive(Clone, Debug)]
pub struct Received {
    /// Method, path, query, headers and body as they came.
    pub request: Request,
    /// When it had arrived, body included.
    pub at: Instant,
}

/// What to answer. For answers that come late or never, or for a lost connection, see [`super::http::Fault`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Headers, for example `Retry-After` or `Location`.
    pub headers: Vec<(String, String)>,
    pub body: AnswerBody,
}

/// The body of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerBody {
    /// Sent at once.
    Full(Bytes),
    /// One `chunk` after each `pause`, `chunks` times (`u64::MAX` is as good as for ever), while the client stays.
    Slow {
        /// Time before each chunk.
        pause: Duration,
        /// What is sent each time.
        chunk: Bytes,
        chunks: u64,
    },
}

/// The stand-in. Give it to [`super::http::Server::start`] and keep an `Arc` of it for steering and assertions.
pub struct Receiver {
    state: Mutex<State>,
}

struct State {
    received: VecDeque<Received>,
    /// Answers for the next requests, in order; then `standing` for all others.
    next: VecDeque<Answer>,
    standing: Answer,
}

impl Receiver {
    /// A receiver that answers 204 to everything.
    pub fn new() -> Receiver {
        let state = State { received: VecDeque::new(), next: VecDeque::new(), standing: Answer::status(204) };
        Receiver { state: Mutex::new(state) }
    }

    /// Answers this from now on, where [`Receiver::answer_next`] says nothing else.
    pub fn answer_always(&self, answer: Answer) {
        self.lock().standing = answer;
    }

    /// Answers these to the next requests, one each, after those already queued.
    pub fn answer_next(&self, answers: impl IntoIterator<Item = Answer>) {
        self.lock().next.extend(answers);
    }

    /// The last [`RECEIVED_MAX`] requests, oldest first.
    pub fn received(&self) -> Vec<Received> {
        self.lock().received.iter().cloned().collect()
    }

    /// Forgets what was received.
    pub fn clear(&self) {
        self.lock().received.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver::new()
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("received", &self.lock().received.len()).finish_non_exhaustive()
    }
}

impl StandIn for Receiver {
    fn answer(&self, request: &Request) -> Reply {
        let mut state = self.lock();
        if state.received.len() >= RECEIVED_MAX {
            state.received.pop_front();
        }
        state.received.push_back(Received { request: request.clone(), at: Instant::now() });
        let answer = state.next.pop_front().unwrap_or_else(|| state.standing.clone());
        answer.into_reply()
    }
}

impl Answer {
    pub fn status(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), body: AnswerBody::Full(Bytes::new()) }
    }

    /// A redirect to `location`.
    pub fn redirect(status: u16, location: &str) -> Answer {
        Answer::status(status).header("location", location)
    }

    pub fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: AnswerBody) -> Answer {
        self.body = body;
        self
    }

    fn into_reply(self) -> Reply {
        let body = match self.body {
            AnswerBody::Full(bytes) => super::http::Body::Full(bytes),
            AnswerBody::Slow { pause, chunk, chunks } => super::http::Body::Stream(drip(pause, chunk, chunks)),
        };
        Reply { status: self.status, headers: self.headers, body }
    }
}

/// Sends chunks until there are enough of them or the client has gone. The task belongs to the server's own runtime and
/// ends with it at the latest.
fn drip(pause: Duration, chunk: Bytes, chunks: u64) -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(1);
    actix_rt::spawn(async move {
        for _ in 0..chunks {
            let gone = tokio::select! {
                () = sender.closed() => true,
                () = tokio::time::sleep(pause) => false,
            };
            if gone || sender.send(chunk.clone()).await.is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::super::http::Server;
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn every_request_is_kept_whole_and_answers_follow_the_script() {
        let receiver = Arc::new(Receiver::new());
        let server = Server::start(Arc::clone(&receiver) as Arc<dyn StandIn>).await.expect("server");
        receiver.answer_next([Answer::status(503).header("retry-after", "7"), Answer::redirect(307, "http://[::1]/")]);
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(10))
            .build()
            .expect("client");
        let mut answers = Vec::new();
        for _ in 0..3 {
            let url = format!("{}/hook?a=1&a=%32", server.url());
            let answer = client.post(url).header("webhook-id", "m1").body("bytes").send().await.expect("answer");
            let header = answer.headers().get("retry-after").or(answer.headers().get("location")).cloned();
            answers.push((answer.status().as_u16(), header.map(|value| value.to_str().expect("text").to_owned())));
        }
        assert_eq!(answers, [(503, Some("7".into())), (307, Some("http://[::1]/".into())), (204, None)]);
        let received = receiver.received();
        assert_eq!(received.len(), 3);
        let request = &received[0].request;
        assert_eq!((request.path.as_str(), request.raw_query.as_str()), ("/hook", "a=1&a=%32"));
        assert_eq!((request.header("webhook-id"), request.body.as_ref()), (Some("m1"), b"bytes".as_slice()));
        server.stop().await;
    }

    #[tokio::test]
    async fn a_slow_body_ends_when_the_client_leaves_or_the_server_stops() {
        let receiver = Arc::new(Receiver::new());
        let server = Server::start(Arc::clone(&receiver) as Arc<dyn StandIn>).await.expect("server");
        let chunk = Bytes::from_static(b"x");
        receiver.answer_always(Answer::status(200).body(AnswerBody::Slow {
            pause: Duration::from_millis(1),
            chunk,
            chunks: u64::MAX,
        }));
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().expect("client");
        let mut answer = client.get(server.url()).send().await.expect("head");
        assert!(answer.chunk().await.expect("chunk").is_some());
        server.stop().await;
        while let Ok(Some(_)) = answer.chunk().await {}
    }
}

//! One client and its calls: several at a time, each answered once, unless it is taken back.
//!
//! Not for what an answer says; that is `answers`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use super::lines::{LINE_BYTES_MAX, Line};
use super::protocol::{Era, Fault, Id, Message, Session, Step, answer, read, refusal};
use super::tools::{Asked, INSTRUCTIONS, asked, listed};
use kernel::text::visible_lines;

/// Calls that are answered at a time. Each is about ten requests to the API server and to AWS, as a command is.
const AT_ONCE: usize = 4;

/// Calls that are answered or wait for that. A further one is refused at once.
pub const CALLS_MAX: usize = 32;

/// Answers that wait for the client to read. Then its lines wait, too: who asks on and reads nothing does not fill our memory.
pub const UNREAD_MAX: usize = 2 * CALLS_MAX;

/// How long a call may take once it has begun. The requests in it have times of their own, of 10 to 30 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// How long calls go on after the last line. A client that ends the input waits for our end: the SDK for Python for 2 s,
/// then it sends SIGTERM (`mcp/client/stdio.py`, 2.3.0). A pipe in a shell has time for an answer.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// How long the client may take to take up what is said of calls that have no answer by then.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// The calls under way, with the form that each is answered in.
type Open = BTreeMap<Id, (Era, AbortHandle)>;

/// What a tool has answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    Found {
        text: String,
        value: Value,
    },
    /// Why there is no answer, in words.
    Failed(String),
}

/// Serves until the input ends, and what was asked by then is answered, or nobody takes the answers. Reading waits for no writing, so the
/// end of the input is seen also while the client reads nothing.
pub async fn serve<F: Future<Output = Answered>>(
    mut lines: mpsc::Receiver<Line>,
    out: mpsc::Sender<String>,
    tool: impl Fn(Asked) -> F,
) {
    let mut session = Session::new(listed(), INSTRUCTIONS);
    let places = Semaphore::new(AT_ONCE);
    let mut calls = FuturesUnordered::new();
    let mut open: Open = BTreeMap::new();
    let mut unread: VecDeque<String> = VecDeque::new();
    let mut ends_at = None;
    while ends_at.is_none() || !open.is_empty() || !unread.is_empty() {
        let ended = async {
            match ends_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let hears = ends_at.is_none() && unread.len() < UNREAD_MAX;
        let said = tokio::select! {
            // What was asked begins, and what is answered goes out, before more is read.
            biased;
            Some(ended) = calls.next() => match ended {
                Ok((id, era, answered)) => {
                    open.remove(&id);
                    Some(answer(&id, era, result(answered)))
                }
                // It was taken back.
                Err(_) => None,
            },
            place = out.reserve(), if !unread.is_empty() => {
                let (Ok(place), Some(line)) = (place, unread.pop_front()) else { return };
                place.send(line);
                None
            }
            line = lines.recv(), if hears => match line.map(|line| heard(&mut session, &open, &line)) {
                None => {
                    ends_at = Some(Instant::now() + ENDS_WITHIN);
                    None
                }
                Some(Heard::Nothing) => None,
                Some(Heard::Said(line)) => Some(line),
                Some(Heard::Cancelled(id)) => {
                    open.remove(&id).iter().for_each(|(_, call)| call.abort());
                    None
                }
                Some(Heard::Call(id, era, asked)) => {
                    let (handle, registration) = AbortHandle::new_pair();
                    open.insert(id.clone(), (era, handle));
                    let answer = within_places(&places, tool(asked));
                    calls.push(Abortable::new(async move { (id, era, answer.await) }, registration));
                    None
                }
            },
            () = ended => return give_up(&out, &open).await,
        };
        unread.extend(said);
    }
}

/// Says of each call that it has no answer, as far as somebody takes that.
async fn give_up(out: &mpsc::Sender<String>, open: &Open) {
    let all = async {
        for (id, (era, _)) in open {
            let why = format!("error: the input has ended, and there was no answer within {} s", ENDS_WITHIN.as_secs());
            if out.send(answer(id, *era, result(Answered::Failed(why)))).await.is_err() {
                return;
            }
        }
    };
    let _ = timeout(TAKEN_WITHIN, all).await;
}

/// What follows from a line.
enum Heard {
    Nothing,
    Said(String),
    Cancelled(Id),
    Call(Id, Era, Asked),
}

fn heard(session: &mut Session, open: &Open, line: &Line) -> Heard {
    let message = match line {
        Line::TooLong => Err((None, Fault::too_long(LINE_BYTES_MAX))),
        Line::Whole(bytes) => read(bytes),
    };
    let (id, method, params) = match message {
        Ok(Message::Other) => return Heard::Nothing,
        Ok(Message::Cancelled(id)) => return Heard::Cancelled(id),
        // The name of a call under way is not free. Its one answer is on its way, and a second would be taken for it.
        Ok(Message::Request { id, .. }) | Err((Some(id), _)) if open.contains_key(&id) => return Heard::Nothing,
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Err((id, fault)) => return Heard::Said(refusal(id.as_ref(), &fault)),
    };
    let (name, arguments, era) = match session.step(&id, &method, &params) {
        Step::Answer(line) => return Heard::Said(line),
        Step::Call { name, arguments, era } => (name, arguments, era),
    };
    let failed = |why: String| Heard::Said(answer(&id, era, result(Answered::Failed(why))));
    match asked(&name, &arguments) {
        None => Heard::Said(refusal(Some(&id), &Fault::no_tool(&name))),
        Some(Err(error)) => failed(format!("error: the arguments of {name}: {error}")),
        Some(Ok(_)) if open.len() >= CALLS_MAX => {
            failed(format!("error: {CALLS_MAX} calls are under way; ask again when one of them is answered"))
        }
        Some(Ok(asked)) => Heard::Call(id, era, asked),
    }
}

/// The answer, once there is a place to make it in.
async fn within_places(places: &Semaphore, answer: impl Future<Output = Answered>) -> Answered {
    let _place = places.acquire().await;
    let late = || Answered::Failed(format!("error: there was no answer within {} s", ANSWER_WITHIN.as_secs()));
    timeout(ANSWER_WITHIN, answer).await.unwrap_or_else(|_| late())
}

/// An answer as `tools/call` has it. What hides in a text of others is shown: people see it so on a terminal, and a model
/// shall not read what they would not see.
fn result(answered: Answered) -> Map<String, Value> {
    let mut result = Map::new();
    let (text, is_error) = match answered {
        Answered::Found { text, value } => {
            result.insert("structuredContent".to_owned(), shown(value));
            (text, false)
        }
        Answered::Failed(why) => (why, true),
    };
    let text = visible_lines(&text);
    result.insert("content".to_owned(), json!([{ "type": "text", "text": text.trim_end() }]));
    result.insert("isError".to_owned(), json!(is_error));
    result
}

/// The same value, with nothing hidden in its texts.
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_lines(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(shown).collect(),
        Value::Object(fields) => {
            let shown = fields.into_iter().map(|(name, value)| (visible_lines(&name).into_owned(), shown(value)));
            Value::Object(shown.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

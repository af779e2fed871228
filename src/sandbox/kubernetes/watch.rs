//! Watches: a cursor into the log of changes, turned into a stream of JSON lines.
//!
//! Each watch pulls at its own pace: a slow client delays no other, and one that falls behind what the log keeps gets
//! the ERROR event with code 410 that a real server sends. Every event, whether an object moved into or out of the
//! selector included, is derived from the log alone. Not for deciding where a watch starts: that is in `read`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::failure::Failure;
use super::object::Object;
use super::resource::Kind;
use super::store::{Change, Scope, Store};

/// Chunks under way to one client. Small, so that a client that does not read holds little memory.
pub const CHUNKS_MAX: usize = 4;

/// Changes taken from the log at once, under the lock.
const CHANGES_PER_TURN: usize = 500;

/// A chunk is sent when it has this many bytes: one write to the socket for many small events.
const CHUNK_BYTES: usize = 64 * 1024;

/// How often a watch that wants bookmarks gets one: a real server sends one about every minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// An order to every open watch to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// Raised by one for each order.
    pub round: u64,
    /// Whether the watch ends with 410 instead of quietly.
    pub expired: bool,
}

#[derive(Debug)]
pub struct Watch {
    pub store: Arc<Store>,
    pub scope: Scope,
    /// What is sent first, as ADDED: the state at `cursor`.
    pub initial: Vec<Arc<Object>>,
    /// Everything up to this version has been seen by the client, or is in `initial`.
    pub cursor: u64,
    /// Whether the end of `initial` is marked with a bookmark.
    pub mark_initial_end: bool,
    pub bookmarks: bool,
    /// How long the watch lasts.
    pub timeout: Duration,
    /// Orders to end early.
    pub closing: watch::Receiver<Closing>,
}

/// The client has gone away: nothing is left to do.
struct Gone;

impl Watch {
    /// Feeds `chunks` until the watch ends or the client goes away.
    pub async fn run(mut self, chunks: mpsc::Sender<Bytes>) {
        // `Gone` is no failure: most watches end this way.
        let _ = self.feed(&chunks).await;
    }

    async fn feed(&mut self, chunks: &mpsc::Sender<Bytes>) -> Result<(), Gone> {
        let end = Instant::now() + self.timeout;
        let Some(mut signal) = self.store.signal(self.scope.kind) else { return Ok(()) };
        self.send_initial(chunks).await?;
        let mut bookmark_at = Instant::now() + BOOKMARK_INTERVAL;
        loop {
            signal.borrow_and_update();
            if !self.send_changes(chunks).await? {
                return Ok(());
            }
            tokio::select! {
                () = chunks.closed() => return Err(Gone),
                _ = signal.changed() => {}
                _ = self.closing.changed() => {
                    let expired = self.closing.borrow_and_update().expired;
                    if expired {
                        let failure = Failure::expired(self.cursor, self.store.lock().version());
                        send(chunks, error_line(&failure)).await?;
                    }
                    return Ok(());
                }
                () = tokio::time::sleep_until(bookmark_at), if self.bookmarks => {
                    send(chunks, bookmark_line(self.scope.kind, self.cursor, false)).await?;
                    bookmark_at = Instant::now() + BOOKMARK_INTERVAL;
                }
                () = tokio::time::sleep_until(end) => {
                    if self.bookmarks {
                        send(chunks, bookmark_line(self.scope.kind, self.cursor, false)).await?;
                    }
                    return Ok(());
                }
            }
        }
    }

    async fn send_initial(&mut self, chunks: &mpsc::Sender<Bytes>) -> Result<(), Gone> {
        let mut chunk = Vec::new();
        for object in std::mem::take(&mut self.initial) {
            write_line(&mut chunk, "ADDED", &object.body());
            if chunk.len() >= CHUNK_BYTES {
                send(chunks, std::mem::take(&mut chunk)).await?;
            }
        }
        if self.mark_initial_end {
            chunk.extend_from_slice(&bookmark_line(self.scope.kind, self.cursor, true));
        }
        send(chunks, chunk).await
    }

    /// Sends what has happened since the cursor; false when that is forgotten and the watch has ended.
    async fn send_changes(&mut self, chunks: &mpsc::Sender<Bytes>) -> Result<bool, Gone> {
        loop {
            let (changes, seen) = {
                let state = self.store.lock();
                (state.changes(self.scope.kind, self.cursor, CHANGES_PER_TURN), state.version())
            };
            let changes = match changes {
                Ok(changes) => changes,
                Err(failure) => {
                    send(chunks, error_line(&failure)).await?;
                    return Ok(false);
                }
            };
            let mut chunk = Vec::new();
            for change in &changes {
                self.write_change(&mut chunk, change);
                if chunk.len() >= CHUNK_BYTES {
                    send(chunks, std::mem::take(&mut chunk)).await?;
                }
            }
            send(chunks, chunk).await?;
            let all = changes.len() < CHANGES_PER_TURN;
            let told = if all { seen } else { changes.last().map_or(seen, |change| change.object.version) };
            // One that began at a version of the future, which a restore leaves behind, receives nothing before that.
            self.cursor = self.cursor.max(told);
            if all {
                return Ok(true);
            }
        }
    }

    /// Writes the event `change` is to this watch. An object that leaves the selector is sent as it was before, under
    /// the new version, for that is the last state the client may know.
    fn write_change(&self, chunk: &mut Vec<u8>, change: &Change) {
        let before = change.previous.as_ref().filter(|object| self.scope.contains(object));
        let after = Some(&change.object).filter(|object| !change.removed && self.scope.contains(object));
        match (before, after) {
            (None, None) => {}
            (None, Some(object)) => write_line(chunk, "ADDED", &object.body()),
            (Some(_), Some(object)) => write_line(chunk, "MODIFIED", &object.body()),
            (Some(_), None) if change.removed => write_line(chunk, "DELETED", &change.object.body()),
            (Some(previous), None) => {
                let last = Object::new(previous.kind, change.object.version, previous.value());
                write_line(chunk, "DELETED", &last.body());
            }
        }
    }
}

async fn send(chunks: &mpsc::Sender<Bytes>, chunk: Vec<u8>) -> Result<(), Gone> {
    if chunk.is_empty() {
        return Ok(());
    }
    chunks.send(Bytes::from(chunk)).await.map_err(|_| Gone)
}

fn write_line(chunk: &mut Vec<u8>, event: &str, object: &[u8]) {
    chunk.extend_from_slice(b"{\"type\":\"");
    chunk.extend_from_slice(event.as_bytes());
    chunk.extend_from_slice(b"\",\"object\":");
    chunk.extend_from_slice(object);
    chunk.extend_from_slice(b"}\n");
}

fn event_line(event: &str, object: &Value) -> Vec<u8> {
    let mut line = Vec::new();
    write_line(&mut line, event, object.to_string().as_bytes());
    line
}

fn error_line(failure: &Failure) -> Vec<u8> {
    event_line("ERROR", &failure.status())
}

fn bookmark_line(kind: Kind, version: u64, initial_end: bool) -> Vec<u8> {
    let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
    if initial_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let row = kind.describe();
    event_line("BOOKMARK", &json!({"kind": row.kind, "apiVersion": row.api_version(), "metadata": metadata}))
}

//! Lists a collection and follows it, for ever: one stream that survives everything an API server does.
//!
//! ```text
//!            ┌──────────── 410, or resuming keeps failing ───────────┐
//!            ▼                                                       │
//!        Unlisted ──▶ Paging ──▶ Listed ──▶ Watching ──▶ cut, ended, silent
//!            │                     ▲            ▲  │                 │
//!            └── streaming list ───┼────────────┘  └─────────────────┘
//!                                  └──── resume from the last version
//! ```
//!
//! Why not `kube::runtime::watcher` (read at 5.0.0). Without `DeserializeGuard` one broken object breaks its whole listing, and
//! with it each object is built as a tree and cloned; here an object is borrowed from the answer (`RawValue`), and its bytes are
//! decoded once. And it does not get out of four situations by itself: pages that keep expiring (W3), a server that refuses
//! streaming lists, a version that a restored server does not have any more (A5), and a server that asks for patience
//! (`Retry-After`). A loop that builds it anew with another `Config` would get it out of these, but is most of this file.
//! A line that is cut off is dropped by both, and sent again when the watch is resumed.
//!
//! kube's feature `gzip` has to stay off: API servers from 1.37 on compress each event of a watch by itself, and only the first would
//! be read (<https://github.com/tower-rs/tower-http/issues/737>).
//!
//! Not for what objects mean, nor for remembering them: who reads the stream does that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use tokio::time::{Instant, timeout};

use super::LINES;
use super::call::{Extent, open, read_some};
use super::failure::{Collection, Failure};
use super::lines::Lines;
use super::manner::Manner;
use super::pace::Pace;
use super::reach::Reach;
use super::text::{self, Line, Name, Page, Reading};
use kernel::answer::{Flow, PortError};
use kernel::retry::Backoff;
use kernel::unreadable::Unreadable;

/// Most bytes of one page of a list. Five hundred objects of 20 KiB are 10 MiB; a pod of 256 MiB has room for this one, and for
/// what is made of it. An object has 1.5 MiB at most, etcd's own bound on a request.
const PAGE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How a watch spends its time.
#[derive(Clone, Debug)]
pub struct Tempo {
    /// Waits between attempts that fail, and the least distance between two connections.
    pub backoff: Backoff,
    /// Longest wait for an answer to begin, and for a page of a list to be complete. kube-apiserver's own
    /// `--request-timeout` is 60 s.
    pub answer: Duration,
    /// Longest silence of an open watch before it is taken for dead (W6). Bookmarks come about once a minute.
    pub idle: Duration,
    /// How long the server is asked to keep a watch open; kube refuses 295 s and more.
    pub watch: Duration,
    /// A watch that lived this long ends the suspicion that listing again does not help.
    pub lively: Duration,
    /// Objects in one page of a list; client-go uses the same number.
    pub page: u32,
    /// Whether to try the streaming list first (on by default in Kubernetes 1.32 and later).
    pub streaming: bool,
    /// How often a small list proves that the cluster was not set back; `None`: never. After a restore this is how long
    /// nothing is noticed, and it is one request for one object.
    pub prove: Option<Duration>,
    /// How often a kind is looked for that the server does not serve. One small request.
    pub unserved: Duration,
    /// How long a kind that can be left out may fail to be listed before it is.
    pub unlisted: Duration,
}

impl Default for Tempo {
    fn default() -> Self {
        Self {
            // What client-go's reflector uses.
            backoff: Backoff { base: Duration::from_millis(800), cap: Duration::from_secs(30) },
            answer: Duration::from_secs(60),
            idle: Duration::from_secs(100),
            watch: Duration::from_secs(290),
            lively: Duration::from_secs(30),
            page: 500,
            streaming: true,
            prove: Some(Duration::from_secs(60)),
            unserved: Duration::from_secs(5 * 60),
            // A start of an API server takes less.
            unlisted: Duration::from_secs(60),
        }
    }
}

/// What a watch of a collection says.
#[derive(Debug)]
pub enum Look<T> {
    /// A new listing begins.
    Restarted,
    /// An object is there.
    Seen(Reading<T>),
    /// An object is gone.
    Gone(Name),
    /// The listing is complete; also said when a watch that was in trouble goes on without a new listing.
    Synced,
    /// Something failed and is tried again.
    Trouble(PortError),
}

/// The watches of one API server.
#[derive(Clone)]
pub struct Watches {
    client: Client,
    /// How they spend their time.
    pub tempo: Tempo,
    /// Whether the server has refused a streaming list.
    refused: Arc<AtomicBool>,
}

impl Watches {
    /// Nothing is asked before the first watch.
    pub fn new(client: Client, tempo: Tempo) -> Self {
        Self { client, tempo, refused: Arc::default() }
    }

    /// Watches a collection for ever, noting in `reach` how far it gets.
    pub fn watch<T: Send + 'static>(
        &self,
        of: Collection,
        decode: impl Fn(&str) -> Result<T, Unreadable> + Send + Sync + 'static,
        reach: Reach,
    ) -> Flow<Look<T>> {
        let watcher = Watcher {
            watches: self.clone(),
            manner: Manner::new(self.tempo.page),
            pace: Pace::new(self.tempo.backoff, of.path()),
            collection: of,
            decode: Box::new(decode),
            reach,
            phase: Phase::Unlisted,
            looks: VecDeque::new(),
            troubled: false,
        };
        Box::pin(unfold(watcher, |mut watcher| async move {
            loop {
                if let Some(look) = watcher.looks.pop_front() {
                    return Some((look, watcher));
                }
                watcher.step().await;
            }
        }))
    }
}

/// Where a watch is; the diagram is above.
enum Phase {
    Unlisted,
    /// The page after this token is next.
    Paging {
        token: String,
    },
    /// All is known up to this version; nothing follows it yet.
    Listed {
        version: String,
    },
    Watching(Following),
}

struct Following {
    lines: Lines,
    /// All is known up to this version; `None` while initial events come in.
    version: Option<String>,
    /// When the connection was asked for.
    since: Instant,
    /// Whether it has said anything.
    spoke: bool,
}

/// A decoder with a memory.
type Closure<T> = Box<dyn Fn(&str) -> Result<T, Unreadable> + Send + Sync>;

struct Watcher<T> {
    watches: Watches,
    collection: Collection,
    decode: Closure<T>,
    reach: Reach,
    manner: Manner,
    pace: Pace,
    phase: Phase,
    /// Said, but not read yet: at most one page.
    looks: VecDeque<Look<T>>,
    /// Trouble was reported and not taken back.
    troubled: bool,
}

impl<T: Send + 'static> Watcher<T> {
    /// Does the next thing: one request, or the next line. What sets no other phase begins from nothing.
    async fn step(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Unlisted) {
            Phase::Unlisted => self.begin().await,
            Phase::Paging { token } => self.list(Some(token)).await,
            Phase::Listed { version } => self.resume(version).await,
            Phase::Watching(following) => self.follow(following).await,
        }
    }

    async fn begin(&mut self) {
        self.pace.list().await;
        let refused = self.watches.refused.load(Ordering::Relaxed);
        let streaming = self.manner.may_stream() && self.watches.tempo.streaming && !refused;
        if streaming { self.stream_list().await } else { self.list(None).await }
    }

    /// Asks for a watch that begins with everything there is.
    async fn stream_list(&mut self) {
        let since = Instant::now();
        match self.open_watch("", true).await {
            Ok(lines) => {
                self.looks.push_back(Look::Restarted);
                self.phase = Phase::Watching(Following { lines, version: None, since, spoke: false });
            }
            // 422 is how servers without the feature refuse the parameters, 400 how proxies do.
            Err(Failure { status: Some(400 | 422), .. }) => {
                self.watches.refused.store(true, Ordering::Relaxed);
                self.list(None).await;
            }
            // Without the right to watch, there may be one to list. Where both are missing, the same one is named each time: two by turns would be
            // news each time, to a log and to a status.
            Err(Failure { status: Some(403), .. }) => self.list(None).await,
            Err(failure) => {
                self.manner.streamed(true);
                self.fail("watch", failure);
            }
        }
    }

    /// Reads one page of a list, all of it if pages expire. A page that is too large is asked for again with half as many
    /// objects; ends at the latest with one object, which is left out if it alone is too large.
    async fn list(&mut self, token: Option<String>) {
        let first = token.is_none();
        loop {
            let limit = self.manner.limit();
            let (field_selector, label_selector) = (self.collection.fields(), self.collection.labels());
            let continue_token = token.clone();
            let params = ListParams { limit, continue_token, field_selector, label_selector, ..ListParams::default() };
            match self.read_page(&params).await {
                Ok(Ok(page)) => {
                    self.manner.read_page();
                    return self.listed(page, first);
                }
                Ok(Err(_)) if limit.is_some_and(|limit| limit > 1) => self.ask_for_less(),
                Err(failure) if failure.is_for_size() && limit.is_some_and(|limit| limit > 1) => self.ask_for_less(),
                Ok(Err(head)) => {
                    return match (limit, text::head(&head)) {
                        (Some(_), Some(head)) => self.listed(head, first),
                        (limit, _) => self.fail_to_list(too_large(limit), first),
                    };
                }
                Err(failure) => return self.fail_to_list(failure, first),
            }
        }
    }

    fn ask_for_less(&mut self) {
        let objects = self.manner.ask_for_less();
        let collection = self.collection.path();
        tracing::debug!(target: LINES, %collection, objects, "page of a list was too large, asked for fewer objects");
    }

    fn listed(&mut self, page: Page<T>, first: bool) {
        if first {
            self.looks.push_back(Look::Restarted);
        }
        self.looks.extend(page.items.into_iter().map(Look::Seen));
        match page.next {
            Some(token) => self.phase = Phase::Paging { token },
            None => {
                self.manner.listed();
                self.reach.reached(&page.version);
                self.synced();
                self.phase = Phase::Listed { version: page.version };
            }
        }
    }

    fn fail_to_list(&mut self, failure: Failure, first: bool) {
        // A page expires when history is compacted faster than all pages are read: W3.
        self.manner.failed(failure.status == Some(410) && !first);
        self.fail("list", failure);
    }

    /// A page, or the beginning of one that is too large.
    async fn read_page(&mut self, params: &ListParams) -> Result<Result<Page<T>, Bytes>, Failure> {
        let request = kube::core::Request::new(self.collection.path()).list(params).map_err(Failure::unanswered)?;
        let body = match read_some(&self.watches.client, request, self.watches.tempo.answer, PAGE_BYTES_MAX).await? {
            Extent::Whole(body) => body,
            Extent::Head(head) => return Ok(Err(head)),
        };
        let page = text::page(&body, &self.decode)?;
        if page.version.is_empty() && page.next.is_none() {
            return Err(Failure::unanswered("a list without a version"));
        }
        Ok(Ok(page))
    }

    async fn open_watch(&mut self, version: &str, initial_events: bool) -> Result<Lines, Failure> {
        let params = WatchParams {
            timeout: u32::try_from(self.watches.tempo.watch.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: initial_events,
            field_selector: self.collection.fields(),
            label_selector: self.collection.labels(),
        };
        let request =
            kube::core::Request::new(self.collection.path()).watch(&params, version).map_err(Failure::unanswered)?;
        open(&self.watches.client, request, self.watches.tempo.answer).await.map(Lines::of)
    }

    /// Asks for what happened after `version`.
    async fn resume(&mut self, version: String) {
        self.pace.resume().await;
        let since = Instant::now();
        match self.open_watch(&version, false).await {
            Ok(lines) => {
                self.reach.resumed();
                self.phase = Phase::Watching(Following { lines, version: Some(version), since, spoke: false });
            }
            Err(failure) => self.interrupted(failure, Some(version)),
        }
    }

    /// Waits for the next line and acts on it.
    async fn follow(&mut self, mut following: Following) {
        // A version that is too old is accepted with 200 and refused a moment later: trouble is over only after that.
        let resumed = self.troubled && following.version.is_some();
        let patience = if resumed { self.watches.tempo.backoff.base } else { self.watches.tempo.idle };
        let bytes = match timeout(patience, following.lines.next()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => return self.ended(following),
            Ok(Err(failure)) => return self.broke(following, failure),
            Err(_) if resumed => {
                self.synced();
                self.phase = Phase::Watching(following);
                return;
            }
            // A quiet cluster, or a connection that is dead on the other side only (W6): opening another tells.
            Err(_) => return self.go_on(following),
        };
        match text::line(&bytes, &self.decode) {
            Ok(Line::Error(failure)) => return self.broke(following, failure),
            // Part of a line is lost. Resuming brings it again; if it is still broken then, listing goes around it.
            Err(failure) => return self.interrupted(failure, following.version),
            Ok(Line::Seen(reading, version)) => {
                self.looks.push_back(Look::Seen(reading));
                following.reach(version);
            }
            Ok(Line::Gone(name, version)) => {
                self.looks.push_back(Look::Gone(name));
                following.reach(version);
            }
            Ok(Line::Bookmark { version, initial_end }) => {
                if initial_end && following.version.is_none() {
                    self.synced();
                    following.version = Some(version);
                } else {
                    following.reach(version);
                }
            }
        }
        following.spoke = true;
        following.version.iter().for_each(|version| self.reach.reached(version));
        self.pace.worked();
        if resumed {
            self.synced();
        }
        self.phase = Phase::Watching(following);
    }

    /// All that could be known is known again.
    fn synced(&mut self) {
        self.troubled = false;
        self.pace.worked();
        self.looks.push_back(Look::Synced);
    }

    /// The server ended the watch, as it does every few minutes.
    fn ended(&mut self, following: Following) {
        if following.spoke || following.since.elapsed() >= self.watches.tempo.backoff.base {
            self.go_on(following);
        } else {
            self.interrupted(Failure::unanswered("the API server ended the watch at once"), following.version);
        }
    }

    /// The watch broke off after it had begun. A connection that had been of use is simply opened again.
    fn broke(&mut self, following: Following, failure: Failure) {
        if failure.status.is_none() && following.spoke {
            self.go_on(following);
        } else {
            self.interrupted(failure, following.version);
        }
    }

    /// Resumes without a word, but never at once if the connection was a short one.
    fn go_on(&mut self, following: Following) {
        if following.since.elapsed() >= self.watches.tempo.lively {
            self.pace.lived();
        }
        self.pace.ended(following.since);
        self.pick_up(following.version);
    }

    /// A watch could not be opened, or was of no use.
    fn interrupted(&mut self, failure: Failure, version: Option<String>) {
        if failure.status == Some(410) && version.is_some() {
            // Nothing is wrong: history is kept for minutes only. The new listing says all there is to say.
            return;
        }
        self.pick_up(version.filter(|_| self.pace.may_resume()));
        self.fail("watch", failure);
    }

    /// Goes on from `version`. Without one a streaming list has broken off.
    fn pick_up(&mut self, version: Option<String>) {
        self.manner.streamed(version.is_none());
        self.phase = version.map_or(Phase::Unlisted, |version| Phase::Listed { version });
    }

    /// Reports trouble, and lets some time pass before the next request.
    fn fail(&mut self, verb: &'static str, failure: Failure) {
        self.pace.failed(failure.retry_after);
        self.troubled = true;
        self.looks.push_back(Look::Trouble(self.collection.attempt(verb).failed(failure)));
    }
}

/// Why a list cannot be read that is too large.
fn too_large(limit: Option<u32>) -> Failure {
    Failure::unanswered(match limit {
        // Pages are tried again next: they may be read faster then.
        None => format!(
            "all objects in one page have more than {PAGE_BYTES_MAX} bytes, and pages expire before all are read"
        ),
        Some(_) => {
            format!("one object has more than {PAGE_BYTES_MAX} bytes, and the page does not say where the next one is")
        }
    })
}

impl Following {
    /// Everything up to `version` was delivered. Initial events come in no order of versions, and an object whose
    /// version cannot be read proves nothing.
    fn reach(&mut self, version: String) {
        if self.version.is_some() && !version.is_empty() {
            self.version = Some(version);
        }
    }
}

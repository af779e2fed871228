//! Boards in memory. [`Lonely`] is the Redis of a cluster alone: it takes everything and shows nothing. A [`SharedBoard`] is
//! one server of a group, and keeps what a real one would.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allclear::adapters::ledger::memory::MemoryLedger;
use allclear::domain::id::{Member, Origin, WorkloadId};
use allclear::domain::roster::Beat;
use allclear::ports::{BEAT_TTL, Board, Cursor, Flow, Heard, News, PortError, Posted, Posting};
use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::{World, failed};

/// See the module's text.
pub(super) struct Lonely(pub(super) World);

fn about(postings: &[(WorkloadId, Posting)]) -> String {
    postings.iter().map(|(workload, _)| workload.to_string()).collect::<Vec<_>>().join(" ")
}

#[async_trait]
impl Board for Lonely {
    fn name(&self) -> &str {
        "redis:6379"
    }

    async fn identity(&self) -> Result<String, PortError> {
        Ok("redis".to_owned())
    }

    async fn post(&self, _: &Origin, postings: &[(WorkloadId, Posting)]) -> Result<Vec<Posted>, PortError> {
        let lost = self.0.port("board.post", &about(postings)).await?;
        if lost { Err(failed("board.post")) } else { Ok(postings.iter().map(|_| Posted::Current).collect()) }
    }

    async fn beat(&self, _: &Beat) -> Result<Option<Beat>, PortError> {
        Ok(None)
    }

    async fn read(&self, _: &Cursor) -> Result<News, PortError> {
        let lost = self.0.port("board.read", "").await?;
        Ok(News { lost, ..News::default() })
    }

    fn wake_ups(&self) -> Flow<()> {
        Box::pin(futures_util::stream::pending())
    }
}

impl World {
    /// The boards of one process: a Redis of its own that nobody else reads, or those of a group.
    pub(super) fn boards(&self) -> Vec<Arc<dyn Board>> {
        let group = self.state().group.clone();
        match group {
            None => vec![Arc::new(Lonely(self.clone()))],
            Some((member, boards)) => {
                let seat = |board: &SharedBoard| -> Arc<dyn Board> { Arc::new(board.seat(&member, self.clone())) };
                boards.iter().map(seat).collect()
            }
        }
    }

    /// This world is one member of a group, over these boards, its own first. Its ledger is a new one.
    pub fn joins(&self, member: &str, boards: &[SharedBoard]) {
        let mut state = self.state();
        state.group = Some((member.into(), boards.to_vec()));
        state.ledger = MemoryLedger::new(Origin(format!("{member}-0")));
    }
}

/// What one server keeps.
struct Server {
    identity: String,
    /// By member: the changes so far, and of each workload the number of its last one.
    copies: BTreeMap<Member, (u64, BTreeMap<WorkloadId, Copy>)>,
    beats: BTreeMap<Member, (Beat, Instant)>,
    /// Whose copies were lost, and who has not been told.
    lost: BTreeMap<Member, bool>,
    down: bool,
}

#[derive(Clone)]
struct Copy {
    change: u64,
    origin: Origin,
    said: Posting,
}

/// One server of a group, for all members.
#[derive(Clone)]
pub struct SharedBoard {
    name: String,
    server: Arc<Mutex<Server>>,
    wake: broadcast::Sender<Member>,
}

impl SharedBoard {
    pub fn new(name: &str) -> Self {
        let server = Server {
            identity: name.to_owned(),
            copies: BTreeMap::new(),
            beats: BTreeMap::new(),
            lost: BTreeMap::new(),
            down: false,
        };
        Self { name: name.to_owned(), server: Arc::new(Mutex::new(server)), wake: broadcast::channel(1_000).0 }
    }

    /// The same server under another address.
    pub fn alias(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// All of it is lost.
    pub fn wipe(&self) {
        let mut server = self.server();
        server.copies.clear();
        server.beats.clear();
        server.lost.values_mut().for_each(|lost| *lost = true);
    }

    /// It answers nobody any more, or again.
    pub fn is_down(&self, down: bool) {
        self.server().down = down;
    }

    /// What it shows of a member's record.
    pub fn shows(&self, member: &str, workload: &WorkloadId) -> Option<Posting> {
        let server = self.server();
        Some(server.copies.get(&Member::from(member))?.1.get(workload)?.said.clone())
    }

    /// Something is written there by somebody else.
    pub fn put(&self, member: &str, origin: &str, workload: &WorkloadId, said: Posting) {
        self.server().put(&member.into(), &origin.into(), workload, said);
        let _ = self.wake.send(member.into());
    }

    pub(super) fn seat(&self, member: &Member, world: World) -> Seat {
        Seat { board: self.clone(), name: self.name.clone(), member: member.clone(), world }
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    fn put(&mut self, member: &Member, origin: &Origin, workload: &WorkloadId, said: Posting) -> Posted {
        let state = |said: &Posting| match said {
            Posting::Show(record) => (record.seq, record.revision, false),
            Posting::Forget(seq, revision) => (*seq, *revision, true),
        };
        let (changes, copies) = self.copies.entry(member.clone()).or_default();
        if let Some(known) = copies.get(workload).filter(|known| known.origin == *origin) {
            let (seq, revision, _) = state(&known.said);
            if state(&known.said) == state(&said) {
                return Posted::Current;
            }
            if state(&known.said) > state(&said) {
                return Posted::Newer(seq, revision);
            }
        }
        *changes += 1;
        copies.insert(workload.clone(), Copy { change: *changes, origin: origin.clone(), said });
        Posted::Current
    }
}

/// One member at a board. Its world's faults happen to its calls.
pub(super) struct Seat {
    board: SharedBoard,
    name: String,
    member: Member,
    world: World,
}

impl Seat {
    async fn call(&self, call: &'static str, about: &str) -> Result<bool, PortError> {
        let lost = self.world.port(call, &format!("{} {about}", self.name)).await?;
        if self.board.server().down {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            return Err(PortError::passing(format!("failed to use Redis {}", self.name), "timeout: it is down"));
        }
        Ok(lost)
    }
}

#[async_trait]
impl Board for Seat {
    fn name(&self) -> &str {
        &self.name
    }

    async fn identity(&self) -> Result<String, PortError> {
        self.call("board.identity", "").await?;
        Ok(self.board.server().identity.clone())
    }

    async fn post(&self, origin: &Origin, postings: &[(WorkloadId, Posting)]) -> Result<Vec<Posted>, PortError> {
        let lost = self.call("board.post", &about(postings)).await?;
        let mut server = self.board.server();
        server.lost.entry(self.member.clone()).or_default();
        let put = |(workload, said): &(WorkloadId, Posting)| server.put(&self.member, origin, workload, said.clone());
        let answers = postings.iter().map(put).collect();
        drop(server);
        let _ = self.board.wake.send(self.member.clone());
        if lost { Err(failed("board.post")) } else { Ok(answers) }
    }

    async fn beat(&self, beat: &Beat) -> Result<Option<Beat>, PortError> {
        let lost = self.call("board.beat", "").await?;
        let until = Instant::now() + BEAT_TTL;
        let before = self.board.server().beats.insert(beat.member.clone(), (beat.clone(), until));
        if lost { Err(failed("board.beat")) } else { Ok(before.map(|(beat, _)| beat)) }
    }

    async fn read(&self, from: &Cursor) -> Result<News, PortError> {
        let lost = self.call("board.read", "").await?;
        if lost {
            return Err(failed("board.read"));
        }
        let mut server = self.board.server();
        let now = Instant::now();
        server.beats.retain(|_, (_, until)| *until > now);
        let mut news = News { lost: server.lost.insert(self.member.clone(), false) == Some(true), ..News::default() };
        news.beats = server.beats.values().map(|(beat, _)| beat.clone()).collect();
        for (member, (changes, copies)) in server.copies.iter().filter(|(member, _)| **member != self.member) {
            // A server that counts anew has lost what was there.
            let from = from.0.get(member).copied().filter(|seen| seen <= changes).unwrap_or_default();
            let mut fresh: Vec<_> = copies.iter().filter(|(_, copy)| copy.change > from).collect();
            fresh.sort_by_key(|(_, copy)| copy.change);
            news.heard.extend(fresh.into_iter().map(|(workload, copy)| Heard {
                member: member.clone(),
                workload: workload.clone(),
                origin: copy.origin.clone(),
                said: copy.said.clone(),
            }));
            news.cursor.0.insert(member.clone(), *changes);
        }
        Ok(news)
    }

    fn wake_ups(&self) -> Flow<()> {
        let (receiver, own) = (self.board.wake.subscribe(), self.member.clone());
        Box::pin(futures_util::stream::unfold(receiver, move |mut receiver| {
            let own = own.clone();
            async move {
                loop {
                    match receiver.recv().await {
                        Ok(member) if member == own => {}
                        Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return Some(((), receiver)),
                        Err(broadcast::error::RecvError::Closed) => return None,
                    }
                }
            }
        }))
    }
}

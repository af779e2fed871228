//! Boards in memory. [`Lonely`] is the Redis of a cluster alone: it takes everything and shows nothing. [`Server`] is one of a
//! group; what a world's faults do to calls happens on the way to it.

use std::sync::Arc;

use allclear::adapters::ledger::memory::MemoryLedger;
use async_trait::async_trait;
use kernel::id::{Member, Origin, WorkloadId};
use purge::agreement::roster::Heartbeat;
use purge::ports::{Board, Cursor, Flow, Interest, News, PortError, Posted, Posting};
use sandbox::board::{MemberBoard, SharedBoard};

use super::{FakeClock, World, failed};

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

    async fn beat(&self, _: &Heartbeat) -> Result<Option<Heartbeat>, PortError> {
        Ok(None)
    }

    async fn read_of(&self, _: &Cursor, _: &Interest) -> Result<News, PortError> {
        let lost = self.0.port("board.read", "").await?;
        Ok(News { lost, ..News::default() })
    }

    async fn refuses(&self) -> Result<Option<String>, PortError> {
        Ok(None)
    }

    async fn forget(&self, _: &Member) -> Result<usize, PortError> {
        Ok(0)
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
            Some((member, servers)) => {
                let seat = |server: &Server| -> Arc<dyn Board> { Arc::new(server.seat(&member, self.clone())) };
                servers.iter().map(seat).collect()
            }
        }
    }

    /// This world is one member of a group, over these servers, its own first. Its ledger is a new one.
    pub fn joins(&self, member: &str, servers: &[Server]) {
        let mut state = self.state();
        state.group = Some((member.into(), servers.to_vec()));
        state.ledger = MemoryLedger::new(Origin(format!("{member}-0")));
    }
}

/// One server of a group, by one of its addresses.
#[derive(Clone)]
pub struct Server {
    name: String,
    /// What it holds, and whom it answers; all its addresses lead there.
    pub board: SharedBoard,
}

impl Server {
    /// An empty one, which counts expiry in virtual time from now on.
    pub fn new(name: &str) -> Self {
        let clock = FakeClock { began: tokio::time::Instant::now(), world: World::new(0) };
        Self { name: name.to_owned(), board: SharedBoard::new(name, Arc::new(clock)) }
    }

    /// The same one by another address.
    pub fn alias(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// Whether it answers nobody of these any more.
    pub fn is_down_for(&self, members: &[&str], down: bool) {
        members.iter().for_each(|member| self.board.unreachable(&Member::from(*member), down));
    }

    /// What it shows of a member's record.
    pub async fn shows(&self, member: &str, workload: &WorkloadId) -> Option<Posting> {
        let news = self.board.handle(&"somebody".into()).read(&Cursor::default()).await.expect("it answers");
        let of_it = |heard: &purge::ports::Heard| heard.member.0 == member && heard.workload == *workload;
        news.heard.into_iter().find(of_it).map(|heard| heard.said)
    }

    /// Writes what `member` would have written.
    pub async fn put(&self, member: &str, origin: &str, workload: &WorkloadId, said: Posting) {
        let posting = [(workload.clone(), said)];
        self.board.handle(&member.into()).post(&origin.into(), &posting).await.expect("it answers");
    }

    fn seat(&self, member: &Member, world: World) -> Seat {
        Seat { name: self.name.clone(), board: self.board.handle(member), world }
    }
}

/// One member at a server.
struct Seat {
    name: String,
    board: MemberBoard,
    world: World,
}

impl Seat {
    /// Lets a call through to the server, and loses its answer if that is to be.
    async fn call<T>(
        &self,
        call: &'static str,
        about: &str,
        done: impl Future<Output = Result<T, PortError>> + Send,
    ) -> Result<T, PortError> {
        let lost = self.world.port(call, &format!("{} {about}", self.name)).await?;
        let answer = done.await?;
        if lost { Err(failed(call)) } else { Ok(answer) }
    }
}

#[async_trait]
impl Board for Seat {
    fn name(&self) -> &str {
        &self.name
    }

    async fn identity(&self) -> Result<String, PortError> {
        self.call("board.identity", "", self.board.identity()).await
    }

    async fn post(&self, origin: &Origin, postings: &[(WorkloadId, Posting)]) -> Result<Vec<Posted>, PortError> {
        self.call("board.post", &about(postings), self.board.post(origin, postings)).await
    }

    async fn beat(&self, beat: &Heartbeat) -> Result<Option<Heartbeat>, PortError> {
        self.call("board.beat", "", self.board.beat(beat)).await
    }

    async fn read_of(&self, from: &Cursor, interest: &Interest) -> Result<News, PortError> {
        self.call("board.read", "", self.board.read_of(from, interest)).await
    }

    async fn refuses(&self) -> Result<Option<String>, PortError> {
        self.board.refuses().await
    }

    async fn forget(&self, member: &Member) -> Result<usize, PortError> {
        self.board.forget(member).await
    }

    fn wake_ups(&self) -> Flow<()> {
        self.board.wake_ups()
    }
}

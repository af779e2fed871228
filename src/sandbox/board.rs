//! A board without a Redis: one "server" in this process, through which the members of a demo or a simulation agree.
//!
//! It keeps the rules that the adapter's scripts keep (`adapters/redis/board/scripts.rs`), which one suite of tests checks
//! for both. Only we write here, so there is no key and nothing to reject.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::mpsc;

use kernel::id::{Member, Origin, WorkloadId};
use kernel::machine::Timestamp;
use purge::agreement::roster::Heartbeat;
use purge::ports::{
    BEAT_TTL, Board, Clock, Cursor, Flow, Heard, Interest, News, PASSING_TTL, POSTINGS_MAX, PortError, Posted, Posting,
    Reason,
};
use purge::records::record_codec::encode_published;

/// The server. Clones are the same one.
#[derive(Clone)]
pub struct SharedBoard {
    name: String,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

/// One member's way to it.
pub struct MemberBoard {
    board: SharedBoard,
    member: Member,
    told: Mutex<Told>,
}

/// The answers to a member about its own copies.
#[derive(Default)]
struct Told {
    newest: u64,
    lost: bool,
}

#[derive(Default)]
struct State {
    /// Counts all changes, and on through wipes: a stamp never repeats what a reader may have counted already.
    counted: u64,
    /// Lives of the server: every wipe by a restart begins one.
    life: u64,
    shelves: BTreeMap<Member, Shelf>,
    beats: BTreeMap<Member, (Heartbeat, Timestamp)>,
    unreachable: BTreeSet<Member>,
    listeners: Vec<(Member, mpsc::Sender<()>)>,
}

/// The copies of one member.
#[derive(Default)]
struct Shelf {
    stamp: u64,
    copies: BTreeMap<WorkloadId, StoredCopy>,
}

struct StoredCopy {
    stamp: u64,
    origin: Origin,
    said: Posting,
    since: Timestamp,
}

impl StoredCopy {
    fn heard(&self, member: &Member, workload: &WorkloadId) -> Heard {
        let (origin, said) = (self.origin.clone(), self.said.clone());
        Heard { member: member.clone(), workload: workload.clone(), origin, said }
    }
}

impl SharedBoard {
    /// An empty one. Expiry is by `clock`.
    pub fn new(name: &str, clock: Arc<dyn Clock>) -> Self {
        Self { name: name.to_owned(), clock, state: Arc::default() }
    }

    /// The board as `member` uses it.
    pub fn handle(&self, member: &Member) -> MemberBoard {
        MemberBoard { board: self.clone(), member: member.clone(), told: Mutex::default() }
    }

    /// Loses everything, as by `FLUSHALL`.
    pub fn wipe(&self) {
        let mut state = self.state();
        state.shelves.clear();
        state.beats.clear();
    }

    /// Loses everything and is another server from now on, as by `kill -9` and a start without a disk.
    pub fn restart_empty(&self) {
        self.wipe();
        self.state().life += 1;
    }

    /// Whether `member`'s calls fail from now on, and nothing reaches it.
    pub fn unreachable(&self, member: &Member, unreachable: bool) {
        let mut state = self.state();
        if unreachable {
            state.unreachable.insert(member.clone());
        } else if state.unreachable.remove(member) {
            state.wake(|listener| listener == member);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Wakes those listeners, and drops those that are gone.
    fn wake(&mut self, whom: impl Fn(&Member) -> bool) {
        let unreachable = &self.unreachable;
        self.listeners.retain(|(member, says)| {
            if whom(member) && !unreachable.contains(member) {
                // One that is already to be woken needs no second call.
                let _ = says.try_send(());
            }
            !says.is_closed()
        });
    }

    fn post(
        &mut self,
        member: &Member,
        now: Timestamp,
        origin: &Origin,
        workload: &WorkloadId,
        posting: &Posting,
    ) -> (Posted, bool) {
        if let Posting::Show(published) = posting
            && let Err(error) = encode_published(published)
        {
            return (Posted::Refused(error.to_string()), false);
        }
        let shelf = self.shelves.entry(member.clone()).or_default();
        if let Some(there) = shelf.copies.get_mut(workload) {
            let (theirs, ours) = (there.said.state(), posting.state());
            let is_end = |said: &Posting| matches!(said, Posting::Forget(..));
            if there.origin == *origin && there.said == *posting {
                there.since = now;
                return (Posted::Current, false);
            }
            if there.origin != *origin && is_end(posting) {
                return (Posted::Current, false);
            }
            let ended = is_end(&there.said) && !is_end(posting) && theirs == ours;
            if there.origin == *origin && (ended || theirs > ours) {
                return (Posted::Newer(theirs.0, theirs.1), false);
            }
        }
        self.counted += 1;
        shelf.stamp = self.counted;
        let copy = StoredCopy { stamp: self.counted, origin: origin.clone(), said: posting.clone(), since: now };
        shelf.copies.insert(workload.clone(), copy);
        (Posted::Current, true)
    }

    fn forget_what_passed(&mut self, now: Timestamp) {
        let is_old = |since: Timestamp, ttl: Duration| now.since(since) >= ttl;
        for shelf in self.shelves.values_mut() {
            shelf.copies.retain(|_, copy| !copy.said.passes() || !is_old(copy.since, PASSING_TTL));
        }
        self.beats.retain(|_, (_, since)| !is_old(*since, BEAT_TTL));
    }

    /// What changed on one shelf since `from`, at most `room` of it; where to read on; and whether there is more.
    fn changes(&self, member: &Member, from: u64, room: usize) -> (Vec<Heard>, u64, bool) {
        let Some(shelf) = self.shelves.get(member) else { return (Vec::new(), from, false) };
        let from = if shelf.stamp < from { 0 } else { from };
        let mut news: Vec<_> = shelf.copies.iter().filter(|(_, copy)| copy.stamp > from).collect();
        news.sort_by_key(|(_, copy)| copy.stamp);
        let more = news.len() > room;
        news.truncate(room);
        let upto = if more { news.last().map_or(from, |(_, copy)| copy.stamp) } else { shelf.stamp };
        let heard = news.into_iter().map(|(workload, copy)| copy.heard(member, workload));
        (heard.collect(), upto, more)
    }
}

impl MemberBoard {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server, if this member reaches it, without what has expired.
    fn reached(&self, what: &str) -> Result<MutexGuard<'_, State>, PortError> {
        let mut state = self.board.state();
        if state.unreachable.contains(&self.member) {
            return Err(PortError::passing(format!("failed to {what} in Redis {}", self.board.name), "refused")
                .because(Reason::of("refused")));
        }
        state.forget_what_passed(self.board.clock.now());
        Ok(state)
    }
}

#[async_trait]
impl Board for MemberBoard {
    fn name(&self) -> &str {
        &self.board.name
    }

    async fn identity(&self) -> Result<String, PortError> {
        let life = self.reached("learn which server answers")?.life;
        Ok(format!("{} {life}", self.board.name))
    }

    async fn post(&self, origin: &Origin, postings: &[(WorkloadId, Posting)]) -> Result<Vec<Posted>, PortError> {
        let mut state = self.reached("post")?;
        let now = self.board.clock.now();
        let mut told = self.told();
        told.lost |= state.shelves.get(&self.member).map_or(0, |shelf| shelf.stamp) < told.newest;
        let (mut answers, mut changed) = (Vec::with_capacity(postings.len()), false);
        for (workload, posting) in postings {
            let (posted, stored) = state.post(&self.member, now, origin, workload, posting);
            changed |= stored;
            answers.push(posted);
        }
        told.newest = state.shelves.get(&self.member).map_or(0, |shelf| shelf.stamp);
        if changed {
            state.wake(|listener| *listener != self.member);
        }
        Ok(answers)
    }

    async fn beat(&self, beat: &Heartbeat) -> Result<Option<Heartbeat>, PortError> {
        let mut state = self.reached("leave a beat")?;
        let now = self.board.clock.now();
        let earlier = state.beats.insert(self.member.clone(), (beat.clone(), now)).map(|(earlier, _)| earlier);
        if beat.is_news(earlier.as_ref()) {
            state.wake(|listener| *listener != self.member);
        }
        Ok(earlier)
    }

    async fn read_of(&self, from: &Cursor, interest: &Interest) -> Result<News, PortError> {
        let state = self.reached("read")?;
        let mut told = self.told();
        let stamp = state.shelves.get(&self.member).map_or(0, |shelf| shelf.stamp);
        let lost = std::mem::take(&mut told.lost) || stamp < told.newest;
        told.newest = stamp;
        let mut news = News { lost, again: interest.again.len(), ..News::default() };
        let is_wanted = |member: &Member| interest.members.as_ref().is_none_or(|members| members.contains(member));
        for (member, shelf) in state.shelves.iter().filter(|(member, _)| **member != self.member && is_wanted(member)) {
            let again = interest.again.iter().filter_map(|workload| Some((workload, shelf.copies.get(workload)?)));
            news.heard.extend(again.map(|(workload, copy)| copy.heard(member, workload)));
        }
        for member in state.shelves.keys().filter(|member| **member != self.member && is_wanted(member)) {
            let room = POSTINGS_MAX.saturating_sub(news.heard.len());
            let from = from.0.get(member).copied().unwrap_or_default();
            let (heard, upto, more) = state.changes(member, from, room);
            news.heard.extend(heard);
            news.more |= more;
            news.cursor.0.insert(member.clone(), upto);
        }
        news.beats = state.beats.values().map(|(beat, _)| beat.clone()).collect();
        Ok(news)
    }

    async fn refuses(&self) -> Result<Option<String>, PortError> {
        self.reached("learn whether it takes writes").map(|_| None)
    }

    async fn forget(&self, member: &Member) -> Result<usize, PortError> {
        let mut state = self.reached("forget a member")?;
        state.beats.remove(member);
        Ok(state.shelves.remove(member).map_or(0, |shelf| shelf.copies.len()))
    }

    fn wake_ups(&self) -> Flow<()> {
        let (says, said) = mpsc::channel(1);
        let mut state = self.board.state();
        state.listeners.push((self.member.clone(), says));
        state.wake(|listener| *listener == self.member);
        Box::pin(stream::unfold(said, |mut said| async { said.recv().await.map(|()| ((), said)) }))
    }
}

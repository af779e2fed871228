//! The broker of the group's records: what to post on which board, which copies of the others' records count, and which
//! rollouts to inform or wake.
//!
//! ```text
//! our rollouts ──Published──▶ ┌────────┐ ──Post, Heartbeat──▶ board 1 … n   each at its own pace; a dead one delays no other
//!      ▲  ▲                   │ Broker │ ◀──Read───────────── board 1 … n   at once when woken, else every 5 s
//!      │  └──Tell (a view)─── └────────┘
//!      └─────Want (wake one up)   │ StorePin, ReadPin, ReadLedger, LoadRecord
//!                                 ▼
//!                               ledger
//! ```
//!
//! Its state is in rooms that own their fields: the members (`membership`); each board (`board_state`) with its
//! server (`server`), what is read there (`reading`) and what is still to be written (`queue`), and the ledger read for those
//! that lack it (`refill`); our heartbeat (`pulse`); the others' records (`peer_records`) and our own (`ours`), and those that
//! a board holds in a newer state than our ledger (`regressions`); the rollouts to wake (`waking`); what our workloads go by
//! (`names`); and what was reported (`holds`, `doubts`). `step` is where they meet.
//!
//! A single cluster is a group of one: its view is its own record, and its boards are only posted to. Nothing here decides
//! about a rollout; that is `rollout` and `group`. Everything it remembers may be lost: it comes again from the ledger,
//! the boards and the rollouts.

mod board_state;
mod doubts;
mod holds;
mod lately;
mod membership;
mod names;
mod notice;
mod ours;
mod pace;
mod parts;
mod peer_records;
mod pulse;
mod queue;
mod reading;
mod refill;
mod regressions;
mod seen;
mod server;
mod step;
mod trouble;
mod waking;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::agreement::board::{Cursor, Interest, News, Posted, Posting};
use crate::agreement::group::{self, Known, Told, View};
use crate::agreement::roster::{Heartbeat, Hold, Pin, Reason, Roster, Saying, Servers, Standing, Stands, Trust};
use crate::records::record::{Record, Records};
use kernel::answer::PortError;
use kernel::floor::Floor;
use kernel::id::{Kind, Member, Origin, Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::retry::Backoff;

use board_state::BoardState;
use doubts::Doubts;
use holds::Holds;
use membership::Membership;
use names::Names;
use ours::Ours;
use peer_records::PeerRecords;
use pulse::Pulse;
use refill::Refill;
use regressions::Regressions;
use waking::Waking;

pub use seen::{BoardSeen, MemberSeen, Seen};
pub use trouble::Trouble;

/// After a failure. We call a failing board no more often than a working one: its next answer is worth one call in five
/// seconds.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(5) };

/// Our identity. Constant for the life of the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub member: Member,
    pub origin: Origin,
    /// Names one life of this broker: another in each process, and another whenever the broker is rebuilt.
    pub boot: String,
    pub version: String,
    /// The workloads that it watches, and where it runs.
    pub stands: Stands,
    /// Nothing is posted, and no beat is left: others must not count on us (decision 23).
    pub listen_only: bool,
    /// Whether a copy on a board proves anything.
    pub trust: Trust,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    identity: Identity,
    membership: Membership,
    boards: Vec<BoardState>,
    refill: Refill,
    pulse: Pulse,
    peer_records: PeerRecords,
    ours: Ours,
    /// The names of our workloads in the group. Everything else uses these names.
    names: Names,
    regressions: Regressions,
    waking: Waking,
    /// The holds of the group, and their reports.
    holds: Holds,
    /// The reports of copies that are rejected, or prove nothing.
    doubts: Doubts,
}

/// The content of a ledger: its identity, and all records.
pub type Kept = (Origin, Records);

/// Why a board, or the ledger, gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoAnswer {
    #[error(transparent)]
    Failed(#[from] PortError),
    #[error("{board} has more to tell than {answers} answers hold")]
    TooMuch { board: String, answers: usize },
    #[error("{board} has not told everything within {} s", within.as_secs())]
    Late { board: String, within: Duration },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A record of ours is durable; the rollout that says so follows the workload from now on.
    Published(WorkloadId, Box<Record>),
    /// These records of ours are durable, and no rollout follows them.
    Shown(Records),
    /// Our cluster does not have the workload, and no longer votes for any `seq` of it up to this one.
    Absent(WorkloadId, Seq),
    /// A record of ours was removed, at this `seq` and revision.
    Forgotten(WorkloadId, Seq, u64),
    /// The rollout that followed the workload has ended.
    Left(WorkloadId),
    /// These kinds of workloads are followed here now.
    Follows(BTreeSet<Kind>),
    /// A board says that there is news.
    Woken(usize),
    /// An [`Effect::Identify`] was answered, or failed for this reason.
    Identified(usize, Result<String, NoAnswer>),
    /// An [`Effect::Read`] was.
    Read(usize, Result<Box<News>, NoAnswer>),
    /// An [`Effect::Post`] was.
    Posted(usize, Result<Vec<Posted>, NoAnswer>),
    /// An [`Effect::Heartbeat`] was: with the beat of our name that was there before.
    Beaten(usize, Result<Option<Box<Heartbeat>>, NoAnswer>),
    /// An [`Effect::GatherWords`] was answered, at this time of the wall's clock: each with the rollout it is about.
    WordsGathered(BTreeMap<WorkloadId, Saying>, i64),
    /// An [`Effect::ReadLedger`] was answered: with what the ledger holds, if there is one.
    LedgerRead(Result<Option<Kept>, NoAnswer>),
    /// An [`Effect::LoadRecord`] was: the record, and the floor no `seq` of a later one can fall below.
    RecordLoaded(WorkloadId, Result<(Option<Box<Record>>, Floor), NoAnswer>),
    /// An [`Effect::ReadPin`] was.
    PinRead(Result<Option<Pin>, NoAnswer>),
    /// An [`Effect::StorePin`] was: whether the ledger holds it now.
    PinStored(Pin, Result<bool, NoAnswer>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask which server answers there.
    Identify(usize),
    /// Read what is new on a board, as far as it matters here.
    Read(usize, Cursor, Interest),
    /// Post on a board.
    Post(usize, Vec<(WorkloadId, Posting)>),
    /// Leave a beat on a board.
    Heartbeat(usize, Box<Heartbeat>),
    /// Find out how the rollouts stand, in words.
    GatherWords,
    /// Read the whole ledger.
    ReadLedger,
    /// Read one record and its floor from the ledger.
    LoadRecord(WorkloadId),
    ReadPin,
    /// Store this pin over that one.
    StorePin(Pin, Option<Pin>),
    /// Send the rollout that follows this workload its view.
    Tell(WorkloadId),
    /// Have a rollout follow this workload: another member waits for our part.
    Want(WorkloadId),
    /// Report that the group is held up.
    TellHold(Hold),
    /// Report that this reason no longer holds it up.
    TellRelease(Reason),
    /// Put an Event on this workload, which waits: the group is held up.
    TellHeldUp(WorkloadId, Hold),
    /// Report how many copies of a board were rejected since the last report, and why the last one was.
    TellRejected(usize, u64, String),
    /// Report that boards have copies of our own records that are newer than our ledger and prove nothing.
    TellDoubt(String),
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Identify(_) => "identify",
            Self::Read(..) => "read",
            Self::Post(..) => "post",
            Self::Heartbeat(..) => "beat",
            Self::GatherWords => "gather_words",
            Self::ReadLedger => "read_ledger",
            Self::LoadRecord(_) => "load_record",
            Self::ReadPin => "read_pin",
            Self::StorePin(..) => "store_pin",
            Self::Tell(_) => "tell",
            Self::Want(_) => "want",
            Self::TellHold(_) => "tell_hold",
            Self::TellRelease(_) => "tell_release",
            Self::TellHeldUp(..) => "tell_held_up",
            Self::TellRejected(..) => "tell_rejected",
            Self::TellDoubt(_) => "tell_doubt",
        }
    }
}

impl Broker {
    /// The broker over the boards of these names, our own first. Without a `roster` it is alone.
    pub fn new(identity: Identity, roster: Option<Roster>, boards: Vec<String>) -> Self {
        let reads = !identity.listen_only && !boards.is_empty();
        let mut broker = Self {
            names: Names::new(roster.is_some(), reads),
            regressions: Regressions::new(identity.trust.is_proof()),
            identity,
            membership: Membership::new(roster),
            boards: boards.into_iter().map(BoardState::new).collect(),
            refill: Refill::new(),
            pulse: Pulse::new(),
            peer_records: PeerRecords::default(),
            ours: Ours::default(),
            waking: Waking::default(),
            holds: Holds::default(),
            doubts: Doubts::default(),
        };
        broker.membership.standing = broker.stand(Timestamp::default());
        broker
    }

    /// The same for a command that listens once: it keeps what the members show of every workload.
    #[must_use]
    pub fn listening(mut self) -> Self {
        self.peer_records.listen();
        self
    }

    /// The view of the group and this workload.
    pub fn view(&self, now: Timestamp, local: &WorkloadId) -> View {
        if let Some(unnamed) = self.unnamed(local) {
            return unnamed;
        }
        let workload = self.names.of(local).unwrap_or(local);
        let Identity { member: own, origin, .. } = &self.identity;
        let record = self.ours.record(workload);
        let Some(roster) = &self.membership.roster else { return group::alone(own, origin, record) };
        let unwatched = |member: &Member| roster.unwatched(member, &workload.namespace);
        let known = |member: &Member| {
            if member == own {
                return Some(Known {
                    origin: origin.clone(),
                    current: true,
                    alive: true,
                    published: record?.clone().into(),
                    told: Told::default(),
                });
            }
            // What a release says that it does not look at, or said before its configuration forbade it.
            let says = |known: &Known| known.published.record().is_some() || unwatched(member).is_none();
            let known = self.peer_records.of(workload, member).filter(says)?;
            let alive = roster.silence(now, member).is_none();
            let told = told(roster, now, member, workload, known.published.seq());
            Some(Known { alive, told, ..known })
        };
        let Standing { members, hold, config } = &self.membership.standing;
        let members: BTreeMap<Member, Option<Known>> =
            members.iter().map(|member| (member.clone(), known(member))).collect();
        let unfollowed = |(member, known): (&Member, &Option<Known>)| {
            // What it shows may have another name in its cluster.
            let unwatched = || unwatched(member).filter(|_| known.is_none());
            Some((member.clone(), roster.unfollowed(member, workload.kind).or_else(unwatched)?))
        };
        View {
            config: config.clone(),
            hold: hold.as_ref().map(|hold| hold.words.clone()).or_else(|| self.regressions.hold(workload)),
            set_back: self.regressions.set_back(workload),
            above: self.regressions.above(workload),
            naming: self.names.naming(local),
            unfollowed: members.iter().filter(|(member, _)| *member != own).filter_map(unfollowed).collect(),
            members,
        }
    }

    fn is_grouped(&self) -> bool {
        self.membership.is_grouped()
    }

    /// The members that are agreed on.
    fn members(&self) -> &BTreeSet<Member> {
        &self.membership.standing.members
    }

    fn stand(&self, now: Timestamp) -> Standing {
        self.membership.stand(now, &self.servers(), self.identity.listen_only)
    }

    /// The different servers behind the boards.
    fn servers(&self) -> Servers {
        let (identified, unidentified): (Vec<&BoardState>, Vec<&BoardState>) =
            self.boards.iter().partition(|board| board.server.identity().is_some());
        let names = |boards: &[&BoardState]| boards.iter().map(|board| board.name.clone()).collect();
        Servers {
            distinct: identified.iter().map(|board| board.server.identity()).collect::<BTreeSet<_>>().len(),
            identified: names(&identified),
            unidentified: names(&unidentified),
            reasons: unidentified
                .iter()
                .filter_map(|board| Some((board.name.clone(), board.server.trouble()?.to_owned())))
                .collect(),
            untried: self.boards.iter().any(|board| !board.server.is_tried()),
        }
    }

    /// A record, or its end, goes to every board.
    fn post(&mut self, workload: &WorkloadId, posting: &Posting) {
        if !self.identity.listen_only {
            self.boards.iter_mut().for_each(|board| board.queue.post(workload, posting.clone()));
        }
    }

    /// Sends the rollout a new view: something about this workload has changed.
    fn spread(&self, workload: &WorkloadId) -> Option<Effect> {
        if self.ours.follows(workload) {
            return Some(Effect::Tell(workload.clone()));
        }
        self.is_wanted(workload).then(|| Effect::Want(workload.clone()))
    }

    /// Whether another member waits for our part in it and no rollout of ours follows it. Of a kind that is not followed here, or in a
    /// namespace that is not watched, none could tell it anything.
    fn is_wanted(&self, workload: &WorkloadId) -> bool {
        let Identity { stands, .. } = &self.identity;
        self.names.are_known()
            && stands.follows(workload.kind)
            && stands.watches(&self.names.local(workload).unwrap_or(workload).namespace)
            && self.peer_records.is_sought_by(workload, self.members())
            && !self.ours.follows(workload)
            && self.ours.absent_up_to(workload).is_none()
            && !self.identity.listen_only
    }
}

/// How a member stands, in words. Its own words come from its last beat, which is up to 5 s old, and count only for the
/// rollout they are about.
fn told(roster: &Roster, now: Timestamp, member: &Member, workload: &WorkloadId, seq: Seq) -> Told {
    Told {
        silence: roster.silence(now, member),
        differs: roster.differences(member),
        cure: roster.cure(member),
        own: roster.peer(member).and_then(|peer| peer.beat.words_of(workload, seq)).cloned(),
    }
}

#[cfg(test)]
mod tests;

//! The broker of the group's records: what is to be posted on which board, which copies of the others' records count, and who
//! has to be told or woken.
//!
//! ```text
//! our rollouts ──Published──▶ ┌────────┐ ──Post, Beat──▶ board 1 … n      each at its own pace; a dead one delays no other
//!      ▲  ▲                   │ Broker │ ◀──Read──────── board 1 … n      at once when woken, else every 5 s
//!      │  └──Tell (a view)─── └────────┘
//!      └─────Want (wake one up)   │ StorePin, ReadPin, ReadLedger, LoadRecord
//!                                 ▼
//!                               ledger
//! ```
//!
//! A single cluster is a group of one: its view is its own record, and its boards are only posted to. Nothing here decides
//! about a rollout; that is `rollout` and `group`. All that is remembered may be lost: it comes again from the ledger, the
//! boards and the rollouts themselves.

mod ahead;
mod copies;
mod doubts;
mod holds;
mod notice;
mod pace;
mod path;
mod seen;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::board::{Cursor, Interest, News, Posted, Posting};
use crate::call::Call;
use crate::group::{self, Known, Told, View};
use crate::id::{Member, Origin, Seq, WorkloadId};
use crate::machine::{Machine, Timestamp};
use crate::record::Record;
use crate::retry::Backoff;
use crate::roster::{Beat, HEARD_FOR, Hold, Pin, Reason, Roster, Servers, Standing, Trust};

use ahead::Ahead;
use copies::Copies;
use doubts::Doubts;
use holds::Holds;
use path::Path;

pub use seen::{MemberSeen, PathSeen, Seen};

/// How often a beat is left, and workloads that others wait for are asked for again.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// After a failure. A board that fails is asked no more often than one that works: its next answer is worth one call in five
/// seconds.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(5) };

/// How often the pin is read: what `allclear group forget` wrote is noticed that soon.
const PIN_EVERY: Duration = Duration::from_secs(10);

/// Workloads that are woken up at once. Each becomes an actor that reads its record; the others follow 5 s later.
const WANTED_MAX: usize = 100;

/// Workloads that are remembered as absent from this cluster, unless a member waits for them.
const ABSENT_MAX: usize = 10_000;

/// Names beside the members' that are remembered for a board because their beats are not believed.
const DISBELIEVED_MAX: usize = 100;

/// How often everything is read again because copies had found no place.
const REREAD_EVERY: Duration = Duration::from_secs(60);

/// A rollout that was woken twice for other members and twice ended without having a part to play, because the workload is
/// disabled here say, is left alone for so long. What is heard of it wakes it at once.
const RESTS_FOR: Duration = Duration::from_secs(60);

/// Who we are. Constant for the life of the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// This member.
    pub member: Member,
    /// Our ledger.
    pub origin: Origin,
    /// One life of this broker: another in each process, and whenever one is made anew in it.
    pub boot: String,
    /// The program's version.
    pub version: String,
    /// Where it runs, for people; empty where that is not known.
    pub place: String,
    /// Nothing is posted, and no beat is left: others must not count on us (decision 23).
    pub silent: bool,
    /// How far what is on the boards is proof.
    pub trust: Trust,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    identity: Identity,
    /// `None` while alone.
    roster: Option<Roster>,
    standing: Standing,
    paths: Vec<Path>,
    copies: Copies,
    /// Workloads a rollout of ours follows, with their newest record.
    followed: BTreeMap<WorkloadId, Option<Box<Record>>>,
    /// Workloads this cluster does not have, as far as somebody asked.
    absent: BTreeMap<WorkloadId, Seq>,
    ahead: Ahead,
    /// Rollouts that ended although others wait for them: how often without news in between, and when the last time.
    idled: BTreeMap<WorkloadId, (u32, Timestamp)>,
    /// The last one that was woken. With more than [`WANTED_MAX`], all have their turn.
    woken: Option<WorkloadId>,
    /// The reading of the ledger, and the paths it is for.
    refill: Call,
    refilling: BTreeSet<usize>,
    /// What was removed while the ledger was read: it may be in the answer.
    removed: BTreeSet<WorkloadId>,
    /// The reading and writing of the pin.
    pinning: Call,
    /// The pin was read since it was last found to be another one than we thought.
    pin_known: bool,
    beat_due: Timestamp,
    /// Beats made so far.
    beats: u64,
    /// The time our last beat bears.
    beaten_ms: i64,
    absent_due: Timestamp,
    /// What members' silence was when the rollouts were last told.
    silences: BTreeMap<Member, String>,
    /// What holds the group up, and of what was told.
    holds: Holds,
    /// What was told of copies that are not believed, or prove nothing.
    doubts: Doubts,
    /// When everything was last read again because copies had found no place.
    reread: Timestamp,
}

/// What a ledger holds: its identity, and all records.
pub type Kept = (Origin, BTreeMap<WorkloadId, Record>);

/// What can happen to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A record of ours is durable; the rollout that says so follows the workload from now on.
    Published(WorkloadId, Box<Record>),
    /// These records of ours are durable, and nobody follows them.
    Shown(BTreeMap<WorkloadId, Record>),
    /// Our cluster does not have the workload, and no `seq` of it up to this one is voted for any more.
    Absent(WorkloadId, Seq),
    /// A record of ours was removed, at this `seq` and revision.
    Forgotten(WorkloadId, Seq, u64),
    /// The rollout that followed the workload has ended.
    Left(WorkloadId),
    /// A board says that there is news.
    Woken(usize),
    /// An [`Effect::Identify`] was answered, or failed for this reason.
    Identified(usize, Result<String, String>),
    /// An [`Effect::Read`] was.
    Read(usize, Result<Box<News>, String>),
    /// An [`Effect::Post`] was.
    Posted(usize, Result<Vec<Posted>, String>),
    /// An [`Effect::Beat`] was: with the beat of our name that was there before.
    Beaten(usize, Result<Option<Box<Beat>>, String>),
    /// An [`Effect::GatherWords`] was answered, at this time of the wall's clock: each with the rollout it is about.
    WordsGathered(BTreeMap<WorkloadId, (Seq, String)>, i64),
    /// An [`Effect::ReadLedger`] was answered: with what the ledger holds, if there is one.
    LedgerRead(Result<Option<Kept>, String>),
    /// An [`Effect::LoadRecord`] was: the record, and the floor no `seq` of a later one can fall below.
    RecordLoaded(WorkloadId, Result<(Option<Box<Record>>, Seq), String>),
    /// An [`Effect::ReadPin`] was.
    PinRead(Result<Option<Pin>, String>),
    /// An [`Effect::StorePin`] was: whether the ledger holds it now.
    PinStored(Pin, Result<bool, String>),
}

/// What it wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask which server answers there.
    Identify(usize),
    /// Read what is new on a board, as far as it matters here.
    Read(usize, Cursor, Interest),
    /// Post on a board.
    Post(usize, Vec<(WorkloadId, Posting)>),
    /// Leave a beat on a board.
    Beat(usize, Box<Beat>),
    /// Find out how the rollouts stand, in words.
    GatherWords,
    /// Read the whole ledger.
    ReadLedger,
    /// Read one record and its floor from the ledger.
    LoadRecord(WorkloadId),
    /// Read the pin.
    ReadPin,
    /// Store this pin over that one.
    StorePin(Pin, Option<Pin>),
    /// Tell the rollout that follows this workload its view.
    Tell(WorkloadId),
    /// Have a rollout follow this workload: another member waits for our part.
    Want(WorkloadId),
    /// Tell that the group is held up.
    TellHold(Hold),
    /// Tell that it is held up for this reason no more.
    TellRelease(Reason),
    /// Tell on this workload, which waits, that the group is held up.
    TellHeldUp(WorkloadId, Hold),
    /// Tell how many copies of a board were not believed since it was last told, and why the last one was not.
    TellRejected(usize, u64, String),
    /// Tell in words that there are copies of our own records that are newer than our ledger, and prove nothing.
    TellDoubt(String),
}

impl Effect {
    /// The metric label.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Identify(_) => "identify",
            Self::Read(..) => "read",
            Self::Post(..) => "post",
            Self::Beat(..) => "beat",
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
        let ahead = Ahead::new(identity.trust.is_proof());
        let mut broker = Self {
            identity,
            roster,
            standing: Standing::default(),
            paths: boards.into_iter().map(Path::new).collect(),
            copies: Copies::default(),
            followed: BTreeMap::new(),
            absent: BTreeMap::new(),
            ahead,
            idled: BTreeMap::new(),
            woken: None,
            refill: Call::due(Timestamp::default()),
            refilling: BTreeSet::new(),
            removed: BTreeSet::new(),
            pinning: Call::due(Timestamp::default()),
            pin_known: false,
            beat_due: Timestamp::default(),
            beats: 0,
            beaten_ms: i64::MIN,
            absent_due: Timestamp::default(),
            silences: BTreeMap::new(),
            holds: Holds::default(),
            doubts: Doubts::default(),
            reread: Timestamp::default(),
        };
        broker.standing = broker.stand(Timestamp::default());
        broker
    }

    /// The same for a command that listens once: it keeps what the members show of every workload.
    #[must_use]
    pub fn listening(mut self) -> Self {
        self.copies.listen();
        self
    }

    /// What is known of the group and this workload. The views are not numbered: the actor that gives them out does that.
    pub fn view(&self, now: Timestamp, workload: &WorkloadId) -> View {
        let Identity { member: own, origin, .. } = &self.identity;
        let record = self.followed.get(workload).and_then(Option::as_deref);
        let Some(roster) = &self.roster else { return group::alone(own, origin, record) };
        let known = |member: &Member| {
            if member == own {
                let record = record?.clone();
                return Some(Known {
                    origin: origin.clone(),
                    current: true,
                    alive: true,
                    record,
                    told: Told::default(),
                });
            }
            let known = self.copies.of(workload, member)?;
            let alive = roster.silence(now, member).is_none();
            let told = told(roster, now, member, workload, known.record.seq);
            Some(Known { alive, told, ..known })
        };
        let Standing { members, hold, config } = &self.standing;
        View {
            number: 0,
            config: config.clone(),
            hold: hold.as_ref().map(|hold| hold.words.clone()).or_else(|| self.ahead.hold(workload)),
            set_back: self.ahead.set_back(workload),
            above: self.ahead.above(workload),
            members: members.iter().map(|member| (member.clone(), known(member))).collect(),
        }
    }

    fn is_grouped(&self) -> bool {
        self.roster.is_some()
    }

    fn stand(&self, now: Timestamp) -> Standing {
        let Some(roster) = &self.roster else { return Standing::default() };
        let mut standing = roster.standing(now, &self.servers());
        if self.identity.silent {
            let words = "this is a dry run: nothing is agreed on with other members";
            standing.hold = Some(Hold::new(Reason::DryRun, words));
        } else if standing.hold.is_some()
            && roster.pin().is_none()
            && let Some(why) = self.pinning.reason()
        {
            standing.hold =
                Some(Hold::new(Reason::Members, format!("the members cannot be kept in the ledger: {why}")));
        }
        standing
    }

    /// The different servers behind the boards.
    fn servers(&self) -> Servers {
        let identities: BTreeSet<&String> = self.paths.iter().filter_map(|path| path.identity.as_ref()).collect();
        let silent = self.paths.iter().filter(|path| path.identity.is_none());
        Servers {
            distinct: identities.len(),
            identified: self
                .paths
                .iter()
                .filter(|path| path.identity.is_some())
                .map(|path| path.name.clone())
                .collect(),
            unidentified: silent.map(|path| path.name.clone()).collect(),
            untried: self.paths.iter().any(|path| !path.tried),
        }
    }

    /// A record, or its end, goes to every board.
    fn post(&mut self, workload: &WorkloadId, posting: &Posting) {
        if !self.identity.silent {
            self.paths.iter_mut().for_each(|path| path.post(workload, posting.clone()));
        }
    }

    /// Tells the rollout that something about this workload has changed.
    fn spread(&self, workload: &WorkloadId) -> Option<Effect> {
        if self.followed.contains_key(workload) {
            return Some(Effect::Tell(workload.clone()));
        }
        self.is_wanted(workload).then(|| Effect::Want(workload.clone()))
    }

    /// Whether another member waits for our part in it and nobody sees to it.
    fn is_wanted(&self, workload: &WorkloadId) -> bool {
        self.copies.is_sought_by(workload, &self.standing.members)
            && !self.followed.contains_key(workload)
            && !self.absent.contains_key(workload)
            && !self.identity.silent
    }
}

/// What is to be said of a member. Its own words are those of its last beat, which is up to 5 s old, and count for the rollout
/// they are about.
fn told(roster: &Roster, now: Timestamp, member: &Member, workload: &WorkloadId, seq: Seq) -> Told {
    Told {
        silence: roster.silence(now, member),
        differs: roster.differences(member),
        cure: roster.cure(member),
        own: roster.voice(member).and_then(|voice| voice.beat.words_of(workload, seq)).cloned(),
    }
}

#[cfg(test)]
mod tests;

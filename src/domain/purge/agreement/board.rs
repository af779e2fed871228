//! The messages on a board, one Redis among those of the group: copies of records, beats, and a reader's position.
//!
//! A board is never the memory: what is on it may be lost, stale or wiped at any moment. Not for what is done about that;
//! see `broker`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::agreement::roster::Heartbeat;
use crate::records::record::{Published, Record};
use kernel::id::{Member, Origin, Seq, WorkloadId};

/// Postings in one call of `Board::post`: at 1 KiB for a record in flight half a megabyte, which Redis takes in milliseconds.
pub const POSTINGS_MAX: usize = 500;

/// How long a board knows that a workload was removed, or that a cluster does not have it. Who has not read it by then
/// learns it when it matters: a member posts `Absent` again whenever another waits for it. Records have no such limit:
/// keys with a time to live are evicted first.
pub const PASSING_TTL: Duration = Duration::from_secs(3_600);

/// A record, or its end, on its way to a board.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Posting {
    /// This is what the ledger holds, or that the cluster does not have the workload.
    Show(Published),
    /// The record of this `seq` was removed at this revision.
    Forget(Seq, u64),
}

impl Posting {
    /// The order of two versions: `seq`, then revision. For the same state, a removal is newer.
    pub fn state(&self) -> (Seq, u64) {
        match self {
            Self::Show(published) => published.state(),
            Self::Forget(seq, revision) => (*seq, *revision),
        }
    }

    /// Whether a board forgets it after [`PASSING_TTL`].
    pub fn passes(&self) -> bool {
        !matches!(self, Self::Show(Published::Record(_)))
    }
}

impl From<Record> for Posting {
    fn from(record: Record) -> Self {
        Self::Show(record.into())
    }
}

/// The outcome of a posting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Posted {
    /// The board's copy is what was posted.
    Current,
    /// The board had a newer state of our own record, from the same ledger, and keeps it: another process of ours wrote it,
    /// or our ledger was set back (`StateRegressed`).
    Newer(Seq, u64),
    /// This one cannot be kept there, in words: too long, or another program has something else in its place. A person has
    /// to mend it; the other postings are not affected.
    Refused(String),
}

/// Where a reader of a board is. The default is the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor(pub BTreeMap<Member, u64>);

/// Workloads whose copies, of all wanted members, are read again in one answer: with ten members at 1 KiB for a record in flight
/// as much as an answer holds.
pub const AGAIN_MAX: usize = 50;

/// Which copies a reader wants. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interest {
    /// The members whose records are read; of others only the beats are. `None`: all members.
    pub members: Option<BTreeSet<Member>>,
    /// Workloads that are read wherever the cursor is, for these members; [`AGAIN_MAX`] at most.
    pub again: BTreeSet<WorkloadId>,
}

/// A post of another member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heard {
    pub member: Member,
    pub workload: WorkloadId,
    pub origin: Origin,
    /// Its record, or that it was removed, and at which state: a removal read on one board proves nothing about a newer
    /// record on another.
    pub said: Posting,
}

/// The new posts on a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct News {
    /// Records of other members that changed since the cursor, for each member the oldest change first. Some may come
    /// again.
    pub heard: Vec<Heard>,
    /// The beats that have not expired, of all members, our own too.
    pub beats: Vec<Heartbeat>,
    /// The beats of the group called `default`, where ours has a derived name and looks for it; `None` where it does not look.
    pub elders: Option<Vec<Heartbeat>>,
    /// Copies that were not believed, in words: a wrong MAC, a body that is no record. Never with their content.
    pub rejected: Vec<String>,
    /// Members whose beat was not believed, and why, in words.
    pub disbelieved: BTreeMap<Member, String>,
    /// The board has lost what we posted, in part or in whole: everything is to be posted again.
    pub lost: bool,
    /// Where to read on.
    pub cursor: Cursor,
    /// There is more to be read at once.
    pub more: bool,
    /// So many of the workloads that were to be read again were, the first ones.
    pub again: usize,
}

//! What travels over a board, one Redis among those of the group: copies of records, beats, and where a reader is.
//!
//! A board is never the memory: what is on it may be lost, stale or wiped at any moment. Not for what is done about that;
//! see `broker`.

use std::collections::BTreeMap;

use crate::domain::id::{Member, Origin, Seq, WorkloadId};
use crate::domain::record::Record;
use crate::domain::roster::Beat;

/// Postings in one call of `Board::post`: at 1 KiB for a record in flight half a megabyte, which Redis takes in milliseconds.
pub const POSTINGS_MAX: usize = 500;

/// A record, or its end, on its way to a board.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Posting {
    /// This is what the ledger holds; a record of phase `Absent` says that the cluster does not have the workload.
    Show(Box<Record>),
    /// The record of this `seq` was removed at this revision.
    Forget(Seq, u64),
}

/// What became of a posting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Posted {
    /// The board's copy is what was posted.
    Current,
    /// The board had a newer state of our own record, from the same ledger, and keeps it: another process of ours wrote it,
    /// or our ledger was set back (`StateRegressed`).
    Newer(Seq, u64),
}

/// Where a reader of a board is. The default is the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor(pub BTreeMap<Member, u64>);

/// A copy of another member's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heard {
    /// Whose it is.
    pub member: Member,
    /// Of which workload.
    pub workload: WorkloadId,
    /// From which ledger.
    pub origin: Origin,
    /// The record; `None` where it was removed.
    pub record: Option<Box<Record>>,
}

/// What is new on a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct News {
    /// Records of other members that changed since the cursor, oldest change first.
    pub heard: Vec<Heard>,
    /// The beats that have not expired, of all members, our own too.
    pub beats: Vec<Beat>,
    /// Copies that were not believed, in words: a wrong MAC, a body that is no record. Never with their content.
    pub rejected: Vec<String>,
    /// The board has lost what we posted, in part or in whole: everything is to be posted again.
    pub lost: bool,
    /// Where to read on.
    pub cursor: Cursor,
    /// There is more to be read at once.
    pub more: bool,
}

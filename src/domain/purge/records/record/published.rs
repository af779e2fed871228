//! The copies of a workload's record that members show each other.

use super::{Phase, Record, Vote};
use kernel::id::{Component, Origin, Seq, Vector};
use kernel::names::image::Version;

/// Sorts [`Published::Absent`] above every record of its `seq`. The first release wrote it, and every board sorts by it.
pub(crate) const ABSENT_REVISION: u64 = u64::MAX;

/// A member's copy of a workload's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Published {
    /// This is what its ledger holds.
    Record(Box<Record>),
    /// Its cluster does not have the workload, and it votes for no rollout up to this `seq` any more. The ledger says the
    /// same by having no record, and a floor that no `seq` of a later one can fall below. Newer than any record with this
    /// number, older than the record of a workload that comes later.
    Absent(Seq),
}

impl Published {
    /// The record, if there is one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Absent(_) => None,
        }
    }

    /// How far the member has counted.
    pub fn seq(&self) -> Seq {
        match self {
            Self::Record(record) => record.seq,
            Self::Absent(seq) => *seq,
        }
    }

    /// Where the member stands, by the ledger `origin`.
    pub fn component(&self, origin: &Origin) -> Component {
        match self {
            Self::Record(record) => record.component(origin),
            Self::Absent(seq) => Component::bare(origin.clone(), *seq),
        }
    }

    /// The order of two copies: `seq`, then revision.
    pub fn state(&self) -> (Seq, u64) {
        match self {
            Self::Record(record) => (record.seq, record.revision),
            Self::Absent(seq) => (*seq, ABSENT_REVISION),
        }
    }

    /// One word for tables and logs: the phase of the record, `off` or `absent`.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::Record(record) if record.off => "off",
            Self::Record(record) => record.phase.name(),
            Self::Absent(_) => "absent",
        }
    }

    /// The images of the newest rollout.
    pub fn version(&self) -> Option<&Version> {
        self.record().map(|record| &record.version)
    }

    /// Whether a rollout is neither complete nor given up.
    pub fn is_rolling(&self) -> bool {
        self.record().is_some_and(|record| record.phase == Phase::Rolling)
    }

    /// See [`Record::seeks`].
    pub fn seeks(&self) -> bool {
        self.record().is_some_and(Record::seeks)
    }

    /// See [`Record::vote`].
    pub fn vote(&self, vector: &Vector) -> Option<&Vote> {
        self.record()?.vote(vector)
    }

    /// See [`Record::kept`].
    pub fn kept(&self, vector: &Vector) -> Option<&Vote> {
        self.record()?.kept(vector)
    }
}

impl From<Record> for Published {
    fn from(record: Record) -> Self {
        Self::Record(Box::new(record))
    }
}

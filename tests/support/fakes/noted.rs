//! What a world writes down of all that is asked of it, for tests to judge.

use domain::distribution::DistributionId;
use domain::id::{InvalidationId, Reference, WorkloadId};
use domain::paths::PathSet;
use domain::readiness::{Standing, standing};
use domain::record::Record;
use domain::workload::Workload;

use super::Millis;

/// One thing that was asked of the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub at: Millis,
    /// The port and its method: `ledger.store`.
    pub call: &'static str,
    /// Whom it was about: a workload, a distribution, a notice.
    pub about: String,
}

/// An invalidation CloudFront has.
#[derive(Clone, Debug)]
pub struct Created {
    /// When it was asked for first.
    pub at: Millis,
    /// The distribution that is purged.
    pub distribution: DistributionId,
    /// The caller's reference, by which CloudFront knows a repetition.
    pub reference: Reference,
    /// What is purged.
    pub paths: PathSet,
    /// CloudFront's own id for it.
    pub id: InvalidationId,
    /// How often its creation was asked for.
    pub calls: u32,
}

/// What a fresh read of a workload showed.
#[derive(Clone, Debug)]
pub struct Read {
    /// When.
    pub at: Millis,
    /// Whose read it was.
    pub workload: WorkloadId,
    /// What it showed; `None` where there was nothing.
    pub sight: Option<Workload>,
}

impl Read {
    /// Whether it showed a rollout that is complete.
    pub fn was_complete(&self) -> bool {
        self.sight.as_ref().is_some_and(|workload| standing(workload, false) == Standing::Complete)
    }
}

/// A write the ledger carried out.
#[derive(Clone, Debug)]
pub struct Written {
    /// When.
    pub at: Millis,
    /// Whose record it is.
    pub workload: WorkloadId,
    /// `None` for a removal.
    pub record: Option<Record>,
}

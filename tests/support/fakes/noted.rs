//! What a world writes down of all that is asked of it, for tests to judge.

use std::collections::BTreeSet;

use kernel::id::{InvalidationId, Reference, WorkloadId};
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;
use kinds::reported::Standing;
use notices::notice::Kind;
use purge::records::record::Record;
use purge::workloads::workload::Workload;

use super::{Millis, World};

/// One thing that was asked of the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
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
    pub paths: PathSet,
    /// CloudFront's own id for it.
    pub id: InvalidationId,
    /// How often its creation was asked for.
    pub calls: u32,
}

/// What a fresh read of a workload showed.
#[derive(Clone, Debug)]
pub struct Read {
    pub at: Millis,
    /// Whose read it was.
    pub workload: WorkloadId,
    /// What it showed; `None` where there was nothing.
    pub sight: Option<Workload>,
}

impl Read {
    /// Whether it showed a rollout that is complete.
    pub fn was_complete(&self) -> bool {
        self.sight.as_ref().is_some_and(|workload| workload.standing(false) == Standing::Complete)
    }
}

/// A write the ledger carried out.
#[derive(Clone, Debug)]
pub struct Written {
    pub at: Millis,
    /// Whose record it is.
    pub workload: WorkloadId,
    /// `None` for a removal.
    pub record: Option<Record>,
}

impl World {
    /// When receivers took deliveries about this workload of this kind.
    pub fn told(&self, name: &str, kind: Kind) -> Vec<Millis> {
        self.taken(name, kind).into_iter().map(|(at, _)| at).collect()
    }

    /// The ids of those deliveries: one that was taken twice has the same.
    pub fn told_ids(&self, name: &str, kind: Kind) -> BTreeSet<String> {
        self.taken(name, kind).into_iter().map(|(_, id)| id).collect()
    }

    fn taken(&self, name: &str, kind: Kind) -> Vec<(Millis, String)> {
        let state = self.state();
        let about = |id: &str| state.notices.values().find(|notice| id == format!("{}/ops", notice.id));
        let matching = state.delivered.iter().filter(|(_, id, _)| {
            about(id).is_some_and(|notice| notice.kind == kind && notice.about.subject().name() == name)
        });
        matching.map(|(at, id, _)| (*at, id.clone())).collect()
    }
}

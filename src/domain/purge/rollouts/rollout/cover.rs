//! Which purge contains which: what a purge of this workload sends for older ones, and what becomes of those when it is
//! made.

use crate::bounds::plan::Plan;
use crate::bounds::tenants::PATHS_SENT_MAX;
use crate::records::record::{Purge, Record, Vote};
use crate::rollouts::rollout::{Rollout, ballot};
use kernel::id::{Reference, Vector};
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// Bytes of the paths of one owed purge; with more, it purges everything. Each distribution's entry holds its own copy.
const SENT_BYTES_MAX: usize = 1024;

impl Rollout {
    /// Chooses the paths of a purge that no member has created yet: those voted for, and those that older purges of this
    /// workload owe for the same distribution. An owed purge always records its paths, because the votes go.
    pub(super) fn absorb(&mut self, vector: &Vector, distribution: &DistributionId, plan: &Plan, say: bool) {
        let Some(draft) = &self.record.draft else { return };
        let Some(vote) = draft.kept(vector) else { return };
        let Some(purge) = vote.purges.listed.get(distribution).filter(|purge| purge.invalidation.is_none()) else {
            return;
        };
        let own = purge.sent.as_ref().unwrap_or(&plan.paths);
        let older = draft.all_kept().filter(|older| older.seq < vote.seq && older.owes());
        let owed = older.filter_map(|older| older.purges.listed.get(distribution)).filter(|purge| purge.is_missing());
        let all = owed
            .filter_map(|purge| purge.sent.as_ref())
            .fold(own.clone(), |all, paths| if all.covers(paths) { all } else { all.union(paths) });
        let all = all.at_most(PATHS_SENT_MAX);
        let all = if bytes(&all) > SENT_BYTES_MAX && (say || all != plan.paths) { PathSet::default() } else { all };
        if (say || all != plan.paths)
            && let Some(purge) = self.record.kept_mut(vector).and_then(|vote| vote.purges.listed.get_mut(distribution))
        {
            purge.sent = Some(all);
        }
    }

    /// A purge for `vector` covers the owed ones of older vectors, if its sent paths contain theirs: they were complete
    /// everywhere before any member could vote for this one. `paths` are the vote's, where they are still known.
    pub(super) fn cover_older(&mut self, vector: &Vector, paths: Option<&PathSet>) {
        let Some(draft) = &mut self.record.draft else { return };
        let Some(made) = draft.kept(vector).cloned() else { return };
        let older = draft.all_kept_mut().filter(|older| older.seq < made.seq && older.closed.is_some());
        let covered: Vec<Reference> = older.flat_map(|older| older.purges.cover(&made.purges, paths)).collect();
        // From now on we follow it instead of retrying it.
        covered.iter().for_each(|reference| self.purges.order_again(reference));
    }

    /// Whether a newer purge of this workload and distribution is on its way that will contain it.
    pub(super) fn is_carried(&self, draft: &Record, vote: &Vote, distribution: &DistributionId, purge: &Purge) -> bool {
        let contains = |sent: &PathSet| purge.sent.as_ref().is_some_and(|owed| sent.covers(owed));
        let carries = |newer: &Vote| {
            let made = newer.purges.listed.get(distribution).filter(|made| made.is_unmade());
            made.is_some_and(|made| match &made.sent {
                Some(sent) => contains(sent),
                None => ballot::plan(&self.ballot.view, &newer.vector).is_some_and(|plan| contains(&plan.paths)),
            })
        };
        purge.is_missing() && draft.all_kept().filter(|newer| newer.seq > vote.seq).any(carries)
    }
}

fn bytes(paths: &PathSet) -> usize {
    paths.iter().map(|path| path.as_str().len()).sum()
}

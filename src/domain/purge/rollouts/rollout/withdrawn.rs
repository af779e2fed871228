//! After an abort: an update was withdrawn, its pods go, and its spec stays as it is.
//!
//! ```text
//! Failed ── its pods may have served ──▶ which version do the pods before have? ──▶ a rollout of that version ──▶ one purge
//!                                                                                     └── tried again: a rollout of the update
//! ```
//!
//! The spec still names what was withdrawn, so a sight does not say what runs: the pods do, by the label that the status calls stable.
//! From then on the record has the version that runs, as always, and beside it the one that was withdrawn. While both stand, a sight
//! counts as one of the pods before ([`as_it_runs`]), to all that judge it: to the barrier, to the vote, and to the other members of a
//! group, for which this is a member that went back. Whatever else the spec says then is news.
//!
//! Not for whether an abort has failed a rollout; that is `observe`'s.

use crate::bounds::policy::Policy;
use crate::records::record::Record;
use crate::rollouts::rollout::news::{as_it_runs, returns};
use crate::rollouts::rollout::sight::Sight;
use crate::rollouts::rollout::{Effect, Rollout};
use crate::workloads::workload::{Workload, recordable};
use kernel::machine::Timestamp;
use kernel::names::image::Version;

impl Rollout {
    /// The sight as it is followed, if it can be, and the question that it needs.
    pub(super) fn followed(
        &mut self,
        now: Timestamp,
        workload: Box<Workload>,
    ) -> (Option<Box<Workload>>, Option<Effect>) {
        let Some(draft) = &self.record.draft else { return (Some(workload), None) };
        if workload.withdrawn.is_some() && workload.withdrawn != draft.withdrawn {
            // It was taken so by a record that another writer has replaced.
            self.sighting.sight = Sight::Missing;
            return (None, self.sighting.look(now));
        }
        let mut seen = Box::new(as_it_runs(draft, &workload, &self.policy).into_owned());
        if !returns(draft, &seen, &self.policy) {
            self.barrier.ask_no_more();
        } else if let Some(back) = self.barrier.running().and_then(|runs| went_back(draft, &seen, runs, &self.policy)) {
            self.barrier.ask_no_more();
            seen = Box::new(back);
        } else if self.barrier.asks_what_runs(now) {
            let question = seen.returned(draft.version.clone());
            return (Some(seen), question.map(|workload| Effect::FindOldPods(Box::new(workload))));
        }
        self.sighting.sight = Sight::Seen(seen.clone());
        (Some(seen), None)
    }

    /// Takes in the last look before a vote. Returns the sight as it is followed.
    pub(super) fn read_afresh(&mut self, now: Timestamp, workload: Box<Workload>) -> Box<Workload> {
        self.sighting.read(now, workload.clone(), &mut self.record.draft);
        let Some(draft) = &self.record.draft else { return workload };
        Box::new(as_it_runs(draft, &workload, &self.policy).into_owned())
    }
}

/// The sight of an aborted update as one of the pods before, which are of the version `runs`. They may have containers that are in no
/// template, so a version that the record knows is taken whole where they have it.
fn went_back(draft: &Record, workload: &Workload, runs: &Version, policy: &Policy) -> Option<Workload> {
    let template = workload.version.as_ref().ok()?;
    let digests = policy.version.same_digest_is_same;
    // Pods do not say what else counts.
    let images = |version: &Version| version.clone().with(None);
    let named = images(&runs.limited_to(template));
    let is_it = |known: &&Version| {
        !known.same_content(template, digests)
            && runs.limited_to(known).with(None).same_content(&images(known), digests)
            && images(known).limited_to(template).same_content(&named, digests)
    };
    let known = [draft.settled(), draft.from.as_ref()].into_iter().flatten().find(is_it);
    let seen = || if named.iter().len() == 0 { runs.clone() } else { named.clone() };
    workload.returned(recordable(known.cloned().unwrap_or_else(seen)).ok()?)
}

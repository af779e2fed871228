//! Whether a record names a distribution tenant anywhere. A release that knows none cannot read its id, and must refuse the whole record by
//! its form rather than take it for damaged.
//!
//! Not for what is done with it: it is purged as a distribution is.

use std::iter::once;

use super::{LastSite, Record, Vote};
use kernel::names::distribution::DistributionId;

impl Record {
    pub(in crate::records) fn names_distribution_tenant(&self) -> bool {
        let of_vote = |vote: &Vote| {
            let listed = vote.purges.listed.keys().chain(vote.purges.unlisted.iter().map(|unlisted| &unlisted.through));
            listed.chain(&vote.plan.distributions).any(DistributionId::is_of_distribution_tenant)
        };
        let mentioned = self.untold.iter().filter_map(|notice| notice.about.mentions());
        let mentioned = mentioned.flat_map(|mentions| &mentions.purges).map(|purge| &purge.distribution);
        let looked_at = self.looks.values().map(|proving| &proving.distribution);
        let ended = self.history.iter().flat_map(|closed| &closed.purges).map(|(id, _)| id);
        let sites = once(self.site.as_ref()).flatten().filter_map(LastSite::distributions).flatten();
        let others = ended.chain(looked_at).chain(mentioned).chain(sites);
        self.all_kept().any(of_vote) || others.into_iter().any(DistributionId::is_of_distribution_tenant)
    }
}

//! What the record keeps of the workload's site: whether a failed rollout had one (decision 65).
//!
//! Not for how a site is found; that is `domain::site`. Not for the hosts of a vote; those are in the vote.

use crate::host::Host;
use crate::machine::Timestamp;
use crate::record::{LastSite, Phase, Record};
use crate::rollout::{Effect, FoundSite, Rollout};
use crate::tenants::Tenants;
use crate::workload::Workload;

/// How often the site of a failed rollout is looked for while that fails. Then it counts as a site that cannot be read, which is
/// not the same as none; the rollout has ended, and nothing waits for the answer.
const TRIES_MAX: u32 = 3;

impl Rollout {
    /// A rollout that failed is an alarm only if it had a site, so that is looked for.
    pub(super) fn judge_failure(&mut self, now: Timestamp) -> Option<Effect> {
        if !self.wants_site_of_failure() {
            return None;
        }
        let (seq, workload) = (self.record.draft.as_ref()?.seq, self.workload().cloned()?);
        let Some(found) = self.site.found_for(seq) else {
            return self.site.find(now, seq, &workload, &self.policy.tenants);
        };
        let site = of(found, &workload, &self.policy.tenants).unwrap_or(LastSite::Nothing(seq));
        self.record.draft.iter_mut().for_each(|draft| draft.site = Some(site.clone()));
        self.site.forget();
        None
    }

    /// Whether the present rollout failed, nothing is known yet of what serves it, and that may be found.
    pub(super) fn wants_site_of_failure(&self) -> bool {
        let unknown = |draft: &&Record| {
            let ended = matches!(draft.phase, Phase::Failed(_)) && draft.closed >= draft.seq;
            ended && draft.last_site().is_none_or(|site| matches!(site, LastSite::Nothing(seq) if seq < draft.seq))
        };
        let seen = self.workload().is_some_and(|workload| !workload.tuning.disabled);
        seen && self.site.call().failures() < TRIES_MAX && self.record.draft.as_ref().filter(unknown).is_some()
    }
}

/// What a record keeps of a site; `None` where nothing serves the workload. What serves it by hosts that its namespace may not
/// purge is a site too.
fn of(found: &FoundSite, workload: &Workload, tenants: &Tenants) -> Option<LastSite> {
    let namespace = &workload.id.namespace;
    let named = workload.tuning.distributions.iter().flatten();
    let named = named.filter(|id| tenants.allows_distribution(namespace, id));
    let whole: Vec<&Host> = found.hosts.iter().filter(|host| !found.narrow.contains_key(*host)).collect();
    let hosts = LastSite::of_hosts(&whole).filter(|_| found.origins.is_empty());
    let serves = !found.hosts.is_empty() || !found.origins.is_empty() || !found.refused.is_empty();
    LastSite::of_distributions(named).or_else(|| serves.then(|| hosts.unwrap_or(LastSite::Many)))
}

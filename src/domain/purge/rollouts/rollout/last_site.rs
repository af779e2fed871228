//! The site that the record keeps: whether a failed rollout had one (decision 65), and what to purge when all of it is
//! gone, which an Ingress is for a moment while it is replaced.
//!
//! Not for how a site is found; that is `crate::site`. Not for the hosts of a vote; those are in the vote.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::bounds::policy::{OnMissing, Policy};
use crate::bounds::tenants::Tenants;
use crate::records::record::{LastSite, Phase, Record};
use crate::rollouts::rollout::{Effect, FoundSite, Rollout, words};
use crate::workloads::workload::Workload;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::text;

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
            return self.site.find(now, seq, &workload, BTreeSet::new(), &self.policy.tenants);
        };
        let tenants = &self.policy.tenants;
        let site = self.record.draft.as_ref().map(|draft| seen(found, draft, &workload, tenants));
        self.record.draft.iter_mut().for_each(|draft| draft.site.clone_from(&site));
        self.site.forget();
        None
    }

    /// The search for hosts was answered.
    pub(super) fn site_found(&mut self, now: Timestamp, site: FoundSite) {
        let draft = self.record.draft.as_ref();
        let (seq, last) = (draft.map(|draft| draft.seq), draft.and_then(Record::last_site));
        let is_named = self.workload().is_some_and(|workload| workload.tuning.names_its_site());
        let is_lost = has_lost(&site, last.as_ref());
        self.site.answered(now, site, (seq, is_named), (is_lost, self.policy.missing_timeout));
    }

    /// The wait while hosts are lost, in words.
    pub(super) fn loss_in_words(&self, now: Timestamp) -> Option<String> {
        let draft = self.record.draft.as_ref()?;
        let since =
            self.site.missing_since(draft.seq).filter(|_| draft.awaits_vote() && self.site.found().is_none())?;
        let had =
            draft.last_site().and_then(|last| last.words()).map_or(String::new(), |had| format!(", and it had {had}"));
        let then = match self.policy.on_missing {
            OnMissing::LastKnown => "purged by that",
            OnMissing::Skip => "closed without a purge",
        };
        Some(format!(
            "complete; nothing leads to it for {} now{had}; its hosts are looked for again, and after {} it is {then}",
            text::duration(now.since(since)),
            text::duration(self.policy.missing_timeout),
        ))
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

/// Whether something led to the workload, nothing does, and nothing else has its place.
fn has_lost(found: &FoundSite, last: Option<&LastSite>) -> bool {
    let is_empty = found.hosts.is_empty() && found.origins.is_empty() && found.refused.is_empty();
    is_empty
        && match last {
            Some(LastSite::Hosts(_)) => !found.lost.hosts.is_empty(),
            Some(LastSite::Distributions(_) | LastSite::Many) => true,
            Some(LastSite::Nothing(_)) | None => false,
        }
}

/// The site to vote with, and distributions beside it: what was found, and of what is lost what is to be purged all the same.
pub(super) fn to_vote<'a>(
    found: &'a FoundSite,
    last: Option<&LastSite>,
    workload: &Workload,
    policy: &Policy,
) -> (Cow<'a, FoundSite>, BTreeSet<DistributionId>) {
    if workload.tuning.names_its_site() || policy.on_missing == OnMissing::Skip {
        return (Cow::Borrowed(found), BTreeSet::new());
    }
    if !found.lost.hosts.is_empty() {
        let mut site = found.clone();
        site.except.extend(found.lost.except.iter().filter(|name| !found.hosts.contains(*name)).cloned());
        site.hosts.extend(found.lost.hosts.iter().cloned());
        return (Cow::Owned(site), BTreeSet::new());
    }
    let allowed = |id: &&DistributionId| policy.tenants.allows_distribution(&workload.id.namespace, id);
    let distributions = match last {
        Some(LastSite::Distributions(ids)) if has_lost(found, last) => ids.iter().filter(allowed).cloned().collect(),
        Some(LastSite::Distributions(_) | LastSite::Hosts(_) | LastSite::Many | LastSite::Nothing(_)) | None => {
            BTreeSet::new()
        }
    };
    (Cow::Borrowed(found), distributions)
}

/// The reason shown for a site that is lost as a whole, and what follows from it.
pub(super) fn lost(found: &FoundSite, last: Option<&LastSite>, workload: &Workload, policy: &Policy) -> Option<String> {
    let last = last.filter(|_| !workload.tuning.names_its_site() && has_lost(found, last))?;
    let (site, distributions) = to_vote(found, Some(last), workload, policy);
    let purged = site.hosts.iter().map(ToString::to_string).chain(distributions.iter().map(ToString::to_string));
    let purged = words::some(purged, site.hosts.len() + distributions.len());
    let follows = match policy.on_missing {
        OnMissing::Skip => "not purged, because site.missing is \"skip\"".to_owned(),
        OnMissing::LastKnown if purged.is_empty() => "not purged, because nothing of that may be".to_owned(),
        OnMissing::LastKnown => format!("purged by what is last known: {purged}"),
    };
    let elsewhere = found.lost.elsewhere.iter().map(|(host, by)| format!("; {host} is served by {by} now"));
    Some(format!(
        "no Ingress, route or annotation leads to it any more, for {} at least; it had {}; {follows}{}. If that is meant, nothing \
         has to be done: it is told once",
        text::duration(policy.missing_timeout),
        last.words().unwrap_or_default(),
        elsewhere.collect::<String>(),
    ))
}

/// The part of a found site that the record keeps.
pub(super) fn seen(found: &FoundSite, draft: &Record, workload: &Workload, tenants: &Tenants) -> LastSite {
    match (of(found, workload, tenants), draft.last_site()) {
        // Those of its last purge, until the next one.
        (Some(LastSite::Many), Some(last @ LastSite::Distributions(_))) => last,
        (Some(site), _) => site,
        (None, _) => LastSite::Nothing(draft.seq),
    }
}

/// The part of a site that a record keeps; `None` where nothing serves the workload. A site of hosts that its namespace
/// may not purge is a site too.
fn of(found: &FoundSite, workload: &Workload, tenants: &Tenants) -> Option<LastSite> {
    let namespace = &workload.id.namespace;
    let named = workload.tuning.distributions.iter().flatten();
    let named = named.filter(|id| tenants.allows_distribution(namespace, id));
    let whole: Vec<&Host> = found.hosts.iter().filter(|host| !found.narrow.contains_key(*host)).collect();
    let hosts = LastSite::of_hosts(&whole).filter(|_| found.origins.is_empty());
    let serves = !found.hosts.is_empty() || !found.origins.is_empty() || !found.refused.is_empty();
    LastSite::of_distributions(named).or_else(|| serves.then(|| hosts.unwrap_or(LastSite::Many)))
}

//! The site of the rollout: the hosts of its vote, found just before the vote, so that they are never older than a back-off. And the
//! last one, which the record keeps: whether a failed rollout had one (decision 65), and what to purge when all of it is gone, which
//! an Ingress is for a moment while it is replaced.
//!
//! Not for how a site is found; that is `crate::site`. Not for the hosts of a vote; those are in the vote.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::bounds::policy::{OnMissing, Policy};
use crate::bounds::tenants::{Tenancy, Tenants};
use crate::records::record::{LastSite, Lead, Leads, Phase, Record};
use crate::rollouts::rollout::{Effect, Rollout, words};
use crate::site::{Age, Lost, RouteClaim, Site as Found, own};
use crate::workloads::workload::Workload;
use kernel::call::Call;
use kernel::id::Seq;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use kernel::text;

/// How often hosts that are lost are looked for again: sixty listings of one namespace in the default time, shared by all that look
/// there at once.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Most refusals of a site that a notice names: an Event has 1 KiB.
const REFUSED_TOLD_MAX: usize = 5;

/// How often the site of a failed rollout is looked for while that fails. Then it counts as a site that cannot be read, which is
/// not the same as none; the rollout has ended, and nothing waits for the answer.
const TRIES_MAX: u32 = 3;

/// The hosts of a workload, found in this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundSite {
    pub hosts: BTreeSet<Host>,
    /// Load balancer names, of rules that name no host.
    pub origins: BTreeSet<String>,
    /// Names that lead elsewhere, although a wildcard among the hosts covers them or the load balancers get requests
    /// for them.
    pub except: BTreeSet<Host>,
    /// Of these hosts, no more than these paths.
    pub narrow: BTreeMap<Host, PathSet>,
    /// Of these hosts, no more than these paths lead to the workload; sought only where they are what is purged.
    pub routed: BTreeMap<Host, PathSet>,
    /// The first hosts and distributions of it that its namespace does not own, and why, in words.
    pub refused: Vec<String>,
    /// The fate of hosts that the workload had, and that are not among these.
    pub lost: Lost,
}

impl FoundSite {
    /// The part of a site that counts. For a tenant's workload, only what its namespace owns.
    pub fn judged(site: Found, workload: &Workload, claims: &[RouteClaim], tenants: &Tenants) -> Self {
        if tenants.default == Tenancy::Trusted {
            let (hosts, origins, except) = (site.hosts.into_keys().collect(), site.origins, site.except);
            return Self { hosts, origins, except, ..Self::default() };
        }
        let owned = own(&site, &workload.id.namespace, claims, tenants);
        let named = workload.tuning.distributions.iter().flatten();
        let named = named.filter(|id| !tenants.allows_distribution(&workload.id.namespace, id));
        let kind =
            |id: &DistributionId| if id.is_of_distribution_tenant() { "distribution tenant" } else { "distribution" };
        let named =
            named.map(|id| format!("{} {id}: only the operator can give one by name, by tenants.allow", kind(id)));
        let hosts = owned.refused.iter().map(|(host, why)| format!("{host}: {why}"));
        let mut refused: Vec<String> = named.chain(hosts).collect();
        let more = refused.len().saturating_sub(REFUSED_TOLD_MAX);
        refused.truncate(REFUSED_TOLD_MAX);
        if more > 0 {
            refused.push(format!("and {more} more"));
        }
        Self { hosts: owned.hosts, except: owned.except, narrow: owned.narrow, refused, ..Self::default() }
    }
}

/// The site, and the search for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Site {
    found: Option<FoundSite>,
    /// How old the facts may be. Fresh ones after recent ones gave no host: facts from before the rollout must not close it
    /// for want of hosts.
    age: Age,
    call: Call,
    /// The rollout whose hosts are lost, and since when we know.
    missing: Option<(Seq, Timestamp)>,
    /// The rollout whose site was asked for: an answer about another one says nothing about this one's hosts.
    seq: Seq,
}

impl Site {
    /// The found site, while it counts.
    pub(super) fn found(&self) -> Option<&FoundSite> {
        self.found.as_ref()
    }

    /// The same, if it was found for this rollout.
    pub(super) fn found_for(&self, seq: Seq) -> Option<&FoundSite> {
        self.found().filter(|_| self.seq == seq)
    }

    /// The search for it.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// Since when the hosts of the rollout `seq` are known to be lost.
    pub(super) fn missing_since(&self, seq: Seq) -> Option<Timestamp> {
        self.missing.filter(|(of, _)| *of == seq).map(|(_, since)| since)
    }

    /// Starts the search for the rollout `seq`, unless it is under way. A site that the owner names and may name needs
    /// no search in the cluster. The workload `had` these hosts.
    pub(super) fn find(
        &mut self,
        now: Timestamp,
        seq: Seq,
        workload: &Workload,
        had: BTreeSet<Host>,
        tenants: &Tenants,
    ) -> Option<Effect> {
        let is_named = tenants.need_no_search(workload);
        self.call.is_due(now).then(|| {
            self.call.asked();
            self.seq = seq;
            Effect::FindSite(Box::new(workload.clone()), (!is_named).then_some(self.age), had)
        })
    }

    /// It was found; `seq` is the present rollout. If nothing leads to the workload and it does not name its site itself, we
    /// search once more, past all caches. If something did (`is_lost`), we search again for `patience`: an Ingress that is replaced is
    /// gone for a moment.
    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        site: FoundSite,
        (seq, is_named): (Option<Seq>, bool),
        (is_lost, patience): (bool, Duration),
    ) {
        self.call.answered();
        self.found = None;
        if seq != Some(self.seq) {
            self.age = Age::Recent;
            return;
        }
        let is_empty = !is_named && site.hosts.is_empty() && site.origins.is_empty();
        if is_empty && self.age == Age::Recent {
            self.age = Age::Fresh;
            return;
        }
        self.age = Age::Recent;
        if is_empty && is_lost {
            let since = self.missing_since(self.seq).unwrap_or(now);
            self.missing = Some((self.seq, since));
            if now.since(since) < patience {
                self.age = Age::Fresh;
                self.call.answered_until(now.after(LOOK_AGAIN_AFTER).min(since.after(patience)));
                return;
            }
        } else {
            self.missing = None;
        }
        self.found = Some(site);
    }

    /// It was not found, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        self.call.failed(again, why);
    }

    /// Its hosts may have changed by the next vote.
    pub(super) fn forget(&mut self) {
        self.found = None;
    }

    /// Ends a pause that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }
}

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
        self.site.answered(now, site, (seq, is_named), (is_lost, self.policy.missing.timeout));
    }

    /// The wait while hosts are lost, in words.
    pub(super) fn loss_in_words(&self, now: Timestamp) -> Option<String> {
        let draft = self.record.draft.as_ref()?;
        let since =
            self.site.missing_since(draft.seq).filter(|_| draft.awaits_vote() && self.site.found().is_none())?;
        let had =
            draft.last_site().and_then(|last| last.words()).map_or(String::new(), |had| format!(", and it had {had}"));
        let then = match self.policy.missing.then {
            OnMissing::LastKnown => "purged by that",
            OnMissing::Skip => "closed without a purge",
        };
        Some(format!(
            "complete; nothing leads to it for {} now{had}; its hosts are looked for again, and after {} it is {then}",
            text::duration(now.since(since)),
            text::duration(self.policy.missing.timeout),
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

/// What is remembered to lead to a workload that is voted for: what does, and what did. What the owner names is not looked at again.
pub(super) fn led(found: &FoundSite, draft: &Record, workload: &Workload) -> Leads {
    let names = found.hosts.iter().map(Host::to_string).chain(found.origins.iter().cloned());
    let found = names.filter(|_| !workload.tuning.names_its_site()).map(|name| Lead::of(&name));
    draft.leads.iter().chain(found).collect()
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
    if workload.tuning.names_its_site() || policy.missing.then == OnMissing::Skip {
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
    let follows = match policy.missing.then {
        OnMissing::Skip => "not purged, because site.missing is \"skip\"".to_owned(),
        OnMissing::LastKnown if purged.is_empty() => "not purged, because nothing of that may be".to_owned(),
        OnMissing::LastKnown => format!("purged by what is last known: {purged}"),
    };
    let elsewhere = found.lost.elsewhere.iter().map(|(host, by)| format!("; {host} is served by {by} now"));
    Some(format!(
        "no Ingress, route or annotation leads to it any more, for {} at least; it had {}; {follows}{}. If that is meant, nothing \
         has to be done: it is told once",
        text::duration(policy.missing.timeout),
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

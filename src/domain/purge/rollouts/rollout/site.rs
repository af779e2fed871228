//! The site of the rollout: the hosts of its vote, found just before the vote, so that they are never older than a back-off.
//!
//! Not for how they are found; that is `crate::site`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::bounds::tenants::{Tenancy, Tenants};
use crate::rollouts::rollout::Effect;
use crate::site::{Age, Lost, RouteClaim, Site as Found, own};
use crate::workloads::workload::Workload;
use kernel::call::Call;
use kernel::id::Seq;
use kernel::machine::Timestamp;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;

/// How often hosts that are lost are looked for again: sixty listings of one namespace in the default time, shared by all that look
/// there at once.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Most refusals of a site that a notice names: an Event has 1 KiB.
const REFUSED_TOLD_MAX: usize = 5;

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
        let named =
            named.map(|id| format!("distribution {id}: only the operator can give one by name, by tenants.allow"));
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

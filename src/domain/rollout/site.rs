//! The site of the rollout: the hosts that it is voted with, found just before the vote, so that they are never older than a
//! back-off.
//!
//! Not for how they are found; that is `domain::site`.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::Call;
use crate::host::Host;
use crate::id::Seq;
use crate::machine::Timestamp;
use crate::paths::PathSet;
use crate::rollout::Effect;
use crate::site::Age;
use crate::workload::Workload;

/// The hosts of a workload, found in this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundSite {
    /// Its hosts.
    pub hosts: BTreeSet<Host>,
    /// Load balancer names, of rules that name no host.
    pub origins: BTreeSet<String>,
    /// Names that lead elsewhere, though a wildcard among the hosts covers them or the load balancers are asked for them.
    pub except: BTreeSet<Host>,
    /// Of these hosts, no more than these paths.
    pub narrow: BTreeMap<Host, PathSet>,
    /// What it is reached by that is not its namespace's own, and why, in words; the first few.
    pub refused: Vec<String>,
}

/// The site, and the search for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Site {
    found: Option<FoundSite>,
    /// How old the facts may be from which the site is found. Fresh after nothing was found in recent ones: a rollout is not
    /// closed for want of hosts by what was known before it.
    age: Age,
    call: Call,
    /// The rollout whose site was asked for: an answer about another one says nothing about this one's hosts.
    seq: Seq,
}

impl Site {
    /// What was found, while that counts.
    pub(super) fn found(&self) -> Option<&FoundSite> {
        self.found.as_ref()
    }

    /// The search for it.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// Has it found for the rollout `seq`, unless that is under way.
    pub(super) fn find(&mut self, now: Timestamp, seq: Seq, workload: &Workload) -> Option<Effect> {
        self.call.is_due(now).then(|| {
            self.call.asked();
            self.seq = seq;
            Effect::FindSite(Box::new(workload.clone()), self.age)
        })
    }

    /// Here it is; `seq` is the present rollout. If nothing leads to the workload and it does not name its site itself, it is
    /// looked for once more, past all that is kept.
    pub(super) fn answered(&mut self, site: FoundSite, seq: Option<Seq>, is_named: bool) {
        self.call.answered();
        let found = Some(site).filter(|_| seq == Some(self.seq));
        let is_empty = found.as_ref().is_some_and(|site| site.hosts.is_empty() && site.origins.is_empty());
        let doubtful = is_empty && !is_named && self.age == Age::Recent;
        self.age = if doubtful { Age::Fresh } else { Age::Recent };
        self.found = found.filter(|_| !doubtful);
    }

    /// It was not found, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        self.call.failed(again, why);
    }

    /// By the next vote, its hosts may be others.
    pub(super) fn forget(&mut self) {
        self.found = None;
    }

    /// Ends a rest that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }
}

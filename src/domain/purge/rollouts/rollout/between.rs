//! The caches between, before a vote and before a further purge: nothing at the edge is renewed from a cache that still has the old version.
//!
//! ```text
//! site ──▶ Clearing ──every cache is done, or its bound has passed (told)──▶ last look ──▶ vote
//!             ▲   └── it took long: the site is found once more
//!             └────── another vector, request, host or path: asked anew
//! ```
//!
//! Nothing of it is durable: a later life asks again, and a cache that is purged twice is none the worse. Its bound is one for all that is
//! asked between two votes, so neither versions nor hosts that change for ever keep a vote from being cast. Where no cache is concerned, the
//! stage does not exist.
//!
//! Not for what is asked, nor for when a cache is done; that is [`crate::caches`].

use std::collections::BTreeSet;
use std::time::Duration;

use crate::bounds::policy::Policy;
use crate::caches::demand::{Demand, Scope, demands};
use crate::records::record::ByHost;
use crate::rollouts::rollout::clearing::{Before, Clearing};
use crate::rollouts::rollout::vote::routes;
use crate::rollouts::rollout::words::short;
use crate::rollouts::rollout::{Effect, FoundSite, Rollout, site};
use kernel::id::{Reference, Vector};
use kernel::machine::Timestamp;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use notices::notice::Kind;

/// A site that was found so long ago is found once more before the vote: its hosts are those of the purge.
const SITE_STAYS: Duration = Duration::from_secs(5);

/// What the vote waits for.
pub(super) enum Cleared {
    /// For nothing.
    All,
    /// For answers, the first of which these ask for.
    Waits(Vec<Effect>),
    /// For the site, which was found long ago.
    Outdated,
}

impl FoundSite {
    /// The part of it that caches are asked for: of the hosts in `routed` no more than those paths.
    pub fn scope(&self, paths: &PathSet, routed: &ByHost) -> Scope {
        let of = |host: &Host| {
            let paths = routed.get(host).unwrap_or(paths);
            match self.narrow.get(host) {
                // Which paths a tag selects is not known, so of tags all that is its own goes.
                Some(narrow) if paths.has_tags() => Some(narrow.clone()),
                Some(narrow) => paths.intersection(narrow),
                None => Some(paths.clone()),
            }
        };
        Scope {
            hosts: self.hosts.iter().filter_map(|host| Some((host.clone(), of(host)?))).collect(),
            except: self.except.clone(),
            of_any: (!self.origins.is_empty()).then(|| paths.clone()),
        }
    }
}

impl Rollout {
    /// Asks the caches between before a vote for `vector`.
    pub(super) fn clear_caches(&mut self, now: Timestamp, vector: &Vector) -> Cleared {
        let Some((of, demands)) = self.demanded(vector) else { return Cleared::All };
        if demands.is_empty() {
            self.ballot.caches.put_off(now);
            return Cleared::All;
        }
        let caches = &mut self.ballot.caches;
        if caches.vote.as_ref().is_none_or(|clearing| !clearing.is_of(&of, &demands)) {
            caches.put_off(now);
        }
        let bound = demands.iter().map(|demand| demand.cache.timeout).max().unwrap_or_default();
        caches.forget_spent(now, bound);
        let clearing = caches.vote.get_or_insert_with(|| Clearing::new(of, now, &demands));
        let had_ended = clearing.ended.is_some();
        let effects = clearing.go_on(now, caches.spent, &mut caches.asked);
        if clearing.ended.is_none() {
            return Cleared::Waits(effects);
        }
        let took = clearing.took(now);
        let is_outdated = took >= SITE_STAYS && took.saturating_add(caches.spent) < bound;
        let again = is_outdated && !std::mem::replace(&mut clearing.refound, true);
        let left = if had_ended { Vec::new() } else { clearing.left() };
        self.tell_of_caches(now, &left);
        if again {
            self.site.forget();
            return Cleared::Outdated;
        }
        Cleared::All
    }

    /// What a vote for `vector` asks of caches, by the site that was found.
    fn demanded(&self, vector: &Vector) -> Option<(Before, Vec<Demand>)> {
        if self.policy.caches.is_empty() {
            return None;
        }
        let (draft, workload, found) = (self.record.draft.as_ref()?, self.workload()?, self.site.found()?);
        let then = self.passed_then(draft, vector);
        let of = then.as_ref().unwrap_or(draft);
        let (paths, routed, _) =
            routes::to_vote((draft, of), found, workload, (&self.ballot.view, vector), &self.policy);
        let (site, _) = site::to_vote(found, draft.last_site().as_ref(), workload, &self.policy);
        let of = Before::Vote(vector.clone(), draft.requested_at.clone());
        Some((of, demands(&self.policy.caches, &site.scope(&paths, &routed))))
    }

    /// Asks the caches between before further purges. Returns those that need not wait any longer.
    pub(super) fn clear_caches_again(
        &mut self,
        now: Timestamp,
        due: &[(Reference, BTreeSet<Host>, PathSet)],
        effects: &mut Vec<Effect>,
    ) -> BTreeSet<Reference> {
        self.ballot.caches.again.retain(|reference, _| due.iter().any(|(due, ..)| due == reference));
        let mut ready = BTreeSet::new();
        for (reference, hosts, paths) in due {
            let demands = again_of(&self.policy, hosts, paths);
            let of = Before::Again(reference.clone());
            let caches = &mut self.ballot.caches;
            if demands.is_empty() {
                ready.insert(reference.clone());
                continue;
            }
            let begin = || Clearing::new(of.clone(), now, &demands);
            let clearing = caches.again.entry(reference.clone()).or_insert_with(begin);
            if !clearing.is_of(&of, &demands) {
                clearing.asking = begin().asking;
            }
            let had_ended = clearing.ended.is_some();
            effects.extend(clearing.go_on(now, Duration::ZERO, &mut caches.asked));
            if clearing.ended.is_some() {
                let left = if had_ended { Vec::new() } else { clearing.left() };
                self.tell_of_caches_again(now, reference, &left);
                ready.insert(reference.clone());
            }
        }
        ready
    }

    /// That a purge goes on without some caches is told, and remembered with the rollout.
    fn tell_of_caches(&mut self, now: Timestamp, left: &[String]) {
        if left.is_empty() {
            return;
        }
        let left = left.join("; ");
        if let Some(draft) = self.record.draft.as_mut() {
            let beside = if draft.remark.is_empty() { String::new() } else { format!("{}; ", draft.remark) };
            draft.remark = short(&format!("{beside}went on without caches: {left}")).to_owned();
        }
        self.announce(now, Kind::WorkloadFaulty, message(&left));
    }

    /// The same before a further purge. The rollout that it belongs to may have ended long ago, so the present one is not about it.
    fn tell_of_caches_again(&mut self, now: Timestamp, again: &Reference, left: &[String]) {
        if left.is_empty() {
            return;
        }
        let of = self.record.draft.as_ref().and_then(|draft| draft.look_of_again(again));
        let Some((first, round)) = of.map(|(first, round)| (first.clone(), round)) else { return };
        let detail = format!("again {round}/caches");
        self.tell_of_look(now, &first, Kind::WorkloadFaulty, &detail, message(&left.join("; ")));
    }
}

fn message(left: &str) -> String {
    format!(
        "caches between are not purged as a whole: {left}. It goes on; what they still have may bring the old version back to \
         the edge. See whether allclear reaches their pods (NetworkPolicy), and what [[cache]] says"
    )
}

fn again_of(policy: &Policy, hosts: &BTreeSet<Host>, paths: &PathSet) -> Vec<Demand> {
    demands(&policy.caches, &Scope::of(hosts.iter().cloned(), paths))
}

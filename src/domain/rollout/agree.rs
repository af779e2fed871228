//! From complete to purged: the vote, what the group decides, the purges and the end of a rollout.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::distribution::DistributionId;
use crate::domain::group::{self, Decision, Fate, Plan, Verdict, View};
use crate::domain::id::{Vector, group_rollout_id, purge_reference};
use crate::domain::machine::Timestamp;
use crate::domain::notice::Kind;
use crate::domain::paths::PathSet;
use crate::domain::policy::Policy;
use crate::domain::purge::Order;
use crate::domain::readiness::{Standing, standing};
use crate::domain::record::{Change, Edge, Outcome, Purge, PurgeState, Record, VOTE_HOST_BYTES_MAX, VOTES_MAX, Vote};
use crate::domain::record_codec;
use crate::domain::rollout::finish::fitting;
use crate::domain::rollout::observe::news;
use crate::domain::rollout::{Effect, FoundSite, Rollout};
use crate::domain::workload::Workload;

impl Rollout {
    /// What follows from the group's records: a candidate to re-check, a vector decided or dead, purges to go on with.
    pub(super) fn agree(&mut self, now: Timestamp) -> Vec<Effect> {
        if !self.view_is_current() {
            return Vec::new();
        }
        let mut effects: Vec<Effect> = self.approach_vote(now).into_iter().collect();
        for vote in self.durable.iter().flat_map(|record| record.votes.clone()).collect::<Vec<_>>() {
            match group::fate(&self.view, &vote.vector, &self.policy) {
                Fate::Open(_) => {}
                Fate::Dead(member, reason) => {
                    self.finish(now, &vote.vector, Outcome::Dead, &format!("{member}: {reason}"));
                }
                Fate::Decided(Decision::Close(outcome)) => self.finish(now, &vote.vector, outcome, ""),
                Fate::Decided(Decision::Execute(plan)) => effects.extend(self.execute(now, &vote.vector, plan)),
            }
        }
        effects
    }

    /// Takes in what the group knows. Answers may overtake each other: one that knows less of ourselves than another before
    /// it would leave us waiting for an answer that has come already.
    pub(super) fn view_changed(&mut self, view: View) {
        let own = |view: &View| {
            let known = view.members.get(&self.identity.member).and_then(Option::as_ref);
            known.map_or(0, |known| known.record.revision)
        };
        if own(&view) >= own(&self.view) || own(&view) == self.durable.as_ref().map_or(0, |record| record.revision) {
            self.view = view;
        }
    }

    /// Whether the view contains our own record as the ledger has it: what others may have seen of us.
    fn view_is_current(&self) -> bool {
        let own = self.view.members.get(&self.identity.member).and_then(Option::as_ref);
        self.durable.is_some() && own.map(|known| &known.record) == self.durable.as_ref()
    }

    /// The steps before a vote: find the site, then look at our own workload once more (GA-4).
    fn approach_vote(&mut self, now: Timestamp) -> Option<Effect> {
        let record = self.durable.as_ref().filter(|record| record.awaits_vote() && record.votes.len() < VOTES_MAX)?;
        if self.draft.as_ref().is_none_or(|draft| draft.seq != record.seq || !draft.awaits_vote()) {
            return None;
        }
        if self.workload().is_none_or(|workload| workload.tuning.disabled) {
            return None;
        }
        let Verdict::Candidate(vector) = group::judge(&self.view, same_version) else {
            // When the others are as far, its hosts may be others.
            self.site = None;
            return None;
        };
        if !self.recheck.is_due(now) {
            return None;
        }
        // Found just before the look, so that what is voted with is never older than a back-off.
        if self.site.is_none() {
            let workload = self.workload().cloned()?;
            return self.site_ask.is_due(now).then(|| {
                self.site_ask.asked();
                self.site_of = record.seq;
                Effect::FindSite(Box::new(workload))
            });
        }
        self.recheck.asked();
        Some(Effect::Recheck(vector))
    }

    /// The fresh look before a vote came back. It counts only if the group still stands where it stood.
    pub(super) fn rechecked(&mut self, now: Timestamp, vector: &Vector, workload: Option<Box<Workload>>) {
        let key = self.key();
        if !self.recheck.is_asked() {
            // It was asked for in an earlier life.
            return;
        }
        if self.recheck.is_outdated() {
            self.recheck.repeat(now, &key);
            return;
        }
        let Some(workload) = workload else {
            self.recheck.repeat(now, &key);
            // To be confirmed by a look, as when the watch says so.
            self.sight = super::Sight::Missing;
            return;
        };
        self.see(workload.clone());
        let policy = &self.policy;
        let still = group::judge(&self.view, same_version) == Verdict::Candidate(vector.clone());
        let confirmed = self.draft.as_ref().is_some_and(|draft| {
            draft.awaits_vote()
                && !workload.tuning.disabled
                && workload.version.as_ref().is_ok_and(|version| news(draft, &workload, version, policy).is_none())
                && standing(&workload, policy.zero_is_complete) == Standing::Complete
        });
        let own = group::own_seq(vector, &self.identity.member, &self.identity.origin);
        match (&mut self.draft, &self.site) {
            (Some(draft), Some(site)) if still && confirmed && own == Some(draft.seq) => {
                let mut voted = draft.clone();
                voted.votes.push(vote(draft, vector, &workload, site, &self.policy));
                record_codec::shed(&mut voted);
                if !draft.votes.is_empty() && record_codec::encode(&voted).is_err() {
                    // No room beside the votes before it; they are closed sooner or later. By then, its hosts may be others.
                    self.site = None;
                    self.recheck.failed(
                        now,
                        &key,
                        "its record has no room for another vote before an earlier one is closed",
                    );
                    return;
                }
                *draft = voted;
                self.voted_at.insert(vector.clone(), now);
                self.recheck.answered();
            }
            _ => {
                // By the next time, its hosts may be others too.
                self.site = None;
                self.recheck.repeat(now, &key);
            }
        }
    }

    /// Goes on with a decided vector: match it, order what is not ordered yet in this life, and finish when all is final.
    fn execute(&mut self, now: Timestamp, vector: &Vector, plan: Plan) -> Vec<Effect> {
        let Some(vote) = self.draft.as_ref().and_then(|draft| draft.votes.iter().find(|vote| vote.vector == *vector))
        else {
            return Vec::new();
        };
        if vote.purges.is_empty() {
            let ask = self.matching.entry(vector.clone()).or_default();
            return if ask.is_due(now) {
                ask.asked();
                vec![Effect::Match(vector.clone(), Box::new(plan))]
            } else {
                Vec::new()
            };
        }
        if vote.purges.values().all(|purge| purge.state.is_final()) {
            let impossible = vote.purges.values().all(|purge| matches!(purge.state, PurgeState::Impossible(_)));
            let outcome = if impossible { Outcome::Impossible } else { Outcome::Purged };
            self.finish(now, vector, outcome, "");
            return Vec::new();
        }
        let open = vote.purges.iter().filter(|(_, purge)| !purge.state.is_final());
        let orders: Vec<Order> = open.map(|(id, purge)| self.order(vector, id, purge, &plan)).collect();
        let fresh = orders.into_iter().filter(|order| self.ordered.insert(order.reference.clone()));
        fresh.map(|order| Effect::Purge(Box::new(order))).collect()
    }

    fn order(&self, vector: &Vector, distribution: &DistributionId, purge: &Purge, plan: &Plan) -> Order {
        // Covered by an invalidation that exists: that one is waited for, not made again.
        let exists = matches!(purge.state, PurgeState::Created | PurgeState::Covered(_));
        Order {
            reference: purge.reference.clone(),
            distribution: distribution.clone(),
            paths: plan.paths.clone(),
            workload: self.identity.workload.clone(),
            invalidation: purge.invalidation.clone().filter(|_| exists),
            voted_at: self.voted_at.get(vector).copied(),
        }
    }

    /// The distributions of a decided plan are known.
    pub(super) fn matched(&mut self, now: Timestamp, vector: &Vector, distributions: &BTreeSet<DistributionId>) {
        self.matching.remove(vector);
        // Asked again because a peer was rebuilt, and answered twice: the purges of the first answer are under way.
        if self.open_vote(vector).is_none_or(|vote| !vote.purges.is_empty()) {
            return;
        }
        let rollout = group_rollout_id(&self.identity.group, &self.identity.workload, vector);
        let Some(Fate::Decided(Decision::Execute(plan))) =
            self.view_is_current().then(|| group::fate(&self.view, vector, &self.policy))
        else {
            return;
        };
        if distributions.is_empty() {
            let hosts: Vec<&str> = plan.hosts.iter().map(|host| host.as_str()).collect();
            self.finish(now, vector, Outcome::NoDistribution, &hosts.join(", "));
            return;
        }
        if let Some(vote) = self.open_vote(vector) {
            vote.purges = purges(&rollout, distributions, &plan.paths);
        }
    }

    /// They could not be found out. Told once: somebody may have to do something, and it is asked again meanwhile.
    pub(super) fn match_failed(&mut self, now: Timestamp, vector: &Vector, why: &str) {
        let key = self.key();
        let Some(ask) = self.matching.get_mut(vector) else { return };
        ask.failed(now, &key, why);
        // Twice may be passing; the third time somebody may have to do something.
        if ask.failures() == 3 {
            let message = format!("cannot find the distributions: {why}; it is tried again");
            self.announce_vote(now, vector, Kind::PurgeFailed, "match", message);
        }
    }

    fn open_vote(&mut self, vector: &Vector) -> Option<&mut Vote> {
        self.draft.as_mut()?.votes.iter_mut().find(|vote| vote.vector == *vector)
    }
}

/// Whether two members have completed the same version.
fn same_version(a: &Record, b: &Record) -> bool {
    a.version.same_across(&b.version, &[])
}

/// The vote this member casts for `vector`: everything a purge of it depends on (GA-7).
fn vote(draft: &Record, vector: &Vector, workload: &Workload, site: &FoundSite, policy: &Policy) -> Vote {
    let edge_has_it = draft.edge == Edge::Settled && draft.settled.is_none();
    Vote {
        vector: vector.clone(),
        seq: draft.seq,
        version: draft.version.clone(),
        change: draft.change,
        returned: draft.change == Change::Changed && edge_has_it,
        hosts: fitting(&site.hosts, VOTE_HOST_BYTES_MAX, |host| host.as_str().len()).cloned().collect(),
        origins: site.origins.clone(),
        distributions: workload.tuning.distributions.clone().unwrap_or_default(),
        paths: workload.tuning.paths.clone().unwrap_or_else(|| policy.paths.clone()),
        purges: BTreeMap::new(),
        stalled: false,
        noticed: BTreeSet::new(),
    }
}

fn purges(rollout: &str, distributions: &BTreeSet<DistributionId>, paths: &PathSet) -> BTreeMap<DistributionId, Purge> {
    let texts: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
    let purge = |distribution: &DistributionId| Purge {
        reference: purge_reference(rollout, distribution.as_str(), texts.iter().copied()),
        state: PurgeState::Wanted,
        invalidation: None,
    };
    distributions.iter().map(|distribution| (distribution.clone(), purge(distribution))).collect()
}

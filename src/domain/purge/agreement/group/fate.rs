//! The fate of a vector with votes, and its consequence: the same in every member.
//!
//! Not for who may vote for one; that is `group`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Known, View};
use crate::bounds::plan::Plan;
use crate::records::record::{Brief, Change, Outcome, Phase, Published, Vote};
use crate::records::rules::Rules;
use kernel::id::{Component, Member, Vector};

/// The fate of a vector with votes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// These members have not voted yet.
    Open(BTreeSet<Member>),
    Decided(Decision),
    /// It can no longer be decided: the member and the reason. Stable.
    Dead(Member, String),
    /// All members voted, but not under one configuration: nothing follows from it. Stable.
    Mixed,
}

/// The consequence of a decided vector; the same in every member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Purge what the votes say.
    Execute(Plan),
    Close(Outcome),
}

/// The fate of `vector`, for which at least one vote is stored. A member that holds an open vote for it never misses
/// another's for having been dropped: votes stay until all have closed theirs (decision 2). Purges are listed only by a member that
/// has seen all votes, so where one lists them it stays decided, whoever is forgotten, renamed or begun anew since (decision 54).
pub fn fate(view: &View, vector: &Vector) -> Fate {
    let mut votes: BTreeMap<&Member, &Vote> = BTreeMap::new();
    let (mut missing, mut dead, mut gone) = (BTreeSet::new(), None, None);
    for (member, component) in &vector.0 {
        let Some(known) = view.members.get(member) else {
            gone.get_or_insert(member);
            continue;
        };
        let known = known.as_ref();
        match known.and_then(|known| known.published.vote(vector)) {
            Some(vote) => drop(votes.insert(member, vote)),
            None => match known.and_then(|known| why_dead(known, component, vector)) {
                Some(reason) => drop(dead.get_or_insert((member, reason))),
                None => drop(missing.insert(member.clone())),
            },
        }
    }
    if votes.values().any(|vote| vote.purges.are_known()) {
        return Fate::Decided(Decision::Execute(Plan::of(&votes.values().copied().collect::<Vec<_>>())));
    }
    if let Some((member, reason)) = dead {
        return Fate::Dead(member.clone(), reason);
    }
    if let Some(member) = gone {
        let unsure: BTreeSet<Member> =
            vector.0.keys().filter(|member| may_list(view, vector, member)).cloned().collect();
        let reason = "it is not a member of the group any more".to_owned();
        return if unsure.is_empty() { Fate::Dead(member.clone(), reason) } else { Fate::Open(unsure) };
    }
    // The rules are part of the configuration, but a member that is alone has none.
    let configs: BTreeSet<(&str, Rules)> =
        votes.values().map(|vote| (vote.cast.config.as_str(), vote.cast.rules)).collect();
    match () {
        () if !missing.is_empty() => Fate::Open(missing),
        () if configs.len() > 1 => Fate::Mixed,
        () => Fate::Decided(decide(&votes)),
    }
}

/// Whether a member may still list purges of a vector with a member that we do not count any more: it counts it, as far as we know.
fn may_list(view: &View, vector: &Vector, member: &Member) -> bool {
    let Some(known) = view.members.get(member) else { return false };
    let record = known.as_ref().and_then(|known| known.published.record());
    record.is_none_or(|record| {
        record.config != view.config && record.vote(vector).is_none_or(|vote| vote.closed.is_none())
    })
}

/// Why a member that has not voted for a vector with this component never will.
fn why_dead(known: &Known, component: &Component, vector: &Vector) -> Option<String> {
    let Known { origin, published, current, alive: _, told: _ } = known;
    if *origin != component.origin {
        return current.then(|| "its ledger was re-created".to_owned());
    }
    if published.seq() > component.seq && published.record().is_some_and(|record| record.off) {
        return Some("its owner switched it off there before it voted".to_owned());
    }
    let is_passed = published.record().is_some_and(|record| record.passed_at(component).is_some());
    if published.seq() > component.seq && !is_passed {
        return Some("it moved on to another version before it voted".to_owned());
    }
    let there = published.component(origin);
    if there.seq == component.seq && there.nonce != component.nonce && published.record().is_some() {
        return Some("its ledger was set back and gave the number to another rollout".to_owned());
    }
    let record = match published {
        Published::Record(record) => record,
        Published::Absent(seq) if *seq < component.seq => return None,
        Published::Absent(_) => return Some("it does not have the workload any more".to_owned()),
    };
    let brief = Brief::of(vector);
    if record.last.as_ref().is_some_and(|last| !last.precedes(&brief) || last.contains(&brief)) {
        return Some("it has voted for what came after".to_owned());
    }
    match &record.phase {
        _ if is_passed || record.seq < component.seq => None,
        Phase::Rolling | Phase::Complete => None,
        Phase::Failed(failure) => Some(failure.to_string()),
        Phase::Withdrawn => Some("it has withdrawn".to_owned()),
    }
}

/// Decisions 1 and 4, over all votes, by the rules they were cast under (decision 41): news in one member is enough, a return
/// counts only if it is one everywhere, and a late completion that its member skips is skipped by all.
fn decide(votes: &BTreeMap<&Member, &Vote>) -> Decision {
    let news = || votes.values().filter(|vote| vote.cast.change != Change::Baseline);
    if news().next().is_none() {
        return Decision::Close(Outcome::NothingNew);
    }
    // A request is purged, whatever else another member says (rules 2).
    let requested = news().any(|vote| vote.cast.change == Change::Requested && vote.cast.rules > Rules::FIRST);
    if news().any(|vote| vote.cast.late) && !requested {
        return Decision::Close(Outcome::RecoveredSkipped);
    }
    if news().all(|vote| vote.cast.returned) {
        return Decision::Close(Outcome::Returned);
    }
    let plan = Plan::of(&votes.values().copied().collect::<Vec<_>>());
    if plan.is_empty() { Decision::Close(Outcome::NoSite) } else { Decision::Execute(plan) }
}

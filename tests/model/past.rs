//! What has happened in a run, as far as a property asks for it, and the judgement of every write and every purge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::id::{NoticeId, Seq};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::image::Version;
use kernel::promise::Promise;
use notices::notice::{Kind, Notice};
use purge::purges::purge::Order;
use purge::records::record::{Edge, Failure, Phase, Record};
use purge::rollouts::rollout::may_follow;
use purge::workloads::workload::Workload;

use crate::hashed::Hashed;
use crate::world::State;

pub type Edges = BTreeMap<DistributionId, (Version, bool)>;

/// What has happened, as far as a property asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// Rollouts that were complete at the moment of a fresh look before their vote.
    pub proved: BTreeSet<Seq>,
    /// Versions that a fresh look has shown not to be complete.
    pub doubted: BTreeSet<Version>,
    /// Rollouts whose vote the ledger has held.
    pub voted: BTreeSet<Seq>,
    /// Rollouts recorded as failed or superseded before a vote.
    pub condemned: BTreeSet<Seq>,
    /// What each number has meant.
    pub meaning: BTreeMap<Seq, (String, Version)>,
    /// Every notice the ledger has held, and whether it has been told.
    pub notices: BTreeMap<NoticeId, (Notice, bool)>,
    /// The version each distribution was last made to agree with, and whether another one has completed since.
    pub edges: Edges,
    /// Since when an old pod has served, and since when none does, in searches that are about it.
    pub served: (Option<Timestamp>, Option<Timestamp>),
    /// What has been complete and still runs, in searches where that may be written over and over.
    pub stood: Option<Vec<String>>,
    /// Broken promises, by name.
    pub broken: BTreeSet<Promise>,
}

impl State {
    pub fn remember(&mut self, change: impl FnOnce(&mut Past)) {
        let mut past = (*self.past).clone();
        change(&mut past);
        self.past = Hashed::new(past);
    }

    pub fn breaks(&mut self, promise: Promise) {
        self.remember(|past| past.broken.extend([promise]));
    }
}

/// The script has moved on: an old pod may have begun to serve beside the new ones, or have ended.
pub fn note_serving(next: &mut State, serving: &BTreeSet<usize>) {
    let (at, now) = (next.at, next.now);
    if serving.contains(&at) {
        next.remember(|past| past.served = (past.served.0.or(Some(now)), None));
    } else if next.past.served.0.is_some() {
        next.remember(|past| past.served.1 = past.served.1.or(Some(now)));
    }
}

/// A pod of the version that the ledger says is rolling, or has failed, answers requests: the edge may have it.
pub fn note_served(next: &mut State, workload: Option<&Workload>) {
    let version = workload.and_then(|workload| workload.version.as_ref().ok());
    let followed = |record: &Record| matches!(record.phase, Phase::Rolling | Phase::Failed(_));
    let known = next.ledger.as_deref().is_some_and(|record| followed(record) && Some(&record.version) == version);
    if known {
        next.remember(|past| {
            past.edges.values_mut().for_each(|(edge, moved)| *moved |= Some(&*edge) != version);
        });
    }
}

/// Judges the first write of a vote by who served until then, and for how long.
pub fn note_vote(next: &mut State, record: &Record, serving: &BTreeSet<usize>, (settle, bound): (Duration, Duration)) {
    let now = next.now;
    let (Some(began), ended) = next.past.served else { return };
    let first = record.votes.iter().any(|vote| !next.past.voted.contains(&vote.seq));
    let waited_in_vain = ended.unwrap_or(now).since(began) >= bound;
    let early = serving.contains(&next.at) || ended.is_some_and(|ended| now.since(ended) < settle);
    if first && early && !waited_in_vain {
        next.breaks(Promise::OldPodsFirst);
    }
}

/// What runs: the digest of each image where it is known, else its name and tag.
pub fn content(version: &Version) -> Vec<String> {
    let images = version.iter().map(|(container, image)| (container.to_string(), image.to_string()));
    images
        .map(|(container, image)| format!("{container} {}", image.split_once('@').map_or(image.as_str(), |(_, d)| d)))
        .collect()
}

/// Judges a write by what the ledger held before. `listed`: a workload that is written for the first time is new, so the edge
/// may have anything.
pub fn note_write(next: &mut State, record: &Record, listed: bool, distributions: BTreeSet<DistributionId>) {
    let floor = next.floor.seq;
    let held = next.ledger.clone();
    let mut past = (*next.past).clone();
    let meaning = (record.uid.clone(), record.version.clone());
    let known = past.meaning.entry(record.seq).or_insert_with(|| meaning.clone());
    if known.0 != meaning.0 || content(&known.1) != content(&meaning.1) || record.seq <= floor {
        past.broken.insert(Promise::NumbersMeanOne);
    }
    for notice in &record.untold {
        match past.notices.get(&notice.id) {
            Some((known, _)) if known != notice => drop(past.broken.insert(Promise::NoticesKeepBytes)),
            Some(_) => {}
            None => drop(past.notices.insert(notice.id.clone(), (notice.clone(), false))),
        }
        let purged =
            |id: &DistributionId| next.cdn.values().any(|made| made.distribution == *id && made.seq >= notice.seq);
        if notice.kind == Kind::PurgeCompleted && !distributions.iter().all(purged) {
            past.broken.insert(Promise::ToldOfAWholeEdge);
        }
    }
    past.voted.extend(record.votes.iter().map(|vote| vote.seq));
    if matches!(record.phase, Phase::Failed(_) | Phase::Withdrawn) {
        past.condemned.insert(record.seq);
        // A missed progress deadline proves itself by a newer report as well.
        if record.phase == Phase::Failed(Failure::TimedOut) && !past.doubted.contains(&record.version) {
            past.broken.insert(Promise::FailedAfterALook);
        }
    }
    if held.is_none() {
        past.edges = edges(distributions, record, listed || record.phase == Phase::Rolling);
    }
    if let Some(held) = held.as_deref() {
        if record.seq < held.seq {
            past.broken.insert(Promise::NumbersRise);
        }
        if record.seq == held.seq && !may_follow(&held.phase, &record.phase) {
            past.broken.insert(Promise::PhasesInOrder);
        }
        let withdrawn =
            |seq| !record.votes.iter().any(|vote| vote.seq == seq) && !record.history.iter().any(|c| c.seq == seq);
        if held.votes.iter().any(|vote| withdrawn(vote.seq)) {
            past.broken.insert(Promise::VotesStay);
        }
        let skipped = (held.seq.0..record.seq.0).map(Seq).filter(|seq| !past.voted.contains(seq));
        past.condemned.extend(skipped);
    }
    for (version, moved) in past.edges.values_mut().filter(|_| record.phase == Phase::Complete) {
        *moved |= content(&record.version) != content(version);
    }
    let settled = content(record.settled.as_ref().unwrap_or(&record.version));
    let differs = past.edges.values().any(|(version, moved)| *moved || content(version) != settled);
    if !record.is_open() && record.edge == Edge::Settled && differs {
        past.broken.insert(Promise::SettledAsAWhole);
    }
    next.past = Hashed::new(past);
}

/// All of the edge has the version of the record, and perhaps another one beside it.
pub fn edges(distributions: BTreeSet<DistributionId>, record: &Record, moved: bool) -> Edges {
    distributions.into_iter().map(|id| (id, (record.version.clone(), moved))).collect()
}

pub fn note_creation(next: &mut State, seq: Seq, order: &Order) {
    let record = next.ledger.clone();
    let mut same = next.cdn.values().filter(|other| other.distribution == order.distribution);
    let newest = same.all(|earlier| earlier.seq <= seq);
    let twice = next.cdn.values().any(|other| other.seq == seq && other.distribution == order.distribution);
    let mut past = (*next.past).clone();
    if twice {
        past.broken.insert(Promise::CreatedOnce);
    }
    if !past.voted.contains(&seq) {
        past.broken.insert(Promise::DurableFirst);
    }
    if !past.proved.contains(&seq) {
        past.broken.insert(Promise::CompleteTogether);
    }
    if past.condemned.contains(&seq) {
        past.broken.insert(Promise::NothingForFailed);
    }
    let version = past.meaning.get(&seq).map(|(_, version)| version.clone());
    let other = record
        .is_some_and(|r| r.phase == Phase::Complete && Some(content(&r.version)) != version.as_ref().map(content));
    if let Some(version) = version.filter(|_| newest) {
        past.edges.insert(order.distribution.clone(), (version, other));
    }
    next.past = Hashed::new(past);
}

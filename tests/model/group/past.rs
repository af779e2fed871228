//! What has happened in a run, as far as a property asks for it, and the judgement of every write and every purge.

use std::collections::{BTreeMap, BTreeSet};

use domain::distribution::DistributionId;
use domain::id::{Origin, Reference, Seq, Vector};
use domain::image::Version;
use domain::promise::Promise;
use domain::purge::Order;
use domain::readiness::{Standing, standing};
use domain::record::{Brief, Outcome, Phase, Record};
use domain::rollout::baseline;
use domain::rollout::may_follow;

use crate::group::world::{Cluster, State, World, name};
use crate::hashed::Hashed;

/// What has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// Vectors of which there was an instant at which every component was complete, in truth and on record.
    pub together: BTreeSet<Vector>,
    /// Components that were recorded as failed or withdrawn.
    pub condemned: BTreeSet<(usize, Origin, Seq)>,
    /// Every vector that was voted for, and who has closed it with which outcome.
    pub voted: BTreeMap<Vector, BTreeMap<usize, Option<Outcome>>>,
    /// What CloudFront has created.
    pub creations: BTreeMap<Reference, (Vector, DistributionId)>,
    /// The version the edge was last made to agree with, and whether another one has completed anywhere since.
    pub edge: Option<(char, bool)>,
    /// Somebody gave up waiting, or lost its ledger.
    pub gave_up: bool,
    /// Somebody lost its ledger, and with it the votes that others may have seen.
    pub forgot: bool,
    /// Broken promises, by name.
    pub broken: BTreeSet<Promise>,
}

impl Past {
    /// Where somebody is served what never completes, or is not followed, it is known from the beginning what the edge has.
    pub fn at_first(world: &World) -> Self {
        let off = |cluster: &Cluster| cluster.script.iter().flatten().any(|workload| workload.tuning.disabled);
        let served = world.members.iter().any(|cluster| !cluster.served.is_empty() || off(cluster));
        let record = world.members[0].record.as_ref().filter(|_| served);
        Self { edge: record.map(|record| (build(&record.version), false)), ..Self::default() }
    }

    /// All who close a vector close it with the same outcome.
    fn note_ends(&mut self, m: usize, record: &Record) {
        for vote in &record.votes {
            let closings = self.voted.entry(vote.vector.clone()).or_default();
            closings.insert(m, vote.closed.clone());
            let outcomes: BTreeSet<&Outcome> = closings.values().flatten().collect();
            if outcomes.len() > 1 && !self.forgot {
                self.broken.insert(Promise::OneEnd);
            }
        }
    }
}

impl State {
    fn remember(&mut self, change: impl FnOnce(&mut Past)) {
        let mut past = (*self.past).clone();
        change(&mut past);
        self.past = Hashed::new(past);
    }

    /// Which vectors are complete in all members right now: of all members, and of those that one of them lists.
    pub fn note_instant(&mut self, world: &World) {
        let mut vector = BTreeMap::new();
        let mut instants = Vec::new();
        for (m, place) in self.places.iter().enumerate() {
            let complete = place.record.as_ref().zip(world.members[m].script[place.at].as_ref()).is_some_and(
                |(record, workload)| {
                    record.phase == Phase::Complete
                        && record.uid == workload.uid
                        && workload.version.as_ref() == Ok(&record.version)
                        && standing(workload, false) == Standing::Complete
                },
            );
            let workload = world.members[m].script[place.at].as_ref();
            let absent = world.policy.group.absent_left_out && place.record.is_none() && workload.is_none();
            let off = || place.record.as_ref().zip(workload).is_some_and(|(record, w)| record.off && w.tuning.disabled);
            if absent || off() {
                continue;
            }
            if !complete {
                break;
            }
            if let Some(record) = &place.record {
                vector.insert(name(m), record.component(&place.origin));
                instants.push(Vector(vector.clone()));
            }
        }
        if instants.iter().any(|vector| !self.past.together.contains(vector)) {
            self.remember(|past| past.together.extend(instants));
        }
    }

    /// A pod of a version that a ledger follows answers requests, or one that it does not follow because its owner says so: the
    /// edge may have it.
    pub fn note_served(&mut self, world: &World) {
        let followed = |record: &Record| matches!(record.phase, Phase::Rolling | Phase::Failed(_));
        let served = world.members.iter().zip(&self.places).find_map(|(cluster, place)| {
            let workload = cluster.script[place.at].as_ref()?;
            let version = workload.version.as_ref().ok()?;
            if workload.tuning.disabled && place.record.as_deref().is_some_and(|record| record.off) {
                return Some(build(version));
            }
            cluster.served.get(&place.at)?;
            place.record.as_deref().is_some_and(|r| followed(r) && r.version == *version).then(|| build(version))
        });
        let moves = |(edge, moved): &(char, bool)| !moved && served.is_some_and(|version| version != *edge);
        if self.past.edge.as_ref().is_some_and(moves) {
            self.remember(|past| past.edge.iter_mut().for_each(|(_, moved)| *moved = true));
        }
    }

    pub fn note_creation(&mut self, vector: &Vector, order: &Order) {
        if self.past.creations.contains_key(&order.reference) {
            return;
        }
        let condemned = |past: &Past| {
            vector.0.iter().any(|(member, component)| {
                let holds = |(m, origin, seq): &(usize, Origin, Seq)| {
                    name(*m) == *member && *origin == component.origin && *seq == component.seq
                };
                past.condemned.iter().any(holds)
            })
        };
        let versions = self.versions_of(vector);
        let newest = self.past.creations.values().all(|(earlier, _)| !is_above(earlier, vector));
        let now_elsewhere = self.places.iter().any(|place| {
            let other =
                |record: &Record| record.phase == Phase::Complete && !versions.contains(&build(&record.version));
            place.record.as_deref().is_some_and(other)
        });
        let version = versions.first().copied();
        self.remember(|past| {
            if past.creations.values().any(|earlier| *earlier == (vector.clone(), order.distribution.clone())) {
                past.broken.insert(Promise::CreatedOnce);
            }
            if !past.together.contains(vector) {
                past.broken.insert(Promise::CompleteTogether);
            }
            if condemned(past) {
                past.broken.insert(Promise::NothingForFailed);
            }
            if versions.iter().filter(|build| **build != UNKNOWN).count() > 1 {
                past.broken.insert(Promise::SameCode);
            }
            past.creations.insert(order.reference.clone(), (vector.clone(), order.distribution.clone()));
            if newest {
                past.edge = version.map(|version| (version, now_elsewhere));
            }
        });
    }

    /// The builds that the votes for a vector were cast for; one, if all is well.
    fn versions_of(&self, vector: &Vector) -> BTreeSet<char> {
        let votes = self.places.iter().filter_map(|place| place.record.as_ref()?.vote(vector));
        votes.map(|vote| build(&vote.version)).collect()
    }

    /// Judges a write by what the ledger held before, and by what the others' ledgers hold now.
    pub fn note_write(&mut self, world: &World, m: usize, held: Option<&Record>, record: Option<&Record>) {
        let origin = self.places[m].origin.clone();
        // Whom it does not count any more needs none of its votes.
        let (_, members) = world.members[m].configs[self.places[m].config];
        let others: Vec<Option<Hashed<Record>>> = self
            .places
            .iter()
            .enumerate()
            .take(members)
            .filter(|(other, _)| *other != m)
            .map(|(_, place)| place.record.clone())
            .collect();
        let floor = self.places[m].floor;
        let mut past = (*self.past).clone();
        let dropped = held
            .into_iter()
            .flat_map(|held| &held.votes)
            .filter(|vote| record.is_none_or(|r| r.vote(&vote.vector).is_none()));
        for vote in dropped {
            // Who closes a vote when all others have can drop it in the same write.
            let elsewhere =
                |other: &Hashed<Record>| other.vote(&vote.vector).is_some_and(|theirs| theirs.closed.is_some());
            let closed = vote.closed.is_some() || others.iter().flatten().any(elsewhere);
            let dead = vote.closed == Some(Outcome::Dead);
            let needed = others
                .iter()
                .flatten()
                .any(|other| other.vote(&vote.vector).is_some_and(|theirs| theirs.closed.is_none()));
            if !closed || (needed && !dead) {
                past.broken.insert(Promise::VotesStay);
            }
        }
        if let Some(record) = record {
            if let Some(held) = held {
                if record.seq < held.seq {
                    past.broken.insert(Promise::NumbersRise);
                }
                if record.seq == held.seq && !may_follow(&held.phase, &record.phase) {
                    past.broken.insert(Promise::PhasesInOrder);
                }
                let before = held.last.as_ref();
                for vote in record.votes.iter().filter(|vote| held.vote(&vote.vector).is_none()) {
                    if before.is_some_and(|last| !last.precedes(&Brief::of(&vote.vector))) {
                        past.broken.insert(Promise::VotesAreAChain);
                    }
                }
            } else if record.seq <= floor {
                past.broken.insert(Promise::NumbersRise);
            }
            if matches!(record.phase, Phase::Failed(_) | Phase::Withdrawn) {
                past.condemned.insert((m, origin, record.seq));
                past.gave_up |= record.phase == Phase::Withdrawn;
            }
            past.note_ends(m, record);
            if held.is_none() && record.phase == Phase::Complete && past.edge.is_none() {
                past.edge = Some((build(&record.version), false));
            }
            if record.phase == Phase::Complete
                && let Some((version, moved)) = &mut past.edge
            {
                *moved |= build(&record.version) != *version;
            }
        }
        self.past = Hashed::new(past);
    }

    pub fn lose_ledger(&mut self, m: usize) {
        self.remember(|past| {
            past.gave_up = true;
            past.forgot = true;
        });
        let place = &mut self.places[m];
        place.origin = Origin(format!("{}x", place.origin));
        place.record = None;
        place.floor = Seq(0);
    }
}

/// What runs, in truth, wherever its image is stored: here tags and digests begin with the letter of the build, and each version
/// has one container.
pub fn build(version: &Version) -> char {
    let image = version.iter().next().map(|(_, image)| image.to_string()).expect("a container");
    image.rsplit(':').next().and_then(|end| end.chars().next()).expect("a tag or a digest")
}

/// The build of `latest`: it may be any.
const UNKNOWN: char = 'l';

/// Whether a vector is later than another in some component.
fn is_above(a: &Vector, b: &Vector) -> bool {
    a.0.iter().any(|(member, component)| b.component(member).is_some_and(|other| component.seq > other.seq))
}

/// The record of a workload that has been there for long.
pub fn settled(workload: &domain::workload::Workload, config: &str) -> Record {
    let version = workload.version.as_ref().expect("a version");
    Record { config: config.to_owned(), ..baseline(workload, version, Seq(0)) }
}

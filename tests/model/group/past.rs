//! What has happened in a run, as far as a property asks for it, and the judgement of every write and every purge.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{Component, Member, Origin, Reference, Seq, Vector};
use kernel::names::distribution::DistributionId;
use kernel::names::image::Version;
use kernel::promise::Promise;
use kinds::reported::Standing;
use purge::purges::purge::Order;
use purge::records::record::{Brief, Change, Outcome, Phase, Record};
use purge::rollouts::rollout::baseline;
use purge::rollouts::rollout::may_follow;
use purge::workloads::workload::Workload;

use crate::group::world::{Cluster, Place, State, World, name};
use crate::hashed::Hashed;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// Vectors of which there was an instant at which every component was complete, in truth and on record.
    pub together: BTreeSet<Vector>,
    /// What each has had complete, in truth and on record: the build, and whether it was news there.
    pub completed: BTreeSet<(usize, Component, char, bool)>,
    /// Vectors that were voted for where a later build runs.
    pub ahead: BTreeSet<Vector>,
    /// Vectors that were voted for where an earlier build runs, or what was voted for is not complete.
    pub unfounded: BTreeSet<Vector>,
    /// The builds that were purged.
    pub purged: BTreeSet<char>,
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
    pub fn remember(&mut self, change: impl FnOnce(&mut Past)) {
        let mut past = (*self.past).clone();
        change(&mut past);
        self.past = Hashed::new(past);
    }

    /// Which vectors are complete in all members right now: of all members, and of those that one of them lists.
    pub fn note_instant(&mut self, world: &World) {
        self.note_completed(world);
        let mut vector = BTreeMap::new();
        let mut instants = Vec::new();
        for (m, place) in self.places.iter().enumerate() {
            let complete = place
                .record
                .as_ref()
                .zip(world.members[m].script[place.at].as_ref())
                .is_some_and(|(record, workload)| record.phase == Phase::Complete && stands(workload, record));
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
            let has_completed = |(member, component): (&Member, &Component)| {
                past.completed.iter().any(|(m, completed, ..)| name(*m) == *member && completed == component)
            };
            let is_one = past.together.contains(vector);
            let is_founded = !past.unfounded.contains(vector) && vector.0.iter().all(has_completed);
            if !is_founded || !(is_one || past.ahead.contains(vector)) {
                past.broken.insert(Promise::CompleteTogether);
            }
            past.purged.extend(&versions);
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

    /// What is complete on record, and was so in truth, now or before.
    fn note_completed(&mut self, world: &World) {
        let completed = |(m, (cluster, place)): (usize, (&Cluster, &Place))| {
            let record = place.record.as_deref().filter(|record| record.phase == Phase::Complete)?;
            let stood = cluster.script[..=place.at].iter().flatten().any(|workload| stands(workload, record));
            let is_news = record.change != Change::Baseline;
            stood.then(|| (m, record.component(&place.origin), build(&record.version), is_news))
        };
        let all = world.members.iter().zip(&self.places).enumerate();
        let new: Vec<_> = all.filter_map(completed).filter(|one| !self.past.completed.contains(one)).collect();
        if !new.is_empty() {
            self.remember(|past| past.completed.extend(new));
        }
    }

    /// Judges what a member is about to vote for by what runs there while it looks. Builds go forward by the letter.
    pub fn note_votes(&mut self, world: &World, m: usize, to: &Record) {
        let place = &self.places[m];
        let held = place.record.as_deref();
        let cast: Vec<_> = to.votes.iter().filter(|v| held.is_none_or(|held| held.vote(&v.vector).is_none())).collect();
        let Some(workload) = world.members[m].script[place.at].clone().filter(|_| !cast.is_empty()) else { return };
        let Ok(version) = &workload.version else { return };
        self.remember(|past| {
            for vote in cast {
                let complete = workload.standing(false) == Standing::Complete;
                match build(version).cmp(&build(&vote.version)) {
                    Ordering::Greater => drop(past.ahead.insert(vote.vector.clone())),
                    Ordering::Equal if complete => {}
                    Ordering::Equal | Ordering::Less => drop(past.unfounded.insert(vote.vector.clone())),
                }
            }
        });
    }

    /// Whether the build at which the last member is was purged, if it is complete there and news, and every other one has completed it
    /// too before it went on. Asked only where all go forward, and all name what runs by tag: what cannot be compared is never one version.
    pub fn is_last_purged(&self, world: &World) -> bool {
        let follows = |cluster: &Cluster| {
            let by_tag = |version: &Version| version.iter().all(|(_, image)| image.tag().is_some());
            let on = |workload: &Workload| !workload.tuning.disabled && workload.version.as_ref().is_ok_and(by_tag);
            cluster.script.iter().all(|state| state.as_ref().is_some_and(on)) && cluster.builds().is_sorted()
        };
        let records: Vec<&Record> = self.places.iter().filter_map(|place| place.record.as_deref()).collect();
        let Some(last) = records.iter().map(|record| build(&record.version)).min() else { return true };
        let is_news = world.members.iter().any(|cluster| cluster.builds().first().is_some_and(|first| *first < last));
        let all_have = records.iter().enumerate().all(|(m, record)| match build(&record.version) {
            there if there == last => record.phase == Phase::Complete,
            _ => self.past.completed.iter().any(|(of, _, build, is_news)| *of == m && *build == last && *is_news),
        });
        let counts = world.members.iter().all(follows) && records.len() == world.members.len() && is_news && all_have;
        !counts || self.past.purged.iter().any(|build| *build >= last)
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

impl Cluster {
    /// What runs, one after the other.
    fn builds(&self) -> Vec<char> {
        let versions = self.script.iter().flatten().filter_map(|workload| workload.version.as_ref().ok());
        versions.map(build).collect()
    }
}

/// Whether the workload is complete as the record says.
fn stands(workload: &Workload, record: &Record) -> bool {
    record.uid == workload.uid
        && workload.version.as_ref() == Ok(&record.version)
        && workload.standing(false) == Standing::Complete
}

/// Whether a vector is later than another in some component.
fn is_above(a: &Vector, b: &Vector) -> bool {
    a.0.iter().any(|(member, component)| b.component(member).is_some_and(|other| component.seq > other.seq))
}

/// The record of a workload that has been there for long.
pub fn settled(workload: &Workload, config: &str) -> Record {
    let version = workload.version.as_ref().expect("a version");
    Record { config: config.to_owned(), ..baseline(workload, version, Seq(0)) }
}

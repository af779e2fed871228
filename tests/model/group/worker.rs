//! One life of a worker: the production machine, from what its ledger says to its next write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::id::{InvalidationId, Member, Vector, group_rollout_id, purge_reference};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use notices::notice::{Kind, Notice};
use purge::agreement::group::{Known, NumberedView, Told, View};
use purge::bounds::policy::{Agreement, Policy};
use purge::caches::asking::Question;
use purge::purges::purge::{Order, Progress};
use purge::records::record::{Outcome, Published, PurgeState, Record, Vote};
use purge::rollouts::rollout::{Before, Effect, Event, Identity, Rollout};
use purge::testing::{answers, web};
use purge::workloads::workload::Workload;

use crate::failure::failure;
use crate::group::mutants::Mutant;
use crate::group::world::{Done, HELD, Job, Patience, World, name, rules};
use crate::hashed::Hashed;

/// The name of a cache that never answers.
pub const BROKEN: &str = "broken";

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// One life of a worker, from its ledger to its next write.
pub struct Worker<'a> {
    world: &'a World,
    job: &'a Job,
    machine: Rollout,
    now: Timestamp,
    done: Done,
    /// Some progress was not written for others to see.
    skipped: bool,
    /// What every endpoint of a cache has let go of, in this life, before a vote for these.
    cleared: BTreeSet<Vector>,
}

impl<'a> Worker<'a> {
    pub fn new(world: &'a World, job: &'a Job) -> Self {
        let identity = Identity {
            workload: web(),
            member: name(job.member),
            group: "default".into(),
            grouped: true,
            origin: job.origin.clone(),
            epoch_ms: 0,
            keeps_times: false,
        };
        let record = job.record.as_deref().cloned();
        let (config, _) = world.members[job.member].configs[job.config];
        let group = Agreement { rules: rules(config), ..world.policy.group.clone() };
        let policy = Policy { group, ..world.policy.clone() };
        let machine = Rollout::resume(identity, policy, job.floor, record);
        Self {
            world,
            job,
            machine,
            now: NOW,
            done: Done { patience: job.patience, ..Done::default() },
            skipped: false,
            cleared: BTreeSet::new(),
        }
    }

    pub fn run(mut self) -> Done {
        let seen = self.sight(self.job.seen).map_or(Event::Missed, Event::Seen);
        self.step(seen);
        let limit = match self.job.patience {
            Patience::Turn => Duration::from_secs(60),
            Patience::Timeout => Duration::from_secs(2 * 3600),
        };
        while self.done.write.is_none()
            && let Some(deadline) = self.machine.next_deadline().filter(|deadline| *deadline <= NOW.after(limit))
        {
            self.now = self.now.max(deadline);
            let effects = self.machine.tick(self.now);
            self.perform(effects);
        }
        if self.done.write.is_none() && self.skipped {
            self.done.write = self.machine.durable().map(|record| Some(Hashed::new(self.stored(record.clone()))));
        }
        self.done
    }

    fn sight(&self, at: usize) -> Option<Box<Workload>> {
        self.world.members[self.job.member].script[at].clone().map(Box::new)
    }

    /// A write ends the worker's life, unless it only tells of progress that others need not see.
    fn store(&mut self, record: Record) {
        self.judge_caches(&record);
        let vectors =
            |record: &Record| -> Vec<Vector> { record.votes.iter().map(|vote| vote.vector.clone()).collect() };
        let progress = self.machine.durable().is_some_and(|held| {
            let closes = |record: &Record| record.votes.iter().filter(|vote| vote.closed.is_some()).count();
            let same = (held.seq, &held.phase, vectors(held)) == (record.seq, &record.phase, vectors(&record));
            same && closes(held) == closes(&record)
        });
        let same = self.job.record.as_deref() == Some(&self.stored(record.clone()));
        if same || (self.world.swift && progress) {
            self.skipped |= !same;
            self.step(Event::Stored);
        } else {
            self.done.write = Some(Some(Hashed::new(self.stored(record))));
        }
    }

    fn step(&mut self, event: Event) {
        if self.done.write.is_none() {
            let effects = self.machine.step(self.now, event);
            self.perform(effects);
        }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert_eq!(self.machine.breaks(&effect), [], "{effect:?}");
            match effect {
                Effect::Store(record) => self.store(*record),
                Effect::Remove(_) => self.done.write = Some(None),
                Effect::Publish(record) => {
                    let view = self.view(&record);
                    self.step(Event::ViewChanged(NumberedView { number: 0, view }));
                }
                Effect::Absent(floor) => self.done.absent = Some(floor),
                Effect::Look => {
                    self.done.outside = true;
                    let fresh = self.sight(self.job.at);
                    self.step(Event::Looked(fresh));
                }
                Effect::Recheck(vector) => {
                    self.done.outside = true;
                    let skips = self.world.mutant == Some(Mutant::NoRecheck);
                    let fresh = if skips { self.sight(self.job.seen) } else { self.sight(self.job.at) };
                    self.step(Event::Rechecked(vector, fresh));
                }
                Effect::Match(vector, plan) | Effect::Compare(vector, plan) => {
                    let by_hosts = (!plan.hosts.is_empty()).then(by_host);
                    let found: BTreeSet<_> = plan.distributions.iter().cloned().chain(by_hosts).collect();
                    self.step(Event::Matched(vector, plan, found.into()));
                }
                Effect::AskCache(of, question) => self.ask_cache(of, &question),
                Effect::Purge(_) if self.is_held() && self.world.mutant == Some(Mutant::HoldFreezes) => {}
                Effect::Purge(order) => self.purge(*order),
                effect => answers(&effect, None).into_iter().for_each(|event| self.step(event)),
            }
        }
    }

    /// No member votes before the caches of its cluster have let go, or it is told that one has not.
    fn judge_caches(&self, record: &Record) {
        let is_held = |vote: &Vote| self.machine.durable().is_some_and(|held| held.vote(&vote.vector).is_some());
        let is_told = record.untold.iter().any(|notice| notice.kind == Kind::WorkloadFaulty);
        for vote in record.votes.iter().filter(|vote| !is_held(vote)) {
            let is_asked = self.world.policy.caches.is_empty() || self.cleared.contains(&vote.vector);
            assert!(is_asked || is_told, "voted for {:?} before the caches were asked", vote.vector);
        }
    }

    /// A cache whose pods let go at once, or one that is never answered for.
    fn ask_cache(&mut self, of: Before, question: &Question) {
        let effect = Effect::AskCache(of.clone(), Box::new(question.clone()));
        if question.cache.name == BROKEN {
            return self.step(failure(&effect).expect("it is told"));
        }
        // What has answered is asked after once more, for others that may have joined.
        if let Before::Vote(vector, _) = of
            && !question.cleared.is_empty()
        {
            self.cleared.insert(vector);
        }
        answers(&effect, None).into_iter().for_each(|event| self.step(event));
    }

    fn is_held(&self) -> bool {
        self.world.members[self.job.member].configs[self.job.config].0 == HELD
    }

    /// The same reference returns the earlier invalidation. One that exists is complete at the next look.
    fn purge(&mut self, order: Order) {
        let reference = order.reference.clone();
        let votes = self.machine.durable().map(|record| record.votes.clone()).unwrap_or_default();
        let paths: Vec<&str> = order.paths.iter().map(|path| path.as_str()).collect();
        let named = |vector: &Vector| {
            let rollout = group_rollout_id("default", &web(), vector);
            purge_reference(&rollout, order.distribution.as_str(), paths.iter().copied()) == reference
        };
        let owner = votes.into_iter().find(|vote| named(&vote.vector));
        let exists = order.invalidation.is_some();
        self.done.outside |= !exists;
        if let Some(vote) = owner.filter(|_| !exists) {
            self.done.created.push((vote.vector, order));
        }
        let progress = if exists {
            Progress::Completed(None)
        } else {
            Progress::Created(InvalidationId(format!("I-{reference}")))
        };
        self.step(Event::Purged(reference, progress));
    }

    /// What is left out of a record: what no decision depends on, and numbers that only grow.
    fn stored(&self, mut record: Record) -> Record {
        if let Some(mutant) = self.world.mutant {
            mutant.stored(&mut record, self.job.record.as_deref());
        }
        record.revision = 1;
        record.elapsed_ms = 0;
        record.untold.clear();
        record.history.retain(|closed| closed.outcome == Outcome::Purged);
        for closed in &mut record.history {
            closed.change.clear();
            closed.purges.clear();
        }
        for vote in &mut record.votes {
            vote.cast.at_ms = 1;
            // Which notices of its way were told matters to nobody; that its end was, does.
            let rollout = group_rollout_id("default", &web(), &vote.vector);
            let own = format!("/{}", name(self.job.member));
            let ends = [(Kind::PurgeCompleted, ""), (Kind::PurgeFailed, &own), (Kind::PurgeSkipped, "")];
            vote.purges
                .noticed
                .retain(|id| ends.iter().any(|(kind, detail)| *id == Notice::id_of(&rollout, *kind, detail)));
        }
        record
    }

    fn view(&self, own: &Record) -> View {
        let (config, members) = self.world.members[self.job.member].configs[self.job.config];
        let known = |m: usize| {
            if m == self.job.member {
                return Some(Known {
                    origin: self.job.origin.clone(),
                    current: true,
                    alive: true,
                    published: own.clone().into(),
                    told: Told::default(),
                });
            }
            let (origin, published) = self.job.copies[m].clone()?;
            let current = self.job.ledgers[m] == origin;
            let mut published = (*published).clone();
            if let (Some(Mutant::FactsForVotes), Published::Record(record)) = (self.world.mutant, &mut published) {
                believe_facts(record, own);
            }
            Some(Known { origin, current, alive: true, published, told: Told::default() })
        };
        let members: BTreeMap<Member, Option<Known>> = (0..members).map(|m| (name(m), known(m))).collect();
        View { config: config.to_owned(), hold: self.is_held().then(|| HELD.to_owned()), members, ..View::default() }
    }
}

/// The distribution that serves the host of the workload.
pub fn by_host() -> DistributionId {
    "E1EXAMPLE".parse().expect("an id")
}

/// The mutant that takes a complete record for a vote.
fn believe_facts(record: &mut Record, own: &Record) {
    let complete = record.phase == purge::records::record::Phase::Complete;
    let missing = own.votes.iter().filter(|vote| complete && record.vote(&vote.vector).is_none());
    let mut believed: Vec<Vote> = missing.cloned().collect();
    for purge in believed.iter_mut().flat_map(|vote| vote.purges.listed.values_mut()) {
        purge.state = PurgeState::Wanted;
    }
    record.votes.extend(believed);
}

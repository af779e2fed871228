//! Random histories of a cluster, a program and everything around it: releases, rollbacks, failures, deletions, restarts,
//! and ports that are late, fail, lose answers and panic. Then the faults stop, and the run must become what a run without
//! faults would have become, and silent.
//!
//! One seed is one run. `make sim SEEDS=10000` runs that many, `make sim SEEDS=17..18` exactly these.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::WorkloadId;
use kernel::watches::listed::Scope;
use kinds::reported::Standing;
use notices::notice::{Kind, Notice};
use purge::ports::{PortError, Sight};
use purge::records::record::{Change, Outcome, Phase};
use purge::workloads::workload::Workload;
use support::fakes::{Dice, Millis, Odds, World};
use support::stage::{Life, Stage, deployment, id, life, roll_out, settled, sweep};

/// Seeds every `cargo test` runs.
const SEEDS: u64 = 100;

/// Seeds that once found something: a question answered twice reset the progress of its purges.
const FOUND: [u64; 2] = [214, 682];

/// Faults happen this long.
const STORM: Millis = 20 * 60_000;

/// After the storm, everything must be over within this: the rollout timeout is 10 min, back-offs are a minute at most, and
/// a quarantine takes 5 min.
const CALM: Millis = 25 * 60_000;

/// And then nothing may happen for this long.
const SILENCE: Millis = 10 * 60_000;

/// What goes on for ever by design: the account is listed at its interval, and Redis asked whether it was emptied.
const POLLS: [&str; 2] = ["cdn.distributions", "board.read"];

const NAMES: [&str; 3] = ["web", "blog", "api"];

/// What the cluster does at one instant.
#[derive(Clone, Debug)]
enum Turn {
    Set(Box<Workload>),
    /// The same, and no watch shows it by itself.
    Hide(Box<Workload>),
    Delete(WorkloadId),
    Relist,
    Trouble,
    PanicWatchers,
}

/// One workload's history, drawn by the dice.
fn history(name: &str, dice: &mut Dice) -> Vec<(Millis, Turn)> {
    let mut turns = Vec::new();
    let (mut uid, mut generation, mut newest, mut tag) = (1, 1, 1, 1);
    let mut at = 5_000 + dice.below(60_000);
    while at < STORM - 120_000 {
        let pause = if dice.chance(300) { dice.below(8_000) } else { 5_000 + dice.below(240_000) };
        let next = at + 500 + pause;
        let before = tag;
        generation += 1;
        match dice.below(100) {
            0..12 => {
                turns.push((at, Turn::Delete(id(name))));
                (uid, generation) = (uid + 1, 1);
                at += 200 + dice.below(pause.max(1));
            }
            12..35 if newest > 1 => tag -= u64::from(tag > 1),
            _ => {
                newest += 1;
                tag = newest;
            }
        }
        let fails = dice.chance(120);
        let takes = 1_000 + dice.below(90_000);
        let mut show = |at: Millis, stage: Stage, dice: &mut Dice| {
            let workload = Box::new(deployment(name, uid, generation, &tag.to_string(), stage));
            turns.push((at, if dice.chance(60) { Turn::Hide(workload) } else { Turn::Set(workload) }));
        };
        let end = if fails { Stage::Missed } else { Stage::Complete };
        let steps = [(0, Stage::Unobserved), (takes / 3, Stage::Half), (takes, end)];
        // Back to the version before is quick, as long as its pods are there.
        let steps = steps.map(|(after, stage)| (if tag < before { after / 10 } else { after }, stage));
        for (after, stage) in steps.into_iter().filter(|(after, _)| at + after < next.max(at + 1)) {
            show(at + after, stage, dice);
        }
        at = next.max(at + 1);
    }
    turns
}

/// Everything the cluster does, in the order of time.
fn script(dice: &mut Dice) -> Vec<(Millis, Turn)> {
    let mut turns: Vec<_> = NAMES.iter().flat_map(|name| history(name, dice)).collect();
    for _ in 0..dice.below(12) {
        let turn = match dice.below(4) {
            0 => Turn::Trouble,
            1 => Turn::PanicWatchers,
            _ => Turn::Relist,
        };
        turns.push((dice.below(STORM), turn));
    }
    turns.push((STORM, Turn::Relist));
    turns.sort_by_key(|(at, _)| *at);
    turns
}

fn take_turn(world: &World, turn: Turn) {
    match turn {
        Turn::Set(workload) => world.set(*workload),
        Turn::Hide(workload) => world.set_unseen(*workload),
        Turn::Delete(id) => world.delete(&id),
        Turn::Relist => world.relist(),
        Turn::Trouble => {
            world.show(|| Sight::Trouble {
                scope: Scope::of(None),
                error: PortError::passing("failed to watch", "as simulated"),
            });
            world.relist();
        }
        Turn::PanicWatchers => world.panic_watchers(),
    }
}

/// How bad it is, by seed.
fn odds(seed: u64) -> Odds {
    match seed % 4 {
        0 => Odds::default(),
        1 => Odds { delay: 300, fail: 80, lose: 50, panic: 0 },
        2 => Odds { delay: 300, fail: 30, lose: 30, panic: 10 },
        _ => Odds { delay: 500, fail: 250, lose: 150, panic: 20 },
    }
}

/// Lives in the world until `end`, or until the process gives itself up.
async fn live(life: &mut Life, turns: &mut std::iter::Peekable<std::vec::IntoIter<(Millis, Turn)>>, end: Millis) {
    while life.world.now() < end && life.has_given_up().is_none() {
        let now = life.world.now();
        while let Some((_, turn)) = turns.next_if(|(at, _)| *at <= now) {
            take_turn(&life.world, turn);
        }
        let next = turns.peek().map_or(end, |(at, _)| *at).min(end).min(now + 1_000);
        life.pass(next.saturating_sub(now).max(1)).await;
    }
}

/// One run; what is wrong at its end.
fn run(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let world = World::new(dice.roll());
    world.distribution("EWEB", &["web.example.com"]);
    world.distribution("EBOTH", &["blog.example.com", "api.example.com"]);
    for name in NAMES {
        world.set(deployment(name, 1, 1, "1", Stage::Complete));
    }
    let mut turns = script(&mut dice).into_iter().peekable();
    let mut ends: Vec<Millis> = (0..dice.below(5)).map(|_| dice.below(STORM)).chain([STORM]).collect();
    ends.sort_unstable();
    for end in ends {
        world.state().odds = odds(seed);
        while world.now() < end {
            life(&world, async |life| live(life, &mut turns, end).await);
            world.pass(1 + dice.below(20_000));
            let now = world.now();
            while let Some((_, turn)) = turns.next_if(|(at, _)| *at <= now) {
                take_turn(&world, turn);
            }
        }
    }
    world.state().odds = Odds::default();
    let mut problems = life(&world, async |life| {
        life.pass(CALM).await;
        let mut problems = Vec::new();
        let seen = life.observe().await;
        let waits = seen.rollouts.iter().all(|rollout| waits_for_its_pods(&life.world, &rollout.workload));
        let idle = waits && seen.purges.is_empty() && seen.deliveries.is_empty();
        if !idle || !seen.quarantined.is_empty() {
            problems.push(format!("not over: {seen:#?}"));
        }
        let asked = life.world.state().asked.len();
        life.pass(SILENCE).await;
        let mut more = life.world.state().asked[asked..].to_vec();
        // Whoever waits for the pods of a version looks again and again, and tells it.
        more.retain(|asked| !POLLS.contains(&asked.call) && seen.rollouts.is_empty());
        if !more.is_empty() {
            problems.push(format!("not silent: {more:?}"));
        }
        problems
    });
    problems.extend(creations_are_right(&world));
    problems.extend(notices_are_told(&world));
    problems.extend(NAMES.iter().filter_map(|name| workload_is_settled(&world, &id(name))));
    problems
}

/// At most one creation for a rollout and distribution; of complete rollouts only; of none that ended without a purge.
fn creations_are_right(world: &World) -> Vec<String> {
    let mut problems = Vec::new();
    let state = world.state();
    let purposes = state.purposes();
    let closed = || state.written.iter().filter_map(|w| Some((&w.workload, w.record.as_ref()?)));
    let mut spared = BTreeSet::new();
    for (workload, record) in closed() {
        for closed in &record.history {
            if !matches!(closed.outcome, Outcome::Purged | Outcome::Impossible) {
                spared.insert((workload.clone(), closed.seq));
            }
        }
    }
    let mut once = BTreeSet::new();
    for created in state.created.values() {
        let Some(purpose) = purposes.get(&created.reference).filter(|all| all.len() == 1).and_then(|all| all.first())
        else {
            problems.push(format!("{created:?} serves {:?}", purposes.get(&created.reference)));
            continue;
        };
        if !once.insert((purpose.clone(), created.distribution.clone())) {
            problems.push(format!("{purpose:?} was purged twice: {created:?}"));
        }
        if spared.contains(purpose) {
            problems.push(format!("{purpose:?} was closed without a purge, and purged: {created:?}"));
        }
        let (workload, seq) = purpose;
        let of_it = |w: &&support::fakes::Written| {
            w.workload == *workload && w.record.as_ref().is_some_and(|record| record.seq == *seq)
        };
        let begun = state.written.iter().find(of_it).map_or(0, |written| written.at);
        let voted = state.written.iter().filter(|w| w.workload == *workload).find_map(|written| {
            let vote = written.record.as_ref()?.votes.iter().find(|vote| vote.seq == *seq)?;
            Some((written.at, vote.version.clone()))
        });
        let proved = voted.is_some_and(|(voted, version)| {
            voted <= created.at
                && state.reads.iter().any(|read| {
                    read.workload == *workload
                        && (begun..=voted).contains(&read.at)
                        && read.was_complete()
                        && read.sight.as_ref().is_some_and(|sight| sight.version.as_ref() == Ok(&version))
                })
        });
        if !proved {
            problems.push(format!("{purpose:?} was purged although no fresh look had shown it complete"));
        }
    }
    problems
}

/// Every notice the ledger ever held is told at least once, always in the same words.
fn notices_are_told(world: &World) -> Vec<String> {
    let state = world.state();
    let mut problems = state.contradictions.clone();
    let mut delivered: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for (_, id, content) in &state.delivered {
        delivered.entry(id).or_default().insert(content);
    }
    problems.extend(
        delivered
            .iter()
            .filter(|(_, contents)| contents.len() > 1)
            .map(|(id, contents)| format!("{id} was told in different words: {contents:#?}")),
    );
    let published: BTreeSet<_> = state.published.iter().map(|(_, id, _)| id).collect();
    for (id, notice) in &state.notices {
        let hooks = if notice.kind == Kind::PurgeCompleted { vec!["ops", "site"] } else { vec!["ops"] };
        let told = hooks.iter().all(|hook| delivered.contains_key(format!("{id}/{hook}").as_str()));
        if !told || !published.contains(id) {
            problems.push(format!("not told (published: {}): {notice:?}", published.contains(id)));
        }
    }
    drop(state);
    let left = world.outbox();
    if !left.is_empty() {
        problems.push(format!("left in the outbox: {left:#?}"));
    }
    problems
}

/// Whether a version that was complete could not be voted for in time, and came back in a later generation that never completes:
/// the one between was missed, so the record knows of one rollout only. It is right to wait for its pods.
fn waits_for_its_pods(world: &World, id: &WorkloadId) -> bool {
    let (Some(record), state) = (world.record(id), world.state()) else { return false };
    let Some(workload) = state.cluster.get(id) else { return false };
    let same = workload.version.as_ref() == Ok(&record.version) && workload.generation > record.generation;
    let complete = workload.standing(false) == Standing::Complete;
    record.phase == Phase::Complete && record.is_open() && record.votes.is_empty() && same && !complete
}

/// The record says what the cluster is, and the edge has it.
fn workload_is_settled(world: &World, id: &WorkloadId) -> Option<String> {
    if waits_for_its_pods(world, id) {
        // In no record, so not among the notices of the ledger.
        let stuck = |notice: &Notice| notice.kind == Kind::RolloutStuck && notice.about.subject() == *id;
        let told = world.state().published.iter().any(|(_, _, notice)| stuck(notice));
        return (!told).then(|| format!("{id} waits for its pods, and nobody was told"));
    }
    let record = world.record(id);
    let state = world.state();
    let Some(workload) = state.cluster.get(id) else {
        return record.map(|record| format!("{id} is gone and has a record: {record:?}"));
    };
    let Some(record) = record else { return Some(format!("{id} has no record")) };
    let wrong = |what: &str| Some(format!("{id} {what}: {record:#?}\n{workload:?}"));
    if record.uid != workload.uid || workload.version.as_ref() != Ok(&record.version) {
        return wrong("is recorded as something else");
    }
    if record.is_open() {
        return wrong("is not done with");
    }
    let complete = workload.standing(false) == Standing::Complete;
    match record.phase {
        // A change of the spec that leaves the images alone is no rollout of a version, whatever becomes of it.
        Phase::Complete if complete || workload.generation > record.generation => {}
        Phase::Failed(_) if !complete => return None,
        // A Deployment that never was anything else is taken as it is.
        Phase::Complete if record.change == Change::Baseline => return None,
        _ => return wrong("is in the wrong phase"),
    }
    if record.change == Change::Baseline {
        return None;
    }
    let Some(closed) = record.history.iter().rfind(|closed| closed.seq == record.seq) else {
        return wrong("has not been closed");
    };
    match closed.outcome {
        Outcome::Returned => None,
        Outcome::Purged => {
            let made = |invalidation: &Option<_>| {
                state.created.values().find(|created| Some(&created.id) == invalidation.as_ref())
            };
            let begun = state.written.iter().find(|written| {
                written.workload == *id && written.record.as_ref().is_some_and(|other| other.seq == record.seq)
            });
            let fresh = closed.purges.iter().all(|(_, invalidation)| {
                made(invalidation).is_some_and(|created| begun.is_some_and(|begun| begun.at <= created.at))
            });
            if fresh && !closed.purges.is_empty() { None } else { wrong("is not purged at the edge") }
        }
        _ => wrong("ended in another way"),
    }
}

#[test]
fn whatever_happens_the_edge_is_fresh_in_the_end_and_everybody_knows() {
    sweep("a cluster alone", (0..SEEDS).chain(FOUND), |seed| (run(seed), format!("{:?}", odds(seed))));
}

#[test]
fn one_seed_is_one_run() {
    for seed in [2, 3] {
        let trace = || {
            let mut dice = Dice(seed);
            format!("{:?}", script(&mut dice))
        };
        assert_eq!(trace(), trace());
    }
}

#[test]
fn a_process_killed_at_any_time_purges_once_in_its_next_life() {
    for killed_at in (2_000..60_000).step_by(250) {
        let world = settled(killed_at, &["web"]);
        life(&world, async |life| {
            let release = async {
                // Without its baseline the new version would be one.
                life.pass(2_000).await;
                // Calls take a moment, so that death comes between a call and its answer too.
                world.state().odds = Odds { delay: 700, ..Odds::default() };
                roll_out(life, "web", 2, "2", 20_000).await;
                life.pass(60_000).await;
            };
            let _ = tokio::time::timeout(std::time::Duration::from_millis(killed_at), release).await;
        });
        world.set(deployment("web", 1, 2, "2", Stage::Complete));
        life(&world, async |life| {
            life.pass(120_000).await;
            assert!(life.observe().await.rollouts.is_empty(), "killed at {killed_at}");
        });
        assert_eq!(world.creations("EWEB").len(), 1, "killed at {killed_at}");
        assert!(!world.told("web", Kind::PurgeCompleted).is_empty(), "killed at {killed_at}");
    }
}

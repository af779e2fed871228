//! What one step of a rollout costs, for each step of a whole happy life: a new tag is seen, pods become ready, the ledger
//! answers, the group agrees, the purge is created and completed, and everything is told.
//!
//! The life is lived once, by answering every effect as production would; then each of its steps is measured by itself.
#![allow(clippy::print_stdout, reason = "a bench answers on standard output")]

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use kernel::id::Seq;
use kernel::machine::{Machine, Timestamp};
use kernel::names::image::{Container, Image, Version};
use kernel::names::paths::Path;
use kinds::reported::Replicas;
use purge::bounds::policy::{Policy, Proof};
use purge::rollouts::rollout::{Effect, Event, Rollout, baseline};
use purge::testing::{answers, identity, settled};
use purge::workloads::workload::Workload;

#[global_allocator]
static ALLOCATED: divan::AllocProfiler = divan::AllocProfiler::system();

/// Pods of the workload.
const PODS: u32 = 3;

fn main() {
    let steps = life();
    let ended = steps.last().is_some_and(|step| step.effects.contains(&Effect::End));
    assert!(ended, "the life did not come to its end: {steps:?}");
    println!("a whole life has {} steps; the machine has {} bytes", steps.len(), size_of::<Rollout>());
    divan::main();
}

/// A thousand rollouts at the end of a life each, which ask the edge for so many pages and wait for the answers; at no pages they have ended.
/// What they take is the most that was allocated.
#[divan::bench(args = [0, 1, 4], sample_count = 1, sample_size = 1)]
fn thousand(bencher: Bencher<'_, '_>, pages: usize) {
    let paths = ["/", "/shop", "/blog", "/about"].into_iter().take(pages);
    let paths: Vec<Path> = paths.filter_map(|path| path.parse().ok()).collect();
    let proof = Proof { enabled: pages > 0, paths, ..Proof::default() };
    let live = || lived(Policy { proof: proof.clone(), ..Policy::default() }).pop().map(|last| asking(last.after));
    bencher.bench_local(|| std::iter::repeat_with(live).take(1_000).collect::<Vec<_>>());
}

#[divan::bench(args = life())]
fn step(bencher: Bencher<'_, '_>, step: &Step) {
    bencher
        .with_inputs(|| (step.before.clone(), step.event.clone()))
        .bench_values(|(mut machine, event)| (machine.step(step.now, event), machine));
}

#[divan::bench]
fn whole_life(bencher: Bencher<'_, '_>) {
    let steps = life();
    let first = steps.first().map(|step| step.before.clone());
    let events = || steps.iter().map(|step| (step.now, step.event.clone())).collect::<Vec<_>>();
    bencher.counter(ItemsCount::new(steps.len())).with_inputs(|| (first.clone(), events())).bench_values(
        |(mut machine, events)| {
            for (now, event) in events {
                machine.iter_mut().for_each(|machine| drop(machine.step(now, event.clone())));
            }
            machine
        },
    );
}

/// One step, and the machine as it was before and after it.
#[derive(Clone, Debug)]
struct Step {
    number: usize,
    before: Rollout,
    after: Rollout,
    now: Timestamp,
    event: Event,
    effects: Vec<Effect>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = format!("{:?}", self.event);
        let name = event.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let effects: Vec<&str> = self.effects.iter().map(Effect::name).collect();
        write!(f, "{:02} {name} -> {}", self.number, effects.join(", "))
    }
}

fn life() -> Vec<Step> {
    lived(Policy::default())
}

/// Lives the life: pods become ready one after another, and every effect is answered in its turn, but for what the edge is asked.
fn lived(mut policy: Policy) -> Vec<Step> {
    let old = sight("2026.11.19", 1, PODS);
    let record = old.version.as_ref().ok().map(|version| baseline(&old, version, Seq(0)));
    policy.barrier.settle = Duration::ZERO;
    let mut machine = Rollout::resume(identity(), policy, Seq(0), record);
    let mut sights: VecDeque<Workload> = (0..=PODS).map(|updated| sight("2026.11.20", 2, updated)).collect();
    let mut events = VecDeque::new();
    let mut steps = Vec::new();
    for number in 0..100 {
        let news = || sights.pop_front().map(|sight| Event::Seen(Box::new(sight)));
        let Some(event) = events.pop_front().or_else(news) else { break };
        let (before, now) = (machine.clone(), Timestamp::from_millis(number * 10));
        let effects = machine.step(now, Event::clone(&event));
        let asked = effects.iter().filter(|effect| !matches!(effect, Effect::AskEdge(..)));
        events.extend(asked.flat_map(|effect| answers(effect, machine.workload())));
        steps.push(Step { number: steps.len(), before, after: machine.clone(), now, event, effects });
    }
    steps
}

/// The rollout once it has asked the edge for all its pages. Its earlier notices are delivered, and no longer in its record.
fn asking(mut machine: Rollout) -> Rollout {
    let mut events = VecDeque::new();
    for _ in 0..100 {
        let Some(now) = machine.next_deadline() else { break };
        let mut effects = machine.tick(now);
        let mut asks = false;
        while !effects.is_empty() {
            asks |= effects.iter().any(|effect| matches!(effect, Effect::AskEdge(..)));
            let answered = effects.iter().filter(|effect| !matches!(effect, Effect::AskEdge(..)));
            events.extend(answered.flat_map(|effect| answers(effect, machine.workload())));
            effects = std::iter::from_fn(|| events.pop_front()).flat_map(|event| machine.step(now, event)).collect();
        }
        if asks {
            break;
        }
    }
    machine
}

/// The workload at a version, with this many pods of it ready.
fn sight(tag: &str, generation: i64, updated: u32) -> Workload {
    let images = ["web", "proxy"].into_iter().filter_map(|name| {
        let image = Image::parse(&format!("registry.example.com:5000/shop/{name}:{tag}")).ok()?;
        Some((Container::Main(name.to_owned()), image))
    });
    let complete = settled(images.collect::<Version>(), generation, PODS);
    Workload { replicas: Replicas { updated, ..complete.replicas }, ..complete }
}

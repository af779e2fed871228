//! How soon a purge follows: `make latency`.
//!
//! What is measured is the time from the status that completes the rollout in the last cluster to the arrival of CreateInvalidation,
//! with nothing settling: in a cluster that is alone; there also from the moment the last old pod stops serving; and in three clusters with the program in each and a real `redis-server` per
//! member, all on this machine; there with a member that is killed as soon as it has told its vote, each in turn, where another takes
//! over after `group.takeover`; with wake-ups, with the clusters close to each other; and without wake-ups, when members hear of each
//! other only by looking every few seconds. The figures are printed beside their aims; nothing fails by time.
//!
//! `ALLCLEAR_BIN` names another program than the one built with this bench. Times include what the stand-ins take on the
//! same processors, so they are upper bounds.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench measures real time and answers on standard output"
)]

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use purge::records::record::Record;
use purge::records::record_codec;
use sandbox::group::{GroupWorld, Web};
use sandbox::kubernetes::{Kind, Timings};
use sandbox::world::World;
use serde_json::json;
use support::controller::Controller;
use support::process::program;

const NAMESPACE: &str = "shop";
const NAME: &str = "web";
const IMAGE: &str = "registry.example.com/shop/web";
const MEMBERS: usize = 3;

/// Rollouts that are measured.
const ROLLOUTS: usize = 100;

/// The same without wake-ups, where each takes seconds.
const SLOW_ROLLOUTS: usize = 20;

/// Rollouts in which a member is killed.
const KILLS: usize = 30;

/// How long CloudFront takes, far less than in earnest.
const COMPLETES_AFTER: Duration = Duration::from_millis(50);

/// From one cluster's completion to the next: the others may still be telling of the one before.
const APART: Duration = Duration::from_millis(80);

/// A vote is told to the others within this. If its member dies before, they wait for that member to return.
const TOLD_WITHIN: Duration = Duration::from_millis(20);

/// What takes longer than this was not done by the first in rank.
const TAKEN_OVER: Duration = Duration::from_secs(1);

/// Nothing that is waited for takes longer than this, or it never happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// From one rollout to the next.
const BETWEEN: Duration = Duration::from_millis(500);

/// How long pods take to end by the cluster's clock, which the bench moves on.
const DRAINS_FOR: Duration = Duration::from_secs(20);

/// How long old pods are waited for by the clock of this machine: no look at them happens to be due when they end.
const DRAINS_AT_LEAST: Duration = Duration::from_millis(333);

/// How often something that is waited for is looked at. The moments that are measured are not: the stand-ins note them.
const LOOK_EVERY: Duration = Duration::from_millis(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    // `cargo test --all-targets` runs every bench for a moment, without this argument; there is no moment of this one.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let program = program();
    println!("{program}; load of the machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let alone = Group::start(&program, 1, true).await?;
    print("alone", alone.roll_outs(ROLLOUTS).await?, "p50 12 ms, p99 30 ms on a real API server, after settling");
    drop(alone);
    let draining = Group::start_with(&program, 1, true, Timings { pod_gone: DRAINS_FOR, ..Timings::IMMEDIATE }).await?;
    let mut times = Vec::new();
    for number in 0..ROLLOUTS {
        times.push(draining.drain(number).await?);
        tokio::time::sleep(BETWEEN).await;
    }
    print_from("last old pod stops serving", "alone, an old pod drains", times, "p50 25 ms, p99 60 ms");
    drop(draining);
    let mut group = Group::start(&program, MEMBERS, true).await?;
    let mut times = Vec::new();
    for number in 0..KILLS {
        times.push(group.roll_out_and_kill(number, number % MEMBERS).await?);
    }
    let taken_over = times.iter().filter(|time| **time > TAKEN_OVER).count();
    print(&format!("{MEMBERS} members, one killed after its vote, {taken_over} taken over"), times, "none above 6 s");
    drop(group);
    let group = Group::start(&program, MEMBERS, true).await?;
    print(&format!("{MEMBERS} members"), group.roll_outs(ROLLOUTS).await?, "p50 190 ms, p99 260 ms");
    drop(group);
    let group = Group::start(&program, MEMBERS, false).await?;
    print(&format!("{MEMBERS} members, wake-ups off"), group.roll_outs(SLOW_ROLLOUTS).await?, "none above 10 s");
    Ok(())
}

fn print(what: &str, times: Vec<Duration>, aim: &str) {
    print_from("last completion", what, times, aim);
}

fn print_from(from: &str, what: &str, mut times: Vec<Duration>, aim: &str) {
    times.sort();
    let percentile = |percent: usize| times[(times.len() * percent).div_ceil(100).saturating_sub(1)].as_millis();
    println!(
        "{what}: {from} to CreateInvalidation p50 {} ms, p90 {} ms, p99 {} ms, p100 {} ms of {} (aim {aim})",
        percentile(50),
        percentile(90),
        percentile(99),
        percentile(100),
        times.len(),
    );
}

/// Starts a member. One distribution is purged more often here than a namespace may, unless the operator allows more.
async fn start(program: &str, world: &World, environment: &BTreeMap<String, String>) -> io::Result<Controller> {
    let config = world.kubeconfig().with_file_name("latency.toml");
    std::fs::write(&config, format!("[[tenants.allow]]\nnamespaces = [\"{NAMESPACE}\"]\npurges_per_hour = 3600\n"))?;
    Controller::start_with(program, &["--config", &config.to_string_lossy(), "run"], environment).await
}

/// The group under measurement.
struct Group {
    program: String,
    /// The programs, by member, and with what each was started; they end first.
    controllers: Vec<Controller>,
    environments: Vec<BTreeMap<String, String>>,
    worlds: Vec<World>,
    /// What keeps the servers and lines alive; one that is alone has none.
    _web: Option<Web>,
}

impl Group {
    async fn start(program: &str, members: usize, wakes: bool) -> io::Result<Self> {
        Self::start_with(program, members, wakes, Timings::IMMEDIATE).await
    }

    async fn start_with(program: &str, members: usize, wakes: bool, timings: Timings) -> io::Result<Self> {
        let (worlds, web) = if members == 1 {
            (vec![World::new(timings, Some(COMPLETES_AFTER)).await?], None)
        } else {
            let web = Web::new(members, None, if wakes { &[] } else { &DEAF })?;
            let group = GroupWorld::joined(members, timings, Some(COMPLETES_AFTER), web).await?;
            (group.worlds, Some(group.web))
        };
        let (mut controllers, mut environments) = (Vec::new(), Vec::new());
        for world in &worlds {
            world.add_site(NAMESPACE, NAME, &format!("{IMAGE}:0"), "www.example.com", "E2LATENCY")?;
            world.kubernetes.settle();
            // Nothing but the loopback is slow here: purges that follow each other closely are not to wait for each other.
            let quick = [
                ("ALLCLEAR__PURGE__CREATIONS_PER_SECOND", "100"),
                ("ALLCLEAR__PURGE__DEBOUNCE", "0s"),
                // The figure is counted from the end of the settling.
                ("ALLCLEAR__ROLLOUT__SETTLE", "0s"),
                ("ALLCLEAR__PURGE__POLL_FIRST", "100ms"),
            ];
            let mut environment: BTreeMap<String, String> = world.environment().into_iter().collect();
            environment.extend(quick.map(|(name, value)| (name.to_owned(), value.to_owned())));
            controllers.push(start(program, world, &environment).await?);
            environments.push(environment);
        }
        for controller in &controllers {
            controller.ready().await?;
            controller.metric_is("allclear_workloads", 1).await?;
        }
        Ok(Self { program: program.to_owned(), controllers, environments, worlds, _web: web })
    }

    /// Rolls so many versions out, one after the other.
    async fn roll_outs(&self, count: usize) -> io::Result<Vec<Duration>> {
        let mut times = Vec::new();
        for number in 0..count {
            times.push(self.roll_out(number).await?);
            // Releases of one workload are further apart than the writes of its record may be.
            tokio::time::sleep(BETWEEN).await;
        }
        Ok(times)
    }

    /// Rolls the next version out, the clusters one after another; returns the time from the last completion to the purge.
    async fn roll_out(&self, number: usize) -> io::Result<Duration> {
        let (image, last) = self.complete(number).await?;
        self.end(number, &image, last).await
    }

    /// The same, with a member that is killed as soon as it has told its vote, and started again after the purge.
    async fn roll_out_and_kill(&mut self, number: usize, member: usize) -> io::Result<Duration> {
        let (image, last) = self.complete(number).await?;
        wait("the vote", || record(&self.worlds[member]).is_some_and(|record| !record.votes.is_empty())).await?;
        tokio::time::sleep(TOLD_WITHIN).await;
        drop(self.controllers.remove(member));
        forget_abrupt_ends(&self.worlds[member])?;
        let purges = || self.worlds[0].cloudfront.invalidations();
        wait("the purge", || purges().len() > number).await?;
        let again = start(&self.program, &self.worlds[member], &self.environments[member]).await?;
        self.controllers.insert(member, again);
        self.end(number, &image, last).await
    }

    /// Rolls the next version out in the one cluster, where old pods serve on for a while, and ends them.
    async fn drain(&self, number: usize) -> io::Result<Duration> {
        let (image, _) = self.complete(number).await?;
        tokio::time::sleep(DRAINS_AT_LEAST).await;
        let last = Instant::now();
        for world in &self.worlds {
            world.kubernetes.skip(DRAINS_FOR);
            world.kubernetes.settle();
        }
        self.end(number, &image, last).await
    }

    /// Sets the next image everywhere, and completes it in one cluster after another; returns it, and when the last was complete.
    async fn complete(&self, number: usize) -> io::Result<(String, Instant)> {
        let image = format!("{IMAGE}:{}", number + 1);
        let mut last = Instant::now();
        for world in &self.worlds {
            world.kubernetes.set_image(NAMESPACE, NAME, NAME, &image).map_err(refused)?;
        }
        for world in &self.worlds {
            tokio::time::sleep(APART).await;
            last = Instant::now();
            world.kubernetes.settle();
        }
        Ok((image, last))
    }

    async fn end(&self, number: usize, image: &str, last: Instant) -> io::Result<Duration> {
        let purges = || self.worlds[0].cloudfront.invalidations();
        wait("the purge", || purges().len() > number).await?;
        let took = purges()[number].at.saturating_duration_since(last);
        wait("the end of the rollout", || self.worlds.iter().all(|world| closed(world, image))).await?;
        Ok(took)
    }
}

/// What makes members deaf to wake-ups: nobody may subscribe.
const DEAF: [&str; 6] = ["--rename-command", "SUBSCRIBE", "", "--rename-command", "PSUBSCRIBE", ""];

/// A life that knows of two abrupt ends before it lets the workload rest. Here every life is to go on at once.
fn forget_abrupt_ends(world: &World) -> io::Result<()> {
    let Some(mut ledger) = world.kubernetes.get(Kind::ConfigMap, "default", "allclear-ledger") else { return Ok(()) };
    if let Some(data) = ledger["data"].as_object_mut() {
        data.remove("life");
    }
    world.kubernetes.put(ledger).map(drop).map_err(refused)
}

/// What a member's ledger has of the workload.
fn record(world: &World) -> Option<Record> {
    let key = format!("deployment.{NAMESPACE}.{NAME}");
    let maps = world.kubernetes.list(Kind::ConfigMap, "default");
    let texts = maps.iter().filter_map(|map| map["data"][&key].as_str());
    texts.filter_map(|text| record_codec::decode(text.as_bytes()).ok()).max_by_key(|record| record.revision)
}

/// Whether a member's ledger has closed everything, this image last.
fn closed(world: &World, image: &str) -> bool {
    record(world).is_some_and(|record| {
        let version = json!(record.version).to_string();
        record.closed == record.seq
            && record.votes.is_empty()
            && version.contains(image.rsplit(':').next().unwrap_or_default())
    })
}

async fn wait(what: &str, mut happened: impl FnMut() -> bool) -> io::Result<()> {
    let from = Instant::now();
    while !happened() {
        if from.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("waited in vain for {what}")));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

fn refused(failure: sandbox::kubernetes::Failure) -> io::Error {
    io::Error::other(format!("the stand-in refused it: {failure:?}"))
}

//! A release of three hundred Deployments at once, beside ten thousand: what it costs, and how soon the edge is purged.
//!
//! They are released one after the other within nine seconds, which is faster than a controller manager with its default of
//! twenty writes a second makes their pods. So something happens all the time, in one namespace, whose pods are followed by all.
//!
//! CloudFront's stand-in throttles as an account of AWS does. A rollout is *covered* by the first invalidation of its distribution
//! that was created after its last fact: all of them purge everything. The last fact is the status that makes the Deployment
//! complete; nothing is waited for after it (`rollout.settle` is 0), so the rest is ours and the pace CloudFront allows.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use sandbox::cloudfront::{Bucket, Quota};
use sandbox::http::Seen;
use support::controller::{Controller, processor_time};
use support::fixture::{CONTAINER, image, name, namespace};

use crate::cluster::{App, Cluster, DEPLOYMENTS, STEP_EVERY, WORKLOADS, refused, serving, until};
use crate::{Report, seconds};

/// Rollouts at once, of three pods each: the first Deployments.
const ROLLOUTS: usize = 300;

const PLACE: &str = "release";

/// From the release of one to that of the next.
const RELEASE_EVERY: Duration = Duration::from_millis(30);

/// Distributions that serve them, as many each.
const DISTRIBUTIONS: usize = 10;

/// From one pod's readiness to the next: a rollout takes three of them, as small ones do in a real cluster.
const POD_READY: Duration = Duration::from_secs(1);

/// Creations that CloudFront's stand-in grants at once.
const BUCKET: u32 = 10;

/// What has not happened by then never does. At 0.5 creations a second a round over the distributions takes 20 s.
const PATIENCE: Duration = Duration::from_secs(180);

/// What an account grants, and what is aimed at with it.
struct Account {
    every: Duration,
    words: &'static str,
    aim: &'static str,
}

const ACCOUNTS: [Account; 2] = [
    Account { every: Duration::from_millis(200), words: "5/s", aim: "≤ 12 s" },
    Account { every: Duration::from_secs(2), words: "0.5/s", aim: "" },
];

/// One rollout on its way.
struct Rollout {
    app: App,
    distribution: String,
    complete: Option<Instant>,
}

/// Prints what a release costs, with each account.
pub async fn measure(program: &str, report: &mut Report) -> io::Result<()> {
    let from = Instant::now();
    let of = |index| (0..ROLLOUTS).skip(index).step_by(DISTRIBUTIONS);
    let place = |number| if number < ROLLOUTS { PLACE.to_owned() } else { namespace(number) };
    let distributions = (0..DISTRIBUTIONS).map(|index| serving(&distribution(index), of(index)));
    let cluster = Cluster::fill_with(distributions, POD_READY, place).await?;
    println!("filled the stand-ins with {DEPLOYMENTS} Deployments in {}", seconds(from.elapsed()));
    for (index, account) in ACCOUNTS.iter().enumerate() {
        let environment = cluster.environment().into_iter().filter(|(name, _)| !name.ends_with("CREATIONS_PER_SECOND"));
        let settle = ("ALLCLEAR__ROLLOUT__SETTLE".to_owned(), "0s".to_owned());
        let controller = Controller::start(program, &environment.chain([settle]).collect()).await?;
        controller.metric_is("allclear_workloads", WORKLOADS).await?;
        let creations = Some(Bucket::new(account.every, BUCKET));
        cluster.world.cloudfront.hold_to(Quota { creations, ..Quota::default() });
        burst(&cluster, &controller, account, &format!("2026.11.23-{index}"), report).await?;
        report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
    }
    Ok(())
}

async fn burst(
    cluster: &Cluster,
    controller: &Controller,
    account: &Account,
    tag: &str,
    report: &mut Report,
) -> io::Result<()> {
    let world = &cluster.world;
    let (cpu, own_cpu) = (controller.cpu()?, processor_time("self")?);
    let (created, throttled) = (world.cloudfront.invalidations().len(), world.cloudfront.beyond_quota());
    let begun = Instant::now();
    let rollout = |number| {
        let app = App { cluster: world.kubernetes.clone(), namespace: PLACE.to_owned(), name: name(number) };
        Rollout { app, distribution: distribution(number % DISTRIBUTIONS), complete: None }
    };
    let mut rollouts: Vec<Rollout> = (0..ROLLOUTS).map(rollout).collect();
    let times = covered(cluster, &mut rollouts, (begun, tag)).await?;
    controller.metric_is("allclear_rollouts_in_flight", 0).await?;
    let (cpu, own_cpu) = (controller.cpu()? - cpu, processor_time("self")? - own_cpu);
    let what = format!("{ROLLOUTS} rollouts at once, {} granted", account.words);
    let aims = [(50, ""), (99, account.aim), (100, "")];
    report.percentiles(&format!("{what}: last fact to covered"), times.into_iter(), &aims);
    report.line("… all at rest after", seconds(begun.elapsed()), "");
    report.line("… processor time", seconds(cpu), "≤ 3 s");
    let share = cpu.as_secs_f64() / (cpu + own_cpu).as_secs_f64() * 100.0;
    report.line("… share of it in all that was used, stand-ins included", format!("{share:.0} %"), "");
    let created = world.cloudfront.invalidations().len() - created;
    let throttled = world.cloudfront.beyond_quota() - throttled;
    report.line("… creations, and throttled ones", format!("{created}, {throttled}"), "≤ 70 creations");
    ledger(&world.api.seen(), begun, report)
}

/// Releases them, and runs the cluster until each rollout is covered; returns how long that took since its last fact.
async fn covered(
    cluster: &Cluster,
    rollouts: &mut [Rollout],
    (begun, tag): (Instant, &str),
) -> io::Result<Vec<Duration>> {
    let (mut times, mut released) = (Vec::new(), 0);
    let mut open: BTreeSet<usize> = (0..rollouts.len()).collect();
    while !open.is_empty() {
        let before = Instant::now();
        while let Some(Rollout { app, .. }) =
            rollouts.get(released).filter(|_| begun + RELEASE_EVERY * count(released) <= before)
        {
            app.cluster.set_image(PLACE, &app.name, CONTAINER, &image(released, tag)).map_err(refused)?;
            released += 1;
        }
        cluster.world.kubernetes.step();
        for rollout in rollouts.iter_mut().take(released).filter(|rollout| rollout.complete.is_none()) {
            rollout.complete = rollout.app.is_complete().then_some(before);
        }
        let purges = cluster.world.cloudfront.invalidations();
        open.retain(|index| {
            let Some((complete, of)) = rollouts.get(*index).and_then(|one| Some((one.complete?, &one.distribution)))
            else {
                return true;
            };
            let by = purges.iter().filter(|purge| purge.distribution == *of && purge.at >= complete);
            let first = by.map(|purge| purge.at.saturating_duration_since(complete)).min();
            times.extend(first);
            first.is_none()
        });
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("{} rollouts are not covered", open.len())));
        }
        tokio::time::sleep(STEP_EVERY * 4).await;
    }
    until("the last old pods", || (cluster.world.kubernetes.step() == 0).then_some(())).await?;
    Ok(times)
}

/// What was written to the ledger.
fn ledger(seen: &[Seen], begun: Instant, report: &mut Report) -> io::Result<()> {
    if seen.first().is_none_or(|first| first.at >= begun) {
        return Err(io::Error::other("the API server's stand-in has forgotten requests of the burst"));
    }
    let writes =
        seen.iter().filter(|seen| seen.at >= begun && seen.method != "GET" && seen.path.contains("/allclear-ledger"));
    let bytes: Vec<usize> = writes.map(|write| write.body_bytes).collect();
    report.line("… writes to the ledger", bytes.len().to_string(), "");
    let each = bytes.iter().sum::<usize>() / ROLLOUTS / 1_000;
    report.line("… bytes written to the ledger for each rollout", format!("{each} KB"), "≤ 30 KB");
    Ok(())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn distribution(index: usize) -> String {
    format!("EBURST{index:07}")
}

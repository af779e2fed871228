//! The whole process in a large cluster: `make scale`.
//!
//! The stand-ins (10,000 Deployments of 6 KiB, each with a Service and an Ingress, and 501 distributions) live in this
//! process; the controller is the release binary, started and ended like in earnest, and looked at from outside only. In the
//! chapters about Pipelines and Repos it is this program (see `stand_in`). The figures are printed beside their aims; nothing fails by time.
//!
//! With the argument `starts`, `churn`, `pipelines`, `repos`, `drift` or `burst`, only that chapter is measured.
//!
//! `ALLCLEAR_BIN` names another binary than the one built with this program. The aims for memory are those of what ships, which is built with
//! the profile `dist`: a program's own pages count, and those of the profile `bench` are 10 MiB more. Times include what the stand-ins
//! take on the same processors, so they are upper bounds.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench measures real time and answers on standard output"
)]

mod burst;
mod churn;
mod cluster;
mod drift;
mod peers;
mod pipelines;
mod repos;
mod stand_in;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cluster::{Cluster, DEPLOYMENTS, Purge, WORKLOADS};
use comfy_table::{Table, presets};
use peers::Peers;
use support::controller::{Controller, Memory};
use support::process::program;

/// Rollouts one after another, each with a distribution of its own. The 99th percentile of them is the second slowest.
const ROLLOUTS: usize = 100;

/// Workloads of one distribution that are released together.
const RELEASED: usize = 20;

/// How long it is left alone before it counts as idle.
const IDLE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    if let Some(code) = stand_in::live() {
        return code;
    }
    // `cargo test --all-targets` runs every bench for a moment, without this argument; there is no moment of this one.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|on| on.block_on(measure())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> io::Result<()> {
    let program = program();
    let mut report = Report::default();
    report.machine("before");
    if std::env::args().any(|argument| argument == "burst") {
        burst::measure(&program, &mut report).await?;
        report.machine("after");
        println!("{}", report.table);
        return Ok(());
    }
    let from = Instant::now();
    let cluster = Cluster::fill(ROLLOUTS, RELEASED).await?;
    println!(
        "filled the stand-ins with {WORKLOADS} workloads, {DEPLOYMENTS} of them Deployments, in {}",
        seconds(from.elapsed())
    );
    if std::env::args().any(|argument| argument == "pipelines") {
        pipelines::measure(&cluster, &mut report).await?;
        report.machine("after");
        println!("{}", report.table);
        return Ok(());
    }
    if std::env::args().any(|argument| argument == "repos") {
        repos::measure(&cluster, &mut report).await?;
        report.machine("after");
        println!("{}", report.table);
        return Ok(());
    }
    if std::env::args().any(|argument| argument == "drift") {
        drift::measure(&cluster, &mut report).await?;
        report.machine("after");
        println!("{}", report.table);
        return Ok(());
    }
    cold_start(&program, &cluster, &mut report).await?;
    let controller = warm_start(&program, &cluster, &mut report).await?;
    if std::env::args().any(|argument| argument == "starts") {
        report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
        report.machine("after");
        println!("{}", report.table);
        return Ok(());
    }
    if std::env::args().any(|argument| argument == "churn") {
        churn::measure(&cluster, &controller, &mut report).await?;
        report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
        report.machine("after");
        println!("{}", report.table);
        return Ok(());
    }
    let slowest = one_after_another(&cluster, "2026.11.21-5e6f7a8", "", &mut report).await?;
    all_together(&cluster, &controller, &mut report).await?;
    report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
    pipelines::measure(&cluster, &mut report).await?;
    repos::measure(&cluster, &mut report).await?;
    drift::measure(&cluster, &mut report).await?;
    // Last: its ledger has the members pinned from then on, and purges nothing for one who works alone.
    in_a_group(&program, &cluster, &mut report).await?;
    drop(cluster);
    burst::measure(&program, &mut report).await?;
    report.machine("after");
    println!("{}", report.table);
    println!("the slowest rollout, from the status that completed it to the creation of its invalidation:");
    slowest.iter().for_each(|request| println!("{request}"));
    Ok(())
}

async fn cold_start(program: &str, cluster: &Cluster, report: &mut Report) -> io::Result<()> {
    let writes = cluster.writes();
    let controller = Controller::start(program, &cluster.environment()).await?;
    report.line("cold start: ready after", seconds(controller.ready().await?), "≤ 10 s");
    report.memory("cold start: memory when ready", controller.memory()?, "≤ 150 MiB");
    let known = controller.metric_is("allclear_workloads", WORKLOADS).await?;
    report.line("cold start: all records durable after", seconds(known), "");
    report.line("cold start: writes to the API server", (cluster.writes() - writes).to_string(), "≤ 100");
    report.line("cold start: processor time", seconds(controller.cpu()?), "");
    report.memory("cold start: memory when all is durable", controller.memory()?, "≤ 150 MiB");
    let cpu = controller.cpu()?;
    tokio::time::sleep(IDLE).await;
    report.memory("30 s later, idle", controller.memory()?, "≤ 40 MiB");
    report.line("processor time in these 30 s", seconds(controller.cpu()? - cpu), "");
    report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
    Ok(())
}

async fn warm_start(program: &str, cluster: &Cluster, report: &mut Report) -> io::Result<Controller> {
    let writes = cluster.writes();
    let controller = Controller::start(program, &cluster.environment()).await?;
    report.line("restart: ready after", seconds(controller.ready().await?), "≤ 10 s");
    report.memory("restart: memory when ready", controller.memory()?, "≤ 150 MiB");
    report.line("restart: processor time", seconds(controller.cpu()?), "");
    tokio::time::sleep(IDLE).await;
    report.memory("30 s later, idle", controller.memory()?, "≤ 36 MiB");
    report.line("restart: writes to the API server", (cluster.writes() - writes).to_string(), "0");
    Ok(controller)
}

/// Measures the way from the last fact, which is the end of the settling, to the purge, `beside` what else happens; returns what happened on the longest.
async fn one_after_another(cluster: &Cluster, tag: &str, beside: &str, report: &mut Report) -> io::Result<Vec<String>> {
    let mut purges = Vec::new();
    for number in 0..ROLLOUTS {
        purges.push(cluster.roll_out(number, tag).await?);
    }
    purges.sort_by_key(Purge::latency);
    let aims = [(50, "≤ 12 ms"), (90, ""), (99, "≤ 30 ms"), (100, "")];
    report.percentiles(
        &format!("end of settling to CreateInvalidation{beside}"),
        purges.iter().map(Purge::latency),
        &aims,
    );
    Ok(purges.last().map(|slowest| cluster.requests(slowest)).unwrap_or_default())
}

async fn all_together(cluster: &Cluster, controller: &Controller, report: &mut Report) -> io::Result<()> {
    controller.metric_is("allclear_rollouts_in_flight", 0).await?;
    let complete = cluster.release(ROLLOUTS..ROLLOUTS + RELEASED, "2026.11.21-5e6f7a8").await?;
    controller.metric_is("allclear_rollouts_in_flight", 0).await?;
    let what = format!("{RELEASED} workloads of one distribution released together: invalidations");
    report.line(&what, cluster.shared_purges().to_string(), "2 or 3");
    report.line("… all purged, after the last was complete", seconds(complete.elapsed()), "");
    report.memory("after all rollouts", controller.memory()?, "≤ 60 MiB");
    report.line("processor time since its start", seconds(controller.cpu()?), "");
    Ok(())
}

/// Measures what it costs to know as many records of each of two other members.
async fn in_a_group(program: &str, cluster: &Cluster, report: &mut Report) -> io::Result<()> {
    let Some(peers) = Peers::fill().await? else {
        println!("in a group: not measured, for redis-server is not installed");
        return Ok(());
    };
    let what = format!("in a group: one member posts {DEPLOYMENTS} records to one Redis");
    report.line(&what, seconds(peers.posted_in), "");
    let environment = cluster.environment().into_iter().chain(peers.environment()).collect();
    peers.beat().await?;
    let controller = Controller::start(program, &environment).await?;
    report.line("in a group of three: ready after", seconds(controller.ready().await?), "≤ 10 s");
    let agreed = controller.state_has(r#""hold":null"#).await?;
    report.line("in a group of three: members pinned after", seconds(agreed), "");
    tokio::time::sleep(IDLE).await;
    report.memory("30 s later, idle, the others' records read and ours posted", controller.memory()?, "≤ 150 MiB");
    report.line("processor time since its start", seconds(controller.cpu()?), "");
    let cpu = controller.cpu()?;
    tokio::time::sleep(IDLE).await;
    report.line("processor time in another 30 s", seconds(controller.cpu()? - cpu), "");
    report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// What was found, beside what was aimed at.
struct Report {
    table: Table,
}

impl Default for Report {
    fn default() -> Self {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["", "found", "aim"]);
        Self { table }
    }
}

impl Report {
    fn line(&mut self, what: &str, found: String, aim: &str) {
        println!("{what}: {found}");
        self.table.add_row([what, &found, aim]);
    }

    /// The times, by percentile.
    fn percentiles(&mut self, what: &str, times: impl Iterator<Item = Duration>, aims: &[(usize, &str)]) {
        let mut times: Vec<Duration> = times.collect();
        times.sort();
        for (percent, aim) in aims {
            let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
            let found = times.get(rank).copied().unwrap_or_default();
            self.line(&format!("{what}, p{percent} of {}", times.len()), format!("{} ms", found.as_millis()), aim);
        }
    }

    fn memory(&mut self, what: &str, Memory { resident, anonymous, peak }: Memory, aim: &str) {
        self.line(what, format!("{resident:.1} MiB ({anonymous:.1} heap; peak {peak:.1})"), aim);
    }

    /// How busy the machine is: figures from a busy one say little about times.
    fn machine(&mut self, when: &str) {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<&str> = load.split(' ').take(3).collect();
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        self.line(&format!("load of the machine {when} ({processors} processors)"), load.join(" "), "");
    }
}

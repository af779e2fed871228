//! What routes changes all the time, beside workloads at rest: what that costs, and whether a move is found all the same.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use sandbox::http::Seen;
use sandbox::kubernetes::Kind;
use serde_json::json;
use support::controller::Controller;
use support::fixture::{name, namespace};

use crate::cluster::{Cluster, DEPLOYMENTS, WORKLOADS, distribution, refused, until};
use crate::{IDLE, Report, seconds};

/// Changes of Services that touch no selector.
const PLAIN: usize = 1_000;

/// Services whose selectors change once a second, and for how many seconds.
const SWITCHED: usize = 5_000;
const ROUNDS: usize = 10;

/// After a change, until what follows from it is done.
const SETTLES: Duration = Duration::from_secs(10);

/// From one Deployment to the next in its namespace.
const NEXT: usize = 50;

/// Requests since `from` that are no watch and have no part in the lease.
fn requests(cluster: &Cluster, from: Instant) -> Vec<Seen> {
    let is_work = |seen: &Seen| seen.at >= from && !seen.query.contains_key("watch") && !seen.path.contains("/leases/");
    let mut seen = cluster.world.api.seen();
    seen.retain(is_work);
    seen
}

/// How many there were, and the first of them.
fn counted(requests: &[Seen]) -> String {
    let first = requests.first().map_or_else(String::new, |first| format!(", first {} {}", first.method, first.path));
    format!("{}{first}", requests.len())
}

fn patch(cluster: &Cluster, number: usize, change: &serde_json::Value) -> io::Result<()> {
    let patched = cluster.world.kubernetes.patch(Kind::Service, &namespace(number), &name(number), change);
    patched.map(drop).map_err(refused)
}

/// Has each of the Services select its own pods, or those of the next Deployment.
fn switch(cluster: &Cluster, numbers: impl Iterator<Item = usize>, away: bool) -> io::Result<()> {
    for number in numbers {
        let to = if away { number + NEXT } else { number };
        patch(cluster, number, &json!({"spec": {"selector": {"app": name(to)}}}))?;
    }
    Ok(())
}

/// Measures a controller that has been at rest for a while.
pub async fn measure(cluster: &Cluster, controller: &Controller, report: &mut Report) -> io::Result<()> {
    let (at, cpu) = (Instant::now(), controller.cpu()?);
    tokio::time::sleep(IDLE).await;
    let what = format!("at rest: {WORKLOADS} workloads, {DEPLOYMENTS} Services and Ingresses");
    report.memory(&what, controller.memory()?, "≤ 48 MiB");
    report.line("at rest for 30 s: requests that renew no watch and no lease", counted(&requests(cluster, at)), "0");
    report.line("at rest for 30 s: processor time", seconds(controller.cpu()? - cpu), "");

    let (at, cpu) = (Instant::now(), controller.cpu()?);
    for number in 0..PLAIN {
        patch(cluster, number, &json!({"metadata": {"labels": {"touched": "1"}}}))?;
    }
    tokio::time::sleep(SETTLES).await;
    let what = format!("{PLAIN} changes of Services that touch no selector");
    report.line(&format!("{what}: processor time"), seconds(controller.cpu()? - cpu), "≤ 1 s");
    report.line(&format!("{what}: requests"), counted(&requests(cluster, at)), "0");

    let (at, cpu) = (Instant::now(), controller.cpu()?);
    for round in 0..ROUNDS {
        let begun = Instant::now();
        switch(cluster, 0..SWITCHED, round % 2 == 0)?;
        tokio::time::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed())).await;
    }
    let what = format!("{SWITCHED} Services whose selectors change every second");
    let lasted = at.elapsed().as_secs_f64();
    let took = (controller.cpu()? - cpu).as_secs_f64() / lasted;
    report.line(&format!("{what}, {ROUNDS} times: processor time a second"), format!("{took:.2} s"), "");
    let passed = usize::try_from(at.elapsed().as_secs()).unwrap_or(usize::MAX).max(1);
    let made = requests(cluster, at);
    report.line(&format!("{what}: requests a second"), (made.len() / passed).to_string(), "");
    let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
    for one in &made {
        let kind = one.path.split('/').rfind(|part| !part.chars().any(|c| c.is_ascii_digit() || c == '-'));
        *kinds.entry((one.method.to_string(), kind.unwrap_or_default().to_owned())).or_default() += 1;
    }
    kinds.iter().for_each(|((method, kind), count)| println!("{what}: {method} {kind}: {count}"));
    report.memory(&format!("{what}: memory"), controller.memory()?, "≤ 150 MiB");

    let moved = Instant::now();
    switch(cluster, 0..1, true)?;
    let path = format!("/2020-05-31/distribution/{}/invalidation", distribution(0));
    let creation = |seen: &&Seen| seen.method == "POST" && seen.path == path && seen.at >= moved;
    until("the purge of what moved last", || cluster.world.cdn.seen().iter().find(creation).map(drop)).await?;
    report.line("a move right behind that is purged after", seconds(moved.elapsed()), "≤ 60 s");
    Ok(())
}

//! Whether a replica of allclear works, by what the cluster shows of the installation: the holder of the Lease first, and where there
//! is none, why, by its Deployment and its pods.
//!
//! Not for how it is read; that is `adapters::kubernetes::installation`.

use std::time::Duration;

use jiff::Timestamp;

use crate::adapters::clock::SystemClock;
use crate::adapters::kubernetes::installation::{Controller, Installation, LABEL, Seen};
use crate::looking::page::time;
use kernel::replica::lease::{Claim, RENEW_EVERY};
use purge::ports::{Clock, PortError};
use purge::workloads::readiness::Pod;

/// How far the time of the last renewal may be from our own before it is looked whether it moves: six renewals, and less than what
/// clocks that anyone looks after differ.
const RENEWED_WITHIN_MS: i64 = 30_000;

/// How long until a Lease that is held must have been renewed once more.
const MOVES_WITHIN: Duration = RENEW_EVERY.saturating_add(Duration::from_secs(1));

/// Pods that are named.
const NAMED_MAX: usize = 3;

/// Whether a replica works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// One does: this holder, since then.
    Work {
        /// As the Lease names it: the pod's name, and a mark of this life; empty where no Lease says it, but ready pods do.
        holder: String,
        /// Since when, as the Lease has it.
        since: String,
    },
    /// One runs, and in a dry run: nothing is purged, and no Lease is held.
    RunDry,
    /// None does, and why; a whole sentence without its full stop.
    Idle(String),
    /// That could not be seen, and why.
    Unknown(String),
}

impl Replicas {
    /// What a person has to know before anything else; `None` while one works.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Work { .. } => None,
            Self::RunDry => Some("allclear runs in a dry run: nothing is purged or sent".to_owned()),
            Self::Idle(why) => Some(why.clone()),
            Self::Unknown(why) => Some(format!("whether a replica works is not known: {why}")),
        }
    }

    /// None works: what was to come next comes only when one does.
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }
}

/// Looks, and looks again where the time of the Lease says that its holder may be gone: clocks differ, and a renewal shows.
pub async fn look(installation: &Installation) -> (Seen, Replicas) {
    let mut seen = installation.look().await;
    let held = seen.lease.as_ref().ok().and_then(Option::as_ref).filter(|claim| !claim.holder.is_empty());
    if let Some(claim) = held.filter(|claim| !is_recent(claim, SystemClock::default().wall_ms())).cloned() {
        tokio::time::sleep(MOVES_WITHIN).await;
        seen.lease = installation.lease().await.map(|now| match now {
            Some(now) if now.renewed == claim.renewed => Some(Claim { holder: String::new(), ..now }),
            now => now,
        });
    }
    let replicas = judge(&seen, &installation.namespace);
    (seen, replicas)
}

fn is_recent(claim: &Claim, now_ms: i64) -> bool {
    at(&claim.renewed).is_some_and(|renewed_ms| (now_ms - renewed_ms).abs() <= RENEWED_WITHIN_MS)
}

fn at(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// What was seen, in one word. A holder whose Lease does not move is given as an empty one.
pub fn judge(seen: &Seen, namespace: &str) -> Replicas {
    let Seen { lease, controllers, pods } = seen;
    let ready = pods.as_ref().is_ok_and(|pods| pods.iter().any(|pod| pod.ready));
    let is_dry = controllers.as_ref().is_ok_and(|all| all.iter().any(|one| one.dry_run));
    match lease {
        Ok(Some(claim)) if !claim.holder.is_empty() => {
            Replicas::Work { holder: claim.holder.clone(), since: claim.acquired.clone() }
        }
        _ if is_dry && ready => Replicas::RunDry,
        Ok(claim) => {
            let renewed = claim.as_ref().and_then(|claim| at(&claim.renewed));
            let since = renewed.map_or_else(String::new, |at_ms| format!(" since {}", time(at_ms)));
            let why = why(controllers, pods, namespace).unwrap_or_else(|error| format!("why is not known: {error}"));
            Replicas::Idle(format!("no replica works{since}: {why}"))
        }
        // A caller that may read pods and not Leases, as with the role `view`, sees at least whether one is ready.
        Err(_) if ready => Replicas::Work { holder: String::new(), since: String::new() },
        Err(error) => match why(controllers, pods, namespace) {
            Ok(why) => Replicas::Idle(format!("no replica works: {why}")),
            Err(_) => Replicas::Unknown(error.to_string()),
        },
    }
}

/// Why none works, nearest cause first.
///
/// # Errors
/// What it could not be seen by.
fn why<'a>(
    controllers: &'a Result<Vec<Controller>, PortError>,
    pods: &'a Result<Vec<Pod>, PortError>,
    namespace: &str,
) -> Result<String, &'a PortError> {
    let controllers = controllers.as_ref()?;
    let scaled = |one: &Controller| one.workload.replicas.desired == 0;
    if !controllers.is_empty() && controllers.iter().all(scaled) {
        let names: Vec<String> = controllers.iter().map(|one| one.workload.id.display_name()).collect();
        return Ok(format!("Deployment {} is scaled to zero", names.join(", ")));
    }
    let pods = pods.as_ref()?;
    if pods.is_empty() && controllers.is_empty() {
        return Ok(format!("there is no Deployment of it in namespace {namespace} ({LABEL})"));
    }
    if pods.is_empty() {
        let refused = controllers.iter().find_map(|one| one.workload.refused.clone());
        return Ok(
            refused.map_or_else(|| "its Deployment has no pods".to_owned(), |why| format!("it has no pods: {why}"))
        );
    }
    let mut words: Vec<String> = pods.iter().take(NAMED_MAX).map(pod_words).collect();
    words.extend(pods.len().checked_sub(NAMED_MAX + 1).map(|more| format!("and {} more pods", more + 1)));
    Ok(words.join("; "))
}

/// A pod that does not work, in words.
fn pod_words(pod: &Pod) -> String {
    let name = &pod.name;
    match &pod.trouble {
        _ if pod.terminating => format!("{name} is ending"),
        // What `allclear run` ends with where its configuration is refused.
        Some(trouble) if trouble.contains("(exit code 2)") => {
            format!(
                "{name}: {trouble}, which says that its configuration is refused; kubectl logs --previous names each problem"
            )
        }
        Some(trouble) => format!("{name}: {trouble}"),
        None if pod.ready => format!("{name} is ready, and does not hold the Lease"),
        None if pod.started => format!("{name} runs, and is not ready yet"),
        None => format!("{name} has not started yet"),
    }
}

#[cfg(test)]
mod tests;

//! The installation itself: whose settings are looked at, whether its pods work, and whether what runs is what one thinks.
//!
//! Not for who holds the Lease; that is `ledger`, with the ledger that it belongs to.

use std::collections::BTreeSet;

use super::catalog::{CONTROLLER, CONTROLLER_VERSION, DRY_RUN, LEASE, SETTINGS};
use super::report::Finding;
use crate::adapters::kubernetes::installation::{Controller, Installation, LABEL, Seen};
use crate::config::Config;
use crate::looking::page::count;
use crate::looking::replicas::Replicas;
use crate::looking::whose::Whose;

/// Pods that are named.
const NAMED_MAX: usize = 3;

/// The source of the settings that everything below is checked with.
pub fn settings(whose: &Whose) -> Finding {
    match whose {
        Whose::Own(_) => SETTINGS
            .warning(whose)
            .hint("run it in the pod: kubectl exec deploy/allclear -- allclear check; or give the same configuration by --config"),
        Whose::Given(Some(other)) if !other.is_empty() => SETTINGS.warning(whose).hint("right, before it is applied"),
        Whose::Controllers { .. } | Whose::Given(_) | Whose::Itself => SETTINGS.good(whose),
    }
}

/// What there is to say of the Deployment and its pods. `leased`: a Lease says who works.
pub async fn controller(
    config: &Config,
    installation: &Installation,
    seen: &Seen,
    replicas: &Replicas,
    leased: bool,
) -> Vec<Finding> {
    let mut findings = vec![pods(installation, seen, replicas, leased)];
    let controllers = seen.controllers.as_deref().unwrap_or_default();
    findings.push(dry_run(config, installation, controllers).await);
    findings.extend(versions(seen));
    findings
}

fn pods(installation: &Installation, seen: &Seen, replicas: &Replicas, leased: bool) -> Finding {
    let place = &installation.namespace;
    let hint = format!("kubectl -n {place} describe pods -l {LABEL}");
    match replicas {
        Replicas::Idle(_) if leased && seen.lease.is_ok() => return CONTROLLER.after(LEASE),
        Replicas::Idle(why) => return CONTROLLER.failed(why).hint(hint),
        Replicas::Unknown(why) => return CONTROLLER.untried(format!("not tried: {why}")),
        Replicas::Work { .. } | Replicas::RunDry => {}
    }
    let (controllers, pods) = match (&seen.controllers, &seen.pods) {
        (Ok(controllers), Ok(pods)) => (controllers, pods),
        (Err(error), _) | (_, Err(error)) => return CONTROLLER.untried(format!("not tried: {error}")),
    };
    if controllers.is_empty() && pods.is_empty() {
        return CONTROLLER
            .good(format!("it works, and not by a Deployment with the label {LABEL} in namespace {place}"));
    }
    let sick = pods.iter().filter(|pod| !pod.ready && !pod.terminating);
    let sick: Vec<String> =
        sick.filter_map(|pod| Some(format!("{}: {}", pod.name, pod.trouble.as_ref()?))).take(NAMED_MAX).collect();
    if sick.is_empty() {
        let ready = pods.iter().filter(|pod| pod.ready).count();
        return CONTROLLER.good(format!("{ready} of {} ready", count(pods.len(), "pod", "pods")));
    }
    CONTROLLER.warning(format!("another replica works, but {}", sick.join("; "))).hint(hint)
}

/// A dry run that was left in.
async fn dry_run(config: &Config, installation: &Installation, controllers: &[Controller]) -> Finding {
    let hint = "remove --dry-run, ALLCLEAR__DRY_RUN or dry_run = true, unless it is meant";
    let told =
        |where_: String| DRY_RUN.warning(format!("nothing is purged or sent: {where_} asks for a dry run")).hint(hint);
    if config.dry_run {
        return told("the configuration given here".to_owned());
    }
    for Controller { workload, dry_run, config_maps, .. } in controllers {
        let name = workload.id.display_name();
        if *dry_run {
            return told(format!("Deployment {name}"));
        }
        for map in config_maps {
            // A caller that may not read it sees the Deployment all the same.
            if let Ok(Some(text)) = installation.file(map).await
                && asks_for_dry_run(&text)
            {
                return told(format!("the ConfigMap {map} of Deployment {name}"));
            }
        }
    }
    DRY_RUN.good("no")
}

/// The key stands before all sections.
fn asks_for_dry_run(file: &str) -> bool {
    let mut top = file.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    top.any(|line| {
        line.split_once('=').is_some_and(|(key, value)| key.trim() == "dry_run" && value.trim().starts_with("true"))
    })
}

/// Pods that are not of the version that their Deployment names.
fn versions(seen: &Seen) -> Option<Finding> {
    let (controllers, pods) = (seen.controllers.as_ref().ok()?, seen.pods.as_ref().ok()?);
    let wanted: BTreeSet<String> =
        controllers.iter().filter_map(|one| one.workload.version.as_ref().ok()).map(ToString::to_string).collect();
    if wanted.is_empty() {
        return None;
    }
    let images =
        pods.iter().filter(|pod| !pod.terminating).filter_map(|pod| Some((pod, pod.version.as_ref()?.to_string())));
    let others: Vec<String> = images
        .filter(|(_, image)| !wanted.contains(image))
        .map(|(pod, image)| format!("{} runs {image}", pod.name))
        .take(NAMED_MAX)
        .collect();
    let wanted = wanted.into_iter().collect::<Vec<_>>().join(", ");
    Some(match others.is_empty() {
        true => CONTROLLER_VERSION.good(wanted),
        false => CONTROLLER_VERSION
            .warning(format!("its Deployment names {wanted}, and {}", others.join("; ")))
            .hint("a rollout of allclear is under way, or stuck: kubectl rollout status"),
    })
}

#[cfg(test)]
mod tests {
    use super::asks_for_dry_run;

    #[test]
    fn a_dry_run_is_asked_for_above_all_sections_only() {
        assert!(asks_for_dry_run("# ours\ndry_run = true # for now\n[log]\nlevel = \"info\"\n"));
        assert!(!asks_for_dry_run("dry_run = false\n") && !asks_for_dry_run("[x]\ndry_run = true\n"));
    }
}

//! `allclear purge NAME [--paths PATHS] [--dry-run] [--retry] [--wait]`: asks the running allclear for a purge.
//!
//! The request is two annotations on the workload, written with the caller's own rights; allclear takes it from there as it takes
//! a change: the group votes, and purges once. Nothing here calls CloudFront to change anything.

use crate::adapters::kubernetes::desk::{REQUESTED_AT, REQUESTED_PATHS, RETRY_AT, requested_at};
use crate::adapters::kubernetes::hand::{Hand, Marked};
use crate::cli::answer::{EXIT_FAILED, Outcome, done, invalid, refused};
use crate::cli::wait::{Wait, wait};
use crate::looking::explain::model::{DistributionsSeen, Explanation};
use crate::looking::explain::text::named;
use crate::looking::explain::{Found, explanation};
use crate::looking::workloads::not_found;
use crate::looking::{Question, Section, Sources};
use kernel::id::WorkloadId;
use kernel::names::paths::PathSet;
use purge::workloads::workload::requested_paths;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Paths, and cache tags with their `#`, each also as a list with commas; empty for what is usually purged.
    pub paths: Vec<String>,
    /// Only say what would be purged.
    pub dry_run: bool,
    /// Nothing new: what was refused is tried now.
    pub retry: bool,
    /// Wait until it is made.
    pub wait: Option<Wait>,
}

/// Asks for a purge, at `at_ms` by the wall's clock. Exit codes: 0 asked for, and made where that is waited for; 1 not; 2 refused;
/// 3 asked for, and not made in time.
pub async fn purge(
    (sources, question, hand): (&Sources, &Question, &Hand),
    request: Request,
    at_ms: i64,
    say: &mut dyn FnMut(&str),
) -> Outcome {
    let id = match question.workload(sources).await {
        Ok(id) => id,
        Err(why) => return invalid(&why),
    };
    let paths = match Some(request.paths.join(",")).filter(|all| !all.is_empty()).map(|all| requested_paths(&all)) {
        Some(Err(why)) => return invalid(&format!("--paths: {why}")),
        Some(Ok(paths)) => Some(paths),
        None => None,
    };
    if request.retry {
        let retry_at = requested_at(at_ms);
        if let Err(why) = mark(hand, &id, &[(RETRY_AT, Some(retry_at.as_str()))]).await {
            return refused(&why);
        }
        let asked = format!("{}: asked allclear to try now what CloudFront refused\n", id.display_name());
        return waited((sources, question), asked, request.wait, say).await;
    }
    let seen = match explanation(sources, &id).await {
        Found::Yes(seen) | Found::Unknown(seen) => seen,
        Found::No => return refused(&not_found(sources, &id).await),
    };
    let plan = match plan(&seen, paths.as_ref()) {
        Ok(plan) => plan,
        Err(why) => return refused(&format!("{}: {why}", id.display_name())),
    };
    if request.dry_run {
        let settings = seen.settings.line().map(|line| format!("settings: {line}\n")).unwrap_or_default();
        let idle = seen.controller.as_ref().map(|why| format!("{why}\n")).unwrap_or_default();
        let out =
            format!("{}: would purge {plan}\n{idle}{settings}nothing was asked for (--dry-run)\n", id.display_name());
        let known = seen.distributions.known().is_some();
        return Outcome { out, err: String::new(), code: if known { 0 } else { EXIT_FAILED } };
    }
    if let Err(why) = ask(hand, &id, paths.as_ref(), at_ms).await {
        return refused(&why);
    }
    let idle = seen.controller.as_ref().map(|why| format!("{why}\n")).unwrap_or_default();
    let asked = format!("{}: asked allclear to purge {plan}\n{idle}", id.display_name());
    waited((sources, question), asked, request.wait, say).await
}

/// It is asked for; with `bounds`, what becomes of it.
async fn waited(
    (sources, question): (&Sources, &Question),
    asked: String,
    bounds: Option<Wait>,
    say: &mut dyn FnMut(&str),
) -> Outcome {
    match bounds {
        None => done(asked),
        Some(bounds) => {
            let ended = wait(sources, question, bounds, say).await;
            Outcome { out: asked + &ended.out, ..ended }
        }
    }
}

/// Writes the request. Paths name it, so that they are not those of a later one; those of an earlier one are taken away.
async fn ask(hand: &Hand, id: &WorkloadId, paths: Option<&PathSet>, at_ms: i64) -> Result<(), String> {
    let at = requested_at(at_ms);
    let list = paths.map(|paths| {
        let paths: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
        format!("{at} {}", paths.join(","))
    });
    let marks = [(REQUESTED_AT, Some(at.as_str())), (REQUESTED_PATHS, list.as_deref())];
    mark(hand, id, &marks).await
}

async fn mark(hand: &Hand, id: &WorkloadId, marks: &[(&str, Option<&str>)]) -> Result<(), String> {
    match hand.annotate(id, marks).await.map_err(|error| error.to_string())? {
        Marked::Done => Ok(()),
        Marked::Gone => Err(format!("there is no {} {}/{} any more", id.kind.name(), id.namespace, id.name)),
    }
}

/// What would be purged, in words: `/a of E1 (d1.cloudfront.net)`.
///
/// # Errors
/// Why nothing would be.
fn plan(seen: &Explanation, asked: Option<&PathSet>) -> Result<String, String> {
    let deployment = match &seen.deployment {
        Section::Known(deployment) => deployment,
        Section::Missing { missing } => return Err(missing.clone()),
    };
    if deployment.disabled {
        return Err(
            "its owner has taken it out by the annotation allclear.dev/enabled, so nothing is purged".to_owned()
        );
    }
    let usual = || match &seen.paths {
        Section::Known(paths) => paths.items.join(" "),
        Section::Missing { missing } => format!("paths that are not known ({missing})"),
    };
    let pending = seen.record.known().and_then(Option::as_ref).is_some_and(|record| {
        record.phase != "complete" || record.votes > 0 || record.settled.as_ref() != Some(&record.version)
    });
    let paths = match asked {
        Some(asked) if pending => {
            format!("{asked}, and {} too because an earlier change still waits for its purge,", usual())
        }
        Some(asked) => asked.to_string(),
        None => usual(),
    };
    match &seen.distributions {
        Section::Known(DistributionsSeen { matched, lacks: Some(why), .. }) if matched.is_empty() => {
            Ok(format!("{paths}; the distribution tenants cannot be determined here: {why}"))
        }
        Section::Known(DistributionsSeen { matched, unlisted, .. }) if matched.is_empty() && !unlisted.is_empty() => {
            Ok(format!("{paths}; no distribution that could be listed serves its hosts; {}", unlisted.join("; ")))
        }
        Section::Known(DistributionsSeen { matched, in_part, .. }) if matched.is_empty() => {
            let hosts = if *in_part { "the hosts that could be read" } else { "its hosts" };
            Err(seen.would.clone().unwrap_or_else(|| format!("no distribution serves {hosts}")))
        }
        Section::Known(DistributionsSeen { matched, .. }) => {
            let name = |id: &str, domain: &Option<String>| {
                domain.as_ref().map_or_else(|| named(id), |domain| format!("{id} ({domain})"))
            };
            let names: Vec<String> = matched.iter().map(|one| name(&one.id, &one.domain)).collect();
            Ok(format!("{paths} of {}", names.join(", ")))
        }
        Section::Missing { missing } => Ok(format!("{paths}; the distributions cannot be determined here: {missing}")),
    }
}

//! `restartAt`: pods that are older are replaced, as many at a time as may be missing.

use serde_json::Value;

use super::Context;
use crate::kubernetes::controller::workload::delete_pod;
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Writer};

/// Seconds after which pods that could not be restarted are tried again.
const RETRY: i64 = 30;

/// Deletes pods that are to be restarted; true if there were any, and then nothing else is done in this look.
///
/// # Errors
/// When the store refuses a deletion.
pub fn restart(context: &mut Context<'_>, writer: &mut Writer<'_>) -> Result<bool, Failure> {
    let wanted = context.rollout.pointer("/spec/restartAt").cloned().unwrap_or_default();
    let Some(at) = wanted.as_str().and_then(|at| at.parse().ok()) else { return Ok(false) };
    if wanted == context.restarted_at || !context.has_passed(at, 0) {
        return Ok(false);
    }
    let asked: i64 = context.sets.iter().map(|set| set.desired).sum();
    let missing_max = context.bounds().1.max(1);
    let available: i64 = context.sets.iter().map(super::Set::ready).sum();
    let allowed = available - (context.replicas.max(asked) - missing_max);
    let is_old = |key: &&Key| {
        let pod = writer.state.get(Kind::Pod, key).map(|pod| pod.value());
        pod.is_some_and(|pod| {
            text(&pod, "/metadata/creationTimestamp").parse().is_ok_and(|made: jiff::Timestamp| made < at)
        })
    };
    let pods = context.sets.iter().flat_map(|set| &set.pods).map(|pod| &pod.key);
    let old: Vec<Key> = pods.filter(is_old).cloned().collect();
    let restarted = old.iter().take(usize::try_from(allowed).unwrap_or(0));
    for pod in restarted.clone() {
        delete_pod(writer, pod, &DeleteOptions::default())?;
    }
    if old.len() > restarted.len() {
        context.has_passed(context.now.time, RETRY);
    } else {
        context.restarted_at = Value::from(wanted.as_str());
    }
    Ok(restarted.len() > 0)
}

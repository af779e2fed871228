//! What the controllers of all workloads read and do in the same way.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, number};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, Writer};

/// The templates of a workload, by the names of their revisions: what ControllerRevisions hold in a cluster.
pub type Revisions = BTreeMap<String, Value>;

/// Whether an object has what a workload needs. A test may have stored what no server would have let in.
pub fn is_complete(workload: &Value) -> bool {
    ["/spec/template/metadata/labels", "/spec/selector/matchLabels"]
        .iter()
        .all(|part| workload.pointer(part).is_some_and(Value::is_object))
}

/// Whether a workload without pods reports these counts of its status as `wanted` and its generation as observed: a seeded one, which is
/// left alone.
pub fn is_settled(workload: &Value, wanted: Option<i64>, counts: &[&str]) -> bool {
    let observed = number(workload, "/status/observedGeneration");
    observed.is_some()
        && observed == number(workload, "/metadata/generation")
        && counts.iter().all(|field| number(workload, &format!("/status/{field}")).or(Some(0)) == wanted)
}

/// Ten letters and digits that stand for the pod template.
pub fn template_hash(workload: &Value) -> String {
    hash_at(workload, "/spec/template")
}

/// The same for another part of an object.
pub fn hash_at(object: &Value, part: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digits = Sha256::digest(object.pointer(part).map(Value::to_string).unwrap_or_default());
    digits
        .iter()
        .take(10)
        .map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()).map_or('x', |letter| char::from(*letter)))
        .collect()
}

/// A number, or a percentage of `whole`.
pub fn share(value: Option<&Value>, whole: i64, up: bool) -> i64 {
    match value {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (percent * whole + if up { 99 } else { 0 }) / 100
        }
        _ => 0,
    }
}

/// Deletes a pod, which may have gone since it was seen.
///
/// # Errors
/// When the store refuses that.
pub fn delete_pod(writer: &mut Writer<'_>, pod: &Key, options: &DeleteOptions) -> Result<(), Failure> {
    match writer.delete(Kind::Pod, pod, options) {
        Err(failure) if failure.code != 404 => Err(failure),
        _ => Ok(()),
    }
}

//! Names of objects in paths of requests.

use kernel::id::WorkloadId;
use kernel::names::workload_name::WorkloadName;

/// Characters of a namespace or of a name (RFC 1123).
const NAME_CHARS_MAX: usize = 253;

/// Whether a text can be the name of an object of Kubernetes, and so a part of a path that is asked of the API server.
pub(super) fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.chars().all(is_inner) && !text.starts_with('.')
}

/// The workload at the end of a path: `NAMESPACE/NAME`, where the name of no Deployment has its kind before it.
pub(super) fn workload(path: &str) -> Option<WorkloadId> {
    let (namespace, name) = path.split_once('/')?;
    let name = WorkloadName::parse(name).ok().filter(|name| is_name(namespace) && is_name(&name.name))?;
    Some(name.within(namespace))
}

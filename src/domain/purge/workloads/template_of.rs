//! Where the template of a workload is that of another one. Not for reading both together; that is `referring`'s.

use kernel::id::WorkloadId;

/// What a Rollout says of the Deployment that its template is from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateOf {
    pub deployment: WorkloadId,
    /// The generation of it that its controller has noted.
    pub noted: Option<i64>,
    /// The Rollout has a selector of its own.
    pub selects: bool,
}

//! The custom resources `Pipeline`, in `repo` `Repo`, and in `freeze` `PromotionFreeze`: the raw types of their specs, what they mean to the domain, and the CRDs that
//! are made from them. A status has no raw type: it stands in the object as the domain writes it.
//!
//! The raw types end in this folder. The CRDs of `deploy/crds` are compared with the types by a test, so that what is shipped needs
//! no generator.

mod checks;
pub mod freeze;
pub(super) mod metadata;
mod raw_spec;
mod read;
mod remembered;
pub mod repo;
mod status;

pub use checks::InvalidSpec;
pub use read::{called, confined, object};
pub use remembered::written;
pub use status::lost;

/// The CRD of `allclear.dev`, for `kubectl apply -f`.
pub const CRD: &str = include_str!("../../../../deploy/crds/pipelines.yaml");

/// The same schema for the group `pipelines.weave.works`, over objects that are stored already: without rules that would make the
/// status of a stored object impossible to write.
pub const CRD_WEAVE: &str = include_str!("../../../../deploy/crds/pipelines-weave.yaml");

/// The CRD of histories, whose entries stand in them as the domain writes them.
pub const CRD_HISTORIES: &str = include_str!("../../../../deploy/crds/histories.yaml");

#[cfg(test)]
mod tests;

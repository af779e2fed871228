//! The custom resource `Repo`: the raw types of its spec, what they mean to the domain, and its CRD.

mod extras;
mod git;
mod outputs;
mod raw_spec;
mod read;
mod remembered;

pub use read::{Installation, object};
pub use remembered::written;

#[cfg(test)]
pub(super) use raw_spec::RepoSpec;
#[cfg(test)]
pub(super) use remembered::Written;

/// The CRD, for `kubectl apply -f`.
pub const CRD: &str = include_str!("../../../../../deploy/crds/repos.yaml");

//! A commit is applied by a Job, once: what a `Repo` decides.

pub mod job;
pub mod plan;
pub mod spec;
pub mod status;

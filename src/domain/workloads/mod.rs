//! What is watched: the workload as the cluster shows it, its pods, and what still serves.

pub mod own_pods;
pub mod readiness;
pub mod serving;
pub mod workload;

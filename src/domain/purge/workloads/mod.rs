//! The watched objects: the workload as the cluster shows it, its pods, and the old ones that still serve.

pub mod own_pods;
pub mod readiness;
pub mod serving;
pub mod workload;

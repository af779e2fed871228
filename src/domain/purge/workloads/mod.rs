//! The watched objects: the workload as the cluster shows it, its pods, the old ones that still serve, and which of two objects of
//! one name counts.

pub mod joining;
pub mod own_pods;
pub mod readiness;
pub mod referring;
pub mod serving;
pub mod workload;

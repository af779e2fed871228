//! The watched objects: the workload as the cluster shows it, its pods, the old ones that still serve, the new ones that can be asked, those of
//! others that serve beside them, and which of two objects of one name counts; and how the values of annotations are read.

pub mod annotated;
pub mod beside;
pub mod extent;
pub mod joining;
pub mod new_pods;
pub mod own_pods;
pub mod proving;
pub mod readiness;
pub mod referring;
pub mod serving;
pub mod template_of;
pub mod workload;

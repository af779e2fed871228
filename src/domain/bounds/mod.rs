//! What may be purged, by whom, and how much of it.

pub mod plan;
pub mod policy;
pub mod tenants;

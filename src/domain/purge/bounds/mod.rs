//! The rights and bounds of purges.

pub mod plan;
pub mod policy;
pub mod tenants;

//! A revision moves from environment to environment: what a `Pipeline` decides.

pub mod id;
pub mod marker;
pub mod proposal;

//! When the edge is purged, and of what: no clock, no socket, no randomness, no environment.
//!
//! Read it as the specification. Its machines are [`rollouts::rollout`] (one workload's record), [`purges::purge`] (all purges of one
//! account), [`traffic`] (who is asked by which host), [`broker`] (the members' records on their way) and, beneath the rollout, [`agreement::group`] (when may a version be
//! purged at all). [`ports`] is what they need from the outside.
//!
//! Rooms name each other in one direction; what a room holds stands at its head. Not for Pipelines and Repos; they are the crate
//! `objects`, and neither knows the other.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

pub mod agreement;
pub mod bounds;
pub mod broker;
pub mod caches;
pub mod deployments;
pub mod ports;
pub mod purges;
pub mod records;
pub mod rollouts;
pub mod site;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod traffic;
pub mod workloads;

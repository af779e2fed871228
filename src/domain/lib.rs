//! Every decision allclear takes, and nothing else: no clock, no socket, no randomness, no environment.
//!
//! Read it as the specification. [`kernel::machine`] is the contract the machines share: [`rollouts::rollout`] (one workload's record),
//! [`purges::purge`] (all purges of one account), [`notices::delivery`] (webhooks on their way), [`broker`] (the members' records on
//! their way), [`replica::duty`] (whether this replica works), [`pipeline`], [`repo`], and, beneath the rollout, [`agreement::group`]
//! (when may a version be purged at all). [`ports`] is what all of them need from the outside. The rest is vocabulary and parsing.
//!
//! Rooms name each other in one direction, from [`kernel`] up to [`ports`]; what a room holds stands at its head.
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
pub mod apps;
pub mod bounds;
pub mod broker;
pub mod kernel;
pub mod names;
pub mod notices;
pub mod objects;
pub mod pipeline;
pub mod ports;
pub mod purges;
pub mod records;
pub mod replica;
pub mod repo;
pub mod rollouts;
pub mod site;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod watches;
pub mod workloads;

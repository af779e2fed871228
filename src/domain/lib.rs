//! Every decision allclear takes, and nothing else: no clock, no socket, no randomness, no environment.
//!
//! Read it as the specification. [`machine`] is the contract the machines share: [`rollout`] (one workload's
//! record), [`purge`] (all purges of one account), [`delivery`] (webhooks on their way), [`broker`] (the members' records on
//! their way), [`duty`] (whether this replica works) and, beneath the rollout, [`group`] (when may a version be purged at all).
//! [`ports`] is what all of them need from the outside. The rest is vocabulary and parsing.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

pub mod adoption;
pub mod app;
pub mod asked;
pub mod board;
pub mod broker;
pub mod browse;
pub mod budget;
pub mod call;
pub mod catalog;
pub mod clusters;
pub mod delivery;
pub mod destination;
pub mod distribution;
pub mod doors;
pub mod duty;
pub mod edge;
pub mod feature;
pub mod floor;
pub mod goal;
pub mod group;
pub mod group_name;
pub mod groups;
pub mod horizon;
pub mod host;
pub mod id;
pub mod image;
pub mod kept;
pub mod late;
pub mod leaf;
pub mod lease;
pub mod listed;
pub mod lives;
pub mod machine;
pub mod notice;
pub mod own_pods;
mod own_status;
mod parsed;
pub mod paths;
pub mod pipeline;
pub mod plan;
pub mod policy;
pub mod ports;
pub mod promise;
pub mod purge;
pub mod readiness;
pub mod ready;
pub mod record;
pub mod record_codec;
pub mod refusal;
pub mod remark;
pub mod repo;
pub mod retry;
pub mod rollout;
pub mod roster;
pub mod rules;
pub mod selector;
pub mod serving;
pub mod shares;
pub mod site;
pub mod tally;
mod telling;
pub mod tenants;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod trace;
pub mod unwell;
pub mod watch;
pub mod workload;

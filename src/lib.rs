//! allclear notices when a workload's image tag changes, waits until the rollout is complete in every cluster behind
//! the same CDN, purges the right CloudFront distribution exactly once, waits for the purge and then calls webhooks.
//!
//! Deciding is in [`domain`], which is pure; doing is in `adapters`; `actors` only carry messages between them.
//! ARCHITECTURE.md tells the life of one rollout from end to end.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

#[cfg(feature = "runtime")]
pub mod actors;
#[cfg(feature = "runtime")]
pub mod adapters;
#[cfg(feature = "runtime")]
pub mod app;
#[cfg(feature = "runtime")]
pub mod cli;
#[cfg(feature = "runtime")]
pub mod config;
pub mod domain;
#[cfg(feature = "runtime")]
pub mod http;
pub mod ports;
#[cfg(feature = "runtime")]
pub mod sandbox;
#[cfg(feature = "runtime")]
pub mod telemetry;

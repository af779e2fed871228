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

pub mod actors;
pub mod adapters;
pub mod app;
pub mod cli;
pub mod config;
#[cfg(feature = "demo")]
pub mod demo;
pub mod http;
pub mod looking;
pub mod telemetry;

//! Objects of our own in the cluster: what their kinds have in common (a status that is ours to write, gates that others judge), and what
//! is decided about each [`pipeline`] and each [`repo`]: no clock, no socket, no randomness, no environment.
//!
//! Not for purges; those are the crate `purge`, and neither knows the other.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

pub mod apps;
pub mod asked;
pub(crate) mod form;
pub mod gates;
pub mod groups;
pub mod history;
pub mod kept;
#[cfg(any(test, feature = "testing"))]
pub mod lamp;
pub(crate) mod own_status;
pub mod owned;
pub mod pipeline;
pub mod ports;
pub mod repo;
pub mod status;
pub mod watched;

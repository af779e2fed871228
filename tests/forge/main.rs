//! Looks, fetches and promotions against real peers on loopback: git hosts, and forges.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

mod apps;
mod forges;
mod git;
mod heads;
mod reports;
mod scene;
mod snapshot;
mod ssh;

//! What several tiers of tests and benches share: the outside, faked; the program, started; peers that are other people's
//! programs. A tier mounts no file of another: what a second one needs comes here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

pub mod controller;
pub mod fakes;
pub mod fixture;
pub mod log;
pub mod moto;
pub mod process;
pub mod redis;
pub mod snapshot;
pub mod stage;
pub mod tiers;

//! Exhaustive searches of the deciding half: every order of events and faults within named bounds, on the production
//! machines themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

/// Promises that a world writes into `past.broken` when a step breaks them.
macro_rules! promises {
    ($($kept:ident),* $(,)?) => { &[$((Promise::$kept, |_, state: &State| !state.past.broken.contains(&Promise::$kept))),*] };
}

mod aborted;
mod beats;
mod duty;
mod edge;
mod failure;
mod group;
mod hashed;
mod history;
mod looks;
mod mutants;
mod owed;
mod pace;
mod past;
mod pins;
mod pipeline;
mod pods;
mod purge;
mod repo;
mod restless;
mod restore;
mod rollout;
mod share;
mod spent;
mod traffic;
mod watch;
mod world;

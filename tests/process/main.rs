//! The real program as a process of its own, against the stand-ins: what only a process can show. It is killed, told to
//! stop, and given a world that misbehaves; every fact asserted is one that users or operators can see from the outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

mod accounts;
mod alerts;
mod argo;
mod by_hand;
mod changes;
mod commands;
mod completion;
mod custom;
mod defects;
mod demo;
mod distribution_tenants;
mod faults;
mod group;
mod hooks;
mod kills;
mod kinds;
mod leader;
mod lost;
mod mcp;
mod outputs;
mod promises;
mod promoting;
mod running;
mod scene;
mod set_back;
mod signals;
mod steps;
mod strangers;
mod traces;
mod traffic;
mod webhooks;

//! The real actors on faked ports, in virtual time: supervision, loss, delay and panics, one seed to a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

mod barrier;
mod bill;
mod caches;
mod chaos;
mod distribution_tenants;
mod facts;
mod group;
mod group_chaos;
mod group_script;
mod lamp;
mod leading;
mod looks;
mod lost;
mod promoting;
mod refused;
mod restless;
mod restored;
mod routes;
mod running;
mod sights;
mod strangers;
mod supervision;

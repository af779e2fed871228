//! Properties of the pure half of the program, over generated values and histories: parsing, matching, planning, delivery.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

mod custom;
mod deadlines;
mod delivery;
mod distribution;
mod distribution_tenants;
mod golden;
mod image;
mod leaf;
mod looks;
mod marker;
mod paths;
mod plan;
mod record;
mod roster;
mod routes;
mod sentences;
mod site;
mod site_requests;
mod text;

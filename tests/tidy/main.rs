//! The rules of STYLE.md that a machine can hold us to, over the text of the repository. Each test names all places at once.
//!
//! What the compiler and clippy can see is not repeated here: see `[lints]` in Cargo.toml and clippy.toml.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

mod annotations;
mod bounds;
mod code;
mod deploy;
mod documents;
mod faults;
mod imports;
mod mutants;
mod pages;
mod reliability;
mod shipped;
mod source;
mod telemetry;

/// Fails with one line for each place that breaks the rule.
fn none(rule: &str, places: &[String]) {
    assert!(places.is_empty(), "{rule}:\n  {}", places.join("\n  "));
}

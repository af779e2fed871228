//! What deploy/ renders, by the tools that people use: helm for the chart, kubectl for the kustomize trees. Both are to give the same objects,
//! and the API's own schemas are to know every field of them.
//!
//! scripts/test-setup.sh gets the tools. Without them these tests fail and say so; they are never passed over. Not tried: that a cluster
//! runs what is rendered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests: what goes wrong in one shall fail the test"
)]

mod alike;
mod configured;
mod health;
mod packed;
mod recipes;
mod released;
mod render;
mod schemas;
mod settings;
mod table;
mod values;

/// Fails with one line for each place that breaks the rule.
fn none(rule: &str, places: &[String]) {
    assert!(places.is_empty(), "{rule}:\n  {}", places.join("\n  "));
}

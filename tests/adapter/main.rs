//! Adapters against real peers on loopback: what travels over the wire, and what comes of every failure there.
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

mod board;
mod by_hand;
mod caches;
mod certificates;
mod check;
mod cloudfront;
mod commands;
mod edge_look;
mod explain;
mod forge_http;
mod gates;
mod health;
mod helm;
mod hooks;
mod kubectl;
mod kubernetes;
mod kubernetes_conformance;
mod ledger;
mod pipelines;
mod published;
mod readers;
mod readme;
mod repos;
mod served;
mod ssh;
mod strangers;
mod tiers;
mod waits;
mod webhook;

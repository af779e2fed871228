//! Adapters against real peers on loopback: what travels over the wire, and what comes of every failure there.

#[path = "../support/mod.rs"]
mod support;

mod cloudfront;
mod explain;
mod kubernetes;
mod kubernetes_conformance;
mod ledger;
mod tag_cache;
mod webhook;

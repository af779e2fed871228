//! One outside system per file, each behind a port. Adapters perform calls and report; none decides.

pub mod caches;
pub mod calendar;
pub mod clock;
pub mod cloudfront;
pub mod collector;
pub mod dry_objects;
pub mod dry_run;
pub mod dry_running;
pub mod edge;
pub mod edge_look;
pub mod edge_sight;
pub mod forge_http;
pub mod heads;
pub mod http;
pub mod kubernetes;
pub mod ledger;
pub mod needs;
pub mod random;
pub mod redis;
pub mod source;
pub mod ssh;
pub mod verdict;
pub mod webhook;

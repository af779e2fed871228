//! One outside system per file, each behind a port. Adapters do what they are told and report; none decides.

pub mod clock;
pub mod cloudfront;
pub mod dry_run;
pub mod http;
pub mod kubernetes;
pub mod ledger;
pub mod redis;
pub mod webhook;

//! Everything outside, one adapter for each port. An adapter does what it is told within a bound of time and reports;
//! what to do about it is decided in `domain`.

pub mod http;
pub mod webhook;

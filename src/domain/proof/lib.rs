//! The look at the edge: what its answers prove after a purge, when they are looked for, and what is said of them.
//!
//! CloudFront's `Completed` says that an order was carried out. What a visitor gets, only an answer says. [`asked`] is the question and the
//! answer.
//!
//! Not for requests: those are made outside, by what is asked here.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

pub mod age;
pub mod asked;
pub mod cacheability;
pub mod look;
pub mod marker;
pub mod tally;
pub mod turns;
pub mod verdict;

#[cfg(test)]
mod tests;

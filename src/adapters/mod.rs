//! The outside systems, one module each: they do what a port says, within a bound of time, and report.
//!
//! Not for decisions: those are in [`crate::domain`].

pub mod kubernetes;
